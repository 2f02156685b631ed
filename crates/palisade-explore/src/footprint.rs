//! Which cells a thread may still read or write.
//!
//! *Guarantee.* The sets are over-approximations. Everything a thread does from a location on, itself or in
//! threads it starts, stays inside them. They are least fixpoints over the control-flow graphs. Array
//! accesses with unknown index count as the whole array, and pointers as the cells that
//! [`Pointers`](palisade_automata::Pointers) finds.

use palisade_automata::{CellSets, Cells};
use palisade_base::{IdVec, limits};
use palisade_memory::{NextAccess, Pending, Thread};
use palisade_program::running::{CellId, Code, CodeId, Edge, EdgeId, Instr, Location, System};

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

    /// Whether one of them writes what the other accesses.
    pub fn conflicts(self, other: Footprint) -> bool {
        self.reads & other.writes != 0 || self.writes & (other.reads | other.writes) != 0
    }

    /// The union of both.
    pub fn union(self, other: Footprint) -> Footprint {
        Footprint { reads: self.reads | other.reads, writes: self.writes | other.writes }
    }
}

/// The footprints of several threads together.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Together {
    some: Footprint,
    /// What is in the footprints of at least two threads.
    two: Footprint,
}

impl Together {
    /// Adds a thread.
    pub fn add(&mut self, thread: Footprint) {
        self.two.reads |= self.some.reads & thread.reads;
        self.two.writes |= self.some.writes & thread.writes;
        self.some = self.some.union(thread);
    }

    /// The union of the footprints of all threads except one that was added.
    pub fn without(&self, thread: Footprint) -> Footprint {
        // What it shares with another thread is in two footprints.
        let Footprint { reads, writes } = self.some;
        self.two.union(Footprint { reads: reads & !thread.reads, writes: writes & !thread.writes })
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
    sets: CellSets,
}

impl Footprints {
    pub fn new(system: &System) -> Footprints {
        let sets = CellSets::conflicting(system);
        let own = own_accesses(system, &sets);
        let nothing = |code: &Code| vec![Reach::default(); code.location_count()].into();
        let mut from: Reaches = system.codes.iter().map(nothing).collect();
        // Calls and spawns refer to other codes, so all codes are iterated together until nothing changes.
        let mut changed = true;
        while changed {
            changed = false;
            for (id, code) in system.codes.iter_enumerated() {
                changed |= flow(system, &own[id], id, code, &mut from);
            }
        }
        Footprints { from, sets }
    }

    /// The set that holds one cell.
    pub fn only(&self, cell: CellId) -> Cells {
        self.sets.only(cell)
    }

    /// What these accesses touch.
    pub fn of_accesses(&self, accesses: &[NextAccess]) -> Footprint {
        let mut footprint = Footprint::NONE;
        for access in accesses {
            let set = if access.writes { &mut footprint.writes } else { &mut footprint.reads };
            *set |= self.only(access.cell);
        }
        footprint
    }

    /// Everything a thread may still access, including its pending stores.
    pub fn of(&self, thread: &Thread) -> Reach {
        let mut reach = Reach::default();
        for frame in &thread.frames {
            reach.add(self.from[frame.code][frame.location]);
        }
        for entry in &thread.buffer {
            if let Pending::Store(cell, _) = entry {
                reach.all.writes |= self.only(*cell);
            }
        }
        reach
    }
}

/// What the instruction of each edge accesses itself.
fn own_accesses(system: &System, sets: &CellSets) -> IdVec<CodeId, IdVec<EdgeId, Footprint>> {
    let of_code = |(id, code): (CodeId, &Code)| {
        let of_edge = |edge: &Edge| {
            let set = |address| sets.of(system, id, address);
            match &edge.instr {
                Instr::Load(_, address) => Footprint { reads: set(address), writes: 0 },
                Instr::Store(address, _) => Footprint { reads: 0, writes: set(address) },
                Instr::Locked { address, .. } => Footprint { reads: set(address), writes: set(address) },
                _ => Footprint::NONE,
            }
        };
        code.edges().iter().map(of_edge).collect()
    };
    system.codes.iter_enumerated().map(of_code).collect()
}

/// Propagates backward inside one code until nothing changes there.
fn flow(
    system: &System,
    own: &IdVec<EdgeId, Footprint>,
    id: CodeId,
    code: &Code,
    from: &mut Reaches,
) -> bool {
    let mut any = false;
    let mut changed = true;
    while changed {
        changed = false;
        for (edge, own) in code.edges().as_slice().iter().zip(own.as_slice()).rev() {
            limits::checkpoint();
            let mut reach = inside(system, &edge.instr, from);
            reach.all.add(*own);
            reach.add(from[id][edge.target]);
            changed |= from[id][edge.source].add(reach);
        }
        any |= changed;
    }
    any
}

/// The accesses of the procedure that an instruction enters, or of the threads that it starts.
fn inside(system: &System, instr: &Instr, from: &Reaches) -> Reach {
    match instr {
        Instr::Call { code, .. } => from[*code][system.codes[*code].entry],
        Instr::Spawn(template, _) => {
            let entry = |code: CodeId| from[code][system.codes[code].entry].all;
            let roles = system.templates[*template].roles.iter();
            let children =
                roles.fold(Footprint::NONE, |all, &role| all.union(entry(system.roles[role].code)));
            Reach { all: children, children }
        }
        _ => Reach::default(),
    }
}
