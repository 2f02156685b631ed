//! Runs a closure under many schedules, or once per partial order, with the store buffers of a memory model.
//!
//! A failure in an execution that is not sequentially consistent may still be possible on any machine, in
//! another execution. So the same schedules are tried without store buffers. If these were all partial orders,
//! and none of them fails in the same way, the failure is one that only store buffers cause.

use crate::outcome::{Coverage, Machines, Outcome};
use crate::runtime::buffers::Buffers;
use crate::runtime::schedule::Schedule;
use crate::runtime::session::Session;
use crate::runtime::state::{End, Failure};
use crate::runtime::strategy::{Follow, Strategy};
use crate::runtime::{Finished, Setting, execute};
use crate::tally::Tally;
use palisade_dpor::{
    Executions, Limits, Preference, Recording, Request, explore_executions, explore_preemptions,
};
use palisade_memory::{Interlocked, Model};
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
    pub(crate) strategy: Schedules,
    seed: u64,
    pub(crate) model: Model,
    pub(crate) robust: bool,
    pub(crate) interlocked: Interlocked,
    pub(crate) steps: usize,
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
            robust: false,
            interlocked: Interlocked::WholeBuffer,
            steps: 20_000,
            preemptions: None,
            watch: Duration::from_secs(10),
        }
    }
}

/// How many times to try a failing schedule with fewer switches.
const TRIES_TO_SHORTEN: usize = 60;
/// How many times to restart a search because a loop turned out not to be a wait.
const MAX_RESTARTS: usize = 20;

impl Checker {
    /// 1000 random schedules, with the store buffers of TSO.
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

    /// The memory model whose store buffers the test runs with. The default is [`Model::Tso`]; with
    /// [`Model::Sc`] there are none.
    pub fn model(self, model: Model) -> Checker {
        Checker { model, ..self }
    }

    /// Asks another question: whether store buffers can add behaviour at all, harmful or not. The test runs
    /// without store buffers, and monitors report where its executions could stop being sequentially
    /// consistent under the model.
    pub fn robust(self) -> Checker {
        Checker { robust: true, ..self }
    }

    /// What locked instructions wait for under PSO.
    pub fn interlocked(self, interlocked: Interlocked) -> Checker {
        Checker { interlocked, ..self }
    }

    /// The maximum number of steps of one execution.
    pub fn steps(self, steps: usize) -> Checker {
        Checker { steps, ..self }
    }

