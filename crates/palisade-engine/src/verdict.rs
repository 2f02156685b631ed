//! Answers.

use crate::{Question, Reason, Safety, Stats};
use palisade_program::Instantiation;
use palisade_trace::Run;
use std::marker::PhantomData;

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Yes: no run violates the property in question.
    Holds,
    /// No: this run violates it.
    Violated(Witness),
    /// Not known, and the reason.
    Unknown(Reason),
}

impl Verdict {
    /// The witness of a violation.
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Verdict::Violated(witness) => Some(witness),
            Verdict::Holds | Verdict::Unknown(_) => None,
        }
    }

    /// Why the answer is unknown, if it is.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Verdict::Unknown(reason) => Some(reason),
            Verdict::Holds | Verdict::Violated(_) => None,
        }
    }

    /// Whether this answers the question.
    pub fn is_known(&self) -> bool {
        self.reason().is_none()
    }
}

/// A run of the store-buffer machine, and the instance counts of the program that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// How many instances each template has.
    pub instantiation: Instantiation,
    /// The run.
    pub run: Run,
}

/// An engine's answer to a question, with its counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<Q: ?Sized = Safety> {
    /// The answer.
    pub verdict: Verdict,
    /// The engine that gave it.
    pub engine: &'static str,
    /// Its counters.
    pub stats: Stats,
    question: PhantomData<fn() -> Box<Q>>,
}

impl<Q: Question> Outcome<Q> {
    /// An answer.
    pub fn new(engine: &'static str, verdict: Verdict, stats: Stats) -> Outcome<Q> {
        Outcome { verdict, engine, stats, question: PhantomData }
    }

    /// No answer, and nothing counted.
    pub fn unknown(engine: &'static str, reason: Reason) -> Outcome<Q> {
        Outcome::new(engine, Verdict::Unknown(reason), Stats::new())
    }

    /// The answer in one word, such as `safe`.
    pub fn word(&self) -> &'static str {
        Q::word(&self.verdict)
    }
}
