//! The result of a check, and its report for a failing test.
//!
//! Source lines are quoted if the files can be read. Compilers record file names relative to where they ran,
//! which is the package or the workspace.

use crate::runtime::schedule::Schedule;
use crate::runtime::session::CallSite;
pub use crate::runtime::state::Failure;
use palisade_memory::Model;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The memory model.
    pub model: Model,
    /// Whether the question was robustness ([`Checker::robust`](crate::Checker::robust)).
    pub is_about_robustness: bool,
    /// The number of executions.
    pub executions: u64,
    /// Distinct partial orders among them, if they are counted.
    pub partial_orders: Option<u64>,
    /// Executions that show a violation.
    pub violating: u64,
    /// Steps of all executions.
    pub steps: u64,
    /// Events that the monitors saw.
    pub events: u64,
    /// Executions cut at the limit on steps.
    pub cut: u64,
    /// What was covered.
    pub coverage: Coverage,
    /// If the question was robustness: violations of sequential consistency, in the order in which they were
    /// found.
    pub violations: Vec<ViolationReport>,
    /// Executions that are not sequentially consistent. This is not a failure.
    pub relaxed: Option<Reordering>,
    /// A failure. The check ends there.
    pub failed: Option<Failed>,
    /// What an execution has shown, but not when its schedule was repeated. The test depends on something other than
    /// its schedule.
    pub unrepeated: Vec<Unrepeated>,
    /// Loops treated as waiting for another thread, each by the access that it repeats.
    pub waits: Vec<CallSite>,
}

/// What was covered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// Some schedules.
    Sampled,
    /// All partial orders, or all schedules.
    Complete,
    /// Only this part.
    Bounded(String),
}

/// A violation of sequential consistency.
#[derive(Clone, Debug)]
pub struct ViolationReport {
    /// The store that can still be buffered.
    pub store: CallSite,
    /// The last step of another thread before its access; it happens after the store.
    pub previous: CallSite,
    /// The other thread's access, which can come before the store.
    pub access: CallSite,
    /// Executions that show it.
    pub executions: u64,
    /// The first schedule that showed it.
    pub schedule: Schedule,
    /// The seed of that schedule.
    pub seed: Option<u64>,
}

/// A store that reached memory after a later access of its thread took effect, in an execution that is not
/// sequentially consistent because of it.
#[derive(Clone, Debug)]
pub struct Reordering {
    /// The store.
    pub store: CallSite,
    /// The access that overtook it.
    pub access: CallSite,
    /// Executions that are not sequentially consistent, because of this or another store.
    pub executions: u64,
    /// The schedule of the first one.
    pub schedule: Schedule,
    /// The seed of that schedule.
    pub seed: Option<u64>,
}

/// Something that did not repeat.
#[derive(Clone, Debug)]
pub struct Unrepeated {
    /// What it was.
    pub what: String,
    /// What the repetition showed instead.
    pub instead: String,
    /// The schedule.
    pub schedule: Schedule,
}

/// On which machines a failure is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machines {
    /// On any machine: there is a sequentially consistent execution that fails like this, that is, at the same
    /// places of the source.
    Any,
    /// Only on machines with store buffers: all sequentially consistent executions were run, and none of them
    /// fails like this.
    OnlyBuffered,
    /// On machines with store buffers. It is not known whether it is possible without.
    Buffered {
        /// The number of executions without store buffers that were run and do not fail like this.
        without: u64,
    },
}

/// A failure, and the schedule that led there.
#[derive(Clone, Debug)]
pub struct Failed {
    /// What went wrong.
    pub failure: Failure,
    /// Where it is possible; `None` if that is not known.
    pub machines: Option<Machines>,
    /// The schedule, with the fewest switches that were found.
    pub schedule: Schedule,
    /// The seed of the schedule that failed first.
    pub seed: Option<u64>,
}

impl Outcome {
    /// Whether there is nothing to report.
    pub fn is_fine(&self) -> bool {
        self.violations.is_empty() && self.failed.is_none() && self.unrepeated.is_empty()
    }
}

impl Failure {
    /// Whether it is a failure at the same places of the source, perhaps of other threads or with other values.
    pub(crate) fn is_at_the_same_places(&self, other: &Failure) -> bool {
        let places = |threads: &[(String, CallSite)]| -> BTreeSet<CallSite> {
            threads.iter().map(|(_, place)| *place).collect()
        };
        match (self, other) {
            (Failure::Panic { place: Some(a), .. }, Failure::Panic { place: Some(b), .. }) => a == b,
            (Failure::Deadlock(a), Failure::Deadlock(b))
            | (Failure::Spin(a), Failure::Spin(b))
            | (Failure::Leak(a), Failure::Leak(b)) => places(a) == places(b),
            // Where a thread is in its loop depends on the schedule.
            (Failure::Livelock { repeating: a, .. }, Failure::Livelock { repeating: b, .. }) => {
                a.iter().map(|(thread, _)| thread).eq(b.iter().map(|(thread, _)| thread))
            }
            _ => self.is_like(other),
        }
    }

