//! Undoing steps. The rules are those of `dual`; the header of [`super`] says what differs.

use super::element::{Element, Letter, Process, Word, groups, remove, sort_groups};
use super::setup::{Edge, Effect, Setup};
use palisade_base::limits;

/// Takes a predecessor. If a process has entered and there are too many now, also the predecessor without it.
pub(crate) type Give<'g> = &'g mut dyn FnMut(Element, Option<Element>);

/// `None` as soon as an element turns out to contain no reachable configuration.
type Possible = Option<()>;

impl Setup {
    /// Passes a sufficient set of predecessors to `give`.
    pub fn predecessors(&self, element: &Element, give: Give<'_>) {
        if let Some(alone) = self.alone(element) {
            self.undo_steps_of(element, alone, give);
            return;
        }
        for actor in 0..element.processes.len() {
            self.undo_steps_of(element, actor, give);
        }
        self.undo_writes_of_others(element, give);
    }

    /// A process whose last step can be moved to the end of the run.
    fn alone(&self, element: &Element) -> Option<usize> {
        element.processes.iter().position(|process| {
            let (kind, state) = (&self.kinds[process.kind as usize], process.state as usize);
            !kind.is_start[state]
                && (kind.only_reads[state] || process.word.is_empty() && kind.only_reads_and_fences[state])
        })
    }

    fn undo_steps_of(&self, element: &Element, actor: usize, give: Give<'_>) {
        let process = &element.processes[actor];
        let kind = &self.kinds[process.kind as usize];
        for &number in &kind.incoming[process.state as usize] {
            limits::checkpoint();
            let edge = &kind.edges[number];
            let Some(element) = self.naming(element, edge.names, kind.owner) else { continue };
            let mut finish = |draft: Element| self.finish(draft, actor, edge, give);
            match &edge.effect {
                Effect::Read(cell, mask) => {
                    let pending = kind.pending.get(&(edge.source, *cell)).copied().unwrap_or(0);
                    self.undo_read(&element, actor, *cell, *mask, pending, &mut finish);
                }
                Effect::Every(array, mask) => {
                    self.undo_every(element, actor, kind.owner, *array, *mask, &mut finish)
                }
                Effect::Write(cell, value) => {
                    self.with_value(element, *cell, *value, Some(actor), &mut |mut draft| {
                        if self.undo_own_write(&mut draft, actor, *cell, *value).is_some() {
                            finish(draft);
                        }
                    });
                }
                Effect::Fence => {
                    let mut draft = element;
                    if self.drop_all(&mut draft, actor).is_some() {
                        finish(draft);
                    }
                }
                Effect::Locked { guard, written } => {
                    self.with_values(element, written, Some(actor), &mut |mut draft| {
                        if self.drop_all(&mut draft, actor).is_some()
                            && self.undo_locked(&mut draft, guard, written).is_some()
                        {
                            finish(draft);
                        }
                    });
                }
            }
        }
    }

    /// The element with these identities named, if they are the next ones. `None` if they are not: then the
    /// same step with the next ones represents this one.
    fn naming(&self, element: &Element, names: u32, own: u8) -> Option<Element> {
        let all = names | if own > 0 { 1 << own } else { 0 };
        let last = u32::BITS - all.leading_zeros();
        let mut element = element.clone();
        if all == 0 || last - 1 <= u32::from(element.named) {
            return Some(element);
        }
        let last = (last - 1) as u8;
        let new = (all >> (element.named + 1)).count_ones() as u8;
        if element.named + new >= self.star {
            self.overflown.set(true);
            return None;
        }
        if last > element.named + new {
            return None;
        }
        // Exchanging identities that are not named changes nothing, so of those only the first order counts:
        // the process's own first.
        if own > element.named && own != element.named + 1 {
            return None;
        }
        while element.named < last {
            self.name_one(&mut element)?;
        }
        Some(element)
    }

    /// Names one more identity. It has what star has.
    fn name_one(&self, element: &mut Element) -> Possible {
        let new = element.named + 1;
        for cell in 0..self.cells.len() {
            let super::symmetry::Cell { array: Some(array), owner, .. } = self.cells[cell] else { continue };
            if owner == self.star {
                let mask = element.memory[cell];
                if mask == 0 {
                    return None;
                }
                element.memory[self.cell_of(array, new)] = mask;
            }
        }
        for process in &mut element.processes {
            let mut place = 0;
            while place < process.word.len() {
                let letter = process.word[place];
                let super::symmetry::Cell { array, owner, .. } = self.cells[letter.cell as usize];
                if let Some(array) = array
                    && owner == self.star
                {
                    if letter.mask == 0 {
                        return None;
                    }
                    let cell = self.cell_of(array, new) as u16;
                    process.word.insert(place + 1, Letter { cell, joined: true, ..letter });
                    place += 1;
                }
                place += 1;
            }
            sort_groups(&mut process.word);
        }
        element.named = new;
        Some(())
    }

