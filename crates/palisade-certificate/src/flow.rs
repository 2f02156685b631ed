//! The automata as the checker sees them: classes of states, and edges that read, write, fence or lock.
//! Silent edges are folded into the edge that follows. Edges from a class to itself that leave memory as it is
//! are left out, since a run stays a run without them.

use crate::Refusal;
use crate::rewrite::{ClassEdge, Rewrite};
use palisade_automata::{Automata, Automaton, Letter, Population};
use palisade_base::{Id, limits};
use palisade_memory::Model;
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};

/// The action of an edge. Cells and values are numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    /// Starts a process of this automaton.
    Spawn(u32),
    Read(u32, u32),
    Write(u32, u32),
    Fence,
    Locked {
        guard: Vec<(u32, u32)>,
        effect: Vec<(u32, u32)>,
    },
}

impl Act {
    /// The values it leaves in memory.
    pub fn writes(&self) -> Vec<(u32, u32)> {
        match self {
            Act::Write(cell, value) => vec![(*cell, *value)],
            Act::Locked { effect, .. } => effect.clone(),
            Act::Spawn(_) | Act::Read(..) | Act::Fence => Vec::new(),
        }
    }
}

/// An edge between classes, including the silent steps at its source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Edge {
    pub source: u32,
    pub target: u32,
    pub act: Act,
}

/// The maximal number of processes; `None` is any number.
pub(crate) type Limit = Option<u32>;

/// The automaton of one role.
#[derive(Debug)]
pub(crate) struct ProcessKind {
    pub population: Limit,
    /// How many of them there are at the start.
    pub initially: Limit,
    pub edges: Vec<Edge>,
    /// The edges that lead to each class.
    pub into: Vec<Vec<usize>>,
    pub is_start: Vec<bool>,
    /// Whether the edges that are left out at each class are reads, or are reads and fences.
    idle_reads: Vec<bool>,
    idle_reads_and_fences: Vec<bool>,
    /// The class of each state.
    pub class_of: Vec<u32>,
    /// For each class, the classes at which processes arrive and from which silent edges lead to it, possibly
    /// including the class itself.
    pub before: Vec<Vec<u32>>,
}

/// All automata.
#[derive(Debug)]
pub(crate) struct Flow {
    pub kinds: Vec<ProcessKind>,
    /// The number of values of each cell, and how many of them are initial.
    pub values: Vec<u32>,
    pub initial: Vec<u32>,
    /// The edges, by automaton and index, that leave a value in a cell.
    pub writers: FxHashMap<(u32, u32), Vec<(u32, usize)>>,
}

impl Flow {
    pub fn new(
        automata: &Automata,
        classes: &[Vec<u32>],
        model: Model,
        rewrite: Option<&Rewrite<'_>>,
    ) -> Result<Flow, Refusal> {
        let numbers = class_numbers(automata, classes)?;
        let kinds: Vec<ProcessKind> = automata
            .automata
            .iter()
            .zip(classes)
            .enumerate()
            .map(|(number, (automaton, classes))| {
                let free = rewrite.is_some_and(|rewrite| rewrite.starts_anytime(number as u32));
                let populations = (limit(automaton.population), limit(automaton.initially).filter(|_| !free));
                let edges = automaton.edges.iter().map(|edge| {
                    let class = |state: palisade_automata::StateId| classes[state.index()];
                    (class(edge.source), class(edge.target), act(&edge.letter, model))
                });
                let mut is_start = vec![false; numbers[number]];
                automaton.starts.iter().for_each(|start| is_start[classes[start.0.index()] as usize] = true);
                let mut edges: Vec<ClassEdge> = edges.collect();
                if let Some(rewrite) = rewrite {
                    edges = rewrite.apply(number, &is_start, edges);
                }
                ProcessKind::new(populations, classes.clone(), is_start, edges)
            })
            .collect();
        let count = |cell: CellId| automata.values[cell].len() as u32;
        let mut writers: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (number, kind) in kinds.iter().enumerate() {
            for (edge, _) in kind.edges.iter().enumerate() {
                for written in kind.edges[edge].act.writes() {
                    writers.entry(written).or_default().push((number as u32, edge));
                }
            }
        }
        Ok(Flow {
            kinds,
            writers,
            values: automata.values.ids().map(count).collect(),
            initial: automata.initial.iter().map(|&count| count as u32).collect(),
        })
    }

    /// Whether some processes are started at run time.
    pub fn spawns(&self) -> bool {
        self.kinds.iter().any(|kind| kind.edges.iter().any(|edge| matches!(edge.act, Act::Spawn(_))))
    }

    /// The limits when only this many processes of each automaton are followed.
    pub fn limits(&self, tracked: &[u32]) -> Vec<Limit> {
        let limit = |(kind, &tracked): (&ProcessKind, &u32)| {
            Some(kind.population.map_or(tracked, |all| all.min(tracked)))
        };
        self.kinds.iter().zip(tracked).map(limit).collect()
    }
}

/// A population as a limit.
pub(crate) fn limit(population: Population) -> Limit {
    match population {
        Population::Fixed(count) => Some(count),
        Population::Any => None,
    }
}

