//! The happens-before relation of a run, and the cycle that shows that no sequentially consistent run has the
//! same relation.
//!
//! *Source.* Shasha and Snir, "Efficient and correct execution of parallel programs that share memory"
//! (TOPLAS 1988). For store buffers: section 4 of Bouajjani, Derevenetc, Meyer et al., "Lazy TSO
//! reachability" (FASE 2015).
//!
//! *Definition.* The **events** of a run are its loads, stores and locked instructions, its atomic sections
//! (one event each, whatever they access) and its `spawn`s. A store is one event. It is issued when it enters
//! the buffer and takes effect when it reaches memory. Events are related by
//! - *program order*: the order in which a thread issues them. A `spawn` comes before the events of the
//!   thread it starts;
//! - *reads-from*: from a store to each load that reads from it;
//! - *coherence*: the order in which stores to one cell reach memory;
//! - *from-read*: from a load to the stores that follow, in coherence, the one it reads from.
//!
//! A store that is still **pending** at the end of the run comes after all stores to its cell that have
//! reached memory. Pending stores of different threads are not ordered. Therefore every longer run has the
//! relations of this run and perhaps more, and a cycle remains a cycle however the run continues. A load or
//! locked instruction that ends the run with a fault is an event that reads, because the value it read caused
//! the fault.
//!
//! *Theorem.* A complete run (all buffers empty, no section open) has the events and relations of some
//! sequentially consistent run iff they have no cycle: any order of the events that respects the relations is
//! such a run. A program is **robust** under a model iff none of its runs has a cycle. A robust program has
//! the same verdicts as under SC: a run to a bad state can be completed, or cut down to what happens before
//! the fault, without a cycle.
//!
//! *Differences from the paper.*
//! - The paper's conflict order leaves out the from-read edges of loads served by the thread's own buffer.
//!   With these edges (as in the work it builds on) equivalent runs have the same relations. They never
//!   decide whether there is a cycle.
//! - Locked instructions, sections and `spawn` are our additions.

use crate::{Replay, ReplayError, Run, take};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Effect, Machine, State};
use palisade_program::running::{CellId, Instr, ThreadId};
use std::collections::VecDeque;

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The thread that issued it.
    pub thread: ThreadId,
    /// The steps that issue it, counted from 0. There is one step, except for an atomic section: there it is
    /// every step that accesses memory or starts a thread.
    pub steps: Vec<usize>,
    /// The steps in which its store moved from the buffer to memory. Empty if it bypassed the buffer or is
    /// still pending.
    pub updates: Vec<usize>,
}

/// How two events are related.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Relation {
    /// The same thread issues them in this order.
    ProgramOrder,
    /// The first starts the thread of the second.
    Starts,
    /// The second returns what the first wrote.
    ReadsFrom,
    /// The first reaches memory before the second.
    Coherence,
    /// The first reads a value that the second, or a store before the second, overwrites.
    FromRead,
}

impl Relation {
    /// `program order`, `starts`, `reads-from`, `coherence` or `from-read`.
    pub fn name(self) -> &'static str {
        match self {
            Relation::ProgramOrder => "program order",
            Relation::Starts => "starts",
            Relation::ReadsFrom => "reads-from",
            Relation::Coherence => "coherence",
            Relation::FromRead => "from-read",
        }
    }
}

/// One pair of a relation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Arrow {
    /// The earlier event, by index.
    pub from: usize,
    /// The later event, by index.
    pub to: usize,
    /// The relation that the pair belongs to.
    pub relation: Relation,
    /// The cell concerned; `None` for program order and `starts`.
    pub cell: Option<CellId>,
}

/// The events of a run and their relations. Only the arrows between neighbours are kept; the rest follow by
/// transitivity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HappensBefore {
    /// The events, in the order in which they are issued.
    pub events: Vec<Event>,
    /// The arrows, sorted.
    pub arrows: Vec<Arrow>,
}

/// A cycle: every arrow ends where the next begins, and the last ends where the first begins. No two
/// consecutive arrows are both program order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// The arrows of the cycle. There are at least two.
    pub arrows: Vec<Arrow>,
}

/// A run whose happens-before relation no sequentially consistent run has.
#[derive(Clone, Debug)]
pub struct Violating {
    /// The run, replayed on the machine.
    pub replay: Replay,
    /// Its events and their relations.
    pub happens_before: HappensBefore,
    /// A shortest cycle among them.
    pub cycle: Cycle,
}

