//! The log of an execution as the search of `palisade-dpor` sees it: which process takes which step, and what
//! every process is about to do.
//!
//! *What a step touches.*
//! - Accesses touch their bytes. A compare-and-swap that fails only reads.
//! - Operations on locks and similar objects write the object. An attempt to take a lock that fails only reads it.
//! - The end of a thread is an address of its own, which joining reads. It also frees the thread's stack and its
//!   thread-local variables.
//! - `exit` touches everything.
//! - `free` writes the whole block. A store to it that is still pending in the same thread's buffer conflicts with it
//!   like any other, although the order of these two does not matter.
//! - Starting a thread, pausing, fences, and getting a nondeterministic value touch nothing. Such a value is an
//!   outcome of its step.
//!
//! *Store buffers.* A buffer is a process: one per thread under TSO, one per thread and address under PSO. A store
//! that is buffered touches nothing; the step of the buffer by which it reaches memory writes its bytes. A load
//! names the newest store of its own thread to its bytes, unless the thread has since waited until its buffer is
//! empty. Steps that wait until the buffer is empty come after the steps that empty it. Under PSO, a store comes after
//! stores of the same thread that it overlaps, and after all stores before a store-store fence.
//!
//! *Invariant.* What a process is about to do depends only on what its thread has done, not on how far buffers have
//! got.

use crate::buffers::Buffers;
use crate::divergence::label;
use crate::log::{MAY_WAIT, Order, Record, RecordKind, WAITS};
use crate::schedule::Actor;
use palisade_dpor::{Choice, Footprint, Label, Mode, Recording, StepId, Touch, Writes};
use palisade_memory::Model;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Addresses that represent the ends of threads.
const ENDS: u64 = 1 << 60;

/// The processes of a search. They have the same numbers in all executions.
#[derive(Clone, Debug)]
pub struct Processes {
    model: Model,
    known: FxHashMap<Process, usize>,
    /// The numbers of threads, to find them faster; [`UNKNOWN`] for others.
    threads: Vec<usize>,
    list: Vec<Process>,
    /// Under PSO, the addresses of buffers.
    addresses: Vec<u64>,
}

const UNKNOWN: usize = usize::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Process {
    Thread(u16),
    Buffer {
        thread: u16,
        /// Under PSO, the position of the address in the list of addresses.
        address: u16,
    },
}

impl Processes {
    /// None so far.
    pub fn new(model: Model) -> Processes {
        let (known, threads, list, addresses) = Default::default();
        Processes { model, known, threads, list, addresses }
    }

