//! One execution, built record by record from its log.

use crate::buffers::Buffers;
use crate::divergence::{Stray, StrayReason};
use crate::log::{Order, Record, RecordKind};
use crate::misuse::{self, MISUSE_ACCESS, Misuse};
use crate::process::Output;
use crate::races::{Race, Races};
use crate::schedule::{Actor, Command, Turns};
use crate::stream::{End, Reason};
use crate::trace::{Judgement, Trace};
use palisade_memory::{Interlocked, Model};
use palisade_monitor::{
    Access, Action, Bytes, Event, Instruction, LARGEST_ACCESS, Monitor, Operation, Process, Seen, Violation,
    actions, fenced_action,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Instructions, identified by the place from which they call the runtime.
#[derive(Clone, Debug)]
pub struct Places {
    places: Vec<u64>,
    known: FxHashMap<u64, Instruction>,
    /// The most recently used instructions, indexed by the low bits of their places.
    recent: Vec<(u64, Instruction)>,
}

/// A power of two.
const RECENT: usize = 1 << 10;

impl Default for Places {
    fn default() -> Places {
        Places {
            places: Vec::new(),
            known: FxHashMap::default(),
            recent: vec![(u64::MAX, Instruction(0)); RECENT],
        }
    }
}

impl Places {
    /// The instruction at a place.
    #[inline]
    fn instruction(&mut self, place: u64) -> Instruction {
        let recent = &mut self.recent[(place ^ place >> 10) as usize % RECENT];
        if recent.0 == place {
            return recent.1;
        }
        let instruction = self.look_up(place);
        self.recent[(place ^ place >> 10) as usize % RECENT] = (place, instruction);
        instruction
    }

    fn look_up(&mut self, place: u64) -> Instruction {
        if let Some(&known) = self.known.get(&place) {
            return known;
        }
        let new = Instruction(self.places.len() as u32);
        self.places.push(place);
        self.known.insert(place, new);
        new
    }

    /// A violation, identified by the places of its instructions.
    fn placed(&self, violation: Violation) -> PlacedViolation {
        let Violation { model, store, previous, access } = violation;
        PlacedViolation {
            model,
            store: self.place(store),
            previous: self.place(previous),
            access: self.place(access),
        }
    }

    /// Where an instruction is.
    fn place(&self, instruction: Instruction) -> u64 {
        self.places[instruction.0 as usize]
    }
}

/// A violation, identified by the places of its instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlacedViolation {
    /// The memory model.
    pub model: Model,
    /// The store that could still have been pending.
    pub store: u64,
    /// The thread's last action before the access.
    pub previous: u64,
    /// The access that could have come before the store.
    pub access: u64,
}

/// Something that cannot be followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unfollowed {
    /// A new process (`fork`, `system`, `popen`, `posix_spawn`). Its actions are not seen.
    Fork,
    /// A signal handler was installed. Its actions are not seen.
    Handler,
    /// Inline assembly that touches memory.
    Assembly,
    /// An access that the compiler did not announce. Either it is not known exactly what it touches, or it is
    /// on a stack that other threads touch.
    Access,
    /// In a search, a wait with a timeout. It ends only when no other thread can continue.
    Time,
    /// Code that was compiled in some other way, or a library of such code that is loaded while the program
    /// runs.
    NotCompiled,
    /// A function of the C or C++ library, by its number in the log. What it does to memory is not seen.
    Call(u32),
    /// Memory became executable. Code that is made at run time is not seen.
    Code,
    /// Memory is mapped such that it can change without an access: it is shared with a file or another
    /// process, mapped at two addresses, or replaced while there are other threads.
    Mapping,
    /// The memory of a process was opened as a file (`/proc/self/mem`), for writing.
    MemoryFile,
    /// An access after the process has begun to end: in a destructor of a library.
    AfterExit,
    /// In a search, a value that is not determined and has too many possibilities. Only some were tried.
    Value,
}

