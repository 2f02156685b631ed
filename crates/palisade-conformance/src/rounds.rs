//! Brute force within a number of rounds: every run in which each thread has at most K rounds.
//!
//! A *round* of a thread is a stretch of a run in which only that thread takes steps and only its pending
//! stores reach memory (Atig, Bouajjani and Parlato, CAV 2011, section 2.4). The rounds of different threads
//! may follow each other in any order.
//!
//! *Guarantee.* An answer other than inconclusive is correct if `palisade-memory` is. Stacks may be cut at a
//! height and threads at a number; `safe` then becomes inconclusive.

use crate::brute::Answer;
use palisade_base::Id;
use palisade_memory::{Machine, State, Step};
use palisade_program::running::ThreadId;
use palisade_trace::Run;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Any number of rounds.
pub const ANY: u32 = u32::MAX;

/// Limits of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundLimits {
    /// How many rounds each thread may have. With [`ANY`], rounds are not limited and not counted.
    pub rounds: u32,
    /// The maximum number of frames of a thread.
    pub frames: usize,
    /// The maximum number of threads.
    pub threads: usize,
    /// Give up after this many states.
    pub states: usize,
}

/// A state, the rounds each thread has had so far, and the thread whose round it is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Within {
    state: State,
    used: Vec<u32>,
    last: Option<ThreadId>,
}

/// Searches for a bad state within the rounds.
pub fn check(machine: Machine<'_>, limits: RoundLimits) -> Answer {
    let start = |state: State| Within { used: vec![0; state.threads.len()], state, last: None };
    let mut states: Vec<Within> = Vec::new();
    let mut parents: Vec<Option<(usize, Step)>> = Vec::new();
    let mut known: FxHashSet<Within> = FxHashSet::default();
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut complete = true;
    let mut found: Vec<(Within, Option<(usize, Step)>)> =
        machine.initial_states().map(|state| (start(state), None)).collect();
    loop {
        for (within, parent) in found.drain(..) {
            let height = within.state.threads.iter().map(|thread| thread.frames.len()).max().unwrap_or(0);
            if height > limits.frames || within.state.threads.len() > limits.threads {
                complete = false;
                continue;
            }
            if !known.insert(within.clone()) {
                continue;
            }
            if states.len() >= limits.states {
                return Answer::Inconclusive;
            }
            let index = states.len();
            let bad = machine.violation(&within.state).is_some();
            states.push(within);
            parents.push(parent);
            queue.push_back(index);
            if bad {
                return Answer::Unsafe(run_to(&states, &parents, index));
            }
        }
        let Some(next) = queue.pop_front() else {
            return if complete { Answer::Safe } else { Answer::Inconclusive };
        };
        let at = &states[next];
        for successor in machine.successors(&at.state) {
            let thread = successor.step.thread;
            if limits.rounds == ANY {
                let used = vec![0; successor.state.threads.len()];
                found.push((
                    Within { state: successor.state, used, last: None },
                    Some((next, successor.step)),
                ));
                continue;
            }
            let mut used = at.used.clone();
            used.resize(successor.state.threads.len(), 0);
            if at.last != Some(thread) {
                used[thread.index()] += 1;
            }
            if used[thread.index()] <= limits.rounds {
                let within = Within { state: successor.state, used, last: Some(thread) };
                found.push((within, Some((next, successor.step))));
            }
        }
    }
}

/// The largest number of rounds that a thread has in a run.
pub fn most_rounds(run: &Run) -> u32 {
    let mut used: Vec<u32> = Vec::new();
    let mut last = None;
    for step in &run.steps {
        let thread = step.thread.index();
        if used.len() <= thread {
            used.resize(thread + 1, 0);
        }
        used[thread] += u32::from(last != Some(thread));
        last = Some(thread);
    }
    used.into_iter().max().unwrap_or(0)
}

fn run_to(states: &[Within], parents: &[Option<(usize, Step)>], last: usize) -> Run {
    let mut steps = Vec::new();
    let mut at = last;
    while let Some((parent, step)) = parents[at] {
        steps.push(step);
        at = parent;
    }
    steps.reverse();
    Run { memory: states[at].state.memory.as_slice().to_vec(), steps }
}
