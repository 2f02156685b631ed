//! The tokens and comments of a text, in order, with what matters of the space between them.

use crate::pal::{Lexer, TokenKind};
use crate::report::Report;

/// A token or a comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'s> {
    pub kind: PieceKind,
    /// Its text. That of a line comment has no white space at the end.
    pub text: &'s str,
    /// Where it begins.
    pub start: usize,
    /// How many line breaks are between it and the piece before it.
    pub breaks: usize,
}

/// What a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PieceKind {
    Token(TokenKind),
    /// `// …`
    LineComment,
    /// `/* … */`
    BlockComment,
}

impl Piece<'_> {
    /// Whether it is the token with this text.
    pub fn is(&self, text: &str) -> bool {
        self.is_token() && self.text == text
    }

    pub fn is_token(&self) -> bool {
        matches!(self.kind, PieceKind::Token(_))
    }

    pub fn is_name(&self) -> bool {
        matches!(self.kind, PieceKind::Token(TokenKind::Name(_)))
    }
}

/// The pieces of a text that can be parsed.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut lexer = Lexer::new(text);
    let mut report = Report::default();
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let token = lexer.next(&mut report);
        let span = token.span.range();
        let mut breaks = comments(text, at, span.start, &mut found);
        if token.kind == TokenKind::End {
            return found;
        }
        let kind = PieceKind::Token(token.kind);
        found.push(Piece {
            kind,
            text: &text[span.clone()],
            start: span.start,
            breaks: std::mem::take(&mut breaks),
        });
        at = span.end;
    }
}

/// Adds the comments between two tokens. Returns the number of line breaks after the last one.
fn comments<'s>(text: &'s str, from: usize, to: usize, found: &mut Vec<Piece<'s>>) -> usize {
    let bytes = text.as_bytes();
    let mut breaks = 0;
    let mut at = from;
    while at < to {
        let (kind, end) = match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'/')) => {
                (PieceKind::LineComment, text[at..to].find('\n').map_or(to, |len| at + len))
            }
            (b'/', Some(b'*')) => (PieceKind::BlockComment, end_of_block(bytes, at, to)),
            (byte, _) => {
                breaks += usize::from(byte == b'\n');
                at += 1;
                continue;
            }
        };
        found.push(Piece {
            kind,
            text: text[at..end].trim_end(),
            start: at,
            breaks: std::mem::take(&mut breaks),
        });
        at = end;
    }
    breaks
}

/// The end of the block comment that begins at `at`. Comments nest.
fn end_of_block(bytes: &[u8], mut at: usize, to: usize) -> usize {
    let mut depth = 0usize;
    while at + 1 < to {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    to
}

/// Whether two texts have the same tokens and comments.
pub(super) fn same(a: &[Piece<'_>], b: &[Piece<'_>]) -> bool {
    let kind = |piece: &Piece<'_>| match piece.kind {
        PieceKind::Token(_) => 0,
        PieceKind::LineComment => 1,
        PieceKind::BlockComment => 2,
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| kind(a) == kind(b) && a.text == b.text)
}
