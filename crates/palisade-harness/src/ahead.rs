//! Executions of a search that are run before the search asks for them, on other cores.
//!
//! The search announces what it is going to request ([`palisade_dpor::Executions::expect`]). Workers run these
//! executions and read their logs. When the request comes, the result is there or will be soon. The search itself
//! goes through the results one after the other, in the same order as without workers. So everything that it shows
//! is the same, whatever the number of workers and however long they take.
//!
//! *What executions know about each other.* An execution depends on its command, and on what earlier executions have
//! shown: the numbers of threads, and which parts of stacks are shared. All of this is in the command ([`Known`]) and
//! grows during a search, mostly at its start. An execution that was run ahead of time knows less than the search does
//! when it gets to it. Its result is used only if the search would have got the same one: what it has found out
//! extends what the search knows, or is part of it. Otherwise the execution is run again.

use crate::elsewhere::{self, Elsewhere};
use crate::execution::{Execution, NOTE_BITS, NOTE_SHARED_STACK};
use crate::log::{Record, RecordKind, WAITS};
use crate::process::Killer;
use crate::schedule::{Actor, Command, Known, Turns};
use crate::stream::Module;
use crate::worker::{Cut, Worker};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How many executions a worker has begun at the same time: the program runs one while the log of another is read.
const BEGUN: usize = 4;

/// How many executions per worker are announced and have not ended.
const ANNOUNCED: usize = 8;

/// How many executions that have ended are kept, and how many records they have in all. The search goes into depth,
/// so it may get to an execution long after it was announced.
const KEPT: usize = 1 << 12;
const KEPT_RECORDS: usize = 1 << 20;

/// What an execution of a search has shown.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) execution: Execution,
    /// Its log.
    pub(crate) log: Vec<Record>,
    /// Words of stacks that turned out to be shared. The search has to start again.
    pub(crate) shared: Vec<(u64, u8)>,
    /// Addresses at which memory was compared with a number, each of them perhaps several times.
    pub(crate) compared: Vec<u64>,
    /// The largest number of a thread, plus one.
    pub(crate) threads: usize,
    /// The first thread has made an error in its use of memory, after every other thread had ended and was joined.
    pub(crate) fails_alone: bool,
}

/// Reads the log of an execution that was requested.
pub(crate) fn read(worker: &mut Worker) -> Result<Ran, Cut> {
    let (mut threads, mut shared, mut comparisons) = (0, Vec::new(), Comparisons::default());
    let mut announced = Announced::default();
    let (mut unjoined, mut fails_alone) = (0_i64, false);
    let mut log = Vec::with_capacity(worker.usual_length);
    let execution = worker.read(|record| {
        threads = threads.max(usize::from(record.thread) + 1);
        if record.kind == RecordKind::Note && record.address & ((1 << NOTE_BITS) - 1) == NOTE_SHARED_STACK {
            shared.push((record.place, (record.address >> NOTE_BITS) as u8));
        }
        match record.kind {
            RecordKind::Start if record.is_chosen() => unjoined += 1,
            RecordKind::Join if record.is_chosen() => unjoined -= 1,
            RecordKind::Misuse => fails_alone |= record.thread == 0 && unjoined == 0,
            _ => {}
        }
        comparisons.take(record);
        debug_assert!(announced.agrees_with(record), "a thread takes the step it announced: {record:?}");
        log.push(*record);
    })?;
    worker.usual_length = worker.usual_length.max(log.len());
    Ok(Ran { execution, log, shared, compared: comparisons.done, threads, fails_alone })
}

/// Collects the addresses at which memory was compared with a number. Steps that are only announced do not count: their
/// address may not be valid.
#[derive(Default)]
struct Comparisons {
    /// The address of the last record.
    last: u64,
    /// Steps that are announced, each by its thread and address.
    announced: Vec<(u16, u64)>,
    done: Vec<u64>,
}

impl Comparisons {
    fn take(&mut self, record: &Record) {
        let known = |announced: &[(u16, u64)]| {
            announced.iter().position(|&step| step == (record.thread, record.address))
        };
        match record.kind {
            RecordKind::Value if record.continues() && record.size > 0 => {
                let step = (record.thread, self.last);
                if !self.announced.contains(&step) {
                    self.announced.push(step);
                }
            }
            RecordKind::Locked | RecordKind::LockedLoad
                if !self.announced.is_empty() && !record.is_pending() =>
            {
                if let Some(at) = known(&self.announced) {
                    self.announced.swap_remove(at);
                    self.done.push(record.address);
                }
            }
            _ => {}
        }
        self.last = record.address;
    }
}

