//! Several engines, one answer.
//!
//! *How.*
//!
//! 1. Most questions are small. So every engine that is made for programs like this one first probes the
//!    question, one engine after the other. Which engine answers a small question then does not depend on
//!    timing.
//! 2. Larger questions go to all engines side by side ([`Race`]). The first engine that knows the answer
//!    stops the others.
//! 3. An engine that had to give up its memory for others tries once more when it has the memory to itself.
//!
//! So whatever one engine decides alone is decided here.
//!
//! *What engines share* is in the [`Analysis`]:
//!
//! - running forms;
//! - automata with their value invariants;
//! - bounds, which become part of the answer if no engine knows more;
//! - robustness. As soon as one engine finds the program robust, a question that [allows
//!   it](Ask::USES_ROBUSTNESS) is asked under SC instead. There is less to search under SC, and more engines
//!   apply. A run under SC is a run in which no store waits.
//!
//! *Proofs.* If a proof is wanted, a positive answer without one does not count. If the proof is to be
//! checked, the answer does not count until the check is done, because a proof may be found quickly and take
//! long to check. Robustness does not help in either case, because proofs are about the memory model.

use crate::ask::{EngineAnswer, ask, confirm, not_replayed};
use crate::error::AskError;
use crate::prove::disagreement;
use crate::question::{Ask, Wanted};
use palisade_engine::{
    Analysis, Engine, Exhausted, Limits, Note, Outcome, Progress, Proofs, Race, Reason, Stats, Suitability,
    Verdict,
};
use palisade_memory::Model;
use palisade_program::lower_with;
use palisade_trace::undelayed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A limit on work (in states or configurations) and on time.
type ProbeLimit = (u64, Duration);

/// The limit for an engine that probes the question.
const PROBE: ProbeLimit = (1 << 10, Duration::from_millis(100));
/// The same if only one engine is made for the program. It may use all jobs, which it may not do side by side
/// with others.
const ONLY_PROBE: ProbeLimit = (1 << 20, Duration::from_secs(2));
/// The same if a proof is wanted, for engines whose proofs are checked by visiting all states. Visiting
/// states is quick, and there may be many more of them than the engine looks at.
const ALL_STATES_PROBE: ProbeLimit = (1 << 12, Duration::from_millis(100));
/// If a proof is wanted, only the engines that give proofs run side by side for this long. Then all others
/// join.
const PROVERS_FIRST: Duration = Duration::from_millis(100);
/// The share of computing time of an engine made for the program. A reluctant engine has 1.
const EAGER_WEIGHT: u32 = 4;
/// Engines recurse over programs as deeply as the main thread does.
const STACK_BYTES: usize = 16 << 20;

/// The answer, and what the other engines had found by then.
#[derive(Debug)]
pub(crate) struct PortfolioAnswer<Q: Ask> {
    pub(crate) answer: EngineAnswer<Q>,
    pub(crate) others: Vec<Outcome<Q>>,
}

/// The engines to ask, the most promising first.
pub(crate) type Suited<'e, Q> = dyn Fn(&Analysis<'_>) -> Vec<&'e dyn Engine<Q>> + 'e;

/// Asks the engines until one knows the answer or the limits are reached. If no engine knows, the first one
/// says why. A bug in any engine is reported, whatever the others answer.
pub(crate) fn ask_all<Q: Ask>(
    suited: &Suited<'_, Q>,
    analysis: &Analysis<'_>,
    limits: &Limits,
    wanted: Wanted,
) -> Result<PortfolioAnswer<Q>, AskError> {
    let uses_robustness = Q::USES_ROBUSTNESS && wanted == Wanted::Answer;
    let analysis = if uses_robustness { analysis.clone().using_robustness() } else { analysis.clone() };
    let result = ask_suited(suited, &analysis, limits, wanted)?;
    let outcomes = || std::iter::once(&result.answer.outcome).chain(&result.others);
    let breaks = |outcome: &&Outcome<Q>| {
        matches!(outcome.verdict, Verdict::Violated(_) | Verdict::Unknown(Reason::Unshown(_)))
    };
    match (outcomes().find(|outcome| outcome.verdict == Verdict::Holds), outcomes().find(breaks)) {
        (Some(holds), Some(other)) => Err(disagreement::<Q>(holds.engine, other.engine)),
        _ => Ok(result),
    }
}

