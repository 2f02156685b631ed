//! Theorems 1 and 2: what a translation reaches under SC at rest is exactly what TSO reaches within the bound
//! at the ends of rounds. Both sides are computed by brute force.
//!
//! Memory, the registers and labels of processes (a property that sees all of them is added), the labels of
//! spawned processes, and whether there is a fault are compared.
//!
//! `PALISADE_SEEDS=1000` tries more programs, `PALISADE_SEED=7` a single one.

use palisade_base::Id;
use palisade_bounded::{Bounded, translate};
use palisade_conformance::bounded::{self, Bound};
use palisade_conformance::brute::{self, Scope};
use palisade_conformance::{Profile, build, generate, seeds, shrink};
use palisade_memory::{Machine, Model, State, Thread};
use palisade_program::running::{Code, System};
use palisade_program::written::{
    Block, Count, ExprKind, Observation, Program, PropertyKind, Select, Start, StmtKind,
};
use palisade_program::{Instantiation, Value, lower, print};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What can be seen of a state: memory and, for each thread, its code, its labels and its registers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Seen {
    memory: Vec<Value>,
    threads: Vec<(String, Vec<String>, Vec<Value>)>,
}

/// What the added property sees of labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Labels {
    /// Whether processes are there, and whether they are not.
    Exactly,
    /// Whether processes are there.
    Presence,
    /// The same, but no variables or registers. Memory must still be as under TSO.
    Only,
}

/// Adds a property that is never violated but sees all labels, registers and variables.
fn seen_by_all(program: &Program, how: Labels) -> Program {
    let mut program = program.clone();
    let mut seen = Vec::new();
    for variable in program.shared.iter().filter(|_| how != Labels::Only) {
        let place = match variable.len {
            Some(_) => build::element(variable.name.as_str(), build::int(0)),
            None => build::named(variable.name.as_str()),
        };
        seen.push(build::read(place));
    }
    for template in &program.templates {
        let (mut labels, mut registers) = (Vec::new(), Vec::new());
        names(&template.body, &mut labels, &mut registers);
        labels.push("end".to_owned());
        for label in labels {
            let template = build::name(template.name.as_str());
            let count = build::observe(Observation::Count { template, label: build::name(label) });
            seen.push(match how {
                Labels::Exactly => build::eq(count, build::int(1)),
                Labels::Presence | Labels::Only => count,
            });
        }
        let copies = match template.count {
            Count::Fixed(copies) => copies,
            Count::Any => 0,
        };
        if template.start == Start::Initially && copies > 0 && how != Labels::Only {
            for register in registers {
                let process = build::instance(template.name.as_str(), Select::Index(0));
                let register = build::name(register);
                seen.push(build::observe(Observation::Register { process, register }));
            }
        }
    }
    let never = build::expr(ExprKind::Bool(false));
    let condition = seen.into_iter().fold(never, |all, one| build::all([all, one]));
    program.properties = vec![build::property(PropertyKind::Forbid, condition)];
    program
}

fn names(block: &Block, labels: &mut Vec<String>, registers: &mut Vec<String>) {
    for stmt in block {
        labels.extend(stmt.labels.iter().map(|label| label.to_string()));
        match &stmt.kind {
            StmtKind::Let { name, .. } => registers.push(name.to_string()),
            StmtKind::If { then, otherwise, .. } => {
                names(then, labels, registers);
                names(otherwise, labels, registers);
            }
            StmtKind::While { body, .. }
            | StmtKind::Loop(body)
            | StmtKind::Block(body)
            | StmtKind::Atomic(body) => names(body, labels, registers),
            StmtKind::Choose(blocks) => blocks.iter().for_each(|block| names(block, labels, registers)),
            _ => {}
        }
    }
}

/// What is seen of a state, with the labels and registers of the original program.
fn seen(system: &System, original: &System, state: &State, how: Labels) -> Seen {
    let thread = |(number, thread): (usize, &Arc<Thread>)| {
        let (code, own): (&Code, &Code) = (system.role_code(thread.role), original.role_code(thread.role));
        let is_at = |label: &str| code.label(label).is_some_and(|location| thread.is_at(location));
        let at = own
            .labels
            .iter()
            .map(|(label, _)| label.clone())
            .filter(|label| match std::ptr::eq(code, own) || label == "end" {
                true => is_at(label) || label == "end" && is_at("at_end"),
                false => is_at(&format!("at_{label}")),
            })
            .collect();
        let registers = own.registers.iter().filter(|register| !register.is_temporary());
        let registers = registers.filter(|_| number < original.instances.len() && how != Labels::Only);
        let held = |name: &str| {
            let register = code.register(name).unwrap_or_else(|| panic!("{name} is kept"));
            thread.frames[0].registers[register.index()]
        };
        let registers = registers.map(|register| held(&register.name)).collect();
        (system.roles[thread.role].name.clone(), at, registers)
    };
    Seen {
        memory: state.memory.iter().take(original.cells.len()).copied().collect(),
        threads: state.threads.iter().enumerate().map(thread).collect(),
    }
}

/// What TSO reaches within a bound, and whether it reaches a fault. `None` if there are too many states.
fn by_definition(program: &Program, bound: Bound, how: Labels) -> Option<(BTreeSet<Seen>, bool)> {
    let system = lower(program, Instantiation::declared(1));
    let all = bounded::reachable(Machine::new(&system, Model::Tso), bound, 5_000)?;
    let ended = all.iter().filter(|within| within.state.fault.is_none() && within.can_end(bound));
    let found = ended.map(|within| seen(&system, &system, &within.state, how)).collect();
    Some((found, all.iter().any(|within| within.state.fault.is_some())))
}

