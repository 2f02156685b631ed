//! Which programs from the literature are robust.
//!
//! The answers for TSO are Trencher's for the same algorithms (Bouajjani, Derevenetc and Meyer, "Checking and
//! enforcing robustness against TSO", ESOP 2013). Those for PSO were found by hand and by brute force.

use palisade::{Language, Limits, Model, RobustOptions, Source};
use std::path::Path;

const EXPECTED: &[(&str, &str, &str)] = &[
    ("locks/clh.pal", "robust", ""),
    ("locks/mcs.pal", "robust", ""),
    ("locks/parker.fenced.pal", "robust", ""),
    ("locks/parker.pal", "not-robust", "not-robust"),
    ("data-structures/lock_free_stack.pal", "robust", ""),
    ("mutex/dekker.pal", "not-robust", "not-robust"),
    ("mutex/dekker_simple.fenced.pal", "robust", "robust"),
    ("mutex/dekker_simple.pal", "not-robust", "not-robust"),
    ("mutex/lamport_fast_1_3.pal", "not-robust", "not-robust"),
    ("mutex/peterson.pal", "not-robust", "not-robust"),
    ("mutex/peterson.fenced.pal", "robust", ""),
    ("litmus/sb.pal", "not-robust", "not-robust"),
    ("litmus/mp.pal", "robust", "not-robust"),
    ("litmus/lb.pal", "robust", "robust"),
    ("litmus/wrc.pal", "robust", "robust"),
    ("litmus/iriw.pal", "robust", "robust"),
    ("litmus/isa2.pal", "robust", "not-robust"),
    ("litmus/rwc.pal", "not-robust", "not-robust"),
    ("litmus/w+rwc.pal", "not-robust", "not-robust"),
    ("figures/lazy_fig12_safe_loop.pal", "not-robust", "not-robust"),
    ("trencher/store_buffering.trencher", "not-robust", "not-robust"),
    ("trencher/store_buffering_fenced.trencher", "robust", "robust"),
];

#[test]
fn programs_from_the_literature() {
    let mut wrong = Vec::new();
    for (file, tso, pso) in EXPECTED {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(file);
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let extension = file.rsplit('.').next().expect("files have extensions");
        let language = Language::from_name(extension).expect("the language is known");
        let input = palisade::read(Source::new(*file, text), language, None).expect("it is well formed");
        for (model, expected) in [(Model::Tso, tso), (Model::Pso, pso)] {
            let options = RobustOptions { model, ..RobustOptions::default() };
            let answer = palisade::robust(&input.program, &options, &Limits::unlimited(1))
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            let found = answer.outcome.word();
            if !expected.is_empty() && found != *expected {
                wrong.push(format!("{file} under {}: {found}, expected {expected}", model.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
