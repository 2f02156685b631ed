//! Letters of words: messages, in the form that all backward engines use in their elements.

use crate::values::SetId;
use palisade_automata::ValueId;
use palisade_program::running::CellId;

/// A letter of a word: a message, own or plain, with a cell, and a value or a set of values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Symbol(u32);

impl Symbol {
    const OWN: u32 = 1 << 31;

    pub fn plain(cell: CellId, value: ValueId) -> Symbol {
        debug_assert!(cell.0 < 1 << 16 && value.0 < 1 << 15, "cells and values fit a symbol");
        Symbol(cell.0 << 15 | value.0)
    }

    pub fn own(cell: CellId, value: ValueId) -> Symbol {
        Symbol(Symbol::plain(cell, value).0 | Symbol::OWN)
    }

    /// A plain letter with any of these values.
    pub fn plain_in(cell: CellId, set: SetId) -> Symbol {
        Symbol::plain(cell, ValueId(set.0.into()))
    }

    /// An own letter with any of these values.
    pub fn own_in(cell: CellId, set: SetId) -> Symbol {
        Symbol::own(cell, ValueId(set.0.into()))
    }

    /// The set of values of a letter that was made with one.
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

    pub fn value(self) -> ValueId {
        ValueId(self.0 & 0x7FFF)
    }

    /// One of 64 bits. It is the same for all messages with this cell and value, whichever process stored it.
    pub fn bit(self) -> u64 {
        1 << ((self.0 & !Symbol::OWN).wrapping_mul(0x9E37_79B9) >> 26)
    }

    /// Cell and value, whichever process stored it.
    pub fn message(self) -> (CellId, ValueId) {
        (self.cell(), self.value())
    }
}
