//! Sets of stacks, as finite automata in normal form.
//!
//! A stack is a word of frames, top first. Its last letter is the frame of a process body, which occurs
//! nowhere else. So one accepting state without edges is enough.
//!
//! *Guarantee.* Equal [`Language`]s are equal sets. Where the subset construction stays small, equal sets
//! also have equal `Language`s: automata are deterministic, minimal, and numbered breadth first in the order
//! of their letters. Where it does not, the automaton stays nondeterministic, and bisimilar states are
//! merged. Then equal sets may have different `Language`s, which only costs time.
//!
//! *Cost.* States are refined to classes by Moore's algorithm, with two changes. Only states with a moved
//! successor are looked at again, and the largest part of a class keeps its name (Hopcroft). So a chain of n
//! states takes n log n steps.

use crate::rules::SymbolId;
use palisade_base::{define_id, limits};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::hash::BuildHasher;

define_id!(
    /// A set of stacks.
    LanguageId
);

/// The accepting state of every automaton.
pub(crate) const END: u32 = u32::MAX;

/// A set of stacks: for each state its edges, sorted by letter. The first state is the start.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Language {
    pub edges: Vec<Row>,
    deterministic: bool,
}

/// The edges of a state.
type Row = Vec<(SymbolId, u32)>;

impl Language {
    /// The one stack with only this frame.
    pub fn single(symbol: SymbolId) -> Language {
        Language { edges: vec![vec![(symbol, END)]], deterministic: true }
    }

    /// The normal form of the set accepted by an automaton with this start. `successors` adds the edges of a
    /// state to a list. Every state must reach the end.
    pub fn of(start: Row, mut successors: impl FnMut(u32, &mut Row)) -> Language {
        // The start is a separate state, since only some of its edges may count.
        let mut rows = vec![start];
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut at = 0;
        let mut named = 1;
        while at < rows.len() {
            limits::checkpoint();
            let mut found: Vec<u32> = Vec::new();
            for (_, to) in &mut rows[at] {
                if *to != END {
                    let number = numbers.entry(*to).or_insert(named);
                    if *number == named {
                        named += 1;
                        found.push(*to);
                    }
                    *to = *number;
                }
            }
            rows[at].sort_unstable();
            rows[at].dedup();
            for state in found {
                let mut row = Vec::new();
                successors(state, &mut row);
                rows.push(row);
            }
            at += 1;
        }
        match determinised(&rows, 4 * rows.len() + 256) {
            Some(rows) => Language { edges: minimal(&rows), deterministic: true },
            None => Language { edges: minimal(&rows), deterministic: false },
        }
    }

    /// Whether all its stacks are in another set. If the other automaton is nondeterministic, the answer may
    /// be no although they are.
    pub fn is_within(&self, other: &Language) -> bool {
        if !other.deterministic {
            return self == other;
        }
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::from_iter([(0, 0)]);
        let mut work = vec![(0, 0)];
        while let Some((a, b)) = work.pop() {
            limits::checkpoint();
            let row = &other.edges[b as usize];
            for &(symbol, to) in &self.edges[a as usize] {
                let Ok(position) = row.binary_search_by_key(&symbol, |&(symbol, _)| symbol) else {
                    return false;
                };
                let pair = (to, row[position].1);
                // The frame of a process body leads to the end in both sets.
                if to != END && seen.insert(pair) {
                    work.push(pair);
                }
            }
        }
        true
    }

    /// Whether it contains a stack, given top first.
    #[cfg(test)]
    fn contains(&self, word: &[SymbolId]) -> bool {
        let step = |state: u32, letter: &SymbolId| {
            let row = self.edges.get(state as usize)?;
            row.iter().find(|(symbol, _)| symbol == letter).map(|&(_, to)| to)
        };
        word.iter().try_fold(0, step) == Some(END)
    }

