//! Global variables for what properties see, and properties as expressions over them.

use crate::expression::{Condition as Needed, Language, Scope, Width};
use crate::memory::Memory;
use crate::names::Names;
use crate::ranges::{Range, Ranges};
use crate::step::Effect;
use crate::watch::Watch;
use palisade_base::{Id, IdVec};
use palisade_program::running::{
    CodeId, Condition, Expr, Location, Property, RegId, RoleId, System, ThreadId,
};
use std::collections::BTreeMap;

/// The index of a process among those with the same role, where there are several.
pub(crate) const ME: &str = "instance";

/// No run of an exported program gets further than this many processes.
const MOST_PROCESSES: i128 = 1_000_000;

/// A property over what it sees.
pub(crate) struct Seen {
    expr: Expr,
    names: IdVec<RegId, String>,
    ranges: Ranges,
}

impl Seen {
    /// Whether its evaluation needs no more than 32 bits.
    pub fn stays_int(&self) -> bool {
        self.ranges.stays_int(CodeId(0), &self.expr)
    }

    /// The same where what it sees has no more than 32 bits.
    pub fn of_ints(mut self) -> Seen {
        for range in self.ranges.registers[CodeId(0)].iter_mut() {
            *range = range.as_int();
        }
        self
    }
}

/// The variables.
#[derive(Debug)]
pub(crate) struct Observed {
    /// 1 while a process of the role is there.
    pub at: BTreeMap<(RoleId, Location), String>,
    /// Registers.
    pub registers: BTreeMap<(RoleId, RegId), String>,
    /// How many processes are there.
    pub counts: Vec<(Vec<(RoleId, Location)>, String)>,
    /// How many processes have not ended.
    pub running: Option<String>,
    /// How many processes each role has at the start.
    copies: BTreeMap<RoleId, u32>,
    /// Whether the processes of a role are told apart.
    told_apart: BTreeMap<RoleId, bool>,
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
            told_apart: BTreeMap::new(),
        };
        for instance in &system.instances {
            *observed.copies.entry(instance.role).or_default() += 1;
        }
        for role in system.roles.ids() {
            let places = watch.places(system, role);
            let registers = watch.registers_of(system, role);
            observed
                .told_apart
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

    /// How many processes a role has at the start.
    pub fn copies(&self, role: RoleId) -> u32 {
        self.copies.get(&role).copied().unwrap_or(0)
    }

    /// Whether processes of the role need to know which of them they are.
    pub fn are_told_apart(&self, role: RoleId) -> bool {
        self.told_apart[&role]
    }

    /// A variable of a process of the role, as the process itself writes it.
    pub fn own(&self, role: RoleId, name: &str) -> String {
        if self.are_told_apart(role) { format!("{name}[{ME}]") } else { name.to_owned() }
    }

    /// What changes when a process leaves one place and comes to another. In a call, and before its start, it is nowhere.
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
                (true, false) => effects.push(Effect::Less(name.clone())),
                (false, true) => effects.push(Effect::More(name.clone())),
                _ => {}
            }
        }
        if let Some(running) = &self.running
            && to == Some(system.role_code(role).exit)
        {
            effects.push(Effect::Less(running.clone()));
        }
        effects
    }

    /// How many processes are counted at the start.
    pub fn count_at_start(&self, system: &System, places: &[(RoleId, Location)]) -> usize {
        let there = |role: RoleId| places.contains(&(role, system.role_code(role).entry));
        system.instances.iter().filter(|instance| there(instance.role)).count()
    }

    /// How many processes have not ended at the start.
    pub fn running_at_start(&self, system: &System) -> usize {
        let goes_on = |role: RoleId| system.role_code(role).entry != system.role_code(role).exit;
        system.instances.iter().filter(|instance| goes_on(instance.role)).count()
    }

    /// The variable of one process.
    fn of(&self, system: &System, thread: ThreadId, name: &str) -> String {
        let role = system.instances[thread].role;
        if !self.are_told_apart(role) {
            return name.to_owned();
        }
        format!("{name}[{}]", number_among_copies(system, thread))
    }

    /// When a property is violated, where it is judged.
    pub fn bad(&self, language: Language, width: Width, memory: &Memory, seen: &Seen) -> String {
        let registers = &seen.names;
        let scope =
            Scope { language, width, memory, ranges: &seen.ranges, code: CodeId(0), registers, load: None };
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

    /// A property as an expression over registers of a code that nobody runs.
    pub fn property(&self, system: &System, memory: &Memory, ranges: &Ranges, property: &Property) -> Seen {
        let mut leaves: Vec<(String, Range)> = Vec::new();
        let expr = self.leaves(system, memory, ranges, &property.bad, &mut leaves);
        let known: IdVec<RegId, Range> = leaves.iter().map(|(_, range)| *range).collect();
        let ranges = Ranges {
            cells: IdVec::new(),
            registers: IdVec::from(vec![known]),
            privates: 0,
            results: IdVec::new(),
        };
        Seen { expr, names: leaves.into_iter().map(|(name, _)| name).collect(), ranges }
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
                    self.counts.iter().find(|(other, _)| other == places).expect("all are watched");
                leaf(name.clone(), Range { lo: 0, hi: MOST_PROCESSES })
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

/// The number of a process among those with the same role.
pub(crate) fn number_among_copies(system: &System, thread: ThreadId) -> usize {
    let role = system.instances[thread].role;
    system.instances.iter().take(thread.index()).filter(|instance| instance.role == role).count()
}
