//! The search: smallest elements first, and elements with many processes last.
//!
//! An element that mentions more than `most` processes is put off until no smaller one is left. By then another
//! element is often below it. Otherwise it *forgets* one process, which gives an element that represents more, and
//! the search goes on with that guess.
//!
//! If the search then meets an initial element, the steps from there to the last guess are exact: the guess, and
//! everything on the way to it, contains reachable configurations. These elements are remembered. A guess below one of
//! them would be wrong for the same reason, so another process is forgotten, or none if no such guess is left.
//!
//! A wrong guess is taken back with everything that followed from it. Each element remembers which expansions gave
//! elements that it covered, and which elements it replaced. When it is taken back, these expansions are repeated
//! and these elements are restored. The guess is made again when its successor is expanded again.
//!
//! *Guarantee.* How the set came about does not matter in the end: [`Search::is_closed`] checks that its elements
//! are below all bad elements and below all predecessors of each other, and that none is initial. If the
//! search ends with an initial element and has made no guess on the way, nothing was forgotten.

use super::element::Element;
use super::setup::Setup;
use palisade_wqo::{Antichain, Entry, Signature};
use std::collections::BTreeMap;

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// At an element that contains an initial configuration with this many processes. No guess was made on the
    /// way from a bad element.
    Initial(u32),
    /// With a closed set.
    Closed,
}

struct Node {
    element: Element,
    subsumed: bool,
    /// The element that it is a predecessor of, or that it is a guess for.
    successor: Option<u32>,
    is_guess: bool,
    /// Elements whose expansion gave one that this one covers.
    covers_of: Vec<u32>,
    /// Elements that this one replaced.
    replaced: Vec<u32>,
}

/// An element, the one without the process that entered last, and the successor.
type PutOff = (Element, Option<Element>, Option<u32>);

pub(crate) struct Search<'s> {
    setup: &'s Setup,
    /// Elements that contain reachable configurations.
    reachable: Vec<Element>,
    /// The bad elements, and those that they are covered by.
    bad: Vec<Element>,
    nodes: Vec<Node>,
    antichain: Antichain<u64>,
    /// Elements to expand, by weight.
    queue: BTreeMap<usize, Vec<u32>>,
    /// Elements with too many processes, by weight, each with its successor.
    put_off: BTreeMap<usize, Vec<PutOff>>,
    initial: Option<u32>,
    pub generated: u64,
    pub tests: u64,
    pub bytes: u64,
}

