//! Fences in `.rmm`.
//!
//! Statements are found in the text itself, since a place in the program may be that of a part of a
//! statement.

use super::text::{Comments, Edits, Target, Token, starts, surround, token_at, tokens, word};
use super::{Beside, Wanted, no_statement};
use palisade_base::{Diagnostic, Span};
use std::collections::BTreeMap;

const COMMENTS: Comments = Comments { line: &[], block: Some(("/*", "*/")), nest: false };

pub(super) fn edits(text: &str, wanted: &Wanted, errors: &mut Vec<Diagnostic>) -> Edits {
    let tokens = tokens(text, 0, COMMENTS);
    let places = places(&tokens);
    let mut by_statement: BTreeMap<usize, Beside> = BTreeMap::new();
    for (&span, beside) in wanted {
        match places.get(token_at(&tokens, starts(span))) {
            Some(Place::Macro) => errors.push(in_macro(span)),
            Some(Place::Locked) => errors.push(in_locked(span)),
            Some(Place::Statement(first)) => by_statement.entry(*first).or_default().join(*beside),
            Some(Place::Elsewhere) | None => errors.push(no_statement(span)),
        }
    }
    let mut edits = Edits::default();
    for (first, beside) in by_statement {
        let mut labels = first;
        if is_label(&tokens, first) {
            labels -= 2;
        }
        let (end, closed) = end(&tokens, first);
        let alone = labels > 0 && matches!(tokens[labels - 1].text, "then" | "else" | "do");
        let closed = closed.filter(|_| !alone);
        let target = Target { labels: tokens[labels].start, start: tokens[first].start, end, closed, alone };
        let (before, after) = (
            beside.before.map(|kind| word(kind, "fence", "ssfence")),
            beside.after.map(|kind| word(kind, "fence", "ssfence")),
        );
        surround(&mut edits, text, COMMENTS, &target, before, after);
    }
    edits
}

/// What a token belongs to.
#[derive(Clone, Copy)]
enum Place {
    /// The statement that begins with this token; the innermost one so far.
    Statement(usize),
    /// A locked block.
    Locked,
    /// The text of a macro.
    Macro,
    /// Declarations and the like.
    Elsewhere,
}

fn places(tokens: &[Token<'_>]) -> Vec<Place> {
    let mut places = Vec::with_capacity(tokens.len());
    let (mut in_macro, mut in_text) = (false, false);
    let mut statement = 0;
    // Whether each open brace is that of a locked block, or in one.
    let mut braces: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "macro" => in_macro = true,
            "process" if !in_macro => in_text = false,
            _ => {}
        }
        if in_text && !in_macro && begins(tokens, at) {
            statement = at;
        }
        places.push(if in_macro {
            Place::Macro
        } else if !in_text {
            Place::Elsewhere
        } else if braces.last() == Some(&true) {
            Place::Locked
        } else {
            Place::Statement(statement)
        });
        match token.text {
            "endmacro" => in_macro = false,
            _ if in_macro => {}
            "text" => (in_text, statement) = (true, at + 1),
            "{" => {
                let locked = at > 0 && tokens[at - 1].text == "locked";
                braces.push(locked || braces.last() == Some(&true));
            }
            "}" => _ = braces.pop(),
            _ => {}
        }
    }
    places
}

/// Whether a statement begins here, behind its label if it has one.
fn begins(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(previous) = at.checked_sub(1).map(|previous| tokens[previous].text) else { return false };
    matches!(previous, ";" | "{" | "then" | "else" | "do" | "or" | "text") || is_label(tokens, at)
}

/// Whether the two tokens in front are a label and its colon.
fn is_label(tokens: &[Token<'_>], at: usize) -> bool {
    at >= 2
        && tokens[at - 1].text == ":"
        && !matches!(tokens[at - 2].text, "read" | "write" | "syncrd" | "syncwr" | "assume")
}

/// The end of a statement, and the place behind its `;` if it has one.
fn end(tokens: &[Token<'_>], first: usize) -> (usize, Option<usize>) {
    let mut end = tokens[first].start;
    let mut depth = 0_usize;
    // How many of the `if`s so far may still have an `else`.
    let mut open = 0_usize;
    let mut at = first;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "macro" => {
                while tokens.get(at).is_some_and(|token| token.text != "endmacro") {
                    at += 1;
                }
                at += 1;
                continue;
            }
            "{" | "(" => depth += 1,
            "}" if depth == 0 => break,
            "}" | ")" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ";" => return (end, Some(token.end())),
            "or" | "process" => break,
            "if" => open += 1,
            "else" if open == 0 => break,
            "else" => open -= 1,
            _ => {}
        }
        end = token.end();
        at += 1;
    }
    (end, None)
}

fn in_macro(span: Span) -> Diagnostic {
    let message =
        "no fence can be put here: this is the text of a macro, which may be called in several places";
    Diagnostic::error("fence-in-macro", message)
        .at(span, "")
        .help("write the call out, or put the fence into the macro by hand, which adds it to every call")
}

fn in_locked(span: Span) -> Diagnostic {
    Diagnostic::error("fence-in-locked-block", "no fence can stand in a locked block")
        .at(span, "")
        .help("the block waits for the store buffer by itself; put the fence before or after it")
}
