//! Runs a closure under many schedules, or once per partial order, and monitors its memory accesses.

use crate::outcome::{Coverage, Failed, Outcome, ViolationReport};
use crate::runtime::schedule::Schedule;
use crate::runtime::session::Session;
use crate::runtime::state::{End, Failure};
use crate::runtime::strategy::{Follow, Strategy};
use crate::runtime::{Finished, execute};
use palisade_dpor::{Executions, Limits, Recording, Request, explore_executions, explore_preemptions};
use palisade_memory::{Interlocked, Model};
use palisade_monitor::{Monitor, Violation};
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// How schedules are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedules {
    /// At every step, each thread that is ready has the same probability.
    Random,
    /// Random priorities that change at `depth - 1` random steps (PCT). An error that needs `depth` ordering
    /// constraints is found with a known probability.
    Pct {
        /// The number of ordering constraints that an error may need.
        depth: usize,
    },
    /// One execution per partial order. For tests that terminate, the answer is conclusive.
    Exhaustive,
}

pub use Schedules::{Exhaustive, Pct, Random};

/// How a test is run. See the [crate] documentation for an example.
#[derive(Clone, Debug)]
pub struct Checker {
    schedules: u64,
    strategy: Schedules,
    seed: u64,
    model: Model,
    interlocked: Interlocked,
    steps: usize,
    preemptions: Option<usize>,
    watch: Duration,
}

impl Default for Checker {
    fn default() -> Checker {
        Checker {
            schedules: 1000,
            strategy: Random,
            seed: 0,
            model: Model::Tso,
            interlocked: Interlocked::WholeBuffer,
            steps: 20_000,
            preemptions: None,
            watch: Duration::from_secs(10),
        }
    }
}

/// How often to try a failing schedule with fewer switches.
const TRIES_TO_SHORTEN: usize = 60;
/// How often to restart a search because a loop turned out not to be a wait.
const MAX_RESTARTS: usize = 20;

impl Checker {
    /// 1000 random schedules, monitored for TSO.
    pub fn new() -> Checker {
        Checker::default()
    }

    /// The number of schedules. With [`Exhaustive`], the maximum number of executions. The default is 1000;
    /// [`u64::MAX`] means no limit.
    pub fn schedules(self, schedules: u64) -> Checker {
        Checker { schedules, ..self }
    }

    /// How schedules are chosen.
    pub fn strategy(self, strategy: Schedules) -> Checker {
        Checker { strategy, ..self }
    }

    /// The seed of the first schedule; the others use the following numbers.
    pub fn seed(self, seed: u64) -> Checker {
        Checker { seed, ..self }
    }

    /// The memory model whose violations are reported. With [`Model::Sc`] nothing is monitored.
    pub fn model(self, model: Model) -> Checker {
        Checker { model, ..self }
    }

    /// What locked instructions wait for under PSO.
    pub fn interlocked(self, interlocked: Interlocked) -> Checker {
        Checker { interlocked, ..self }
    }

    /// The maximum number of steps of one execution.
    pub fn steps(self, steps: usize) -> Checker {
        Checker { steps, ..self }
    }

    /// With [`Exhaustive`]: all schedules with at most this many preemptions, instead of all partial orders.
    pub fn preemptions(self, preemptions: usize) -> Checker {
        Checker { preemptions: Some(preemptions), ..self }
    }

    /// How long a thread may run without an operation of this crate.
    pub fn patience(self, watch: Duration) -> Checker {
        Checker { watch, ..self }
    }

    /// Runs the test.
    ///
    /// If the environment variable `PALISADE_SCHEDULE` is set, only that schedule is run; with
    /// `PALISADE_SEED`, only the schedule with that seed.
    ///
    /// # Panics
    /// If there is anything to report, with the report.
    #[track_caller]
    pub fn run(&self, code: impl Fn() + Send + Sync + 'static) {
        let schedule = std::env::var("PALISADE_SCHEDULE").ok();
        let seed = std::env::var("PALISADE_SEED").ok();
        let outcome = match (schedule, seed) {
            (Some(text), _) => {
                let schedule = text.parse().unwrap_or_else(|error| panic!("PALISADE_SCHEDULE: {error}"));
                self.replay(&schedule, code)
            }
            (None, Some(text)) => {
                let seed = text.parse().unwrap_or_else(|_| panic!("PALISADE_SEED: `{text}` is not a number"));
                self.clone().seed(seed).schedules(1).check(code)
            }
            (None, None) => self.check(code),
        };
        if !outcome.is_fine() {
            panic!("{outcome}");
        }
    }

