//! A small machine with store buffers, and its traces by brute force.
//!
//! A trace here is what Shasha and Snir compare: for every load and locked instruction, by byte, the store it
//! reads from; for every byte, the order of the stores; for every lock, the order of its operations. It is
//! computed from what the machine does, without footprints and clocks.

use palisade_dpor::{Footprint, Mode, Next, StepId, Subject, Touch, Writes};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

/// The memory models.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Model {
    Sc,
    Tso,
    Pso,
}

/// A byte address: a constant, and perhaps the lowest bit of a register.
#[derive(Clone, Copy, Debug)]
pub struct Place(pub u64, pub Option<usize>);

/// A value: a constant, and perhaps a register.
#[derive(Clone, Copy, Debug)]
pub struct Value(pub i64, pub Option<usize>);

/// Instructions. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Loads into a register.
    Load(usize, Place, u64),
    /// Stores.
    Store(Place, u64, Value),
    /// A locked instruction: stores, and loads what was there.
    Swap(usize, Place, u64, Value),
    /// A locked instruction: loads what is there, and stores if that is a given number.
    Cas(usize, Place, u64, i64, Value),
    /// Waits until the buffer is empty.
    Fence,
    /// Later stores reach memory after earlier ones.
    StoreFence,
    /// Takes a lock; waits until the buffer is empty.
    Lock(usize),
    /// Takes a lock if it is free, and sets a register to whether it was; waits until the buffer is empty.
    TryLock(usize, usize),
    /// Releases it; waits until the buffer is empty.
    Unlock(usize),
    /// Skips the next instruction if a register is not 0. It is executed with the step before.
    Skip(usize),
}

/// A write: a thread, and its index among the thread's writes. The initial value has none.
type WriteId = Option<(usize, usize)>;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Pending {
    address: u64,
    size: u64,
    value: i64,
    id: WriteId,
    after: Vec<StepId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Thread {
    at: usize,
    registers: [i64; 3],
    writes: usize,
    /// By byte, the newest own store since the buffer was last known to be empty.
    own: [Option<StepId>; BYTES],
    /// Stores issued to each buffer.
    issued: BTreeMap<usize, usize>,
    /// What later stores have to wait for.
    fenced: Vec<StepId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    memory: Vec<(i64, WriteId)>,
    locks: Vec<bool>,
    threads: Vec<Thread>,
    buffers: Vec<VecDeque<Pending>>,
    /// Steps taken by each process.
    counts: Vec<usize>,
}

/// What a step did, for the trace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Event {
    Read(usize, Vec<WriteId>),
    Write(u64, u64, WriteId),
    Swap(usize, Vec<WriteId>, u64, u64, WriteId),
    Lock(usize, usize),
    Busy(usize, usize),
    Nothing,
}

/// What each thread read, the order of writes to each byte, and the order of operations of each lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Trace {
    reads: Vec<Vec<Vec<WriteId>>>,
    order: Vec<Vec<WriteId>>,
    locks: Vec<Vec<usize>>,
    /// By thread: where in the order of a lock it found the lock taken.
    busy: Vec<Vec<usize>>,
}

/// A program on a machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub codes: Vec<Vec<Op>>,
    model: Model,
    bytes: usize,
    states: Vec<State>,
    events: Vec<Event>,
}

/// The maximum number of bytes of memory.
const BYTES: usize = 4;
/// Locks have addresses from here on.
const LOCKS: u64 = 1000;

impl Machine {
    pub fn new(codes: Vec<Vec<Op>>, model: Model, bytes: usize, locks: usize) -> Machine {
        let threads = codes.len();
        let buffers = match model {
            Model::Sc => 0,
            Model::Tso => threads,
            Model::Pso => threads * bytes * 2,
        };
        let state = State {
            memory: vec![(0, None); bytes],
            locks: vec![false; locks],
            threads: vec![Thread::default(); threads],
            buffers: vec![VecDeque::new(); buffers],
            counts: vec![0; threads + buffers],
        };
        let mut machine = Machine { codes, model, bytes, states: vec![state], events: Vec::new() };
        for thread in 0..threads {
            machine.skip(thread);
        }
        machine
    }

    fn now(&self) -> &State {
        self.states.last().expect("there is a state")
    }

