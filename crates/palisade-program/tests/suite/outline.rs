//! Which statements runs reach, from the edges that they take: compared with the same program in which every
//! statement has a label.

use palisade_conformance::brute::Scope;
use palisade_conformance::coverage::steps;
use palisade_conformance::generate::{generate_spawning, generate_waiting};
use palisade_conformance::{Profile, generate, seeds, shrink};
use palisade_memory::{Machine, Model};
use palisade_program::running::{CodeId, EdgeId};
use palisade_program::written::{Block, Name, Program, StmtKind};
use palisade_program::{Instantiation, PointKind, lower, outlines, print};

const SCOPE: Scope = Scope { states: 5_000, buffer: None };

/// Puts a label on every statement except blocks. In each body they are numbered from 0.
fn labelled(program: &Program) -> Program {
    fn label(block: &mut Block, next: &mut usize) {
        for stmt in block {
            if !matches!(stmt.kind, StmtKind::Block(_)) {
                stmt.labels.push(Name::generated(format!("point{next}")));
                *next += 1;
            }
            stmt.kind.blocks_mut().into_iter().for_each(|inner| label(inner, next));
        }
    }
    let mut program = program.clone();
    program.templates.iter_mut().for_each(|template| label(&mut template.body, &mut 0));
    program.procedures.iter_mut().for_each(|procedure| label(&mut procedure.body, &mut 0));
    program
}

fn problem(program: &Program, model: Model) -> Option<String> {
    let instances = Instantiation::declared(1);
    let system = lower(program, instances);
    let found = steps(Machine::new(&system, model), SCOPE)?;
    let with_labels = lower(&labelled(program), instances);
    let expected = steps(Machine::new(&with_labels, model), SCOPE)?;
    for (id, outline) in outlines(program).iter_enumerated() {
        let entered = found.reached.iter().any(|(code, _)| *code == id);
        let reached = outline.reached(
            |edge: EdgeId| found.taken.contains(&(id, edge)),
            |location| found.returned.contains(&(id, location)),
        );
        let is_statement = |kind: &PointKind| !matches!(kind, PointKind::Label(_));
        let points = outline.points.iter().filter(|point| is_statement(&point.kind));
        for (number, point) in points.enumerate() {
            let id: CodeId = id;
            let code = &with_labels.codes[id];
            let location = code.label(&format!("point{number}")).expect("every statement has a label");
            let is_reached = entered && reached[point.start.0 as usize];
            if is_reached != expected.reached.contains(&(id, location)) {
                return Some(format!("{}, statement {number}: {is_reached}", code.name));
            }
        }
    }
    None
}

#[test]
fn differential_random_programs() {
    for seed in seeds(40) {
        let profiles = Profile::ALL.map(|profile| generate(profile, seed));
        for program in profiles.into_iter().chain([generate_waiting(seed), generate_spawning(seed)]) {
            for model in [Model::Sc, Model::Pso] {
                if let Some(found) = problem(&program, model) {
                    let small =
                        shrink(program.clone(), &|program: &Program| problem(program, model).is_some());
                    let again = problem(&small, model).unwrap_or_default();
                    panic!("seed {seed}: {found}; smaller: {again}\n{}", print::print(&small));
                }
            }
        }
    }
}
