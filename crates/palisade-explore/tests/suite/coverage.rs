//! Which steps runs take: the searches against brute force, on random programs.

use palisade_conformance::brute::Scope;
use palisade_conformance::coverage::{Steps, steps};
use palisade_conformance::generate::{generate_spawning, generate_waiting};
use palisade_conformance::{Profile, generate, seeds, shrink};
use palisade_engine::{Analysis, Coverage, Engine, Limits, Options, Outcome, Safety, Task, Verdict};
use palisade_explore::{Explicit, coverage};
use palisade_memory::{Machine, Model};
use palisade_program::running::{Location, System};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};

const SCOPE: Scope = Scope { states: 5_000, buffer: None };

/// What differs between a search and brute force, in words.
fn difference(system: &System, found: &Coverage, steps: &Steps) -> Option<String> {
    compare(system, found, steps, |found, real| found == real)
}

fn compare(
    system: &System,
    found: &Coverage,
    steps: &Steps,
    fits: impl Fn(bool, bool) -> bool,
) -> Option<String> {
    for (id, code) in system.codes.iter_enumerated() {
        for (edge, what) in code.edges().iter_enumerated() {
            if !fits(found.is_taken(id, edge), steps.taken.contains(&(id, edge))) {
                return Some(format!("{}, {what:?}: {}", code.name, found.is_taken(id, edge)));
            }
        }
    }
    for (id, code) in system.codes.iter_enumerated() {
        for location in (0..code.location_count()).map(|index| Location(index as u32)) {
            if !fits(found.is_returned_to(id, location), steps.returned.contains(&(id, location))) {
                return Some(format!("a return to {}, {location:?}", code.name));
            }
        }
    }
    for role in system.roles.ids() {
        if !fits(found.is_started(role), steps.started.contains(&role)) {
            return Some(format!("{} is started: {}", system.roles[role].name, found.is_started(role)));
        }
    }
    (!fits(found.ends, steps.ends)).then(|| format!("ends: {}", found.ends))
}

pub(crate) fn problem(program: &Program, model: Model) -> Option<String> {
    let system = lower(program, Instantiation::declared(1));
    let steps = steps(Machine::new(&system, model), SCOPE)?;
    let mut task = Task::new(program, model);
    task.options = Options { max_buffer: 4, ..Options::default() };
    let limits = Limits::unlimited(1).with_work(100_000);
    let covered = coverage(&task.analysis(), &|_| false, &limits).expect("within the limits");
    match covered.missing {
        None => {
            if let Some(found) = difference(&system, &covered.coverage, &steps) {
                return Some(format!("search: {found}"));
            }
        }
        Some(_) => {
            if let Some(found) = compare(&system, &covered.coverage, &steps, |found, real| !found || real) {
                return Some(format!("incomplete search: {found}"));
            }
        }
    }
    let analysis: Analysis<'_> = task.analysis().with_coverage();
    let outcome: Outcome<Safety> = Explicit.check(&analysis, &limits);
    let learned = analysis.coverage();
    if (outcome.verdict == Verdict::Holds) != learned.is_some() {
        return Some("a complete search knows all steps".to_owned());
    }
    if let Some(found) = learned.and_then(|learned| difference(&system, learned, &steps)) {
        return Some(format!("check: {found}"));
    }
    let automata = analysis.automata(&limits).ok()?;
    compare(&system, &automata.coverage, &steps, |found, real| found || !real)
        .map(|found| format!("automata: {found}"))
}

fn check(name: &str, seed: u64, program: Program) {
    for model in Model::ALL {
        if let Some(found) = problem(&program, model) {
            let small = shrink(program, &|program: &Program| problem(program, model).is_some());
            let again = problem(&small, model).unwrap_or_default();
            panic!("{name} {seed}, {}: {found}; smaller: {again}\n{}", model.name(), print::print(&small));
        }
    }
}

#[test]
fn differential_random_programs() {
    for seed in seeds(40) {
        for profile in Profile::ALL {
            check(&format!("{profile:?}"), seed, generate(profile, seed));
        }
        check("waiting", seed, generate_waiting(seed));
        check("spawning", seed, generate_spawning(seed));
    }
}

#[test]
fn a_search_ends_when_it_has_seen_enough() {
    let text = "shared x: 0..1; process P { loop { x = 1; } }";
    let source = palisade_base::Source::new("p.pal", text);
    let program = palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("valid").program;
    let task = Task::new(&program, Model::Tso);
    let enough = |coverage: &Coverage| {
        let system = lower(&program, Instantiation::declared(1));
        system.codes.iter_enumerated().all(|(id, code)| {
            let mut edges = code.edges().ids();
            edges.all(|edge| coverage.is_taken(id, edge))
        })
    };
    let limits = Limits::unlimited(1);
    let all = coverage(&task.analysis(), &|_| false, &limits).expect("there is no limit");
    assert_eq!(
        all.missing.map(|reason| reason.to_string()).as_deref(),
        Some("no bad state with buffers up to 8")
    );
    let some = coverage(&task.analysis(), &enough, &limits).expect("there is no limit");
    assert!(some.missing.is_none() && enough(&some.coverage));
}
