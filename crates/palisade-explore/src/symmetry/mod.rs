//! Symmetry of threads that differ in data: indices, nodes, buffers of their own.
//!
//! *Problem.* Threads that run the same text, each with an index and memory of its own, can be in the same
//! situation in many ways that differ only in who is who. With n threads there are up to n! of them. Threads of one
//! role are [sorted](crate::layout). Threads with constants of their own have different roles.
//!
//! *Source.* Ip and Dill, "Better verification through symmetry", Formal Methods in System Design 9, 1996 (scalar
//! sets); Emerson and Sistla, "Symmetry and model checking", same volume. Combination with persistent sets: Emerson,
//! Jha and Peled, "Combining partial order and symmetry reductions", TACAS 1997.
//!
//! *Idea.* A permutation of such threads acts on states: it exchanges the threads, the cells that belong to them,
//! and the values that stand for them. The last depends on where a value is: 0 in a variable that holds an index is
//! a thread, 0 in a counter is not. So registers and cells have *kinds*, and each kind says which values move.
//! [`sorts`] guesses the kinds, [`verify`] checks them.
//!
//! *Guarantee.* If g is such a permutation, s → s' is a step iff g(s) → g(s') is one, for all reachable states. The
//! initial states, faults, races, properties and goals are invariant. So a state is reachable iff its images are,
//! and the search may continue from any image of a state that it reaches ([`normal`]). What runs do is invariant as
//! well: if a thread takes a step in some run, each thread of its block takes the same step of its text in some run.
//!
//! The check covers every value that a register or cell may ever hold ([`Pointers::of_all`]), for generators of the
//! group: transpositions of neighbours. Registers that are dead are 0 in every image.
//!
//! *Differences from the sources.* Nothing is declared: index types are inferred, pointers are handled like indices,
//! and arithmetic is allowed where it commutes with the permutations for all values that occur.

mod action;
mod normal;
mod skeleton;
mod sorts;
#[cfg(test)]
mod tests;
mod verify;

use action::Shapes;
pub(crate) use action::{Permutation, Shape};
pub(crate) use normal::Unknown;
use palisade_automata::{Pointers, ThreadMachine};
use palisade_base::{Id, IdVec};
use palisade_program::Value;
use palisade_program::running::{CellId, CodeId, Liveness, Location, RegId, RoleId, System, ThreadId};
use rustc_hash::FxHashMap;
use sorts::{Body, Family, Sorts};
use std::ops::Range;

/// The maximum number of threads that are permuted. Their positions fit four bits.
pub(crate) const MAX_POSITIONS: usize = 16;

/// Why a guess fails.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Conflict {
    /// Something singles out one thread of a block.
    Drop { block: usize, member: usize },
    /// The threads of a block come in several sorts, given by equal labels.
    Split { block: usize, labels: Vec<usize> },
    /// A block is not symmetric.
    Without(usize),
    /// Nothing is.
    Never,
}

/// The number of a kind. Kind 0 has no families: no permutation moves its values.
type KindId = u32;

/// The kinds of values.
#[derive(Clone, Debug, Default)]
struct ValueKind {
    /// The values that move, each with its family and the position of its thread.
    members: FxHashMap<Value, (u32, u8)>,
    /// The first position of the block, and one value per position.
    families: Vec<(usize, Vec<Value>)>,
}

/// Which threads may be permuted, and how permutations act.
#[derive(Debug)]
pub(crate) struct Symmetry {
    /// Ranges of positions that may be permuted.
    pub blocks: Vec<Range<usize>>,
    /// By position.
    pub threads: Vec<ThreadId>,
    roles: Vec<RoleId>,
    codes: Vec<CodeId>,
    positions: FxHashMap<RoleId, u8>,
    kinds: Vec<ValueKind>,
    /// By location and register. Registers that are dead have any kind.
    registers: IdVec<CodeId, Vec<Vec<KindId>>>,
    cells: IdVec<CellId, KindId>,
    /// For each cell that belongs to a thread, its family and its position.
    owners: IdVec<CellId, Option<(u32, u8)>>,
    cell_families: Vec<(usize, Vec<CellId>)>,
    /// The cells that permutations move, or in which they move values.
    moved: Vec<CellId>,
    /// By thread.
    position: Vec<Option<usize>>,
    shapes: Shapes,
}

impl Symmetry {
    /// The kind of a register at a location where it is live.
    fn register(&self, code: CodeId, location: Location, register: RegId) -> KindId {
        self.registers[code][location.index()][register.index()]
    }

    /// The largest symmetry that is found, if there is one.
    pub fn find(machine: &ThreadMachine<'_>) -> Option<Symmetry> {
        let system = machine.machine.system;
        let mut blocks = skeleton::blocks(system);
        if blocks.is_empty() {
            return None;
        }
        let pointers = Pointers::of_all(system);
        loop {
            blocks.retain(|block| block.len() > 1);
            let mut room = MAX_POSITIONS;
            for block in &mut blocks {
                block.truncate(room);
                room -= block.len();
            }
            blocks.retain(|block| block.len() > 1);
            if blocks.is_empty() {
                return None;
            }
            match Symmetry::of_blocks(system, &pointers, machine.liveness(), &blocks) {
                Ok(symmetry) => return Some(symmetry),
                Err(Conflict::Drop { block, member }) => _ = blocks[block].remove(member),
                Err(Conflict::Without(block)) => _ = blocks.remove(block),
                Err(Conflict::Never) => return None,
                Err(Conflict::Split { block, labels }) => {
                    let whole = blocks.remove(block);
                    let mut firsts = labels.clone();
                    firsts.sort_unstable();
                    firsts.dedup();
                    for first in firsts {
                        let part = whole.iter().zip(&labels).filter(|(_, label)| **label == first);
                        blocks.push(part.map(|(&thread, _)| thread).collect());
                    }
                }
            }
        }
    }

