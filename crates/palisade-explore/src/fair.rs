//! Fair runs that go on forever (`--engine explicit`): `terminates` and `leaves`.
//!
//! *Problem.* Is there a fair run that violates a property of `System::fair`? `palisade_memory` defines fair
//! runs, in `fair.rs`.
//!
//! *Source.* Emerson and Lei, "Modalities for model checking", Science of Computer Programming 8, 1987: fair
//! cycles are looked for in strongly connected components. A component that fails a condition of the form "if
//! infinitely often A, then infinitely often B" is searched again without the states of A.
//!
//! *Guarantee.*
//! - Every state of the machine is visited, up to registers that are never read again, and every step is
//!   kept with the thread that takes it. There is no reduction.
//! - Whether a thread can move is decided as on the machine: a thread that wants a longer buffer or a deeper
//!   stack than the search allows can move. So each cycle that is found is fair on the machine.
//! - A run with bounded buffers stays in one component from some point on. If no component has a fair cycle
//!   that violates a property, then no run with such buffers does: "no violation with buffers up to N". If no
//!   thread ever wanted a longer buffer, the answer is exact.
//! - `unsafe` comes with a run that ends with the cycle. A register that is never read again may differ after
//!   the first round. It is the same after all later ones, because everything that is read is the same. So
//!   the cycle begins later if necessary, at the first state that comes again.
//! - Runs in which buffers, stacks or the number of threads grow forever have no cycle and are not found. The
//!   search is cut off somewhere then, and the answer is `unknown`.
//!
//! *Robust programs* without atomic sections, `blocking` domains and started threads are asked under SC
//! instead. Their robustness is that of the program with retries. Why the question under SC is exact, if every
//! run has the happens-before relation of some run under SC:
//! 1. What SC violates, the model violates (`palisade_memory`, `fair.rs`).
//! 2. Let a fair run of the model violate a property. If it stops, all buffers are empty there, SC reaches the
//!    same state, and nothing can move there under SC either.
//! 3. Otherwise, its happens-before relation has no cycle: a cycle has finitely many events, so it would be
//!    one of a finite part of the run. Every event has finitely many direct predecessors, because every store
//!    reaches memory at some time, and only finitely many events come before that. There is no infinite chain
//!    of predecessors either. It would come back to one of the finitely many threads again and again, and
//!    once to a later event of it, because an event has finitely many earlier ones in its thread. That is a
//!    cycle. So every event has finitely many predecessors, and the events can be put in one infinite order.
//! 4. This order is a run under SC in which each thread takes the same steps and reads the same values. So it
//!    violates the property. It is fair: a thread that takes finitely many steps has an empty buffer from some
//!    point on, so whether it can move depends on its registers alone, which are the same. It cannot, or the
//!    given run would ignore it. A thread that only waits from some point on stores nothing, so its buffer is
//!    empty from some point on, and it can execute the same instructions in both runs.
//!
//! *Cost.* One number, one move and one thread per step. Each component is searched again at most once per
//! condition.

use crate::automaton::Move;
use crate::expand::{Expander, Outcome};
use crate::flags::Flags;
use crate::search::{End, Search};
use crate::strong::components;
use palisade_automata::MAX_FRAMES;
use palisade_automata::on_demand::LocalId;
use palisade_base::{Id, limits};
use palisade_memory::{Action, Machine, State, Step};
use palisade_program::running::{CodeId, EdgeId, FairKind, Instr, Location, ThreadId};
use palisade_search::Visited;
use palisade_trace::Run;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Looks for a violation after all states have been visited.
pub(crate) fn judge(search: &mut Search<'_, '_>, visited: &Visited) -> End {
    let limits = search.limits;
    match limits.within(|| judge_within(search, visited)) {
        Ok(end) => end,
        Err(what) => End::Exhausted(what),
    }
}

fn judge_within(search: &Search<'_, '_>, visited: &Visited) -> End {
    let graph = Graph::new(search, visited);
    for property in &search.automaton.machine.machine.system.fair {
        if let Some(lasso) = graph.violation(&property.kind) {
            return End::Run(lasso);
        }
    }
    End::Clean { left_out: search.tally.left_out }
}

/// A step of a thread: where it leads, and the number of its move.
#[derive(Clone, Copy, Debug)]
struct Arrow {
    to: u32,
    mv: u32,
    thread: u32,
}