    /// Runs a thread past its local instructions.
    fn skip(&mut self, thread: usize) {
        let code = &self.codes[thread];
        let me = &mut self.states.last_mut().expect("there is a state").threads[thread];
        while let Some(Op::Skip(register)) = code.get(me.at) {
            me.at += if me.registers[*register] != 0 { 2 } else { 1 };
        }
    }

    fn op(&self, thread: usize) -> Option<Op> {
        self.codes[thread].get(self.now().threads[thread].at).copied()
    }

    /// The process that is the buffer for a store.
    fn buffer(&self, thread: usize, address: u64, size: u64) -> usize {
        let threads = self.codes.len();
        match self.model {
            Model::Sc => unreachable!("there are no buffers"),
            Model::Tso => threads + thread,
            Model::Pso => threads + (thread * self.bytes + address as usize) * 2 + usize::from(size > 1),
        }
    }

    /// What is in the one byte of memory, or in the lock, that a process touches next.
    pub fn held(&mut self, process: usize) -> Option<u64> {
        let Next::Ready(footprint) = self.next(process) else { return None };
        let touch = footprint.touches.first().filter(|touch| touch.size == 1)?;
        Some(match touch.address.checked_sub(LOCKS) {
            Some(lock) => u64::from(self.now().locks[lock as usize]),
            None => self.now().memory[touch.address as usize].0 as u64,
        })
    }

    /// The lock that a process touches next, and whether it is free.
    pub fn free(&mut self, process: usize) -> Option<(u64, bool)> {
        let Next::Ready(footprint) = self.next(process) else { return None };
        let address = footprint.touches.first()?.address;
        let lock = address.checked_sub(LOCKS)?;
        Some((address, !self.now().locks[lock as usize]))
    }

    /// The thread of a process that is a buffer.
    pub fn owner(&self, process: usize) -> Option<usize> {
        let buffer = process.checked_sub(self.codes.len())?;
        Some(if self.model == Model::Tso { buffer } else { buffer / (self.bytes * 2) })
    }

    /// The steps that empty the buffers of a thread.
    fn drained(&self, thread: usize) -> Vec<StepId> {
        let issued = &self.now().threads[thread].issued;
        issued.iter().map(|(&buffer, &count)| StepId::new(buffer, count)).collect()
    }

    fn is_past(&self, step: &StepId) -> bool {
        self.now().counts[step.process as usize] >= step.number as usize
    }

    fn footprint(&self, thread: usize, op: Op) -> Footprint {
        let me = &self.now().threads[thread];
        match op {
            Op::Load(_, place, size) => {
                let touch = |address| {
                    let own = me.own[address as usize];
                    Touch { address, size: 1, mode: Mode::Read, own }
                };
                let first = me.address(place);
                Footprint { touches: (first..first + size).map(touch).collect(), ..Footprint::nothing() }
            }
            Op::Store(place, size, _) if self.model == Model::Sc => {
                Footprint::one(me.address(place), size, Mode::Write)
            }
            Op::Store(..) | Op::StoreFence => Footprint::nothing(),
            Op::Swap(_, place, size, _) => {
                Footprint::one(me.address(place), size, Mode::Write).after(self.drained(thread))
            }
            Op::Cas(_, place, size, expected, _) => {
                let touched = Footprint::one(me.address(place), size, Mode::Write);
                // What it expects of several bytes is their sum.
                let writes = if size == 1 { Writes::IfHolds(expected as u64) } else { Writes::Perhaps };
                Footprint { writes, ..touched.after(self.drained(thread)) }
            }
            Op::TryLock(_, lock) => {
                let touched = Footprint::one(LOCKS + lock as u64, 1, Mode::Write);
                Footprint { writes: Writes::IfHolds(0), ..touched.after(self.drained(thread)) }
            }
            Op::Fence => Footprint::nothing().after(self.drained(thread)),
            Op::Lock(lock) | Op::Unlock(lock) => {
                let waits = matches!(op, Op::Lock(_));
                let touched = Footprint::one(LOCKS + lock as u64, 1, Mode::Write);
                Footprint { waits, ..touched.after(self.drained(thread)) }
            }
            Op::Skip(_) => unreachable!("the thread is at a step"),
        }
    }