/// Checks invariant 2 of the [log](crate::log): a thread is chosen only when its last announcement says that
/// it can continue.
#[derive(Default)]
struct Announced {
    can_continue: Vec<bool>,
}

impl Announced {
    fn agrees_with(&mut self, record: &Record) -> bool {
        let thread = usize::from(record.thread);
        if record.kind == RecordKind::Update || record.continues() {
            return true;
        }
        if record.is_pending() {
            if self.can_continue.len() <= thread {
                self.can_continue.resize(thread + 1, false);
            }
            self.can_continue[thread] = record.flags & WAITS == 0;
            return true;
        }
        !record.is_chosen() || self.can_continue.get(thread).is_some_and(|can| *can)
    }
}

/// How an execution begins, and how many addresses it knows at which memory is compared. It has the same key whatever
/// else the command says.
pub(crate) type Key = (Turns, Vec<Actor>, usize);

pub(crate) fn key(command: &Command) -> Key {
    (command.turns.clone(), command.asleep.clone(), command.known.compared.len())
}

/// Results of executions that were not requested yet.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    /// With how many records each has.
    results: FxHashMap<Key, (T, usize)>,
    /// Their keys, the oldest first.
    order: VecDeque<Key>,
    records: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { results: FxHashMap::default(), order: VecDeque::new(), records: 0 }
    }
}

impl<T> Kept<T> {
    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.results.contains_key(key)
    }

    /// Keeps a result. If there are too many, the oldest are dropped: the search gets to others first. If it gets to
    /// these, it runs them again.
    pub(crate) fn insert(&mut self, key: Key, result: T, records: usize) {
        self.order.push_back(key.clone());
        self.results.insert(key, (result, records));
        self.records += records;
        while (self.order.len() > KEPT || self.records > KEPT_RECORDS)
            && let Some(oldest) = self.order.front().cloned()
        {
            self.remove(&oldest);
        }
    }

    /// Takes out a result.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<T> {
        let (result, records) = self.results.remove(key)?;
        self.records -= records;
        // The last ones are requested first, as a rule.
        if let Some(at) = self.order.iter().rposition(|kept| kept == key) {
            self.order.remove(at);
        }
        Some(result)
    }
}

/// Workers, and what they run.
#[derive(Debug)]
pub(crate) struct Ahead {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The one that the search will request first comes first.
    waiting: VecDeque<(Key, Command)>,
    /// Announced executions that have not ended.
    announced: FxHashSet<Key>,
    ended: Kept<Result<Ran, Cut>>,
    workers: usize,
    /// How many threads wait for something to change.
    sleepers: usize,
    killers: Vec<Killer>,
    is_closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has changed.
    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.sleepers += 1;
        let mut state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        state
    }

    /// A worker has nothing more to do.
    fn leave(&self) {
        let mut state = self.state();
        state.workers -= 1;
        if state.workers == 0 {
            // No one else will.
            state.waiting.clear();
            state.announced.clear();
        }
        self.notify(&state);
    }

    /// Something has changed. Even waking up no one would take a system call.
    fn notify(&self, state: &State) {
        if state.sleepers > 0 {
            self.moved.notify_all();
        }
    }
}

impl Ahead {
    /// Starts this many workers, each with a process of its own, and one for each request that other processes want to
    /// have.
    pub(crate) fn start(
        count: usize,
        another: impl Fn() -> Option<Worker> + Clone + Send + 'static,
        elsewhere: Option<(Arc<dyn Elsewhere>, Vec<Module>)>,
    ) -> Ahead {
        let shared = Arc::new(Shared::default());
        let requests = elsewhere.as_ref().map_or(0, |(elsewhere, _)| elsewhere.appetite());
        shared.state().workers = count + requests;
        let mut workers = Vec::new();
        for _ in 0..count {
            let (shared, another) = (shared.clone(), another.clone());
            workers.push(std::thread::spawn(move || {
                if let Some(mut worker) = another() {
                    work(&mut worker, &shared);
                }
                shared.leave();
            }));
        }
        for (elsewhere, modules) in (0..requests).filter_map(|_| elsewhere.clone()) {
            let shared = shared.clone();
            workers.push(std::thread::spawn(move || {
                work_elsewhere(&*elsewhere, &modules, &shared);
                shared.leave();
            }));
        }
        Ahead { workers, shared }
    }

