//! The set of visited states: full states, each with the state it was first reached from.
//!
//! States are spread over a fixed number of shards by hash, so that each shard is filled by one host thread without locks. The number of shards does
//! not depend on the number of jobs: numbers of states, and with them parents and witnesses, are the same for any number of jobs.
//!
//! *Cost.* Per state: its words, 4 bytes for the parent, and 6 to 12 bytes of index.

use hashbrown::HashTable;

/// How many shards there are.
pub(crate) const SHARDS: usize = 64;

/// A state by number: its position in its shard, times [`SHARDS`], plus its shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct StateId(pub u32);

impl StateId {
    /// The parent of initial states.
    pub const NONE: StateId = StateId(u32::MAX);

    pub fn new(shard: usize, position: usize) -> StateId {
        StateId((position * SHARDS + shard) as u32)
    }

    fn shard(self) -> usize {
        self.0 as usize % SHARDS
    }

    fn position(self) -> usize {
        self.0 as usize / SHARDS
    }
}

/// Positions a shard can have.
const MOST_POSITIONS: usize = (u32::MAX as usize) / SHARDS - 1;

/// A hash of a packed state. The shard comes from the middle bits: the index uses the upper and the lower ones.
pub(crate) fn hash(state: &[u64]) -> u64 {
    let mut hash = 0x9E37_79B9_7F4A_7C15_u64;
    for &word in state {
        let product = u128::from(hash ^ word) * u128::from(0xD6E8_FEB8_6659_FD93_u64);
        hash = (product as u64) ^ ((product >> 64) as u64);
    }
    hash
}

/// The shard of a hash.
pub(crate) fn shard_of(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

/// One part of the visited set.
pub(crate) struct Shard {
    words: usize,
    states: Vec<u64>,
    parents: Vec<StateId>,
    index: HashTable<u32>,
}

/// What an insertion found.
pub(crate) enum Inserted {
    New(usize),
    Known(usize),
    /// More states than numbers.
    Full,
}

impl Shard {
    fn new(words: usize) -> Shard {
        Shard { words, states: Vec::new(), parents: Vec::new(), index: HashTable::new() }
    }

    pub fn len(&self) -> usize {
        self.parents.len()
    }

    fn state(&self, position: usize) -> &[u64] {
        &self.states[position * self.words..(position + 1) * self.words]
    }

    /// Inserts a state unless it is there.
    pub fn insert(&mut self, hash: u64, state: &[u64], parent: StateId) -> Inserted {
        let words = self.words;
        let states = &self.states;
        let at = |position: u32| &states[position as usize * words..(position as usize + 1) * words];
        if let Some(&position) = self.index.find(hash, |&position| same(at(position), state)) {
            return Inserted::Known(position as usize);
        }
        let position = self.parents.len();
        if position >= MOST_POSITIONS {
            return Inserted::Full;
        }
        self.index.insert_unique(hash, position as u32, |&position| self::hash(at(position)));
        grow(&mut self.states, words);
        self.states.extend_from_slice(state);
        grow(&mut self.parents, 1);
        self.parents.push(parent);
        Inserted::New(position)
    }

    fn bytes(&self) -> u64 {
        (self.states.capacity() * 8 + self.parents.capacity() * 4) as u64
            + self.index.allocation_size() as u64
    }
}

/// Equality of a few words; slices' own compares long ones well, but calls out for it.
fn same(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Makes room for `more` items, by a quarter rather than by doubling: there are many shards, and memory is what runs out.
fn grow<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        items.reserve_exact(more.max(items.len() / 4).max(16));
    }
}

/// The visited set.
pub(crate) struct Visited {
    pub shards: Vec<Shard>,
}

impl Visited {
    pub fn new(words: usize) -> Visited {
        Visited { shards: (0..SHARDS).map(|_| Shard::new(words)).collect() }
    }

    pub fn state(&self, id: StateId) -> &[u64] {
        self.shards[id.shard()].state(id.position())
    }

    pub fn parent(&self, id: StateId) -> StateId {
        self.shards[id.shard()].parents[id.position()]
    }

    /// How many states there are.
    pub fn len(&self) -> u64 {
        self.shards.iter().map(|shard| shard.len() as u64).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(Shard::bytes).sum()
    }

    /// The number of states in each shard: states with larger positions come later.
    pub fn lens(&self) -> [u32; SHARDS] {
        std::array::from_fn(|shard| self.shards[shard].len() as u32)
    }

    /// The states from the initial one to this one.
    pub fn path_to(&self, id: StateId) -> Vec<StateId> {
        let before = |&id: &StateId| Some(self.parent(id)).filter(|&parent| parent != StateId::NONE);
        let mut path: Vec<StateId> = std::iter::successors(Some(id), before).collect();
        path.reverse();
        path
    }
}
