//! `check`: can a run break the program?

use crate::answer::{Answer, Proved};
use crate::ask::EngineAnswer;
use crate::coverage::{CoverageWanted, Reach};
use crate::domains::check_guessing;
use crate::error::AskError;
use crate::portfolio::{self, PortfolioAnswer};
use crate::progress::{Deadlocks, with_progress};
use crate::question::Wanted;
use crate::races::check_with_races;
use crate::{engines, modulo, numbers, prove};
use palisade_engine::{Analysis, Limits, Options, Safety, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use std::time::Instant;

/// What to ask about a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckOptions {
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
    /// Whether `safe` should come with a proof, if some engine can give one.
    pub prove: bool,
    /// Whether the proof is checked at once. If so, the answer is `safe` only with a proof that the checker
    /// accepts.
    pub certify: bool,
    /// Whether deadlocks are looked for.
    pub deadlocks: Deadlocks,
    /// Whether to find out what runs reach.
    pub coverage: CoverageWanted,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions {
            model: Model::Tso,
            interlocked: Interlocked::default(),
            threads: Threads::default(),
            engine: EngineChoice::default(),
            options: Options::default(),
            prove: false,
            certify: false,
            deadlocks: Deadlocks::default(),
            coverage: CoverageWanted::default(),
        }
    }
}

impl CheckOptions {
    /// The task of engines about a program.
    pub(crate) fn task<'p>(&self, program: &'p Program) -> Task<'p> {
        Task {
            program,
            threads: self.threads,
            model: self.model,
            interlocked: self.interlocked,
            options: self.options.clone(),
        }
    }
}

/// Which engine to ask.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum EngineChoice {
    /// All engines that suit the program, side by side. The first that knows the answer gives it.
    #[default]
    Auto,
    /// This engine and no other. If it does not suit the program, the answer is unknown.
    Named(String),
}

impl From<&str> for EngineChoice {
    /// `auto`, or the name of an engine.
    fn from(name: &str) -> EngineChoice {
        match name {
            "auto" => EngineChoice::Auto,
            name => EngineChoice::Named(name.to_owned()),
        }
    }
}

/// Checks a program within limits.
///
/// A run that breaks the program is shortened, and replayed on the trusted machine, before it is returned.
///
/// If the program says what must stay possible, deadlocks are asked about, or there are plain accesses, the answer is
/// the worst of all.
pub fn check(program: &Program, options: &CheckOptions, limits: &Limits) -> Result<Answer, AskError> {
    if let Threads::Each(number) = options.threads
        && program.has_other_identities(number)
    {
        AskError::check_threads(program, options.threads)?;
        return check(&program.with_identities(number), options, limits);
    }
    if program.has_plain() {
        return check_with_races(program, options, limits);
    }
    let start = Instant::now();
    let mut analysis = Analysis::new(options.task(program));
    if options.coverage > CoverageWanted::No && !analysis.task.has_open_identities() {
        analysis = analysis.with_coverage();
    }
    let answer = check_any_number(&analysis, options, limits)?;
    let wanted = match (options.coverage, &answer.outcome.verdict) {
        // Warnings are about what `safe` does not say.
        (CoverageWanted::IfCheap, Verdict::Violated(_) | Verdict::Unknown(_)) => CoverageWanted::No,
        (wanted, _) => wanted,
    };
    let mut answer = with_progress(program, options, answer, start, limits)?;
    modulo::note(&mut answer);
    let reach = Reach::after(&analysis, wanted, limits);
    Ok(Answer { reach, ..answer })
}

/// Checks whether a run reaches a bad state. If there may be any number of threads and that is not known, the answer says
/// for how many it is.
fn check_any_number(
    analysis: &Analysis<'_>,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Answer, AskError> {
    if !analysis.task.is_parameterized() {
        return check_guessing(analysis, options, limits);
    }
    let answer = check_guessing(analysis, options, &limits.clone().leaving_one_in(numbers::SHARE))?;
    numbers::with_number(analysis, options, answer, limits)
}

/// Checks within limits whether a run reaches a bad state.
pub(crate) fn check_states(
    program: &Program,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Answer, AskError> {
    check_analysis(&Analysis::new(options.task(program)), options, limits)
}

/// The same, with what is known about the program.
pub(crate) fn check_analysis(
    analysis: &Analysis<'_>,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Answer, AskError> {
    AskError::check_threads(analysis.task.program, options.threads)?;
    let start = Instant::now();
    let wanted = match (options.certify, options.prove) {
        (true, _) => Wanted::Checked,
        (false, true) => Wanted::Proof,
        (false, false) => Wanted::Answer,
    };
    let named = engines::chosen::<Safety>(&options.engine)?;
    let suited = |analysis: &Analysis<'_>| match named {
        Some(engine) => vec![engine],
        None => engines::suited(analysis, wanted),
    };
    let PortfolioAnswer { mut answer, others } = portfolio::ask_all(&suited, analysis, limits, wanted)?;
    let mut proof = answer.proof.take().map(|proof| Proved { engine: answer.outcome.engine, proof });
    if wanted > Wanted::Answer && answer.outcome.verdict == Verdict::Holds && proof.is_none() {
        let EngineAnswer { outcome, certified, .. } = &mut answer;
        (proof, *certified) = prove::by_another(analysis, outcome, options, limits, wanted)?;
    }
    Ok(Answer { proof, ..answer.answer(others, &analysis.task, start) })
}

/// [`check()`] with every core and without limits.
///
/// # Panics
/// If there is no engine with that name, or if Palisade has a bug.
pub fn check_simply(program: &Program, options: CheckOptions) -> Answer {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    check(program, &options, &Limits::unlimited(jobs)).unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;
    use palisade_syntax::{Language, parse};

    #[test]
    fn engines_are_chosen_by_name_or_not_at_all() {
        let source = Source::new("p", "process P { skip; }");
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let options = |name: &str| CheckOptions {
            engine: EngineChoice::Named(name.to_owned()),
            ..CheckOptions::default()
        };
        let limits = Limits::unlimited(1);
        let error = check(&program, &options("magic"), &limits).expect_err("there is no such engine");
        assert!(error.to_string().contains("explicit"), "{error}");
        let answer = check(&program, &options("explicit"), &limits).expect("the engine exists");
        assert_eq!((answer.outcome.verdict, answer.outcome.engine), (Verdict::Holds, "explicit"));
    }
}
