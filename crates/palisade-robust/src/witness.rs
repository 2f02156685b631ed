//! From a path of packed states back to a run of the store-buffer machine.
//!
//! The path is replayed: each step is identified as a move of one thread and unfolded into the machine's
//! steps. Stores reach memory at once, except those that the attacker holds back, which stay in its buffer.

use crate::expand::{Led, Sink, TakenMove};
use crate::search::Search;
use crate::sections::Passage;
use crate::threads::{Move, Target, Way};
use palisade_base::Id;
use palisade_memory::{Action, Effect, Machine, State, Step};
use palisade_program::Value;
use palisade_program::running::ThreadId;
use palisade_search::StateId;
use palisade_trace::{Run, until_cycle};

/// An owned step of the search.
#[derive(Clone)]
pub(crate) struct Kept {
    pub thread: usize,
    pub mv: Move,
    pub code: u32,
    pub way: Way,
    pub to: Option<Target>,
    pub through: Option<Passage>,
    pub held: bool,
}

/// The states on the path to a state, and the steps between them. The last step closes a cycle.
pub(crate) fn steps(search: &mut Search<'_>, last: StateId) -> (Vec<StateId>, Vec<Kept>) {
    let path = search.path_to(last);
    let mut steps = Vec::new();
    for (index, &from) in path.iter().enumerate() {
        let next = path.get(index + 1).map(|&next| search.state(next).to_vec());
        let mut find = Find { next: next.as_deref(), found: None };
        let from = search.state(from).to_vec();
        // All missing table entries were supplied during the search.
        let _ = search.expander().expand(&from, &mut find, &mut Vec::new());
        steps.push(find.found.expect("the search took this step"));
    }
    (path, steps)
}

/// Finds the first step to a state, or the first that closes a cycle.
struct Find<'f> {
    next: Option<&'f [u64]>,
    found: Option<Kept>,
}

impl Sink for Find<'_> {
    fn take(&mut self, taken: TakenMove<'_>, next: Option<&[u64]>) {
        if self.found.is_none() && next == self.next {
            let TakenMove { thread, mv, code, way, led, held } = taken;
            let (to, through) = match led {
                Led::To(target) => (Some(target), None),
                Led::Through(passage) => (None, Some(passage.clone())),
            };
            self.found = Some(Kept { thread, mv, code, way, to, through, held });
        }
    }
}

/// The run along the path to a state, including the step from it that closes a cycle.
///
/// # Panics
/// If the search did not find such a step.
pub(crate) fn unfold(search: &mut Search<'_>, machine: Machine<'_>, last: StateId) -> Run {
    let (mut taking, closing) = unfold_before(search, machine, last);
    taking.follow(search, &closing);
    let memory = taking.memory;
    until_cycle(machine, Run { memory, steps: taking.steps })
}

/// The run along the path to a state, and the goal step from it.
pub(crate) fn unfold_before<'m>(
    search: &mut Search<'_>,
    machine: Machine<'m>,
    last: StateId,
) -> (Taking<'m>, Kept) {
    let (path, steps) = steps(search, last);
    let state = crate::state::State { words: search.state(path[0]), layout: search.layout };
    let memory: Vec<_> =
        machine.system.cells.ids().map(|cell| search.threads.value(cell, state.memory(cell))).collect();
    let state = machine.initial_state(&memory).expect("the search starts in an initial state");
    let mut taking = Taking { machine, state, memory, steps: Vec::new() };
    for (thread, instance) in machine.system.instances.iter_enumerated() {
        for action in search.threads.steps_from_start(instance.role) {
            taking.take(thread, action, true);
        }
    }
    let (closing, before) = steps.split_last().expect("a search that has found something took a step");
    for kept in before {
        taking.follow(search, kept);
    }
    (taking, closing.clone())
}

/// A run under construction.
pub(crate) struct Taking<'m> {
    machine: Machine<'m>,
    state: State,
    pub memory: Vec<Value>,
    pub steps: Vec<Step>,
}

impl Taking<'_> {
    /// Takes a step. A store goes to memory at once unless it is held back.
    pub fn take(&mut self, thread: ThreadId, action: Action, held: bool) {
        if self.state.fault.is_some() {
            return;
        }
        let effect = self.step(Step { thread, action });
        if matches!(effect, Effect::Buffered(..)) && !held {
            let position = self.state.threads[thread].buffer.len() - 1;
            self.step(Step { thread, action: Action::Update { position } });
        }
    }

    fn step(&mut self, step: Step) -> Effect {
        let (next, effect) = self.machine.step(&self.state, step).unwrap_or_else(|refusal| {
            panic!("the machine takes the steps of the search: {step:?}: {refusal}")
        });
        self.state = next;
        self.steps.push(step);
        effect
    }

    /// Takes the machine's steps that a step of the search represents.
    fn follow(&mut self, search: &mut Search<'_>, kept: &Kept) {
        let thread = ThreadId::from_index(kept.thread);
        let known = self.state.threads.len();
        match (&kept.to, &kept.through) {
            (Some(target), _) => {
                self.take(thread, kept.mv.action, kept.held);
                for action in search.threads.steps_after(&kept.mv, kept.code, kept.way, *target) {
                    self.take(thread, action, true);
                }
            }
            (None, Some(passage)) => passage.steps.iter().for_each(|&action| self.take(thread, action, true)),
            (None, None) => unreachable!("a step leads somewhere"),
        }
        for child in known..self.state.threads.len() {
            let child = ThreadId::from_index(child);
            for action in search.threads.steps_from_start(self.state.threads[child].role) {
                self.take(child, action, true);
            }
        }
    }
}
