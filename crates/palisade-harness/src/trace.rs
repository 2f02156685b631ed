//! Whether an execution with store buffers is possible on a stronger machine, and which reordering made the
//! difference.
//!
//! *Problem.* An execution under TSO or PSO fails. Can the program fail in the same way on a machine without
//! store buffers?
//!
//! *Source.* Shasha and Snir, TOPLAS 10(2), 1988, for sequential consistency: an execution is sequentially
//! consistent if and only if program order, reads-from, coherence and from-reads together have no cycle. For TSO:
//! Owens, Sarkar and Sewell, TPHOLs 2009, in the form of Alglave, Maranget and Tautschnig, TOPLAS 36(2), 2014,
//! section 4: the same without the program order from a store to a later load and without reads-from within a
//! thread, where a fence or a locked instruction between the two restores the order.
//!
//! *How.* The log gives all of these relations. A load reads its thread's newest pending store to the same bytes,
//! or the last store that reached memory. Coherence is the order in which stores reach memory. Accesses are
//! compared byte by byte, in words of eight.
//!
//! *Guarantee.* The answer is exact for what the log shows. Executions with more than [`MAX_EVENTS`] accesses are
//! not judged.
//!
//! *Cost.* Linear in the number of accesses, apart from loads that many stores overlap.

use crate::buffers::Buffers;
use crate::graph::{Graph, Node};
use crate::log::{ORDERED, Order, Record, RecordKind};
use crate::misuse::{self, MisuseKind};
use palisade_memory::Model;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Longer executions are not judged.
pub const MAX_EVENTS: usize = 1 << 20;

/// Two instructions of one thread that took effect in the opposite order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Reordering {
    /// The place of the store, which comes first in the program and was still pending.
    pub store: u64,
    /// The place of the access that took effect before it.
    pub access: u64,
    /// Whether that access is a store too.
    pub writes: bool,
}

/// What is known about an execution at its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judgement {
    /// The strongest model under which the execution is possible.
    #[serde(with = "crate::elsewhere::model")]
    pub possible: Model,
    /// The reorderings that sequential consistency does not allow. Empty if the execution is sequentially
    /// consistent.
    pub reorderings: Vec<Reordering>,
}

/// How many earlier stores of a cycle an access is compared with. The runtime keeps fewer pending, except in
/// searches, whose executions are short.
const MAX_LOOKED_BACK: usize = 1 << 10;

const NO_NODE: Node = Node::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EventKind {
    Load,
    Store,
    /// A locked instruction, a fence, or a step by which threads start and end: it waits until the buffer is empty.
    Barrier,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    kind: EventKind,
    thread: u16,
    place: u64,
    /// When it took effect: a load when it was executed, a store when it reached memory.
    moment: u32,
}

/// Bytes of a word that were always accessed together.
#[derive(Clone, Debug)]
struct Piece {
    /// One bit per byte.
    bytes: u8,
    /// The last store that reached memory, and what has read it.
    write: Node,
    readers: SmallVec<[Node; 4]>,
}

/// What is kept with a pending store: its event, and the loads that have read it, with the bytes that they read.
#[derive(Clone, Debug)]
struct Forwarded {
    node: Node,
    readers: SmallVec<[(Node, u64, u64); 1]>,
}

/// The relations of an execution.
#[derive(Debug, Default)]
pub struct Trace {
    events: Vec<Event>,
    /// By thread, its events in program order.
    threads: Vec<Vec<Node>>,
    edges: Vec<(Node, Node)>,
    buffers: Buffers<Forwarded>,
    words: FxHashMap<u64, SmallVec<[Piece; 1]>>,
    /// For each thread, the event that started it.
    started: FxHashMap<u16, Node>,
    /// Blocks that were freed: address, size, and the event.
    freed: Vec<(u64, u64, Node)>,
    /// The thread whose frame is used after it was left.
    left: Option<u16>,
    /// Whether the access that is an error is a store that was executed before.
    is_update: bool,
    moment: u32,
    has_reordered: bool,
    is_too_long: bool,
    graph: Graph,
}

