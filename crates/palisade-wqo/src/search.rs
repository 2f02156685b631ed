//! Backward search over upward-closed sets.
//!
//! *Problem.* Can a bad element be reached from an initial one?
//!
//! *Guarantee.* If predecessors are right (the upward closure of the elements that `predecessors` gives for `e`, together with that of `e`, holds exactly the
//! one-step predecessors of the upward closure of `e`, or at least enough of them) and the order is a well-quasi-order, the search ends: with an
//! initial element, or with the minimal elements of a set that is closed under predecessors and holds no initial element.
//!
//! *How.* Smallest elements first, so that subsumption removes more. An element that has become subsumed by the time it would be expanded is
//! not expanded.

use crate::{Antichain, Entry, Signature};

/// A system to be searched backward.
pub trait Backward {
    /// An upward-closed set, given by its least element.
    type Element;
    /// What must be equal in comparable elements.
    type Key: Copy + Ord + std::hash::Hash;
    /// How a predecessor came about, for witnesses.
    type Why;

    /// The sorted keys of an element.
    fn keys(&self, element: &Self::Element) -> Vec<Self::Key>;
    /// Whether `a` is below `b`: its upward closure holds that of `b`.
    fn is_below(&self, a: &Self::Element, b: &Self::Element) -> bool;
    /// What sorts out most elements before [`Backward::is_below`] is asked. Elements of systems without cells know none.
    fn signature(&self, element: &Self::Element) -> Signature {
        let _ = element;
        Signature::default()
    }
    /// A number for what the element holds in a set of cells, all of them available in it: the same for elements that hold the same.
    fn content(&self, element: &Self::Element, cells: u64) -> u64 {
        let _ = (element, cells);
        0
    }
    /// How large an element is; smaller ones are expanded first.
    fn weight(&self, element: &Self::Element) -> usize;
    /// Whether the upward closure holds an initial configuration.
    fn is_initial(&self, element: &Self::Element) -> bool;
    /// Gives predecessors.
    fn predecessors(&self, element: &Self::Element, give: &mut dyn FnMut(Self::Element, Self::Why));
    /// Roughly how much memory an element takes besides its own size.
    fn bytes(&self, element: &Self::Element) -> usize;
}

/// An element met by the search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeId(usize);

struct Node<E, W> {
    element: E,
    /// The element it is a predecessor of, and how.
    successor: Option<(NodeId, W)>,
    subsumed: bool,
}

/// What a search found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// An initial element: something bad can be reached.
    Initial(NodeId),
    /// Nothing: the set of elements is closed under predecessors.
    Closed,
}

/// A search.
pub struct Search<'s, B: Backward> {
    system: &'s B,
    nodes: Vec<Node<B::Element, B::Why>>,
    antichain: Antichain<B::Key>,
    /// Elements to be expanded, by weight.
    queue: Vec<std::collections::VecDeque<u32>>,
    /// The first initial element met.
    initial: Option<NodeId>,
    generated: u64,
    tests: u64,
    bytes: u64,
}

impl<'s, B: Backward> Search<'s, B> {
    /// A search that has met nothing yet.
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