    /// Runs the test and returns the outcome.
    pub fn check(&self, code: impl Fn() + Send + Sync + 'static) -> Outcome {
        let code: Arc<dyn Fn() + Send + Sync> = Arc::new(code);
        match self.strategy {
            Exhaustive => self.search(&code),
            Random | Pct { .. } => self.sample(&code),
        }
    }

    /// Runs one schedule again. Steps that are not possible are left out, and after its end the thread that
    /// ran last continues.
    pub fn replay(&self, schedule: &Schedule, code: impl Fn() + Send + Sync + 'static) -> Outcome {
        let code: Arc<dyn Fn() + Send + Sync> = Arc::new(code);
        let strategy = Strategy::Follow(Follow::new(schedule.0.clone(), Vec::new(), true));
        let mut tally = Tally::new(self);
        let ran = execute(&code, strategy, Session::default(), false, self.steps, self.watch);
        tally.add(&ran, None);
        tally.outcome(ran.state.session, Coverage::Sampled)
    }

    fn sample(&self, code: &Arc<dyn Fn() + Send + Sync>) -> Outcome {
        let mut tally = Tally::new(self);
        let mut session = Session::default();
        let mut longest = 64;
        for number in 0..self.schedules {
            let seed = self.seed.wrapping_add(number);
            let strategy = match self.strategy {
                Pct { depth } => Strategy::pct(seed, depth, longest),
                _ => Strategy::random(seed),
            };
            let ran = execute(code, strategy, session, false, self.steps, self.watch);
            longest = longest.max(ran.state.schedule.0.len());
            let fine = tally.add(&ran, Some(seed));
            session = ran.state.session;
            if !fine {
                break;
            }
        }
        self.shorten(code, &mut tally);
        tally.outcome(session, Coverage::Sampled)
    }

    fn search(&self, code: &Arc<dyn Fn() + Send + Sync>) -> Outcome {
        let mut session = Session::default();
        let mut restarts = 0;
        loop {
            let mut tally = Tally::new(self);
            let mut runner = Runner { checker: self, code, session, ran: None, not_a_wait: false };
            let limits = Limits { steps: self.steps, executions: self.schedules };
            let coverage = runner.explore(&mut tally, limits, self.preemptions);
            session = runner.session;
            if runner.not_a_wait && restarts < MAX_RESTARTS {
                restarts += 1;
                session.waits.clear();
                continue;
            }
            self.shorten(code, &mut tally);
            return tally.outcome(session, coverage);
        }
    }

    /// Looks for a schedule with fewer switches that fails in the same way.
    fn shorten(&self, code: &Arc<dyn Fn() + Send + Sync>, tally: &mut Tally<'_>) {
        let Some(failed) =
            tally.failed.as_mut().filter(|failed| !matches!(failed.failure, Failure::Silent(_)))
        else {
            return;
        };
        let mut tries = 0;
        'again: loop {
            let groups: Vec<Vec<_>> =
                failed.schedule.0.chunk_by(|a, b| a.process == b.process).map(<[_]>::to_vec).collect();
            for at in 1..groups.len() {
                // Two groups swap places, so that one of them becomes adjacent to another group of its own
                // thread.
                let mut other = groups.clone();
                other.swap(at - 1, at);
                let shorter = Schedule(other.concat());
                if shorter.switches() >= failed.schedule.switches() {
                    continue;
                }
                if tries == TRIES_TO_SHORTEN {
                    return;
                }
                tries += 1;
                let strategy = Strategy::Follow(Follow::new(shorter.0, Vec::new(), true));
                let ran = execute(code, strategy, Session::default(), false, self.steps, self.watch);
                let schedule = ran.state.reported_schedule();
                let same = matches!(&ran.end, End::Failed(failure) if failure.is_like(&failed.failure));
                if same && schedule.switches() < failed.schedule.switches() {
                    failed.schedule = schedule;
                    continue 'again;
                }
            }
            return;
        }
    }
}

