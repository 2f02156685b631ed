//! Which cells a thread may still read or write.
//!
//! *Guarantee.* The sets are over-approximations: whatever a thread does from a location on, in itself or in threads it starts, stays inside. They are
//! least fixpoints over the control-flow graphs; array accesses with unknown index stand for the whole array, pointers for all of memory.
//!
//! A set of cells is one machine word. With more than 64 cells, several share a bit, which only makes the sets larger.

use palisade_base::{Id, IdVec};
use palisade_memory::{Pending, Thread};
use palisade_program::running::{Address, CellId, Code, CodeId, Instr, Location, System};

/// A set of cells.
pub(crate) type Cells = u64;

/// The set that holds one cell.
pub(crate) fn only(cell: CellId) -> Cells {
    1 << (cell.0 % 64)
}

/// Cells read and cells written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Footprint {
    pub reads: Cells,
    pub writes: Cells,
}

impl Footprint {
    fn add(&mut self, other: Footprint) -> bool {
        let old = *self;
        self.reads |= other.reads;
        self.writes |= other.writes;
        *self != old
    }

    /// Both together.
    pub fn union(mut self, other: Footprint) -> Footprint {
        self.add(other);
        self
    }
}

/// The footprints of all locations.
#[derive(Debug)]
pub(crate) struct Footprints {
    from: IdVec<CodeId, IdVec<Location, Footprint>>,
}

impl Footprints {
    pub fn new(system: &System) -> Footprints {
        let nothing = |code: &Code| vec![Footprint::default(); code.location_count()].into();
        let mut from: IdVec<CodeId, IdVec<Location, Footprint>> = system.codes.iter().map(nothing).collect();
        // Calls and spawns refer to other codes, so all are iterated together until nothing changes.
        let mut changed = true;
        while changed {
            changed = false;
            for (id, code) in system.codes.iter_enumerated() {
                changed |= flow(system, id, code, &mut from);
            }
        }
        Footprints { from }
    }

    /// What a thread may still access, its pending stores included.
    pub fn of(&self, thread: &Thread) -> Footprint {
        let mut all = Footprint::default();
        for frame in &thread.frames {
            all.add(self.from[frame.code][frame.location]);
        }
        for entry in &thread.buffer {
            if let Pending::Store(cell, _) = entry {
                all.writes |= only(*cell);
            }
        }
        all
    }
}

/// Propagates backward inside one code until nothing changes there.
fn flow(
    system: &System,
    id: CodeId,
    code: &Code,
    from: &mut IdVec<CodeId, IdVec<Location, Footprint>>,
) -> bool {
    let mut any = false;
    let mut changed = true;
    while changed {
        changed = false;
        for edge in code.edges().as_slice().iter().rev() {
            let mut reach = access(system, &edge.instr, from);
            reach.add(from[id][edge.target]);
            changed |= from[id][edge.source].add(reach);
        }
        any |= changed;
    }
    any
}

fn access(system: &System, instr: &Instr, from: &IdVec<CodeId, IdVec<Location, Footprint>>) -> Footprint {
    let nothing = Footprint::default();
    match instr {
        Instr::Load(_, address) => Footprint { reads: cells(address), ..nothing },
        Instr::Store(address, _) => Footprint { writes: cells(address), ..nothing },
        Instr::Locked { address, .. } => Footprint { reads: cells(address), writes: cells(address) },
        Instr::Call { code, .. } => from[*code][system.codes[*code].entry],
        Instr::Spawn(template, _) => {
            let entry = |code: CodeId| from[code][system.codes[code].entry];
            let roles = system.templates[*template].roles.iter();
            roles.fold(nothing, |all, &role| all.union(entry(system.roles[role].code)))
        }
        _ => nothing,
    }
}

fn cells(address: &Address) -> Cells {
    match address {
        Address::Cell(cell) => only(*cell),
        Address::Element { base, len, .. } if *len < 64 => {
            (0..*len).fold(0, |all, i| all | only(CellId::from_index(base.index() + i as usize)))
        }
        Address::Element { .. } | Address::Pointer(_) => Cells::MAX,
    }
}
