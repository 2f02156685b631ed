//! The normal form of elements, forgetting, and initial elements. The header of [`super`] says what these mean.

use super::element::{Element, Letter, Process, groups, remove, sort_groups};
use super::setup::Setup;

impl Setup {
    /// The normal form, in which what follows from the invariants is not mentioned. `None` if no reachable
    /// configuration is in the element.
    pub fn normalised(&self, mut draft: Element) -> Option<Element> {
        for process in &mut draft.processes {
            let kind = &self.kinds[process.kind as usize];
            for letter in process.word.iter_mut().filter(|letter| letter.own) {
                let pending = kind.pending.get(&(process.state, letter.cell)).copied().unwrap_or(0);
                if letter.mask & pending == 0 {
                    return None;
                }
                letter.mask |= self.full[letter.cell as usize] & !pending;
            }
        }
        self.drop_exposed(&mut draft);
        for cell in 0..draft.memory.len() {
            let super::symmetry::Cell { owner, every, .. } = self.cells[cell];
            if every || owner > draft.named && owner < self.star {
                draft.memory[cell] = self.full[cell];
                continue;
            }
            let possible = self.possible(&draft, cell);
            if draft.memory[cell] & possible == 0 && owner != self.star {
                return None;
            }
            draft.memory[cell] |= self.full[cell] & !possible;
        }
        self.even_out(&mut draft);
        while draft.named as usize > self.most + 2 || self.has_superfluous(&draft) {
            let superfluous = (1..=draft.named).rev().find(|&id| self.is_superfluous(&draft, id));
            let unused = || (1..=draft.named).rev().find(|&id| !self.is_used(&draft, id));
            let Some(id) = superfluous.or_else(unused) else { break };
            draft = self.forget(draft, id);
        }
        if draft.named + 2 > self.star && !(1..=draft.named).all(|id| self.is_used(&draft, id)) {
            let id =
                (1..=draft.named).rev().find(|&id| !self.is_used(&draft, id)).expect("some id is not used");
            draft = self.forget(draft, id);
        }
        for process in &mut draft.processes {
            sort_groups(&mut process.word);
        }
        draft.processes.sort();
        Some(self.canonical(draft))
    }

    /// The element with one process forgotten.
    pub fn without(&self, element: &Element, process: usize) -> Option<Element> {
        let mut draft = element.clone();
        // What follows from the process's state is mentioned from now on.
        for cell in (0..draft.memory.len()).filter(|&cell| !self.is_star(cell as u16)) {
            draft.memory[cell] &= self.possible(element, cell);
        }
        draft.processes.remove(process);
        self.normalised(draft)
    }

    /// Sets treat all identities that are not named alike. Where they do not, they allow all of them.
    fn even_out(&self, draft: &mut Element) {
        let unnamed = (draft.named + 1..=self.star).fold(0u64, |set, id| set | 1 << id);
        let even = |mask: u64| if mask & unnamed == 0 { mask } else { mask | unnamed };
        for cell in (0..draft.memory.len()).filter(|&cell| self.cells[cell].holds_identity) {
            draft.memory[cell] = even(draft.memory[cell]) & self.full[cell];
        }
        for letter in draft.processes.iter_mut().flat_map(|process| &mut process.word) {
            if self.cells[letter.cell as usize].holds_identity {
                letter.mask = even(letter.mask) & self.full[letter.cell as usize];
            }
        }
    }

    /// Whether a process of the element has the identity, or its state names it.
    fn is_used(&self, element: &Element, id: u8) -> bool {
        element.processes.iter().any(|process| {
            let kind = &self.kinds[process.kind as usize];
            kind.owner == id || kind.names[process.state as usize] >> id & 1 == 1
        })
    }

    fn has_superfluous(&self, element: &Element) -> bool {
        (1..=element.named).any(|id| self.is_superfluous(element, id))
    }

