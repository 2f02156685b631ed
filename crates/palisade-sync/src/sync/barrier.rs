//! Like [`std::sync::Barrier`].

use super::meet;
use crate::object::Object;
use crate::runtime::here;
use crate::runtime::state::{Object as Shared, Wait, touching};
use palisade_dpor::Mode;
use std::panic::Location;

/// Like [`std::sync::Barrier`].
#[derive(Debug)]
pub struct Barrier {
    object: Object,
    inner: std::sync::Barrier,
    threads: usize,
}

/// Whether a thread was the last to arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether it was the last.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// A barrier that opens whenever this many threads have arrived.
    pub fn new(threads: usize) -> Barrier {
        Barrier { object: Object::new(), inner: std::sync::Barrier::new(threads), threads }
    }

    /// Waits for the other threads.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let location = Location::caller();
        let Some(here) = here() else { return BarrierWaitResult(self.inner.wait().is_leader()) };
        let address = self.object.address(&here);
        let footprint = touching(&[(address, 1, Mode::Write)], false);
        let arrived = here.step((location, "wait"), footprint, Wait::No, |state, by| {
            meet(state, &here, by, address);
            let object =
                state.objects.entry(address).or_insert(Shared::Barrier { arrived: 0, generation: 0 });
            let Shared::Barrier { arrived, generation } = object else {
                unreachable!("the object at this address is a barrier")
            };
            let before = *generation;
            *arrived += 1;
            let last = *arrived >= self.threads;
            if last {
                *arrived = 0;
                *generation += 1;
            }
            (last, before)
        });
        let Some((false, before)) = arrived else { return BarrierWaitResult(arrived.is_some()) };
        let footprint = touching(&[(address, 1, Mode::Read)], true);
        here.step((location, "wait (open)"), footprint, Wait::Generation(address, before), |state, by| {
            meet(state, &here, by, address);
        });
        BarrierWaitResult(false)
    }
}
