//! Robustness as an aid to engines for other questions.
//!
//! *Guarantee.* A program that is robust, and safe under SC, is safe. For TSO this is Lemma 5 of "Lazy TSO
//! reachability". The same holds for PSO; see point 6 of the robustness suite. For deadlocks and goals, the
//! argument is in `palisade-explore`.

use palisade_engine::{
    Analysis, Engine, Limits, Outcome, Question, Reason, Robustness, Suitability, Verdict,
};
use palisade_memory::Model;
use palisade_robust::Attacks;

/// Finds out whether the program is robust while other engines run. It has no answer of its own.
pub(crate) struct Scout;

impl<Q: Question> Engine<Q> for Scout {
    fn name(&self) -> &'static str {
        Engine::<Robustness>::name(&Attacks)
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        if analysis.task.model == Model::Sc { Suitability::No } else { Suitability::Reluctant }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<Q> {
        let found: Outcome<Robustness> = Attacks.check(analysis, limits);
        let reason = match found.verdict {
            Verdict::Holds if analysis.facts().learn_robust() => Reason::Robust,
            Verdict::Holds => Reason::Observed("robust".to_owned()),
            Verdict::Violated(_) => Reason::Observed("not robust".to_owned()),
            Verdict::Unknown(reason) => reason,
        };
        Outcome::new(Engine::<Robustness>::name(&Attacks), Verdict::Unknown(reason), found.stats)
    }
}
