//! Fences in `.pal`.

use super::Conditions;
use super::changes::Edits;
use super::fence::{FenceKind, Requests, Side, word};
use super::statements::{Shape, Statements, no_statement};
use super::surround::{Target, surround, terminator};
use super::tokens::{Comments, Token, start_of, token_at, tokens};
use palisade_base::{Diagnostic, Span};

const COMMENTS: Comments = Comments { line: &["//"], block: Some(("/*", "*/")), nest: true };

pub(super) fn edits(
    text: &str,
    requests: &Requests,
    conditions: &Conditions,
    statements: &Statements,
    errors: &mut Vec<Diagnostic>,
) -> Edits {
    let tokens = tokens(text, 0, COMMENTS);
    let mut edits = Edits::default();
    for (&span, sides) in requests {
        let statement = |kind: FenceKind, side: Side| {
            let fence = word(kind, "fence", "sfence");
            conditions
                .get(&(span, side))
                .map_or_else(|| fence.to_owned(), |condition| format!("if {condition} {{ {fence}; }}"))
        };
        let (before, after) = (
            sides.before.map(|kind| statement(kind, Side::Before)),
            sides.after.map(|kind| statement(kind, Side::After)),
        );
        let (before, after) = (before.as_deref(), after.as_deref());
        let first = token_at(&tokens, start_of(span));
        if statements.get(&span) == Some(&Shape::Label) {
            let Some(colon) = tokens.get(first + 1) else {
                errors.push(no_statement(span));
                continue;
            };
            for fence in before.into_iter().chain(after) {
                edits.before(colon.end(), colon.end(), format!(" {fence}{}", terminator(fence)), Some(1));
            }
            continue;
        }
        let end = match statements.get(&span) {
            Some(Shape::Compound | Shape::Choice) => end(&tokens, first, span),
            _ => Some(span.end as usize),
        };
        let Some(end) = end else {
            errors.push(no_statement(span));
            continue;
        };
        let mut labels = first;
        while labels >= 2 && tokens[labels - 1].text == ":" {
            labels -= 2;
        }
        let alone = first > 0 && tokens[first].text == "if" && tokens[first - 1].text == "else";
        let target =
            Target { labels: tokens[labels].start, start: start_of(span), end, closed: Some(end), alone };
        surround(&mut edits, text, COMMENTS, &target, before, after);
    }
    edits
}

/// The end of a compound statement with the given heading.
fn end(tokens: &[Token<'_>], first: usize, heading: Span) -> Option<usize> {
    let mut at = if tokens.get(first)?.text == "{" { first } else { token_at(tokens, heading.end as usize) };
    loop {
        while tokens.get(at)?.text != "{" {
            at += 1;
        }
        let mut depth = 0_usize;
        loop {
            match tokens.get(at)?.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            at += 1;
        }
        if !tokens.get(at + 1).is_some_and(|next| matches!(next.text, "else" | "or")) {
            return Some(tokens[at].end());
        }
        at += 1;
    }
}
