//! The store buffers of an execution, as far as its log shows them: which stores are pending.
//!
//! *Invariants.*
//! 1. The pending stores of a thread are in program order.
//! 2. Stores of one thread that overlap reach memory in program order (checked in debug builds).

use crate::log::{Record, RecordKind};

/// A store that has not reached memory.
#[derive(Clone, Debug)]
pub struct PendingStore<T> {
    /// Its first byte.
    pub address: u64,
    /// How many bytes it writes.
    pub size: u64,
    /// Where it is in the program.
    pub place: u64,
    /// What the user of the buffers keeps with it.
    pub with: T,
}

impl<T> PendingStore<T> {
    /// Whether it shares bytes with a range.
    pub fn overlaps(&self, address: u64, size: u64) -> bool {
        self.address < address + size && address < self.address + self.size
    }
}

/// The buffers of all threads.
#[derive(Clone, Debug)]
pub struct Buffers<T> {
    threads: Vec<Vec<PendingStore<T>>>,
}

impl<T> Default for Buffers<T> {
    fn default() -> Buffers<T> {
        Buffers { threads: Vec::new() }
    }
}

impl<T> Buffers<T> {
    /// Nothing is pending.
    pub fn clear(&mut self) {
        self.threads.iter_mut().for_each(Vec::clear);
    }

    /// The pending stores of a thread, oldest first.
    pub fn of(&self, thread: u16) -> &[PendingStore<T>] {
        self.threads.get(usize::from(thread)).map_or(&[], Vec::as_slice)
    }

    /// The same, to change what is kept with them.
    pub fn of_mut(&mut self, thread: u16) -> &mut [PendingStore<T>] {
        self.threads.get_mut(usize::from(thread)).map_or(&mut [], Vec::as_mut_slice)
    }

    /// A store begins to wait.
    pub fn store(&mut self, record: &Record, with: T) {
        let thread = usize::from(record.thread);
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        let (address, size, place) = (record.address, u64::from(record.size).max(1), record.place);
        self.threads[thread].push(PendingStore { address, size, place, with });
    }

    /// A store reaches memory. Returns its position in the buffer, and the store. `None` if there is no such store,
    /// which means that the log is wrong.
    pub fn update(&mut self, record: &Record) -> Option<(usize, PendingStore<T>)> {
        debug_assert_eq!(record.kind, RecordKind::Update);
        let pending = self.threads.get_mut(usize::from(record.thread))?;
        let size = u64::from(record.size).max(1);
        let is_it = |store: &PendingStore<T>| (store.address, store.size) == (record.address, size);
        let position = pending.iter().position(is_it)?;
        debug_assert!(
            !pending[..position].iter().any(|store| store.overlaps(record.address, size)),
            "overlapping stores reach memory in order: {record:?}"
        );
        Some((position, pending.remove(position)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{BUFFERED, Order};

    fn record(kind: RecordKind, address: u64) -> Record {
        let flags = if kind == RecordKind::Store { BUFFERED } else { 0 };
        Record { kind, order: Order::Plain, thread: 3, flags, size: 4, address, place: address + 1 }
    }

    #[test]
    fn stores_wait_and_reach_memory() {
        let mut buffers = Buffers::default();
        for (number, address) in [8, 16, 8].into_iter().enumerate() {
            buffers.store(&record(RecordKind::Store, address), number);
        }
        let pending: Vec<usize> = buffers.of(3).iter().map(|store| store.with).collect();
        assert_eq!((pending, buffers.of(2).len()), (vec![0, 1, 2], 0));
        let mut update = |address: u64| {
            buffers
                .update(&record(RecordKind::Update, address))
                .map(|(position, store)| (position, store.with))
        };
        assert_eq!(
            [update(16), update(8), update(8), update(8)],
            [Some((1, 1)), Some((0, 0)), Some((0, 2)), None]
        );
    }
}
