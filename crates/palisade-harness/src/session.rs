//! Many executions of one program.

use crate::allowance::{Allowance, LimitReached};
use crate::divergence::Diverged;
use crate::elsewhere::Elsewhere;
use crate::execution::{Execution, Leaks};
use crate::failures::name_failure;
pub use crate::findings::{
    Findings, First, NamedFailure, NamedRace, NamedReordering, Occurrences, Silenced, Unrepeated,
};
use crate::log::Record;
use crate::notes::Notes;
use crate::process::{Lost, Program, StartError};
use crate::schedule::{Command, Known, Schedule, Strategy, Turns};
use crate::stream::{Hello, Module, Reason};
use crate::suppress::{ReadSource, Silencer, Suppressions, UnknownKind, Unused};
use crate::symbols::{Frames, Symbols};
use crate::worker::{Cut, Worker, Workers, run_together};
use palisade_dpor::Divergence;
use palisade_memory::{Interlocked, Model};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What to run and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// How threads are scheduled.
    pub strategy: Strategy,
    /// Execution number i has this seed plus i. After the largest number comes 0.
    pub seed: u64,
    /// The number of executions.
    pub schedules: u64,
    /// The maximum number of steps of an execution.
    pub steps: u64,
    /// An execution without events for this long is ended.
    pub patience: Duration,
    /// An execution that takes this long is ended.
    pub time: Option<Duration>,
    /// The memory model whose store buffers threads have. With SC they have none, and the monitors report where
    /// buffers could make a difference.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// Stop at the first finding.
    pub first_only: bool,
    /// How many bytes this process may use. Memory of the program is not counted. No limit if not given.
    pub memory: Option<u64>,
    /// How many processes of the program run at the same time, unless the executions depend on each other.
    /// The findings do not depend on this number.
    pub jobs: usize,
    /// Findings that are not to be reported, and how source files are read that may contain comments about that.
    pub suppressions: Arc<Suppressions>,
    /// See above.
    pub read_source: ReadSource,
    /// Whether threads may outlive the program's end.
    pub leaks: Leaks,
}

impl Options {
    /// How many bytes the monitors of one execution may use.
    pub(crate) fn room(&self) -> u64 {
        self.memory.map_or(u64::MAX, |memory| memory / self.jobs.max(1) as u64)
    }

    fn command(&self, strategy: Strategy, seed: u64, length: u64, turns: Turns) -> Command {
        let milliseconds = |time: Duration| time.as_millis().min(u128::from(u64::MAX)) as u64;
        Command {
            strategy,
            seed,
            length,
            turns,
            asleep: Vec::new(),
            steps: self.steps,
            stall: milliseconds(self.patience),
            time: self.time.map_or(0, milliseconds),
            explores: false,
            repeats: false,
            model: self.model,
            addresses: Vec::new(),
            known: Known::default(),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            strategy: Strategy::Random,
            seed: 0,
            schedules: 1000,
            steps: 100_000_000,
            patience: Duration::from_secs(5),
            time: None,
            model: Model::Sc,
            interlocked: Interlocked::WholeBuffer,
            first_only: false,
            memory: None,
            jobs: 1,
            suppressions: Arc::default(),
            read_source: |_| None,
            leaks: Leaks::Reported,
        }
    }
}

/// A running program.
#[derive(Debug)]
pub struct Session {
    worker: Worker,
    pub(crate) program: Program,
    pub(crate) options: Options,
    allowance: Allowance,
    /// How much time there was at the start.
    pub(crate) time: Option<Duration>,
    /// What the runtime reported about the program.
    pub(crate) hello: Hello,
    pub(crate) symbols: Symbols,
    pub(crate) threads: Threads,
    silencer: Silencer,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Everything found so far.
    pub findings: Findings,
}

impl Session {
    /// Starts a program. File names are reported relative to `folder`.
    pub fn start(
        program: &Program,
        options: &Options,
        folder: &str,
        stop: &Arc<AtomicBool>,
        deadline: Option<Instant>,
    ) -> Result<Session, StartError> {
        let allowance = Allowance { stop: stop.clone(), deadline, memory: options.memory };
        let time = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let worker = Worker::start(program, options.model, options.interlocked, &allowance, options.room())?;
        let hello = worker.server.hello.clone();
        let symbols = Symbols::new(hello.modules.clone(), folder);
        Ok(Session {
            worker,
            program: program.clone(),
            options: options.clone(),
            allowance,
            time,
            hello,
            symbols,
            threads: Threads::default(),
            silencer: Silencer::new(options.suppressions.clone(), options.read_source),
            elsewhere: None,
            findings: Findings::default(),
        })
    }

    /// The same session, for which other processes run executions, too. What it finds does not depend on them.
    pub fn helped_by(self, elsewhere: Option<Arc<dyn Elsewhere>>) -> Session {
        Session { elsewhere, ..self }
    }

