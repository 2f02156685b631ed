//! Smaller demands: the same instructions of every thread in another order.
//!
//! *Problem.* A run demands every place that is passed while a store is pending. In another order of the same
//! instructions fewer stores may need to be pending, and a smaller demand rules out more candidates.
//!
//! *Method.* The places of the demand are removed one by one. For each, the question is whether there is an
//! order of the threads' instructions, with stores reaching memory at any time, that
//! - passes all places except the remaining ones with empty buffers only, and
//! - still shows that the program is wrong.
//!
//! This is answered by a search of the machine itself, with every thread bound to its own path. It ends after
//! [`WORK`] steps; the place is then kept.
//!
//! *Guarantee.* The result is a run that shows the same error, with a demand that is a subset of the old one.
//! Runs in which threads are started are left unchanged, since threads are identified by the order of their
//! starts.

use crate::places::{Marks, PlaceId};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Effect, Machine, State, Step};
use palisade_program::running::ThreadId;
use palisade_trace::{Run, take};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The number of machine steps spent on one run.
const WORK: usize = 60_000;

/// A run with the instructions of the given one that passes as few of the demanded places as possible with
/// stores pending. `bad` decides whether a state shows that the program is wrong.
pub(crate) fn with_fewer_waits(
    machine: Machine<'_>,
    marks: &Marks,
    run: &Run,
    demanded: &BTreeSet<PlaceId>,
    bad: &dyn Fn(&State) -> bool,
) -> Option<Run> {
    let replay = take(machine, run).ok()?;
    if demanded.is_empty() || !bad(&replay.states[run.steps.len()]) {
        return None;
    }
    if replay.effects.iter().any(|effect| matches!(effect, Effect::Spawned(_))) {
        return None;
    }
    let mut paths: Vec<Vec<Step>> = vec![Vec::new(); machine.system.instances.len()];
    for step in run.steps.iter().filter(|step| matches!(step.action, Action::Execute { .. })) {
        paths[step.thread.index()].push(*step);
    }
    let mut best = None;
    let mut allowed = demanded.clone();
    let mut work = WORK;
    // Maybe no store needs to be pending at any place.
    for attempt in
        std::iter::once(BTreeSet::new()).chain(demanded.iter().map(|&place| BTreeSet::from([place])))
    {
        // The first attempt tries to do without any of the places, the others without one of them.
        let smaller: BTreeSet<PlaceId> = match attempt.first() {
            None => BTreeSet::new(),
            Some(place) if !allowed.contains(place) => continue,
            Some(place) => allowed.iter().copied().filter(|other| other != place).collect(),
        };
        let search = Search { machine, marks, paths: &paths, allowed: &smaller, bad };
        if let Some(found) = search.find(&run.memory, &mut work) {
            allowed = smaller;
            best = Some(found);
            if allowed.is_empty() {
                break;
            }
        }
    }
    best
}

struct Search<'a> {
    machine: Machine<'a>,
    marks: &'a Marks,
    paths: &'a [Vec<Step>],
    /// Places that may be passed while stores are pending.
    allowed: &'a BTreeSet<PlaceId>,
    bad: &'a dyn Fn(&State) -> bool,
}

/// A state, the progress of each thread on its path, and the step that led here with the index of the
/// previous node.
struct Node {
    state: State,
    done: Vec<usize>,
    parent: Option<(usize, Step)>,
}

impl Search<'_> {
    /// A run to a bad state, depth first.
    fn find(&self, memory: &[palisade_program::Value], work: &mut usize) -> Option<Run> {
        let state = self.machine.initial_state(memory)?;
        let mut nodes = vec![Node { state, done: vec![0; self.paths.len()], parent: None }];
        let mut known: FxHashSet<(Vec<usize>, State)> = FxHashSet::default();
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            limits::checkpoint();
            if (self.bad)(&nodes[at].state) {
                return Some(self.run_to(&nodes, at, memory));
            }
            // The steps to be tried first are pushed last, so that stores reach memory as soon as they can.
            for step in self.steps(&nodes[at]) {
                *work = work.checked_sub(1)?;
                let Ok((state, _)) = self.machine.step(&nodes[at].state, step) else { continue };
                let mut done = nodes[at].done.clone();
                if matches!(step.action, Action::Execute { .. }) {
                    done[step.thread.index()] += 1;
                }
                if known.insert((done.clone(), state.clone())) {
                    open.push(nodes.len());
                    nodes.push(Node { state, done, parent: Some((at, step)) });
                }
            }
        }
        None
    }

    fn steps(&self, node: &Node) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, path) in self.paths.iter().enumerate() {
            let thread = &node.state.threads[ThreadId::from_index(index)];
            let Some(&step) = path.get(node.done[index]) else { continue };
            let there = self.marks.at(thread.top().code, thread.top().location);
            let waits = !thread.buffer.is_empty();
            if !waits || there.iter().all(|(place, _)| self.allowed.contains(place)) {
                steps.push(step);
            }
        }
        for (thread, state) in node.state.threads.iter_enumerated() {
            if !state.buffer.is_empty() {
                steps.push(Step { thread, action: Action::Update { position: 0 } });
            }
        }
        steps
    }

    fn run_to(&self, nodes: &[Node], last: usize, memory: &[palisade_program::Value]) -> Run {
        let mut steps = Vec::new();
        let mut at = last;
        while let Some((before, step)) = nodes[at].parent {
            steps.push(step);
            at = before;
        }
        steps.reverse();
        Run { memory: memory.to_vec(), steps }
    }
}