    /// Whether it is the same failure, perhaps of other threads.
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
        let list = |f: &mut Formatter<'_>, threads: &[(String, CallSite)], how: &str| {
            threads.iter().try_for_each(|(thread, place)| write!(f, "\n  {thread} {how} {}", Quoted(place)))
        };
        match self {
            Failure::Panic { thread, message, place } => {
                let place = place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
                write!(f, "{thread} panicked{place}: {message}")
            }
            Failure::Deadlock(threads) => {
                write!(f, "deadlock:")?;
                list(f, threads, "waits at")
            }
            Failure::Spin(threads) => {
                write!(f, "deadlock:")?;
                list(f, threads, "waits in a loop at")
            }
            Failure::Livelock { repeating, waiting } => {
                write!(f, "livelock:")?;
                list(f, repeating, "repeats the same steps and keeps passing")?;
                list(f, waiting, "waits at")?;
                write!(f, "\n  All threads took turns, and the same state came back again and again. ")?;
                write!(f, "Local variables and data under locks were not compared.")
            }
            Failure::Leak(threads) => {
                write!(f, "the test has ended, but some of its threads wait forever")?;
                list(f, threads, "waits at")
            }
            Failure::Silent(thread) => write!(
                f,
                "{thread} does not reach its next palisade_sync operation: it loops without one, or waits for something that the scheduler does not know about"
            ),
            Failure::Long { steps, threads } => {
                write!(f, "no end within {steps} steps (`Checker::steps` sets the limit):")?;
                list(f, threads, "is at")
            }
        }
    }
}

/// A call site with its source line.
struct Quoted<'a>(&'a CallSite);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}  ", self.0)?;
        match line(self.0) {
            Some(line) => f.write_str(&line),
            None => f.write_str(self.0.operation),
        }
    }
}

/// The source line of a call site, if its file can be found in the current folder or, for a package of a
/// workspace, in a folder above it.
fn line(place: &CallSite) -> Option<String> {
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
            Coverage::Sampled => counted(self.executions, "schedule"),
            Coverage::Complete => {
                format!("{}, one for every partial order", counted(self.executions, "execution"))
            }
            Coverage::Bounded(bounds) => {
                format!("{}, limited to: {bounds}", counted(self.executions, "execution"))
            }
        };
        match self.violations.len() {
            0 if self.failed.is_some() => {
                let what = if self.coverage == Coverage::Sampled { "schedule" } else { "execution" };
                writeln!(f, "palisade: a failure after {}", counted(self.executions, what))?;
            }
            0 if !self.unrepeated.is_empty() => {
                writeln!(f, "palisade: the test does not depend on its schedule alone ({runs})")?;
            }
            0 => writeln!(f, "palisade: nothing to report under {model} ({runs})")?,
            1 => writeln!(f, "palisade: 1 violation of sequential consistency under {model} ({runs})")?,
            n => writeln!(f, "palisade: {n} violations of sequential consistency under {model} ({runs})")?,
        }
        if let Some(failed) = &self.failed {
            writeln!(f, "\n{}", failed.failure)?;
            match failed.machines {
                Some(Machines::Any) => writeln!(f, "  on any machine, even without store buffers")?,
                Some(Machines::OnlyBuffered) => writeln!(
                    f,
                    "  only with store buffers ({model}): without them, no execution fails like this"
                )?,
                Some(Machines::Buffered { without: 0 }) => writeln!(f, "  with store buffers ({model})")?,
                Some(Machines::Buffered { without }) => writeln!(
                    f,
                    "  with store buffers ({model}): {} without them did not fail like this",
                    counted(without, "execution")
                )?,
                None => {}
            }
            write_schedule(f, &failed.schedule, failed.seed)?;
        }
        for violation in &self.violations {
            writeln!(f)?;
            let rows = [
                (&violation.store, "this store can still be buffered"),
                (&violation.previous, "while another thread, having passed here,"),
                (&violation.access, "makes this access before the store reaches memory"),
            ];
            for (place, text) in rows {
                writeln!(f, "  {}\n      {text}", Quoted(place))?;
            }
            writeln!(f, "  in {} of {} executions", violation.executions, self.executions)?;
            write_schedule(f, &violation.schedule, violation.seed)?;
        }
        for Unrepeated { what, instead, schedule } in &self.unrepeated {
            writeln!(f, "\nseen once: {what}")?;
            writeln!(f, "  when the same schedule was run again: {instead}")?;
            writeln!(
                f,
                "  So this is not reported as a failure. Either the test depends on something else (a static, a hash map with a random seed, the time), or this is an error in Palisade: please report it."
            )?;
            write_schedule(f, schedule, None)?;
        }
        if let Some(relaxed) = &self.relaxed {
            let verb = if relaxed.executions == 1 { "is" } else { "are" };
            let harmless = if self.failed.is_none() { "; nothing fails" } else { "" };
            writeln!(
                f,
                "\n{} of {} {verb} not sequentially consistent{harmless}; for example:",
                relaxed.executions,
                counted(self.executions, "execution")
            )?;
            let rows = [
                (&relaxed.store, "this store reached memory"),
                (&relaxed.access, "after this later access of its thread took effect"),
            ];
            for (place, text) in rows {
                writeln!(f, "  {}\n      {text}", Quoted(place))?;
            }
            write_schedule(f, &relaxed.schedule, relaxed.seed)?;
        }
        if !self.waits.is_empty() {
            let places: Vec<String> = self.waits.iter().map(ToString::to_string).collect();
            writeln!(f, "\nloops treated as waiting for another thread: {}", places.join(", "))?;
        }
        Ok(())
    }
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// How to repeat a schedule.
fn write_schedule(f: &mut Formatter<'_>, schedule: &Schedule, seed: Option<u64>) -> fmt::Result {
    if let Some(seed) = seed {
        writeln!(f, "  to repeat: PALISADE_SEED={seed}")?;
    }
    writeln!(f, "  to repeat: PALISADE_SCHEDULE=\"{schedule}\"")
}
