//! Checks the invariants of a [`System`] that the header of [`super`] lists. Tests call this; engines rely on
//! the invariants without checking them.

use super::{Address, Code, Condition, EdgeId, FairKind, GoalKind, Instr, Location, RegId, System};
use palisade_base::Id;

impl System {
    /// Checks all invariants.
    ///
    /// # Panics
    /// If one is broken, with its number.
    pub fn check_invariants(&self) {
        for code in self.codes.iter() {
            let name = &code.name;
            assert!(code.entry.index() < code.location_count(), "invariant 1: entry of {name}");
            assert!(code.exit.index() < code.location_count(), "invariant 1: exit of {name}");
            for (label, location) in &code.labels {
                assert!(location.index() < code.location_count(), "invariant 1: label {label} of {name}");
            }
            for edge in code.edges().iter() {
                let locations = [edge.source, edge.target];
                let known = locations.iter().all(|location| location.index() < code.location_count());
                assert!(known, "invariant 1: locations of {edge:?} in {name}");
                assert!(self.is_in_range(code, &edge.instr), "invariants 1 and 2: {edge:?} in {name}");
            }
            let sorted = code.edges().iter().map(|edge| edge.source).is_sorted();
            assert!(sorted, "invariant 3: edges of {name} are sorted");
            for location in (0..code.location_count()).map(Location::from_index) {
                let mut edges = code.edges_from(location).map(|id| &code.edges()[EdgeId(id)]);
                assert!(
                    edges.all(|edge| edge.source == location),
                    "invariant 3: edges from {location:?} in {name}"
                );
            }
            assert!(code.edges_from(code.exit).is_empty(), "invariant 4: the exit of {name} has no edges");
            let privates = |code: &Code| -> Vec<_> {
                code.registers.iter().take(self.privates).map(|register| register.ty).collect()
            };
            let same = self.codes.iter().all(|other| privates(other) == privates(code));
            assert!(
                privates(code).len() == self.privates && same,
                "invariant 5: private variables in {name}"
            );
            check_sections(code);
        }
        for role in self.roles.iter() {
            let known = role.code.index() < self.codes.len() && role.template.index() < self.templates.len();
            assert!(known, "invariant 1: role {}", role.name);
        }
        for template in self.templates.iter() {
            let known = template.roles.iter().all(|role| role.index() < self.roles.len());
            assert!(known, "invariant 1: roles of {}", template.name);
        }
        for instance in self.instances.iter() {
            assert!(instance.role.index() < self.roles.len(), "invariant 1: role of {}", instance.name);
        }
        for property in &self.properties {
            assert!(self.is_condition(&property.bad), "invariant 1: {property:?}");
        }
        for goal in &self.goals {
            if let GoalKind::Condition { condition, .. } = &goal.kind {
                assert!(self.is_condition(condition), "invariant 1: {goal:?}");
            }
        }
        for property in &self.fair {
            if let FairKind::Leaves { thread, stay } = &property.kind {
                let instance = self.instances.get(*thread);
                let code = instance.map(|instance| self.role_code(instance.role));
                let exists = |code: &Code| {
                    let mut locations = stay.locations.iter();
                    locations.all(|location| location.index() < code.location_count())
                        && stay.edges.iter().all(|edge| edge.index() < code.edges().len())
                };
                assert!(code.is_some_and(exists), "invariant 1: {property:?}");
            }
        }
    }

    fn is_in_range(&self, code: &Code, instr: &Instr) -> bool {
        let is_register = |register: RegId| register.index() < code.registers.len();
        let mut registers = instr.written_register().is_none_or(is_register);
        instr.read_registers(&mut |register| registers &= is_register(register));
        let is_address = |address: &Address| match address {
            Address::Cell(cell) => cell.index() < self.cells.len(),
            Address::Element { base, len, .. } => base.index() + *len as usize <= self.cells.len(),
            Address::Pointer(_) => true,
        };
        let others = match instr {
            Instr::Load(_, address) | Instr::Store(address, _) | Instr::Locked { address, .. } => {
                is_address(address)
            }
            Instr::Call { code, args, .. } => {
                code.index() < self.codes.len() && args.len() == self.codes[*code].params
            }
            Instr::Spawn(template, _) => template.index() < self.templates.len(),
            _ => true,
        };
        registers && others
    }

