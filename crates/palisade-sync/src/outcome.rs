//! What a check found, and how a failing test tells it.
//!
//! Lines of the source are quoted if the files are there: compilers write the names of files as they were called from where they ran, which is the package or the workspace.

use crate::runtime::schedule::Schedule;
use crate::runtime::session::Place;
pub use crate::runtime::state::Failure;
use palisade_memory::Model;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// What a check found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The machine whose violations were looked for.
    pub model: Model,
    /// Executions that were run.
    pub executions: u64,
    /// Different partial orders among them, where they are counted.
    pub partial_orders: Option<u64>,
    /// Executions that show a violation.
    pub violating: u64,
    /// Steps of all of them.
    pub steps: u64,
    /// Events that the monitors saw.
    pub events: u64,
    /// Executions that were cut.
    pub cut: u64,
    /// What was covered.
    pub coverage: Coverage,
    /// Violations of sequential consistency, in the order in which they were found.
    pub violations: Vec<Found>,
    /// What went wrong whatever the memory model. The check ends there.
    pub failed: Option<Failed>,
    /// Loops that were taken to wait for another thread, each by what it looks at.
    pub waits: Vec<Place>,
}

/// What was covered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// Some schedules.
    Sampled,
    /// All partial orders, or all schedules.
    Complete,
    /// Only these.
    Bounded(String),
}

/// A violation of sequential consistency.
#[derive(Clone, Debug)]
pub struct Found {
    /// The store that can still wait in its buffer.
    pub store: Place,
    /// What another thread has done last, after that store.
    pub previous: Place,
    /// Its access that can come before the store.
    pub access: Place,
    /// Executions that show it.
    pub executions: u64,
    /// The first schedule that showed it.
    pub schedule: Schedule,
    /// The seed of that schedule.
    pub seed: Option<u64>,
}

/// A failure and the schedule that led there.
#[derive(Clone, Debug)]
pub struct Failed {
    /// What went wrong.
    pub failure: Failure,
    /// The schedule, with as few switches as were found to do.
    pub schedule: Schedule,
    /// The seed of the schedule that was found first.
    pub seed: Option<u64>,
}

impl Outcome {
    /// Whether there is nothing to report.
    pub fn is_fine(&self) -> bool {
        self.violations.is_empty() && self.failed.is_none()
    }
}

impl Failure {
    /// Whether it is the same, maybe of other threads.
    pub(crate) fn is_like(&self, other: &Failure) -> bool {
        match (self, other) {
            (Failure::Panic { message: a, place: at, .. }, Failure::Panic { message: b, place, .. }) => {
                (a, at) == (b, place)
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let list = |f: &mut Formatter<'_>, threads: &[(String, Place)]| {
            threads.iter().try_for_each(|(thread, place)| write!(f, "\n  {thread}: {}", Quoted(place)))
        };
        match self {
            Failure::Panic { thread, message, place } => {
                let place = place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
                write!(f, "{thread} panicked{place}: {message}")
            }
            Failure::Deadlock(threads) => {
                write!(f, "deadlock: no thread can go on")?;
                list(f, threads)
            }
            Failure::Spin(threads) => {
                write!(f, "endless loop: these threads wait for a change that nobody will make")?;
                list(f, threads)
            }
            Failure::Leak(threads) => {
                write!(f, "the test is over, and these threads of it wait for ever")?;
                list(f, threads)
            }
            Failure::Silent(thread) => write!(
                f,
                "{thread} does not come to its next operation of palisade_sync: it loops without any, or waits for something that the scheduler does not know"
            ),
            Failure::Long(steps) => {
                write!(f, "the test does not end within {steps} steps (`Checker::steps` allows for more)")
            }
        }
    }
}

/// A place with its line.
struct Quoted<'a>(&'a Place);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}  ", self.0)?;
        match line(self.0) {
            Some(line) => f.write_str(&line),
            None => f.write_str(self.0.operation),
        }
    }
}

/// The line of a place, if its file is there: as named, or, from a package of a workspace, further up.
fn line(place: &Place) -> Option<String> {
    let file = Path::new(place.file);
    let here = std::env::current_dir().ok()?;
    let text = here.ancestors().take(4).find_map(|folder| std::fs::read_to_string(folder.join(file)).ok())?;
    Some(text.lines().nth(place.line.checked_sub(1)? as usize)?.trim().to_owned())
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let model = match self.model {
            Model::Sc => "SC",
            Model::Tso => "TSO",
            Model::Pso => "PSO",
        };
        let runs = match &self.coverage {
            Coverage::Sampled => format!("{} schedules", self.executions),
            Coverage::Complete => format!("{} executions, which are all partial orders", self.executions),
            Coverage::Bounded(what) => format!("{} executions; seen is only: {what}", self.executions),
        };
        match self.violations.len() {
            0 if self.failed.is_some() => writeln!(f, "palisade: a failure after {runs}")?,
            0 => writeln!(f, "palisade: nothing to report under {model} ({runs})")?,
            1 => writeln!(f, "palisade: 1 violation of sequential consistency under {model} ({runs})")?,
            n => writeln!(f, "palisade: {n} violations of sequential consistency under {model} ({runs})")?,
        }
        if let Some(failed) = &self.failed {
            writeln!(f, "\n{}", failed.failure)?;
            told(f, &failed.schedule, failed.seed)?;
        }
        for found in &self.violations {
            writeln!(f)?;
            let rows = [
                (&found.store, "this store can still be buffered"),
                (&found.previous, "while another thread, having passed here,"),
                (&found.access, "makes this access before the store reaches memory"),
            ];
            for (place, what) in rows {
                writeln!(f, "  {}\n      {what}", Quoted(place))?;
            }
            writeln!(f, "  in {} of {} executions", found.executions, self.executions)?;
            told(f, &found.schedule, found.seed)?;
        }
        if !self.waits.is_empty() {
            let places: Vec<String> = self.waits.iter().map(ToString::to_string).collect();
            writeln!(f, "\nloops taken to wait for another thread: {}", places.join(", "))?;
        }
        Ok(())
    }
}

/// How to see it again.
fn told(f: &mut Formatter<'_>, schedule: &Schedule, seed: Option<u64>) -> fmt::Result {
    if let Some(seed) = seed {
        writeln!(f, "  again: PALISADE_SEED={seed}")?;
    }
    writeln!(f, "  again: PALISADE_SCHEDULE=\"{schedule}\"")
}