impl Trace {
    /// Forgets the execution, and keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.threads.iter_mut().for_each(Vec::clear);
        self.edges.clear();
        self.buffers.clear();
        self.words.clear();
        self.started.clear();
        self.freed.clear();
        (self.left, self.is_update, self.moment) = (None, false, 0);
        (self.has_reordered, self.is_too_long) = (false, false);
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        if record.is_pending() || self.is_too_long {
            return;
        }
        if self.events.len() >= MAX_EVENTS {
            *self = Trace { is_too_long: true, ..Trace::default() };
            return;
        }
        self.moment += 1;
        let (address, size) = (record.address, u64::from(record.size).max(1));
        match record.kind {
            RecordKind::Load => {
                let node = self.event(record, EventKind::Load);
                self.load(node, record.thread, address, size);
            }
            RecordKind::Store if record.is_buffered() => {
                let node = self.event(record, EventKind::Store);
                self.buffers.store(record, Forwarded { node, readers: SmallVec::new() });
            }
            RecordKind::Store => {
                let node = self.event(record, EventKind::Store);
                self.write(node, address, size);
            }
            RecordKind::Update => {
                let Some((position, store)) = self.buffers.update(record) else { return };
                self.has_reordered |= position > 0;
                self.events[store.with.node as usize].moment = self.moment;
                self.write(store.with.node, address, size);
                for (reader, from, bytes) in store.with.readers {
                    self.read(reader, from, bytes);
                }
            }
            RecordKind::Locked => {
                let node = self.event(record, EventKind::Barrier);
                self.read(node, address, size);
                self.write(node, address, size);
            }
            RecordKind::LockedLoad => {
                let node = self.event(record, EventKind::Barrier);
                self.read(node, address, size);
            }
            RecordKind::Fence if record.order == Order::SeqCst => {
                self.event(record, EventKind::Barrier);
            }
            RecordKind::Start => {
                let node = self.event(record, EventKind::Barrier);
                self.started.insert(record.address as u16, node);
            }
            RecordKind::Join => {
                let node = self.event(record, EventKind::Barrier);
                if let Some(&last) = self.threads.get(record.address as usize).and_then(|own| own.last()) {
                    self.edges.push((last, node));
                }
            }
            RecordKind::Free if !record.is_chosen() => self.free(record),
            RecordKind::Free if record.size == ORDERED => {
                self.has_reordered |= !self.buffers.of_mut(record.thread).is_empty();
                let node = self.event(record, EventKind::Load);
                self.read(node, address, 1);
                self.write(node, address, 1);
            }
            // A frame is left.
            RecordKind::Free if record.size > 0 => _ = self.event(record, EventKind::Load),
            RecordKind::Misuse => self.misuse(record),
            _ => {}
        }
    }

    fn event(&mut self, record: &Record, kind: EventKind) -> Node {
        let thread = usize::from(record.thread);
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        let node = self.events.len() as Node;
        self.events.push(Event { kind, thread: record.thread, place: record.place, moment: self.moment });
        if self.threads[thread].is_empty()
            && let Some(&start) = self.started.get(&record.thread)
        {
            self.edges.push((start, node));
        }
        self.threads[thread].push(node);
        node
    }

    /// Memory is freed: not by a store, so it takes effect at once. It comes after all accesses to it so far.
    fn free(&mut self, record: &Record) {
        let node = self.event(record, EventKind::Load);
        let (from, to) = (record.address, record.address + record.place);
        let before =
            |piece: &Piece| piece.readers.iter().copied().chain([piece.write]).collect::<Vec<Node>>();
        let words = from / 8..to.div_ceil(8);
        let known: Vec<Node> = if words.end - words.start < self.words.len() as u64 {
            words.filter_map(|word| self.words.get(&word)).flatten().flat_map(before).collect()
        } else {
            let inside = self.words.iter().filter(|(word, _)| words.contains(word));
            inside.flat_map(|(_, pieces)| pieces).flat_map(before).collect()
        };
        self.edges.extend(known.into_iter().filter(|&other| other != NO_NODE).map(|other| (other, node)));
        self.freed.push((from, to - from, node));
    }

    /// Memory is used after it was freed, or after its frame was left. The access is not in the log.
    fn misuse(&mut self, record: &Record) {
        match misuse::kind(record) {
            Some(MisuseKind::UseAfterFree | MisuseKind::DoubleFree) => {
                let is_in = |&&(from, size, _): &&(u64, u64, Node)| {
                    (from..from + size.max(1)).contains(&record.address)
                };
                if let Some(&(_, _, free)) = self.freed.iter().rev().find(is_in) {
                    let access = self.misuser(record);
                    self.edges.push((free, access));
                }
            }
            Some(MisuseKind::StackUseAfterReturn | MisuseKind::ThreadLocalUseAfterEnd) => {
                let owner = self.left.and_then(|owner| self.threads.get(usize::from(owner)));
                if let Some(&last) = owner.and_then(|own| own.last()) {
                    let access = self.misuser(record);
                    self.edges.push((last, access));
                }
            }
            // What was done to the lock is in the log, and it was destroyed before.
            Some(MisuseKind::UseAfterDestroy) => {
                let destroyed = self.freed.iter().rev().find(|(from, ..)| *from == record.address);
                let own = self.threads.get(usize::from(record.thread));
                if let (Some(&(_, _, destroyed)), Some(&last)) = (destroyed, own.and_then(|own| own.last())) {
                    self.edges.extend((destroyed != last).then_some((destroyed, last)));
                }
            }
            Some(
                MisuseKind::InvalidFree
                | MisuseKind::HeapOverflow
                | MisuseKind::UnlockNotHeld
                | MisuseKind::DestroyInUse
                | MisuseKind::UninitialisedRead,
            ) => {}
            None => {
                self.left = misuse::owner(record).or(self.left);
                self.is_update |= misuse::is_update(record);
            }
        }
    }

    /// The event of an access that is an error: a store that is pending, or else a new one.
    fn misuser(&mut self, record: &Record) -> Node {
        let pending = self.buffers.of_mut(record.thread);
        let store =
            pending.iter().find(|store| store.overlaps(record.address, 1)).map(|store| store.with.node);
        match store.filter(|_| self.is_update) {
            Some(node) => node,
            None => self.event(record, EventKind::Load),
        }
    }

    /// A load, from the thread's own pending stores as far as they have the bytes, and from memory.
    fn load(&mut self, node: Node, thread: u16, address: u64, size: u64) {
        let pending = self.buffers.of_mut(thread);
        self.has_reordered |= !pending.is_empty();
        if !pending.iter().any(|store| store.overlaps(address, size)) {
            return self.read(node, address, size);
        }
        let mut memory = Vec::new();
        for byte in address..address + size {
            match pending.iter_mut().rev().find(|store| store.overlaps(byte, 1)) {
                Some(store) => match store.with.readers.last_mut() {
                    Some((reader, from, bytes)) if *reader == node && *from + *bytes == byte => *bytes += 1,
                    _ => store.with.readers.push((node, byte, 1)),
                },
                None => memory.push(byte),
            }
        }
        memory.into_iter().for_each(|byte| self.read(node, byte, 1));
    }

    /// Reads memory.
    fn read(&mut self, node: Node, address: u64, size: u64) {
        let edges = &mut self.edges;
        pieces(&mut self.words, address, size, |piece| {
            if piece.write != NO_NODE && piece.write != node {
                edges.push((piece.write, node));
            }
            if piece.readers.last() != Some(&node) {
                piece.readers.push(node);
            }
        });
    }

    /// A store reaches memory.
    fn write(&mut self, node: Node, address: u64, size: u64) {
        let edges = &mut self.edges;
        pieces(&mut self.words, address, size, |piece| {
            let before = piece.readers.drain(..).chain([piece.write]);
            edges
                .extend(before.filter(|&other| other != NO_NODE && other != node).map(|other| (other, node)));
            piece.write = node;
        });
    }

    /// Judges the execution; `None` if it was too long. Stores that are still pending reach memory now.
    pub fn judge(&mut self) -> Option<Judgement> {
        if self.is_too_long {
            return None;
        }
        for thread in 0..self.threads.len() as u16 {
            self.moment += 1;
            for store in self.buffers.of(thread).to_vec() {
                self.events[store.with.node as usize].moment = self.moment;
                self.write(store.with.node, store.address, store.size);
                store.with.readers.iter().for_each(|&(reader, from, bytes)| self.read(reader, from, bytes));
            }
        }
        let sequential = Judgement { possible: Model::Sc, reorderings: Vec::new() };
        if !self.has_reordered {
            return Some(sequential);
        }
        let in_order = self.threads.iter().flat_map(|own| own.windows(2)).map(|pair| (pair[0], pair[1]));
        self.graph.set(self.events.len(), self.edges.iter().copied().chain(in_order));
        if self.graph.is_acyclic() {
            return Some(sequential);
        }
        let component = self.graph.components();
        let reorderings = reorderings(&self.events, &self.edges, component);
        let possible = if self.is_tso() { Model::Tso } else { Model::Pso };
        Some(Judgement { possible, reorderings: reorderings.into_iter().collect() })
    }

    /// Whether TSO allows the execution.
    fn is_tso(&mut self) -> bool {
        let event = |node: Node| self.events[node as usize];
        let forwards = |&(from, to): &(Node, Node)| {
            event(from).thread == event(to).thread
                && event(from).kind == EventKind::Store
                && event(to).kind == EventKind::Load
        };
        let mut edges: Vec<(Node, Node)> =
            self.edges.iter().copied().filter(|edge| !forwards(edge)).collect();
        for own in &self.threads {
            // The last event that later loads come after, and the last that later stores come after.
            let (mut load, mut store) = (NO_NODE, NO_NODE);
            for &node in own {
                let kind = event(node).kind;
                edges.extend([load].into_iter().filter(|&from| from != NO_NODE).map(|from| (from, node)));
                if kind != EventKind::Load && store != NO_NODE && store != load {
                    edges.push((store, node));
                }
                if kind != EventKind::Store {
                    load = node;
                }
                if kind != EventKind::Load {
                    store = node;
                }
            }
        }
        self.graph.set(self.events.len(), edges.iter().copied());
        self.graph.is_acyclic()
    }
}

