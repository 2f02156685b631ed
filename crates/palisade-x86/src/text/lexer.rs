//! Statements of an assembly file, and a cursor over the text of one.

use palisade_base::Span;

/// A statement: the text between two separators, without comments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement<'a> {
    pub(super) text: &'a str,
    /// Where it begins in the file.
    pub(super) start: usize,
    /// Its line, from 1.
    pub(super) line: u64,
}

/// The text with its comments replaced by spaces, byte by byte, so that places stay the same.
///
/// A comment is what follows `#`, what is between `/*` and `*/`, and a line that begins with `/`.
pub(super) fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    let mut line_is_empty = true;
    while at < bytes.len() {
        let blank_to = |bytes: &mut [u8], from: usize, to: usize| {
            bytes[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        };
        let end_of_line = |bytes: &[u8]| {
            bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
        };
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let rest = &bytes[at + 2..];
                let end = rest.windows(2).position(|pair| pair == b"*/");
                let end = end.map_or(bytes.len(), |length| at + 2 + length + 2);
                blank_to(&mut bytes, at, end);
                at = end;
                continue;
            }
            b'#' => {
                let end = end_of_line(&bytes);
                blank_to(&mut bytes, at, end);
                at = end;
                continue;
            }
            b'/' if line_is_empty => {
                let end = end_of_line(&bytes);
                blank_to(&mut bytes, at, end);
                at = end;
                continue;
            }
            b'"' | b'\'' => {
                at = end_of_literal(&bytes, at);
                line_is_empty = false;
                continue;
            }
            b'\n' => line_is_empty = true,
            b' ' | b'\t' | b'\r' => {}
            _ => line_is_empty = false,
        }
        at += 1;
    }
    // Comments may hold any characters, and become ASCII as a whole.
    String::from_utf8(bytes).expect("comments are replaced as a whole")
}

/// The end of a string or of a character that begins at a place.
fn end_of_literal(bytes: &[u8], start: usize) -> usize {
    if bytes[start] == b'\'' {
        let end = start + if bytes.get(start + 1) == Some(&b'\\') { 3 } else { 2 };
        // A second mark may follow.
        let end = if bytes.get(end) == Some(&b'\'') { end + 1 } else { end };
        return end.min(bytes.len());
    }
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' if bytes.get(at + 1) != Some(&b'\n') => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The statements of a text without comments.
pub(super) fn statements(text: &str) -> Vec<Statement<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut start, mut at, mut line) = (0, 0, 1);
    while at <= bytes.len() {
        match bytes.get(at) {
            Some(b'"' | b'\'') => {
                at = end_of_literal(bytes, at);
                continue;
            }
            None | Some(b'\n' | b';') => {
                let whole = text.get(start..at).unwrap_or_default();
                let trimmed = whole.trim_start();
                if !trimmed.is_empty() {
                    let start = start + whole.len() - trimmed.len();
                    found.push(Statement { text: trimmed.trim_end(), start, line });
                }
                start = at + 1;
                if bytes.get(at) == Some(&b'\n') {
                    line += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// A place in the text of a statement.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Where the text begins in the file.
    base: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, base: usize) -> Cursor<'a> {
        Cursor { text, at: 0, base }
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The next character that is not a space.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes this character, if it is the next one.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.bump();
        }
        found
    }

    /// Takes characters as long as they are of a kind.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A name: letters, digits, `_`, `.` and `$`, or anything in quotation marks.
    pub(super) fn name(&mut self) -> Option<String> {
        match self.peek()? {
            '"' => self.string().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            c if c.is_ascii_digit() || !is_of_name(c) => None,
            _ => Some(self.take_while(is_of_name).to_owned()),
        }
    }

    /// A string in quotation marks, with its escapes replaced.
    pub(super) fn string(&mut self) -> Option<Vec<u8>> {
        if !self.eat('"') {
            return None;
        }
        let mut bytes = Vec::new();
        loop {
            match self.bump()? {
                '"' => return Some(bytes),
                '\\' => bytes.push(self.escape()?),
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn escape(&mut self) -> Option<u8> {
        Some(match self.bump()? {
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            '"' => b'"',
            '\\' => b'\\',
            'x' | 'X' => {
                let digits = self.take_while(|c| c.is_ascii_hexdigit());
                digits.bytes().try_fold(0u8, |value, digit| {
                    let digit = (digit as char).to_digit(16)? as u8;
                    Some(value.wrapping_mul(16).wrapping_add(digit))
                })?
            }
            first @ '0'..='7' => {
                let mut value = first.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = self.rest().chars().next().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.bump();
                }
                (value & 0xff) as u8
            }
            _ => return None,
        })
    }

    /// The rest of the text, up to its end, as a place in the file.
    pub(super) fn span(&self) -> Span {
        let rest = self.rest();
        let start = self.base + self.at + (rest.len() - rest.trim_start().len());
        Span::new(start..(self.base + self.text.len()).max(start + 1))
    }

    /// From a cursor to this one.
    pub(super) fn since(&self, before: &Cursor<'_>) -> Span {
        let start = before.span().start;
        let taken = self.text.get(..self.at).unwrap_or_default().trim_end().len();
        Span::new(start as usize..(self.base + taken).max(start as usize + 1))
    }
}

pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$') || !c.is_ascii()
}
