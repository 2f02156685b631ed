//! How a global state is packed into machine words.
//!
//! A state has one field per memory cell (the code of its value) and one field per thread (the number of its
//! thread state). Fields have only the bits they need now and never cross a word. When numbers outgrow their
//! fields, the search starts again with wider fields. The thread automaton is kept, so this happens a few
//! times at most.
//!
//! Threads of one role that no property names are kept sorted. [`crate::symmetry`] exchanges threads that differ in
//! data.

use crate::automaton::{Automaton, Need, Target};
use crate::symmetry::Unknown;
use palisade_automata::Observer;
use palisade_automata::on_demand::{Access, LocalId};
use palisade_base::{Id, IdVec};
use palisade_program::running::{CellId, System, ThreadId};
use std::ops::Range;

/// A field of a packed state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    word: u32,
    shift: u32,
    mask: u64,
}

impl Field {
    pub fn get(self, state: &[u64]) -> u32 {
        ((state[self.word as usize] >> self.shift) & self.mask) as u32
    }

    /// Whether the field has room for a value.
    pub fn holds(self, value: u32) -> bool {
        u64::from(value) <= self.mask
    }

    pub fn set(self, state: &mut [u64], value: u32) {
        debug_assert!(self.holds(value), "a value outgrew its field");
        let word = &mut state[self.word as usize];
        *word = (*word & !(self.mask << self.shift)) | (u64::from(value) << self.shift);
    }
}

/// The fields of a state.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Words per state.
    pub words: usize,
    pub cells: IdVec<CellId, Field>,
    /// Threads: the initial instances in order, then room for spawned ones.
    pub threads: Vec<Field>,
    /// Ranges of interchangeable threads. Their fields are kept sorted, largest first.
    pub groups: Vec<Range<usize>>,
    /// Whether threads with different data are interchangeable, too.
    pub symmetric: bool,
    /// The number of thread states that fit.
    most_locals: u64,
}

impl Layout {
    /// A layout for the current contents of the automaton, with some room to grow, and for `spawned` threads
    /// in addition to the initial ones.
    pub fn new(automaton: &Automaton<'_>, spawned: usize, symmetry: bool) -> Layout {
        let system = automaton.system();
        let mut packer = Packer { words: 0, free: 0 };
        let bits = bits_for(automaton.numbers() as u64).max(5) + 1;
        let instances = system.instances.len();
        let threads = (0..instances + spawned).map(|_| packer.field(bits)).collect();
        let cells = system.cells.ids().map(|cell| {
            let size = automaton.values.size(cell);
            // Codes that may still grow get twice the room they need now.
            packer.field(bits_for(size) + u32::from(automaton.values.may_grow(cell)))
        });
        let cells = cells.collect();
        let mut groups = Vec::new();
        if symmetry {
            groups = interchangeable(system, &automaton.policy.observer);
            if spawned > 1 {
                groups.push(instances..instances + spawned);
            }
        }
        let symmetric = symmetry && automaton.policy.symmetry.is_some();
        Layout { words: packer.words, cells, threads, groups, symmetric, most_locals: 1 << bits }
    }

    /// Whether all numbers in the automaton fit their fields.
    pub fn fits(&self, automaton: &Automaton<'_>) -> bool {
        let fits = |(cell, field): (CellId, &Field)| automaton.values.size(cell) <= field.mask + 1;
        automaton.numbers() as u64 <= self.most_locals && self.cells.iter_enumerated().all(fits)
    }

    /// Replaces a state by one that stands for all states with interchangeable threads exchanged. If a number is
    /// missing for that, it is pushed, and the state is not to be used.
    #[inline]
    pub fn normalise(
        &self,
        automaton: &Automaton<'_>,
        state: &mut [u64],
        needs: &mut Vec<Need>,
    ) -> Result<(), Unknown> {
        if self.symmetric
            && let Some(symmetry) = &automaton.policy.symmetry
        {
            let g = symmetry.to_normal(automaton, self, state);
            symmetry.apply(automaton, self, &g, state, needs)?;
        }
        if !self.groups.is_empty() {
            self.sort(state);
        }
        Ok(())
    }

    /// The same, and for each field of a thread, the field in which the thread was before. `None` if a number is
    /// missing.
    pub fn order(&self, automaton: &Automaton<'_>, state: &mut [u64]) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        if let Some(symmetry) = automaton.policy.symmetry.as_ref().filter(|_| self.symmetric) {
            let g = symmetry.to_normal(automaton, self, state);
            symmetry.apply(automaton, self, &g, state, &mut Vec::new()).ok()?;
            for (position, thread) in symmetry.threads.iter().enumerate() {
                order[symmetry.threads[g.image(position)].index()] = thread.index();
            }
        }
        for group in &self.groups {
            let key = |field: &usize| std::cmp::Reverse(self.threads[*field].get(state));
            let mut fields: Vec<usize> = group.clone().collect();
            fields.sort_by_key(key);
            order.splice(group.clone(), fields.into_iter().map(|field| order[field]).collect::<Vec<_>>());
        }
        self.sort(state);
        Some(order)
    }

    /// Sorts interchangeable threads of one role.
    pub fn sort(&self, state: &mut [u64]) {
        for group in &self.groups {
            let fields = &self.threads[group.clone()];
            // Insertion sort: a step changes one or two fields of a sorted run.
            for i in 1..fields.len() {
                let mut j = i;
                while j > 0 {
                    let (before, here) = (fields[j - 1].get(state), fields[j].get(state));
                    if before >= here {
                        break;
                    }
                    fields[j - 1].set(state, here);
                    fields[j].set(state, before);
                    j -= 1;
                }
            }
        }
    }

    /// The code of the value that an access depends on, or 0 if it depends on none.
    #[inline]
    pub fn read(&self, state: &[u64], access: Access) -> u32 {
        access.reads().map_or(0, |cell| self.cells[cell].get(state))
    }

    /// Moves a thread to a target.
    #[inline]
    pub fn take(&self, state: &mut [u64], thread: usize, access: Access, target: &Target) {
        self.threads[thread].set(state, target.local.0);
        if let (Some(code), Some(cell)) = (target.write(), access.cell()) {
            self.cells[cell].set(state, code);
        }
    }

    /// The thread state of a thread.
    pub fn thread(&self, state: &[u64], index: usize) -> LocalId {
        LocalId(self.threads[index].get(state))
    }
}

/// Neighbouring instances of one role that no property names.
fn interchangeable(system: &System, observer: &Observer) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut last = None;
    for (index, (thread, instance)) in system.instances.iter_enumerated().enumerate() {
        let named = observer.named.contains(&ThreadId(thread.0));
        match (last, groups.last_mut()) {
            (Some(role), Some(group)) if role == instance.role && !named && group.end == index => {
                group.end += 1;
            }
            _ if !named => groups.push(index..index + 1),
            _ => {}
        }
        last = (!named).then_some(instance.role);
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// The number of bits needed for this many different values.
fn bits_for(values: u64) -> u32 {
    if values <= 1 { 0 } else { 64 - (values - 1).leading_zeros() }
}

struct Packer {
    words: usize,
    free: u32,
}

impl Packer {
    fn field(&mut self, bits: u32) -> Field {
        let bits = bits.min(32);
        if bits > self.free || self.words == 0 {
            self.words += 1;
            self.free = 64;
        }
        let field = Field {
            word: self.words as u32 - 1,
            shift: if self.free == 0 { 0 } else { 64 - self.free },
            mask: (1u64 << bits) - 1,
        };
        self.free -= bits;
        field
    }
}
