//! Why there is no answer.

use crate::question::Unconfirmed;
use palisade_certificate::Refusal;
use palisade_engine::Threads;
use palisade_program::mentions_more_than;
use palisade_program::written::{Count, Program, Start, Template};

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AskError {
    /// No engine has that name.
    #[error("unknown engine `{name}`{purpose}; the engines are: {}", known.join(", "))]
    NoSuchEngine {
        /// The requested name.
        name: String,
        /// What the engine is for: empty, or a phrase such as ` for robustness`.
        purpose: &'static str,
        /// The existing names.
        known: Vec<&'static str>,
    },
    /// The number of threads is smaller than what the properties mention.
    #[error("a property mentions `{name}[{}]`, so at least {needed} threads of each process are needed, not {threads}", needed - 1)]
    TooFewThreads {
        /// The process.
        name: String,
        /// How many copies the properties need.
        needed: u32,
        /// How many there are to be.
        threads: u32,
    },
    /// Any number of instances of templates with several is asked about, but the number is still fixed.
    #[error(
        "the number of instances of `{name}` is fixed: any number of them has to be set in the program first"
    )]
    FixedNumber {
        /// The process.
        name: String,
    },
    /// The program refers to a process with an identity that is not there if there are so few.
    #[error("with {number} `{name}` processes, the program refers to one that is not there")]
    NoSuchIdentity {
        /// The process.
        name: String,
        /// How many there are to be.
        number: u32,
    },
    /// Palisade has a bug, and there is no verdict.
    #[error("{0}. This is a bug in Palisade, and there is no verdict; please report it with the program")]
    Bug(#[from] Bug),
}

impl AskError {
    /// Refuses a fixed number of threads where any number is asked about, and a number of threads that is smaller than
    /// what the properties mention. Otherwise the answer would be about other numbers than it says.
    pub(crate) fn check_threads(program: &Program, threads: Threads) -> Result<(), AskError> {
        let several = |template: &Template| {
            template.start == Start::Initially && matches!(template.count, Count::Fixed(2..))
        };
        if let (Threads::Several, Some(template)) = (threads, program.templates.iter().find(|t| several(t))) {
            return Err(AskError::FixedNumber { name: template.name.to_string() });
        }
        let fixed = program.identities.as_ref().filter(|_| !program.has_open_identities());
        if let (Threads::Any, Some(identities)) = (threads, fixed) {
            return Err(AskError::FixedNumber { name: identities.process.to_string() });
        }
        // The searches multiply processes with identities, and others where the program says `[*]`.
        let single = |template: &&Template| {
            template.start == Start::Initially && matches!(template.count, Count::Fixed(_))
        };
        if let (Threads::Any, true) = (threads, program.has_open_identities())
            && let Some(template) = program.templates.iter().find(single)
        {
            return Err(AskError::FixedNumber { name: template.name.to_string() });
        }
        let Threads::Each(threads) = threads else { return Ok(()) };
        if let Some(identities) = &program.identities
            && program.has_other_identities(threads)
        {
            let renumbered = program.with_identities(threads);
            if palisade_program::validate(&renumbered).iter().any(palisade_base::Diagnostic::is_error) {
                return Err(AskError::NoSuchIdentity {
                    name: identities.process.to_string(),
                    number: threads,
                });
            }
        }
        match mentions_more_than(program, threads) {
            Some((name, needed)) => Err(AskError::TooFewThreads { name: name.to_owned(), needed, threads }),
            None => Ok(()),
        }
    }

    /// A stable name for diagnostics.
    pub fn id(&self) -> &'static str {
        match self {
            AskError::NoSuchEngine { .. } => "no-such-engine",
            AskError::TooFewThreads { .. } => "too-few-threads",
            AskError::FixedNumber { .. } => "fixed-number",
            AskError::NoSuchIdentity { .. } => "no-such-identity",
            AskError::Bug(_) => "internal-error",
        }
    }
}

/// What is wrong with an engine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Bug {
    /// Its run does not show a violation.
    #[error("engine `{engine}` says `{word}`, but its run does not show it: {error}")]
    Unconfirmed {
        /// The engine.
        engine: &'static str,
        /// Its answer.
        word: &'static str,
        /// What is wrong with the run.
        error: Unconfirmed,
    },
    /// It contradicted itself.
    #[error("engine `{engine}` contradicts itself: {what}")]
    Contradiction {
        /// The engine.
        engine: &'static str,
        /// What is wrong.
        what: String,
    },
    /// It panicked.
    #[error("engine `{engine}` failed: {what}")]
    Panicked {
        /// The engine.
        engine: &'static str,
        /// The panic message.
        what: String,
    },
    /// It gave a positive answer, but another engine has a violation, or knows that there is one.
    #[error("engine `{holds}` says `{word}`, but engine `{other}` says that the program can break")]
    Disagreement {
        /// The engine with the positive answer.
        holds: &'static str,
        /// Its answer.
        word: &'static str,
        /// The engine that contradicts it.
        other: &'static str,
    },
    /// Its proof was refused.
    #[error("engine `{engine}` says `safe`, but the checker does not accept its proof: {refusal}")]
    ProofRefused {
        /// The engine.
        engine: &'static str,
        /// What is wrong with the proof.
        refusal: Box<Refusal>,
    },
}
