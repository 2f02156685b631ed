//! How far a check is: it asks its limits whether to go on, and tells where it is.

use crate::Refusal;
use palisade_engine::{Limits, Stats};
use std::cell::Cell;

/// The limits of a check, and who is told about it.
pub(crate) struct Watch<'w> {
    limits: &'w Limits,
    elements: Cell<u64>,
}

impl<'w> Watch<'w> {
    pub fn new(limits: &'w Limits) -> Watch<'w> {
        Watch { limits, elements: Cell::new(0) }
    }

    /// Another element, or state, is looked at.
    pub fn element(&self) -> Result<(), Refusal> {
        self.elements.set(self.elements.get() + 1);
        self.limits.check_work(self.elements.get()).map_err(Refusal::Exhausted)
    }

    /// Whether to go on, given the bytes in use. Cheap enough to be asked now and then.
    pub fn look(&self, bytes: u64) -> Result<(), Refusal> {
        let mut stats = Stats::new();
        stats.set("elements", self.elements.get());
        self.limits.report("checking the proof", &stats);
        self.limits.check(bytes).map_err(Refusal::Exhausted)
    }
}
