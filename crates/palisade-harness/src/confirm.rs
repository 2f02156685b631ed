//! Repeats every finding from its schedule before it is reported.
//!
//! *Problem.* Executions share processes, run ahead of time on other cores, and belong to searches that know what
//! earlier executions have shown. A finding is worth reporting only if its schedule shows it again, since that is all
//! that a user gets.
//!
//! *How.* For every execution that was the first to show a finding, the program is started anew, and its first
//! execution takes the turns of that schedule, as `palisade run --replay` would. The first execution of a process is
//! never one that was undone (`runtime/resident.c`). What it does not show is taken out of the findings and listed
//! in [`Findings::unrepeated`]: either the program does not depend on its schedule alone, or Palisade is wrong about
//! it.
//!
//! *Guarantee.* After [`Session::confirm`], every failure, race and violation among the findings has been shown at
//! least twice, except if [`Occurrences::is_repeated`] says that there was no time for that. Failures which only say
//! that an execution could not be followed to its end are not findings and are left alone.

use crate::allowance::Allowance;
use crate::execution::Execution;
use crate::failures::name_failure;
use crate::findings::{Findings, First, NamedRace, Occurrences, Unrepeated};
use crate::process::{Lost, StartError};
use crate::races::Race;
use crate::session::Session;
use crate::stream::Hello;
use crate::symbols::Symbols;
use crate::worker::{Cut, Worker};
use palisade_monitor::Violation;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long repetitions may take at most, and at least, if the time is already up.
const MAX_GRACE: Duration = Duration::from_secs(5);
const MIN_GRACE: Duration = Duration::from_secs(1);

/// How long repetitions may take if the time is already up: half of the time that there was.
fn grace(time: Option<Duration>) -> Duration {
    time.map_or(MAX_GRACE, |time| (time / 2).clamp(MIN_GRACE, MAX_GRACE))
}

/// A race by the names of its accesses.
pub(crate) fn name_race(symbols: &mut Symbols, race: &Race) -> NamedRace {
    NamedRace {
        first: (symbols.name(race.first), race.first_writes),
        second: (symbols.name(race.second), race.second_writes),
    }
}

impl NamedRace {
    /// The same two accesses in the opposite order. It is the same race.
    pub(crate) fn turned(&self) -> NamedRace {
        NamedRace { first: self.second.clone(), second: self.first.clone() }
    }
}

/// What the repetition of an execution has shown.
struct Repeated {
    execution: Execution,
    /// By which its places are named, if they are not where they were.
    symbols: Option<Symbols>,
    hello: Hello,
}

/// Why there is no repetition.
enum NotRepeated {
    /// There was no time.
    Late,
    /// The program or its schedule was lost.
    Lost(String),
}

impl Session {
    /// Repeats all findings. One that does not repeat is no longer a finding.
    pub fn confirm(&mut self) {
        let mut firsts: BTreeMap<u64, First> = BTreeMap::new();
        let findings = &self.findings;
        let failures = findings.failures.iter().filter(|found| !found.what.is_inconclusive);
        let all = failures
            .map(|found| &found.first)
            .chain(findings.races.iter().map(|found| &found.first))
            .chain(findings.violations.iter().map(|found| &found.first));
        for first in all {
            firsts.entry(first.number).or_insert_with(|| first.clone());
        }
        let allowance = self.repetition_allowance();
        for (number, first) in firsts {
            let repeated = match self.repeat(&first, &allowance) {
                Ok(repeated) => Ok(repeated),
                Err(NotRepeated::Late) => return,
                Err(NotRepeated::Lost(why)) => Err(why),
            };
            self.compare(number, repeated);
        }
    }

    /// There is some time for repetitions even if a session was stopped, but never more than that: an execution that
    /// was cut off may not end by itself.
    fn repetition_allowance(&self) -> Allowance {
        let at_least = Instant::now() + grace(self.time);
        let own = self.allowance();
        if self.findings.stopped || own.check_time().is_err() {
            return Allowance { stop: Arc::default(), deadline: Some(at_least), ..own.clone() };
        }
        Allowance { deadline: own.deadline.map(|deadline| deadline.max(at_least)), ..own.clone() }
    }

