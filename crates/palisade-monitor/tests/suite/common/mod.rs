//! The paper's monitors as published, on complete sequences of events: slow and obvious. The streaming
//! monitors are compared with them.

use palisade_memory::{Interlocked, Model};
use palisade_monitor::{Access, Action, Bytes, Event, Instruction, Process};
use std::collections::BTreeSet;

/// An address, and how often it was freed before. Reused memory is distinguished from what was there before.
type Byte = (u64, usize);

/// An execution, with its happens-before relation.
pub struct Execution {
    pub events: Vec<Event>,
    /// The bytes that each event accesses.
    bytes: Vec<BTreeSet<Byte>>,
    /// For each event, the events directly before it by program order, a start or a join.
    program_order: Vec<Vec<usize>>,
    /// `before[j]` contains i iff i happens before j.
    before: Vec<BTreeSet<usize>>,
}

impl Execution {
    /// Each event gets its index as its instruction.
    pub fn new(events: &[Event]) -> Execution {
        let events = with_own_processes(events);
        let mut freed: Vec<(u64, u64)> = Vec::new();
        let mut bytes = Vec::new();
        for event in &events {
            let mut own = BTreeSet::new();
            match event.action {
                Action::Access(_, Bytes { address, size }) => {
                    for byte in address..address + u64::from(size) {
                        own.insert((
                            byte,
                            freed.iter().filter(|(from, to)| (*from..*to).contains(&byte)).count(),
                        ));
                    }
                }
                Action::Free { address, size } => freed.push((address, address + size)),
                _ => {}
            }
            bytes.push(own);
        }
        let mut execution = Execution { events, bytes, program_order: Vec::new(), before: Vec::new() };
        for index in 0..execution.events.len() {
            let mut order: Vec<usize> = Vec::new();
            let events = &execution.events;
            let event = events[index];
            let starts = |earlier: usize, process: Process| matches!(events[earlier].action, Action::Spawn(p) | Action::Start(p) if p == process);
            // If a process number was used before it was started, that was another process.
            let last_of = |process: Process| {
                (0..index)
                    .rev()
                    .find(|&earlier| events[earlier].process == process || starts(earlier, process))
            };
            order.extend(last_of(event.process));
            if let Action::Join(child) = event.action {
                order.extend(last_of(child));
            }
            let conflicts = (0..index).filter(|&earlier| execution.conflict(earlier, index));
            let mut before = BTreeSet::new();
            for earlier in conflicts.chain(order.iter().copied()).collect::<Vec<_>>() {
                before.insert(earlier);
                before.extend(execution.before[earlier].iter().copied());
            }
            execution.before.push(before);
            execution.program_order.push(order);
        }
        execution
    }

    fn access(&self, event: usize) -> Option<Access> {
        match self.events[event].action {
            Action::Access(access, _) => Some(access),
            _ => None,
        }
    }

    fn overlap(&self, a: usize, b: usize) -> bool {
        self.bytes[a].intersection(&self.bytes[b]).next().is_some()
    }

    fn conflict(&self, a: usize, b: usize) -> bool {
        let writes = |event| self.access(event).is_some_and(Access::writes);
        (writes(a) || writes(b)) && self.overlap(a, b)
    }

    /// The events that happen before an event, in their order, and the event itself.
    pub fn past(&self, event: usize) -> Vec<usize> {
        self.before[event].iter().copied().chain([event]).collect()
    }

    /// The instruction that the monitors call `prev`.
    pub fn previous(&self, event: usize) -> Option<usize> {
        let mut at = *self.program_order[event].first()?;
        loop {
            let own = self.events[at].process == self.events[event].process;
            let counts = matches!(self.events[at].action, Action::Access(..) | Action::Join(_));
            if !own || counts {
                return Some(at);
            }
            at = *self.program_order[at].first()?;
        }
    }

    /// Whether a store can be pending while an event sees the last stores to its other bytes, and the store
    /// happens before one of these (or, if the event writes, before a load of one of these).
    fn pending_beside_other_bytes(
        &self,
        buffers: &Buffers<'_>,
        order: &[usize],
        event: usize,
        store: usize,
    ) -> bool {
        let earlier: Vec<usize> = order.iter().copied().take_while(|&other| other != event).collect();
        let writes = |other: usize| self.access(other).is_some_and(Access::writes);
        let mut after = buffers.clone();
        let mut ordered = false;
        for byte in &self.bytes[event] {
            let touching: Vec<usize> =
                earlier.iter().copied().filter(|&other| self.bytes[other].contains(byte)).collect();
            let last = touching.iter().rposition(|&other| writes(other));
            if last.is_some_and(|last| touching[last] == store) {
                continue;
            }
            let loads = touching[last.map_or(0, |last| last + 1)..].iter().copied().filter(|_| writes(event));
            let seen = last.map(|last| touching[last]);
            ordered |= seen.into_iter().chain(loads).any(|seen| self.before[seen].contains(&store));
            if let Some(seen) = seen.filter(|&seen| self.events[seen].process != self.events[event].process) {
                after.drain(self.events[seen].process, |other| other == seen);
            }
        }
        ordered && after.pending.iter().any(|(_, pending)| *pending == Some(store))
    }