    /// The search is going to request this execution.
    pub(crate) fn expect(&self, command: Command) {
        let key = key(&command);
        let mut state = self.shared.state();
        if state.workers > 0 && !state.ended.contains(&key) && state.announced.insert(key.clone()) {
            state.waiting.push_front((key, command));
            self.shared.notify(&state);
        }
    }

    /// The result of an execution that was announced; `None` if it was not, or was lost.
    pub(crate) fn take(&self, command: &Command) -> Option<Result<Ran, Cut>> {
        let key = key(command);
        let mut state = self.shared.state();
        if let Some(at) = state.waiting.iter().position(|(waiting, _)| *waiting == key) {
            // It has not begun, and the caller can run it at once.
            state.waiting.remove(at);
            state.announced.remove(&key);
            return None;
        }
        loop {
            if let Some(result) = state.ended.remove(&key) {
                return Some(result);
            }
            if !state.announced.contains(&key) {
                return None;
            }
            state = self.shared.wait(state);
        }
    }

    /// How many more executions to announce now.
    pub(crate) fn appetite(&self) -> usize {
        let state = self.shared.state();
        (ANNOUNCED * state.workers).saturating_sub(state.announced.len())
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        state.killers.iter().for_each(Killer::kill);
        drop(state);
        self.shared.moved.notify_all();
        for worker in self.workers.drain(..) {
            // If it has panicked, what it was supposed to run is lost.
            let _ = worker.join();
        }
    }
}

/// Runs executions until there will be no more.
fn work(worker: &mut Worker, shared: &Shared) {
    {
        let mut state = shared.state();
        if state.is_closed {
            return;
        }
        state.killers.push(worker.server.killer());
    }
    let mut begun: VecDeque<Key> = VecDeque::new();
    loop {
        let mut state = shared.state();
        while begun.len() < BEGUN && !state.is_closed {
            let Some((key, command)) = state.waiting.pop_front() else {
                if !begun.is_empty() {
                    break;
                }
                state = shared.wait(state);
                continue;
            };
            drop(state);
            let is_sent = if begun.is_empty() {
                // If it cannot be sent, reading fails.
                let _ = worker.server.ask(&command);
                true
            } else {
                worker.server.try_ask(&command)
            };
            state = shared.state();
            if !is_sent {
                state.waiting.push_front((key, command));
                break;
            }
            begun.push_back(key);
        }
        if state.is_closed {
            return;
        }
        drop(state);
        let Some(key) = begun.pop_front() else { return };
        let result = read(worker);
        let is_lost = result.is_err();
        let mut state = shared.state();
        let records = result.as_ref().map_or(0, |ran| ran.log.len());
        state.announced.remove(&key);
        state.ended.insert(key, result, records);
        if is_lost {
            begun.iter().for_each(|key| _ = state.announced.remove(key));
        }
        shared.notify(&state);
        drop(state);
        if is_lost {
            return;
        }
    }
}

/// Has executions run by another process until there will be no more.
fn work_elsewhere(elsewhere: &dyn Elsewhere, modules: &[Module], shared: &Shared) {
    let mut state = shared.state();
    while !state.is_closed {
        let Some((key, command)) = state.waiting.pop_front() else {
            state = shared.wait(state);
            continue;
        };
        drop(state);
        let result = elsewhere::explore(elsewhere, modules, &command);
        let is_lost = result.is_err();
        let records = result.as_ref().map_or(0, |ran| ran.log.len());
        state = shared.state();
        state.announced.remove(&key);
        state.ended.insert(key, result, records);
        shared.notify(&state);
        if is_lost {
            return;
        }
    }
}

impl Known {
    /// Whether an execution that knew this, or found it out, is the one that would have been run with what is
    /// known now.
    pub(crate) fn agrees_with(&self, threads: &[(u32, u32)]) -> bool {
        let common = self.threads.len().min(threads.len());
        self.threads[..common] == threads[..common]
    }
}
