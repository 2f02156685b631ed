//! Which fences to insert, and where.

use palisade_base::Span;
use std::collections::BTreeMap;

/// A fence to insert.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FenceAt {
    /// The span of a statement of the program.
    pub span: Span,
    /// The side of the statement.
    pub side: Side,
    /// The kind of fence.
    pub kind: FenceKind,
}

/// The side of a statement that a fence goes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// After the statement's labels, before the statement itself.
    Before,
    /// After the statement.
    After,
}

/// The kinds of fences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FenceKind {
    /// Keeps older stores before younger ones. Weaker than a full fence.
    StoreStore,
    /// Waits until the store buffer is empty.
    Full,
}

/// The word for a kind of fence in a language, given its two words.
pub(super) fn word(kind: FenceKind, full: &'static str, store_store: &'static str) -> &'static str {
    match kind {
        FenceKind::Full => full,
        FenceKind::StoreStore => store_store,
    }
}

/// The fences to insert, by statement.
pub(super) type Requests = BTreeMap<Span, Sides>;

/// The fences to insert on each side of one statement.
#[derive(Clone, Copy, Default)]
pub(super) struct Sides {
    pub(super) before: Option<FenceKind>,
    pub(super) after: Option<FenceKind>,
}

impl Sides {
    /// Adds a fence on its side; the stronger one wins.
    pub(super) fn add(&mut self, fence: FenceAt) {
        let side = match fence.side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        };
        *side = (*side).max(Some(fence.kind));
    }

    /// Adds the fences of another request for the same statement.
    pub(super) fn join(&mut self, other: Sides) {
        self.before = self.before.max(other.before);
        self.after = self.after.max(other.after);
    }
}
