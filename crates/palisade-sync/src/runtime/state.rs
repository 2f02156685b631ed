//! An execution: its threads, what each will do next, and which of them can run.
//!
//! *Invariants*
//! 1. One thread runs at a time: the one in `running`. Every other thread waits for its turn.
//! 2. Every thread that does not run has announced its next step. Checked at every decision.
//! 3. There is a decision before every step that touches what other threads can touch. Only the running
//!    thread records events; this is checked at every event.

use super::buffers::{Buffers, Drain};
use super::livelock::Rounds;
use super::schedule::{Schedule, Turn};
use super::session::{Actor, CallSite, Session};
use super::spin::{Look, Looks};
use super::strategy::Strategy;
use super::trace::Trace;
use palisade_dpor::{Footprint, Mode, Recording, Touch};
use palisade_monitor::{Action, Event, Instruction, Process};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Condvar};

/// What a thread will do next.
#[derive(Clone, Debug)]
pub struct Pending {
    pub footprint: Footprint,
    pub wait: Wait,
    pub instruction: Instruction,
    pub outcomes: Outcomes,
    /// Which of its stores have to reach memory first.
    pub drain: Drain,
    /// Whether the step adds itself to the trace. Otherwise it is added by its footprint.
    pub traces_itself: bool,
}

/// How many outcomes a step has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcomes {
    /// One.
    One,
    /// One per thread that waits for this condition variable and has not been notified.
    PerWaiter(u64),
}

/// What a thread has to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Nothing.
    No,
    /// A mutex to be free, or a lock that no thread holds.
    Free(u64),
    /// A lock that no thread holds for writing.
    Readable(u64),
    /// To be notified, and the mutex to be free.
    Notified { condvar: u64, mutex: u64 },
    /// The end of a thread.
    End(usize),
    /// Its own token to be available.
    Token(u64),
    /// Another thread to finish the first call.
    Called(u64),
    /// A barrier to open.
    Generation(u64, u64),
    /// A message, or the end of all senders.
    Message(u64),
    /// Room for a message, or the end of the receiver.
    Room(u64),
}

/// Synchronisation objects, by address.
#[derive(Clone, Hash, Debug)]
pub enum Object {
    /// A mutex or a read-write lock: the number of readers, and whether there is a writer.
    Lock { readers: usize, writer: bool },
    /// The waiting threads, and whether they were notified.
    Condvar { waiters: Vec<(usize, bool)> },
    /// Whether the token is available.
    Token(bool),
    /// The first call has not begun, is in progress, or is done.
    Once(Progress),
    /// How many threads have arrived, and how often it has opened.
    Barrier { arrived: usize, generation: u64 },
    /// Messages, senders, whether there is a receiver, and the maximum number of messages.
    Channel { messages: usize, senders: usize, receiver: bool, capacity: usize },
}

/// The progress of a first call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Progress {
    Before,
    Running,
    Done,
}

/// A thread.
#[derive(Debug)]
pub struct Thread {
    pub pending: Option<Pending>,
    pub ended: bool,
    pub name: Option<String>,
    /// Where it was started.
    pub started: Option<Instruction>,
    pub last: Option<Instruction>,
    children: u32,
    objects: u64,
    pub(super) looks: Looks,
    /// The round of its waiting loop, if it is in one.
    pub(super) round: Option<Vec<Look>>,
    pub turn: Arc<Condvar>,
}

/// How an execution ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// All threads have ended.
    Complete,
    /// At the limit on steps.
    Cut,
    /// Threads are in waiting loops, but what they looked at has changed since. Other executions show what
    /// follows.
    Waited,
    /// A loop that was treated as a wait turned out not to be one.
    NotAWait,
    /// The strategy requested no further steps.
    Stopped,
    /// With a failure.
    Failed(Failure),
}

/// A failure in an execution, independent of the memory model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A thread panicked.
    Panic {
        /// The thread.
        thread: String,
        /// The message.
        message: String,
        /// The position in the source, if known.
        place: Option<String>,
    },
    /// No thread can ever move again: each waiting thread with its call site.
    Deadlock(Vec<(String, CallSite)>),
    /// Threads loop forever: each with the call site of its loop.
    Spin(Vec<(String, CallSite)>),
    /// Threads repeat the same steps while all threads take turns and every store reaches memory. Local
    /// variables are not compared.
    Livelock {
        /// The threads that move, each with the call site of its next step.
        repeating: Vec<(String, CallSite)>,
        /// The threads that wait.
        waiting: Vec<(String, CallSite)>,
    },
    /// The test has ended, but some of its threads wait forever.
    Leak(Vec<(String, CallSite)>),
    /// A thread runs without any operation of this crate.
    Silent(String),
    /// The execution did not end within the limit on steps.
    Long {
        /// The limit.
        steps: usize,
        /// Each thread that has not ended, with the call site of its next step.
        threads: Vec<(String, CallSite)>,
    },
}

