//! Progress of a check: whether its limits allow it to continue, and reports to the observer.

use crate::Refusal;
use palisade_engine::{Limits, Stats};
use std::cell::Cell;

/// The limits of a check, and its progress.
pub(crate) struct Watch<'w> {
    limits: &'w Limits,
    elements: Cell<u64>,
}

impl<'w> Watch<'w> {
    pub fn new(limits: &'w Limits) -> Watch<'w> {
        Watch { limits, elements: Cell::new(0) }
    }

    /// Counts another element or state.
    pub fn element(&self) -> Result<(), Refusal> {
        self.elements.set(self.elements.get() + 1);
        self.limits.check_work(self.elements.get()).map_err(Refusal::Exhausted)
    }

    /// Reports progress and decides whether to continue, given the bytes in use. It is cheap enough to be
    /// called from time to time.
    pub fn look(&self, bytes: u64) -> Result<(), Refusal> {
        let mut stats = Stats::new();
        stats.set("elements", self.elements.get());
        self.limits.report("checking the proof", &stats);
        self.limits.check(bytes).map_err(Refusal::Exhausted)
    }
}