/// All states, and the steps between them.
struct Graph<'g, 'a> {
    search: &'g Search<'g, 'a>,
    machine: Machine<'a>,
    states: Vec<&'g [u64]>,
    /// Where the steps of each state begin. There is one entry more than there are states.
    first: Vec<usize>,
    arrows: Vec<Arrow>,
    /// For each state, the state before it on a shortest run, and the step from there. Initial states come
    /// from themselves.
    from: Vec<(u32, usize)>,
    depth: Vec<u32>,
}

/// What a cycle has to come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    /// A step of the agent, or a state in which it cannot move.
    Agent(usize),
    /// The thread, which is at this place, executes the instruction or cannot, or it stops waiting.
    Try(usize, CodeId, Location, EdgeId),
}

/// The states and steps among which a cycle is looked for.
struct Part<'p> {
    states: Vec<u32>,
    /// Whether a step stays inside and is allowed.
    has: &'p dyn Fn(u32, &Arrow) -> bool,
}

impl<'g, 'a> Graph<'g, 'a> {
    fn new(search: &'g Search<'g, 'a>, visited: &'g Visited) -> Graph<'g, 'a> {
        let states: Vec<&[u64]> = visited.iter().collect();
        let (mut first, mut arrows) = (vec![0], Vec::new());
        let expander = search.expander();
        for state in &states {
            limits::checkpoint();
            if arrows.len() == arrows.capacity() {
                limits::room_for(2 * size_of::<Arrow>() as u64 * arrows.len() as u64);
            }
            arrows_from(search, &expander, visited, state, &mut arrows);
            first.push(arrows.len());
        }
        limits::room_for(24 * states.len() as u64);
        let mut graph = Graph {
            search,
            machine: search.automaton.machine.machine,
            from: vec![(u32::MAX, 0); states.len()],
            depth: vec![0; states.len()],
            states,
            first,
            arrows,
        };
        graph.measure(visited);
        graph
    }

    /// Finds shortest runs to all states.
    fn measure(&mut self, visited: &Visited) {
        let initial = (0..self.states.len()).filter(|&state| visited.is_initial(visited.nth(state)));
        let mut open: VecDeque<u32> = initial.map(|state| state as u32).collect();
        open.iter().for_each(|&state| self.from[state as usize] = (state, 0));
        while let Some(state) = open.pop_front() {
            limits::checkpoint();
            for step in self.first[state as usize]..self.first[state as usize + 1] {
                let to = self.arrows[step].to;
                if self.from[to as usize].0 == u32::MAX {
                    self.from[to as usize] = (state, step);
                    self.depth[to as usize] = self.depth[state as usize] + 1;
                    open.push_back(to);
                }
            }
        }
    }

    /// A run that violates the property.
    fn violation(&self, property: &FairKind) -> Option<Run> {
        let all = 0..self.states.len() as u32;
        let stops = all.clone().filter(|&state| self.stops(state) && self.is_inside(state, property));
        if let Some(state) = stops.min_by_key(|&state| self.depth[state as usize]) {
            return Some(self.lasso(state, &[]));
        }
        // The part that each state belongs to. 0 means none.
        let mut owner: Vec<u32> = vec![0; self.states.len()];
        let inside: Vec<u32> = all.filter(|&state| self.is_inside(state, property)).collect();
        let mut open = vec![inside];
        let mut parts = 0;
        let mut best: Option<(u32, Vec<u32>)> = None;
        while let Some(states) = open.pop() {
            parts += 1;
            states.iter().for_each(|&state| owner[state as usize] = parts);
            let here = parts;
            let found = components(&states, |state, visit| {
                for arrow in self.arrows(state) {
                    if owner[arrow.to as usize] == here && self.is_allowed(state, arrow, property) {
                        visit(arrow.to);
                    }
                }
            });
            for states in found {
                limits::checkpoint();
                parts += 1;
                states.iter().for_each(|&state| owner[state as usize] = parts);
                let has = |state: u32, arrow: &Arrow| {
                    owner[arrow.to as usize] == parts && self.is_allowed(state, arrow, property)
                };
                let part = Part { states, has: &has };
                match self.failed(&part) {
                    None => {
                        // The cycle that is reached first, and of these the one with the fewest states.
                        let depths = part.states.iter().map(|&state| self.depth[state as usize]);
                        let depth = depths.min().expect("a component has states");
                        let better = best.as_ref().is_none_or(|(least, states)| {
                            (depth, part.states.len()) < (*least, states.len())
                        });
                        if better {
                            best = Some((depth, part.states));
                        }
                    }
                    Some(rest) => open.push(rest),
                }
            }
        }
        let (_, states) = best?;
        parts += 1;
        states.iter().for_each(|&state| owner[state as usize] = parts);
        let has = |state: u32, arrow: &Arrow| {
            owner[arrow.to as usize] == parts && self.is_allowed(state, arrow, property)
        };
        let (start, steps) = self.cycle(&Part { states, has: &has });
        Some(self.lasso(start, &steps))
    }

