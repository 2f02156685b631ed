//! `terminates` and `leaves` by brute force, on the explicit graph of all states.
//!
//! *Definitions.* Those of `palisade_memory::fair`. A fair run of a finite graph stays in a set of states from
//! some point on, and comes to each of them again and again. So there is a fair run that violates a property
//! if and only if one of these exists:
//! 1. a state without successors that violates it;
//! 2. a strongly connected part of the graph whose states and steps are all allowed by the violation, so that
//!    the run that takes all its steps again and again is fair.
//!
//! Each of the conditions of fairness has the form "if the run comes to one of these states again and again,
//! then it comes to one of those states or takes one of those steps again and again". If a maximal part
//! fails a condition, then so does every smaller part that still has one of the first states. These are
//! removed, and what remains is searched in the same way (Emerson and Lei, "Modalities for model checking",
//! 1987).
//!
//! *Guarantee.* An answer other than [`Answer::Inconclusive`] is correct if `palisade-memory` is. The run of a
//! violation ends with a cycle that `palisade-memory` finds fair, which is checked here.

use crate::brute::{Answer, Scope, Search, reachable};
use palisade_memory::{Action, Agent, Machine, State, Step};
use palisade_program::running::{CodeId, EdgeId, FairKind, Location, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// All reachable states and the steps between them.
#[derive(Debug)]
pub struct FairGraph<'a> {
    machine: Machine<'a>,
    search: Search,
    /// The steps from each state, and where they lead.
    after: Vec<Vec<(Step, usize)>>,
}

/// A part of the graph: its states, and the steps between them.
type Part = BTreeSet<usize>;

/// What a fair run comes to again and again because of a condition.
#[derive(Clone, Copy, Debug)]
enum Visit {
    State(usize),
    Step(usize, Step, usize),
}

