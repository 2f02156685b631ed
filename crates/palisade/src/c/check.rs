//! Questions about programs that may need more room than they have.
//!
//! *Guarantee.*
//! 1. A run that exceeds the room never becomes an answer.
//! 2. `safe`, `robust` and the like are only answered if no run exceeds the room.

use super::any::{OfSource, check_threads_of_source};
use super::exit::with_warnings;
use super::finish::with_finish;
use super::limits::{Limit, Room, has_limits, only_limits};
use crate::answer::Answer;
use crate::check::{CheckOptions, check, check_states};
use crate::error::AskError;
use crate::progress::Deadlocks;
use crate::question::Ask;
use crate::robust::{RobustOptions, robust, triangular};
use crate::{EngineChoice, Input};
use palisade_engine::{Limits, Outcome, Reason, Robustness, Safety, Threads, TriangularRaces, Verdict};
use palisade_memory::Model;
use palisade_trace::Evidence;
use std::time::Instant;

/// Checks a program within limits, like [`check`]. A C program gets as much room as it needs, up to a maximum.
///
/// Where a run exceeds the room, the answer is `unsafe` if another run breaks the program, and `unknown`
/// otherwise. If it is safe, the next question is whether it can always finish.
pub fn check_input(input: &mut Input, options: &CheckOptions, limits: &Limits) -> Result<Answer, AskError> {
    let start = Instant::now();
    // A C program itself says how many threads it has.
    let options = &match &input.c {
        Some(_) => CheckOptions { threads: Threads::Declared, ..options.clone() },
        None => options.clone(),
    };
    // For C programs, questions about their end are asked in another way.
    let about_states = match &input.c {
        Some(_) => CheckOptions { deadlocks: Deadlocks::Elsewhere, ..options.clone() },
        None => options.clone(),
    };
    let of_source = match check_threads_of_source(input, options, limits)? {
        OfSource::Wrong(answer) => return Ok(*answer),
        OfSource::Right(known) => known,
    };
    loop {
        let mut answer = check(&input.program, &about_states, limits)?;
        let Some((limit, room)) = exceeded(&answer, input) else {
            if answer.outcome.verdict == Verdict::Holds {
                of_source.into_iter().for_each(|known| answer.add_note(known));
            }
            let mut answer = with_finish(input, answer, options, start, limits)?;
            with_warnings(input, &mut answer, options, limits)?;
            return Ok(answer.about(input, start));
        };
        // A bug is worth more than extra room.
        let mut within = input.clone();
        within.leave_out_runs_beyond_limits();
        let second = check_states(&within.program, options, limits)?;
        if second.outcome.verdict.witness().is_some() && exceeded(&second, &within).is_none() {
            *input = within;
            return Ok(second.about(input, start));
        }
        if let Some(more) = limit.raised(room).filter(|_| may_grow(input, limit))
            && input.translate_again(more).is_ok()
        {
            continue;
        }
        let mut why = answer.describe_limit(limit, room, input);
        if second.outcome.verdict == Verdict::Holds {
            why += " (no run within this limit breaks the program)";
        }
        return Ok(unknown(answer, Reason::Observed(why)).about(input, start));
    }
}

/// Decides within limits whether a program is robust, like [`robust`]. A C program gets as much room as it
/// needs, up to a maximum.
pub fn robust_input(
    input: &mut Input,
    options: &RobustOptions,
    limits: &Limits,
) -> Result<Answer<Robustness>, AskError> {
    let start = Instant::now();
    let threads = options.threads;
    let unsettled = settle(input, Model::Sc, threads, limits)?;
    let answer = robust(&input.program, options, limits)?;
    Ok(unless(answer, unsettled).about(input, start))
}

/// Decides within limits whether a program has triangular races, like [`triangular`]. A C program gets as much
/// room as it needs, up to a maximum.
pub fn triangular_input(
    input: &mut Input,
    threads: Threads,
    limits: &Limits,
) -> Result<Answer<TriangularRaces>, AskError> {
    let start = Instant::now();
    let unsettled = settle(input, Model::Sc, threads, limits)?;
    let answer = triangular(&input.program, threads, limits)?;
    Ok(unless(answer, unsettled).about(input, start))
}

/// Why it is not certain that all runs of a program are within its room.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unsettled {
    /// One is not, and there cannot be more room.
    Exceeded(Reason),
    /// It is not known.
    Unknown(Reason),
}

