//! Elements: what they mean is in the header of [`super`]. Reading them, and the order between them.

use super::action::Image;
use super::cells::Mask;
use super::world::World;
use crate::{Missing, Refusal};
use palisade_engine::proof::{self, Named, SetLetter};
use palisade_program::Value;

/// A message with one of these values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Letter {
    pub own: bool,
    pub cell: u32,
    pub mask: Mask,
}

/// Groups of letters, newest first. The letters of a group are in any order.
pub(super) type Word = Vec<Vec<Letter>>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Process {
    pub kind: u32,
    pub state: u32,
    pub word: Word,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Element {
    /// How many identities it names: 1 to this number.
    pub named: u8,
    /// For each cell, the values of which it holds one. Cells of identities that are not named hold anything, except
    /// for those of star.
    pub memory: Vec<Mask>,
    /// At most one of each automaton, sorted.
    pub processes: Vec<Process>,
}

impl World<'_> {
    /// Any memory, no processes, and no identities.
    pub fn open(&self) -> Element {
        Element { named: 0, memory: self.full.clone(), processes: Vec::new() }
    }

    /// Whether an element that names this many identities can say something about a cell.
    fn is_visible(&self, cell: u32, named: u8) -> bool {
        let info = &self.cells[cell as usize];
        !info.every && (info.owner <= named || info.owner == self.star())
    }

    /// Whether a set treats all identities alike that are not named.
    fn is_even(&self, cell: u32, mask: Mask, named: u8) -> bool {
        let unnamed = (named + 1..=self.number).fold(0u64, |set, id| set | 1 << id);
        !self.cells[cell as usize].holds_identity || mask & unnamed == 0 || mask & unnamed == unnamed
    }

    /// Reads an element, and checks that it is well formed.
    pub fn read(&self, sets: &[Vec<Value>], element: &Named) -> Result<Element, Refusal> {
        let unfit = |what: &str| Refusal::Unfit(format!("an element {what}"));
        let named = u8::try_from(element.identities).ok().filter(|&named| named < self.number);
        let named = named.ok_or_else(|| unfit("names too many identities"))?;
        let mask = |cell: u32, set: u32| -> Result<Mask, Refusal> {
            let info =
                self.cells.get(cell as usize).ok_or_else(|| unfit("names a cell that does not exist"))?;
            let set = sets.get(set as usize).ok_or_else(|| unfit("names a set that does not exist"))?;
            let bits: Option<Mask> = set.iter().try_fold(0, |all, &value| Some(all | info.bit(value)?));
            let full = self.full[cell as usize];
            let mask = bits.filter(|mask| mask & !full == 0);
            let mask = mask.ok_or_else(|| unfit("names a value that a cell never has"))?;
            let visible = self.is_visible(cell, named) && self.is_even(cell, mask, named);
            // No value of star's cell: there is no process that is not named.
            match visible && (mask != 0 || self.is_star(cell)) {
                true => Ok(mask),
                false => Err(unfit("is about identities that it does not name, or about no value")),
            }
        };
        let mut found = Element { named, ..self.open() };
        for &(cell, set) in &element.memory {
            let mask = mask(cell, set)?;
            found.memory[cell as usize] &= mask;
        }
        for process in &element.processes {
            let owner = self.owner.get(process.kind as usize);
            let remembered = self.action.remembered.get(process.kind as usize);
            let remembered = remembered.and_then(|classes| classes.get(process.state as usize));
            let (Some(&owner), Some(&remembered)) = (owner, remembered) else {
                return Err(unfit("names a state that does not exist"));
            };
            if owner > named || remembered >> 1 >> named != 0 {
                return Err(unfit("has a process that is not named, or remembers one"));
            }
            let mut word: Word = Vec::new();
            for group in &process.word {
                let letter = |&SetLetter { own, cell, values }: &SetLetter| {
                    Ok::<Letter, Refusal>(Letter { own, cell, mask: mask(cell, values)? })
                };
                let mut group = group.iter().map(letter).collect::<Result<Vec<Letter>, Refusal>>()?;
                group.sort_unstable_by_key(|letter| letter.cell);
                let distinct = group.windows(2).all(|pair| pair[0].cell != pair[1].cell);
                let alone = group.len() == 1 || group.iter().all(|letter| !letter.own);
                // Letters on a cell are newer than the own letter on it.
                let newer = group.iter().all(|letter| {
                    let of_cell = word.iter().flatten().filter(|newer| newer.cell == letter.cell);
                    of_cell.clone().all(|newer| !newer.own)
                });
                let star = group.iter().any(|letter| letter.own && self.is_star(letter.cell));
                if group.is_empty() || !distinct || !alone || !newer || star {
                    return Err(unfit("has a word that is not well formed"));
                }
                word.push(group);
            }
            if found.processes.iter().any(|other| other.kind == process.kind) {
                return Err(unfit("has a process twice"));
            }
            found.processes.push(Process { kind: process.kind, state: process.state, word });
        }
        found.processes.sort();
        Ok(found)
    }

    /// An element in the form of a proof, with the sets that it names.
    pub fn missing(&self, element: &Element) -> Missing {
        let mut sets: Vec<Vec<Value>> = Vec::new();
        let mut set = |cell: u32, mask: Mask| -> u32 {
            let values = self.cells[cell as usize].values(mask);
            let place = sets.iter().position(|known| *known == values).unwrap_or_else(|| {
                sets.push(values);
                sets.len() - 1
            });
            place as u32
        };
        let mut memory = Vec::new();
        for (cell, &mask) in element.memory.iter().enumerate() {
            if mask != self.full[cell] {
                memory.push((cell as u32, set(cell as u32, mask)));
            }
        }
        let mut letter = |letter: &Letter| SetLetter {
            own: letter.own,
            cell: letter.cell,
            values: set(letter.cell, letter.mask),
        };
        let process = |process: &Process| proof::NamedProcess {
            kind: process.kind,
            state: process.state,
            word: process.word.iter().map(|group| group.iter().map(&mut letter).collect()).collect(),
        };
        let processes = element.processes.iter().map(process).collect();
        Missing::Identities(Named { identities: element.named.into(), memory, processes }, sets)
    }

    /// What memory can hold in a cell, given the element's processes.
    pub fn content(&self, element: &Element, cell: u32) -> Mask {
        let process = |process: &Process| crate::element::Process {
            kind: process.kind,
            state: process.state,
            word: Vec::new(),
        };
        let processes: Vec<crate::element::Process> = element.processes.iter().map(process).collect();
        let implied = self.implied(&processes, cell);
        element.memory[cell as usize] & implied.unwrap_or(self.full[cell as usize])
    }

    /// The same configurations as far as they satisfy the invariant, with what follows from it. `None` if there are
    /// none.
    pub fn narrowed(&self, element: &Element) -> Option<Element> {
        let mut narrowed = element.clone();
        for cell in 0..self.cells.len() as u32 {
            if self.is_visible(cell, element.named) {
                // Nothing is implied about star's cell: its writer is not one of the element's processes.
                let content = if self.is_star(cell) {
                    element.memory[cell as usize]
                } else {
                    self.content(element, cell)
                };
                narrowed.memory[cell as usize] = content;
                if content == 0 && !self.is_star(cell) {
                    return None;
                }
            }
        }
        for process in &mut narrowed.processes {
            for letter in process.word.iter_mut().flatten() {
                if letter.own {
                    letter.mask &= self.pending(process.kind, process.state, letter.cell);
                }
                if letter.mask == 0 && !self.is_star(letter.cell) {
                    return None;
                }
            }
        }
        narrowed.processes.sort();
        Some(narrowed)
    }

    /// The orbits of an element's processes, sorted. Those of an element below it are among them.
    pub fn keys(&self, element: &Element) -> Vec<u32> {
        let orbit = |process: &Process| self.orbit[process.kind as usize][process.state as usize];
        let mut keys: Vec<u32> = element.processes.iter().map(orbit).collect();
        keys.sort_unstable();
        keys
    }

    /// Whether every configuration of `b`, which is narrowed, is one of `a` if identities are renamed like this. The
    /// renaming maps the identities that `a` names to ones that `b` names.
    pub fn is_below(&self, a: &Element, image: &Image, b: &Element) -> bool {
        let mapped = |id: u8| (1..=a.named).any(|of_a| image.identity[of_a as usize] == id);
        let rest: Vec<u8> = (1..=b.named).filter(|&id| !mapped(id)).collect();
        let processes = a.processes.iter().all(|process| {
            let kind = image.kind[process.kind as usize];
            let state = image.class[process.kind as usize][process.state as usize];
            let mut others = b.processes.iter().filter(|other| (other.kind, other.state) == (kind, state));
            others.any(|other| self.embeds(a, &process.word, image, &rest, &other.word))
        });
        processes
            && (0..self.cells.len() as u32).filter(|&cell| self.is_visible(cell, a.named)).all(|cell| {
                let (mask, targets) = self.targets(a, (cell, a.memory[cell as usize]), image, &rest);
                targets.into_iter().all(|target| b.memory[target as usize] & !mask == 0)
            })
    }

    /// A requirement of `a` after renaming. For what only `b` names, the requirements on star count: the cells of these
    /// identities are among the targets, and a set has these identities if it has star.
    fn targets(
        &self,
        a: &Element,
        (cell, mask): (u32, Mask),
        image: &Image,
        rest: &[u8],
    ) -> (Mask, Vec<u32>) {
        let info = &self.cells[cell as usize];
        let mut renamed = self.rename_mask(cell, mask, image);
        if info.holds_identity {
            // What `a` does not name is treated alike. So it is enough to look at star.
            let unnamed = (1..=self.number)
                .filter(|id| !(1..=a.named).any(|of_a| image.identity[of_a as usize] == *id));
            let star = mask >> self.star() & 1;
            unnamed.for_each(|id| renamed = renamed & !(1 << id) | star << id);
        }
        match info.array {
            Some(array) if info.owner == self.star() => {
                let others = rest.iter().map(|&id| self.cell_of(array, id));
                (renamed, others.chain([cell]).collect())
            }
            _ => (renamed, vec![self.rename_cell(cell, image)]),
        }
    }

    /// Whether the letters of a word map to different ones of another on the same cells, which allow no more values:
    /// letters of one group to any groups, and letters of later groups to strictly later groups.
    fn embeds(&self, a: &Element, word: &Word, image: &Image, rest: &[u8], other: &Word) -> bool {
        let mut after = 0;
        for group in word {
            let mut reached = after;
            for letter in group {
                let (mask, targets) = self.targets(a, (letter.cell, letter.mask), image, rest);
                for target in targets {
                    let fits = |candidate: &Letter| {
                        (candidate.own, candidate.cell) == (letter.own, target) && candidate.mask & !mask == 0
                    };
                    let Some(place) = other.iter().skip(after).position(|group| group.iter().any(fits))
                    else {
                        return false;
                    };
                    reached = reached.max(after + place + 1);
                }
            }
            after = reached;
        }
        true
    }
}
