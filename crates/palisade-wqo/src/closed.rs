//! Closed sets, and how to make them smaller.
//!
//! *Problem.* A backward search ends with a set that is closed under predecessors and contains no initial
//! element. Such a set proves that the bad elements in it are unreachable. Most of these sets are far larger than
//! a proof has to be, because the search never claims more than it must.
//!
//! *Source.* Inductive generalisation: A. Bradley, "SAT-based model checking without unrolling" (VMCAI 2011); for
//! upward-closed sets, J. Kloos, R. Majumdar, F. Niksic and R. Piskac, "Incremental, inductive coverability" (CAV
//! 2013). Here it is applied to a set that is closed already, so no frames are needed.
//!
//! *How.* Let C be closed, and let e′ be an element that is not initial and whose predecessors are all in the
//! upward closure of C ∪ {e′}. Then C ∪ {e′} is closed as well: the predecessors of C were in C's upward closure
//! before. All elements above e′ can be left out. The elements e′ that are tried lack one requirement of an element
//! of C ([`Generalise`]).
//!
//! *Guarantee.* The result of [`Closed::shrink`] is closed, contains no initial element, and its upward closure
//! contains that of the given set. It need not be the smallest.

use crate::{Antichain, Backward, Entry};
use std::collections::BTreeSet;
use std::ops::Range;

/// A backward search whose elements can be generalised.
pub trait Generalise: Backward<Element: Clone> {
    /// Passes elements below this one to `give`, in normal form, each with one requirement less, in the order in
    /// which they should be tried. Stops when `give` returns true.
    fn generalise(&self, element: &Self::Element, give: &mut dyn FnMut(Self::Element) -> bool);

    /// How much an element requires; those that require the least are generalised first.
    fn size(&self, element: &Self::Element) -> usize {
        self.weight(element)
    }
}

/// A closed set of elements without an initial one.
pub struct Closed<'s, B: Backward> {
    system: &'s B,
    /// `None` where an element was left out.
    elements: Vec<Option<B::Element>>,
    chain: Antichain<B::Key>,
    generated: u64,
}