    /// With [`Exhaustive`]: all schedules with at most this many preemptions and delayed stores, instead of
    /// all partial orders. A store is delayed if it has not reached memory before the next step of a thread.
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
        let (mut tally, session, coverage) = self.run_all(&code, self.buffered(), None);
        self.classify(&code, &mut tally);
        self.shorten(&code, &mut tally);
        self.confirm(&code, &mut tally, &session);
        tally.outcome(session, coverage)
    }

    /// Runs one schedule again. Turns that are not possible are left out. After its end stores reach memory at
    /// once, and the thread that ran last continues.
    pub fn replay(&self, schedule: &Schedule, code: impl Fn() + Send + Sync + 'static) -> Outcome {
        let code: Arc<dyn Fn() + Send + Sync> = Arc::new(code);
        let strategy = Strategy::Follow(Follow::schedule(schedule.0.clone()));
        let mut tally = Tally::new(self, None);
        let ran = execute(&code, strategy, Session::default(), self.setting(self.buffered()));
        tally.add(&ran, None);
        tally.outcome(ran.state.session, Coverage::Sampled)
    }

    /// The model whose store buffers the test runs with. Robustness is decided on executions without any.
    pub(crate) fn buffered(&self) -> Model {
        if self.robust { Model::Sc } else { self.model }
    }

    pub(crate) fn setting(&self, model: Model) -> Setting {
        let buffers = Buffers::new(model, self.interlocked);
        Setting { records: false, buffers, max_steps: self.steps, watch: self.watch }
    }

    /// Runs all schedules with the store buffers of a model, until one fails, or fails in a given way.
    fn run_all(
        &self,
        code: &Arc<dyn Fn() + Send + Sync>,
        model: Model,
        like: Option<Failure>,
    ) -> (Tally<'_>, Session, Coverage) {
        match self.strategy {
            Exhaustive => self.search(code, model, like),
            Random | Pct { .. } => self.sample(code, model, like),
        }
    }

    fn sample(
        &self,
        code: &Arc<dyn Fn() + Send + Sync>,
        model: Model,
        like: Option<Failure>,
    ) -> (Tally<'_>, Session, Coverage) {
        let mut tally = Tally::new(self, like);
        let mut session = Session::default();
        let mut longest = 64;
        for number in 0..self.schedules {
            let seed = self.seed.wrapping_add(number);
            let strategy = match self.strategy {
                Pct { depth } => Strategy::pct(seed, depth, longest),
                _ => Strategy::random(seed, model != Model::Sc),
            };
            let ran = execute(code, strategy, session, self.setting(model));
            longest = longest.max(ran.state.schedule.0.len());
            let fine = tally.add(&ran, Some(seed));
            session = ran.state.session;
            if !fine {
                break;
            }
        }
        (tally, session, Coverage::Sampled)
    }

    fn search(
        &self,
        code: &Arc<dyn Fn() + Send + Sync>,
        model: Model,
        like: Option<Failure>,
    ) -> (Tally<'_>, Session, Coverage) {
        let mut session = Session::default();
        let mut restarts = 0;
        loop {
            let mut tally = Tally::new(self, like.clone());
            let mut runner = Runner { checker: self, model, code, session, ran: None, not_a_wait: false };
            let limits = Limits { steps: self.steps, executions: self.schedules };
            let coverage = runner.explore(&mut tally, limits, self.preemptions);
            session = runner.session;
            if runner.not_a_wait && restarts < MAX_RESTARTS {
                restarts += 1;
                session.waits.clear();
                continue;
            }
            return (tally, session, coverage);
        }
    }

    /// If the execution that failed is not sequentially consistent: looks for the same failure without store
    /// buffers.
    fn classify(&self, code: &Arc<dyn Fn() + Send + Sync>, tally: &mut Tally<'_>) {
        let Some(failed) = &mut tally.failed else { return };
        if !matches!(failed.machines, Some(Machines::Buffered { .. })) {
            return;
        }
        let (without, _, coverage) = self.run_all(code, Model::Sc, Some(failed.failure.clone()));
        if let Some(found) = without.failed {
            failed.machines = Some(Machines::Any);
            // The same execution on a machine with buffers, in which stores reach memory at once.
            let strategy = Strategy::Follow(Follow::without_buffers(found.schedule.0));
            let ran = execute(code, strategy, Session::default(), self.setting(self.buffered()));
            if let End::Failed(failure) = ran.end
                && failure.is_at_the_same_places(&failed.failure)
            {
                failed.schedule = ran.state.reported_schedule();
                failed.failure = failure;
                failed.seed = None;
            }
        } else if coverage == Coverage::Complete {
            failed.machines = Some(Machines::OnlyBuffered);
        } else {
            failed.machines = Some(Machines::Buffered { without: without.executions });
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
                (failed.schedule.0).chunk_by(|a, b| a.thread() == b.thread()).map(<[_]>::to_vec).collect();
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
                let strategy = Strategy::Follow(Follow::schedule(shorter.0));
                let ran = execute(code, strategy, Session::default(), self.setting(self.buffered()));
                let schedule = ran.state.reported_schedule();
                let any_machine =
                    failed.machines != Some(Machines::Any) || ran.state.trace.violation().is_none();
                if let End::Failed(failure) = ran.end
                    && failure.is_like(&failed.failure)
                    && any_machine
                    && schedule.switches() < failed.schedule.switches()
                {
                    failed.failure = failure;
                    failed.schedule = schedule;
                    continue 'again;
                }
            }
            return;
        }
    }
}

/// Runs the closure for a search.
struct Runner<'a> {
    checker: &'a Checker,
    model: Model,
    code: &'a Arc<dyn Fn() + Send + Sync>,
    session: Session,
    ran: Option<Finished>,
    /// Whether a loop turned out not to be a wait.
    not_a_wait: bool,
}

impl Executions for Runner<'_> {
    fn run(&mut self, request: &Request<'_>) -> Recording {
        let eager = request.preference == Preference::SameProcess;
        let follow = Follow::search(request.choices.to_vec(), request.asleep.to_vec(), eager);
        let session = std::mem::take(&mut self.session);
        let strategy = Strategy::Follow(follow);
        let setting = Setting { records: true, max_steps: request.steps, ..self.checker.setting(self.model) };
        let mut ran = execute(self.code, strategy, session, setting);
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
                    let delays = if self.model == Model::Sc { "" } else { " and delayed stores" };
                    bounds.push(format!("schedules with at most {most} preemptions{delays}"));
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
        if tally.cut > 0 {
            bounds.push(format!("executions of up to {} steps", limits.steps));
        }
        if cut > tally.cut {
            bounds.push("executions up to where they fail".to_owned());
        }
        if broken {
            bounds.push("executions before the same schedule led to different steps".to_owned());
        }
        Coverage::Bounded(bounds.join(", "))
    }
}
