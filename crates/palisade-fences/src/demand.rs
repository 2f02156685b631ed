//! What a run demands: one of these fences, or the run stays possible.
//!
//! *Argument.* Let `r` be a run of the program with some fences. Fences change nothing but when a step is possible, so `r` without its fence steps is a run of the program without fences. A
//! full fence at a place forbids it only if the process passes the place while stores wait in its buffer; a store-store fence only if a store of after the place, or a locked instruction that
//! waits for its own address only, takes effect while a store of before the place still waits. A set of fences none of which does so leaves the run as it is: so every
//! set that makes the program right has one that does. These are the run's demand. A run with an empty demand is possible whatever fences there are.
//!
//! *When a place is passed.* Steps without memory may as well be taken later, so a process passes a place when it next does something that others can notice; or at the end
//! of the run, if it does nothing any more.
//!
//! *Source.* `Barrier` of Abdulla, Atig, Chen, Leonardsson and Rezine, "Counter-example guided fence insertion under TSO" (TACAS 2012), section 6, which takes the places between a store and a load
//! that overtakes it. A place that is passed with a store pending is between these in any run that is as short as possible, and what is said here also holds of all other runs.

use crate::places::{Marks, PlaceId, Places};
use palisade_memory::{Action, Effect, Machine};
use palisade_program::running::ThreadId;
use palisade_syntax::edit::FenceKind;
use palisade_trace::{Replay, Run, links};
use std::collections::BTreeMap;

/// At one of these places at least this fence, by place.
pub type Demand = Vec<(PlaceId, FenceKind)>;

/// A process passes a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing {
    /// The step.
    pub step: usize,
    /// Who.
    pub thread: ThreadId,
    /// Which place.
    pub place: PlaceId,
}

/// The steps of a run of a marked program that pass a place.
pub fn passings(machine: Machine<'_>, marks: &Marks, run: &Run, replay: &Replay) -> Vec<Passing> {
    let passes = |(step, taken): (usize, &palisade_memory::Step)| {
        let Action::Execute { .. } = taken.action else { return None };
        let top = replay.states[step].threads[taken.thread].top();
        debug_assert!(top.location.0 < machine.system.codes[top.code].location_count() as u32);
        Some(Passing { step, thread: taken.thread, place: marks.at(top.code, top.location)? })
    };
    run.steps.iter().enumerate().filter_map(passes).collect()
}

/// The demand of a run of a marked program.
pub fn demand(places: &Places, machine: Machine<'_>, marks: &Marks, run: &Run, replay: &Replay) -> Demand {
    let links = links(run, replay);
    let mut found: BTreeMap<PlaceId, FenceKind> = BTreeMap::new();
    let mut need = |place: PlaceId, kind: FenceKind| {
        let least = found.entry(place).or_insert(kind);
        *least = (*least).min(kind);
    };
    for Passing { step, thread, place } in passings(machine, marks, run, replay) {
        let noticed = |later: &usize| {
            run.steps[*later].thread == thread
                && matches!(run.steps[*later].action, Action::Execute { .. })
                && replay.effects[*later] != Effect::Local
                && marks.at(top(replay, *later, thread).0, top(replay, *later, thread).1).is_none()
        };
        let at = (step + 1..run.steps.len()).find(noticed).unwrap_or(run.steps.len());
        let pending = replay.states[at].threads[thread].buffer.iter();
        let pending = pending.filter(|entry| matches!(entry, palisade_memory::Pending::Store(..))).count();
        if pending > 0 {
            need(place, FenceKind::Full);
        }
        if !places.places()[place].store_fence {
            continue;
        }
        let crosses = |later: usize| {
            let after = match replay.effects[later] {
                Effect::Updated(..) => links.store_of[later].is_some_and(|store| store > step),
                Effect::Locked { .. } => true,
                _ => false,
            };
            run.steps[later].thread == thread
                && after
                && links.overtakes[later].iter().any(|&older| older < step)
        };
        if (step + 1..run.steps.len()).any(crosses) {
            need(place, FenceKind::StoreStore);
        }
    }
    found.into_iter().collect()
}

fn top(
    replay: &Replay,
    step: usize,
    thread: ThreadId,
) -> (palisade_program::running::CodeId, palisade_program::running::Location) {
    let top = replay.states[step].threads[thread].top();
    (top.code, top.location)
}
