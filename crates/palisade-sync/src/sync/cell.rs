//! The operations of atomics in a run, on values as bits.
//!
//! [`palisade_monitor::actions`] defines what an operation is on a machine, by its memory order. Stores enter
//! the buffer of their thread. Locked instructions wait until that is empty, and read and write memory. Loads
//! read the newest own store in the buffer, or memory.

use crate::runtime::Here;
use crate::runtime::buffers::Drain;
use crate::runtime::state::State;
use palisade_dpor::{Footprint, Mode, Writes};
use palisade_monitor::{Access, Action, Bytes, Instruction, Operation, actions, fenced_action};
use std::panic::Location;
use std::sync::atomic::Ordering;

/// Where an operation is called, and its name.
pub type CallSite = (&'static Location<'static>, &'static str);

/// An atomic of a run.
#[derive(Clone, Copy)]
pub struct Cell {
    pub bytes: Bytes,
    /// The value before the first store.
    pub initial: u64,
}

impl Cell {
    fn writing(self) -> Footprint {
        Footprint::one(self.bytes.address, u64::from(self.bytes.size), Mode::Write)
    }

    /// The value, for a thread that is unwound after the end of its execution.
    fn after_end(self, here: &Here) -> u64 {
        here.run.state().peek(here.thread, self.bytes.address).unwrap_or(self.initial)
    }

    /// Reads and writes memory in one step.
    fn access(self, state: &mut State, here: &Here, by: Instruction, writes: bool) {
        if state.buffers.exist() {
            state.trace.access(here.thread, by, &[(self.bytes.address, writes)]);
        }
    }

    pub fn load(self, here: &Here, place: CallSite, order: Ordering) -> u64 {
        let (thread, address) = (here.thread, self.bytes.address);
        let touches = |state: &mut State| (state.reading(thread, self.bytes), Drain::No);
        let loaded = here.atomic(place, touches, |state, by| {
            let (value, own) = state.read(thread, address, self.initial);
            events(state, here, by, Operation::Load(self.bytes), order);
            if state.buffers.exist() {
                state.trace.read(thread, by, address, own);
            }
            state.look(thread, by, Some((address, value)));
            value
        });
        loaded.unwrap_or_else(|| self.after_end(here))
    }

    pub fn store(self, here: &Here, place: CallSite, value: u64, order: Ordering) {
        let address = self.bytes.address;
        let operation = Operation::Store(self.bytes);
        let (is_fenced, action) = fenced_action(operation, order);
        let is_locked = matches!(action, Some(Action::Access(Access::Locked, _)));
        let touches = |state: &mut State| match is_locked {
            true => (self.writing(), state.buffers.locked(address, is_fenced)),
            false if state.buffers.exist() => (Footprint::nothing(), Drain::No),
            false => (self.writing(), Drain::No),
        };
        let stored = here.atomic(place, touches, |state, by| {
            events(state, here, by, operation, order);
            if is_locked || !state.buffers.exist() {
                self.access(state, here, by, true);
                state.wrote(here.thread, address, value);
            } else {
                if is_fenced {
                    state.buffers.store_fence(here.thread);
                }
                state.buffer(here.thread, self.bytes, value, by);
            }
        });
        if stored.is_none() {
            here.run.state().poke(address, value);
        }
    }

    /// A locked instruction: `f` computes the new value, or returns `None` if nothing is stored. Returns the
    /// old value, and whether something was stored. The orders are those of success and failure. `writes` says
    /// when something is stored.
    pub fn modify(
        self,
        here: &Here,
        place: CallSite,
        [success, failure]: [Ordering; 2],
        writes: Writes,
        f: impl Fn(u64) -> Option<u64>,
    ) -> (u64, bool) {
        let (thread, address) = (here.thread, self.bytes.address);
        let (is_fenced, _) = fenced_action(Operation::Modify(self.bytes), success);
        let touches = |state: &mut State| {
            (Footprint { writes, ..self.writing() }, state.buffers.locked(address, is_fenced))
        };
        let modified = here.atomic(place, touches, |state, by| {
            let (before, own) = state.read(thread, address, self.initial);
            debug_assert!(own.is_none(), "the own stores to this address have reached memory");
            let after = f(before);
            self.access(state, here, by, after.is_some());
            match after {
                Some(after) => {
                    events(state, here, by, Operation::Modify(self.bytes), success);
                    if before == after {
                        state.look(thread, by, Some((address, before)));
                    } else {
                        state.wrote(thread, address, after);
                    }
                }
                None => {
                    state.failed();
                    events(state, here, by, Operation::Fail(self.bytes), failure);
                    state.look(thread, by, Some((address, before)));
                }
            }
            (before, after.is_some())
        });
        modified.unwrap_or_else(|| {
            let before = self.after_end(here);
            let after = f(before);
            if let Some(after) = after {
                here.run.state().poke(address, after);
            }
            (before, after.is_some())
        })
    }
}

/// Records the events of an operation for the monitors.
fn events(state: &mut State, here: &Here, by: Instruction, operation: Operation, order: Ordering) {
    for action in actions(operation, order) {
        state.event(here.thread, by, action);
    }
}

/// A fence.
pub fn fence(here: &Here, place: CallSite, order: Ordering) {
    match fenced_action(Operation::Fence, order) {
        (_, Some(_)) => {
            here.drain(place);
        }
        (true, None) => here.run.state().buffers.store_fence(here.thread),
        (false, None) => {}
    }
    for action in actions(Operation::Fence, order) {
        here.note(place.0, place.1, action);
    }
}
