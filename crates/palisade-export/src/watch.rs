//! What the properties of a program observe: locations, registers and memory. Each becomes a global variable
//! of the exported program. The step that changes it also updates the variable, so a property is an
//! expression over global variables.

use palisade_program::running::{Condition, Location, PropertyKind, RegId, RoleId, System, ThreadId};
use std::collections::BTreeSet;

/// What is observed.
#[derive(Default, Debug)]
pub(crate) struct Watch {
    /// Locations of single processes.
    pub at: BTreeSet<(ThreadId, Location)>,
    /// Registers of single processes.
    pub registers: BTreeSet<(ThreadId, RegId)>,
    /// Locations whose processes are counted; each list appears once.
    pub counts: Vec<Vec<(RoleId, Location)>>,
    /// Whether a property depends on all processes having ended.
    pub endings: bool,
}

impl Watch {
    pub fn new(system: &System) -> Watch {
        let mut watch = Watch::default();
        for property in &system.properties {
            watch.endings |= property.kind == PropertyKind::Final;
            watch.condition(&property.bad);
        }
        watch
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Const(_) | Condition::Cell(_) => {}
            Condition::At(thread, location) => {
                self.at.insert((*thread, *location));
            }
            Condition::Register(thread, register) => {
                self.registers.insert((*thread, *register));
            }
            Condition::Count(places) => {
                if !self.counts.contains(places) {
                    self.counts.push(places.clone());
                }
            }
            Condition::Unary(_, a) => self.condition(a),
            Condition::Binary(_, a, b) => {
                self.condition(a);
                self.condition(b);
            }
        }
    }

    /// Whether a property observes that a process of the role is at the location.
    pub fn sees(&self, system: &System, role: RoleId, location: Location) -> bool {
        (self.endings && location == system.role_code(role).exit)
            || self.at.iter().any(|&(thread, at)| at == location && system.instances[thread].role == role)
            || self.counts.iter().any(|places| places.contains(&(role, location)))
    }

    /// The locations that are observed for single processes of the role.
    pub fn places(&self, system: &System, role: RoleId) -> BTreeSet<Location> {
        let of_role = |thread: ThreadId| system.instances[thread].role == role;
        self.at.iter().filter(|(thread, _)| of_role(*thread)).map(|&(_, location)| location).collect()
    }

    /// The registers of the role's processes that are observed.
    pub fn registers_of(&self, system: &System, role: RoleId) -> BTreeSet<RegId> {
        let of_role = |thread: ThreadId| system.instances[thread].role == role;
        self.registers.iter().filter(|(thread, _)| of_role(*thread)).map(|&(_, register)| register).collect()
    }
}
