//! Turns text into tokens, one at a time, so that a program of ten megabytes needs no table of its tokens.

use super::token::{Sign, Symbol, Token, TokenKind, Word};
use crate::report::Report;
use palisade_base::{Diagnostic, Span};
use palisade_program::written::Name;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The names of a text, each spelling once. Keywords come first, so small symbols are keywords.
pub(crate) struct Names<'s> {
    symbols: FxHashMap<&'s str, Symbol>,
    spellings: Vec<Arc<str>>,
}

impl<'s> Names<'s> {
    fn new() -> Names<'s> {
        let mut names = Names { symbols: FxHashMap::default(), spellings: Vec::new() };
        Word::ALL.iter().for_each(|word| {
            names.symbol(word.text());
        });
        names
    }

    fn symbol(&mut self, text: &'s str) -> Symbol {
        *self.symbols.entry(text).or_insert_with(|| {
            self.spellings.push(text.into());
            Symbol(self.spellings.len() as u32 - 1)
        })
    }

    /// The spelling of a name.
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.spellings[symbol.0 as usize]
    }

    /// A name of the program. Equal names share their text.
    pub fn name(&self, symbol: Symbol, span: Span) -> Name {
        Name::new(Arc::clone(&self.spellings[symbol.0 as usize]), span)
    }
}

/// Reads tokens. Characters that cannot be part of a token are reported and skipped.
pub(crate) struct Lexer<'s> {
    /// The whole text, of all files.
    whole: &'s str,
    /// The text up to the end of the current file.
    text: &'s str,
    at: usize,
    /// Whether the last token was the name `import`, which a path in quotes can follow.
    after_import: bool,
    pub names: Names<'s>,
}

impl<'s> Lexer<'s> {
    pub fn new(text: &'s str) -> Lexer<'s> {
        let mut lexer = Lexer { whole: text, text: "", at: 0, after_import: false, names: Names::new() };
        lexer.enter(Span::new(0..text.len()));
        lexer
    }

    /// Continues at the start of a file, and ends with it. Returns where it was, and where it would have ended.
    pub fn enter(&mut self, file: Span) -> Span {
        let before = Span::new(self.at..self.text.len());
        let range = file.range();
        self.text = &self.whole[..range.end];
        self.at = range.start;
        // Editors on some systems insert a byte order mark at the start.
        if self.text[self.at..].starts_with('\u{feff}') {
            self.at += '\u{feff}'.len_utf8();
        }
        before
    }

    /// Continues where it was before it entered a file.
    pub fn leave(&mut self, before: Span) {
        self.text = &self.whole[..before.range().end];
        self.at = before.range().start;
    }

    /// Skips the rest of the text.
    pub fn give_up(&mut self) {
        self.at = self.text.len();
    }

    /// How far the text has been read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Continues at a place that was reached before.
    pub fn return_to(&mut self, position: usize) {
        self.at = position;
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &'s str {
        self.whole.get(span.range()).unwrap_or("")
    }

    /// The next token.
    pub fn next(&mut self, report: &mut Report) -> Token {
        let token = self.token(report);
        self.after_import =
            matches!(token.kind, TokenKind::Name(symbol) if self.names.text(symbol) == "import");
        token
    }

    fn token(&mut self, report: &mut Report) -> Token {
        loop {
            let bytes = self.text.as_bytes();
            let start = self.at;
            let Some(&first) = bytes.get(start) else {
                return Token { kind: TokenKind::End, span: Span::new(start..start) };
            };
            let second = bytes.get(start + 1).copied().unwrap_or(0);
            let kind = match first {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.skip_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
                    continue;
                }
                b'/' if second == b'/' => {
                    self.skip_while(|b| b != b'\n');
                    continue;
                }
                b'/' if second == b'*' => {
                    self.skip_comment(report);
                    continue;
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    self.skip_while(is_name_byte);
                    let symbol = self.names.symbol(&self.text[start..self.at]);
                    Word::ALL
                        .get(symbol.0 as usize)
                        .map_or(TokenKind::Name(symbol), |&word| TokenKind::Word(word))
                }
                b'`' if self.quoted_name(start).is_some() => {
                    let name = self.quoted_name(start).expect("the guard found one");
                    self.at += name.len() + 2;
                    TokenKind::Name(self.names.symbol(name))
                }
                b'"' if self.after_import && self.path(start).is_some() => {
                    self.at += self.path(start).expect("the guard found one").len() + 2;
                    TokenKind::Path
                }
                b'0'..=b'9' => {
                    self.skip_while(is_name_byte);
                    TokenKind::Number(self.number(Span::new(start..self.at), report))
                }
                _ => match sign(first, second, bytes.get(start + 2).copied().unwrap_or(0)) {
                    Some(sign) => {
                        self.at += sign.text().len();
                        TokenKind::Sign(sign)
                    }
                    None => {
                        self.skip_odd(report);
                        continue;
                    }
                },
            };
            return Token { kind, span: Span::new(start..self.at) };
        }
    }

