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
//!
//! *Guesses.* Elements that are only guessed to be unreachable can be added as well ([`Search::guess`]), also while the
//! search runs ([`Search::run_guessing`]). Each
//! element has a *root*, the added element from which it was derived. An initial element whose root is a guess
//! refutes that guess and nothing else. The guess is then [retracted](Search::retract) together with all elements
//! derived from it. Elements that were left out because they were above a retracted one may be missing now. So,
//! when nothing is left to expand, all remaining elements are expanded once more, and what is missing is found
//! again. If the search ends without an initial element after that, the remaining elements, guesses included, are
//! closed under predecessors, and no guess has to be trusted. There are finitely many guesses, so the search still
//! terminates.

use crate::{Antichain, Closed, Entry, Signature};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The keys of an element. There are rarely more than a few.
pub type Keys<K> = SmallVec<[K; 8]>;

/// A system for backward search.
pub trait Backward {
    /// An upward-closed set, given by its least element.
    type Element;
    /// The parts that must be equal in comparable elements.
    type Key: Copy + Ord + std::hash::Hash;
    /// Where the search keeps elements. They are numbered in the order in which they are added.
    type Store: Default;

    /// Adds an element to the store. Returns the memory that it takes there, approximately.
    fn keep(&self, store: &mut Self::Store, element: Self::Element) -> usize;
    /// An element of the store.
    fn kept(&self, store: &Self::Store, number: u32) -> Self::Element;
    /// Whether an element of the store is below the given one.
    fn kept_is_below(&self, store: &Self::Store, number: u32, element: &Self::Element) -> bool;
    /// Whether the given element is below an element of the store.
    fn is_below_kept(&self, element: &Self::Element, store: &Self::Store, number: u32) -> bool;

    /// The sorted keys of an element.
    fn keys(&self, element: &Self::Element) -> Keys<Self::Key>;
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
    fn predecessors(&self, element: &Self::Element, give: &mut dyn FnMut(Self::Element));
}

/// An element seen by the search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

