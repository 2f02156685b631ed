//! What properties see of threads, and values on which no step and no property depends.

use palisade_base::Id;
use palisade_memory::Thread;
use palisade_program::running::{Condition, Liveness, Location, PropertyKind, RegId, RoleId, System};

/// What properties look at in a code.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub locations: Vec<Location>,
    pub registers: Vec<RegId>,
}

/// What the properties of some kinds look at, by code.
pub(crate) fn seen(system: &System, kinds: impl Fn(PropertyKind) -> bool) -> Vec<Seen> {
    fn look(system: &System, condition: &Condition, seen: &mut [Seen]) {
        let code = |role: RoleId| system.roles[role].code.index();
        match condition {
            Condition::Const(_) | Condition::Cell(_) => {}
            Condition::Register(thread, register) => {
                seen[code(system.instances[*thread].role)].registers.push(*register);
            }
            Condition::At(thread, location) => {
                seen[code(system.instances[*thread].role)].locations.push(*location);
            }
            Condition::Count(places) => {
                places.iter().for_each(|&(role, location)| seen[code(role)].locations.push(location));
            }
            Condition::Unary(_, a) => look(system, a, seen),
            Condition::Binary(_, a, b) => {
                look(system, a, seen);
                look(system, b, seen);
            }
        }
    }
    let mut seen = vec![Seen::default(); system.codes.len()];
    for property in system.properties.iter().filter(|property| kinds(property.kind)) {
        look(system, &property.bad, &mut seen);
        if property.kind == PropertyKind::Final {
            for role in system.roles.iter() {
                seen[role.code.index()].locations.push(system.codes[role.code].exit);
            }
        }
    }
    seen
}

/// The indices of the threads that properties name one by one, in order.
pub(crate) fn named(system: &System) -> Vec<usize> {
    fn look(condition: &Condition, named: &mut Vec<usize>) {
        match condition {
            Condition::Register(thread, _) | Condition::At(thread, _) => named.push(thread.index()),
            Condition::Unary(_, a) => look(a, named),
            Condition::Binary(_, a, b) => [a, b].into_iter().for_each(|side| look(side, named)),
            Condition::Const(_) | Condition::Cell(_) | Condition::Count(_) => {}
        }
    }
    let mut named = Vec::new();
    system.properties.iter().for_each(|property| look(&property.bad, &mut named));
    named.sort_unstable();
    named
}

/// Sets registers to 0 that are never read again, and registers of a caller that are waiting for a result.
pub(crate) fn forget(liveness: &Liveness, thread: &mut Thread) {
    let mut awaited: Option<RegId> = None;
    for frame in thread.frames.iter_mut().rev() {
        for register in liveness.dead(frame.code, frame.location) {
            frame.registers[register.index()] = 0;
        }
        if let Some(register) = awaited
            && !liveness.is_observed(frame.code, register)
            && let Some(value) = frame.registers.get_mut(register.index())
        {
            *value = 0;
        }
        awaited = frame.result;
    }
}
