//! Whether all stacks of one automaton are stacks of another. This is a walk over pairs of a state of the
//! first and the set of states the second can be in.

use crate::Refusal;
use crate::watch::Watch;
use rustc_hash::{FxHashMap, FxHashSet};

/// The end of a stack.
pub(super) const END: u32 = u32::MAX;

/// The edges of a state: a frame and the next state.
pub(super) type Row = Vec<(u32, u32)>;

/// Sets of states by index. A set with one state has the index of that state.
struct Sets {
    states: u32,
    numbers: FxHashMap<Vec<u32>, u32>,
    larger: Vec<Vec<u32>>,
}

impl Sets {
    fn number(&mut self, set: &mut Vec<u32>) -> u32 {
        set.sort_unstable();
        set.dedup();
        match set[..] {
            [state] => state,
            _ => match self.numbers.get(set) {
                Some(&number) => number,
                None => {
                    let number = self.states + self.larger.len() as u32;
                    self.numbers.insert(set.clone(), number);
                    self.larger.push(set.clone());
                    number
                }
            },
        }
    }
}

/// The targets of the edges with a frame, in a sorted row.
fn read(row: &[(u32, u32)], frame: u32) -> impl Iterator<Item = u32> + '_ {
    let from = row.partition_point(|&(letter, _)| letter < frame);
    row[from..].iter().take_while(move |edge| edge.0 == frame).map(|edge| edge.1)
}

/// Whether all stacks that begin with one of these edges are in the other set, whose rows are sorted.
pub(super) fn is_within(
    first: &[(u32, u32)],
    rows: &[Row],
    other: &[Row],
    watch: &Watch<'_>,
) -> Result<bool, Refusal> {
    // Usually this is enough to see that they are not.
    if first.iter().any(|&(frame, to)| !read(&other[0], frame).any(|end| (end == END) == (to == END))) {
        return Ok(false);
    }
    let mut sets = Sets { states: other.len() as u32, numbers: FxHashMap::default(), larger: Vec::new() };
    let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut open: Vec<(&[(u32, u32)], u32)> = vec![(first, 0)];
    let mut reached: Vec<u32> = Vec::new();
    let mut looked = 0u64;
    while let Some((row, at)) = open.pop() {
        looked += 1;
        if looked.is_multiple_of(4096) {
            let larger: usize = sets.larger.iter().map(|set| 100 + 8 * set.len()).sum();
            watch.look((larger + 24 * seen.len()) as u64)?;
        }
        for &(frame, to) in row {
            reached.clear();
            match at.checked_sub(sets.states) {
                None => reached.extend(read(&other[at as usize], frame)),
                Some(larger) => {
                    let states = sets.larger[larger as usize].iter();
                    reached.extend(states.flat_map(|&state| read(&other[state as usize], frame)));
                }
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
            let set = sets.number(&mut reached);
            if seen.insert((to, set)) {
                open.push((&rows[to as usize], set));
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::random::Random;
    use palisade_engine::Limits;

    const FRAMES: u32 = 2;

    /// A set with this many states, rows sorted.
    fn random_set(states: usize, random: &mut Random) -> Vec<Row> {
        let row = |random: &mut Random| {
            let mut row: Row = (0..random.below(5))
                .map(|_| {
                    let to = random.below(states + 1);
                    (random.below(FRAMES as usize) as u32, if to == states { END } else { to as u32 })
                })
                .collect();
            row.sort_unstable();
            row
        };
        (0..states).map(|_| row(random)).collect()
    }

    fn accepts(first: &[(u32, u32)], rows: &[Row], stack: &[u32]) -> bool {
        let Some((top, below)) = stack.split_first() else { return false };
        first.iter().filter(|edge| edge.0 == *top).any(|&(_, to)| match to {
            END => below.is_empty(),
            to => accepts(&rows[to as usize], rows, below),
        })
    }

    /// All stacks up to a height.
    fn stacks(height: u32) -> impl Iterator<Item = Vec<u32>> {
        (1..=height).flat_map(|height| {
            (0..FRAMES.pow(height))
                .map(move |word| (0..height).map(|at| word / FRAMES.pow(at) % FRAMES).collect())
        })
    }

    /// Whether a state can reach the end. Only such states have stacks.
    fn is_useful(rows: &[Row], state: u32) -> bool {
        let mut seen = vec![state];
        let mut at = 0;
        while let Some(&state) = seen.get(at) {
            for &(_, to) in &rows[state as usize] {
                if to == END {
                    return true;
                }
                if !seen.contains(&to) {
                    seen.push(to);
                }
            }
            at += 1;
        }
        false
    }

    /// Random small sets, compared on all stacks up to a height that distinguishes them. The check treats an
    /// edge to a state from which no stack ends like a stack, so there are no such edges here.
    #[test]
    fn sets_are_compared_stack_by_stack() {
        let limits = Limits::unlimited(1);
        let watch = Watch::new(&limits);
        let mut random = Random::new(1);
        let (mut within, mut not) = (0, 0);
        for _ in 0..6000 {
            let (few, many) = (1 + random.below(3), 1 + random.below(4));
            let (mut rows, other) = (random_set(few, &mut random), random_set(many, &mut random));
            let useful: Vec<bool> = (0..few as u32).map(|state| is_useful(&rows, state)).collect();
            rows.iter_mut().for_each(|row| row.retain(|&(_, to)| to == END || useful[to as usize]));
            let expected = stacks(7)
                .all(|stack| !accepts(&rows[0], &rows, &stack) || accepts(&other[0], &other, &stack));
            let found = is_within(&rows[0], &rows, &other, &watch);
            assert_eq!(found, Ok(expected), "{rows:?} in {other:?}");
            if !rows[0].is_empty() {
                *(if expected { &mut within } else { &mut not }) += 1;
            }
        }
        assert!(within > 300 && not > 300, "{within} {not}");
    }
}
