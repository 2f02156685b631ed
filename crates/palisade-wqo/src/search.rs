//! Backward search over upward-closed sets.
//!
//! *Problem.* Can a bad element be reached from an initial one?
//!
//! *Guarantee.* The search terminates if the order is a well-quasi-order and `predecessors` is right: the
//! upward closure of the elements it returns for `e`, together with that of `e`, contains exactly the
//! one-step predecessors of the upward closure of `e`, or at least enough of them. The search ends with an
//! initial element, or with the minimal elements of a set that is closed under predecessors and contains no
//! initial element.
//!
//! *How.* The smallest elements are expanded first, so that subsumption removes more. An element that is
//! subsumed by the time it would be expanded is not expanded.

use crate::{Antichain, Entry, Signature};

/// A system for backward search.
pub trait Backward {
    /// An upward-closed set, given by its least element.
    type Element;
    /// The parts that must be equal in comparable elements.
    type Key: Copy + Ord + std::hash::Hash;
    /// How a predecessor arises, for witnesses.
    type Why;

    /// The sorted keys of an element.
    fn keys(&self, element: &Self::Element) -> Vec<Self::Key>;
    /// Whether `a` is below `b`: its upward closure contains that of `b`.
    fn is_below(&self, a: &Self::Element, b: &Self::Element) -> bool;
    /// A quick filter that rules out most elements before [`Backward::is_below`] is called.
    fn signature(&self, element: &Self::Element) -> Signature {
        let _ = element;
        Signature::default()
    }
    /// How large an element is; smaller ones are expanded first.
    fn weight(&self, element: &Self::Element) -> usize;
    /// Whether the upward closure contains an initial configuration.
    fn is_initial(&self, element: &Self::Element) -> bool;
    /// Passes each predecessor to `give`.
    fn predecessors(&self, element: &Self::Element, give: &mut dyn FnMut(Self::Element, Self::Why));
    /// Approximate memory of an element beyond its own size.
    fn bytes(&self, element: &Self::Element) -> usize;
}

/// An element seen by the search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeId(usize);

struct Node<E, W> {
    element: E,
    /// The element that this one is a predecessor of, and how.
    successor: Option<(NodeId, W)>,
    subsumed: bool,
}

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchEnd {
    /// At an initial element: a bad element can be reached.
    Initial(NodeId),
    /// Without one: the set of elements is closed under predecessors.
    Closed,
}

/// A search.
pub struct Search<'s, B: Backward> {
    system: &'s B,
    nodes: Vec<Node<B::Element, B::Why>>,
    antichain: Antichain<B::Key>,
    /// Elements to expand, by weight.
    queue: Vec<std::collections::VecDeque<u32>>,
    /// The first initial element seen.
    initial: Option<NodeId>,
    generated: u64,
    tests: u64,
    bytes: u64,
}

impl<'s, B: Backward> Search<'s, B> {
    /// A search without elements yet.
    pub fn new(system: &'s B) -> Self {
        Search {
            system,
            nodes: Vec::new(),
            antichain: Antichain::new(),
            queue: Vec::new(),
            initial: None,
            generated: 0,
            tests: 0,
            bytes: 0,
        }
    }

    /// Adds a bad element.
    pub fn add(&mut self, element: B::Element) {
        self.meet(element, None);
    }

    /// Runs until the search ends, or until `may_continue` returns false (`None`); it can then be called
    /// again. `may_continue` is called before each expansion.
    pub fn run(&mut self, mut may_continue: impl FnMut(&Self) -> bool) -> Option<SearchEnd> {
        loop {
            if let Some(initial) = self.initial {
                return Some(SearchEnd::Initial(initial));
            }
            if !may_continue(self) {
                return None;
            }
            let Some(next) = self.next() else { return Some(SearchEnd::Closed) };
            let mut found = Vec::new();
            self.system
                .predecessors(&self.nodes[next].element, &mut |element, why| found.push((element, why)));
            for (element, why) in found {
                self.meet(element, Some((NodeId(next), why)));
            }
        }
    }

    fn next(&mut self) -> Option<usize> {
        for weight in 0..self.queue.len() {
            while let Some(index) = self.queue[weight].pop_front() {
                let index = index as usize;
                if !self.nodes[index].subsumed && !self.became_subsumed(index) {
                    return Some(index);
                }
            }
        }
        None
    }

