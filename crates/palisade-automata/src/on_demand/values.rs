//! How values of memory cells are encoded as small numbers.
//!
//! A cell with a small declared domain uses the offset from its least value. Any other cell numbers its
//! values in the order in which they appear.
//!
//! *Invariant*: codes are only added, so a code stays valid, and different values of a cell have different
//! codes (a `debug_assert!` where values are encoded).

use crate::Pointers;
use palisade_base::{Id, IdVec};
use palisade_program::Value;
use palisade_program::running::{Address, CellId, Code, CodeId, Instr, System};
use rustc_hash::FxHashMap;

/// Domains up to this size use offsets.
const SMALL: u64 = 256;

/// The codes of all cells.
#[derive(Debug)]
pub struct Values {
    cells: IdVec<CellId, Codes>,
    written: IdVec<CellId, bool>,
    /// The cells without a declared domain.
    undeclared: Vec<CellId>,
}

#[derive(Debug)]
enum Codes {
    Offset { lo: Value, size: u64 },
    Table { values: Vec<Value>, codes: FxHashMap<Value, u32> },
}

impl Values {
    /// Codes for the initial values, and for all values of small domains.
    pub fn new(system: &System) -> Values {
        let written = written_cells(system);
        let cells = system.cells.iter_enumerated().map(|(id, cell)| match cell.ty.domain.bounds() {
            Some((lo, hi)) if (written[id] || cell.init.is_none()) && hi.abs_diff(lo) < SMALL => {
                Codes::Offset { lo, size: hi.abs_diff(lo) + 1 }
            }
            _ => {
                let mut table = Codes::Table { values: Vec::new(), codes: FxHashMap::default() };
                cell.init.into_iter().for_each(|value| _ = table.code(value));
                table
            }
        });
        let cells = cells.collect();
        let undeclared = |cell: &CellId| system.cells[*cell].ty.domain.bounds().is_none();
        Values { cells, written, undeclared: system.cells.ids().filter(undeclared).collect() }
    }

    /// Whether a cell may still get more codes.
    pub fn may_grow(&self, cell: CellId) -> bool {
        self.written[cell] && matches!(self.cells[cell], Codes::Table { .. })
    }

    /// The code of a value. A new value gets a new code.
    pub fn code(&mut self, cell: CellId, value: Value) -> u32 {
        let code = self.cells[cell].code(value);
        debug_assert_eq!(self.value(cell, code), value, "different values have different codes");
        code
    }

    /// The value of a code.
    pub fn value(&self, cell: CellId, code: u32) -> Value {
        match &self.cells[cell] {
            Codes::Offset { lo, .. } => lo + Value::from(code),
            Codes::Table { values, .. } => values[code as usize],
        }
    }

    /// How many codes a cell has so far.
    pub fn size(&self, cell: CellId) -> u64 {
        match &self.cells[cell] {
            Codes::Offset { size, .. } => *size,
            Codes::Table { values, .. } => values.len() as u64,
        }
    }

    /// The cell without a declared domain that has taken the most values, if it has taken at least this many.
    pub fn most_varied(&self, least: u64) -> Option<CellId> {
        let most = self.undeclared.iter().copied().max_by_key(|&cell| self.size(cell));
        most.filter(|&cell| self.size(cell) >= least)
    }

    /// A cell with more codes than this, declared or not.
    pub fn with_more_than(&self, codes: u64) -> Option<CellId> {
        self.cells.ids().find(|&cell| self.size(cell) > codes)
    }
}

impl Codes {
    fn code(&mut self, value: Value) -> u32 {
        match self {
            Codes::Offset { lo, .. } => (value - *lo) as u32,
            Codes::Table { values, codes } => *codes.entry(value).or_insert_with(|| {
                values.push(value);
                u32::from_index(values.len() - 1)
            }),
        }
    }
}

/// Which cells some instruction may write. The others keep their initial value and need no room in a state.
fn written_cells<'s>(system: &'s System) -> IdVec<CellId, bool> {
    let mut written: IdVec<CellId, bool> = vec![false; system.cells.len()].into();
    let pointers = Pointers::new(system);
    let edges = |(id, code): (CodeId, &'s Code)| code.edges().iter().map(move |edge| (id, edge));
    for (code, edge) in system.codes.iter_enumerated().flat_map(edges) {
        let (Instr::Store(address, _) | Instr::Locked { address, .. }) = &edge.instr else { continue };
        match address {
            Address::Cell(cell) => written[*cell] = true,
            Address::Element { base, len, .. } => {
                (0..*len).for_each(|i| written[CellId::from_index(base.index() + i as usize)] = true);
            }
            Address::Pointer(_) => match pointers.cells(system, code, address) {
                Some(cells) => cells.into_iter().for_each(|cell| written[cell] = true),
                None => written.iter_mut().for_each(|w| *w = true),
            },
        }
    }
    written
}
