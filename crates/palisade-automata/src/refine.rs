//! The coarsest partition of the states of a graph that its edges respect.
//!
//! *Guarantee.* From two states of one class, edges with the same labels lead to the same classes. No coarser
//! partition that refines the given one has that property.
//!
//! *How.* The states of a class whose edges may differ from those of the others are *marked*. All states of a
//! class that are not marked are alike. A class with marked states is split by the labels and classes of
//! their edges. Its largest part keeps its number, and the states with an edge into another part are marked
//! (Hopcroft, "An n log n algorithm for minimizing states in a finite automaton", 1971). A state that gets a
//! new number is then in a class at most half as large, so each edge is looked at O(log n) times.

use palisade_base::limits;

/// An edge: its source, its label, its target.
pub(crate) type Arrow = (u32, u32, u32);

/// The class of each state, starting from the given classes.
pub(crate) fn refine(classes: Vec<u32>, arrows: &[Arrow]) -> Vec<u32> {
    let states = classes.len();
    let mut out: Vec<Vec<(u32, u32)>> = vec![Vec::new(); states];
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); states];
    for &(source, label, target) in arrows {
        limits::checkpoint();
        out[source as usize].push((label, target));
        into[target as usize].push(source);
    }
    let mut partition = Partition::new(classes);
    (0..states as u32).for_each(|state| partition.mark(state));
    while let Some(class) = partition.work.pop() {
        limits::checkpoint();
        for state in partition.split(class, &out) {
            limits::checkpoint();
            into[state as usize].iter().for_each(|&source| partition.mark(source));
        }
    }
    partition.class
}

/// Classes as ranges of one list, marked states first.
struct Partition {
    states: Vec<u32>,
    /// The position of each state in the list.
    place: Vec<u32>,
    class: Vec<u32>,
    stretches: Vec<Stretch>,
    /// The classes with marked states.
    work: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Stretch {
    first: u32,
    marked: u32,
    end: u32,
}

impl Partition {
    fn new(given: Vec<u32>) -> Partition {
        let mut states: Vec<u32> = (0..given.len() as u32).collect();
        states.sort_by_key(|&state| given[state as usize]);
        let (mut place, mut class) = (vec![0; states.len()], vec![0; states.len()]);
        let mut stretches = Vec::new();
        let mut first = 0;
        for stretch in states.chunk_by(|&a, &b| given[a as usize] == given[b as usize]) {
            let end = first + stretch.len() as u32;
            for (at, &state) in (first..end).zip(stretch) {
                place[state as usize] = at;
                class[state as usize] = stretches.len() as u32;
            }
            stretches.push(Stretch { first, marked: first, end });
            first = end;
        }
        Partition { states, place, class, stretches, work: Vec::new() }
    }

    fn mark(&mut self, state: u32) {
        let class = self.class[state as usize];
        let stretch = &mut self.stretches[class as usize];
        let (place, to) = (self.place[state as usize], stretch.marked);
        if place < to {
            return;
        }
        if stretch.marked == stretch.first {
            self.work.push(class);
        }
        stretch.marked += 1;
        let other = self.states[to as usize];
        self.states.swap(place as usize, to as usize);
        self.place[state as usize] = to;
        self.place[other as usize] = place;
    }

    /// Splits a class. Returns the states that have a new class.
    fn split(&mut self, class: u32, out: &[Vec<(u32, u32)>]) -> Vec<u32> {
        let Stretch { first, marked, end } = self.stretches[class as usize];
        self.stretches[class as usize].marked = first;
        let edges = |state: u32| {
            let mut edges: Vec<(u32, u32)> = out[state as usize]
                .iter()
                .map(|&(label, target)| (label, self.class[target as usize]))
                .collect();
            edges.sort_unstable();
            edges.dedup();
            edges
        };
        let mut doubtful: Vec<(Vec<(u32, u32)>, u32)> =
            self.states[first as usize..marked as usize].iter().map(|&state| (edges(state), state)).collect();
        // Marked states that are like the unmarked ones come last, next to them.
        let rest = (marked < end).then(|| edges(self.states[marked as usize]));
        doubtful.sort_by(|a, b| {
            let like_rest = |edges: &Vec<(u32, u32)>| rest.as_ref() == Some(edges);
            (like_rest(&a.0), a).cmp(&(like_rest(&b.0), b))
        });
        let mut parts = Vec::new();
        let mut at = first;
        for part in doubtful.chunk_by(|a, b| a.0 == b.0) {
            let stretch = Stretch { first: at, marked: at, end: at + part.len() as u32 };
            for &(_, state) in part {
                self.states[at as usize] = state;
                self.place[state as usize] = at;
                at += 1;
            }
            parts.push(if rest.as_ref() == Some(&part[0].0) { Stretch { end, ..stretch } } else { stretch });
        }
        if at < end && parts.last().is_none_or(|last| last.end < end) {
            parts.push(Stretch { first: at, marked: at, end });
        }
        let largest = (0..parts.len()).max_by_key(|&part| parts[part].end - parts[part].first);
        let mut moved = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            if Some(number) == largest {
                self.stretches[class as usize] = part;
                continue;
            }
            let new = self.stretches.len() as u32;
            self.stretches.push(part);
            for &state in &self.states[part.first as usize..part.end as usize] {
                self.class[state as usize] = new;
                moved.push(state);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Refines all classes repeatedly.
    fn slowly(mut classes: Vec<u32>, arrows: &[Arrow]) -> Vec<u32> {
        loop {
            let mut numbers = BTreeMap::new();
            let signature = |state: u32| {
                let own = arrows.iter().filter(|arrow| arrow.0 == state);
                let mut edges: Vec<_> = own.map(|arrow| (arrow.1, classes[arrow.2 as usize])).collect();
                edges.sort_unstable();
                edges.dedup();
                (classes[state as usize], edges)
            };
            let finer: Vec<u32> = (0..classes.len() as u32)
                .map(|state| {
                    let next = numbers.len() as u32;
                    *numbers.entry(signature(state)).or_insert(next)
                })
                .collect();
            let count = |classes: &[u32]| classes.iter().collect::<std::collections::BTreeSet<_>>().len();
            if count(&finer) == count(&classes) {
                return finer;
            }
            classes = finer;
        }
    }

    proptest! {
        #[test]
        fn the_partition_is_the_coarsest(
            classes in proptest::collection::vec(0u32..3, 1..14),
            arrows in proptest::collection::vec((0u32..14, 0u32..3, 0u32..14), 0..40),
        ) {
            let states = classes.len() as u32;
            let arrows: Vec<Arrow> = arrows.into_iter().filter(|a| a.0 < states && a.2 < states).collect();
            let (found, expected) = (refine(classes.clone(), &arrows), slowly(classes, &arrows));
            for a in 0..found.len() {
                for b in 0..found.len() {
                    prop_assert_eq!(found[a] == found[b], expected[a] == expected[b], "{} {}", a, b);
                }
            }
        }
    }

    #[test]
    fn a_long_line_takes_no_longer_than_it_must() {
        // All edges are alike, so only the distance to the end distinguishes states. Looking at all states
        // for each of them would take minutes.
        let states = 1 << 18;
        let arrows: Vec<Arrow> = (1..states).map(|state| (state - 1, 0, state)).collect();
        let mut found = refine(vec![0; states as usize], &arrows);
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), states as usize);
    }
}
