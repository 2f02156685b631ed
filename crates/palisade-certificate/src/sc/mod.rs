//! Proofs for SC where stacks have any height or threads have any number: sets of states that are closed under steps.
//!
//! Under SC a step of a thread depends on memory, on the thread itself, and on whether another thread's atomic section is open; it changes memory and this thread, and may add a
//! thread at its start. So steps are taken here by the trusted machine with the thread alone ([`alone`]), whatever the others are. A thread that waits for something just has no step; nobody
//! waits for the end of another thread, and no property speaks of being stuck.
//!
//! # Passing over local steps
//! A thread state *passes* if it is at no stop of the proof, has a step, and all it can do are steps that neither read nor write memory, start nobody, leave atomic sections
//! alone, run into no fault, and change nothing that a `forbid` sees. Else it *waits*. Every loop of the code has a stop (checked), so passing comes to an end: for each
//! thread state s let N(s) be the waiting ones that it passes to, s itself if it waits. N(s) is never empty. (A thread state that is passed through twice would, at its lowest frame that moves, lead around
//! a loop of the code, all of whose locations are on top in between.)
//!
//! A set S of states *convinces* if the following holds. Claim: for every reachable state, all states in which each thread s is replaced by some thread of N(s) are in S.
//! 1. For each initial state these are in S.
//! 2. If a thread that waits takes a step from a state in S, leads to s and perhaps starts r, then for all of N(s) and N(r) the state is in S. Within atomic sections, see below.
//! 3. No such step runs into a fault, and no state in S violates a property.
//!
//! Induction over the steps of a run: if a thread passes from s to s', N(s') is part of N(s), and memory is the same. If it waits, N(s) is s itself, and point 2 applies to each choice for the
//! others. A state that violates a `forbid` does so with any choice of N as well; a `final` condition is judged when all threads are at their end, where they wait. A fault is a step of a
//! thread that waits.
//!
//! # Registers
//! Registers that are never read again count as 0 ([`Liveness`](palisade_program::running::Liveness)), and so does a caller's register that a result is awaited for: no step and no property depends on them.
//!
//! # The two kinds
//! [`crowds`]: S is given by numbers of threads in thread states, for threads without end. [`stacks`]: S is given by sets of stacks, for recursion; there all that a thread does alone is one
//! step, at the ends of which no atomic section is open.

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

/// Such proofs are for SC, and for a known number of threads at the start.
pub(crate) fn check_task(task: &Task<'_>) -> Result<(), Refusal> {
    match task.model {
        Model::Sc if task.is_parameterized() => {
            Err(Refusal::Unsuited("such a proof is for a known number of processes at the start".into()))
        }
        Model::Sc => Ok(()),
        Model::Tso | Model::Pso => Err(Refusal::Unsuited("such a proof is for SC".into())),
    }
}

/// Things by number.
type Table<T> = Interner<u32, T>;

/// A refusal of something that the program does not have.
fn unfit<T>(what: &str) -> Result<T, Refusal> {
    Err(Refusal::Unfit(what.into()))
}

/// The contents of memory of a proof, by number; a number for each.
fn read_memories(
    cells: usize,
    memories: &[Vec<i64>],
    table: &mut Table<Vec<i64>>,
) -> Result<Vec<u32>, Refusal> {
    let read = |memory: &Vec<i64>| match memory.len() == cells {
        true => Ok(table.id(memory.clone())),
        false => unfit("memory has other cells"),
    };
    memories.iter().map(read).collect()
}