    /// Runs the schedule of an execution in a new process.
    fn repeat(&mut self, first: &First, allowance: &Allowance) -> Result<Repeated, NotRepeated> {
        if first.turns.is_none() && first.search.is_some() {
            return Err(NotRepeated::Lost("its schedule is too long to be kept".to_owned()));
        }
        let command = self.repetition(&self.schedule(first, String::new(), false));
        let options = &self.options;
        let started =
            Worker::start(&self.program, options.model, options.interlocked, allowance, options.room());
        let mut worker = match started {
            Ok(worker) => worker,
            Err(StartError::Stopped) => return Err(NotRepeated::Late),
            Err(error) => return Err(NotRepeated::Lost(format!("the program {error}"))),
        };
        let execution = match worker.run(&command, |_| ()) {
            Ok(execution) => execution,
            Err(Cut { lost: Lost::Stopped | Lost::Memory, .. }) => return Err(NotRepeated::Late),
            Err(Cut { lost, .. }) => return Err(NotRepeated::Lost(lost.to_string())),
        };
        let hello = worker.server.hello.clone();
        let is_elsewhere = hello.modules != self.hello.modules;
        let mut symbols = is_elsewhere.then(|| self.symbols.elsewhere(hello.modules.clone()));
        symbols.as_mut().unwrap_or(&mut self.symbols).learn(&execution.sites);
        Ok(Repeated { execution, symbols, hello })
    }

    /// Keeps those findings of an execution that its repetition shows, too.
    fn compare(&mut self, number: u64, repeated: Result<Repeated, String>) {
        let Session { symbols, threads, options, findings, .. } = self;
        let mut shown = match repeated {
            Err(why) => Shown { instead: why, ..Shown::default() },
            Ok(Repeated { execution, symbols: mut other, hello }) => {
                let symbols = other.as_mut().unwrap_or(symbols);
                let numbers = threads.numbers(&execution);
                let failure = execution.failure(options.leaks);
                let failure =
                    failure.map(|failure| name_failure(&hello, symbols, &numbers, &failure, &execution));
                let instead = match (&execution.diverged, &failure) {
                    (Some(stray), _) => stray.diverged(|place| symbols.name(place)).text(),
                    (None, Some(failure)) => failure.message.clone(),
                    (None, None) => "the program ended without that".to_owned(),
                };
                let races = execution.races.iter().map(|(race, _)| name_race(symbols, race)).collect();
                let violations = execution
                    .violations
                    .iter()
                    .map(|(shown, _)| {
                        let names =
                            [shown.store, shown.previous, shown.access].map(|place| symbols.name(place));
                        (shown.model, names)
                    })
                    .collect();
                Shown { failure, races, violations, instead }
            }
        };
        let Findings { failures, races, violations, unrepeated, instructions, .. } = findings;
        let instead = std::mem::take(&mut shown.instead);
        let mut lost = Vec::new();
        let failed = shown.failure.as_ref();
        keep(failures, number, &mut lost, |what| {
            let repeats = what.is_inconclusive || failed.is_some_and(|failure| failure.is_same(what));
            repeats.then_some(()).ok_or_else(|| what.message.clone())
        });
        keep(races, number, &mut lost, |what| {
            let repeats = shown.races.iter().any(|race| race == what || *race == what.turned());
            let words = || format!("data race: {} | {}", what.first.0, what.second.0);
            repeats.then_some(()).ok_or_else(words)
        });
        keep(violations, number, &mut lost, |what: &Violation| {
            let names =
                [what.store, what.previous, what.access].map(|name| instructions.name(name).to_owned());
            let repeats = shown.violations.contains(&(what.model, names.clone()));
            let words = || format!("{} violation: {}", what.model.name().to_uppercase(), names.join(" | "));
            repeats.then_some(()).ok_or_else(words)
        });
        unrepeated.extend(lost.into_iter().map(|(what, first)| Unrepeated {
            what,
            first,
            instead: instead.clone(),
        }));
    }
}

/// What a repetition shows, by names.
#[derive(Default)]
struct Shown {
    failure: Option<crate::findings::NamedFailure>,
    races: Vec<NamedRace>,
    violations: Vec<(palisade_memory::Model, [String; 3])>,
    /// What it shows if it is not what was expected.
    instead: String,
}

/// Goes through the findings that an execution was the first to show. Those that do not repeat are moved to `lost`, in
/// words.
fn keep<T>(
    list: &mut Vec<Occurrences<T>>,
    number: u64,
    lost: &mut Vec<(String, First)>,
    repeats: impl Fn(&T) -> Result<(), String>,
) {
    list.retain_mut(|found| {
        if found.first.number != number {
            return true;
        }
        match repeats(&found.what) {
            Ok(()) => {
                found.is_repeated = true;
                true
            }
            Err(words) => {
                lost.push((words, found.first.clone()));
                false
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_take_at_most_half_of_the_time_again() {
        let seconds = Duration::from_secs;
        for (time, expected) in [(None, 5), (Some(1), 1), (Some(4), 2), (Some(60), 5)] {
            assert_eq!(grace(time.map(seconds)), seconds(expected), "{time:?}");
        }
    }
}