impl NodeId {
    /// Stands for no element.
    const NONE: NodeId = NodeId(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What the search knows of an element beside the element itself.
#[derive(Clone, Copy)]
struct Node {
    /// The element that this one is a predecessor of.
    successor: NodeId,
    /// The element was above another one, or was derived from a guess that was retracted.
    removed: bool,
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
    store: B::Store,
    nodes: Vec<Node>,
    antichain: Antichain<B::Key>,
    /// Elements to expand, by weight.
    queue: Vec<VecDeque<NodeId>>,
    /// The first initial element seen.
    initial: Option<NodeId>,
    /// The nodes of guesses that are not retracted, in increasing order.
    guesses: Vec<NodeId>,
    /// Whether guesses were retracted since all elements were last expanded.
    retracted: bool,
    /// The predecessors of the element that is being expanded.
    found: Vec<B::Element>,
    generated: u64,
    tests: u64,
    bytes: u64,
}

impl<'s, B: Backward> Search<'s, B> {
    /// A search without elements yet.
    pub fn new(system: &'s B) -> Self {
        Search {
            system,
            store: B::Store::default(),
            nodes: Vec::new(),
            antichain: Antichain::new(),
            queue: Vec::new(),
            initial: None,
            guesses: Vec::new(),
            retracted: false,
            found: Vec::new(),
            generated: 0,
            tests: 0,
            bytes: 0,
        }
    }

    /// Adds a bad element.
    pub fn add(&mut self, element: B::Element) {
        self.meet(element, NodeId::NONE);
    }

    /// Adds an element that may turn out to be reachable.
    pub fn guess(&mut self, element: B::Element) {
        let before = self.nodes.len();
        self.meet(element, NodeId::NONE);
        if self.nodes.len() > before {
            self.guesses.push(NodeId(before as u32));
        }
    }

    /// The guess that an element was derived from. `None` if it was derived from a bad element.
    pub fn guess_behind(&self, mut node: NodeId) -> Option<NodeId> {
        while let Some(successor) = self.successor(node) {
            node = successor;
        }
        self.guesses.binary_search(&node).is_ok().then_some(node)
    }

    /// Takes back the guesses that `is_wrong`, with everything derived from them. The search can then continue.
    /// Bad elements have to be added again, because they may have been left out for a guess.
    pub fn retract(&mut self, mut is_wrong: impl FnMut(NodeId, &B::Element) -> bool) {
        let mut wrong = vec![false; self.nodes.len()];
        let (system, store) = (self.system, &self.store);
        self.guesses.retain(|&guess| {
            wrong[guess.index()] = is_wrong(guess, &system.kept(store, guess.0));
            !wrong[guess.index()]
        });
        for index in 0..self.nodes.len() {
            let Node { successor, removed } = self.nodes[index];
            if successor != NodeId::NONE {
                wrong[index] = wrong[successor.index()];
            }
            if wrong[index] && !removed {
                let number = index as u32;
                let element = self.system.kept(&self.store, number);
                let (keys, signature) = (self.system.keys(&element), self.system.signature(&element));
                self.antichain.remove_if(Entry { keys: &keys, signature }, |stored| stored == number);
                self.nodes[index].removed = true;
            }
        }
        self.initial = None;
        self.retracted = true;
    }

    /// The number of guesses that are not retracted.
    pub fn guesses(&self) -> usize {
        self.guesses.len()
    }

    /// Runs until the search ends, or until `may_continue` returns false (`None`); it can then be called
    /// again. `may_continue` is called before each expansion.
    pub fn run(&mut self, mut may_continue: impl FnMut(&Self) -> bool) -> Option<SearchEnd> {
        self.run_guessing(&mut may_continue, &mut |_| None)
    }

    /// The same with guesses that come up during the search: `generalise` may name an element below the one that is about
    /// to be expanded. It takes the place of that element as a guess.
    pub fn run_guessing(
        &mut self,
        may_continue: &mut dyn FnMut(&Self) -> bool,
        generalise: &mut dyn FnMut(&B::Element) -> Option<B::Element>,
    ) -> Option<SearchEnd> {
        loop {
            if let Some(initial) = self.initial {
                return Some(SearchEnd::Initial(initial));
            }
            if !may_continue(self) {
                return None;
            }
            let Some((next, element)) = self.next() else {
                if !self.retracted {
                    return Some(SearchEnd::Closed);
                }
                self.expand_again();
                continue;
            };
            if self.guesses.binary_search(&next).is_err()
                && let Some(general) = generalise(&element)
            {
                self.guess(general);
                if self.nodes[next.index()].removed {
                    continue;
                }
            }
            let mut found = std::mem::take(&mut self.found);
            self.system.predecessors(&element, &mut |element| found.push(element));
            found.drain(..).for_each(|element| self.meet(element, next));
            self.found = found;
        }
    }

    /// Puts all elements into the queue again.
    fn expand_again(&mut self) {
        self.retracted = false;
        for number in 0..self.nodes.len() as u32 {
            if !self.nodes[number as usize].removed {
                let weight = self.system.weight(&self.system.kept(&self.store, number));
                self.queue[weight].push_back(NodeId(number));
            }
        }
    }

    /// The next element to expand.
    fn next(&mut self) -> Option<(NodeId, B::Element)> {
        for weight in 0..self.queue.len() {
            while let Some(node) = self.queue[weight].pop_front() {
                if !self.nodes[node.index()].removed {
                    let element = self.system.kept(&self.store, node.0);
                    if !self.became_subsumed(node, &element) {
                        return Some((node, element));
                    }
                }
            }
        }
        None
    }

    /// All elements of the smallest weight.
    pub(crate) fn next_round(&mut self) -> Vec<(NodeId, B::Element)> {
        let mut round = Vec::new();
        for weight in 0..self.queue.len() {
            for node in std::mem::take(&mut self.queue[weight]) {
                if !self.nodes[node.index()].removed {
                    let element = self.system.kept(&self.store, node.0);
                    if !self.became_subsumed(node, &element) {
                        round.push((node, element));
                    }
                }
            }
            if !round.is_empty() {
                break;
            }
        }
        round
    }

    pub(crate) fn system(&self) -> &'s B {
        self.system
    }

    pub(crate) fn store(&self) -> &B::Store {
        &self.store
    }

    pub(crate) fn antichain(&self) -> &Antichain<B::Key> {
        &self.antichain
    }

    pub(crate) fn first_initial(&self) -> Option<NodeId> {
        self.initial
    }

    /// The number of elements that were ever kept.
    pub(crate) fn kept_count(&self) -> usize {
        self.nodes.len()
    }

    /// Whether an element below this one was added after it was first seen. If so, this one is removed.
    fn became_subsumed(&mut self, node: NodeId, element: &B::Element) -> bool {
        let (system, store, tests) = (self.system, &self.store, &mut self.tests);
        let (keys, signature) = (system.keys(element), system.signature(element));
        let entry = Entry { keys: &keys, signature };
        // When it was added, no element was below it. Those with the same keys have removed it when they were added.
        let subsumed = self.antichain.find_fewer_below_since(node.0 + 1, entry, |other| {
            *tests += 1;
            system.kept_is_below(store, other, element)
        });
        let subsumed = subsumed.is_some();
        if subsumed {
            self.antichain.remove_if(entry, |other| other == node.0);
            self.nodes[node.index()].removed = true;
        }
        subsumed
    }

    pub(crate) fn meet(&mut self, element: B::Element, successor: NodeId) {
        self.generated += 1;
        if self.initial.is_some() {
            return;
        }
        let (system, store) = (self.system, &self.store);
        let (nodes, tests) = (&mut self.nodes, &mut self.tests);
        let (keys, signature) = (system.keys(&element), system.signature(&element));
        let entry = Entry { keys: &keys, signature };
        let covered = self.antichain.any_below(entry, |stored| {
            *tests += 1;
            system.kept_is_below(store, stored, &element)
        });
        if covered {
            return;
        }
        self.antichain.remove_if(entry, |stored| {
            *tests += 1;
            let above = system.is_below_kept(&element, store, stored);
            nodes[stored as usize].removed |= above;
            above
        });
        let node = NodeId(u32::try_from(nodes.len()).expect("fewer than 2^32 elements fit into memory"));
        if system.is_initial(&element) {
            self.initial = Some(node);
        }
        let weight = system.weight(&element);
        self.antichain.insert(entry, node.0);
        // Includes its entries in the antichain and in the queue.
        let places = size_of::<[u64; 2]>() + 2 * size_of::<u32>();
        self.bytes += (size_of::<Node>() + places + system.keep(&mut self.store, element)) as u64;
        self.nodes.push(Node { successor, removed: false });
        if self.queue.len() <= weight {
            self.queue.resize_with(weight + 1, Default::default);
        }
        self.queue[weight].push_back(node);
    }

    /// The element of a node.
    pub fn element(&self, node: NodeId) -> B::Element {
        self.system.kept(&self.store, node.0)
    }

    /// The element that this one is a predecessor of.
    pub fn successor(&self, node: NodeId) -> Option<NodeId> {
        Some(self.nodes[node.index()].successor).filter(|&successor| successor != NodeId::NONE)
    }

    /// The minimal elements.
    pub fn minimal_elements(&self) -> impl Iterator<Item = B::Element> {
        self.antichain.iter().filter_map(|number| {
            let element = self.system.kept(&self.store, number);
            let (keys, signature) = (self.system.keys(&element), self.system.signature(&element));
            let above = self.antichain.any_below(Entry { keys: &keys, signature }, |other| {
                other != number && self.system.kept_is_below(&self.store, other, &element)
            });
            (!above).then_some(element)
        })
    }

    /// After [`SearchEnd::Closed`]: the closed set.
    pub fn closed(&self) -> Closed<'s, B>
    where
        B::Element: Clone,
    {
        Closed::new(self.system, self.minimal_elements())
    }

    /// All elements that were ever kept.
    pub fn all_elements(&self) -> impl Iterator<Item = B::Element> {
        (0..self.nodes.len() as u32).map(|number| self.system.kept(&self.store, number))
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
    use crate::{Generalise, is_subword};
    use proptest::prelude::*;

    /// A lossy stack rewriting system: a configuration is a word, rules replace a suffix, and letters may be
    /// lost at any time.
    struct Lossy {
        rules: Vec<(Vec<u8>, Vec<u8>)>,
        start: Vec<u8>,
    }

    impl Generalise for Lossy {
        fn generalise(&self, element: &Vec<u8>, give: &mut dyn FnMut(Vec<u8>) -> bool) {
            _ = (0..element.len()).any(|i| give([&element[..i], &element[i + 1..]].concat()));
        }
    }

    impl Backward for Lossy {
        type Element = Vec<u8>;
        type Key = u8;
        type Store = Vec<Vec<u8>>;
        fn keep(&self, store: &mut Vec<Vec<u8>>, element: Vec<u8>) -> usize {
            store.push(element);
            0
        }
        fn kept(&self, store: &Vec<Vec<u8>>, number: u32) -> Vec<u8> {
            store[number as usize].clone()
        }
        fn kept_is_below(&self, store: &Vec<Vec<u8>>, number: u32, element: &Vec<u8>) -> bool {
            is_subword(&store[number as usize], element)
        }
        fn is_below_kept(&self, element: &Vec<u8>, store: &Vec<Vec<u8>>, number: u32) -> bool {
            is_subword(element, &store[number as usize])
        }
        fn keys(&self, element: &Vec<u8>) -> Keys<u8> {
            let mut keys = Keys::from_slice(element);
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
        fn predecessors(&self, element: &Vec<u8>, give: &mut dyn FnMut(Vec<u8>)) {
            for (from, to) in &self.rules {
                // The rule wrote the longest suffix of the element that embeds in the rule's right side.
                let mut kept = element.len();
                while kept > 0 && is_subword(&element[kept - 1..], to) {
                    kept -= 1;
                }
                give([&element[..kept], from].concat());
            }
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

    /// Whether the elements show that the bad one is unreachable, by the definition.
    fn is_proof(system: &Lossy, elements: &[Vec<u8>], bad: &[u8]) -> bool {
        let covers = |word: &[u8]| elements.iter().any(|element| is_subword(element, word));
        let closed = |element: &Vec<u8>| {
            let mut closed = true;
            system.predecessors(element, &mut |word| closed &= covers(&word));
            closed
        };
        covers(bad) && elements.iter().all(|element| !system.is_initial(element) && closed(element))
    }

    fn word(longest: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0u8..3, 0..=longest)
    }

    /// The answer is that of a search without guesses, and a closed set proves it.
    fn check_answer(system: &Lossy, search: &Search<'_, Lossy>, bad: &[u8], found: SearchEnd) {
        let mut exact = Search::new(system);
        exact.add(bad.to_vec());
        let expected = exact.run(|_| true).expect("the search is not stopped");
        assert_eq!(found == SearchEnd::Closed, expected == SearchEnd::Closed);
        if found == SearchEnd::Closed {
            let elements: Vec<_> = search.minimal_elements().collect();
            assert!(is_proof(system, &elements, bad));
        }
    }

    /// Runs to the end, and retracts guesses that are wrong.
    fn retracting(
        search: &mut Search<'_, Lossy>,
        bad: &[u8],
        generalise: &mut dyn FnMut(&Vec<u8>) -> Option<Vec<u8>>,
    ) -> SearchEnd {
        loop {
            match search.run_guessing(&mut |_| true, generalise).expect("the search is not stopped") {
                SearchEnd::Closed => return SearchEnd::Closed,
                SearchEnd::Initial(node) => {
                    let Some(wrong) = search.guess_behind(node) else { return SearchEnd::Initial(node) };
                    let before = search.guesses();
                    search.retract(|guess, _| guess == wrong);
                    assert_eq!(search.guesses() + 1, before, "one guess is wrong");
                    search.add(bad.to_vec());
                }
            }
        }
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
                    prop_assert!(system.is_initial(&search.element(node)));
                    while let Some(next) = search.successor(node) {
                        node = next;
                    }
                    prop_assert_eq!(&search.element(node), &bad);
                }
                SearchEnd::Closed => prop_assert!(!reaches(&system, &bad, 8)),
            }
            if reaches(&system, &bad, 6) {
                prop_assert!(matches!(found, SearchEnd::Initial(_)));
            }
        }

        /// Guesses change neither the answer nor that a closed set is closed, whatever is guessed.
        #[test]
        fn differential_guesses_do_not_change_the_answer(
            rules in proptest::collection::vec((word(2), word(2)), 0..5),
            start in word(3),
            bad in word(3),
            guesses in proptest::collection::vec(word(3), 0..6),
        ) {
            let system = Lossy { rules, start };
            let mut search = Search::new(&system);
            search.add(bad.clone());
            for guess in guesses.into_iter().filter(|guess| !system.is_initial(guess)) {
                search.guess(guess);
            }
            let found = retracting(&mut search, &bad, &mut |_| None);
            check_answer(&system, &search, &bad, found);
        }

        /// The same for guesses that come up during the search: words without one of their letters.
        #[test]
        fn differential_guesses_during_the_search(
            rules in proptest::collection::vec((word(2), word(2)), 0..5),
            start in word(3),
            bad in word(3),
            drops in proptest::collection::vec(0usize..4, 0..12),
        ) {
            let system = Lossy { rules, start };
            let mut search = Search::new(&system);
            search.add(bad.clone());
            let mut drops = drops.into_iter();
            let found = retracting(&mut search, &bad, &mut |word: &Vec<u8>| {
                let place = drops.next().filter(|&place| place < word.len())?;
                let mut general = word.clone();
                general.remove(place);
                Some(general).filter(|general| !system.is_initial(general))
            });
            check_answer(&system, &search, &bad, found);
        }

        /// A closed set that was shrunk still proves what it proved.
        #[test]
        fn oracle_shrunk_sets_are_closed(
            rules in proptest::collection::vec((word(2), word(2)), 0..5),
            start in word(3),
            bad in word(3),
            added in 1usize..4,
            attempts in 0u32..40,
        ) {
            let system = Lossy { rules, start };
            let mut search = Search::new(&system);
            search.add(bad.clone());
            if search.run(|_| true) == Some(SearchEnd::Closed) {
                let mut closed = search.closed();
                let before = closed.len();
                let mut left = attempts;
                closed.shrink(added, |_| false, |_| { left = left.saturating_sub(1); left > 0 });
                let all = Vec::from_iter(search.minimal_elements());
                closed.keep_needed([bad.clone()]);
                let elements = closed.into_elements();
                prop_assert!(is_proof(&system, &elements, &bad));
                for left_out in 0..elements.len() {
                    let mut fewer = elements.clone();
                    fewer.remove(left_out);
                    prop_assert!(!is_proof(&system, &fewer, &bad), "no element can be left out");
                }
                prop_assert!(is_proof(&system, &all, &bad));
                prop_assert!(added > 1 || elements.len() <= before);
            }
        }
    }
}