    fn arrows(&self, state: u32) -> &[Arrow] {
        &self.arrows[self.first[state as usize]..self.first[state as usize + 1]]
    }

    fn local(&self, state: u32, thread: usize) -> LocalId {
        LocalId(self.search.layout.threads[thread].get(self.states[state as usize]))
    }

    fn threads(&self) -> std::ops::Range<usize> {
        0..self.search.layout.threads.len()
    }

    /// Whether a thread can execute an instruction that the search does not follow, because it needs a longer
    /// buffer or a deeper stack than the search allows.
    fn is_cut_off(&self, state: u32, thread: usize) -> bool {
        let local = self.local(state, thread);
        local != LocalId::NONE
            && (self.search.automaton.note(local).cut_off || {
                let (code, location) = self.place(state, thread);
                let mut edges = self.machine.system.codes[code].edges_from(location).map(EdgeId);
                self.search.automaton.policy.too_deep
                    && edges.any(|edge| self.is_not_followed(state, thread, edge))
            })
    }

    /// The same for one instruction.
    fn is_not_followed(&self, state: u32, thread: usize, edge: EdgeId) -> bool {
        let local = self.local(state, thread);
        let thread = &self.search.automaton.local(local).thread;
        match self.machine.system.codes[thread.top().code].edges()[edge].instr {
            Instr::Store(..) | Instr::StoreFence => self.search.automaton.note(local).cut_off,
            Instr::Call { .. } => thread.frames.len() >= MAX_FRAMES,
            _ => false,
        }
    }

    fn holder(&self, state: u32) -> Option<usize> {
        self.threads()
            .find(|&thread| self.search.automaton.note(self.local(state, thread)).flags.has(Flags::ENTERED))
    }

    /// Whether a thread exists, and no section of another thread is open.
    fn is_free(&self, state: u32, thread: usize, holder: Option<usize>) -> bool {
        self.local(state, thread) != LocalId::NONE && holder.is_none_or(|holder| holder == thread)
    }

    /// Whether no thread can move, and there is no fault.
    fn stops(&self, state: u32) -> bool {
        let holder = self.holder(state);
        let wants_more =
            |thread: usize| holder.is_none_or(|holder| holder == thread) && self.is_cut_off(state, thread);
        self.arrows(state).is_empty()
            && !crate::progress::is_over(
                self.search.automaton,
                self.search.layout,
                self.states[state as usize],
            )
            && !self.threads().any(wants_more)
    }

    /// Whether a run may stay in a state and violate the property by that.
    fn is_inside(&self, state: u32, property: &FairKind) -> bool {
        let automaton = &self.search.automaton;
        match property {
            FairKind::Terminates => self.threads().any(|thread| {
                let local = self.local(state, thread);
                local != LocalId::NONE && !automaton.local(local).thread.has_ended(self.machine.system)
            }),
            FairKind::Leaves { thread, stay } => {
                let thread = &automaton.local(self.local(state, thread.index())).thread;
                stay.locations.binary_search(&thread.frames[0].location).is_ok()
            }
        }
    }

    /// Whether a step is one that a run which violates the property may repeat.
    fn is_allowed(&self, state: u32, arrow: &Arrow, property: &FairKind) -> bool {
        let FairKind::Leaves { thread, stay } = property else { return true };
        match self.action(arrow) {
            Action::Execute { edge, .. } if arrow.thread as usize == thread.index() => {
                let local = self.search.automaton.local(self.local(state, thread.index()));
                local.thread.frames.len() > 1 || stay.edges.binary_search(&edge).is_ok()
            }
            _ => true,
        }
    }

    fn action(&self, arrow: &Arrow) -> Action {
        self.search.automaton.numbered(arrow.mv).action
    }

