//! The tokens of a C text, as far as they show where statements begin and end.

use std::ops::Range;

/// A token: a word, a number, a literal, or one byte of punctuation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Token {
    /// Where it is in the text.
    pub(super) range: Range<usize>,
}

/// A text in tokens. Comments and lines for the preprocessor are left out.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
    /// The lines for the preprocessor, with what continues them.
    pub(super) directives: Vec<Range<usize>>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        let bytes = text.as_bytes();
        let (mut tokens, mut directives) = (Vec::new(), Vec::new());
        let mut at = 0;
        let mut at_line_start = true;
        while at < bytes.len() {
            let start = at;
            let rest = &bytes[at..];
            match rest {
                [b'\n', ..] => {
                    at_line_start = true;
                    at += 1;
                    continue;
                }
                [byte, ..] if byte.is_ascii_whitespace() => {
                    at += 1;
                    continue;
                }
                [b'/', b'/', ..] => {
                    at += end_of_line(rest);
                    continue;
                }
                [b'/', b'*', ..] => {
                    at = text[at + 2..].find("*/").map_or(bytes.len(), |end| at + 2 + end + 2);
                    continue;
                }
                [b'#', ..] if at_line_start => {
                    at += end_of_line(rest);
                    directives.push(start..at);
                    continue;
                }
                [mark @ (b'"' | b'\''), ..] => at += end_of_literal(rest, *mark),
                [byte, ..] if is_word(*byte) => {
                    at += rest.iter().take_while(|byte| is_word(**byte)).count();
                }
                _ => at += 1,
            }
            at_line_start = false;
            tokens.push(Token { range: start..at });
        }
        Tokens { text, tokens, directives }
    }

    /// The text of a token; empty if there is no such token.
    pub(super) fn get(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| &self.text[token.range.clone()])
    }

    /// The opening brackets around a token, from the inside out.
    pub(super) fn around(&self, token: usize) -> Vec<usize> {
        let mut open = Vec::new();
        for index in 0..token.min(self.tokens.len()) {
            match self.get(index) {
                "(" | "[" | "{" => open.push(index),
                ")" | "]" | "}" => _ = open.pop(),
                _ => {}
            }
        }
        open.reverse();
        open
    }

    /// The index of the closing bracket that belongs to an opening one.
    pub(super) fn closing(&self, opening: usize) -> Option<usize> {
        let mut depth = 0usize;
        for index in opening..self.tokens.len() {
            match self.get(index) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(index);
            }
        }
        None
    }

    /// The index of the opening bracket that belongs to a closing one.
    pub(super) fn opening(&self, closing: usize) -> Option<usize> {
        let mut depth = 0usize;
        for index in (0..=closing).rev() {
            match self.get(index) {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(index);
            }
        }
        None
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a line, with the lines that continue it after a backslash, without its end.
fn end_of_line(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// The length of a literal that begins with a quotation mark. It ends with its line at the latest.
fn end_of_literal(bytes: &[u8], mark: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != mark && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_directives_are_left_out() {
        let text = "#define A \\\n  b;\nint x /* ; */ = 'a'; // c;\n  # if 1\nchar *s = \"\\\";\" ;";
        let tokens = Tokens::new(text);
        let words: Vec<&str> = (0..tokens.tokens.len()).map(|index| tokens.get(index)).collect();
        assert_eq!(words, ["int", "x", "=", "'a'", ";", "char", "*", "s", "=", "\"\\\";\"", ";"]);
        let directives: Vec<&str> = tokens.directives.iter().map(|range| &text[range.clone()]).collect();
        assert_eq!(directives, ["#define A \\\n  b;", "# if 1"]);
    }

    #[test]
    fn brackets() {
        let tokens = Tokens::new("f(a[1], (b))");
        let last = tokens.tokens.len() - 1;
        assert_eq!((tokens.opening(last), tokens.closing(1)), (Some(1), Some(last)));
        assert_eq!(tokens.closing(last), None);
    }

    #[test]
    fn texts_that_end_early() {
        for text in ["", "\"a", "'", "/* a", "// a", "#", "a\\", "\"\\", "é"] {
            Tokens::new(text);
        }
    }
}
