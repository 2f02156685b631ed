//! Minimal elements of an upward-closed set, with fast subsumption.
//!
//! *Problem.* Given an element, is some stored element below it?
//!
//! *Idea.*
//! - An element below another has a sub-multiset of its keys (the parts that must be equal: process types and
//!   local states). Stored elements are in a trie over their sorted keys. A query follows only branches whose
//!   keys it has itself, so most stored elements are never examined.
//! - At a node of the trie, elements are grouped by which cells they know and what these cells hold. Of all
//!   stored elements that know the same cells, a query needs only those that agree with it. One look-up finds
//!   them.
//! - Bits for their letters rule out most of these. The caller's full test decides about the rest.
//!
//! *Invariants*
//! 1. Every stored element is at the trie node of its sorted keys.
//!
//! Elements above a new one are found cheaply only if their keys, their known cells and the content of these
//! cells are the same ([`Antichain::remove_if`]). The others are detected later, when they are examined: some
//! other element is then below them.

use crate::masks::Masks;
use rustc_hash::FxHashMap;

/// A quick filter: rules out most cases in which an element is not below another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    /// Which cells it knows.
    pub known: u64,
    /// Which cells it knows, or which follow from its keys.
    pub available: u64,
    /// A bit for each of its letters; several may share a bit.
    pub letters: u64,
}

/// A set of elements by their sorted keys.
#[derive(Clone, Debug)]
pub struct Antichain<K> {
    nodes: Vec<Node<K>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Node<K> {
    children: FxHashMap<K, u32>,
    /// For each set of known cells, the elements by the content of these cells, with bits for their letters.
    by_known: Vec<(u64, FxHashMap<u64, Masks>)>,
}

impl<K> Node<K> {
    fn new() -> Self {
        Node { children: FxHashMap::default(), by_known: Vec::new() }
    }
}

/// A query or a new element: its sorted keys, its signature, and a number for what it holds in a set of
/// cells. Elements that hold the same have the same number.
#[derive(Clone, Copy)]
pub struct Entry<'q, K> {
    /// The parts that must be equal.
    pub keys: &'q [K],
    /// The quick filter.
    pub signature: Signature,
    /// A number for what the element holds in a set of cells, all of which are available.
    pub content: &'q dyn Fn(u64) -> u64,
}

