//! Whether an execution with store buffers is sequentially consistent.
//!
//! *Problem.* A failure counts as possible on any machine if its execution could have happened without store
//! buffers: if some sequentially consistent execution has the same trace.
//!
//! *Source.* Shasha and Snir, "Efficient and correct execution of parallel programs that share memory", TOPLAS
//! 1988: that is so if and only if program order, reads-from, the order of writes to each address, and
//! from-reads have no cycle together.
//!
//! A compare-and-swap that fails is a read, and so is an attempt to take a lock. Other operations on locks and similar objects write the object, and their
//! order is part of the trace.
//!
//! *Why a cycle shows a late store.* Every event has a time: that of its step or, for a buffered store, when
//! it reached memory. Edges between threads go forward in time. So a cycle leads through a thread from an
//! event to a later one in program order that took effect earlier; only a buffered store can be late.

use palisade_monitor::Instruction;
use rustc_hash::FxHashMap;

/// The events of an execution.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    events: Vec<Event>,
    /// By address, the writes in the order in which they reached memory.
    written: FxHashMap<u64, Vec<usize>>,
    /// By thread, its last event.
    last: FxHashMap<usize, usize>,
    clock: usize,
}

#[derive(Clone, Debug)]
struct Event {
    thread: usize,
    instruction: Instruction,
    /// The event before it in its thread, or the one that started the thread.
    previous: Option<usize>,
    /// Addresses that it reads, each with the write that it reads from.
    reads: Vec<(u64, Option<usize>)>,
    /// When it took effect.
    time: usize,
}

/// A store that reached memory after a later access of its thread took effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Late {
    pub store: Instruction,
    pub access: Instruction,
}

impl Trace {
    /// The number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// A thread starts another.
    pub fn start(&mut self, parent: usize, child: usize) {
        if let Some(&last) = self.last.get(&parent) {
            self.last.insert(child, last);
        }
    }

    fn event(&mut self, thread: usize, instruction: Instruction, reads: Vec<(u64, Option<usize>)>) -> usize {
        self.clock += 1;
        let number = self.events.len();
        let previous = self.last.insert(thread, number);
        self.events.push(Event { thread, instruction, previous, reads, time: self.clock });
        number
    }

    /// The last write to an address.
    fn newest(&self, address: u64) -> Option<usize> {
        self.written.get(&address).and_then(|writes| writes.last().copied())
    }

    /// A thread reads an address: from its own pending store, or from memory.
    pub fn read(&mut self, thread: usize, instruction: Instruction, address: u64, own: Option<usize>) {
        let from = own.or_else(|| self.newest(address));
        self.event(thread, instruction, vec![(address, from)]);
    }

    /// A thread reads and writes memory at once: the addresses, and whether it writes them.
    pub fn access(&mut self, thread: usize, instruction: Instruction, touched: &[(u64, bool)]) {
        let reads = touched.iter().map(|&(address, _)| (address, self.newest(address))).collect();
        let event = self.event(thread, instruction, reads);
        for (address, _) in touched.iter().filter(|(_, writes)| *writes) {
            self.written.entry(*address).or_default().push(event);
        }
    }

    /// A thread stores to its buffer. Returns the event.
    pub fn store(&mut self, thread: usize, instruction: Instruction) -> usize {
        let event = self.event(thread, instruction, Vec::new());
        self.events[event].time = usize::MAX;
        event
    }

    /// A store reaches memory.
    pub fn written(&mut self, event: usize, address: u64) {
        self.clock += 1;
        self.events[event].time = self.clock;
        self.written.entry(address).or_default().push(event);
    }

    /// A late store on a cycle; `None` if the execution is sequentially consistent. All stores must have
    /// reached memory.
    pub fn violation(&self) -> Option<Late> {
        if !self.is_some_store_late() {
            return None;
        }
        let next = self.successors();
        let component = components(&next);
        // In each thread, from the events in program order: a store, and a later event of its component that
        // took effect before it.
        let mut threads: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for (number, event) in self.events.iter().enumerate() {
            let before = threads.entry(event.thread).or_default();
            let late = |&&earlier: &&usize| {
                self.events[earlier].time > event.time && component[earlier] == component[number]
            };
            if let Some(&store) = before.iter().rev().find(late) {
                return Some(Late { store: self.events[store].instruction, access: event.instruction });
            }
            before.push(number);
        }
        None
    }

