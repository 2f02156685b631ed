//! Shadow memory: what is known about every accessed byte, in pieces.
//!
//! Memory is divided into words of eight bytes. A word that is always accessed in the same way is one piece.
//! When two accesses overlap but are not the same, the piece is cut where they differ, and both parts keep
//! what was known. So every event covers whole pieces, and what is known about a piece is true of each of its
//! bytes.
//!
//! *Invariants*: (1) the pieces of a word do not overlap and are sorted; (2) a piece lies within one word.

use crate::clocks::{Bank, VECTORS, copy};
use crate::event::{Bytes, Instruction};
pub use crate::words::NONE;
use crate::words::{WORD, Words};

/// How many moments fit into a cache line on most hosts.
const CACHE_LINE: usize = 16;

/// What is known about some neighbouring bytes, apart from clocks.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The next piece of the same word.
    next: u32,
    /// First byte in the word, and one past the last.
    from: u8,
    to: u8,
    /// Whether there were loads since the last store, so that the clock of all accesses is in use.
    pub loaded: bool,
    /// The only process that has loaded it since the last store; [`NONE`] if there were several.
    pub reader: u32,
    /// Whether some access since the last store may have made it reach memory under PSO. If so,
    /// [`View::drained_by`] holds the processes and their moments.
    pub drained: bool,
    /// The slot of the process that stored last; [`NONE`] if there was no store, or if that store is no
    /// longer of interest.
    pub writer: u32,
    /// Its moment at the store.
    pub stamp: u32,
    /// Its moment at the last store-store fence before the store.
    pub barrier: u32,
    /// The instruction that stored.
    pub instruction: Instruction,
    /// All bytes that this store covered.
    pub stored: Bytes,
}

impl Piece {
    /// Whether the last store also covers bytes outside this piece.
    pub fn is_part(&self) -> bool {
        self.stored.size != u32::from(self.to - self.from)
    }

    /// Whether this process stored it last, and no other process has loaded it since.
    #[inline(always)]
    pub fn is_only_of(&self, process: u32) -> bool {
        self.writer == process && (!self.loaded || self.reader == process)
    }
}

/// A store.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// The process.
    pub by: u32,
    /// Its moment.
    pub now: u32,
    /// Its moment at the last store-store fence before the store.
    pub barrier: u32,
    /// The instruction.
    pub instruction: Instruction,
    /// All bytes of the store.
    pub bytes: Bytes,
}

/// Shadow memory.
#[derive(Clone, Debug)]
pub struct Shadow {
    /// The first piece of each word.
    words: Words,
    pieces: Vec<Piece>,
    /// Per piece: what the last store knew, what all accesses since then know together, and which processes
    /// made the store drain at which moments.
    clocks: Bank<PIECE_VECTORS>,
    lanes: usize,
    unused: Vec<u32>,
    changes: u64,
}

/// A piece with its clocks.
#[derive(Debug)]
pub struct View<'a> {
    /// What is known apart from clocks.
    pub piece: &'a mut Piece,
    /// What the last store knew.
    pub store: &'a mut [u32],
    /// What all accesses since the last store know together. In use only if the piece was
    /// [loaded](Piece::loaded).
    pub accesses: &'a mut [u32],
    /// For every process, its moment at its first access that made the last store drain under PSO; 0 if it
    /// made no such access.
    pub drained_by: &'a mut [u32],
}

impl View<'_> {
    /// Records a store by a process with this knowledge.
    #[inline(always)]
    pub fn store(&mut self, clock: &[u32], stored: Stored) {
        copy(self.store, clock);
        if self.piece.drained {
            self.drained_by.fill(0);
        }
        let piece = &mut *self.piece;
        (piece.loaded, piece.drained) = (false, false);
        (piece.writer, piece.stamp, piece.barrier) = (stored.by, stored.now, stored.barrier);
        (piece.instruction, piece.stored) = (stored.instruction, stored.bytes);
    }

    /// Records that an access makes the last store drain under PSO.
    pub fn drain(&mut self, by: usize, now: u32) {
        self.piece.drained = true;
        if self.drained_by[by] == 0 {
            self.drained_by[by] = now;
        }
    }

    /// Whether the last store must have drained under PSO because of an access among those in `happened`.
    pub fn is_drained_for(&self, happened: &[u32]) -> bool {
        self.piece.drained
            && self.drained_by.iter().zip(happened).any(|(&when, &known)| when != 0 && when <= known)
    }
}

/// Vectors of a piece: last store, all accesses, drained by.
const PIECE_VECTORS: usize = 2 * VECTORS + 1;

