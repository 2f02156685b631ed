//! Moves of thread states, and their outcomes per value read.
//!
//! A lookup takes one or two index operations, because the moves of a thread state are adjacent, and so are
//! the targets of an outcome.

use super::{LocalId, Way};
use palisade_base::Id;
use palisade_memory::Action;
use std::marker::PhantomData;

/// No value.
const NOTHING: u32 = u32::MAX;

/// One move that a thread state offers.
#[derive(Clone, Copy, Debug)]
pub struct Move<L> {
    /// Its effect.
    pub letter: L,
    /// Its first step.
    pub action: Action,
    /// The thread state it belongs to.
    pub local: LocalId,
    number: u32,
}

impl<L> Move<L> {
    /// Its number among all moves.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// A possible target of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target<M> {
    /// The thread state.
    pub local: LocalId,
    write: u32,
    /// The thread that is started, if one is.
    pub child: LocalId,
    /// Further engine-specific information.
    pub mark: M,
}

impl<M> Target<M> {
    /// A target, with the code of the value that is written.
    pub(super) fn new(local: LocalId, write: Option<u32>, child: LocalId, mark: M) -> Target<M> {
        Target { local, write: write.unwrap_or(NOTHING), child, mark }
    }

    /// The code of the value that is written to the cell of the move.
    #[inline]
    pub fn write(&self) -> Option<u32> {
        (self.write != NOTHING).then_some(self.write)
    }

    /// The thread that is started.
    #[inline]
    pub fn child(&self) -> Option<LocalId> {
        (self.child != LocalId::NONE).then_some(self.child)
    }
}

/// A range of a list.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    const UNKNOWN: Span = Span { start: 0, len: NOTHING };
    const EMPTY: Span = Span { start: 0, len: 0 };

    /// The range from `start` to the end of a list.
    fn since<T>(list: &[T], start: usize) -> Span {
        Span { start: u32::from_index(start), len: u32::from_index(list.len() - start) }
    }

    #[inline]
    fn of<T>(self, list: &[T]) -> Option<&[T]> {
        (self.len != NOTHING).then(|| &list[self.start as usize..self.start as usize + self.len as usize])
    }
}

/// All moves.
pub(super) struct Moves<L, M, W> {
    /// Per thread state and way.
    spans: Vec<Span>,
    moves: Vec<Move<L>>,
    /// Per move and way: the ranges of the outcomes, by the code of the value read.
    tables: Vec<Vec<Span>>,
    targets: Vec<Target<M>>,
    bytes: u64,
    way: PhantomData<fn(W)>,
}

impl<L: Copy, M: Copy, W: Way> Moves<L, M, W> {
    pub fn new() -> Moves<L, M, W> {
        let (spans, moves, tables, targets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Moves { spans, moves, tables, targets, bytes: 0, way: PhantomData }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes room for a thread state whose moves are not known yet.
    pub fn add_state(&mut self) {
        self.spans.extend((0..W::COUNT).map(|_| Span::UNKNOWN));
    }

    /// Makes room for a number that has no moves.
    pub fn add_motionless(&mut self) {
        self.spans.extend((0..W::COUNT).map(|_| Span::EMPTY));
    }

    #[inline]
    pub fn of(&self, id: LocalId, way: W) -> Option<&[Move<L>]> {
        self.spans[id.index() * W::COUNT + way.index()].of(&self.moves)
    }

    #[inline]
    pub fn outcome(&self, mv: &Move<L>, code: u32, way: W) -> Option<&[Target<M>]> {
        let table = &self.tables[mv.number as usize * W::COUNT + way.index()];
        table.get(code as usize)?.of(&self.targets)
    }

    pub fn numbered(&self, number: u32) -> Move<L> {
        self.moves[number as usize]
    }

    /// Sets the moves of a thread state. Their numbers are consecutive. Returns the first one.
    pub fn set(&mut self, local: LocalId, way: W, moves: impl Iterator<Item = (Action, L)>) -> u32 {
        let first = self.moves.len();
        for (action, letter) in moves {
            let number = u32::from_index(self.moves.len());
            self.moves.push(Move { letter, action, local, number });
            self.tables.extend((0..W::COUNT).map(|_| Vec::new()));
            self.bytes += (size_of::<Move<L>>() + W::COUNT * size_of::<Vec<Span>>()) as u64;
        }
        debug_assert!(self.of(local, way).is_none(), "invariant 1: moves are set once");
        self.spans[local.index() * W::COUNT + way.index()] = Span::since(&self.moves, first);
        first as u32
    }

    /// Sets the outcome of a move.
    pub fn set_outcome(
        &mut self,
        number: u32,
        code: u32,
        way: W,
        targets: impl IntoIterator<Item = Target<M>>,
    ) {
        let first = self.targets.len();
        self.targets.extend(targets);
        let span = Span::since(&self.targets, first);
        let table = &mut self.tables[number as usize * W::COUNT + way.index()];
        if table.len() <= code as usize {
            table.resize(code as usize + 1, Span::UNKNOWN);
        }
        debug_assert!(table[code as usize].of(&self.targets).is_none(), "invariant 1: outcomes are set once");
        table[code as usize] = span;
        self.bytes += u64::from(span.len) * size_of::<Target<M>>() as u64 + size_of::<Span>() as u64;
    }

    /// Checks that every move belongs to the thread state it is listed with, and that all numbers are below
    /// `numbers`.
    pub fn check_invariants(&self, numbers: usize) {
        assert_eq!(self.spans.len(), numbers * W::COUNT, "every number has an entry per way");
        assert_eq!(self.tables.len(), self.moves.len() * W::COUNT, "every move has a table per way");
        for (position, mv) in self.moves.iter().enumerate() {
            assert_eq!(mv.number as usize, position, "a move knows its number");
        }
        let mut listed = vec![0; self.moves.len()];
        for (position, moves) in self.spans.iter().enumerate() {
            for mv in moves.of(&self.moves).unwrap_or_default() {
                assert_eq!(mv.local.index(), position / W::COUNT, "a move belongs to its thread state");
                listed[mv.number as usize] += 1;
            }
        }
        assert!(listed.iter().all(|&times| times == 1), "every move is listed once");
        for span in self.tables.iter().flatten() {
            for target in span.of(&self.targets).unwrap_or_default() {
                let known = target.local.index().max(target.child.index()) < numbers;
                assert!(known, "a target is a thread state with a number");
            }
        }
    }
}