    /// Whether some store reached memory after a later event of its thread took effect.
    fn is_some_store_late(&self) -> bool {
        let mut latest: FxHashMap<usize, usize> = FxHashMap::default();
        self.events.iter().any(|event| {
            let latest = latest.entry(event.thread).or_default();
            let late = *latest > event.time;
            *latest = event.time.max(*latest);
            late
        })
    }

    /// The edges of the trace.
    fn successors(&self) -> Vec<Vec<usize>> {
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.events.len()];
        let mut index: FxHashMap<(u64, usize), usize> = FxHashMap::default();
        for (&address, writes) in &self.written {
            for (at, &write) in writes.iter().enumerate() {
                index.insert((address, write), at);
            }
            for pair in writes.windows(2).filter(|pair| pair[0] != pair[1]) {
                next[pair[0]].push(pair[1]);
            }
        }
        for (number, event) in self.events.iter().enumerate() {
            next.extend_from(event.previous, number);
            for &(address, from) in &event.reads {
                next.extend_from(from, number);
                let overwritten = match from {
                    Some(from) => index.get(&(address, from)).map(|at| at + 1),
                    None => Some(0),
                };
                let writes = self.written.get(&address);
                let by = overwritten.zip(writes).and_then(|(at, writes)| writes.get(at).copied());
                if let Some(by) = by.filter(|by| *by != number) {
                    next[number].push(by);
                }
            }
        }
        next
    }
}

trait ExtendFrom {
    fn extend_from(&mut self, from: Option<usize>, to: usize);
}

impl ExtendFrom for Vec<Vec<usize>> {
    fn extend_from(&mut self, from: Option<usize>, to: usize) {
        if let Some(from) = from.filter(|from| *from != to) {
            self[from].push(to);
        }
    }
}

/// The strongly connected component of each node (Tarjan's algorithm, without recursion).
fn components(next: &[Vec<usize>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let (mut order, mut low) = (vec![NEW; next.len()], vec![0; next.len()]);
    let mut component = vec![NEW; next.len()];
    let (mut stack, mut counter) = (Vec::new(), 0);
    for root in 0..next.len() {
        let mut work = vec![(root, 0)];
        while let Some((node, at)) = work.pop() {
            if at == 0 {
                if order[node] != NEW {
                    continue;
                }
                order[node] = counter;
                low[node] = counter;
                counter += 1;
                stack.push(node);
            } else {
                let child = next[node][at - 1];
                if component[child] == NEW {
                    low[node] = low[node].min(low[child]);
                }
            }
            match next[node].get(at) {
                Some(&child) => {
                    work.push((node, at + 1));
                    if order[child] == NEW {
                        work.push((child, 0));
                    } else if component[child] == NEW {
                        low[node] = low[node].min(order[child]);
                    }
                }
                None if low[node] == order[node] => {
                    while let Some(member) = stack.pop() {
                        component[member] = node;
                        if member == node {
                            break;
                        }
                    }
                }
                None => {}
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: u64 = 1;
    const Y: u64 = 2;

    /// Two threads that each store one variable and read the other. The stores reach memory at the end, or at
    /// once in one of the threads.
    fn store_buffering(at_once: bool) -> Option<Late> {
        let mut trace = Trace::default();
        let first = trace.store(0, Instruction(0));
        if at_once {
            trace.written(first, X);
        }
        trace.read(0, Instruction(1), Y, None);
        let second = trace.store(1, Instruction(2));
        trace.read(1, Instruction(3), X, None);
        if !at_once {
            trace.written(first, X);
        }
        trace.written(second, Y);
        trace.violation()
    }

    #[test]
    fn cycles() {
        assert_eq!(store_buffering(true), None);
        assert_eq!(store_buffering(false), Some(Late { store: Instruction(0), access: Instruction(1) }));
    }

    /// A late store that cannot be noticed.
    #[test]
    fn harmless_delays() {
        let mut trace = Trace::default();
        let store = trace.store(0, Instruction(0));
        trace.read(0, Instruction(1), X, Some(store));
        trace.read(0, Instruction(2), Y, None);
        trace.read(1, Instruction(3), X, None);
        trace.written(store, X);
        assert_eq!(trace.violation(), None);
        assert!(trace.is_some_store_late());
    }

    #[test]
    fn locks_are_ordered() {
        let mut trace = Trace::default();
        for thread in [0, 1, 0] {
            trace.access(thread, Instruction(thread as u32), &[(X, true), (Y, false)]);
        }
        assert_eq!((trace.violation(), trace.len()), (None, 3));
    }
}
