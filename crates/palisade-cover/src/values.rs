//! Sets of values of cells.
//!
//! Letters and cells of elements hold sets of values. Each set of a cell has a number, so that an element
//! takes no more memory than with single values. Sets are numbered when they are first met: most of those that
//! are possible never occur.
//!
//! *Invariants*
//! 1. Sets are not empty. Number 0 of each cell is the set of all its values.
//! 2. Equal sets of a cell have the same number.
//!
//! *Limit.* A cell has at most [`MAX_SETS`] sets. One more sets [`ValueSets::overflown`] and is replaced by the
//! set of all values, which makes the results of that search worthless: it has to be repeated with single
//! values for that cell.

use crate::spawns::{Doubt, no_run};
use palisade_automata::ValueId;
use palisade_base::Id;
use palisade_engine::{Exhausted, Reason, Verdict};
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// Letters have fifteen bits for a set.
pub(crate) const MAX_SETS: usize = 1 << 15;

/// Results for two of the first sets of a cell are remembered. These are the sets that occur most.
const FEW: usize = 32;

/// A set of values of one cell, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SetId(pub u16);

impl SetId {
    /// All values of the cell.
    pub const ALL: SetId = SetId(0);
}

type Bits = SmallVec<[u64; 2]>;

/// The sets of all cells.
#[derive(Clone, Debug)]
pub(crate) struct ValueSets {
    cells: RefCell<Vec<OfCell>>,
    overflown: Cell<Option<CellId>>,
    most: usize,
}

#[derive(Clone, Debug)]
struct OfCell {
    cell: u32,
    values: usize,
    sets: Vec<Bits>,
    /// For each set, bits for the values that are not in it.
    filters: Vec<u64>,
    numbers: FxHashMap<Bits, SetId>,
    meets: Results,
    widened: Results,
}

/// Results of an operation on two of the first sets.
#[derive(Clone, Debug, Default)]
struct Results(Vec<Option<Option<SetId>>>);

impl Results {
    fn place(a: SetId, b: SetId) -> Option<usize> {
        let (a, b) = (usize::from(a.0), usize::from(b.0));
        (a < FEW && b < FEW).then_some(a * FEW + b)
    }

    fn get(&self, a: SetId, b: SetId) -> Option<Option<SetId>> {
        *self.0.get(Results::place(a, b)?)?
    }

    fn set(&mut self, a: SetId, b: SetId, result: Option<SetId>) {
        if let Some(place) = Results::place(a, b) {
            if self.0.is_empty() {
                self.0 = vec![None; FEW * FEW];
            }
            self.0[place] = Some(result);
        }
    }
}

impl OfCell {
    fn new(cell: usize, values: usize) -> OfCell {
        let mut all: Bits = SmallVec::from_elem(u64::MAX, values.div_ceil(64).max(1));
        if !values.is_multiple_of(64) || values == 0 {
            *all.last_mut().expect("there is a last word") = (1 << (values % 64)) - 1;
        }
        let numbers = FxHashMap::from_iter([(all.clone(), SetId::ALL)]);
        let (meets, widened) = Default::default();
        OfCell { cell: cell as u32, values, sets: vec![all], filters: vec![0], numbers, meets, widened }
    }

    fn bits(&self, set: SetId) -> &Bits {
        &self.sets[set.0 as usize]
    }

    fn is_subset(&self, a: SetId, b: SetId) -> bool {
        a == b || self.bits(a).iter().zip(self.bits(b)).all(|(a, b)| a & !b == 0)
    }
}

fn has(bits: &Bits, value: usize) -> bool {
    bits[value / 64] >> (value % 64) & 1 == 1
}

impl ValueSets {
    /// No sets yet, except that of all values for each cell. The argument gives the numbers of values.
    #[cfg(test)]
    pub fn new(values: impl Iterator<Item = usize>) -> ValueSets {
        ValueSets::with_at_most(values, MAX_SETS)
    }

    /// The same with at most this many sets for each cell.
    pub fn with_at_most(values: impl Iterator<Item = usize>, most: usize) -> ValueSets {
        let cells = values.enumerate().map(|(cell, values)| OfCell::new(cell, values)).collect();
        ValueSets { cells: RefCell::new(cells), overflown: Cell::new(None), most }
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.cells.borrow().len()
    }

