//! How values of memory cells are written as small numbers.
//!
//! A cell with a small declared domain uses the offset from its least value. Any other cell numbers its values as they are met; the table
//! only grows, so numbers stay valid.

use palisade_base::IdVec;
use palisade_program::Value;
use palisade_program::running::{CellId, Code, Instr, System};
use rustc_hash::FxHashMap;

/// Domains up to this size use offsets.
const SMALL: u64 = 256;
/// More different values than this in a cell without a declared domain count as growth without bound.
pub(crate) const GROWING: usize = 1024;
/// When the limits are reached, this many are suspicious.
const SUSPICIOUS: u64 = 64;

/// The codes of all cells.
#[derive(Debug)]
pub(crate) struct Codes {
    cells: IdVec<CellId, CellCodes>,
    written: IdVec<CellId, bool>,
}

#[derive(Debug)]
enum CellCodes {
    Offset { lo: Value, size: u64 },
    Table { values: Vec<Value>, codes: FxHashMap<Value, u32> },
}

impl Codes {
    pub fn new(system: &System) -> Codes {
        let written = written_cells(system);
        let cells = system.cells.iter_enumerated().map(|(id, cell)| match cell.ty.domain.bounds() {
            Some((lo, hi)) if (written[id] || cell.init.is_none()) && hi.abs_diff(lo) < SMALL => {
                CellCodes::Offset { lo, size: hi.abs_diff(lo) + 1 }
            }
            _ => {
                let mut table = CellCodes::Table { values: Vec::new(), codes: FxHashMap::default() };
                cell.init.into_iter().for_each(|value| _ = table.code(value));
                table
            }
        });
        let cells = cells.collect();
        Codes { cells, written }
    }

    /// Whether the codes of a cell may still grow.
    pub fn may_grow(&self, cell: CellId) -> bool {
        self.written[cell] && matches!(self.cells[cell], CellCodes::Table { .. })
    }

    /// The code of a value, numbering it if it is new.
    pub fn code(&mut self, cell: CellId, value: Value) -> u32 {
        self.cells[cell].code(value)
    }

    /// The value of a code.
    pub fn value(&self, cell: CellId, code: u32) -> Value {
        match &self.cells[cell] {
            CellCodes::Offset { lo, .. } => lo + Value::from(code),
            CellCodes::Table { values, .. } => values[code as usize],
        }
    }

    /// How many codes there are so far.
    pub fn size(&self, cell: CellId) -> u64 {
        match &self.cells[cell] {
            CellCodes::Offset { size, .. } => *size,
            CellCodes::Table { values, .. } => values.len() as u64,
        }
    }

    /// A cell without declared domain that takes more and more values.
    pub fn growing(&self, system: &System) -> Option<CellId> {
        self.most_varied(system).filter(|&cell| self.size(cell) > GROWING as u64)
    }

    /// A cell without declared domain that has taken so many values that it may be the reason why the limits ran out.
    pub fn suspicious(&self, system: &System) -> Option<CellId> {
        self.most_varied(system).filter(|&cell| self.size(cell) >= SUSPICIOUS)
    }

    fn most_varied(&self, system: &System) -> Option<CellId> {
        let undeclared = |cell: &CellId| system.cells[*cell].ty.domain.bounds().is_none();
        self.cells.ids().filter(undeclared).max_by_key(|&cell| self.size(cell))
    }
}

impl CellCodes {
    fn code(&mut self, value: Value) -> u32 {
        match self {
            CellCodes::Offset { lo, .. } => (value - *lo) as u32,
            CellCodes::Table { values, codes } => *codes.entry(value).or_insert_with(|| {
                values.push(value);
                (values.len() - 1) as u32
            }),
        }
    }
}

/// Which cells some instruction may write. The others keep their initial value and need no room in a state.
fn written_cells(system: &System) -> IdVec<CellId, bool> {
    use palisade_base::Id;
    use palisade_program::running::Address;
    let mut written: IdVec<CellId, bool> = vec![false; system.cells.len()].into();
    let edges = system.codes.iter().flat_map(|code: &Code| code.edges().iter());
    for edge in edges {
        let (Instr::Store(address, _) | Instr::Locked { address, .. }) = &edge.instr else { continue };
        match address {
            Address::Cell(cell) => written[*cell] = true,
            Address::Element { base, len, .. } => {
                (0..*len).for_each(|i| written[CellId::from_index(base.index() + i as usize)] = true);
            }
            Address::Pointer(_) => written.iter_mut().for_each(|w| *w = true),
        }
    }
    written
}
