//! Merged automata do exactly what the automata do, and cannot be merged further.

use palisade_automata::{Automata, Letter, Population, StateId};
use palisade_conformance::{Profile, generate};
use palisade_program::{Instantiation, lower};
use std::collections::BTreeSet;

#[test]
fn merged_automata_are_bisimilar_and_smallest() {
    let (mut states, mut classes) = (0, 0);
    for seed in 1..=100 {
        for profile in Profile::ALL {
            let system = lower(&generate(profile, seed), Instantiation { any: 1, every: None });
            let Ok(automata) = Automata::build(&system, |_| Population::Fixed(1), || true) else { continue };
            let merged = automata.merged(&system);
            for (kind, automaton) in automata.automata.iter().enumerate() {
                let (class, quotient) = (&merged.classes[kind], &merged.automata.automata[kind]);
                let does =
                    |edges: &[palisade_automata::Edge], state: StateId, name: &dyn Fn(StateId) -> StateId| {
                        let from = edges.iter().filter(|edge| edge.source == state);
                        let done = from.map(|edge| (edge.letter.clone(), name(edge.target)));
                        done.collect::<BTreeSet<(Letter, StateId)>>()
                    };
                for (state, local) in automaton.states.iter_enumerated() {
                    // A silent edge within a class does nothing.
                    let mut of_state = does(&automaton.edges, state, &|target| class[target]);
                    of_state.remove(&(Letter::Silent, class[state]));
                    let of_class = does(&quotient.edges, class[state], &|target| target);
                    assert_eq!(of_state, of_class, "seed {seed}, {profile:?}, automaton {kind}, {state:?}");
                    let shown = &quotient.states[class[state]];
                    assert_eq!(local.fault.is_some(), shown.fault.is_some());
                    assert_eq!(local.thread.has_ended(&system), shown.thread.has_ended(&system));
                }
                let starts = |of: &palisade_automata::Automaton| {
                    of.starts.iter().map(|start| start.0).collect::<Vec<_>>()
                };
                assert_eq!(
                    starts(automaton).iter().map(|&start| class[start]).collect::<Vec<_>>(),
                    starts(quotient)
                );
                states += automaton.states.len();
                classes += quotient.states.len();
            }
            let again = merged.automata.merged(&system);
            for (once, twice) in merged.automata.automata.iter().zip(&again.automata.automata) {
                assert_eq!(once.states.len(), twice.states.len(), "seed {seed}, {profile:?}");
            }
        }
    }
    println!("{states} states in {classes} classes");
    assert!(classes < states, "nothing was merged");
}