impl<'s, B: Backward> Closed<'s, B> {
    /// The set of these elements, which has to be closed.
    pub fn new(system: &'s B, elements: impl IntoIterator<Item = B::Element>) -> Self {
        let mut closed = Closed { system, elements: Vec::new(), chain: Antichain::new(), generated: 0 };
        elements.into_iter().for_each(|element| _ = closed.insert(element));
        closed
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// The number of elements that were generated to shrink the set.
    pub fn generated(&self) -> u64 {
        self.generated
    }

    /// The elements.
    pub fn elements(&self) -> impl Iterator<Item = &B::Element> {
        self.elements.iter().flatten()
    }

    /// The elements.
    pub fn into_elements(self) -> Vec<B::Element> {
        self.elements.into_iter().flatten().collect()
    }

    fn insert(&mut self, element: B::Element) -> u32 {
        let index = self.elements.len() as u32;
        let (keys, signature) = (self.system.keys(&element), self.system.signature(&element));
        self.chain.insert(Entry { keys: &keys, signature }, index);
        self.elements.push(Some(element));
        index
    }

    fn remove(&mut self, index: u32) {
        if let Some(element) = self.elements[index as usize].take() {
            let (keys, signature) = (self.system.keys(&element), self.system.signature(&element));
            self.chain.remove_if(Entry { keys: &keys, signature }, |stored| stored == index);
        }
    }

    /// An element of the set that is below the given one, other than the one with this index.
    fn below(&self, element: &B::Element, other_than: Option<u32>) -> Option<u32> {
        let (keys, signature) = (self.system.keys(element), self.system.signature(element));
        self.chain.find_below(Entry { keys: &keys, signature }, |stored| {
            let of_set = self.elements[stored as usize].as_ref().expect("it is removed from both");
            Some(stored) != other_than && self.system.is_below(of_set, element)
        })
    }

    /// Leaves out what the proof that the given elements are unreachable does not need: the result contains them
    /// and is closed by itself, and no single element of it can be left out.
    pub fn keep_needed(&mut self, bad: impl IntoIterator<Item = B::Element>) {
        let bad: Vec<B::Element> = bad.into_iter().collect();
        let mut marked = vec![false; self.elements.len()];
        let mut work: Vec<u32> = Vec::new();
        let mut mark = |element: &B::Element, work: &mut Vec<u32>| {
            let mut found = self.below(element, None).expect("the set is closed");
            // Descend to a minimal one.
            let element = |index: u32| self.elements[index as usize].as_ref().expect("it is in the set");
            while let Some(smaller) = self.below(element(found), Some(found)) {
                found = smaller;
            }
            if !std::mem::replace(&mut marked[found as usize], true) {
                work.push(found);
            }
        };
        bad.iter().for_each(|element| mark(element, &mut work));
        let mut next = 0;
        while let Some(&index) = work.get(next) {
            let mut found = Vec::new();
            let element = self.elements[index as usize].as_ref().expect("it is in the set");
            self.system.predecessors(element, &mut |element| found.push(element));
            found.iter().for_each(|element| mark(element, &mut work));
            next += 1;
        }
        let unneeded = (0..self.elements.len() as u32).filter(|&index| !marked[index as usize]);
        unneeded.collect::<Vec<_>>().into_iter().for_each(|index| self.remove(index));
        self.remove_redundant(&bad);
    }

    /// Leaves out elements one by one, as long as the set stays closed and contains the given elements. Then none of
    /// the others can be left out alone.
    fn remove_redundant(&mut self, bad: &[B::Element]) {
        // What has to be covered: bad elements, and predecessors of elements, each with its owner.
        let mut covers: Vec<Cover> = Vec::new();
        let mut covered_by: Vec<Vec<u32>> = vec![Vec::new(); self.elements.len()];
        let mut add = |owner: Option<u32>, element: &B::Element| {
            let all = self.all_below(element);
            all.iter().for_each(|&index| covered_by[index as usize].push(covers.len() as u32));
            covers.push(Cover { owner, number: all.len() as u32 });
        };
        bad.iter().for_each(|element| add(None, element));
        for index in 0..self.elements.len() as u32 {
            let Some(element) = &self.elements[index as usize] else { continue };
            let mut found = Vec::new();
            self.system.predecessors(element, &mut |element| found.push(element));
            found.iter().for_each(|element| add(Some(index), element));
        }
        loop {
            let mut changed = false;
            // The youngest first, which are the largest ones of a search.
            for index in (0..self.elements.len() as u32).rev() {
                let is_needed = |&cover: &u32| {
                    let Cover { owner, number } = covers[cover as usize];
                    let matters =
                        owner.is_none_or(|owner| owner != index && self.elements[owner as usize].is_some());
                    matters && number == 1
                };
                let covered = &covered_by[index as usize];
                if self.elements[index as usize].is_some() && !covered.iter().any(is_needed) {
                    covered.iter().for_each(|&cover| covers[cover as usize].number -= 1);
                    self.remove(index);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// All elements of the set that are below the given one.
    fn all_below(&self, element: &B::Element) -> Vec<u32> {
        let mut all = Vec::new();
        let (keys, signature) = (self.system.keys(element), self.system.signature(element));
        self.chain.any_below(Entry { keys: &keys, signature }, |stored| {
            let of_set = self.elements[stored as usize].as_ref().expect("it is removed from both");
            if self.system.is_below(of_set, element) {
                all.push(stored);
            }
            false
        });
        all
    }
}

/// Something that has to be covered by an element of the set.
#[derive(Clone, Copy)]
struct Cover {
    /// The element of which it is a predecessor. `None` if it is bad.
    owner: Option<u32>,
    /// The number of elements that cover it.
    number: u32,
}

impl<B: Generalise> Closed<'_, B> {
    /// Replaces elements by more general ones, except those that are general enough (`is_general`). An attempt may
    /// add up to `most` elements. `may_continue` is called
    /// before each attempt with the number of elements generated so far; if it returns false, the set stays as it is
    /// then.
    pub fn shrink(
        &mut self,
        most: usize,
        is_general: impl Fn(&B::Element) -> bool,
        mut may_continue: impl FnMut(u64) -> bool,
    ) {
        // The smallest first: what they become removes the most.
        let mut work = BTreeSet::new();
        for (index, element) in self.elements.iter().enumerate() {
            let specific = element.as_ref().filter(|element| !is_general(element));
            work.extend(specific.map(|element| (self.system.size(element), index as u32)));
        }
        while let Some((_, mut index)) = work.pop_first() {
            loop {
                let Some(element) = self.elements[index as usize].clone() else { break };
                if self.below(&element, Some(index)).is_some() {
                    self.remove(index);
                    break;
                }
                let mut stopped = false;
                let mut added = None;
                self.system.generalise(&element, &mut |candidate| {
                    stopped = !may_continue(self.generated);
                    if !stopped {
                        added = self.add(candidate, most);
                    }
                    stopped || added.is_some()
                });
                if stopped {
                    return;
                }
                let Some(added) = added else { break };
                if self.is_below(added.start, index) {
                    self.remove(index);
                }
                index = added.start;
                for other in added.skip(1) {
                    let element = self.elements[other as usize].as_ref().expect("it was added");
                    work.insert((self.system.size(element), other));
                }
            }
        }
        for index in 0..self.elements.len() as u32 {
            let element = self.elements[index as usize].as_ref();
            if element.is_some_and(|element| self.below(element, Some(index)).is_some()) {
                self.remove(index);
            }
        }
    }

    fn is_below(&self, a: u32, b: u32) -> bool {
        match (&self.elements[a as usize], &self.elements[b as usize]) {
            (Some(a), Some(b)) => self.system.is_below(a, b),
            _ => false,
        }
    }

    /// Adds an element, and predecessors until the set is closed again. If that takes more than `most` elements, or
    /// if one of them is initial, the set stays as it was.
    fn add(&mut self, candidate: B::Element, most: usize) -> Option<Range<u32>> {
        let first = self.elements.len() as u32;
        let mut missing = vec![candidate];
        let mut next = first;
        let mut possible = true;
        while possible {
            for element in missing.drain(..) {
                if self.below(&element, None).is_some() {
                    continue;
                }
                possible = possible
                    && !self.system.is_initial(&element)
                    && self.elements.len() - (first as usize) < most;
                if !possible {
                    break;
                }
                self.insert(element);
            }
            let Some(element) = self.elements.get(next as usize) else { break };
            let element = element.as_ref().expect("it was added");
            self.system.predecessors(element, &mut |element| missing.push(element));
            self.generated += missing.len() as u64;
            next += 1;
        }
        if !possible || first == self.elements.len() as u32 {
            (first..self.elements.len() as u32).for_each(|index| self.remove(index));
            self.elements.truncate(first as usize);
            return None;
        }
        Some(first..self.elements.len() as u32)
    }
}
