//! The states that one process keeps.
//!
//! *Which process keeps a state* depends on the state's hash alone ([`owner`]), so there is no list of what is where.
//!
//! *Order does not matter.* States arrive from several processes in any order. What is kept of them must not depend on
//! the order, or answers would depend on timing:
//! - A state that is reached several times in a round has the parent with the smallest mark, and the weight that came
//!   with it. If marks are equal, the smaller weight counts.
//! - Its rank is the greatest that it was reached with.
//! - Whether it was known before the level began does not depend on what happens during the level.
//!
//! *Marks.* A process does not know the number of a state that another one keeps. So the parent of a state is recorded
//! as 32 bits of the parent's hash. [`crate::path`] finds the parent by looking for these bits in the level before, and
//! tries the candidates if there are several.
//!
//! *Cost.* As for a search in one process: the words of a state, 4 bytes for its mark, 6 to 12 bytes of index.

use palisade_search::{Inserted, Shard, StateId, hash};

/// The process that keeps the state with this hash. These are bits that neither the index nor [`batch_of`] uses much.
#[inline]
pub(crate) fn owner(hash: u64, processes: usize) -> usize {
    (((hash >> 16) as u32 as u64 * processes as u64) >> 32) as usize
}

/// The part of a level that the state with this hash is expanded in. The number of parts is a power of two.
#[inline]
pub(crate) fn batch_of(hash: u64, batches: u64) -> u64 {
    (hash >> 48) & (batches - 1)
}

/// The mark of a state that others have as their parent.
#[inline]
pub(crate) fn mark(hash: u64) -> u32 {
    ((hash >> 32) as u32).min(StateId::NONE.number() - 1)
}

/// What travels with a state, in one word: its parent, and how it was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(u64);

/// Whether a successor was found by a partial expansion.
const PART: u64 = 1 << 15;

impl Head {
    /// The upper 48 bits of the parent's hash are kept. They say which process asks whether the state is new.
    pub fn new(parent: u64, part: bool, rank: u16, weight: u16) -> Head {
        assert!(rank < 1 << 6 && weight < 1 << 9, "ranks and weights are small");
        let part = if part { PART } else { 0 };
        Head(parent >> 16 << 16 | part | u64::from(rank) << 9 | u64::from(weight))
    }

    pub fn of_word(word: u64) -> Head {
        Head(word)
    }

    pub fn word(self) -> u64 {
        self.0
    }

    /// The parent's hash, as far as it is known.
    pub fn parent(self) -> u64 {
        self.0 >> 16 << 16
    }

    pub fn is_part(self) -> bool {
        self.0 & PART != 0
    }

    fn rank(self) -> u8 {
        (self.0 >> 9 & 0x3f) as u8
    }

    fn weight(self) -> u16 {
        (self.0 & 0x1ff) as u16
    }
}

/// The states of one process.
pub(crate) struct Share {
    shard: Shard,
    /// Words per state.
    pub words: usize,
    /// Where the next level begins.
    level_end: usize,
    /// Where the states of this round begin.
    round_start: usize,
    /// The ranks of the states that wait for the next level.
    ranks: Vec<u8>,
    /// The weights of the states that are new in this round.
    weights: Vec<u16>,
    /// Whether there are no state numbers left.
    pub is_full: bool,
}

impl Share {
    pub fn new(words: usize) -> Share {
        Share {
            shard: Shard::whole(words),
            words,
            level_end: 0,
            round_start: 0,
            ranks: Vec::new(),
            weights: Vec::new(),
            is_full: false,
        }
    }

    pub fn len(&self) -> usize {
        self.shard.len()
    }

    pub fn state(&self, position: usize) -> &[u64] {
        self.shard.state(position)
    }

    pub fn mark(&self, position: usize) -> u32 {
        self.shard.parent(position).number()
    }

    pub fn position(&self, state: &[u64]) -> Option<usize> {
        self.shard.find(hash(state), state)
    }

    pub fn bytes(&self) -> u64 {
        self.shard.bytes() + (self.ranks.capacity() + 2 * self.weights.capacity()) as u64
    }

