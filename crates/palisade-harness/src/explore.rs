//! All executions of a program: one per partial order, or all with few preemptions.
//!
//! The search is that of `palisade-dpor`. This module runs a program as the search requests; `steps.rs` turns its
//! log into footprints. With store buffers, the search runs every execution that the machine can show, up to the
//! order of steps that do not conflict. Without them, the monitors watch every execution. By Theorems 5 and 6 of
//! Burnim, Sen and Stergiou (TACAS 2011), a program that terminates and has no violation in any partial order is
//! sequentially consistent on machines with store buffers.
//!
//! *Failures.* A failed assertion or a crash ends all threads, in the middle of what they do. Steps that they would
//! have taken later are not known, so executions in which these come earlier may not be found. The search is then not
//! complete.
//!
//! *Ends.* `exit` ends all threads, too. It conflicts with all steps, and what a thread was about to do then could have
//! come before it.
//!
//! *Stacks.* What a thread keeps on its own stack belongs to its state, by which loops that change nothing are
//! recognised (`runtime/spin.c`), until another thread is seen to touch it. The search then starts again with that
//! knowledge. Each byte of a stack is found to be shared at most once, so the restarts end.

use crate::ahead::{Ahead, Ran, read};
use crate::execution::Execution;
use crate::incremental::Incremental;
use crate::pipeline::Pipeline;
use crate::process::Lost;
use crate::schedule::{Actor, Command, Known, Strategy, Turns};
use crate::session::{Findings, Session};
use crate::steps::{Processes, Steps};
use crate::stream::Reason;
use crate::worker::Cut;
use palisade_dpor::{
    Again, Choice, Divergence, Executions, Limits, Preference, Recording, Request, explore_executions,
    explore_preemptions,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Searched {
    /// Whether nothing was left out, within the bound on preemptions if there is one.
    pub complete: bool,
    /// Executions that count: one per partial order, or one per schedule if preemptions are bounded.
    pub executions: u64,
    /// How often the program was run, not counting the repetition of the first run for comparison.
    pub runs: u64,
    /// Whether one execution, together with the search's work on it, took longer than an execution may take.
    pub late: bool,
    /// Whether the program behaved differently when its threads took the same turns.
    pub broken: bool,
}

impl Session {
    /// How many executions of the session's own process were undone and have shared a process with others.
    pub fn restored(&self) -> u64 {
        self.worker().restored()
    }

    /// Runs every partial order once, or every schedule with at most this many preemptions. At most `most`
    /// executions are run. `after_each` is called after each one and returns whether to continue.
    pub fn explore(
        &mut self,
        preemptions: Option<usize>,
        most: u64,
        mut after_each: impl FnMut(&Findings) -> bool,
    ) -> Searched {
        self.explore_all(preemptions, most, &mut after_each)
    }

    /// The same. Not generic, so that the search is compiled, and optimised, with this crate.
    fn explore_all(
        &mut self,
        preemptions: Option<usize>,
        most: u64,
        after_each: &mut dyn FnMut(&Findings) -> bool,
    ) -> Searched {
        let steps = usize::try_from(self.options().steps).unwrap_or(usize::MAX);
        let limits = Limits { steps, executions: most };
        let mut runs = 0;
        let mut known = Known::default();
        loop {
            let (searched, again) = self.search(preemptions, limits, &mut known, after_each);
            runs += searched.runs;
            if !again {
                return Searched { runs, ..searched };
            }
            self.start_over();
        }
    }

    /// One search. Also returns whether the search has to start again.
    fn search(
        &mut self,
        preemptions: Option<usize>,
        limits: Limits,
        known: &mut Known,
        after_each: &mut dyn FnMut(&Findings) -> bool,
    ) -> (Searched, bool) {
        // Threads are numbered anew; what is shared stays shared.
        known.threads.clear();
        known.compared.clear();
        let first_only = self.options().first_only;
        let model = self.options().model;
        let mut runner = Runner {
            processes: Processes::new(model),
            session: self,
            known,
            incremental: Incremental::default(),
            pipeline: None,
            ahead: None,
            last: None,
            runs: 0,
            is_lost: false,
            is_truncated: false,
            begins_again: false,
            is_compared: false,
            difference: None,
            polls: 0,
            threads: 0,
            since: None,
            is_late: false,
        };
        let mut visit = |runner: &mut Runner<'_>, done: Option<f64>| {
            let Some((command, execution)) = runner.last.take() else { return ControlFlow::Break(()) };
            if runner.begins_again {
                return ControlFlow::Break(());
            }
            runner.session.take_in(&command, &execution);
            runner.session.findings.searched = done;
            let enough = first_only && runner.session.findings.distinct() > 0;
            let differs = runner.difference.is_some();
            if runner.is_lost || differs || enough || !after_each(&runner.session.findings) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let (complete, executions, broken, divergence) = match preemptions {
            None => {
                let (summary, divergence) = explore_executions(&mut runner, limits, |runner, execution| {
                    visit(runner, Some(execution.progress()))
                });
                (summary.is_complete(), summary.executions, summary.broken, divergence)
            }
            Some(preemptions) => {
                let (within, divergence) =
                    explore_preemptions(&mut runner, preemptions, limits, |runner, _| visit(runner, None));
                let all = within.cut == 0 && !within.stopped && !within.broken;
                (all, within.executions, within.broken, divergence)
            }
        };
        let Runner {
            session,
            pipeline,
            last,
            runs,
            is_lost: lost,
            is_truncated: truncated,
            begins_again,
            is_late: late,
            difference,
            processes,
            ..
        } = runner;
        if pipeline.is_some_and(|pipeline| pipeline.is_busy()) && !lost {
            session.restart();
        }
        let broken = (broken || difference.is_some()) && !lost;
        if let Some(divergence) = difference.or(divergence).filter(|_| broken && !begins_again) {
            let thread = processes.actor(divergence.process).thread;
            session.name_divergence(&divergence, thread, last.as_ref().map(|(_, execution)| execution));
        }
        let is_over = late || session.findings.stopped || session.findings.out_of_memory;
        if let Some((command, execution)) = last.filter(|_| is_over && !begins_again) {
            // It was run, so what it shows counts, although the search did not finish.
            session.take_in(&command, &execution);
        }
        // What comes after a failure that was silenced was not seen.
        let complete = complete && !lost && !truncated && session.findings.silenced.cut_short == 0;
        (Searched { complete, executions, runs, late, broken }, begins_again && !lost)
    }
}

/// Runs the program as the search requests.
struct Runner<'a> {
    session: &'a mut Session,
    processes: Processes,
    known: &'a mut Known,
    incremental: Incremental,
    /// Executions that are run in advance, once the search has turned out not to be short: by the session's own
    /// process, or by others.
    pipeline: Option<Pipeline>,
    ahead: Option<Ahead>,
    /// The last run.
    last: Option<(Command, Execution)>,
    runs: u64,
    is_lost: bool,
    /// A failure ended an execution while threads or buffers could still have taken steps.
    is_truncated: bool,
    /// An assumption about stacks was wrong.
    begins_again: bool,
    /// Whether the first run was repeated, and where the repetition differed.
    is_compared: bool,
    difference: Option<Divergence>,
    /// How often the search asked whether to stop.
    polls: u32,
    /// The largest number of threads so far.
    threads: u32,
    /// When the last run began, and whether that was too long ago.
    since: Option<Instant>,
    is_late: bool,
}

