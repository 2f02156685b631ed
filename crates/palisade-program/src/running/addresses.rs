//! Which cell is at which address.

use super::{Cell, CellId};
use crate::Value;
use palisade_base::{Id, IdVec};

/// Which cell is at which address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Addresses {
    /// Cell `i` is at address `i + 1`.
    InOrder {
        /// The number of cells.
        cells: u32,
    },
    /// The program places cells. The addresses are in increasing order.
    Placed(Box<[(Value, CellId)]>),
}

impl Addresses {
    /// The addresses of these cells.
    pub fn new(cells: &IdVec<CellId, Cell>) -> Addresses {
        if cells.iter_enumerated().all(|(id, cell)| cell.address == in_order(id)) {
            return Addresses::InOrder { cells: u32::from_index(cells.len()) };
        }
        let mut placed: Box<[_]> = cells.iter_enumerated().map(|(id, cell)| (cell.address, id)).collect();
        placed.sort_unstable();
        Addresses::Placed(placed)
    }

    /// The cell at an address, if there is one.
    pub fn cell(&self, address: Value) -> Option<CellId> {
        match self {
            Addresses::InOrder { cells } => {
                u32::try_from(address.checked_sub(1)?).ok().filter(|index| index < cells).map(CellId)
            }
            Addresses::Placed(placed) => {
                let index = placed.binary_search_by_key(&address, |&(address, _)| address).ok()?;
                Some(placed[index].1)
            }
        }
    }
}

/// The address of a cell that the program does not place.
pub(crate) fn in_order(cell: CellId) -> Value {
    Value::from(cell.0) + 1
}
