//! Store buffers: what threads have stored and memory does not hold yet.
//!
//! Under TSO each thread has one buffer, first in, first out. Under PSO it has one per address. A buffer is a
//! process of the [search](palisade_dpor): its steps write memory. A thread sees its own pending stores.
//!
//! *Invariants*
//! 1. Stores leave a buffer in the order in which they entered it, and not before the stores that they have to
//!    wait for.
//! 2. What is asked about a thread's own stores ([`Buffers::own`], [`Buffers::undrained`]) depends only on
//!    what the thread has done, not on how far its buffers have got. The search relies on this.

use palisade_memory::{Interlocked, Model};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// What a thread waits for before a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drain {
    /// Nothing.
    No,
    /// Its stores to this address reach memory.
    Address(u64),
    /// All its stores reach memory.
    All,
}

/// A step of a buffer: the buffer's index among those of its thread, and how many stores it has written then.
pub type Written = (usize, usize);

/// A pending store.
#[derive(Clone, Debug)]
pub struct Store {
    pub address: u64,
    pub size: u32,
    pub value: u64,
    /// Its event in the trace.
    pub event: usize,
    /// The index of the thread's step that made it, from 1.
    pub made_by: usize,
    /// What has to be written first.
    pub after: Vec<Written>,
    /// When it was made, among all stores.
    number: u64,
    /// Whether it no longer matters, because a thread has exclusive access to the object now.
    is_void: bool,
}

#[derive(Clone, Debug)]
struct Buffer {
    /// The address under PSO; 0 under TSO.
    key: u64,
    pending: VecDeque<Store>,
    /// How many stores have entered and left it.
    entered: usize,
    written: usize,
    /// How many had entered when the thread last waited for it to be empty.
    drained: usize,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    buffers: Vec<Buffer>,
    /// The newest own store to an address since the thread last waited for it.
    own: FxHashMap<u64, Written>,
    /// What later stores have to wait for.
    fenced: Vec<Written>,
}

/// The buffers of all threads.
#[derive(Clone, Debug)]
pub struct Buffers {
    model: Model,
    interlocked: Interlocked,
    threads: Vec<Thread>,
    stores: u64,
}

impl Buffers {
    /// Empty buffers. Under [`Model::Sc`] there are none.
    pub fn new(model: Model, interlocked: Interlocked) -> Buffers {
        Buffers { model, interlocked, threads: Vec::new(), stores: 0 }
    }

    /// Whether stores are buffered at all.
    pub fn exist(&self) -> bool {
        self.model != Model::Sc
    }

    /// What a locked instruction waits for. `fenced` says whether it also comes after all earlier stores.
    pub fn locked(&self, address: u64, fenced: bool) -> Drain {
        match (self.model, self.interlocked) {
            (Model::Sc, _) => Drain::No,
            (Model::Pso, Interlocked::OwnAddress) if !fenced => Drain::Address(address),
            _ => Drain::All,
        }
    }

    fn thread(&self, thread: usize) -> Option<&Thread> {
        self.threads.get(thread)
    }

    fn thread_mut(&mut self, thread: usize) -> &mut Thread {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        &mut self.threads[thread]
    }

    /// Adds a store of a thread. Returns the index of the buffer, and whether it was empty.
    pub fn push(
        &mut self,
        thread: usize,
        (address, size): (u64, u32),
        value: u64,
        event: usize,
        made_by: usize,
    ) -> (usize, bool) {
        let key = if self.model == Model::Pso { address } else { 0 };
        self.stores += 1;
        let number = self.stores;
        let me = self.thread_mut(thread);
        let index = me.buffers.iter().position(|buffer| buffer.key == key).unwrap_or_else(|| {
            let pending = VecDeque::new();
            me.buffers.push(Buffer { key, pending, entered: 0, written: 0, drained: 0 });
            me.buffers.len() - 1
        });
        let after = me.fenced.iter().copied().filter(|(buffer, _)| *buffer != index).collect();
        let buffer = &mut me.buffers[index];
        let was_empty = buffer.pending.is_empty();
        buffer.entered += 1;
        buffer.pending.push_back(Store {
            address,
            size,
            value,
            event,
            made_by,
            after,
            number,
            is_void: false,
        });
        me.own.insert(address, (index, buffer.entered));
        (index, was_empty)
    }

