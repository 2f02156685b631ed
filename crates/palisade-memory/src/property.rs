//! Which states are bad.

use crate::{Fault, Machine, State};
use palisade_base::Id;
use palisade_program::Value;
use palisade_program::running::{BinaryOp, CellId, Condition, PropertyKind, ThreadId, binary, unary};
use std::sync::Arc;

/// Why a state is bad.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Violation {
    /// A thread caused a run-time error.
    Fault(ThreadId, Fault),
    /// The property with this index is violated.
    Property(usize),
    /// These two threads are about to access this cell, or the second one has a pending store to it, and one of the
    /// accesses is plain ([`Machine::race`]).
    Race(ThreadId, ThreadId, CellId),
    /// The state is stuck ([`Machine::is_stuck`]).
    Deadlock,
    /// No state that satisfies the goal with this index is reachable from here.
    Unreachable(usize),
    /// The run can go on forever in a fair way, and thereby violates a property.
    Forever {
        /// The index of the property in `System::fair`.
        property: usize,
        /// How many steps come before the cycle. All later steps are the cycle.
        from: usize,
    },
}

impl Machine<'_> {
    /// Why the state is bad, if it is: a fault, else the first violated property, else a data race.
    pub fn violation(&self, state: &State) -> Option<Violation> {
        if let Some((thread, fault)) = state.fault {
            return Some(Violation::Fault(thread, fault));
        }
        let drained = state.threads.iter().all(|thread| thread.buffer.is_empty());
        let ended = state.threads.iter().all(|thread| thread.has_ended(self.system));
        self.system
            .properties
            .iter()
            .position(|property| {
                let judged = match property.kind {
                    PropertyKind::Forbid => state.section.is_none() && (drained || !property.reads_memory),
                    PropertyKind::Final => ended && drained,
                };
                judged && evaluate(&property.bad, state).is_ok_and(|value| value != 0)
            })
            .map(Violation::Property)
            .or_else(|| self.race(state))
    }
}

/// The value of a condition in a state.
pub fn evaluate(condition: &Condition, state: &State) -> Result<Value, Fault> {
    let eval = |condition: &Condition| evaluate(condition, state);
    match condition {
        Condition::Const(value) => Ok(*value),
        Condition::Cell(cell) => Ok(state.memory[*cell]),
        Condition::Register(thread, register) => {
            Ok(state.threads[*thread].frames[0].registers[register.index()])
        }
        Condition::At(thread, location) => Ok(state.threads[*thread].is_at(*location).into()),
        Condition::Count(places) => {
            let there = |thread: &&Arc<crate::Thread>| {
                places.iter().any(|&(role, location)| thread.role == role && thread.is_at(location))
            };
            Ok(state.threads.iter().filter(there).count() as Value)
        }
        Condition::Unary(op, a) => unary(*op, eval(a)?),
        Condition::Binary(BinaryOp::And, a, b) => Ok((eval(a)? != 0 && eval(b)? != 0).into()),
        Condition::Binary(BinaryOp::Or, a, b) => Ok((eval(a)? != 0 || eval(b)? != 0).into()),
        Condition::Binary(op, a, b) => binary(*op, eval(a)?, eval(b)?),
    }
}
