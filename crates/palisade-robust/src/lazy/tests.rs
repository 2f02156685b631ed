//! Lemma 1: an extension neither adds nor removes TSO-reachable states. Unrolling adds none.

use super::draft::Draft;
use super::extend::{Variant, extend};
use super::oracle::{Sequence, sequences};
use super::{Lazy, numbers, unroll};
use crate::attacks::find;
use crate::expand::Question;
use crate::search::Effort;
use palisade_base::Id;
use palisade_conformance::brute::{self, Scope};
use palisade_conformance::{Profile, generate, seeds};
use palisade_engine::{Engine, Limits, Reason, Stats, Task, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Machine, Model, State};
use palisade_program::running::{Structure, System};
use palisade_program::{Instantiation, Value, lower, print};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is seen of a state: the locations of the threads, and the values of their registers and of memory.
type Seen = (Vec<(u32, Vec<Value>)>, Vec<Value>);

/// The TSO-reachable states with empty buffers, outside sections, restricted to what the original program
/// has. `None` if there are too many.
fn reachable(system: &System, original: &System) -> Option<BTreeSet<Seen>> {
    let found = brute::reachable(Machine::new(system, Model::Tso), Scope::states(6_000));
    let seen = |state: &State| {
        let thread = |thread: &Arc<palisade_memory::Thread>| {
            let [frame] = thread.frames.as_slice() else { return None };
            let code = &original.codes[frame.code];
            let known = frame.location.index() < code.location_count() && thread.buffer.is_empty();
            let registers = frame.registers[..code.registers.len()].to_vec();
            known.then_some((frame.location.0, registers))
        };
        let threads = state.threads.iter().map(thread).collect::<Option<Vec<_>>>()?;
        let judged = state.section.is_none() && state.fault.is_none();
        judged.then(|| (threads, state.memory.as_slice().to_vec()))
    };
    found.complete.then(|| found.states.iter().filter_map(seen).collect())
}

fn ask(system: &System) -> Vec<Sequence> {
    let mut system = system.clone();
    system.properties.clear();
    let limits = Limits::unlimited(1).with_work(20_000);
    let effort = Effort { limits: &limits, pool: None };
    let found = find(
        Question::Cycle,
        Machine::new(&system, Model::Tso),
        &effort,
        &mut Stats::new(),
        |_, cycles| cycles,
        |search, cycles| sequences(search, &cycles),
    );
    found.ok().flatten().unwrap_or_default()
}

/// Extends programs of a profile a few times, and compares the states each time.
fn check(profile: Profile, variant: Variant, least: usize) {
    let seeds = seeds(80);
    let mut compared = 0;
    for seed in &seeds {
        let program = generate(profile, seed);
        let original = lower(&program, Instantiation { any: 2, every: None });
        if Structure::new(&original).calls {
            continue;
        }
        let Some(expected) = reachable(&original, &original) else { continue };
        let mut draft = Draft::new(&original);
        for round in 1..=3 {
            let built = draft.build();
            let found = ask(&built.system);
            let Some(sequence) = found.get(seed as usize % found.len().max(1)) else { break };
            if !extend(&mut draft, sequence.code, &numbers(&built, sequence), variant) {
                break;
            }
            let Some(states) = reachable(&draft.build().system, &original) else { break };
            assert!(
                states == expected,
                "{profile:?} {seed}, {variant:?}, extension {round} by {sequence:?}: {} states more, {} less\n{}",
                states.difference(&expected).count(),
                expected.difference(&states).count(),
                print::print(&program)
            );
            compared += 1;
        }
    }
    assert!(compared >= least || !seeds.suffice(), "only {compared} extensions compared");
}

#[test]
fn the_deleting_extension_keeps_the_states() {
    check(Profile::Simple, Variant::Deleting, 25);
}

#[test]
fn the_other_extension_keeps_the_states() {
    check(Profile::Simple, Variant::Superset, 25);
    check(Profile::Cyclic, Variant::Superset, 3);
}

#[test]
fn unrolling_adds_no_states_and_more_of_it_removes_none() {
    let mut compared = 0;
    let seeds = seeds(80);
    for seed in &seeds {
        let program = generate(Profile::Cyclic, seed);
        let original = lower(&program, Instantiation { any: 2, every: None });
        let Some(expected) = reachable(&original, &original) else { continue };
        let mut last = BTreeSet::new();
        for rounds in [0, 1, 2, 8] {
            let draft = unroll::unroll(&original, rounds);
            let built = draft.build();
            assert!(!unroll::is_cyclic(&built.system), "{seed}");
            let Some(states) = reachable(&built.system, &original) else { break };
            // Locations of later rounds are new, so only those of the first round are seen.
            assert!(states.is_subset(&expected), "{seed}");
            assert!(last.is_subset(&states), "{seed}");
            last = states;
        }
        compared += usize::from(!last.is_empty());
    }
    assert!(compared > 20 || !seeds.suffice(), "{compared}");
}

/// What the engine says about unrolled loops holds for the unrolled program under TSO.
#[test]
fn claims_about_unrolled_loops_hold() {
    let seeds = seeds(150);
    let mut claims = 0;
    for seed in seeds.range() {
        let program = generate(Profile::Cyclic, seed);
        let task = Task::new(&program, Model::Tso);
        let limits = Limits::unlimited(1).with_work(20_000);
        let verdict = Lazy { sc: &Explicit }.check(&task.analysis(), &limits).verdict;
        let reached = match &verdict {
            Verdict::Unknown(Reason::Partly(_, reached)) => reached,
            Verdict::Unknown(reason) => reason,
            _ => continue,
        };
        if let Reason::Unrolled(rounds) = reached {
            let unrolled = unroll::unroll(&task.lower(1), *rounds).build().system;
            let found = brute::check(Machine::new(&unrolled, Model::Tso), Scope::states(20_000));
            assert_ne!(found.word(), "unsafe", "seed {seed}, {rounds} rounds:\n{}", print::print(&program));
            claims += 1;
        }
    }
    assert!(claims > 0 || !seeds.suffice(), "no claims were compared");
}