fn ask_suited<Q: Ask>(
    suited: &Suited<'_, Q>,
    analysis: &Analysis<'_>,
    limits: &Limits,
    wanted: Wanted,
) -> Result<PortfolioAnswer<Q>, AskError> {
    let proves = wanted > Wanted::Answer;
    let suited_and_eager = limits.within(|| {
        let engines = suited(analysis);
        // A single engine is asked in any case.
        let eager = match engines.as_slice() {
            [] | [_] => Vec::new(),
            engines => engines.iter().map(|engine| engine.suits(analysis) > Suitability::Reluctant).collect(),
        };
        (engines, eager)
    });
    let (engines, mut eager): (_, Vec<bool>) = match suited_and_eager {
        Ok(suited) => suited,
        Err(what) => return Ok(PortfolioAnswer::nothing(Reason::Exhausted(what))),
    };
    match engines.as_slice() {
        [] => Ok(PortfolioAnswer::nothing(unsuited())),
        [engine] => {
            let lane = Lane::new(0, engine.name(), limits);
            let answer = ask(*engine, analysis, &lane.limits(limits), limits, wanted)?;
            Ok(PortfolioAnswer { answer, others: Vec::new() })
        }
        _ => {
            // An engine with a checkable proof always takes part.
            let argues = engines.iter().position(|engine| proves && engine.proofs() == Proofs::Argued);
            argues.into_iter().for_each(|seat| eager[seat] = true);
            let weight = |(engine, eager): (&&dyn Engine<Q>, &bool)| match proves {
                true if engine.proofs() > Proofs::None => EAGER_WEIGHT,
                false if *eager => EAGER_WEIGHT,
                _ => 1,
            };
            let weights: Vec<u32> = engines.iter().zip(&eager).map(weight).collect();
            let race = Race::new(&weights, limits.jobs(), analysis.facts().robust_flag());
            let portfolio = Portfolio { engines: &engines, eager, analysis, limits, wanted, race: &race };
            match portfolio.run()? {
                Course::Answered(result) => Ok(*result),
                Course::Robust(before) => {
                    let under_sc = ask_all(suited, &analysis.under(Model::Sc), limits, wanted)?;
                    under_sc.of_robust(analysis, before, limits)
                }
            }
        }
    }
}

fn unsuited() -> Reason {
    Reason::Unsupported("no engine can handle this program".to_owned())
}

/// How asking ends.
enum Course<Q: Ask> {
    Answered(Box<PortfolioAnswer<Q>>),
    /// The program is robust, so the question is asked under SC. Holds what the engines had answered before
    /// that was known.
    Robust(Vec<Option<EngineAnswer<Q>>>),
}

impl<Q: Ask> PortfolioAnswer<Q> {
    pub(crate) fn nothing(why: Reason) -> PortfolioAnswer<Q> {
        PortfolioAnswer { answer: EngineAnswer::nothing(why), others: Vec::new() }
    }

    /// Turns answers about the program under SC into answers about a memory model under which it is robust.
    /// Adds the answers from before.
    fn of_robust(
        self,
        analysis: &Analysis<'_>,
        before: Vec<Option<EngineAnswer<Q>>>,
        limits: &Limits,
    ) -> Result<PortfolioAnswer<Q>, AskError> {
        let PortfolioAnswer { answer, mut others } = self;
        let answer = answer.of_robust(analysis, limits)?;
        others.iter_mut().for_each(outcome_of_robust);
        for EngineAnswer { outcome, .. } in before.into_iter().flatten() {
            let again = |other: &Outcome<Q>| other.engine == outcome.engine;
            if !again(&answer.outcome) && !others.iter().any(again) {
                others.push(outcome);
            }
        }
        Ok(PortfolioAnswer { answer, others })
    }
}

/// Turns an outcome under SC into one about a memory model under which the program is robust. Runs then do
/// the same under SC, but not in the same rounds.
fn outcome_of_robust<Q: Ask>(outcome: &mut Outcome<Q>) {
    if let Verdict::Unknown(reason) = &mut outcome.verdict {
        let by_rounds = |bound: &Reason| {
            !matches!(bound, Reason::InstanceBound(_) | Reason::CallDepth(_) | Reason::Spawned(_))
        };
        if reason.bounds().iter().any(by_rounds) {
            *reason = reason.clone().about("robust, and under SC");
        }
    }
}

