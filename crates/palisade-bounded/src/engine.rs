//! The engines `rounds` and `age`: translate, ask an engine for SC, translate its run back.
//!
//! *Guarantee.*
//! - `unsafe` comes with a run of the program on the store-buffer machine.
//! - `unknown: safe up to K rounds` (or store age K) is exact: no run within the bound is bad.
//! - `safe` is the answer if the bound is [enough](crate::enough).

use crate::back::back;
use crate::enough;
use crate::translate::{Bounded, translate};
use palisade_engine::{
    Analysis, Bound, Engine, IDENTITIES, Limits, Outcome, Reason, Stats, Suitability, Task, Verdict, Witness,
};
use palisade_memory::Model;
use palisade_program::lower;
use palisade_program::running::System;

/// The greatest bound tried when the bound grows automatically.
const MAX_BOUND: u32 = 64;

/// Bounded rounds.
#[derive(Clone, Copy)]
pub struct Rounds {
    /// The engine that checks translated programs under SC.
    pub sc: &'static dyn Engine,
    /// The engine that checks recursive translated programs, within the rounds given by `Options::rounds`.
    pub recursive: &'static dyn Engine,
}

/// Bounded store age.
#[derive(Clone, Copy)]
pub struct Age {
    /// The engine that checks translated programs under SC.
    pub sc: &'static dyn Engine,
}

impl Rounds {
    fn is_recursive(&self, analysis: &Analysis<'_>) -> bool {
        self.recursive.suits(&analysis.under(Model::Sc)) >= Suitability::Tries
    }
}

impl Engine for Rounds {
    fn name(&self) -> &'static str {
        "rounds"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        match analysis.task.model {
            Model::Tso if analysis.task.program.chosen_address().is_some() => Suitability::No,
            Model::Tso if analysis.structure().has_plain => Suitability::No,
            Model::Tso if analysis.task.program.has_open_identities() => Suitability::No,
            Model::Tso if self.is_recursive(analysis) => Suitability::Tries,
            Model::Tso => Suitability::Reluctant,
            Model::Sc | Model::Pso => Suitability::No,
        }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        let sc = if self.is_recursive(analysis) { self.recursive } else { self.sc };
        let series =
            Series { name: self.name(), sc, analysis, bounded: Bounded::Rounds, reason: Reason::Rounds };
        series.outcome(analysis.task.options.rounds, 1, enough::rounds, limits)
    }
}

impl Engine for Age {
    fn name(&self) -> &'static str {
        "age"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        // Recursion is left to `rounds`, which decides stacks of any height.
        let suits = analysis.task.model == Model::Tso
            && !analysis.structure().is_recursive
            && analysis.task.program.chosen_address().is_none()
            && !analysis.task.program.has_open_identities()
            && !analysis.structure().has_plain;
        if suits { Suitability::Reluctant } else { Suitability::No }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        let series = Series {
            name: self.name(),
            sc: self.sc,
            analysis,
            bounded: Bounded::Age,
            reason: Reason::StoreAge,
        };
        series.outcome(analysis.task.options.age, 0, enough::age, limits)
    }
}

/// One question, asked with a series of bounds.
struct Series<'t> {
    name: &'static str,
    sc: &'static dyn Engine,
    analysis: &'t Analysis<'t>,
    bounded: fn(u32) -> Bounded,
    reason: fn(u32) -> Reason,
}