/// For each automaton, the number of its classes of states.
pub(crate) fn class_numbers(automata: &Automata, classes: &[Vec<u32>]) -> Result<Vec<usize>, Refusal> {
    if classes.len() != automata.automata.len() {
        return Err(Refusal::Unfit("it has classes for the wrong number of automata".into()));
    }
    let number = |(automaton, classes): (&Automaton, &Vec<u32>)| {
        if classes.len() != automaton.states.len() {
            return Err(Refusal::Unfit("an automaton has the wrong number of states".into()));
        }
        let most = classes.iter().map(|&class| (class as usize).saturating_add(1)).max().unwrap_or(0);
        if most > classes.len() {
            return Err(Refusal::Unfit("there are more classes than states".into()));
        }
        Ok(most)
    };
    automata.automata.iter().zip(classes).map(number).collect()
}

/// The meaning of a letter under the model; `None` if it has no effect.
fn act(letter: &Letter, model: Model) -> Option<Act> {
    let numbers = |list: &[(CellId, palisade_automata::ValueId)]| -> Vec<(u32, u32)> {
        list.iter().map(|(cell, value)| (cell.0, value.0)).collect()
    };
    let sc = model == Model::Sc;
    match letter {
        Letter::Silent | Letter::StoreFence => None,
        Letter::Spawn(child) => Some(Act::Spawn(*child)),
        Letter::Fence if sc => None,
        Letter::Fence => Some(Act::Fence),
        Letter::Read(cell, value) if sc => {
            Some(Act::Locked { guard: vec![(cell.0, value.0)], effect: Vec::new() })
        }
        Letter::Read(cell, value) => Some(Act::Read(cell.0, value.0)),
        Letter::Write(cell, value) if sc => {
            Some(Act::Locked { guard: Vec::new(), effect: vec![(cell.0, value.0)] })
        }
        Letter::Write(cell, value) => Some(Act::Write(cell.0, value.0)),
        Letter::Locked { guard, effect } => {
            Some(Act::Locked { guard: numbers(guard), effect: numbers(effect) })
        }
    }
}

impl ProcessKind {
    fn new(
        (population, initially): (Limit, Limit),
        class_of: Vec<u32>,
        is_start: Vec<bool>,
        edges: Vec<ClassEdge>,
    ) -> ProcessKind {
        let classes = is_start.len();
        let mut arrives = is_start.clone();
        let mut silent = vec![Vec::new(); classes];
        let is_idle = |source: u32, target: u32, act: &Act| {
            source == target && act.writes().is_empty() && !matches!(act, Act::Spawn(_))
        };
        for (source, target, act) in &edges {
            match act {
                None => silent[*target as usize].push(*source),
                Some(act) => arrives[*target as usize] |= !is_idle(*source, *target, act),
            }
        }
        let before: Vec<Vec<u32>> =
            (0..classes as u32).map(|class| reach(&silent, class, &arrives)).collect();
        let mut idle_reads = vec![true; classes];
        let mut idle_reads_and_fences = vec![true; classes];
        let mut seen = FxHashSet::default();
        let mut into = vec![Vec::new(); classes];
        let mut folded = Vec::new();
        for (source, target, act) in edges {
            let Some(act) = act else { continue };
            if is_idle(source, target, &act) {
                idle_reads[target as usize] &= matches!(act, Act::Read(..));
                idle_reads_and_fences[target as usize] &= matches!(act, Act::Read(..) | Act::Fence);
                continue;
            }
            for &source in &before[source as usize] {
                let edge = Edge { source, target, act: act.clone() };
                if seen.insert(edge.clone()) {
                    into[target as usize].push(folded.len());
                    folded.push(edge);
                }
            }
        }
        ProcessKind {
            population,
            initially,
            edges: folded,
            into,
            is_start,
            idle_reads,
            idle_reads_and_fences,
            class_of,
            before,
        }
    }

    /// Whether a process can have reached the class only by reads, or also by fences if its buffer does not
    /// matter. Edges that are left out count too. They need not, but then the process that is chosen would
    /// depend on them.
    pub fn only_reads_into(&self, class: u32, fences_too: bool) -> bool {
        let harmless = |&edge: &usize| match self.edges[edge].act {
            Act::Read(..) => true,
            Act::Fence => fences_too,
            Act::Spawn(_) | Act::Write(..) | Act::Locked { .. } => false,
        };
        let idle = if fences_too { &self.idle_reads_and_fences } else { &self.idle_reads };
        !self.is_start[class as usize]
            && idle[class as usize]
            && self.into[class as usize].iter().all(harmless)
    }
}

/// The classes at which processes arrive and from which silent edges lead to a class.
fn reach(silent: &[Vec<u32>], class: u32, arrives: &[bool]) -> Vec<u32> {
    let mut seen = vec![class];
    let mut next = 0;
    while let Some(&at) = seen.get(next) {
        limits::checkpoint();
        for &source in &silent[at as usize] {
            if !seen.contains(&source) {
                seen.push(source);
            }
        }
        next += 1;
    }
    seen.retain(|&class| arrives[class as usize]);
    seen
}