/// The number of a note is in the lowest bits; the rest says more about it.
pub(crate) const NOTE_BITS: u32 = 8;

/// A thread whose state at the end of an execution is worth reporting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeftThread {
    /// The thread.
    pub thread: u16,
    /// Its state.
    pub how: LeftState,
    /// Where it is.
    pub place: u64,
}

/// The state of a thread at the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LeftState {
    /// It waits, and no thread can continue.
    Waits,
    /// It was still running when the process ended.
    Running,
    /// The same, but it was detached.
    Detached,
    /// It had ended, and was never joined.
    NotJoined,
    /// It is in a loop that changes nothing and never ends.
    Spins,
}

/// The monitors, and where they run. In long executions they have a thread of their own, so that monitoring
/// and reading the log happen at the same time.
#[derive(Debug)]
enum Monitored {
    Here(Box<Monitor>),
    Elsewhere {
        events: SyncSender<Vec<Event>>,
        /// Processed batches come back to be filled again.
        empty: Receiver<Vec<Event>>,
        handle: JoinHandle<Monitor>,
    },
}

/// Executions with more events than this are long.
const LONG: u64 = 1 << 17;
/// How many events are handed over at a time, and how many batches may be waiting for the other thread.
const HANDED_OVER: usize = 1 << 12;
const WAITING: usize = 16;

