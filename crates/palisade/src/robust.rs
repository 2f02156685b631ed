//! Asking whether a memory model adds any behaviour at all, and believing no cycle that the checker of runs does not find.

use crate::check::unless_it_panics;
use crate::{EngineChoice, Input, engines};
use palisade_base::Source;
use palisade_engine::{
    Budget, Exhausted, Options, Progress, RaceOutcome, Races, Reason, Robustness, RobustnessEngine,
    RobustnessOutcome, Stats, Task, Threads, Witness, peak_memory_bytes,
};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::running::System;
use palisade_program::{lower, written::Program};
use palisade_report::Evidence;
use palisade_trace::{
    Cycle, HappensBefore, NoTriangle, NotViolating, Origin, Replay, Triangle, Violating, WitnessFile,
    triangle, violating,
};
use std::time::Instant;

/// What is asked of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RobustOptions {
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// How often the templates are instantiated.
    pub threads: Threads,
    /// Which engine.
    pub engine: EngineChoice,
    /// Options of single engines.
    pub options: Options,
}

impl Default for RobustOptions {
    fn default() -> Self {
        RobustOptions {
            model: Model::Tso,
            interlocked: Interlocked::default(),
            threads: Threads::default(),
            engine: EngineChoice::default(),
            options: Options::default(),
        }
    }
}

/// An answer, with the run and the cycle that go with `not-robust`.
#[derive(Clone, Debug)]
pub struct RobustAnswer {
    /// The answer, who gave it and what was counted.
    pub outcome: RobustnessOutcome,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// Time taken.
    pub seconds: f64,
    /// The most memory this process ever used, if the host tells.
    pub peak_memory_bytes: Option<u64>,
    /// The run, taken on the trusted machine; present if and only if the program is not robust.
    shown: Option<Shown>,
}

/// A run with the running form of the program that has it, and its cycle.
#[derive(Clone, Debug)]
struct Shown {
    system: System,
    violating: Violating,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RobustError {
    /// There is no engine with that name.
    #[error("there is no engine `{name}` for robustness; the engines are: {}", known.join(", "))]
    NoSuchEngine {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// An engine contradicted itself.
    #[error(
        "engine `{engine}` contradicts itself: {what}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    EngineBug {
        /// The engine.
        engine: &'static str,
        /// What is wrong.
        what: String,
    },
    /// An engine panicked.
    #[error(
        "engine `{engine}` failed: {what}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    EnginePanicked {
        /// The engine.
        engine: &'static str,
        /// What the panic said.
        what: String,
    },
    /// An engine's run shows nothing.
    #[error(
        "engine `{engine}` says `not-robust`, but its run does not show it: {error}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    NotShown {
        /// The engine.
        engine: &'static str,
        /// What is wrong with the run.
        error: NotViolating,
    },
    /// A run said to end with a triangular race does not.
    #[error(
        "a triangular race was found, but its run does not show it: {0}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    NoRace(NoTriangle),
}

