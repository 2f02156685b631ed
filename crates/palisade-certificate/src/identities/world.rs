//! Everything that the check of a proof depends on, except its elements: edges with sets of values, what identities
//! they involve, and what the invariant says. The header of [`super`] gives the argument.

use super::action::{Action, Image, Renaming};
use super::cells::{Cell, Mask};
use crate::element::Process as Plain;
use crate::flow::{Act, Flow};
use crate::invariant::Invariant;
use crate::values::Values;
use palisade_automata::{Automata, ValueId};
use palisade_base::Id;
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What an edge does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Effect {
    /// Reads one of these values.
    Read(u32, Mask),
    /// Reads one of these values in the cell of every other process. The array is given by its first cell.
    Every(u32, Mask),
    Write(u32, Mask),
    Fence,
    /// With an empty buffer: memory is in these sets before, and has these values afterwards.
    Locked {
        guard: Vec<(u32, Mask)>,
        written: Vec<(u32, Mask)>,
    },
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Edge {
    pub source: u32,
    pub target: u32,
    pub effect: Effect,
}

pub(super) struct World<'a> {
    pub flow: &'a Flow,
    pub invariant: &'a Invariant,
    pub action: &'a Action,
    pub cells: &'a [Cell],
    /// The identity of each automaton, and 0 for those without one.
    pub owner: &'a [u8],
    /// The number of identities. The last one is star.
    pub number: u8,
    /// For each automaton, its edges, and the edges that lead to each class.
    pub edges: Vec<Vec<Edge>>,
    pub into: Vec<Vec<Vec<usize>>>,
    /// For each cell, all values, and the initial ones.
    pub full: Vec<Mask>,
    pub initial: Vec<Mask>,
    /// For each cell, the bit of each value.
    bits: Vec<Vec<Mask>>,
    /// For each automaton and class, a number that is the same for all renamings of it.
    pub orbit: Vec<Vec<u32>>,
    /// See [`World::injections`].
    injections: RefCell<FxHashMap<(u8, u8), Ways>>,
}

/// Renamings that differ where it matters.
type Ways = Rc<[Rc<Image>]>;

impl<'a> World<'a> {
    pub fn new(
        automata: &Automata,
        (flow, invariant, action): (&'a Flow, &'a Invariant, &'a Action),
        (cells, owner, number): (&'a [Cell], &'a [u8], u8),
    ) -> Result<World<'a>, String> {
        let bits = |(cell, info): (usize, &Cell)| {
            let of = &automata.values[CellId::from_index(cell)];
            of.iter().map(|&value| info.bit(value)).collect::<Option<Vec<Mask>>>()
        };
        let bits: Option<Vec<Vec<Mask>>> = cells.iter().enumerate().map(bits).collect();
        let bits = bits.ok_or("a cell takes too many values")?;
        let sum = |bits: &[Mask]| bits.iter().fold(0, |all, bit| all | bit);
        let full = bits.iter().map(|bits| sum(bits)).collect();
        let initial = bits.iter().zip(&flow.initial).map(|(bits, &count)| sum(&bits[..count as usize]));
        let mut world = World {
            flow,
            invariant,
            action,
            cells,
            owner,
            number,
            edges: Vec::new(),
            into: Vec::new(),
            full,
            initial: initial.collect(),
            bits,
            orbit: Vec::new(),
            injections: RefCell::default(),
        };
        for (kind, of_kind) in flow.kinds.iter().enumerate() {
            let edges = world.merged(kind)?;
            let mut into = vec![Vec::new(); of_kind.into.len()];
            for (number, edge) in edges.iter().enumerate() {
                into[edge.target as usize].push(number);
            }
            world.edges.push(edges);
            world.into.push(into);
        }
        world.check_symmetry()?;
        world.orbit = world.orbits();
        Ok(world)
    }

    /// Star: the identity that stands for all that are not named.
    pub fn star(&self) -> u8 {
        self.number
    }