    /// The name between two backquotes, the first of which is at `start`.
    fn quoted_name(&self, start: usize) -> Option<&'s str> {
        let rest = &self.text[start + 1..];
        let name = &rest[..rest.find('`')?];
        palisade_program::print::is_quotable_name(name).then_some(name)
    }

    /// The path between two quotes on one line, the first of which is at `start`.
    fn path(&self, start: usize) -> Option<&'s str> {
        let rest = &self.text[start + 1..];
        let path = &rest[..rest.find(['"', '\n'])?];
        rest[path.len()..].starts_with('"').then_some(path)
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|&b| !wanted(b)).unwrap_or(rest.len());
    }

    /// Skips `/* … */`. Comments nest.
    fn skip_comment(&mut self, report: &mut Report) {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut depth = 0usize;
        while self.at < bytes.len() {
            match &bytes[self.at..bytes.len().min(self.at + 2)] {
                b"/*" => {
                    depth += 1;
                    self.at += 2;
                }
                b"*/" => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
        report.push(
            Diagnostic::error("unterminated-comment", "this comment is not closed")
                .at(Span::new(start..start + 2), "")
                .help("close it with `*/`; comments nest, so each `/*` needs its own"),
        );
    }

    /// Skips characters that cannot start a token, and reports them once.
    fn skip_odd(&mut self, report: &mut Report) {
        let start = self.at;
        let rest = &self.text[start..];
        if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            let line = rest.lines().next().unwrap_or("");
            let len = line[1..].find(quote).map_or(line.len(), |end| end + 2);
            self.at += len;
            let message = "this language has no strings";
            let diagnostic =
                Diagnostic::error("unexpected-character", message).at(Span::new(start..self.at), "");
            report.push(match self.after_import {
                true => diagnostic.help("write the path in double quotes: `import \"lock.pal\";`"),
                false => diagnostic,
            });
            return;
        }
        let is_odd = |c: char| {
            !c.is_ascii() || (c.is_ascii_control() && !c.is_ascii_whitespace()) || "#$\\`\"'\x0c".contains(c)
        };
        let len = rest
            .find(|c| !is_odd(c))
            .unwrap_or(rest.len())
            .max(rest.chars().next().map_or(1, char::len_utf8));
        self.at += len;
        let first = rest.chars().next().unwrap_or(' ');
        let what = match first {
            c if c.is_control() => format!("the control character U+{:04X}", u32::from(c)),
            c => format!("`{c}`"),
        };
        let diagnostic = Diagnostic::error("unexpected-character", format!("{what} is not allowed here"))
            .at(Span::new(start..self.at), "");
        report.push(match first {
            '#' => diagnostic.help("comments start with `//`; constants are declared with `const N = 3;`"),
            c if c.is_control() => diagnostic.help("is this a text file?"),
            c if c.is_alphabetic() => {
                diagnostic.help("names consist of the letters a to z and A to Z, digits and `_`")
            }
            _ => diagnostic,
        });
    }

    /// The value of a literal; 0 after an error.
    fn number(&self, span: Span, report: &mut Report) -> u64 {
        let text = self.slice(span);
        let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None => (text, 10),
        };
        let mut value = Some(0u64);
        let mut seen = false;
        for digit in digits.chars().filter(|&c| c != '_') {
            let Some(digit) = digit.to_digit(radix) else {
                report.push(
                    Diagnostic::error("bad-number", format!("`{}` is not a number", shorten(text)))
                        .at(span, "")
                        .help("numbers are decimal (`42`, `1_000`) or hexadecimal (`0x2a`); names start with a letter"),
                );
                return 0;
            };
            seen = true;
            value = value.and_then(|v| v.checked_mul(radix.into())?.checked_add(digit.into()));
        }
        match value.filter(|&v| v <= 1 << 63) {
            Some(value) if seen => value,
            Some(_) => {
                report.push(Diagnostic::error("bad-number", format!("`{text}` has no digits")).at(span, ""));
                0
            }
            None => {
                report.push(
                    Diagnostic::error("number-too-large", "this number does not fit into 64 bits")
                        .at(span, "")
                        .help(format!("the largest number is {}", i64::MAX)),
                );
                0
            }
        }
    }
}