    /// A cell for which there were too many sets, if there is one.
    pub fn overflown(&self) -> Option<CellId> {
        self.overflown.get()
    }

    fn number(&self, cell: CellId, bits: Bits) -> Option<SetId> {
        if bits.iter().all(|&word| word == 0) {
            return None;
        }
        let of_cell = &mut self.cells.borrow_mut()[cell.index()];
        if let Some(&number) = of_cell.numbers.get(&bits) {
            return Some(number);
        }
        if of_cell.sets.len() >= self.most {
            self.overflown.set(Some(cell));
            return Some(SetId::ALL);
        }
        let number = SetId(of_cell.sets.len() as u16);
        let lacking = (0..of_cell.values).filter(|&value| !has(&bits, value));
        let bit = |value: usize| {
            let hash = (of_cell.cell << 16 ^ value as u32).wrapping_mul(0x9E37_79B9);
            1 << (hash >> 26)
        };
        let filter = lacking.fold(0u64, |filter, value| filter | bit(value));
        of_cell.filters.push(filter);
        of_cell.sets.push(bits.clone());
        of_cell.numbers.insert(bits, number);
        Some(number)
    }

    /// The set of these values. `None` if there are none.
    pub fn of(&self, cell: CellId, values: impl IntoIterator<Item = ValueId>) -> Option<SetId> {
        let mut bits: Bits = SmallVec::from_elem(0, self.cells.borrow()[cell.index()].sets[0].len());
        values.into_iter().for_each(|value| bits[value.index() / 64] |= 1 << (value.index() % 64));
        self.number(cell, bits)
    }

    /// The set of one value.
    pub fn single(&self, cell: CellId, value: ValueId) -> SetId {
        self.of(cell, [value]).expect("one value is not none")
    }

    /// The values that are in both sets. `None` if there are none.
    pub fn meet(&self, cell: CellId, a: SetId, b: SetId) -> Option<SetId> {
        if a == b || b == SetId::ALL {
            return Some(a);
        }
        if a == SetId::ALL {
            return Some(b);
        }
        let bits = {
            let of_cell = &self.cells.borrow()[cell.index()];
            if let Some(known) = of_cell.meets.get(a, b) {
                return known;
            }
            of_cell.bits(a).iter().zip(of_cell.bits(b)).map(|(a, b)| a & b).collect()
        };
        let both = self.number(cell, bits);
        self.cells.borrow_mut()[cell.index()].meets.set(a, b, both);
        both
    }

    /// The values that are in one set, and those that are not in the other.
    pub fn widen(&self, cell: CellId, set: SetId, possible: SetId) -> SetId {
        if possible == SetId::ALL || set == SetId::ALL {
            return set;
        }
        let bits = {
            let of_cell = &self.cells.borrow()[cell.index()];
            if let Some(Some(known)) = of_cell.widened.get(set, possible) {
                return known;
            }
            let (set, possible, all) = (of_cell.bits(set), of_cell.bits(possible), of_cell.bits(SetId::ALL));
            set.iter().zip(possible).zip(all).map(|((set, possible), all)| set | all & !possible).collect()
        };
        let wide = self.number(cell, bits).expect("a set with more values is not empty");
        self.cells.borrow_mut()[cell.index()].widened.set(set, possible, Some(wide));
        wide
    }

    /// Whether all values of `a` are in `b`.
    pub fn is_subset(&self, cell: CellId, a: SetId, b: SetId) -> bool {
        a == b || b == SetId::ALL || self.cells.borrow()[cell.index()].is_subset(a, b)
    }

    /// Whether a value is in a set.
    pub fn contains(&self, cell: CellId, set: SetId, value: ValueId) -> bool {
        has(self.cells.borrow()[cell.index()].bits(set), value.index())
    }

    /// The values of a set, in their order.
    pub fn values(&self, cell: CellId, set: SetId) -> Vec<ValueId> {
        let of_cell = &self.cells.borrow()[cell.index()];
        let bits = of_cell.bits(set);
        (0..of_cell.values).filter(|&value| has(bits, value)).map(ValueId::from_index).collect()
    }

    /// Bits for the values that are not in a set. A subset has at least these bits.
    pub fn filter(&self, cell: CellId, set: SetId) -> u64 {
        self.cells.borrow()[cell.index()].filters[set.0 as usize]
    }
}