    fn undo_read(
        &self,
        element: &Element,
        actor: usize,
        cell: u16,
        mask: u64,
        pending: u64,
        finish: &mut dyn FnMut(Element),
    ) {
        let word = &element.processes[actor].word;
        let narrowed = |place: usize, mask: u64| {
            let mut draft = element.clone();
            draft.processes[actor].word[place].mask = mask;
            draft
        };
        if let Some(own) = word.iter().position(|letter| letter.own && letter.cell == cell) {
            if word[own].mask & mask != 0 {
                finish(narrowed(own, word[own].mask & mask));
            }
            return;
        }
        let groups = groups(word);
        let oldest = word
            .iter()
            .zip(&groups)
            .rposition(|(letter, group)| letter.cell == cell && !letter.own && Some(group) == groups.last());
        let both = oldest.map(|place| word[place].mask & mask).filter(|&both| both != 0);
        if let (Some(place), Some(both)) = (oldest, both) {
            finish(narrowed(place, both));
        }
        if both.is_none_or(|both| both != mask && Some(both) != oldest.map(|place| word[place].mask)) {
            let mut draft = element.clone();
            draft.processes[actor].word.push(Letter { cell, own: false, joined: false, mask });
            finish(draft);
        }
        if pending & mask != 0 {
            let own = Letter { cell, own: true, joined: false, mask: pending & mask };
            self.insert_own(element, actor, own, finish);
        }
    }

    /// An own message older than all letters of its cell: one element for each place. In a group with star's
    /// letter, the letters of identities that are not named may be on both sides, so that letter is left out.
    fn insert_own(&self, element: &Element, actor: usize, own: Letter, finish: &mut dyn FnMut(Element)) {
        let word = &element.processes[actor].word;
        let of = groups(word);
        let last = word.iter().rposition(|letter| letter.cell == own.cell);
        let first_group = last.map_or(0, |place| of[place]);
        let count = of.last().map_or(0, |group| group + 1);
        for group in first_group..count.max(1) {
            let inside: Vec<usize> = (0..word.len()).filter(|&place| of[place] == group).collect();
            let kept: Vec<usize> =
                inside.iter().copied().filter(|&place| !self.is_star(word[place].cell)).collect();
            let has_star = kept.len() < inside.len();
            for newer in 0u32..1 << kept.len() {
                let is_newer = |place: usize| {
                    kept.iter().position(|&other| other == place).is_some_and(|index| newer >> index & 1 == 1)
                };
                // Letters of the same cell are newer.
                if kept.iter().any(|&place| word[place].cell == own.cell && !is_newer(place)) {
                    continue;
                }
                // Everything newer is the same as in front of the next group, unless this is the last one.
                if !has_star && kept.len() == newer.count_ones() as usize && group + 1 < count {
                    continue;
                }
                let mut changed = Word::new();
                changed.extend((0..word.len()).filter(|&place| of[place] < group).map(|place| word[place]));
                let mut add = |places: &mut dyn Iterator<Item = usize>| {
                    for (index, place) in places.enumerate() {
                        changed.push(Letter { joined: index > 0, ..word[place] });
                    }
                };
                add(&mut kept.iter().copied().filter(|&place| is_newer(place)));
                changed.push(own);
                let mut add = |places: &mut dyn Iterator<Item = usize>| {
                    for (index, place) in places.enumerate() {
                        changed.push(Letter { joined: index > 0, ..word[place] });
                    }
                };
                add(&mut kept.iter().copied().filter(|&place| !is_newer(place)));
                changed.extend((0..word.len()).filter(|&place| of[place] > group).map(|place| word[place]));
                let mut draft = element.clone();
                draft.processes[actor].word = changed;
                finish(draft);
            }
        }
    }

    pub fn is_star(&self, cell: u16) -> bool {
        let cell = self.cells[cell as usize];
        cell.array.is_some() && cell.owner == self.star
    }

