//! Brute-force robustness: every run of the machine with its happens-before, nothing left out.
//!
//! *Definition.* That of `palisade_trace::HappensBefore`. It is implemented here a second time, straight from
//! the definition and with all pairs of each relation, so that the checker of runs has something to be
//! compared with:
//! - A program is robust iff no run has a cycle.
//! - A pending store comes after all stores to its cell that have reached memory. Pending stores of different
//!   threads are not ordered.
//! - An atomic section is one event.
//! - A load that faults has read.
//! - Blocked threads simply have no further events. Their runs count like all others, even if no thread can
//!   continue.
//!
//! *Guarantee.* An answer other than [`Answer::Inconclusive`] is correct if `palisade-memory` is. Two runs
//! that lead to the same state with the same events and relations have the same future, so one of them is
//! enough.
//!
//! *Cost.* A state and a trace per pair of both. It is meant for programs with a dozen accesses. Programs
//! with loops have infinitely many traces.

use palisade_base::Id;
use palisade_engine::{Analysis, Engine, Limits, Outcome, Robustness, Suitability, Task, Verdict};
use palisade_memory::{Action, Effect, Machine, Pending, State, Step};
use palisade_program::running::{CellId, Instr, ThreadId};
use palisade_trace::Run;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::rc::Rc;

/// The answer of brute force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// No run has a cycle.
    Robust,
    /// A shortest run with a cycle.
    NotRobust(Run),
    /// There are too many runs to decide.
    Inconclusive,
}

impl Answer {
    /// `robust`, `not-robust` or `inconclusive`.
    pub fn word(&self) -> &'static str {
        match self {
            Answer::Robust => "robust",
            Answer::NotRobust(_) => "not-robust",
            Answer::Inconclusive => "inconclusive",
        }
    }
}

/// An event, by thread and position in its program order.
type EventId = (u32, u32);

/// An access of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Access {
    /// Reads a cell from this event, or its initial value.
    Reads(CellId, Option<EventId>),
    /// Writes a cell.
    Writes(CellId),
    /// Starts a thread.
    Starts(ThreadId),
}

/// Events, and what determines their relations.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Trace {
    /// The events of each thread, and the accesses of each event.
    threads: Vec<Vec<Vec<Access>>>,
    /// For each cell, the stores that have reached memory, in that order.
    order: Vec<Vec<EventId>>,
    /// For each thread, the events of its pending stores; barriers are `None`.
    pending: Vec<Vec<Option<(CellId, EventId)>>>,
    /// Whether the last event of a thread is a section that is still open.
    open: bool,
}

/// Checks whether a program is robust, examining at most this many pairs of state and trace.
pub fn check(machine: Machine<'_>, most: usize) -> Answer {
    let mut search = Search::start(machine);
    while let Some(index) = search.queue.pop_front() {
        let pair = search.found[index].clone();
        let (state, trace) = &*pair;
        for successor in machine.successors(state) {
            let mut next = trace.clone();
            next.take(machine, state, successor.step, successor.effect, &successor.state);
            if search.found.len() >= most {
                return Answer::Inconclusive;
            }
            if let Some(last) = search.add((successor.state, next), Some((index, successor.step)))
                && search.found[last].1.has_cycle()
            {
                return Answer::NotRobust(search.run_to(last));
            }
        }
    }
    Answer::Robust
}

/// The traces of all complete runs, which are those that end with empty buffers and outside sections. `None`
/// if there are too many.
pub fn complete_traces(machine: Machine<'_>, most: usize) -> Option<FxHashSet<Trace>> {
    let mut search = Search::start(machine);
    let mut traces = FxHashSet::default();
    while let Some(index) = search.queue.pop_front() {
        let pair = search.found[index].clone();
        let (state, trace) = &*pair;
        if state.section.is_none() && state.threads.iter().all(|thread| thread.buffer.is_empty()) {
            traces.insert(trace.clone());
        }
        for successor in machine.successors(state) {
            let mut next = trace.clone();
            next.take(machine, state, successor.step, successor.effect, &successor.state);
            search.add((successor.state, next), Some((index, successor.step)));
            if search.found.len() >= most {
                return None;
            }
        }
    }
    Some(traces)
}

