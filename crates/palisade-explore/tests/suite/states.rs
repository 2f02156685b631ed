//! Without reduction, explicit search visits exactly the states of the machine. Registers that are never read
//! again count as 0.

use palisade_base::Id;
use palisade_conformance::brute::{Scope, reachable};
use palisade_conformance::{Profile, generate};
use palisade_engine::{Engine, Limits, Options, Reduction, Task, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Model, State};
use palisade_program::running::Liveness;
use std::collections::HashSet;
use std::sync::Arc;

#[test]
fn oracle_states_are_those_of_the_machine() {
    let mut compared = 0;
    for seed in 1..=60 {
        let program = generate(Profile::Simple, seed);
        for model in Model::ALL {
            let task = Task {
                options: Options { reduction: Reduction::None, ..Options::default() },
                ..Task::new(&program, model)
            };
            let outcome = Explicit.check(&task.analysis(), &Limits::unlimited(1));
            let system = task.lower(1);
            let search = reachable(task.machine(&system), Scope::states(30_000));
            // A search that finds a bad state stops there, and one with limits sees less.
            if outcome.verdict != Verdict::Holds || !search.complete {
                continue;
            }
            let liveness = Liveness::new(&system);
            let forget_dead = |mut state: State| {
                for frame in state.threads.iter_mut().flat_map(|thread| &mut Arc::make_mut(thread).frames) {
                    for register in liveness.dead(frame.code, frame.location) {
                        frame.registers[register.index()] = 0;
                    }
                }
                state
            };
            let states: HashSet<State> = search.states.into_iter().map(forget_dead).collect();
            assert_eq!(
                outcome.stats.get("states"),
                Some(states.len() as u64),
                "seed {seed}, {}",
                model.name()
            );
            compared += 1;
        }
    }
    assert!(compared >= 50, "{compared} searches were compared");
}
