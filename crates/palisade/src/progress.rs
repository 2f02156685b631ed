//! Questions about what stays possible and what must happen: deadlocks, goals that must stay reachable, and
//! what holds in every fair run.
//!
//! They are asked after the question about bad states, and the worst verdict counts: a violation before
//! `unknown`, and `unknown` before `safe`. All violations are reported in the same way.

use crate::answer::Answer;
use crate::check::{CheckOptions, EngineChoice};
use crate::engines;
use crate::error::{AskError, Bug};
use crate::portfolio::{self, PortfolioAnswer};
use crate::question::{Ask, Confirmed, Wanted};
use palisade_certificate::{Refusal, Summary, verify_fair, verify_ranking};
use palisade_engine::proof::Ranking;
use palisade_engine::{
    Analysis, DeadlockFreedom, FairProgress, GoalsReachable, Limits, Outcome, Reason, Safety, Task, Verdict,
};
use palisade_program::Waits;
use palisade_program::written::{Outside, Program, ProgressKind, Stmt, StmtKind};
use palisade_report::ProgressNote;
use std::time::Instant;

/// Whether deadlocks are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Deadlocks {
    /// If the program says `deadlock-free;`.
    #[default]
    IfStated,
    /// In any case.
    Asked,
    /// Not here: they are asked about in another way.
    Elsewhere,
}

/// How many states are visited to see a stuck state, if this was not asked for.
const PROBE_BUDGET: u64 = 1 << 10;

/// Adds what is asked about progress to an answer about bad states.
pub(crate) fn with_progress(
    program: &Program,
    options: &CheckOptions,
    answer: Answer,
    start: Instant,
    limits: &Limits,
) -> Result<Answer, AskError> {
    if matches!(answer.outcome.verdict, Verdict::Violated(_)) {
        return Ok(answer);
    }
    let stated = |wanted: fn(&ProgressKind) -> bool| program.progress.iter().any(|p| wanted(&p.kind));
    let deadlocks =
        options.deadlocks == Deadlocks::Asked || stated(|kind| *kind == ProgressKind::DeadlockFree);
    let (goals, fair) = (stated(ProgressKind::is_goal), stated(ProgressKind::is_fair));
    let mut task = options.task(program);
    task.options.waits = Waits::Retry;
    let mut asking = Asking { task: &task, options, limits, start, answer, note: ProgressNote::default() };
    if let Some(why) = undecided(program) {
        if (deadlocks || goals || fair) && asking.answer.outcome.verdict == Verdict::Holds {
            asking.answer.outcome.verdict = Verdict::Unknown(why);
            (asking.answer.proof, asking.answer.certified) = (None, None);
        }
        return Ok(asking.answer);
    }
    if deadlocks {
        asking.ask::<DeadlockFreedom>("free of deadlocks")?;
    }
    if goals {
        asking.ask::<GoalsReachable>("all `live` properties hold")?;
    }
    if fair {
        let terminates = stated(|kind| *kind == ProgressKind::Terminates).then_some("terminates");
        let leaves = stated(|kind| matches!(kind, ProgressKind::Leaves { .. }));
        let leaves = leaves.then_some("all `leaves` properties hold");
        let holds: Vec<&str> = terminates.into_iter().chain(leaves).collect();
        asking.ask::<FairProgress>(&holds.join(", "))?;
    }
    if (deadlocks || goals) && (options.certify || options.prove) {
        asking.prove(deadlocks)?;
    }
    if fair && options.certify {
        asking.certify("what holds in every fair run", verify_fair)?;
    }
    if !deadlocks && options.deadlocks != Deadlocks::Elsewhere {
        asking.look_for_stuck_state()?;
    }
    let Asking { mut answer, note, .. } = asking;
    if !stated(|kind| *kind == ProgressKind::DeadlockFree) {
        answer.deadlocks = options.deadlocks;
    }
    answer.progress = (note != ProgressNote::default()).then_some(note);
    Ok(answer)
}

