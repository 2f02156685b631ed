//! Answers.

use crate::{Exhausted, Stats};
use palisade_program::Instantiation;
use palisade_trace::Run;
use std::fmt;

/// What an engine found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No run breaks the program.
    Safe,
    /// This run breaks it.
    Unsafe(Witness),
    /// Not known, and why.
    Unknown(Reason),
}

impl Verdict {
    /// `safe`, `unsafe` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Safe => "safe",
            Verdict::Unsafe(_) => "unsafe",
            Verdict::Unknown(_) => "unknown",
        }
    }
}

/// A run of the store-buffer machine, and the instance counts of the program that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// How often the templates are instantiated.
    pub instantiation: Instantiation,
    /// The run.
    pub run: Run,
}

/// Why an answer is unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The budget ran out.
    Exhausted(Exhausted),
    /// The budget ran out after something had been found out.
    Partly(Exhausted, Box<Reason>),
    /// No bad state with buffers up to this length, but longer buffers are possible.
    BufferBound(usize),
    /// No bad state with up to this many instances of the templates that may have any number.
    InstanceBound(u32),
    /// Some thread calls deeper than this.
    CallDepth(usize),
    /// No bad state in runs in which every process has at most this many rounds.
    Rounds(u32),
    /// No bad state in runs in which no store stays in its buffer for more than this many further rounds of its process.
    StoreAge(u32),
    /// More threads than this are alive at once.
    ThreadCount(usize),
    /// No bad state in runs in which no more processes are started than this, and no process has more rounds than that. More are not followed where procedures are recursive.
    Started {
        /// How many processes are started.
        processes: usize,
        /// The rounds, if there is a bound on them.
        rounds: Option<u32>,
    },
    /// The values of this variable seem to grow without bound.
    Growing {
        /// The variable or register.
        name: String,
        /// How many different values were seen.
        values: usize,
    },
    /// The engine does not handle such programs.
    Unsupported(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Exhausted(what) => what.fmt(f),
            Reason::Partly(what, reached) => write!(f, "{what}; {reached}"),
            Reason::BufferBound(bound) => write!(f, "no bad state with buffers up to {bound}"),
            Reason::InstanceBound(bound) => {
                let plural = if *bound == 1 { "" } else { "s" };
                write!(f, "no bad state with up to {bound} instance{plural} where any number is allowed")
            }
            Reason::CallDepth(bound) => {
                let plural = if *bound == 1 { "" } else { "s" };
                write!(f, "no bad state with up to {bound} nested call{plural}")
            }
            Reason::Rounds(bound) => {
                write!(f, "safe up to {bound} round{}", if *bound == 1 { "" } else { "s" })
            }
            Reason::StoreAge(bound) => write!(f, "safe up to store age {bound}"),
            Reason::ThreadCount(bound) => {
                let plural = if *bound == 1 { "" } else { "es" };
                write!(f, "no bad state with up to {bound} process{plural} alive at once")
            }
            Reason::Started { processes, rounds } => {
                write!(f, "no bad state in runs that start up to {processes} processes")?;
                match rounds {
                    None => {}
                    Some(1) => write!(f, ", with up to 1 round each")?,
                    Some(rounds) => write!(f, ", with up to {rounds} rounds each")?,
                }
                write!(
                    f,
                    "; no more are followed where procedures are recursive: start fewer, or write the recursion as a loop"
                )
            }
            Reason::Growing { name, values } => {
                write!(
                    f,
                    "`{name}` takes more and more values ({values} so far); declare its domain, or bound all integers with --int-range LO..HI"
                )
            }
            Reason::Unsupported(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exhausted::Time(limit) => write!(f, "out of time ({} s)", limit.as_secs_f64()),
            Exhausted::Memory(limit) => {
                write!(f, "out of memory ({:.2} GiB)", *limit as f64 / (1u64 << 30) as f64)
            }
            Exhausted::Work(limit) => write!(f, "more than {limit} states or configurations"),
            Exhausted::Stopped => write!(f, "stopped"),
        }
    }
}

impl Reason {
    /// The budget ran out; `reached` is what had been found out by then.
    pub fn exhausted(what: Exhausted, reached: Option<Reason>) -> Reason {
        match reached {
            Some(reached) => Reason::Partly(what, Box::new(reached)),
            None => Reason::Exhausted(what),
        }
    }

    /// Whether it says up to which bound nothing bad was seen.
    pub fn is_bound(&self) -> bool {
        match self {
            Reason::BufferBound(_)
            | Reason::InstanceBound(_)
            | Reason::CallDepth(_)
            | Reason::ThreadCount(_)
            | Reason::Started { .. }
            | Reason::Rounds(_)
            | Reason::StoreAge(_) => true,
            Reason::Exhausted(_) | Reason::Partly(..) | Reason::Growing { .. } | Reason::Unsupported(_) => {
                false
            }
        }
    }

    /// What part of the budget ran out, if that is why.
    pub fn what_ran_out(&self) -> Option<Exhausted> {
        match self {
            Reason::Exhausted(what) | Reason::Partly(what, _) => Some(*what),
            _ => None,
        }
    }
}

/// An answer and what it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The answer.
    pub verdict: Verdict,
    /// The engine that gave it.
    pub engine: &'static str,
    /// What it counted.
    pub stats: Stats,
}
