//! How engines report what they are doing.

use crate::Stats;
use std::fmt;

/// An observer of running engines. It is called often, so implementations must be cheap. They may drop
/// reports.
pub trait Progress: Send + Sync {
    /// Reports what is being tried, and the current values of the counters.
    fn report(&self, doing: &str, stats: &Stats);

    /// The same if several engines run side by side. The engine's index and its name come first.
    fn report_lane(&self, _lane: usize, _engine: &str, doing: &str, stats: &Stats) {
        self.report(doing, stats);
    }

    /// The engine with this index has finished. It may be asked again later.
    fn ended(&self, _lane: usize) {}

    /// Records something worth keeping for users who want to know how the answer was found.
    fn note(&self, _note: &Note) {}
}

impl fmt::Debug for dyn Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// Something that an engine did during its work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// A description in words.
    pub text: String,
    /// The places in the source that it is about.
    pub places: Vec<palisade_base::Span>,
}

/// Drops all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: &str, _: &Stats) {}
}
