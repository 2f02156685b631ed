//! Robust programs: what holds in every fair run under SC holds under the model. `palisade-explore` has the
//! argument.

use palisade::{Limits, Model};
use palisade_conformance::brute::{Answer, Scope};
use palisade_conformance::fair::FairGraph;
use palisade_conformance::generate::{generate_waiting, generate_waking};
use palisade_conformance::seeds;
use palisade_engine::{Engine, Outcome, Robustness, Task, Verdict};
use palisade_memory::Machine;
use palisade_program::running::{Instr, System};
use palisade_program::written::Program;
use palisade_program::{Instantiation, Waits, lower_retrying, print};
use palisade_robust::Attacks;

const SCOPE: Scope = Scope { states: 3_000, buffer: None };

fn answers(system: &System, model: Model) -> Option<Vec<bool>> {
    let graph = FairGraph::new(Machine::new(system, model), SCOPE)?;
    Some(system.fair.iter().map(|property| graph.answer(&property.kind) == Answer::Safe).collect())
}

fn is_robust(program: &Program, model: Model) -> bool {
    let mut task = Task::new(program, model);
    task.options.waits = Waits::Retry;
    let found: Outcome<Robustness> = Attacks.check(&task.analysis(), &Limits::unlimited(1).with_work(20_000));
    found.verdict == Verdict::Holds
}

#[test]
fn robust_programs_are_fair_under_all_models_alike() {
    let (mut compared, mut violated) = (0, 0);
    let seeds = seeds(60);
    for seed in &seeds {
        for program in [generate_waiting(seed), generate_waking(seed)] {
            let system = lower_retrying(&program, Instantiation::declared(1));
            let mut edges = system.codes.iter().flat_map(|code| code.edges());
            if edges.any(|edge| matches!(edge.instr, Instr::AtomicBegin | Instr::Spawn(..))) {
                continue;
            }
            let Some(under_sc) = answers(&system, Model::Sc) else { continue };
            for model in [Model::Tso, Model::Pso] {
                if is_robust(&program, model)
                    && let Some(found) = answers(&system, model)
                {
                    let text = print::print(&program);
                    assert_eq!(found, under_sc, "seed {seed}, {}\n{text}", model.name());
                    compared += 1;
                    violated += usize::from(found.contains(&false));
                }
            }
        }
    }
    let enough = compared > violated && violated > 0;
    assert!(enough || !seeds.suffice(), "{compared} compared, {violated} violated");
}
