//! The set of visited states: full states, each with the state it was first reached from.
//!
//! States are spread over a fixed number of shards by hash, so that each shard is filled by one host thread
//! without locks. The number of shards does not depend on the number of jobs. State numbers, and with them
//! parents and witnesses, are therefore the same for any number of jobs.
//!
//! *Cost.* Per state: its words, 4 bytes for the parent, and 6 to 12 bytes of index.

use hashbrown::HashTable;

/// How many shards there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shards {
    /// One shard. States are numbered in the order in which they are found, and one host thread inserts them.
    One,
    /// Many shards. All host threads insert states.
    Many,
}

/// A state by number: its position in its shard, times the number of shards, plus its shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateId(u32);

impl StateId {
    /// The parent of initial states.
    pub const NONE: StateId = StateId(u32::MAX);

    /// The state with this number. A search on several machines keeps other marks here; see `palisade-cluster`.
    pub fn from_number(number: u32) -> StateId {
        StateId(number)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// How states are numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    /// The number of shards is a power of two.
    log_shards: u32,
}

impl Numbering {
    pub fn id(self, shard: usize, position: usize) -> StateId {
        StateId((position << self.log_shards | shard) as u32)
    }

    fn shard(self, id: StateId) -> usize {
        id.0 as usize & (self.shards() - 1)
    }

    fn position(self, id: StateId) -> usize {
        id.0 as usize >> self.log_shards
    }

    fn shards(self) -> usize {
        1 << self.log_shards
    }

    /// The number of positions a shard can have. All state numbers are below [`StateId::NONE`].
    fn max_positions(self) -> usize {
        (u32::MAX as usize >> self.log_shards) - 1
    }

    /// The shard of a hash. It is taken from the middle bits, because the index uses the upper and the lower
    /// ones.
    #[inline]
    pub fn shard_of(self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.shards() - 1)
    }
}

/// A hash of a packed state.
pub fn hash(state: &[u64]) -> u64 {
    let mut hash = 0x9E37_79B9_7F4A_7C15_u64;
    for &word in state {
        let product = u128::from(hash ^ word) * u128::from(0xD6E8_FEB8_6659_FD93_u64);
        hash = (product as u64) ^ ((product >> 64) as u64);
    }
    hash
}

/// One part of the visited set.
pub struct Shard {
    words: usize,
    states: Vec<u64>,
    parents: Vec<StateId>,
    index: HashTable<u32>,
    max_positions: usize,
}

/// The result of an insertion.
pub enum Inserted {
    /// The state is new, and this is its position.
    New(usize),
    /// The state was there before, at this position.
    Known(usize),
    /// There are no state numbers left.
    Full,
}

impl Shard {
    /// A part for states of this many words each, that holds all states.
    pub fn whole(words: usize) -> Shard {
        Shard::new(words, Numbering { log_shards: 0 }.max_positions())
    }

    fn new(words: usize, max_positions: usize) -> Shard {
        Shard { words, states: Vec::new(), parents: Vec::new(), index: HashTable::new(), max_positions }
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there are no states.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The state that a state was first reached from.
    pub fn parent(&self, position: usize) -> StateId {
        self.parents[position]
    }

    /// Says that a state was first reached from another one.
    pub fn set_parent(&mut self, position: usize, parent: StateId) {
        self.parents[position] = parent;
    }

    /// The state at a position.
    #[inline]
    pub fn state(&self, position: usize) -> &[u64] {
        &self.states[position * self.words..(position + 1) * self.words]
    }

    /// The position of a state.
    pub fn find(&self, hash: u64, state: &[u64]) -> Option<usize> {
        self.index.find(hash, |&at| same(self.state(at as usize), state)).map(|&position| position as usize)
    }

    /// Inserts a state unless it is already present.
    pub fn insert(&mut self, hash: u64, state: &[u64], parent: StateId) -> Inserted {
        let words = self.words;
        let states = &self.states;
        let at = |position: u32| &states[position as usize * words..(position as usize + 1) * words];
        if let Some(&position) = self.index.find(hash, |&position| same(at(position), state)) {
            return Inserted::Known(position as usize);
        }
        let position = self.parents.len();
        if position >= self.max_positions {
            return Inserted::Full;
        }
        self.index.insert_unique(hash, position as u32, |&position| self::hash(at(position)));
        grow(&mut self.states, words);
        self.states.extend_from_slice(state);
        grow(&mut self.parents, 1);
        self.parents.push(parent);
        Inserted::New(position)
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> u64 {
        (self.states.capacity() * 8 + self.parents.capacity() * 4) as u64
            + self.index.allocation_size() as u64
    }
}

/// Compares a few words. The comparison of slices is fast for long ones, but costs a function call.
fn same(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Makes room for `more` items. The capacity grows by a quarter instead of doubling, because there are many
/// shards and memory is the scarce resource.
fn grow<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        items.reserve_exact(more.max(items.len() / 4).max(16));
    }
}

/// The visited set.
pub struct Visited {
    words: usize,
    numbering: Numbering,
    pub(crate) shards: Vec<Shard>,
}

impl Visited {
    /// An empty set for states of this many words each.
    pub fn new(words: usize, shards: Shards) -> Visited {
        let log_shards = match shards {
            Shards::One => 0,
            Shards::Many => 6,
        };
        let numbering = Numbering { log_shards };
        let shard = |_| Shard::new(words, numbering.max_positions());
        Visited { words, numbering, shards: (0..numbering.shards()).map(shard).collect() }
    }

