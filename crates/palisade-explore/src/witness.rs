//! From a path of packed states back to a run of the store-buffer machine.
//!
//! The states of a path are normalised (interchangeable threads are sorted), and its steps are collapsed. The
//! path is replayed with every thread tracked individually. Each step is identified as a move of one thread,
//! and unfolded into the machine steps it represents.
//!
//! Where threads with different data are interchangeable, a state of the path is an image of the state of the run
//! ([`crate::symmetry`]). The run takes the image of each step: the corresponding thread makes the move with the same
//! place in its list of moves, and arrives at the target with the same place in its list. Images have the same lists
//! in the same order, because edges, choices and pending stores are in the same order.

use crate::automaton::{Automaton, Target};
use crate::flags::Flags;
use crate::layout::Layout;
use palisade_automata::on_demand::{Access, LocalId, OneWay};
use palisade_automata::{Hold, Schedule};
use palisade_base::{Id, IdVec};
use palisade_memory::{Action, Machine, Step};
use palisade_program::running::{CellId, RoleId, ThreadId};
use palisade_trace::{Run, replay, until_bad};
use std::ops::Range;

/// The run along a path of packed states that begins with an initial state.
///
/// # Panics
/// If the path was not produced by a search with this automaton and layout.
pub(crate) fn unfold(automaton: &mut Automaton<'_>, layout: &Layout, path: &[Vec<u64>]) -> Run {
    let (run, tails) = unfold_with_tails(automaton, layout, path);
    let machine = automaton.machine.machine;
    let short = until_bad(machine, run.clone());
    if replay(machine, &short).is_ok() { short } else { race(machine, run, &tails) }
}

/// The same, including the steps after the first bad state.
pub(crate) fn unfold_all(automaton: &mut Automaton<'_>, layout: &Layout, path: &[Vec<u64>]) -> Run {
    unfold_with_tails(automaton, layout, path).0
}

/// The same, and the last local steps of each thread.
fn unfold_with_tails(
    automaton: &mut Automaton<'_>,
    layout: &Layout,
    path: &[Vec<u64>],
) -> (Run, Vec<Range<usize>>) {
    if layout.symmetric {
        return Images::at_start(automaton, layout, &path[0]).unfold(automaton, layout, path);
    }
    let mut threads = Threads::at_start(automaton, layout, &path[0]);
    let system = automaton.machine.machine.system;
    let memory = system
        .cells
        .ids()
        .map(|cell| automaton.values.value(cell, layout.cells[cell].get(&path[0])))
        .collect();
    let mut steps = Vec::new();
    for (thread, &local) in threads.locals.clone().iter().enumerate() {
        let role = system.instances.as_slice()[thread].role;
        threads.begin(automaton, thread, role, local, &mut steps);
    }
    for pair in path.windows(2) {
        threads.follow(automaton, layout, &pair[0], &pair[1], &mut steps);
    }
    (Run { memory, steps }, threads.tails)
}

/// A run to a data race. The accesses may be in the last local steps of two threads (see
/// [`palisade_automata::run_on`]), so these steps come last, and stop where the thread is about to make its access.
fn race(machine: Machine<'_>, run: Run, tails: &[Range<usize>]) -> Run {
    for (second, tail) in tails.iter().enumerate() {
        for other in &tails[..second] {
            let late = |index: &usize| tail.contains(index) || other.contains(index);
            let early = (0..run.steps.len()).filter(|index| !late(index)).map(|index| run.steps[index]);
            let mut candidate = Run { memory: run.memory.clone(), steps: early.collect() };
            for first in [None].into_iter().chain(run.steps[other.clone()].iter().copied().map(Some)) {
                candidate.steps.extend(first);
                let length = candidate.steps.len();
                for second in [None].into_iter().chain(run.steps[tail.clone()].iter().copied().map(Some)) {
                    candidate.steps.extend(second);
                    if replay(machine, &candidate).is_ok() {
                        return until_bad(machine, candidate);
                    }
                }
                candidate.steps.truncate(length);
            }
        }
    }
    run
}

/// All threads ever started, tracked individually. Threads that left no trace are `NONE`.
struct Threads {
    locals: Vec<LocalId>,
    /// The field of each thread in a packed state. A thread that is `NONE` no longer has a field.
    places: Vec<usize>,
    schedules: Vec<Schedule>,
    /// For each thread, where its last local steps are in the run.
    tails: Vec<Range<usize>>,
    instances: usize,
}

