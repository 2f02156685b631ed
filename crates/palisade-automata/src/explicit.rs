//! Explicit automata: per role, the thread states it can be in when memory may hold any value that somebody may write.
//!
//! *Guarantee.* The automata over-approximate the program: every run of the store-buffer machine, under any model, takes each thread along a path of its
//! automaton, and every value a cell ever holds, in memory or in a buffer, is among the cell's [values](Automata::values). Local steps are
//! collapsed as [`crate::run_on`] says; a locked instruction or an atomic section is one edge.
//!
//! Nothing here depends on the memory model: whoever uses the automata knows what reads see and what fences wait for.

use crate::local::Local;
use palisade_base::{IdVec, define_id};
use palisade_memory::Action;
use palisade_program::Value;
use palisade_program::running::{CellId, RoleId};

define_id!(
    /// A state of one automaton.
    StateId
);
define_id!(
    /// A value of one cell, by its position among the cell's values.
    ValueId
);

/// The automata of a program.
#[derive(Clone, Debug)]
pub struct Automata {
    /// What each cell can hold; the initial values come first.
    pub values: IdVec<CellId, IdVec<ValueId, Value>>,
    /// How many of a cell's values are initial ones.
    pub initial: IdVec<CellId, usize>,
    /// One automaton per role that has instances at the start.
    pub automata: Vec<Automaton>,
}

/// The automaton of one role.
#[derive(Clone, Debug)]
pub struct Automaton {
    /// Which role.
    pub role: RoleId,
    /// How many threads run it.
    pub population: Population,
    /// The thread states.
    pub states: IdVec<StateId, Local>,
    /// Where threads start, with the local steps that lead there and how many of these belong to a section not entered yet.
    pub starts: Vec<(StateId, Vec<Action>, usize)>,
    /// What they do.
    pub edges: Vec<Edge>,
}

/// How many threads run an automaton.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Population {
    /// This many.
    Fixed(u32),
    /// Any number.
    Any,
}

/// An edge of an automaton.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// From.
    pub source: StateId,
    /// To.
    pub target: StateId,
    /// What it does to memory.
    pub letter: Letter,
    /// The machine's steps it stands for: the first are accesses, the others local.
    pub steps: Vec<Action>,
    /// How many of the last steps belong to a section that is not entered yet; see [`crate::Schedule`].
    pub armed: usize,
}

/// What an edge does to memory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Letter {
    /// Nothing, but properties see a change.
    Silent,
    /// Reads this value.
    Read(CellId, ValueId),
    /// Writes this value.
    Write(CellId, ValueId),
    /// Waits for the empty buffer.
    Fence,
    /// Separates earlier from later stores.
    StoreFence,
    /// With an empty buffer, at once: memory holds these values before and those afterwards. Each cell comes at most once in each list; lists are sorted.
    Locked {
        /// What is read before it is written.
        guard: Vec<(CellId, ValueId)>,
        /// What memory holds afterwards, for the cells that are written.
        effect: Vec<(CellId, ValueId)>,
    },
}
