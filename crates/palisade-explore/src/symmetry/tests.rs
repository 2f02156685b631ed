//! Without other reductions, the search visits one state per orbit. The orbits are computed by brute force, from all
//! states of the machine and all permutations.

use super::{Permutation, Symmetry};
use crate::automaton::{Steps, automaton};
use crate::expand::Crowd;
use crate::judge::Judge;
use crate::layout::Layout;
use crate::search::{End, Goal, Search, Tally};
use palisade_automata::{Hold, Local, ThreadMachine};
use palisade_base::{Id, Source};
use palisade_conformance::brute::{Scope, reachable};
use palisade_engine::Limits;
use palisade_memory::{Machine, Model, State, Thread};
use palisade_program::running::{Liveness, ThreadId};
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};
use std::collections::HashSet;
use std::sync::Arc;

/// All permutations of the blocks.
fn group(symmetry: &Symmetry) -> Vec<Permutation> {
    let mut all = vec![Permutation::identity()];
    let mut next = 0;
    while next < all.len() {
        for block in &symmetry.blocks {
            for position in block.start..block.end - 1 {
                let mut g = all[next];
                g.set(position, all[next].image(position + 1));
                g.set(position + 1, all[next].image(position));
                if !all.contains(&g) {
                    all.push(g);
                }
            }
        }
        next += 1;
    }
    all
}

fn image(symmetry: &Symmetry, machine: &ThreadMachine<'_>, g: &Permutation, state: &State) -> State {
    let mut image = state.clone();
    for (cell, &value) in state.memory.iter_enumerated() {
        image.memory[symmetry.cell(g, cell)] = symmetry.value(symmetry.cells[cell], g, value);
    }
    let to = |thread: ThreadId| {
        symmetry.position[thread.index()].map_or(thread, |position| symmetry.threads[g.image(position)])
    };
    for (thread, own) in state.threads.iter_enumerated() {
        let local =
            Local { thread: Thread::clone(own), hold: Hold::Outside, fault: None, passed: Vec::new() };
        image.threads[to(thread)] = Arc::new(symmetry.local(machine, g, &local).thread);
    }
    image.fault = state.fault.map(|(thread, fault)| (to(thread), fault));
    image
}

/// The states that the search visits, and the orbits of the states of the machine.
fn count(text: &str, model: Model) -> (u64, u64) {
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is well formed").program;
    let system = lower(&program, Instantiation::declared(1));
    let machine = Machine::new(&system, model);
    let liveness = Arc::new(Liveness::new(&system));
    let threads = || ThreadMachine::new(machine, liveness.clone(), usize::MAX, false);
    let mut automaton = automaton(threads(), Steps::Single, true);
    let (judge, limits) = (Judge::new(&system), Limits::unlimited(1));
    let states = loop {
        let layout = Layout::new(&automaton, 0, true);
        let mut search = Search {
            automaton: &mut automaton,
            layout: &layout,
            judge: &judge,
            goal: Goal::Steps,
            ends: None,
            enough: None,
            reduce: false,
            crowd: Crowd::Grows,
            tally: Tally::default(),
            limits: &limits,
            report: &|_, _| {},
            pool: None,
        };
        match search.run() {
            (End::Outgrown, ..) => {}
            (End::Clean { .. }, counters, _) => break counters.states,
            _ => panic!("the search visits all states"),
        }
    };
    let symmetry =
        automaton.policy.symmetry.as_ref().unwrap_or_else(|| panic!("the threads are symmetric:\n{text}"));
    let (group, machine) = (group(symmetry), threads());
    let all = reachable(machine.machine, Scope::states(200_000));
    assert!(all.complete, "few states");
    let mut seen: HashSet<State> = HashSet::new();
    let mut orbits = 0;
    let identity = Permutation::identity();
    let known: HashSet<State> =
        all.states.iter().map(|state| image(symmetry, &machine, &identity, state)).collect();
    for state in &known {
        if seen.contains(state) {
            continue;
        }
        orbits += 1;
        for g in &group {
            let image = image(symmetry, &machine, g, state);
            assert!(known.contains(&image), "an image of a reachable state is reachable\n{text}");
            seen.insert(image);
        }
    }
    (states, orbits)
}

fn program(threads: usize, shared: &str, body: &str) -> String {
    let mut text = shared.to_owned();
    for thread in 0..threads {
        let address = 100 + 10 * thread;
        text += &format!(
            "shared next{thread} at {address} = 0; shared value{thread} at {}: 0..9;\n",
            address + 1
        );
    }
    for thread in 0..threads {
        let body = body.replace("MINE", &(100 + 10 * thread).to_string()).replace("ME", &thread.to_string());
        text += &format!("process w{thread} {{ {body} }}\n");
    }
    text
}

#[test]
fn oracle_one_state_per_orbit() {
    let shared = "shared owner: 0..9 = 9; shared top = 0; shared lock: bool; shared seen[3]: 0..9;\n";
    let bodies = [
        "let r: 0..9; owner = ME; r = owner; assert(r != 8);",
        "let r: 0..9; await cas(lock, 0, 1); owner = ME; r = owner; assert(r == ME); lock = 0;",
        "let p = 0; let b: bool; p = top; *MINE = p; b = cas(top, p, MINE); if p != 0 { p = *p; }",
        "let p = 0; p = xchg(top, MINE); if p != 0 { *(p + 1) = 1; } else { *(MINE + 1) = 2; }",
        "let r: 0..9; let d: 0..9; seen[ME] = 1; r = xchg(owner, ME); if r != 9 { d = seen[r]; assert(d != 7); }",
    ];
    for body in bodies {
        for threads in [2, 3] {
            for model in Model::ALL {
                let text = program(threads, shared, body);
                let (states, orbits) = count(&text, model);
                assert_eq!(states, orbits, "{} with {threads} threads:\n{text}", model.name());
            }
        }
    }
}