/// Says within a budget whether a program is robust.
///
/// A run that is said to show that it is not is taken on the trusted machine, and its cycle is found again, before it is handed out.
pub fn robust(
    program: &Program,
    options: &RobustOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<RobustAnswer, RobustError> {
    let start = Instant::now();
    let task = Task {
        program,
        threads: options.threads,
        model: options.model,
        interlocked: options.interlocked,
        options: options.options.clone(),
    };
    let asked = match &options.engine {
        EngineChoice::Auto => budget.within(|| engines::suited_for_robustness(&task)),
        EngineChoice::Named(name) => {
            let known = engines::robustness_engines();
            let found = known.iter().copied().find(|engine| engine.name() == name);
            Ok(vec![found.ok_or_else(|| RobustError::NoSuchEngine {
                name: name.clone(),
                known: known.iter().map(|engine| engine.name()).collect(),
            })?])
        }
    };
    match asked {
        Ok(asked) => ask(&asked, &task, budget, progress, start),
        Err(what) => Ok(answer(unknown(Reason::Exhausted(what), "auto"), None, &task, start)),
    }
}

fn unknown(why: Reason, engine: &'static str) -> RobustnessOutcome {
    RobustnessOutcome { answer: Robustness::Unknown(why), engine, stats: Stats::new() }
}

/// Asks the engines one after the other until one knows the answer. A bug that shows is the answer.
fn ask(
    engines: &[&dyn RobustnessEngine],
    task: &Task<'_>,
    budget: &Budget,
    progress: &dyn Progress,
    start: Instant,
) -> Result<RobustAnswer, RobustError> {
    let mut first = None;
    for engine in engines {
        // Inside out: running out is not a panic.
        let outcome = unless_it_panics(|| budget.within(|| engine.check(task, budget, progress)))
            .map_err(|what| RobustError::EnginePanicked { engine: engine.name(), what })?;
        let outcome = outcome.unwrap_or_else(|what| unknown(Reason::Exhausted(what), engine.name()));
        if let Robustness::Unknown(reason) = &outcome.answer
            && let Some(what) = reason.bug()
        {
            return Err(RobustError::EngineBug { engine: outcome.engine, what: what.to_owned() });
        }
        let known = !matches!(outcome.answer, Robustness::Unknown(_));
        if known {
            first = Some(outcome);
            break;
        }
        first.get_or_insert(outcome);
    }
    let mut outcome = first.unwrap_or_else(|| {
        unknown(Reason::Unsupported("no engine can handle this program".to_owned()), "auto")
    });
    let shown = match &outcome.answer {
        Robustness::NotRobust(witness) => {
            let shown = budget.clone().with_grace().within(|| {
                let system = lower(task.program, witness.instantiation);
                let found = violating(task.machine(&system), &witness.run);
                (system, found)
            });
            match shown {
                Ok((system, found)) => {
                    let violating =
                        found.map_err(|error| RobustError::NotShown { engine: outcome.engine, error })?;
                    let replay = Replay { violation: None, ..violating.replay };
                    Some(Shown { system, violating: Violating { replay, ..violating } })
                }
                Err(what) => {
                    outcome.answer = Robustness::Unknown(not_shown(outcome.engine, what));
                    None
                }
            }
        }
        Robustness::Robust | Robustness::Unknown(_) => None,
    };
    Ok(answer(outcome, shown, task, start))
}

fn answer(outcome: RobustnessOutcome, shown: Option<Shown>, task: &Task<'_>, start: Instant) -> RobustAnswer {
    RobustAnswer {
        outcome,
        model: task.model,
        interlocked: task.interlocked,
        seconds: start.elapsed().as_secs_f64(),
        peak_memory_bytes: peak_memory_bytes(),
        shown,
    }
}

/// Why a run counts for nothing that there was no time to replay.
fn not_shown(engine: &str, what: Exhausted) -> Reason {
    let found = format!("engine `{engine}` has a run that is not robust, but it was not replayed to its end");
    Reason::exhausted(what, Some(Reason::Unsupported(found)))
}

/// An answer about triangular races, with the run that goes with `racy`.
#[derive(Clone, Debug)]
pub struct RaceAnswer {
    /// The answer and what was counted.
    pub outcome: RaceOutcome,
    /// Time taken.
    pub seconds: f64,
    /// The most memory this process ever used, if the host tells.
    pub peak_memory_bytes: Option<u64>,
    shown: Option<(System, Replay, Triangle)>,
}

/// Looks within a budget for a triangular race: if there is none, the program is robust under TSO.
///
/// A run that is said to end with one is taken on the trusted machine and looked at before it is handed out.
pub fn triangular(
    program: &Program,
    threads: Threads,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<RaceAnswer, RobustError> {
    let start = Instant::now();
    let interlocked = Interlocked::default();
    let task = Task { program, threads, model: Model::Tso, interlocked, options: Options::default() };
    let engine = "attacks";
    let found = unless_it_panics(|| budget.within(|| palisade_robust::triangular(&task, budget, progress)))
        .map_err(|what| RobustError::EnginePanicked { engine, what })?;
    let unknown = |what| RaceOutcome { answer: Races::Unknown(Reason::Exhausted(what)), stats: Stats::new() };
    let mut outcome = found.unwrap_or_else(unknown);
    if let Races::Unknown(reason) = &outcome.answer
        && let Some(what) = reason.bug()
    {
        return Err(RobustError::EngineBug { engine, what: what.to_owned() });
    }
    let shown = match &outcome.answer {
        Races::Race(witness) => {
            let shown = budget.clone().with_grace().within(|| {
                let system = lower(program, witness.instantiation);
                let found = triangle(Machine::new(&system, Model::Sc), &witness.run);
                (system, found)
            });
            match shown {
                Ok((system, found)) => {
                    let (replay, race) = found.map_err(RobustError::NoRace)?;
                    Some((system, Replay { violation: None, ..replay }, race))
                }
                Err(what) => {
                    outcome.answer = Races::Unknown(Reason::Exhausted(what));
                    None
                }
            }
        }
        Races::Free | Races::Unknown(_) => None,
    };
    let seconds = start.elapsed().as_secs_f64();
    Ok(RaceAnswer { outcome, seconds, peak_memory_bytes: peak_memory_bytes(), shown })
}

impl RaceAnswer {
    /// The run that ends with a race, ready to be told, and the race.
    pub fn evidence<'a>(&'a self, source: &'a Source) -> Option<(Evidence<'a>, Triangle)> {
        let (Some((system, replay, race)), Races::Race(witness)) = (&self.shown, &self.outcome.answer) else {
            return None;
        };
        let machine = Machine::new(system, Model::Sc);
        Some((Evidence { source, machine, run: &witness.run, replay }, *race))
    }
}

impl RobustAnswer {
    /// The run that no sequentially consistent run is like, ready to be told.
    pub fn evidence<'a>(&'a self, source: &'a Source) -> Option<Evidence<'a>> {
        let (shown, witness) = (self.shown.as_ref()?, self.witness()?);
        let machine = Machine { system: &shown.system, model: self.model, interlocked: self.interlocked };
        Some(Evidence { source, machine, run: &witness.run, replay: &shown.violating.replay })
    }

    /// How the events of that run are ordered, and the cycle among them.
    pub fn cycle(&self) -> Option<(&HappensBefore, &Cycle)> {
        let shown = self.shown.as_ref()?;
        Some((&shown.violating.happens_before, &shown.violating.cycle))
    }

    /// That run, as it is kept in files.
    pub fn witness_file(&self, input: &Input) -> Option<WitnessFile> {
        let (evidence, witness) = (self.evidence(&input.source)?, self.witness()?);
        let origin = Origin {
            source: &input.source,
            language: input.language.name(),
            instantiation: witness.instantiation,
            int_range: input.int_range.map(|range| (range.lo, range.hi)),
        };
        Some(WitnessFile::new(evidence.machine, origin, evidence.run, evidence.replay))
    }

    fn witness(&self) -> Option<&Witness> {
        match &self.outcome.answer {
            Robustness::NotRobust(witness) => Some(witness),
            Robustness::Robust | Robustness::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_engine::{Silent, Suitability};
    use palisade_program::Instantiation;
    use palisade_syntax::{Language, parse};
    use palisade_trace::Run;

    /// Answers what it was told to, or panics.
    struct Says(Option<Robustness>);

    impl RobustnessEngine for Says {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn suits(&self, _: &Task<'_>) -> Suitability {
            Suitability::Decides
        }
        fn check(&self, _: &Task<'_>, _: &Budget, _: &dyn Progress) -> RobustnessOutcome {
            let answer = self.0.clone().expect("on purpose");
            RobustnessOutcome { answer, engine: "broken", stats: Stats::new() }
        }
    }

    #[test]
    fn a_bug_in_an_engine_for_robustness_is_reported() {
        let source = Source::new("p", "shared x: 0..1; process P { x = 1; }");
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let (threads, interlocked) = (Threads::Declared, Interlocked::default());
        let task =
            Task { program: &program, threads, model: Model::Tso, interlocked, options: Options::default() };
        let check = |says: Option<Robustness>, part: &str| {
            let knows_nothing = Says(Some(Robustness::Unknown(Reason::Unsupported("no".to_owned()))));
            let (broken, budget) = (Says(says), Budget::unlimited(1));
            for engines in [
                vec![&broken as &dyn RobustnessEngine, &palisade_robust::Attacks],
                vec![&knows_nothing, &broken, &palisade_robust::Attacks],
            ] {
                let answer = ask(&engines, &task, &budget, &Silent, Instant::now());
                let error = answer.expect_err("a bug is no verdict").to_string();
                assert!(error.contains(part) && error.contains("This is a bug in Palisade"), "{error}");
            }
        };
        let bug = Reason::Bug("a cycle was found, but no run with it".to_owned());
        check(Some(Robustness::Unknown(bug.clone())), "contradicts itself: a cycle was found");
        let late = Reason::exhausted(Exhausted::Stopped, Some(bug));
        check(Some(Robustness::Unknown(late)), "contradicts itself: a cycle was found");
        check(None, "failed: on purpose");
        let run = Run { memory: vec![0], steps: Vec::new() };
        let witness = Witness { instantiation: Instantiation { any: 1, every: None }, run };
        check(Some(Robustness::NotRobust(witness)), "does not show it");
    }
}
