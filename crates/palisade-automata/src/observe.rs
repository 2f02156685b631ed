//! The parts of a thread's state that properties can see.
//!
//! `forbid` properties are judged in all states. So a step that changes what they see of a thread is
//! *visible*: it is neither collapsed into another step nor chosen as a reduced set of steps. `final`
//! properties are judged only where no step is possible. Reductions keep all these states, so nothing needs
//! to be visible for them.

use crate::local::{Hold, Local};
use palisade_base::{Id, IdVec};
use palisade_program::Value;
use palisade_program::running::{
    CellId, Condition, Goal, GoalKind, Location, Property, PropertyKind, RegId, RoleId, System, ThreadId,
};

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

    /// Whether some `forbid` looks at threads of a role.
    pub fn looks_at(&self, role: RoleId) -> bool {
        !self.roles[role].locations.is_empty() || !self.roles[role].registers.is_empty()
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

    /// Whether the thread is at a location that some `forbid` looks at.
    pub fn is_at_seen_location(&self, local: &Local) -> bool {
        self.roles[local.thread.role].locations.iter().any(|&location| local.thread.is_at(location))
    }
}
