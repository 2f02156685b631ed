//! Why there is no answer.

use crate::question::Unconfirmed;
use palisade_certificate::Refusal;

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AskError {
    /// There is no engine with that name.
    #[error("there is no engine `{name}`{purpose}; the engines are: {}", known.join(", "))]
    NoSuchEngine {
        /// The name asked for.
        name: String,
        /// What the engine is wanted for: empty, or such as ` for robustness`.
        purpose: &'static str,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// Something in Palisade is wrong, and there is no verdict.
    #[error("{0}. This is a bug in Palisade, and there is no verdict; please report it with the program")]
    Bug(#[from] Bug),
}

impl AskError {
    /// A stable name for diagnostics.
    pub fn id(&self) -> &'static str {
        match self {
            AskError::NoSuchEngine { .. } => "no-such-engine",
            AskError::Bug(_) => "internal-error",
        }
    }
}

/// What is wrong with an engine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Bug {
    /// Its run shows nothing.
    #[error("engine `{engine}` says `{word}`, but its run does not show it: {error}")]
    Unconfirmed {
        /// The engine.
        engine: &'static str,
        /// What it says.
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
        /// What the panic said.
        what: String,
    },
    /// It gave a positive answer, and another engine has a violation, or knows that there is one.
    #[error("engine `{holds}` says `{word}`, but engine `{other}` says that the program can break")]
    Disagreement {
        /// The engine with the positive answer.
        holds: &'static str,
        /// What it says.
        word: &'static str,
        /// The engine that contradicts it.
        other: &'static str,
    },
    /// Its proof does not convince.
    #[error("engine `{engine}` says `safe`, but its proof does not convince: {refusal}")]
    ProofRefused {
        /// The engine.
        engine: &'static str,
        /// What is wrong with the proof.
        refusal: Box<Refusal>,
    },
}
