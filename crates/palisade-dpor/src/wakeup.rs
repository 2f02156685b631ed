//! Wakeup trees: sequences of steps that have still to be tried at a point of the search.
//!
//! *Source.* Abdulla, Aronis, Jonsson and Sagonas, "Source sets: a foundation for optimal dynamic partial order reduction", JACM 64(4), 2017 (POPL 2014), sections 6 and 7.
//!
//! A tree is a list of branches in the order in which they are tried. A branch is a step of a process; behind it come the steps to be tried next. An empty tree behind a
//! branch is a *leaf*: from there on the search is free.
//!
//! *Difference from the paper.* A step may have several outcomes (the program chooses among values by itself). Each outcome counts as a step of its own that conflicts with the
//! others of the same process, so a branch has one tree per outcome. Where the outcome is not known, since a step is to be taken earlier than it was, or because the
//! step is not part of the sequence, the sequence is put behind all of them.

use crate::footprint::Footprint;

/// A step of a sequence that is to be tried.
#[derive(Clone, Debug)]
pub struct Item {
    pub process: usize,
    /// Which outcome; `None` if that is not known, as for a step that is taken earlier than it was.
    pub outcome: Option<usize>,
    pub footprint: Footprint,
    /// How many steps of its process there are up to this one.
    pub number: u32,
    /// How many steps of each process happen before it, itself included.
    pub clock: Vec<u32>,
}

impl Item {
    /// Whether it happens before another.
    fn before(&self, other: &Item) -> bool {
        other.clock.get(self.process).copied().unwrap_or(0) >= self.number
    }
}

/// A branch of a tree.
#[derive(Clone, Debug)]
pub struct Branch {
    pub process: usize,
    pub footprint: Footprint,
    /// What to try behind it, by outcome.
    pub behind: Vec<(usize, Vec<Branch>)>,
    /// What to try behind outcomes that are not listed; `None` if these are not to be tried.
    pub others: Option<Vec<Branch>>,
}

impl Branch {
    /// A branch from which the search is free.
    pub fn leaf(process: usize, footprint: Footprint) -> Branch {
        Branch { process, footprint, behind: Vec::new(), others: Some(Vec::new()) }
    }

    /// What to try behind an outcome, if that is to be tried.
    pub fn tree(&self, outcome: usize) -> Option<&Vec<Branch>> {
        self.behind.iter().find(|(of, _)| *of == outcome).map(|(_, tree)| tree).or(self.others.as_ref())
    }

    /// Puts a sequence behind one outcome.
    fn insert_behind(&mut self, outcome: usize, sequence: Vec<Item>) {
        match self.behind.iter_mut().find(|(of, _)| *of == outcome) {
            Some((_, tree)) => insert_deeper(tree, sequence),
            None => {
                let tree = planned(self.others.clone(), sequence);
                self.behind.push((outcome, tree));
            }
        }
    }

    /// Puts a sequence behind all outcomes.
    fn insert_behind_all(&mut self, sequence: &[Item]) {
        for (_, tree) in &mut self.behind {
            insert_deeper(tree, sequence.to_vec());
        }
        self.others = Some(planned(self.others.take(), sequence.to_vec()));
    }
}

/// The tree with a sequence in it, where there may be no tree yet.
fn planned(tree: Option<Vec<Branch>>, sequence: Vec<Item>) -> Vec<Branch> {
    match tree {
        Some(mut tree) => {
            insert_deeper(&mut tree, sequence);
            tree
        }
        None => chain(sequence).into_iter().collect(),
    }
}

/// Puts a sequence into a tree behind a branch, where a leaf already leads to everything.
fn insert_deeper(tree: &mut Vec<Branch>, sequence: Vec<Item>) {
    if !tree.is_empty() {
        insert(tree, sequence);
    }
}

/// A process whose next step was tried, or is covered by what was tried.
#[derive(Clone, Debug)]
pub struct Asleep {
    pub process: usize,
    pub footprint: Footprint,
    /// The outcomes that were tried.
    pub outcomes: Vec<usize>,
    /// Whether these are all there are.
    pub all: bool,
}

impl Asleep {
    /// Whether everything that begins with the sequence was seen, since it could as well begin with what was tried of this process.
    pub fn covers(&self, sequence: &[Item]) -> bool {
        match standing(self.process, &self.footprint, sequence) {
            Standing::Related => false,
            Standing::Independent => self.all,
            Standing::Initial(at) => {
                self.all || sequence[at].outcome.is_some_and(|outcome| self.outcomes.contains(&outcome))
            }
        }
    }
}

/// Where a process stands towards a sequence that some execution begins with.
enum Standing {
    /// Its first step, at this place, can be taken first: nothing in the sequence happens before it.
    Initial(usize),
    /// It takes no step in the sequence, and its next step conflicts with none of it.
    Independent,
    /// Neither.
    Related,
}

fn standing(process: usize, footprint: &Footprint, sequence: &[Item]) -> Standing {
    match sequence.iter().position(|item| item.process == process) {
        Some(at) if sequence[..at].iter().any(|earlier| earlier.before(&sequence[at])) => Standing::Related,
        Some(at) => Standing::Initial(at),
        None if sequence.iter().any(|item| item.footprint.conflicts(footprint)) => Standing::Related,
        None => Standing::Independent,
    }
}

/// Puts a sequence into a tree, unless something in the tree leads to the same executions.
pub fn insert(branches: &mut Vec<Branch>, mut sequence: Vec<Item>) {
    if sequence.is_empty() {
        return;
    }
    for branch in branches.iter_mut() {
        match standing(branch.process, &branch.footprint, &sequence) {
            Standing::Related => {}
            Standing::Initial(at) => {
                match sequence.remove(at).outcome {
                    Some(outcome) => branch.insert_behind(outcome, sequence),
                    None => branch.insert_behind_all(&sequence),
                }
                return;
            }
            Standing::Independent => {
                branch.insert_behind_all(&sequence);
                return;
            }
        }
    }
    branches.extend(chain(sequence));
}

/// The tree with one way through it.
fn chain(sequence: Vec<Item>) -> Option<Branch> {
    let mut tree: Option<Branch> = None;
    for item in sequence.into_iter().rev() {
        let behind: Vec<Branch> = tree.take().into_iter().collect();
        let branch =
            Branch { process: item.process, footprint: item.footprint, behind: Vec::new(), others: None };
        tree = Some(match item.outcome {
            Some(outcome) => Branch { behind: vec![(outcome, behind)], ..branch },
            None => Branch { others: Some(behind), ..branch },
        });
    }
    tree
}
