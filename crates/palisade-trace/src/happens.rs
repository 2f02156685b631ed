//! Happens-before of a run, and the cycle that shows that no sequentially consistent run has the same.
//!
//! *Source.* Shasha and Snir, "Efficient and correct execution of parallel programs that share memory"
//! (TOPLAS 1988); for store buffers section 4 of Bouajjani, Derevenetc, Meyer et al., "Lazy TSO reachability"
//! (FASE 2015).
//!
//! *Definition.* The **events** of a run are its loads, stores and locked instructions, its atomic sections
//! (one event each, whatever they access) and its `spawn`s. A store is one event, issued when it enters the
//! buffer, taking effect when it reaches memory. They are related by
//! - *program order*: the order in which a thread issues them; a `spawn` comes before the events of the
//!   thread it starts;
//! - *reads-from*: from the store whose value a load returns to the load;
//! - *coherence*: the order in which stores to one cell reach memory;
//! - *from-read*: from a load to the stores that follow, in coherence, the one it reads from.
//!
//! A store still **pending** at the end of the run comes after all stores to its cell that have reached
//! memory; pending stores of different threads are not ordered. So the relations of a run are among those of
//! every longer run, and a cycle stays one however the run goes on. A load or locked instruction that ends
//! the run with a fault is an event that reads: what it read decided what happened.
//!
//! *Theorem.* A complete run (all buffers empty, no section open) has the events and relations of some
//! sequentially consistent run iff they have no cycle: an order of the events that respects them is such a
//! run. A program is **robust** under a model iff no run of it has a cycle. Robust programs reach the same
//! verdicts as under SC: a bad state's run can be completed, or cut down to what happens before the fault,
//! without a cycle.
//!
//! *Differences from the paper.* Its conflict order leaves out from-read edges of loads served by the own
//! buffer; with them (as in the work it rests on) the relations of equivalent runs are the same. They never
//! decide whether there is a cycle. Locked instructions, sections and `spawn` are ours.

use crate::{Replay, ReplayError, Run, take};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Effect, Machine, State};
use palisade_program::running::{CellId, Instr, ThreadId};
use std::collections::VecDeque;

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Whose.
    pub thread: ThreadId,
    /// The steps that issue it, counted from 0: one, or those of an atomic section that access memory or
    /// start threads.
    pub steps: Vec<usize>,
    /// The steps with which its store reached memory from the buffer, if it went through the buffer and did
    /// so.
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
    /// The first reads what the second (or one before it) overwrites.
    FromRead,
}

impl Relation {
    /// `program order`, `starts`, `reads from`, `coherence` or `from-read`.
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
    /// The later one.
    pub to: usize,
    /// How.
    pub relation: Relation,
    /// The cell it is about; none for program order and `starts`.
    pub cell: Option<CellId>,
}

/// Events and how they are related. Of each relation the arrows between neighbours are kept; the rest follows
/// by transitivity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HappensBefore {
    /// In the order in which they are issued.
    pub events: Vec<Event>,
    /// Sorted.
    pub arrows: Vec<Arrow>,
}

/// A cycle: every arrow ends where the next begins, the last one where the first begins. No two neighbours
/// are both in program order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// Its arrows, of which there are at least two.
    pub arrows: Vec<Arrow>,
}

/// A run that no sequentially consistent run is like.
#[derive(Clone, Debug)]
pub struct Violating {
    /// The run, taken on the machine.
    pub replay: Replay,
    /// Its events and how they are related.
    pub happens_before: HappensBefore,
    /// A shortest cycle among them.
    pub cycle: Cycle,
}

/// Why a run does not show that a program is not robust.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotViolating {
    /// It is no run.
    #[error(transparent)]
    NoRun(#[from] ReplayError),
    /// Some sequentially consistent run is like it.
    #[error("happens-before of the run has no cycle")]
    NoCycle,
}

/// Takes a run on the machine and checks that its happens-before has a cycle.
pub fn violating(machine: Machine<'_>, run: &Run) -> Result<Violating, NotViolating> {
    let replay = take(machine, run)?;
    let happens_before = HappensBefore::of(machine, run, &replay);
    let cycle = happens_before.cycle().ok_or(NotViolating::NoCycle)?;
    Ok(Violating { replay, happens_before, cycle })
}

/// The run up to the step that first makes happens-before have a cycle. A run that has none, or is none,
/// comes back as it is.
pub fn until_cycle(machine: Machine<'_>, mut run: Run) -> Run {
    let has_cycle = |steps: usize| {
        let prefix = Run { memory: run.memory.clone(), steps: run.steps[..steps].to_vec() };
        violating(machine, &prefix).is_ok()
    };
    // A cycle stays one in every longer run, so the prefixes with one are an upper part.
    let all: Vec<usize> = (0..=run.steps.len()).collect();
    let least = all.partition_point(|&steps| !has_cycle(steps));
    run.steps.truncate(least);
    run
}