/// The answer to one question about progress, in the words for bad states. `answer` is the answer so far.
pub(crate) fn answer_about<Q: Ask<Shows = ()>>(
    program: &Program,
    options: &CheckOptions,
    answer: &Answer,
    start: Instant,
    limits: &Limits,
) -> Result<Answer, AskError> {
    let mut task = options.task(program);
    task.options.waits = Waits::Retry;
    let (answer, note) = (answer.clone(), ProgressNote::default());
    let asking = Asking { task: &task, options, limits, start, answer, note };
    if let Some(why) = undecided(program) {
        return Ok(asking.translated(PortfolioAnswer::<Q>::nothing(why)));
    }
    asking.answer::<Q>(&options.engine, limits)
}

struct Asking<'a> {
    task: &'a Task<'a>,
    options: &'a CheckOptions,
    limits: &'a Limits,
    start: Instant,
    /// The worst answer so far.
    answer: Answer,
    note: ProgressNote,
}

impl Asking<'_> {
    /// Asks one question and keeps its answer if it is worse.
    fn ask<Q: Ask<Shows = ()>>(&mut self, holds: &str) -> Result<(), AskError> {
        if matches!(self.answer.outcome.verdict, Verdict::Violated(_)) {
            return Ok(());
        }
        let found = self.answer::<Q>(&self.options.engine, self.limits)?;
        match found.outcome.verdict {
            Verdict::Holds => self.note.holds.push(holds.to_owned()),
            Verdict::Violated(_) => self.answer = found,
            Verdict::Unknown(_) if self.answer.outcome.verdict == Verdict::Holds => self.answer = found,
            Verdict::Unknown(_) => {}
        }
        Ok(())
    }

    /// The answer to one question, in the words for bad states.
    fn answer<Q: Ask<Shows = ()>>(&self, engine: &EngineChoice, limits: &Limits) -> Result<Answer, AskError> {
        let named = match engines::chosen::<Q>(engine) {
            Ok(named) => named,
            Err(AskError::NoSuchEngine { name, .. }) => {
                let why = format!("engine `{name}` does not search{}; use explicit or auto", Q::PURPOSE);
                return Ok(self.translated(PortfolioAnswer::<Q>::nothing(Reason::Unsupported(why))));
            }
            Err(error) => return Err(error),
        };
        let suited = |analysis: &Analysis<'_>| match named {
            Some(engine) => vec![engine],
            None => engines::suited(analysis, Wanted::Answer),
        };
        let answer = portfolio::ask_all(&suited, &self.task.analysis(), limits, Wanted::Answer)?;
        Ok(self.translated(answer))
    }

    fn translated<Q: Ask<Shows = ()>>(&self, found: PortfolioAnswer<Q>) -> Answer {
        let PortfolioAnswer { answer, others } = found;
        let found: Answer<Q> = answer.answer(others, self.task, self.start);
        let outcome =
            |outcome: Outcome<Q>| Outcome::<Safety>::new(outcome.engine, outcome.verdict, outcome.stats);
        let confirmed =
            found.confirmed.map(|Confirmed { system, replay, .. }| Confirmed { system, replay, shows: () });
        Answer {
            outcome: outcome(found.outcome),
            others: found.others.into_iter().map(outcome).collect(),
            confirmed,
            model: found.model,
            interlocked: found.interlocked,
            threads: found.threads,
            seconds: found.seconds,
            peak_memory_bytes: found.peak_memory_bytes,
            proof: None,
            ranking: None,
            finish: None,
            domains: Vec::new(),
            modulus: None,
            deadlocks: Deadlocks::IfStated,
            certified: None,
            progress: None,
            reach: None,
            shortest: None,
            also_under_sc: None,
            addresses: None,
        }
    }

    /// Finds a proof of a positive answer and, if that is wanted, checks it with the code that checks
    /// certificates.
    fn prove(&mut self, deadlocks: bool) -> Result<(), AskError> {
        if self.answer.outcome.verdict != Verdict::Holds {
            return Ok(());
        }
        let engine = self.answer.outcome.engine;
        let limits = self.limits;
        let found = match self.task.is_parameterized() {
            true => Err(Refusal::Unsuited(
                "with any number of processes there are infinitely many states".to_owned(),
            )),
            false => match palisade_explore::ranking(self.task, deadlocks, limits) {
                Ok(Some(ranking)) => Ok(ranking),
                Ok(None) => {
                    let what = "all of them lead to what must stay possible, but not in the proof".to_owned();
                    return Err(Bug::Contradiction { engine, what }.into());
                }
                Err(what) => Err(Refusal::Exhausted(what)),
            },
        };
        if !self.options.certify {
            // Without the ranking there is nothing to be kept.
            match found {
                Ok(ranking) => self.answer.ranking = Some(ranking),
                Err(_) => self.answer.proof = None,
            }
            return Ok(());
        }
        let verify = |ranking: Ranking| {
            let checked = limits.within(|| verify_ranking(self.task, deadlocks, &ranking, limits));
            checked.unwrap_or_else(|what| Err(Refusal::Exhausted(what))).map(|_| ranking)
        };
        let checked = found.and_then(verify);
        let unchecked = |what: &str| {
            Reason::Observed(format!("engine `{engine}` says `safe`, but {what} that nothing gets stuck"))
        };
        let why = match checked {
            Ok(ranking) => {
                self.answer.ranking = Some(ranking);
                return Ok(());
            }
            Err(Refusal::Exhausted(what)) => {
                Reason::exhausted(what, Some(unchecked("it was not checked to the end")))
            }
            Err(Refusal::Unsuited(_)) => unchecked("it cannot be checked"),
            Err(refusal) => {
                return Err(Bug::ProofRefused { engine, refusal: Box::new(refusal) }.into());
            }
        };
        self.answer.outcome.verdict = Verdict::Unknown(why);
        (self.answer.proof, self.answer.certified) = (None, None);
        Ok(())
    }

    /// Checks a positive answer with the code that checks certificates.
    fn certify(
        &mut self,
        what: &str,
        verify: impl FnOnce(&Task<'_>, &Limits) -> Result<Summary, Refusal>,
    ) -> Result<(), AskError> {
        if self.answer.outcome.verdict != Verdict::Holds {
            return Ok(());
        }
        let engine = self.answer.outcome.engine;
        let limits = self.limits;
        let checked = limits.within(|| verify(self.task, limits));
        let unchecked =
            |but: &str| Reason::Observed(format!("engine `{engine}` says `safe`, but {but} {what}"));
        let why = match checked.unwrap_or_else(|what| Err(Refusal::Exhausted(what))) {
            Ok(_) => return Ok(()),
            Err(Refusal::Exhausted(what)) => {
                Reason::exhausted(what, Some(unchecked("it was not checked to the end")))
            }
            Err(Refusal::Unsuited(_)) => unchecked("it cannot be checked"),
            Err(refusal) => {
                return Err(Bug::ProofRefused { engine, refusal: Box::new(refusal) }.into());
            }
        };
        self.answer.outcome.verdict = Verdict::Unknown(why);
        (self.answer.proof, self.answer.certified) = (None, None);
        Ok(())
    }

    /// A short look for a stuck state in a program that waits, even if this was not asked for.
    fn look_for_stuck_state(&mut self) -> Result<(), AskError> {
        if self.answer.outcome.verdict != Verdict::Holds || !waits(self.task.program) {
            return Ok(());
        }
        let limits = self.limits.clone().at_most_work(PROBE_BUDGET).with_jobs(1);
        let explicit = EngineChoice::Named(DeadlockFreedom::engines()[0].name().to_owned());
        let found = self.answer::<DeadlockFreedom>(&explicit, &limits)?;
        self.note.stuck_state_seen = matches!(found.outcome.verdict, Verdict::Violated(_));
        Ok(())
    }
}

