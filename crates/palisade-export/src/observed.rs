//! Global variables for what properties observe, and properties as expressions over them.

use crate::expression::{Condition as Needed, Language, Scope, Width};
use crate::memory::Memory;
use crate::names::Names;
use crate::ranges::{Range, Ranges};
use crate::step::Effect;
use crate::uses::{Registers, Uses};
use crate::watch::Watch;
use palisade_base::{Id, IdVec};
use palisade_program::running::{
    CodeId, Condition, Expr, Location, Property, RegId, RoleId, System, ThreadId,
};
use std::collections::BTreeMap;

/// The index of a process among those with the same role, where there are several.
pub(crate) const ME: &str = "instance";

/// No run of an exported program has more processes than this.
const MAX_PROCESSES: i128 = 1_000_000;

/// A property as an expression over the variables that it observes.
pub(crate) struct ObservedProperty {
    expr: Expr,
    names: Registers,
    ranges: Ranges,
}

impl ObservedProperty {
    /// Whether its evaluation needs no more than 32 bits.
    pub fn stays_int(&self) -> bool {
        self.ranges.stays_int(CodeId(0), &self.expr)
    }

    /// The same, with the observed variables limited to 32 bits.
    pub fn of_ints(mut self) -> ObservedProperty {
        for range in self.ranges.registers[CodeId(0)].iter_mut() {
            *range = range.as_int();
        }
        self
    }
}

/// The global variables.
#[derive(Debug)]
pub(crate) struct Observed {
    /// 1 while a process of the role is at the location.
    pub at: BTreeMap<(RoleId, Location), String>,
    /// Registers.
    pub registers: BTreeMap<(RoleId, RegId), String>,
    /// The number of processes at some locations.
    pub counts: Vec<(Vec<(RoleId, Location)>, String)>,
    /// The number of processes that have not ended.
    pub running: Option<String>,
    /// The number of processes of each role at the start.
    copies: BTreeMap<RoleId, u32>,
    /// Whether the processes of a role are distinguished.
    distinguished: BTreeMap<RoleId, bool>,
}

impl Observed {
    pub fn new(system: &System, watch: &Watch, roles: &IdVec<RoleId, String>, names: &mut Names) -> Observed {
        let label = |role: RoleId, location: Location| {
            let code = system.role_code(role);
            let found = code.labels.iter().find(|(_, at)| *at == location);
            found.map_or_else(|| location.0.to_string(), |(label, _)| label.clone())
        };
        let mut observed = Observed {
            at: BTreeMap::new(),
            registers: BTreeMap::new(),
            counts: Vec::new(),
            running: watch.endings.then(|| names.fresh("running")),
            copies: BTreeMap::new(),
            distinguished: BTreeMap::new(),
        };
        for instance in &system.instances {
            *observed.copies.entry(instance.role).or_default() += 1;
        }
        for role in system.roles.ids() {
            let places = watch.places(system, role);
            let registers = watch.registers_of(system, role);
            observed
                .distinguished
                .insert(role, observed.copies(role) > 1 && !(places.is_empty() && registers.is_empty()));
            for location in places {
                let name = names.fresh(&format!("{}_at_{}", roles[role], label(role, location)));
                observed.at.insert((role, location), name);
            }
            for register in registers {
                let code = system.role_code(role);
                let name = names.fresh(&format!("{}_{}", roles[role], code.registers[register].name));
                observed.registers.insert((role, register), name);
            }
        }
        for places in &watch.counts {
            let (role, location) = places.first().copied().expect("a template has roles");
            let template = &system.templates[system.roles[role].template].name;
            let name = names.fresh(&format!("{template}_count_{}", label(role, location)));
            observed.counts.push((places.clone(), name));
        }
        observed
    }

    /// The number of processes of a role at the start.
    pub fn copies(&self, role: RoleId) -> u32 {
        self.copies.get(&role).copied().unwrap_or(0)
    }

    /// Whether processes of the role need to know their index.
    pub fn are_distinguished(&self, role: RoleId) -> bool {
        self.distinguished[&role]
    }

    /// A variable of a process of the role, as the process itself writes it.
    pub fn own(&self, role: RoleId, name: &str) -> String {
        if self.are_distinguished(role) { format!("{name}[{ME}]") } else { name.to_owned() }
    }

    /// The effects of moving from one location to another. During a call, and before its start, a process is
    /// at no location.
    pub fn passage(
        &self,
        system: &System,
        role: RoleId,
        from: Option<Location>,
        to: Option<Location>,
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        if from == to {
            return effects;
        }
        let at = |location: Option<Location>| self.at.get(&(role, location?));
        if let Some(name) = at(from) {
            effects.push(Effect::Set(self.own(role, name), "0".to_owned()));
        }
        if let Some(name) = at(to) {
            effects.push(Effect::Set(self.own(role, name), "1".to_owned()));
        }
        for (places, name) in &self.counts {
            let there = |location: Option<Location>| location.is_some_and(|at| places.contains(&(role, at)));
            match (there(from), there(to)) {
                (true, false) => effects.push(Effect::Decrement(name.clone())),
                (false, true) => effects.push(Effect::Increment(name.clone())),
                _ => {}
            }
        }
        if let Some(running) = &self.running
            && to == Some(system.role_code(role).exit)
        {
            effects.push(Effect::Decrement(running.clone()));
        }
        effects
    }