    /// Words per state.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    pub(crate) fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// A state by number.
    #[inline]
    pub fn state(&self, id: StateId) -> &[u64] {
        self.shards[self.numbering.shard(id)].state(self.numbering.position(id))
    }

    /// The index of a state in the order of [`Visited::iter`], if it was visited.
    pub fn index_of(&self, state: &[u64]) -> Option<usize> {
        let hash = hash(state);
        let shard = self.numbering.shard_of(hash);
        let position = self.shards[shard].find(hash, state)?;
        Some(self.shards[..shard].iter().map(Shard::len).sum::<usize>() + position)
    }

    /// The state with this index in the order of [`Visited::iter`].
    ///
    /// # Panics
    /// If there are not that many states.
    pub fn nth(&self, mut index: usize) -> StateId {
        for (shard, states) in self.shards.iter().enumerate() {
            match index.checked_sub(states.len()) {
                None => return self.numbering.id(shard, index),
                Some(rest) => index = rest,
            }
        }
        panic!("there are not that many states")
    }

    fn parent(&self, id: StateId) -> Option<StateId> {
        let parent = self.shards[self.numbering.shard(id)].parents[self.numbering.position(id)];
        (parent != StateId::NONE).then_some(parent)
    }

    /// Whether a state is an initial one.
    pub fn is_initial(&self, id: StateId) -> bool {
        self.parent(id).is_none()
    }

    /// How many states there are.
    pub fn len(&self) -> u64 {
        self.shards.iter().map(|shard| shard.len() as u64).sum()
    }

    /// Whether there are no states.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(Shard::bytes).sum()
    }

    /// The number of states in each shard. States with larger positions were added later.
    pub(crate) fn lens(&self) -> Vec<u32> {
        self.shards.iter().map(|shard| shard.len() as u32).collect()
    }

    /// All states, shard by shard.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.shards.iter().flat_map(|shard| (0..shard.len()).map(|position| shard.state(position)))
    }

    /// The states from the initial one to this one.
    pub fn path_to(&self, id: StateId) -> Vec<StateId> {
        let mut path: Vec<StateId> = std::iter::successors(Some(id), |&id| self.parent(id)).collect();
        path.reverse();
        path
    }

    /// Checks that every state is present once, in its shard, and that every path leads back to an initial
    /// state.
    ///
    /// # Panics
    /// If one of these does not hold.
    pub fn check_invariants(&self) {
        for (number, shard) in self.shards.iter().enumerate() {
            assert_eq!(shard.index.len(), shard.len(), "every state is in the index once");
            for position in 0..shard.len() {
                let state = shard.state(position);
                let hash = hash(state);
                assert_eq!(self.numbering.shard_of(hash), number, "a state is in the shard of its hash");
                let found = shard.index.find(hash, |&other| same(shard.state(other as usize), state));
                assert_eq!(found, Some(&(position as u32)), "states differ");
                let id = self.numbering.id(number, position);
                if let Some(parent) = self.parent(id) {
                    let known =
                        self.numbering.position(parent) < self.shards[self.numbering.shard(parent)].len();
                    let earlier = self.numbering.shard(parent) != number || parent < id;
                    assert!(known && earlier, "a parent was visited before its child");
                }
            }
        }
    }
}
