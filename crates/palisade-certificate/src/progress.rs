//! Deadlocks and goals, checked by visiting all states of the machine.
//!
//! This shares nothing with the engines: it takes the steps of `palisade-memory` one by one and keeps whole
//! states. [`verify_ranking`] checks a proof, in one pass. [`verify_progress`] needs no data from the engine
//! that answered, but has to remember all steps.
//!
//! *What a ranking is* ([`Ranking`]). States are numbered in the order of a breadth-first search. Each has a
//! rank for each goal, and one for deadlocks.
//!
//! *What is checked* ([`verify_ranking`]):
//! 1. There are as many ranks as states. The set of states contains the initial states and is closed under
//!    steps, because the checker takes them itself.
//! 2. A state of rank 0 satisfies the goal. For deadlocks: a step that moves leads out of it, or all threads
//!    have ended.
//! 3. From every other state, a step leads to a state of smaller rank. A state with a fault is not judged, and it
//!    has the largest rank, so that no state leads to a goal by it.
//!
//! So from each state, steps with ever smaller ranks lead to one of rank 0.
//!
//! *What is checked without a ranking* ([`verify_progress`]), over the program lowered with retries:
//! 1. The set of states contains the initial states and is closed under steps.
//! 2. No deadlock: from each state in which some thread has not ended, a step is reachable that moves. A step
//!    moves unless it belongs to an attempt of a wait and leaves memory as it is.
//! 3. Goals: from each state, each goal is reachable.
//!
//! Points 2 and 3 are decided by marking states backwards, so a mark is a step towards a marked state: the
//! order in which states are marked is a ranking. States with a fault are not judged.
//!
//! *Limits.* Where buffers grow without bound there are infinitely many states, and the limits are reached.

use crate::{Refusal, Summary};
use palisade_engine::proof::Ranking;
use palisade_engine::{Exhausted, Limits, Pace, Task};
use palisade_memory::{Action, Machine, State, Successor};
use palisade_program::lower_retrying;
use palisade_program::running::Goal;
use palisade_program::running::System;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// Whether a goal is reachable from a state.
pub fn can_reach(
    machine: Machine<'_>,
    from: &State,
    goal: &Goal,
    limits: &Limits,
) -> Result<bool, Exhausted> {
    let states = States::reach(machine, [from.clone()], limits, |state| machine.satisfies(state, goal))?;
    Ok(states.found)
}

/// Checks that a program has no deadlock, if that is asked, and that all its goals stay reachable.
pub fn verify_progress(task: &Task<'_>, deadlocks: bool, limits: &Limits) -> Result<Summary, Refusal> {
    if task.is_parameterized() {
        return Err(Refusal::Unsuited(
            "with any number of processes there are infinitely many states".into(),
        ));
    }
    let system = lower_retrying(task.program, task.instantiation(1));
    let machine = task.machine(&system);
    let states =
        States::reach(machine, machine.initial_states(), limits, |_| false).map_err(Refusal::Exhausted)?;
    let ended = |state: &State| state.threads.iter().all(|thread| thread.has_ended(&system));
    if deadlocks && !states.all_lead_to(|index| states.moves[index] || ended(&states.states[index])) {
        return Err(Refusal::Deadlock);
    }
    for goal in &system.goals {
        if !states.all_lead_to(|index| machine.satisfies(&states.states[index], goal)) {
            return Err(Refusal::OutOfReach);
        }
    }
    let steps: usize = states.before.iter().map(Vec::len).sum();
    Ok(Summary { elements: states.states.len(), predecessors: steps as u64 })
}

