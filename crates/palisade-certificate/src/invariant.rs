//! The invariant of a proof, and the check that it is inductive.
//!
//! It is about single processes. It states which own stores can be the newest pending ones of their cells,
//! and which values a cell with only one writer holds at the writer's states (stores reach memory at once in
//! this semantics). Both are checked edge by edge. A cell that is never written and has one initial value
//! always holds that value.

use crate::Refusal;
use crate::element::Config;
use crate::flow::{Act, Flow, Limit};
use palisade_base::limits;
use palisade_engine::proof::{Held, LoadBuffers, Pending, Process};
use rustc_hash::FxHashSet;

#[derive(Debug)]
pub(crate) struct Invariant {
    pending: FxHashSet<Pending>,
    held: Vec<Known>,
}

/// What is known about a cell's content.
#[derive(Debug)]
enum Known {
    Nothing,
    /// It always holds its only initial value.
    Constant,
    /// The possible values, by the class of its only writer.
    ByWriter(u32, Vec<Vec<u32>>),
}

impl Invariant {
    pub fn new(flow: &Flow, proof: &LoadBuffers) -> Result<Invariant, Refusal> {
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
            held[claim.cell as usize] = Known::ByWriter(claim.kind, claim.values.clone());
        }
        Ok(Invariant { pending, held })
    }

    /// The value of a cell in memory, if it follows from the named processes.
    pub fn implied(&self, processes: &[Process], cell: u32) -> Option<u32> {
        match &self.held[cell as usize] {
            Known::Nothing => None,
            Known::Constant => Some(0),
            Known::ByWriter(kind, values) => {
                let writer = processes.iter().find(|process| process.kind == *kind)?;
                match values[writer.state as usize][..] {
                    [value] => Some(value),
                    _ => None,
                }
            }
        }
    }

    /// Whether memory can hold a value while the named processes are at their states.
    pub fn allows(&self, processes: &[Process], cell: u32, value: u32) -> bool {
        match &self.held[cell as usize] {
            Known::Nothing => true,
            Known::Constant => value == 0,
            Known::ByWriter(kind, values) => {
                let mut writers = processes.iter().filter(|process| process.kind == *kind);
                writers.all(|writer| values[writer.state as usize].contains(&value))
            }
        }
    }

    /// Whether some configuration of the set can satisfy the invariant, with at most this many processes.
    pub fn allows_all(&self, config: &Config, limits: &[Limit]) -> bool {
        let count = |kind: usize| config.processes.iter().filter(|p| p.kind as usize == kind).count();
        let enough = |(kind, limit): (usize, &Limit)| limit.is_none_or(|limit| count(kind) <= limit as usize);
        let may_wait = |process: &Process| {
            let own = process.word.iter().filter(|message| message.own);
            own.into_iter().all(|message| {
                self.pending.contains(&Pending {
                    kind: process.kind,
                    state: process.state,
                    cell: message.cell,
                    value: message.value,
                })
            })
        };
        let mut known = config.memory.iter().enumerate().filter_map(|(cell, value)| Some((cell, (*value)?)));
        limits.iter().enumerate().all(enough)
            && config.processes.iter().all(may_wait)
            && known.all(|(cell, value)| self.allows(&config.processes, cell as u32, value))
    }
}

/// The automata that write a cell.
fn writers(flow: &Flow, cell: u32) -> Vec<u32> {
    let writes = |kind: &crate::flow::ProcessKind| {
        kind.edges.iter().any(|edge| edge.act.writes().iter().any(|&(written, _)| written == cell))
    };
    (0..flow.kinds.len() as u32).filter(|&kind| writes(&flow.kinds[kind as usize])).collect()
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
    // Such a cell has no writer. The next condition would reject it too, but with a less specific message.
    if claim.cell as usize >= flow.values.len() {
        return unfit("there is no such cell");
    }
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
                Act::Write(..) | Act::Read(..) | Act::Fence => Some(value),
            };
            after.map_or(Ok(()), |after| holds(edge.target, after))?;
        }
    }
    Ok(())
}