/// Why a run does not show that the program is not robust.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotViolating {
    /// It is not a run of the program.
    #[error(transparent)]
    NoRun(#[from] ReplayError),
    /// Some sequentially consistent run has the same happens-before relation.
    #[error("the happens-before relation of the run has no cycle")]
    NoCycle,
}

/// Replays a run and checks that its happens-before relation has a cycle.
pub fn violating(machine: Machine<'_>, run: &Run) -> Result<Violating, NotViolating> {
    let replay = take(machine, run)?;
    let happens_before = HappensBefore::of(machine, run, &replay);
    let cycle = happens_before.cycle().ok_or(NotViolating::NoCycle)?;
    Ok(Violating { replay, happens_before, cycle })
}

/// The run up to the step that first creates a cycle in happens-before. A run without a cycle, or one that
/// cannot be replayed, is returned unchanged.
pub fn until_cycle(machine: Machine<'_>, mut run: Run) -> Run {
    let has_cycle = |steps: usize| {
        let prefix = Run { memory: run.memory.clone(), steps: run.steps[..steps].to_vec() };
        violating(machine, &prefix).is_ok()
    };
    // A cycle remains one in every longer run, so the prefixes with a cycle are upward closed.
    let all: Vec<usize> = (0..=run.steps.len()).collect();
    let shortest = all.partition_point(|&steps| !has_cycle(steps));
    run.steps.truncate(shortest);
    run
}

/// The store that a load reads from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    Initial,
    By(usize),
}

struct Builder<'a> {
    machine: Machine<'a>,
    events: Vec<Event>,
    arrows: Vec<Arrow>,
    /// The last event of each thread.
    last: Vec<Option<usize>>,
    /// For each cell, the stores that have reached memory, in that order.
    order: Vec<Vec<usize>>,
    /// For each thread, its pending stores, oldest first; `None` for barriers.
    pending: Vec<Vec<Option<(CellId, usize)>>>,
    /// For each load: its event, the cell, and the store that it reads from.
    reads: Vec<(usize, CellId, Store)>,
    /// The event of the open section, if there is one.
    section: Option<usize>,
}

impl HappensBefore {
    /// The happens-before relation of a replayed run.
    pub fn of(machine: Machine<'_>, run: &Run, replay: &Replay) -> HappensBefore {
        let threads = replay.states.last().map_or(0, |state| state.threads.len());
        let mut builder = Builder {
            machine,
            events: Vec::new(),
            arrows: Vec::new(),
            last: vec![None; threads],
            order: vec![Vec::new(); machine.system.cells.len()],
            pending: vec![Vec::new(); threads],
            reads: Vec::new(),
            section: None,
        };
        for (index, step) in run.steps.iter().enumerate() {
            limits::checkpoint();
            let (before, after) = (&replay.states[index], &replay.states[index + 1]);
            builder.take(index, step.thread, step.action, replay.effects[index], before, after);
        }
        builder.finish()
    }

    /// A shortest cycle: one with the fewest arrows, where consecutive arrows in program order count as one.
    /// Ties go to the first cycle in the order of events.
    pub fn cycle(&self) -> Option<Cycle> {
        let on_cycle = self.on_or_between_cycles();
        let mut next: Vec<Vec<Arrow>> = vec![Vec::new(); self.events.len()];
        for arrow in self.arrows.iter().filter(|arrow| on_cycle[arrow.from] && on_cycle[arrow.to]) {
            if arrow.relation != Relation::ProgramOrder {
                next[arrow.from].push(*arrow);
            }
        }
        // Follow program order in one step, to the events from which an arrow leaves the thread.
        let leaves: Vec<usize> = (0..self.events.len()).filter(|&event| !next[event].is_empty()).collect();
        let cycle_events: Vec<usize> = (0..self.events.len()).filter(|&event| on_cycle[event]).collect();
        for &from in &cycle_events {
            limits::checkpoint();
            let jumps =
                leaves.iter().filter(|&&to| to > from && self.events[to].thread == self.events[from].thread);
            next[from].extend(jumps.map(|&to| Arrow {
                from,
                to,
                relation: Relation::ProgramOrder,
                cell: None,
            }));
        }
        let shortest = cycle_events.iter().filter_map(|&start| shortest_to(&next, start, start));
        shortest.min_by_key(|arrows| (arrows.len(), arrows[0].from)).map(|arrows| Cycle { arrows })
    }