/// The state of an execution.
#[derive(Debug)]
pub struct State {
    pub threads: Vec<Option<Thread>>,
    pub objects: FxHashMap<u64, Object>,
    /// The content of memory, as far as it was seen. Objects that are not listed have their initial values.
    pub(super) memory: FxHashMap<u64, u64>,
    /// Stores that have not reached memory.
    pub buffers: Buffers,
    /// What threads have read and written, if there are buffers.
    pub trace: Trace,
    pub running: Option<usize>,
    /// Absent only during a decision.
    pub(super) strategy: Option<Strategy>,
    /// For searches: a waiting loop ends its thread.
    pub recording: Option<Recording>,
    /// Whether no other thread can continue, so that threads in waiting loops are tried.
    pub(super) probation: bool,
    /// Whether the current step is one of those in which all take turns: threads in waiting loops, if no other
    /// thread can continue, and everybody at the limit on steps. Schedules need not list these steps.
    pub(super) idling: bool,
    pub(super) idle: u32,
    /// The turns since the limit on steps.
    pub(super) rounds: Option<Rounds>,
    pub schedule: Schedule,
    /// The process that took the last step, and the one of the last step of a thread.
    pub(super) last: Option<usize>,
    pub(super) last_thread: Option<usize>,
    /// By process, how many steps it has taken.
    pub(super) counts: Vec<usize>,
    /// Threads in the order in which they were started.
    order: Vec<usize>,
    pub(super) max_steps: usize,
    pub events: Vec<Event>,
    pub session: Session,
    pub end: Option<End>,
    /// Operating-system threads that have not ended.
    pub live: usize,
}

impl State {
    /// The state before the first step, with only the first thread.
    pub fn new(
        strategy: Strategy,
        session: Session,
        buffers: Buffers,
        records: bool,
        max_steps: usize,
    ) -> State {
        let mut state = State {
            threads: Vec::new(),
            objects: FxHashMap::default(),
            memory: FxHashMap::default(),
            buffers,
            trace: Trace::default(),
            running: None,
            strategy: Some(strategy),
            recording: records.then(Recording::new),
            probation: false,
            idling: false,
            idle: 0,
            rounds: None,
            schedule: Schedule::default(),
            last: None,
            last_thread: None,
            counts: Vec::new(),
            order: Vec::new(),
            max_steps,
            events: Vec::new(),
            session,
            end: None,
            live: 0,
        };
        state.add_thread(0, Some("main".to_owned()), None);
        state
    }