/// Memory is checked once per this many questions whether to stop.
const LOOKS_AT_MEMORY: u32 = 1 << 10;

/// The time that an execution takes is checked once per this many.
const LOOKS_AT_CLOCK: u32 = 1 << 4;

/// Each step has a clock with an entry per thread. With many threads, memory is checked more often, about once per
/// this many entries.
const ENTRIES_PER_LOOK: u32 = 1 << 17;

/// Searches with fewer runs have no workers: starting them takes longer.
const SHORT_SEARCH: u64 = 64;
/// For how many addresses executions show what is replaced there. At others, a step that compares takes a run more where
/// the search has to know whether it would fail.
const MAX_COMPARED: usize = 64;

/// Nor have searches with longer executions, whose recordings may be large.
const LONG_EXECUTION: usize = 1 << 14;

impl Executions for Runner<'_> {
    fn appetite(&self) -> usize {
        match (&self.ahead, &self.pipeline) {
            (Some(ahead), _) => ahead.appetite(),
            (None, Some(pipeline)) => pipeline.appetite(),
            (None, None) => 0,
        }
    }

    fn expect(&mut self, request: &Request<'_>) {
        let command = self.command(request);
        match (&self.ahead, &mut self.pipeline) {
            (Some(ahead), _) => ahead.expect(command),
            (None, Some(pipeline)) => pipeline.expect(self.session.worker_mut(), &command),
            (None, None) => {}
        }
    }

    fn is_stopped(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(LOOKS_AT_CLOCK) {
            let time = self.session.options().time;
            self.is_late |= self.since.zip(time).is_some_and(|(since, time)| since.elapsed() > time);
        }
        let looks = (ENTRIES_PER_LOOK / self.threads.max(1)).clamp(1, LOOKS_AT_MEMORY);
        self.is_lost || self.is_late || self.session.is_over(self.polls.is_multiple_of(looks))
    }

    fn run(&mut self, request: &Request<'_>) -> Recording {
        self.since = Some(Instant::now());
        let recording = self.run_once(request);
        let ended = self.last.as_ref().is_some_and(|(_, execution)| {
            matches!(execution.end.reason, Reason::None | Reason::Deadlock | Reason::Spun | Reason::Misuse)
        });
        if self.is_compared || self.is_lost || self.begins_again || !ended {
            self.is_compared = true;
            return recording;
        }
        // The search compares runs only as far as they make the same choices, which may not be far. So the
        // first run is repeated to its end.
        self.is_compared = true;
        let choices: Vec<Choice> = recording.choices().collect();
        let first = self.last.take();
        let again = self.run_once(&Request { choices: &choices, ..*request });
        self.runs -= 1;
        let is_late = self.last.as_ref().is_some_and(|(_, execution)| execution.end.reason == Reason::Time);
        if self.is_lost || self.begins_again || is_late {
            self.is_late |= is_late;
            self.last = first;
            return recording;
        }
        self.difference = recording.difference(&again);
        again
    }

    fn run_again(&mut self, request: &Request<'_>, before: Recording) -> Again {
        self.since = Some(Instant::now());
        let Some((command, Ran { execution, log, fails_alone, .. })) = self.obtain(request) else {
            self.incremental.forget();
            return Again { recording: Recording::new(), before: Some(before), difference: None };
        };
        let mut again = self.incremental.record(&mut self.processes, log, before);
        self.conclude(&mut again.recording, command, execution, fails_alone);
        again
    }

    fn before(&mut self) -> Option<Recording> {
        self.incremental.before(&self.processes)
    }
}