    fn is_condition(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Const(_) => true,
            Condition::Cell(cell) => cell.index() < self.cells.len(),
            Condition::Register(thread, register) => self
                .instances
                .get(*thread)
                .is_some_and(|instance| register.index() < self.role_code(instance.role).registers.len()),
            Condition::At(thread, location) => self
                .instances
                .get(*thread)
                .is_some_and(|instance| location.index() < self.role_code(instance.role).location_count()),
            Condition::Count(places) => places.iter().all(|(role, location)| {
                role.index() < self.roles.len() && location.index() < self.role_code(*role).location_count()
            }),
            Condition::Unary(_, a) => self.is_condition(a),
            Condition::Binary(_, a, b) => self.is_condition(a) && self.is_condition(b),
        }
    }
}

/// Invariant 6: every path to a location opens the same number of sections that are still open there.
fn check_sections(code: &Code) {
    let mut open: Vec<Option<u32>> = vec![None; code.location_count()];
    open[code.entry.index()] = Some(0);
    let mut next = vec![code.entry];
    while let Some(location) = next.pop() {
        let before = open[location.index()].expect("only reached locations are in the work list");
        for edge in code.edges_from(location).map(|id| &code.edges()[EdgeId(id)]) {
            let after = match edge.instr {
                Instr::AtomicBegin => before.checked_add(1),
                Instr::AtomicEnd => before.checked_sub(1),
                _ => Some(before),
            };
            let broken = || format!("invariant 6: sections of {} at {edge:?}", code.name);
            let after = after.unwrap_or_else(|| panic!("{}", broken()));
            match open[edge.target.index()] {
                None => {
                    open[edge.target.index()] = Some(after);
                    next.push(edge.target);
                }
                Some(known) => assert_eq!(known, after, "{}", broken()),
            }
        }
    }
    let at_exit = open[code.exit.index()].unwrap_or(0);
    assert_eq!(at_exit, 0, "invariant 6: {} ends in a section", code.name);
}

#[cfg(test)]
mod tests {
    use super::super::{Addresses, Edge};
    use super::*;
    use palisade_base::{IdVec, Span};

    /// A system with one code, which has three locations and these edges.
    fn system(edges: &[(u32, u32, Instr)]) -> System {
        let edges = edges.iter().map(|(source, target, instr)| Edge {
            source: Location(*source),
            target: Location(*target),
            instr: instr.clone(),
            span: Span::default(),
        });
        let code = Code::new("p".to_owned(), Location(0), Location(2), 3, edges.collect());
        System {
            enums: Vec::new(),
            cells: IdVec::new(),
            addresses: Addresses::new(&IdVec::new()),
            codes: vec![code].into(),
            roles: IdVec::new(),
            templates: IdVec::new(),
            privates: 0,
            instances: IdVec::new(),
            properties: Vec::new(),
            goals: Vec::new(),
            fair: Vec::new(),
        }
    }

    #[test]
    fn sections_that_are_closed() {
        system(&[(0, 1, Instr::AtomicBegin), (1, 2, Instr::AtomicEnd)]).check_invariants();
    }

    #[test]
    #[should_panic(expected = "invariant 6")]
    fn a_section_that_is_left_open() {
        system(&[(0, 1, Instr::AtomicBegin), (1, 2, Instr::Nop)]).check_invariants();
    }

    #[test]
    #[should_panic(expected = "invariant 6")]
    fn a_section_that_is_open_on_one_path_only() {
        system(&[(0, 1, Instr::AtomicBegin), (0, 1, Instr::Nop)]).check_invariants();
    }

    #[test]
    #[should_panic(expected = "invariants 1 and 2")]
    fn a_register_that_does_not_exist() {
        system(&[(0, 1, Instr::Havoc(RegId(0), 0, 1))]).check_invariants();
    }

    #[test]
    #[should_panic(expected = "invariant 5")]
    fn private_variables_that_do_not_exist() {
        System { privates: 1, ..system(&[]) }.check_invariants();
    }
}
