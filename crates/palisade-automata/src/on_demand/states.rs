//! Thread states by number.

use super::LocalId;
use crate::local::Local;
use hashbrown::HashTable;
use palisade_base::Id;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// Thread states, with a note for each.
pub(super) struct States<N> {
    /// By number, without the reserved ones.
    locals: Vec<Local>,
    /// By number.
    notes: Vec<N>,
    /// Positions in `locals`.
    index: HashTable<u32>,
    /// Thread states that have no number of their own.
    aliases: FxHashMap<Local, LocalId>,
    reserved: usize,
    bytes: u64,
}

/// A thread state that was not seen before, by its hash.
pub(super) struct Unmet(u64);

impl<N: Copy> States<N> {
    /// An empty table with these notes for the numbers that denote no thread state.
    pub fn new(reserved: &[N]) -> States<N> {
        States {
            locals: Vec::new(),
            notes: reserved.to_vec(),
            index: HashTable::new(),
            aliases: FxHashMap::default(),
            reserved: reserved.len(),
            bytes: 0,
        }
    }

    /// How many numbers there are, including the reserved ones.
    pub fn numbers(&self) -> usize {
        self.notes.len()
    }

    /// How many numbers denote no thread state.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.index() - self.reserved]
    }

    /// All thread states, in the order of their numbers.
    pub fn locals(&self) -> &[Local] {
        &self.locals
    }

    #[inline]
    pub fn note(&self, id: LocalId) -> &N {
        &self.notes[id.index()]
    }

    pub fn note_mut(&mut self, id: LocalId) -> &mut N {
        &mut self.notes[id.index()]
    }

    /// The number of a thread state.
    pub fn find(&self, local: &Local) -> Result<LocalId, Unmet> {
        let hash = FxBuildHasher.hash_one(local);
        if let Some(&position) = self.index.find(hash, |&at| self.locals[at as usize] == *local) {
            return Ok(LocalId::from_index(self.reserved + position as usize));
        }
        self.aliases.get(local).copied().ok_or(Unmet(hash))
    }

    /// Gives the next number to a thread state.
    pub fn add(&mut self, Unmet(hash): Unmet, local: Local, note: N) -> LocalId {
        let id = LocalId::from_index(self.notes.len());
        let position = u32::from_index(self.locals.len());
        self.bytes += size_in_memory(&local) + size_of::<N>() as u64 + 8;
        self.locals.push(local);
        self.notes.push(note);
        let locals = &self.locals;
        self.index.insert_unique(hash, position, |&at| FxBuildHasher.hash_one(&locals[at as usize]));
        id
    }

    /// Gives the number of another thread state to this one.
    pub fn alias(&mut self, local: Local, id: LocalId) {
        self.bytes += size_in_memory(&local) + 8;
        self.aliases.insert(local, id);
    }

    /// Checks that every thread state is found under its own number, and every alias under the number of
    /// another one.
    pub fn check_invariants(&self) {
        assert_eq!(self.notes.len(), self.reserved + self.locals.len(), "every number has a note");
        assert_eq!(self.index.len(), self.locals.len(), "every thread state is in the index");
        for (position, local) in self.locals.iter().enumerate() {
            let id = LocalId::from_index(self.reserved + position);
            assert_eq!(self.find(local).ok(), Some(id), "thread states differ");
            assert!(!self.aliases.contains_key(local), "a thread state with a number is not an alias");
        }
        for alias in self.aliases.values() {
            assert!(alias.index() < self.numbers(), "an alias is of a number");
        }
    }
}

fn size_in_memory(local: &Local) -> u64 {
    let frames = local.thread.frames.iter();
    let frames: usize = frames.map(|frame| size_of_val(frame) + 8 * frame.registers.len() + 16).sum();
    (size_of::<Local>() + frames + 24 * local.thread.buffer.len() + 8 * local.passed.len() + 32) as u64
}
