//! Minimal elements of an upward-closed set, with fast subsumption.
//!
//! *Problem.* Given an element, is some stored element below it?
//!
//! *Idea.*
//! - An element below another has a sub-multiset of its keys (the parts that must be equal: process types and
//!   local states). Stored elements are in a trie over their sorted keys. A query follows only branches whose
//!   keys it has itself, so most stored elements are never examined.
//! - At a node of the trie, bits for what an element requires rule out most of the others. The caller's full
//!   test decides about the rest.
//!
//! - Items are numbered in the order of their insertion. A query for what was inserted since some item skips the parts
//!   of the trie into which nothing was inserted since.
//! - Parts of the trie are skipped, too, if all elements there require a bit that the query does not provide.
//! - Each node has a bit for the key of each child (several keys share a bit). Most lookups of a child that is not there
//!   end at these bits.
//!
//! *Invariants*
//! 1. Every stored element is at the trie node of its sorted keys.
//! 2. No item at a node of the trie or below is later than its parent says.
//! 3. All elements there require the bits that the parent says they have in common.
//!
//! Elements above a new one are found cheaply only if their keys are the same ([`Antichain::remove_if`]). The
//! others are detected later, when they are examined: some other element is then below them.

use crate::masks::{Mask, Masks, is_subset};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

/// A quick filter. If an element is below another, all bits that it requires are provided by the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    /// What the element requires.
    pub required: [u64; 2],
    /// What it requires, and what follows from that.
    pub provided: [u64; 2],
}

