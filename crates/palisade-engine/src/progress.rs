//! How engines report what they are doing.

use crate::Stats;
use std::fmt;

/// An observer of engines at work. Called often: implementations must be cheap and may drop reports.
pub trait Progress: Send + Sync {
    /// What is being tried and what the counters say now.
    fn report(&self, doing: &str, stats: &Stats);

    /// The same where several engines work side by side: the engine's index and its name come first.
    fn report_lane(&self, _lane: usize, _engine: &str, doing: &str, stats: &Stats) {
        self.report(doing, stats);
    }

    /// The engine with this index has finished. It may be asked again later.
    fn ended(&self, _lane: usize) {}

    /// Something worth keeping for people who want to know how the answer was found.
    fn note(&self, _note: &Note) {}
}

impl fmt::Debug for dyn Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// Something an engine did on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// What, in words.
    pub text: String,
    /// The places in the source it is about.
    pub places: Vec<palisade_base::Span>,
}

/// Drops all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: &str, _: &Stats) {}
}
