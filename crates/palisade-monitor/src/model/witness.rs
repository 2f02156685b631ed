//! From a violation that a monitor reports on a sequentially consistent execution to a run of the
//! store-buffer machine whose happens-before has a cycle.
//!
//! *Source.* The proofs of Theorems 3 and 4 of Burnim, Sen and Stergiou (TACAS 2011; Figures 9 and 10). Take
//! the events that happen before `eᵢ` in their order. Let stores wait in their buffers for as long as the
//! machine still produces this execution. Then take `eᵢ` while the store `e` is pending. If `eᵢ` stores, its
//! store reaches memory at once.
//!
//! This file does not have to be trusted: its run is taken on the machine of `palisade-memory`, and
//! `palisade-trace` searches for the cycle.

use super::subject::{ExecutedStep, StepEvent};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Effect, Interlocked, Machine, Model, Pending, State, Step};
use palisade_program::Value;
use palisade_program::running::{CellId, ThreadId};
use palisade_trace::Run;

/// Which of a section's other cells it must see unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Those that it accesses before the one that matters. What it does afterwards may depend on
    /// that one.
    Earlier,
    /// All.
    All,
}

/// The run for a violation. `last` is the position of the step of `eᵢ`; `cell` is a cell that it accesses and
/// for which `e` is pending. Returns `None` if the machine refuses the run.
pub fn witness(
    machine: Machine<'_>,
    memory: &[Value],
    taken: &[ExecutedStep],
    (last, cell): (usize, CellId),
    seen: Seen,
) -> Option<Run> {
    let past = past(taken, last);
    let state = machine.initial_state(memory)?;
    let threads = state.threads.ids().map(Some).collect();
    let mut builder = RunBuilder { machine, state, steps: Vec::new(), threads };
    for (index, &position) in past.iter().enumerate() {
        builder.take(&taken[position], needed(taken, &past, last, index))?;
    }
    builder.take_last(&taken[last], cell, seen)?;
    Some(Run { memory: memory.to_vec(), steps: builder.steps })
}

/// The steps that happen before a step, in their order. Happens-before consists of program order, starting of
/// processes, and conflicts between actual accesses.
fn past(taken: &[ExecutedStep], last: usize) -> Vec<usize> {
    let mut is_past = vec![false; last + 1];
    is_past[last] = true;
    for later in (0..=last).rev() {
        limits::checkpoint();
        if !is_past[later] {
            continue;
        }
        let cells = taken[later].cells();
        for earlier in 0..later {
            let conflict = |&(cell, writes): &(CellId, bool)| {
                cells.iter().any(|&(other, also)| other == cell && (writes || also))
            };
            let starts = |(what, _): &(StepEvent, usize)| *what == StepEvent::Spawn(taken[later].process);
            is_past[earlier] |= taken[earlier].process == taken[later].process
                || taken[earlier].events.iter().any(starts)
                || taken[earlier].cells().iter().any(conflict);
        }
    }
    (0..last).filter(|&position| is_past[position]).collect()
}

/// How many machine steps of a past step are needed: all if its process continues, otherwise those up to its
/// access and to the start of processes that continue.
fn needed(taken: &[ExecutedStep], past: &[usize], last: usize, index: usize) -> usize {
    let step = &taken[past[index]];
    let later = || past[index + 1..].iter().chain([&last]).map(|&position| taken[position].process);
    if later().any(|process| process == step.process) {
        return step.steps.len();
    }
    let counts = |(what, after): &(StepEvent, usize)| match what {
        StepEvent::Access(..) | StepEvent::Section(_) => Some(*after),
        StepEvent::Spawn(child) => later().any(|process| process == *child).then_some(*after),
        StepEvent::Fence | StepEvent::StoreFence => None,
    };
    step.events.iter().filter_map(counts).max().unwrap_or(0)
}

struct RunBuilder<'a> {
    machine: Machine<'a>,
    state: State,
    steps: Vec<Step>,
    /// The thread of this run for each process.
    threads: Vec<Option<ThreadId>>,
}

