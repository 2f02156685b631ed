//! Which cells a thread may still read or write.
//!
//! *Guarantee.* The sets are over-approximations. Everything a thread does from a location on, itself or in
//! threads it starts, stays inside them. They are least fixpoints over the control-flow graphs. Array
//! accesses with unknown index count as the whole array, and pointers as all of memory.
//!
//! A set of cells is one machine word. With more than 64 cells, several share a bit, which only makes the
//! sets larger.

use palisade_base::{Id, IdVec, limits};
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
    /// Nothing is accessed.
    pub const NONE: Footprint = Footprint { reads: 0, writes: 0 };

    fn add(&mut self, other: Footprint) -> bool {
        let old = *self;
        self.reads |= other.reads;
        self.writes |= other.writes;
        *self != old
    }

    /// The union of both.
    pub fn union(mut self, other: Footprint) -> Footprint {
        self.add(other);
        self
    }
}

/// The accesses that may happen from a location on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reach {
    /// Accesses of the thread, and of the threads it starts.
    pub all: Footprint,
    /// Accesses of the threads it starts.
    pub children: Footprint,
}

impl Reach {
    fn add(&mut self, other: Reach) -> bool {
        let all = self.all.add(other.all);
        let children = self.children.add(other.children);
        all || children
    }
}

type Reaches = IdVec<CodeId, IdVec<Location, Reach>>;

/// The footprints of all locations.
#[derive(Debug)]
pub(crate) struct Footprints {
    from: Reaches,
}

impl Footprints {
    pub fn new(system: &System) -> Footprints {
        let nothing = |code: &Code| vec![Reach::default(); code.location_count()].into();
        let mut from: Reaches = system.codes.iter().map(nothing).collect();
        // Calls and spawns refer to other codes, so all codes are iterated together until nothing changes.
        let mut changed = true;
        while changed {
            changed = false;
            for (id, code) in system.codes.iter_enumerated() {
                changed |= flow(system, id, code, &mut from);
            }
        }
        Footprints { from }
    }

    /// Everything a thread may still access, including its pending stores.
    pub fn of(&self, thread: &Thread) -> Reach {
        let mut reach = Reach::default();
        for frame in &thread.frames {
            reach.add(self.from[frame.code][frame.location]);
        }
        for entry in &thread.buffer {
            if let Pending::Store(cell, _) = entry {
                reach.all.writes |= only(*cell);
            }
        }
        reach
    }
}

/// Propagates backward inside one code until nothing changes there.
fn flow(system: &System, id: CodeId, code: &Code, from: &mut Reaches) -> bool {
    let mut any = false;
    let mut changed = true;
    while changed {
        changed = false;
        for edge in code.edges().as_slice().iter().rev() {
            limits::checkpoint();
            let mut reach = access(system, &edge.instr, from);
            reach.add(from[id][edge.target]);
            changed |= from[id][edge.source].add(reach);
        }
        any |= changed;
    }
    any
}

fn access(system: &System, instr: &Instr, from: &Reaches) -> Reach {
    let nothing = Footprint::default();
    let own = |all| Reach { all, children: nothing };
    match instr {
        Instr::Load(_, address) => own(Footprint { reads: cells(address), ..nothing }),
        Instr::Store(address, _) => own(Footprint { writes: cells(address), ..nothing }),
        Instr::Locked { address, .. } => own(Footprint { reads: cells(address), writes: cells(address) }),
        Instr::Call { code, .. } => from[*code][system.codes[*code].entry],
        Instr::Spawn(template, _) => {
            let entry = |code: CodeId| from[code][system.codes[code].entry].all;
            let roles = system.templates[*template].roles.iter();
            let children = roles.fold(nothing, |all, &role| all.union(entry(system.roles[role].code)));
            Reach { all: children, children }
        }
        _ => own(nothing),
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
