//! Everything that the executions of a program have shown: every violation, race and failure once, with the schedule
//! that showed it first.

use crate::divergence::Diverged;
use crate::execution::Unfollowed;
use crate::process::Lost;
use crate::schedule::{Known, Strategy, Turns};
use crate::suppress::SilencedBy;
use palisade_memory::Model;
use palisade_monitor::{Instructions, Violation};
use std::collections::BTreeMap;

/// The execution that showed a finding first.
#[derive(Clone, Debug)]
pub struct First {
    /// Its number in the session, from 1.
    pub number: u64,
    /// Its seed.
    pub seed: u64,
    /// How its threads were scheduled.
    pub strategy: Strategy,
    /// The expected length of executions, for [`Strategy::Pct`].
    pub length: u64,
    /// Its turns, if they were kept. Threads are numbered as `search` says, and otherwise as another session will
    /// number them.
    pub turns: Option<Turns>,
    /// If it is an execution of a search: what the search knew.
    pub search: Option<Known>,
    /// The number of the event that showed it.
    pub event: u64,
    /// Why it was not sequentially consistent, if it was not.
    pub reorderings: Vec<NamedReordering>,
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Occurrences<T> {
    /// The finding itself.
    pub what: T,
    /// How many executions showed it.
    pub executions: u64,
    /// How many times it was seen in total.
    pub count: u64,
    /// The strongest model under which an execution that showed it is possible, if known.
    pub possible: Option<Model>,
    /// The first execution that showed it, of those that are possible under that model.
    pub first: First,
    /// What silenced it, if anything did.
    pub silenced: Option<SilencedBy>,
    /// Whether it was shown again, from its schedule, by a new process of the program.
    pub is_repeated: bool,
    /// The number of the last execution that showed it.
    pub(crate) last: u64,
}

/// Two instructions of one thread that took effect in the opposite order, by their names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedReordering {
    /// The store, which comes first in the program.
    pub store: String,
    /// The access that took effect before it.
    pub access: String,
    /// Whether that access is a store too.
    pub writes: bool,
}

/// A race, identified by the names of its instructions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedRace {
    /// The access that came first in the execution that showed it, and whether it writes.
    pub first: (String, bool),
    /// The other one.
    pub second: (String, bool),
}

/// A failure and where it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFailure {
    /// A short name, for machine-readable output.
    pub name: &'static str,
    /// One sentence.
    pub message: String,
    /// Related places, each with a note.
    pub places: Vec<(String, String)>,
    /// Whether the only problem is that the execution could not be followed to its end.
    pub is_inconclusive: bool,
    /// What the program printed in the execution that showed it first. Failures are not distinguished by it.
    pub output: String,
    /// Whether a search through all executions without store buffers has shown that it cannot happen there.
    pub is_excluded_without_buffers: bool,
}

impl NamedFailure {
    /// Whether this is the same failure, whatever the program printed.
    pub fn is_same(&self, other: &NamedFailure) -> bool {
        let NamedFailure {
            name,
            message,
            places,
            is_inconclusive,
            output: _,
            is_excluded_without_buffers: _,
        } = self;
        (name, message, places, is_inconclusive)
            == (&other.name, &other.message, &other.places, &other.is_inconclusive)
    }
}

/// Something that an execution showed, but did not show when it was repeated from its schedule. It is not a finding.
#[derive(Clone, Debug)]
pub struct Unrepeated {
    /// What it was, in words.
    pub what: String,
    /// The execution that showed it.
    pub first: First,
    /// What the repetition showed instead.
    pub instead: String,
}

/// Findings that were silenced.
#[derive(Debug, Default)]
pub struct Silenced {
    /// Violations.
    pub violations: Vec<Occurrences<Violation>>,
    /// Races.
    pub races: Vec<Occurrences<NamedRace>>,
    /// Failures.
    pub failures: Vec<Occurrences<NamedFailure>>,
    /// Executions that ended early, at one of these failures. What the program would have done after it is not known.
    pub cut_short: u64,
}

impl Silenced {
    /// The number of distinct findings.
    pub fn distinct(&self) -> usize {
        self.violations.len() + self.races.len() + self.failures.len()
    }
}

/// The name of the failure that no execution has met all assumptions. It is kept only while that is true.
pub(crate) const VACUOUS: &str = "no-execution";

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// The names of the instructions in violations.
    pub instructions: Instructions,
    /// Violations, in the order in which they were first seen.
    pub violations: Vec<Occurrences<Violation>>,
    /// Executions with violations under TSO, and under PSO.
    pub violating: [u64; 2],
    /// Races.
    pub races: Vec<Occurrences<NamedRace>>,
    /// Failures.
    pub failures: Vec<Occurrences<NamedFailure>>,
    /// Findings that the user does not want reported.
    pub silenced: Silenced,
    /// What was seen and did not repeat.
    pub unrepeated: Vec<Unrepeated>,
    /// Reorderings by which executions were not sequentially consistent, and how many executions were not.
    pub reorderings: Vec<Occurrences<NamedReordering>>,
    /// Executions that were not sequentially consistent.
    pub reordered: u64,
    /// What could not be followed, and where. For code that was linked into the program, this is the name of
    /// the file.
    pub unfollowed: BTreeMap<(Unfollowed, String), u64>,
    /// Names of the functions in [`Unfollowed::Call`].
    pub calls: BTreeMap<u32, String>,
    /// The number of executions, including those that were cut off at the end.
    pub executions: u64,
    /// Steps of all executions.
    pub steps: u64,
    /// Events that the monitors saw.
    pub events: u64,
    /// Accesses to memory.
    pub accesses: u64,
    /// Executions that ended because an assumption of the program was false.
    pub assumed: u64,
    /// Executions in which the given turns could not be taken.
    pub diverged: u64,
    /// The first event that was not as expected, if an execution could not be repeated.
    pub divergence: Option<Diverged>,
    /// Roughly how much of a search through all partial orders is done, from 0 to 1.
    pub searched: Option<f64>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// Whether it ended because memory ran out.
    pub out_of_memory: bool,
    /// Why the program was lost, if it was.
    pub lost: Option<String>,
    /// The longest execution, in steps.
    pub longest: u64,
    /// The largest number of threads.
    pub threads: usize,
}

impl Findings {
    /// The number of distinct findings.
    pub fn distinct(&self) -> usize {
        let failures = self.failures.iter().filter(|found| found.what.name != VACUOUS).count();
        self.violations.len() + self.races.len() + failures
    }

    pub(crate) fn lose(&mut self, lost: &Lost) {
        match lost {
            Lost::Stopped => self.stopped = true,
            Lost::Memory => self.out_of_memory = true,
            Lost::Broken(_) => self.lost = Some(lost.to_string()),
        }
    }
}
