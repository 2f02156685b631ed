//! What the executions of a check have shown so far.

use crate::checker::{Checker, Exhaustive};
use crate::outcome::{Coverage, Failed, Machines, Outcome, Reordering, Unrepeated, ViolationReport};
use crate::runtime::Finished;
use crate::runtime::schedule::Schedule;
use crate::runtime::session::Session;
use crate::runtime::state::{End, Failure};
use crate::runtime::trace::Late;
use palisade_memory::Model;
use palisade_monitor::{Monitor, Violation};
use rustc_hash::FxHashMap;

/// The results so far.
pub struct Tally<'a> {
    checker: &'a Checker,
    /// Whether only failures like this one count.
    like: Option<Failure>,
    pub executions: u64,
    steps: u64,
    events: u64,
    pub cut: u64,
    violating: u64,
    pub partial_orders: u64,
    pub violations: FxHashMap<Violation, (u64, u64, Schedule, Option<u64>)>,
    /// Executions that are not sequentially consistent: how many, and the first one.
    relaxed: Option<(u64, Late, Schedule, Option<u64>)>,
    pub failed: Option<Failed>,
    /// What was seen and did not repeat.
    pub unrepeated: Vec<Unrepeated>,
}

impl Tally<'_> {
    pub fn new(checker: &Checker, like: Option<Failure>) -> Tally<'_> {
        Tally {
            checker,
            like,
            executions: 0,
            steps: 0,
            events: 0,
            cut: 0,
            violating: 0,
            partial_orders: 0,
            violations: FxHashMap::default(),
            relaxed: None,
            failed: None,
            unrepeated: Vec::new(),
        }
    }

    /// Adds an execution. Returns false if it failed.
    pub fn add(&mut self, ran: &Finished, seed: Option<u64>) -> bool {
        self.executions += 1;
        self.steps += ran.state.schedule.0.len() as u64;
        self.events += (ran.state.events.len() + ran.state.trace.len()) as u64;
        if self.checker.robust && self.checker.model != Model::Sc {
            self.monitor(ran, seed);
        }
        let late = ran.state.trace.violation();
        if let Some(late) = late {
            let new = || (0, late, ran.state.reported_schedule(), seed);
            self.relaxed.get_or_insert_with(new).0 += 1;
        }
        let failure = match &ran.end {
            End::Failed(failure) => failure.clone(),
            End::Cut => {
                self.cut += 1;
                if self.checker.strategy == Exhaustive {
                    return true;
                }
                Failure::Long { steps: self.checker.steps, threads: ran.state.unfinished() }
            }
            _ => return true,
        };
        if self.like.as_ref().is_some_and(|like| !failure.is_at_the_same_places(like)) {
            return true;
        }
        let machines = match (&failure, late) {
            // Whether these happen depends on limits, which count differently without store buffers.
            (Failure::Silent(_) | Failure::Long { .. }, _) => None,
            (_, None) => Some(Machines::Any),
            (_, Some(_)) => Some(Machines::Buffered { without: 0 }),
        };
        self.failed = Some(Failed { failure, machines, schedule: ran.state.reported_schedule(), seed });
        false
    }

    fn monitor(&mut self, ran: &Finished, seed: Option<u64>) {
        let mut monitor = Monitor::new(self.checker.interlocked);
        monitor.take_all(&ran.state.events);
        let mut any = false;
        for (violation, _) in monitor.violations().sorted() {
            if violation.model != self.checker.model {
                continue;
            }
            any = true;
            let number = self.violations.len() as u64;
            let new = || (number, 0, ran.state.reported_schedule(), seed);
            self.violations.entry(violation).or_insert_with(new).1 += 1;
        }
        self.violating += u64::from(any);
    }

    pub fn outcome(self, session: Session, coverage: Coverage) -> Outcome {
        let mut violations: Vec<_> = self.violations.into_iter().collect();
        violations.sort_by_key(|(_, (number, ..))| *number);
        let report =
            |(violation, (_, executions, schedule, seed)): (Violation, (u64, u64, Schedule, Option<u64>))| {
                ViolationReport {
                    store: session.place(violation.store),
                    previous: session.place(violation.previous),
                    access: session.place(violation.access),
                    executions,
                    schedule,
                    seed,
                }
            };
        let relaxed = self.relaxed.map(|(executions, late, schedule, seed)| Reordering {
            store: session.place(late.store),
            access: session.place(late.access),
            executions,
            schedule,
            seed,
        });
        Outcome {
            model: self.checker.model,
            is_about_robustness: self.checker.robust,
            relaxed,
            executions: self.executions,
            partial_orders: (self.checker.strategy == Exhaustive).then_some(self.partial_orders),
            violating: self.violating,
            steps: self.steps,
            events: self.events,
            cut: self.cut,
            coverage,
            violations: violations.into_iter().map(report).collect(),
            failed: self.failed,
            unrepeated: self.unrepeated,
            waits: session.waits.iter().map(|&instruction| session.place(instruction)).collect(),
        }
    }
}
