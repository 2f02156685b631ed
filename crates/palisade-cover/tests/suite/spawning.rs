//! Programs that start threads at run time: whatever is proved is safe, and the checker accepts the proof.

use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::generate::generate_spawning;
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Task, Verdict};
use palisade_memory::{Machine, Model};
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use palisade_trace::replay;

const ENGINES: [(&dyn Engine, Model); 5] =
    [(&Dual, Model::Sc), (&Dual, Model::Tso), (&Sb, Model::Sc), (&Sb, Model::Tso), (&Sb, Model::Pso)];

/// Whether an engine proves a program. The proof is checked.
fn is_proved(program: &Program, engine: &dyn Engine, model: Model) -> bool {
    let task = Task::new(program, model);
    let (outcome, proof) = engine.prove(&task.analysis(), &Limits::unlimited(1).with_work(30_000));
    // A run is given only if the program never starts a thread.
    if let Verdict::Violated(witness) = &outcome.verdict {
        let system = palisade_program::lower(program, witness.instantiation);
        replay(Machine::new(&system, model), &witness.run).expect("the run replays");
    }
    if let Some(proof) = &proof {
        let judged = palisade_certificate::verify(&task, proof, &Limits::unlimited(1));
        judged.unwrap_or_else(|refusal| panic!("{} {}: {refusal}", engine.name(), model.name()));
    }
    assert_eq!(proof.is_some(), outcome.verdict == Verdict::Holds);
    proof.is_some()
}

#[test]
fn differential_what_is_proved_is_safe() {
    let seeds = seeds(40).starting_at(1);
    let (mut proved, mut safe) = (0, 0);
    for seed in &seeds {
        let full = generate(Profile::Full, seed);
        let program = generate_spawning(seed);
        for program in [program, full] {
            let system =
                palisade_program::lower(&program, palisade_program::Instantiation { any: 1, every: None });
            if !palisade_program::running::Structure::new(&system).spawns {
                continue;
            }
            for (engine, model) in ENGINES {
                if !is_proved(&program, engine, model) {
                    continue;
                }
                proved += 1;
                let machine = Machine::new(&system, model);
                match brute::check(machine, Scope { states: 10_000, buffer: Some(3) }) {
                    Answer::Unsafe(_) => panic!("seed {seed}, {} {}", engine.name(), model.name()),
                    Answer::Safe => safe += 1,
                    Answer::Inconclusive => {}
                }
            }
        }
    }
    println!("{proved} proofs; brute force agrees with {safe} and is not conclusive about the others");
    assert!(proved > 0 || !seeds.suffice());
}

fn check(text: &str, expected: [bool; 5]) {
    let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program;
    let proved = ENGINES.map(|(engine, model)| is_proved(&program, engine, model));
    assert_eq!(proved, expected, "{text}");
}

#[test]
fn workers_that_share_a_lock() {
    let workers = |enter: &str| {
        format!(
            "shared lock: bool; process Main {{ loop {{ spawn Worker; }} }} process Worker on spawn {{ {enter} cs: skip; lock = false; }} forbid count(Worker@cs) >= 2;"
        )
    };
    check(&workers("while xchg(lock, true) {}"), [true; 5]);
    check(&workers("while lock {} lock = true;"), [false; 5]);
}

/// A worker may be started while the store before is still pending.
#[test]
fn stores_before_a_start() {
    let text =
        "shared x: 0..1; process Main { x = 1; spawn Worker; } process Worker on spawn { assert(x == 1); }";
    check(text, [false; 5]);
}

/// Without a bound on the number of workers.
#[test]
fn workers_that_start_workers() {
    let text = "shared lock: bool; process Main { spawn Worker; } process Worker on spawn { spawn Worker; while xchg(lock, true) {} cs: skip; lock = false; } forbid count(Worker@cs) >= 2;";
    check(text, [true; 5]);
}
