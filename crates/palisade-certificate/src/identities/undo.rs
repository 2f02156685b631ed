//! Undoing one instruction, together with the propagations that cannot have come before it. The rules are those of the
//! header of [`super`].

use super::cells::Mask;
use super::element::{Element, Letter, Process, Word};
use super::world::{Edge, Effect, World};
use palisade_base::limits;

/// The letters of a group are split in all ways into those before and after something. Groups that are larger than this
/// are split in one way that stands for all of them: the result requires less.
const MAX_SPLIT: usize = 12;

/// A step would name all identities, so that none is left for the others.
pub(super) struct TooFew;

type Give<'g> = &'g mut dyn FnMut(Element);

impl World<'_> {
    /// Passes on predecessors that suffice.
    pub fn predecessors(&self, element: &Element, give: Give<'_>) -> Result<(), TooFew> {
        let postponable = element.processes.iter().position(|process| {
            let kind = &self.flow.kinds[process.kind as usize];
            kind.only_reads_into(process.state, process.word.is_empty())
        });
        if let Some(alone) = postponable {
            return self.undo_steps_of(element, alone, give);
        }
        (0..element.processes.len()).try_for_each(|actor| self.undo_steps_of(element, actor, give))?;
        self.undo_writes_of_others(element, give)
    }

    /// The element with the identities named that an edge involves. `None` if others than the next ones would be
    /// named: then the same edge with the next ones stands for it.
    fn naming(&self, element: &Element, involved: u32) -> Result<Option<Element>, TooFew> {
        let new = involved >> 1 >> element.named;
        let count = new.count_ones();
        if u32::from(element.named) + count >= u32::from(self.number) {
            return Err(TooFew);
        }
        if new != (1 << count) - 1 {
            return Ok(None);
        }
        let mut named = element.clone();
        for _ in 0..count {
            if !self.name_one(&mut named) {
                return Ok(None);
            }
        }
        Ok(Some(named))
    }

    /// Names one more identity, which has what star has. False if there is no such process.
    fn name_one(&self, element: &mut Element) -> bool {
        element.named += 1;
        let new = element.named;
        for cell in (0..self.cells.len() as u32).filter(|&cell| self.is_star(cell)) {
            let array = self.cells[cell as usize].array.expect("star's cells are in arrays");
            let mask = element.memory[cell as usize];
            element.memory[self.cell_of(array, new) as usize] = mask;
            if mask == 0 {
                return false;
            }
        }
        for group in element.processes.iter_mut().flat_map(|process| &mut process.word) {
            let of_star: Vec<Letter> = group.iter().copied().filter(|l| self.is_star(l.cell)).collect();
            for letter in of_star {
                let array = self.cells[letter.cell as usize].array.expect("star's cells are in arrays");
                group.push(Letter { cell: self.cell_of(array, new), ..letter });
                if letter.mask == 0 {
                    return false;
                }
            }
        }
        true
    }

    fn undo_steps_of(&self, element: &Element, actor: usize, give: Give<'_>) -> Result<(), TooFew> {
        let process = &element.processes[actor];
        for &number in &self.into[process.kind as usize][process.state as usize] {
            limits::checkpoint();
            let edge = &self.edges[process.kind as usize][number];
            let involved = self.involved(process.kind as usize, edge);
            let Some(named) = self.naming(element, involved)? else { continue };
            self.undo(&named, actor, edge, give);
        }
        Ok(())
    }

    fn undo(&self, element: &Element, actor: usize, edge: &Edge, give: Give<'_>) {
        let mut finish = |mut draft: Element| {
            draft.processes[actor].state = edge.source;
            if let Some(possible) = self.narrowed(&draft) {
                give(possible);
            }
        };
        match &edge.effect {
            Effect::Read(cell, mask) => self.undo_read(element, actor, *cell, *mask, &mut finish),
            Effect::Every(array, mask) => self.undo_every(element, actor, *array, *mask, &mut finish),
            Effect::Write(cell, value) => {
                self.after_write(element, &[(*cell, *value)], Some(actor), &mut |mut draft, _| {
                    if self.undo_own_write(&mut draft, actor, *cell, *value) {
                        finish(draft);
                    }
                });
            }
            Effect::Fence => {
                let mut draft = element.clone();
                if self.drop_groups(&mut draft, actor, usize::MAX) {
                    finish(draft);
                }
            }
            Effect::Locked { guard, written } => {
                self.after_write(element, written, Some(actor), &mut |mut draft, _| {
                    if self.drop_groups(&mut draft, actor, usize::MAX)
                        && self.undo_locked(&mut draft, guard, written)
                    {
                        finish(draft);
                    }
                });
            }
        }
    }

    /// Processes that the element does not mention matter only by writing a value that it requires. Otherwise, the
    /// predecessor requires everything that the element does.
    fn undo_writes_of_others(&self, element: &Element, give: Give<'_>) -> Result<(), TooFew> {
        for kind in 0..self.edges.len() {
            if element.processes.iter().any(|process| process.kind as usize == kind) {
                continue;
            }
            for edge in &self.edges[kind] {
                limits::checkpoint();
                let single;
                let (guard, written): (&[_], &[_]) = match &edge.effect {
                    Effect::Locked { guard, written } => (guard, written),
                    Effect::Write(cell, value) => {
                        single = [(*cell, *value)];
                        (&[], &single)
                    }
                    Effect::Read(..) | Effect::Every(..) | Effect::Fence => continue,
                };
                if written.is_empty() {
                    continue;
                }
                let Some(named) = self.naming(element, self.involved_before(kind, edge))? else { continue };
                let full = |cell: u32| named.memory[cell as usize] == self.full[cell as usize];
                let is_required = written.iter().any(|&(cell, _)| !full(cell));
                self.after_write(&named, written, None, &mut |mut draft, dropped| {
                    if (is_required || dropped) && self.undo_locked(&mut draft, guard, written) {
                        let process = Process { kind: kind as u32, state: edge.source, word: Vec::new() };
                        draft.processes.push(process);
                        if let Some(possible) = self.narrowed(&draft) {
                            give(possible);
                        }
                    }
                });
            }
        }
        Ok(())
    }

    fn undo_read(
        &self,
        element: &Element,
        actor: usize,
        cell: u32,
        mask: Mask,
        finish: &mut dyn FnMut(Element),
    ) {
        let word = &element.processes[actor].word;
        let mut with = |word: Word| {
            let mut draft = element.clone();
            draft.processes[actor].word = word;
            finish(draft);
        };
        let of_cell = |place: usize| word[place].iter().position(|letter| letter.cell == cell);
        let narrowed = |place: usize, letter: usize| {
            let mut word = word.clone();
            word[place][letter].mask &= mask;
            (word[place][letter].mask != 0).then_some(word)
        };
        let own =
            (0..word.len()).find_map(|place| Some((place, of_cell(place)?)).filter(|&(p, l)| word[p][l].own));
        if let Some((place, letter)) = own {
            // The newest own message on the cell.
            narrowed(place, letter).into_iter().for_each(with);
            return;
        }
        // The oldest message of the buffer: one that is required, or an older one.
        if let Some(last) = word.len().checked_sub(1)
            && let Some(letter) = of_cell(last)
        {
            narrowed(last, letter).into_iter().for_each(&mut with);
        }
        let mut longer = word.clone();
        longer.push(vec![Letter { own: false, cell, mask }]);
        with(longer);
        // Or an own message, older than all that is required on its cell.
        let own = Letter { own: true, cell, mask };
        let first = (0..word.len()).rev().find(|&place| of_cell(place).is_some());
        for place in first.map_or(0, |place| place + 1)..=word.len() {
            let mut longer = word.clone();
            longer.insert(place, vec![own]);
            with(longer);
        }
        for place in first.unwrap_or(0)..word.len() {
            // In the middle of a group. Star's letters may be on both sides, so they are left out.
            let star = |letter: &Letter| self.is_star(letter.cell);
            let kept: Vec<Letter> = word[place].iter().copied().filter(|letter| !star(letter)).collect();
            if kept.len() > MAX_SPLIT {
                // An element that requires less than every way to split the group.
                let mut longer = word.clone();
                longer[place] = vec![own];
                with(longer);
                continue;
            }
            for newer in 0u64..1 << kept.len() {
                let pick = |side: u64| -> Vec<Letter> {
                    let there = kept.iter().enumerate().filter(|(index, _)| newer >> index & 1 == side);
                    there.map(|(_, letter)| *letter).collect()
                };
                let (newer, older) = (pick(1), pick(0));
                if older.iter().any(|letter| letter.cell == cell) {
                    continue;
                }
                let middle = [newer, vec![own], older].into_iter().filter(|group| !group.is_empty());
                let mut longer = word.clone();
                longer.splice(place..=place, middle);
                with(longer);
            }
        }
    }

    /// The cells of all others were read. The oldest messages that are required may be those that were read.
    fn undo_every(
        &self,
        element: &Element,
        actor: usize,
        array: u32,
        mask: Mask,
        finish: &mut dyn FnMut(Element),
    ) {
        let mut draft = element.clone();
        let process = &mut draft.processes[actor];
        let own = self.owner[process.kind as usize];
        let mut group = Vec::new();
        for id in (1..=element.named).filter(|&id| id != own).chain([self.star()]) {
            let cell = self.cell_of(array, id);
            let mask = mask & self.full[cell as usize];
            let oldest = process.word.last().into_iter().flatten();
            let mut same = oldest.filter(|letter| !letter.own && letter.cell == cell);
            if same.any(|letter| letter.mask & mask != 0) {
                continue;
            }
            if mask == 0 && id != self.star() {
                return;
            }
            group.push(Letter { own: false, cell, mask });
        }
        if !group.is_empty() {
            process.word.push(group);
        }
        finish(draft);
    }

    fn undo_own_write(&self, draft: &mut Element, actor: usize, cell: u32, value: Mask) -> bool {
        let word = &draft.processes[actor].word;
        let oldest = word.iter().rposition(|group| group.iter().any(|letter| letter.cell == cell));
        if let Some(place) = oldest {
            let letter = word[place].iter().find(|letter| letter.cell == cell).copied().expect("it is there");
            if letter.own && letter.mask & value == 0 || !self.drop_groups(draft, actor, place) {
                return false;
            }
            // Everything newer than the own message was propagated since, and so was the last plain message on the
            // cell.
            if !letter.own && !self.require(draft, cell, letter.mask) {
                return false;
            }
            remove(&mut draft.processes[actor].word, 0, |letter| letter.cell == cell);
        }
        draft.memory[cell as usize] = self.full[cell as usize];
        true
    }

    fn undo_locked(&self, draft: &mut Element, guard: &[(u32, Mask)], written: &[(u32, Mask)]) -> bool {
        for &(cell, _) in written {
            draft.memory[cell as usize] = self.full[cell as usize];
        }
        guard.iter().all(|&(cell, mask)| {
            if written.iter().any(|&(of, _)| of == cell) {
                draft.memory[cell as usize] = mask;
                return true;
            }
            self.require(draft, cell, mask)
        })
    }

    /// The element immediately after a write, for every choice of the letters that were propagated from it since,
    /// except those of the writer. Passes on whether there were any.
    fn after_write(
        &self,
        element: &Element,
        written: &[(u32, Mask)],
        writer: Option<usize>,
        give: &mut dyn FnMut(Element, bool),
    ) {
        let mut draft = element.clone();
        if written.iter().all(|&(cell, value)| self.require(&mut draft, cell, value)) {
            self.choose(draft, written, writer, 0, false, give);
        }
    }

    fn choose(
        &self,
        draft: Element,
        written: &[(u32, Mask)],
        writer: Option<usize>,
        process: usize,
        dropped: bool,
        give: &mut dyn FnMut(Element, bool),
    ) {
        if process == draft.processes.len() {
            return give(draft, dropped);
        }
        if Some(process) != writer {
            let word = &draft.processes[process].word;
            let plain = word.iter().take_while(|group| group.iter().all(|letter| !letter.own)).count();
            let from_it = |letter: &Letter| {
                written.iter().any(|&(cell, value)| letter.cell == cell && letter.mask & value != 0)
            };
            for place in 0..plain {
                let letters: Vec<Letter> = word[place].iter().copied().filter(from_it).collect();
                if letters.len() > MAX_SPLIT {
                    // An element that requires less than every choice of letters.
                    let mut draft = draft.clone();
                    if self.drop_groups(&mut draft, process, place) {
                        remove(&mut draft.processes[process].word, 0, from_it);
                        self.choose(draft, written, writer, process + 1, true, give);
                    }
                    continue;
                }
                // The oldest group from which letters were propagated, and these letters.
                for chosen in 1u64..1 << letters.len() {
                    let chosen: Vec<u32> = (0..letters.len())
                        .filter(|index| chosen >> index & 1 == 1)
                        .map(|index| letters[index].cell)
                        .collect();
                    let mut draft = draft.clone();
                    let required = letters.iter().filter(|letter| chosen.contains(&letter.cell));
                    if self.drop_groups(&mut draft, process, place)
                        && required.clone().all(|letter| self.require(&mut draft, letter.cell, letter.mask))
                    {
                        let word = &mut draft.processes[process].word;
                        remove(word, 0, |letter| chosen.contains(&letter.cell));
                        self.choose(draft, written, writer, process + 1, true, give);
                    }
                }
            }
        }
        self.choose(draft, written, writer, process + 1, dropped, give);
    }

    /// Undoes the propagation of the newest groups. Memory held their values.
    fn drop_groups(&self, draft: &mut Element, process: usize, groups: usize) -> bool {
        let word = &mut draft.processes[process].word;
        let newest: Vec<Letter> = word.drain(..groups.min(word.len())).flatten().collect();
        newest.iter().all(|letter| !letter.own && self.require(draft, letter.cell, letter.mask))
    }

    /// Requires that memory holds one of these values. False if that is impossible. If it is for star's cell, there is
    /// no process that is not named.
    fn require(&self, draft: &mut Element, cell: u32, mask: Mask) -> bool {
        draft.memory[cell as usize] &= mask;
        self.is_star(cell) || self.content(draft, cell) != 0
    }
}

/// Removes letters of a group, and the group if it is empty then.
fn remove(word: &mut Word, place: usize, removed: impl Fn(&Letter) -> bool) {
    word[place].retain(|letter| !removed(letter));
    if word[place].is_empty() {
        word.remove(place);
    }
}
