//! States of the search as words: an SC state and, once a store is held back, the attack.
//!
//! A state has one half of a machine word for the attack, one for each cell and one for each thread. Numbers
//! in parentheses are bits.
//! - attack: attacker + 1 (8), whether it has passed a store-store fence since the start of the attack (1),
//!   the cell of the store held back (16). The half is 0 if there is no attack.
//! - cell: code of the value in memory (15), code + 1 of the newest value the attacker holds back (15),
//!   whether the cell was loaded (1) and whether it was stored to (1) by an event that happens after the
//!   attack's start.
//! - thread: thread state (31), whether some event of the thread happens after the attack's start (1).

use crate::threads::DEAD;
use palisade_automata::on_demand::LocalId;
use palisade_base::Id;
use palisade_program::running::CellId;

/// The largest number of threads that a state can represent.
pub(crate) const MAX_THREADS: usize = 200;
/// The largest number of cells that a state can represent.
pub(crate) const MAX_CELLS: usize = 1 << 16;

const CODE: u32 = (1 << 15) - 1;
const LOADED: u32 = 1 << 30;
const STORED: u32 = 1 << 31;
const ENTERED: u32 = 1 << 31;
const FENCED: u32 = 1 << 8;

/// How many words there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub cells: usize,
    pub threads: usize,
}

impl Layout {
    pub fn words(self) -> usize {
        (1 + self.cells + self.threads).div_ceil(2)
    }
}

/// The attack of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Attack {
    pub attacker: usize,
    pub cell: CellId,
    /// Whether, under PSO, everything it stores from now on is held back.
    pub fenced: bool,
}

/// A state that is being read or built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State<W> {
    pub words: W,
    pub layout: Layout,
}

impl<W: AsRef<[u64]>> State<W> {
    #[inline]
    fn half(&self, index: usize) -> u32 {
        (self.words.as_ref()[index / 2] >> shift(index)) as u32
    }

    pub fn attack(&self) -> Option<Attack> {
        let word = self.half(0);
        (word != 0).then(|| Attack {
            attacker: (word & 0xff) as usize - 1,
            cell: CellId(word >> 16),
            fenced: word & FENCED != 0,
        })
    }

    fn cell(&self, cell: CellId) -> u32 {
        self.half(1 + cell.index())
    }

    /// The code of the value in memory.
    pub fn memory(&self, cell: CellId) -> u32 {
        self.cell(cell) & CODE
    }

    /// The code of the newest value that the attacker holds back.
    pub fn held(&self, cell: CellId) -> Option<u32> {
        (self.cell(cell) >> 15 & CODE).checked_sub(1)
    }

    /// Whether an event after the attack's start has loaded the cell.
    pub fn loaded(&self, cell: CellId) -> bool {
        self.cell(cell) & LOADED != 0
    }

    /// Whether an event after the attack's start has stored to the cell.
    pub fn stored(&self, cell: CellId) -> bool {
        self.cell(cell) & STORED != 0
    }

    pub fn thread(&self, thread: usize) -> LocalId {
        LocalId(self.half(1 + self.layout.cells + thread) & !ENTERED)
    }

    /// Whether some event of the thread happens after the attack's start.
    pub fn entered(&self, thread: usize) -> bool {
        self.half(1 + self.layout.cells + thread) & ENTERED != 0
    }

    /// The codes of all values in memory.
    pub fn codes(&self) -> Vec<u32> {
        (0..self.layout.cells).map(|cell| self.memory(CellId::from_index(cell))).collect()
    }

    /// The attack and the cells: everything but the threads.
    pub fn shared(&self) -> Vec<u32> {
        (0..=self.layout.cells).map(|index| self.half(index)).collect()
    }

    /// Whether no cell is marked, no value is held back, and no thread has entered.
    pub fn is_unmarked(&self) -> bool {
        let Layout { cells, threads } = self.layout;
        let mut cells = (0..cells).map(CellId::from_index);
        cells.all(|cell| self.cell(cell) & !CODE == 0) && (0..threads).all(|thread| !self.entered(thread))
    }

    /// Whether nothing more can happen after the attack's start: the attacker is at its end, and no other
    /// thread has entered or can enter.
    pub fn is_hopeless(&self) -> bool {
        let Some(attack) = self.attack() else { return false };
        let Layout { cells, threads } = self.layout;
        let mut cells = (0..cells).map(CellId::from_index);
        self.thread(attack.attacker) == DEAD
            && cells.all(|cell| self.cell(cell) & (LOADED | STORED) == 0)
            && (0..threads).all(|thread| !self.entered(thread) || self.thread(thread) == DEAD)
    }
}

impl<W: AsMut<[u64]> + AsRef<[u64]>> State<W> {
    /// Sets the bits of a mask in a half of a word.
    #[inline]
    fn set(&mut self, index: usize, mask: u32, bits: u32) {
        debug_assert_eq!(bits & !mask, 0, "a value outgrew its field");
        let word = &mut self.words.as_mut()[index / 2];
        *word = *word & !(u64::from(mask) << shift(index)) | u64::from(bits) << shift(index);
    }

    /// Sets the attack and the cells.
    pub fn set_shared(&mut self, shared: &[u32]) {
        shared.iter().enumerate().for_each(|(index, &half)| self.set(index, u32::MAX, half));
    }

    pub fn set_attack(&mut self, attack: Attack) {
        let fenced = if attack.fenced { FENCED } else { 0 };
        self.set(0, u32::MAX, (attack.attacker as u32 + 1) | fenced | attack.cell.0 << 16);
    }

    pub fn set_memory(&mut self, cell: CellId, code: u32) {
        self.set(1 + cell.index(), CODE, code);
    }

    pub fn hold(&mut self, cell: CellId, code: u32) {
        self.set(1 + cell.index(), CODE << 15, (code + 1) << 15);
    }

    pub fn set_loaded(&mut self, cell: CellId) {
        self.set(1 + cell.index(), LOADED, LOADED);
    }

    pub fn set_stored(&mut self, cell: CellId) {
        self.set(1 + cell.index(), STORED, STORED);
    }

    pub fn set_thread(&mut self, thread: usize, local: LocalId) {
        self.set(1 + self.layout.cells + thread, !ENTERED, local.0);
    }

    pub fn enter(&mut self, thread: usize) {
        self.set(1 + self.layout.cells + thread, ENTERED, ENTERED);
    }
}

/// The position of a half in its word, in bits.
#[inline]
fn shift(index: usize) -> u32 {
    index as u32 % 2 * 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_disturb_each_other() {
        let layout = Layout { cells: 2, threads: 2 };
        let mut state = State { words: vec![0; layout.words()], layout };
        let (x, y) = (CellId(0), CellId(1));
        state.set_memory(x, CODE - 1);
        state.hold(x, CODE - 1);
        state.set_loaded(x);
        state.set_stored(y);
        state.set_thread(1, LocalId(77));
        state.enter(1);
        state.set_thread(1, LocalId(78));
        assert_eq!(state.attack(), None);
        let attack = Attack { attacker: 1, cell: y, fenced: true };
        state.set_attack(attack);
        assert_eq!(state.attack(), Some(attack));
        assert_eq!((state.memory(x), state.held(x), state.held(y)), (CODE - 1, Some(CODE - 1), None));
        assert_eq!(
            [x, y].map(|cell| (state.loaded(cell), state.stored(cell))),
            [(true, false), (false, true)]
        );
        assert_eq!((state.thread(1), state.entered(1), state.entered(0)), (LocalId(78), true, false));
        assert_eq!(state.codes(), [CODE - 1, 0]);
        assert!(!state.is_hopeless());
    }
}