impl<Q: Ask> EngineAnswer<Q> {
    /// Turns an answer about the program under SC into one about a memory model under which it is robust.
    fn of_robust(mut self, analysis: &Analysis<'_>, limits: &Limits) -> Result<EngineAnswer<Q>, AskError> {
        outcome_of_robust(&mut self.outcome);
        if let Verdict::Violated(witness) = &mut self.outcome.verdict {
            let undelayed = limits.within(|| {
                let waits = analysis.task.options.waits;
                let system = lower_with(analysis.task.program, witness.instantiation, waits);
                let run = undelayed(analysis.machine(&system), &witness.run);
                run.expect("a run under SC is one with stores that do not wait")
            });
            match undelayed {
                Ok(run) => witness.run = run,
                Err(what) => self.outcome.verdict = not_replayed::<Q>(self.outcome.engine, what),
            }
            self.confirmed = confirm(analysis, &mut self.outcome, limits)?;
        }
        Ok(self)
    }

    /// If the engine ran out of something, records that it was this.
    fn ran_out_of(&mut self, what: Exhausted) {
        if let Verdict::Unknown(Reason::Exhausted(ran_out) | Reason::Partly(ran_out, _)) =
            &mut self.outcome.verdict
        {
            *ran_out = what;
        }
    }

    fn ran_out(&self) -> Option<Exhausted> {
        self.outcome.verdict.reason()?.what_ran_out()
    }
}

/// An engine with a shorter run than this answer, if it has a run: of two runs, the shorter one is easier
/// to understand.
fn with_shorter_run<Q: Ask>(answer: &EngineAnswer<Q>, others: &[Option<EngineAnswer<Q>>]) -> Option<usize> {
    let steps =
        |answer: &EngineAnswer<Q>| answer.outcome.verdict.witness().map(|witness| witness.run.steps.len());
    let own = steps(answer)?;
    let others = others.iter().enumerate().filter_map(|(seat, other)| Some((steps(other.as_ref()?)?, seat)));
    others.min().filter(|(steps, _)| *steps < own).map(|(_, seat)| seat)
}

/// Two or more engines on one question.
struct Portfolio<'q, Q: Ask> {
    engines: &'q [&'q dyn Engine<Q>],
    /// Which of them probe the question.
    eager: Vec<bool>,
    analysis: &'q Analysis<'q>,
    limits: &'q Limits,
    wanted: Wanted,
    race: &'q Race,
}

