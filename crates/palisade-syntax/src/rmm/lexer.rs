//! Turns text into tokens.

use super::messages::Messages;
use super::token::{CallId, Here, Token, TokenKind};
use palisade_base::{Diagnostic, Span, limits};

/// All tokens of a text; the last one is [`TokenKind::End`].
pub(crate) fn lex(text: &str, messages: &mut Messages) -> Vec<Token> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        limits::checkpoint();
        let token = lexer.next(messages);
        tokens.push(token);
        if token.kind == TokenKind::End {
            return tokens;
        }
    }
}

/// Reads tokens from a text.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of the text.
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// Skips the rest of the text.
    pub fn give_up(&mut self) {
        self.at = self.text.len();
    }

    /// The next token. At the end it returns [`TokenKind::End`] repeatedly.
    pub fn next(&mut self, messages: &mut Messages) -> Token {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut at = self.at;
        loop {
            let start = at;
            let kind = match bytes.get(at) {
                None => TokenKind::End,
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => {
                    at += 1;
                    continue;
                }
                Some(b'/') if bytes.get(at + 1) == Some(&b'*') => {
                    at = comment_end(text, at, messages);
                    continue;
                }
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                    at = word_end(bytes, at);
                    TokenKind::of_word(&text[start..at])
                }
                Some(b'0'..=b'9') => {
                    let len = bytes[at..].iter().position(|b| !b.is_ascii_digit());
                    at = len.map_or(bytes.len(), |len| at + len);
                    TokenKind::Number
                }
                Some(b'$') => {
                    at = word_end(bytes, at + 1);
                    if at == start + 1 {
                        let error =
                            Diagnostic::error("unexpected-character", "a `$` without the name of a register");
                        messages.at(
                            plain(start, at),
                            "",
                            error.help("registers are called `$r`, `$tmp1`, …"),
                        );
                        continue;
                    }
                    TokenKind::Register
                }
                Some(_) => match operator(&bytes[at..]) {
                    Some((kind, len)) => {
                        at += len;
                        kind
                    }
                    None => {
                        at = garbage(text, at, messages);
                        continue;
                    }
                },
            };
            self.at = at;
            return token(kind, start, at);
        }
    }
}

fn token(kind: TokenKind, start: usize, end: usize) -> Token {
    let here = plain(start, end);
    Token { kind, text: here.span, here }
}

fn plain(start: usize, end: usize) -> Here {
    Here { span: Span::new(start..end), call: CallId::NONE }
}

fn word_end(bytes: &[u8], start: usize) -> usize {
    let len = bytes[start..].iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    len.map_or(bytes.len(), |len| start + len)
}

fn operator(bytes: &[u8]) -> Option<(TokenKind, usize)> {
    let two = match bytes {
        [b':', b'=', ..] => Some(TokenKind::Assign),
        [b'|', b'|', ..] => Some(TokenKind::Bar),
        [b'&', b'&', ..] => Some(TokenKind::And),
        [b'!', b'=', ..] => Some(TokenKind::NotEqual),
        [b'<', b'=', ..] => Some(TokenKind::LessEqual),
        [b'>', b'=', ..] => Some(TokenKind::GreaterEqual),
        _ => None,
    };
    if let Some(kind) = two {
        return Some((kind, 2));
    }
    let kind = match bytes[0] {
        b'=' => TokenKind::Equal,
        b'(' => TokenKind::LeftParen,
        b')' => TokenKind::RightParen,
        b',' => TokenKind::Comma,
        b'-' => TokenKind::Minus,
        b'*' => TokenKind::Star,
        b';' => TokenKind::Semicolon,
        b':' => TokenKind::Colon,
        b'{' => TokenKind::LeftBrace,
        b'}' => TokenKind::RightBrace,
        b'<' => TokenKind::Less,
        b'>' => TokenKind::Greater,
        b'+' => TokenKind::Plus,
        b'[' => TokenKind::LeftBracket,
        b']' => TokenKind::RightBracket,
        _ => return None,
    };
    Some((kind, 1))
}

/// The end of the comment that starts here.
fn comment_end(text: &str, start: usize, messages: &mut Messages) -> usize {
    match text[start + 2..].find("*/") {
        Some(len) => start + 2 + len + 2,
        None => {
            let error = Diagnostic::error("unterminated-comment", "this comment is not closed");
            messages.at(plain(start, start + 2), "it begins here", error.help("end it with `*/`"));
            text.len()
        }
    }
}

/// Skips characters that cannot start a token, with one message for all of them.
fn garbage(text: &str, start: usize, messages: &mut Messages) -> usize {
    let begins_token =
        |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "_$=(),-*;:{}<>+[]/".contains(c);
    let first = text[start..].chars().next().expect("the caller found a character here");
    let rest = start + first.len_utf8();
    let end = if first == '/' {
        rest
    } else {
        text[rest..].find(begins_token).map_or(text.len(), |len| rest + len)
    };
    let message = if end == rest {
        format!("unexpected character `{}`", first.escape_default())
    } else {
        "unexpected characters".to_owned()
    };
    let mut error = Diagnostic::error("unexpected-character", message);
    if text[start..].starts_with("//") {
        messages.at(plain(start, start + 2), "", error.help("comments are written `/* … */`"));
        return text[start..].find('\n').map_or(text.len(), |len| start + len);
    }
    match first {
        '!' => error = error.help("negation is written `not`"),
        '&' => error = error.help("conjunction is written `&&`"),
        '|' => error = error.help("disjunction is written `||`"),
        _ => {}
    }
    messages.at(plain(start, end), "", error);
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[TokenKind]) {
        let mut messages = Messages::default();
        let kinds: Vec<TokenKind> = lex(text, &mut messages).iter().map(|token| token.kind).collect();
        assert_eq!(kinds.split_last(), Some((&TokenKind::End, expected)), "{text}");
        assert!(!messages.has_errors(), "{text}");
    }

    #[test]
    fn words_numbers_and_operators() {
        use TokenKind::*;
        check("", &[]);
        check("x:=$r0+12/**/;", &[Name, Assign, Register, Plus, Number, Semicolon]);
        check("locked slocked read_x", &[Locked, StoreLocked, Name]);
        check("<=>=!=<>=", &[LessEqual, GreaterEqual, NotEqual, Less, GreaterEqual]);
        check("/* a ** / * */ [0:1]", &[LeftBracket, Number, Colon, Number, RightBracket]);
        check("12ab $9", &[Number, Name, Register]);
    }

    #[test]
    fn invalid_characters_are_reported_and_skipped() {
        for text in ["a ? b", "a § b", "a $ b", "a ! b", "a / b", "a ?§\u{0}\u{ffff} b"] {
            let mut messages = Messages::default();
            assert_eq!(lex(text, &mut messages).len(), 3, "{text}");
            assert!(messages.has_errors(), "{text}");
        }
        let mut messages = Messages::default();
        assert_eq!(lex("a // b c\nd /* e", &mut messages).len(), 3);
        assert!(messages.has_errors());
    }
}