/// Checks a proof that a program has no deadlock, if that is asked, and that all its goals stay reachable.
pub fn verify_ranking(
    task: &Task<'_>,
    deadlocks: bool,
    ranking: &Ranking,
    limits: &Limits,
) -> Result<Summary, Refusal> {
    if task.is_parameterized() {
        return Err(Refusal::Unsuited(
            "with any number of processes there are infinitely many states".into(),
        ));
    }
    let system = lower_retrying(task.program, task.instantiation(1));
    let mut ranked = Vec::new();
    match (deadlocks, &ranking.deadlock) {
        (true, Some(ranks)) => ranked.push((Aim::Move, ranks.as_slice())),
        (false, None) => {}
        (true, None) => return Err(Refusal::Unfit("it has no ranking for deadlocks".into())),
        (false, Some(_)) => return Err(Refusal::Unfit("the question is not about deadlocks".into())),
    }
    if ranking.goals.len() != system.goals.len() {
        let (found, wanted) = (ranking.goals.len(), system.goals.len());
        return Err(Refusal::Unfit(format!("it ranks {found} goals, but the program has {wanted}")));
    }
    let goals = system.goals.iter().zip(&ranking.goals);
    ranked.extend(goals.map(|(goal, ranks)| (Aim::Goal(goal), ranks.as_slice())));
    let Some(count) = ranked.first().map(|(_, ranks)| ranks.len()) else {
        return Err(Refusal::Unfit("it ranks nothing".into()));
    };
    if ranked.iter().any(|(_, ranks)| ranks.len() != count) {
        return Err(Refusal::Unfit("its rankings are of different length".into()));
    }
    let machine = task.machine(&system);
    Ranks { machine, system: &system, ranked, count }.check(limits)
}

/// What a ranking leads to.
#[derive(Clone, Copy)]
enum Aim<'a> {
    /// A step that moves, or the end of all threads.
    Move,
    /// A goal.
    Goal(&'a Goal),
}

/// A ranking that is being checked.
struct Ranks<'a> {
    machine: Machine<'a>,
    system: &'a System,
    ranked: Vec<(Aim<'a>, &'a [u32])>,
    /// How many states are ranked.
    count: usize,
}

impl Ranks<'_> {
    fn check(&self, limits: &Limits) -> Result<Summary, Refusal> {
        let mut numbers: FxHashMap<Rc<State>, u32> = FxHashMap::default();
        // The states whose steps are still to be taken, in the order of their numbers.
        let mut open: VecDeque<Rc<State>> = VecDeque::new();
        let bytes = std::cell::Cell::new(0);
        let mut number = |state: State, open: &mut VecDeque<Rc<State>>| -> Result<u32, Refusal> {
            if let Some(&number) = numbers.get(&state) {
                return Ok(number);
            }
            if numbers.len() == self.count {
                return Err(Refusal::NotRanked(format!(
                    "it ranks {} states, but there are more",
                    self.count
                )));
            }
            bytes.set(bytes.get() + bytes_of(&state));
            let (number, state) = (numbers.len() as u32, Rc::new(state));
            numbers.insert(state.clone(), number);
            open.push_back(state);
            Ok(number)
        };
        for state in self.machine.initial_states() {
            number(state, &mut open)?;
        }
        let mut summary = Summary::default();
        let mut pace = Pace::new();
        while let Some(state) = open.pop_front() {
            limits.check_often(&mut pace, || bytes.get()).map_err(Refusal::Exhausted)?;
            limits.check_work(summary.elements as u64).map_err(Refusal::Exhausted)?;
            let successors = self.machine.successors(&state);
            let moves = successors.iter().any(|successor| does_move(self.machine, &state, successor));
            let mut next = Vec::with_capacity(successors.len());
            for successor in successors {
                next.push(number(successor.state, &mut open)?);
            }
            for (aim, ranks) in &self.ranked {
                self.check_state(&state, summary.elements, moves, &next, *aim, ranks)?;
            }
            summary.elements += 1;
            summary.predecessors += next.len() as u64;
        }
        if summary.elements < self.count {
            let (ranked, real) = (self.count, summary.elements);
            return Err(Refusal::NotRanked(format!("it ranks {ranked} states, but there are {real}")));
        }
        Ok(summary)
    }

    /// Checks the rank of one state.
    fn check_state(
        &self,
        state: &State,
        index: usize,
        moves: bool,
        next: &[u32],
        aim: Aim<'_>,
        ranks: &[u32],
    ) -> Result<(), Refusal> {
        let rank = ranks[index];
        let is_there = match aim {
            Aim::Move => moves || state.threads.iter().all(|thread| thread.has_ended(self.system)),
            Aim::Goal(goal) => self.machine.satisfies(state, goal),
        };
        let closer = || next.iter().any(|&next| ranks[next as usize] < rank);
        if state.fault.is_some() {
            // It is not judged, and no other state may lead to it.
            return match rank {
                Ranking::NOT_JUDGED => Ok(()),
                _ => Err(Refusal::NotRanked(format!("state {index} has a fault and a rank"))),
            };
        }
        match rank {
            0 if is_there => Ok(()),
            0 => Err(Refusal::NotRanked(format!("state {index} has rank 0, but does not satisfy the goal"))),
            _ if closer() => Ok(()),
            _ => Err(Refusal::NotRanked(format!("no step of state {index} leads to a smaller rank"))),
        }
    }
}

