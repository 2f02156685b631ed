//! Statements of an assembly file, and a cursor over the text of one.

use super::scan;
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

/// The statements of a text without comments.
pub(super) fn statements(text: &str) -> Vec<Statement<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut start, mut at, mut line) = (0, 0, 1);
    while at <= bytes.len() {
        match bytes.get(at) {
            Some(b'"' | b'\'') => {
                at = scan::after_literal(bytes, at);
                continue;
            }
            None | Some(b'\n' | b';') => {
                let whole = text.get(start..at).unwrap_or_default();
                let trimmed = whole.trim_ascii_start();
                if !trimmed.is_empty() {
                    let start = start + whole.len() - trimmed.len();
                    found.push(Statement { text: trimmed.trim_ascii_end(), start, line });
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
        self.at += rest.len() - rest.trim_ascii_start().len();
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

    /// A name: letters, digits, `_`, `.` and `$`, or some more characters in quotation marks.
    pub(super) fn name(&mut self) -> Option<String> {
        let mut ahead = self.clone();
        let name = match ahead.peek()? {
            '"' => {
                ahead.bump();
                let name =
                    ahead.take_while(|c| is_of_name(c) || matches!(c, '-' | ' ' | '{' | '}' | '<' | '>'));
                (ahead.bump() == Some('"') && name != ".").then_some(name)?
            }
            _ => ahead.take_while(is_of_name),
        };
        // Others are numbers, or names for one assembler only.
        let is_known = match name.as_bytes() {
            [b'.'] => true,
            [b'.', second, ..] => second.is_ascii_alphabetic() || *second == b'_',
            [first, ..] => first.is_ascii_alphabetic() || *first == b'_',
            [] => false,
        };
        is_known.then(|| {
            *self = ahead;
            name.to_owned()
        })
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

    /// An escape that means the same everywhere.
    fn escape(&mut self) -> Option<u8> {
        Some(match self.bump()? {
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            '"' => b'"',
            '\\' => b'\\',
            'x' => {
                // How many digits belong to it is not the same everywhere.
                let digits = self.take_while(|c| c.is_ascii_hexdigit());
                if digits.len() > 2 {
                    return None;
                }
                u8::from_str_radix(digits, 16).ok()?
            }
            first @ '0'..='7' => {
                let mut value = first.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = self.rest().chars().next().and_then(|c| c.to_digit(10)) else { break };
                    // GNU `as` takes `8` and `9` for digits here.
                    if digit > 7 {
                        return None;
                    }
                    value = value * 8 + digit;
                    self.bump();
                }
                u8::try_from(value).ok()?
            }
            _ => return None,
        })
    }

    /// The rest of the text, up to its end, as a place in the file.
    pub(super) fn span(&self) -> Span {
        let rest = self.rest();
        let start = self.base + self.at + (rest.len() - rest.trim_ascii_start().len());
        Span::new(start..(self.base + self.text.len()).max(start + 1))
    }

    /// From a cursor to this one.
    pub(super) fn since(&self, before: &Cursor<'_>) -> Span {
        let start = before.span().start;
        let taken = self.text.get(..self.at).unwrap_or_default().trim_ascii_end().len();
        Span::new(start as usize..(self.base + taken).max(start as usize + 1))
    }
}

pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}