/// The results so far.
struct Tally<'a> {
    checker: &'a Checker,
    executions: u64,
    steps: u64,
    events: u64,
    cut: u64,
    violating: u64,
    partial_orders: u64,
    violations: FxHashMap<Violation, (u64, u64, Schedule, Option<u64>)>,
    failed: Option<Failed>,
}

impl Tally<'_> {
    fn new(checker: &Checker) -> Tally<'_> {
        Tally {
            checker,
            executions: 0,
            steps: 0,
            events: 0,
            cut: 0,
            violating: 0,
            partial_orders: 0,
            violations: FxHashMap::default(),
            failed: None,
        }
    }

    /// Adds an execution. Returns false if it failed in a way that does not depend on the memory model.
    fn add(&mut self, ran: &Finished, seed: Option<u64>) -> bool {
        self.executions += 1;
        self.steps += ran.state.schedule.0.len() as u64;
        self.events += ran.state.events.len() as u64;
        if self.checker.model != Model::Sc {
            self.monitor(ran, seed);
        }
        let failure = match &ran.end {
            End::Failed(failure) => failure.clone(),
            End::Cut => {
                self.cut += 1;
                if self.checker.strategy == Exhaustive {
                    return true;
                }
                Failure::Long(self.checker.steps)
            }
            _ => return true,
        };
        self.failed = Some(Failed { failure, schedule: ran.state.reported_schedule(), seed });
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

    fn outcome(self, session: Session, coverage: Coverage) -> Outcome {
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
        Outcome {
            model: self.checker.model,
            executions: self.executions,
            partial_orders: (self.checker.strategy == Exhaustive).then_some(self.partial_orders),
            violating: self.violating,
            steps: self.steps,
            events: self.events,
            cut: self.cut,
            coverage,
            violations: violations.into_iter().map(report).collect(),
            failed: self.failed,
            waits: session.waits.iter().map(|&instruction| session.place(instruction)).collect(),
        }
    }
}

/// Runs the closure for a search.
struct Runner<'a> {
    checker: &'a Checker,
    code: &'a Arc<dyn Fn() + Send + Sync>,
    session: Session,
    ran: Option<Finished>,
    /// Whether a loop turned out not to be a wait.
    not_a_wait: bool,
}

impl Executions for Runner<'_> {
    fn run(&mut self, request: &Request<'_>) -> Recording {
        let follow = Follow::new(request.choices.to_vec(), request.asleep.to_vec(), false);
        let session = std::mem::take(&mut self.session);
        let strategy = Strategy::Follow(follow);
        let mut ran = execute(self.code, strategy, session, true, request.steps, self.checker.watch);
        self.session = std::mem::take(&mut ran.state.session);
        let mut recording = ran.state.recording.take().unwrap_or_default();
        self.not_a_wait |= ran.end == End::NotAWait;
        if matches!(ran.end, End::Failed(Failure::Panic { .. } | Failure::Silent(_))) {
            recording.cut();
        }
        self.ran = Some(ran);
        recording
    }
}

impl Runner<'_> {
    fn explore(&mut self, tally: &mut Tally<'_>, limits: Limits, preemptions: Option<usize>) -> Coverage {
        let mut visit = |runner: &mut Runner<'_>| {
            let ran = runner.ran.as_ref().expect("there was a run");
            let fine = tally.add(ran, None);
            if fine && !runner.not_a_wait { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let mut bounds = Vec::new();
        let (complete, stopped, cut, broken) = match preemptions {
            None => {
                let (summary, _) = explore_executions(self, limits, |runner, _| visit(runner));
                tally.partial_orders = summary.executions;
                (summary.is_complete(), summary.stopped, summary.cut, summary.broken)
            }
            Some(most) => {
                let (within, _) = explore_preemptions(self, most, limits, |runner, _| visit(runner));
                tally.partial_orders = within.traces;
                if within.left_out {
                    bounds.push(format!("schedules with at most {most} preemptions"));
                }
                (within.is_complete(), within.stopped, within.cut, within.broken)
            }
        };
        if complete {
            return Coverage::Complete;
        }
        if stopped {
            bounds.push(format!("the first {} executions", tally.executions));
        }
        if cut > 0 {
            bounds.push(format!("executions of up to {} steps", limits.steps));
        }
        if broken {
            bounds.push("executions before the same schedule led to different steps".to_owned());
        }
        Coverage::Bounded(bounds.join(", "))
    }
}