    /// Agents are numbered by thread: the thread itself, then its stores to each cell.
    fn agent(&self, arrow: &Arrow) -> usize {
        let mv: Move = self.search.automaton.numbered(arrow.mv);
        let first = arrow.thread as usize * self.agents_per_thread();
        match mv.action {
            Action::Execute { .. } => first,
            Action::Update { .. } => first + 1 + mv.letter.cell().expect("an update writes a cell").index(),
        }
    }

    fn agents_per_thread(&self) -> usize {
        1 + self.machine.system.cells.len()
    }

    fn can_move(&self, state: u32, agent: usize) -> bool {
        let cut_off = agent.is_multiple_of(self.agents_per_thread())
            && self.is_cut_off(state, agent / self.agents_per_thread());
        cut_off || self.arrows(state).iter().any(|arrow| self.agent(arrow) == agent)
    }

    /// Where a thread is.
    fn place(&self, state: u32, thread: usize) -> (CodeId, Location) {
        let top = self.search.automaton.local(self.local(state, thread)).thread.top();
        (top.code, top.location)
    }

    /// The instruction that a step of a thread executes.
    fn executed(&self, arrow: &Arrow, thread: usize) -> Option<EdgeId> {
        match self.action(arrow) {
            Action::Execute { edge, .. } if arrow.thread as usize == thread => Some(edge),
            _ => None,
        }
    }

    fn is_attempt(&self, code: CodeId, edge: EdgeId) -> bool {
        self.machine.system.codes[code].attempts.binary_search(&edge).is_ok()
    }

    fn can_execute(&self, state: u32, thread: usize, edge: EdgeId) -> bool {
        self.is_not_followed(state, thread, edge)
            || self.arrows(state).iter().any(|arrow| self.executed(arrow, thread) == Some(edge))
    }

    /// If no run that stays in the part and comes to all of it is fair: the states that remain without those
    /// of a condition that fails.
    fn failed(&self, part: &Part<'_>) -> Option<Vec<u32>> {
        let (count, each) = (self.threads().len() * self.agents_per_thread(), self.agents_per_thread());
        let (mut takes, mut rests) = (vec![false; count], vec![false; count]);
        let mut free = vec![false; self.threads().len()];
        // Whether a thread takes a step that is no attempt.
        let mut moves = vec![false; self.threads().len()];
        let mut can = vec![false; count];
        for &state in &part.states {
            limits::checkpoint();
            can.fill(false);
            for arrow in self.arrows(state) {
                let agent = self.agent(arrow);
                can[agent] = true;
                if (part.has)(state, arrow) {
                    takes[agent] = true;
                    let thread = arrow.thread as usize;
                    let (code, _) = self.place(state, thread);
                    let executed = self.executed(arrow, thread);
                    moves[thread] |= executed.is_some_and(|edge| !self.is_attempt(code, edge));
                }
            }
            let holder = self.holder(state);
            for thread in self.threads().filter(|&thread| self.is_free(state, thread, holder)) {
                free[thread] = true;
                can[thread * each] |= self.is_cut_off(state, thread);
                for agent in thread * each..(thread + 1) * each {
                    rests[agent] |= !can[agent];
                }
            }
        }
        let without = |condition: &dyn Fn(u32) -> bool| {
            Some(part.states.iter().copied().filter(|&state| !condition(state)).collect())
        };
        for thread in self.threads().filter(|&thread| free[thread]) {
            if (thread * each..(thread + 1) * each).any(|agent| !takes[agent] && !rests[agent]) {
                return without(&|state| self.is_free(state, thread, self.holder(state)));
            }
            if !moves[thread]
                && takes[thread * each]
                && let Some((code, location)) = self.never_tries(part, thread)
            {
                return without(&|state| {
                    self.is_free(state, thread, self.holder(state))
                        && self.place(state, thread) == (code, location)
                });
            }
        }
        None
    }