/// Where a load finds its value, or where a store stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    Initial,
    By(usize),
}

struct Building<'a> {
    machine: Machine<'a>,
    events: Vec<Event>,
    arrows: Vec<Arrow>,
    /// Per thread its last event.
    last: Vec<Option<usize>>,
    /// Per cell the stores that have reached memory, in this order.
    order: Vec<Vec<usize>>,
    /// Per thread its pending stores, oldest first; `None` for barriers.
    pending: Vec<Vec<Option<(CellId, usize)>>>,
    /// Loads: who reads what from whom.
    reads: Vec<(usize, CellId, Store)>,
    /// The event of the open section.
    section: Option<usize>,
}

impl HappensBefore {
    /// The happens-before of a run that was taken.
    pub fn of(machine: Machine<'_>, run: &Run, replay: &Replay) -> HappensBefore {
        let threads = replay.states.last().map_or(0, |state| state.threads.len());
        let mut building = Building {
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
            limits::go_on();
            let (before, after) = (&replay.states[index], &replay.states[index + 1]);
            building.take(index, step.thread, step.action, replay.effects[index], before, after);
        }
        building.finish()
    }

    /// A shortest cycle: the fewest arrows, a stretch of program order counting as one. The first of them in
    /// the order of events.
    pub fn cycle(&self) -> Option<Cycle> {
        let on_cycle = self.strongly_connected();
        let mut next: Vec<Vec<Arrow>> = vec![Vec::new(); self.events.len()];
        for arrow in self.arrows.iter().filter(|arrow| on_cycle[arrow.from] && on_cycle[arrow.to]) {
            if arrow.relation != Relation::ProgramOrder {
                next[arrow.from].push(*arrow);
            }
        }
        // Program order in one leap, to the events from which the thread is left.
        let leaves: Vec<usize> = (0..self.events.len()).filter(|&event| !next[event].is_empty()).collect();
        let cycle_events: Vec<usize> = (0..self.events.len()).filter(|&event| on_cycle[event]).collect();
        for &from in &cycle_events {
            limits::go_on();
            let leaps =
                leaves.iter().filter(|&&to| to > from && self.events[to].thread == self.events[from].thread);
            next[from].extend(leaps.map(|&to| Arrow {
                from,
                to,
                relation: Relation::ProgramOrder,
                cell: None,
            }));
        }
        let shortest = cycle_events.iter().filter_map(|&start| shortest_to(&next, start, start));
        shortest.min_by_key(|arrows| (arrows.len(), arrows[0].from)).map(|arrows| Cycle { arrows })
    }

    /// For each event whether it is on some cycle, or between two.
    fn strongly_connected(&self) -> Vec<bool> {
        // Take away, again and again, events that nothing comes before or that come before nothing.
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
                limits::go_on();
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

/// A shortest way from one event to another, by at least one arrow.
fn shortest_to(next: &[Vec<Arrow>], start: usize, goal: usize) -> Option<Vec<Arrow>> {
    let mut by: Vec<Option<Arrow>> = vec![None; next.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(event) = queue.pop_front() {
        limits::go_on();
        for &arrow in &next[event] {
            if by[arrow.to].is_some() {
                continue;
            }
            by[arrow.to] = Some(arrow);
            if arrow.to == goal {
                let mut arrows = vec![arrow];
                while arrows[arrows.len() - 1].from != start {
                    arrows.push(by[arrows[arrows.len() - 1].from].expect("the way leads back to the start"));
                }
                arrows.reverse();
                return Some(arrows);
            }
            queue.push_back(arrow.to);
        }
    }
    None
}

impl Building<'_> {
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
                let Action::Update { position } = action else { unreachable!("only updates update") };
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
        // A section may write a cell twice: to others it is one store.
        if order.last() != Some(&event) {
            order.push(event);
        }
    }

    /// The cell that a load or locked instruction which ended in a fault has read.
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
            limits::go_on();
            let cell = CellId::from_index(index);
            order.windows(2).for_each(|pair| arrow(pair[0], pair[1], Relation::Coherence, cell));
            if let Some(&last) = order.last() {
                pending_of[index].iter().for_each(|&to| arrow(last, to, Relation::Coherence, cell));
            }
        }
        for &(event, cell, store) in &self.reads {
            limits::go_on();
            let order = &self.order[cell.index()];
            let place = match store {
                Store::Initial => Some(0),
                Store::By(from) => {
                    arrow(from, event, Relation::ReadsFrom, cell);
                    order.iter().position(|&other| other == from).map(|position| position + 1)
                }
            };
            // A load that was served by a store still pending: nothing is known to overwrite it.
            let Some(mut place) = place else { continue };
            // A locked instruction or section that overwrites what it has read: others overwrite what it
            // wrote.
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
