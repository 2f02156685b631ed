//! How values of memory cells are encoded as small numbers.
//!
//! A cell with a small declared domain uses the offset from its least value. Any other cell numbers its
//! values in the order in which they appear.
//!
//! *Twins* are cells that a search exchanges with each other, together with values of theirs that it exchanges. They
//! have the same codes, and values of one family get their codes together.
//!
//! *Invariants*
//! 1. Codes are only added, so a code stays valid, and different values of a cell have different codes (a
//!    `debug_assert!` where values are encoded).
//! 2. Twins have the same values with the same codes (a `debug_assert!` where values are added).

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
    twins: Vec<Twins>,
    /// For each cell, its place in `twins`.
    twins_of: IdVec<CellId, Option<u32>>,
}

/// Cells with the same codes, and families of values that get their codes together.
#[derive(Debug)]
struct Twins {
    cells: Vec<CellId>,
    families: Vec<Vec<Value>>,
    /// For each code, the family of its value and the index of the value in it.
    members: Vec<Option<(u32, u32)>>,
    /// For each family, the codes of its values, once they have codes.
    codes: Vec<Vec<u32>>,
}

impl Twins {
    /// The family of a value, and its index in it.
    fn find(&self, value: Value) -> Option<(u32, u32)> {
        self.families.iter().zip(0..).find_map(|(family, number)| {
            let index = family.iter().position(|&member| member == value)?;
            Some((number, index as u32))
        })
    }

    /// Notes the code of a value.
    fn note(&mut self, value: Value, code: u32) {
        debug_assert_eq!(self.members.len(), code as usize, "codes are added in order");
        let member = self.find(value);
        self.members.push(member);
        if let Some((family, index)) = member {
            self.codes[family as usize][index as usize] = code;
        }
    }
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
        let undeclared = system.cells.ids().filter(undeclared).collect();
        let twins_of = system.cells.iter().map(|_| None).collect();
        Values { cells, written, undeclared, twins: Vec::new(), twins_of }
    }

    /// The same, with twins: lists of cells of one type, which have no other codes yet than those of their initial
    /// values, and the families of each list.
    pub fn with_twins(system: &System, twins: Vec<(Vec<CellId>, Vec<Vec<Value>>)>) -> Values {
        let mut values = Values::new(system);
        for (number, (cells, families)) in (0..).zip(twins) {
            let written = cells.iter().any(|&cell| values.written[cell]);
            let open = cells.iter().any(|&cell| system.cells[cell].init.is_none());
            let bounds = system.cells[cells[0]].ty.domain.bounds();
            let codes = families.iter().map(|family| vec![u32::MAX; family.len()]).collect();
            let mut twins = Twins { cells, families, members: Vec::new(), codes };
            let small = bounds.filter(|(lo, hi)| (written || open) && hi.abs_diff(*lo) < SMALL);
            for &cell in &twins.cells {
                values.twins_of[cell] = Some(number);
                values.written[cell] = written;
                values.cells[cell] = match small {
                    Some((lo, hi)) => Codes::Offset { lo, size: hi.abs_diff(lo) + 1 },
                    None => Codes::Table { values: Vec::new(), codes: FxHashMap::default() },
                };
            }
            if let Some((lo, hi)) = small {
                (lo..=hi).zip(0..).for_each(|(value, code)| twins.note(value, code));
            }
            let inits: Vec<_> = twins.cells.iter().filter_map(|&cell| system.cells[cell].init).collect();
            let first = twins.cells[0];
            values.twins.push(twins);
            inits.into_iter().for_each(|value| _ = values.code(first, value));
        }
        values
    }

    /// The family of the value with this code, and its index in the family. Only cells with twins have families.
    #[inline]
    pub fn member(&self, cell: CellId, code: u32) -> Option<(u32, usize)> {
        let twins = &self.twins[self.twins_of[cell]? as usize];
        twins.members[code as usize].map(|(family, index)| (family, index as usize))
    }

    /// The code of a value of a family of which some value has a code.
    #[inline]
    pub fn code_of_member(&self, cell: CellId, family: u32, index: usize) -> u32 {
        let twins = self.twins_of[cell].expect("the cell has families");
        self.twins[twins as usize].codes[family as usize][index]
    }

    /// Whether a cell may still get more codes.
    pub fn may_grow(&self, cell: CellId) -> bool {
        self.written[cell] && matches!(self.cells[cell], Codes::Table { .. })
    }

    /// The code of a value. A new value gets a new code.
    pub fn code(&mut self, cell: CellId, value: Value) -> u32 {
        if let Some(twins) = self.twins_of[cell] {
            self.add_to_twins(twins as usize, value);
        }
        let code = self.cells[cell].code(value);
        debug_assert_eq!(self.value(cell, code), value, "different values have different codes");
        code
    }

    /// Gives a value a code in all twins, and the other values of its family, too.
    fn add_to_twins(&mut self, twins: usize, value: Value) {
        let twins = &mut self.twins[twins];
        let known = |codes: &Codes| match codes {
            Codes::Offset { .. } => true,
            Codes::Table { codes, .. } => codes.contains_key(&value),
        };
        if known(&self.cells[twins.cells[0]]) {
            return;
        }
        let family = twins.find(value).map(|(family, _)| twins.families[family as usize].clone());
        for value in family.unwrap_or_else(|| vec![value]) {
            let code = self.cells[twins.cells[0]].code(value);
            for &cell in &twins.cells {
                let other = self.cells[cell].code(value);
                debug_assert_eq!(code, other, "invariant 2: twins have the same codes");
            }
            twins.note(value, code);
        }
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
