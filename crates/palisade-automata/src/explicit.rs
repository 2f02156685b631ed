//! Explicit automata: for each role, the thread states it can be in when memory may hold any value that some
//! thread may write.
//!
//! *Guarantee.* The automata over-approximate the program. Every run of the store-buffer machine, under any
//! model, takes each thread along a path of its automaton. Every value a cell ever holds, in memory or in a
//! buffer, is among the cell's [values](Automata::values). Local steps are collapsed as described in
//! [`crate::run_on`]. A locked instruction or an atomic section is one edge.
//!
//! Edges that start threads say so ([`Letter::Spawn`]). A user of the automata may ignore that, and treat these threads
//! as if any number of them were there from the start. That is an over-approximation, too: in a run, let all threads
//! exist from the start, and let those that are started later do nothing until then. A thread starts with an empty
//! buffer and knows nothing, so each step stays possible.
//!
//! Nothing here depends on the memory model. The users of the automata define what reads see and what fences
//! wait for.

use crate::coverage::Coverage;
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
    /// The values each cell can hold. The initial values come first.
    pub values: IdVec<CellId, IdVec<ValueId, Value>>,
    /// How many of a cell's values are initial ones.
    pub initial: IdVec<CellId, usize>,
    /// One automaton per role that has instances at the start or is started at run time.
    pub automata: Vec<Automaton>,
    /// The roles that are started at run time.
    pub spawned: Vec<RoleId>,
    /// What threads do if they may read any value that a cell may hold. Runs do no more than this, under any
    /// memory model.
    pub coverage: Coverage,
}

/// The automaton of one role.
#[derive(Clone, Debug)]
pub struct Automaton {
    /// Which role.
    pub role: RoleId,
    /// How many threads run it, at the start or later.
    pub population: Population,
    /// How many threads run it at the start.
    pub initially: Population,
    /// The thread states.
    pub states: IdVec<StateId, Local>,
    /// Where threads start, with the local steps that lead there, and how many of these steps belong to a
    /// section not entered yet.
    pub starts: Vec<(StateId, Vec<Action>, usize)>,
    /// Its edges.
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
    /// The state before the edge.
    pub source: StateId,
    /// The state after the edge.
    pub target: StateId,
    /// Its effect on memory.
    pub letter: Letter,
    /// The machine steps it represents. The first are accesses, the others are local.
    pub steps: Vec<Action>,
    /// How many of the last steps belong to a section that is not entered yet; see [`crate::Schedule`].
    pub armed: usize,
}

/// The effect of an edge on memory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Letter {
    /// Nothing, but properties see a change.
    Silent,
    /// Starts a thread that runs the automaton with this index.
    Spawn(u32),
    /// Reads this value.
    Read(CellId, ValueId),
    /// Writes this value.
    Write(CellId, ValueId),
    /// Waits until the buffer is empty.
    Fence,
    /// Separates earlier from later stores.
    StoreFence,
    /// Runs atomically with an empty buffer: memory holds the values of `guard` before, and those of `effect`
    /// afterwards. Each cell occurs at most once in each list, and lists are sorted.
    Locked {
        /// The values of the cells that are read before they are written.
        guard: Vec<(CellId, ValueId)>,
        /// The values of the written cells afterwards.
        effect: Vec<(CellId, ValueId)>,
    },
}