    fn of_blocks(
        system: &System,
        pointers: &Pointers,
        liveness: &Liveness,
        blocks: &[Vec<ThreadId>],
    ) -> Result<Symmetry, Conflict> {
        let bodies = bodies(system, blocks);
        let sorts = Sorts::guess(system, pointers, liveness, &bodies)?;
        let symmetry = Symmetry::new(system, blocks, &bodies, &sorts);
        verify::verify(&symmetry, system, pointers, liveness, &bodies, &sorts)?;
        Ok(symmetry)
    }

    fn new(system: &System, blocks: &[Vec<ThreadId>], bodies: &[Body], sorts: &Sorts<'_>) -> Symmetry {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for block in blocks {
            let start = ranges.last().map_or(0, |range| range.end);
            ranges.push(start..start + block.len());
        }
        let threads: Vec<ThreadId> = blocks.iter().flatten().copied().collect();
        let roles: Vec<RoleId> = threads.iter().map(|&thread| system.instances[thread].role).collect();
        let position = |family: usize, index: usize| (ranges[family].start + index) as u8;
        let (families, numbers) = sorts.families();
        let kind = |families: Vec<Family<Value>>| {
            let mut kind = ValueKind::default();
            for Family { block, items } in families {
                let number = kind.families.len() as u32;
                let members = items.iter().enumerate();
                kind.members.extend(members.map(|(i, &value)| (value, (number, position(block, i)))));
                kind.families.push((ranges[block].start, items));
            }
            kind
        };
        let mut registers: IdVec<CodeId, Vec<Vec<KindId>>> =
            system.codes.iter().map(|_| Vec::new()).collect();
        for (index, body) in bodies.iter().enumerate() {
            let code = &system.codes[body.codes[0]];
            let at = |location: usize| {
                let location = Location::from_index(location);
                let of = |register: RegId| numbers[&sorts.of_register(index, location, register)];
                code.registers.ids().map(of).collect::<Vec<KindId>>()
            };
            let kinds: Vec<Vec<KindId>> = (0..code.location_count()).map(at).collect();
            body.codes.iter().for_each(|&code| registers[code].clone_from(&kinds));
        }
        let mut owners: IdVec<CellId, Option<(u32, u8)>> = vec![None; system.cells.len()].into();
        let mut cell_families = Vec::new();
        for (number, Family { block, items }) in sorts.cell_families().iter().enumerate() {
            for (i, &cell) in items.iter().enumerate() {
                owners[cell] = Some((number as u32, position(*block, i)));
            }
            cell_families.push((ranges[*block].start, items.clone()));
        }
        let cells: IdVec<CellId, KindId> =
            system.cells.ids().map(|cell| numbers[&sorts.of_cell(cell)]).collect();
        let moves = |cell: &CellId| cells[*cell] != 0 || owners[*cell].is_some();
        Symmetry {
            moved: system.cells.ids().filter(moves).collect(),
            position: normal::positions(&threads, system.instances.len()),
            codes: roles.iter().map(|&role| system.roles[role].code).collect(),
            positions: roles.iter().zip(0..).map(|(&role, position)| (role, position)).collect(),
            roles,
            threads,
            kinds: families.into_iter().map(kind).collect(),
            registers,
            cells,
            owners,
            cell_families,
            blocks: ranges,
            shapes: Shapes::default(),
        }
    }

    /// The codes of each block.
    pub fn texts(&self) -> impl Iterator<Item = &[CodeId]> {
        self.blocks.iter().map(|block| &self.codes[block.clone()])
    }

    /// The cells that a permutation may move, or in which it may move values: lists of cells that are exchanged
    /// with each other, with the families of values that are.
    pub fn twins(&self) -> Vec<(Vec<CellId>, Vec<Vec<Value>>)> {
        let families = |cell: CellId| self.kinds[self.cells[cell] as usize].families.iter();
        let values = |cell: CellId| families(cell).map(|(_, values)| values.clone()).collect();
        let owned = self.cell_families.iter().map(|(_, cells)| (cells.clone(), values(cells[0])));
        let ids = self.cells.ids();
        let free = ids.filter(|&cell| self.owners[cell].is_none() && self.cells[cell] != 0);
        owned.chain(free.map(|cell| (vec![cell], values(cell)))).collect()
    }
}

/// The texts of all threads.
fn bodies(system: &System, blocks: &[Vec<ThreadId>]) -> Vec<Body> {
    let code = |thread: &ThreadId| system.roles[system.instances[*thread].role].code;
    let mut bodies: Vec<Body> = Vec::new();
    for (block, threads) in blocks.iter().enumerate() {
        bodies.push(Body { block: Some(block), codes: threads.iter().map(code).collect() });
    }
    for thread in system.instances.ids() {
        let code = code(&thread);
        if !bodies.iter().any(|body| body.codes.contains(&code)) {
            bodies.push(Body { block: None, codes: vec![code] });
        }
    }
    bodies
}
