//! The verdicts stated for the classics are those of the brute-force interpreter.

use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::classics;
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower};
use palisade_trace::replay;

#[test]
fn brute_force_confirms_the_classics() {
    let mut wrong = Vec::new();
    for classic in classics::all() {
        let system = lower(&classic.program, Instantiation { any: 2, every: None });
        for model in Model::ALL {
            let machine = Machine::new(&system, model);
            let answer = brute::check(machine, Scope::states(200_000));
            if answer.word() != classic.expected(model) {
                wrong.push(format!(
                    "{} {}: expected {}, got {answer:?}",
                    classic.name,
                    model.name(),
                    classic.expected(model)
                ));
            }
            if let Answer::Unsafe(run) = answer {
                replay(machine, &run).expect("the run that brute force found replays");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_classic_names_the_source_of_its_verdicts() {
    for classic in classics::all() {
        let lines: Vec<&str> = classic.text.lines().take(3).collect();
        let prefixes = ["// ", "// sc ", "// Source: "];
        assert!(
            lines.iter().zip(prefixes).all(|(line, prefix)| line.starts_with(prefix)),
            "{}",
            classic.name
        );
    }
}