    /// The bottoms of its stacks. Each is a bottom frame with the second frame from below of some stack that
    /// has more, or with `None` if the bottom is the whole stack.
    pub fn bottoms(&self) -> Vec<(SymbolId, Option<SymbolId>)> {
        let mut found = Vec::new();
        let last =
            |state: usize| self.edges[state].iter().filter(|&&(_, to)| to == END).map(|&(symbol, _)| symbol);
        found.extend(last(0).map(|symbol| (symbol, None)));
        let mut above: Vec<Option<SymbolId>> = vec![None; self.edges.len()];
        for &(symbol, to) in self.edges.iter().flatten().filter(|&&(_, to)| to != END) {
            above[to as usize].get_or_insert(symbol);
        }
        for (state, above) in above.into_iter().enumerate() {
            if above.is_some() {
                found.extend(last(state).map(|symbol| (symbol, above)));
            }
        }
        found
    }

    /// A shortest stack of the set with this bottom. `alone` says whether the bottom is the whole stack.
    pub fn shortest_word(&self, bottom: SymbolId, alone: bool) -> Vec<SymbolId> {
        if alone {
            return vec![bottom];
        }
        // Breadth first over states. Records how each state was reached with at least one letter.
        let mut reached: Vec<Option<(u32, SymbolId)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([0]);
        let mut seen_start = false;
        while let Some(state) = queue.pop_front() {
            limits::checkpoint();
            let is_start = state == 0 && !std::mem::replace(&mut seen_start, true);
            if !is_start && self.edges[state as usize].contains(&(bottom, END)) {
                let mut word = vec![bottom];
                let mut at = state;
                loop {
                    let (from, symbol) = reached[at as usize].expect("reached with a letter");
                    word.push(symbol);
                    if from == 0 {
                        break;
                    }
                    at = from;
                }
                word.reverse();
                return word;
            }
            for &(symbol, to) in &self.edges[state as usize] {
                if to != END && reached[to as usize].is_none() {
                    reached[to as usize] = Some((state, symbol));
                    queue.push_back(to);
                }
            }
        }
        panic!("no stack of the set has this bottom")
    }

    /// Roughly how much memory it takes.
    pub fn bytes(&self) -> u64 {
        self.edges.iter().map(|row| 24 + 8 * row.len() as u64).sum::<u64>() + 100
    }
}

/// The subset construction. `None` if it produces more states than this.
fn determinised(rows: &[Row], most: usize) -> Option<Vec<Row>> {
    let mut numbers: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let mut sets: Vec<Vec<u32>> = vec![vec![0]];
    let mut edges: Vec<Row> = Vec::new();
    let mut outgoing: Row = Vec::new();
    while edges.len() < sets.len() {
        limits::checkpoint();
        outgoing.clear();
        for &state in &sets[edges.len()] {
            outgoing.extend(&rows[state as usize]);
        }
        outgoing.sort_unstable();
        outgoing.dedup();
        let mut row: Row = Vec::new();
        for group in outgoing.chunk_by(|a, b| a.0 == b.0) {
            let set: Vec<u32> = group.iter().map(|&(_, state)| state).collect();
            let number = if set == [END] {
                END
            } else {
                debug_assert!(!set.contains(&END), "the frame of a process body is always the last");
                *numbers.entry(set).or_insert_with_key(|set| {
                    sets.push(set.clone());
                    sets.len() as u32 - 1
                })
            };
            row.push((group[0].0, number));
        }
        edges.push(row);
        if sets.len() > most {
            return None;
        }
    }
    Some(edges)
}

/// Merges states of the same class, and numbers them breadth first.
fn minimal(edges: &[Row]) -> Vec<Row> {
    let classes = classes(edges);
    let looks = looks(edges);
    let class = |state: u32| if state == END { END } else { classes[state as usize] };
    let look = |state: u32| if state == END { 0 } else { looks[state as usize] };
    let mut number: FxHashMap<u32, u32> = FxHashMap::default();
    number.insert(class(0), 0);
    let mut queue = VecDeque::from([0u32]);
    let mut rows = Vec::new();
    while let Some(state) = queue.pop_front() {
        limits::checkpoint();
        let mut ordered = edges[state as usize].clone();
        ordered.sort_unstable_by_key(|&(symbol, to)| (symbol, look(to), class(to)));
        ordered.dedup_by_key(|&mut (symbol, to)| (symbol, class(to)));
        let mut row = Vec::with_capacity(ordered.len());
        for (symbol, to) in ordered {
            if to == END {
                row.push((symbol, END));
                continue;
            }
            let fresh = number.len() as u32;
            let to_number = *number.entry(class(to)).or_insert(fresh);
            if to_number == fresh {
                queue.push_back(to);
            }
            row.push((symbol, to_number));
        }
        row.sort_unstable();
        rows.push(row);
    }
    rows
}

