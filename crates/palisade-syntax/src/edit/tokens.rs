//! A scanner that knows just enough of each language: words, symbols and comments.

use super::lines::line_end;
use palisade_base::{Span, limits};

/// A word or a symbol.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The comment syntax of a language.
#[derive(Clone, Copy)]
pub(super) struct Comments {
    /// What begins a comment that runs to the end of the line.
    pub(super) line: &'static [&'static str],
    /// What begins and ends a block comment.
    pub(super) block: Option<(&'static str, &'static str)>,
    /// Whether block comments nest.
    pub(super) nest: bool,
}

impl Comments {
    /// The end of the comment that begins at this position, if there is one.
    fn end(&self, text: &str, at: usize) -> Option<usize> {
        let rest = &text.as_bytes()[at..];
        if self.line.iter().any(|begin| rest.starts_with(begin.as_bytes())) {
            return Some(line_end(text, at));
        }
        let (open, close) = self.block?;
        if !rest.starts_with(open.as_bytes()) {
            return None;
        }
        let (mut depth, mut at) = (0, at);
        while at < text.len() {
            limits::checkpoint();
            let rest = &text.as_bytes()[at..];
            if rest.starts_with(close.as_bytes()) && depth > 0 {
                depth -= 1;
                at += close.len();
                if depth == 0 {
                    break;
                }
            } else if rest.starts_with(open.as_bytes()) && (depth == 0 || self.nest) {
                depth += 1;
                at += open.len();
            } else {
                at += 1;
            }
        }
        Some(at)
    }

    /// Whether the rest of the line is blank except for comments that end on it.
    pub(super) fn fill_line(&self, text: &str, from: usize) -> bool {
        let end = line_end(text, from);
        let mut at = from;
        while at < end {
            match self.end(text, at) {
                Some(after) if after <= end => at = after,
                Some(_) => return false,
                None if text.as_bytes()[at].is_ascii_whitespace() => at += 1,
                None => return false,
            }
        }
        true
    }
}

/// The tokens from a position on: words (letters, digits, `_`, `.` and `$`) and single symbols. `:=` is one
/// symbol.
pub(super) fn tokens(text: &str, from: usize, comments: Comments) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let is_word =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') || !byte.is_ascii();
    let mut found = Vec::new();
    let mut at = from;
    while at < bytes.len() {
        limits::checkpoint();
        if let Some(end) = comments.end(text, at) {
            at = end;
            continue;
        }
        let start = at;
        at += 1;
        if bytes[start].is_ascii_whitespace() || bytes[start] == 0x0b {
            continue;
        }
        if is_word(bytes[start]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        } else if bytes[start..].starts_with(b":=") {
            at += 1;
        }
        found.push(Token { text: &text[start..at], start });
    }
    found
}

/// The index of the first token that does not begin before a position.
pub(super) fn token_at(tokens: &[Token<'_>], position: usize) -> usize {
    tokens.partition_point(|token| token.start < position)
}

/// Where a span starts, as an index into the text.
pub(super) fn start_of(span: Span) -> usize {
    span.start as usize
}
