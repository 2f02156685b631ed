//! Any number of threads that run the same function.
//!
//! *Problem.* A program starts three identical threads. Is it safe with any number of them?
//!
//! *How.* Threads that run the same code are instances of one process ([`mod@palisade_c`]). Now there is any number of
//! instances:
//! - They wait for the cell that is set when the last one is started, so any number of them can start there.
//! - At its end, a thread counts itself, so that the joining thread knows when all have ended. With any number there is
//!   no such count. A thread that joins them stops there, and the answer says so.
//!
//! *Guarantee.* Up to the point where the threads are joined, every run of a program that starts n threads in the same
//! way is a run of this one with n instances. Differences between the threads are refused: different arguments, and
//! memory of their own, such as a variable whose address is taken, a node on the heap, or their number in
//! a mutex.

use super::check::check_input;
use crate::Input;
use crate::answer::Answer;
use crate::check::{CheckOptions, EngineChoice};
use crate::coverage::CoverageWanted;
use crate::error::AskError;
use palisade_base::{Diagnostic, Span};
use palisade_c::{Finish, Identity, Note, ThreadCell, Translation};
use palisade_engine::{Limits, Verdict};
use palisade_program::written::{Block, Count, Expr, ExprKind, PlaceKind, Program, Rmw, StmtKind};
use std::collections::BTreeSet;

/// Why it is not asked whether the program can finish.
pub(super) const UNKNOWN_NUMBER: &str = "the number of threads is not known";

/// What is not checked with any number of threads.
const AFTER_JOIN: &str = "what happens after these threads have been joined is not checked";
const FINISH: &str =
    "deadlocks, and whether the program can finish, are not checked for any number of threads";

/// The same if it is checked with as many threads as the source starts.
const AFTER_JOIN_OF_SOURCE: &str =
    "what happens after these threads have been joined is checked only with as many as the source starts";
const FINISH_OF_SOURCE: &str = "deadlocks, and whether the program can finish, are checked only with as many threads as the source starts";

