//! Programs as text, and all their outcomes.

use palisade_base::Source;
use palisade_conformance::brute::{self, Observed, Scope};
use palisade_memory::{Machine, Model};
use palisade_program::running::System;
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};
use std::collections::BTreeSet;

/// The running form of a `.pal` text.
pub fn system(text: &str) -> System {
    match parse(Language::Pal, &Source::new("test.pal", text)) {
        Ok(parsed) => lower(&parsed.program, Instantiation { any: 2, every: None }),
        Err(diagnostics) => panic!("invalid program: {diagnostics:#?}\n{text}"),
    }
}

/// The possible values of the named variables (`x`, `P.r`, separated by spaces) when all processes have ended
/// and all buffers are empty. Values are written side by side: `01` means 0 and 1.
#[allow(dead_code)]
pub fn outcomes(machine: Machine<'_>, names: &str) -> BTreeSet<String> {
    let seen: Vec<Observed> = names.split(' ').map(|name| Observed::named(machine.system, name)).collect();
    let found = brute::outcomes(machine, Scope::states(500_000), &seen).expect("the program is small");
    let show = |values: Vec<i64>| values.iter().map(i64::to_string).collect::<String>();
    found.into_iter().map(show).collect()
}

/// Compares all outcomes of a program under SC, TSO and PSO. Each set is a list of words.
#[allow(dead_code)]
#[track_caller]
pub fn check(text: &str, names: &str, sc: &str, tso: &str, pso: &str) {
    let system = system(text);
    for (model, expected) in Model::ALL.into_iter().zip([sc, tso, pso]) {
        let expected: BTreeSet<String> = expected.split_whitespace().map(str::to_owned).collect();
        assert_eq!(outcomes(Machine::new(&system, model), names), expected, "{} of {text}", model.name());
    }
}
