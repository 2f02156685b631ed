//! Inserts fences into a source text, in the language of the text. The rest of the text does not change.
//!
//! *Where a fence goes.*
//! - A fence *before* a statement goes after the statement's labels. A jump to a label executes the fence,
//!   and a process at the label has not executed it yet.
//! - A fence *after* a statement goes before the labels of the next statement. Only control flow that comes
//!   from the statement executes it.
//! - A compound statement counts as a whole. Before a loop means before its first iteration; after a loop
//!   means after its last.
//!
//! *How each language writes it.*
//! - `.pal`: `fence;` or `sfence;`, on its own line if the statement has its own line. A fence before an
//!   `else if` needs a block, which is added. Only here can a fence have a condition: `if i == 0 { fence; }`
//!   ([`insert_conditional_fences`]).
//! - `.rmm`: `fence` or `ssfence`, in the same way. A statement without braces after `then`, `else` or `do`
//!   gets braces.
//! - `.litmus`: a row with `mfence` or `sfence` in the thread's column, in capitals if the test uses
//!   capitals. Fences between the same two rows share a row.
//! - Trencher: the transition is split by a fresh state. Before the first of several transitions of a state
//!   means before all of them.
//!
//! *Guarantee.* The result parses. For `.pal` and `.rmm` it is the same program except for the fences.
//!
//! *Files.* `fence` has the requests, `statements` the statements they refer to. One file per language
//! decides what to write where. They share `tokens`, `lines` and, for languages with blocks, `surround`.
//! `changes` applies the result, and `verify` checks it.

mod changes;
mod fence;
mod lines;
mod litmus;
mod pal;
mod rmm;
mod statements;
mod surround;
mod tokens;
mod trencher;
mod verify;

pub use fence::{FenceAt, FenceKind, Side};

use crate::Language;
use fence::Requests;
use palisade_base::{Diagnostic, Source, Span};
use statements::{no_statement, statements};
use std::collections::BTreeMap;

/// Inserts fences into a text and returns the new text.
///
/// If several fences go to the same place, only the strongest is inserted. The text must be one that
/// [`crate::parse()`] accepts. Every fence that cannot be inserted is reported.
pub fn insert_fences(
    language: Language,
    source: &Source,
    fences: &[FenceAt],
) -> Result<String, Vec<Diagnostic>> {
    Ok(insert(language, source, fences, &Conditions::new())?.text().to_owned())
}

/// Inserts fences into the files of a program, some of them under a condition. The condition is an expression in
/// the language of the text. Only `.pal` supports this.
pub fn insert_conditional_fences(
    language: Language,
    source: &Source,
    fences: &[(FenceAt, Option<String>)],
) -> Result<Source, Vec<Diagnostic>> {
    let mut conditions = Conditions::new();
    for (fence, condition) in fences {
        let Some(condition) = condition else { continue };
        if language != Language::Pal {
            let message = "this language cannot restrict a fence to some instances of a process";
            return Err(vec![Diagnostic::error("no-conditional-fence", message).at(fence.span, "")]);
        }
        conditions.insert((fence.span, fence.side), condition.clone());
    }
    let fences: Vec<FenceAt> = fences.iter().map(|(fence, _)| *fence).collect();
    insert(language, source, &fences, &conditions)
}

/// The conditions of fences, by statement and side.
type Conditions = BTreeMap<(Span, Side), String>;

fn insert(
    language: Language,
    source: &Source,
    fences: &[FenceAt],
    conditions: &Conditions,
) -> Result<Source, Vec<Diagnostic>> {
    let program = crate::parse(language, source)?.program;
    let statements = statements(&program);
    let mut errors = Vec::new();
    let mut requests = Requests::new();
    for fence in fences {
        if fence.span.is_none() {
            let message = "no fence can be inserted here: this statement does not appear in the file";
            errors.push(Diagnostic::error("not-written", message).at(Span::new(0..0), ""));
        } else if !statements.contains_key(&fence.span) {
            errors.push(no_statement(fence.span));
        } else {
            requests.entry(fence.span).or_default().add(*fence);
        }
    }
    let text = source.text();
    let edits = match language {
        Language::Pal => pal::edits(text, &requests, conditions, &statements, &mut errors),
        Language::Rmm => rmm::edits(text, &requests, &mut errors),
        Language::Litmus => litmus::edits(text, &program, &requests, &mut errors),
        Language::Trencher => trencher::edits(text, &requests, &statements, &mut errors),
    };
    if !errors.is_empty() {
        return Err(crate::report::arrange(errors));
    }
    let moved = edits.moved(text);
    let (edited, inserted) = edits.apply(text);
    let source = source.with_changes(&edited, moved);
    let reparsed = crate::parse(language, &source);
    let is_same_program = reparsed.is_ok_and(|reparsed| match language {
        Language::Pal | Language::Rmm => verify::same_but_for(&program, reparsed.program, &inserted),
        Language::Litmus | Language::Trencher => true,
    });
    if is_same_program {
        return Ok(source);
    }
    let first = requests.keys().next().copied().unwrap_or(Span::new(0..0));
    let message = "the fences could not be inserted: the result would not be the same program";
    let help = "insert them by hand, and please report this together with the file";
    Err(vec![
        Diagnostic::error("fences-not-inserted", message).at(first, "the first fence goes here").help(help),
    ])
}
