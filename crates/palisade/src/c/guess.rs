//! How much room a program needs, guessed from one run on the trusted machine.
//!
//! *Why.* Every thread and object that there is room for costs states, whether or not it is used. Most programs
//! start the same threads in every run.
//!
//! *How.* The program is run under SC, with the threads taking turns. Where the run exceeds the room,
//! the program is translated again with a little more. Other runs may need more; then the check finds out.

use super::limits::{Limit, MAX_HEAP, MAX_SLOTS, Room};
use super::{COptions, CProgram};
use crate::Refused;
use palisade_base::limits::checkpoint;
use palisade_c::Slots;
use palisade_memory::{Action, Machine, Model, State, Step, Violation};
use palisade_program::running::{EdgeId, Instr, System, ThreadId};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};

/// The room to begin with.
pub(super) const START: Room = Room { slots: Slots { main: 1, nested: 0 }, heap: 1 };

/// A run that takes more steps than this is not followed further.
const MAX_STEPS: usize = 20_000;
/// How many steps a thread takes in its turn.
const TURN: usize = 50;

/// The program with the room that a run of it needs. What the user sets stays as it is.
pub(super) fn with_room(
    start: Room,
    translate: &dyn Fn(Room) -> Result<(Program, CProgram), Refused>,
    options: &COptions,
) -> Result<(Program, CProgram), Refused> {
    let mut room = start;
    loop {
        let (program, c) = translate(room)?;
        if options.slots.is_some() && options.heap.is_some() {
            return Ok((program, c));
        }
        let system = lower(&program, Instantiation::declared(1));
        let Some(violation) = run(&system) else { return Ok((program, c)) };
        let mut more = room;
        match Limit::of(violation, &c.words) {
            Some(Limit::MainThreads) if options.slots.is_none() => more.slots.main += 1,
            Some(Limit::NestedThreads) if options.slots.is_none() => more.slots.nested += 1,
            Some(Limit::Heap) if options.heap.is_none() => more.heap += 1,
            _ => return Ok((program, c)),
        }
        if more.slots.main.max(more.slots.nested) > MAX_SLOTS || more.heap > MAX_HEAP {
            return Ok((program, c));
        }
        room = more;
    }
}

/// Runs a program under SC, its threads in turns, each taking the first step that it can. Returns how the run fails,
/// if it does.
fn run(system: &System) -> Option<Violation> {
    let machine = Machine::new(system, Model::Sc);
    let mut state = machine.initial_states().next()?;
    let mut steps = 0;
    loop {
        let mut moved = false;
        for thread in state.threads.ids().collect::<Vec<_>>() {
            for _ in 0..TURN {
                checkpoint();
                let Some(next) = step(machine, &state, thread) else { break };
                state = next;
                moved = true;
                steps += 1;
                if let Some((thread, fault)) = state.fault {
                    return Some(Violation::Fault(thread, fault));
                }
                if steps >= MAX_STEPS {
                    return None;
                }
            }
        }
        if !moved {
            return None;
        }
    }
}

/// The first step that a thread can take.
fn step(machine: Machine<'_>, state: &State, thread: ThreadId) -> Option<State> {
    let top = state.threads[thread].top();
    let code = &machine.system.codes[top.code];
    code.edges_from(top.location).map(EdgeId).find_map(|edge| {
        let choice = match code.edges()[edge].instr {
            Instr::Havoc(_, lo, hi) => Some(0.clamp(lo, hi)),
            _ => None,
        };
        let taken = machine.step(state, Step { thread, action: Action::Execute { edge, choice } });
        taken.ok().map(|(state, _)| state)
    })
}