    /// The cells of all others have been read: a group with a letter for each. A message that an oldest letter
    /// of the word requires may be the one that was read. If that letter allows fewer values, nothing is
    /// added, and if it allows some others, it is not narrowed either.
    fn undo_every(
        &self,
        mut draft: Element,
        actor: usize,
        own: u8,
        array: u32,
        mask: u64,
        finish: &mut dyn FnMut(Element),
    ) {
        let word = draft.processes[actor].word.clone();
        let of = groups(&word);
        let mut new = Word::new();
        for id in (1..=draft.named).chain([self.star]).filter(|&id| id != own) {
            let cell = self.cell_of(array, id);
            let mask = mask & self.full[cell];
            let oldest = word.iter().zip(&of).find(|(letter, group)| {
                letter.cell as usize == cell && !letter.own && Some(*group) == of.last()
            });
            if oldest.is_some_and(|(letter, _)| letter.mask & mask != 0) {
                continue;
            }
            if mask == 0 && id != self.star {
                return;
            }
            new.push(Letter { cell: cell as u16, own: false, joined: !new.is_empty(), mask });
        }
        sort_groups(&mut new);
        draft.processes[actor].word.extend(new);
        finish(draft);
    }

    fn undo_own_write(&self, draft: &mut Element, actor: usize, cell: u16, value: u64) -> Possible {
        let word = &draft.processes[actor].word;
        match word.iter().rposition(|letter| letter.cell == cell) {
            None => {}
            Some(last) if word[last].own => {
                if word[last].mask & value == 0 {
                    return None;
                }
                self.drop_newer(draft, actor, last)?;
                remove(&mut draft.processes[actor].word, 0);
            }
            Some(last) => self.drop_through_letter(draft, actor, last)?,
        }
        draft.memory[cell as usize] = self.full[cell as usize];
        Some(())
    }

    fn undo_locked(&self, draft: &mut Element, guard: &[(u16, u64)], written: &[(u16, u64)]) -> Possible {
        for &(cell, _) in written {
            draft.memory[cell as usize] = self.full[cell as usize];
        }
        for &(cell, mask) in guard {
            if written.iter().all(|&(other, _)| other != cell) {
                self.require(draft, cell, mask)?;
            }
            let content = &mut draft.memory[cell as usize];
            *content &= mask;
            if *content == 0 {
                return None;
            }
        }
        Some(())
    }

    /// Processes that the element does not mention enter by writing a value that the element requires.
    fn undo_writes_of_others(&self, element: &Element, give: Give<'_>) {
        if element.named + 1 >= self.star {
            self.overflown.set(true);
        }
        for (number, kind) in self.kinds.iter().enumerate() {
            if kind.owner > element.named + 1
                || kind.owner == self.star
                || element.processes.iter().any(|process| process.kind as usize == number)
            {
                continue;
            }
            for edge in &kind.edges {
                limits::checkpoint();
                let single;
                let (guard, written): (&[_], &[_]) = match &edge.effect {
                    Effect::Locked { guard, written } if !written.is_empty() => (guard, written),
                    Effect::Write(cell, value) => {
                        single = [(*cell, *value)];
                        (&[], &single)
                    }
                    _ => continue,
                };
                let Some(named) = self.naming(element, edge.enters, kind.owner) else { continue };
                let is_required =
                    written.iter().any(|&(cell, _)| named.memory[cell as usize] != self.full[cell as usize]);
                let before: usize = named.processes.iter().map(|process| process.word.len()).sum();
                self.with_values(named, written, None, &mut |mut draft| {
                    let after: usize = draft.processes.iter().map(|process| process.word.len()).sum();
                    if (is_required || after < before)
                        && self.undo_locked(&mut draft, guard, written).is_some()
                    {
                        let (kind, state) = (number as u8, edge.target);
                        draft.processes.push(Process { kind, state, word: Word::new() });
                        let actor = draft.processes.len() - 1;
                        self.finish(draft, actor, edge, give);
                    }
                });
            }
        }
    }

    /// Requires that memory holds one of these values. Star's cell may allow none: then there are no processes
    /// that are not named.
    fn require(&self, draft: &mut Element, cell: u16, mask: u64) -> Possible {
        let held = draft.memory[cell as usize] & self.possible(draft, cell as usize);
        if held & mask == 0 && !self.is_star(cell) {
            return None;
        }
        draft.memory[cell as usize] &= mask;
        Some(())
    }

