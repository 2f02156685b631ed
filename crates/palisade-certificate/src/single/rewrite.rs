//! Starts of processes, and two rewrites of the automata under PSO for proofs that say so.
//!
//! # Starts
//! If stores are delayed ([`palisade_automata::Starts`]), nothing else is pending when a process is started. Otherwise,
//! where no store of the parent can be pending, a fence before the start changes nothing. So the start waits until the
//! parent's pointer is at the end of the buffer, and the new process's pointer begins there. Elsewhere, the new process
//! may see older memory, and its stores may take effect before pending ones of its parent. There the start is a local
//! step, and any number of such processes may be there from the beginning. That only adds runs.
//!
//! # Rewrites
//! 1. A store to a class m and the fence after it become one locked store that waits for all queues, if m is not a
//!    start, all edges into m are stores, all edges out of it are fences to other classes, properties do not
//!    distinguish the states of m from those after the fence, and before the store no store of the process to
//!    another cell can be pending.
//! 2. A read by the only writer of a cell is a local step, or is never taken, where the process can have stored only
//!    one value last.
//!
//! # Why this is sound
//! 1. Let a process p store v to x, and later take the fence. At the fence p's queues are empty, so v took effect in
//!    between, after p's older stores to x. Nothing else of p was pending. Between the store and the fence p does
//!    nothing but let these stores take effect, and other processes do not see its queues or its class. So the
//!    store can be put off until immediately before it takes effect, and the fence can be taken immediately after
//!    that, with p's pointer at the end of the buffer before and after. Then all queues of p are empty before the
//!    store: that is the locked store. In a run that ends with p at m, v can take effect and p can take the fence
//!    at its end. That changes nothing that properties see of p. They see a cell only when nothing is pending
//!    for it, so if the end was bad and v was pending, x was not looked at.
//! 2. No other process stores to the cell. So the newest entry of p's queue, p's newest store after its pointer, and
//!    memory at its pointer are all p's last store to it, or the initial value if there is none: whichever p reads,
//!    it is that value.

use super::flow::{Act, Edge};
use crate::rewrite::Looks;
use crate::values::Values;
use palisade_base::limits;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known about an automaton before it is rewritten.
pub(crate) struct Before<'a> {
    pub looks: &'a Looks<'a>,
    /// For each cell that only this process writes, the values that it can have stored last, by class.
    pub last: FxHashMap<u32, Vec<Values>>,
    /// The cells to which stores can be pending, with classes.
    pub queued: FxHashSet<(u32, u32)>,
}

impl Before<'_> {
    /// Whether a store is the only one that can be pending after it, except for older ones to the same cell.
    fn is_first(&self, edge: &Edge) -> bool {
        let Act::Store(cell, _) = edge.act else { return false };
        !self.queued.iter().any(|&(class, other)| class == edge.source && other != cell)
    }

    /// The only value that a process can read from a cell.
    fn only_value(&self, cell: u32, class: u32) -> Option<u32> {
        let mut values = self.last.get(&cell)?[class as usize].iter();
        values.next().filter(|_| values.next().is_none())
    }
}

/// The rewritten edges of an automaton.
pub(crate) fn rewritten(edges: &[Edge], is_start: &[bool], before: &Before<'_>) -> Vec<Edge> {
    let counts = |edge: &&Edge| edge.source != edge.target || edge.act != Act::Silent;
    let mut only_stores = vec![true; is_start.len()];
    let mut only_fences = vec![true; is_start.len()];
    let mut has_fence = vec![false; is_start.len()];
    for edge in edges.iter().filter(counts) {
        limits::checkpoint();
        let Edge { source, target, act } = edge;
        only_stores[*target as usize] &= before.is_first(edge);
        let fence = *act == Act::Fence && source != target && before.looks.are_alike(*source, *target);
        only_fences[*source as usize] &= fence;
        has_fence[*source as usize] |= fence;
    }
    let between = |class: u32| {
        let class = class as usize;
        !is_start[class] && only_stores[class] && only_fences[class] && has_fence[class]
    };
    let mut rewritten = Vec::new();
    // The fence is part of the store.
    for edge in edges.iter().filter(|edge| !between(edge.source)) {
        let Edge { source, target, ref act } = *edge;
        match *act {
            Act::Store(cell, value) if between(target) => {
                for after in edges.iter().filter(|edge| edge.source == target).filter(counts) {
                    let act = Act::Locked { guard: Vec::new(), effect: vec![(cell, value)], only: None };
                    rewritten.push(Edge { source, target: after.target, act });
                }
            }
            Act::Read(cell, value) => match before.only_value(cell, source) {
                Some(only) if only == value => rewritten.push(Edge { source, target, act: Act::Silent }),
                Some(_) => {}
                None => rewritten.push(edge.clone()),
            },
            _ => rewritten.push(edge.clone()),
        }
    }
    rewritten
}
