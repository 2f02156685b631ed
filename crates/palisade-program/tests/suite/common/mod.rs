//! Helpers for the tests: parsing `.pal`, and control flow as text.

#![allow(dead_code, reason = "each test file uses only part of it")]

use palisade_base::{Diagnostic, Source};
use palisade_program::running::{EdgeId, Location, System};
use palisade_program::{Instantiation, describe, lower};
use palisade_syntax::{Language, parse};
use std::fmt::Write;

/// Parses and lowers a valid program.
pub fn system(text: &str) -> System {
    system_with(text, Instantiation { any: 2, every: None })
}

/// Parses and lowers a valid program with the given numbers of instances.
pub fn system_with(text: &str, instantiation: Instantiation) -> System {
    match parse(Language::Pal, &Source::new("test.pal", text)) {
        Ok(parsed) => {
            let system = lower(&parsed.program, instantiation);
            system.check_invariants();
            system
        }
        Err(diagnostics) => panic!("{}", list(text, &diagnostics)),
    }
}

/// One line per diagnostic: line, column, id and message.
pub fn list(text: &str, diagnostics: &[Diagnostic]) -> String {
    let source = Source::new("test.pal", text);
    let mut lines = String::new();
    for diagnostic in diagnostics {
        let place = match source.position(diagnostic.span()) {
            Some(position) => format!("{}:{} ", position.line, position.column),
            None => String::new(),
        };
        writeln!(lines, "{place}{}: {}", diagnostic.id, diagnostic.message).unwrap();
    }
    lines
}

/// The control flow of the code with this name (`P(0)` or `f`). Each edge is a line `source: instruction ->
/// target`, the entry first. Labels appear at their locations. A labelled location without edges has a line
/// of its own, except the exit.
pub fn flow(system: &System, name: &str) -> String {
    let role = system.roles.iter().find(|role| role.name == name).map(|role| role.code);
    let procedure = || system.codes.iter_enumerated().find(|(_, code)| code.name == name).map(|(id, _)| id);
    let code = &system.codes[role.or_else(procedure).expect("a code with this name exists")];
    let at = |location: Location| {
        let labels: Vec<&str> =
            code.labels.iter().filter(|l| l.1 == location).map(|l| l.0.as_str()).collect();
        if labels.is_empty() { location.0.to_string() } else { labels.join(",") }
    };
    let mut text = String::new();
    for location in 0..code.location_count() as u32 {
        let location = Location(location);
        let edges = code.edges_from(location);
        if edges.is_empty() && location != code.exit {
            writeln!(text, "{}: stuck", at(location)).unwrap();
        }
        for edge in edges.map(EdgeId) {
            let edge = &code.edges()[edge];
            let instr = describe::instruction(system, code, &edge.instr);
            writeln!(text, "{}: {instr} -> {}", at(location), at(edge.target)).unwrap();
        }
    }
    text
}