impl Series<'_> {
    fn outcome(
        &self,
        bound: Bound,
        least: u32,
        enough: fn(&System) -> Option<u32>,
        limits: &Limits,
    ) -> Outcome {
        let mut stats = Stats::new();
        let verdict = if self.analysis.task.model == Model::Tso {
            let enough = enough(&self.analysis.system(1));
            self.grow(bound, least, enough, limits, &mut stats)
        } else {
            let model = self.analysis.task.model.name();
            let why =
                format!("the engine `{}` translates programs from TSO to SC, not from {model}", self.name);
            Verdict::Unknown(Reason::Unsupported(why))
        };
        Outcome::new(self.name, verdict, stats)
    }

    /// Tries one fixed bound, or growing bounds in turn.
    fn grow(
        &self,
        bound: Bound,
        least: u32,
        enough: Option<u32>,
        limits: &Limits,
        stats: &mut Stats,
    ) -> Verdict {
        let (first, last) = match bound {
            // A bound greater than needed finds nothing more.
            Bound::Fixed(bound) => {
                let needed = enough.map_or(bound, |enough| bound.min(enough));
                (needed, needed)
            }
            Bound::Auto => (least.min(enough.unwrap_or(least)), enough.unwrap_or(MAX_BOUND).min(MAX_BOUND)),
        };
        let mut reached = None;
        for bound in first..=last {
            let tried = limits.within(|| self.try_bound(bound, limits, stats));
            match tried.unwrap_or_else(|what| Verdict::Unknown(Reason::Exhausted(what))) {
                Verdict::Holds if enough.is_some_and(|enough| bound >= enough) => return Verdict::Holds,
                Verdict::Holds => reached = Some((self.reason)(bound)),
                Verdict::Unknown(within) if within.is_bound() => reached = Some(within),
                Verdict::Unknown(reason) => {
                    return Verdict::Unknown(match reason.what_ran_out() {
                        Some(what) => Reason::exhausted(what, reached),
                        None => reason,
                    });
                }
                found @ Verdict::Violated(_) => return found,
            }
            let states = stats.get("states").unwrap_or(0);
            if bound < last
                && let Err(what) = limits.check_work(states)
            {
                return Verdict::Unknown(Reason::exhausted(what, reached));
            }
        }
        Verdict::Unknown(reached.expect("at least one bound was tried"))
    }

    /// Tries one bound; `safe` means within it.
    fn try_bound(&self, bound: u32, limits: &Limits, stats: &mut Stats) -> Verdict {
        if self.analysis.task.program.has_open_identities() {
            return Verdict::Unknown(Reason::Unsupported(IDENTITIES.into()));
        }
        stats.set("bound", bound.into());
        let translation = match translate(self.analysis.task.program, (self.bounded)(bound)) {
            Ok(translation) => translation,
            Err(diagnostics) => {
                let why = diagnostics.first().map_or("it cannot be translated", |d| d.message.as_str());
                return Verdict::Unknown(Reason::Unsupported(why.to_owned()));
            }
        };
        let mut options = self.analysis.task.options.clone();
        options.rounds = Bound::Fixed(bound);
        let task = self.analysis.task.clone();
        let under_sc =
            Analysis::new(Task { program: &translation.program, model: Model::Sc, options, ..task });
        let outcome = self.sc.check(&under_sc, limits);
        for (name, value) in outcome.stats.iter() {
            match name {
                "states" | "transitions" => stats.add(name, value),
                _ => stats.set(name, value),
            }
        }
        match outcome.verdict {
            Verdict::Holds => Verdict::Holds,
            Verdict::Unknown(Reason::Rounds(rounds)) if rounds >= bound => Verdict::Holds,
            Verdict::Unknown(reason) => Verdict::Unknown(self.of_translated(reason, bound)),
            Verdict::Violated(Witness { instantiation, run }) => {
                let translated = lower(&translation.program, instantiation);
                let system = lower(self.analysis.task.program, instantiation);
                let machine = self.analysis.machine(&system);
                match back(&translation, &translated, &run, machine) {
                    Some(run) => Verdict::Violated(Witness { instantiation, run }),
                    None => {
                        let why = "a bad run of the translated program could not be translated back to a run of the program";
                        Verdict::Unknown(Reason::Bug(why.to_owned()))
                    }
                }
            }
        }
    }

    /// Restates a reason about the translated program as a reason about the original program. The translation
    /// starts the same processes, but its calls nest deeper.
    fn of_translated(&self, reason: Reason, bound: u32) -> Reason {
        let same = |reason: &Reason| {
            matches!(reason, Reason::InstanceBound(_) | Reason::Spawned(_) | Reason::Started { .. })
        };
        match &reason {
            bounds if bounds.is_bound() && bounds.bounds().iter().all(same) => {
                Reason::within([(self.reason)(bound), reason]).expect("there are bounds")
            }
            bounds if bounds.is_bound() => reason.about("the translated program"),
            _ => reason,
        }
    }
}