    /// A store-store fence of a thread.
    pub fn store_fence(&mut self, thread: usize) {
        if self.model == Model::Pso {
            let fenced = self.undrained(thread, Drain::All);
            self.thread_mut(thread).fenced = fenced;
        }
    }

    /// The step with which a thread's newest own store to an address reaches memory.
    pub fn own(&self, thread: usize, address: u64) -> Option<Written> {
        self.thread(thread)?.own.get(&address).copied()
    }

    /// The newest pending store of a thread to an address: its value and its event.
    pub fn forwarded(&self, thread: usize, address: u64) -> Option<(u64, usize)> {
        let mut pending = self.thread(thread)?.buffers.iter().flat_map(|buffer| &buffer.pending);
        let newest = pending.rfind(|store| store.address == address && !store.is_void);
        newest.map(|store| (store.value, store.event))
    }

    /// The steps that a thread has to wait for before a step that drains its buffers, whether they have
    /// happened or not.
    pub fn undrained(&self, thread: usize, drain: Drain) -> Vec<Written> {
        let Some(me) = self.thread(thread) else { return Vec::new() };
        let concerns = |buffer: &Buffer| match drain {
            Drain::No => false,
            Drain::Address(address) => buffer.key == address,
            Drain::All => true,
        };
        let left = |buffer: &Buffer| concerns(buffer) && buffer.entered > buffer.drained;
        let buffers = me.buffers.iter().enumerate().filter(|(_, buffer)| left(buffer));
        buffers.map(|(index, buffer)| (index, buffer.entered)).collect()
    }

    /// Whether some steps have happened.
    pub fn have_written(&self, thread: usize, steps: &[Written]) -> bool {
        let written = |&(index, count): &Written| self.threads[thread].buffers[index].written >= count;
        steps.iter().all(written)
    }

    /// A thread has taken a step that drained its buffers.
    pub fn drained(&mut self, thread: usize, drain: Drain) {
        let Some(me) = self.threads.get_mut(thread) else { return };
        match drain {
            Drain::No => {}
            Drain::Address(address) => {
                me.buffers.iter_mut().filter(|buffer| buffer.key == address).for_each(Buffer::drain);
                me.own.remove(&address);
            }
            Drain::All => {
                me.buffers.iter_mut().for_each(Buffer::drain);
                me.own.clear();
                me.fenced.clear();
            }
        }
    }

    /// The buffers that are not empty: the thread, the index, the oldest store, and whether it can reach
    /// memory now.
    pub fn oldest(&self) -> impl Iterator<Item = (usize, usize, &Store, bool)> {
        self.threads.iter().enumerate().flat_map(move |(thread, me)| {
            me.buffers.iter().enumerate().filter_map(move |(index, buffer)| {
                let store = buffer.pending.front()?;
                Some((thread, index, store, self.have_written(thread, &store.after)))
            })
        })
    }

    /// All stores that matter and have not reached memory, with their threads.
    pub fn pending(&self) -> impl Iterator<Item = (usize, &Store)> {
        self.threads.iter().enumerate().flat_map(|(thread, me)| {
            let pending = me.buffers.iter().flat_map(|buffer| &buffer.pending);
            pending.filter(|store| !store.is_void).map(move |store| (thread, store))
        })
    }

    /// The oldest store of a buffer.
    pub fn front(&self, thread: usize, index: usize) -> Option<&Store> {
        self.threads[thread].buffers[index].pending.front()
    }

    /// The key of a buffer, by which it is known in all executions.
    pub fn key(&self, thread: usize, index: usize) -> u64 {
        self.threads[thread].buffers[index].key
    }

    /// The oldest store of a buffer reaches memory. Returns the store, unless it no longer matters.
    pub fn pop(&mut self, thread: usize, index: usize) -> Option<Store> {
        let is_ready = self.front(thread, index).is_some_and(|store| self.have_written(thread, &store.after));
        debug_assert!(is_ready, "invariant 1: what has to be written first was");
        let buffer = &mut self.threads[thread].buffers[index];
        let store = buffer.pending.pop_front().expect("the buffer is not empty");
        buffer.written += 1;
        Some(store).filter(|store| !store.is_void)
    }

