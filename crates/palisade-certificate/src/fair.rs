//! `terminates` and `leaves`, checked by visiting all states of the machine.
//!
//! This shares nothing with the engines: it takes the steps of `palisade-memory` one by one and keeps whole
//! states. It needs no data from the engine that answered.
//!
//! *What is checked* ([`verify_fair`]), over the program lowered with retries:
//! 1. The set of states contains the initial states and is closed under steps.
//! 2. No state without steps violates a property.
//! 3. No set of states that is strongly connected by steps which the violation allows satisfies all
//!    conditions of fairness (`palisade_memory`, `fair.rs`).
//!
//! For point 3, the states are split into strongly connected sets: everything that a state reaches and is
//! reached from. A set fails a condition "if it has a state of A, then it has a state or step of B". No set
//! inside it with a state of A satisfies the condition either. So the states of A are removed, and what
//! remains is split again, until nothing remains.
//!
//! *Limits.* Where buffers grow without bound there are infinitely many states, and the limits are reached.

use crate::{Refusal, Summary};
use palisade_engine::{Exhausted, Limits, Pace, Task};
use palisade_memory::{Action, Agent, Machine, State, Step};
use palisade_program::lower_retrying;
use palisade_program::running::{CodeId, EdgeId, FairKind, Location, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Checks that no fair run violates a `terminates` or `leaves` property.
pub fn verify_fair(task: &Task<'_>, limits: &Limits) -> Result<Summary, Refusal> {
    if task.is_parameterized() {
        return Err(Refusal::Unsuited(
            "with any number of processes there are infinitely many states".into(),
        ));
    }
    let system = lower_retrying(task.program, task.instantiation(1));
    let machine = task.machine(&system);
    let graph = Graph::reach(machine, limits).map_err(Refusal::Exhausted)?;
    for property in &system.fair {
        graph.verify(&property.kind, limits)?;
    }
    let steps: usize = graph.after.iter().map(Vec::len).sum();
    Ok(Summary { elements: graph.states.len(), predecessors: steps as u64 })
}

/// States that are closed under steps.
struct Graph<'a> {
    machine: Machine<'a>,
    states: Vec<State>,
    after: Vec<Vec<(Step, u32)>>,
}

/// States among which a fair run may stay.
type Set = FxHashSet<u32>;

