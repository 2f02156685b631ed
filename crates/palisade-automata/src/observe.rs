//! The parts of a thread's state that properties can see.
//!
//! `forbid` properties are judged in all states. So a step that changes what they see of a thread is
//! *visible*: it is neither collapsed into another step nor chosen as a reduced set of steps. `final`
//! properties are judged only where no step is possible. Reductions keep all these states, so nothing needs
//! to be visible for them.
//!
//! Data races are judged in all states too. They look at which thread is about to access which cell, for the cells
//! that plain accesses and other accesses of different threads can have in common. This is not part of the view:
//! [`crate::run_on`] says how collapsed steps keep it, and searches say how their reductions do. Under PSO they look at
//! pending stores as well, which are part of the thread state.

use crate::local::{Hold, Local};
use crate::{CellSets, Pointers};
use palisade_base::{Id, IdVec};
use palisade_memory::{Model, NextAccess};
use palisade_program::Value;
use palisade_program::running::{
    Address, Addresses, CellId, Code, CodeId, Condition, EdgeId, Goal, GoalKind, Instr, Location, Property,
    PropertyKind, RegId, RoleId, System, ThreadId,
};
use rustc_hash::FxHashMap;

/// The parts of states that `forbid` properties look at.
#[derive(Debug)]
pub struct Observer {
    roles: IdVec<RoleId, Seen>,
    /// Whether some `forbid` reads memory, and is therefore judged with empty buffers only.
    pub reads_memory: bool,
    /// The cells that some `forbid` reads.
    pub cells: Vec<CellId>,
    /// Instances that some property names individually. They are not interchangeable with others.
    pub named: Vec<ThreadId>,
    races: Option<Races>,
}

/// Where data races are possible.
#[derive(Debug)]
struct Races {
    addresses: Addresses,
    /// The accesses of each location that may touch a cell in [`Races::cells`].
    accesses: FxHashMap<(CodeId, Location), Vec<(Address, AccessKind)>>,
    /// The cells that a plain access may touch, and that another thread may access.
    cells: IdVec<CellId, bool>,
}

/// What an access does, as far as races are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct AccessKind {
    writes: bool,
    plain: bool,
}

impl Races {
    /// `None` if the program has no plain accesses.
    fn new(system: &System) -> Option<Races> {
        if system.codes.iter().all(|code| code.plain.is_empty()) {
            return None;
        }
        let sets = CellSets::conflicting(system);
        let pointers = Pointers::new(system);
        let all = |code, address| -> Vec<CellId> {
            pointers.cells(system, code, address).unwrap_or_else(|| system.cells.ids().collect())
        };
        let mut cells: IdVec<CellId, bool> = vec![false; system.cells.len()].into();
        for (id, code) in system.codes.iter_enumerated() {
            for &edge in &code.plain {
                if let Some((address, _)) = access(code, edge) {
                    // A cell without a bit is never written, or accessed by one thread only.
                    let shared = all(id, address).into_iter().filter(|&cell| sets.only(cell) != 0);
                    shared.for_each(|cell| cells[cell] = true);
                }
            }
        }
        let mut accesses: FxHashMap<(CodeId, Location), Vec<_>> = FxHashMap::default();
        for (id, code) in system.codes.iter_enumerated() {
            for (edge_id, edge) in code.edges().iter_enumerated() {
                let Some((address, writes)) = access(code, edge_id) else { continue };
                if all(id, address).into_iter().any(|cell| cells[cell]) {
                    let kind = AccessKind { writes, plain: code.plain.binary_search(&edge_id).is_ok() };
                    accesses.entry((id, edge.source)).or_default().push((address.clone(), kind));
                }
            }
        }
        Some(Races { addresses: system.addresses.clone(), accesses, cells })
    }

    /// What a thread is about to access.
    fn next(&self, local: &Local) -> Vec<NextAccess> {
        let top = local.thread.top();
        if local.hold != Hold::Outside || local.fault.is_some() {
            return Vec::new();
        }
        let Some(accesses) = self.accesses.get(&(top.code, top.location)) else { return Vec::new() };
        let next = accesses.iter().filter_map(|(address, kind)| {
            let cell = address.resolve(&self.addresses, &top.registers).ok()?;
            self.cells[cell].then_some(NextAccess { cell, writes: kind.writes, plain: kind.plain })
        });
        next.collect()
    }
}

/// The address of a load, store or locked instruction, and whether it may write.
fn access(code: &Code, edge: EdgeId) -> Option<(&Address, bool)> {
    match &code.edges()[edge].instr {
        Instr::Load(_, address) => Some((address, false)),
        Instr::Store(address, _) | Instr::Locked { address, .. } => Some((address, true)),
        _ => None,
    }
}