/// Asks everything about the program with as many threads as its source starts: only then is it known what happens
/// after they have been joined, and whether they can get stuck. If it is not right, that is the answer, and the input
/// becomes that program. Otherwise, returns what is known about it, for a positive answer about any number.
pub(super) fn check_threads_of_source(
    input: &mut Input,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<OfSource, AskError> {
    if !matches!(&options.engine, EngineChoice::Auto) {
        return Ok(OfSource::Right(Vec::new()));
    }
    let Some(Ok(mut source)) = input.with_threads_of_source() else { return Ok(OfSource::Right(Vec::new())) };
    let options =
        CheckOptions { prove: false, certify: false, coverage: CoverageWanted::No, ..options.clone() };
    let answer = check_input(&mut source, &options, &limits.clone().leaving_one_in(2))?;
    let what = "with as many threads as the source starts";
    match &answer.outcome.verdict {
        Verdict::Violated(_) => {
            *input = source;
            Ok(OfSource::Wrong(Box::new(answer)))
        }
        Verdict::Unknown(reason) => Ok(OfSource::Right(vec![format!("not known {what}: {reason}")])),
        Verdict::Holds => {
            let finish = source.c.as_ref().is_some_and(|c| c.asks_finish());
            for note in input.c.iter_mut().flat_map(|c| &mut c.notes) {
                match note.as_str() {
                    AFTER_JOIN => AFTER_JOIN_OF_SOURCE.clone_into(note),
                    FINISH if finish => FINISH_OF_SOURCE.clone_into(note),
                    _ => {}
                }
            }
            let known = source.warnings.into_iter().filter(|warning| !input.warnings.contains(warning));
            input.warnings.extend(known.collect::<Vec<_>>());
            let holds = answer.progress.map(|progress| progress.holds).unwrap_or_default();
            let is_plain = |holds: &String| !holds.contains(':');
            Ok(OfSource::Right(match holds.is_empty() || !holds.iter().all(is_plain) {
                true => holds.into_iter().map(|holds| format!("{what}, {holds}")).collect(),
                false => vec![format!("{} {what}", holds.join(" and "))],
            }))
        }
    }
}

/// What is known about a program with as many threads as its source starts.
pub(super) enum OfSource {
    /// It is wrong.
    Wrong(Box<Answer>),
    /// Nothing is wrong, as far as these sentences say.
    Right(Vec<String>),
}

/// Translates a program and allows any number of the threads that are alike.
///
/// Threads with different arguments can look alike, because something holds for the arguments of those that the source
/// starts: `index < 2`. Such a program is translated again, so that nothing is known about arguments.
pub(super) fn any_number(
    translate: impl Fn(Identity) -> Result<Translation, Vec<Diagnostic>>,
) -> Result<Translation, Vec<Diagnostic>> {
    let mut translation = translate(Identity::WithoutHandle)?;
    let unlike = |translation: &Translation| {
        translation
            .threads
            .iter()
            .find(|thread| !thread.same_argument)
            .map(|thread| differ(&thread.functions))
    };
    if let Some(differ) = unlike(&translation) {
        translation = translate(Identity::Unknown).map_err(|_| differ)?;
        if let Some(differ) = unlike(&translation) {
            return Err(differ);
        }
    }
    open(&mut translation)?;
    Ok(translation)
}

fn refused(message: String) -> Vec<Diagnostic> {
    let help = "with --threads any, threads that run the same function must take the same argument and have no memory \
                of their own: no local variable whose address is taken, no heap, no mutex";
    vec![Diagnostic::error("c-threads", message).help(help)]
}

fn differ(functions: &[String]) -> Vec<Diagnostic> {
    let names = functions.join("` or `");
    refused(format!("the threads that run `{names}` differ, so their number cannot be left open"))
}

/// Allows any number of the threads that are alike.
fn open(translation: &mut Translation) -> Result<(), Vec<Diagnostic>> {
    let functions = functions(translation);
    let program = &mut translation.program;
    let is_alike = |count: Count| matches!(count, Count::Fixed(count) if count > 1);
    let alike: Vec<usize> =
        (0..program.templates.len()).filter(|&index| is_alike(program.templates[index].count)).collect();
    for (index, own) in functions.iter().enumerate() {
        if functions.iter().skip(index + 1).any(|other| other.iter().any(|function| own.contains(function))) {
            return Err(differ(own));
        }
    }
    if alike.is_empty() {
        return Err(refused(
            "the program does not start several threads that run the same function".to_owned(),
        ));
    }
    let ended: BTreeSet<String> = program
        .shared
        .iter()
        .filter(|shared| {
            let cell = shared.at.and_then(|at| translation.waits.cell(at.address));
            matches!(cell, Some(ThreadCell::Ended(_)))
        })
        .map(|shared| shared.name.as_str().to_owned())
        .collect();
    let mut counts = BTreeSet::new();
    let mut started = Vec::new();
    for &index in &alike {
        let template = &mut program.templates[index];
        if let Count::Fixed(count) = template.count {
            started.push(format!(
                "any number of threads run `{}`, of which the source starts {count}",
                functions[index].join("` or `")
            ));
        }
        template.count = Count::Any;
        uncount(&mut template.body, &ended, &mut counts);
    }
    let mut is_cut = false;
    for template in &mut program.templates {
        // Other threads that are joined together with these count themselves in the same cell.
        uncount(&mut template.body, &counts, &mut BTreeSet::new());
        cut(&mut template.body, &counts, &mut is_cut);
    }
    if counts.iter().any(|count| is_used(program, count)) {
        return Err(refused("the way these threads are joined is not supported".to_owned()));
    }
    let fixed = |note: &Note| note.0.contains(" besides `");
    translation.notes.retain(|note| !fixed(note));
    translation.notes.extend(started.into_iter().map(Note));
    if is_cut {
        translation.notes.push(Note(AFTER_JOIN.to_owned()));
    }
    translation.notes.push(Note(FINISH.to_owned()));
    translation.finish = Finish::NotFollowed(UNKNOWN_NUMBER);
    (translation.outlives, translation.allocations) = (false, None);
    Ok(())
}

/// The functions that the instances of each process run.
fn functions(translation: &Translation) -> Vec<Vec<String>> {
    let mut at = 0;
    let of = |count: Count| match count {
        Count::Fixed(count) => count as usize,
        Count::Any => 1,
    };
    let templates = translation.program.templates.iter();
    templates
        .map(|template| {
            let first = translation.threads.get(at).map_or_else(Vec::new, |thread| thread.functions.clone());
            at += of(template.count);
            first
        })
        .collect()
}

/// Removes the steps by which threads count themselves at their end, and collects the cells that they count in.
fn uncount(block: &mut Block, ended: &BTreeSet<String>, counts: &mut BTreeSet<String>) {
    for stmt in block {
        let value = match &stmt.kind {
            StmtKind::Eval(value) | StmtKind::Assign { value, .. } => Some(value),
            _ => None,
        };
        if let Some(ExprKind::Locked(Rmw::FetchAdd, place, _)) = value.map(|value| &value.kind)
            && let PlaceKind::Named(name) = &place.kind
            && ended.contains(name.as_str())
        {
            counts.insert(name.as_str().to_owned());
            stmt.kind = StmtKind::Skip;
        }
        stmt.kind.blocks_mut().into_iter().for_each(|block| uncount(block, ended, counts));
    }
}

/// Stops threads where they wait for the end of such threads.
fn cut(block: &mut Block, counts: &BTreeSet<String>, is_cut: &mut bool) {
    for stmt in block {
        if let StmtKind::Await(condition) = &stmt.kind
            && counts.iter().any(|count| mentions(condition, count))
        {
            stmt.kind = StmtKind::Assume(Expr::new(ExprKind::Bool(false), Span::NONE));
            *is_cut = true;
        }
        stmt.kind.blocks_mut().into_iter().for_each(|block| cut(block, counts, is_cut));
    }
}

fn mentions(e: &Expr, name: &str) -> bool {
    match &e.kind {
        ExprKind::Read(place) | ExprKind::AddressOf(place) => {
            matches!(&place.kind, PlaceKind::Named(known) if known.as_str() == name)
        }
        ExprKind::Unary(_, a) => mentions(a, name),
        ExprKind::Binary(_, a, b) => mentions(a, name) || mentions(b, name),
        _ => false,
    }
}

/// Whether a process still uses a cell. Looks at everything that a statement can contain.
fn is_used(program: &Program, name: &str) -> bool {
    program.templates.iter().any(|template| format!("{:?}", template.body).contains(&format!("{name:?}")))
}
