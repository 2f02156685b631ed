//! Undoing one instruction, together with the propagations that cannot have come before it. The rules are
//! those of the crate's header.
//!
//! Instructions are undone for one value at a time, although elements have sets of values. So each rule
//! follows from the definition of an element, and proofs with and without sets are checked alike.

use crate::element::{Config, Letter, Process};
use crate::flow::{Act, Edge, Flow, Limit};
use crate::invariant::Invariant;
use crate::values::Values;
use std::collections::BTreeSet;

/// For each cell, the values that processes which are not followed may write, and the others.
pub(crate) struct Free(Vec<(Values, Values)>);

impl Free {
    /// The values of these writes are free.
    pub fn new(flow: &Flow, written: &[(u32, u32)]) -> Free {
        let of_cell = |(cell, &count): (usize, &u32)| {
            let free: BTreeSet<u32> =
                written.iter().filter(|(of, _)| *of as usize == cell).map(|&(_, value)| value).collect();
            let others = (0..count).filter(|value| !free.contains(value));
            (Values::of(free.iter().copied()), Values::of(others))
        };
        Free(flow.values.iter().enumerate().map(of_cell).collect())
    }

    /// Those of the values that are free.
    fn free(&self, cell: u32, values: &Values) -> Values {
        values.and(&self.0[cell as usize].0)
    }

    /// Those of the values that are not.
    fn others(&self, cell: u32, values: &Values) -> Values {
        values.and(&self.0[cell as usize].1)
    }
}

/// Everything that predecessors depend on, except the element.
pub(crate) struct Undo<'a> {
    pub flow: &'a Flow,
    pub invariant: &'a Invariant,
    /// The number of processes of each automaton that are followed.
    pub limits: &'a [Limit],
    /// Cells and values that processes which are not followed may write.
    pub free: &'a Free,
}

