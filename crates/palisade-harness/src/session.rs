//! Many executions of one program. Every violation, race and failure is kept once, with the schedule that
//! showed it first.

use crate::allowance::{Allowance, LimitReached};
use crate::divergence::Diverged;
use crate::execution::{Execution, Failure, LeftState, LeftThread, PlacedViolation, Unfollowed};
use crate::log::Record;
use crate::process::{Lost, Program, StartError};
use crate::schedule::{Command, Schedule, Strategy, Turns};
use crate::stream::{Hello, Reason};
use crate::symbols::Symbols;
use crate::worker::{Cut, Worker, run_together};
use palisade_dpor::Divergence;
use palisade_memory::{Interlocked, Model};
use palisade_monitor::{Instructions, Violation};
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
    /// Execution number i has this seed plus i.
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
}

impl Options {
    /// How many bytes the monitors of one execution may use.
    fn room(&self) -> u64 {
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
            model: self.model,
            addresses: Vec::new(),
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
        }
    }
}

/// The execution that showed a finding first.
#[derive(Clone, Debug)]
pub struct First {
    /// Its number in the session, from 1.
    pub number: u64,
    /// Its seed.
    pub seed: u64,
    /// How its threads were scheduled.
    pub strategy: Strategy,
    /// Its turns, if they were kept. Threads are numbered as another session will number them.
    pub turns: Option<Turns>,
    /// The number of the event that showed it.
    pub event: u64,
    /// Why it was not sequentially consistent, if it was not.
    pub reorderings: Vec<NamedReordering>,
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Occurrences<T> {
    /// The finding itself.
    pub what: T,
    /// How many executions showed it.
    pub executions: u64,
    /// How often it was seen in total.
    pub count: u64,
    /// The strongest model under which an execution that showed it is possible, if known.
    pub possible: Option<Model>,
    /// The first execution that showed it, of those that are possible under that model.
    pub first: First,
    /// The number of the last execution that showed it.
    last: u64,
}

/// Two instructions of one thread that took effect in the opposite order, by their names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedReordering {
    /// The store, which comes first in the program.
    pub store: String,
    /// The access that took effect before it.
    pub access: String,
    /// Whether that access is a store too.
    pub writes: bool,
}

/// A race, identified by the names of its instructions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedRace {
    /// The access that came first in the execution that showed it, and whether it writes.
    pub first: (String, bool),
    /// The other one.
    pub second: (String, bool),
}

/// A failure and where it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFailure {
    /// A short name, for machine-readable output.
    pub name: &'static str,
    /// One sentence.
    pub message: String,
    /// Related places, each with a note.
    pub places: Vec<(String, String)>,
    /// Whether the only problem is that the execution could not be followed to its end.
    pub is_inconclusive: bool,
    /// What the program printed in the execution that showed it first. Failures are not distinguished by it.
    pub output: String,
    /// Whether a search through all executions without store buffers has shown that it cannot happen there.
    pub is_excluded_without_buffers: bool,
}

impl NamedFailure {
    /// Whether this is the same failure, whatever the program printed.
    pub fn is_same(&self, other: &NamedFailure) -> bool {
        let NamedFailure {
            name,
            message,
            places,
            is_inconclusive,
            output: _,
            is_excluded_without_buffers: _,
        } = self;
        (name, message, places, is_inconclusive)
            == (&other.name, &other.message, &other.places, &other.is_inconclusive)
    }
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// The names of the instructions in violations.
    pub instructions: Instructions,
    /// Violations, in the order in which they were first seen.
    pub violations: Vec<Occurrences<Violation>>,
    /// Executions with violations under TSO, and under PSO.
    pub violating: [u64; 2],
    /// Races.
    pub races: Vec<Occurrences<NamedRace>>,
    /// Failures.
    pub failures: Vec<Occurrences<NamedFailure>>,
    /// Reorderings by which executions were not sequentially consistent, and how many executions were not.
    pub reorderings: Vec<Occurrences<NamedReordering>>,
    /// Executions that were not sequentially consistent.
    pub reordered: u64,
    /// What could not be followed, and where. For code that was linked into the program, this is the name of
    /// the file.
    pub unfollowed: BTreeMap<(Unfollowed, String), u64>,
    /// Names of the functions in [`Unfollowed::Call`].
    pub calls: BTreeMap<u32, String>,
    /// The number of executions, including those that were cut off at the end.
    pub executions: u64,
    /// Steps of all executions.
    pub steps: u64,
    /// Events that the monitors saw.
    pub events: u64,
    /// Accesses to memory.
    pub accesses: u64,
    /// Executions that ended because an assumption of the program was false.
    pub assumed: u64,
    /// Executions in which the given turns could not be taken.
    pub diverged: u64,
    /// The first event that was not as expected, if an execution could not be repeated.
    pub divergence: Option<Diverged>,
    /// Roughly how much of a search through all partial orders is done, from 0 to 1.
    pub searched: Option<f64>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// Whether it ended because memory ran out.
    pub out_of_memory: bool,
    /// Why the program was lost, if it was.
    pub lost: Option<String>,
    /// The longest execution, in steps.
    pub longest: u64,
    /// The largest number of threads.
    pub threads: usize,
}