    fn add_thread(&mut self, number: usize, name: Option<String>, started: Option<Instruction>) {
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, || None);
        }
        let pending = Pending {
            footprint: Footprint::nothing(),
            wait: Wait::No,
            instruction: Instruction(0),
            outcomes: Outcomes::One,
            drain: Drain::No,
            traces_itself: true,
        };
        self.threads[number] = Some(Thread {
            pending: Some(pending),
            ended: false,
            name,
            started,
            last: started,
            children: 0,
            objects: 0,
            looks: Looks::default(),
            round: None,
            turn: Arc::new(Condvar::new()),
        });
        self.live += 1;
        self.order.push(number);
        let process = self.session.process(Actor::Thread(number));
        if let Some(recording) = &mut self.recording {
            recording.will(process, Footprint::nothing());
        }
    }

    /// A thread starts another. Returns the number of the new one.
    pub fn start(&mut self, parent: usize, name: Option<String>, instruction: Instruction) -> usize {
        let me = self.thread_mut(parent);
        me.children += 1;
        let child = me.children;
        let number = self.session.thread(parent, child);
        self.add_thread(number, name, Some(instruction));
        self.event(parent, instruction, Action::Start(Process(number as u32)));
        self.trace.start(parent, number);
        self.progress(parent);
        number
    }

    pub fn thread(&self, number: usize) -> &Thread {
        self.threads[number].as_ref().expect("the thread exists")
    }

    pub fn thread_mut(&mut self, number: usize) -> &mut Thread {
        self.threads[number].as_mut().expect("the thread exists")
    }

    /// The address of a new object of a thread. It is the same in all executions in which the thread has done
    /// the same before.
    pub fn new_address(&mut self, thread: usize) -> u64 {
        let me = self.thread_mut(thread);
        me.objects += 1;
        (thread as u64 + 1) << 40 | me.objects << 7
    }

    /// The address that represents the end of a thread.
    pub fn end_address(thread: usize) -> u64 {
        (thread as u64 + 1) << 40 | 1 << 39
    }

    /// The address of a thread's token.
    pub fn token_address(thread: usize) -> u64 {
        State::end_address(thread) + 64
    }

    /// Records an event for the monitors. They watch executions without store buffers.
    pub fn event(&mut self, thread: usize, instruction: Instruction, action: Action) {
        debug_assert!(
            self.running.is_none_or(|running| running == thread),
            "only the running thread takes steps"
        );
        self.thread_mut(thread).last = Some(instruction);
        if self.buffers.exist() {
            return;
        }
        self.events.push(Event { process: Process(thread as u32), instruction, action });
    }

    /// A thread announces its next step.
    pub fn announce(&mut self, thread: usize, mut pending: Pending) {
        let drained = self.buffers.undrained(thread, pending.drain);
        pending.footprint.after = drained.into_iter().map(|step| self.step_id(thread, step)).collect();
        let waits_in_loop = self.recording.is_some() && self.thread(thread).round.is_some();
        let process = self.session.process(Actor::Thread(thread));
        if let Some(recording) = self.recording.as_mut().filter(|_| !waits_in_loop) {
            recording.will(process, pending.footprint.clone());
        }
        self.thread_mut(thread).pending = Some(pending);
    }

    /// Whether a lock is free.
    pub fn is_free(&self, address: u64) -> bool {
        !matches!(self.objects.get(&address), Some(Object::Lock { readers, writer }) if *writer || *readers > 0)
    }

    pub(super) fn is_ready(&self, thread: usize, wait: Wait) -> bool {
        let object = |address: u64| self.objects.get(&address);
        match wait {
            Wait::No => true,
            Wait::Free(lock) => self.is_free(lock),
            Wait::Readable(lock) => !matches!(object(lock), Some(Object::Lock { writer: true, .. })),
            Wait::Notified { condvar, mutex } => {
                let notified = |waiters: &[(usize, bool)]| waiters.contains(&(thread, true));
                self.is_free(mutex)
                    && matches!(object(condvar), Some(Object::Condvar { waiters }) if notified(waiters))
            }
            Wait::End(other) => self.threads[other].as_ref().is_some_and(|other| other.ended),
            Wait::Token(address) => matches!(object(address), Some(Object::Token(true))),
            Wait::Called(address) => !matches!(object(address), Some(Object::Once(Progress::Running))),
            Wait::Generation(address, before) => {
                matches!(object(address), Some(Object::Barrier { generation, .. }) if *generation != before)
            }
            Wait::Message(address) => match object(address) {
                Some(Object::Channel { messages, senders, .. }) => *messages > 0 || *senders == 0,
                _ => true,
            },
            Wait::Room(address) => match object(address) {
                Some(Object::Channel { messages, receiver, capacity, .. }) => {
                    messages < capacity || !receiver
                }
                _ => true,
            },
        }
    }

    /// How many outcomes the next step of a thread has.
    pub(super) fn outcomes(&self, pending: &Pending) -> usize {
        let Outcomes::PerWaiter(condvar) = pending.outcomes else { return 1 };
        match self.objects.get(&condvar) {
            Some(Object::Condvar { waiters }) => {
                waiters.iter().filter(|(_, notified)| !notified).count().max(1)
            }
            _ => 1,
        }
    }

    /// Invariant 2: every thread but this one has announced its next step, or has ended.
    pub(super) fn others_have_announced(&self, running: usize) -> bool {
        let mut others =
            self.threads.iter().enumerate().filter_map(|(number, thread)| Some((number, thread.as_ref()?)));
        others.all(|(number, thread)| number == running || thread.ended || thread.pending.is_some())
    }

    /// The outcome chosen for the current step.
    pub fn outcome(&self) -> usize {
        match self.schedule.0.last() {
            Some(Turn::Step { outcome, .. }) if !self.idling => *outcome,
            _ => 0,
        }
    }

    /// Ends the execution. What is still in buffers reaches memory.
    pub fn finish(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            self.running = None;
            loop {
                let next = self.buffers.oldest().find(|(.., ready)| *ready);
                let Some((thread, buffer)) = next.map(|(thread, buffer, ..)| (thread, buffer)) else { break };
                self.write_oldest(thread, buffer);
            }
        }
    }

    pub(super) fn deadlock(&self) -> End {
        let waiting = self.call_sites(|thread| thread.pending.is_some() && !thread.ended);
        let over = self.thread(0).ended;
        End::Failed(if over { Failure::Leak(waiting) } else { Failure::Deadlock(waiting) })
    }

    /// The schedule, with threads numbered in the order in which this execution started them. It does not
    /// depend on earlier executions.
    pub fn reported_schedule(&self) -> Schedule {
        let number = |thread| self.order.iter().position(|&started| started == thread).unwrap_or(thread);
        Schedule(self.schedule.0.iter().map(|turn| turn.of(number(turn.thread()))).collect())
    }

    /// The threads that have not ended, and the call sites of their next steps.
    pub fn unfinished(&self) -> Vec<(String, CallSite)> {
        self.call_sites(|thread| !thread.ended)
    }

    /// Names of threads, and the call sites of their next steps.
    pub(super) fn call_sites(&self, which: impl Fn(&Thread) -> bool) -> Vec<(String, CallSite)> {
        self.call_sites_by(|_, thread| which(thread))
    }

    /// The same, by number and thread.
    pub(super) fn call_sites_by(&self, which: impl Fn(usize, &Thread) -> bool) -> Vec<(String, CallSite)> {
        let threads = self.threads.iter().enumerate();
        let threads = threads.filter_map(|(number, thread)| Some((number, thread.as_ref()?)));
        threads
            .filter(|(number, thread)| which(*number, thread))
            .filter_map(|(number, thread)| {
                Some((self.name(number), self.session.place(thread.pending.as_ref()?.instruction)))
            })
            .collect()
    }

    /// A thread's name in reports.
    pub fn name(&self, number: usize) -> String {
        let thread = self.threads.get(number).and_then(Option::as_ref);
        match thread.map(|thread| (&thread.name, thread.started)) {
            Some((Some(name), _)) => format!("thread {number} ({name})"),
            Some((None, Some(started))) => {
                format!("thread {number} (started at {})", self.session.place(started))
            }
            _ => format!("thread {number}"),
        }
    }

    /// Whether memory still holds what a thread saw in its round.
    pub(super) fn round_is_unchanged(&self, thread: usize) -> bool {
        let round = self.thread(thread).round.as_deref().unwrap_or_default();
        let mut seen = round.iter().filter_map(|look| look.seen);
        seen.all(|(address, value)| self.memory.get(&address).is_none_or(|now| *now == value))
    }

    /// A thread has read memory, or given a hint that it waits.
    pub fn look(&mut self, thread: usize, instruction: Instruction, seen: Option<(u64, u64)>) {
        let look = Look { instruction, seen };
        let probation = self.probation;
        let me = self.thread_mut(thread);
        if let Some(round) = &me.round {
            if round.contains(&look) {
                return;
            }
            if probation {
                return self.not_a_wait(thread);
            }
            me.round = None;
        }
        let Some(round) = me.looks.look(look) else { return };
        if round.iter().any(|look| self.session.not_waits.contains(&look.instruction)) {
            return;
        }
        let looked = round.iter().filter(|look| look.seen.is_some()).map(|look| look.instruction);
        self.session.waits.extend(looked);
        self.thread_mut(thread).round = Some(round);
        let process = self.session.process(Actor::Thread(thread));
        if let Some(recording) = &mut self.recording {
            recording.ends(process);
        }
    }

    /// A thread has looked at an object that is not in memory.
    pub fn look_at_object(&mut self, thread: usize, instruction: Instruction, seen: (u64, u64)) {
        self.memory.insert(seen.0, seen.1);
        self.look(thread, instruction, Some(seen));
    }

    /// A thread has done something other than look.
    pub fn progress(&mut self, thread: usize) {
        self.idle = 0;
        if let Some(rounds) = &mut self.rounds {
            rounds.change();
        }
        if self.probation {
            return self.not_a_wait(thread);
        }
        let me = self.thread_mut(thread);
        me.looks.forget();
        me.round = None;
    }

    /// A thread has left a loop that was treated as a wait, although no other thread had changed anything.
    fn not_a_wait(&mut self, thread: usize) {
        let round = self.thread_mut(thread).round.take().unwrap_or_default();
        let instructions = round.iter().filter(|look| look.seen.is_some()).map(|look| look.instruction);
        for instruction in instructions {
            self.session.not_waits.insert(instruction);
            self.session.waits.remove(&instruction);
        }
        self.finish(End::NotAWait);
    }
}

/// The size of the range that an attempt touches if steps that only read the object can make it fail: readers make an
/// attempt to write fail. Touching another range than they do, it conflicts with them whether it fails or not (see
/// `explore.rs` of `palisade-dpor`).
pub const WITH_READERS: u64 = 2;

/// A footprint of several ranges.
pub fn touching(touches: &[(u64, u64, Mode)], waits: bool) -> Footprint {
    let touch = |&(address, size, mode): &(u64, u64, Mode)| Touch { address, size, mode, own: None };
    Footprint { touches: touches.iter().map(touch).collect(), waits, ..Footprint::nothing() }
}