/// The sets that a proof names, by their values. They have numbers of their own.
#[derive(Default)]
pub(crate) struct SetList {
    pub sets: Vec<Vec<u32>>,
    numbers: FxHashMap<Vec<u32>, u32>,
}

impl SetList {
    /// The number of a set in the proof.
    pub fn number(&mut self, sets: &ValueSets, cell: CellId, set: SetId) -> u32 {
        let values: Vec<u32> = sets.values(cell, set).iter().map(|value| value.0).collect();
        *self.numbers.entry(values).or_insert_with_key(|values| {
            self.sets.push(values.clone());
            self.sets.len() as u32 - 1
        })
    }
}

/// Why a search has no answer.
pub(crate) enum Unanswered {
    Because(Reason),
    /// The sets of values of this cell are too many. They have to stay apart.
    Overflow(CellId),
    /// An initial element was found, but it may not be real. See [`crate::spawns`].
    Unreal(Doubt),
}

impl From<Exhausted> for Unanswered {
    fn from(exhausted: Exhausted) -> Unanswered {
        Unanswered::Because(Reason::Exhausted(exhausted))
    }
}

impl From<Reason> for Unanswered {
    fn from(reason: Reason) -> Unanswered {
        Unanswered::Because(reason)
    }
}

/// Searches. If there are too many sets of a cell's values, again with these values apart.
pub(crate) fn with_sets(
    mut search: impl FnMut(&FxHashSet<CellId>) -> Result<Verdict, Unanswered>,
) -> Result<Verdict, Reason> {
    let mut apart = FxHashSet::default();
    loop {
        match search(&apart) {
            Ok(verdict) => return Ok(verdict),
            Err(Unanswered::Because(reason)) => return Err(reason),
            Err(Unanswered::Unreal(doubt)) => return Err(no_run(doubt)),
            Err(Unanswered::Overflow(cell)) if apart.insert(cell) => {}
            Err(Unanswered::Overflow(_)) => {
                return Err(Reason::Unsupported("a shared variable has too many values".into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::Random;

    /// All operations against lists of values.
    #[test]
    fn sets_are_what_their_values_say() {
        let mut random = Random::new(1);
        for count in [1usize, 2, 5, 63, 64, 65, 200] {
            let sets = ValueSets::new([3, count].into_iter());
            let cell = CellId(1);
            for _ in 0..200 {
                let mut list = || -> Vec<ValueId> {
                    let some = (0..count).filter(|_| random.below(3) > 0);
                    some.map(ValueId::from_index).collect()
                };
                let (a, b) = (list(), list());
                let number = |list: &[ValueId]| sets.of(cell, list.iter().copied());
                let (Some(of_a), Some(of_b)) = (number(&a), number(&b)) else { continue };
                assert_eq!(sets.values(cell, of_a), a);
                assert_eq!(of_a == SetId::ALL, a.len() == count);
                assert_eq!(of_a == of_b, a == b);
                let both: Vec<ValueId> = a.iter().copied().filter(|value| b.contains(value)).collect();
                assert_eq!(sets.meet(cell, of_a, of_b), number(&both));
                assert_eq!(sets.is_subset(cell, of_a, of_b), both == a);
                let all = (0..count).map(ValueId::from_index);
                let wide: Vec<_> =
                    all.clone().filter(|value| a.contains(value) || !b.contains(value)).collect();
                assert_eq!(sets.values(cell, sets.widen(cell, of_a, of_b)), wide);
                assert!(all.into_iter().all(|value| sets.contains(cell, of_a, value) == a.contains(&value)));
                if both == a {
                    assert_eq!(sets.filter(cell, of_b) & !sets.filter(cell, of_a), 0);
                }
            }
            assert_eq!(sets.overflown(), None);
        }
    }

    #[test]
    fn too_many_sets_are_reported() {
        let sets = ValueSets::with_at_most([2, 4].into_iter(), 3);
        let single = |cell, value| sets.single(CellId(cell), ValueId(value));
        (0..2).for_each(|value| _ = (single(0, value), single(1, value)));
        assert_eq!(sets.overflown(), None);
        assert_eq!(single(1, 2), SetId::ALL);
        assert_eq!(sets.overflown(), Some(CellId(1)));
    }
}