impl<'s> Search<'s> {
    pub fn new(setup: &'s Setup) -> Search<'s> {
        Search {
            setup,
            reachable: Vec::new(),
            bad: Vec::new(),
            nodes: Vec::new(),
            antichain: Antichain::new(),
            queue: BTreeMap::new(),
            put_off: BTreeMap::new(),
            initial: None,
            generated: 0,
            tests: 0,
            bytes: 0,
        }
    }

    pub fn antichain_len(&self) -> usize {
        self.antichain.len()
    }

    /// Adds a bad element.
    pub fn add(&mut self, element: Element) {
        self.bad.push(element.clone());
        self.meet(element, None, false);
    }

    /// Adds a predecessor, or puts it off.
    fn see(&mut self, element: Element, forgetful: Option<Element>, successor: u32) {
        self.generated += 1;
        if element.processes.len() <= self.setup.most {
            self.meet(element, Some(successor), false);
        } else if !self.is_covered_for(&element, Some(successor)) {
            self.bytes += self.setup.bytes(&element);
            let weight = self.setup.weight(&element);
            self.put_off.entry(weight).or_default().push((element, forgetful, Some(successor)));
        }
    }

    /// Adds an element with one process forgotten, or the element itself if no guess is left.
    fn guess(&mut self, element: Element, forgetful: Option<Element>, successor: Option<u32>) {
        let others = (0..element.processes.len()).filter_map(|process| self.setup.without(&element, process));
        let guess = forgetful.into_iter().chain(others).find(|guess| !self.is_refuted(guess));
        match guess {
            Some(guess) => self.meet(guess, successor, true),
            None => self.meet(element, successor, false),
        }
    }

    /// Runs until the search ends, or until `may_continue` returns false. It is called before each expansion.
    pub fn run(&mut self, mut may_continue: impl FnMut(&Search<'_>) -> bool) -> Option<End> {
        loop {
            if let Some(initial) = self.initial.take() {
                match self.last_guess(initial) {
                    Some(guess) => self.take_back(guess),
                    None => {
                        let element = &self.nodes[initial as usize].element;
                        let needed = self.setup.initial_with(element).expect("the element is initial");
                        return Some(End::Initial(needed));
                    }
                }
            }
            if !may_continue(self) {
                return None;
            }
            match self.next() {
                Some(index) => {
                    let mut found = Vec::new();
                    self.setup.predecessors(&self.nodes[index].element, &mut |element, forgetful| {
                        found.push((element, forgetful));
                    });
                    for (element, forgetful) in found {
                        self.see(element, forgetful, index as u32);
                    }
                }
                None => {
                    let Some((element, forgetful, successor)) = pop(&mut self.put_off) else {
                        return Some(End::Closed);
                    };
                    if !self.is_covered_for(&element, successor) {
                        self.guess(element, forgetful, successor);
                    }
                }
            }
        }
    }

    /// The smallest elements.
    pub fn elements(&self) -> Vec<Element> {
        self.antichain.iter().map(|index| self.nodes[index as usize].element.clone()).collect()
    }

    /// Whether the elements are closed under predecessors, below all bad ones, and not initial.
    pub fn is_closed(&mut self) -> bool {
        let elements = self.elements();
        let mut wanted = self.bad.clone();
        for element in &elements {
            if self.setup.initial_with(element).is_some() {
                return false;
            }
            self.setup.predecessors(element, &mut |element, _| wanted.push(element));
        }
        wanted.iter().all(|element| self.cover(element, None).is_some())
    }

    fn is_refuted(&self, guess: &Element) -> bool {
        let setup = self.setup;
        setup.initial_with(guess).is_some()
            || self.reachable.iter().any(|reachable| setup.below(guess, reachable))
    }

    /// The last guess on the way to an initial element. The exact steps between them are remembered.
    fn last_guess(&mut self, initial: u32) -> Option<u32> {
        let mut at = Some(initial);
        let mut exact = Vec::new();
        while let Some(index) = at {
            let node = &self.nodes[index as usize];
            exact.push(node.element.clone());
            if node.is_guess {
                self.reachable.append(&mut exact);
                return Some(index);
            }
            at = node.successor;
        }
        None
    }

    /// Takes back a guess, and everything that followed from it.
    fn take_back(&mut self, guess: u32) {
        let first = guess as usize;
        let mut gone = vec![false; self.nodes.len()];
        gone[first] = true;
        // Successors come before their predecessors.
        for index in first + 1..self.nodes.len() {
            gone[index] = self.nodes[index].successor.is_some_and(|successor| gone[successor as usize]);
        }
        let mut again: Vec<u32> = self.nodes[first].successor.into_iter().collect();
        for index in (first..self.nodes.len()).filter(|&index| gone[index]) {
            if !std::mem::replace(&mut self.nodes[index].subsumed, true) {
                let keys = self.setup.keys(&self.nodes[index].element);
                self.antichain.remove_if(entry(&keys), |other| other as usize == index);
            }
            again.append(&mut self.nodes[index].covers_of);
            for replaced in std::mem::take(&mut self.nodes[index].replaced) {
                if !gone[replaced as usize] && self.nodes[replaced as usize].subsumed {
                    self.nodes[replaced as usize].subsumed = false;
                    let keys = self.setup.keys(&self.nodes[replaced as usize].element);
                    self.antichain.insert(entry(&keys), replaced);
                    again.push(replaced);
                }
            }
        }
        for all in self.put_off.values_mut() {
            all.retain(|(_, _, successor)| successor.is_none_or(|successor| !gone[successor as usize]));
        }
        self.put_off.retain(|_, all| !all.is_empty());
        again.sort_unstable();
        again.dedup();
        for index in again.into_iter().filter(|&index| !gone[index as usize]) {
            let weight = self.setup.weight(&self.nodes[index as usize].element);
            self.queue.entry(weight).or_default().push(index);
        }
        for element in self.bad.clone() {
            self.meet(element, None, false);
        }
    }

    fn next(&mut self) -> Option<usize> {
        while let Some(index) = pop(&mut self.queue) {
            let index = index as usize;
            if self.nodes[index].subsumed {
                continue;
            }
            let element = self.nodes[index].element.clone();
            let Some(cover) = self.cover(&element, Some(index as u32)) else { return Some(index) };
            self.nodes[cover as usize].replaced.push(index as u32);
            self.nodes[index].subsumed = true;
            let keys = self.setup.keys(&element);
            self.antichain.remove_if(entry(&keys), |other| other as usize == index);
        }
        None
    }

    /// An element below this one.
    fn cover(&mut self, element: &Element, except: Option<u32>) -> Option<u32> {
        let keys = self.setup.keys(element);
        let (setup, nodes, tests) = (self.setup, &self.nodes, &mut self.tests);
        self.antichain.find_below(entry(&keys), |other| {
            *tests += 1;
            Some(other) != except && setup.below(&nodes[other as usize].element, element)
        })
    }

    /// Whether an element is below this one, which the expansion of `successor` gave.
    fn is_covered_for(&mut self, element: &Element, successor: Option<u32>) -> bool {
        let Some(cover) = self.cover(element, None) else { return false };
        if let Some(successor) = successor {
            self.nodes[cover as usize].covers_of.push(successor);
        }
        true
    }

    fn meet(&mut self, element: Element, successor: Option<u32>, is_guess: bool) {
        if self.is_covered_for(&element, successor) {
            return;
        }
        let keys = self.setup.keys(&element);
        let (setup, nodes) = (self.setup, &mut self.nodes);
        let mut replaced = Vec::new();
        self.antichain.remove_if(entry(&keys), |stored| {
            let above = setup.below(&element, &nodes[stored as usize].element);
            if above {
                nodes[stored as usize].subsumed = true;
                replaced.push(stored);
            }
            above
        });
        let index = u32::try_from(nodes.len()).expect("fewer than 2^32 elements fit into memory");
        if self.initial.is_none() && setup.initial_with(&element).is_some() {
            self.initial = Some(index);
        }
        self.bytes += setup.bytes(&element) + 64;
        self.antichain.insert(entry(&keys), index);
        self.queue.entry(setup.weight(&element)).or_default().push(index);
        nodes.push(Node { element, subsumed: false, successor, is_guess, covers_of: Vec::new(), replaced });
    }
}

fn entry(keys: &[u64]) -> Entry<'_, u64> {
    Entry { keys, signature: Signature::default() }
}

/// The last item of the smallest weight.
fn pop<T>(queue: &mut BTreeMap<usize, Vec<T>>) -> Option<T> {
    let mut first = queue.first_entry()?;
    let item = first.get_mut().pop();
    if first.get().is_empty() {
        first.remove();
    }
    item
}
