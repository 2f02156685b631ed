//! The question as data: a program on a machine, and the bounds that the user set.

use crate::Analysis;
use palisade_automata::Population;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::running::{RoleId, System};
use palisade_program::written::{Count, Program, Start, Template};
use palisade_program::{Instantiation, Waits, lower_with};

/// The question: a program on a machine, and the bounds that the user set.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The valid program as written. Engines that need other instance counts lower it again.
    pub program: &'a Program,
    /// How many instances each template has.
    pub threads: Threads,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// Options for individual engines.
    pub options: Options,
}

/// How many instances each template has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Threads {
    /// As declared.
    #[default]
    Declared,
    /// This many instances of every template, per combination of its parameters.
    Each(u32),
    /// Any number of instances of every template.
    Any,
    /// Any number of instances of each template that is declared with several. The program of the task already says so
    /// (see [`any_number_of_several`]).
    Several,
}

/// Turns a program into the one with any number of instances of each template that is declared with several. Whether
/// there is any number of instances of some template now.
pub fn any_number_of_several(program: &mut Program) -> bool {
    let initially = |template: &&mut Template| template.start == Start::Initially;
    let mut is_any = false;
    let identities = program.identities.as_ref().map(|identities| identities.process.clone());
    for template in program.templates.iter_mut().filter(initially) {
        let has_identity = identities.as_deref() == Some(template.name.as_str());
        if has_identity || !matches!(template.count, Count::Fixed(0 | 1)) {
            template.count = Count::Any;
            is_any = true;
        }
    }
    is_any
}

/// Options for individual engines.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Explicit search: the largest buffer to try before the answer is `unknown`.
    pub max_buffer: usize,
    /// Explicit search: whether states that cannot matter may be left out.
    pub reduction: Reduction,
    /// Lazy reachability: how often loops are unrolled before the answer is `unknown`.
    pub unroll: usize,
    /// Bounded rounds: how many rounds each process has (see [`Bound`]).
    pub rounds: Bound,
    /// Bounded store age: how many rounds of its process a store stays in the buffer after the round in which
    /// it was made.
    pub age: Bound,
    /// What a failed attempt of a wait leads to. Questions about what stays possible need [`Waits::Retry`].
    pub waits: Waits,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_buffer: 8,
            reduction: Reduction::Full,
            unroll: 3,
            rounds: Bound::Fixed(2),
            age: Bound::Fixed(2),
            waits: Waits::Delay,
        }
    }
}

/// The bound of an engine that looks at only some of the runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// This bound.
    Fixed(u32),
    /// One bound after the other, until one is enough or the budget runs out.
    Auto,
}

/// Which states an explicit search may leave out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Reduction {
    /// None. Every state of the machine is visited (registers that are never read again count as 0).
    None,
    /// Only states inside a sequence of local steps. Every order of accesses to memory is visited.
    Local,
    /// All reductions: collapsed local steps, partial order, symmetry.
    #[default]
    Full,
}

impl<'a> Task<'a> {
    /// The program as declared under a model, with the default options.
    pub fn new(program: &'a Program, model: Model) -> Task<'a> {
        let (threads, interlocked) = (Threads::default(), Interlocked::default());
        Task { program, threads, model, interlocked, options: Options::default() }
    }

    /// A new analysis of this question.
    pub fn analysis(&self) -> Analysis<'_> {
        Analysis::new(self.clone())
    }

    /// The instantiation with `any` instances of each template whose number of instances is not fixed.
    pub fn instantiation(&self, any: u32) -> Instantiation {
        match self.threads {
            Threads::Declared | Threads::Several => Instantiation { any, every: None },
            Threads::Each(n) => Instantiation { any, every: Some(n) },
            Threads::Any => Instantiation { any, every: Some(any) },
        }
    }

    /// Whether the number of instances of some template is not fixed.
    pub fn is_parameterized(&self) -> bool {
        let starts = |start| start == Start::Initially;
        match self.threads {
            Threads::Declared | Threads::Several => {
                self.program.templates.iter().any(|t| starts(t.start) && t.count == Count::Any)
            }
            Threads::Each(_) => false,
            Threads::Any => self.program.templates.iter().any(|t| starts(t.start)),
        }
    }

    /// Whether the number of processes with identities is not fixed.
    pub fn has_open_identities(&self) -> bool {
        !matches!(self.threads, Threads::Each(_)) && self.program.has_open_identities()
    }

    /// Lowers the program, with `any` instances of each template whose number of instances is not fixed.
    /// Engines use the result that their [`Analysis`] keeps.
    pub fn lower(&self, any: u32) -> System {
        lower_with(self.program, self.instantiation(any), self.options.waits)
    }

    /// How many threads run a role.
    pub fn population(&self, system: &System, role: RoleId) -> Population {
        let template = &self.program.templates[system.roles[role].template.0 as usize];
        match (self.threads, template.count) {
            (Threads::Any, _) | (Threads::Declared | Threads::Several, Count::Any) => Population::Any,
            _ => {
                let instances = system.instances.iter().filter(|instance| instance.role == role);
                Population::Fixed(instances.count() as u32)
            }
        }
    }

    /// The machine for a running form of this task.
    pub fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        Machine { system, model: self.model, interlocked: self.interlocked }
    }
}
