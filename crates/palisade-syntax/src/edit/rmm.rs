//! Fences in `.rmm`.
//!
//! Statements are found in the text itself, because a span of the program may cover only part of a statement.

use super::changes::Edits;
use super::fence::{Requests, Sides, word};
use super::statements::no_statement;
use super::surround::{Target, surround};
use super::tokens::{Comments, Token, start_of, token_at, tokens};
use palisade_base::{Diagnostic, Span};
use std::collections::BTreeMap;

const COMMENTS: Comments = Comments { line: &[], block: Some(("/*", "*/")), nest: false };

pub(super) fn edits(text: &str, requests: &Requests, errors: &mut Vec<Diagnostic>) -> Edits {
    let tokens = tokens(text, 0, COMMENTS);
    let contexts = contexts(&tokens);
    let mut by_statement: BTreeMap<usize, Sides> = BTreeMap::new();
    for (&span, sides) in requests {
        match contexts.get(token_at(&tokens, start_of(span))) {
            Some(Context::Macro) => errors.push(in_macro(span)),
            Some(Context::Locked) => errors.push(in_locked(span)),
            Some(Context::Statement(first)) => by_statement.entry(*first).or_default().join(*sides),
            Some(Context::Elsewhere) | None => errors.push(no_statement(span)),
        }
    }
    let mut edits = Edits::default();
    for (first, sides) in by_statement {
        let mut labels = first;
        if is_label(&tokens, first) {
            labels -= 2;
        }
        let (end, closed) = end(&tokens, first);
        let alone = labels > 0 && matches!(tokens[labels - 1].text, "then" | "else" | "do");
        let closed = closed.filter(|_| !alone);
        let target = Target { labels: tokens[labels].start, start: tokens[first].start, end, closed, alone };
        let (before, after) = (
            sides.before.map(|kind| word(kind, "fence", "ssfence")),
            sides.after.map(|kind| word(kind, "fence", "ssfence")),
        );
        surround(&mut edits, text, COMMENTS, &target, before, after);
    }
    edits
}

/// What a token belongs to.
#[derive(Clone, Copy)]
enum Context {
    /// The innermost statement so far. It begins with the token at this index.
    Statement(usize),
    /// A locked block.
    Locked,
    /// The text of a macro.
    Macro,
    /// Declarations and the like.
    Elsewhere,
}

fn contexts(tokens: &[Token<'_>]) -> Vec<Context> {
    let mut contexts = Vec::with_capacity(tokens.len());
    let (mut in_macro, mut in_text) = (false, false);
    let mut statement = 0;
    // For each open brace, whether it opens a locked block or is inside one.
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
        contexts.push(if in_macro {
            Context::Macro
        } else if !in_text {
            Context::Elsewhere
        } else if braces.last() == Some(&true) {
            Context::Locked
        } else {
            Context::Statement(statement)
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
    contexts
}

/// Whether a statement begins here, not counting its label.
fn begins(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(previous) = at.checked_sub(1).map(|previous| tokens[previous].text) else { return false };
    matches!(previous, ";" | "{" | "then" | "else" | "do" | "or" | "text") || is_label(tokens, at)
}

/// Whether the two tokens before this one are a label and its colon.
fn is_label(tokens: &[Token<'_>], at: usize) -> bool {
    at >= 2
        && tokens[at - 1].text == ":"
        && !matches!(tokens[at - 2].text, "read" | "write" | "syncrd" | "syncwr" | "assume")
}

/// The end of a statement, and the position after its `;` if it has one.
fn end(tokens: &[Token<'_>], first: usize) -> (usize, Option<usize>) {
    let mut end = tokens[first].start;
    let mut depth = 0_usize;
    // How many of the `if`s so far can still have an `else`.
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
        "no fence can be inserted here: this is the body of a macro, which may be called in several places";
    Diagnostic::error("fence-in-macro", message)
        .at(span, "")
        .help("replace the call by the macro's body, or add the fence to the macro by hand, which affects every call")
}

fn in_locked(span: Span) -> Diagnostic {
    Diagnostic::error("fence-in-locked-block", "no fence can be inserted into a locked block")
        .at(span, "")
        .help("the block already waits until the store buffer is empty; put the fence before or after it")
}
