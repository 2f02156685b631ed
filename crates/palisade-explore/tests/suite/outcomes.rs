//! The outcomes of programs, compared with the brute-force interpreter.

use palisade_base::{Id, Source};
use palisade_conformance::brute::{Scope, Search, reachable};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds};
use palisade_engine::{Limits, Options, Reduction};
use palisade_explore::outcomes;
use palisade_memory::{Machine, Model, State, Thread};
use palisade_program::running::{Condition, RegId, System};
use palisade_program::written::Program;
use palisade_program::{Instantiation, Value, lower, print};
use palisade_syntax::{Language, parse};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many states brute force may visit.
const STATES: usize = 6_000;

/// All cells, and all registers of the processes that exist at the start.
fn everything(system: &System) -> Vec<Condition> {
    let cells = system.cells.ids().map(Condition::Cell);
    let registers = system.instances.iter_enumerated().flat_map(|(thread, instance)| {
        let count = system.role_code(instance.role).registers.len();
        (0..count).map(move |index| Condition::Register(thread, RegId::from_index(index)))
    });
    cells.chain(registers).collect()
}

fn values(state: &State, observed: &[Condition]) -> Vec<Value> {
    let value = |condition: &Condition| match condition {
        Condition::Cell(cell) => state.memory[*cell],
        Condition::Register(thread, register) => state.threads[*thread].frames[0].registers[register.index()],
        other => panic!("{other:?} is not observed here"),
    };
    observed.iter().map(value).collect()
}

fn is_final(system: &System, state: &State) -> bool {
    let ended = |thread: &Arc<Thread>| thread.has_ended(system) && thread.buffer.is_empty();
    state.fault.is_none() && state.threads.iter().all(ended)
}

/// Whether a state without steps is no end, and whether some state has neither an end nor a fault after it.
fn dead_ends(machine: Machine<'_>, search: &Search) -> (bool, bool) {
    let numbers: FxHashMap<&State, usize> = search.states.iter().zip(0..).collect();
    let mut before = vec![Vec::new(); search.states.len()];
    let mut good = Vec::new();
    let mut stuck = false;
    for (index, state) in search.states.iter().enumerate() {
        let over = state.fault.is_some() || is_final(machine.system, state);
        if over {
            good.push(index);
        }
        let successors = machine.successors(state);
        stuck |= !over && successors.is_empty();
        for successor in successors {
            before[numbers[&successor.state]].push(index);
        }
    }
    let mut ends = vec![false; search.states.len()];
    while let Some(index) = good.pop() {
        if !std::mem::replace(&mut ends[index], true) {
            good.extend(&before[index]);
        }
    }
    (stuck, ends.contains(&false))
}

#[derive(Default)]
struct Tally {
    complete: usize,
    in_part: usize,
    weak: usize,
    stuck: usize,
    faults: usize,
}

fn compare(program: &Program, profile: Profile, seed: u64, tally: &mut Tally) {
    let system = lower(program, Instantiation { any: 2, every: None });
    let mut random = Random::new(seed);
    let mut observed = everything(&system);
    observed.retain(|_| random.below(4) > 0);
    let mut stronger: Option<BTreeSet<Vec<Value>>> = None;
    for model in Model::ALL {
        let context = || format!("{profile:?}, seed {seed}, {}:\n{}", model.name(), print::print(program));
        let machine = Machine::new(&system, model);
        let search = reachable(machine, Scope { states: STATES, buffer: Some(6) });
        let found = |jobs, reduction| {
            let options = Options { reduction, max_buffer: 3, ..Options::default() };
            // Where brute force has no answer, the search may stop, too.
            let limits = Limits::unlimited(jobs);
            let limits = if search.complete { limits } else { limits.with_work(5 * STATES as u64) };
            outcomes(machine, &observed, &options, &limits)
        };
        if !search.complete && profile.is_acyclic() {
            continue;
        }
        let ends = search.states.iter().filter(|state| is_final(&system, state));
        let expected: BTreeSet<Vec<Value>> = ends.map(|state| values(state, &observed)).collect();
        let all = found(2, Reduction::Full);
        let alone = all.missing.is_none().then(|| found(1, Reduction::None));
        if profile.is_acyclic() {
            assert_eq!(all.missing, None, "{}", context());
        }
        match (&alone, search.complete) {
            (Some(alone), true) => {
                assert_eq!(all.found, expected, "{}", context());
                let (stuck, without_end) = dead_ends(machine, &search);
                assert!(!all.dead_ends || without_end, "there is no dead end; {}", context());
                // Collapsed steps take a thread that reads a value and then blocks to wait for another value.
                assert!(!stuck || alone.dead_ends, "a deadlock was missed; {}", context());
                assert!(!alone.dead_ends || without_end, "there is no dead end; {}", context());
                let faults = search.states.iter().any(|state| state.fault.is_some());
                assert_eq!(all.faults, faults, "{}", context());
                tally.complete += 1;
                tally.stuck += usize::from(stuck);
                tally.faults += usize::from(faults);
                tally.weak += usize::from(stronger.as_ref().is_some_and(|old| *old != all.found));
            }
            // What one of them found is at least part of what the other knows to be all.
            (None, true) => assert!(all.found.is_subset(&expected), "{}", context()),
            (Some(_), false) => assert!(expected.is_subset(&all.found), "{}", context()),
            (None, false) => tally.in_part += 1,
        }
        if let Some(alone) = alone {
            if let Some(stronger) = &stronger {
                assert!(stronger.is_subset(&all.found), "{}", context());
            }
            match alone.missing {
                None => assert_eq!(alone.found, all.found, "{}", context()),
                Some(_) => {
                    assert!(!search.complete, "{}", context());
                    assert!(alone.found.is_subset(&all.found), "{}", context());
                }
            }
            stronger = Some(all.found);
        } else {
            stronger = None;
        }
    }
}