impl Findings {
    /// The number of distinct findings.
    pub fn distinct(&self) -> usize {
        let failures = self.failures.iter().filter(|found| found.what.name != VACUOUS).count();
        self.violations.len() + self.races.len() + failures
    }

    fn lose(&mut self, lost: &Lost) {
        match lost {
            Lost::Stopped => self.stopped = true,
            Lost::Memory => self.out_of_memory = true,
            Lost::Broken(_) => self.lost = Some(lost.to_string()),
        }
    }
}

/// A running program.
#[derive(Debug)]
pub struct Session {
    worker: Worker,
    program: Program,
    options: Options,
    allowance: Allowance,
    /// What the runtime reported about the program.
    hello: Hello,
    symbols: Symbols,
    threads: Threads,
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
        let worker = Worker::start(program, options.model, options.interlocked, &allowance, options.room())?;
        let hello = worker.server.hello.clone();
        let symbols = Symbols::new(hello.modules.clone(), folder);
        Ok(Session {
            worker,
            program: program.clone(),
            options: options.clone(),
            allowance,
            hello,
            symbols,
            threads: Threads::default(),
            findings: Findings::default(),
        })
    }

    /// How threads are switched.
    pub fn scheduling(&self) -> &str {
        &self.worker.server.hello.scheduling
    }

    /// Runs as many executions as the options specify. `after_each` is called after each one and returns
    /// whether to continue.
    pub fn run(&mut self, mut after_each: impl FnMut(&Findings) -> bool) {
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
        let Session { worker, program, options, allowance, hello, symbols, threads, findings } = self;
        // Places are identified by their addresses, so all processes must have the same modules.
        let modules = &hello.modules;
        let another = || {
            let worker =
                Worker::start(program, options.model, options.interlocked, allowance, options.room()).ok()?;
            (worker.server.hello.modules == *modules).then_some(worker)
        };
        let count = (options.schedules - counted).min(u64::MAX - options.seed);
        let command =
            |number: u64| options.command(options.strategy, options.seed + number, length, Turns::default());
        let mut notes = Notes { hello, symbols, threads, findings };
        run_together(worker, another, options.jobs, count, command, |command, result| {
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
            Err(Cut { lost, so_far }) => {
                if let Some(execution) = so_far {
                    self.take_in(command, &execution);
                }
                self.findings.lose(&lost);
                None
            }
        }
    }

    pub(crate) fn take_in(&mut self, command: &Command, execution: &Execution) {
        let Session { hello, symbols, threads, findings, .. } = self;
        Notes { hello, symbols, threads, findings }.take_in(command, execution);
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

    /// The options the session was started with.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Whether an execution shows a failure, identified by its name and places.
    pub fn fails(&mut self, execution: &Execution, failure: &NamedFailure) -> bool {
        let numbers = self.threads.numbers(execution);
        let (hello, symbols) = (&self.hello, &mut self.symbols);
        execution
            .failure()
            .is_some_and(|found| name_failure(hello, symbols, &numbers, &found, execution).is_same(failure))
    }

    /// The schedule of an execution, to be written to a file, and whether it answers the question of robustness.
    pub fn schedule(&self, first: &First, shows: String, is_robustness: bool) -> Schedule {
        Schedule {
            program: self.program.command.clone(),
            shows,
            strategy: first.strategy,
            seed: first.seed,
            model: (!is_robustness).then_some(self.options.model),
            turns: first.turns.clone().unwrap_or_default(),
        }
    }

    /// The session's numbers of an execution's threads, as the findings use them.
    pub fn thread_numbers(&mut self, execution: &Execution) -> Vec<u16> {
        self.threads.numbers(execution)
    }

    /// The name of a place.
    pub fn place(&mut self, place: u64) -> String {
        self.symbols.name(place)
    }
}

/// The threads of all executions. A thread is identified by its parent and by its index among the parent's
/// children, and has the same number in all executions.
#[derive(Debug, Default)]
struct Threads {
    known: FxHashMap<(u16, u32), u16>,
}

impl Threads {
    /// The session's numbers of an execution's threads, indexed by their numbers in that execution.
    fn numbers(&mut self, execution: &Execution) -> Vec<u16> {
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

/// What is needed to record an execution.
struct Notes<'a> {
    hello: &'a Hello,
    symbols: &'a mut Symbols,
    threads: &'a mut Threads,
    findings: &'a mut Findings,
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

    fn take_in(&mut self, command: &Command, execution: &Execution) {
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
            turns: execution.portable_turns(),
            event,
            reorderings: reorderings.clone(),
        };
        for (violation, seen) in &execution.violations {
            let named = self.named(violation);
            note(&mut self.findings.violations, named, PartialEq::eq, showing, seen.count, || {
                first(seen.first)
            });
        }
        for (race, count) in &execution.races {
            if [race.first, race.second].into_iter().all(|place| self.symbols.is_libtest(place)) {
                continue;
            }
            let named = NamedRace {
                first: (self.symbols.name(race.first), race.first_writes),
                second: (self.symbols.name(race.second), race.second_writes),
            };
            // The same two accesses in the opposite order are the same race.
            let turned = NamedRace { first: named.second.clone(), second: named.first.clone() };
            let known = self.findings.races.iter().any(|found| found.what == turned);
            let what = if known { turned } else { named };
            note(&mut self.findings.races, what, PartialEq::eq, showing, *count, || first(0));
        }
        for named in &reorderings {
            note(&mut self.findings.reorderings, named.clone(), PartialEq::eq, showing, 1, || first(0));
        }
        self.findings.reordered += u64::from(possible.is_some_and(|possible| possible != Model::Sc));
        let numbers = self.threads.numbers(execution);
        if let Some(failure) = execution.failure() {
            let named = name_failure(self.hello, self.symbols, &numbers, &failure, execution);
            note(&mut self.findings.failures, named, NamedFailure::is_same, showing, 1, || first(0));
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

/// The name of the failure that no execution has met all assumptions. It is kept only as long as that holds.
const VACUOUS: &str = "no-execution";

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
            note(&mut findings.failures, what, NamedFailure::is_same, showing, 1, first);
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

fn note<T>(
    list: &mut Vec<Occurrences<T>>,
    what: T,
    is_same: impl Fn(&T, &T) -> bool,
    Showing { number, possible }: Showing,
    count: u64,
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
        None => list.push(Occurrences { what, executions: 1, count, possible, first: first(), last: number }),
    }
}

/// The message about a deadlock names at most this many threads. The places list all of them.
const MAX_NAMED: usize = 8;

fn name_failure(
    hello: &Hello,
    symbols: &mut Symbols,
    numbers: &[u16],
    failure: &Failure,
    execution: &Execution,
) -> NamedFailure {
    let number = |thread: u16| numbers.get(usize::from(thread)).copied().unwrap_or(thread);
    let mut places = Vec::new();
    let mut threads = |symbols: &mut Symbols, left: &[LeftThread], says: &str| {
        for left in left {
            places.push((symbols.name(left.place), format!("thread {} {says}", number(left.thread))));
        }
    };
    let message = match failure {
        Failure::Signal { signal, place, what } => {
            if *place != 0 {
                places.push((symbols.name(*place), "here".to_owned()));
            }
            match what {
                Some(what) => what.clone(),
                None => format!("the program was ended by {}", signal_name(*signal)),
            }
        }
        Failure::ExitCode { code } => format!("the program ended with exit code {code}"),
        Failure::Deadlock { threads: left } | Failure::Spins { threads: left } => {
            let (spinning, waiting): (Vec<LeftThread>, Vec<LeftThread>) =
                left.iter().partition(|left| left.how == LeftState::Spins);
            threads(symbols, &waiting, "waits here");
            threads(symbols, &spinning, "waits here, in a loop");
            let named = left.iter().take(MAX_NAMED).map(|left| {
                let how = if left.how == LeftState::Spins { "waits in a loop" } else { "waits" };
                format!("thread {} {how} at {}", number(left.thread), symbols.name(left.place))
            });
            let mut parts: Vec<String> = named.collect();
            if left.len() > MAX_NAMED {
                parts.push(format!("{} more wait", left.len() - MAX_NAMED));
            }
            format!("deadlock: {}", parts.join("; "))
        }
        Failure::Livelock { threads: left } => {
            let (running, waiting): (Vec<LeftThread>, Vec<LeftThread>) =
                left.iter().partition(|left| left.how == LeftState::Spins);
            threads(symbols, &waiting, "waits here");
            threads(symbols, &running, "repeats the same steps, and comes through here");
            let named: Vec<String> = running.iter().map(|left| number(left.thread).to_string()).collect();
            match named.as_slice() {
                [one] => format!("livelock: thread {one} repeats the same steps forever"),
                several => format!("livelock: threads {} repeat the same steps forever", several.join(", ")),
            }
        }
        Failure::Misuse(misuse) => {
            places.extend(misuse.places(number, |place| symbols.name(place)));
            misuse.message(number)
        }
        Failure::Endless => "the execution was ended at its step limit".to_owned(),
        Failure::Stalled { call: Some(call), place } => {
            places.push((symbols.name(*place), "this was the last event before it".to_owned()));
            format!(
                "the program was blocked in system call {call} ({}), with all of its threads, for longer than --patience allows",
                call_name(*call)
            )
        }
        Failure::Stalled { call: None, place } => {
            places.push((symbols.name(*place), "this was the last event before it".to_owned()));
            "the program ran for longer than --patience allows without a visible memory access: a long computation, or a loop without accesses, perhaps over a plain variable that optimisation keeps in a register".to_owned()
        }
        Failure::Late => "the execution was ended at its time limit".to_owned(),
        Failure::Leaked { threads: left } => {
            let running: Vec<LeftThread> =
                left.iter().copied().filter(|left| left.how == LeftState::Running).collect();
            let ended: Vec<LeftThread> =
                left.iter().copied().filter(|left| left.how != LeftState::Running).collect();
            threads(symbols, &running, "was here");
            if running.is_empty() {
                format!("the program ended, and {} had never been joined", counted(ended.len()))
            } else {
                format!("the program ended while {} still running", counted_were(running.len()))
            }
        }
        Failure::EarlyExit { thread } => {
            let thread = number(*thread);
            format!("thread {thread} ended the program while the first thread was still running")
        }
        Failure::Unsupported { what } => what.clone(),
        Failure::Vanished => {
            "the program ended without `exit`, so it is not known what its threads were doing".to_owned()
        }
        Failure::Internal { what } => what.clone(),
    };
    let is_followed = execution.unfollowed.is_empty() && hello.not_compiled.is_empty();
    NamedFailure {
        name: failure.name(),
        message,
        places,
        is_inconclusive: failure.is_inconclusive_with(is_followed),
        output: execution.output.text(),
        is_excluded_without_buffers: false,
    }
}

fn counted(threads: usize) -> String {
    if threads == 1 { "a thread".to_owned() } else { format!("{threads} threads") }
}

fn counted_were(threads: usize) -> String {
    if threads == 1 { "a thread was".to_owned() } else { format!("{threads} threads were") }
}

fn signal_name(signal: u32) -> String {
    let name = match signal {
        4 => "SIGILL: an illegal instruction",
        5 => "SIGTRAP",
        6 => "SIGABRT: it aborted",
        7 => "SIGBUS: an access to memory that does not exist",
        8 => "SIGFPE: an arithmetic error",
        9 => "SIGKILL",
        11 => "SIGSEGV: an access to memory that is not allowed",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

fn call_name(call: u32) -> &'static str {
    match call {
        0 => "read",
        1 => "write",
        7 => "poll",
        23 => "select",
        34 => "pause",
        35 | 230 => "a sleep",
        43 => "accept",
        45 => "recvfrom",
        47 => "recvmsg",
        61 | 247 => "waiting for a process",
        202 => "futex",
        232 | 281 => "epoll",
        270 => "pselect",
        271 => "ppoll",
        _ => "unnamed",
    }
}
