//! Whether there is a space between two tokens on one line.

use super::pieces::{Piece, PieceKind};
use crate::pal::{Lexer, Sign, TokenKind, Word};
use crate::report::Report;

/// How a token is used, where its text alone does not say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// An operator before its only operand.
    Prefix,
    /// The first word of a property, which is no name: `live`, `leaves`.
    Heading,
    /// Part of `deadlock-free`.
    Hyphen,
    /// Anything else.
    Plain,
}

/// How a token is used, given the token before it in the same statement and its use.
pub(super) fn usage(token: &Piece<'_>, before: Option<(&Piece<'_>, Use)>, in_block: bool) -> Use {
    let PieceKind::Token(kind) = token.kind else { return Use::Plain };
    match kind {
        TokenKind::Sign(Sign::Not | Sign::Tilde) => Use::Prefix,
        TokenKind::Sign(Sign::Minus)
            if before.is_some_and(|(before, used)| used == Use::Heading && before.is("deadlock")) =>
        {
            Use::Hyphen
        }
        TokenKind::Sign(Sign::Minus | Sign::Star | Sign::And) => {
            let is_operator =
                before.is_some_and(|(before, used)| used != Use::Heading && ends_operand(before));
            if is_operator { Use::Plain } else { Use::Prefix }
        }
        TokenKind::Name(_) if !in_block && before.is_none() => Use::Heading,
        _ => Use::Plain,
    }
}

/// Whether an operand can end with this token.
fn ends_operand(token: &Piece<'_>) -> bool {
    matches!(
        token.kind,
        PieceKind::Token(
            TokenKind::Name(_)
                | TokenKind::Number(_)
                | TokenKind::Word(Word::True | Word::False)
                | TokenKind::Sign(Sign::RightParen | Sign::RightBracket)
        )
    )
}

/// Whether there is a space between two pieces on the same line.
pub(super) fn space(before: &Piece<'_>, used: Use, after: &Piece<'_>, after_used: Use) -> bool {
    let (PieceKind::Token(left), PieceKind::Token(right)) = (before.kind, after.kind) else {
        return true;
    };
    // A path ends with its quote.
    let is_read_as_one = || left != TokenKind::Path && is_read_as_one(before.text, after.text);
    !fits_tightly(left, used, right, after_used) || is_read_as_one()
}

fn fits_tightly(left: TokenKind, used: Use, right: TokenKind, right_used: Use) -> bool {
    use Sign::{
        At, Colon, Comma, Dot, DotDot, LeftBrace, LeftBracket, LeftParen, PathSeparator, RightBrace,
        RightBracket, RightParen, Semicolon,
    };
    if matches!(used, Use::Prefix | Use::Hyphen) || right_used == Use::Hyphen {
        return true;
    }
    match (left, right) {
        (TokenKind::Sign(LeftBrace), TokenKind::Sign(RightBrace)) => true,
        (TokenKind::Sign(LeftParen | LeftBracket | Dot | DotDot | At | PathSeparator), _) => true,
        (
            _,
            TokenKind::Sign(
                RightParen | RightBracket | Semicolon | Comma | Colon | Dot | DotDot | At | PathSeparator,
            ),
        ) => true,
        (TokenKind::Word(word), TokenKind::Sign(LeftParen)) => is_called(word),
        (TokenKind::Name(_), TokenKind::Sign(LeftParen | LeftBracket)) => used != Use::Heading,
        (TokenKind::Sign(RightParen | RightBracket), TokenKind::Sign(LeftParen | LeftBracket)) => true,
        _ => false,
    }
}

/// Whether a keyword is followed by arguments, like a procedure.
fn is_called(word: Word) -> bool {
    use Word::{Any, Assert, Assume, Cas, Exchange, FetchAdd, FetchAnd, FetchOr, FetchSub, FetchXor};
    matches!(
        word,
        Any | Assert | Assume | Cas | Exchange | FetchAdd | FetchSub | FetchAnd | FetchOr | FetchXor
    )
}

/// Whether two tokens without a space between them would be read as others: `- -x`, `& &x`.
fn is_read_as_one(left: &str, right: &str) -> bool {
    let joined = format!("{left}{right}");
    let mut report = Report::default();
    Lexer::new(&joined).next(&mut report).span.range() != (0..left.len())
}
