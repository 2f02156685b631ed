//! The access of a move to memory. This is the letter for policies that need nothing more.

use crate::local::StepKind;
use palisade_program::running::CellId;

/// No cell.
const NOTHING: u32 = u32::MAX;

/// The access of a move to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    cell: u32,
    reads: bool,
}

impl Access {
    /// The access of a step of this kind.
    pub fn new(kind: StepKind) -> Access {
        match kind {
            StepKind::Reads(cell) => Access { cell: cell.0, reads: true },
            StepKind::Writes(cell) => Access { cell: cell.0, reads: false },
            _ => Access { cell: NOTHING, reads: false },
        }
    }

    /// The cell of memory that it reads or writes.
    #[inline]
    pub fn cell(self) -> Option<CellId> {
        (self.cell != NOTHING).then_some(CellId(self.cell))
    }

    /// The cell whose value the outcome depends on.
    #[inline]
    pub fn reads(self) -> Option<CellId> {
        self.reads.then_some(CellId(self.cell))
    }
}