struct Search {
    found: Vec<Rc<(State, Trace)>>,
    parents: Vec<Option<(usize, Step)>>,
    known: FxHashSet<Rc<(State, Trace)>>,
    queue: VecDeque<usize>,
}

impl Search {
    fn start(machine: Machine<'_>) -> Search {
        let mut search = Search {
            found: Vec::new(),
            parents: Vec::new(),
            known: FxHashSet::default(),
            queue: VecDeque::new(),
        };
        for state in machine.initial_states() {
            let order = vec![Vec::new(); state.memory.len()];
            search.add((state, Trace { order, ..Trace::default() }), None);
        }
        search
    }

    /// Adds a pair. Returns its number if it is new.
    fn add(&mut self, pair: (State, Trace), parent: Option<(usize, Step)>) -> Option<usize> {
        let pair = Rc::new(pair);
        if !self.known.insert(pair.clone()) {
            return None;
        }
        let index = self.found.len();
        self.found.push(pair);
        self.parents.push(parent);
        self.queue.push_back(index);
        Some(index)
    }

    fn run_to(&self, last: usize) -> Run {
        let mut steps = Vec::new();
        let mut at = last;
        while let Some((parent, step)) = self.parents[at] {
            steps.push(step);
            at = parent;
        }
        steps.reverse();
        Run { memory: self.found[at].0.memory.as_slice().to_vec(), steps }
    }
}

impl Trace {
    /// Adds the effect of a step.
    pub fn take(&mut self, machine: Machine<'_>, before: &State, step: Step, effect: Effect, after: &State) {
        self.threads.resize(after.threads.len(), Vec::new());
        self.pending.resize(after.threads.len(), Vec::new());
        let inside = before.section.is_some();
        self.open &= inside;
        let thread = step.thread.index();
        let newest = |trace: &Trace, cell| {
            let found = trace.pending[thread].iter().rev().flatten().find(|(other, _)| *other == cell);
            found.map(|&(_, event)| event)
        };
        match effect {
            Effect::ReadMemory(cell, _) | Effect::ReadBuffer(cell, _) => {
                let source = newest(self, cell).or(self.order[cell.index()].last().copied());
                self.access(thread, inside, Access::Reads(cell, source));
            }
            Effect::Buffered(cell, _) => {
                let event = self.access(thread, inside, Access::Writes(cell));
                self.pending[thread].push(Some((cell, event)));
            }
            Effect::Wrote(cell, _) => {
                let event = self.access(thread, inside, Access::Writes(cell));
                self.order[cell.index()].push(event);
            }
            Effect::Locked { cell, wrote, .. } => {
                let source = self.order[cell.index()].last().copied();
                let event = self.access(thread, inside, Access::Reads(cell, source));
                if wrote.is_some() {
                    self.threads[thread][event.1 as usize].push(Access::Writes(cell));
                    self.order[cell.index()].push(event);
                }
            }
            Effect::Updated(cell, _) => {
                let Action::Update { position } = step.action else { unreachable!("only updates update") };
                let (_, event) = self.pending[thread].remove(position).expect("a store reaches memory");
                self.order[cell.index()].push(event);
            }
            Effect::Spawned(child) => {
                self.access(thread, inside, Access::Starts(child));
            }
            Effect::Faulted(_) => {
                let Action::Execute { edge, .. } = step.action else { return };
                let top = before.threads[step.thread].top();
                let instr = &machine.system.codes[top.code].edges()[edge].instr;
                if let Instr::Load(_, address) | Instr::Locked { address, .. } = instr
                    && let Ok(cell) = machine.resolve(address, &top.registers)
                {
                    let source = newest(self, cell).or(self.order[cell.index()].last().copied());
                    self.access(thread, inside, Access::Reads(cell, source));
                }
            }
            Effect::Local | Effect::Fenced | Effect::StoreFenced => {}
        }
        // Barriers come and go with the buffer itself.
        let mut stores = self.pending[thread].iter().flatten().copied().collect::<VecDeque<_>>();
        let entry = |pending: &Pending| match pending {
            Pending::Store(..) => stores.pop_front(),
            Pending::Barrier => None,
        };
        self.pending[thread] = after.threads[step.thread].buffer.iter().map(entry).collect();
    }