impl Monitored {
    fn take_all(self, batch: &mut Vec<Event>, full: &Arc<AtomicBool>) -> Monitored {
        match self {
            Monitored::Here(mut monitor) => {
                monitor.take_all(batch);
                full.fetch_or(monitor.is_full(), Ordering::Relaxed);
                batch.clear();
                if monitor.events() < LONG {
                    return Monitored::Here(monitor);
                }
                let (events, receiver) = sync_channel::<Vec<Event>>(WAITING);
                let (back, empty) = channel();
                let full = full.clone();
                let handle = std::thread::spawn(move || {
                    for mut events in receiver {
                        monitor.take_all(&events);
                        full.fetch_or(monitor.is_full(), Ordering::Relaxed);
                        events.clear();
                        // At the end, the receiver is gone.
                        let _ = back.send(events);
                    }
                    *monitor
                });
                Monitored::Elsewhere { events, empty, handle }
            }
            Monitored::Elsewhere { events, empty, handle } => {
                let next = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(HANDED_OVER));
                // If the other thread has panicked, joining it panics too.
                let _ = events.send(std::mem::replace(batch, next));
                Monitored::Elsewhere { events, empty, handle }
            }
        }
    }

    /// How many events to collect before handing them over.
    fn batch(&self) -> usize {
        match self {
            Monitored::Here(_) => BATCH,
            Monitored::Elsewhere { .. } => HANDED_OVER,
        }
    }

    fn finish(self) -> Monitor {
        match self {
            Monitored::Here(monitor) => *monitor,
            Monitored::Elsewhere { events, handle, .. } => {
                drop(events);
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

/// An execution that is being recorded.
#[derive(Debug)]
pub struct Recorder<'a> {
    places: &'a mut Places,
    /// `None` while events are being handed over, and with store buffers.
    monitor: Option<Monitored>,
    /// Set when the monitors have no room left.
    full: Arc<AtomicBool>,
    batch_size: usize,
    batch: Vec<Event>,
    analyses: &'a mut Analyses,
    /// With store buffers, the trace takes the place of the monitors.
    has_buffers: bool,
    turns: Turns,
    /// Threads in the order in which they were started.
    started: Vec<u16>,
    unfollowed: BTreeSet<(Unfollowed, u64)>,
    left: Vec<LeftThread>,
    misuse: Misuse,
    diverged: Option<Stray>,
    steps: u64,
    accesses: u64,
    /// With store buffers, what counts as an event.
    events: u64,
    /// Blocks that were freed, which are no events: the C library frees some of its own, not in every process.
    frees: u64,
    exit: Option<u16>,
    /// Whether the access that is an error is a store that was pending, and whether a step was chosen for it.
    last_step: (bool, bool),
    /// Where each thread was last.
    last: Vec<u64>,
    sites: Vec<(u64, Vec<u64>)>,
    most_turns: usize,
}

/// What executions are examined with. The memory is kept from one execution to the next.
#[derive(Debug, Default)]
pub struct Analyses {
    races: Races,
    buffers: Buffers<()>,
    trace: Trace,
    /// How many turns the last execution had.
    usual_turns: usize,
}

impl Analyses {
    fn clear(&mut self) {
        self.races.clear();
        self.buffers.clear();
        self.trace.clear();
    }
}

/// The note that a word of a thread's stack is shared, which the search did not know so far.
pub(crate) const NOTE_SHARED_STACK: u64 = 16;

/// Room is made in advance for no more turns than this.
const USUAL_TURNS: usize = 1 << 10;

/// Monitors receive this many events at a time.
const BATCH: usize = 256;

/// An execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Violations, in the order in which they were first seen.
    pub violations: Vec<(PlacedViolation, Seen)>,
    /// Races, and how often each was seen.
    pub races: Vec<(Race, u64)>,
    /// With store buffers: under which models it is possible, unless it was too long to find out.
    pub judgement: Option<Judgement>,
    /// The turns of the threads; `None` if there were too many to keep.
    pub turns: Option<Turns>,
    /// Threads in the order in which they were started.
    pub started: Vec<u16>,
    /// What could not be followed, and where.
    pub unfollowed: BTreeSet<(Unfollowed, u64)>,
    /// Threads that were left at the end.
    pub left: Vec<LeftThread>,
    /// What the runtime reports about an error in the use of memory.
    pub misuse: Misuse,
    /// The first point at which the given turns could not be taken.
    pub diverged: Option<Stray>,
    /// The number of memory accesses.
    pub accesses: u64,
    /// The number of events, not counting blocks that are freed.
    pub events: u64,
    /// The thread that ended the process, if it ended by `exit` or at the end of `main`.
    pub exit: Option<u16>,
    /// Where each thread was last.
    pub last: Vec<u64>,
    /// Call sites that occur in it, and the return addresses that each stands for, that of the access first.
    pub sites: Vec<(u64, Vec<u64>)>,
    /// How it ended.
    pub end: End,
    /// Messages from the runtime.
    pub messages: Vec<String>,
    /// What the program printed.
    pub output: Output,
}

impl<'a> Recorder<'a> {
    /// An empty recording of an execution with the store buffers of a model. Limits how many turns are kept and how
    /// many bytes the monitors may use.
    pub fn new(
        places: &'a mut Places,
        analyses: &'a mut Analyses,
        model: Model,
        interlocked: Interlocked,
        most_turns: usize,
        room: u64,
    ) -> Recorder<'a> {
        analyses.clear();
        let usual_turns = analyses.usual_turns;
        let has_buffers = model != Model::Sc;
        let monitor = || Monitored::Here(Box::new(Monitor::new(interlocked).with_memory(room)));
        Recorder {
            places,
            monitor: (!has_buffers).then(monitor),
            full: Arc::default(),
            batch_size: BATCH,
            batch: if has_buffers { Vec::new() } else { Vec::with_capacity(BATCH) },
            analyses,
            has_buffers,
            turns: Turns::with_capacity(usual_turns),
            started: Vec::new(),
            unfollowed: BTreeSet::new(),
            left: Vec::new(),
            misuse: Misuse::default(),
            diverged: None,
            steps: 0,
            accesses: 0,
            events: 0,
            frees: 0,
            exit: None,
            last_step: (false, false),
            last: Vec::new(),
            sites: Vec::new(),
            most_turns,
        }
    }

    /// A flag that is set when the monitors have no room left. In that case the execution is not recorded to
    /// its end.
    pub fn full(&self) -> Arc<AtomicBool> {
        self.full.clone()
    }

    /// Processes a record.
    #[inline(always)]
    pub fn take(&mut self, record: &Record) {
        if record.is_pending() {
            return;
        }
        match record.kind {
            RecordKind::Site => return self.learn(record),
            RecordKind::Value => return,
            _ => {}
        }
        let pending = if self.has_buffers { self.follow(record) } else { None };
        if record.is_chosen() {
            self.steps += 1;
            if self.turns.turns.len() <= self.most_turns {
                let value = record.choice().and_then(|(_, which)| u16::try_from(which).ok());
                self.turns.push(Actor { thread: record.thread, pending, value });
            }
        }
        match record.kind {
            RecordKind::Load | RecordKind::Store | RecordKind::Locked | RecordKind::LockedLoad => {
                self.access(record)
            }
            _ => self.other(record),
        }
        self.analyses.races.take(record);
        if record.place != 0 && (record.kind != RecordKind::Free || record.is_chosen()) {
            match self.last.get_mut(usize::from(record.thread)) {
                Some(last) => *last = record.place,
                None => self.first_place(record),
            }
        }
        // There is room for two more.
        if self.batch.len() >= self.batch_size - 2 {
            self.flush();
        }
    }

    /// The step that is an error is not in the log, and is the last turn.
    fn take_last_turn(&mut self, record: &Record) {
        if record.size == MISUSE_ACCESS {
            self.last_step = (misuse::is_update(record), misuse::is_chosen(record));
            return;
        }
        if misuse::kind(record).is_none() {
            return;
        }
        let (is_update, is_chosen) = std::mem::take(&mut self.last_step);
        let thread = Actor::thread(record.thread);
        let actor = match (is_update, is_chosen) {
            (false, true) => thread,
            // A store that had to reach memory first.
            (true, false) => thread,
            (true, true) => {
                let pending = self.analyses.buffers.of(record.thread);
                let position = pending.iter().position(|store| store.overlaps(record.address, 1));
                let Some(position) = position.and_then(|position| u16::try_from(position).ok()) else {
                    return;
                };
                Actor::buffer(record.thread, position)
            }
            (false, false) => return,
        };
        if self.turns.turns.len() <= self.most_turns {
            self.turns.push(actor);
        }
    }

    #[inline(never)]
    fn learn(&mut self, record: &Record) {
        match self.sites.last_mut().filter(|_| record.size > 0) {
            Some((_, calls)) => calls.push(record.place),
            None => self.sites.push((record.address, vec![record.place])),
        }
    }

    /// Follows the store buffers. Returns the position of the store that reaches memory, if one does.
    #[inline(never)]
    fn follow(&mut self, record: &Record) -> Option<u16> {
        let Analyses { buffers, trace, .. } = &mut *self.analyses;
        trace.take(record);
        self.events += u64::from(record.place != 0 && !is_freed(record));
        if record.is_buffered() {
            buffers.store(record, ());
        }
        let is_update = record.kind == RecordKind::Update;
        let (position, _) = if is_update { buffers.update(record)? } else { return None };
        u16::try_from(position).ok()
    }

    #[cold]
    fn first_place(&mut self, record: &Record) {
        self.last.resize(usize::from(record.thread) + 1, 0);
        self.last[usize::from(record.thread)] = record.place;
    }

    #[inline(never)]
    fn flush(&mut self) {
        if let Some(monitor) = self.monitor.take() {
            let monitor = monitor.take_all(&mut self.batch, &self.full);
            self.batch_size = monitor.batch();
            self.monitor = Some(monitor);
        }
    }

    #[inline(always)]
    fn access(&mut self, record: &Record) {
        self.accesses += 1;
        if self.has_buffers {
            return;
        }
        // Addresses have 48 bits.
        let bytes = Bytes { address: record.address, size: u32::from(record.size).clamp(1, LARGEST_ACCESS) };
        let instruction = self.places.instruction(record.place);
        let process = Process(u32::from(record.thread));
        let (is_fenced, access) = ACCESSES[record.kind as usize % ACCESSES.len()][record.order as usize];
        if is_fenced {
            self.batch.push(Event { process, instruction, action: Action::StoreFence });
        }
        self.batch.push(Event { process, instruction, action: Action::Access(access, bytes) });
    }

    #[inline(never)]
    fn other(&mut self, record: &Record) {
        let process = Process(u32::from(record.thread));
        let other = Process(record.address as u32);
        let has_buffers = self.has_buffers;
        let mut push = |places: &mut Places, action: Action| {
            if has_buffers {
                return;
            }
            let instruction = places.instruction(record.place);
            self.batch.push(Event { process, instruction, action });
        };
        match record.kind {
            RecordKind::Fence => {
                for action in actions(Operation::Fence, ordering(record.order)) {
                    push(self.places, action);
                }
            }
            RecordKind::StoreFence => push(self.places, Action::StoreFence),
            RecordKind::Start => {
                self.started.push(record.address as u16);
                push(self.places, Action::Start(other));
            }
            RecordKind::Join => push(self.places, Action::Join(other)),
            RecordKind::Free if is_freed(record) && !has_buffers => {
                let (address, size) = (record.address, record.place);
                self.frees += 1;
                self.batch.push(Event {
                    process,
                    instruction: Instruction(0),
                    action: Action::Free { address, size },
                });
            }
            RecordKind::Note => match record.address & ((1 << NOTE_BITS) - 1) {
                1 => _ = self.unfollowed.insert((Unfollowed::Fork, record.place)),
                2 => _ = self.unfollowed.insert((Unfollowed::Handler, record.place)),
                3 => {
                    let (step, why) = (self.steps, StrayReason::of(record.size));
                    let stray = Stray { step, thread: record.thread, why, place: record.place };
                    self.diverged.get_or_insert(stray);
                }
                4 => _ = self.unfollowed.insert((Unfollowed::Assembly, record.place)),
                6 => _ = self.unfollowed.insert((Unfollowed::Access, record.place)),
                7 => {
                    let call = Unfollowed::Call((record.address >> NOTE_BITS) as u32);
                    self.unfollowed.insert((call, record.place));
                }
                8 => _ = self.unfollowed.insert((Unfollowed::NotCompiled, record.place)),
                9 => _ = self.unfollowed.insert((Unfollowed::Code, record.place)),
                10 => _ = self.unfollowed.insert((Unfollowed::Mapping, record.place)),
                11 => _ = self.unfollowed.insert((Unfollowed::MemoryFile, record.place)),
                12 => _ = self.unfollowed.insert((Unfollowed::AfterExit, record.place)),
                13 => _ = self.unfollowed.insert((Unfollowed::Value, record.place)),
                // For the search only.
                NOTE_SHARED_STACK => {}
                _ => _ = self.unfollowed.insert((Unfollowed::Time, record.place)),
            },
            RecordKind::Stuck => {
                let how = match record.size {
                    0 => LeftState::Waits,
                    1 => LeftState::Running,
                    2 => LeftState::Detached,
                    3 => LeftState::NotJoined,
                    _ => LeftState::Spins,
                };
                self.left.push(LeftThread { thread: record.thread, how, place: record.place });
            }
            RecordKind::Misuse => {
                self.misuse.take(record);
                self.take_last_turn(record);
            }
            RecordKind::Exit => self.exit = Some(record.thread),
            _ => {}
        }
    }

    /// How many steps were recorded.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The execution is over.
    pub fn finish(mut self, end: End, messages: Vec<String>, output: Output) -> Execution {
        self.flush();
        let monitor = self.monitor.take().map(Monitored::finish);
        let mut races: Vec<(Race, u64)> =
            self.analyses.races.found().iter().map(|(&race, &count)| (race, count)).collect();
        races.sort_unstable();
        let kept = self.turns.turns.len() <= self.most_turns;
        self.analyses.usual_turns = self.turns.turns.len().min(USUAL_TURNS);
        let violations = monitor.as_ref().map_or_else(Vec::new, |monitor| monitor.violations().sorted());
        let violations =
            violations.into_iter().map(|(violation, seen)| (self.places.placed(violation), seen)).collect();
        let judgement = if self.has_buffers { self.analyses.trace.judge() } else { None };
        Execution {
            violations,
            races,
            judgement,
            turns: kept.then_some(self.turns),
            started: self.started,
            unfollowed: self.unfollowed,
            left: self.left,
            misuse: self.misuse,
            diverged: self.diverged,
            accesses: self.accesses,
            events: monitor.map_or(self.events, |monitor| monitor.events() - self.frees),
            exit: self.exit,
            last: self.last,
            sites: self.sites,
            end,
            messages,
            output,
        }
    }
}

