//! Minimal elements of an upward-closed set, with fast subsumption.
//!
//! *Problem.* Given an element, is some stored element below it?
//!
//! *Idea.* An element below another has a sub-multiset of its keys (the parts that must be equal: process types and local states). Stored elements hang in
//! a trie over their sorted keys; a query walks only along branches whose keys it has itself, so that most stored elements are never looked at.
//! What is left is the caller's full test.
//!
//! *Invariants*
//! 1. Every stored element hangs at the node of its sorted keys.
//!
//! Elements above a new one are found cheaply only where their keys are the same ([`Antichain::remove_if`]). Those with more keys are found
//! out when they are looked at: then something else is below them.

use rustc_hash::FxHashMap;

/// A set of elements by their sorted keys.
#[derive(Clone, Debug)]
pub struct Antichain<K, T> {
    nodes: Vec<Node<K, T>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Node<K, T> {
    children: FxHashMap<K, usize>,
    items: Vec<T>,
}

impl<K, T> Node<K, T> {
    fn new() -> Self {
        Node { children: FxHashMap::default(), items: Vec::new() }
    }
}

impl<K: Copy + Ord + std::hash::Hash, T: Copy + PartialEq> Default for Antichain<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Ord + std::hash::Hash, T: Copy + PartialEq> Antichain<K, T> {
    /// Nothing.
    pub fn new() -> Self {
        Antichain { nodes: vec![Node::new()], len: 0 }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element with sorted keys.
    pub fn insert(&mut self, keys: &[K], item: T) {
        debug_assert!(keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in keys {
            node = match self.nodes[node].children.get(key) {
                Some(&child) => child,
                None => {
                    self.nodes.push(Node::new());
                    let child = self.nodes.len() - 1;
                    self.nodes[node].children.insert(*key, child);
                    child
                }
            };
        }
        self.nodes[node].items.push(item);
        self.len += 1;
    }

    /// Whether some element whose keys are among the given sorted ones passes the test.
    pub fn any_below(&self, keys: &[K], test: impl FnMut(T) -> bool) -> bool {
        self.find_below(keys, test).is_some()
    }

    /// The first element found whose keys are among the given sorted ones and that passes the test.
    pub fn find_below(&self, keys: &[K], mut test: impl FnMut(T) -> bool) -> Option<T> {
        debug_assert!(keys.is_sorted(), "invariant 1: keys are sorted");
        self.walk_below(0, keys, &mut test)
    }

    fn walk_below(&self, node: usize, keys: &[K], test: &mut impl FnMut(T) -> bool) -> Option<T> {
        let node = &self.nodes[node];
        let here = node.items.iter().copied().find(|&item| test(item));
        if here.is_some() || node.children.is_empty() {
            return here;
        }
        (0..keys.len()).find_map(|i| {
            let repeated = i > 0 && keys[i] == keys[i - 1];
            let child = if repeated { None } else { node.children.get(&keys[i]) };
            self.walk_below(*child?, &keys[i + 1..], test)
        })
    }

    /// Removes the elements with exactly the given sorted keys that pass the test.
    pub fn remove_if(&mut self, keys: &[K], mut test: impl FnMut(T) -> bool) {
        debug_assert!(keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in keys {
            match self.nodes[node].children.get(key) {
                Some(&child) => node = child,
                None => return,
            }
        }
        let items = &mut self.nodes[node].items;
        let before = items.len();
        items.retain(|&item| !test(item));
        self.len -= before - items.len();
    }

    /// All elements, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.nodes.iter().flat_map(|node| node.items.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_submultiset(a: &[u8], b: &[u8]) -> bool {
        crate::injects(a, b, |a, b| a == b)
    }

    proptest! {
        #[test]
        fn queries_find_what_is_there(
            stored in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..4), 0..12),
            mut query in proptest::collection::vec(0u8..4, 0..5),
        ) {
            query.sort_unstable();
            let mut chain = Antichain::new();
            let mut sorted = Vec::new();
            for (item, mut keys) in stored.into_iter().enumerate() {
                keys.sort_unstable();
                chain.insert(&keys, item);
                sorted.push(keys);
            }
            let mut met = Vec::new();
            chain.any_below(&query, |item| { met.push(item); false });
            met.sort_unstable();
            let below: Vec<_> = (0..sorted.len()).filter(|&i| is_submultiset(&sorted[i], &query)).collect();
            prop_assert_eq!(met, below);

            let before = chain.len();
            chain.remove_if(&query, |item| item % 2 == 0);
            let gone = (0..sorted.len()).filter(|&i| sorted[i] == query && i % 2 == 0).count();
            prop_assert_eq!(before - chain.len(), gone);
            prop_assert_eq!(chain.iter().count(), chain.len());
        }
    }
}