    fn number(&mut self, process: Process) -> usize {
        *self.known.entry(process).or_insert_with(|| {
            self.list.push(process);
            self.list.len() - 1
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The process of a thread.
    fn thread(&mut self, thread: u16) -> usize {
        let index = usize::from(thread);
        if self.threads.len() <= index {
            self.threads.resize(index + 1, UNKNOWN);
        }
        if self.threads[index] == UNKNOWN {
            self.threads[index] = self.number(Process::Thread(thread));
        }
        self.threads[index]
    }

    /// The buffer in which a store waits. There are at most 2¹⁶ addresses under PSO; beyond that, `None`.
    fn buffer(&mut self, thread: u16, address: u64) -> Option<usize> {
        let address = match self.model {
            Model::Pso => {
                let known = self.addresses.iter().position(|known| *known == address);
                u16::try_from(known.unwrap_or(self.addresses.len())).ok().inspect(|_| {
                    if known.is_none() {
                        self.addresses.push(address);
                    }
                })?
            }
            _ => 0,
        };
        Some(self.number(Process::Buffer { thread, address }))
    }

    /// What takes the steps of a process, as commands name it.
    pub fn actor(&self, process: usize) -> Actor {
        match self.list.get(process) {
            Some(&Process::Buffer { thread, address }) => Actor::buffer(thread, address),
            Some(&Process::Thread(thread)) => Actor::thread(thread),
            // A process that no execution has shown is never asked for.
            None => Actor::thread(process as u16),
        }
    }

    /// The list of addresses to which the actors of a command refer.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }
}

/// A buffered store, with the step by which it reaches memory.
#[derive(Clone, Debug)]
struct Waiting {
    buffer: usize,
    footprint: Arc<Footprint>,
    label: Label,
}

/// What a thread has done since it last waited for its empty buffer.
#[derive(Clone, Debug, Default)]
struct Since {
    /// Its stores, oldest first.
    stores: Vec<OwnStore>,
    /// How many of them came before its last store-store fence.
    fenced: usize,
}

impl Since {
    fn clear(&mut self) {
        self.stores.clear();
        self.fenced = 0;
    }
}

#[derive(Clone, Copy, Debug)]
struct OwnStore {
    address: u64,
    size: u64,
    /// The step by which it reaches memory.
    step: StepId,
}

impl OwnStore {
    fn overlaps(&self, address: u64, size: u64) -> bool {
        self.address < address + size && address < self.address + self.size
    }
}

#[derive(Clone, Debug, Default)]
struct Announced {
    footprint: Arc<Footprint>,
    label: Label,
    waits: bool,
}

/// Whether records are taken for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Pass {
    #[default]
    First,
    /// The recording has their steps already.
    Again,
}

/// One execution.
#[derive(Debug, Default)]
pub struct Steps {
    recording: Recording,
    pass: Pass,
    buffers: Buffers<Waiting>,
    /// By thread.
    since: Vec<Since>,
    /// By process, how many steps it has taken; by buffer, how many stores were put into it.
    taken: Vec<usize>,
    stored: Vec<usize>,
    /// By process, what it is about to do, while parts of it may follow.
    announced: Vec<Announced>,
    /// Something happened that the search cannot represent.
    is_cut: bool,
    /// What most stores touch when they begin to wait.
    nothing: Arc<Footprint>,
    /// What the next step replaces in memory.
    replaced: Option<u64>,
}

fn at<T: Default + Clone>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}

impl Steps {
    /// The recording of a whole execution.
    pub fn of(processes: &mut Processes, log: &[Record]) -> Recording {
        let mut steps = Steps::default();
        log.iter().for_each(|record| steps.take(processes, record));
        steps.finish()
    }

    /// Goes back to the point before a step of the execution whose recording this is, as [`finish`](Steps::finish) has
    /// returned it. `log` has the records up to there.
    pub fn rewind(
        &mut self,
        processes: &mut Processes,
        mut recording: Recording,
        step: usize,
        log: &[Record],
    ) {
        recording.rewind(step);
        self.recording = recording;
        self.buffers.clear();
        self.since.iter_mut().for_each(Since::clear);
        self.taken.fill(0);
        self.stored.fill(0);
        self.replaced = None;
        self.is_cut = false;
        self.pass = Pass::Again;
        let happened = |record: &&Record| !record.is_pending() && record.kind != RecordKind::Value;
        log.iter().filter(happened).for_each(|record| self.take(processes, record));
        self.pass = Pass::First;
    }

    /// How many steps were taken.
    pub fn len(&self) -> usize {
        self.recording.len()
    }

    /// Takes the next record.
    pub fn take(&mut self, processes: &mut Processes, record: &Record) {
        let process = processes.thread(record.thread);
        match record.kind {
            RecordKind::Value if record.continues() => self.will_if(process, record.value()),
            RecordKind::Value => self.replaced = record.value(),
            _ if record.continues() => self.also_will(processes, process, record),
            RecordKind::Ended
                if record.is_pending()
                    && record.flags & MAY_WAIT == 0
                    && record.address == 0
                    && record.place == 0 =>
            {
                self.recording.ends(process);
            }
            _ if record.is_pending() => self.will(processes, process, record),
            RecordKind::Update => self.update(processes, record),
            _ => self.happens(processes, process, record),
        }
    }

    /// The recording, at the end of the execution.
    pub fn finish(&mut self) -> Recording {
        if self.is_cut {
            self.recording.cut();
        }
        std::mem::take(&mut self.recording)
    }

    /// The thread is about to take this step.
    fn will(&mut self, processes: &Processes, process: usize, record: &Record) {
        let (footprint, label, waits) =
            (self.footprint(processes, record), label(record), record.flags & WAITS != 0);
        *at(&mut self.announced, process) = Announced { footprint, label, waits };
        self.say(process);
    }

    fn say(&mut self, process: usize) {
        let Announced { footprint, label, waits } = at(&mut self.announced, process).clone();
        self.recording.will_when(process, footprint, label, !waits);
    }