    /// The other processes that run executions, and where the program is in memory.
    pub(crate) fn elsewhere(&self) -> Option<(Arc<dyn Elsewhere>, Vec<Module>)> {
        Some((self.elsewhere.clone()?, self.hello.modules.clone()))
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    pub(crate) fn worker_mut(&mut self) -> &mut Worker {
        &mut self.worker
    }

    /// Starts the program anew, because its process is busy with executions that are not needed. If that is not
    /// possible, the next execution is lost.
    pub(crate) fn restart(&mut self) {
        let restored = self.worker.restored();
        self.worker.server.killer().kill();
        if let Some(worker) = self.another()() {
            self.worker = worker;
            self.worker.server.restored = restored;
        }
    }

    /// How threads are switched.
    pub fn scheduling(&self) -> &str {
        &self.worker.server.hello.scheduling
    }

    /// Runs as many executions as the options specify. `after_each` is called after each one and returns
    /// whether to continue.
    pub fn run(&mut self, mut after_each: impl FnMut(&Findings) -> bool) {
        self.run_all(&mut after_each);
    }

    /// The same. Not generic, so that everything that is done for each execution is compiled with this crate.
    fn run_all(&mut self, after_each: &mut dyn FnMut(&Findings) -> bool) {
        let (mut length, mut counted) = (0, 0);
        if let Strategy::Pct { .. } = self.options.strategy
            && self.options.schedules > 0
        {
            // The length of executions is measured with one that is the same on every run of the program.
            let command = self.command(Strategy::Stay, 0, 0, Turns::default());
            let Some(execution) = self.try_out(&command, |_| ()) else { return };
            length = execution.end.steps;
            if matches!(execution.end.reason, Reason::Time | Reason::Stalled) {
                // It used up the time limit of a single execution, so it counts as the first.
                self.take_in(&command, &execution);
                counted = 1;
                let enough = self.options.first_only && self.findings.distinct() > 0;
                if !after_each(&self.findings) || enough {
                    return;
                }
            }
        }
        let elsewhere = self.elsewhere();
        let Session {
            worker, program, options, allowance, hello, symbols, threads, silencer, findings, ..
        } = self;
        let another = another(program, options, allowance, hello);
        let count = options.schedules - counted;
        let command = |number: u64| {
            options.command(options.strategy, options.seed.wrapping_add(number), length, Turns::default())
        };
        let mut notes = Notes { hello, symbols, threads, silencer, leaks: options.leaks, findings };
        let elsewhere = elsewhere.as_ref().map(|(elsewhere, modules)| (&**elsewhere, modules.as_slice()));
        let workers = Workers { own: worker, another, count: options.jobs, elsewhere };
        run_together(workers, count, command, |command, result| {
            match result {
                Ok(execution) => notes.take_in(&command, &execution),
                Err(Cut { lost, so_far }) => {
                    if let Some(execution) = so_far {
                        notes.take_in(&command, &execution);
                    }
                    notes.findings.lose(&lost);
                    // All other executions end too in that case, and what they have shown counts.
                    return matches!(lost, Lost::Stopped);
                }
            }
            let enough = options.first_only && notes.findings.distinct() > 0;
            after_each(notes.findings) && !enough
        });
    }

    /// A command with the session's options.
    pub fn command(&self, strategy: Strategy, seed: u64, length: u64, turns: Turns) -> Command {
        self.options.command(strategy, seed, length, turns)
    }

    /// Runs one execution and records what it shows. Returns `None` if the program was lost or the session
    /// was stopped; the findings then say so.
    pub fn execute(&mut self, command: &Command) -> Option<Execution> {
        let execution = self.try_out(command, |_| ())?;
        self.take_in(command, &execution);
        Some(execution)
    }

    /// Runs one execution and shows its records to `also`. The caller decides whether it counts. If it is cut
    /// off, what it has shown counts.
    pub(crate) fn try_out(&mut self, command: &Command, also: impl FnMut(&Record)) -> Option<Execution> {
        match self.worker.run(command, also) {
            Ok(execution) => Some(execution),
            Err(cut) => {
                self.lose(command, cut);
                None
            }
        }
    }

    /// Requests an execution from the session's own process, and reads it.
    pub(crate) fn run_here<T>(
        &mut self,
        command: &Command,
        read: impl FnOnce(&mut Worker) -> Result<T, Cut>,
    ) -> Result<T, Cut> {
        self.worker.server.ask(command)?;
        read(&mut self.worker)
    }

    /// An execution was cut off, or lost.
    pub(crate) fn lose(&mut self, command: &Command, Cut { lost, so_far }: Cut) {
        if let Some(execution) = so_far {
            self.take_in(command, &execution);
        }
        self.findings.lose(&lost);
    }

    /// Starts further processes of the program.
    pub(crate) fn another(&self) -> impl Fn() -> Option<Worker> + Clone + Send + 'static {
        another(&self.program, &self.options, &self.allowance, &self.hello)
    }

    pub(crate) fn take_in(&mut self, command: &Command, execution: &Execution) {
        let Session { hello, symbols, threads, silencer, options, findings, .. } = self;
        Notes { hello, symbols, threads, silencer, leaks: options.leaks, findings }
            .take_in(command, execution);
    }