    /// Adds an access as a separate event, or to the open section.
    fn access(&mut self, thread: usize, inside: bool, access: Access) -> EventId {
        let events = &mut self.threads[thread];
        if !(inside && self.open) {
            events.push(Vec::new());
            self.open = inside;
        }
        let index = events.len() - 1;
        events[index].push(access);
        (thread as u32, index as u32)
    }

    /// Whether the events form a cycle, with all pairs of each relation, by Kahn's algorithm.
    pub fn has_cycle(&self) -> bool {
        let first: Vec<usize> = self
            .threads
            .iter()
            .scan(0, |next, events| {
                let first = *next;
                *next += events.len();
                Some(first)
            })
            .collect();
        let count: usize = self.threads.iter().map(Vec::len).sum();
        let number = |(thread, index): EventId| first[thread as usize] + index as usize;
        let mut before = vec![false; count * count];
        let mut arrow = |from: usize, to: usize| {
            if from != to {
                before[from * count + to] = true;
            }
        };
        // Coherence, with the pending stores after it. Entries of one cell are ordered unless both are
        // pending and belong to different threads.
        let follows = |cell: usize, event: EventId| -> Vec<EventId> {
            let order = &self.order[cell];
            let pending = self.pending.iter().flatten().flatten().filter(|(other, _)| other.index() == cell);
            let reached = order.iter().rposition(|&other| other == event);
            match reached {
                Some(place) => order[place + 1..].iter().copied().chain(pending.map(|&(_, e)| e)).collect(),
                None => Vec::new(),
            }
        };
        for (thread, events) in self.threads.iter().enumerate() {
            for (index, accesses) in events.iter().enumerate() {
                let event = (thread as u32, index as u32);
                (index + 1..events.len()).for_each(|later| arrow(number(event), first[thread] + later));
                for access in accesses {
                    match *access {
                        Access::Starts(child) => {
                            let events = self.threads[child.index()].len();
                            (0..events).for_each(|later| arrow(number(event), first[child.index()] + later));
                        }
                        Access::Writes(cell) => {
                            let later = follows(cell.index(), event).into_iter();
                            later.for_each(|later| arrow(number(event), number(later)));
                        }
                        Access::Reads(cell, Some(source)) => {
                            arrow(number(source), number(event));
                            let later = follows(cell.index(), source).into_iter();
                            later.for_each(|later| arrow(number(event), number(later)));
                        }
                        Access::Reads(cell, None) => {
                            let pending = self.pending.iter().flatten().flatten();
                            let pending =
                                pending.filter(|(other, _)| *other == cell).map(|&(_, event)| event);
                            let later = self.order[cell.index()].iter().copied().chain(pending);
                            later.for_each(|later| arrow(number(event), number(later)));
                        }
                    }
                }
            }
        }
        let mut left: Vec<usize> = (0..count).collect();
        loop {
            let free =
                left.iter().position(|&event| left.iter().all(|&other| !before[other * count + event]));
            match free {
                Some(position) => _ = left.swap_remove(position),
                None => return !left.is_empty(),
            }
        }
    }
}

/// Brute force as an engine, for tests of code that builds on robustness.
pub struct Brute {
    /// The maximum number of pairs of state and trace to examine.
    pub most: usize,
}

impl Engine<Robustness> for Brute {
    fn name(&self) -> &'static str {
        "brute"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        if analysis.task.is_parameterized() { Suitability::No } else { Suitability::Tries }
    }

    fn check(&self, analysis: &Analysis<'_>, _: &Limits) -> Outcome<Robustness> {
        use palisade_engine::{Exhausted, Reason, Stats, Witness};
        let system = analysis.system(1);
        let answer = match check(analysis.machine(&system), self.most) {
            Answer::Robust => Verdict::Holds,
            Answer::NotRobust(run) => {
                Verdict::Violated(Witness { instantiation: analysis.instantiation(1), run })
            }
            Answer::Inconclusive => Verdict::Unknown(Reason::Exhausted(Exhausted::Work(self.most as u64))),
        };
        Outcome::new("brute", answer, Stats::new())
    }
}

/// An engine's answer without limits, for tests.
pub fn ask(engine: &dyn Engine<Robustness>, task: &Task<'_>) -> Verdict {
    engine.check(&task.analysis(), &Limits::unlimited(1)).verdict
}
