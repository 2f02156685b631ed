//! The tokens of a litmus test, from its initial state on.

use crate::report::Report;
use palisade_base::{Diagnostic, Span, limits};

/// A token and its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// The kind of token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    /// The end of the text.
    End,
    /// A name, keyword or mnemonic.
    Word,
    /// A number without sign.
    Number(u64),
    /// Anything else.
    Sign(Sign),
}

/// Punctuation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sign {
    Ampersand,
    And,
    Bar,
    Colon,
    Comma,
    Dollar,
    Equal,
    EqualEqual,
    Implies,
    LeftBrace,
    LeftBracket,
    LeftParen,
    Minus,
    Not,
    NotEqual,
    Or,
    Percent,
    Plus,
    RightBrace,
    RightBracket,
    RightParen,
    Semicolon,
    Star,
    /// `<<…>>`: remarks of other tools after the question.
    Trailer,
}

impl Sign {
    /// Its text.
    pub(super) fn text(self) -> &'static str {
        match self {
            Sign::Ampersand => "&",
            Sign::And => "/\\",
            Sign::Bar => "|",
            Sign::Colon => ":",
            Sign::Comma => ",",
            Sign::Dollar => "$",
            Sign::Equal => "=",
            Sign::EqualEqual => "==",
            Sign::Implies => "=>",
            Sign::LeftBrace => "{",
            Sign::LeftBracket => "[",
            Sign::LeftParen => "(",
            Sign::Minus => "-",
            Sign::Not => "~",
            Sign::NotEqual => "!=",
            Sign::Or => "\\/",
            Sign::Percent => "%",
            Sign::Plus => "+",
            Sign::RightBrace => "}",
            Sign::RightBracket => "]",
            Sign::RightParen => ")",
            Sign::Semicolon => ";",
            Sign::Star => "*",
            Sign::Trailer => "<<",
        }
    }
}

/// Splits the text into tokens, starting at a position. The last token is [`TokenKind::End`].
pub(super) fn lex(text: &str, start: usize, report: &mut Report) -> Vec<Token> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: start };
    let mut tokens = Vec::with_capacity((text.len() - start) / 3 + 1);
    loop {
        limits::checkpoint();
        lexer.skip_blanks(report);
        let start = lexer.at;
        let kind = lexer.token(report);
        if let Some(kind) = kind {
            tokens.push(Token { kind, span: Span::new(start..lexer.at) });
            if kind == TokenKind::End {
                return tokens;
            }
        }
    }
}

/// Skips white space and comments, starting at a position.
pub(super) fn skip_blanks(text: &str, start: usize, report: &mut Report) -> usize {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: start };
    lexer.skip_blanks(report);
    lexer.at
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self, report: &mut Report) {
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, _) => self.at += 1,
                (b'(', b'*') => self.skip_comment(report),
                (b'/', b'/') | (b'#', _) => {
                    while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
    }

    /// Skips a comment. Comments nest.
    fn skip_comment(&mut self, report: &mut Report) {
        let start = self.at;
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'(', b'*') => (self.at, depth) = (self.at + 2, depth + 1),
                (b'*', b')') => (self.at, depth) = (self.at + 2, depth - 1),
                _ => self.at += 1,
            }
            if depth == 0 {
                return;
            }
        }
        let diagnostic = Diagnostic::error("unfinished-comment", "this comment is not closed");
        report.push(diagnostic.at(Span::new(start..start + 2), "").help("end it with `*)`; comments nest"));
    }

    /// The next token; `None` if an error was reported instead.
    fn token(&mut self, report: &mut Report) -> Option<TokenKind> {
        let Some(&first) = self.bytes.get(self.at) else { return Some(TokenKind::End) };
        if is_word_start(first) {
            while is_word(self.peek(0)) {
                self.at += 1;
            }
            return Some(TokenKind::Word);
        }
        if first.is_ascii_digit() {
            return Some(self.number(report));
        }
        let (sign, length) = match (first, self.peek(1)) {
            (b'/', b'\\') => (Sign::And, 2),
            (b'\\', b'/') => (Sign::Or, 2),
            (b'=', b'=') => (Sign::EqualEqual, 2),
            (b'=', b'>') => (Sign::Implies, 2),
            (b'!', b'=') | (b'<', b'>') => (Sign::NotEqual, 2),
            (b'<', b'<') => (Sign::Trailer, self.trailer()),
            (b'&', _) => (Sign::Ampersand, 1),
            (b'|', _) => (Sign::Bar, 1),
            (b':', _) => (Sign::Colon, 1),
            (b',', _) => (Sign::Comma, 1),
            (b'$', _) => (Sign::Dollar, 1),
            (b'=', _) => (Sign::Equal, 1),
            (b'{', _) => (Sign::LeftBrace, 1),
            (b'[', _) => (Sign::LeftBracket, 1),
            (b'(', _) => (Sign::LeftParen, 1),
            (b'-', _) => (Sign::Minus, 1),
            (b'~', _) => (Sign::Not, 1),
            (b'%', _) => (Sign::Percent, 1),
            (b'+', _) => (Sign::Plus, 1),
            (b'}', _) => (Sign::RightBrace, 1),
            (b']', _) => (Sign::RightBracket, 1),
            (b')', _) => (Sign::RightParen, 1),
            (b';', _) => (Sign::Semicolon, 1),
            (b'*', _) => (Sign::Star, 1),
            _ => return self.unknown(report),
        };
        self.at += length;
        Some(TokenKind::Sign(sign))
    }

    /// The length of a trailer that begins with `<<`: up to `>>`, or to the end of the text.
    fn trailer(&self) -> usize {
        let rest = &self.text[self.at..];
        rest.find(">>").map_or(rest.len(), |end| end + 2)
    }

    fn unknown(&mut self, report: &mut Report) -> Option<TokenKind> {
        let start = self.at;
        let character = self.text[start..].chars().next().unwrap_or('?');
        self.at += character.len_utf8();
        // One message for several bad characters in a row.
        while self
            .bytes
            .get(self.at)
            .is_some_and(|byte| !byte.is_ascii() || byte.is_ascii_control() && *byte != b'\n')
        {
            self.at += 1;
        }
        let message = format!("unexpected character `{}`", character.escape_debug());
        report.push(Diagnostic::error("unexpected-character", message).at(Span::new(start..self.at), ""));
        None
    }

    /// A decimal or hexadecimal number. An invalid number counts as 0.
    fn number(&mut self, report: &mut Report) -> TokenKind {
        let start = self.at;
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let value = match hexadecimal {
            Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 16).ok(),
            _ => word.parse().ok(),
        };
        if value.is_none() {
            let digits = hexadecimal.unwrap_or(word);
            let is_long = digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && digits.len() > 15;
            let message =
                if is_long { "this number does not fit into 64 bits" } else { "this is not a number" };
            let diagnostic = Diagnostic::error("bad-number", message).at(Span::new(start..self.at), "");
            report.push(
                diagnostic.help("write a decimal number, or a hexadecimal number with the prefix `0x`"),
            );
        }
        TokenKind::Number(value.unwrap_or(0))
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'.'
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.'
}