/// Whether a record says that memory is freed, without a step of its own.
fn is_freed(record: &Record) -> bool {
    record.kind == RecordKind::Free && !record.is_chosen()
}

/// The meaning of accesses by kind and memory order: whether a store-store fence comes first, and how memory
/// is then accessed. This is a table because the kind of the next access is unpredictable, so a branch would
/// be mispredicted.
const ACCESSES: [[(bool, Access); Order::ALL.len()]; 4] = {
    let bytes = Bytes { address: 0, size: 1 };
    // Compilers turn a sequentially consistent store into a locked instruction; the runtime already reports
    // it as one.
    let operations =
        [Operation::Load(bytes), Operation::Store(bytes), Operation::Modify(bytes), Operation::Fail(bytes)];
    let mut accesses = [[(false, Access::Load); Order::ALL.len()]; 4];
    let mut kind = 0;
    while kind < operations.len() {
        let mut order = 0;
        while order < Order::ALL.len() {
            if let (is_fenced, Some(Action::Access(access, _))) =
                fenced_action(operations[kind], ordering(Order::ALL[order]))
            {
                accesses[kind][order] = (is_fenced, access);
            }
            order += 1;
        }
        kind += 1;
    }
    accesses
};

const fn ordering(order: Order) -> Ordering {
    match order {
        Order::Plain | Order::Volatile | Order::Relaxed => Ordering::Relaxed,
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        Order::AcqRel => Ordering::AcqRel,
        Order::SeqCst => Ordering::SeqCst,
    }
}

