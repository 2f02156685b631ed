//! Robustness as something that helps the engines for reachability.
//!
//! *Guarantee.* What is robust and safe under SC is safe ("Lazy TSO reachability", Lemma 5, and the same for PSO: point 6 of the suite for robustness).

use palisade_engine::{
    Budget, Engine, Outcome, Progress, ROBUST, Reason, Robustness, RobustnessEngine, Suitability, Task,
    Verdict,
};
use palisade_memory::Model;
use palisade_robust::Attacks;

/// Finds out beside other engines whether the program is robust. It has no answer of its own.
pub(crate) struct Scout;

impl Engine for Scout {
    fn name(&self) -> &'static str {
        Attacks.name()
    }

    fn suits(&self, task: &Task<'_>) -> Suitability {
        if task.model == Model::Sc { Suitability::No } else { Suitability::Reluctant }
    }

    fn check(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> Outcome {
        let found = Attacks.check(task, budget, progress);
        let told = |text: &str| Reason::Unsupported(text.to_owned());
        let reason = match found.answer {
            Robustness::Robust if budget.learn_robust() => told(ROBUST),
            Robustness::Robust => told("robust"),
            Robustness::NotRobust(_) => told("not robust"),
            Robustness::Unknown(reason) => reason,
        };
        Outcome { verdict: Verdict::Unknown(reason), engine: self.name(), stats: found.stats }
    }
}
