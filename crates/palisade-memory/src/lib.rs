//! The definition of a step: the store-buffer machines for SC, TSO and PSO.
//!
//! *Source.*
//! - TSO is the machine of Owens, Sarkar and Sewell (x86-TSO, TPHOLs 2009) and of section 2 of Atig,
//!   Bouajjani and Parlato ("Getting rid of store buffers in TSO analysis", CAV 2011). Each thread has one
//!   FIFO buffer. A load returns the value of the thread's newest pending store to the cell, or the value in
//!   memory if there is none. Fences and locked instructions wait until the buffer is empty.
//! - PSO has one buffer per thread and cell (Abdulla et al., TACAS 2012, section 9). A store-store fence
//!   keeps the stores before it ahead of the stores after it.
//! - SC has no buffers.
//!
//! *Guarantee.* This crate is the definition. It contains no search over states, no packing and no
//! optimisation. The replay checker trusts this crate alone.
//!
//! *Reading order*: [`State`] (the state of the machine), [`Machine::step`] (what one step does),
//! [`Machine::successors`] (which steps are possible), [`Machine::violation`] (which states are bad),
//! [`Machine::is_stuck`] (which states are deadlocks), [`Machine::is_fair_cycle`] (what a fair scheduler can
//! repeat forever).
//!
//! *Choices the papers leave open*:
//! 1. While a thread's atomic section is open, no other thread takes a step and no other thread's pending
//!    store reaches memory (the bus lock of x86-TSO). Stores inside the section reach memory at once, because
//!    the buffer was empty when the section was opened.
//! 2. In every model, the buffer holds a thread's pending stores in program order. Under PSO any of them can
//!    reach memory unless an older store to the same cell, or a store-store fence, precedes it in the buffer.
//!    This is equivalent to one buffer per cell.
//! 3. A step that causes a [`Fault`] leads to a state that records it and has no successors.
//! 4. A spawned thread starts with an empty buffer; `spawn` drains nothing.

mod fair;
mod progress;
mod property;
mod race;
mod state;
mod step;

pub use fair::{Agent, Unfair};
pub use property::{Violation, evaluate};
pub use race::NextAccess;
pub use state::{Frame, Pending, Section, State, Thread};
pub use step::{Action, Effect, Refusal, Step, Successor};

pub use palisade_program::running::Fault;
use palisade_program::running::System;

/// A memory model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Model {
    /// Sequential consistency: stores reach memory at once.
    Sc,
    /// Total store order: one FIFO buffer per thread.
    Tso,
    /// Partial store order: one FIFO buffer per thread and cell.
    Pso,
}

impl Model {
    /// All models, strongest first.
    pub const ALL: [Model; 3] = [Model::Sc, Model::Tso, Model::Pso];

    /// `sc`, `tso` or `pso`.
    pub fn name(self) -> &'static str {
        match self {
            Model::Sc => "sc",
            Model::Tso => "tso",
            Model::Pso => "pso",
        }
    }
}

/// What a locked instruction waits for under PSO. Atomic blocks and fences always wait for the whole buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Interlocked {
    /// The whole buffer, as under TSO.
    #[default]
    WholeBuffer,
    /// Only the pending stores to its own cell and those that precede a store-store fence (the PSO of Burnim,
    /// Sen and Stergiou, TACAS 2011).
    OwnAddress,
}

/// A program together with the memory model it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// The program.
    pub system: &'a System,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for.
    pub interlocked: Interlocked,
}

impl<'a> Machine<'a> {
    /// The machine whose locked instructions wait for the whole buffer.
    pub fn new(system: &'a System, model: Model) -> Machine<'a> {
        Machine { system, model, interlocked: Interlocked::default() }
    }
}