/// The same, computed with the translation.
fn by_translation(program: &Program, bounded: Bounded, how: Labels) -> Option<(BTreeSet<Seen>, bool)> {
    let translated = translate(program, bounded).expect("the program is small").program;
    let original = lower(program, Instantiation::declared(1));
    let system = lower(&translated, Instantiation::declared(1));
    let search = brute::reachable(Machine::new(&system, Model::Sc), Scope::states(25_000));
    if !search.complete {
        return None;
    }
    let sim = original.cells.len();
    assert_eq!(system.cells.as_slice()[sim].name, "sim");
    let resting = |state: &&State| {
        state.section.is_none() && state.fault.is_none() && state.memory.as_slice()[sim] == 0
    };
    let found =
        search.states.iter().filter(resting).map(|state| seen(&system, &original, state, how)).collect();
    Some((found, search.states.iter().any(|state| state.fault.is_some())))
}

/// What is seen apart from labels.
type Rest<'a> = (&'a [Value], Vec<(&'a str, &'a [Value])>);

impl Seen {
    fn rest(&self) -> Rest<'_> {
        let threads = self.threads.iter().map(|(name, _, registers)| (name.as_str(), &registers[..]));
        (&self.memory, threads.collect())
    }

    /// Whether the other has processes at all labels where this has some.
    fn is_below(&self, other: &Seen) -> bool {
        let mut threads = self.threads.iter().zip(&other.threads);
        threads.all(|((_, own, _), (_, others, _))| own.iter().all(|label| others.contains(label)))
    }
}

/// An item of the first set that is not in the second.
fn missing<'a>(of: &'a BTreeSet<Seen>, within: &BTreeSet<Seen>, how: Labels) -> Option<&'a Seen> {
    let mut alike: BTreeMap<Rest<'_>, Vec<&Seen>> = BTreeMap::new();
    if how != Labels::Exactly {
        within.iter().for_each(|one| alike.entry(one.rest()).or_default().push(one));
    }
    of.iter().find(|one| match how {
        _ if within.contains(one) => false,
        Labels::Exactly => true,
        Labels::Presence | Labels::Only => {
            let others = alike.get(&one.rest()).into_iter().flatten();
            !others.into_iter().any(|other| one.is_below(other))
        }
    })
}

type Translation = fn(u32) -> (Bound, Bounded);

/// For how many bounds the translation of a program could be compared, or what is wrong with it.
fn compare(program: &Program, kind: Translation, how: Labels) -> Result<usize, String> {
    let program = seen_by_all(program, how);
    let mut compared = 0;
    let mut smaller: Option<BTreeSet<Seen>> = None;
    for bound in 0..4 {
        let (bound, bounded) = kind(bound);
        let Some((expected, faults)) = by_definition(&program, bound, how) else { break };
        let Some((found, found_faults)) = by_translation(&program, bounded, how) else { break };
        if faults != found_faults {
            return Err(format!("{bounded:?}: faults {faults}, in the translation {found_faults}"));
        }
        if faults {
            // A fault ends the run, so there is no need to rest right before it.
            compared += 1;
            continue;
        }
        if let Some(missing) = missing(&expected, &found, how) {
            return Err(format!("{bounded:?}: not reached by the translation: {missing:?}"));
        }
        if let Some(spurious) = missing(&found, &expected, how) {
            return Err(format!("{bounded:?}: reached by the translation only: {spurious:?}"));
        }
        if let Some(lost) = smaller.as_ref().and_then(|smaller| missing(smaller, &found, how)) {
            return Err(format!("{bounded:?}: a smaller bound reaches {lost:?}"));
        }
        smaller = Some(found);
        compared += 1;
    }
    Ok(compared)
}

fn check(profile: Profile, programs: u64, kind: Translation) {
    let seeds = seeds(programs).starting_at(1);
    let (mut compared, mut all) = (0, 0);
    for seed in &seeds {
        let program = generate(profile, seed);
        for how in [Labels::Presence, Labels::Only, Labels::Exactly] {
            match compare(&program, kind, how) {
                Ok(bounds) => {
                    compared += bounds;
                    all += 4;
                }
                Err(problem) => {
                    let small = shrink(program, &|program| compare(program, kind, how).is_err());
                    let last = compare(&small, kind, how).err();
                    panic!(
                        "seed {seed} of {profile:?}: {problem}\nsmall: {last:?}\n{}",
                        print::print(&small)
                    );
                }
            }
        }
    }
    eprintln!("{profile:?}: {compared} of {all} comparisons were possible");
    assert!(compared * 3 > all || !seeds.suffice(), "too few comparisons");
}

fn rounds(bound: u32) -> (Bound, Bounded) {
    (Bound::Rounds(bound), Bounded::Rounds(bound))
}

fn age(bound: u32) -> (Bound, Bounded) {
    (Bound::Age(bound), Bounded::Age(bound))
}

#[test]
fn rounds_of_simple_programs() {
    check(Profile::Simple, 6, rounds);
}

#[test]
fn rounds_of_structured_programs() {
    check(Profile::Acyclic, 6, rounds);
}

#[test]
fn rounds_of_programs_with_loops() {
    check(Profile::Full, 6, rounds);
}

#[test]
fn age_in_simple_programs() {
    check(Profile::Simple, 6, age);
}

#[test]
fn age_in_structured_programs() {
    check(Profile::Acyclic, 6, age);
}

#[test]
fn age_in_programs_with_loops() {
    check(Profile::Cyclic, 6, age);
}
