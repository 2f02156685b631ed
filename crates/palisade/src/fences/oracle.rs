//! The oracles for programs with fences: the engines for safety, or those for robustness.

use crate::check::check_states;
use crate::progress::with_progress;
use crate::{AskError, CheckOptions, Deadlocks, RobustOptions, robust};
use palisade_certificate::can_reach;
use palisade_engine::{Exhausted, Limits, Reason, Stats, Verdict};
use palisade_fences::{Goal, Judgement, Oracle, Shown};
use palisade_memory::{Machine, State, Violation};
use palisade_program::running::System;
use palisade_program::written::Program;
use std::time::Instant;

/// The engines as oracles.
pub(super) struct Engines<'a> {
    pub(super) goal: Goal,
    pub(super) options: &'a CheckOptions,
    /// Why what must stay possible is not decided for programs with fences, if it is not.
    pub(super) undecided: Option<Reason>,
}

impl Oracle for Engines<'_> {
    type Error = AskError;

    fn judge(&self, program: &Program, limits: &Limits) -> Result<Judgement, AskError> {
        match self.goal {
            Goal::Safety => {
                if let Some(why) = &self.undecided {
                    let verdict = Verdict::Unknown(why.clone());
                    return Ok(Judgement {
                        verdict,
                        engine: "auto",
                        stats: Stats::new(),
                        shown: Shown::Missed,
                    });
                }
                let start = Instant::now();
                let mut answer = check_states(program, self.options, limits)?;
                if self.options.deadlocks == Deadlocks::Asked || !program.progress.is_empty() {
                    answer = with_progress(program, self.options, answer, start, limits)?;
                }
                let violation = answer.confirmed.and_then(|confirmed| confirmed.replay.violation);
                let shown = match violation {
                    Some(Violation::Deadlock) => Shown::Deadlock,
                    Some(Violation::Unreachable(goal)) => Shown::OutOfReach(goal),
                    Some(Violation::Forever { .. }) => Shown::Forever,
                    Some(Violation::Fault(..) | Violation::Property(_) | Violation::Race(..)) | None => {
                        Shown::Missed
                    }
                };
                let outcome = answer.outcome;
                Ok(Judgement {
                    verdict: outcome.verdict,
                    engine: outcome.engine,
                    stats: outcome.stats,
                    shown,
                })
            }
            Goal::Robustness => {
                let CheckOptions { model, interlocked, threads, engine, options, .. } = self.options.clone();
                let options = RobustOptions { model, interlocked, threads, engine, options };
                let outcome = robust(program, &options, limits)?.outcome;
                let shown = Shown::Missed;
                Ok(Judgement {
                    verdict: outcome.verdict,
                    engine: outcome.engine,
                    stats: outcome.stats,
                    shown,
                })
            }
        }
    }

    fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        Machine { system, model: self.options.model, interlocked: self.options.interlocked }
    }

    fn goal(&self) -> Goal {
        self.goal
    }

    fn is_out_of_reach(
        &self,
        machine: Machine<'_>,
        state: &State,
        goal: usize,
        limits: &Limits,
    ) -> Result<bool, Exhausted> {
        can_reach(machine, state, &machine.system.goals[goal], limits).map(|can_reach| !can_reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portfolio::ask_all;
    use crate::portfolio::tests::{Broken, broken};
    use crate::question::Wanted;
    use palisade_engine::{Engine, Task};
    use palisade_fences::{Per, Placement, Places, Which, find};
    use palisade_memory::Model;
    use palisade_syntax::{Language, parse};

    /// Asks a broken engine together with one that works.
    struct AsksBroken<'a>(Engines<'a>, Broken);

    impl Oracle for AsksBroken<'_> {
        type Error = AskError;

        fn judge(&self, program: &Program, limits: &Limits) -> Result<Judgement, AskError> {
            let task = Task::new(program, Model::Tso);
            let broken = broken(self.1, 0);
            let engines: [&dyn Engine; 2] = [&broken, &palisade_explore::Explicit];
            let found = ask_all(&|_| engines.to_vec(), &task.analysis(), limits, Wanted::Answer)?;
            unreachable!("there is no verdict: {found:?}")
        }
        fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
            self.0.machine(system)
        }
        fn goal(&self) -> Goal {
            self.0.goal
        }
    }

    #[test]
    fn a_bug_in_an_engine_is_reported_while_fences_are_computed() {
        let text = "shared x, y: 0..1; process P { x = 1; let a = y; } process Q { y = 1; let b = x; }
                    final !(P.a == 0 && Q.b == 0);";
        let source = palisade_base::Source::new("p", text);
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let wanted = palisade_fences::Wanted {
            placement: Placement::default(),
            per: Per::default(),
            store_fences: false,
            can_write: &|_| true,
            stronger: &|_| None,
            allows: &|_| true,
        };
        let places = Places::new(&program, &wanted);
        let options = CheckOptions::default();
        let check = |how: Broken, part: &str| {
            let oracle = AsksBroken(Engines { goal: Goal::Safety, options: &options, undecided: None }, how);
            let found = find(&places, Which::All, &|_, _| 1, &oracle, &Limits::unlimited(1));
            let error = found.expect_err("a bug is not a verdict").to_string();
            assert!(error.contains(part) && error.contains("This is a bug in Palisade"), "{error}");
        };
        check(Broken::NoRun, "a bad state was found, but no run to it");
        check(Broken::Panics, "on purpose");
        check(Broken::FalseRun, "does not replay");
    }
}