impl<K: Copy + Ord + std::hash::Hash> Default for Antichain<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Ord + std::hash::Hash> Antichain<K> {
    /// An empty antichain.
    pub fn new() -> Self {
        Antichain { nodes: vec![Node::new()], len: 0 }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element.
    pub fn insert(&mut self, entry: Entry<'_, K>, item: u32) {
        debug_assert!(entry.keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in entry.keys {
            node = match self.nodes[node].children.get(key) {
                Some(&child) => child as usize,
                None => {
                    self.nodes.push(Node::new());
                    let child = self.nodes.len() - 1;
                    self.nodes[node].children.insert(*key, child as u32);
                    child
                }
            };
        }
        let Signature { known, letters, .. } = entry.signature;
        let by_known = &mut self.nodes[node].by_known;
        let place = by_known.iter().position(|(other, _)| *other == known).unwrap_or_else(|| {
            by_known.push((known, FxHashMap::default()));
            by_known.len() - 1
        });
        by_known[place].1.entry((entry.content)(known)).or_default().insert(letters, item);
        self.len += 1;
    }

    /// Whether some element that can be below the query passes the test.
    pub fn any_below(&self, query: Entry<'_, K>, test: impl FnMut(u32) -> bool) -> bool {
        self.find_below(query, test).is_some()
    }

    /// The first element found that can be below the query and passes the test.
    pub fn find_below(&self, query: Entry<'_, K>, mut test: impl FnMut(u32) -> bool) -> Option<u32> {
        debug_assert!(query.keys.is_sorted(), "invariant 1: keys are sorted");
        self.walk_below(0, query, &mut test)
    }

    fn walk_below(
        &self,
        node: usize,
        query: Entry<'_, K>,
        test: &mut impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let node = &self.nodes[node];
        let Signature { available, letters, .. } = query.signature;
        for (known, groups) in &node.by_known {
            let there = if known & !available == 0 { groups.get(&(query.content)(*known)) } else { None };
            let found = there.and_then(|masks| masks.find_subset(letters, test));
            if found.is_some() {
                return found;
            }
        }
        if node.children.is_empty() {
            return None;
        }
        (0..query.keys.len()).find_map(|i| {
            let repeated = i > 0 && query.keys[i] == query.keys[i - 1];
            let child = if repeated { None } else { node.children.get(&query.keys[i]) };
            self.walk_below(*child? as usize, Entry { keys: &query.keys[i + 1..], ..query }, test)
        })
    }

    /// Removes the elements that pass the test and have exactly the same keys, known cells and content, and
    /// at least the same letters.
    pub fn remove_if(&mut self, entry: Entry<'_, K>, mut test: impl FnMut(u32) -> bool) {
        debug_assert!(entry.keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in entry.keys {
            match self.nodes[node].children.get(key) {
                Some(&child) => node = child as usize,
                None => return,
            }
        }
        let Signature { known, letters, .. } = entry.signature;
        let by_known = self.nodes[node].by_known.iter_mut().find(|(other, _)| *other == known);
        let group = by_known.and_then(|(_, groups)| groups.get_mut(&(entry.content)(known)));
        self.len -= group.map_or(0, |masks| masks.remove_supersets(letters, &mut test));
    }

    /// All elements, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let mut all = Vec::new();
        let groups =
            self.nodes.iter().flat_map(|node| &node.by_known).flat_map(|(_, groups)| groups.values());
        groups.for_each(|masks| masks.collect(&mut all));
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_submultiset(a: &[u8], b: &[u8]) -> bool {
        crate::injects(a.len(), b.len(), |i, j| a[i] == b[j])
    }

    /// Keys, two cells, letters.
    type Item = (Vec<u8>, [Option<u8>; 2], u64);

    fn item() -> impl Strategy<Value = Item> {
        let cell = || proptest::option::of(0u8..2);
        (proptest::collection::vec(0u8..4, 0..4), [cell(), cell()], 0u64..4).prop_map(
            |(mut keys, cells, letters)| {
                keys.sort_unstable();
                (keys, cells, letters)
            },
        )
    }

    fn content(cells: [Option<u8>; 2], mask: u64) -> u64 {
        (0..2)
            .filter(|cell| mask >> cell & 1 == 1)
            .fold(7, |number, cell| number * 3 + u64::from(cells[cell].unwrap_or(9)))
    }

    fn signature(item: &Item) -> Signature {
        let known = (0..2).filter(|&cell| item.1[cell].is_some()).fold(0, |bits, cell| bits | 1 << cell);
        Signature { known, available: known, letters: item.2 }
    }

    fn is_below(a: &Item, b: &Item) -> bool {
        let agree = (0..2).all(|cell| a.1[cell].is_none() || a.1[cell] == b.1[cell]);
        is_submultiset(&a.0, &b.0) && agree && a.2 & !b.2 == 0
    }

    proptest! {
        #[test]
        fn differential_queries_find_the_elements_below(stored in proptest::collection::vec(item(), 0..16), query in item()) {
            let mut chain = Antichain::new();
            for (number, item) in stored.iter().enumerate() {
                let content = |mask| content(item.1, mask);
                chain.insert(Entry { keys: &item.0, signature: signature(item), content: &content }, number as u32);
            }
            let content = |mask| content(query.1, mask);
            let entry = Entry { keys: &query.0, signature: signature(&query), content: &content };
            let mut met = Vec::new();
            chain.any_below(entry, |item| { met.push(item as usize); false });
            met.sort_unstable();
            let below: Vec<_> = (0..stored.len()).filter(|&i| is_below(&stored[i], &query)).collect();
            prop_assert_eq!(met, below);

            let before = chain.len();
            let mut seen = Vec::new();
            chain.remove_if(entry, |item| { seen.push(item as usize); item % 3 != 0 });
            let same = |i: &usize| stored[*i].0 == query.0 && stored[*i].1 == query.1 && is_below(&query, &stored[*i]);
            seen.sort_unstable();
            prop_assert_eq!(&seen, &(0..stored.len()).filter(same).collect::<Vec<_>>());
            prop_assert_eq!(before - chain.len(), seen.iter().filter(|&&item| item % 3 != 0).count());
            prop_assert_eq!(chain.iter().count(), chain.len());
        }
    }
}
