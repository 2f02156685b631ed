//! How permutations act on values, cells and thread states, and the shapes of thread states.
//!
//! A *shape* is what a thread state looks like if one does not know who is who: two thread states have the same
//! shape iff some permutation maps one to the other. A thread state is its shape and the positions that it mentions,
//! in the order in which it mentions them, its own first. The image of a thread state has the same shape and the
//! images of the positions. So images are looked up, not computed.

use super::{KindId, MAX_POSITIONS, Symmetry};
use palisade_automata::on_demand::LocalId;
use palisade_automata::{Local, ThreadMachine};
use palisade_base::Id;
use palisade_memory::Pending;
use palisade_program::Value;
use palisade_program::running::{CellId, RegId};
use rustc_hash::FxHashMap;

/// A permutation of positions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Permutation([u8; MAX_POSITIONS]);

impl Permutation {
    pub fn identity() -> Permutation {
        Permutation(std::array::from_fn(|position| position as u8))
    }

    /// The permutation that exchanges two positions.
    pub fn exchange(a: usize, b: usize) -> Permutation {
        let mut g = Permutation::identity();
        g.0.swap(a, b);
        g
    }

    /// As two words, for other processes.
    pub fn words(self) -> [u64; 2] {
        let word = |half: &[u8]| half.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        [word(&self.0[..8]), word(&self.0[8..])]
    }

    /// The permutation in two words.
    pub fn of_words(words: [u64; 2]) -> Permutation {
        let mut g = [0; MAX_POSITIONS];
        g[..8].copy_from_slice(&words[0].to_le_bytes());
        g[8..].copy_from_slice(&words[1].to_le_bytes());
        Permutation(g)
    }

    #[inline]
    pub fn image(&self, position: usize) -> usize {
        self.0[position].into()
    }

    pub fn set(&mut self, position: usize, image: usize) {
        self.0[position] = image as u8;
    }
}

/// The positions that a thread state mentions, in order, four bits each; the lowest four bits count them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Mentions(u64);

impl Mentions {
    const MOST: usize = 15;

    #[inline]
    pub fn len(self) -> usize {
        (self.0 & 15) as usize
    }

    #[inline]
    pub fn get(self, index: usize) -> usize {
        ((self.0 >> (4 * (index + 1))) & 15) as usize
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// Adds a position that is not there yet. Returns whether there is room.
    fn add(&mut self, position: usize) -> bool {
        if self.iter().any(|other| other == position) {
            return true;
        }
        let len = self.len();
        if len == Mentions::MOST {
            return false;
        }
        self.0 = (self.0 + 1) | ((position as u64) << (4 * (len + 1)));
        true
    }

    #[inline]
    fn mapped(self, g: &Permutation) -> Mentions {
        let mut image = self.0 & 15;
        for index in 0..self.len() {
            image |= (g.image(self.get(index)) as u64) << (4 * (index + 1));
        }
        Mentions(image)
    }
}

/// The shape of a thread state, and the threads that it mentions. Number 0 is no shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    pub number: u32,
    pub mentions: Mentions,
}

impl Shape {
    /// No shape.
    pub const NONE: Shape = Shape { number: 0, mentions: Mentions(0) };
}

/// The shapes found so far.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// By the first thread state in the order of positions.
    numbers: FxHashMap<Local, u32>,
    /// The thread state with a shape and mentions.
    locals: FxHashMap<Shape, LocalId>,
}

impl Symmetry {
    /// The image of a value.
    #[inline]
    pub(super) fn value(&self, kind: KindId, g: &Permutation, value: Value) -> Value {
        let kind = &self.kinds[kind as usize];
        kind.members.get(&value).map_or(value, |&(family, position)| {
            let (start, values) = &kind.families[family as usize];
            values[g.image(position.into()) - start]
        })
    }

    /// The image of a cell.
    pub(super) fn cell(&self, g: &Permutation, cell: CellId) -> CellId {
        self.owners[cell].map_or(cell, |(family, position)| {
            let (start, cells) = &self.cell_families[family as usize];
            cells[g.image(position.into()) - start]
        })
    }