impl Shadow {
    /// Shadow memory in which nothing is known about any byte.
    pub fn new(lanes: usize) -> Shadow {
        Shadow {
            words: Words::default(),
            pieces: Vec::new(),
            clocks: Bank::new(lanes),
            lanes,
            unused: Vec::new(),
            changes: 0,
        }
    }

    /// The piece that is exactly these bytes; [`NONE`] if it does not exist.
    #[inline(always)]
    pub fn find(&mut self, bytes: Bytes) -> u32 {
        let (from, to) = (bytes.address % WORD, bytes.address % WORD + u64::from(bytes.size));
        if to > WORD {
            return NONE;
        }
        let mut at = self.words.get(bytes.address / WORD);
        while at != NONE {
            let piece = &self.pieces[at as usize];
            if (u64::from(piece.from), u64::from(piece.to)) == (from, to) {
                return at;
            }
            at = piece.next;
        }
        NONE
    }

    /// The same, and prefetches what is known about the piece.
    #[inline(always)]
    pub fn look_up(&mut self, bytes: Bytes, lanes: usize) -> u32 {
        let piece = self.find(bytes);
        if piece != NONE {
            // Reads one number of each cache line. The sum itself is not needed.
            let clocks = self.clocks.of_lanes(piece as usize, lanes);
            std::hint::black_box((0..clocks.len()).step_by(CACHE_LINE).fold(0, |sum, at| sum ^ clocks[at]));
        }
        piece
    }

    /// How many times pieces were cut, merged or forgotten. While this number stays the same, a piece that was
    /// found remains valid.
    #[inline(always)]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Appends the pieces that make up the bytes.
    pub fn cover(&mut self, bytes: Bytes, found: &mut Vec<u32>) {
        for word in bytes.address / WORD..=(bytes.end() - 1) / WORD {
            let base = word * WORD;
            let from = bytes.address.max(base) - base;
            let to = (bytes.end() - 1).min(base + (WORD - 1)) - base + 1;
            self.cover_word(word, from as u8, to as u8, found);
        }
    }

    fn cover_word(&mut self, word: u64, from: u8, to: u8, found: &mut Vec<u32>) {
        let (mut at, mut last, mut piece) = (from, NONE, self.words.get(word));
        while at < to {
            if piece == NONE || self.pieces[piece as usize].from >= to {
                // Nothing is known about the rest.
                let new = self.insert(word, last, at, to);
                found.push(new);
                return;
            }
            let here = self.pieces[piece as usize];
            if here.to <= at {
                (last, piece) = (piece, here.next);
            } else if here.from > at {
                last = self.insert(word, last, at, here.from);
                found.push(last);
                at = here.from;
            } else if here.from < at {
                piece = self.cut(piece, at);
            } else {
                if here.to > to {
                    self.cut(piece, to);
                }
                found.push(piece);
                (at, last, piece) = (self.pieces[piece as usize].to, piece, self.pieces[piece as usize].next);
            }
        }
    }

    /// Adds a new piece of a word after another one, or at the front if that is [`NONE`].
    fn insert(&mut self, word: u64, previous: u32, from: u8, to: u8) -> u32 {
        let next = match previous {
            NONE => self.words.get(word),
            previous => self.pieces[previous as usize].next,
        };
        let piece = Piece {
            next,
            from,
            to,
            loaded: false,
            reader: NONE,
            drained: false,
            writer: NONE,
            stamp: 0,
            barrier: 0,
            instruction: Instruction(0),
            stored: Bytes { address: word * WORD + u64::from(from), size: u32::from(to - from) },
        };
        let new = match self.unused.pop() {
            Some(unused) => {
                self.pieces[unused as usize] = piece;
                self.clocks.of_mut(unused as usize).fill(0);
                unused
            }
            None => {
                self.pieces.push(piece);
                self.clocks.push();
                self.pieces.len() as u32 - 1
            }
        };
        match previous {
            NONE => self.words.set(word, new),
            previous => self.pieces[previous as usize].next = new,
        }
        new
    }

    /// Cuts a piece in two. Returns the second part, which begins at `at`.
    fn cut(&mut self, piece: u32, at: u8) -> u32 {
        self.changes += 1;
        let copy = self.pieces[piece as usize];
        let second = Piece { from: at, ..copy };
        let new = match self.unused.pop() {
            Some(unused) => {
                let known = self.clocks.of(piece as usize).to_vec();
                self.clocks.of_mut(unused as usize).copy_from_slice(&known);
                self.pieces[unused as usize] = second;
                unused
            }
            None => {
                self.pieces.push(second);
                self.clocks.push_copy(piece as usize);
                self.pieces.len() as u32 - 1
            }
        };
        let first = &mut self.pieces[piece as usize];
        first.to = at;
        first.next = new;
        new
    }

