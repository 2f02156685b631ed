//! What it would take to share a backward search out over several processes.
//!
//! *Problem.* A search can be shared out if every element has a process that keeps it, its *owner*, and if the owner can
//! decide alone whether the element is above another one. How often can it?
//!
//! *Method.* The search is run in one process, in rounds, as several processes would run it: all elements of the smallest
//! weight are expanded, and then all predecessors are looked up. For every predecessor it is counted what would have been
//! sent, and which owners would have been asked. Two ways to choose owners are compared:
//! - by the keys of an element (its control states). An element below it may have fewer keys. So the owner has to ask the
//!   owners of all its parts, unless it knows already which of them have elements there.
//! - by the keys and the required bits of the signature (its control states and known cells). An element below it may also
//!   know less.
//!
//! *Guarantee.* The search is a search as usual ([`Search::run`]): the answer is the same. The order is not, and so the
//! number of elements generated may differ. What is counted is exact for the owners that the hash gives.

use crate::search::NodeId;
use crate::{Antichain, Backward, Entry, Search, SearchEnd};
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// Elements with more keys have all owners asked; their parts are not listed.
const MAX_KEYS: usize = 12;

/// How owners are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owners {
    /// By the keys.
    ByKeys,
    /// By the keys, and by what the signature requires.
    ByKeysAndCells,
}

/// What a number of processes would have had to do.
#[derive(Clone, Debug)]
pub struct Shares {
    /// How many processes there are.
    pub processes: usize,
    /// How owners are chosen.
    pub owners: Owners,
    /// Predecessors that another process has to get.
    pub sent: u64,
    /// Predecessors that their owner knows to be above an element of its own.
    pub decided: u64,
    /// The others: how many of the other processes have elements that could be below, over all of these predecessors.
    pub asked: u64,
    /// The same if a process does not know what the others have, only the keys that they own.
    pub asked_blindly: u64,
    /// Predecessors that are above an element of another process and of no element of their owner's.
    pub decided_elsewhere: u64,
    /// The most elements that one process expanded, added up over all rounds.
    pub longest: u64,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    /// For each number of processes and each way to choose owners.
    pub shares: Vec<Shares>,
    /// Rounds in which elements were expanded.
    pub rounds: u64,
    /// Elements that were expanded.
    pub expanded: u64,
    /// The time for finding predecessors, and for looking them up in one process.
    pub expanding: Duration,
    /// The time for looking them up, without what is counted here.
    pub looking_up: Duration,
    /// The hashes of all elements kept, by their numbers: of the keys, and of the keys and cells.
    hashes: Vec<[u64; 2]>,
}

impl Sharing {
    /// Counts for these numbers of processes.
    pub fn new(processes: &[usize]) -> Sharing {
        let share = |&processes: &usize| {
            [Owners::ByKeys, Owners::ByKeysAndCells].map(|owners| Shares {
                processes,
                owners,
                sent: 0,
                decided: 0,
                asked: 0,
                asked_blindly: 0,
                decided_elsewhere: 0,
                longest: 0,
            })
        };
        Sharing { shares: processes.iter().flat_map(share).collect(), ..Sharing::default() }
    }
}

