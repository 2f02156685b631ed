//! Minimal elements of an upward-closed set, with fast subsumption.
//!
//! *Problem.* Given an element, is some stored element below it?
//!
//! *Idea.* An element below another has a sub-multiset of its keys (the parts that must be equal: process types and local states). Stored elements hang in
//! a trie over their sorted keys; a query walks only along branches whose keys it has itself, so that most stored elements are never looked at.
//! Of what hangs there, [signatures](Signature), which lie side by side in groups, sort out most; what is left is the caller's full test.
//!
//! *Invariants*
//! 1. Every stored element hangs at the node of its sorted keys.
//!
//! Elements above a new one are found cheaply only where their keys are the same ([`Antichain::remove_if`]). Those with more keys are found
//! out when they are looked at: then something else is below them.

use rustc_hash::FxHashMap;

/// A necessary condition for being below, in bits: all that an element asks for, the other one has. The first word should have few different values: elements are grouped by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    /// What an element asks for.
    pub asks: [u64; 2],
    /// What it has without asking for it, as a consequence of its keys: the same for all elements with the same keys.
    pub implied: [u64; 2],
}

impl Signature {
    /// Whether one element can be below another.
    pub fn may_be_below(self, other: Signature) -> bool {
        let lacking = other.lacking();
        self.asks[0] & lacking[0] == 0 && self.asks[1] & lacking[1] == 0
    }

    /// What an element must not ask for to be below.
    fn lacking(self) -> [u64; 2] {
        [0, 1].map(|word| !(self.asks[word] | self.implied[word]))
    }
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
    /// The first words of what the items ask for, one per group.
    heads: Vec<u64>,
    groups: Vec<Group>,
}

/// Items with the same keys and the same first word.
#[derive(Clone, Debug, Default)]
struct Group {
    /// The second word of what each item asks for.
    asks: Vec<u64>,
    items: Vec<u32>,
}

impl<K> Node<K> {
    fn new() -> Self {
        Node { children: FxHashMap::default(), heads: Vec::new(), groups: Vec::new() }
    }
}

impl<K: Copy + Ord + std::hash::Hash> Default for Antichain<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Ord + std::hash::Hash> Antichain<K> {
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
    pub fn insert(&mut self, keys: &[K], signature: Signature, item: u32) {
        debug_assert!(keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in keys {
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
        let node = &mut self.nodes[node];
        let [head, asks] = signature.asks;
        let group = node.heads.iter().position(|&other| other == head).unwrap_or_else(|| {
            node.heads.push(head);
            node.groups.push(Group::default());
            node.heads.len() - 1
        });
        node.groups[group].asks.push(asks);
        node.groups[group].items.push(item);
        self.len += 1;
    }

    /// Whether some element whose keys are among the given sorted ones, and whose signature allows it, passes the test.
    pub fn any_below(&self, keys: &[K], signature: Signature, test: impl FnMut(u32) -> bool) -> bool {
        self.find_below(keys, signature, test).is_some()
    }

    /// The first element found whose keys are among the given sorted ones, and whose signature allows it, that passes the test.
    pub fn find_below(
        &self,
        keys: &[K],
        signature: Signature,
        mut test: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        debug_assert!(keys.is_sorted(), "invariant 1: keys are sorted");
        self.walk_below(0, keys, signature.lacking(), &mut test)
    }

    fn walk_below(
        &self,
        node: usize,
        keys: &[K],
        lacking: [u64; 2],
        test: &mut impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let node = &self.nodes[node];
        for (head, group) in node.heads.iter().zip(&node.groups) {
            if head & lacking[0] != 0 {
                continue;
            }
            for (place, asks) in group.asks.iter().enumerate() {
                if asks & lacking[1] == 0 && test(group.items[place]) {
                    return Some(group.items[place]);
                }
            }
        }
        if node.children.is_empty() {
            return None;
        }
        (0..keys.len()).find_map(|i| {
            let repeated = i > 0 && keys[i] == keys[i - 1];
            let child = if repeated { None } else { node.children.get(&keys[i]) };
            self.walk_below(*child? as usize, &keys[i + 1..], lacking, test)
        })
    }

    /// Removes the elements with exactly the given sorted keys, and whose signatures allow that this one is below them, that pass the test.
    pub fn remove_if(&mut self, keys: &[K], signature: Signature, mut test: impl FnMut(u32) -> bool) {
        debug_assert!(keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in keys {
            match self.nodes[node].children.get(key) {
                Some(&child) => node = child as usize,
                None => return,
            }
        }
        let node = &mut self.nodes[node];
        let wanted = [0, 1].map(|word| signature.asks[word] & !signature.implied[word]);
        for (head, group) in node.heads.iter().zip(&mut node.groups) {
            let mut place = if wanted[0] & !head == 0 { 0 } else { group.items.len() };
            while place < group.items.len() {
                if wanted[1] & !group.asks[place] == 0 && test(group.items[place]) {
                    group.asks.swap_remove(place);
                    group.items.swap_remove(place);
                    self.len -= 1;
                } else {
                    place += 1;
                }
            }
        }
    }

    /// All elements, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().flat_map(|node| &node.groups).flat_map(|group| group.items.iter().copied())
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
            stored in proptest::collection::vec((proptest::collection::vec(0u8..4, 0..4), [0u64..4, 0u64..4]), 0..12),
            mut query in proptest::collection::vec(0u8..4, 0..5),
            (asks, implied) in ([0u64..4, 0u64..4], [0u64..4, 0u64..4]),
        ) {
            query.sort_unstable();
            let signature = Signature { asks, implied };
            let mut chain = Antichain::new();
            let mut sorted = Vec::new();
            for (item, (mut keys, asks)) in stored.into_iter().enumerate() {
                keys.sort_unstable();
                chain.insert(&keys, Signature { asks, implied }, item as u32);
                sorted.push((keys, Signature { asks, implied }));
            }
            let mut met = Vec::new();
            chain.any_below(&query, signature, |item| { met.push(item as usize); false });
            met.sort_unstable();
            let below = |i: &usize| is_submultiset(&sorted[*i].0, &query) && sorted[*i].1.may_be_below(signature);
            let below: Vec<_> = (0..sorted.len()).filter(below).collect();
            prop_assert_eq!(met, below);

            let before = chain.len();
            chain.remove_if(&query, signature, |item| item % 2 == 0);
            let gone = |i: &usize| sorted[*i].0 == query && signature.may_be_below(sorted[*i].1) && i % 2 == 0;
            let gone = (0..sorted.len()).filter(gone).count();
            prop_assert_eq!(before - chain.len(), gone);
            prop_assert_eq!(chain.iter().count(), chain.len());
        }
    }
}