    /// For each event, whether it is on a cycle or on a path between two cycles.
    fn on_or_between_cycles(&self) -> Vec<bool> {
        // Repeatedly remove events without predecessors and events without successors.
        let mut alive = vec![true; self.events.len()];
        for forward in [true, false] {
            let mut count = vec![0usize; self.events.len()];
            let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.events.len()];
            for arrow in self.arrows.iter().filter(|arrow| alive[arrow.from] && alive[arrow.to]) {
                let (from, to) = if forward { (arrow.from, arrow.to) } else { (arrow.to, arrow.from) };
                next[from].push(to);
                count[to] += 1;
            }
            let mut free: Vec<usize> =
                (0..self.events.len()).filter(|&event| alive[event] && count[event] == 0).collect();
            while let Some(event) = free.pop() {
                limits::checkpoint();
                alive[event] = false;
                for &to in &next[event] {
                    count[to] -= 1;
                    if count[to] == 0 {
                        free.push(to);
                    }
                }
            }
        }
        alive
    }
}

/// A shortest path from one event to another, with at least one arrow.
fn shortest_to(next: &[Vec<Arrow>], start: usize, goal: usize) -> Option<Vec<Arrow>> {
    let mut by: Vec<Option<Arrow>> = vec![None; next.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(event) = queue.pop_front() {
        limits::checkpoint();
        for &arrow in &next[event] {
            if by[arrow.to].is_some() {
                continue;
            }
            by[arrow.to] = Some(arrow);
            if arrow.to == goal {
                let mut arrows = vec![arrow];
                while arrows[arrows.len() - 1].from != start {
                    arrows.push(by[arrows[arrows.len() - 1].from].expect("the path leads back to the start"));
                }
                arrows.reverse();
                return Some(arrows);
            }
            queue.push_back(arrow.to);
        }
    }
    None
}

impl Builder<'_> {
    fn take(
        &mut self,
        index: usize,
        thread: ThreadId,
        action: Action,
        effect: Effect,
        before: &State,
        after: &State,
    ) {
        let inside = before.section.is_some();
        if !inside {
            self.section = None;
        }
        match effect {
            Effect::ReadMemory(cell, _) => {
                let event = self.event(index, thread, inside);
                self.reads_memory(event, cell);
            }
            Effect::ReadBuffer(cell, _) => {
                let event = self.event(index, thread, inside);
                let newest = self.newest_pending(thread, cell).expect("the buffer holds the store");
                self.reads.push((event, cell, Store::By(newest)));
            }
            Effect::Buffered(cell, _) => {
                let event = self.event(index, thread, inside);
                self.pending[thread.index()].push(Some((cell, event)));
            }
            Effect::Wrote(cell, _) => {
                let event = self.event(index, thread, inside);
                self.writes(event, cell);
            }
            Effect::Locked { cell, wrote, .. } => {
                let event = self.event(index, thread, inside);
                self.reads_memory(event, cell);
                if wrote.is_some() {
                    self.writes(event, cell);
                }
            }
            Effect::Updated(cell, _) => {
                let Action::Update { position } = action else {
                    unreachable!("only an update has the effect `Updated`")
                };
                let buffer = &mut self.pending[thread.index()];
                let (_, event) = buffer.remove(position).expect("barriers do not reach memory");
                let barriers = buffer.iter().take_while(|entry| entry.is_none()).count();
                buffer.drain(..barriers);
                self.events[event].updates.push(index);
                self.writes(event, cell);
            }
            Effect::StoreFenced => {
                let entries = |state: &State| state.threads[thread].buffer.len();
                if entries(after) > entries(before) {
                    self.pending[thread.index()].push(None);
                }
            }
            Effect::Spawned(child) => {
                let event = self.event(index, thread, inside);
                // The child's first event comes after this one; see `event`.
                self.last[child.index()] = Some(event);
            }
            Effect::Faulted(_) => {
                if let Some(cell) = self.faulting_read(thread, action, before) {
                    let event = self.event(index, thread, inside);
                    match self.newest_pending(thread, cell) {
                        Some(newest) => self.reads.push((event, cell, Store::By(newest))),
                        None => self.reads_memory(event, cell),
                    }
                }
            }
            Effect::Local | Effect::Fenced => {}
        }
        debug_assert_eq!(self.pending[thread.index()].len(), after.threads[thread].buffer.len());
    }

    /// The event that a step belongs to: a new one, or that of the open section.
    fn event(&mut self, step: usize, thread: ThreadId, inside: bool) -> usize {
        if let Some(event) = self.section.filter(|_| inside) {
            self.events[event].steps.push(step);
            return event;
        }
        let event = self.events.len();
        self.events.push(Event { thread, steps: vec![step], updates: Vec::new() });
        if inside {
            self.section = Some(event);
        }
        if let Some(last) = self.last[thread.index()].replace(event) {
            let own = self.events[last].thread == thread;
            let relation = if own { Relation::ProgramOrder } else { Relation::Starts };
            self.arrows.push(Arrow { from: last, to: event, relation, cell: None });
        }
        event
    }

    fn newest_pending(&self, thread: ThreadId, cell: CellId) -> Option<usize> {
        let buffer = self.pending[thread.index()].iter().rev().flatten();
        buffer.clone().find(|(other, _)| *other == cell).map(|&(_, event)| event)
    }

    fn reads_memory(&mut self, event: usize, cell: CellId) {
        let store = self.order[cell.index()].last().map_or(Store::Initial, |&store| Store::By(store));
        self.reads.push((event, cell, store));
    }

    fn writes(&mut self, event: usize, cell: CellId) {
        let order = &mut self.order[cell.index()];
        // A section can write a cell twice. To other threads it is one store.
        if order.last() != Some(&event) {
            order.push(event);
        }
    }

    /// The cell read by a load or locked instruction that ended in a fault.
    fn faulting_read(&self, thread: ThreadId, action: Action, before: &State) -> Option<CellId> {
        let Action::Execute { edge, .. } = action else { return None };
        let top = before.threads[thread].top();
        match &self.machine.system.codes[top.code].edges()[edge].instr {
            Instr::Load(_, address) | Instr::Locked { address, .. } => {
                self.machine.resolve(address, &top.registers).ok()
            }
            _ => None,
        }
    }

    fn finish(mut self) -> HappensBefore {
        let pending_of: Vec<Vec<usize>> = self
            .machine
            .system
            .cells
            .ids()
            .map(|cell| {
                let entries = self.pending.iter().flatten().flatten();
                entries.filter(|(other, _)| *other == cell).map(|&(_, event)| event).collect()
            })
            .collect();
        let mut found = Vec::new();
        let mut arrow = |from, to, relation, cell| {
            if from != to {
                found.push(Arrow { from, to, relation, cell: Some(cell) });
            }
        };
        for (index, order) in self.order.iter().enumerate() {
            limits::checkpoint();
            let cell = CellId::from_index(index);
            order.windows(2).for_each(|pair| arrow(pair[0], pair[1], Relation::Coherence, cell));
            if let Some(&last) = order.last() {
                pending_of[index].iter().for_each(|&to| arrow(last, to, Relation::Coherence, cell));
            }
        }
        for &(event, cell, store) in &self.reads {
            limits::checkpoint();
            let order = &self.order[cell.index()];
            let place = match store {
                Store::Initial => Some(0),
                Store::By(from) => {
                    arrow(from, event, Relation::ReadsFrom, cell);
                    order.iter().position(|&other| other == from).map(|position| position + 1)
                }
            };
            // The load reads from a store that is still pending. Nothing is known to overwrite that store.
            let Some(mut place) = place else { continue };
            // A locked instruction or section overwrites the value it read itself. Later stores overwrite
            // what it wrote.
            while order.get(place) == Some(&event) {
                place += 1;
            }
            match order.get(place) {
                Some(&to) => arrow(event, to, Relation::FromRead, cell),
                None => {
                    pending_of[cell.index()].iter().for_each(|&to| arrow(event, to, Relation::FromRead, cell))
                }
            }
        }
        self.arrows.append(&mut found);
        self.arrows.sort_unstable();
        self.arrows.dedup();
        HappensBefore { events: self.events, arrows: self.arrows }
    }
}