    /// What a thread reads: from its buffers, or from memory.
    fn read(&self, thread: usize, address: u64) -> (i64, WriteId) {
        let state = self.now();
        let pending = state.buffers.iter().flatten();
        let own = pending.filter(|store| {
            store.id.is_some_and(|id| id.0 == thread)
                && (store.address..store.address + store.size).contains(&address)
        });
        let newest = own.max_by_key(|store| store.id).map(|store| (store.value, store.id));
        newest.unwrap_or(state.memory[address as usize])
    }

    /// The trace of the current execution.
    pub fn trace(&self) -> Trace {
        let mut trace = Trace {
            reads: vec![Vec::new(); self.codes.len()],
            order: vec![Vec::new(); self.bytes],
            locks: vec![Vec::new(); self.now().locks.len()],
            busy: vec![Vec::new(); self.codes.len()],
        };
        let write = |trace: &mut Trace, address: u64, size: u64, id: WriteId| {
            (address..address + size).for_each(|byte| trace.order[byte as usize].push(id));
        };
        for event in &self.events {
            match event {
                Event::Read(thread, from) => trace.reads[*thread].push(from.clone()),
                Event::Write(address, size, id) => write(&mut trace, *address, *size, *id),
                Event::Swap(thread, from, address, size, id) => {
                    trace.reads[*thread].push(from.clone());
                    write(&mut trace, *address, *size, *id);
                }
                Event::Lock(thread, lock) => trace.locks[*lock].push(*thread),
                Event::Busy(thread, lock) => trace.busy[*thread].push(trace.locks[*lock].len()),
                Event::Nothing => {}
            }
        }
        trace
    }

    /// Takes a step of a thread.
    fn run(&self, thread: usize, op: Op) -> (State, Event) {
        let mut state = self.now().clone();
        let step = StepId::new(thread, state.counts[thread] + 1);
        let me = &mut state.threads[thread];
        me.at += 1;
        let is_full = !matches!(op, Op::Load(..) | Op::Store(..) | Op::StoreFence);
        if is_full {
            me.own = [None; BYTES];
        }
        let event = match op {
            Op::Load(register, place, size) => {
                let address = me.address(place);
                let read: Vec<_> = (address..address + size).map(|byte| self.read(thread, byte)).collect();
                me.registers[register] = read.iter().map(|(value, _)| value).sum();
                Event::Read(thread, read.into_iter().map(|(_, id)| id).collect())
            }
            Op::Store(place, size, value) => {
                let (address, value) = (me.address(place), me.value(value));
                me.writes += 1;
                let id = Some((thread, me.writes));
                if self.model == Model::Sc {
                    state.write(address, size, value, id);
                    Event::Write(address, size, id)
                } else {
                    let buffer = self.buffer(thread, address, size);
                    let issued = me.issued.entry(buffer).or_default();
                    *issued += 1;
                    let mut after = vec![step];
                    let step = StepId::new(buffer, *issued);
                    if self.model == Model::Pso {
                        // Stores to the same bytes reach memory in order, also through different buffers.
                        let older = (address..address + size).filter_map(|byte| me.own[byte as usize]);
                        after.extend(older.chain(me.fenced.iter().copied()));
                        after.retain(|other| other.process as usize != buffer);
                    }
                    me.own[address as usize..(address + size) as usize].fill(Some(step));
                    let pending = Pending { address, size, value, id, after };
                    state.buffers[buffer - self.codes.len()].push_back(pending);
                    Event::Nothing
                }
            }
            Op::Swap(register, place, size, value) => {
                let (address, value) = (me.address(place), me.value(value));
                let read: Vec<_> = (address..address + size).map(|byte| self.read(thread, byte)).collect();
                me.registers[register] = read.iter().map(|(value, _)| value).sum();
                me.writes += 1;
                let id = Some((thread, me.writes));
                state.write(address, size, value, id);
                Event::Swap(thread, read.into_iter().map(|(_, id)| id).collect(), address, size, id)
            }
            Op::Cas(register, place, size, expected, value) => {
                let (address, value) = (me.address(place), me.value(value));
                let read: Vec<_> = (address..address + size).map(|byte| self.read(thread, byte)).collect();
                let old: i64 = read.iter().map(|(value, _)| value).sum();
                me.registers[register] = old;
                let from = read.into_iter().map(|(_, id)| id).collect();
                if old == expected {
                    me.writes += 1;
                    let id = Some((thread, me.writes));
                    state.write(address, size, value, id);
                    Event::Swap(thread, from, address, size, id)
                } else {
                    Event::Read(thread, from)
                }
            }
            Op::StoreFence => {
                me.fenced = self.drained(thread);
                Event::Nothing
            }
            Op::Lock(lock) | Op::Unlock(lock) => {
                state.locks[lock] = matches!(op, Op::Lock(_));
                Event::Lock(thread, lock)
            }
            Op::TryLock(register, lock) => {
                let taken = state.locks[lock];
                me.registers[register] = i64::from(!taken);
                state.locks[lock] = true;
                if taken { Event::Busy(thread, lock) } else { Event::Lock(thread, lock) }
            }
            Op::Fence | Op::Skip(_) => Event::Nothing,
        };
        (state, event)
    }
}