    /// A place of a thread that waits in the part, with an instruction that it could always execute there and
    /// never does.
    fn never_tries(&self, part: &Part<'_>, thread: usize) -> Option<(CodeId, Location)> {
        // For each instruction of a choice: whether it is executed, or not possible somewhere.
        let mut choices: FxHashMap<(CodeId, Location, EdgeId), bool> = FxHashMap::default();
        for &state in &part.states {
            limits::checkpoint();
            let (code, location) = self.place(state, thread);
            let edges = self.machine.system.codes[code].edges_from(location);
            if edges.len() < 2 || !self.is_free(state, thread, self.holder(state)) {
                continue;
            }
            for edge in edges.map(EdgeId) {
                let mut arrows = self.arrows(state).iter();
                let tries = arrows
                    .any(|arrow| self.executed(arrow, thread) == Some(edge) && (part.has)(state, arrow));
                *choices.entry((code, location, edge)).or_default() |=
                    tries || !self.can_execute(state, thread, edge);
            }
        }
        let mut failed: Vec<_> = choices.into_iter().filter(|(_, fine)| !fine).map(|(at, _)| at).collect();
        failed.sort_unstable();
        failed.first().map(|&(code, location, _)| (code, location))
    }

    /// A fair cycle in a part that does not fail.
    fn cycle(&self, part: &Part<'_>) -> (u32, Vec<usize>) {
        let first = part.states.iter().copied().min_by_key(|&state| (self.depth[state as usize], state));
        let start = first.expect("a component has states");
        let each = self.agents_per_thread();
        let is_there = |thread: usize| self.local(start, thread) != LocalId::NONE;
        let mut needs: Vec<Need> = Vec::new();
        for thread in self.threads().filter(|&thread| is_there(thread)) {
            let mut states = part.states.iter();
            if states.any(|&state| self.is_free(state, thread, self.holder(state))) {
                needs.extend((thread * each..(thread + 1) * each).map(Need::Agent));
            }
        }
        loop {
            let steps = self.round(part, start, &needs);
            let missing = self.threads().find_map(|thread| self.untried(start, &steps, thread));
            match missing {
                Some(need) => {
                    debug_assert!(!needs.contains(&need), "a need that is met is not missing");
                    needs.push(need);
                }
                None => return (start, steps),
            }
        }
    }

    /// A way inside the part from a state back to it that meets all needs, as short as the nearest need next
    /// makes it.
    fn round(&self, part: &Part<'_>, start: u32, needs: &[Need]) -> Vec<usize> {
        let mut open: Vec<Need> = needs.iter().copied().filter(|&need| !self.rests(start, need)).collect();
        let (mut at, mut steps) = (start, Vec::new());
        while !open.is_empty() {
            let way = self.way(part, at, &|state, step, to| {
                open.iter().any(|&need| self.rests(to, need) || self.meets(state, step, need))
            });
            for &step in &way {
                let to = self.arrows[step].to;
                open.retain(|&need| !self.rests(to, need) && !self.meets(at, step, need));
                at = to;
            }
            steps.extend(way);
        }
        if at != start || steps.is_empty() {
            steps.extend(self.way(part, at, &|_, _, to| to == start));
        }
        steps
    }

    /// A shortest way inside the part to a step that is wanted, with that step.
    fn way(&self, part: &Part<'_>, from: u32, wanted: &dyn Fn(u32, usize, u32) -> bool) -> Vec<usize> {
        let mut parents: FxHashMap<u32, (u32, usize)> = FxHashMap::default();
        let mut open = VecDeque::from([from]);
        while let Some(state) = open.pop_front() {
            limits::checkpoint();
            for step in self.first[state as usize]..self.first[state as usize + 1] {
                let arrow = &self.arrows[step];
                if !(part.has)(state, arrow) {
                    continue;
                }
                if wanted(state, step, arrow.to) {
                    let (mut at, mut steps) = (state, vec![step]);
                    while at != from {
                        let (parent, step) = parents[&at];
                        steps.push(step);
                        at = parent;
                    }
                    steps.reverse();
                    return steps;
                }
                if arrow.to != from && !parents.contains_key(&arrow.to) {
                    parents.insert(arrow.to, (state, step));
                    open.push_back(arrow.to);
                }
            }
        }
        panic!("a component that does not fail meets every need");
    }

    /// Whether coming to a state meets a need.
    fn rests(&self, state: u32, need: Need) -> bool {
        match need {
            Need::Agent(agent) => {
                let thread = agent / self.agents_per_thread();
                self.is_free(state, thread, self.holder(state)) && !self.can_move(state, agent)
            }
            Need::Try(thread, code, location, edge) => {
                self.is_free(state, thread, self.holder(state))
                    && self.place(state, thread) == (code, location)
                    && !self.can_execute(state, thread, edge)
            }
        }
    }

