//! A run that was replayed, with everything needed to explain it.

use crate::{Replay, Run, process_name};
use palisade_base::Source;
use palisade_memory::{Machine, State};
use palisade_program::running::ThreadId;

/// A run that was replayed, with everything needed to explain it.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What the program was read from.
    pub source: &'a Source,
    /// The program on its machine.
    pub machine: Machine<'a>,
    /// The run.
    pub run: &'a Run,
    /// Its replay.
    pub replay: &'a Replay,
}

impl Evidence<'_> {
    /// The state the run ends in.
    pub fn last_state(&self) -> &State {
        self.replay.states.last().expect("a replay has at least the initial state")
    }

    /// The name of a thread.
    pub fn name(&self, thread: ThreadId) -> String {
        process_name(self.machine.system, self.last_state(), thread)
    }
}