    /// Whether an element below this one was added after it was first seen. If so, this one is removed.
    fn became_subsumed(&mut self, index: usize) -> bool {
        let (system, nodes, tests) = (self.system, &mut self.nodes, &mut self.tests);
        let element = &nodes[index].element;
        let (keys, signature) = (system.keys(element), system.signature(element));
        let entry = Entry { keys: &keys, signature };
        let subsumed = self.antichain.any_below(entry, |other| {
            *tests += 1;
            other as usize != index && system.is_below(&nodes[other as usize].element, element)
        });
        if subsumed {
            self.antichain.remove_if(entry, |other| other as usize == index);
            nodes[index].subsumed = true;
        }
        subsumed
    }

    fn meet(&mut self, element: B::Element, successor: Option<(NodeId, B::Why)>) {
        self.generated += 1;
        if self.initial.is_some() {
            return;
        }
        let system = self.system;
        let nodes = &mut self.nodes;
        let tests = &mut self.tests;
        let (keys, signature) = (system.keys(&element), system.signature(&element));
        let entry = Entry { keys: &keys, signature };
        let covered = self.antichain.any_below(entry, |stored| {
            *tests += 1;
            system.is_below(&nodes[stored as usize].element, &element)
        });
        if covered {
            return;
        }
        self.antichain.remove_if(entry, |stored| {
            *tests += 1;
            let stored = stored as usize;
            let above = system.is_below(&element, &nodes[stored].element);
            nodes[stored].subsumed |= above;
            above
        });
        let index = nodes.len();
        if system.is_initial(&element) {
            self.initial = Some(NodeId(index));
        }
        let weight = system.weight(&element);
        // Includes its entries in the antichain and in the queue.
        let places = size_of::<([u64; 2], u32)>() + size_of::<u32>();
        self.bytes += (size_of::<Node<B::Element, B::Why>>() + places + system.bytes(&element)) as u64;
        let short = u32::try_from(index).expect("fewer than 2^32 elements fit into memory");
        self.antichain.insert(entry, short);
        nodes.push(Node { element, successor, subsumed: false });
        if self.queue.len() <= weight {
            self.queue.resize_with(weight + 1, Default::default);
        }
        self.queue[weight].push_back(short);
    }

    /// The element of a node.
    pub fn element(&self, node: NodeId) -> &B::Element {
        &self.nodes[node.0].element
    }

    /// The element that this one is a predecessor of, and how.
    pub fn successor(&self, node: NodeId) -> Option<(NodeId, &B::Why)> {
        self.nodes[node.0].successor.as_ref().map(|(successor, why)| (*successor, why))
    }

    /// The minimal elements.
    pub fn minimal_elements(&self) -> impl Iterator<Item = &B::Element> {
        let minimal = |&index: &u32| {
            let element = &self.nodes[index as usize].element;
            let (keys, signature) = (self.system.keys(element), self.system.signature(element));
            !self.antichain.any_below(Entry { keys: &keys, signature }, |other| {
                other != index && self.system.is_below(&self.nodes[other as usize].element, element)
            })
        };
        self.antichain.iter().filter(minimal).map(|index| &self.nodes[index as usize].element)
    }

    /// After [`SearchEnd::Closed`]: elements whose upward closure contains the given ones and is closed under
    /// predecessors by itself. Minimal elements that are no longer needed are left out.
    pub fn needed(&self, bad: impl Iterator<Item = B::Element>) -> Vec<&B::Element> {
        let mut marked = vec![false; self.nodes.len()];
        let mut work: Vec<usize> = Vec::new();
        let below = |element: &B::Element, other_than: Option<u32>| {
            let (keys, signature) = (self.system.keys(element), self.system.signature(element));
            self.antichain.find_below(Entry { keys: &keys, signature }, |stored| {
                Some(stored) != other_than
                    && self.system.is_below(&self.nodes[stored as usize].element, element)
            })
        };
        let mut mark = |element: &B::Element, work: &mut Vec<usize>| {
            let mut found = below(element, None).expect("the set is closed");
            // Descend to a minimal one.
            while let Some(smaller) = below(&self.nodes[found as usize].element, Some(found)) {
                found = smaller;
            }
            if !std::mem::replace(&mut marked[found as usize], true) {
                work.push(found as usize);
            }
        };
        bad.for_each(|element| mark(&element, &mut work));
        let mut next = 0;
        while let Some(&index) = work.get(next) {
            let mut found = Vec::new();
            self.system.predecessors(&self.nodes[index].element, &mut |element, _| found.push(element));
            found.iter().for_each(|element| mark(element, &mut work));
            next += 1;
        }
        work.into_iter().map(|index| &self.nodes[index].element).collect()
    }

