//! Whether all stacks of one automaton are stacks of another: a walk over a state of the first and the set of states the second can be in.

use crate::Refusal;
use palisade_engine::Budget;
use rustc_hash::{FxHashMap, FxHashSet};

/// The end of a stack.
pub(super) const END: u32 = u32::MAX;

/// The edges of a state: a frame and the next state.
pub(super) type Row = Vec<(u32, u32)>;

/// Whether all stacks that begin with one of these edges are in the other set, whose rows are sorted.
pub(super) fn is_within(
    first: &[(u32, u32)],
    rows: &[Row],
    other: &[Row],
    budget: &Budget,
) -> Result<bool, Refusal> {
    let mut numbers: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let mut sets: Vec<Vec<u32>> = vec![vec![0]];
    let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut open: Vec<(&[(u32, u32)], u32)> = vec![(first, 0)];
    let mut looked = 0u64;
    while let Some((row, at)) = open.pop() {
        looked += 1;
        if looked.is_multiple_of(4096) {
            let bytes =
                sets.iter().map(|set| 100 + 8 * set.len() as u64).sum::<u64>() + 24 * seen.len() as u64;
            budget.check(bytes).map_err(Refusal::Exhausted)?;
        }
        for &(frame, to) in row {
            let mut reached: Vec<u32> = Vec::new();
            for &state in &sets[at as usize] {
                let row = &other[state as usize];
                let from = row.partition_point(|&(letter, _)| letter < frame);
                reached.extend(row[from..].iter().take_while(|edge| edge.0 == frame).map(|edge| edge.1));
            }
            if to == END {
                if !reached.contains(&END) {
                    return Ok(false);
                }
                continue;
            }
            reached.retain(|&state| state != END);
            if reached.is_empty() {
                return Ok(false);
            }
            reached.sort_unstable();
            reached.dedup();
            let set = *numbers.entry(reached).or_insert_with_key(|set| {
                sets.push(set.clone());
                sets.len() as u32 - 1
            });
            if seen.insert((to, set)) {
                open.push((&rows[to as usize], set));
            }
        }
    }
    Ok(true)
}
