//! The question as data: a program on a machine, and the bounds the user set.

use crate::Analysis;
use palisade_automata::Population;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::running::{RoleId, System};
use palisade_program::written::{Count, Program, Start};
use palisade_program::{Instantiation, lower};

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
    /// A new analysis of this question.
    pub fn analysis(&self) -> Analysis<'_> {
        Analysis::new(self.clone())
    }

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
        let starts = |start| start == Start::Initially;
        match self.threads {
            Threads::Declared => {
                self.program.templates.iter().any(|t| starts(t.start) && t.count == Count::Any)
            }
            Threads::Each(_) => false,
            Threads::Any => self.program.templates.iter().any(|t| starts(t.start)),
        }
    }

    /// Lowers the program, with `any` instances where any number is meant. Engines use what their [`Analysis`] keeps.
    pub fn lower(&self, any: u32) -> System {
        lower(self.program, self.instantiation(any))
    }

    /// How many threads run a role.
    pub fn population(&self, system: &System, role: RoleId) -> Population {
        let template = &self.program.templates[system.roles[role].template.0 as usize];
        match (self.threads, template.count) {
            (Threads::Any, _) | (Threads::Declared, Count::Any) => Population::Any,
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
