//! Elements of the search, and their order. The header of [`super`] defines their meaning.

use super::setup::{Holds, Setup};
use super::symmetry::Permutation;
use smallvec::SmallVec;

/// A letter of a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Letter {
    pub cell: u16,
    pub own: bool,
    /// Whether it is in the same group as the next newer letter.
    pub joined: bool,
    pub mask: u64,
}

/// A word, newest letter first. Groups of letters are in order; the letters of a group are in any order.
pub(crate) type Word = SmallVec<[Letter; 4]>;

/// The requirements on one process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Process {
    pub kind: u8,
    pub state: u32,
    pub word: Word,
}

/// What memory must hold.
pub(crate) type Memory = SmallVec<[u64; 16]>;

/// An element.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Element {
    /// How many identities it names: 1 to this number.
    pub named: u8,
    /// The requirement on each cell. Cells of identities that are not named, except for star, hold anything.
    pub memory: Memory,
    /// The requirements on processes, sorted.
    pub processes: Vec<Process>,
}

/// Removes a letter. The rest of its group stays a group.
pub(crate) fn remove(word: &mut Word, place: usize) -> Letter {
    let letter = word.remove(place);
    if !letter.joined
        && let Some(next) = word.get_mut(place)
        && next.joined
    {
        next.joined = false;
    }
    letter
}

/// The number of each letter's group.
pub(crate) fn groups(word: &Word) -> SmallVec<[usize; 8]> {
    let mut group = 0;
    word.iter()
        .enumerate()
        .map(|(place, letter)| {
            group += usize::from(place > 0 && !letter.joined);
            group
        })
        .collect()
}

impl Setup {
    /// A mask of a cell after renaming.
    pub fn rename_mask(&self, cell: usize, mask: u64, renaming: &Permutation) -> u64 {
        if !self.cells[cell].holds_identity {
            return mask;
        }
        (0..=self.star)
            .filter(|&id| mask >> id & 1 == 1)
            .fold(0, |all, id| all | 1 << renaming.identity[id as usize])
    }

    pub fn rename(&self, element: &Element, renaming: &Permutation) -> Element {
        let mut memory = element.memory.clone();
        for (cell, &mask) in element.memory.iter().enumerate() {
            memory[renaming.cell[cell] as usize] = self.rename_mask(cell, mask, renaming);
        }
        let mut processes: Vec<Process> = element
            .processes
            .iter()
            .map(|process| {
                let mut word: Word = process
                    .word
                    .iter()
                    .map(|letter| Letter {
                        cell: renaming.cell[letter.cell as usize],
                        mask: self.rename_mask(letter.cell as usize, letter.mask, renaming),
                        ..*letter
                    })
                    .collect();
                sort_groups(&mut word);
                Process {
                    kind: renaming.kind[process.kind as usize],
                    state: renaming.state[process.kind as usize][process.state as usize],
                    word,
                }
            })
            .collect();
        processes.sort();
        Element { named: element.named, memory, processes }
    }