    /// Whether an execution shows a violation, identified by its model and the names of its instructions.
    pub fn shows(&mut self, execution: &Execution, model: Model, names: &[String; 3]) -> bool {
        execution.violations.iter().any(|(shown, _)| {
            let named = [shown.store, shown.previous, shown.access].map(|place| self.symbols.name(place));
            shown.model == model && named == *names
        })
    }

    /// Forgets everything found so far: the search begins again.
    pub(crate) fn start_over(&mut self) {
        self.threads = Threads::default();
        self.findings = Findings::default();
    }

    /// Records where an execution did not repeat itself, as a search has found.
    pub(crate) fn name_divergence(
        &mut self,
        divergence: &Divergence,
        thread: u16,
        execution: Option<&Execution>,
    ) {
        let Session { symbols, threads, findings, .. } = self;
        let numbers = execution.map(|execution| threads.numbers(execution)).unwrap_or_default();
        let thread = numbers.get(usize::from(thread)).copied().unwrap_or(thread);
        findings.divergence = Some(Diverged::new(divergence, thread, |place| symbols.name(place)));
    }

    /// Whether the search should end; the findings then say why. Also checks the memory from time to time.
    pub(crate) fn is_over(&mut self, looks_at_memory: bool) -> bool {
        let allowed = if looks_at_memory { self.allowance.check() } else { self.allowance.check_time() };
        match allowed {
            Ok(()) => {}
            Err(LimitReached::Memory) => self.findings.out_of_memory = true,
            Err(LimitReached::Stopped | LimitReached::Time) => self.findings.stopped = true,
        }
        self.findings.stopped || self.findings.out_of_memory
    }

    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// The options the session was started with.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Whether an execution shows a failure, identified by its name and places.
    pub fn fails(&mut self, execution: &Execution, failure: &NamedFailure) -> bool {
        let numbers = self.threads.numbers(execution);
        let (hello, symbols) = (&self.hello, &mut self.symbols);
        execution
            .failure(self.options.leaks)
            .is_some_and(|found| name_failure(hello, symbols, &numbers, &found, execution).is_same(failure))
    }

    /// The schedule of an execution, to be written to a file, and whether it answers the question of robustness.
    pub fn schedule(&self, first: &First, shows: String, is_robustness: bool) -> Schedule {
        Schedule {
            program: self.program.command.clone(),
            shows,
            strategy: first.strategy,
            seed: first.seed,
            length: first.length,
            model: (!is_robustness).then_some(self.options.model),
            turns: first.turns.clone().unwrap_or_default(),
            search: first.search.clone(),
        }
    }

    /// The command that runs a schedule: its turns, or its seed if there were too many turns to keep.
    pub fn repetition(&self, schedule: &Schedule) -> Command {
        let strategy = if schedule.turns.turns.is_empty() { schedule.strategy } else { Strategy::Stay };
        Command {
            explores: schedule.search.is_some(),
            repeats: schedule.search.is_some(),
            known: schedule.search.clone().unwrap_or_default(),
            ..self.command(strategy, schedule.seed, schedule.length, schedule.turns.clone())
        }
    }

    /// The session's numbers of an execution's threads, as the findings use them.
    pub fn thread_numbers(&mut self, execution: &Execution) -> Vec<u16> {
        self.threads.numbers(execution)
    }

    /// Entries of the file of suppressions that have silenced nothing.
    pub fn unused_suppressions(&self) -> Vec<Unused> {
        self.silencer.unused()
    }

    /// Comments about suppressions that name unknown kinds.
    pub fn unknown_kinds(&self) -> &[UnknownKind] {
        self.silencer.unknown_kinds()
    }

    /// The other frames of places that were named, by their names.
    pub fn frames(&self) -> &BTreeMap<String, Frames> {
        self.symbols.all_frames()
    }

    /// The name of a place.
    pub fn place(&mut self, place: u64) -> String {
        self.symbols.name(place)
    }
}

/// Starts further processes of a program. Places are identified by their addresses, so all processes must have the
/// same modules.
fn another(
    program: &Program,
    options: &Options,
    allowance: &Allowance,
    hello: &Hello,
) -> impl Fn() -> Option<Worker> + Clone + Send + Sync + use<> {
    let (program, options, allowance) = (program.clone(), options.clone(), allowance.clone());
    let modules = hello.modules.clone();
    move || {
        let worker =
            Worker::start(&program, options.model, options.interlocked, &allowance, options.room()).ok()?;
        (worker.server.hello.modules == modules).then_some(worker)
    }
}

/// The threads of all executions. A thread is identified by its parent and by its index among the parent's
/// children, and has the same number in all executions.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    known: FxHashMap<(u16, u32), u16>,
}

impl Threads {
    /// The session's numbers of an execution's threads, indexed by their numbers in that execution.
    pub fn numbers(&mut self, execution: &Execution) -> Vec<u16> {
        let mut numbers = vec![0; execution.end.threads.len()];
        for &thread in &execution.started {
            let Some(&(parent, sibling)) = execution.end.threads.get(usize::from(thread)) else { continue };
            let parent = numbers.get(parent as usize).copied().unwrap_or(0);
            let new = self.known.len() as u16 + 1;
            numbers[usize::from(thread)] = *self.known.entry((parent, sibling)).or_insert(new);
        }
        numbers
    }
}