impl Execution {
    /// The turns with threads numbered in the order in which they were started. Another session will number
    /// them the same way.
    pub fn portable_turns(&self) -> Option<Turns> {
        let mut turns = self.turns.clone()?;
        for turn in &mut turns.turns {
            let thread = &mut turn.actor.thread;
            if *thread != 0 {
                let index = self.started.iter().position(|started| started == thread)?;
                *thread = index as u16 + 1;
            }
        }
        Some(turns)
    }

    /// The turns by which another session can repeat an execution of this command. In a search, threads keep the
    /// numbers that the search has given them.
    pub fn turns_for(&self, command: &Command) -> Option<Turns> {
        if command.explores { self.turns.clone() } else { self.portable_turns() }
    }

    /// What went wrong with the program itself, if something did.
    pub fn failure(&self, leaks: Leaks) -> Option<Failure> {
        let place = |thread: u16| self.last.get(usize::from(thread)).copied().unwrap_or(0);
        let signal = self.end.status & 0x7f;
        let code = (self.end.status >> 8) & 0xff;
        // The last message is about the end.
        let message = || self.messages.last().cloned().unwrap_or_default();
        let crash_place = || self.end.crash.map_or(0, |(place, _, _)| place + 1);
        match self.end.reason {
            Reason::Deadlock => return Some(Failure::Deadlock { threads: self.left.clone() }),
            Reason::Steps => return Some(Failure::Endless),
            Reason::Stalled => {
                let text = message();
                let call = text.split_whitespace().next().and_then(|word| word.parse().ok());
                let thread = self
                    .turns
                    .as_ref()
                    .and_then(|turns| turns.turns.last())
                    .map_or(0, |turn| turn.actor.thread);
                return Some(Failure::Stalled { call, place: place(thread) });
            }
            Reason::Time => return Some(Failure::Late),
            Reason::Unsupported => return Some(Failure::Unsupported { what: message() }),
            Reason::Internal => return Some(Failure::Internal { what: message() }),
            Reason::Turns | Reason::Stopped | Reason::Assumed => return None,
            Reason::Spun => {
                let spins = |left: &LeftThread| left.how == LeftState::Spins;
                let threads = self.left.iter().any(spins).then(|| self.left.clone());
                return threads.map(|threads| Failure::Spins { threads });
            }
            Reason::Misuse => return Some(Failure::Misuse(self.misuse.clone())),
            Reason::Livelock => return Some(Failure::Livelock { threads: self.left.clone() }),
            Reason::None => {}
        }
        if signal != 0 {
            let what = self.messages.iter().find(|text| text.contains("assertion")).cloned();
            return Some(Failure::Signal { signal, place: crash_place(), what });
        }
        if code != 0 {
            return Some(Failure::ExitCode { code });
        }
        let main_runs = self.left.iter().any(|left| left.thread == 0 && left.how == LeftState::Running);
        if let Some(thread) = self.exit.filter(|&thread| thread != 0 && main_runs) {
            return Some(Failure::EarlyExit { thread });
        }
        let leaked: Vec<LeftThread> = self
            .left
            .iter()
            .copied()
            .filter(|left| matches!(left.how, LeftState::Running | LeftState::NotJoined))
            .collect();
        if !leaked.is_empty() && leaks == Leaks::Reported {
            return Some(Failure::Leaked { threads: leaked });
        }
        (!self.end.exited).then_some(Failure::Vanished)
    }
}

