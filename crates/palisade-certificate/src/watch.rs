//! How far a check is: it asks its budget whether to go on, and tells where it is.

use crate::Refusal;
use palisade_engine::{Budget, Progress, Stats};
use std::cell::Cell;

/// The budget of a check, and who is told about it.
pub(crate) struct Watch<'w> {
    budget: &'w Budget,
    progress: &'w dyn Progress,
    elements: Cell<u64>,
}

impl<'w> Watch<'w> {
    pub fn new(budget: &'w Budget, progress: &'w dyn Progress) -> Watch<'w> {
        Watch { budget, progress, elements: Cell::new(0) }
    }

    /// Another element, or state, is looked at.
    pub fn element(&self) -> Result<(), Refusal> {
        self.elements.set(self.elements.get() + 1);
        self.budget.check_work(self.elements.get()).map_err(Refusal::Exhausted)
    }

    /// Whether to go on, given the bytes in use. Cheap enough to be asked now and then.
    pub fn look(&self, bytes: u64) -> Result<(), Refusal> {
        let mut stats = Stats::new();
        stats.set("elements", self.elements.get());
        self.progress.tell("checking the proof", &stats);
        self.budget.check(bytes).map_err(Refusal::Exhausted)
    }
}