/// The parts of states that `forbid` properties look at in the threads of one role.
#[derive(Clone, Debug, Default)]
struct Seen {
    locations: Vec<Location>,
    registers: Vec<RegId>,
}

/// What is seen of a thread. A `forbid` cannot distinguish equal views.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    judged: bool,
    /// The length of the buffer, if it matters. A `forbid` that reads memory is judged only with empty
    /// buffers. So putting off a store, with the buffer drained in between, is distinguishable from storing
    /// at once.
    pending: usize,
    at: Option<Location>,
    registers: Vec<Value>,
}

impl Observer {
    /// Collects what the properties of a program look at.
    pub fn new(system: &System) -> Observer {
        let mut observer = Observer {
            roles: system.roles.iter().map(|_| Seen::default()).collect(),
            reads_memory: false,
            cells: Vec::new(),
            named: Vec::new(),
            races: Races::new(system),
        };
        for property in &system.properties {
            let visible = property.kind == PropertyKind::Forbid;
            observer.reads_memory |= visible && property.reads_memory;
            observer.look(system, &property.bad, visible);
        }
        observer
    }

    /// Collects what the goals of a program look at. They are judged in all states, as `forbid` is.
    pub fn of_goals(system: &System) -> Observer {
        let property = |goal: &Goal| match &goal.kind {
            GoalKind::End => None,
            GoalKind::Condition { condition, reads_memory } => Some(Property {
                kind: PropertyKind::Forbid,
                bad: condition.clone(),
                reads_memory: *reads_memory,
                span: goal.span,
            }),
        };
        let properties = system.goals.iter().filter_map(property).collect();
        Observer::new(&System { properties, ..system.clone() })
    }

    fn look(&mut self, system: &System, condition: &Condition, visible: bool) {
        match condition {
            Condition::Const(_) => {}
            Condition::Cell(cell) if visible => self.cells.push(*cell),
            Condition::Cell(_) => {}
            Condition::Register(thread, register) => {
                self.named.push(*thread);
                if visible {
                    self.roles[system.instances[*thread].role].registers.push(*register);
                }
            }
            Condition::At(thread, location) => {
                self.named.push(*thread);
                if visible {
                    self.roles[system.instances[*thread].role].locations.push(*location);
                }
            }
            Condition::Count(places) => {
                for &(role, location) in places {
                    if visible {
                        self.roles[role].locations.push(location);
                    }
                }
            }
            Condition::Unary(_, a) => self.look(system, a, visible),
            Condition::Binary(_, a, b) => {
                self.look(system, a, visible);
                self.look(system, b, visible);
            }
        }
    }

    /// Whether something is seen of threads of a role.
    pub fn looks_at(&self, role: RoleId) -> bool {
        self.races.is_some()
            || !self.roles[role].locations.is_empty()
            || !self.roles[role].registers.is_empty()
    }

    /// The view of a thread.
    pub fn view(&self, local: &Local) -> View {
        let pending = if self.reads_memory { local.thread.buffer.len() } else { 0 };
        let seen = &self.roles[local.thread.role];
        if !self.looks_at(local.thread.role) {
            return View { judged: true, pending, ..View::default() };
        }
        let bottom = &local.thread.frames[0];
        View {
            judged: local.hold == Hold::Outside,
            pending,
            at: seen.locations.iter().copied().find(|&location| local.thread.is_at(location)),
            registers: seen.registers.iter().map(|register| bottom.registers[register.index()]).collect(),
        }
    }

    /// What a thread is about to access, of the cells on which races are possible.
    pub fn next_accesses(&self, local: &Local) -> Vec<NextAccess> {
        self.races.as_ref().map_or_else(Vec::new, |races| races.next(local))
    }

    /// The same, what it was about to access in the local steps that it took last, and the pending stores that count.
    pub fn last_accesses(&self, model: Model, local: &Local) -> Vec<NextAccess> {
        let mut all = local.passed.clone();
        all.extend(self.next_accesses(local));
        if let Some(races) = &self.races {
            all.extend(NextAccess::pending(model, &local.thread).filter(|access| races.cells[access.cell]));
        }
        all
    }

    /// Whether the thread is at a location that some `forbid` looks at.
    pub fn is_at_seen_location(&self, local: &Local) -> bool {
        self.roles[local.thread.role].locations.iter().any(|&location| local.thread.is_at(location))
    }
}
