//! A point of the search: what was tried there, and what is still to be tried.

use crate::footprint::Footprint;
use crate::plan::Sleeper;
use crate::wakeup::{Asleep, Branch};
use smallvec::SmallVec;
use std::sync::Arc;

/// A point of the search.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Processes whose next step was tried here or is covered by what was tried before.
    pub sleep: Vec<Asleep>,
    /// What to try; the first branch is being tried.
    pub branches: Vec<Branch>,
    /// The number of finished branches.
    pub done: usize,
    /// The outcomes of the first branch that are still to be tried, the current one last.
    pub outcomes: SmallVec<[usize; 2]>,
    /// The outcomes tried so far, including the current one, and how many there are.
    pub tried: SmallVec<[usize; 2]>,
    outcome_count: usize,
}

impl Node {
    /// Makes this an empty point, and keeps its memory.
    pub fn clear(&mut self) {
        self.sleep.clear();
        self.branches.clear();
        self.done = 0;
        self.outcomes.clear();
        self.tried.clear();
        self.outcome_count = 0;
    }

    /// Whether the next step of a process leads only to what was seen.
    pub fn is_asleep(&self, process: usize) -> bool {
        self.sleep.iter().any(|asleep| asleep.all && asleep.process == process)
    }

    /// The processes that are asleep when the branch with this index begins.
    pub fn sleepers(&self, index: usize) -> Vec<Sleeper> {
        let sleeper =
            |process: usize, footprint: &Arc<Footprint>| Sleeper { process, footprint: footprint.clone() };
        let before = self.sleep.iter().filter(|asleep| asleep.all);
        let mut sleepers: Vec<Sleeper> =
            before.map(|asleep| sleeper(asleep.process, &asleep.footprint)).collect();
        for branch in &self.branches[..index] {
            if sleepers.iter().all(|known| known.process != branch.process) {
                sleepers.push(sleeper(branch.process, &branch.footprint));
            }
        }
        sleepers
    }

    /// Starts the first branch, whose step has this many outcomes. Returns false if none of them is to be
    /// tried.
    pub fn begin(&mut self, outcomes: usize) -> bool {
        let branch = &self.branches[0];
        let asleep = self.sleep.iter().find(|asleep| asleep.process == branch.process);
        let tried =
            |outcome: &usize| asleep.is_some_and(|asleep| asleep.all || asleep.outcomes.contains(outcome));
        let wanted = |outcome: &usize| branch.wants(*outcome) && !tried(outcome);
        self.outcomes = (0..outcomes).rev().filter(wanted).collect();
        self.tried.clear();
        self.outcome_count = outcomes;
        !self.outcomes.is_empty()
    }

    /// Finishes the first branch: what was tried of it is asleep from now on.
    pub fn finish(&mut self) {
        let branch = self.branches.remove(0);
        self.done += 1;
        let (process, footprint, clock) = (branch.process, branch.footprint.clone(), branch.clock.clone());
        let tried = std::mem::take(&mut self.tried);
        let count = self.outcome_count;
        match self.sleep.iter_mut().find(|asleep| asleep.process == process) {
            Some(asleep) => {
                asleep.outcomes.extend(tried);
                asleep.all |= asleep.outcomes.len() == count;
            }
            None => {
                let all = tried.len() == count;
                self.sleep.push(Asleep { process, footprint, clock, outcomes: tried, all });
            }
        }
    }
}