/// Why deadlocks and goals of a program are not decided, if they are not.
///
/// Some waits are written as one step that is possible only under a condition, and lowered as several steps:
/// 1. An `atomic` section with an `assume` or with assignments to a `blocking` domain, such as a locked block
///    of `.rmm`. The section opens before the condition is known.
/// 2. An alternative of a `choose` with a fence or an `assume` before its `await`, such as a synchronised
///    read at the beginning of an alternative of `either`. The choice is made before the condition is known.
///
/// In both cases a run that stops there need not be a run that gets stuck.
pub(crate) fn undecided(program: &Program) -> Option<Reason> {
    let mut blocks = bodies(program);
    let blocking = blocks.iter().any(|body| any(body, declares_blocking))
        || program.shared.iter().any(|shared| shared.ty.outside == Outside::Block);
    let assumes = |kind: &StmtKind| matches!(kind, StmtKind::Assume(_));
    while let Some(block) = blocks.pop() {
        for stmt in block {
            let why = match &stmt.kind {
                StmtKind::Atomic(body) if blocking || any(body, assumes) => "inside an `atomic` section",
                StmtKind::Choose(alternatives) if alternatives.iter().any(|body| commits_early(body)) => {
                    "after a fence or an `assume` at the beginning of an alternative"
                }
                _ => {
                    blocks.extend(stmt.kind.blocks().into_iter().map(Vec::as_slice));
                    continue;
                }
            };
            let why = format!("a process can wait {why}: whether it gets stuck there is not decided");
            return Some(Reason::Unsupported(why));
        }
    }
    None
}