    /// A thread has exclusive access to an object: all pending stores to it are taken out. Returns the value
    /// of the newest one, if there is any.
    ///
    /// A real machine has written them by then. Access is given up with a locked instruction that need not be
    /// one of this crate, such as the one that counts the owners of an `Arc`.
    pub fn take_exclusive(&mut self, address: u64) -> Option<u64> {
        let buffers = self.threads.iter_mut().flat_map(|thread| &mut thread.buffers);
        let pending = buffers.flat_map(|buffer| &mut buffer.pending);
        let mut newest = None;
        for store in pending.filter(|store| store.address == address && !store.is_void) {
            store.is_void = true;
            newest = newest.max(Some((store.number, store.value)));
        }
        newest.map(|(_, value)| value)
    }
}

impl Buffer {
    fn drain(&mut self) {
        debug_assert!(self.pending.is_empty(), "the thread has waited for the buffer to be empty");
        self.drained = self.entered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(buffers: &mut Buffers, address: u64, value: u64) -> usize {
        buffers.push(0, (address, 1), value, 0, 1).0
    }

    #[test]
    fn total_store_order() {
        let mut buffers = Buffers::new(Model::Tso, Interlocked::WholeBuffer);
        for (address, value) in [(1, 10), (2, 20), (1, 11)] {
            assert_eq!(push(&mut buffers, address, value), 0);
        }
        assert_eq!(buffers.forwarded(0, 1).map(|(value, _)| value), Some(11));
        assert_eq!(buffers.forwarded(1, 1), None);
        assert_eq!((buffers.own(0, 1), buffers.own(0, 2)), (Some((0, 3)), Some((0, 2))));
        let written = [1, 2, 1].map(|_| buffers.pop(0, 0).map(|store| (store.address, store.value)));
        assert_eq!(written, [Some((1, 10)), Some((2, 20)), Some((1, 11))]);
        assert_eq!(buffers.own(0, 1), Some((0, 3)), "this does not depend on how far the buffer has got");
        assert_eq!(buffers.undrained(0, Drain::All), [(0, 3)]);
        buffers.drained(0, Drain::All);
        assert_eq!((buffers.own(0, 1), buffers.undrained(0, Drain::All)), (None, Vec::new()));
    }

    #[test]
    fn partial_store_order() {
        let mut buffers = Buffers::new(Model::Pso, Interlocked::OwnAddress);
        assert_eq!([(1, 10), (2, 20)].map(|(address, value)| push(&mut buffers, address, value)), [0, 1]);
        buffers.store_fence(0);
        assert_eq!(push(&mut buffers, 3, 30), 2);
        let ready = |buffers: &Buffers| -> Vec<u64> {
            buffers.oldest().filter(|(.., ready)| *ready).map(|(_, _, store, _)| store.address).collect()
        };
        assert_eq!(ready(&buffers), [1, 2]);
        buffers.pop(0, 1);
        assert_eq!(ready(&buffers), [1]);
        buffers.pop(0, 0);
        assert_eq!(ready(&buffers), [3]);
        assert_eq!(buffers.locked(3, false), Drain::Address(3));
        assert_eq!(buffers.undrained(0, Drain::Address(3)), [(2, 1)]);
    }

    #[test]
    fn exclusive_access() {
        let mut buffers = Buffers::new(Model::Tso, Interlocked::WholeBuffer);
        push(&mut buffers, 1, 10);
        push(&mut buffers, 2, 20);
        buffers.push(1, (1, 1), 12, 0, 1);
        assert_eq!(buffers.take_exclusive(1), Some(12));
        assert_eq!((buffers.take_exclusive(1), buffers.forwarded(0, 1)), (None, None));
        assert!(buffers.pop(0, 0).is_none(), "the store no longer matters");
        assert_eq!(buffers.pop(0, 0).map(|store| store.value), Some(20));
    }
}
