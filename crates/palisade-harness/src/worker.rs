//! Workers: processes of the program that run executions in parallel.
//!
//! Executions are numbered and are handed on in the order of their numbers, whichever worker ran them and
//! however long it took. An execution depends only on its command. So the findings are the same with any
//! number of workers.

use crate::allowance::{Allowance, LimitReached};
use crate::elsewhere::{self, Elsewhere};
use crate::execution::{Analyses, Execution, Places, Recorder};
use crate::log::Record;
use crate::process::{Killer, Lost, Output, Program, Server, StartError};
use crate::schedule::Command;
use crate::stream::{End, Module, Reason};
use palisade_memory::{Interlocked, Model};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Schedules with more turns are not kept; only their seed is.
const MAX_TURNS: usize = 1 << 18;
/// This many executions are requested from a worker ahead of time.
const AHEAD: usize = 4;
/// This many are requested at once from another process, if that does not take long.
const AT_ONCE: usize = 16;
const SOON: Duration = Duration::from_millis(20);
/// This many executions per worker may run ahead of one that is still missing.
const WINDOW: u64 = 32;

/// A process of the program.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) server: Server,
    places: Places,
    analyses: Analyses,
    model: Model,
    interlocked: Interlocked,
    allowance: Allowance,
    /// How many bytes the monitors of an execution may use.
    room: u64,
    /// The number of records of the longest execution of a search so far.
    pub(crate) usual_length: usize,
}

/// An execution that did not run to its end.
#[derive(Debug)]
pub(crate) struct Cut {
    /// Why it was lost.
    pub(crate) lost: Lost,
    /// What it had shown until then.
    pub(crate) so_far: Option<Box<Execution>>,
}

impl From<Lost> for Cut {
    fn from(lost: Lost) -> Cut {
        Cut { lost, so_far: None }
    }
}

impl Worker {
    /// Starts the program.
    pub(crate) fn start(
        program: &Program,
        model: Model,
        interlocked: Interlocked,
        allowance: &Allowance,
        room: u64,
    ) -> Result<Worker, StartError> {
        let server = Server::start(program, allowance)?;
        let (places, analyses, allowance) = (Places::default(), Analyses::default(), allowance.clone());
        Ok(Worker { server, places, analyses, model, interlocked, allowance, room, usual_length: 0 })
    }

    /// How many executions have shared a process with others.
    pub(crate) fn restored(&self) -> u64 {
        self.server.restored
    }

    /// Runs one execution and shows its records to `also`.
    pub(crate) fn run(&mut self, command: &Command, also: impl FnMut(&Record)) -> Result<Execution, Cut> {
        self.server.ask(command)?;
        self.read(also)
    }

    /// Reads the next requested execution, and shows its records to `also`.
    pub(crate) fn read(&mut self, mut also: impl FnMut(&Record)) -> Result<Execution, Cut> {
        let mut recorder = Recorder::new(
            &mut self.places,
            &mut self.analyses,
            self.model,
            self.interlocked,
            MAX_TURNS,
            self.room,
        );
        let (full, allowance) = (recorder.full(), &self.allowance);
        let mut messages = Vec::new();
        let read = self.server.read(
            |record| {
                recorder.take(record);
                also(record);
            },
            |text| messages.push(text),
            || if full.load(Ordering::Relaxed) { Err(LimitReached::Memory) } else { allowance.check() },
        );
        let (end, output, lost) = match read {
            Ok((end, output)) => {
                let lost = (end.reason == Reason::Stopped).then_some(Lost::Stopped);
                (end, output, lost)
            }
            Err(lost @ (Lost::Stopped | Lost::Memory)) => {
                let end = End { reason: Reason::Stopped, steps: recorder.steps(), ..End::default() };
                (end, Output::default(), Some(lost))
            }
            Err(lost) => return Err(lost.into()),
        };
        let has_begun = recorder.steps() > 0;
        let execution = recorder.finish(end, messages, output);
        let lost = if full.load(Ordering::Relaxed) { Some(Lost::Memory) } else { lost };
        match lost {
            Some(lost) => Err(Cut { lost, so_far: has_begun.then(|| Box::new(execution)) }),
            None => Ok(execution),
        }
    }

    /// Runs executions as long as there are any left.
    fn work(&mut self, line: &Line, command: &impl Fn(u64) -> Command, done: &Sender<Done>) {
        line.register(self.server.killer());
        let mut requested = VecDeque::new();
        loop {
            while requested.len() < AHEAD
                && let Some(number) = line.next(requested.is_empty())
            {
                let command = command(number);
                let sent = self.server.ask(&command);
                requested.push_back((number, command));
                if sent.is_err() {
                    break;
                }
            }
            let Some((number, command)) = requested.pop_front() else { return };
            let result = self.read(|_| ());
            let is_lost = result.is_err();
            // Once enough was seen, the receiver is gone.
            if done.send(Done { number, command, result }).is_err() || is_lost {
                return;
            }
        }
    }
}

