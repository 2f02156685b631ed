//! What one execution adds to the findings.

use crate::confirm::name_race;
use crate::execution::{Execution, Leaks, PlacedViolation, Unfollowed};
use crate::failures::name_failure;
use crate::findings::{Findings, First, NamedFailure, NamedReordering, Occurrences, VACUOUS};
use crate::schedule::{Command, Known};
use crate::session::Threads;
use crate::stream::{Hello, Reason};
use crate::suppress::{SilencedBy, Silencer};
use crate::symbols::Symbols;
use palisade_memory::Model;
use palisade_monitor::Violation;

/// What is needed to record an execution.
pub(crate) struct Notes<'a> {
    pub hello: &'a Hello,
    pub symbols: &'a mut Symbols,
    pub threads: &'a mut Threads,
    pub silencer: &'a mut Silencer,
    pub leaks: Leaks,
    pub findings: &'a mut Findings,
}

impl Notes<'_> {
    /// A violation with the instruction numbers that the findings use.
    fn named(&mut self, violation: &PlacedViolation) -> Violation {
        let mut name = |place: u64| self.findings.instructions.intern(&self.symbols.name(place));
        Violation {
            model: violation.model,
            store: name(violation.store),
            previous: name(violation.previous),
            access: name(violation.access),
        }
    }

    /// Records an execution.
    pub fn take_in(&mut self, command: &Command, execution: &Execution) {
        self.symbols.learn(&execution.sites);
        self.findings.executions += 1;
        let number = self.findings.executions;
        self.findings.steps += execution.end.steps;
        self.findings.events += execution.events;
        self.findings.accesses += execution.accesses;
        self.findings.diverged += u64::from(execution.diverged.is_some());
        if let (Some(stray), None) = (&execution.diverged, &self.findings.divergence) {
            self.findings.divergence = Some(stray.diverged(|place| self.symbols.name(place)));
        }
        self.findings.longest = self.findings.longest.max(execution.end.steps);
        self.findings.threads = self.findings.threads.max(execution.started.len() + 1);
        for (count, model) in self.findings.violating.iter_mut().zip([Model::Tso, Model::Pso]) {
            *count += u64::from(execution.violations.iter().any(|(violation, _)| violation.model == model));
        }
        let possible = match command.model {
            Model::Sc => Some(Model::Sc),
            _ => execution.judgement.as_ref().map(|judgement| judgement.possible),
        };
        let showing = Showing { number, possible };
        let reorderings: Vec<NamedReordering> = execution
            .judgement
            .iter()
            .flat_map(|judgement| &judgement.reorderings)
            .map(|reordering| NamedReordering {
                store: self.symbols.name(reordering.store),
                access: self.symbols.name(reordering.access),
                writes: reordering.writes,
            })
            .collect();
        let first = |event: u64| First {
            number,
            seed: command.seed,
            strategy: command.strategy,
            length: command.length,
            turns: execution.turns_for(command),
            search: command.explores.then(|| Known {
                threads: execution.end.threads.clone(),
                shared: command.known.shared.clone(),
                compared: Vec::new(),
            }),
            event,
            reorderings: reorderings.clone(),
        };
        for (violation, seen) in &execution.violations {
            let named = self.named(violation);
            let instructions = &self.findings.instructions;
            let names = [named.store, named.previous, named.access].map(|place| instructions.name(place));
            let by = self.silencer.violation(names, |name| self.symbols.frames(name));
            let list = match by {
                Some(_) => &mut self.findings.silenced.violations,
                None => &mut self.findings.violations,
            };
            let what = Noted { what: named, by, count: seen.count };
            note(list, what, PartialEq::eq, showing, || first(seen.first));
        }
        for (race, count) in &execution.races {
            if [race.first, race.second].into_iter().all(|place| self.symbols.is_libtest(place)) {
                continue;
            }
            let named = name_race(self.symbols, race);
            let turned = named.turned();
            let by = self.silencer.race(&named, |name| self.symbols.frames(name));
            let list = match by {
                Some(_) => &mut self.findings.silenced.races,
                None => &mut self.findings.races,
            };
            let known = list.iter().any(|found| found.what == turned);
            let what = if known { turned } else { named };
            note(list, Noted { what, by, count: *count }, PartialEq::eq, showing, || first(0));
        }
        for named in &reorderings {
            let what = Noted { what: named.clone(), by: None, count: 1 };
            note(&mut self.findings.reorderings, what, PartialEq::eq, showing, || first(0));
        }
        self.findings.reordered += u64::from(possible.is_some_and(|possible| possible != Model::Sc));
        let numbers = self.threads.numbers(execution);
        if let Some(failure) = execution.failure(self.leaks) {
            let named = name_failure(self.hello, self.symbols, &numbers, &failure, execution);
            let by = self.silencer.failure(&named, |name| self.symbols.frames(name));
            self.findings.silenced.cut_short += u64::from(by.is_some() && failure.cuts_short());
            let list = match by {
                Some(_) => &mut self.findings.silenced.failures,
                None => &mut self.findings.failures,
            };
            note(list, Noted { what: named, by, count: 1 }, NamedFailure::is_same, showing, || first(0));
        }
        self.note_assumption(execution, showing, || first(0));
        for &(what, place) in &execution.unfollowed {
            let place = self.symbols.name(place);
            *self.findings.unfollowed.entry((what, place)).or_insert(0) += 1;
        }
        for name in &self.hello.not_compiled {
            *self.findings.unfollowed.entry((Unfollowed::NotCompiled, name.clone())).or_insert(0) += 1;
        }
        if self.findings.calls.is_empty() {
            self.findings.calls.clone_from(&self.hello.calls);
        }
    }
}

