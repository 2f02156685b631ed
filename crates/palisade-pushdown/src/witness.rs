//! From a bad set of states back to a run of the machine.
//!
//! The search knows which thread ran when, and with which memory each round began and ended. Each thread is
//! handled separately, from its last round to its first:
//! 1. The stack at the end of the round is known. At the very end it is a stack that makes the state bad.
//! 2. The saturated automaton of the round is computed again. It leads back to a stack at the start of the
//!    round, and gives the steps in between.
//!
//! Put together in the order of the rounds, these steps are a run, because what one thread does in a round
//! depends on the others only through memory.

use crate::contexts::{Contexts, Interrupted, Target};
use crate::rules::{Control, SymbolId};
use palisade_base::Id;
use palisade_memory::{Action, Step};
use palisade_program::running::ThreadId;
use palisade_trace::{Run, until_bad};

/// Runs with more steps than this are not written out.
pub(crate) const MAX_STEPS: u64 = 1 << 22;

/// Why there is no run.
pub(crate) enum NoRun {
    /// It would have this many steps or more.
    TooLong(u64),
    Interrupted(Interrupted),
}

impl From<Interrupted> for NoRun {
    fn from(interrupted: Interrupted) -> NoRun {
        NoRun::Interrupted(interrupted)
    }
}

/// A run to a bad state of the last set found.
pub(crate) fn run(contexts: &mut Contexts<'_, '_>, last: usize, target: &Target) -> Result<Run, NoRun> {
    // The rounds in order: the set before, the set after, the thread.
    let mut path = Vec::new();
    let mut at = last;
    while let Some((parent, thread)) = contexts.met[at].parent {
        path.push((parent, at, thread));
        at = parent;
    }
    path.reverse();
    let memory = contexts.rules.memory(contexts.met[at].global.memory).to_vec();

    let mut total: u64 = 0;
    let mut rounds: Vec<Vec<Action>> = vec![Vec::new(); path.len()];
    let mut at_fault = None;
    // The stack of each thread at the end, top first. The stack of a thread that runs into a fault is found
    // below.
    let threads = contexts.met[last].global.threads.clone();
    let mut stacks: Vec<Option<Vec<SymbolId>>> = match target {
        Target::Property(samples) => {
            let word = |(sample, &(_, language)): (&crate::views::Sample, &(_, _))| {
                Some(contexts.languages.get(language).shortest_word(sample.bottom, sample.alone))
            };
            samples.iter().zip(&threads).map(word).collect()
        }
        Target::Fault(_) => vec![None; threads.len()],
    };
    if let Target::Fault(thread) = *target {
        let saturation = contexts.saturate(threads[thread].1, contexts.met[last].global.memory)?;
        let (edge, action) = saturation.fault.expect("the search found a fault here");
        let path = saturation.path_from(edge);
        total = total.saturating_add(saturation.cost(&path));
        if total > MAX_STEPS {
            return Err(NoRun::TooLong(total));
        }
        let (mut actions, word) = saturation.unwind(&path);
        actions.extend(action);
        stacks[thread] = Some(word);
        at_fault = Some((thread, actions));
    }
    for (number, &(before, after, thread)) in path.iter().enumerate().rev() {
        // A thread whose end does not matter may stay as it was before this round. But the round must leave
        // the same memory, so any of its stacks will do.
        let end = contexts.met[after].global.threads[thread].1;
        let word = match stacks[thread].take() {
            Some(word) => word,
            None => {
                let (bottom, above) = contexts.languages.get(end).bottoms()[0];
                contexts.languages.get(end).shortest_word(bottom, above.is_none())
            }
        };
        let (start, left) = (&contexts.met[before].global, &contexts.met[after].global);
        let started = left.threads[start.threads.len()..].iter().map(|&(role, _)| role).collect();
        let control = Control { memory: left.memory, started, returning: None };
        let (stack_set, memory) = (start.threads[thread].1, start.memory);
        let control = contexts.rules.control_id(control);
        let saturation = contexts.saturate(stack_set, memory)?;
        let path = saturation.path(control, &word);
        total = total.saturating_add(saturation.cost(&path));
        if total > MAX_STEPS {
            return Err(NoRun::TooLong(total));
        }
        let (actions, word) = saturation.unwind(&path);
        rounds[number] = actions;
        stacks[thread] = Some(word);
    }
    let in_round = path.iter().map(|&(_, _, thread)| thread).zip(rounds);
    let steps = in_round.chain(at_fault).flat_map(|(thread, actions)| {
        actions.into_iter().map(move |action| Step { thread: ThreadId::from_index(thread), action })
    });
    let run = Run { memory, steps: steps.collect() };
    Ok(until_bad(contexts.rules.machine(), run))
}
