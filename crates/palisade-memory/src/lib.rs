//! What a step is: the store-buffer machines for SC, TSO and PSO.
//!
//! *Source.* TSO is the machine of Owens, Sarkar and Sewell (x86-TSO, TPHOLs 2009) and of section 2 of Atig,
//! Bouajjani and Parlato ("Getting rid of store buffers in TSO analysis", CAV 2011): one FIFO buffer per
//! thread, a load sees the newest own pending store to its cell, else memory; fences and locked instructions
//! wait for the empty buffer. PSO has one buffer per thread and cell (Abdulla et al., TACAS 2012, section 9);
//! a store-store fence keeps the stores before it before the stores after it. SC has no buffers.
//!
//! *Guarantee.* This is the definition. There is no search here, no packing, and no cleverness; the replay
//! checker trusts this crate alone.
//!
//! *Reading order*: [`State`] (what there is), [`Machine::step`] (what one step does),
//! [`Machine::successors`] (which steps there are), [`Machine::violation`] (what is bad).
//!
//! *Choices the papers leave open*:
//! 1. While a thread's atomic section is open, no other thread takes a step and no other thread's pending
//!    store reaches memory (the bus lock of x86-TSO). The stores inside reach memory at once: the buffer was
//!    empty when the section was opened.
//! 2. The buffer holds a thread's pending stores in program order in every model. Under PSO any of them may
//!    reach memory unless an older store to the same cell, or a store-store fence, is in front of it: the
//!    same as one buffer per cell.
//! 3. A step that runs into a [`Fault`] leads to a state that records it and has no successors.
//! 4. A spawned thread starts with an empty buffer; `spawn` drains nothing.

mod property;
mod state;
mod step;

pub use property::Violation;
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
    /// Only the pending stores to its own cell and those in front of a store-store fence (the PSO of Burnim,
    /// Sen and Stergiou, TACAS 2011).
    OwnAddress,
}

/// A program on a machine.
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
    /// A program on a machine whose locked instructions wait for the whole buffer.
    pub fn new(system: &'a System, model: Model) -> Machine<'a> {
        Machine { system, model, interlocked: Interlocked::default() }
    }
}