    /// Merges the pieces of each word that one store has just covered: the same is known about all of them.
    pub fn merge(&mut self, stored: Bytes) {
        self.changes += 1;
        for word in stored.address / WORD..=(stored.end() - 1) / WORD {
            let base = word * WORD;
            let from = (stored.address.max(base) - base) as u8;
            let to = ((stored.end() - 1).min(base + (WORD - 1)) - base + 1) as u8;
            let mut first = self.words.get(word);
            while first != NONE && self.pieces[first as usize].from != from {
                first = self.pieces[first as usize].next;
            }
            while first != NONE && self.pieces[first as usize].to < to {
                let second = self.pieces[first as usize].next;
                let Piece { next, to, .. } = self.pieces[second as usize];
                (self.pieces[first as usize].next, self.pieces[first as usize].to) = (next, to);
                self.pieces[second as usize].writer = NONE;
                self.unused.push(second);
            }
        }
    }

    /// Records that an access makes the last store of a piece drain under PSO in the other pieces that still
    /// hold it.
    #[cold]
    pub fn drain_parts(&mut self, piece: u32, by: usize, now: u32) {
        let of = self.pieces[piece as usize];
        for word in of.stored.address / WORD..=(of.stored.end() - 1) / WORD {
            let mut at = self.words.get(word);
            while at != NONE {
                let other = self.pieces[at as usize];
                if at != piece && (other.writer, other.stamp) == (of.writer, of.stamp) {
                    self.view(at).drain(by, now);
                }
                at = other.next;
            }
        }
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub fn check_invariants(&self) {
        self.words.check_invariants();
        for word in self.words.within(0, u64::MAX) {
            let (mut at, mut end) = (self.words.clone().get(word), 0);
            while at != NONE {
                let Piece { from, to, next, .. } = self.pieces[at as usize];
                assert!(end <= from && from < to, "invariant 1: the pieces of word {word} are sorted");
                assert!(u64::from(to) <= WORD, "invariant 2: a piece of word {word} lies within it");
                (at, end) = (next, to);
            }
        }
    }

    /// Forgets what was known about a range of bytes.
    pub fn forget(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        if end == address {
            return;
        }
        let mut found = Vec::new();
        for word in self.words.within(address / WORD, (end - 1) / WORD) {
            let base = word * WORD;
            let from = address.max(base) - base;
            let to = (end - 1).min(base + (WORD - 1)) - base + 1;
            found.clear();
            self.cover_word(word, from as u8, to as u8, &mut found);
            self.unlink(word, &found);
        }
    }

    fn unlink(&mut self, word: u64, removed: &[u32]) {
        self.changes += 1;
        let mut kept = Vec::new();
        let mut at = self.words.remove(word);
        while at != NONE {
            if !removed.contains(&at) {
                kept.push(at);
            }
            at = self.pieces[at as usize].next;
        }
        for (index, &piece) in kept.iter().enumerate() {
            self.pieces[piece as usize].next = kept.get(index + 1).copied().unwrap_or(NONE);
        }
        if let Some(&first) = kept.first() {
            self.words.set(word, first);
        }
        for &piece in removed {
            self.pieces[piece as usize].writer = NONE;
            self.unused.push(piece);
        }
    }

    /// A piece with its clocks.
    #[inline(always)]
    pub fn view(&mut self, piece: u32) -> View<'_> {
        self.view_lanes(piece, self.lanes)
    }

    /// The same for a given number of lanes.
    #[inline(always)]
    pub fn view_lanes(&mut self, piece: u32, lanes: usize) -> View<'_> {
        let width = VECTORS * lanes;
        let (store, rest) = self.clocks.of_lanes(piece as usize, lanes).split_at_mut(width);
        let (accesses, drained_by) = rest.split_at_mut(width);
        View { piece: &mut self.pieces[piece as usize], store, accesses, drained_by }
    }

    /// Makes room for more processes.
    pub fn widen(&mut self, lanes: usize) {
        self.clocks.widen(lanes);
        self.lanes = lanes;
    }

    /// Subtracts `by` from all moments of a process. Stores whose order with others can no longer be
    /// determined are no longer considered.
    pub fn lower(&mut self, lane: usize, by: u32) {
        for piece in 0..self.pieces.len() as u32 {
            let View { piece: known, drained_by, .. } = self.view(piece);
            let drained = drained_by[lane];
            if known.writer == lane as u32 {
                known.barrier = known.barrier.saturating_sub(by);
                known.stamp = known.stamp.saturating_sub(by);
                if known.stamp == 0 {
                    known.writer = NONE;
                }
            }
            if drained != 0 && drained <= by {
                known.writer = NONE;
            }
        }
        self.clocks.lower(lane, by);
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.words.bytes() + self.pieces.len() * size_of::<Piece>() + self.clocks.bytes()
    }
}