    /// The family of a cell that belongs to a thread, and the position of the thread.
    pub(super) fn owner(&self, cell: CellId) -> Option<(u32, usize)> {
        self.owners[cell].map(|(family, position)| (family, position.into()))
    }

    /// The image of a thread state. Registers that are dead stay 0.
    pub fn local(&self, machine: &ThreadMachine<'_>, g: &Permutation, local: &Local) -> Local {
        let mut image = local.clone();
        let role = local.thread.role;
        let to = self.positions.get(&role).map(|&position| g.image(position.into()));
        image.thread.role = to.map_or(role, |to| self.roles[to]);
        for frame in &mut image.thread.frames {
            let kinds = &self.registers[frame.code][frame.location.index()];
            for (value, kind) in frame.registers.iter_mut().zip(kinds) {
                *value = self.value(*kind, g, *value);
            }
            frame.code = to.map_or(frame.code, |to| self.codes[to]);
        }
        for entry in &mut image.thread.buffer {
            if let Pending::Store(cell, value) = entry {
                *value = self.value(self.cells[*cell], g, *value);
                *cell = self.cell(g, *cell);
            }
        }
        for access in &mut image.passed {
            access.cell = self.cell(g, access.cell);
        }
        machine.forget_dead(image)
    }

    /// The positions that a thread state mentions; `None` if there are too many.
    fn mentions(&self, machine: &ThreadMachine<'_>, local: &Local) -> Option<Mentions> {
        let mut mentions = Mentions::default();
        let mut fits = true;
        let mut mention = |position: Option<u8>| {
            fits &= position.is_none_or(|position| mentions.add(position.into()));
        };
        mention(self.positions.get(&local.thread.role).copied());
        let of = |kind: KindId, value: Value| {
            self.kinds[kind as usize].members.get(&value).map(|&(_, position)| position)
        };
        for frame in &local.thread.frames {
            let dead = machine.liveness().dead(frame.code, frame.location);
            let kinds = &self.registers[frame.code][frame.location.index()];
            for (index, (&value, &kind)) in frame.registers.iter().zip(kinds).enumerate() {
                if kind != 0 && !dead.contains(&RegId::from_index(index)) {
                    mention(of(kind, value));
                }
            }
        }
        for entry in &local.thread.buffer {
            if let Pending::Store(cell, value) = *entry {
                mention(self.owners[cell].map(|(_, position)| position));
                mention(of(self.cells[cell], value));
            }
        }
        for access in &local.passed {
            mention(self.owners[access.cell].map(|(_, position)| position));
        }
        fits.then_some(mentions)
    }

    /// The shape of a thread state, whose number will be `id`.
    pub fn shape(&mut self, machine: &ThreadMachine<'_>, local: &Local, id: LocalId) -> Shape {
        let Some(mentions) = self.mentions(machine, local) else { return Shape::NONE };
        // The first image: whoever is mentioned gets the next position of the block.
        let mut g = Permutation::identity();
        for block in &self.blocks {
            let mentioned = mentions.iter().filter(|position| block.contains(position));
            let others = block.clone().filter(|&position| mentions.iter().all(|other| other != position));
            for (position, image) in mentioned.chain(others).zip(block.clone()) {
                g.set(position, image);
            }
        }
        let first = self.local(machine, &g, local);
        let next = self.shapes.numbers.len() as u32 + 1;
        let number = *self.shapes.numbers.entry(first).or_insert(next);
        let shape = Shape { number, mentions };
        self.shapes.locals.insert(shape, id);
        shape
    }

    /// Notes the number of the image of a thread state.
    pub fn note_image(&mut self, g: &Permutation, shape: Shape, id: LocalId) {
        let image = Shape { number: shape.number, mentions: shape.mentions.mapped(g) };
        self.shapes.locals.entry(image).or_insert(id);
    }

    /// The image of a thread state, if it has a number.
    #[inline]
    pub(super) fn image(&self, g: &Permutation, shape: Shape) -> Option<LocalId> {
        let image = Shape { number: shape.number, mentions: shape.mentions.mapped(g) };
        self.shapes.locals.get(&image).copied()
    }
}