impl Threads {
    fn at_start(automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> Threads {
        let instances = automaton.machine.machine.system.instances.len();
        let locals = (0..instances).map(|thread| layout.thread(state, thread)).collect();
        let places = (0..instances).collect();
        let schedules = vec![Schedule::default(); instances];
        Threads { locals, places, schedules, tails: vec![0..0; instances], instances }
    }

    /// Adds the first local steps of a thread to a run. If there are very many, they are put off to the
    /// thread's next step, which need not come: no one can observe whether they were taken.
    fn begin(
        &mut self,
        automaton: &mut Automaton<'_>,
        thread: usize,
        role: RoleId,
        local: LocalId,
        steps: &mut Vec<Step>,
    ) {
        let stop = automaton.steps_from_start(role, local);
        let put_off = if stop.cut { stop.steps.len() } else { stop.armed };
        self.take(thread, stop.steps, 0, put_off, steps);
    }

    /// Adds the next steps of a thread to a run.
    /// The first `first` of them are not local.
    fn take(
        &mut self,
        thread: usize,
        actions: Vec<Action>,
        first: usize,
        armed: usize,
        steps: &mut Vec<Step>,
    ) {
        let local = actions.len().saturating_sub(armed + first);
        let now = self.schedules[thread].take(actions, armed);
        self.tails[thread] = tail(steps.len(), now.len(), local);
        steps.extend(now.into_iter().map(|action| Step { thread: ThreadId::from_index(thread), action }));
    }

    /// Follows the step from one packed state to the next, and adds the machine steps it represents.
    fn follow(
        &mut self,
        automaton: &mut Automaton<'_>,
        layout: &Layout,
        from: &[u64],
        to: &[u64],
        steps: &mut Vec<Step>,
    ) {
        let holder = self.locals.iter().position(|&local| automaton.note(local).flags.has(Flags::ENTERED));
        for thread in 0..self.locals.len() {
            if holder.is_some_and(|holder| holder != thread) {
                continue;
            }
            let source = self.locals[thread];
            let moves = automaton.moves(source, OneWay).expect("the search expanded this state").to_vec();
            for mv in moves {
                let code = layout.read(from, mv.letter);
                let targets =
                    automaton.outcome(&mv, code, OneWay).map(<[Target]>::to_vec).unwrap_or_default();
                let child = child(automaton, source, mv.action);
                for target in targets {
                    let mut next = self.locals.clone();
                    next[thread] = target.local;
                    let place = self.free_place(&next);
                    if child.is_some() {
                        next.push(target.child);
                    }
                    if self.pack(layout, from, &next, place, mv.letter, &target).as_deref() != Some(to) {
                        continue;
                    }
                    let stop = automaton.steps_after(&mv, code, OneWay, &target);
                    let actions = std::iter::once(mv.action).chain(stop.steps).collect();
                    self.take(thread, actions, 1, stop.armed, steps);
                    if let Some(child) = child {
                        self.places.push(place);
                        self.schedules.push(Schedule::default());
                        self.tails.push(0..0);
                        if let Child::RunsOn(role) = child {
                            self.begin(automaton, next.len() - 1, role, target.child, steps);
                        }
                    }
                    self.locals = next;
                    return;
                }
            }
        }
        panic!("a state of the path is not a successor of the one before it");
    }

    /// The field in which the search puts a started thread: the first one after the initial instances that is
    /// not in use.
    fn free_place(&self, locals: &[LocalId]) -> usize {
        let taken = |place: usize| {
            let mut alive = self.places.iter().zip(locals).skip(self.instances);
            alive.any(|(&own, &local)| own == place && local != LocalId::NONE)
        };
        (self.instances..).find(|&place| !taken(place)).expect("there are finitely many threads")
    }

    /// The packed state with these threads, with a new one in the given field. `None` if they do not fit.
    fn pack(
        &self,
        layout: &Layout,
        from: &[u64],
        threads: &[LocalId],
        new: usize,
        access: Access,
        target: &Target,
    ) -> Option<Vec<u64>> {
        let mut state = from.to_vec();
        if let (Some(code), Some(cell)) = (target.write(), access.cell()) {
            layout.cells[cell].set(&mut state, code);
        }
        layout.threads[self.instances..].iter().for_each(|field| field.set(&mut state, LocalId::NONE.0));
        for (thread, &local) in threads.iter().enumerate() {
            if thread < self.instances || local != LocalId::NONE {
                let place = self.places.get(thread).copied().unwrap_or(new);
                layout.threads.get(place)?.set(&mut state, local.0);
            }
        }
        layout.sort(&mut state);
        Some(state)
    }
}

/// The state of a run, of which the states of a path are images. No thread is started.
struct Images {
    /// For each field of the state of the path, the thread of the run whose image it holds.
    threads: Vec<usize>,
    locals: Vec<LocalId>,
    /// The codes of the values of memory.
    memory: IdVec<CellId, u32>,
    schedules: Vec<Schedule>,
    /// For each thread, where its last local steps are in the run.
    tails: Vec<Range<usize>>,
    steps: Vec<Step>,
}

impl Images {
    fn at_start(automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> Images {
        let threads = layout.threads.len();
        Images {
            threads: (0..threads).collect(),
            locals: (0..threads).map(|thread| layout.thread(state, thread)).collect(),
            memory: automaton.system().cells.ids().map(|cell| layout.cells[cell].get(state)).collect(),
            schedules: vec![Schedule::default(); threads],
            tails: vec![0..0; threads],
            steps: Vec::new(),
        }
    }

    fn unfold(
        mut self,
        automaton: &mut Automaton<'_>,
        layout: &Layout,
        path: &[Vec<u64>],
    ) -> (Run, Vec<Range<usize>>) {
        let system = automaton.machine.machine.system;
        let memory = self.memory.iter_enumerated().map(|(cell, &code)| automaton.values.value(cell, code));
        let memory = memory.collect();
        for thread in 0..self.locals.len() {
            let role = system.instances.as_slice()[thread].role;
            let stop = automaton.steps_from_start(role, self.locals[thread]);
            let put_off = if stop.cut { stop.steps.len() } else { stop.armed };
            self.take(thread, stop.steps, 0, put_off);
        }
        for pair in path.windows(2) {
            self.follow(automaton, layout, &pair[0], &pair[1]);
        }
        (Run { memory, steps: self.steps }, self.tails)
    }

    /// Adds the next steps of a thread to the run. The first `first` of them are not local.
    fn take(&mut self, thread: usize, actions: Vec<Action>, first: usize, armed: usize) {
        let local = actions.len().saturating_sub(armed + first);
        let now = self.schedules[thread].take(actions, armed);
        self.tails[thread] = tail(self.steps.len(), now.len(), local);
        let thread = ThreadId::from_index(thread);
        self.steps.extend(now.into_iter().map(|action| Step { thread, action }));
    }

    /// Follows the step from one state of the path to the next.
    fn follow(&mut self, automaton: &mut Automaton<'_>, layout: &Layout, from: &[u64], to: &[u64]) {
        let locals: Vec<LocalId> =
            (0..layout.threads.len()).map(|field| layout.thread(from, field)).collect();
        let holder = locals.iter().position(|&local| automaton.note(local).flags.has(Flags::ENTERED));
        for field in (0..locals.len()).filter(|&field| holder.is_none_or(|holder| holder == field)) {
            let moves = automaton.moves(locals[field], OneWay).expect("the search expanded this state");
            for (place, mv) in moves.iter().enumerate() {
                let targets = automaton.outcome(mv, layout.read(from, mv.letter), OneWay).unwrap_or_default();
                for (index, target) in targets.iter().enumerate() {
                    let mut state = from.to_vec();
                    layout.take(&mut state, field, mv.letter, target);
                    if let Some(order) = layout.order(automaton, &mut state).filter(|_| state == to) {
                        self.step(automaton, field, place, index);
                        self.threads = order.into_iter().map(|field| self.threads[field]).collect();
                        return;
                    }
                }
            }
        }
        panic!("a state of the path is not a successor of the one before it");
    }

    /// Takes the image of a step of the path.
    fn step(&mut self, automaton: &mut Automaton<'_>, field: usize, place: usize, index: usize) {
        let thread = self.threads[field];
        let mv = automaton.work_out_moves(self.locals[thread], OneWay)[place];
        let code = mv.letter.reads().map_or(0, |cell| self.memory[cell]);
        let target = automaton.work_out(&mv, code, OneWay)[index];
        let stop = automaton.steps_after(&mv, code, OneWay, &target);
        let actions = std::iter::once(mv.action).chain(stop.steps).collect();
        self.take(thread, actions, 1, stop.armed);
        self.locals[thread] = target.local;
        if let (Some(code), Some(cell)) = (target.write(), mv.letter.cell()) {
            self.memory[cell] = code;
        }
    }
}

/// Where the last `local` of `count` steps will be in a run that has `length` steps now.
fn tail(length: usize, count: usize, local: usize) -> Range<usize> {
    let end = length + count;
    end - local.min(count)..end
}

/// A thread that was just started.
#[derive(Clone, Copy)]
enum Child {
    /// It has run on to the point where it waits.
    RunsOn(RoleId),
    /// It is still at its start, since its parent is inside an atomic section.
    Waits,
}

/// The thread that an action starts.
fn child(automaton: &Automaton<'_>, source: LocalId, action: Action) -> Option<Child> {
    let after = automaton.machine.step(automaton.local(source), action, None)?;
    let child = after.child?;
    Some(match after.local.hold {
        Hold::Entered(_) => Child::Waits,
        Hold::Outside | Hold::Armed(_) => Child::RunsOn(child.thread.role),
    })
}
