//! The lexer: text to tokens, one at a time.

use crate::token::{Name, Token};
use palisade_base::Span;

/// Goes through a text. Copying it is cheap, and a way to look ahead.
#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// A token and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Lexed<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) span: Span,
    /// Whether it is the first of its line.
    pub(crate) starts_line: bool,
}

/// The characters of names and labels.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'$' | b'.' | b'_')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    fn peek(&self, ahead: usize) -> u8 {
        // The end of the text looks like a byte that starts no token.
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The longest run of such bytes from here, `ahead` bytes further.
    fn run(&self, ahead: usize, is: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text.as_bytes()[(self.at + ahead).min(self.text.len())..];
        let length = rest.iter().position(|&byte| !is(byte)).unwrap_or(rest.len());
        // All callers accept ASCII bytes only, so this does not split a character.
        self.text.get(self.at + ahead..self.at + ahead + length).unwrap_or("")
    }

    pub(crate) fn next(&mut self) -> Lexed<'a> {
        let mut starts_line = self.at == 0;
        loop {
            match self.peek(0) {
                b'\n' => {
                    starts_line = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b';' => self.at += self.comment_length(),
                _ => break,
            }
        }
        let start = self.at;
        let (token, length) = self.token();
        self.at += length;
        Lexed { token, span: Span::new(start..self.at), starts_line }
    }

    /// The length of the comment that starts here, up to the end of the line.
    fn comment_length(&self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
    }

    /// The token here and its length in bytes.
    fn token(&self) -> (Token<'a>, usize) {
        if self.at >= self.text.len() {
            return (Token::End, 0);
        }
        match self.peek(0) {
            b'%' => self.name(Token::Local),
            b'@' => self.name(Token::Global),
            b'$' => self.comdat(),
            b'!' => self.metadata(),
            b'#' => self.hash(),
            b'^' => match self.run(1, |byte| byte.is_ascii_digit()) {
                "" => (Token::Sign(b'^'), 1),
                digits => (number(digits, Token::Summary), 1 + digits.len()),
            },
            b'"' => match self.quoted(0) {
                None => (Token::OpenText, 1),
                Some((raw, length)) if self.peek(length) == b':' => {
                    (Token::Label(Name::Quoted(raw)), length + 1)
                }
                Some((raw, length)) => (Token::Text(raw), length),
            },
            b'.' if self.peek(1) == b'.' && self.peek(2) == b'.' => (Token::Ellipsis, 3),
            b'0'..=b'9' | b'-' | b'+' => self.number(),
            b'c' if self.peek(1) == b'"' => match self.quoted(1) {
                None => (Token::OpenText, 2),
                Some((raw, length)) => (Token::Bytes(raw), 1 + length),
            },
            byte if is_name(byte) => self.word(),
            byte @ (b'=' | b',' | b'*' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'<' | b'>' | b'|'
            | b':') => (Token::Sign(byte), 1),
            _ => {
                let character = self.text.get(self.at..).and_then(|rest| rest.chars().next()).unwrap_or('\0');
                (Token::Unknown(character), character.len_utf8())
            }
        }
    }

    /// A string whose quote is `ahead` bytes further: what is inside, and the length from the quote on.
    fn quoted(&self, ahead: usize) -> Option<(&'a str, usize)> {
        let start = self.at + ahead + 1;
        let length = self.text.as_bytes()[start..].iter().position(|&byte| byte == b'"')?;
        Some((&self.text[start..start + length], length + 2))
    }

    /// `%name`, `%"a name"` or `%5`.
    fn name(&self, token: fn(Name<'a>) -> Token<'a>) -> (Token<'a>, usize) {
        if self.peek(1) == b'"' {
            return match self.quoted(1) {
                None => (Token::OpenText, 2),
                Some((raw, length)) => (token(Name::Quoted(raw)), 1 + length),
            };
        }
        match self.run(1, is_name) {
            "" => (Token::Unknown(self.peek(0) as char), 1),
            name if name.starts_with(|c: char| c.is_ascii_digit()) => {
                let digits = self.run(1, |byte| byte.is_ascii_digit());
                match digits.parse() {
                    Ok(number) => (token(Name::Number(number)), 1 + digits.len()),
                    Err(_) => (Token::LargeNumber(digits), 1 + digits.len()),
                }
            }
            name => (token(Name::Plain(name)), 1 + name.len()),
        }
    }

    /// `$name`, or a label that starts with `$`.
    fn comdat(&self) -> (Token<'a>, usize) {
        let name = self.run(0, is_name);
        if self.peek(name.len()) == b':' {
            return (Token::Label(Name::Plain(name)), name.len() + 1);
        }
        self.name(Token::Comdat)
    }

    /// `!name`, `!5`, or `!` before a string or a list.
    fn metadata(&self) -> (Token<'a>, usize) {
        let name = self.run(1, |byte| is_name(byte) || byte == b'\\');
        if name.is_empty() {
            (Token::Sign(b'!'), 1)
        } else if name.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = self.run(1, |byte| byte.is_ascii_digit());
            (number(digits, Token::MetadataNode), 1 + digits.len())
        } else {
            (Token::MetadataName(name), 1 + name.len())
        }
    }

    /// `#5` or `#dbg_declare`.
    fn hash(&self) -> (Token<'a>, usize) {
        let word = self.run(1, is_word);
        if word.is_empty() {
            (Token::Unknown('#'), 1)
        } else if word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = self.run(1, |byte| byte.is_ascii_digit());
            (number(digits, Token::AttributeGroup), 1 + digits.len())
        } else {
            (Token::Record(word), 1 + word.len())
        }
    }

    /// A number, or a label that starts like one.
    fn number(&self) -> (Token<'a>, usize) {
        let (token, length) = self.number_or_label();
        // `12ab` is one unknown word, not a number and a word.
        match self.run(length, is_name) {
            rest if rest.is_empty() || matches!(token, Token::Label(_)) => (token, length),
            rest => {
                let length = length + rest.len();
                (Token::Word(&self.text[self.at..self.at + length]), length)
            }
        }
    }

    fn number_or_label(&self) -> (Token<'a>, usize) {
        let name = self.run(0, is_name);
        if !name.is_empty() && self.peek(name.len()) == b':' {
            let label = match name.parse() {
                Ok(number) if name.bytes().all(|byte| byte.is_ascii_digit()) => Name::Number(number),
                _ => Name::Plain(name),
            };
            return (Token::Label(label), name.len() + 1);
        }
        let sign = usize::from(!self.peek(0).is_ascii_digit());
        let digits = self.run(sign, |byte| byte.is_ascii_digit()).len();
        if digits == 0 {
            return (Token::Unknown(self.peek(0) as char), 1);
        }
        let slice = |length: usize| &self.text[self.at..self.at + length];
        let mut length = sign + digits;
        if sign == 0 && slice(length) == "0" && self.peek(1) == b'x' {
            length = 2 + self.run(2, |byte| byte.is_ascii_alphanumeric()).len();
            return (Token::Float(slice(length)), length);
        }
        if self.peek(length) != b'.' {
            return (Token::Integer(slice(length)), length);
        }
        length += 1 + self.run(length + 1, |byte| byte.is_ascii_digit()).len();
        if matches!(self.peek(length), b'e' | b'E') {
            let signed = usize::from(matches!(self.peek(length + 1), b'-' | b'+'));
            let exponent = self.run(length + 1 + signed, |byte| byte.is_ascii_digit()).len();
            if exponent > 0 {
                length += 1 + signed + exponent;
            }
        }
        (Token::Float(slice(length)), length)
    }

    /// A keyword or a label.
    fn word(&self) -> (Token<'a>, usize) {
        let name = self.run(0, is_name);
        if self.peek(name.len()) == b':' {
            return (Token::Label(Name::Plain(name)), name.len() + 1);
        }
        // Words have no dots and the like, so a name with such characters is an unknown word.
        match name.as_bytes() {
            [] => (Token::Unknown(self.peek(0) as char), 1),
            [b'u' | b's', b'0', b'x', _, ..] => (Token::Integer(name), name.len()),
            _ => (Token::Word(name), name.len()),
        }
    }
}

