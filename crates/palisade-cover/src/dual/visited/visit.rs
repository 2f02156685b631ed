//! A visit of all configurations that a program can reach, with more messages in buffers than there can be.
//!
//! *Problem.* In the load-buffer semantics, reads only look at the buffer of their process. If all of them are interleaved with
//! the steps of others, there are many configurations that differ only in how far processes have read.
//!
//! *Method.* A configuration says where each process was after its last write, fence or locked instruction, and what memory
//! holds. For each process, it also has the messages that its buffer may have held since then: the values that cells had since
//! its last fence, as plain messages, and the values that it stored since then, as own ones. From its place, the process may
//! have read on as far as these messages allow. Steps that lead to one configuration with different messages are joined, and
//! what has become possible is visited again, until nothing changes.
//!
//! *Guarantee.* All reachable configurations are covered. A message in a buffer was a value of its cell, or a store of the
//! process, since the last fence of the process. Only what a process cannot read any more is taken away: all messages at a fence,
//! and at a store those on the same cell, which are older than it. Messages have no order here, and those of different runs are
//! joined, so configurations that no run reaches may be covered as well.

use super::super::element::{Element, View};
use super::super::setup::Setup;
use crate::facts::writes;
use crate::values::SetId;
use hashbrown::HashTable;
use palisade_automata::{Letter, Population, StateId, ValueId};
use palisade_base::{Id, IdVec, limits};
use palisade_program::running::CellId;
use rustc_hash::FxHasher;
use std::collections::VecDeque;
use std::hash::Hasher;
use std::ops::Range;

/// With more words for the messages of all configurations together than this, nothing is visited.
const MAX_MESSAGE_WORDS: usize = 1 << 23;

/// A visit may take this many steps for each configuration that it may have, reads included. About half of it is usual.
const MAX_STEPS_EACH: usize = 64;

/// Whether there is room for this many bytes.
pub(super) type HasRoom<'a> = dyn Fn(u64) -> bool + 'a;

/// Why there is no visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoVisit {
    /// There are too many configurations, or there is no room for them.
    TooLarge,
    /// It would not help, whatever its size.
    Useless,
}

/// The configurations of a visit.
pub(super) struct Visit<'s> {
    setup: &'s Setup,
    /// The kind of each process.
    pub kinds: Vec<u32>,
    /// The edges of each kind by their sources, one for each value.
    outgoing: Vec<IdVec<StateId, Vec<usize>>>,
    /// For each configuration, the states of the processes, then the values of the cells.
    configurations: Vec<u16>,
    /// Hashes of configurations, with their numbers.
    numbers: HashTable<(u32, u32)>,
    layout: Layout,
    /// For each configuration, bits for the messages that may be there.
    messages: Vec<u64>,
    /// Configurations whose steps are to be found, because they or their messages are new.
    work: VecDeque<u32>,
    waits: Vec<bool>,
    /// Bad elements in which there is no configuration so far.
    unmet: Vec<&'s Element>,
    /// Steps that were looked at.
    steps: usize,
}

/// The bits of messages: for each process, plain ones and then own ones, by cells and values.
struct Layout {
    /// The first value of each cell.
    first: IdVec<CellId, usize>,
    values: usize,
    words: usize,
}

impl Layout {
    fn bit(&self, process: usize, own: bool, cell: CellId, value: ValueId) -> usize {
        (2 * process + usize::from(own)) * self.values + self.first[cell] + value.index()
    }
}

/// A message that may be in a buffer.
pub(super) struct Message {
    pub process: usize,
    pub own: bool,
    pub cell: CellId,
    pub value: ValueId,
}