    pub fn is_star(&self, cell: u32) -> bool {
        let cell = &self.cells[cell as usize];
        cell.array.is_some() && cell.owner == self.number
    }

    /// The cell of an array that belongs to an identity.
    pub fn cell_of(&self, array: u32, owner: u8) -> u32 {
        array + u32::from(owner)
    }

    pub fn bit(&self, cell: u32, value: u32) -> Mask {
        self.bits[cell as usize][ValueId(value).index()]
    }

    pub fn mask(&self, cell: u32, values: &Values) -> Mask {
        values.iter().fold(0, |all, value| all | self.bit(cell, value))
    }

    /// The edges of an automaton. Those that differ only in the value of the one cell that they look at are one edge.
    fn merged(&self, kind: usize) -> Result<Vec<Edge>, String> {
        type Looking = (u32, u32, u32, Option<Vec<(u32, Mask)>>);
        let mut looking: BTreeMap<Looking, Mask> = BTreeMap::new();
        let mut found: BTreeSet<Edge> = BTreeSet::new();
        let of = |list: &[(u32, u32)]| -> Vec<(u32, Mask)> {
            list.iter().map(|&(cell, value)| (cell, self.bit(cell, value))).collect()
        };
        let every = |cell: u32| self.cells[cell as usize].every;
        let why = "the cells of all others are accessed in another way than by a loop";
        for edge in &self.flow.kinds[kind].edges {
            let (source, target) = (edge.source, edge.target);
            let effect = match &edge.act {
                Act::Spawn(_) => return Err("processes are started at run time".into()),
                Act::Read(cell, value) => {
                    *looking.entry((source, target, *cell, None)).or_default() |= self.bit(*cell, *value);
                    continue;
                }
                Act::Locked { guard, effect } => {
                    if guard.iter().chain(effect).any(|&(cell, _)| every(cell)) {
                        return Err(why.into());
                    }
                    if let [(cell, value)] = guard[..] {
                        let key = (source, target, cell, Some(of(effect)));
                        *looking.entry(key).or_default() |= self.bit(cell, value);
                        continue;
                    }
                    Effect::Locked { guard: of(guard), written: of(effect) }
                }
                Act::Write(cell, _) if every(*cell) => return Err(why.into()),
                Act::Write(cell, value) => {
                    let info = &self.cells[*cell as usize];
                    if self.owner[kind] > 0 && info.owner > 0 && info.owner != self.owner[kind] {
                        return Err("a process has pending stores to cells that its loops read".into());
                    }
                    Effect::Write(*cell, self.bit(*cell, *value))
                }
                Act::Fence => Effect::Fence,
            };
            found.insert(Edge { source, target, effect });
        }
        let mut loops: BTreeMap<(u32, u32), Mask> = BTreeMap::new();
        for ((source, target, cell, written), mask) in looking {
            let effect = match (written, self.cells[cell as usize].array) {
                (Some(written), _) => Effect::Locked { guard: vec![(cell, mask)], written },
                (None, Some(array)) if every(cell) => {
                    // Different processes may have been read with different values. So every value leads to
                    // the same classes.
                    if *loops.entry((source, cell)).or_insert(mask) != mask {
                        return Err("what a loop over all others has read makes a difference after it".into());
                    }
                    Effect::Every(array, mask)
                }
                (None, _) => Effect::Read(cell, mask),
            };
            found.insert(Edge { source, target, effect });
        }
        Ok(found.into_iter().collect())
    }