/// A number for the behaviour of each state within a few letters, which does not depend on how states are
/// numbered. It gives an order to edges with the same letter.
fn looks(edges: &[Row]) -> Vec<u64> {
    let mut looks = vec![0u64; edges.len()];
    if edges.iter().all(|row| row.windows(2).all(|pair| pair[0].0 != pair[1].0)) {
        return looks;
    }
    for _ in 0..6 {
        let look = |row: &Row| {
            let seen =
                |&(symbol, to): &(SymbolId, u32)| (symbol, if to == END { 1 } else { looks[to as usize] });
            let mut seen: Vec<_> = row.iter().map(seen).collect();
            seen.sort_unstable();
            seen.dedup();
            FxBuildHasher.hash_one(seen)
        };
        looks = edges.iter().map(look).collect();
    }
    looks
}

/// For each state, the class of states that can do the same. In a deterministic automaton these are the
/// states that accept the same words.
fn classes(edges: &[Row]) -> Vec<u32> {
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
    for (from, row) in edges.iter().enumerate() {
        limits::checkpoint();
        for &(_, to) in row.iter().filter(|(_, to)| *to != END) {
            into[to as usize].push(from as u32);
        }
    }
    let mut class = vec![0u32; edges.len()];
    let mut members: Vec<Vec<u32>> = vec![(0..edges.len() as u32).collect()];
    let mut dirty: Vec<u32> = members[0].clone();
    while !dirty.is_empty() {
        limits::checkpoint();
        let mut by_class: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for state in std::mem::take(&mut dirty) {
            by_class.entry(class[state as usize]).or_default().push(state);
        }
        let mut touched: Vec<(u32, Vec<u32>)> = by_class.into_iter().collect();
        touched.sort_unstable();
        let mut moved: Vec<u32> = Vec::new();
        // Signatures are taken before any class of this round changes its name.
        let mut split: Vec<(u32, Vec<Vec<u32>>)> = Vec::new();
        for (old, mut states) in touched {
            states.sort_unstable();
            states.dedup();
            let mut groups: FxHashMap<Row, Vec<u32>> = FxHashMap::default();
            for &state in &states {
                let named = |&(symbol, to): &(SymbolId, u32)| {
                    (symbol, if to == END { END } else { class[to as usize] })
                };
                let mut signature: Row = edges[state as usize].iter().map(named).collect();
                signature.sort_unstable();
                signature.dedup();
                groups.entry(signature).or_default().push(state);
            }
            let mut groups: Vec<Vec<u32>> = groups.into_values().collect();
            // No successor of the other states has moved. So they still agree with each other, and differ
            // from these.
            if states.len() < members[old as usize].len() {
                let mut is_dirty: Vec<u32> = states;
                is_dirty.sort_unstable();
                let others = members[old as usize].iter().copied();
                groups.push(others.filter(|state| is_dirty.binary_search(state).is_err()).collect());
            }
            split.push((old, groups));
        }
        for (old, mut groups) in split {
            groups.sort_unstable_by_key(|group| (std::cmp::Reverse(group.len()), group[0]));
            let mut groups = groups.into_iter();
            members[old as usize] = groups.next().expect("a class has members");
            for group in groups {
                let name = members.len() as u32;
                group.iter().for_each(|&state| class[state as usize] = name);
                moved.extend(&group);
                members.push(group);
            }
        }
        for state in moved {
            dirty.extend(&into[state as usize]);
        }
        dirty.sort_unstable();
        dirty.dedup();
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The language of an automaton. Edges are (from, letter, to), the start is 0, and the end is -1.
    fn language(edges: &[(u32, u32, i64)]) -> Language {
        let end = |to: i64| if to < 0 { END } else { to as u32 };
        let from = |state: u32| {
            let edges = edges.iter().filter(move |edge| edge.0 == state);
            edges.map(move |&(_, letter, to)| (SymbolId(letter), end(to))).collect::<Vec<_>>()
        };
        Language::of(from(0), |state, out| out.extend(from(state)))
    }

    fn word(letters: &[u32]) -> Vec<SymbolId> {
        letters.iter().copied().map(SymbolId).collect()
    }

    #[test]
    fn equal_sets_have_equal_forms() {
        // 1* 0, written with one, two and three states.
        let one = language(&[(0, 1, 0), (0, 0, -1)]);
        let two = language(&[(0, 1, 1), (0, 0, -1), (1, 1, 0), (1, 0, -1)]);
        let three =
            language(&[(0, 1, 1), (0, 1, 2), (0, 0, -1), (1, 1, 2), (1, 0, -1), (2, 1, 2), (2, 0, -1)]);
        assert_eq!(one, two);
        assert_eq!(one, three);
        assert_eq!(one.edges.len(), 1);
        assert!(one.contains(&word(&[0])) && one.contains(&word(&[1, 1, 1, 0])));
        assert!(!one.contains(&word(&[1])) && !one.contains(&word(&[0, 0])));
    }

    #[test]
    fn different_sets_have_different_forms() {
        let even = language(&[(0, 1, 1), (0, 0, -1), (1, 1, 0)]);
        let odd = language(&[(0, 1, 1), (1, 1, 0), (1, 0, -1)]);
        assert_ne!(even, odd);
        assert_eq!(even.edges.len(), 2);
        assert!(even.contains(&word(&[1, 1, 0])) && !even.contains(&word(&[1, 0])));
        let both = language(&[(0, 1, 0), (0, 0, -1)]);
        assert!(even.is_within(&both) && odd.is_within(&both) && even.is_within(&even));
        assert!(!both.is_within(&even) && !even.is_within(&odd));
    }

    #[test]
    fn a_chain_stays_a_chain() {
        let n = 500;
        let mut edges: Vec<(u32, u32, i64)> = (0..n).map(|state| (state, 1, i64::from(state) + 1)).collect();
        edges.push((n, 0, -1));
        assert_eq!(language(&edges).edges.len(), n as usize + 1);
    }

    #[test]
    fn sets_that_would_grow_stay_nondeterministic() {
        // Any number of letters 1 or 2, then the letter 1, then 13 letters 1 or 2, then 0.
        let n = 14;
        let mut edges = vec![(0, 1, 0), (0, 2, 0), (0, 1, 1)];
        edges.extend(
            (1..n).flat_map(|state| [(state, 1, i64::from(state) + 1), (state, 2, i64::from(state) + 1)]),
        );
        edges.push((n, 0, -1));
        let set = language(&edges);
        assert!(!set.deterministic);
        assert_eq!(set.edges.len(), n as usize + 1);
        assert!(set.is_within(&set));
        // The same with states in another order, and one of them duplicated.
        let other = |state: u32| if state == 0 { 0 } else { n + 1 - state };
        let mut renamed: Vec<(u32, u32, i64)> = edges
            .iter()
            .map(|&(from, letter, to)| {
                (other(from), letter, if to < 0 { -1 } else { i64::from(other(to as u32)) })
            })
            .collect();
        renamed.push((0, 1, i64::from(n) + 1));
        let twin: Vec<_> =
            renamed.iter().filter(|edge| edge.0 == n).map(|&(_, letter, to)| (n + 1, letter, to)).collect();
        renamed.extend(twin);
        assert_eq!(language(&renamed), set);
    }

    #[test]
    fn bottoms_show_whether_there_is_more() {
        let set = language(&[(0, 1, 1), (0, 0, -1), (1, 1, 1), (1, 2, -1)]);
        let bottoms = set.bottoms();
        assert_eq!(bottoms, [(SymbolId(0), None), (SymbolId(2), Some(SymbolId(1)))]);
        assert_eq!(set.shortest_word(SymbolId(2), false), word(&[1, 2]));
        let deep = language(&[(0, 1, 1), (1, 3, 2), (2, 0, -1)]);
        assert_eq!(deep.shortest_word(SymbolId(0), false), word(&[1, 3, 0]));
        let around = language(&[(0, 1, 0), (0, 0, -1)]);
        assert_eq!(around.bottoms(), [(SymbolId(0), None), (SymbolId(0), Some(SymbolId(1)))]);
        assert_eq!(around.shortest_word(SymbolId(0), false), word(&[1, 0]));
    }
}