/// Has executions run elsewhere as long as there are any left. Short ones are requested several at a time.
fn work_elsewhere(
    elsewhere: &dyn Elsewhere,
    modules: &[Module],
    line: &Line,
    command: &impl Fn(u64) -> Command,
    done: &Sender<Done>,
) {
    let mut at_once = 1;
    while let Some(first) = line.next(true) {
        let mut numbers = vec![first];
        while numbers.len() < at_once
            && let Some(number) = line.next(false)
        {
            numbers.push(number);
        }
        let commands: Vec<Command> = numbers.iter().map(|&number| command(number)).collect();
        let start = Instant::now();
        let results = elsewhere::run(elsewhere, modules, &commands);
        at_once = if start.elapsed() < SOON { (at_once * 2).min(AT_ONCE) } else { at_once.div_ceil(2) };
        let mut is_lost = results.len() < commands.len();
        for ((number, command), result) in numbers.into_iter().zip(commands).zip(results) {
            is_lost |= result.is_err();
            if done.send(Done { number, command, result }).is_err() {
                return;
            }
        }
        if is_lost {
            return;
        }
    }
}

/// An execution that was run or lost.
struct Done {
    number: u64,
    command: Command,
    result: Result<Execution, Cut>,
}

/// What runs executions.
pub(crate) struct Workers<'a, A> {
    /// A worker that is there.
    pub own: &'a mut Worker,
    /// Starts others.
    pub another: A,
    /// How many there are to be in all.
    pub count: usize,
    /// Other processes, and where the program is in memory.
    pub elsewhere: Option<(&'a dyn Elsewhere, &'a [Module])>,
}

/// Runs this many executions on a worker and on others that are started in addition. Hands them to `take` in
/// order until it returns `false`, which means that these were enough. If executions are left at that point,
/// the worker cannot be used any longer. If one is lost and `take` wants to continue, no new ones are begun,
/// and those already begun are handed on.
pub(crate) fn run_together<A: Fn() -> Option<Worker> + Sync>(
    workers: Workers<'_, A>,
    count: u64,
    command: impl Fn(u64) -> Command + Sync,
    mut take: impl FnMut(Command, Result<Execution, Cut>) -> bool,
) {
    let Workers { own, another, count: workers, elsewhere } = workers;
    let workers = workers.min(usize::try_from(count).unwrap_or(usize::MAX)).max(1);
    let requests = elsewhere.map_or(0, |(elsewhere, _)| elsewhere.appetite());
    let line = Line::new(count, WINDOW * (workers + requests) as u64);
    let (line, command, another) = (&line, &command, &another);
    let (done, finished) = channel::<Done>();
    std::thread::scope(|scope| {
        for _ in 1..workers {
            let done = done.clone();
            scope.spawn(move || {
                if let Some(mut worker) = another() {
                    worker.work(line, command, &done);
                }
            });
        }
        for (elsewhere, modules) in (0..requests).filter_map(|_| elsewhere) {
            let done = done.clone();
            scope.spawn(move || work_elsewhere(elsewhere, modules, line, command, &done));
        }
        scope.spawn(move || own.work(line, command, &done));
        // Executions that finished before their turn.
        let mut early = BTreeMap::new();
        let mut next = 0;
        for done in finished {
            early.insert(done.number, done);
            while let Some(Done { command, result, .. }) = early.remove(&next) {
                next += 1;
                line.taken();
                let is_lost = result.is_err();
                if !take(command, result) {
                    if next < count {
                        line.close();
                    }
                    return;
                }
                if is_lost {
                    line.end();
                }
            }
        }
        // Some executions before these were never run.
        for Done { command, result, .. } in early.into_values() {
            if !take(command, result) {
                return;
            }
        }
    });
}

/// The numbers of the executions that are still to be run.
#[derive(Debug)]
struct Line {
    count: u64,
    window: u64,
    state: Mutex<LineState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct LineState {
    next: u64,
    taken: u64,
    is_closed: bool,
    workers: Vec<Killer>,
}

impl Line {
    fn new(count: u64, window: u64) -> Line {
        Line { count, window, state: Mutex::default(), moved: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next number. If too many earlier ones are missing, either waits or returns `None`.
    fn next(&self, waits: bool) -> Option<u64> {
        let mut state = self.state();
        loop {
            if state.is_closed || state.next >= self.count {
                return None;
            }
            if state.next < state.taken + self.window {
                state.next += 1;
                return Some(state.next - 1);
            }
            if !waits {
                return None;
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that one more was taken.
    fn taken(&self) {
        self.state().taken += 1;
        self.moved.notify_all();
    }

    /// Registers a worker that is to be ended when enough was seen.
    fn register(&self, worker: Killer) {
        let mut state = self.state();
        if state.is_closed {
            worker.kill();
        }
        state.workers.push(worker);
    }

    /// No new executions are begun.
    fn end(&self) {
        self.state().is_closed = true;
        self.moved.notify_all();
    }

    /// Enough was seen.
    fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.workers.iter().for_each(Killer::kill);
        self.moved.notify_all();
    }
}