    /// Adds an initial state.
    pub fn begin(&mut self, state: &[u64]) {
        match self.shard.insert(hash(state), state, StateId::NONE) {
            Inserted::New(_) => {
                self.ranks.push(0);
                self.weights.push(0);
            }
            Inserted::Known(_) => {}
            Inserted::Full => self.is_full = true,
        }
    }

    /// The states after this call belong to the next level. Returns the ranks of those before.
    pub fn next_level(&mut self) -> Vec<u8> {
        self.level_end = self.shard.len();
        std::mem::take(&mut self.ranks)
    }

    /// How many states wait for the next level.
    pub fn waiting(&self) -> usize {
        self.shard.len() - self.level_end
    }

    /// A new round begins.
    pub fn next_round(&mut self) {
        self.round_start = self.shard.len();
        self.weights.clear();
    }

    /// The positions of the states that are new in this round.
    pub fn new_in_round(&self) -> std::ops::Range<usize> {
        self.round_start..self.shard.len()
    }

    /// The weight of all states that are new in this round.
    pub fn weight(&self) -> u64 {
        self.weights.iter().copied().map(u64::from).sum()
    }

    /// Inserts a successor. Returns whether it still waits to be expanded.
    #[inline]
    pub fn insert(&mut self, head: Head, hash: u64, state: &[u64]) -> bool {
        let mark = mark(head.parent());
        match self.shard.insert(hash, state, StateId::from_number(mark)) {
            Inserted::Known(position) => {
                let Some(waiting) = position.checked_sub(self.level_end) else { return false };
                self.ranks[waiting] = self.ranks[waiting].max(head.rank());
                if let Some(new) = position.checked_sub(self.round_start) {
                    let before = (self.shard.parent(position).number(), self.weights[new]);
                    if (mark, head.weight()) < before {
                        self.shard.set_parent(position, StateId::from_number(mark));
                        self.weights[new] = head.weight();
                    }
                }
                true
            }
            Inserted::New(_) => {
                self.ranks.push(head.rank());
                self.weights.push(head.weight());
                true
            }
            Inserted::Full => {
                self.is_full = true;
                true
            }
        }
    }

    /// Inserts states that another process sent. Passes on the parents of those that do not wait to be expanded, if
    /// they were expanded in part.
    pub fn insert_all(&mut self, records: &[u64], mut closed: impl FnMut(u64)) {
        for record in records.chunks_exact(1 + self.words) {
            let (head, state) = (Head::of_word(record[0]), &record[1..]);
            if !self.insert(head, hash(state), state) && head.is_part() {
                closed(head.parent());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_does_not_depend_on_the_order() {
        // Parents, ranks and weights of one state.
        let reached = [(9 << 32, 3, 5), (7 << 32, 0, 8), (7 << 32, 1, 2), (8 << 32, 9, 1)];
        let state = [1, 2];
        let kept = |order: &[usize]| {
            let mut share = Share::new(2);
            share.next_round();
            for &index in order {
                let (parent, rank, weight) = reached[index];
                assert!(share.insert(Head::new(parent, true, rank, weight), hash(&state), &state));
            }
            (share.mark(0), share.ranks.clone(), share.weight(), share.len())
        };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
            assert_eq!(kept(&order), (7, vec![9], 2, 1), "{order:?}");
        }
    }

    #[test]
    fn states_of_earlier_levels_are_closed() {
        let mut share = Share::new(1);
        share.begin(&[5]);
        share.next_level();
        share.next_round();
        let part = Head::new(3 << 40, true, 1, 0).word();
        let whole = Head::new(4 << 40, false, 0, 0).word();
        let mut closed = Vec::new();
        share.insert_all(&[part, 5, part, 6, whole, 5, part, 6], |parent| closed.push(parent));
        assert_eq!((closed, share.waiting(), share.new_in_round()), (vec![3 << 40], 1, 1..2));
    }

    #[test]
    fn every_process_gets_its_share() {
        for processes in 1..=5 {
            let mut counts = vec![0; processes];
            (0..10_000_u64).for_each(|word| counts[owner(hash(&[word, 0]), processes)] += 1);
            let fair = 10_000 / processes;
            assert!(counts.iter().all(|&count| count > fair * 9 / 10), "{counts:?}");
        }
    }
}