    /// Whether an identity has exactly what star has.
    fn is_superfluous(&self, element: &Element, id: u8) -> bool {
        if self.is_used(element, id) {
            return false;
        }
        let alike = |cell: usize, mask: u64| {
            !self.cells[cell].holds_identity || mask >> id & 1 == mask >> self.star & 1
        };
        let star_cell = |cell: usize| self.cells[cell].array.map(|array| self.cell_of(array, self.star));
        let memory = (0..element.memory.len()).all(|cell| {
            let owned = self.cells[cell].owner == id;
            alike(cell, element.memory[cell])
                && (!owned || star_cell(cell).is_none_or(|star| element.memory[cell] == element.memory[star]))
        });
        memory
            && element.processes.iter().all(|process| {
                let of = groups(&process.word);
                let of_owner = |owner: u8| {
                    let letters = process.word.iter().zip(&of);
                    let letters = letters.filter(move |(letter, _)| {
                        let cell = self.cells[letter.cell as usize];
                        cell.array.is_some() && cell.owner == owner
                    });
                    letters.map(|(letter, group)| {
                        (self.cells[letter.cell as usize].array, letter.own, letter.mask, *group)
                    })
                };
                let word: Vec<_> = of_owner(id).collect();
                let star: Vec<_> = of_owner(self.star).collect();
                word.len() == star.len()
                    && word.iter().all(|letter| star.contains(letter))
                    && process.word.iter().all(|letter| alike(letter.cell as usize, letter.mask))
            })
    }

    /// Forgets an identity that no process has or remembers. From then on star stands for it as well, so star
    /// requires only what both did.
    fn forget(&self, mut draft: Element, id: u8) -> Element {
        let last = draft.named;
        if id != last {
            let mut of_rank = self.fixing[last as usize].iter().map(|&index| &self.renamings[index]);
            let renaming = of_rank.find(|renaming| {
                (1..=last).all(|other| {
                    let image = if other == id {
                        last
                    } else if other == last {
                        id
                    } else {
                        other
                    };
                    renaming.identity[other as usize] == image
                })
            });
            draft = self.rename(&draft, renaming.expect("exchanges are renamings"));
        }
        for cell in 0..draft.memory.len() {
            let super::symmetry::Cell { array: Some(array), owner, .. } = self.cells[cell] else { continue };
            if owner == last {
                let star = self.cell_of(array, self.star);
                draft.memory[star] |= draft.memory[cell];
                draft.memory[cell] = self.full[cell];
            }
        }
        for process in &mut draft.processes {
            let of = groups(&process.word);
            let weakened: Vec<Option<Letter>> = process
                .word
                .iter()
                .zip(&of)
                .map(|(letter, group)| {
                    let super::symmetry::Cell { array, owner, .. } = self.cells[letter.cell as usize];
                    let Some(array) = array else { return Some(*letter) };
                    if owner == last {
                        return None;
                    }
                    if owner != self.star {
                        return Some(*letter);
                    }
                    let cell = self.cell_of(array, last) as u16;
                    let twin =
                        process.word.iter().zip(&of).find(|(other, of)| {
                            other.cell == cell && *of == group && other.own == letter.own
                        });
                    twin.map(|(twin, _)| Letter { mask: letter.mask | twin.mask, ..*letter })
                })
                .collect();
            for place in (0..weakened.len()).rev() {
                match weakened[place] {
                    Some(letter) => process.word[place].mask = letter.mask,
                    None => {
                        remove(&mut process.word, place);
                    }
                }
            }
        }
        draft.named -= 1;
        self.even_out(&mut draft);
        draft
    }

    /// The smallest number of processes with which the element contains an initial configuration.
    ///
    /// With as many processes as it names there are no others, and star's requirements do not matter. With one
    /// more, that one meets star's requirements, and cells may hold its identity. Further ones add nothing.
    pub fn initial_with(&self, element: &Element) -> Option<u32> {
        let at_start = |process: &Process| self.kinds[process.kind as usize].is_start[process.state as usize];
        if !element.processes.iter().all(at_start) {
            return None;
        }
        let mut memory: Vec<u64> =
            element.memory.iter().zip(&self.initial).map(|(mask, initial)| mask & initial).collect();
        for letter in element.processes.iter().flat_map(|process| &process.word) {
            if letter.own {
                return None;
            }
            memory[letter.cell as usize] &= letter.mask;
        }
        let possible = |with_others: bool| {
            memory.iter().enumerate().all(|(cell, &mask)| {
                let super::symmetry::Cell { owner, every, holds_identity, .. } = self.cells[cell];
                let exists = !every && (owner <= element.named || with_others && owner == self.star);
                let mask = match holds_identity && !with_others {
                    true => mask & ((2u64 << element.named) - 1),
                    false => mask,
                };
                !exists || mask != 0
            })
        };
        match element.named > 0 && possible(false) {
            true => Some(element.named.into()),
            false => possible(true).then_some(u32::from(element.named) + 1),
        }
    }
}