    /// The step accesses this too.
    fn also_will(&mut self, processes: &Processes, process: usize, record: &Record) {
        let is_buffered = record.kind == RecordKind::Store && processes.model != Model::Sc;
        if !is_buffered {
            let touches = match record.kind {
                RecordKind::Free => Footprint::one(record.address, record.place.max(1), Mode::Write).touches,
                _ => self.footprint(processes, record).touches.clone(),
            };
            Arc::make_mut(&mut at(&mut self.announced, process).footprint).touches.extend(touches);
            self.say(process);
        }
    }

    /// The step writes only if memory holds this value, or under some other condition.
    fn will_if(&mut self, process: usize, value: Option<u64>) {
        let writes = value.map_or(Writes::Perhaps, Writes::IfHolds);
        Arc::make_mut(&mut at(&mut self.announced, process).footprint).writes = writes;
        self.say(process);
    }

    /// A step was taken.
    fn took(&mut self, choice: Choice, outcomes: usize, open: Option<(u64, bool)>) {
        self.recording.step(choice, outcomes, open);
        if let Some(value) = self.replaced.take() {
            self.recording.held(value);
        }
    }

    fn happens(&mut self, processes: &mut Processes, process: usize, record: &Record) {
        if record.is_chosen() {
            if self.pass == Pass::First {
                // A thread that waits for the end of another could not have continued before it.
                let open = (record.kind == RecordKind::Ended).then_some((ENDS + record.address, false));
                let (outcomes, outcome) = record.choice().unwrap_or((1, 0));
                self.took(Choice { process, outcome }, outcomes, open);
                if record.kind == RecordKind::LockedLoad {
                    self.recording.fails();
                }
            }
            *at(&mut self.taken, process) += 1;
        }
        if processes.model == Model::Sc {
            return;
        }
        if drains(record) && record.is_chosen() {
            at(&mut self.since, usize::from(record.thread)).clear();
        }
        let orders = record.kind == RecordKind::StoreFence
            || matches!(record.kind, RecordKind::Store | RecordKind::Fence)
                && matches!(record.order, Order::Release | Order::AcqRel);
        if orders {
            let since = at(&mut self.since, usize::from(record.thread));
            since.fenced = since.stores.len();
        }
        if record.is_buffered() {
            self.store(processes, process, record);
        }
    }

    /// A store begins to wait.
    fn store(&mut self, processes: &mut Processes, process: usize, record: &Record) {
        let Some(buffer) = processes.buffer(record.thread, record.address) else {
            self.is_cut = true;
            return;
        };
        let (address, size) = (record.address, u64::from(record.size).max(1));
        let made = StepId::new(process, *at(&mut self.taken, process));
        let number = at(&mut self.stored, buffer);
        *number += 1;
        let step = StepId::new(buffer, *number);
        let since = at(&mut self.since, usize::from(record.thread));
        let mut after: SmallVec<[StepId; 1]> = SmallVec::from_slice(&[made]);
        if processes.model == Model::Pso {
            let (fenced, rest) = since.stores.split_at(since.fenced);
            let before = fenced.iter().chain(rest.iter().filter(|store| store.overlaps(address, size)));
            add_latest(
                &mut after,
                before.map(|store| store.step).filter(|before| before.process != step.process),
            );
        }
        since.stores.push(OwnStore { address, size, step });
        let footprint = Arc::new(Footprint { after, ..Footprint::one(address, size, Mode::Write) });
        let is_first = self.waiting_in(record.thread, buffer).is_none();
        let label = label(&Record { kind: RecordKind::Update, flags: 0, ..*record });
        self.buffers.store(record, Waiting { buffer, footprint, label });
        if is_first {
            self.announce(processes, record.thread, buffer);
        }
    }

    /// A store reaches memory.
    fn update(&mut self, processes: &mut Processes, record: &Record) {
        let Some((_, store)) = self.buffers.update(record) else {
            self.is_cut = true;
            return;
        };
        let buffer = store.with.buffer;
        // Buffers are emptied by steps of their own in a search.
        self.is_cut |= !record.is_chosen();
        if self.pass == Pass::First {
            self.took(Choice { process: buffer, outcome: 0 }, 1, None);
        }
        *at(&mut self.taken, buffer) += 1;
        self.announce(processes, record.thread, buffer);
    }

    /// The oldest store in a buffer.
    fn waiting_in(&self, thread: u16, buffer: usize) -> Option<&Waiting> {
        self.buffers.of(thread).iter().map(|store| &store.with).find(|waiting| waiting.buffer == buffer)
    }

