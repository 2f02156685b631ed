//! Up to how many threads a program is right, where it is not known for any number.
//!
//! *How.* The question is asked about 1, 2, 3, … threads of each kind of which there may be any number, until an answer
//! takes too much work.
//!
//! *Guarantee.*
//! - A number is reported only if the program was shown to be right with this number and with all smaller ones, in all
//!   runs: with buffers and loops of any length.
//! - A run that breaks the program with one of these numbers is one of the program with any number. It is confirmed as
//!   such.
//! - The same number of each kind is asked about. Where that says nothing about fewer threads of one kind and more of
//!   another, as with `final`, there is no answer from here.

use crate::answer::Answer;
use crate::ask::confirm;
use crate::check::{CheckOptions, EngineChoice, check_analysis};
use crate::error::AskError;
use palisade_engine::{Analysis, Limits, Reason, Threads, Verdict};
use palisade_program::mentions_more_than;
use palisade_program::written::{BinaryOp, Count, Expr, ExprKind, Observation, Program, PropertyKind, Start};

/// The largest number of threads that is asked about.
const MAX_THREADS: u32 = 16;

/// How many states or configurations each engine may look at for one number.
const WORK: u64 = 1 << 16;

/// The share of the time that is kept for these questions.
pub(crate) const SHARE: u32 = 4;

/// Adds to an answer that is not known for any number of threads up to how many the program is right.
pub(crate) fn with_number(
    analysis: &Analysis<'_>,
    options: &CheckOptions,
    mut answer: Answer,
    limits: &Limits,
) -> Result<Answer, AskError> {
    let task = &analysis.task;
    let Verdict::Unknown(reason) = &answer.outcome.verdict else { return Ok(answer) };
    if !task.is_parameterized() || !grows_with_threads(task.program, task.threads) {
        return Ok(answer);
    }
    let reason = reason.clone();
    let mut known = reason.known_threads().unwrap_or(0);
    let limits = limits.clone().at_most_work(WORK);
    for number in known + 1..=MAX_THREADS {
        if mentions_more_than(task.program, number).is_some() {
            continue;
        }
        let (program, threads) = with_threads(task.program, task.threads, number);
        let of_number = CheckOptions { threads, prove: false, certify: false, ..options.clone() };
        let found = few_threads(&program, &of_number, &limits)?;
        match found.outcome.verdict {
            Verdict::Holds => known = number,
            Verdict::Violated(mut witness) => {
                witness.instantiation = analysis.instantiation(number);
                answer.outcome.engine = found.outcome.engine;
                answer.outcome.stats = found.outcome.stats;
                answer.outcome.verdict = Verdict::Violated(witness);
                answer.confirmed = confirm(analysis, &mut answer.outcome, &limits)?;
                return Ok(answer);
            }
            Verdict::Unknown(_) => break,
        }
    }
    if known > 0 {
        answer.outcome.verdict = Verdict::Unknown(reason.and_known(Reason::InstanceBound(known)));
    }
    Ok(answer)
}

/// Asks about a few threads. Visiting all states is the quickest way, unless buffers can grow without bound.
fn few_threads(program: &Program, options: &CheckOptions, limits: &Limits) -> Result<Answer, AskError> {
    let analysis = Analysis::new(options.task(program));
    if options.engine == EngineChoice::Auto {
        let explicit = CheckOptions { engine: EngineChoice::from("explicit"), ..options.clone() };
        let answer = check_analysis(&analysis, &explicit, limits)?;
        match &answer.outcome.verdict {
            Verdict::Unknown(reason) if reason.is_bound() => {}
            _ => return Ok(answer),
        }
    }
    check_analysis(&analysis, options, limits)
}

/// Whether a bad run with fewer threads of some kinds is also one with the same number of each: the others take no step.
/// `final` is about states in which all threads have ended, and a count that is small enough may become too large.
fn grows_with_threads(program: &Program, threads: Threads) -> bool {
    // Every number of processes with identities is asked about.
    if program.has_open_identities() {
        return program.templates.iter().filter(|template| template.count == Count::Any).count() == 1;
    }
    let is_any = |count: Count| threads == Threads::Any || count == Count::Any;
    let kinds = program.templates.iter().filter(|template| template.start == Start::Initially);
    let mut kinds = kinds.filter(|template| is_any(template.count));
    let is_single = kinds.next().is_none_or(|kind| kind.params.is_empty()) && kinds.next().is_none();
    is_single
        || program
            .properties
            .iter()
            .all(|property| property.kind == PropertyKind::Forbid && stays_true(&property.condition))
}

/// Whether a condition that is true stays true if counts grow.
fn stays_true(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Binary(BinaryOp::And | BinaryOp::Or, a, b) => stays_true(a) && stays_true(b),
        ExprKind::Binary(BinaryOp::Ge | BinaryOp::Gt, a, b) => !counts(b) && (is_count(a) || !counts(a)),
        _ => !counts(condition),
    }
}

fn is_count(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Observe(Observation::Count { .. }))
}

/// Whether a condition of a property counts threads.
fn counts(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Unary(_, a) => counts(a),
        ExprKind::Binary(_, a, b) => counts(a) || counts(b),
        _ => is_count(e),
    }
}

/// The program with this number of threads of each kind of which there may be any number.
fn with_threads(program: &Program, threads: Threads, number: u32) -> (Program, Threads) {
    if threads == Threads::Any && !program.has_open_identities() {
        return (program.clone(), Threads::Each(number));
    }
    if program.has_open_identities() {
        return (program.with_identities(number), Threads::Declared);
    }
    let mut program = program.clone();
    for template in &mut program.templates {
        if template.count == Count::Any {
            template.count = Count::Fixed(number);
        }
    }
    (program, if threads == Threads::Several { Threads::Declared } else { threads })
}
