//! Shortened runs replay, are not longer, and contain no irrelevant steps.

use crate::common;

use common::{STORE_BUFFERING, shortest, system, tso};
use palisade_base::Id;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate};
use palisade_memory::{Machine, Model, State};
use palisade_program::running::ThreadId;
use palisade_program::{Instantiation, lower};
use palisade_trace::{Run, context_switches, replay, shorten};

/// Takes random steps until a bad state is reached.
fn wander(machine: Machine<'_>, random: &mut Random, most: usize) -> Option<Run> {
    let starts: Vec<State> = machine.initial_states().collect();
    let mut state = random.pick(&starts).clone();
    let mut run = Run { memory: state.memory.as_slice().to_vec(), steps: Vec::new() };
    while run.steps.len() < most {
        if machine.violation(&state).is_some() {
            return Some(run);
        }
        let successors = machine.successors(&state);
        if successors.is_empty() {
            return None;
        }
        let next = random.pick(&successors);
        run.steps.push(next.step);
        state = next.state.clone();
    }
    None
}

#[test]
fn differential_random_runs_of_random_programs() {
    let (mut tried, mut total, mut least) = (0, 0, 0);
    for profile in Profile::ALL {
        for seed in 0..20 {
            let system = lower(&generate(profile, seed), Instantiation { any: 2, every: None });
            for model in Model::ALL {
                let machine = Machine::new(&system, model);
                let Answer::Unsafe(shortest) = brute::check(machine, Scope::states(5_000)) else { continue };
                let mut random = Random::new(seed);
                let Some(run) = (0..50).find_map(|_| wander(machine, &mut random, 300)) else { continue };
                let short = shorten(machine, run.clone());
                replay(machine, &short)
                    .unwrap_or_else(|error| panic!("{profile:?} {seed} {}: {error}", model.name()));
                assert!(short.steps.len() <= run.steps.len(), "{profile:?} {seed} {}", model.name());
                assert!(short.steps.len() >= shortest.steps.len(), "{profile:?} {seed} {}", model.name());
                tried += 1;
                total += short.steps.len();
                least += shortest.steps.len();
            }
        }
    }
    assert!(tried > 25, "only {tried} runs were found");
    assert!(total < 2 * least, "{tried} runs have {total} steps after shortening, shortest ones {least}");
}

#[test]
fn loop_iterations_and_useless_threads_are_removed() {
    let text = "shared x, y, z: 0..1;
        process P { loop { x = 1; let r = y; if r == 0 { cs: skip; } x = 0; } }
        process Q { loop { y = 1; let r = x; if r == 0 { cs: skip; } y = 0; } }
        process Noise { loop { z = 1; z = 0; } }
        forbid P@cs && Q@cs;";
    let system = system(text);
    let machine = tso(&system);
    let least = shortest(machine).steps.len();
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let run = (0..200).find_map(|_| wander(machine, &mut random, 3_000)).expect("a bad state is found");
        let short = shorten(machine, run.clone());
        let noise = system.instances.ids().last().expect("there are instances");
        assert!(replay(machine, &short).is_ok());
        assert!(short.steps.iter().all(|step| step.thread != noise), "seed {seed}: {short:?}");
        assert!(
            short.steps.len() <= 2 * least,
            "seed {seed}: {} of {}, least {least}",
            short.steps.len(),
            run.steps.len()
        );
    }
}

#[test]
fn thousands_of_steps_are_handled() {
    let text = "shared x, y, z: 0..1;
        process P { loop { x = 1; let r = y; if r == 0 { cs: skip; } x = 0; fence; } }
        process Q { loop { y = 1; let r = x; if r == 0 { cs: skip; } y = 0; fence; } }
        process Noise { loop { z = 1; z = 0; fence; } }
        forbid P@cs && Q@cs;";
    let system = system(text);
    let machine = tso(&system);
    let mut random = Random::new(1);
    let mut state = machine.initial_states().next().expect("there is an initial state");
    let mut run = Run { memory: state.memory.as_slice().to_vec(), steps: Vec::new() };
    while machine.violation(&state).is_none() {
        let mut successors = machine.successors(&state);
        if run.steps.len() < 5_000 {
            successors.retain(|successor| machine.violation(&successor.state).is_none());
        }
        let next = random.pick(&successors);
        run.steps.push(next.step);
        state = next.state.clone();
    }
    let short = shorten(machine, run);
    assert!(replay(machine, &short).is_ok());
    assert_eq!(short.steps.len(), 6, "{short:?}");
}

#[test]
fn threads_are_switched_less_often() {
    let text = "shared x, y: 0..3; process P { x = 1; x = 2; x = 3; let r = y; } process Q { y = 1; y = 2; y = 3; let r = x; }
        final !(P.r == 0 && Q.r == 0);";
    let system = system(text);
    let machine = tso(&system);
    let mut steps = Vec::new();
    let run = shortest(machine);
    // Interleave the two threads as finely as their own order allows.
    let mut queues: Vec<Vec<_>> = (0..2)
        .map(|thread| {
            run.steps.iter().copied().filter(|s| s.thread == ThreadId::from_index(thread)).collect()
        })
        .collect();
    let is_update =
        |step: &palisade_memory::Step| matches!(step.action, palisade_memory::Action::Update { .. });
    for updates in [false, true] {
        let mut parts: Vec<Vec<_>> = queues
            .iter_mut()
            .map(|queue| queue.extract_if(.., |step| is_update(step) == updates).collect())
            .collect();
        while parts.iter().any(|part| !part.is_empty()) {
            for part in parts.iter_mut().filter(|part| !part.is_empty()) {
                steps.push(part.remove(0));
            }
        }
    }
    let fine = Run { memory: run.memory, steps };
    assert!(replay(machine, &fine).is_ok());
    let short = shorten(machine, fine.clone());
    assert!(replay(machine, &short).is_ok());
    assert!(context_switches(&fine.steps) >= 10);
    assert_eq!(context_switches(&short.steps), 2, "{short:?}");
}

#[test]
fn spawned_threads_keep_their_steps() {
    let text = "shared x, y: 0..2; process P { spawn Q(); spawn R(); x = 1; } process Q on spawn { y = 1; }
        process R on spawn { let r = x; assert(r == 0); }";
    let system = system(text);
    let machine = tso(&system);
    let run = (0..)
        .find_map(|seed| wander(machine, &mut Random::new(seed), 100).filter(|run| run.steps.len() > 7))
        .expect("a long run is found");
    let short = shorten(machine, run);
    assert!(replay(machine, &short).is_ok());
    // Both processes are spawned. x is stored, reaches memory and is read, and the assertion fails. Q does
    // nothing.
    assert_eq!(short.steps.len(), 6, "{short:?}");
}

#[test]
fn a_run_that_is_not_a_witness_is_unchanged() {
    let system = system(STORE_BUFFERING);
    let machine = tso(&system);
    let mut run = shortest(machine);
    run.steps.pop();
    assert_eq!(shorten(machine, run.clone()), run);
    run.memory.push(0);
    assert_eq!(shorten(machine, run.clone()), run);
}
