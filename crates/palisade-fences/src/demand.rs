//! The demand of a run: without one of these fences, the run stays possible.
//!
//! *Argument.* Let `r` be a run of the program with some fences. Fences only change when a step is possible,
//! so `r` without its fence steps is a run of the program without fences.
//! - A full fence at a place forbids that run only if the process passes the place while stores are pending
//!   in its buffer.
//! - A store-store fence forbids it only if a store from after the place, or a locked instruction that waits
//!   only for its own address, takes effect while a store from before the place is still pending.
//!
//! If no fence of a set does so, the run stays possible. So every set that makes the program correct contains
//! a fence that does. These fences are the run's demand. A run with an empty demand is possible with any
//! fences.
//!
//! Demands are small, and informative, if stores reach memory early and places are passed late: see
//! `palisade_trace::settle`.
//!
//! *Source.* `Barrier` of Abdulla, Atig, Chen, Leonardsson and Rezine, "Counter-example guided fence
//! insertion under weak memory models" (TACAS 2012), section 6. It takes the places between a store and a
//! load that overtakes it. Here these are the places that are passed while a store is pending, whether or not
//! a load follows.

use crate::access::Role;
use crate::places::{Marks, PlaceId, Places};
use palisade_memory::{Action, Effect};
use palisade_program::running::ThreadId;
use palisade_syntax::edit::FenceKind;
use palisade_trace::{Replay, Run, links};
use std::collections::BTreeMap;

/// One of these places needs at least this fence. Sorted by place.
pub type Demand = Vec<(PlaceId, FenceKind)>;

/// A step at which a process passes a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing {
    /// The index of the step.
    pub step: usize,
    /// The thread that passes.
    pub thread: ThreadId,
    /// The place.
    pub place: PlaceId,
    /// What the place does here.
    pub role: Role,
}

/// The steps of a run of a marked program that pass a place.
pub fn passings(marks: &Marks, run: &Run, replay: &Replay) -> Vec<Passing> {
    let mut found = Vec::new();
    for (step, taken) in run.steps.iter().enumerate() {
        let Action::Execute { .. } = taken.action else { continue };
        let top = replay.states[step].threads[taken.thread].top();
        let there = marks.at(top.code, top.location).iter();
        found.extend(there.map(|&(place, role)| Passing { step, thread: taken.thread, place, role }));
    }
    found
}

/// The demand of a run of a marked program.
pub fn demand(places: &Places, marks: &Marks, run: &Run, replay: &Replay) -> Demand {
    let links = links(run, replay);
    let mut found: BTreeMap<PlaceId, FenceKind> = BTreeMap::new();
    let mut need = |place: PlaceId, kind: FenceKind| {
        let least = found.entry(place).or_insert(kind);
        *least = (*least).min(kind);
    };
    for Passing { step, thread, place, role } in passings(marks, run, replay) {
        let kinds = places.places()[place].kinds();
        // The weakest kind with which the place has an effect here.
        let least = |effect: FenceKind| kinds.iter().copied().find(|&kind| role.effect(kind) >= Some(effect));
        if !replay.states[step].threads[thread].buffer.is_empty()
            && let Some(kind) = least(FenceKind::Full)
        {
            need(place, kind);
        }
        let Some(weak) = least(FenceKind::StoreStore) else { continue };
        if least(FenceKind::Full) == Some(weak) {
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
            need(place, weak);
        }
    }
    found.into_iter().collect()
}
