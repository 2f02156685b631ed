//! Who judges programs with fences: the engines for safety, or those for robustness.

use crate::{CheckError, CheckOptions, RobustError, RobustOptions, check, robust};
use palisade_engine::{Budget, Progress, Robustness, Verdict};
use palisade_fences::{Judgement, Oracle, Verdict as Judged};
use palisade_memory::{Machine, State};
use palisade_program::running::System;
use palisade_program::written::Program;
use palisade_trace::{Run, replay, violating};

/// What fences are for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Goal {
    /// No run breaks a property.
    #[default]
    Safety,
    /// Every run is like a sequentially consistent one.
    Robustness,
}

impl Goal {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Safety => "safety",
            Goal::Robustness => "robustness",
        }
    }
}

/// The engines as oracles.
pub(super) struct Engines<'a> {
    pub(super) goal: Goal,
    pub(super) options: &'a CheckOptions,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OracleError {
    /// A check for safety failed.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A check for robustness failed.
    #[error(transparent)]
    Robust(#[from] RobustError),
}

impl Oracle for Engines<'_> {
    type Error = OracleError;

    fn judge(
        &self,
        program: &Program,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Judgement, OracleError> {
        match self.goal {
            Goal::Safety => {
                let outcome = check(program, self.options, budget, progress)?.outcome;
                let verdict = match outcome.verdict {
                    Verdict::Safe => Judged::Right,
                    Verdict::Unsafe(witness) => Judged::Wrong(witness),
                    Verdict::Unknown(reason) => Judged::Unknown(reason),
                };
                Ok(Judgement { verdict, engine: outcome.engine, stats: outcome.stats })
            }
            Goal::Robustness => {
                let CheckOptions { model, interlocked, threads, engine, options, .. } = self.options.clone();
                let options = RobustOptions { model, interlocked, threads, engine, options };
                let outcome = robust(program, &options, budget, progress)?.outcome;
                let verdict = match outcome.answer {
                    Robustness::Robust => Judged::Right,
                    Robustness::NotRobust(witness) => Judged::Wrong(witness),
                    Robustness::Unknown(reason) => Judged::Unknown(reason),
                };
                Ok(Judgement { verdict, engine: outcome.engine, stats: outcome.stats })
            }
        }
    }

    fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        Machine { system, model: self.options.model, interlocked: self.options.interlocked }
    }

    fn shows(&self, machine: Machine<'_>, run: &Run) -> bool {
        match self.goal {
            Goal::Safety => replay(machine, run).is_ok(),
            Goal::Robustness => violating(machine, run).is_ok(),
        }
    }

    fn is_bad(&self, machine: Machine<'_>, state: &State) -> bool {
        self.goal == Goal::Safety && machine.violation(state).is_some()
    }
}
