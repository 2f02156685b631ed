//! A run that was replayed, with everything needed to explain it.

use crate::{Addresses, Replay, Run, process_name};
use palisade_base::Source;
use palisade_memory::{Machine, State};
use palisade_program::Value;
use palisade_program::running::{CellId, Register, ThreadId};

/// A run that was replayed, with everything needed to explain it.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The text that the program was read from.
    pub source: &'a Source,
    /// What addresses mean, if pointers are addresses of bytes.
    pub addresses: Option<&'a dyn Addresses>,
    /// The program and its memory model.
    pub machine: Machine<'a>,
    /// The run.
    pub run: &'a Run,
    /// Its replay.
    pub replay: &'a Replay,
}

impl Evidence<'_> {
    /// The last state of the run.
    pub fn last_state(&self) -> &State {
        self.replay.states.last().expect("a replay always has an initial state")
    }

    /// A value of a cell, as it is shown to readers.
    pub fn value(&self, cell: CellId, value: Value) -> String {
        self.words(cell, value).unwrap_or_else(|| value.to_string())
    }

    /// A value of a cell in words, if they say more than the number.
    pub fn words(&self, cell: CellId, value: Value) -> Option<String> {
        let declared = &self.machine.system.cells[cell];
        let name = self.machine.system.value_name(declared.ty.domain, value);
        let words = || self.addresses.and_then(|addresses| addresses.value(declared.address, value));
        name.map(str::to_owned).or_else(words)
    }

    /// A value of a register, as it is shown to readers.
    pub fn register_value(&self, register: &Register, value: Value) -> String {
        let name = self.machine.system.value_name(register.ty.domain, value);
        name.map_or_else(|| value.to_string(), str::to_owned)
    }

    /// The name of a thread.
    pub fn name(&self, thread: ThreadId) -> String {
        process_name(self.machine.system, self.last_state(), thread)
    }
}
