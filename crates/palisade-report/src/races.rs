//! Answers about triangular races.

use crate::json::add_file;
use crate::{Explain, Finding};
use palisade_base::Span;
use palisade_engine::TriangularRaces;
use palisade_trace::{Evidence, Triangle};
use serde_json::{Value, json};

impl Explain for TriangularRaces {
    type Shows = Triangle;
    const COMMAND: &'static str = "robust";

    fn violation(evidence: &Evidence<'_>, race: &Triangle) -> String {
        explain_race(evidence, *race)
    }

    fn good(_: &Finding<'_, TriangularRaces>) -> Option<String> {
        Some("no triangular race, so the program is robust".to_owned())
    }

    fn shown_json(evidence: &Evidence<'_>, race: &Triangle) -> Option<(&'static str, Value)> {
        let place = |step: usize| {
            let span = crate::cycle::span_of_step(evidence, step).unwrap_or(Span::NONE);
            let position = evidence.source.position(span);
            let mut record = json!({
                "process": evidence.name(evidence.run.steps[step].thread),
                "step": step + 1,
                "line": position.map(|position| position.line),
                "column": position.map(|position| position.column),
            });
            add_file(&mut record, evidence.source, span);
            record
        };
        let race =
            json!({ "store": place(race.store), "load": place(race.load), "rival": race.rival.map(place) });
        Some(("race", race))
    }
}

/// `P's line 3 (r = y) loads what Q's line 6 (y = 1) stores, while P's line 2 (x = 1) may still be in its
/// buffer`
fn explain_race(evidence: &Evidence<'_>, race: Triangle) -> String {
    let place = |step: usize| {
        let who = evidence.name(evidence.run.steps[step].thread);
        format!("{who}'s {}", crate::cycle::place_of_step(evidence, step))
    };
    let waits = format!("{} may still be in its buffer", place(race.store));
    match race.rival {
        Some(rival) => format!("{} loads what {} stores, while {waits}", place(race.load), place(rival)),
        None => format!("{} starts a process, while {waits}", place(race.load)),
    }
}