    /// Checks that every exchange maps edges to edges, starts to starts, and what cells hold and what the invariant
    /// says to the same for the renamed cells.
    fn check_symmetry(&self) -> Result<(), String> {
        let alike = |same: bool, what: &str| match same {
            true => Ok(()),
            false => Err(format!("identities are not alike: {what}")),
        };
        let edges: Vec<FxHashSet<&Edge>> = self.edges.iter().map(|edges| edges.iter().collect()).collect();
        for image in &self.action.exchanges {
            for cell in 0..self.cells.len() as u32 {
                let renamed = self.rename_cell(cell, image) as usize;
                let masks = [&self.full, &self.initial];
                let same =
                    masks.iter().all(|m| self.rename_mask(cell, m[cell as usize], image) == m[renamed]);
                alike(same, "what a cell holds")?;
            }
            for (kind, of_kind) in self.edges.iter().enumerate() {
                let target = image.kind[kind] as usize;
                alike(of_kind.len() == self.edges[target].len(), "what processes do")?;
                for edge in of_kind {
                    let edge = self.rename_edge(kind, edge, image);
                    alike(edges[target].contains(&edge), "what processes do")?;
                }
                let (of, to) = (&self.flow.kinds[kind], &self.flow.kinds[target]);
                for class in 0..of.into.len() {
                    let renamed = image.class[kind][class];
                    alike(of.is_start[class] == to.is_start[renamed as usize], "where processes start")?;
                    for cell in 0..self.cells.len() as u32 {
                        let to = self.rename_cell(cell, image);
                        let pending = self.pending(kind as u32, class as u32, cell);
                        let same = self.rename_mask(cell, pending, image)
                            == self.pending(target as u32, renamed, to);
                        alike(same, "pending stores")?;
                        let here = [Plain { kind: kind as u32, state: class as u32, word: Vec::new() }];
                        let there = [Plain { kind: target as u32, state: renamed, word: Vec::new() }];
                        let held = self.implied(&here, cell).map(|held| self.rename_mask(cell, held, image));
                        alike(held == self.implied(&there, to), "what a writer knows")?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The values that the newest pending store to a cell can have in a class.
    pub fn pending(&self, kind: u32, class: u32, cell: u32) -> Mask {
        self.invariant.pending(kind, class, cell).map_or(0, |values| self.mask(cell, values))
    }

    /// The values that a cell can have in memory, if these processes restrict them.
    pub fn implied(&self, processes: &[Plain], cell: u32) -> Option<Mask> {
        self.invariant.implied(processes, cell).map(|values| self.mask(cell, &values))
    }

    pub fn rename_cell(&self, cell: u32, image: &Image) -> u32 {
        let info = &self.cells[cell as usize];
        match info.array {
            Some(array) if info.owner > 0 => self.cell_of(array, image.identity[info.owner as usize]),
            _ => cell,
        }
    }

    pub fn rename_mask(&self, cell: u32, mask: Mask, image: &Image) -> Mask {
        if !self.cells[cell as usize].holds_identity {
            return mask;
        }
        let bits = (0..=self.number).filter(|&id| mask >> id & 1 == 1);
        bits.fold(0, |all, id| all | 1 << image.identity[id as usize])
    }

    fn rename_edge(&self, kind: usize, edge: &Edge, image: &Image) -> Edge {
        let one =
            |cell: u32, mask: Mask| (self.rename_cell(cell, image), self.rename_mask(cell, mask, image));
        let list = |list: &[(u32, Mask)]| {
            let mut list: Vec<(u32, Mask)> = list.iter().map(|&(cell, mask)| one(cell, mask)).collect();
            list.sort_unstable();
            list
        };
        let effect = match &edge.effect {
            Effect::Read(cell, mask) => {
                let (cell, mask) = one(*cell, *mask);
                Effect::Read(cell, mask)
            }
            Effect::Write(cell, mask) => {
                let (cell, mask) = one(*cell, *mask);
                Effect::Write(cell, mask)
            }
            Effect::Every(array, mask) => Effect::Every(*array, *mask),
            Effect::Fence => Effect::Fence,
            Effect::Locked { guard, written } => {
                Effect::Locked { guard: list(guard), written: list(written) }
            }
        };
        let class = |class: u32| image.class[kind][class as usize];
        Edge { source: class(edge.source), target: class(edge.target), effect }
    }

    /// The identities that an edge involves, as bits: the process's own, those that its classes remember, those of the
    /// cells it accesses, and those among the values it reads or writes. All others are alike for it.
    pub fn involved(&self, kind: usize, edge: &Edge) -> u32 {
        let remembered = &self.action.remembered[kind];
        self.involved_beside(kind, edge, remembered[edge.source as usize] | remembered[edge.target as usize])
    }

    /// The same for a process that is not required to be anywhere after it. What only the target remembers does not
    /// matter then: see the header of [`super`].
    pub fn involved_before(&self, kind: usize, edge: &Edge) -> u32 {
        self.involved_beside(kind, edge, self.action.remembered[kind][edge.source as usize])
    }

    fn involved_beside(&self, kind: usize, edge: &Edge, remembered: u32) -> u32 {
        let own = if self.owner[kind] > 0 { 1 << self.owner[kind] } else { 0 };
        let mut all = own | remembered;
        let (guard, written): (&[_], &[_]) = match &edge.effect {
            Effect::Read(cell, mask) => (&[(*cell, *mask)], &[]),
            Effect::Write(cell, mask) => (&[], &[(*cell, *mask)]),
            Effect::Locked { guard, written } => (guard, written),
            Effect::Every(..) | Effect::Fence => (&[], &[]),
        };
        for &(cell, _) in guard.iter().chain(written) {
            let owner = self.cells[cell as usize].owner;
            all |= if owner > 0 { 1 << owner } else { 0 };
        }
        for &(cell, mask) in guard.iter().chain(written) {
            if self.cells[cell as usize].holds_identity {
                let rest =
                    (1..=self.number).filter(|&id| all >> id & 1 == 0).fold(0u64, |set, id| set | 1 << id);
                let (inside, outside) = (mask & rest, rest & !mask);
                let fewer = if inside.count_ones() <= outside.count_ones() { inside } else { outside };
                all |= fewer as u32;
            }
        }
        all
    }

    /// Numbers for classes up to renaming.
    fn orbits(&self) -> Vec<Vec<u32>> {
        let mut orbit: Vec<Vec<u32>> =
            self.flow.kinds.iter().map(|kind| vec![u32::MAX; kind.into.len()]).collect();
        let mut count = 0;
        for kind in 0..orbit.len() {
            for class in 0..orbit[kind].len() {
                if orbit[kind][class] != u32::MAX {
                    continue;
                }
                let mut work = vec![(kind, class)];
                while let Some((kind, class)) = work.pop() {
                    if orbit[kind][class] == u32::MAX {
                        orbit[kind][class] = count;
                        let images = self.action.exchanges.iter();
                        work.extend(
                            images
                                .map(|image| (image.kind[kind] as usize, image.class[kind][class] as usize)),
                        );
                    }
                }
                count += 1;
            }
        }
        orbit
    }

    /// One renaming for each way to map the identities up to `from` to different ones up to `to`.
    pub fn injections(&self, from: u8, to: u8) -> Ways {
        let known = self.injections.borrow().get(&(from, to)).cloned();
        known.unwrap_or_else(|| {
            let mut found = Vec::new();
            self.extend(&mut vec![0], from, to, &mut found);
            let found: Ways = found.into();
            self.injections.borrow_mut().insert((from, to), found.clone());
            found
        })
    }

    fn extend(&self, chosen: &mut Renaming, from: u8, to: u8, found: &mut Vec<Rc<Image>>) {
        if chosen.len() > from as usize {
            let rest = (1..=self.number).filter(|id| !chosen.contains(id));
            let renaming: Renaming = chosen.iter().copied().chain(rest).collect();
            found.push(self.action.image(&renaming));
            return;
        }
        for id in (1..=to).filter(|&id| !chosen.contains(&id)).collect::<Vec<u8>>() {
            chosen.push(id);
            self.extend(chosen, from, to, found);
            chosen.pop();
        }
    }
}
