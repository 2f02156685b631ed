//! What every engine shares: the question, the budget, the answer, and how progress is told.
//!
//! An engine is a value that implements [`Engine`]. It gets a [`Task`] (a valid program, its running form, a machine), works within a
//! [`Budget`], tells a [`Progress`] what it is doing, and answers with an [`Outcome`]. An engine never prints, never panics on a
//! valid program, and stops soon after the budget says so.
//!
//! What is absent: front ends, text, and any particular engine.

mod budget;
mod memory;
pub mod proof;
mod race;
mod reach;
mod robustness;
mod stats;
mod verdict;

pub use budget::{Budget, Exhausted};
pub use memory::{Process, in_use as memory_in_use};
pub use palisade_base::limits::Pace;
pub use proof::Proof;
pub use race::{Entered, Race};
pub use reach::{Reachability, Reached};
pub use robustness::{ROBUST, RaceOutcome, Races, Robustness, RobustnessEngine, RobustnessOutcome};
pub use stats::{Stats, peak_memory_bytes};
pub use verdict::{Outcome, Reason, Verdict, Witness};

use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::running::System;
use palisade_program::{Instantiation, lower, written::Program};

/// What is asked: a program on a machine, and the bounds the user set.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The valid program as written; engines that need other instance counts lower it again.
    pub program: &'a Program,
    /// How often the templates are instantiated.
    pub threads: Threads,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// Options of single engines.
    pub options: Options,
}

/// How often the templates are instantiated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Threads {
    /// As declared.
    #[default]
    Declared,
    /// Every template this often, per combination of its parameters.
    Each(u32),
    /// Every template any number of times.
    Any,
}

/// Options of single engines.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Explicit search: the largest buffer tried before the answer is `unknown`.
    pub max_buffer: usize,
    /// Explicit search: whether states may be left out that cannot matter.
    pub reduction: Reduction,
    /// Lazy reachability: how often loops are unrolled before the answer is `unknown`.
    pub unroll: usize,
    /// Bounded rounds: how many rounds each process has (see [`Bound`]).
    pub rounds: Bound,
    /// Bounded store age: how many rounds of its process a store stays in the buffer beyond the one it was made in.
    pub age: Bound,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_buffer: 8,
            reduction: Reduction::Full,
            unroll: 3,
            rounds: Bound::Fixed(2),
            age: Bound::Fixed(2),
        }
    }
}

/// The bound of an engine that looks at part of the runs only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// This one.
    Fixed(u32),
    /// One after the other, until one is enough or the budget runs out.
    Auto,
}

/// Which states an explicit search may leave out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Reduction {
    /// None: every state of the machine is visited (registers that are never read again count as 0).
    None,
    /// Only those inside a run of local steps: every order of accesses to memory is visited.
    Local,
    /// All reductions: collapsed local steps, partial order, symmetry.
    #[default]
    Full,
}

impl Task<'_> {
    /// The instantiation in which a template with any number of instances has `any` of them.
    pub fn instantiation(&self, any: u32) -> Instantiation {
        match self.threads {
            Threads::Declared => Instantiation { any, every: None },
            Threads::Each(n) => Instantiation { any, every: Some(n) },
            Threads::Any => Instantiation { any, every: Some(any) },
        }
    }

    /// Whether some template has any number of instances.
    pub fn is_parameterized(&self) -> bool {
        use palisade_program::written::{Count, Start};
        let starts = |start| start == Start::Initially;
        match self.threads {
            Threads::Declared => {
                self.program.templates.iter().any(|t| starts(t.start) && t.count == Count::Any)
            }
            Threads::Each(_) => false,
            Threads::Any => self.program.templates.iter().any(|t| starts(t.start)),
        }
    }

    /// The running form, with `any` instances where any number is meant.
    pub fn system(&self, any: u32) -> System {
        lower(self.program, self.instantiation(any))
    }

    /// The machine for a running form of this task.
    pub fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        Machine { system, model: self.model, interlocked: self.interlocked }
    }
}

/// A decision procedure or bug finder.
pub trait Engine: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Whether it is worth trying on the task, and how sure it is to decide it.
    fn suits(&self, task: &Task<'_>) -> Suitability;

    /// Answers within the budget.
    fn check(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> Outcome;

    /// Whether it can prove `safe` to others.
    fn proofs(&self) -> Proofs {
        Proofs::None
    }

    /// Answers within the budget, and proves `safe` if the engine can.
    fn prove(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> (Outcome, Option<Proof>) {
        (self.check(task, budget, progress), None)
    }
}

/// What an engine can show for `safe`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Proofs {
    /// Nothing.
    None,
    /// That visiting all states is enough: whoever checks it does the work again, without reductions.
    ByVisitingAll,
    /// An argument that is checked piece by piece.
    Argued,
}

/// How well an engine suits a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Suitability {
    /// It cannot even try.
    No,
    /// It can, but others are made for such tasks: `auto` asks it last, and gives it less time.
    Reluctant,
    /// It may find a bug, or decide with luck.
    Tries,
    /// It decides, given time and memory.
    Decides,
}

/// Where an engine tells what it is doing. Called often: implementations must be cheap and may drop what they are told.
pub trait Progress: Send + Sync {
    /// What is being tried and what the counters say now.
    fn tell(&self, doing: &str, stats: &Stats);

    /// The same where several engines work side by side: which one it is, by its number and its name.
    fn tell_of(&self, _lane: usize, _engine: &str, doing: &str, stats: &Stats) {
        self.tell(doing, stats);
    }

    /// The engine of this number has ended. It may be asked again later.
    fn ended(&self, _lane: usize) {}

    /// Something that is worth keeping for those who want to know how the answer came about.
    fn note(&self, _note: &Note) {}
}

/// Something an engine did on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// What, in words.
    pub text: String,
    /// The places in the source it is about.
    pub places: Vec<palisade_base::Span>,
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn tell(&self, _: &str, _: &Stats) {}
}
