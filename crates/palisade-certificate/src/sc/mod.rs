//! Proofs for SC where stacks have any height or there is any number of threads: sets of states that are
//! closed under steps.
//!
//! Under SC a step of a thread depends on memory, on the thread itself, and on whether another thread's
//! atomic section is open. It changes memory and this thread, and may add a thread at its start. So the
//! trusted machine takes steps here with the thread alone ([`alone`]), whatever the other threads are. A
//! thread that waits for something simply has no step. No thread waits for the end of another thread, and no
//! property is about being stuck.
//!
//! # Skipping local steps
//! A thread state *passes* if all of these hold:
//! - it is not at a stop of the proof;
//! - it has a step;
//! - none of its steps reads or writes memory, starts a thread, opens or closes an atomic section, causes a
//!   fault, or changes anything that a `forbid` sees.
//!
//! Otherwise it *waits*. Every loop of the code has a stop (checked), so passing terminates. For each thread
//! state s let N(s) be the waiting thread states that it passes to, or s itself if it waits. N(s) is never
//! empty. (If a thread state were passed through twice, its lowest frame that moves would go around a loop of
//! the code, and all locations of that loop would be on top in between.)
//!
//! A set S of states *is a proof* if the following holds. Claim: for every reachable state, all states in
//! which each thread s is replaced by some thread of N(s) are in S.
//! 1. For each initial state these states are in S.
//! 2. If a waiting thread takes a step from a state in S that leads to s and perhaps starts r, then for all
//!    of N(s) and N(r) the resulting state is in S. For atomic sections, see below.
//! 3. No such step causes a fault, and no state in S violates a property.
//!
//! The claim follows by induction on the steps of a run. If a thread passes from s to s', N(s') is a subset
//! of N(s), and memory is the same. If it waits, N(s) is s itself, and point 2 applies to each choice for the
//! others. A state that violates a `forbid` does so with any choice of N as well. A `final` condition is
//! evaluated when all threads are at their end, where they wait. A fault is a step of a waiting thread.
//!
//! # Registers
//! Registers that are never read again count as 0 ([`Liveness`](palisade_program::running::Liveness)). So
//! does a caller's register that is waiting for a result. No step and no property depends on them.
//!
//! # The two kinds
//! - [`crowds`]: S is given by numbers of threads in thread states, for unboundedly many threads.
//! - [`stacks`]: S is given by sets of stacks, for recursion. There, everything a thread does alone is one
//!   step, and no atomic section is open at either end of it.

mod alone;
mod counts;
mod crowds;
mod inclusion;
mod saturate;
mod stacks;

pub(crate) use crowds::verify as verify_crowds;
pub(crate) use stacks::verify as verify_stacks;

use crate::Refusal;
use palisade_base::Interner;
use palisade_engine::Task;
use palisade_memory::Model;

/// Such proofs apply only to SC, and to a fixed number of threads at the start.
pub(crate) fn check_task(task: &Task<'_>) -> Result<(), Refusal> {
    match task.model {
        Model::Sc if task.is_parameterized() => {
            Err(Refusal::Unsuited("such a proof needs a fixed number of initial processes".into()))
        }
        Model::Sc => Ok(()),
        Model::Tso | Model::Pso => Err(Refusal::Unsuited("such a proof applies only to SC".into())),
    }
}

/// Values by index.
type Table<T> = Interner<u32, T>;

/// Rejects something that the program does not have.
fn unfit<T>(what: &str) -> Result<T, Refusal> {
    Err(Refusal::Unfit(what.into()))
}

/// The memory contents of a proof, by index, with an index for each.
fn read_memories(
    cells: usize,
    memories: &[Vec<i64>],
    table: &mut Table<Vec<i64>>,
) -> Result<Vec<u32>, Refusal> {
    let read = |memory: &Vec<i64>| match memory.len() == cells {
        true => Ok(table.id(memory.clone())),
        false => unfit("memory has the wrong number of cells"),
    };
    memories.iter().map(read).collect()
}
