//! The length of a shortest run to a bad state: breadth-first search over the machine itself, with nothing
//! left out.
//!
//! *Cost.* A full [`State`] per state.

use palisade_memory::{Machine, State};
use std::collections::HashSet;

/// The number of steps of a shortest run to a bad state. `None` if there is no such run, or if it is not
/// found within `max_states` states.
pub fn shortest_bad_run(machine: Machine<'_>, max_states: usize) -> Option<usize> {
    let mut seen: HashSet<State> = machine.initial_states().collect();
    let mut front: Vec<State> = seen.iter().cloned().collect();
    for steps in 0.. {
        if front.iter().any(|state| machine.violation(state).is_some()) {
            return Some(steps);
        }
        let mut next = Vec::new();
        for successor in front.iter().flat_map(|state| machine.successors(state)) {
            if seen.insert(successor.state.clone()) {
                next.push(successor.state);
            }
            if seen.len() > max_states {
                return None;
            }
        }
        if next.is_empty() {
            return None;
        }
        front = next;
    }
    unreachable!("a range without an end has no end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::brute::{self, Answer, Scope};
    use palisade_conformance::{Profile, generate, seeds};
    use palisade_memory::Model;
    use palisade_program::{Instantiation, lower};

    #[test]
    fn differential_as_long_as_by_brute_force() {
        let seeds = seeds(40);
        let mut found = 0;
        for (seed, profile) in seeds.range().flat_map(|seed| Profile::ALL.map(|profile| (seed, profile))) {
            let system = lower(&generate(profile, seed), Instantiation { any: 2, every: None });
            for model in Model::ALL {
                let machine = Machine::new(&system, model);
                let expected = match brute::check(machine, Scope::states(10_000)) {
                    Answer::Unsafe(run) => Some(run.steps.len()),
                    Answer::Safe => None,
                    Answer::Inconclusive => continue,
                };
                found += usize::from(expected.is_some());
                assert_eq!(
                    shortest_bad_run(machine, 1_000_000),
                    expected,
                    "{profile:?} {seed}, {}",
                    model.name()
                );
            }
        }
        assert!(found > 10 || !seeds.suffice(), "{found}");
    }
}
