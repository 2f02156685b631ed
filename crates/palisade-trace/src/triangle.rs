//! Triangular races at the end of a run under SC, checked step by step.
//!
//! *Source.* Owens, "Reasoning about the implementation of concurrency abstractions on x86-TSO" (ECOOP 2010).
//! In a triangular race, a thread loads a cell while another thread stores to it. The loading thread has
//! stored to a different cell before, and has not waited since then for that store to reach memory.

use crate::{Replay, ReplayError, Run, take};
use palisade_base::limits;
use palisade_memory::{Action, Effect, Machine, State};
use palisade_program::running::{CellId, Instr, ThreadId};

/// A triangular race. Steps are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triangle {
    /// The earlier store, which nothing has waited for.
    pub store: usize,
    /// The later load of the same thread, or its `spawn`.
    pub load: usize,
    /// The other thread's store to the loaded cell; `None` for a `spawn`.
    pub rival: Option<usize>,
}

/// Why a run does not show a triangular race.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoTriangle {
    /// It is not a run under SC.
    #[error(transparent)]
    NoRun(#[from] ReplayError),
    /// It does not end with a triangular race.
    #[error("the run does not end with a triangular race")]
    NoRace,
}

/// Replays a run on the machine, which must have no buffers, and checks that it ends with a triangular race.
pub fn triangle(machine: Machine<'_>, run: &Run) -> Result<(Replay, Triangle), NoTriangle> {
    let replay = take(machine, run)?;
    let checker = Checker { machine, run, replay: &replay };
    let found = checker.find().ok_or(NoTriangle::NoRace)?;
    Ok((replay, found))
}

/// Whether the other thread can have other accesses before its store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Earlier {
    Allowed,
    None,
}

struct Checker<'c> {
    machine: Machine<'c>,
    run: &'c Run,
    replay: &'c Replay,
}

impl Checker<'_> {
    fn find(&self) -> Option<Triangle> {
        let last = self.run.steps.len().checked_sub(1)?;
        if let Effect::Spawned(_) = self.replay.effects[last] {
            let store = self.waiting_store(last, None)?;
            return Some(Triangle { store, load: last, rival: None });
        }
        // The other thread's steps: all those at the end, or all but the load.
        let thread = self.run.steps[last].thread;
        let first = (0..=last).rev().take_while(|&step| self.run.steps[step].thread == thread).last()?;
        let loads_last = self.loaded(last).and_then(|cell| {
            let (from, to) = self.others_before(last)?;
            Some((last, cell, from, to, Earlier::Allowed))
        });
        let loads_first = first
            .checked_sub(1)
            .and_then(|load| Some((load, self.loaded(load)?, first, last, Earlier::None)));
        [loads_first, loads_last].into_iter().flatten().find_map(|(load, cell, from, to, before)| {
            let store = self.waiting_store(load, Some(cell))?;
            let rival = self.only_store(from, to, cell, before)?;
            Some(Triangle { store, load, rival: Some(rival) })
        })
    }

    /// The steps of one other thread directly before a step.
    fn others_before(&self, step: usize) -> Option<(usize, usize)> {
        limits::checkpoint();
        let to = step.checked_sub(1)?;
        let thread = self.run.steps[to].thread;
        let own = self.run.steps[step].thread;
        let from = (0..=to).rev().take_while(|&step| self.run.steps[step].thread == thread).last()?;
        (thread != own).then_some((from, to))
    }

    /// The cell that a step reads with a plain load, whether or not that causes a fault.
    fn loaded(&self, step: usize) -> Option<CellId> {
        let before = &self.replay.states[step];
        match self.replay.effects[step] {
            _ if before.section.is_some() => None,
            Effect::ReadMemory(cell, _) => Some(cell),
            Effect::Faulted(_) => {
                let Action::Execute { edge, .. } = self.run.steps[step].action else { return None };
                let top = before.threads[self.run.steps[step].thread].top();
                match &self.machine.system.codes[top.code].edges()[edge].instr {
                    Instr::Load(_, address) => self.machine.resolve(address, &top.registers).ok(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The newest store of the step's thread before the step, if nothing has waited for it and it goes to a
    /// different cell than the given one.
    fn waiting_store(&self, step: usize, cell: Option<CellId>) -> Option<usize> {
        let thread = self.run.steps[step].thread;
        for earlier in (0..step).rev().filter(|&earlier| self.run.steps[earlier].thread == thread) {
            limits::checkpoint();
            match self.replay.effects[earlier] {
                Effect::Fenced | Effect::Locked { .. } => return None,
                _ if self.in_section(thread, earlier) => return None,
                Effect::Wrote(stored, _) => return (Some(stored) != cell).then_some(earlier),
                _ => {}
            }
        }
        None
    }

    fn in_section(&self, thread: ThreadId, step: usize) -> bool {
        let holds = |state: &State| state.section.is_some_and(|section| section.holder == thread);
        holds(&self.replay.states[step]) || holds(&self.replay.states[step + 1])
    }

    /// The step that stores to the cell, if these steps end with a single access or section that does so and
    /// `before` permits the steps before it.
    fn only_store(&self, from: usize, to: usize, cell: CellId, before: Earlier) -> Option<usize> {
        let thread = self.run.steps[from].thread;
        let plain = |step: &usize| {
            !self.in_section(thread, *step) && !matches!(self.replay.effects[*step], Effect::Local)
        };
        let stores = |step: &usize| match self.replay.effects[*step] {
            Effect::Wrote(stored, _) => stored == cell,
            Effect::Locked { cell: stored, wrote, .. } => stored == cell && wrote.is_some(),
            _ => false,
        };
        let rival = (from..=to).rev().find(stores)?;
        let begin = match self.in_section(thread, rival) {
            true => (from..=rival).rev().take_while(|&step| self.in_section(thread, step)).last()?,
            false => rival,
        };
        let accesses_between = (begin..=to).filter(plain).count();
        let earlier = (from..begin).filter(|step| plain(step)).count();
        ((earlier == 0 || before == Earlier::Allowed) && accesses_between <= 1).then_some(rival)
    }
}