impl<'s> Visit<'s> {
    /// Visits a program with a fixed number of processes, if there are at most so many configurations, and room for them.
    /// A visit is useless if every bad element has a configuration that it covers.
    pub fn new(
        setup: &'s Setup,
        bad: &'s [Element],
        most: usize,
        has_room: &HasRoom<'_>,
    ) -> Result<Visit<'s>, NoVisit> {
        let mut kinds = Vec::new();
        for (kind, of_kind) in setup.kinds.iter().enumerate() {
            let Population::Fixed(number) = of_kind.population else { return Err(NoVisit::Useless) };
            kinds.extend(std::iter::repeat_n(kind as u32, number as usize));
        }
        let is_small = |number: usize| u16::try_from(number).is_ok();
        let values: IdVec<CellId, usize> =
            setup.initial.ids().map(|cell| setup.sets.values(cell, SetId::ALL).len()).collect();
        if !setup.kinds.iter().all(|kind| is_small(kind.is_start.len()))
            || !values.iter().all(|&values| is_small(values))
            || !is_small(kinds.len())
        {
            return Err(NoVisit::TooLarge);
        }
        let mut all = 0;
        let mut first = IdVec::new();
        for &values in &values {
            first.push(all);
            all += values;
        }
        let words = (2 * kinds.len() * all).div_ceil(64);
        let mut visit = Visit {
            setup,
            kinds,
            outgoing: setup.kinds.iter().map(|kind| kind.outgoing()).collect(),
            configurations: Vec::new(),
            numbers: HashTable::new(),
            layout: Layout { first, values: all, words },
            messages: Vec::new(),
            work: VecDeque::new(),
            waits: Vec::new(),
            unmet: bad.iter().collect(),
            steps: 0,
        };
        let most = most.min(MAX_MESSAGE_WORDS / words.max(1));
        visit.start(&mut Vec::new(), most)?;
        let mut done = 0_u32;
        while let Some(next) = visit.work.pop_front() {
            limits::checkpoint();
            if done.is_multiple_of(1024) && !has_room(visit.bytes()) {
                return Err(NoVisit::TooLarge);
            }
            done += 1;
            visit.waits[next as usize] = false;
            visit.expand(next as usize, most)?;
            if visit.steps > MAX_STEPS_EACH * most {
                return Err(NoVisit::TooLarge);
            }
        }
        Ok(visit)
    }

    /// The memory in use, approximately.
    pub fn bytes(&self) -> u64 {
        let each = self.width() * size_of::<u16>() + (self.layout.words + 4) * size_of::<u64>();
        (self.len() * each) as u64
    }

    fn width(&self) -> usize {
        self.kinds.len() + self.setup.cells
    }

    /// The number of configurations.
    pub fn len(&self) -> usize {
        self.configurations.len() / self.width().max(1)
    }

    fn configuration(&self, number: usize) -> &[u16] {
        &self.configurations[number * self.width()..][..self.width()]
    }

    /// The states that a process may have read on to in a configuration.
    pub fn states(&self, number: usize, process: usize) -> Vec<StateId> {
        let words = self.layout.words;
        let messages = &self.messages[number * words..][..words];
        let place = StateId(u32::from(self.configuration(number)[process]));
        self.reads_on(process, place, messages)
    }

    /// The states to which reads of these messages lead.
    fn reads_on(&self, process: usize, place: StateId, messages: &[u64]) -> Vec<StateId> {
        let kind = self.kinds[process] as usize;
        let edges = &self.setup.kinds[kind].single;
        let has = |own: bool, cell: CellId, value: ValueId| {
            let bit = self.layout.bit(process, own, cell, value);
            messages[bit / 64] >> (bit % 64) & 1 == 1
        };
        let mut reached = vec![place];
        let mut seen: IdVec<StateId, bool> = vec![false; self.outgoing[kind].len()].into();
        seen[place] = true;
        let mut next = 0;
        while let Some(&state) = reached.get(next) {
            for &edge in &self.outgoing[kind][state] {
                let follows = match edges[edge].letter {
                    Letter::Silent | Letter::StoreFence => true,
                    Letter::Read(cell, value) => has(false, cell, value) || has(true, cell, value),
                    Letter::Write(..) | Letter::Fence | Letter::Locked { .. } | Letter::Spawn(_) => false,
                };
                if follows && !std::mem::replace(&mut seen[edges[edge].target], true) {
                    reached.push(edges[edge].target);
                }
            }
            next += 1;
        }
        reached
    }

    /// The values of the cells in a configuration.
    pub fn memory(&self, number: usize) -> impl Iterator<Item = (CellId, ValueId)> {
        let values = self.configuration(number)[self.kinds.len()..].iter().enumerate();
        values.map(|(cell, &value)| (CellId::from_index(cell), ValueId(u32::from(value))))
    }

    /// The messages that buffers may hold in a configuration.
    pub fn messages(&self, number: usize) -> impl Iterator<Item = Message> {
        let Layout { first, values, words } = &self.layout;
        let bits = &self.messages[number * words..][..*words];
        let set = (0..2 * self.kinds.len() * values).filter(|bit| bits[bit / 64] >> (bit % 64) & 1 == 1);
        set.map(move |bit| {
            let (place, value) = (bit / values, bit % values);
            let cell = first.as_slice().partition_point(|&first| first <= value) - 1;
            let cell = CellId::from_index(cell);
            let value = ValueId::from_index(value - first[cell]);
            Message { process: place / 2, own: place % 2 == 1, cell, value }
        })
    }

    /// Adds all initial configurations that begin like this.
    fn start(&mut self, begun: &mut Vec<u16>, most: usize) -> Result<(), NoVisit> {
        let setup = self.setup;
        if begun.len() == self.width() {
            let mut messages = vec![0; self.layout.words];
            for process in 0..self.kinds.len() {
                self.layout.see(process, &begun[self.kinds.len()..], &mut messages);
            }
            return self.reach(begun, &messages, most);
        }
        let choices: Vec<u16> = match self.kinds.get(begun.len()) {
            Some(&kind) => {
                let starts = setup.kinds[kind as usize].is_start.iter_enumerated();
                starts.filter(|(_, is_start)| **is_start).map(|(state, _)| state.0 as u16).collect()
            }
            None => {
                let cell = CellId::from_index(begun.len() - self.kinds.len());
                setup.sets.values(cell, setup.initial[cell]).iter().map(|value| value.0 as u16).collect()
            }
        };
        for choice in choices {
            begun.push(choice);
            let added = self.start(begun, most);
            begun.pop();
            added?;
        }
        Ok(())
    }

    /// The number of a configuration.
    fn add(&mut self, configuration: &[u16], most: usize) -> Result<u32, NoVisit> {
        let mut hasher = FxHasher::default();
        configuration.iter().for_each(|&part| hasher.write_u16(part));
        let hash = hasher.finish();
        let short = (hash >> 32) as u32;
        let width = self.width();
        let same = |&(other, number): &(u32, u32)| {
            other == short && self.configurations[number as usize * width..][..width] == *configuration
        };
        let spread = |short: u32| u64::from(short).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if let Some(&(_, number)) = self.numbers.find(spread(short), same) {
            return Ok(number);
        }
        let number = self.len();
        if number >= most {
            return Err(NoVisit::TooLarge);
        }
        self.configurations.extend_from_slice(configuration);
        self.numbers.insert_unique(spread(short), (short, number as u32), |&(short, _)| spread(short));
        Ok(number as u32)
    }

    /// Adds a configuration with these messages.
    fn reach(&mut self, configuration: &[u16], messages: &[u64], most: usize) -> Result<(), NoVisit> {
        let words = self.layout.words;
        let number = self.add(configuration, most)? as usize;
        let is_new = number == self.waits.len();
        if is_new {
            self.waits.push(false);
            self.messages.resize((number + 1) * words, 0);
        }
        let there = &mut self.messages[number * words..][..words];
        let mut more = is_new;
        for (there, messages) in there.iter_mut().zip(messages) {
            more |= messages & !*there != 0;
            *there |= messages;
        }
        if more && !std::mem::replace(&mut self.waits[number], true) {
            self.work.push_back(number as u32);
        }
        Ok(())
    }

    /// Finds the steps of a configuration.
    fn expand(&mut self, number: usize, most: usize) -> Result<(), NoVisit> {
        let setup = self.setup;
        let (processes, words) = (self.kinds.len(), self.layout.words);
        let from = self.configuration(number).to_vec();
        let messages = self.messages[number * words..][..words].to_vec();
        let holds = |&(cell, value): &(CellId, ValueId)| u32::from(from[processes + cell.index()]) == value.0;
        let read_on = |process: usize| self.reads_on(process, StateId(u32::from(from[process])), &messages);
        let reached: Vec<Vec<StateId>> = (0..processes).map(read_on).collect();
        self.steps += reached.iter().map(Vec::len).sum::<usize>();
        self.note_bad(number, &reached)?;
        let mut after = messages.clone();
        for (process, reached) in reached.iter().enumerate() {
            let kind = self.kinds[process] as usize;
            for &state in reached {
                for place in 0..self.outgoing[kind][state].len() {
                    let edge = &setup.kinds[kind].single[self.outgoing[kind][state][place]];
                    let fits = match &edge.letter {
                        Letter::Silent | Letter::StoreFence | Letter::Read(..) => false,
                        Letter::Fence | Letter::Write(..) => true,
                        Letter::Locked { guard, .. } => guard.iter().all(holds),
                        Letter::Spawn(_) => return Err(NoVisit::Useless),
                    };
                    if fits {
                        limits::checkpoint();
                        let mut to = from.clone();
                        to[process] = edge.target.0 as u16;
                        for (cell, value) in writes(&edge.letter) {
                            to[processes + cell.index()] = value.0 as u16;
                        }
                        after.copy_from_slice(&messages);
                        self.layout.pass(process, &edge.letter, &to, &mut after);
                        self.reach(&to, &after, most)?;
                        self.steps += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes the bad elements that a configuration is in, in which processes may have read on to these states.
    fn note_bad(&mut self, number: usize, reached: &[Vec<StateId>]) -> Result<(), NoVisit> {
        if self.unmet.is_empty() {
            return Ok(());
        }
        let (setup, kinds) = (self.setup, &self.kinds);
        let configuration = &self.configurations[number * self.width()..][..self.width()];
        self.unmet.retain(|bad| {
            let holds = |(cell, set): (CellId, SetId)| {
                let value = configuration[kinds.len() + cell.index()];
                setup.sets.contains(cell, set, ValueId(u32::from(value)))
            };
            let are_there = bad.processes.chunk_by(|a, b| a.key() == b.key()).all(|same| {
                let is_there = |process: &usize| {
                    kinds[*process] == same[0].kind && reached[*process].contains(&same[0].state)
                };
                (0..kinds.len()).filter(is_there).count() >= same.len()
            });
            let has_letters = bad.processes.iter().any(|process| !process.word.is_empty());
            has_letters || !are_there || !bad.known().all(holds)
        });
        if self.unmet.is_empty() { Err(NoVisit::Useless) } else { Ok(()) }
    }
}

fn set(bits: &mut [u64], bit: usize) {
    bits[bit / 64] |= 1 << (bit % 64);
}

fn clear(bits: &mut [u64], range: Range<usize>) {
    range.for_each(|bit| bits[bit / 64] &= !(1 << (bit % 64)));
}

impl Layout {
    /// The bits of a process's messages of one sort, for all cells or for one.
    fn range(&self, process: usize, own: bool, cell: Option<CellId>) -> Range<usize> {
        let start = (2 * process + usize::from(own)) * self.values;
        let Some(cell) = cell else { return start..start + self.values };
        let end = self.first.as_slice().get(cell.index() + 1).map_or(self.values, |&next| next);
        start + self.first[cell]..start + end
    }

    /// What buffers may hold after a step: the process loses what it cannot read any more, and what it stores is added. `after`
    /// is the configuration after the step.
    fn pass(&self, process: usize, letter: &Letter, after: &[u16], messages: &mut [u64]) {
        let memory = &after[after.len() - self.first.len()..];
        let processes = after.len() - self.first.len();
        match letter {
            Letter::Write(cell, value) => {
                // Plain messages of the cell are older than the own one.
                clear(messages, self.range(process, false, Some(*cell)));
                clear(messages, self.range(process, true, Some(*cell)));
                set(messages, self.bit(process, true, *cell, *value));
            }
            Letter::Fence | Letter::Locked { .. } => {
                clear(messages, self.range(process, false, None));
                clear(messages, self.range(process, true, None));
                self.see(process, memory, messages);
            }
            Letter::Silent | Letter::StoreFence | Letter::Spawn(_) | Letter::Read(..) => {}
        }
        for (cell, value) in writes(letter) {
            (0..processes).for_each(|process| set(messages, self.bit(process, false, cell, value)));
        }
    }

    /// Adds what memory holds to what a process may read.
    fn see(&self, process: usize, memory: &[u16], messages: &mut [u64]) {
        for (cell, &value) in memory.iter().enumerate() {
            let value = ValueId(u32::from(value));
            set(messages, self.bit(process, false, CellId::from_index(cell), value));
        }
    }
}