    /// Goes on until something is found or `go_on` says stop (`None`); it can be called again then. `go_on` is asked before each expansion.
    pub fn run(&mut self, mut go_on: impl FnMut(&Self) -> bool) -> Option<Found> {
        loop {
            if let Some(initial) = self.initial {
                return Some(Found::Initial(initial));
            }
            if !go_on(self) {
                return None;
            }
            let Some(next) = self.next() else { return Some(Found::Closed) };
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

    /// Whether another element has come below this one since it was met; then it goes.
    fn became_subsumed(&mut self, index: usize) -> bool {
        let (system, nodes, tests) = (self.system, &mut self.nodes, &mut self.tests);
        let element = &nodes[index].element;
        let (keys, signature) = (system.keys(element), system.signature(element));
        let content = |cells| system.content(element, cells);
        let entry = Entry { keys: &keys, signature, content: &content };
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
        let content = |cells| system.content(&element, cells);
        let entry = Entry { keys: &keys, signature, content: &content };
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
        // With its place in the antichain and in the queue.
        let places = size_of::<(u64, u32)>() + size_of::<u32>();
        self.bytes += (size_of::<Node<B::Element, B::Why>>() + places + system.bytes(&element)) as u64;
        let short = u32::try_from(index).expect("fewer than 2^32 elements fit into memory");
        self.antichain.insert(entry, short);
        nodes.push(Node { element, successor, subsumed: false });
        if self.queue.len() <= weight {
            self.queue.resize_with(weight + 1, Default::default);
        }
        self.queue[weight].push_back(short);
    }

    /// An element.
    pub fn element(&self, node: NodeId) -> &B::Element {
        &self.nodes[node.0].element
    }

    /// The element it is a predecessor of, and how.
    pub fn successor(&self, node: NodeId) -> Option<(NodeId, &B::Why)> {
        self.nodes[node.0].successor.as_ref().map(|(successor, why)| (*successor, why))
    }

    /// The minimal elements.
    pub fn minimal_elements(&self) -> impl Iterator<Item = &B::Element> {
        let minimal = |&index: &u32| {
            let element = &self.nodes[index as usize].element;
            let (keys, signature) = (self.system.keys(element), self.system.signature(element));
            let content = |cells| self.system.content(element, cells);
            !self.antichain.any_below(Entry { keys: &keys, signature, content: &content }, |other| {
                other != index && self.system.is_below(&self.nodes[other as usize].element, element)
            })
        };
        self.antichain.iter().filter(minimal).map(|index| &self.nodes[index as usize].element)
    }

    /// After [`Found::Closed`]: elements that hold the given ones and are closed under predecessors by themselves. Minimal elements that became needless on the way are not among them.
    pub fn needed(&self, bad: impl Iterator<Item = B::Element>) -> Vec<&B::Element> {
        let mut marked = vec![false; self.nodes.len()];
        let mut work: Vec<usize> = Vec::new();
        let below = |element: &B::Element, other_than: Option<u32>| {
            let (keys, signature) = (self.system.keys(element), self.system.signature(element));
            let content = |cells| self.system.content(element, cells);
            self.antichain.find_below(Entry { keys: &keys, signature, content: &content }, |stored| {
                Some(stored) != other_than
                    && self.system.is_below(&self.nodes[stored as usize].element, element)
            })
        };
        let mut mark = |element: &B::Element, work: &mut Vec<usize>| {
            let mut found = below(element, None).expect("the set is closed");
            // Down to a minimal one.
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

    /// How many elements are kept: the minimal ones, and those not yet found out to be above others.
    pub fn antichain_len(&self) -> usize {
        self.antichain.len()
    }

    /// How many elements were generated, before subsumption: the papers' count.
    pub fn generated(&self) -> u64 {
        self.generated
    }

    /// How many times two elements were compared in full, signatures having said nothing against it.
    pub fn subsumption_tests(&self) -> u64 {
        self.tests
    }

    /// Roughly how much memory the elements take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_subword;
    use proptest::prelude::*;

    /// A lossy stack rewriting system: a configuration is a word, rules replace a suffix, and letters may be lost at any time.
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
                // The longest suffix of the element that embeds in what the rule writes was written by it.
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

    /// Words reachable forward, up to a length, without losses except by the final comparison.
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
            let found = search.run(|_| true).expect("nobody says stop");
            let chain: Vec<_> = search.minimal_elements().collect();
            for (i, a) in chain.iter().enumerate() {
                for (j, b) in chain.iter().enumerate() {
                    prop_assert!(i == j || !is_subword(a, b), "the elements are an antichain");
                }
            }
            match found {
                Found::Initial(mut node) => {
                    prop_assert!(system.is_initial(search.element(node)));
                    while let Some((next, _)) = search.successor(node) {
                        node = next;
                    }
                    prop_assert_eq!(search.element(node), &bad);
                }
                Found::Closed => prop_assert!(!reaches(&system, &bad, 8)),
            }
            if reaches(&system, &bad, 6) {
                prop_assert!(matches!(found, Found::Initial(_)));
            }
        }
    }
}