    /// Undoes the propagation of the newest letter of a process at a place in its newest group.
    fn drop_one(&self, draft: &mut Element, actor: usize, place: usize) -> Possible {
        let letter = draft.processes[actor].word[place];
        if letter.own {
            return None;
        }
        self.require(draft, letter.cell, letter.mask)?;
        remove(&mut draft.processes[actor].word, place);
        Some(())
    }

    /// Drops all letters of groups that are newer than the letter's.
    fn drop_newer(&self, draft: &mut Element, actor: usize, place: usize) -> Possible {
        let of = groups(&draft.processes[actor].word);
        let newer = of.iter().filter(|group| **group < of[place]).count();
        (0..newer).try_for_each(|_| self.drop_one(draft, actor, 0))
    }

    /// The same, and the letter.
    fn drop_through_letter(&self, draft: &mut Element, actor: usize, place: usize) -> Possible {
        let before = draft.processes[actor].word.len();
        self.drop_newer(draft, actor, place)?;
        let dropped = before - draft.processes[actor].word.len();
        self.drop_one(draft, actor, place - dropped)
    }

    fn drop_all(&self, draft: &mut Element, actor: usize) -> Possible {
        let letters = draft.processes[actor].word.len();
        (0..letters).try_for_each(|_| self.drop_one(draft, actor, 0))
    }

    /// Undoes the propagation of newest letters that allow all values that memory can hold.
    pub fn drop_exposed(&self, draft: &mut Element) {
        for actor in 0..draft.processes.len() {
            loop {
                let word = &draft.processes[actor].word;
                let newest = 1 + word.iter().skip(1).take_while(|letter| letter.joined).count();
                let exposed = word.iter().take(newest).position(|letter| {
                    let held =
                        draft.memory[letter.cell as usize] & self.possible(draft, letter.cell as usize);
                    !letter.own && held & !letter.mask == 0
                });
                let Some(place) = exposed else { break };
                remove(&mut draft.processes[actor].word, place);
            }
        }
    }

    /// The element immediately after a write of this value: memory holds it, and letters that require it may
    /// have been propagated since. All ways to choose these letters, except for the writer's own.
    fn with_value(
        &self,
        mut draft: Element,
        cell: u16,
        value: u64,
        writer: Option<usize>,
        give: &mut dyn FnMut(Element),
    ) {
        if self.require(&mut draft, cell, value).is_some() {
            self.drop_exposed(&mut draft);
            self.drop_through(draft, (cell, value), 0, writer, give);
        }
    }

    fn with_values(
        &self,
        draft: Element,
        written: &[(u16, u64)],
        writer: Option<usize>,
        give: &mut dyn FnMut(Element),
    ) {
        match written.split_first() {
            None => give(draft),
            Some((&(cell, value), rest)) => self.with_value(draft, cell, value, writer, &mut |draft| {
                self.with_values(draft, rest, writer, give);
            }),
        }
    }

    fn drop_through(
        &self,
        draft: Element,
        (cell, value): (u16, u64),
        first: usize,
        writer: Option<usize>,
        give: &mut dyn FnMut(Element),
    ) {
        let Some(process) = (first..draft.processes.len()).find(|&process| Some(process) != writer) else {
            give(draft);
            return;
        };
        let word = &draft.processes[process].word;
        let plain = word.iter().take_while(|letter| !letter.own);
        let places: Vec<usize> = plain
            .enumerate()
            .filter(|(_, letter)| letter.cell == cell && letter.mask & value != 0)
            .map(|(place, _)| place)
            .collect();
        for place in places {
            let mut dropped = draft.clone();
            if self.drop_through_letter(&mut dropped, process, place).is_none() {
                break;
            }
            self.drop_exposed(&mut dropped);
            self.drop_through(dropped, (cell, value), process + 1, writer, give);
        }
        self.drop_through(draft, (cell, value), process + 1, writer, give);
    }

    /// Moves the actor to the start of the edge, and passes the predecessor on in normal form.
    fn finish(&self, draft: Element, actor: usize, edge: &Edge, give: Give<'_>) {
        let kind = draft.processes[actor].kind as usize;
        for &root in &self.kinds[kind].roots[edge.source as usize] {
            let mut draft = draft.clone();
            draft.processes[actor].state = root;
            let forgetful = match draft.processes.len() > self.most {
                true => self.without(&draft, actor),
                false => None,
            };
            if let Some(element) = self.normalised(draft) {
                give(element, forgetful);
            }
        }
    }
}
