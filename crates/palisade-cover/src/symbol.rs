//! Letters of words: messages, in the form that all backward engines use in their elements.

use crate::values::{SetId, ValueSets};
use palisade_program::running::CellId;

/// A letter of a word: a message, own or plain, with a cell and a set of values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Symbol(u32);

impl Symbol {
    const OWN: u32 = 1 << 31;

    /// A plain letter with any of these values.
    pub fn plain_in(cell: CellId, set: SetId) -> Symbol {
        debug_assert!(cell.0 < 1 << 16 && set.0 < 1 << 15, "cells and sets fit a symbol");
        Symbol(cell.0 << 15 | u32::from(set.0))
    }

    /// An own letter with any of these values.
    pub fn own_in(cell: CellId, set: SetId) -> Symbol {
        Symbol(Symbol::plain_in(cell, set).0 | Symbol::OWN)
    }

    /// Its set of values.
    pub fn set(self) -> SetId {
        SetId((self.0 & 0x7FFF) as u16)
    }

    /// The same letter with another set of values.
    pub fn with_set(self, set: SetId) -> Symbol {
        Symbol(self.0 & !0x7FFF | u32::from(set.0))
    }

    pub fn is_own(self) -> bool {
        self.0 & Symbol::OWN != 0
    }

    pub fn cell(self) -> CellId {
        CellId((self.0 & !Symbol::OWN) >> 15)
    }

    /// Whether it is below another letter: that one is of the same kind and on the same cell, and allows no other
    /// values.
    pub fn is_below(self, above: Symbol, sets: &ValueSets) -> bool {
        self == above
            || self.with_set(SetId::ALL) == above.with_set(SetId::ALL)
                && sets.is_subset(self.cell(), above.set(), self.set())
    }
}