impl Undo<'_> {
    /// The first process of the element such that the predecessors by this process alone suffice.
    pub fn postponable(&self, element: &Config) -> Option<usize> {
        element.processes.iter().position(|process| {
            self.flow.kinds[process.kind as usize].only_reads_into(process.state, process.word.is_empty())
        })
    }

    /// The predecessors by one process of the element.
    pub fn by(&self, element: &Config, actor: usize, give: &mut dyn FnMut(Config)) {
        let process = &element.processes[actor];
        let kind = &self.flow.kinds[process.kind as usize];
        for &number in &kind.into[process.state as usize] {
            let edge = &kind.edges[number];
            match edge.act {
                Act::Read(cell, value) => {
                    self.read(element, actor, edge, cell, value, give);
                    continue;
                }
                Act::Spawn(child) => {
                    let mut draft = element.clone();
                    if self.drop_all(&mut draft, actor) {
                        self.give_at(draft.clone(), actor, edge.source, give);
                        self.spawn(&draft, actor, child, edge.source, give);
                    }
                    continue;
                }
                _ => {}
            }
            self.with_effect(element, &edge.act.writes(), Some(actor), &mut |mut draft, _| {
                let undone = match &edge.act {
                    Act::Write(cell, value) => self.write(&mut draft, actor, *cell, *value),
                    Act::Fence => self.drop_all(&mut draft, actor),
                    Act::Locked { guard, effect } => {
                        self.drop_all(&mut draft, actor) && self.locked(&mut draft, guard, effect)
                    }
                    Act::Read(..) | Act::Spawn(_) => unreachable!("they are undone above"),
                };
                if undone {
                    self.give_at(draft, actor, edge.source, give);
                }
            });
        }
    }

    /// The predecessors by processes that the element does not name. Only writes of something that the
    /// element requires make a difference.
    pub fn by_others(&self, element: &Config, give: &mut dyn FnMut(Config)) {
        let known = element.memory.iter().enumerate();
        let known = known.filter_map(|(cell, values)| Some((cell as u32, values.as_ref()?)));
        // An older letter adds edges here, but no predecessors: `choose` drops no letter that is older than an
        // own one.
        let newest = |process: &'_ Process| process.word.iter().take_while(|letter| !letter.own).count();
        let plain = element.processes.iter().flat_map(|process| &process.word[..newest(process)]);
        let required = known.chain(plain.map(|letter| (letter.cell, &letter.values)));
        let wanted: BTreeSet<(u32, u32)> =
            required.flat_map(|(cell, values)| values.iter().map(move |value| (cell, value))).collect();
        let writers = wanted.iter().filter_map(|wanted| self.flow.writers.get(wanted));
        let edges: BTreeSet<(u32, usize)> = writers.flatten().copied().collect();
        for (number, edge) in edges {
            let edge = &self.flow.kinds[number as usize].edges[edge];
            let (guard, effect): (&[_], _) = match &edge.act {
                Act::Locked { guard, effect } => (guard, effect.clone()),
                act => (&[], act.writes()),
            };
            // Without either, the predecessor requires everything that the element does, so the element
            // itself is below it.
            let is_required = effect.iter().any(|&(cell, _)| element.memory[cell as usize].is_some());
            self.with_effect(element, &effect, None, &mut |mut draft, dropped| {
                if (is_required || dropped) && self.locked(&mut draft, guard, &effect) {
                    let actor = draft.processes.len();
                    let state = edge.target;
                    draft.processes.push(Process { kind: number, state, word: Vec::new() });
                    self.give_at(draft, actor, edge.source, give);
                }
            });
        }
    }

    /// The predecessors in which a named process did not exist yet, which the actor starts. Everything that is
    /// required of it was propagated since.
    fn spawn(&self, element: &Config, actor: usize, kind: u32, source: u32, give: &mut dyn FnMut(Config)) {
        for (child, process) in element.processes.iter().enumerate() {
            let is_start = &self.flow.kinds[kind as usize].is_start;
            if child == actor || process.kind != kind || !is_start[process.state as usize] {
                continue;
            }
            let mut draft = element.clone();
            if self.drop_all(&mut draft, child) {
                draft.processes.remove(child);
                let actor = if child < actor { actor - 1 } else { actor };
                self.give_at(draft, actor, source, give);
            }
        }
    }

    /// The predecessors by processes that the element does not name, which start one that it names.
    pub fn by_parents(&self, element: &Config, give: &mut dyn FnMut(Config)) {
        for (number, kind) in self.flow.kinds.iter().enumerate() {
            for edge in &kind.edges {
                if let Act::Spawn(child) = edge.act {
                    let mut draft = element.clone();
                    let parent = Process { kind: number as u32, state: edge.target, word: Vec::new() };
                    draft.processes.push(parent);
                    self.spawn(&draft, element.processes.len(), child, edge.source, give);
                }
            }
        }
    }

    /// The elements before free writes and the propagations after them.
    pub fn by_free_writes(&self, element: &Config, give: &mut dyn FnMut(Config)) {
        for (cell, values) in element.memory.iter().enumerate() {
            if values.as_ref().is_some_and(|values| !self.free.free(cell as u32, values).is_empty()) {
                let mut draft = element.clone();
                draft.memory[cell] = None;
                self.give(draft, give);
            }
        }
        for (index, process) in element.processes.iter().enumerate() {
            let plain = process.word.iter().take_while(|letter| !letter.own).enumerate();
            for (place, Letter { cell, values, .. }) in plain {
                let free = self.free.free(*cell, values);
                if free.is_empty() {
                    continue;
                }
                let mut draft = element.clone();
                if !self.drop_newest(&mut draft, index, place) {
                    break;
                }
                // After the write, memory holds its value.
                let held = self.invariant.memory(&draft, *cell);
                if held.is_none_or(|held| !held.and(&free).is_empty()) {
                    draft.processes[index].word.remove(0);
                    draft.memory[*cell as usize] = None;
                    self.give(draft, give);
                }
            }
        }
    }

    /// Whether propagations alone can lead from an initial configuration into the element. Memory does not
    /// change then, so all letters on a cell have its value. Free writes need no rule here:
    /// [`by_free_writes`](Undo::by_free_writes) gives the element without what they wrote, and an element
    /// below that is checked as well.
    pub fn is_initial(&self, element: &Config) -> bool {
        let at_start = |process: &Process| {
            self.flow.kinds[process.kind as usize].is_start[process.state as usize]
                && process.word.iter().all(|letter| !letter.own)
        };
        let initial = self.flow.initial.iter().map(|&count| Values::of(0..count));
        let mut memory: Vec<Values> = initial
            .zip(&element.memory)
            .map(|(initial, named)| named.as_ref().map_or(initial.clone(), |named| named.and(&initial)))
            .collect();
        for Letter { cell, values, .. } in element.processes.iter().flat_map(|process| &process.word) {
            memory[*cell as usize] = memory[*cell as usize].and(values);
        }
        let few = |(number, kind): (usize, &crate::flow::ProcessKind)| {
            let count = element.processes.iter().filter(|process| process.kind as usize == number).count();
            kind.initially.is_none_or(|most| count <= most as usize)
        };
        element.processes.iter().all(at_start)
            && self.flow.kinds.iter().enumerate().all(few)
            && memory.iter().all(|values| !values.is_empty())
    }

    fn read(
        &self,
        element: &Config,
        actor: usize,
        edge: &Edge,
        cell: u32,
        value: u32,
        give: &mut dyn FnMut(Config),
    ) {
        let word = &element.processes[actor].word;
        let with = |word: Vec<Letter>, give: &mut dyn FnMut(Config)| {
            let mut draft = element.clone();
            draft.processes[actor].word = word;
            self.give_at(draft, actor, edge.source, give);
        };
        let seen = |own: bool| Letter { own, cell, values: Values::one(value) };
        if let Some(own) = word.iter().position(|letter| letter.own && letter.cell == cell) {
            if word[own].values.has(value) {
                let mut word = word.clone();
                word[own] = seen(true);
                with(word, give);
            }
            return;
        }
        // The oldest message was read. If it is still required, it was not deleted. A value that is propagated
        // once can be propagated twice, so an older letter would only make words longer in that case.
        let mut longer = word.clone();
        match longer.last_mut() {
            Some(oldest) if !oldest.own && oldest.cell == cell && oldest.values.has(value) => {
                *oldest = seen(false);
            }
            _ => longer.push(seen(false)),
        }
        with(longer, give);
        // Or an own message, older than everything required on its cell.
        let first = word.iter().rposition(|letter| letter.cell == cell).map_or(0, |newer| newer + 1);
        for place in first..=word.len() {
            let mut longer = word.clone();
            longer.insert(place, seen(true));
            with(longer, give);
        }
    }

    fn write(&self, draft: &mut Config, actor: usize, cell: u32, value: u32) -> bool {
        let word = &draft.processes[actor].word;
        if let Some(oldest) = word.iter().rposition(|letter| letter.cell == cell) {
            let Letter { own, values, .. } = &word[oldest];
            let own = *own;
            // Everything newer than the own message was propagated since, and so was the last plain message
            // on the cell.
            let since = if own { oldest } else { oldest + 1 };
            // For a plain one without this value, `drop_newest` finds that memory does not hold it.
            if own && !values.has(value) || !self.drop_newest(draft, actor, since) {
                return false;
            }
            if own {
                draft.processes[actor].word.remove(0);
            }
        }
        draft.memory[cell as usize] = None;
        true
    }

    fn locked(&self, draft: &mut Config, guard: &[(u32, u32)], effect: &[(u32, u32)]) -> bool {
        let written = |cell: u32| effect.iter().any(|&(written, _)| written == cell);
        effect.iter().for_each(|&(cell, _)| draft.memory[cell as usize] = None);
        guard.iter().all(|&(cell, value)| {
            let held = written(cell) || self.require(draft, cell, &Values::one(value));
            // The value may follow from a process's state after the instruction without following from its
            // state before it.
            draft.memory[cell as usize] = Some(Values::one(value));
            held
        })
    }

    /// The element with memory as it is immediately after an instruction, for every choice of the
    /// propagations of its values that came after it, except those to the actor. Passes on whether there were
    /// any.
    fn with_effect(
        &self,
        element: &Config,
        effect: &[(u32, u32)],
        actor: Option<usize>,
        give: &mut dyn FnMut(Config, bool),
    ) {
        let mut draft = element.clone();
        if effect.iter().all(|&(cell, value)| self.require(&mut draft, cell, &Values::one(value))) {
            self.choose(draft, effect, actor, 0, false, give);
        }
    }

    fn choose(
        &self,
        draft: Config,
        effect: &[(u32, u32)],
        actor: Option<usize>,
        process: usize,
        dropped: bool,
        give: &mut dyn FnMut(Config, bool),
    ) {
        if process == draft.processes.len() {
            return give(draft, dropped);
        }
        if Some(process) != actor {
            let plain = draft.processes[process].word.iter().take_while(|letter| !letter.own);
            let passes_on = |letter: &Letter| {
                effect.iter().any(|&(cell, value)| letter.cell == cell && letter.values.has(value))
            };
            let places: Vec<usize> =
                plain.enumerate().filter(|(_, letter)| passes_on(letter)).map(|(place, _)| place).collect();
            for place in places {
                let mut draft = draft.clone();
                if self.drop_newest(&mut draft, process, place + 1) {
                    self.choose(draft, effect, actor, process + 1, true, give);
                }
            }
        }
        self.choose(draft, effect, actor, process + 1, dropped, give);
    }

    fn drop_all(&self, draft: &mut Config, process: usize) -> bool {
        let all = draft.processes[process].word.len();
        self.drop_newest(draft, process, all)
    }

    /// Undoes the propagation of the newest letters. Memory held their values. Free values are dropped by
    /// separate steps.
    fn drop_newest(&self, draft: &mut Config, process: usize, letters: usize) -> bool {
        let newest: Vec<Letter> = draft.processes[process].word.drain(..letters).collect();
        newest.iter().all(|letter| {
            let values = self.free.others(letter.cell, &letter.values);
            !letter.own && self.require(draft, letter.cell, &values)
        })
    }

    /// Requires that memory holds one of these values. False if that is impossible.
    fn require(&self, draft: &mut Config, cell: u32, values: &Values) -> bool {
        let named = &mut draft.memory[cell as usize];
        *named = Some(named.as_ref().map_or_else(|| values.clone(), |named| named.and(values)));
        self.invariant.memory(draft, cell).is_some_and(|held| !held.is_empty())
    }

    fn give_at(&self, mut draft: Config, actor: usize, source: u32, give: &mut dyn FnMut(Config)) {
        draft.processes[actor].state = source;
        self.give(draft, give);
    }

    /// Passes on what is possible of a predecessor.
    fn give(&self, draft: Config, give: &mut dyn FnMut(Config)) {
        if let Some(possible) = self.invariant.narrowed(&draft, self.limits) {
            give(possible);
        }
    }
}
