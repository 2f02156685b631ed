//! `terminates` and `leaves`: the checker against brute force.

use palisade_certificate::{Refusal, verify_fair};
use palisade_conformance::brute::{Answer, Scope};
use palisade_conformance::fair::FairGraph;
use palisade_conformance::generate::{generate_waiting, generate_waking};
use palisade_conformance::seeds;
use palisade_engine::{Limits, Task};
use palisade_memory::{Machine, Model};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower_retrying, print};

const SCOPE: Scope = Scope { states: 3_000, buffer: None };

#[test]
fn differential_random_programs() {
    let (mut accepted, mut refused) = (0, 0);
    let seeds = seeds(40);
    for seed in &seeds {
        for program in [generate_waiting(seed), generate_waking(seed)] {
            // One property at a time: most programs violate at least one.
            for stated in program.progress.iter().filter(|stated| stated.kind.is_fair()) {
                let program = Program { progress: vec![stated.clone()], ..program.clone() };
                let system = lower_retrying(&program, Instantiation::declared(1));
                for model in Model::ALL {
                    let Some(graph) = FairGraph::new(Machine::new(&system, model), SCOPE) else { continue };
                    let holds = graph.answer(&system.fair[0].kind) == Answer::Safe;
                    let found = verify_fair(&Task::new(&program, model), &Limits::unlimited(1));
                    let expected = if holds { found.is_ok() } else { found == Err(Refusal::Forever) };
                    let text = print::print(&program);
                    assert!(expected, "seed {seed}, {}: {found:?}\n{text}", model.name());
                    accepted += usize::from(holds);
                    refused += usize::from(!holds);
                }
            }
        }
    }
    assert!(accepted > 0 && refused > 0 || !seeds.suffice());
}