impl Shares {
    fn owner(&self, hashes: [u64; 2]) -> usize {
        let hash = match self.owners {
            Owners::ByKeys => hashes[0],
            Owners::ByKeysAndCells => hashes[1],
        };
        ((u128::from(hash) * self.processes as u128) >> 64) as usize
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    // The upper bits depend on all others.
    hasher.finish().wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The hashes by which the owner of an element is chosen.
fn hashes<K: Hash>(entry: Entry<'_, K>) -> [u64; 2] {
    let keys = hash(entry.keys);
    [keys, hash((keys, entry.signature.required))]
}

/// The hashes of all parts of some sorted keys.
fn parts<K: Copy + Hash>(keys: &[K]) -> Vec<u64> {
    let all = 0..1_usize << keys.len();
    let part = |chosen: usize| {
        let keys: Vec<K> = (0..keys.len()).filter(|at| chosen >> at & 1 == 1).map(|at| keys[at]).collect();
        hash(keys.as_slice())
    };
    all.map(part).collect()
}

impl<B: Backward> Search<'_, B> {
    /// Runs in rounds until the search ends, and counts what several processes would have to do. `may_continue` is called
    /// before each round.
    pub fn run_in_rounds(
        &mut self,
        sharing: &mut Sharing,
        mut may_continue: impl FnMut(&Self) -> bool,
    ) -> Option<SearchEnd> {
        self.note_kept(sharing);
        loop {
            if let Some(initial) = self.first_initial() {
                return Some(SearchEnd::Initial(initial));
            }
            if !may_continue(self) {
                return None;
            }
            let start = Instant::now();
            let round = self.next_round();
            if round.is_empty() {
                return Some(SearchEnd::Closed);
            }
            let mut found: Vec<(NodeId, B::Element)> = Vec::new();
            for (node, element) in &round {
                self.system().predecessors(element, &mut |element| found.push((*node, element)));
            }
            sharing.expanding += start.elapsed();
            sharing.rounds += 1;
            sharing.expanded += round.len() as u64;
            for shares in &mut sharing.shares {
                let mut each = vec![0_u64; shares.processes];
                round.iter().for_each(|(node, _)| each[shares.owner(sharing.hashes[node.index()])] += 1);
                shares.longest += each.into_iter().max().unwrap_or(0);
            }
            for (successor, element) in found {
                self.count_lookup(successor, &element, sharing);
                let start = Instant::now();
                self.meet(element, successor);
                sharing.looking_up += start.elapsed();
                self.note_kept(sharing);
            }
        }
    }

    /// Remembers the owners of elements that were added.
    fn note_kept(&self, sharing: &mut Sharing) {
        for number in sharing.hashes.len()..self.kept_count() {
            let element = self.system().kept(self.store(), number as u32);
            let (keys, signature) = (self.system().keys(&element), self.system().signature(&element));
            sharing.hashes.push(hashes(Entry { keys: &keys, signature }));
        }
    }

    /// Counts the owners that would have to be asked about a predecessor.
    fn count_lookup(&self, successor: NodeId, element: &B::Element, sharing: &mut Sharing) {
        let (system, store) = (self.system(), self.store());
        let (keys, signature) = (system.keys(element), system.signature(element));
        let entry = Entry { keys: &keys, signature };
        let own = hashes(entry);
        let mut candidates: Vec<(u32, bool)> = Vec::new();
        let antichain: &Antichain<B::Key> = self.antichain();
        antichain.any_below(entry, |other| {
            candidates.push((other, system.kept_is_below(store, other, element)));
            false
        });
        let parts = if keys.len() <= MAX_KEYS { parts(&keys) } else { Vec::new() };
        let Sharing { shares, hashes, .. } = sharing;
        for shares in shares {
            let owner = shares.owner(own);
            shares.sent += u64::from(shares.owner(hashes[successor.index()]) != owner);
            let is_here = |other: u32| shares.owner(hashes[other as usize]) == owner;
            if candidates.iter().any(|&(other, is_below)| is_below && is_here(other)) {
                shares.decided += 1;
                continue;
            }
            let others: FxHashSet<usize> = candidates
                .iter()
                .map(|&(other, _)| shares.owner(hashes[other as usize]))
                .filter(|&other| other != owner)
                .collect();
            let is_elsewhere = candidates.iter().any(|&(_, is_below)| is_below);
            let blindly = match shares.owners {
                Owners::ByKeys if keys.len() <= MAX_KEYS => {
                    let all: FxHashSet<usize> =
                        parts.iter().map(|&part| shares.owner([part, part])).collect();
                    all.into_iter().filter(|&other| other != owner).count()
                }
                // What others know less than this element can be anything.
                _ => shares.processes - 1,
            };
            shares.asked += others.len() as u64;
            shares.asked_blindly += blindly as u64;
            shares.decided_elsewhere += u64::from(is_elsewhere);
        }
    }
}