impl Unsettled {
    /// The reason.
    pub fn reason(self) -> Reason {
        match self {
            Unsettled::Exceeded(reason) | Unsettled::Unknown(reason) => reason,
        }
    }
}

/// Gives a C program as much room as it needs, up to a maximum. Without `Unsettled`, no run exceeds it.
///
/// A robust program exceeds it under the model if and only if it does so under SC.
pub fn settle(
    input: &mut Input,
    model: Model,
    threads: Threads,
    limits: &Limits,
) -> Result<Option<Unsettled>, AskError> {
    if input.c.is_none() {
        return Ok(None);
    }
    let options = CheckOptions { model, threads, engine: EngineChoice::Auto, ..CheckOptions::default() };
    loop {
        // Data races are not the question, and the program without plain accesses has the same runs.
        let answer = check_states(&only_limits(&input.program).without_plain(), &options, limits)?;
        let unsettled = match (&answer.outcome.verdict, exceeded(&answer, input)) {
            (Verdict::Holds, _) => return Ok(None),
            (Verdict::Unknown(_), _) if !has_limits(&input.program) => return Ok(None),
            (Verdict::Unknown(reason), _) => Unsettled::Unknown(reason.clone()),
            (Verdict::Violated(_), None) => Unsettled::Unknown(Reason::Observed(
                "the program fails by itself: run `palisade check`, and fix that first".to_owned(),
            )),
            (Verdict::Violated(_), Some((limit, room))) => {
                if let Some(more) = limit.raised(room).filter(|_| may_grow(input, limit))
                    && input.translate_again(more).is_ok()
                {
                    continue;
                }
                Unsettled::Exceeded(Reason::Observed(answer.describe_limit(limit, room, input)))
            }
        };
        return Ok(Some(unsettled));
    }
}

/// The limit that the run of an answer exceeds, if it does.
fn exceeded(answer: &Answer, input: &Input) -> Option<(Limit, Room)> {
    let c = input.c.as_ref()?;
    let violation = answer.confirmed.as_ref()?.replay.violation?;
    Some((Limit::of(violation, &c.words)?, c.room))
}

/// Whether the user leaves the amount of room to us.
fn may_grow(input: &Input, limit: Limit) -> bool {
    let Some(c) = &input.c else { return false };
    let options = &c.recipe.options;
    match limit {
        Limit::MainThreads | Limit::NestedThreads => options.slots.is_none(),
        Limit::Heap => options.heap.is_none(),
        Limit::Size | Limit::Value | Limit::Format => false,
    }
}

/// The answer without its verdict.
pub(super) fn unknown<Q: Ask>(mut answer: Answer<Q>, reason: Reason) -> Answer<Q> {
    let outcome = &answer.outcome;
    let verdict = Verdict::Unknown(reason);
    answer.outcome = Outcome::new(outcome.engine, verdict, outcome.stats.clone());
    (answer.confirmed, answer.proof, answer.certified, answer.progress) = (None, None, None, None);
    answer
}

/// A positive answer counts only if no run exceeds the room.
fn unless<Q: Ask>(answer: Answer<Q>, unsettled: Option<Unsettled>) -> Answer<Q> {
    match unsettled {
        Some(unsettled) if answer.outcome.verdict == Verdict::Holds => unknown(answer, unsettled.reason()),
        _ => answer,
    }
}

impl<Q: Ask> Answer<Q> {
    /// The answer, with what addresses mean in the program.
    fn about(mut self, input: &Input, start: Instant) -> Answer<Q> {
        if let Some(c) = &input.c {
            self.addresses = Some(c.words.clone());
            self.seconds = start.elapsed().as_secs_f64();
        }
        self
    }
}

impl Answer<Safety> {
    /// The limit that the run exceeds, in words.
    fn describe_limit(&self, limit: Limit, room: Room, input: &Input) -> String {
        let Some(evidence) = self.evidence(&input.source) else { return limit.describe(room, "", "") };
        let evidence = Evidence { addresses: input.addresses(), ..evidence };
        let place = palisade_report::last_place(&evidence).map(|place| format!(" at {place}"));
        let what = palisade_report::last_fault(&evidence).unwrap_or_default();
        limit.describe(room, &what, &place.unwrap_or_default())
    }

    /// Whether the run of the answer exceeds the room of a C program.
    pub(crate) fn exceeds_limits(&self, input: &Input) -> bool {
        exceeded(self, input).is_some()
    }
}