impl RunBuilder<'_> {
    fn step(&mut self, step: Step) -> Option<Effect> {
        let (state, effect) = self.machine.step(&self.state, step).ok()?;
        self.state = state;
        self.steps.push(step);
        Some(effect)
    }

    fn thread(&self, process: usize) -> Option<ThreadId> {
        *self.threads.get(process)?
    }

    /// Takes the first `steps` machine steps of a step of the execution. First drains the stores of other
    /// threads that the step has to see.
    fn take(&mut self, taken: &ExecutedStep, steps: usize) -> Option<()> {
        let thread = self.thread(taken.process)?;
        for (cell, _) in taken.cells() {
            self.drain_others(thread, cell)?;
        }
        self.take_steps(taken, thread, &taken.steps[..steps])
    }

    /// Takes `eᵢ`.
    fn take_last(&mut self, taken: &ExecutedStep, cell: CellId, seen: Seen) -> Option<()> {
        let thread = self.thread(taken.process)?;
        let cells = taken.cells();
        let before = cells.iter().position(|(other, _)| *other == cell).filter(|_| seen == Seen::Earlier);
        for (other, _) in cells[..before.unwrap_or(cells.len())].iter().filter(|(other, _)| *other != cell) {
            self.drain_others(thread, *other)?;
        }
        let steps = match taken.events.first() {
            Some((StepEvent::Access(..) | StepEvent::Section(_), after)) => *after,
            _ => return None,
        };
        // Once a section reads a different value, it may take another path or block.
        let completed = self.take_steps(taken, thread, &taken.steps[..steps]);
        if let Some(attempt) = taken.attempt {
            self.take_steps(taken, thread, &[attempt]);
        } else if !matches!(taken.events.first(), Some((StepEvent::Section(_), _))) {
            completed?;
        }
        if cells.iter().any(|&(other, writes)| other == cell && writes) && self.state.section.is_none() {
            self.drain_to(thread, cell)?;
        }
        Some(())
    }

    fn take_steps(&mut self, taken: &ExecutedStep, thread: ThreadId, steps: &[Step]) -> Option<()> {
        let mut children = taken.events.iter().filter_map(|(what, _)| match what {
            StepEvent::Spawn(child) => Some(*child),
            _ => None,
        });
        for step in steps {
            let step = Step { thread, ..*step };
            let effect = match self.step(step) {
                Some(effect) => effect,
                None => {
                    self.drain_own(thread, step)?;
                    self.step(step)?
                }
            };
            if let Effect::Spawned(child) = effect {
                let process = children.next()?;
                if self.threads.len() <= process {
                    self.threads.resize(process + 1, None);
                }
                self.threads[process] = Some(child);
            }
        }
        Some(())
    }

    /// Drains the stores for which a fence, a locked instruction or a section waits.
    fn drain_own(&mut self, thread: ThreadId, step: Step) -> Option<()> {
        let own_address =
            self.machine.model == Model::Pso && self.machine.interlocked == Interlocked::OwnAddress;
        loop {
            limits::checkpoint();
            let buffer = &self.state.threads[thread].buffer;
            if buffer.is_empty() {
                return Some(());
            }
            let position = match self.locked_cell(thread, step).filter(|_| own_address) {
                None => 0,
                Some(_) if buffer.contains(&Pending::Barrier) => 0,
                Some(cell) => match buffer.iter().position(|entry| is_store_to(entry, cell)) {
                    Some(position) => position,
                    None => return Some(()),
                },
            };
            self.step(Step { thread, action: Action::Update { position } })?;
        }
    }

    fn locked_cell(&self, thread: ThreadId, step: Step) -> Option<CellId> {
        use palisade_program::running::Instr;
        let Action::Execute { edge, .. } = step.action else { return None };
        let top = self.state.threads[thread].top();
        match &self.machine.system.codes[top.code].edges()[edge].instr {
            Instr::Locked { address, .. } => self.machine.resolve(address, &top.registers).ok(),
            _ => None,
        }
    }

    /// Drains the pending stores of other threads to a cell.
    fn drain_others(&mut self, thread: ThreadId, cell: CellId) -> Option<()> {
        for other in self.state.threads.ids().filter(|&other| other != thread) {
            self.drain_to(other, cell)?;
        }
        Some(())
    }

    /// Drains the pending stores of a thread to a cell, and those that must drain before them.
    fn drain_to(&mut self, thread: ThreadId, cell: CellId) -> Option<()> {
        loop {
            limits::checkpoint();
            let buffer = &self.state.threads[thread].buffer;
            let Some(first) = buffer.iter().position(|entry| is_store_to(entry, cell)) else {
                return Some(());
            };
            let waits_for_older =
                self.machine.model != Model::Pso || buffer[..first].contains(&Pending::Barrier);
            let position = if waits_for_older { 0 } else { first };
            self.step(Step { thread, action: Action::Update { position } })?;
        }
    }
}

fn is_store_to(entry: &Pending, cell: CellId) -> bool {
    matches!(entry, Pending::Store(other, _) if other.index() == cell.index())
}