impl Thread {
    fn address(&self, Place(base, plus): Place) -> u64 {
        base + plus.map_or(0, |register| (self.registers[register] & 1) as u64)
    }

    fn value(&self, Value(base, plus): Value) -> i64 {
        base + plus.map_or(0, |register| self.registers[register])
    }
}

impl State {
    fn write(&mut self, address: u64, size: u64, value: i64, id: WriteId) {
        self.memory[address as usize..(address + size) as usize].fill((value, id));
    }
}

impl Subject for Machine {
    fn processes(&self) -> usize {
        self.now().counts.len()
    }

    fn next(&mut self, process: usize) -> Next {
        let state = self.now();
        let footprint = if process >= self.codes.len() {
            let Some(oldest) = state.buffers[process - self.codes.len()].front() else {
                return Next::Nothing;
            };
            Footprint::one(oldest.address, oldest.size, Mode::Write).after(oldest.after.iter().copied())
        } else {
            let Some(op) = self.op(process) else { return Next::Nothing };
            let footprint = self.footprint(process, op);
            if matches!(op, Op::Lock(lock) if state.locks[lock]) {
                return Next::Waiting(footprint.into());
            }
            footprint
        };
        let ready = footprint.after.iter().all(|step| self.is_past(step));
        if ready { Next::Ready(footprint.into()) } else { Next::Waiting(footprint.into()) }
    }

    fn fails_now(&mut self, process: usize) -> bool {
        let op = self.op(process).expect("the thread is ready");
        matches!(self.run(process, op).1, Event::Read(..) | Event::Busy(..))
    }

    fn step(&mut self, process: usize, _: usize) -> Vec<usize> {
        let (mut state, event) = match process.checked_sub(self.codes.len()) {
            Some(buffer) => {
                let mut state = self.now().clone();
                let store = state.buffers[buffer].pop_front().expect("the buffer is not empty");
                state.write(store.address, store.size, store.value, store.id);
                (state, Event::Write(store.address, store.size, store.id))
            }
            None => self.run(process, self.op(process).expect("the thread is ready")),
        };
        state.counts[process] += 1;
        self.states.push(state);
        self.events.push(event);
        if process < self.codes.len() {
            self.skip(process);
        }
        Vec::new()
    }

    fn rewind(&mut self, steps: usize) {
        self.states.truncate(steps + 1);
        self.events.truncate(steps);
    }

    fn position(&self) -> usize {
        self.states.len() - 1
    }
}

/// All traces, from running every interleaving. Where interleavings have the same trace and lead to the same
/// state, only one is continued.
pub fn all_traces(machine: &mut Machine) -> BTreeSet<Trace> {
    fn go(machine: &mut Machine, known: &mut HashSet<(State, Trace)>, found: &mut BTreeSet<Trace>) {
        if !known.insert((machine.now().clone(), machine.trace())) {
            return;
        }
        let (mut over, at) = (true, machine.position());
        for process in 0..machine.processes() {
            if let Next::Ready(_) = machine.next(process) {
                over = false;
                machine.step(process, 0);
                go(machine, known, found);
                machine.rewind(at);
            }
        }
        if over {
            found.insert(machine.trace());
        }
    }
    let mut found = BTreeSet::new();
    go(machine, &mut HashSet::new(), &mut found);
    found
}
