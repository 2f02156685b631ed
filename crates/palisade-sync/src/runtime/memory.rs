//! Memory as threads see it, through their store buffers.

use super::buffers::{Store, Written};
use super::session::Actor;
use super::spin::Look;
use super::state::State;
use palisade_dpor::{Footprint, Mode, StepId, Touch};
use palisade_monitor::{Bytes, Instruction};

impl State {
    /// A step of a buffer of a thread, as the search knows it.
    pub(super) fn step_id(&mut self, thread: usize, (buffer, number): Written) -> StepId {
        let key = self.buffers.key(thread, buffer);
        StepId::new(self.session.process(Actor::Buffer(thread, key)), number)
    }

    /// What a load of a thread touches.
    pub fn reading(&mut self, thread: usize, bytes: Bytes) -> Footprint {
        let own = self.buffers.own(thread, bytes.address).map(|step| self.step_id(thread, step));
        let touch = Touch { address: bytes.address, size: u64::from(bytes.size), mode: Mode::Read, own };
        Footprint { touches: [touch].into_iter().collect(), ..Footprint::nothing() }
    }

    /// The oldest store of a buffer will reach memory.
    pub(super) fn announce_write(&mut self, thread: usize, buffer: usize) {
        if self.recording.is_none() {
            return;
        }
        let Some(store) = self.buffers.front(thread, buffer).cloned() else { return };
        let footprint = self.writing(thread, &store);
        let key = self.buffers.key(thread, buffer);
        let process = self.session.process(Actor::Buffer(thread, key));
        let of = self.session.process(Actor::Thread(thread));
        if let Some(recording) = &mut self.recording {
            recording.buffers_for(process, of);
            recording.will(process, footprint);
        }
    }

    /// What a buffer touches when a store reaches memory.
    pub(super) fn writing(&mut self, thread: usize, store: &Store) -> Footprint {
        let by = StepId::new(self.session.process(Actor::Thread(thread)), store.made_by);
        let after: Vec<StepId> = store.after.iter().map(|&step| self.step_id(thread, step)).collect();
        Footprint::one(store.address, u64::from(store.size), Mode::Write).after([by].into_iter().chain(after))
    }

    /// What a thread sees at an address, and the event of its own pending store if it sees that. `initial` is
    /// what is there if nothing was written.
    pub fn read(&mut self, thread: usize, address: u64, initial: u64) -> (u64, Option<usize>) {
        match self.buffers.forwarded(thread, address) {
            Some((value, event)) => (value, Some(event)),
            None => (*self.memory.entry(address).or_insert(initial), None),
        }
    }

    /// What is at an address, as seen by a thread, without a step.
    pub fn peek(&self, thread: usize, address: u64) -> Option<u64> {
        let own = self.buffers.forwarded(thread, address).map(|(value, _)| value);
        own.or_else(|| self.memory.get(&address).copied())
    }

    /// A thread has exclusive access to the object at an address. Its value is taken out, if it was used
    /// before.
    pub fn take_exclusive(&mut self, address: u64) -> Option<u64> {
        let written = self.memory.remove(&address);
        self.buffers.take_exclusive(address).or(written)
    }

    /// Writes without a step, once the execution is over.
    pub fn poke(&mut self, address: u64, value: u64) {
        self.memory.insert(address, value);
    }

    /// A thread stores to its buffer.
    pub fn buffer(&mut self, thread: usize, bytes: Bytes, value: u64, instruction: Instruction) {
        let process = self.session.process(Actor::Thread(thread));
        let made_by = self.counts.get(process).copied().unwrap_or(0);
        let event = self.trace.store(thread, instruction);
        let place = (bytes.address, bytes.size);
        let (buffer, was_empty) = self.buffers.push(thread, place, value, event, made_by);
        if was_empty {
            self.announce_write(thread, buffer);
        }
        self.progress(thread);
    }

    /// The last step writes only under a condition, and has written nothing.
    pub fn failed(&mut self) {
        if let Some(recording) = self.recording.as_mut().filter(|_| !self.idling) {
            recording.fails();
        }
    }

    /// Moves the oldest store of a buffer to memory.
    pub(super) fn write_oldest(&mut self, thread: usize, buffer: usize) {
        if let Some(store) = self.buffers.pop(thread, buffer) {
            self.memory.insert(store.address, store.value);
            self.trace.written(store.event, store.address);
            self.wake_waiting(thread, store.address, store.value);
        }
    }

    /// A thread has written a value. Threads that wait for a change there continue, unless a search has ended
    /// them.
    pub fn wrote(&mut self, thread: usize, address: u64, value: u64) {
        self.progress(thread);
        self.memory.insert(address, value);
        self.wake_waiting(thread, address, value);
    }

    /// A value of a thread has reached memory.
    fn wake_waiting(&mut self, thread: usize, address: u64, value: u64) {
        if self.recording.is_some() {
            return;
        }
        for (number, other) in self.threads.iter_mut().enumerate() {
            let Some(other) = other.as_mut().filter(|_| number != thread) else { continue };
            let looked = |look: &Look| look.seen.is_some_and(|(at, seen)| at == address && seen != value);
            if other.round.as_ref().is_some_and(|round| round.iter().any(looked)) {
                other.round = None;
                other.looks.forget();
            }
        }
    }
}