impl<'a> Graph<'a> {
    fn reach(machine: Machine<'a>, limits: &Limits) -> Result<Graph<'a>, Exhausted> {
        let mut graph = Graph { machine, states: Vec::new(), after: Vec::new() };
        let mut numbers: FxHashMap<State, u32> = FxHashMap::default();
        let (mut pace, mut bytes) = (Pace::new(), 0);
        for state in machine.initial_states() {
            graph.number(state, &mut numbers, &mut bytes);
        }
        while graph.after.len() < graph.states.len() {
            limits.check_often(&mut pace, || bytes)?;
            limits.check_work(graph.after.len() as u64)?;
            let successors = machine.successors(&graph.states[graph.after.len()]);
            bytes += 40 * successors.len() as u64;
            let steps = successors.into_iter();
            let steps = steps.map(|next| (next.step, graph.number(next.state, &mut numbers, &mut bytes)));
            let steps = steps.collect();
            graph.after.push(steps);
        }
        Ok(graph)
    }

    fn number(&mut self, state: State, numbers: &mut FxHashMap<State, u32>, bytes: &mut u64) -> u32 {
        if let Some(&number) = numbers.get(&state) {
            return number;
        }
        // Each state is kept twice: by its number, and to be found.
        let frames = state.threads.iter().map(|thread| {
            let registers = thread.frames.iter().map(|frame| 64 + 8 * frame.registers.len());
            96 + 24 * thread.buffer.len() + registers.sum::<usize>()
        });
        *bytes += 2 * (128 + 8 * state.memory.len() + frames.sum::<usize>()) as u64;
        let number = self.states.len() as u32;
        numbers.insert(state.clone(), number);
        self.states.push(state);
        number
    }

    fn state(&self, number: u32) -> &State {
        &self.states[number as usize]
    }

    fn verify(&self, property: &FairKind, limits: &Limits) -> Result<(), Refusal> {
        let violates = |state: u32, steps: &[Step]| {
            self.machine.violates_forever(std::slice::from_ref(self.state(state)), steps, property)
        };
        let all = 0..self.states.len() as u32;
        if all.clone().any(|state| self.after[state as usize].is_empty() && violates(state, &[])) {
            return Err(Refusal::Forever);
        }
        let allowed = |state: u32, step: Step| violates(state, &[step]);
        let mut open: Vec<Set> = vec![all.filter(|&state| violates(state, &[])).collect()];
        let mut pace = Pace::new();
        while let Some(set) = open.pop() {
            limits.check_often(&mut pace, || 0).map_err(Refusal::Exhausted)?;
            let inside = |set: &Set, state: u32| -> Vec<(Step, u32)> {
                let steps = self.after[state as usize].iter().copied();
                steps.filter(|&(step, to)| set.contains(&to) && allowed(state, step)).collect()
            };
            for connected in connected(&set, &|state| inside(&set, state)) {
                let steps: Vec<(u32, Step)> = connected
                    .iter()
                    .flat_map(|&state| {
                        inside(&connected, state).into_iter().map(move |(step, _)| (state, step))
                    })
                    .collect();
                if steps.is_empty() {
                    continue;
                }
                match self.failed(&connected, &steps) {
                    None => return Err(Refusal::Forever),
                    Some(without) => open.push(connected.difference(&without).copied().collect()),
                }
            }
        }
        Ok(())
    }

    /// The states of a condition that a run through all these states and steps fails.
    fn failed(&self, set: &Set, steps: &[(u32, Step)]) -> Option<Set> {
        let some = self.state(*set.iter().next().expect("a connected set has a state"));
        for thread in some.threads.ids() {
            let held_up =
                |state: u32| self.state(state).section.is_some_and(|section| section.holder != thread);
            let free: Set = set.iter().copied().filter(|&state| !held_up(state)).collect();
            let stores = self.machine.system.cells.ids().map(|cell| Agent::Stores(thread, cell));
            for agent in std::iter::once(Agent::Thread(thread)).chain(stores) {
                let moves =
                    |&(state, step): &(u32, Step)| self.machine.agent(self.state(state), step) == Some(agent);
                let rests = |&state: &u32| !self.machine.can_move(self.state(state), agent);
                if !free.is_empty() && !steps.iter().any(moves) && !free.iter().any(rests) {
                    return Some(free);
                }
            }
            let executed: Vec<(u32, EdgeId)> =
                steps.iter().filter_map(|&(state, step)| Some((state, executed(step, thread)?))).collect();
            if executed.iter().any(|&(state, edge)| !self.is_attempt(state, thread, edge)) {
                continue;
            }
            let tried: FxHashSet<(CodeId, Location, EdgeId)> =
                executed.iter().map(|&(state, edge)| (self.place(state, thread), edge)).map(flat).collect();
            let places: FxHashSet<(CodeId, Location)> =
                free.iter().map(|&state| self.place(state, thread)).collect();
            for (code, location) in places {
                let there: Set =
                    free.iter().copied().filter(|&s| self.place(s, thread) == (code, location)).collect();
                let possible = |edge: EdgeId| {
                    there.iter().all(|&state| self.machine.can_execute(self.state(state), thread, edge))
                };
                let mut edges = self.machine.system.codes[code].edges_from(location).map(EdgeId);
                if edges.any(|edge| !tried.contains(&(code, location, edge)) && possible(edge)) {
                    return Some(there);
                }
            }
        }
        None
    }

    fn place(&self, state: u32, thread: ThreadId) -> (CodeId, Location) {
        let top = self.state(state).threads[thread].top();
        (top.code, top.location)
    }

    fn is_attempt(&self, state: u32, thread: ThreadId, edge: EdgeId) -> bool {
        let (code, _) = self.place(state, thread);
        self.machine.system.codes[code].attempts.contains(&edge)
    }
}

fn flat(((code, location), edge): ((CodeId, Location), EdgeId)) -> (CodeId, Location, EdgeId) {
    (code, location, edge)
}

/// The instruction that a step of a thread executes.
fn executed(step: Step, thread: ThreadId) -> Option<EdgeId> {
    match step.action {
        Action::Execute { edge, .. } if step.thread == thread => Some(edge),
        _ => None,
    }
}

/// The maximal strongly connected sets of states.
///
/// States that lead nowhere, or that nothing leads to, are alone in theirs and are left out first. After
/// that, each set is what a state reaches and is reached from.
fn connected(set: &Set, after: &dyn Fn(u32) -> Vec<(Step, u32)>) -> Vec<Set> {
    let (mut forward, mut backward): (FxHashMap<u32, Vec<u32>>, FxHashMap<u32, Vec<u32>>) =
        Default::default();
    for &state in set {
        for (_, to) in after(state) {
            forward.entry(state).or_default().push(to);
            backward.entry(to).or_default().push(state);
        }
    }
    let nothing = Vec::new();
    let mut rest: Set = set.clone();
    for (of, against) in [(&forward, &backward), (&backward, &forward)] {
        let mut left: FxHashMap<u32, usize> = rest
            .iter()
            .map(|state| {
                (*state, of.get(state).unwrap_or(&nothing).iter().filter(|to| rest.contains(to)).count())
            })
            .collect();
        let mut open: Vec<u32> =
            left.iter().filter(|(_, count)| **count == 0).map(|(state, _)| *state).collect();
        while let Some(state) = open.pop() {
            rest.remove(&state);
            for before in against.get(&state).unwrap_or(&nothing) {
                if let Some(count) = left.get_mut(before).filter(|count| **count > 0) {
                    *count -= 1;
                    if *count == 0 {
                        open.push(*before);
                    }
                }
            }
        }
    }
    let mut found = Vec::new();
    // What remains may be split by what one state reaches and is reached from.
    let mut parts = vec![rest];
    while let Some(part) = parts.pop() {
        let Some(&first) = part.iter().min() else { continue };
        let reached = |steps: &FxHashMap<u32, Vec<u32>>| {
            let (mut seen, mut open) = (Set::from_iter([first]), vec![first]);
            while let Some(state) = open.pop() {
                for &to in steps.get(&state).unwrap_or(&nothing) {
                    if part.contains(&to) && seen.insert(to) {
                        open.push(to);
                    }
                }
            }
            seen
        };
        let (down, up) = (reached(&forward), reached(&backward));
        let both: Set = down.intersection(&up).copied().collect();
        // No other strongly connected set has states of more than one of these parts.
        parts.push(down.difference(&both).copied().collect());
        parts.push(up.difference(&both).copied().collect());
        parts.push(
            part.iter().copied().filter(|state| !down.contains(state) && !up.contains(state)).collect(),
        );
        found.push(both);
    }
    found
}