    /// The number of elements kept: the minimal ones, and those not yet known to be above others.
    pub fn antichain_len(&self) -> usize {
        self.antichain.len()
    }

    /// The number of elements generated, before subsumption. This is the count that the papers give.
    pub fn generated(&self) -> u64 {
        self.generated
    }

    /// How many times two elements were compared in full because their signatures did not rule it out.
    pub fn subsumption_tests(&self) -> u64 {
        self.tests
    }

    /// Approximate memory of the elements.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_subword;
    use proptest::prelude::*;

    /// A lossy stack rewriting system: a configuration is a word, rules replace a suffix, and letters may be
    /// lost at any time.
    struct Lossy {
        rules: Vec<(Vec<u8>, Vec<u8>)>,
        start: Vec<u8>,
    }

    impl Backward for Lossy {
        type Element = Vec<u8>;
        type Key = u8;
        type Why = usize;
        fn keys(&self, element: &Vec<u8>) -> Vec<u8> {
            let mut keys = element.clone();
            keys.sort_unstable();
            keys
        }
        fn is_below(&self, a: &Vec<u8>, b: &Vec<u8>) -> bool {
            is_subword(a, b)
        }
        fn weight(&self, element: &Vec<u8>) -> usize {
            element.len()
        }
        fn is_initial(&self, element: &Vec<u8>) -> bool {
            is_subword(element, &self.start)
        }
        fn predecessors(&self, element: &Vec<u8>, give: &mut dyn FnMut(Vec<u8>, usize)) {
            for (number, (from, to)) in self.rules.iter().enumerate() {
                // The rule wrote the longest suffix of the element that embeds in the rule's right side.
                let mut kept = element.len();
                while kept > 0 && is_subword(&element[kept - 1..], to) {
                    kept -= 1;
                }
                give([&element[..kept], from].concat(), number);
            }
        }
        fn bytes(&self, element: &Vec<u8>) -> usize {
            element.len()
        }
    }

    /// Whether a word above `bad` can be reached by forward search through words up to a length.
    fn reaches(system: &Lossy, bad: &[u8], longest: usize) -> bool {
        let mut seen = std::collections::HashSet::from([system.start.clone()]);
        let mut work = vec![system.start.clone()];
        while let Some(word) = work.pop() {
            if is_subword(bad, &word) {
                return true;
            }
            let lost = (0..word.len()).map(|i| [&word[..i], &word[i + 1..]].concat());
            let rules = system.rules.iter().filter(|(from, _)| word.ends_with(from));
            let written = rules.map(|(from, to)| [&word[..word.len() - from.len()], to].concat());
            for next in lost.chain(written).filter(|next| next.len() <= longest) {
                if seen.insert(next.clone()) {
                    work.push(next);
                }
            }
        }
        false
    }

    fn word(longest: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0u8..3, 0..=longest)
    }

    proptest! {
        #[test]
        fn differential_backward_finds_what_forward_finds(
            rules in proptest::collection::vec((word(2), word(2)), 0..4),
            start in word(3),
            bad in word(3),
        ) {
            let system = Lossy { rules, start };
            let mut search = Search::new(&system);
            search.add(bad.clone());
            let found = search.run(|_| true).expect("the search is not stopped");
            let chain: Vec<_> = search.minimal_elements().collect();
            for (i, a) in chain.iter().enumerate() {
                for (j, b) in chain.iter().enumerate() {
                    prop_assert!(i == j || !is_subword(a, b), "the elements are an antichain");
                }
            }
            match found {
                SearchEnd::Initial(mut node) => {
                    prop_assert!(system.is_initial(search.element(node)));
                    while let Some((next, _)) = search.successor(node) {
                        node = next;
                    }
                    prop_assert_eq!(search.element(node), &bad);
                }
                SearchEnd::Closed => prop_assert!(!reaches(&system, &bad, 8)),
            }
            if reaches(&system, &bad, 6) {
                prop_assert!(matches!(found, SearchEnd::Initial(_)));
            }
        }
    }
}