/// A set of elements by their sorted keys.
#[derive(Clone, Debug)]
pub struct Antichain<K> {
    nodes: Vec<Node<K>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Node<K> {
    children: FxHashMap<K, Child>,
    /// Bits of the children's keys.
    keys: u64,
    /// The elements, with the bits they require.
    here: Masks,
    /// The latest item that was inserted here. `None` before the first.
    latest: Option<u32>,
}

/// What a node knows of a child, so that most queries do not visit it.
#[derive(Clone, Copy, Debug)]
struct Child {
    node: u32,
    /// The latest item that was inserted there or below.
    latest: u32,
    /// The bits that all elements there and below require.
    common: Mask,
}

impl<K> Node<K> {
    fn new() -> Self {
        Node { children: FxHashMap::default(), keys: 0, here: Masks::default(), latest: None }
    }
}

/// The bit of a key.
fn bit<K: std::hash::Hash>(key: &K) -> u64 {
    let mut hasher = FxHasher::default();
    key.hash(&mut hasher);
    1 << (hasher.finish().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

/// A query or a new element: its sorted keys and its signature.
#[derive(Clone, Copy)]
pub struct Entry<'q, K> {
    /// The parts that must be equal.
    pub keys: &'q [K],
    /// The quick filter.
    pub signature: Signature,
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
        let required = entry.signature.required;
        for key in entry.keys {
            let new = Child { node: self.nodes.len() as u32, latest: item, common: required };
            let parent = &mut self.nodes[node];
            parent.keys |= bit(key);
            let child = parent.children.entry(*key).or_insert(new);
            child.latest = child.latest.max(item);
            child.common = std::array::from_fn(|half| child.common[half] & required[half]);
            node = child.node as usize;
            if child.node == new.node {
                self.nodes.push(Node::new());
            }
        }
        let node = &mut self.nodes[node];
        node.latest = node.latest.max(Some(item));
        node.here.insert(required, item);
        self.len += 1;
    }

    /// Whether some element that can be below the query passes the test.
    pub fn any_below(&self, query: Entry<'_, K>, test: impl FnMut(u32) -> bool) -> bool {
        self.find_below(query, test).is_some()
    }

    /// The first element found that can be below the query and passes the test.
    pub fn find_below(&self, query: Entry<'_, K>, mut test: impl FnMut(u32) -> bool) -> Option<u32> {
        debug_assert!(query.keys.is_sorted(), "invariant 1: keys are sorted");
        self.walk_below(0, (0, query.keys.len() + 1), query, &mut test)
    }

    /// The same for elements inserted since that of an item, with fewer keys than the query.
    pub fn find_fewer_below_since(
        &self,
        since: u32,
        query: Entry<'_, K>,
        mut test: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        debug_assert!(query.keys.is_sorted(), "invariant 1: keys are sorted");
        self.walk_below(0, (since, query.keys.len()), query, &mut test)
    }

    /// Looks at elements inserted since that of an item, with fewer keys than `fewer` below this node.
    fn walk_below(
        &self,
        node: usize,
        (since, fewer): (u32, usize),
        query: Entry<'_, K>,
        test: &mut impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if fewer == 0 {
            return None;
        }
        let node = &self.nodes[node];
        if node.latest >= Some(since) {
            let found = node.here.find_subset(since, query.signature.provided, test);
            if found.is_some() {
                return found;
            }
        }
        (0..query.keys.len()).find_map(|i| {
            let key = &query.keys[i];
            let repeated = i > 0 && *key == query.keys[i - 1];
            let child = if repeated || node.keys & bit(key) == 0 { None } else { node.children.get(key) };
            let child = child
                .filter(|child| child.latest >= since && is_subset(child.common, query.signature.provided))?;
            let query = Entry { keys: &query.keys[i + 1..], ..query };
            self.walk_below(child.node as usize, (since, fewer - 1), query, test)
        })
    }

    /// Removes the elements that pass the test, have exactly the same keys, and require at least the same bits.
    pub fn remove_if(&mut self, entry: Entry<'_, K>, mut test: impl FnMut(u32) -> bool) {
        debug_assert!(entry.keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in entry.keys {
            match self.nodes[node].children.get(key) {
                Some(child) => node = child.node as usize,
                None => return,
            }
        }
        self.len -= self.nodes[node].here.remove_supersets(entry.signature.required, &mut test);
    }

    /// All elements, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let mut all = Vec::new();
        self.nodes.iter().for_each(|node| node.here.collect(&mut all));
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

    /// Keys, bits required, more bits provided.
    type Item = (Vec<u8>, [u64; 2], u64);

    fn item() -> impl Strategy<Value = Item> {
        (proptest::collection::vec(0u8..4, 0..4), [0u64..4, 0u64..4], 0u64..4).prop_map(
            |(mut keys, required, more)| {
                keys.sort_unstable();
                (keys, required, more)
            },
        )
    }

    fn signature(item: &Item) -> Signature {
        Signature { required: item.1, provided: [item.1[0] | item.2, item.1[1]] }
    }

    fn requires_no_more(a: [u64; 2], b: [u64; 2]) -> bool {
        (0..2).all(|half| a[half] & !b[half] == 0)
    }

    proptest! {
        #[test]
        fn differential_queries_find_the_elements_below(stored in proptest::collection::vec(item(), 0..16), query in item()) {
            let mut chain = Antichain::new();
            for (number, item) in stored.iter().enumerate() {
                chain.insert(Entry { keys: &item.0, signature: signature(item) }, number as u32);
            }
            let entry = Entry { keys: &query.0, signature: signature(&query) };
            let mut met = Vec::new();
            chain.any_below(entry, |item| { met.push(item as usize); false });
            met.sort_unstable();
            let since = stored.len() as u32 / 2;
            let mut late = Vec::new();
            chain.find_fewer_below_since(since, entry, |item| { late.push(item as usize); false });
            late.sort_unstable();
            let is_late = |&item: &usize| item >= since as usize && stored[item].0.len() < query.0.len();
            prop_assert_eq!(&late, &Vec::from_iter(met.iter().copied().filter(is_late)));
            let is_below = |item: &Item| {
                is_submultiset(&item.0, &query.0) && requires_no_more(item.1, signature(&query).provided)
            };
            let below: Vec<_> = (0..stored.len()).filter(|&i| is_below(&stored[i])).collect();
            prop_assert_eq!(met, below);

            let before = chain.len();
            let mut seen = Vec::new();
            chain.remove_if(entry, |item| { seen.push(item as usize); item % 3 != 0 });
            let same = |i: &usize| stored[*i].0 == query.0 && requires_no_more(query.1, stored[*i].1);
            seen.sort_unstable();
            prop_assert_eq!(&seen, &(0..stored.len()).filter(same).collect::<Vec<_>>());
            prop_assert_eq!(before - chain.len(), seen.iter().filter(|&&item| item % 3 != 0).count());
            prop_assert_eq!(chain.iter().count(), chain.len());
        }
    }
}
