//! Accesses that can be made stronger instead of adding a fence.
//!
//! A stronger access has the effect of fences next to the weak one:
//! - A `seq_cst` store is a store with a full fence after it and, where stores can overtake each other, a
//!   store-store fence before it.
//! - An exchange that waits for the whole buffer has the same effect. Its store is in memory at once, but this cannot
//!   be observed: the thread does nothing between the store and the fence.
//! - A release store is a store with a store-store fence before it.
//! - A full fence instead of a store-store fence is a full fence at the same place.
//!
//! So an access is a place like any other. What differs is which gaps it fills ([`Role`]), and its cost.

use palisade_base::Span;
use palisade_syntax::edit::FenceKind;

/// What is changed in the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// A full fence is added.
    Fence,
    /// A store-store fence is added.
    StoreFence,
    /// A store becomes `seq_cst`.
    SeqCst,
    /// A store becomes a release store.
    Release,
    /// A store becomes an atomic exchange.
    Exchange,
    /// A store-store fence becomes a full fence.
    StrongerFence,
}

impl Change {
    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Change::Fence => "fence",
            Change::StoreFence => "sfence",
            Change::SeqCst => "seq_cst",
            Change::Release => "release",
            Change::Exchange => "exchange",
            Change::StrongerFence => "stronger-fence",
        }
    }

    /// Whether a statement is added, and none is changed.
    pub fn is_added(self) -> bool {
        matches!(self, Change::Fence | Change::StoreFence)
    }
}

/// What kind of access it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Accessed {
    /// A store to shared memory.
    Store,
    /// A store-store fence.
    StoreFence,
}

/// The access of a statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccessAt {
    /// The statement.
    pub span: Span,
    /// Its access. There is only one of this kind.
    pub accessed: Accessed,
}

/// How the text makes an access stronger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stronger {
    /// The change that has the effect of a full fence.
    pub full: Change,
    /// The change that orders the access after older stores only, if there is one.
    pub weak: Option<Change>,
}

/// What a place does in one of its gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// The fence itself.
    Fence,
    /// The gap before a store that is made stronger.
    BeforeStore,
    /// The gap after it.
    AfterStore,
}

impl Role {
    /// The fence in the gap, if the place has this kind.
    pub(crate) fn effect(self, kind: FenceKind) -> Option<FenceKind> {
        match (self, kind) {
            (Role::Fence, kind) => Some(kind),
            (Role::BeforeStore, _) => Some(FenceKind::StoreStore),
            (Role::AfterStore, FenceKind::Full) => Some(FenceKind::Full),
            (Role::AfterStore, FenceKind::StoreStore) => None,
        }
    }
}