/// Whether threads may outlive the program's end, or need not be joined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Leaks {
    /// It is a failure, unless the thread was detached.
    #[default]
    Reported,
    /// It is not.
    Allowed,
}

/// What can be wrong with a program by itself, on any machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Failure {
    /// It was ended by a signal: it crashed, or it aborted because an assertion failed.
    Signal {
        /// The signal.
        signal: u32,
        /// Where it happened.
        place: u64,
        /// The assertion that failed.
        what: Option<String>,
    },
    /// Its exit code reports an error.
    ExitCode {
        /// The exit code.
        code: u32,
    },
    /// Threads wait for each other.
    Deadlock {
        /// The waiting threads.
        threads: Vec<LeftThread>,
    },
    /// The same, and some of them wait in loops that change nothing.
    Spins {
        /// The waiting threads.
        threads: Vec<LeftThread>,
    },
    /// Threads repeat the same steps forever, and change memory on the way.
    Livelock {
        /// The threads that have not ended.
        threads: Vec<LeftThread>,
    },
    /// It used memory that was freed, or that is not part of a block or frame.
    Misuse(Misuse),
    /// It took more steps than were allowed.
    Endless,
    /// It produced no events for a while.
    Stalled {
        /// The system call in which it waits; `None` if it is running.
        call: Option<u32>,
        /// Where it produced the last event.
        place: u64,
    },
    /// It took more time than was allowed.
    Late,
    /// It ended while threads were running, or without having joined them.
    Leaked {
        /// The threads.
        threads: Vec<LeftThread>,
    },
    /// A thread other than the first ended the process.
    EarlyExit {
        /// The thread.
        thread: u16,
    },
    /// It did something that cannot be followed.
    Unsupported {
        /// What it did.
        what: String,
    },
    /// It ended in a way that could not be observed.
    Vanished,
    /// The runtime failed.
    Internal {
        /// What failed.
        what: String,
    },
}