    /// The number of counted processes at the start.
    pub fn count_at_start(&self, system: &System, places: &[(RoleId, Location)]) -> usize {
        let there = |role: RoleId| places.contains(&(role, system.role_code(role).entry));
        system.instances.iter().filter(|instance| there(instance.role)).count()
    }

    /// The number of processes at the start that have not ended.
    pub fn running_at_start(&self, system: &System) -> usize {
        let has_steps = |role: RoleId| system.role_code(role).entry != system.role_code(role).exit;
        system.instances.iter().filter(|instance| has_steps(instance.role)).count()
    }

    /// The variable of one process.
    fn of(&self, system: &System, thread: ThreadId, name: &str) -> String {
        let role = system.instances[thread].role;
        if !self.are_distinguished(role) {
            return name.to_owned();
        }
        format!("{name}[{}]", number_among_copies(system, thread))
    }

    /// The condition under which a property is violated.
    pub fn bad(
        &self,
        language: Language,
        width: Width,
        memory: &Memory,
        uses: &Uses,
        seen: &ObservedProperty,
    ) -> String {
        let scope = Scope {
            language,
            width,
            memory,
            ranges: &seen.ranges,
            code: CodeId(0),
            registers: &seen.names,
            uses,
            load: None,
        };
        let mut conditions = Vec::new();
        scope.check(&seen.expr, &mut conditions);
        // A condition that cannot be evaluated counts as false.
        let mut text: Vec<String> = conditions
            .into_iter()
            .map(|condition| match condition {
                Needed::Must(text, _) | Needed::May(text) => format!("({text})"),
            })
            .collect();
        let bad = scope.truth(&seen.expr);
        text.push(if text.is_empty() { bad } else { format!("({bad})") });
        text.join(" && ")
    }

    /// A property as an expression over the registers of a fictitious code.
    pub fn property(
        &self,
        system: &System,
        memory: &Memory,
        ranges: &Ranges,
        property: &Property,
    ) -> ObservedProperty {
        let mut leaves: Vec<(String, Range)> = Vec::new();
        let expr = self.leaves(system, memory, ranges, &property.bad, &mut leaves);
        let known: IdVec<RegId, Range> = leaves.iter().map(|(_, range)| *range).collect();
        let ranges = Ranges {
            cells: IdVec::new(),
            registers: IdVec::from(vec![known]),
            privates: 0,
            results: IdVec::new(),
        };
        ObservedProperty { expr, names: leaves.into_iter().map(|(name, _)| name).collect(), ranges }
    }

    fn leaves(
        &self,
        system: &System,
        memory: &Memory,
        ranges: &Ranges,
        condition: &Condition,
        leaves: &mut Vec<(String, Range)>,
    ) -> Expr {
        let mut leaf = |name: String, range: Range| {
            leaves.push((name, range));
            Expr::Reg(RegId::from_index(leaves.len() - 1))
        };
        match condition {
            Condition::Const(value) => Expr::Const(*value),
            Condition::Cell(cell) => leaf(memory.cell(*cell), ranges.cells[*cell]),
            Condition::Register(thread, register) => {
                let role = system.instances[*thread].role;
                let name = self.of(system, *thread, &self.registers[&(role, *register)]);
                leaf(name, ranges.register_range(system.roles[role].code, *register))
            }
            Condition::At(thread, location) => {
                let role = system.instances[*thread].role;
                leaf(self.of(system, *thread, &self.at[&(role, *location)]), Range { lo: 0, hi: 1 })
            }
            Condition::Count(places) => {
                let (_, name) =
                    self.counts.iter().find(|(other, _)| other == places).expect("all counts are watched");
                leaf(name.clone(), Range { lo: 0, hi: MAX_PROCESSES })
            }
            Condition::Unary(op, a) => {
                Expr::Unary(*op, Box::new(self.leaves(system, memory, ranges, a, leaves)))
            }
            Condition::Binary(op, a, b) => {
                let a = self.leaves(system, memory, ranges, a, leaves);
                let b = self.leaves(system, memory, ranges, b, leaves);
                Expr::Binary(*op, Box::new(a), Box::new(b))
            }
        }
    }
}

/// The index of a process among those with the same role.
pub(crate) fn number_among_copies(system: &System, thread: ThreadId) -> usize {
    let role = system.instances[thread].role;
    system.instances.iter().take(thread.index()).filter(|instance| instance.role == role).count()
}
