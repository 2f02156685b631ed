//! The interface of engines.

use crate::{Analysis, Limits, Outcome, Proof, Question, Safety};

/// A decision procedure or bug finder for one kind of question.
pub trait Engine<Q: Question = Safety>: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Whether it is worth trying, and how certain it is to decide the question.
    fn suits(&self, analysis: &Analysis<'_>) -> Suitability;

    /// Answers within the limits. Every violation comes with the witness that the [question](Question)
    /// requires, whatever semantics the engine searches.
    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<Q>;

    /// Which proofs it can give that the property holds.
    fn proofs(&self) -> Proofs {
        Proofs::None
    }

    /// Answers within the limits, with a proof if the property holds and the engine can give one.
    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome<Q>, Option<Proof>) {
        (self.check(analysis, limits), None)
    }
}

/// The evidence that an engine can give for its positive answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Proofs {
    /// Nothing.
    None,
    /// That visiting all states is enough. The checker visits them again, without reductions.
    ByVisitingAll,
    /// An argument that is checked step by step.
    Argued,
}

/// How well an engine suits a question.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Suitability {
    /// It does not apply.
    No,
    /// It applies, but other engines suit such programs better. `auto` runs it last, and gives it less time.
    Reluctant,
    /// It may find a violation, and it may decide the question.
    Tries,
    /// It decides the question, given enough time and memory.
    Decides,
}