    /// Whether a step meets a need.
    fn meets(&self, state: u32, step: usize, need: Need) -> bool {
        let arrow = &self.arrows[step];
        match need {
            Need::Agent(agent) => self.agent(arrow) == agent,
            Need::Try(thread, code, location, edge) => self.executed(arrow, thread).is_some_and(|executed| {
                let place = self.place(state, thread);
                (place, executed) == ((code, location), edge) || !self.is_attempt(place.0, executed)
            }),
        }
    }

    /// What a thread that only waits in a cycle has not tried.
    fn untried(&self, start: u32, steps: &[usize], thread: usize) -> Option<Need> {
        let sources = std::iter::once(start).chain(steps.iter().map(|&step| self.arrows[step].to));
        let states: Vec<u32> = sources.take(steps.len()).collect();
        let mut executed = Vec::new();
        for (&state, &step) in states.iter().zip(steps) {
            if let Some(edge) = self.executed(&self.arrows[step], thread) {
                let (code, location) = self.place(state, thread);
                if !self.is_attempt(code, edge) {
                    return None;
                }
                executed.push((code, location, edge));
            }
        }
        for &(code, location, _) in &executed {
            for edge in self.machine.system.codes[code].edges_from(location).map(EdgeId) {
                let need = Need::Try(thread, code, location, edge);
                if !executed.contains(&(code, location, edge))
                    && !states.iter().any(|&state| self.rests(state, need))
                {
                    return Some(need);
                }
            }
        }
        None
    }

    /// The run to a state, followed by the cycle.
    fn lasso(&self, start: u32, cycle: &[usize]) -> Run {
        let (mut at, mut stem) = (start, Vec::new());
        while self.from[at as usize].0 != at {
            let (parent, step) = self.from[at as usize];
            stem.push(step);
            at = parent;
        }
        stem.reverse();
        let automaton = &self.search.automaton;
        let value = |cell| {
            let code = self.search.layout.cells[cell].get(self.states[at as usize]);
            automaton.values.value(cell, code)
        };
        let memory = self.machine.system.cells.ids().map(value).collect();
        let to_step = |&step: &usize| Step {
            thread: ThreadId::from_index(self.arrows[step].thread as usize),
            action: self.action(&self.arrows[step]),
        };
        let mut run = Run { memory, steps: stem.iter().map(to_step).collect() };
        let cycle: Vec<Step> = cycle.iter().map(to_step).collect();
        let state = self.machine.initial_state(&run.memory).expect("the run begins with an initial state");
        let state = self.after(state, &run.steps);
        // The first state that comes again after one round.
        let (mut early, mut late) = (state.clone(), self.after(state, &cycle));
        let mut put_off = 0;
        while early != late {
            assert!(put_off < cycle.len(), "registers differ after the first round only");
            let step = &cycle[put_off..=put_off];
            (early, late) = (self.after(early, step), self.after(late, step));
            put_off += 1;
        }
        run.steps.extend(cycle.iter().chain(&cycle[..put_off]));
        run
    }

    fn after(&self, mut state: State, steps: &[Step]) -> State {
        for &step in steps {
            limits::checkpoint();
            (state, _) = self.machine.step(&state, step).expect("the search takes steps of the machine");
        }
        state
    }
}

/// Appends the steps from a packed state.
fn arrows_from(
    search: &Search<'_, '_>,
    expander: &Expander<'_, '_>,
    visited: &Visited,
    state: &[u64],
    arrows: &mut Vec<Arrow>,
) {
    if crate::progress::is_over(search.automaton, search.layout, state) {
        return;
    }
    let local = |thread: usize| LocalId(search.layout.threads[thread].get(state));
    let all = 0..search.layout.threads.len();
    let holder = all.clone().find(|&thread| search.automaton.note(local(thread)).flags.has(Flags::ENTERED));
    for thread in all.filter(|&thread| holder.is_none_or(|holder| holder == thread)) {
        for mv in expander.moves(local(thread)) {
            let Outcome::Targets(targets) = expander.outcome(state, mv, &mut Vec::new()) else {
                panic!("the search has worked out all moves")
            };
            for target in targets {
                let mut next = state.to_vec();
                search.layout.take(&mut next, thread, mv.letter, target);
                if let Some(child) = target.child() {
                    assert!(
                        expander.place_child(&mut next, child),
                        "the search has found room for all threads"
                    );
                }
                let to = visited.index_of(&next).expect("the search has visited all states");
                arrows.push(Arrow { to: to as u32, mv: mv.number(), thread: thread as u32 });
            }
        }
    }
}