/// Roughly how many bytes a state takes.
fn bytes_of(state: &State) -> u64 {
    let frames = state.threads.iter().map(|thread| {
        let registers = thread.frames.iter().map(|frame| 64 + 8 * frame.registers.len());
        96 + 24 * thread.buffer.len() + registers.sum::<usize>()
    });
    (128 + 8 * state.memory.len() + frames.sum::<usize>()) as u64
}

/// States that are closed under steps.
struct States {
    states: Vec<State>,
    /// For each state, the states from which a step leads to it.
    before: Vec<Vec<u32>>,
    /// Whether a step that moves leads out of the state.
    moves: Vec<bool>,
    /// Whether a state that is looked for was found. Then the states are not closed.
    found: bool,
}

impl States {
    fn reach(
        machine: Machine<'_>,
        from: impl IntoIterator<Item = State>,
        limits: &Limits,
        stop: impl Fn(&State) -> bool,
    ) -> Result<States, Exhausted> {
        let mut found = States { states: Vec::new(), before: Vec::new(), moves: Vec::new(), found: false };
        let mut numbers: FxHashMap<State, u32> = FxHashMap::default();
        let mut pace = Pace::new();
        let mut bytes = 0;
        for state in from {
            found.number(state, &mut numbers, &mut bytes);
        }
        let mut next = 0;
        while next < found.states.len() {
            limits.check_often(&mut pace, || bytes)?;
            limits.check_work(next as u64)?;
            let state = found.states[next].clone();
            if stop(&state) {
                found.found = true;
                return Ok(found);
            }
            for successor in machine.successors(&state) {
                found.moves[next] |= does_move(machine, &state, &successor);
                let to = found.number(successor.state, &mut numbers, &mut bytes);
                found.before[to as usize].push(next as u32);
            }
            next += 1;
        }
        Ok(found)
    }

    fn number(&mut self, state: State, numbers: &mut FxHashMap<State, u32>, bytes: &mut u64) -> u32 {
        if let Some(&number) = numbers.get(&state) {
            return number;
        }
        // Each state is kept twice: by its number, and to be found.
        *bytes += 2 * bytes_of(&state);
        let number = self.states.len() as u32;
        numbers.insert(state.clone(), number);
        self.states.push(state);
        self.before.push(Vec::new());
        self.moves.push(false);
        number
    }

    /// Whether each state without a fault leads to a marked one.
    fn all_lead_to(&self, is_marked: impl Fn(usize) -> bool) -> bool {
        let mut marked: Vec<bool> = (0..self.states.len()).map(is_marked).collect();
        let mut open: Vec<usize> = (0..marked.len()).filter(|&index| marked[index]).collect();
        while let Some(index) = open.pop() {
            for &earlier in &self.before[index] {
                if !std::mem::replace(&mut marked[earlier as usize], true) {
                    open.push(earlier as usize);
                }
            }
        }
        self.states.iter().zip(marked).all(|(state, marked)| marked || state.fault.is_some())
    }
}

/// Whether a step does more than try a wait again.
fn does_move(machine: Machine<'_>, state: &State, successor: &Successor) -> bool {
    let Action::Execute { edge, .. } = successor.step.action else { return true };
    let code = &machine.system.codes[state.threads[successor.step.thread].top().code];
    !code.attempts.contains(&edge) || successor.state.memory != state.memory
}