impl Notes<'_> {
    /// Nothing is known about the program if all executions have ended at assumptions.
    fn note_assumption(&mut self, execution: &Execution, showing: Showing, first: impl FnOnce() -> First) {
        let findings = &mut *self.findings;
        findings.assumed += u64::from(execution.end.reason == Reason::Assumed);
        if findings.assumed == findings.executions {
            let what = NamedFailure {
                name: VACUOUS,
                message: "every execution ended because an assumption of the program was false".to_owned(),
                places: Vec::new(),
                is_inconclusive: true,
                output: String::new(),
                is_excluded_without_buffers: false,
            };
            let what = Noted { what, by: None, count: 1 };
            note(&mut findings.failures, what, NamedFailure::is_same, showing, first);
        } else {
            findings.failures.retain(|found| found.what.name != VACUOUS);
        }
    }
}

/// The execution that shows a finding: its number, and the strongest model under which it is possible.
#[derive(Clone, Copy)]
struct Showing {
    number: u64,
    possible: Option<Model>,
}

/// A finding, what has silenced it, and how often the execution shows it.
struct Noted<T> {
    what: T,
    by: Option<SilencedBy>,
    count: u64,
}

fn note<T>(
    list: &mut Vec<Occurrences<T>>,
    Noted { what, by, count }: Noted<T>,
    is_same: impl Fn(&T, &T) -> bool,
    Showing { number, possible }: Showing,
    first: impl FnOnce() -> First,
) {
    match list.iter_mut().find(|found| is_same(&found.what, &what)) {
        Some(found) => {
            found.count += count;
            // Instructions with the same name can show the same finding several times in one execution.
            found.executions += u64::from(found.last != number);
            found.last = number;
            if possible.is_some_and(|possible| found.possible.is_none_or(|known| possible < known)) {
                found.possible = possible;
                found.first = first();
            }
        }
        None => list.push(Occurrences {
            what,
            executions: 1,
            count,
            possible,
            first: first(),
            silenced: by,
            is_repeated: false,
            last: number,
        }),
    }
}
