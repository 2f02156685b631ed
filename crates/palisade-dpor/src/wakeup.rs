//! Wakeup trees: sequences of steps that are still to be tried at a point of the search.
//!
//! *Source.* Abdulla, Aronis, Jonsson and Sagonas, "Source sets: a foundation for optimal dynamic partial
//! order reduction", JACM 64(4), 2017 (POPL 2014), sections 6 and 7.
//!
//! A tree is a list of branches in the order in which they are tried. A branch is a step of a process, with a
//! tree of the steps to try after it. An empty tree after a branch makes it a *leaf*: from there on the
//! search is free.
//!
//! *Difference from the paper.* A step may have several outcomes (the program itself chooses among values).
//! Each outcome counts as a separate step that conflicts with the others of the same process, so a branch has
//! one tree per outcome. The outcome may be unknown, because a step is to be taken earlier than it was, or
//! because the step is not part of the sequence. The sequence is then added after all outcomes.

use crate::footprint::{Footprint, Party, StepId, conflict};
use crate::history::{Step, knows};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A step of a sequence to try.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pub process: usize,
    /// The outcome; `None` if it is not known, as for a step that is taken earlier than it was.
    pub outcome: Option<usize>,
    pub footprint: &'a Arc<Footprint>,
    /// The index of this step among those of its process, from 1.
    pub number: u32,
    /// By process, how many of its steps happen before this one, including this one.
    pub clock: &'a [u32],
    /// The same, if it is kept in this form already.
    pub shared_clock: Option<&'a Arc<[u32]>>,
}

impl Item<'_> {
    /// Whether it happens before another step.
    fn before(&self, other: &Item<'_>) -> bool {
        knows(other.clock, StepId { process: self.process as u32, number: self.number })
    }
}

/// A branch of a tree. Trees can be as deep as executions are long, so nothing here is recursive, not even
/// cloning and dropping.
#[derive(Debug)]
pub struct Branch {
    pub process: usize,
    pub footprint: Arc<Footprint>,
    /// What happens before its step, if it writes; empty until that is known.
    pub clock: Arc<[u32]>,
    /// What to try after it, by outcome.
    next: SmallVec<[(usize, Vec<Branch>); 1]>,
    /// What to try after outcomes that are not listed; `None` if these are not to be tried.
    others: Option<Vec<Branch>>,
    /// Whether the subject knows that it will be tried.
    pub is_foreseen: bool,
}

impl Branch {
    /// A branch after which the search is free.
    pub fn leaf(process: usize, footprint: Arc<Footprint>) -> Branch {
        let (clock, next, others) = (Arc::default(), SmallVec::new(), Some(Vec::new()));
        Branch { process, footprint, clock, next, others, is_foreseen: false }
    }

    /// For a conditional step: whether it fails, if that is known. It is known of steps that were planned; those that
    /// write have a clock.
    pub fn is_planned_to_fail(&self) -> Option<bool> {
        let writes = self.footprint.may_write();
        (!writes || !self.clock.is_empty()).then_some(!writes)
    }

    /// Whether an outcome is to be tried.
    pub fn wants(&self, outcome: usize) -> bool {
        self.others.is_some() || self.next.iter().any(|(of, _)| *of == outcome)
    }

    /// Takes out what to try after an outcome, if this many outcomes are still to be tried.
    pub fn take_tree(&mut self, outcome: usize, left: usize) -> Vec<Branch> {
        match self.next.iter().position(|(of, _)| *of == outcome) {
            Some(listed) => self.next.swap_remove(listed).1,
            None if left == 1 => self.others.take().unwrap_or_default(),
            None => self.others.as_deref().map_or_else(Vec::new, clone_tree),
        }
    }

    /// The steps that are tried first, with the given outcome, if any, for this branch's own step.
    pub fn first_path(&self, mut outcome: Option<usize>) -> Vec<(usize, usize, &Footprint)> {
        let mut way = Vec::new();
        let mut branch = Some(self);
        while let Some(at) = branch {
            let first = || at.next.iter().map(|(of, _)| *of).min();
            let wanted =
                outcome.take().or_else(|| if at.others.is_some() { Some(0) } else { first() }).unwrap_or(0);
            way.push((at.process, wanted, &*at.footprint));
            let listed = at.next.iter().find(|(of, _)| *of == wanted).map(|(_, tree)| tree);
            branch = listed.or(at.others.as_ref()).and_then(|tree| tree.first());
        }
        way
    }

    /// All trees after it.
    fn trees(&self) -> impl Iterator<Item = &Vec<Branch>> {
        self.next.iter().map(|(_, tree)| tree).chain(&self.others)
    }

    /// The tree after one outcome, which is listed from now on.
    fn listed(&mut self, outcome: usize) -> &mut Vec<Branch> {
        let known = self.next.iter().position(|(of, _)| *of == outcome);
        let index = known.unwrap_or_else(|| {
            let tree = self.others.as_deref().map_or_else(Vec::new, clone_tree);
            self.next.push((outcome, tree));
            self.next.len() - 1
        });
        &mut self.next[index].1
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        if self.trees().all(Vec::is_empty) {
            return;
        }
        let mut left: Vec<Branch> = Vec::new();
        let empty = |branch: &mut Branch, left: &mut Vec<Branch>| {
            let listed = std::mem::take(&mut branch.next).into_iter().flat_map(|(_, tree)| tree);
            left.extend(listed.chain(branch.others.take().into_iter().flatten()));
        };
        empty(self, &mut left);
        while let Some(mut branch) = left.pop() {
            empty(&mut branch, &mut left);
        }
    }
}