#[test]
fn differential_outcomes_are_those_of_brute_force() {
    let seeds = seeds(150);
    for profile in Profile::ALL {
        let mut tally = Tally::default();
        for seed in seeds.range() {
            compare(&generate(profile, seed), profile, seed, &mut tally);
        }
        let Tally { complete, in_part, weak, stuck, faults } = tally;
        eprintln!(
            "{profile:?}: {complete} compared, {in_part} in part, {weak} with more under weaker models, \
             {stuck} with deadlocks, {faults} with faults"
        );
        assert!(!seeds.suffice() || complete > 100 && weak > 10, "too few programs say something");
    }
}

fn known(text: &str, model: Model, names: &[&str]) -> (Vec<Vec<Value>>, bool, bool, bool) {
    let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program;
    let system = lower(&program, Instantiation { any: 1, every: None });
    let observed: Vec<Condition> = names
        .iter()
        .map(|name| match palisade_conformance::brute::Observed::named(&system, name) {
            palisade_conformance::brute::Observed::Cell(cell) => Condition::Cell(cell),
            palisade_conformance::brute::Observed::Register(thread, register) => {
                Condition::Register(thread, register)
            }
        })
        .collect();
    let all = outcomes(Machine::new(&system, model), &observed, &Options::default(), &Limits::unlimited(1));
    (all.found.into_iter().collect(), all.missing.is_none(), all.dead_ends, all.faults)
}

#[test]
fn store_buffering_has_one_more_outcome_with_buffers() {
    let text = "shared x, y: 0..1; process P { x = 1; let r = y; } process Q { y = 1; let r = x; }";
    let three = vec![vec![0, 1], vec![1, 0], vec![1, 1]];
    let four = [vec![vec![0, 0]], three.clone()].concat();
    assert_eq!(known(text, Model::Sc, &["P.r", "Q.r"]), (three, true, false, false));
    assert_eq!(known(text, Model::Tso, &["P.r", "Q.r"]), (four.clone(), true, false, false));
    assert_eq!(known(text, Model::Pso, &["P.r", "Q.r"]), (four, true, false, false));
}

#[test]
fn runs_that_do_not_end_have_no_outcome() {
    let check = |text: &str, expected: &[Value], complete: bool, dead_ends: bool, faults: bool| {
        let expected: Vec<Vec<Value>> = expected.iter().map(|&value| vec![value]).collect();
        assert_eq!(known(text, Model::Tso, &["x"]), (expected, complete, dead_ends, faults), "{text}");
    };
    check("shared x: 0..2; process P { loop { x = 1; fence; x = 2; fence; } }", &[], true, true, false);
    check("shared x: 0..2; process P { x = 2; await x == 1; }", &[], true, true, false);
    check("shared x: 0..2; process P { choose { x = 1; } or { assume(false); } }", &[1], true, false, false);
    check("shared x: 0..2; process P { x = 2; } process Q { assert(x == 0); }", &[2], true, false, true);
    check("shared x: 0..2; process P { let r = any(0..3); x = r; }", &[0, 1, 2], true, false, true);
    check("shared x: 0..2; process P { loop { skip; } }", &[], true, true, false);
    // A loop that fills the buffer without a fence: longer buffers add nothing here, but that is not known.
    let pump = "shared x, y: 0..1; process P { while y == 0 { x = 1; } } process Q { y = 1; }";
    check(pump, &[0, 1], false, false, false);
}