fn number<'a>(digits: &'a str, token: fn(u32) -> Token<'a>) -> Token<'a> {
    digits.parse().map_or(Token::LargeNumber(digits), token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::unescape;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next().token {
                Token::End => return tokens,
                token => tokens.push(token),
            }
        }
    }

    #[test]
    fn names() {
        use Name::*;
        use Token::*;
        let check = |text: &'static str, expected: &[Token<'_>]| assert_eq!(tokens(text), expected, "{text}");
        check(
            "%x %5 %\"a b\" %\"5\"",
            &[Local(Plain("x")), Local(Number(5)), Local(Quoted("a b")), Local(Quoted("5"))],
        );
        check("@-$._x9 @\"\\22\"", &[Global(Plain("-$._x9")), Global(Quoted("\\22"))]);
        check(
            "$c $c: a-b.c$d: 7: \"q r\":",
            &[
                Comdat(Plain("c")),
                Label(Plain("$c")),
                Label(Plain("a-b.c$d")),
                Label(Number(7)),
                Label(Quoted("q r")),
            ],
        );
        check("-x: 5x:", &[Label(Plain("-x")), Label(Plain("5x"))]);
        check(
            "!dbg !5 !{ !\"s\"",
            &[MetadataName("dbg"), MetadataNode(5), Sign(b'!'), Sign(b'{'), Sign(b'!'), Text("s")],
        );
        check("#7 #dbg_value ^3", &[AttributeGroup(7), Record("dbg_value"), Summary(3)]);
        check("%99999999999", &[LargeNumber("99999999999")]);
        check("i32* i32 (...)", &[Word("i32"), Sign(b'*'), Word("i32"), Sign(b'('), Ellipsis, Sign(b')')]);
    }

    #[test]
    fn numbers_and_strings() {
        use Token::*;
        let check = |text: &'static str, expected: &[Token<'_>]| assert_eq!(tokens(text), expected, "{text}");
        check("12 -3 u0xFF s0x0F", &[Integer("12"), Integer("-3"), Integer("u0xFF"), Integer("s0x0F")]);
        check(
            "1.5 -2.0e+10 0x3FF0 0xK00A",
            &[Float("1.5"), Float("-2.0e+10"), Float("0x3FF0"), Float("0xK00A")],
        );
        check("c\"a\\00\" \"b;c\" ; comment \"\n x", &[Bytes("a\\00"), Text("b;c"), Word("x")]);
        check("\"open", &[OpenText, Word("open")]);
        check("c\"open", &[OpenText, Word("open")]);
        check("é\u{0}", &[Unknown('é'), Unknown('\0')]);
        check("; é\nx", &[Word("x")]);
        check("- 5", &[Unknown('-'), Integer("5")]);
        check("12ab a.b 1.5.2,", &[Word("12ab"), Word("a.b"), Word("1.5.2"), Sign(b',')]);
    }

    #[test]
    fn escapes() {
        assert_eq!(&*unescape("a\\22b\\\\c\\zz\\0"), b"a\"b\\c\\zz\\0");
        assert_eq!(&*unescape("\\C3\\A9\\ff"), b"\xC3\xA9\xFF");
    }
}