impl Failure {
    /// A short name, for machine-readable output.
    pub fn name(&self) -> &'static str {
        match self {
            Failure::Signal { what: Some(_), .. } => "assertion",
            Failure::Signal { .. } => "crash",
            Failure::ExitCode { .. } => "exit-code",
            Failure::Deadlock { .. } | Failure::Spins { .. } => "deadlock",
            Failure::Livelock { .. } => "livelock",
            Failure::Misuse(misuse) => misuse.name(),
            Failure::Endless => "step-limit",
            Failure::Stalled { call: Some(_), .. } => "blocked",
            Failure::Stalled { .. } => "stalled",
            Failure::Late => "time-limit",
            Failure::Leaked { .. } => "leaked-threads",
            Failure::EarlyExit { .. } => "early-exit",
            Failure::Unsupported { .. } => "unsupported",
            Failure::Vanished => "vanished",
            Failure::Internal { .. } => "internal",
        }
    }

    /// Whether the program would have gone on, had this not ended the execution. The other failures are ends: no
    /// thread can move any more, or the program has ended itself.
    pub fn cuts_short(&self) -> bool {
        match self {
            Failure::Signal { .. } | Failure::Misuse(_) => true,
            Failure::ExitCode { .. }
            | Failure::Deadlock { .. }
            | Failure::Spins { .. }
            | Failure::Livelock { .. }
            | Failure::Leaked { .. }
            | Failure::EarlyExit { .. } => false,
            // Nothing is known about what comes next.
            Failure::Endless
            | Failure::Stalled { .. }
            | Failure::Late
            | Failure::Unsupported { .. }
            | Failure::Vanished
            | Failure::Internal { .. } => true,
        }
    }

    /// Whether this says nothing about the program being wrong, only that the execution could not be followed
    /// to its end.
    pub fn is_inconclusive(&self) -> bool {
        use Failure::{Endless, Internal, Late, Stalled, Unsupported, Vanished};
        matches!(self, Endless | Late | Stalled { .. } | Unsupported { .. } | Vanished | Internal { .. })
    }

    /// The same when something could not be followed: an unobserved process, handler or assembly may wake
    /// waiting threads.
    pub fn is_inconclusive_with(&self, is_followed: bool) -> bool {
        let waits =
            matches!(self, Failure::Deadlock { .. } | Failure::Spins { .. } | Failure::Livelock { .. });
        self.is_inconclusive() || waits && !is_followed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_follow_from_their_orders() {
        let bytes = Bytes::new(8, 4).expect("four bytes are fine");
        let operations: [fn(Bytes) -> Operation; 4] =
            [Operation::Load, Operation::Store, Operation::Modify, Operation::Fail];
        let kinds = [RecordKind::Load, RecordKind::Store, RecordKind::Locked, RecordKind::LockedLoad];
        for (kind, operation) in kinds.into_iter().zip(operations) {
            for order in Order::ALL {
                let (is_fenced, access) = ACCESSES[kind as usize][order as usize];
                let fence = is_fenced.then_some(Action::StoreFence);
                let expected: Vec<Action> = actions(operation(bytes), ordering(order)).collect();
                let found: Vec<Action> = fence.into_iter().chain([Action::Access(access, bytes)]).collect();
                assert_eq!(found, expected, "{kind:?} {order:?}");
            }
        }
    }

    #[test]
    fn release_stores_are_in_order_under_pso() {
        let bytes = Bytes::new(8, 4).expect("four bytes are fine");
        let found: Vec<Action> = actions(Operation::Store(bytes), ordering(Order::Release)).collect();
        assert_eq!(found, [Action::StoreFence, Action::Access(Access::Store, bytes)]);
    }
}
