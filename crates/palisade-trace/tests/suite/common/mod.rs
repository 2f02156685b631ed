//! Programs as text and shortest runs to their bad states.

use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_memory::{Machine, Model};
use palisade_program::running::System;
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};
use palisade_trace::Run;

/// The running form of a `.pal` text.
pub fn system(text: &str) -> System {
    match parse(Language::Pal, &Source::new("test.pal", text)) {
        Ok(parsed) => lower(&parsed.program, Instantiation { any: 2, every: None }),
        Err(diagnostics) => panic!("invalid program: {diagnostics:#?}\n{text}"),
    }
}

/// A shortest run to a bad state.
#[allow(dead_code)]
pub fn shortest(machine: Machine<'_>) -> Run {
    match brute::check(machine, Scope::states(100_000)) {
        Answer::Unsafe(run) => run,
        other => panic!("the program is {}", other.word()),
    }
}

/// Store buffering.
#[allow(dead_code)]
pub const STORE_BUFFERING: &str = "\
shared x, y: 0..1;
process P {
    x = 1;
    let r = y;
}
process Q {
    y = 1;
    let r = x;
}
final P.r == 1 || Q.r == 1;
";

/// The machine of a running form. Locked instructions wait for the whole buffer.
#[allow(dead_code)]
pub fn tso(system: &System) -> Machine<'_> {
    Machine::new(system, Model::Tso)
}
