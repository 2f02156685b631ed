//! Fences put into a source text, in the language of the text. Everything else stays as it was written.
//!
//! *Where a fence goes.* A fence *before* a statement stands behind the statement's labels, so whoever jumps
//! there passes it, and a process at the label has not passed it yet. A fence *after* a statement stands in
//! front of the labels of the next one: only who comes from the statement passes it. Compound statements
//! count as a whole: before a loop is before its first round, after it behind its last.
//!
//! - `.pal`: `fence;` or `sfence;`, on a line of its own where the statement has one. In front of an `else
//!   if` it needs a block, which is added. Here a fence may have a condition: `if i == 0 { fence; }`
//!   ([`insert_conditional_fences`]).
//! - `.rmm`: `fence` or `ssfence` likewise. A statement without braces behind `then`, `else` or `do` gets
//!   them.
//! - `.litmus`: a row with `mfence` or `sfence` in the thread's column, in capitals if the test is. Fences
//!   between the same rows share one.
//! - Trencher: the transition is split by a fresh state. Before the first of several transitions of a state
//!   means before all of them.
//!
//! *Guarantee.* What is given back can be read again; for `.pal` and `.rmm` it is the same program but for
//! the fences.

mod litmus;
mod pal;
mod rmm;
mod text;
mod trencher;
mod verify;

use crate::Language;
use palisade_base::{Diagnostic, Source, Span, limits};
use palisade_program::written::{Block, Program, StmtKind};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A fence that is wanted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FenceAt {
    /// The origin of a statement of the program that the text is read as.
    pub span: Span,
    /// On which side of the statement.
    pub side: Side,
    /// Which fence.
    pub kind: FenceKind,
}

/// On which side of a statement a fence stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Behind its labels, in front of the statement itself.
    Before,
    /// Behind the statement.
    After,
}

/// The kinds of fences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FenceKind {
    /// Keeps stores before stores. Weaker than the other kind.
    StoreStore,
    /// Waits until the store buffer is empty.
    Full,
}

/// Puts fences into a text; gives the new text.
///
/// Of several fences at one place only the strongest is put there. The text must be one that
/// [`crate::parse()`] takes. Fences that have no place in the text are all reported.
pub fn insert_fences(
    language: Language,
    source: &Source,
    fences: &[FenceAt],
) -> Result<String, Vec<Diagnostic>> {
    insert(language, source, fences, &Conditions::new())
}

/// Puts fences into a text, some of them only under a condition, which is an expression in the language of
/// the text. Only `.pal` can say that.
pub fn insert_conditional_fences(
    language: Language,
    source: &Source,
    fences: &[(FenceAt, Option<String>)],
) -> Result<String, Vec<Diagnostic>> {
    let mut conditions = Conditions::new();
    for (fence, condition) in fences {
        let Some(condition) = condition else { continue };
        if language != Language::Pal {
            let message =
                "this language has no way to say that only some instances of a process pass a fence";
            return Err(vec![Diagnostic::error("no-conditional-fence", message).at(fence.span, "")]);
        }
        conditions.insert((fence.span, fence.side), condition.clone());
    }
    let fences: Vec<FenceAt> = fences.iter().map(|(fence, _)| *fence).collect();
    insert(language, source, &fences, &conditions)
}

/// The conditions of fences, by place.
type Conditions = BTreeMap<(Span, Side), String>;

