//! `robust`: does the memory model add any behaviour at all?

use crate::answer::Answer;
use crate::check::EngineChoice;
use crate::engines;
use crate::error::AskError;
use crate::portfolio::{self, PortfolioAnswer};
use crate::question::{Ask, Wanted};
use palisade_engine::{Analysis, Limits, Options, Robustness, Task, Threads, TriangularRaces};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use std::time::Instant;

/// What to ask about a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RobustOptions {
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// How many instances each template has.
    pub threads: Threads,
    /// Which engine to use.
    pub engine: EngineChoice,
    /// Options for individual engines.
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

/// Decides within limits whether a program is robust.
///
/// A run that shows that it is not robust is replayed on the trusted machine, and its cycle is found again,
/// before the run is returned.
pub fn robust(
    program: &Program,
    options: &RobustOptions,
    limits: &Limits,
) -> Result<Answer<Robustness>, AskError> {
    let task = Task {
        program,
        threads: options.threads,
        model: options.model,
        interlocked: options.interlocked,
        options: options.options.clone(),
    };
    answer(&task, &options.engine, limits)
}

/// Decides within limits whether a program has triangular races. A program without them is robust under TSO.
///
/// A run that ends with a race is replayed on the trusted machine, and the race is found again, before the
/// run is returned.
pub fn triangular(
    program: &Program,
    threads: Threads,
    limits: &Limits,
) -> Result<Answer<TriangularRaces>, AskError> {
    let (model, interlocked) = (Model::Tso, Interlocked::default());
    let task = Task { program, threads, model, interlocked, options: Options::default() };
    // There is only one engine. It reports what it cannot handle.
    answer(&task, &EngineChoice::Named(TriangularRaces::engines()[0].name().to_owned()), limits)
}

fn answer<Q: Ask>(task: &Task<'_>, engine: &EngineChoice, limits: &Limits) -> Result<Answer<Q>, AskError> {
    AskError::check_threads(task.program, task.threads)?;
    let start = Instant::now();
    let named = engines::chosen::<Q>(engine)?;
    let suited = |analysis: &Analysis<'_>| match named {
        Some(engine) => vec![engine],
        None => engines::suited(analysis, Wanted::Answer),
    };
    let PortfolioAnswer { answer, others } =
        portfolio::ask_all(&suited, &task.analysis(), limits, Wanted::Answer)?;
    Ok(answer.answer(others, task, start))
}