impl Runner<'_> {
    fn command(&self, request: &Request<'_>) -> Command {
        let actor = |process: usize| self.processes.actor(process);
        let mut turns = Turns::with_capacity(request.choices.len());
        for choice in request.choices {
            // Steps with one outcome have the first one, which the runtime takes by itself.
            let value = u16::try_from(choice.outcome).ok().filter(|outcome| *outcome > 0);
            turns.push(Actor { value, ..actor(choice.process) });
        }
        let strategy = match request.preference {
            Preference::Any => Strategy::Round,
            Preference::SameProcess => Strategy::Stay,
        };
        Command {
            asleep: request.asleep.iter().map(|sleeper| actor(sleeper.process)).collect(),
            steps: request.steps as u64,
            explores: true,
            addresses: self.processes.addresses().to_vec(),
            known: self.known.clone(),
            ..self.session.command(strategy, 0, 0, turns)
        }
    }

    /// The execution, from a worker if one has run it, and otherwise run here.
    fn ran(&mut self, command: &Command) -> Result<Ran, Cut> {
        let done = self.ahead.as_ref().and_then(|ahead| ahead.take(command));
        let is_right = |ran: &Ran| self.known.agrees_with(&ran.execution.end.threads);
        match done {
            Some(Ok(ran)) if is_right(&ran) => return Ok(ran),
            Some(Err(cut)) if matches!(cut.lost, Lost::Stopped) => return Err(cut),
            _ => {}
        }
        let Some(pipeline) = &mut self.pipeline else { return self.session.run_here(command, read) };
        let (result, waited) = pipeline.run(self.session.worker_mut(), command);
        // The time that others take does not count.
        self.since = self.since.map(|since| since + waited);
        match result {
            // It was begun with less knowledge; now it is run again.
            Ok(ran) if !is_right(&ran) => pipeline.run(self.session.worker_mut(), command).0,
            result => result,
        }
    }

    fn run_once(&mut self, request: &Request<'_>) -> Recording {
        let Some((command, Ran { execution, log, fails_alone, .. })) = self.obtain(request) else {
            return Recording::new();
        };
        let mut recording = Steps::of(&mut self.processes, &log);
        self.conclude(&mut recording, command, execution, fails_alone);
        recording
    }

    /// Runs the program. Returns `None` if that is not possible any more.
    fn obtain(&mut self, request: &Request<'_>) -> Option<(Command, Ran)> {
        if self.is_lost || self.begins_again {
            return None;
        }
        let mut command = self.command(request);
        if let Some((since, time)) = self.since.zip(self.session.options().time) {
            // The remaining time, if this is not the first run.
            let left = time.saturating_sub(since.elapsed()).as_millis();
            command.time = command.time.min(u64::try_from(left).unwrap_or(u64::MAX)).max(1);
        }
        self.runs += 1;
        let ran = match self.ran(&command) {
            Ok(ran) => ran,
            Err(cut) => {
                self.session.lose(&command, cut);
                self.is_lost = true;
                return None;
            }
        };
        if ran.execution.end.threads.len() > self.known.threads.len() {
            self.known.threads.clone_from(&ran.execution.end.threads);
        }
        self.begins_again |= !ran.shared.is_empty();
        for &(word, bytes) in &ran.shared {
            match self.known.shared.iter_mut().find(|(known, _)| *known == word) {
                Some((_, known)) => *known |= bytes,
                None => self.known.shared.push((word, bytes)),
            }
        }
        for &address in &ran.compared {
            if self.known.compared.len() < MAX_COMPARED && !self.known.compared.contains(&address) {
                self.known.compared.push(address);
            }
        }
        self.threads = self.threads.max(u32::try_from(ran.threads).unwrap_or(u32::MAX));
        Some((command, ran))
    }

    /// An execution has ended: what its threads were about to do. If its last step was an error of a thread that was
    /// alone, all other steps come before it anyway.
    fn conclude(
        &mut self,
        recording: &mut Recording,
        command: Command,
        execution: Execution,
        fails_alone: bool,
    ) {
        let is_new = self.ahead.is_none() && self.pipeline.is_none();
        if is_new && self.runs >= SHORT_SEARCH && recording.len() < LONG_EXECUTION {
            match (self.session.options().jobs.saturating_sub(1), self.session.elsewhere()) {
                (0, None) => self.pipeline = Some(Pipeline::default()),
                (others, elsewhere) => {
                    self.ahead = Some(Ahead::start(others, self.session.another(), elsewhere));
                }
            }
        }
        let is_killed = execution.end.status & 0x7f != 0 || execution.end.reason == Reason::Misuse;
        if is_killed && !fails_alone && !recording.is_over() {
            // What other threads would have done is not known, and so not which steps it could have come before.
            self.is_truncated = true;
        }
        match execution.end.reason {
            // The program has ended, with threads that were about to do something. They could have done it before.
            Reason::None if execution.exit.is_some() => {
                (0..self.processes.len()).for_each(|process| recording.is_prevented(process));
            }
            Reason::None | Reason::Misuse => {
                (0..self.processes.len()).for_each(|process| recording.ends(process))
            }
            // Waiting threads are known to wait. The search excluded the threads that could have continued.
            Reason::Deadlock | Reason::Spun | Reason::Assumed | Reason::Turns | Reason::Steps => {}
            Reason::Stalled
            | Reason::Unsupported
            | Reason::Time
            | Reason::Internal
            | Reason::Stopped
            | Reason::Livelock => {
                recording.cut();
            }
        }
        self.last = Some((command, execution));
    }
}