    /// monitorTSO or monitorPSO on some of the events, in this order. Reports pairs of a store and an event
    /// that could have come before it.
    pub fn monitor(&self, model: Model, interlocked: Interlocked, order: &[usize]) -> Vec<Report> {
        let mut buffers = Buffers { execution: self, model, pending: Vec::new() };
        let mut found = Vec::new();
        let mut overlapped = BTreeSet::new();
        for &event in order {
            let process = self.events[event].process;
            let Some(access) = self.access(event) else {
                match self.events[event].action {
                    Action::Fence | Action::Start(_) => buffers.drain(process, |_| true),
                    Action::Join(child) => buffers.drain(child, |_| true),
                    Action::StoreFence if model == Model::Pso => buffers.pending.push((process, None)),
                    _ => {}
                }
                continue;
            };
            // The last pending store of another process to each byte.
            let mut stores = BTreeSet::new();
            for byte in &self.bytes[event] {
                let holds = |&&(_, store): &&(Process, Option<usize>)| {
                    store.is_some_and(|store| self.bytes[store].contains(byte))
                };
                if let Some(&(owner, Some(store))) = buffers.pending.iter().rev().find(holds)
                    && owner != process
                {
                    stores.insert((owner, store));
                }
            }
            for &(_, store) in &stores {
                let ordered = |&before: &usize| before == store || self.before[before].contains(&store);
                if overlapped.contains(&store) {
                    continue;
                }
                if self.program_order[event].iter().any(ordered) {
                    found.push(Report { store, access: event, by_prev: true });
                } else if self.pending_beside_other_bytes(&buffers, order, event, store) {
                    found.push(Report { store, access: event, by_prev: false });
                }
            }
            for &(owner, store) in &stores {
                buffers.drain(owner, |other| other == store);
            }
            if access.locks() && (model == Model::Tso || interlocked == Interlocked::WholeBuffer) {
                buffers.drain(process, |_| true);
            } else if access.locks() {
                buffers.drain_to_last_barrier(process);
            }
            if model == Model::Pso && access.locks() {
                buffers.drain(process, |other| self.overlap(event, other));
            }
            if model == Model::Pso && access == Access::Store {
                // In the paper, the older store to the address drains. It could also wait. If only part of it
                // is overwritten, our monitors no longer report it.
                let older =
                    buffers.pending.iter().filter(|(p, _)| *p == process).filter_map(|(_, store)| *store);
                overlapped.extend(older.filter(|&older| self.overlap(event, older)));
            }
            if access == Access::Store {
                buffers.pending.push((process, Some(event)));
            }
        }
        found
    }
}

/// A store that an event could have come before.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub store: usize,
    pub access: usize,
    /// Whether the store happens before `prev`. Otherwise it happens before what the event itself sees at
    /// other bytes.
    pub by_prev: bool,
}

/// Each event with its index as its instruction. After a process is joined, its number means another process.
fn with_own_processes(events: &[Event]) -> Vec<Event> {
    let mut now: Vec<u32> = (0..100).collect();
    let mut next = 100;
    let mut renamed = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let own = |process: Process| Process(now[process.0 as usize]);
        let action = match event.action {
            Action::Spawn(child) => Action::Spawn(own(child)),
            Action::Start(child) => Action::Start(own(child)),
            Action::Join(child) => Action::Join(own(child)),
            other => other,
        };
        renamed.push(Event { process: own(event.process), instruction: Instruction(index as u32), action });
        if let Action::Join(child) = event.action {
            now[child.0 as usize] = next;
            next += 1;
        }
    }
    renamed
}

/// Pending stores of all processes in the order in which they were issued, and barriers.
#[derive(Clone)]
struct Buffers<'a> {
    execution: &'a Execution,
    model: Model,
    pending: Vec<(Process, Option<usize>)>,
}

impl Buffers<'_> {
    /// Drains the wanted stores of a process, and those that must drain before them.
    fn drain(&mut self, process: Process, wanted: impl Fn(usize) -> bool) {
        let own: Vec<Option<usize>> =
            self.pending.iter().filter(|(p, _)| *p == process).map(|(_, s)| *s).collect();
        let mut drained = vec![false; own.len()];
        for at in (0..own.len()).rev() {
            let later = || (at + 1..own.len()).filter(|&later| drained[later]);
            drained[at] = match own[at] {
                None => later().next().is_some(),
                Some(store) => {
                    let must_precede = |later: usize| match (self.model, own[later]) {
                        (Model::Tso, _) => true,
                        (_, Some(other)) => {
                            own[at..later].contains(&None) || self.execution.overlap(store, other)
                        }
                        (_, None) => true,
                    };
                    wanted(store) || later().any(must_precede)
                }
            };
        }
        let mut drained = drained.into_iter();
        self.pending.retain(|(p, _)| *p != process || !drained.next().expect("one per entry"));
        // A barrier with no store before it has no effect.
        while let Some(first) = self.pending.iter().position(|(p, _)| *p == process)
            && self.pending[first].1.is_none()
        {
            self.pending.remove(first);
        }
    }

    fn drain_to_last_barrier(&mut self, process: Process) {
        let own: Vec<Option<usize>> =
            self.pending.iter().filter(|(p, _)| *p == process).map(|(_, s)| *s).collect();
        if let Some(last) = own.iter().rposition(Option::is_none) {
            let before: Vec<usize> = own[..last].iter().flatten().copied().collect();
            self.drain(process, |store| before.contains(&store));
        }
    }
}
