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

/// A branch of a tree. Trees can be as deep as executions are long, so nothing here calls itself: not even cloning and dropping.
#[derive(Debug)]
pub struct Branch {
    pub process: usize,
    pub footprint: Footprint,
    /// What to try behind it, by outcome.
    behind: Vec<(usize, Vec<Branch>)>,
    /// What to try behind outcomes that are not listed; `None` if these are not to be tried.
    others: Option<Vec<Branch>>,
}

impl Branch {
    /// A branch from which the search is free.
    pub fn leaf(process: usize, footprint: Footprint) -> Branch {
        Branch { process, footprint, behind: Vec::new(), others: Some(Vec::new()) }
    }

    /// Whether an outcome is to be tried.
    pub fn wants(&self, outcome: usize) -> bool {
        self.others.is_some() || self.behind.iter().any(|(of, _)| *of == outcome)
    }

    /// Takes out what to try behind an outcome, of so many that are still to be tried.
    pub fn take_tree(&mut self, outcome: usize, left: usize) -> Vec<Branch> {
        match self.behind.iter().position(|(of, _)| *of == outcome) {
            Some(listed) => self.behind.swap_remove(listed).1,
            None if left == 1 => self.others.take().unwrap_or_default(),
            None => self.others.as_deref().map_or_else(Vec::new, clone_tree),
        }
    }

    /// The steps that are tried first, this branch's with the given outcome, if any.
    pub fn first_way(&self, mut outcome: Option<usize>) -> Vec<(usize, usize, &Footprint)> {
        let mut way = Vec::new();
        let mut branch = Some(self);
        while let Some(at) = branch {
            let first = || at.behind.iter().map(|(of, _)| *of).min();
            let wanted =
                outcome.take().or_else(|| if at.others.is_some() { Some(0) } else { first() }).unwrap_or(0);
            way.push((at.process, wanted, &at.footprint));
            let listed = at.behind.iter().find(|(of, _)| *of == wanted).map(|(_, tree)| tree);
            branch = listed.or(at.others.as_ref()).and_then(|tree| tree.first());
        }
        way
    }

    /// All trees behind it.
    fn trees(&self) -> impl Iterator<Item = &Vec<Branch>> {
        self.behind.iter().map(|(_, tree)| tree).chain(&self.others)
    }

    /// The tree behind one outcome, listed from now on.
    fn listed(&mut self, outcome: usize) -> &mut Vec<Branch> {
        let known = self.behind.iter().position(|(of, _)| *of == outcome);
        let index = known.unwrap_or_else(|| {
            let tree = self.others.as_deref().map_or_else(Vec::new, clone_tree);
            self.behind.push((outcome, tree));
            self.behind.len() - 1
        });
        &mut self.behind[index].1
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        let mut left: Vec<Branch> = Vec::new();
        let empty = |branch: &mut Branch, left: &mut Vec<Branch>| {
            let listed = std::mem::take(&mut branch.behind).into_iter().flat_map(|(_, tree)| tree);
            left.extend(listed.chain(branch.others.take().into_iter().flatten()));
        };
        empty(self, &mut left);
        while let Some(mut branch) = left.pop() {
            empty(&mut branch, &mut left);
        }
    }
}

/// A copy of a tree. The branches are listed each before those behind it, and put together again from the end of the list.
fn clone_tree(tree: &[Branch]) -> Vec<Branch> {
    let mut list: Vec<&Branch> = Vec::new();
    let mut left: Vec<&Branch> = tree.iter().rev().collect();
    while let Some(branch) = left.pop() {
        list.push(branch);
        let behind: Vec<&Branch> = branch.trees().flatten().collect();
        left.extend(behind.into_iter().rev());
    }
    let mut made: Vec<Branch> = Vec::new();
    for branch in list.into_iter().rev() {
        let mut take =
            |tree: &Vec<Branch>| (0..tree.len()).filter_map(|_| made.pop()).collect::<Vec<Branch>>();
        let behind = branch.behind.iter().map(|(outcome, tree)| (*outcome, take(tree))).collect();
        let others = branch.others.as_ref().map(&mut take);
        made.push(Branch { process: branch.process, footprint: branch.footprint.clone(), behind, others });
    }
    made.reverse();
    made
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
pub fn insert(branches: &mut Vec<Branch>, sequence: Vec<Item>) {
    let mut left = vec![(branches, sequence)];
    while let Some((branches, mut sequence)) = left.pop() {
        if sequence.is_empty() {
            continue;
        }
        let place = |branch: &Branch| standing(branch.process, &branch.footprint, &sequence);
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
                for (_, tree) in &mut branch.behind {
                    deeper(tree, true, sequence.clone(), &mut left);
                }
                deeper(branch.others.get_or_insert_default(), planned, sequence, &mut left);
            }
        }
    }
}

/// Goes on behind a branch: where nothing is planned yet, the sequence is; a leaf already leads to everything.
fn deeper<'t>(
    tree: &'t mut Vec<Branch>,
    planned: bool,
    sequence: Vec<Item>,
    left: &mut Vec<(&'t mut Vec<Branch>, Vec<Item>)>,
) {
    if !planned {
        tree.extend(chain(sequence));
    } else if !tree.is_empty() {
        left.push((tree, sequence));
    }
}

/// The tree with one way through it.
fn chain(sequence: Vec<Item>) -> Option<Branch> {
    let mut tree: Option<Branch> = None;
    for item in sequence.into_iter().rev() {
        let tail: Vec<Branch> = tree.take().into_iter().collect();
        let (behind, others) = match item.outcome {
            Some(outcome) => (vec![(outcome, tail)], None),
            None => (Vec::new(), Some(tail)),
        };
        tree = Some(Branch { process: item.process, footprint: item.footprint, behind, others });
    }
    tree
}
