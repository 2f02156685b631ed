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
//!
//! *Invariants*
//! 1. Every stored element is at the trie node of its sorted keys.
//! 2. No item below a node of the trie is later than the node says.
//!
//! Elements above a new one are found cheaply only if their keys are the same ([`Antichain::remove_if`]). The
//! others are detected later, when they are examined: some other element is then below them.

use crate::masks::Masks;
use rustc_hash::FxHashMap;

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
    children: FxHashMap<K, u32>,
    /// The elements, with the bits they require.
    here: Masks,
    /// The latest item that was inserted here, and the latest one here or below. `None` before the first.
    latest: Option<u32>,
    latest_below: Option<u32>,
}

impl<K> Node<K> {
    fn new() -> Self {
        Node { children: FxHashMap::default(), here: Masks::default(), latest: None, latest_below: None }
    }
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
        for key in entry.keys {
            self.nodes[node].latest_below = self.nodes[node].latest_below.max(Some(item));
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
        (node.latest, node.latest_below) = (node.latest.max(Some(item)), node.latest_below.max(Some(item)));
        node.here.insert(entry.signature.required, item);
        self.len += 1;
    }

    /// Whether some element that can be below the query passes the test.
    pub fn any_below(&self, query: Entry<'_, K>, test: impl FnMut(u32) -> bool) -> bool {
        self.find_below(query, test).is_some()
    }

    /// The first element found that can be below the query and passes the test.
    pub fn find_below(&self, query: Entry<'_, K>, mut test: impl FnMut(u32) -> bool) -> Option<u32> {
        self.find_below_since(0, query, &mut test)
    }

    /// The same for elements inserted since that of an item. Earlier ones may be found as well.
    pub fn find_below_since(
        &self,
        since: u32,
        query: Entry<'_, K>,
        mut test: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        debug_assert!(query.keys.is_sorted(), "invariant 1: keys are sorted");
        self.walk_below(0, since, query, &mut test)
    }

    fn walk_below(
        &self,
        node: usize,
        since: u32,
        query: Entry<'_, K>,
        test: &mut impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let node = &self.nodes[node];
        if node.latest_below < Some(since) {
            return None;
        }
        if node.latest >= Some(since) {
            let found = node.here.find_subset(query.signature.provided, test);
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
            self.walk_below(*child? as usize, since, Entry { keys: &query.keys[i + 1..], ..query }, test)
        })
    }

    /// Removes the elements that pass the test, have exactly the same keys, and require at least the same bits.
    pub fn remove_if(&mut self, entry: Entry<'_, K>, mut test: impl FnMut(u32) -> bool) {
        debug_assert!(entry.keys.is_sorted(), "invariant 1: keys are sorted");
        let mut node = 0;
        for key in entry.keys {
            match self.nodes[node].children.get(key) {
                Some(&child) => node = child as usize,
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
            chain.find_below_since(since, entry, |item| { late.push(item as usize); false });
            late.retain(|&item| item >= since as usize);
            late.sort_unstable();
            prop_assert_eq!(&late, &Vec::from_iter(met.iter().copied().filter(|&item| item >= since as usize)));
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
