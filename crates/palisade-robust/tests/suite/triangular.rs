//! Triangular races against brute force. Programs without them must be robust.

use palisade_base::{Id, Source};
use palisade_conformance::{Profile, generate, robust, seeds};
use palisade_engine::{Engine, Limits, Question, Task, TriangularRaces, Verdict};
use palisade_memory::{Action, Effect, Machine, Model, State, Step};
use palisade_program::running::{CellId, Instr, ThreadId};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_robust::Triangles;
use palisade_syntax::{Language, parse};
use palisade_trace::triangle;
use rustc_hash::FxHashSet;

fn ask(program: &Program) -> Verdict {
    let task = Task::new(program, Model::Tso);
    Triangles.check(&task.analysis(), &Limits::unlimited(1)).verdict
}

/// Whether there is a race, by visiting every state under SC. A state includes the cell that each thread has
/// stored to last, if nothing has waited for that store. `None` if there are too many states.
fn brute(machine: Machine<'_>, most: usize) -> Option<bool> {
    type Stored = Vec<Option<CellId>>;
    let start = |state: State| {
        let threads = state.threads.len();
        (state, vec![None; threads])
    };
    let mut open: Vec<(State, Stored)> = machine.initial_states().map(start).collect();
    let mut known: FxHashSet<(State, Stored)> = open.iter().cloned().collect();
    while let Some((state, stored)) = open.pop() {
        for successor in machine.successors(&state) {
            let thread = successor.step.thread;
            let own = stored[thread.index()];
            let races = match successor.effect {
                _ if state.section.is_some() => false,
                Effect::Spawned(_) => own.is_some(),
                _ => match loaded(machine, &state, successor.step, successor.effect) {
                    Some(cell) => own.is_some_and(|own| own != cell) && rival(machine, &state, thread, cell),
                    None => false,
                },
            };
            if races {
                return Some(true);
            }
            let mut next = stored.clone();
            next.resize(successor.state.threads.len(), None);
            match successor.effect {
                Effect::Wrote(cell, _) if state.section.is_none() => next[thread.index()] = Some(cell),
                Effect::Fenced | Effect::Locked { .. } => next[thread.index()] = None,
                _ if successor.state.section.is_some() => next[thread.index()] = None,
                _ => {}
            }
            let pair = (successor.state, next);
            if known.insert(pair.clone()) {
                open.push(pair);
            }
            if known.len() > most {
                return None;
            }
        }
    }
    Some(false)
}

fn loaded(machine: Machine<'_>, state: &State, step: Step, effect: Effect) -> Option<CellId> {
    match effect {
        Effect::ReadMemory(cell, _) => Some(cell),
        Effect::Faulted(_) => {
            let Action::Execute { edge, .. } = step.action else { return None };
            let top = state.threads[step.thread].top();
            match &machine.system.codes[top.code].edges()[edge].instr {
                Instr::Load(_, address) => machine.resolve(address, &top.registers).ok(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether another thread's next access, or the section it opens next, stores to the cell.
fn rival(machine: Machine<'_>, state: &State, except: ThreadId, cell: CellId) -> bool {
    let mut open: Vec<(State, Option<ThreadId>)> = vec![(state.clone(), None)];
    let mut known = FxHashSet::default();
    while let Some((state, alone)) = open.pop() {
        for successor in machine.successors(&state) {
            let thread = successor.step.thread;
            if thread == except || alone.is_some_and(|alone| alone != thread) {
                continue;
            }
            let stores = match successor.effect {
                Effect::Wrote(stored, _) => stored == cell,
                Effect::Locked { cell: stored, wrote, .. } => stored == cell && wrote.is_some(),
                _ => false,
            };
            if stores {
                return true;
            }
            // Local steps may come before the store, and a section may open before its store.
            let continues = successor.state.section.is_some()
                || matches!(successor.effect, Effect::Local | Effect::Fenced | Effect::StoreFenced);
            if continues && known.insert(successor.state.clone()) {
                open.push((successor.state, Some(thread)));
            }
        }
    }
    false
}

#[test]
fn random_programs() {
    let seeds = seeds(60);
    let (mut free, mut racy, mut robust_but_racy) = (0, 0, 0);
    for profile in Profile::ALL {
        for seed in &seeds {
            let program = generate(profile, seed);
            let system = lower(&program, Instantiation { any: 2, every: None });
            let Some(expected) = brute(Machine::new(&system, Model::Sc), 20_000) else { continue };
            let answer = ask(&program);
            let context = || format!("{profile:?} {seed}\n{}", print::print(&program));
            let robust = || robust::check(Machine::new(&system, Model::Tso), 2_000);
            match answer {
                Verdict::Holds => {
                    assert!(!expected, "race-free, but there is a race: {}", context());
                    let robust = robust();
                    assert!(
                        !matches!(robust, robust::Answer::NotRobust(_)),
                        "race-free, but not robust: {}",
                        context()
                    );
                    free += 1;
                }
                Verdict::Violated(witness) => {
                    assert!(expected, "racy, but there is no race: {}", context());
                    triangle(Machine::new(&system, Model::Sc), &witness.run)
                        .unwrap_or_else(|error| panic!("{error}: {:?} {}", witness.run, context()));
                    racy += 1;
                    robust_but_racy += usize::from(robust() == robust::Answer::Robust);
                }
                Verdict::Unknown(reason) => panic!("unknown: {reason}: {}", context()),
            }
        }
    }
    assert!(
        free > 10 && racy > 10 && robust_but_racy > 0 || !seeds.suffice(),
        "{free} free, {racy} racy, {robust_but_racy} robust"
    );
}

#[test]
fn programs() {
    let check = |text: &str, expected: &str| {
        let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is valid").program;
        assert_eq!(TriangularRaces::word(&ask(&program)), expected, "{text}");
    };
    // Robust, but there is a race.
    check("shared x, y: 0..1; process P { x = 1; let r = y; } process Q { y = 1; }", "racy");
    check("shared x, y: 0..1; process P { x = 1; fence; let r = y; } process Q { y = 1; }", "race-free");
    check("shared x, y: 0..1; process P { let r = y; x = 1; } process Q { y = 1; }", "race-free");
    check("shared x, y: 0..1; process P { x = 1; let r = y; } process Q { xchg(y, 1); }", "racy");
    check(
        "shared x, y: 0..1; process P { x = 1; let r = y; } process Q { atomic { x = 1; y = 1; } }",
        "racy",
    );
    check("shared x: 0..2; process P { x = 1; let r = x; } process Q { x = 2; }", "race-free");
    check("shared x, y: 0..1; process P { xchg(x, 1); let r = y; } process Q { y = 1; }", "race-free");
    check("shared x: 0..1; process P { x = 1; spawn C(); } process C() on spawn { let r = x; }", "racy");
}
