//! Cells and values: which process a cell belongs to, and sets of values as bits.

use palisade_automata::Automata;
use palisade_base::Id;
use palisade_program::Value;
use palisade_program::running::CellId;
use palisade_program::written::Program;

/// A set of values. Where a cell holds identities, the bit of an identity is its number. Otherwise the bit of a value is
/// its position among all values of the cell, or of the array if it has one cell per process.
pub(super) type Mask = u64;

#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// If its array has one cell per process: the array's first cell.
    pub array: Option<u32>,
    /// The process it belongs to; 0 for none.
    pub owner: u8,
    /// Whether it stands for the cells of all others.
    pub every: bool,
    /// Whether it holds an identity or none.
    pub holds_identity: bool,
    /// The values, by their bits. Not for identities.
    values: Vec<Value>,
}

/// The cells of a program with `number` identities and the cells *every*, in their order.
pub(super) fn cells(
    program: &Program,
    viewed: &Program,
    automata: &Automata,
    number: u8,
) -> Result<Vec<Cell>, String> {
    let identities = program.identities.as_ref().ok_or("no process has an identity")?;
    let mut cells = Vec::new();
    for shared in &viewed.shared {
        let first = cells.len() as u32;
        let len = shared.len.unwrap_or(1);
        let per_process = identities.arrays.contains(&shared.name.text);
        let holds_identity = identities.is_identity(shared.ty.domain);
        let of = |cell: u32| CellId::from_index(cell as usize);
        let all = (first..first + len).flat_map(|cell| automata.values[of(cell)].iter().copied());
        let mut all: Vec<Value> = all.collect();
        all.sort_unstable();
        all.dedup();
        if all.len() > Mask::BITS as usize {
            return Err(format!("`{}` takes too many values", shared.name));
        }
        for index in 0..len {
            let every = per_process && index == u32::from(number) + 1;
            cells.push(Cell {
                array: per_process.then_some(first),
                owner: if per_process && !every { index as u8 } else { 0 },
                every,
                holds_identity,
                values: all.clone(),
            });
        }
    }
    match cells.len() == automata.values.len() {
        true => Ok(cells),
        false => Err("there are other cells than those declared".into()),
    }
}

impl Cell {
    /// The values of a set.
    pub fn values(&self, mask: Mask) -> Vec<Value> {
        let bits = (0..Mask::BITS).filter(|bit| mask >> bit & 1 == 1);
        match self.holds_identity {
            true => bits.map(Value::from).collect(),
            false => bits.map(|bit| self.values[bit as usize]).collect(),
        }
    }

    /// The bit of a value; `None` if the cell never holds it.
    pub fn bit(&self, value: Value) -> Option<Mask> {
        match self.holds_identity {
            true => u32::try_from(value).ok().and_then(|value| 1u64.checked_shl(value)),
            false => self.values.binary_search(&value).ok().map(|place| 1 << place),
        }
    }
}
