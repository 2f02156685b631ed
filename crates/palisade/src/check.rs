//! `check`: can a run break the program?

use crate::answer::{Answer, Proved};
use crate::ask::Said;
use crate::error::AskError;
use crate::portfolio::{self, Heard};
use crate::question::Wanted;
use crate::{engines, prove};
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

/// Checks a program within limits.
///
/// A run that breaks the program is shortened, and replayed on the trusted machine, before it is returned.
pub fn check(program: &Program, options: &CheckOptions, limits: &Limits) -> Result<Answer, AskError> {
    let start = Instant::now();
    let analysis = Analysis::new(Task {
        program,
        threads: options.threads,
        model: options.model,
        interlocked: options.interlocked,
        options: options.options.clone(),
    });
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
    let Heard { mut said, others } = portfolio::ask_all(&suited, &analysis, limits, wanted)?;
    let mut proof = said.proof.take().map(|proof| Proved { engine: said.outcome.engine, proof });
    if wanted > Wanted::Answer && said.outcome.verdict == Verdict::Holds && proof.is_none() {
        let Said { outcome, certified, .. } = &mut said;
        (proof, *certified) = prove::by_another(&analysis, outcome, options, limits, wanted)?;
    }
    Ok(Answer { proof, ..said.answer(others, &analysis.task, start) })
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
    fn engines_are_taken_by_their_name_or_not_at_all() {
        let source = Source::new("p", "process P { skip; }");
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let options = |name: &str| CheckOptions {
            engine: EngineChoice::Named(name.to_owned()),
            ..CheckOptions::default()
        };
        let limits = Limits::unlimited(1);
        let error = check(&program, &options("magic"), &limits).expect_err("there is no magic");
        assert!(error.to_string().contains("explicit"), "{error}");
        let answer = check(&program, &options("explicit"), &limits).expect("there is this one");
        assert_eq!((answer.outcome.verdict, answer.outcome.engine), (Verdict::Holds, "explicit"));
    }
}