/// In each cycle, accesses that took effect before an earlier store of their thread. The cycle comes to the store from
/// another thread, and goes from the access to another thread. `component` gives the strongly connected component of
/// each event.
fn reorderings(events: &[Event], edges: &[(Node, Node)], component: &[u32]) -> BTreeSet<Reordering> {
    let (mut enters, mut leaves) = (vec![false; events.len()], vec![false; events.len()]);
    for &(from, to) in edges {
        let (from, to) = (from as usize, to as usize);
        if component[from] == component[to] && events[from].thread != events[to].thread {
            (leaves[from], enters[to]) = (true, true);
        }
    }
    let mut found = BTreeSet::new();
    // Stores that are entered, by component and thread, in program order.
    let mut stores: FxHashMap<(u32, u16), Vec<Event>> = FxHashMap::default();
    for (node, event) in events.iter().enumerate() {
        let writes = event.kind == EventKind::Store;
        let is_entered = writes && enters[node];
        let is_left = event.kind != EventKind::Barrier && leaves[node];
        if !is_entered && !is_left {
            continue;
        }
        let own = stores.entry((component[node], event.thread)).or_default();
        let mut recent = own.iter().rev().take(MAX_LOOKED_BACK);
        if is_left && let Some(store) = recent.find(|store| store.moment > event.moment) {
            found.insert(Reordering { store: store.place, access: event.place, writes });
        }
        if is_entered {
            own.push(*event);
        }
    }
    found
}

/// Calls `each` with the pieces that make up a range exactly.
fn pieces(
    words: &mut FxHashMap<u64, SmallVec<[Piece; 1]>>,
    address: u64,
    size: u64,
    mut each: impl FnMut(&mut Piece),
) {
    const WORD: u64 = 8;
    for word in address / WORD..=(address + size - 1) / WORD {
        let from = address.max(word * WORD) - word * WORD;
        let to = (address + size).min((word + 1) * WORD) - word * WORD;
        let bytes = ((1u16 << to) - (1u16 << from)) as u8;
        let pieces = words.entry(word).or_default();
        let mut known = 0;
        for index in 0..pieces.len() {
            let inside = pieces[index].bytes & bytes;
            if inside != 0 && inside != pieces[index].bytes {
                let outside = pieces[index].bytes & !bytes;
                let rest = Piece { bytes: outside, ..pieces[index].clone() };
                pieces[index].bytes = inside;
                pieces.push(rest);
            }
            if inside != 0 {
                each(&mut pieces[index]);
                known |= inside;
            }
        }
        if known != bytes {
            let mut new = Piece { bytes: bytes & !known, write: NO_NODE, readers: SmallVec::new() };
            each(&mut new);
            pieces.push(new);
        }
    }
}
