//! Builds an [`Execution`] from the records of its log, one by one.

use super::monitored::{BATCH, Monitored};
use super::places::Places;
use super::{Execution, LeftState, LeftThread, Unfollowed};
use crate::buffers::Buffers;
use crate::divergence::{Stray, StrayReason};
use crate::log::{Order, Record, RecordKind};
use crate::misuse::{self, MISUSE_ACCESS, Misuse};
use crate::process::Output;
use crate::races::{Race, Races};
use crate::schedule::{Actor, Turns};
use crate::stream::End;
use crate::trace::Trace;
use palisade_memory::{Interlocked, Model};
use palisade_monitor::{
    Access, Action, Bytes, Event, Instruction, LARGEST_ACCESS, Monitor, Operation, Process, actions,
    fenced_action,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of a note is in the lowest bits; the rest says more about it.
pub(crate) const NOTE_BITS: u32 = 8;

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