impl<'a> FairGraph<'a> {
    /// The graph, or `None` if a limit was hit.
    pub fn new(machine: Machine<'a>, limits: Scope) -> Option<FairGraph<'a>> {
        let search = reachable(machine, limits);
        search.complete.then(|| FairGraph::of(machine, search))
    }

    /// The part of the graph in which no buffer is longer than the limits allow, or `None` if there are too
    /// many states. An answer [`Answer::Safe`] is about the runs in this part.
    pub fn within(machine: Machine<'a>, limits: Scope) -> Option<FairGraph<'a>> {
        let search = reachable(machine, limits);
        (search.states.len() < limits.states).then(|| FairGraph::of(machine, search))
    }

    fn of(machine: Machine<'a>, search: Search) -> FairGraph<'a> {
        let numbers: FxHashMap<&State, usize> = search.states.iter().zip(0..).collect();
        let after = search.states.iter().map(|state| {
            let successors = machine.successors(state).into_iter();
            let known = successors.map(|successor| (successor.step, numbers.get(&successor.state).copied()));
            known.filter_map(|(step, to)| Some((step, to?))).collect()
        });
        let after = after.collect();
        FairGraph { machine, search, after }
    }

    /// All states.
    pub fn states(&self) -> &[State] {
        &self.search.states
    }

    /// The steps from each state, and the indices of the states that they lead to.
    pub fn after(&self) -> &[Vec<(Step, usize)>] {
        &self.after
    }

    /// Whether every fair run satisfies the property. The run of a violation ends with the cycle, or has none
    /// if it stops.
    ///
    /// # Panics
    /// If `palisade-memory` does not find the cycle fair.
    pub fn answer(&self, property: &FairKind) -> Answer {
        let violates = |state: usize, step: Option<Step>| {
            let steps: Vec<Step> = step.into_iter().collect();
            self.machine.violates_forever(&self.states()[state..=state], &steps, property)
        };
        let stops = |state: &usize| {
            self.after[*state].is_empty()
                && self.machine.successors(&self.states()[*state]).is_empty()
                && violates(*state, None)
        };
        if let Some(state) = (0..self.after.len()).find(stops) {
            self.confirm(state, &[], property);
            return Answer::Unsafe(self.search.run_to(state));
        }
        // Where all threads have ended there is no cycle. A step is allowed if repeating it would violate the
        // property.
        let inside: Part = (0..self.after.len()).filter(|&state| violates(state, None)).collect();
        let allowed = |state: usize, step: Step| violates(state, Some(step));
        let mut open = vec![inside];
        while let Some(part) = open.pop() {
            for part in self.components(&part, &allowed) {
                match self.visits(&part, &allowed) {
                    Ok(visits) => {
                        let (start, steps) = self.cycle(&part, &allowed, &visits);
                        self.confirm(start, &steps, property);
                        let mut run = self.search.run_to(start);
                        run.steps.extend(steps);
                        return Answer::Unsafe(run);
                    }
                    Err(unwanted) => open.push(part.difference(&unwanted).copied().collect()),
                }
            }
        }
        Answer::Safe
    }

    fn confirm(&self, start: usize, steps: &[Step], property: &FairKind) {
        let states = self.machine.is_fair_cycle(&self.states()[start], steps);
        let states = states.unwrap_or_else(|why| panic!("the judge found a cycle that is not fair: {why}"));
        assert!(self.machine.violates_forever(&states, steps, property), "the cycle violates nothing");
    }

    /// The steps inside a part.
    fn steps<'s>(
        &'s self,
        part: &'s Part,
        allowed: &'s dyn Fn(usize, Step) -> bool,
    ) -> impl Iterator<Item = (usize, Step, usize)> + 's {
        part.iter().flat_map(move |&from| {
            let after = self.after[from].iter();
            let inside = after.filter(move |(step, to)| part.contains(to) && allowed(from, *step));
            inside.map(move |&(step, to)| (from, step, to))
        })
    }

    /// The maximal strongly connected parts with at least one step.
    fn components(&self, part: &Part, allowed: &dyn Fn(usize, Step) -> bool) -> Vec<Part> {
        let (mut forward, mut backward) = (FxHashMap::default(), FxHashMap::default());
        let mut has_step = BTreeSet::new();
        for (from, _, to) in self.steps(part, allowed) {
            forward.entry(from).or_insert_with(Vec::new).push(to);
            backward.entry(to).or_insert_with(Vec::new).push(from);
            if from == to {
                has_step.insert(from);
            }
        }
        let nothing = Vec::new();
        // First pass: the order in which states are left for good.
        let (mut order, mut known) = (Vec::new(), BTreeSet::new());
        for &root in part {
            let mut path = vec![(root, 0)];
            if !known.insert(root) {
                continue;
            }
            while let Some((state, next)) = path.pop() {
                match forward.get(&state).unwrap_or(&nothing).get(next) {
                    Some(&to) => {
                        path.push((state, next + 1));
                        if known.insert(to) {
                            path.push((to, 0));
                        }
                    }
                    None => order.push(state),
                }
            }
        }
        // Second pass: backwards, from the state that was left last.
        let (mut found, mut taken) = (Vec::new(), BTreeSet::new());
        for &root in order.iter().rev() {
            if !taken.insert(root) {
                continue;
            }
            let (mut part, mut open) = (Part::from([root]), vec![root]);
            while let Some(state) = open.pop() {
                for &earlier in backward.get(&state).unwrap_or(&nothing) {
                    if taken.insert(earlier) {
                        part.insert(earlier);
                        open.push(earlier);
                    }
                }
            }
            if part.len() > 1 || has_step.contains(&root) {
                found.push(part);
            }
        }
        found
    }

    /// What a fair run that stays in the part has to visit, or the states of a condition that it fails.
    fn visits(&self, part: &Part, allowed: &dyn Fn(usize, Step) -> bool) -> Result<Vec<Visit>, Part> {
        let first = &self.states()[*part.first().expect("a part has states")];
        let mut visits = Vec::new();
        let steps: Vec<(usize, Step, usize)> = self.steps(part, allowed).collect();
        let find = |step: &dyn Fn(usize, Step) -> bool, states: &Part, good: &dyn Fn(&State) -> bool| {
            let taken = steps.iter().find(|&&(from, at, _)| step(from, at));
            let taken = taken.map(|&(from, step, to)| Visit::Step(from, step, to));
            taken.or_else(|| {
                let good = |state: &&usize| good(&self.states()[**state]);
                states.iter().find(good).map(|&state| Visit::State(state))
            })
        };
        for thread in first.threads.ids() {
            let free: Part = part.iter().copied().filter(|&state| !self.is_held_up(state, thread)).collect();
            if free.is_empty() {
                continue;
            }
            let cells = self.machine.system.cells.ids().map(|cell| Agent::Stores(thread, cell));
            for agent in std::iter::once(Agent::Thread(thread)).chain(cells) {
                let takes =
                    |state: usize, step| self.machine.agent(&self.states()[state], step) == Some(agent);
                let rests = |state: &State| !self.machine.can_move(state, agent);
                visits.push(find(&takes, &free, &rests).ok_or_else(|| free.clone())?);
            }
            // A run that takes a step which is no attempt has no alternatives to try.
            let moves = steps.iter().find(|&&(from, step, _)| !self.is_attempt(from, step, thread));
            visits.extend(moves.map(|&(from, step, to)| Visit::Step(from, step, to)));
            let waits = moves.is_none();
            let places: BTreeSet<(CodeId, Location)> =
                free.iter().filter(|_| waits).map(|&state| self.place(state, thread)).collect();
            for (code, location) in places {
                let there: Part =
                    free.iter().copied().filter(|&s| self.place(s, thread) == (code, location)).collect();
                for edge in self.machine.system.codes[code].edges_from(location).map(EdgeId) {
                    let tries = |state: usize, step: Step| {
                        let executes = matches!(step.action, Action::Execute { edge: of, .. } if of == edge);
                        step.thread == thread && executes && self.place(state, thread) == (code, location)
                    };
                    let cannot = |state: &State| !self.machine.can_execute(state, thread, edge);
                    visits.push(find(&tries, &there, &cannot).ok_or_else(|| there.clone())?);
                }
            }
        }
        Ok(visits)
    }

    fn is_held_up(&self, state: usize, thread: ThreadId) -> bool {
        self.states()[state].section.is_some_and(|section| section.holder != thread)
    }

    fn place(&self, state: usize, thread: ThreadId) -> (CodeId, Location) {
        let top = self.states()[state].threads[thread].top();
        (top.code, top.location)
    }

    /// Whether a step is an attempt if it is one of the thread.
    fn is_attempt(&self, state: usize, step: Step, thread: ThreadId) -> bool {
        match step.action {
            Action::Execute { edge, .. } if step.thread == thread => {
                let (code, _) = self.place(state, thread);
                self.machine.system.codes[code].attempts.contains(&edge)
            }
            _ => true,
        }
    }

    /// A cycle inside the part that visits everything.
    fn cycle(
        &self,
        part: &Part,
        allowed: &dyn Fn(usize, Step) -> bool,
        visits: &[Visit],
    ) -> (usize, Vec<Step>) {
        let start = *part.first().expect("a part has states");
        let (mut at, mut steps) = (start, Vec::new());
        let any = self.steps(part, allowed).next().map(|(from, step, to)| Visit::Step(from, step, to));
        for visit in visits.iter().copied().chain(any) {
            match visit {
                Visit::State(state) => steps.extend(self.path(part, allowed, at, state)),
                Visit::Step(from, step, _) => {
                    steps.extend(self.path(part, allowed, at, from));
                    steps.push(step);
                }
            }
            at = match visit {
                Visit::State(state) => state,
                Visit::Step(_, _, to) => to,
            };
        }
        steps.extend(self.path(part, allowed, at, start));
        (start, steps)
    }

    /// A shortest way inside a part.
    fn path(&self, part: &Part, allowed: &dyn Fn(usize, Step) -> bool, from: usize, to: usize) -> Vec<Step> {
        let mut parents: FxHashMap<usize, (usize, Step)> = FxHashMap::default();
        let mut open = VecDeque::from([from]);
        while let Some(state) = open.pop_front().filter(|_| from != to && !parents.contains_key(&to)) {
            for &(step, next) in &self.after[state] {
                if part.contains(&next)
                    && allowed(state, step)
                    && next != from
                    && !parents.contains_key(&next)
                {
                    parents.insert(next, (state, step));
                    open.push_back(next);
                }
            }
        }
        let (mut at, mut steps) = (to, Vec::new());
        while at != from {
            let (parent, step) = parents[&at];
            steps.push(step);
            at = parent;
        }
        steps.reverse();
        steps
    }
}

/// Whether every fair run satisfies the property.
pub fn fair(machine: Machine<'_>, property: &FairKind, limits: Scope) -> Answer {
    FairGraph::new(machine, limits).map_or(Answer::Inconclusive, |graph| graph.answer(property))
}