    /// What an element requires of each identity that it names, as a number that renaming does not change.
    fn looks(&self, element: &Element) -> SmallVec<[u64; 8]> {
        let mut looks: SmallVec<[u64; 8]> = (0..=element.named).map(|_| 0).collect();
        let mix = |look: &mut u64, value: u64| {
            *look = (look.rotate_left(7) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        };
        for (cell, &mask) in element.memory.iter().enumerate() {
            let super::symmetry::Cell { owner, holds_identity, .. } = self.cells[cell];
            if owner > 0 && owner <= element.named {
                mix(&mut looks[owner as usize], mask);
            }
            if holds_identity {
                (1..=element.named).for_each(|id| mix(&mut looks[id as usize], mask >> id & 1));
            }
        }
        for process in &element.processes {
            let kind = &self.kinds[process.kind as usize];
            if kind.owner > 0 {
                mix(&mut looks[kind.owner as usize], kind.orbit[process.state as usize]);
                mix(&mut looks[kind.owner as usize], process.word.len() as u64);
            }
        }
        looks
    }

    /// The least renaming of an element, among those that sort its identities by their looks.
    pub fn canonical(&self, element: Element) -> Element {
        let looks = self.looks(&element);
        let mut least: Option<Element> = None;
        for &index in &self.fixing[element.named as usize] {
            let mut sorted: SmallVec<[u64; 8]> = looks.clone();
            (1..looks.len()).for_each(|id| {
                sorted[self.renamings[index].identity[id] as usize] = looks[id];
            });
            if !sorted[1..].is_sorted() {
                continue;
            }
            let renamed = self.rename(&element, &self.renamings[index]);
            if least.as_ref().is_none_or(|least| renamed < *least) {
                least = Some(renamed);
            }
        }
        least.expect("renaming nothing is a renaming")
    }

    /// The values that memory can hold, by the state of the cell's only writer. 0 if the writer is never in
    /// that state.
    pub fn possible(&self, element: &Element, cell: usize) -> u64 {
        match &self.holds[cell] {
            Holds::Anything => self.full[cell],
            Holds::Always(mask) => *mask,
            Holds::ByWriter(kind, masks) => {
                let writer = element.processes.iter().find(|process| process.kind == *kind);
                writer.map_or(self.full[cell], |writer| masks[writer.state as usize])
            }
        }
    }

    /// Whether `a` is below `b`: for every number of processes, each configuration of `b` is one of `a` up to
    /// renaming.
    pub fn below(&self, a: &Element, b: &Element) -> bool {
        if a.named > b.named || a.processes.len() > b.processes.len() {
            return false;
        }
        let ways = &self.into[a.named as usize][b.named as usize];
        ways.iter().any(|&index| self.below_renamed(a, &self.renamings[index], b))
    }

    fn below_renamed(&self, a: &Element, renaming: &Permutation, b: &Element) -> bool {
        let image = |id: u8| renaming.identity[id as usize];
        let rest: SmallVec<[u8; 8]> =
            (1..=b.named).filter(|&id| (1..=a.named).all(|named| image(named) != id)).collect();
        for process in &a.processes {
            let kind = renaming.kind[process.kind as usize];
            let state = renaming.state[process.kind as usize][process.state as usize];
            let Some(other) = b.processes.iter().find(|other| other.kind == kind && other.state == state)
            else {
                return false;
            };
            if process.word.len() > other.word.len()
                || !self.embeds(&process.word, renaming, a.named, &rest, &other.word)
            {
                return false;
            }
        }
        (0..a.memory.len()).all(|cell| {
            let of_a = a.memory[cell];
            if of_a == self.full[cell] {
                return true;
            }
            let super::symmetry::Cell { array, owner, .. } = self.cells[cell];
            let allows = |other: usize, mask: u64| b.memory[other] & self.possible(b, other) & !mask == 0;
            match array {
                Some(array) if owner == self.star => {
                    allows(cell, of_a) && rest.iter().all(|&id| allows(self.cell_of(array, id), of_a))
                }
                _ if owner > a.named => true,
                _ => {
                    let mask = self.wider(cell, of_a, renaming, &rest);
                    allows(renaming.cell[cell] as usize, mask)
                }
            }
        })
    }

    /// A mask of `a` after renaming. Identities that only `b` names are treated like star.
    fn wider(&self, cell: usize, mask: u64, renaming: &Permutation, rest: &[u8]) -> u64 {
        if !self.cells[cell].holds_identity {
            return mask;
        }
        let mut renamed = self.rename_mask(cell, mask, renaming);
        let star = mask >> self.star & 1;
        rest.iter().for_each(|&id| renamed = renamed & !(1 << id) | star << id);
        renamed
    }

    /// Whether the letters of a word map to those of another: later groups to strictly later ones, to letters of
    /// the same cell that allow no more values. A letter on star's cell also stands for the identities that
    /// only `b` names.
    fn embeds(&self, word: &Word, renaming: &Permutation, _named: u8, rest: &[u8], other: &Word) -> bool {
        let of_other = groups(other);
        let of_word = groups(word);
        // The group of `other` that the last letters mapped to, plus one.
        let (mut after, mut reached) = (0, 0);
        for (place, letter) in word.iter().enumerate() {
            if place > 0 && of_word[place] != of_word[place - 1] {
                after = reached;
            }
            let cell = letter.cell as usize;
            let mask = self.wider(cell, letter.mask, renaming, rest);
            let mut map = |cell: u16| {
                let found = other.iter().zip(&of_other).find(|(candidate, group)| {
                    **group >= after
                        && candidate.cell == cell
                        && candidate.own == letter.own
                        && candidate.mask & !mask == 0
                });
                found.is_some_and(|(_, &group)| {
                    reached = reached.max(group + 1);
                    true
                })
            };
            let super::symmetry::Cell { array, owner, .. } = self.cells[cell];
            if !map(renaming.cell[cell]) {
                return false;
            }
            if let Some(array) = array
                && owner == self.star
                && !rest.iter().all(|&id| map(self.cell_of(array, id) as u16))
            {
                return false;
            }
        }
        true
    }

    /// The states of the processes up to renaming, sorted.
    pub fn keys(&self, element: &Element) -> Vec<u64> {
        let orbit = |process: &Process| self.kinds[process.kind as usize].orbit[process.state as usize];
        let mut keys: Vec<u64> = element.processes.iter().map(orbit).collect();
        keys.sort_unstable();
        keys
    }

    /// Approximate memory of an element.
    pub fn bytes(&self, element: &Element) -> u64 {
        let words: usize = element.processes.iter().map(|process| 16 * process.word.len()).sum();
        let processes = size_of::<Process>() * element.processes.capacity();
        (size_of::<Element>() + processes + 8 * element.memory.len() + words) as u64
    }

    /// What an element weighs: smaller ones are expanded first.
    pub fn weight(&self, element: &Element) -> usize {
        let words: usize = element.processes.iter().map(|process| process.word.len()).sum();
        let known = element.memory.iter().zip(&self.full).filter(|(mask, full)| mask != full).count();
        words + 4 * element.processes.len() + known + 2 * element.named as usize
    }
}

/// Sorts the letters of each group.
pub(crate) fn sort_groups(word: &mut Word) {
    let mut start = 0;
    while start < word.len() {
        let mut end = start + 1;
        while end < word.len() && word[end].joined {
            end += 1;
        }
        if end > start + 1 {
            word[start..end].iter_mut().for_each(|letter| letter.joined = true);
            word[start..end].sort_unstable();
            word[start].joined = false;
        }
        start = end;
    }
}
