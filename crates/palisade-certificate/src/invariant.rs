//! The invariant of a proof, and the check that it is inductive.
//!
//! It is about single processes. It states which own stores can be the newest pending ones of their cells,
//! and which values a cell with only one writer holds at the writer's states (stores reach memory at once in
//! this semantics). Both are checked edge by edge. A cell that is never written and has one initial value
//! always holds that value.

use crate::Refusal;
use crate::element::{Config, Process};
use crate::flow::{Act, Flow, Limit};
use crate::values::Values;
use palisade_base::limits;
use palisade_engine::proof::{Held, LoadBuffers, Pending};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Debug)]
pub(crate) struct Invariant {
    /// By automaton, class and cell.
    pending: FxHashMap<(u32, u32, u32), Values>,
    held: Vec<Known>,
}

/// What is known about a cell's content.
#[derive(Debug)]
enum Known {
    Nothing,
    /// It always holds its only initial value.
    Constant,
    /// The possible values, by the class of its only writer.
    ByWriter(u32, Vec<Values>),
}

impl Invariant {
    pub fn new(flow: &Flow, proof: &LoadBuffers) -> Result<Invariant, Refusal> {
        check_names(flow, proof)?;
        let pending: FxHashSet<Pending> = proof.pending.iter().copied().collect();
        check_pending(flow, &pending)?;
        let mut held: Vec<Known> = (0..flow.values.len() as u32)
            .map(|cell| {
                let constant = flow.initial[cell as usize] == 1 && writers(flow, cell).is_empty();
                if constant { Known::Constant } else { Known::Nothing }
            })
            .collect();
        for claim in &proof.held {
            check_held(flow, claim)?;
            let values = claim.values.iter().map(|values| Values::of(values.iter().copied()));
            held[claim.cell as usize] = Known::ByWriter(claim.kind, values.collect());
        }
        let mut by_cell: FxHashMap<(u32, u32, u32), Vec<u32>> = FxHashMap::default();
        for claim in pending {
            by_cell.entry((claim.kind, claim.state, claim.cell)).or_default().push(claim.value);
        }
        let pending = by_cell.into_iter().map(|(place, values)| (place, Values::of(values))).collect();
        Ok(Invariant { pending, held })
    }

    /// The values that the newest pending store to a cell can have in a class.
    pub fn pending(&self, kind: u32, class: u32, cell: u32) -> Option<&Values> {
        self.pending.get(&(kind, class, cell))
    }

    /// Whether a process of this automaton may have a pending store in this class.
    pub fn may_have_pending(&self, kind: u32, class: u32) -> bool {
        self.pending.keys().any(|&(of, at, _)| (of, at) == (kind, class))
    }

    /// The only value that a cell can have while its only writer is a process of this automaton in this class.
    pub fn only_value(&self, kind: u32, cell: u32, class: u32) -> Option<u32> {
        match &self.held[cell as usize] {
            Known::ByWriter(writer, values) if *writer == kind => {
                let mut values = values[class as usize].iter();
                values.next().filter(|_| values.next().is_none())
            }
            _ => None,
        }
    }

    /// The values that a cell can have in memory, if the named processes restrict them.
    pub fn implied(&self, processes: &[Process], cell: u32) -> Option<Values> {
        match &self.held[cell as usize] {
            Known::Nothing => None,
            Known::Constant => Some(Values::one(0)),
            Known::ByWriter(kind, values) => {
                let mut writers = processes.iter().filter(|process| process.kind == *kind);
                let first = values[writers.next()?.state as usize].clone();
                Some(writers.fold(first, |both, writer| both.and(&values[writer.state as usize])))
            }
        }
    }

    /// The values that a cell can have in memory, as far as something is known about it.
    pub fn memory(&self, config: &Config, cell: u32) -> Option<Values> {
        match (&config.memory[cell as usize], self.implied(&config.processes, cell)) {
            (None, implied) => implied,
            (Some(named), None) => Some(named.clone()),
            (Some(named), Some(implied)) => Some(named.and(&implied)),
        }
    }

    /// The same configurations, as far as they satisfy the invariant and there are at most this many
    /// processes, with what follows from the invariant. `None` if there are none.
    pub fn narrowed(&self, config: &Config, limits: &[Limit]) -> Option<Config> {
        let count = |kind: usize| config.processes.iter().filter(|p| p.kind as usize == kind).count();
        let enough = |(kind, limit): (usize, &Limit)| limit.is_none_or(|limit| count(kind) <= limit as usize);
        if !limits.iter().enumerate().all(enough) {
            return None;
        }
        let memory: Vec<Option<Values>> =
            (0..config.memory.len() as u32).map(|cell| self.memory(config, cell)).collect();
        let mut processes = config.processes.clone();
        for process in &mut processes {
            for letter in process.word.iter_mut().filter(|letter| letter.own) {
                let pending = self.pending.get(&(process.kind, process.state, letter.cell))?;
                letter.values = letter.values.and(pending);
            }
        }
        let mut sets = memory
            .iter()
            .flatten()
            .chain(processes.iter().flat_map(|process| process.word.iter().map(|letter| &letter.values)));
        if sets.any(Values::is_empty) {
            return None;
        }
        processes.sort();
        Some(Config { memory, processes })
    }
}