/// Text for a message, shortened if it is very long.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The longest symbol that the bytes start with.
fn sign(a: u8, b: u8, c: u8) -> Option<Sign> {
    Some(match (a, b, c) {
        (b'(', ..) => Sign::LeftParen,
        (b')', ..) => Sign::RightParen,
        (b'[', ..) => Sign::LeftBracket,
        (b']', ..) => Sign::RightBracket,
        (b'{', ..) => Sign::LeftBrace,
        (b'}', ..) => Sign::RightBrace,
        (b';', ..) => Sign::Semicolon,
        (b',', ..) => Sign::Comma,
        (b':', b':', _) => Sign::PathSeparator,
        (b':', ..) => Sign::Colon,
        (b'.', b'.', b'=') => Sign::DotDotEqual,
        (b'.', b'.', _) => Sign::DotDot,
        (b'.', ..) => Sign::Dot,
        (b'@', ..) => Sign::At,
        (b'-', b'>', _) => Sign::Arrow,
        (b'=', b'=', _) => Sign::EqualEqual,
        (b'=', b'>', _) => Sign::FatArrow,
        (b'=', ..) => Sign::Equal,
        (b'+', b'+', _) => Sign::PlusPlus,
        (b'+', b'%', _) => Sign::WordPlus,
        (b'+', b'=', _) => Sign::PlusEqual,
        (b'+', ..) => Sign::Plus,
        (b'-', b'-', _) => Sign::MinusMinus,
        (b'-', b'%', _) => Sign::WordMinus,
        (b'-', b'=', _) => Sign::MinusEqual,
        (b'-', ..) => Sign::Minus,
        (b'*', b'%', _) => Sign::WordStar,
        (b'*', b'=', _) => Sign::StarEqual,
        (b'*', ..) => Sign::Star,
        (b'/', b'%', _) => Sign::WordSlash,
        (b'/', b'=', _) => Sign::SlashEqual,
        (b'/', ..) => Sign::Slash,
        (b'%', b'%', _) => Sign::WordPercent,
        (b'%', b'=', _) => Sign::PercentEqual,
        (b'%', ..) => Sign::Percent,
        (b'&', b'&', _) => Sign::AndAnd,
        (b'&', b'=', _) => Sign::AndEqual,
        (b'&', ..) => Sign::And,
        (b'|', b'|', _) => Sign::OrOr,
        (b'|', b'=', _) => Sign::OrEqual,
        (b'|', ..) => Sign::Or,
        (b'^', b'=', _) => Sign::CaretEqual,
        (b'^', ..) => Sign::Caret,
        (b'<', b'<', b'%') => Sign::WordShiftLeft,
        (b'<', b'<', b'=') => Sign::ShiftLeftEqual,
        (b'<', b'<', _) => Sign::ShiftLeft,
        (b'<', b'=', b'%') => Sign::WordLessEqual,
        (b'<', b'%', _) => Sign::WordLess,
        (b'<', b'=', _) => Sign::LessEqual,
        (b'<', ..) => Sign::Less,
        (b'>', b'>', b'%') => Sign::WordShiftRight,
        (b'>', b'>', b'=') => Sign::ShiftRightEqual,
        (b'>', b'>', _) => Sign::ShiftRight,
        (b'>', b'=', _) => Sign::GreaterEqual,
        (b'>', ..) => Sign::Greater,
        (b'!', b'=', _) => Sign::NotEqual,
        (b'!', ..) => Sign::Not,
        (b'~', ..) => Sign::Tilde,
        (b'?', ..) => Sign::Question,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens as text, and the ids of the diagnostics.
    fn check(text: &str, tokens: &[&str], errors: &[&str]) {
        let mut report = Report::default();
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let token = lexer.next(&mut report);
            match token.kind {
                TokenKind::End => break,
                TokenKind::Number(value) => found.push(value.to_string()),
                _ => found.push(lexer.slice(token.span).to_string()),
            }
        }
        assert_eq!(found, tokens, "{text:?}");
        let ids: Vec<_> = report.into_diagnostics().iter().map(|d| d.id).collect();
        assert_eq!(ids, errors, "{text:?}");
    }

    #[test]
    fn tokens() {
        check("x=-1;", &["x", "=", "-", "1", ";"], &[]);
        check("0..3 a.b 1..=2", &["0", "..", "3", "a", ".", "b", "1", "..=", "2"], &[]);
        check("a<<=1 b>>2 c<=d", &["a", "<<=", "1", "b", ">>", "2", "c", "<=", "d"], &[]);
        check("0x2A 1_000 9223372036854775808", &["42", "1000", "9223372036854775808"], &[]);
        check("a // b\nc /* d /* e */ f */ g", &["a", "c", "g"], &[]);
        check("\u{feff}a\r\n\tb", &["a", "b"], &[]);
    }

    #[test]
    fn invalid_tokens() {
        check("a /* b", &["a"], &["unterminated-comment"]);
        check("3x 0x 0xg", &["0", "0", "0"], &["bad-number"; 3]);
        check("9223372036854775809", &["0"], &["number-too-large"]);
        check("99999999999999999999999999", &["0"], &["number-too-large"]);
        check("a ### b \0\0 c", &["a", "b", "c"], &["unexpected-character"; 2]);
        check("f(\"text, more\", 1)", &["f", "(", ",", "1", ")"], &["unexpected-character"]);
        check("naïve 'a", &["na", "ve"], &["unexpected-character"; 2]);
        check("\x0ca \x0b", &["a"], &["unexpected-character"; 2]);
    }
}