fn insert(
    language: Language,
    source: &Source,
    fences: &[FenceAt],
    conditions: &Conditions,
) -> Result<String, Vec<Diagnostic>> {
    let program = crate::parse(language, source)?.program;
    let statements = statements(&program);
    let mut errors = Vec::new();
    let mut wanted = Wanted::new();
    for fence in fences {
        if fence.span.is_none() {
            let message = "this statement was not written in the file, so no fence can be put beside it";
            errors.push(Diagnostic::error("not-written", message).at(Span::new(0..0), ""));
        } else if !statements.contains_key(&fence.span) {
            errors.push(no_statement(fence.span));
        } else {
            wanted.entry(fence.span).or_default().want(*fence);
        }
    }
    let text = source.text();
    let edits = match language {
        Language::Pal => pal::edits(text, &wanted, conditions, &statements, &mut errors),
        Language::Rmm => rmm::edits(text, &wanted, &mut errors),
        Language::Litmus => litmus::edits(text, &program, &wanted, &mut errors),
        Language::Trencher => trencher::edits(text, &wanted, &statements, &mut errors),
    };
    if !errors.is_empty() {
        return Err(crate::report::arrange(errors));
    }
    let (edited, places) = edits.apply(text);
    let source = Source::new(source.name(), edited);
    let again = crate::parse(language, &source);
    let is_right = again.is_ok_and(|again| match language {
        Language::Pal | Language::Rmm => verify::same_but_for(&program, again.program, &places),
        Language::Litmus | Language::Trencher => true,
    });
    if is_right {
        return Ok(source.text().to_owned());
    }
    let first = wanted.keys().next().copied().unwrap_or(Span::new(0..0));
    let message = "the fences could not be put into the text: with them it is no longer the same program";
    let help = "put them in by hand, and please report this with the file";
    Err(vec![Diagnostic::error("fences-not-inserted", message).at(first, "the first of them").help(help)])
}

/// The fences wanted at each statement.
type Wanted = BTreeMap<Span, Beside>;

/// The fences wanted beside one statement.
#[derive(Clone, Copy, Default)]
struct Beside {
    before: Option<FenceKind>,
    after: Option<FenceKind>,
}

impl Beside {
    fn want(&mut self, fence: FenceAt) {
        let side = match fence.side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        };
        *side = (*side).max(Some(fence.kind));
    }

    /// Both sides joined with those of another.
    fn join(&mut self, other: Beside) {
        self.before = self.before.max(other.before);
        self.after = self.after.max(other.after);
    }
}

/// What has to be known about a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One without others in it.
    Simple,
    /// One with others in it.
    Compound,
    /// A choice: `if` or `choose`.
    Choice,
    /// A label with no statement behind it; the place is that of the label.
    Label,
}

type Statements = FxHashMap<Span, Shape>;

/// The statements that were written. Where several have one place, the outermost counts.
fn statements(program: &Program) -> Statements {
    let mut found = Statements::default();
    let procedures = program.procedures.iter().map(|procedure| &procedure.body);
    let bodies = program.templates.iter().map(|template| &template.body);
    bodies.chain(procedures).for_each(|body| collect(body, &mut found));
    found
}

/// The parsers limit how deep blocks nest.
fn collect(block: &Block, found: &mut Statements) {
    for statement in block {
        limits::go_on();
        let is_label = statement.labels.last().is_some_and(|label| label.span() == statement.span());
        let shape = match &statement.kind {
            StmtKind::If { .. } | StmtKind::Choose(_) => Shape::Choice,
            StmtKind::While { .. } | StmtKind::Loop(_) | StmtKind::Atomic(_) | StmtKind::Block(_) => {
                Shape::Compound
            }
            StmtKind::Skip if is_label => Shape::Label,
            _ => Shape::Simple,
        };
        if !statement.span().is_none() {
            found.entry(statement.span()).or_insert(shape);
        }
        match &statement.kind {
            StmtKind::If { then, otherwise, .. } => {
                collect(then, found);
                collect(otherwise, found);
            }
            StmtKind::Choose(alternatives) => alternatives.iter().for_each(|body| collect(body, found)),
            StmtKind::While { body, .. }
            | StmtKind::Loop(body)
            | StmtKind::Atomic(body)
            | StmtKind::Block(body) => collect(body, found),
            _ => {}
        }
    }
}

fn no_statement(span: Span) -> Diagnostic {
    Diagnostic::error("no-such-statement", "no fence can be put here: this is no statement").at(span, "")
}