/// Whether a wait follows a fence or an `assume` at the beginning of a block.
fn commits_early(block: &[Stmt]) -> bool {
    let mut first = Vec::new();
    let mut open: Vec<&Stmt> = block.iter().rev().collect();
    while let Some(stmt) = open.pop() {
        match &stmt.kind {
            StmtKind::Block(body) => open.extend(body.iter().rev()),
            StmtKind::Fence | StmtKind::StoreFence | StmtKind::Assume(_) => first.push(stmt),
            kind => return !first.is_empty() && matches!(kind, StmtKind::Await(_)),
        }
    }
    false
}

/// Whether some statement in a block, at any depth, is of this kind.
fn any(block: &[Stmt], is_one: impl Fn(&StmtKind) -> bool) -> bool {
    let mut blocks = vec![block];
    while let Some(block) = blocks.pop() {
        if block.iter().any(|stmt| is_one(&stmt.kind)) {
            return true;
        }
        blocks.extend(block.iter().flat_map(|stmt| stmt.kind.blocks()).map(Vec::as_slice));
    }
    false
}

/// Whether a statement declares a register whose process waits instead of leaving the domain.
fn declares_blocking(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Let { ty, .. } if ty.outside == Outside::Block)
}

/// The bodies of templates and procedures.
fn bodies(program: &Program) -> Vec<&[Stmt]> {
    let bodies = program.templates.iter().map(|template| &template.body);
    bodies.chain(program.procedures.iter().map(|procedure| &procedure.body)).map(Vec::as_slice).collect()
}

/// Whether a process can wait: for a condition, or because of a `blocking` domain.
fn waits(program: &Program) -> bool {
    let waits = |kind: &StmtKind| match kind {
        StmtKind::Await(_) | StmtKind::Assume(_) => true,
        StmtKind::While { body, .. } => body.is_empty(),
        kind => declares_blocking(kind),
    };
    program.shared.iter().any(|shared| shared.ty.outside == Outside::Block)
        || bodies(program).into_iter().any(|body| any(body, waits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;
    use palisade_syntax::Language;

    fn check(language: Language, text: &str, expected: Option<&str>) {
        let program = palisade_syntax::parse(language, &Source::new("p", text)).expect("it is valid").program;
        let why = undecided(&program).map(|reason| reason.to_string());
        assert_eq!(why.is_some(), expected.is_some(), "{text}: {why:?}");
        assert!(expected.is_none_or(|part| why.is_some_and(|why| why.contains(part))), "{text}");
    }

    #[test]
    fn waits_that_are_lowered_as_several_steps() {
        let pal = |body: &str, expected| {
            let text = format!("shared x, y: bool; process P {{ {body} }} process Q {{ x = true; }}");
            check(Language::Pal, &text, expected);
        };
        pal("await x;", None);
        pal("assume(x);", None);
        pal("atomic { await x; }", None);
        pal("atomic { if y { assume(x); } }", Some("inside an `atomic` section"));
        pal("choose { await x; } or { await y; }", None);
        pal("choose { y = true; await x; } or { await y; }", None);
        pal("choose { fence; await x; } or { await y; }", Some("beginning of an alternative"));
        pal(
            "loop { choose { { assume(y); } await x; } or { await y; } }",
            Some("beginning of an alternative"),
        );
    }
}