impl<Q: Ask> Portfolio<'_, Q> {
    fn run(&self) -> Result<Course<Q>, AskError> {
        let seats = self.engines.len();
        let mut answers: Vec<Option<EngineAnswer<Q>>> = (0..seats).map(|_| None).collect();
        let mut open = Vec::new();
        for seat in (0..seats).filter(|&seat| self.eager[seat]) {
            let answer = self.ask(seat, &self.probe(seat))?;
            if self.is_answer(&answer) {
                return Ok(self.answered(answers, seat, answer));
            }
            if let Err(what) = self.limits.check(0) {
                answers[seat] = Some(answer);
                // It was not the probe's limit that ran out.
                answers.iter_mut().flatten().for_each(|answer| answer.ran_out_of(what));
                return Ok(self.unanswered(answers));
            }
            if answer.ran_out().is_some() {
                open.push(seat);
            }
            answers[seat] = Some(answer);
            if self.analysis.facts().is_robust() {
                return Ok(Course::Robust(answers));
            }
        }
        let mut proving = open.clone();
        proving.retain(|&seat| self.proves() && self.engines[seat].proofs() > Proofs::None);
        if proving.len() > 1 {
            let limits = self.limits.clone().at_most(PROVERS_FIRST);
            if let Some((seat, answer)) = self.side_by_side(&proving, &limits, &mut answers)? {
                return Ok(self.answered(answers, seat, answer));
            }
        }
        open.extend((0..seats).filter(|&seat| !self.eager[seat]));
        if let [seat] = *open.as_slice() {
            let answer = self.ask(seat, self.limits)?;
            if self.is_answer(&answer) {
                return Ok(self.answered(answers, seat, answer));
            }
            answers[seat] = Some(answer);
            if self.analysis.facts().is_robust() {
                return Ok(Course::Robust(answers));
            }
            return Ok(self.unanswered(answers));
        }
        if let Some((seat, answer)) = self.side_by_side(&open, self.limits, &mut answers)? {
            return Ok(self.answered(answers, seat, answer));
        }
        if self.analysis.facts().is_robust() {
            return Ok(Course::Robust(answers));
        }
        for seat in open.into_iter().filter(|&seat| self.race.was_evicted(seat)) {
            if self.limits.check(0).is_err() {
                break;
            }
            let answer = self.ask(seat, self.limits)?;
            if self.is_answer(&answer) {
                return Ok(self.answered(answers, seat, answer));
            }
            answers[seat] = Some(answer);
        }
        Ok(self.unanswered(answers))
    }

    fn probe(&self, seat: usize) -> Limits {
        let limits = self.race.limits(seat, self.limits);
        let (limits, (work, time)) = match self.eager.iter().filter(|eager| **eager).count() {
            _ if self.proves() && self.engines[seat].proofs() == Proofs::ByVisitingAll => {
                (limits, ALL_STATES_PROBE)
            }
            1 if !self.proves() => (limits.with_jobs(self.limits.jobs()), ONLY_PROBE),
            _ => (limits, PROBE),
        };
        limits.with_work(work).at_most(time)
    }

    /// Runs all of these engines at once. Returns the answer of the first that knows it, and keeps what the
    /// others say.
    fn side_by_side(
        &self,
        open: &[usize],
        limits: &Limits,
        answers: &mut [Option<EngineAnswer<Q>>],
    ) -> Result<Option<(usize, EngineAnswer<Q>)>, AskError> {
        let first = Mutex::new(None);
        let results: Vec<(usize, Result<EngineAnswer<Q>, AskError>)> = std::thread::scope(|scope| {
            let runners: Vec<_> = open
                .iter()
                .map(|&seat| {
                    let first = &first;
                    let run = move || {
                        // This also happens if the engine panics: nothing may wait for it.
                        let _finish = Finish { race: self.race, seat, first };
                        let _entered = self.race.enter(seat);
                        let answer = self.ask(seat, &self.race.limits(seat, limits));
                        if !answer.as_ref().is_ok_and(|answer| !self.is_answer(answer)) {
                            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(seat);
                        }
                        (seat, answer)
                    };
                    std::thread::Builder::new()
                        .stack_size(STACK_BYTES)
                        .spawn_scoped(scope, run)
                        .expect("the host lets a process have a thread per engine")
                })
                .collect();
            let ended = runners.into_iter().map(|runner| runner.join());
            // All engines have to end before a panic continues.
            let ended: Vec<_> = ended.collect();
            ended
                .into_iter()
                .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut winner = None;
        for (seat, answer) in results {
            // A bug in one engine is reported, whatever the others answer.
            let answer = answer?;
            match Some(seat) == first {
                true => winner = Some((seat, answer)),
                false => answers[seat] = Some(answer),
            }
        }
        if let Some((seat, answer)) = &mut winner
            && let Some(shorter) = with_shorter_run(answer, answers)
        {
            std::mem::swap(answer, answers[shorter].as_mut().expect("it has a run"));
            answers.swap(*seat, shorter);
            *seat = shorter;
        }
        Ok(winner)
    }

    fn ask(&self, seat: usize, limits: &Limits) -> Result<EngineAnswer<Q>, AskError> {
        let engine = self.engines[seat];
        let lane = Lane::new(seat, engine.name(), self.limits);
        // An all-states proof counts only once every state has been visited.
        let wanted = match engine.proofs() {
            Proofs::ByVisitingAll if self.proves() => Wanted::Checked,
            _ => self.wanted,
        };
        let answer = ask(engine, self.analysis, &lane.limits(limits), self.limits, wanted)?;
        if let Some(bound) = established(&answer.outcome).filter(|reason| reason.is_bound()) {
            self.analysis.facts().learn_bound(engine.name(), bound.clone());
        }
        Ok(answer)
    }

    fn proves(&self) -> bool {
        self.wanted > Wanted::Answer
    }

    /// Whether this answers the question.
    fn is_answer(&self, answer: &EngineAnswer<Q>) -> bool {
        match answer.outcome.verdict {
            Verdict::Holds => !self.proves() || answer.proof.is_some(),
            Verdict::Violated(_) => true,
            Verdict::Unknown(_) => false,
        }
    }

    /// The answer of one engine, with what the stopped engines had found.
    fn answered(
        &self,
        answers: Vec<Option<EngineAnswer<Q>>>,
        seat: usize,
        answer: EngineAnswer<Q>,
    ) -> Course<Q> {
        let others = answers.into_iter().enumerate().filter(|(other, _)| *other != seat);
        let others = others.filter_map(|(_, answer)| Some(answer?.outcome)).collect();
        Course::Answered(Box::new(PortfolioAnswer { answer, others }))
    }

    /// No engine has an answer. A positive answer without a proof is better than nothing. Otherwise, the
    /// first engine that would have continued gives the reason. If there is none, the first engine that has
    /// any reason does.
    fn unanswered(&self, answers: Vec<Option<EngineAnswer<Q>>>) -> Course<Q> {
        let mut answers: Vec<EngineAnswer<Q>> = answers.into_iter().flatten().collect();
        let would_continue = |answer: &EngineAnswer<Q>| match answer.ran_out() {
            _ if answer.outcome.verdict == Verdict::Holds => -1,
            Some(Exhausted::Time(_) | Exhausted::Memory(_) | Exhausted::Stopped) => 0,
            None => 1,
            Some(Exhausted::Work(_)) => 2,
        };
        let Some(best) = (0..answers.len()).min_by_key(|&index| would_continue(&answers[index])) else {
            return Course::Answered(Box::new(PortfolioAnswer::nothing(unsuited())));
        };
        let mut answer = answers.remove(best);
        // A bound that another engine has established is worth more than "time is up".
        let bound = || answers.iter().find_map(|other| self.analysis.facts().bound_of(other.outcome.engine));
        let growing = || {
            let mut reasons = answers.iter().filter_map(|other| established(&other.outcome));
            reasons.find(|reason| matches!(reason, Reason::Growing { .. })).cloned()
        };
        if let Verdict::Unknown(Reason::Exhausted(what)) = answer.outcome.verdict
            && let Some(reached) = bound().or_else(growing)
        {
            answer.outcome.verdict = Verdict::Unknown(Reason::exhausted(what, Some(reached)));
        }
        let others = answers.into_iter().map(|answer| answer.outcome).collect();
        Course::Answered(Box::new(PortfolioAnswer { answer, others }))
    }
}

/// What an engine has established without answering the question.
fn established<Q: Ask>(outcome: &Outcome<Q>) -> Option<&Reason> {
    match outcome.verdict.reason()? {
        Reason::Partly(_, reached) => Some(reached),
        reason => Some(reason),
    }
}

/// Ends the race when the seat has an answer, or when no answer is possible any more.
struct Finish<'r> {
    race: &'r Race,
    seat: usize,
    first: &'r Mutex<Option<usize>>,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let first = *self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first == Some(self.seat) || std::thread::panicking() {
            self.race.finish();
        }
    }
}

/// Reports under an engine's name, from its start to its end.
struct Lane {
    shared: Arc<LaneProgress>,
}

struct LaneProgress {
    index: usize,
    engine: &'static str,
    to: Arc<dyn Progress>,
}

impl Lane {
    fn new(index: usize, engine: &'static str, limits: &Limits) -> Lane {
        let shared = Arc::new(LaneProgress { index, engine, to: limits.progress().clone() });
        shared.report("starting", &Stats::new());
        Lane { shared }
    }

    /// The limits, with reports under the engine's name.
    fn limits(&self, limits: &Limits) -> Limits {
        limits.clone().with_progress(self.shared.clone())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.shared.to.ended(self.shared.index);
    }
}

impl Progress for LaneProgress {
    fn report(&self, doing: &str, stats: &Stats) {
        self.to.report_lane(self.index, self.engine, doing, stats);
    }

    fn note(&self, note: &Note) {
        let text = format!("{}: {}", self.engine, note.text);
        self.to.note(&Note { text, places: note.places.clone() });
    }
}

#[cfg(test)]
pub(crate) mod tests;
