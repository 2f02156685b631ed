//! Undoing one instruction, together with the propagations that cannot have come before it. The rules are
//! those of the crate's header.

use crate::element::Config;
use crate::flow::{Act, Edge, Flow, Limit};
use crate::invariant::Invariant;
use palisade_engine::proof::{Message, Process};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Everything that predecessors depend on, except the element.
pub(crate) struct Undo<'a> {
    pub flow: &'a Flow,
    pub invariant: &'a Invariant,
    /// The number of processes of each automaton that are followed.
    pub limits: &'a [Limit],
    /// Cells and values that processes which are not followed may write.
    pub free: &'a FxHashSet<(u32, u32)>,
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
            if let Act::Read(cell, value) = edge.act {
                self.read(element, actor, edge, cell, value, give);
                continue;
            }
            self.with_effect(element, &edge.act.writes(), Some(actor), &mut |mut draft, _| {
                let undone = match &edge.act {
                    Act::Write(cell, value) => self.write(&mut draft, actor, *cell, *value),
                    Act::Fence => self.drop_all(&mut draft, actor),
                    Act::Locked { guard, effect } => {
                        self.drop_all(&mut draft, actor) && self.locked(&mut draft, guard, effect)
                    }
                    Act::Read(..) => unreachable!("reads are undone above"),
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
        let known =
            element.memory.iter().enumerate().filter_map(|(cell, value)| Some((cell as u32, (*value)?)));
        let plain = |process: &Process| -> Vec<(u32, u32)> {
            // An older letter adds edges here, but no predecessors: `choose` drops no letter that is older
            // than an own one.
            let newest = process.word.iter().take_while(|message| !message.own);
            newest.map(|message| (message.cell, message.value)).collect()
        };
        let wanted: BTreeSet<(u32, u32)> = known.chain(element.processes.iter().flat_map(plain)).collect();
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

    /// The elements before free writes and the propagations after them.
    pub fn by_free_writes(&self, element: &Config, give: &mut dyn FnMut(Config)) {
        for (cell, value) in element.memory.iter().enumerate() {
            if value.is_some_and(|value| self.free.contains(&(cell as u32, value))) {
                let mut draft = element.clone();
                draft.memory[cell] = None;
                give(draft);
            }
        }
        for (index, process) in element.processes.iter().enumerate() {
            let mut plain = process.word.iter().take_while(|message| !message.own);
            let Some(place) = plain.position(|message| self.free.contains(&(message.cell, message.value)))
            else {
                continue;
            };
            let mut draft = element.clone();
            if !self.drop_newest(&mut draft, index, place) {
                continue;
            }
            let cell = process.word[place].cell;
            if self.memory(&draft, cell).is_none() {
                draft.processes[index].word.remove(0);
                give(draft);
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
                && process.word.iter().all(|message| !message.own)
        };
        let mut memory = element.memory.clone();
        let agree = element
            .processes
            .iter()
            .flat_map(|process| &process.word)
            .all(|message| *memory[message.cell as usize].get_or_insert(message.value) == message.value);
        let mut cells = memory.iter().zip(&self.flow.initial);
        element.processes.iter().all(at_start)
            && agree
            && cells.all(|(value, &initial)| value.is_none_or(|value| value < initial))
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
        let with = |word: Vec<Message>, give: &mut dyn FnMut(Config)| {
            let mut draft = element.clone();
            draft.processes[actor].word = word;
            self.give_at(draft, actor, edge.source, give);
        };
        if let Some(own) = word.iter().find(|message| message.own && message.cell == cell) {
            if own.value == value {
                with(word.clone(), give);
            }
            return;
        }
        // The oldest message was read, and deleted unless it is still required.
        let plain = Message { own: false, cell, value };
        let mut longer = word.clone();
        // A value that is propagated once can be propagated twice, so a second letter would only make words
        // longer.
        if longer.last() != Some(&plain) {
            longer.push(plain);
        }
        with(longer, give);
        // Or an own message, older than everything required on its cell.
        let first = word.iter().rposition(|message| message.cell == cell).map_or(0, |newer| newer + 1);
        for place in first..=word.len() {
            let mut longer = word.clone();
            longer.insert(place, Message { own: true, cell, value });
            with(longer, give);
        }
    }

    fn write(&self, draft: &mut Config, actor: usize, cell: u32, value: u32) -> bool {
        let word = &draft.processes[actor].word;
        if let Some(oldest) = word.iter().rposition(|message| message.cell == cell) {
            let Message { own, value: required, .. } = word[oldest];
            // Everything newer than the own message was propagated since, and so was the last plain message
            // on the cell.
            let since = if own { oldest } else { oldest + 1 };
            // For a plain one with another value, `drop_newest` finds that memory does not hold it.
            if own && required != value || !self.drop_newest(draft, actor, since) {
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
            let held = written(cell) || self.require(draft, cell, value);
            // The value may follow from a process's state after the instruction without following from its
            // state before it.
            draft.memory[cell as usize] = Some(value);
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
        if effect.iter().all(|&(cell, value)| self.require(&mut draft, cell, value)) {
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
            let plain = draft.processes[process].word.iter().take_while(|message| !message.own);
            let passes_on = |message: &Message| effect.contains(&(message.cell, message.value));
            let places: Vec<usize> =
                plain.enumerate().filter(|(_, message)| passes_on(message)).map(|(place, _)| place).collect();
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

    /// Undoes the propagation of the newest letters. Memory held their values. Free letters are dropped by
    /// separate steps.
    fn drop_newest(&self, draft: &mut Config, process: usize, letters: usize) -> bool {
        let newest: Vec<Message> = draft.processes[process].word.drain(..letters).collect();
        newest.iter().all(|message| {
            !message.own
                && !self.free.contains(&(message.cell, message.value))
                && self.require(draft, message.cell, message.value)
        })
    }

    /// The value in memory, as far as it is known.
    fn memory(&self, draft: &Config, cell: u32) -> Option<u32> {
        draft.memory[cell as usize].or_else(|| self.invariant.implied(&draft.processes, cell))
    }

    fn require(&self, draft: &mut Config, cell: u32, value: u32) -> bool {
        match self.memory(draft, cell) {
            Some(held) => held == value,
            None => {
                draft.memory[cell as usize] = Some(value);
                self.invariant.allows(&draft.processes, cell, value)
            }
        }
    }

    fn give_at(&self, mut draft: Config, actor: usize, source: u32, give: &mut dyn FnMut(Config)) {
        draft.processes[actor].state = source;
        draft.processes.sort();
        if self.invariant.allows_all(&draft, self.limits) {
            give(draft);
        }
    }
}