/// The automata that write a cell.
fn writers(flow: &Flow, cell: u32) -> Vec<u32> {
    let writes = |kind: &crate::flow::ProcessKind| {
        kind.edges.iter().any(|edge| edge.act.writes().iter().any(|&(written, _)| written == cell))
    };
    (0..flow.kinds.len() as u32).filter(|&kind| writes(&flow.kinds[kind as usize])).collect()
}

/// Checks that all claims are about automata, classes, cells and values that exist. Everything after this may use them
/// as indices.
fn check_names(flow: &Flow, proof: &LoadBuffers) -> Result<(), Refusal> {
    let unfit = |what: String| Err(Refusal::Unfit(what));
    let classes = |kind: u32| flow.kinds.get(kind as usize).map_or(0, |kind| kind.into.len());
    let values = |cell: u32| flow.values.get(cell as usize).copied().unwrap_or(0);
    for &Pending { kind, state, cell, value } in &proof.pending {
        if state as usize >= classes(kind) || value >= values(cell) {
            return unfit(format!(
                "there is no value {value}, no cell {cell}, no class {state} or no automaton {kind} for a pending store"
            ));
        }
    }
    for Held { cell, kind, values: held } in &proof.held {
        let unfit = |what: String| unfit(format!("the content of cell {cell}: {what}"));
        if *cell as usize >= flow.values.len() {
            return unfit("there is no such cell".into());
        }
        if *kind as usize >= flow.kinds.len() {
            return unfit(format!("there is no automaton {kind}"));
        }
        if let Some(value) = held.iter().flatten().find(|value| **value >= values(*cell)) {
            return unfit(format!("it has no value {value}"));
        }
    }
    Ok(())
}

fn check_pending(flow: &Flow, pending: &FxHashSet<Pending>) -> Result<(), Refusal> {
    let missing = |claim: &Pending| {
        let Pending { kind, state, cell, value } = claim;
        let what = format!("automaton {kind} at {state} may have a pending store of c{cell}={value}");
        if pending.contains(claim) { Ok(()) } else { Err(Refusal::NotInductive(what)) }
    };
    for (index, kind) in flow.kinds.iter().enumerate() {
        let mut at: Vec<Vec<(u32, u32)>> = vec![Vec::new(); kind.into.len()];
        for claim in pending.iter().filter(|claim| claim.kind as usize == index) {
            if let Some(list) = at.get_mut(claim.state as usize) {
                list.push((claim.cell, claim.value));
            }
        }
        for edge in &kind.edges {
            limits::checkpoint();
            let after = |cell, value| Pending { kind: index as u32, state: edge.target, cell, value };
            if let Act::Write(cell, value) = edge.act {
                missing(&after(cell, value))?;
            }
            for &(cell, value) in &at[edge.source as usize] {
                let survives = match &edge.act {
                    // While this store is pending, it is what the process would read.
                    Act::Read(read, seen) => *read != cell || *seen == value,
                    Act::Write(written, _) => *written != cell,
                    Act::Spawn(_) => true,
                    Act::Fence | Act::Locked { .. } => false,
                };
                if survives {
                    missing(&after(cell, value))?;
                }
            }
        }
    }
    Ok(())
}

fn check_held(flow: &Flow, claim: &Held) -> Result<(), Refusal> {
    let unfit = |what: &str| Err(Refusal::Unfit(format!("the content of cell {}: {what}", claim.cell)));
    if writers(flow, claim.cell) != [claim.kind] || flow.kinds[claim.kind as usize].population != Some(1) {
        return unfit("it has other writers");
    }
    let kind = &flow.kinds[claim.kind as usize];
    if claim.values.len() != kind.into.len() {
        return unfit("its writer has the wrong number of states");
    }
    let holds = |state: u32, value: u32| {
        let what = || format!("cell {} may hold {value} with its writer at {state}", claim.cell);
        let listed = claim.values[state as usize].contains(&value);
        if listed { Ok(()) } else { Err(Refusal::NotInductive(what())) }
    };
    for state in (0..kind.into.len() as u32).filter(|&state| kind.is_start[state as usize]) {
        (0..flow.initial[claim.cell as usize]).try_for_each(|value| holds(state, value))?;
    }
    for edge in &kind.edges {
        for &value in &claim.values[edge.source as usize] {
            let of_cell = |list: &[(u32, u32)]| list.iter().find(|(c, _)| *c == claim.cell).map(|&(_, v)| v);
            let after = match &edge.act {
                Act::Write(written, new) if *written == claim.cell => Some(*new),
                // The only writer reads what it wrote last.
                Act::Read(read, seen) if *read == claim.cell && *seen != value => None,
                Act::Locked { guard, .. } if of_cell(guard).is_some_and(|seen| seen != value) => None,
                Act::Locked { effect, .. } => Some(of_cell(effect).unwrap_or(value)),
                Act::Spawn(_) | Act::Write(..) | Act::Read(..) | Act::Fence => Some(value),
            };
            after.map_or(Ok(()), |after| holds(edge.target, after))?;
        }
    }
    Ok(())
}