    /// What a buffer is about to do, and under PSO the other buffers of the thread: they may have waited for it.
    fn announce(&mut self, processes: &mut Processes, thread: u16, buffer: usize) {
        if self.pass == Pass::Again {
            return;
        }
        match self.waiting_in(thread, buffer) {
            Some(waiting) => {
                let (footprint, label) = (waiting.footprint.clone(), waiting.label);
                self.recording.buffers_for(buffer, processes.thread(thread));
                self.recording.will_as(buffer, footprint, label);
            }
            None => self.recording.ends(buffer),
        }
        if processes.model == Model::Pso {
            let mut seen: Vec<usize> = Vec::new();
            for store in self.buffers.of(thread) {
                let Waiting { buffer, footprint, .. } = &store.with;
                if !seen.contains(buffer) {
                    seen.push(*buffer);
                    let taken = |step: &StepId| {
                        self.taken.get(step.process as usize).copied().unwrap_or(0) >= step.number as usize
                    };
                    self.recording.waits(*buffer, !footprint.after.iter().all(taken));
                }
            }
        }
    }

    /// What a step touches, and what it comes after.
    fn footprint(&mut self, processes: &Processes, record: &Record) -> Arc<Footprint> {
        let size = u64::from(record.size).max(1);
        let has_buffers = processes.model != Model::Sc;
        let footprint = match record.kind {
            RecordKind::Load if has_buffers => self.load(record.thread, record.address, size),
            RecordKind::Load | RecordKind::LockedLoad => Footprint::one(record.address, size, Mode::Read),
            // It is buffered: see `announce` in runtime/schedule.c.
            RecordKind::Store if has_buffers && record.flags & MAY_WAIT != 0 => return self.nothing.clone(),
            RecordKind::Store | RecordKind::Locked => Footprint::one(record.address, size, Mode::Write),
            // What the operating system does for a futex.
            RecordKind::Fence if record.size > 0 => Footprint::one(record.address, size, Mode::Write),
            RecordKind::Join => Footprint::one(ENDS + record.address, 1, Mode::Read),
            RecordKind::Ended => Footprint::one(ENDS + record.address, 1, Mode::Write),
            RecordKind::Exit => Footprint { everything: true, ..Footprint::nothing() },
            _ => Footprint::nothing(),
        };
        let mut footprint = Footprint { waits: record.flags & MAY_WAIT != 0, ..footprint };
        if has_buffers && drains(record) {
            let since = at(&mut self.since, usize::from(record.thread));
            add_latest(&mut footprint.after, since.stores.iter().map(|store| store.step));
        }
        Arc::new(footprint)
    }

    /// What a load touches: ranges with the same newest store of its own thread.
    fn load(&mut self, thread: u16, address: u64, size: u64) -> Footprint {
        let own = &at(&mut self.since, usize::from(thread)).stores;
        let newest =
            |byte: u64| own.iter().rev().find(|store| store.overlaps(byte, 1)).map(|store| store.step);
        if !own.iter().any(|store| store.overlaps(address, size)) {
            return Footprint::one(address, size, Mode::Read);
        }
        let mut touches: SmallVec<[Touch; 1]> = SmallVec::new();
        for byte in address..address + size {
            let own = newest(byte);
            match touches.last_mut() {
                Some(last) if last.own == own => last.size += 1,
                _ => touches.push(Touch { address: byte, size: 1, mode: Mode::Read, own }),
            }
        }
        Footprint { touches, ..Footprint::nothing() }
    }
}

/// Adds steps, and keeps the last one of each process.
fn add_latest(after: &mut SmallVec<[StepId; 1]>, steps: impl Iterator<Item = StepId>) {
    for step in steps {
        match after.iter_mut().find(|known| known.process == step.process) {
            Some(known) => known.number = known.number.max(step.number),
            None => after.push(step),
        }
    }
}

/// Whether a step waits until all stores of its thread have reached memory. The same as in runtime/buffer.c.
fn drains(record: &Record) -> bool {
    match record.kind {
        RecordKind::Locked
        | RecordKind::LockedLoad
        | RecordKind::Start
        | RecordKind::Join
        | RecordKind::Ended
        | RecordKind::Pause => true,
        RecordKind::Fence => record.order == Order::SeqCst,
        _ => false,
    }
}