/// A copy of a tree. Branches are listed before those after them, and reassembled from the end of the list.
fn clone_tree(tree: &[Branch]) -> Vec<Branch> {
    let mut list: Vec<&Branch> = Vec::new();
    let mut left: Vec<&Branch> = tree.iter().rev().collect();
    while let Some(branch) = left.pop() {
        list.push(branch);
        let next: Vec<&Branch> = branch.trees().flatten().collect();
        left.extend(next.into_iter().rev());
    }
    let mut made: Vec<Branch> = Vec::new();
    for branch in list.into_iter().rev() {
        let mut take =
            |tree: &Vec<Branch>| (0..tree.len()).filter_map(|_| made.pop()).collect::<Vec<Branch>>();
        let next = branch.next.iter().map(|(outcome, tree)| (*outcome, take(tree))).collect();
        let others = branch.others.as_ref().map(&mut take);
        let (footprint, clock) = (branch.footprint.clone(), branch.clock.clone());
        made.push(Branch { process: branch.process, footprint, clock, next, others, is_foreseen: false });
    }
    made.reverse();
    made
}

/// A process whose next step was tried, or is covered by what was tried.
#[derive(Clone, Debug)]
pub struct Asleep {
    pub process: usize,
    pub footprint: Arc<Footprint>,
    /// What happens before its step.
    pub clock: Arc<[u32]>,
    /// The outcomes that were tried.
    pub outcomes: SmallVec<[usize; 2]>,
    /// Whether these are all outcomes.
    pub all: bool,
}

impl Asleep {
    /// Whether a step wakes it up.
    pub fn is_woken_by(&self, step: &Step) -> bool {
        self.process == step.process
            || conflict(
                Party {
                    process: self.process,
                    footprint: &self.footprint,
                    knows: |id| knows(&self.clock, id),
                },
                step.party(),
            )
    }

    /// Whether everything that begins with the sequence was seen already, because it could also begin with
    /// what was tried of this process.
    pub fn covers(&self, sequence: &[Item<'_>]) -> bool {
        match standing(self.process, &self.footprint, &self.clock, sequence) {
            Standing::Related => false,
            Standing::Independent => self.all,
            Standing::Initial(at) => {
                self.all || sequence[at].outcome.is_some_and(|outcome| self.outcomes.contains(&outcome))
            }
        }
    }
}

/// The relation of a process to a sequence that some execution begins with.
enum Standing {
    /// Its first step, at this index, can be taken first: nothing in the sequence happens before it.
    Initial(usize),
    /// It takes no step in the sequence, and its next step conflicts with none of them.
    Independent,
    /// Neither.
    Related,
}

fn standing(process: usize, footprint: &Footprint, clock: &[u32], sequence: &[Item<'_>]) -> Standing {
    if let Some(at) = sequence.iter().position(|item| item.process == process) {
        let is_first = !sequence[..at].iter().any(|earlier| earlier.before(&sequence[at]));
        return if is_first { Standing::Initial(at) } else { Standing::Related };
    }
    let party = Party { process, footprint, knows: |step| knows(clock, step) };
    let related = |item: &Item<'_>| {
        let knows = |step| knows(item.clock, step);
        conflict(party, Party { process: item.process, footprint: item.footprint, knows })
    };
    if sequence.iter().any(related) { Standing::Related } else { Standing::Independent }
}

/// Adds a sequence to a tree, unless something in the tree leads to the same executions.
pub fn insert(branches: &mut Vec<Branch>, sequence: Vec<Item<'_>>) {
    let mut left = vec![(branches, sequence)];
    while let Some((branches, mut sequence)) = left.pop() {
        if sequence.is_empty() {
            continue;
        }
        let place = |branch: &Branch| standing(branch.process, &branch.footprint, &branch.clock, &sequence);
        let found =
            branches.iter().map(place).enumerate().find(|(_, place)| !matches!(place, Standing::Related));
        let Some((index, place)) = found else {
            branches.extend(chain(sequence));
            continue;
        };
        let branch = &mut branches[index];
        let outcome = match place {
            Standing::Initial(at) => sequence.remove(at).outcome,
            _ => None,
        };
        match outcome {
            Some(outcome) => {
                let planned = branch.wants(outcome);
                let tree = branch.listed(outcome);
                deeper(tree, planned, sequence, &mut left);
            }
            None => {
                let planned = branch.others.is_some();
                for (_, tree) in &mut branch.next {
                    deeper(tree, true, sequence.clone(), &mut left);
                }
                deeper(branch.others.get_or_insert_default(), planned, sequence, &mut left);
            }
        }
    }
}

/// Continues after a branch. If nothing is planned there yet, the sequence is; a leaf already leads to
/// everything.
fn deeper<'t, 's>(
    tree: &'t mut Vec<Branch>,
    planned: bool,
    sequence: Vec<Item<'s>>,
    left: &mut Vec<(&'t mut Vec<Branch>, Vec<Item<'s>>)>,
) {
    if !planned {
        tree.extend(chain(sequence));
    } else if !tree.is_empty() {
        left.push((tree, sequence));
    }
}

/// The tree that consists of one path.
fn chain(sequence: Vec<Item<'_>>) -> Option<Branch> {
    let mut tree: Option<Branch> = None;
    for item in sequence.into_iter().rev() {
        let tail: Vec<Branch> = tree.take().into_iter().collect();
        let (next, others) = match item.outcome {
            Some(outcome) => (smallvec![(outcome, tail)], None),
            None => (SmallVec::new(), Some(tail)),
        };
        // Only writes are asked what they know; see `footprint.rs`.
        let kept = || item.shared_clock.map_or_else(|| Arc::from(item.clock), Arc::clone);
        let clock = if item.footprint.may_write() { kept() } else { Arc::default() };
        let footprint = item.footprint.clone();
        tree = Some(Branch { process: item.process, footprint, clock, next, others, is_foreseen: false });
    }
    tree
}
