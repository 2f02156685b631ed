//! Bad states, as requirements on processes and memory.
//!
//! A property is a condition over threads, counts and memory. Its values are chosen one by one until the
//! condition is decided. Values that were not needed stay open. Each way to make the condition true gives an
//! element: processes in the chosen states, memory with the chosen values.
//!
//! Counts are taken from below where that is enough: `count(P@l) >= 2` needs two processes at l, whatever the
//! others do.
//!
//! *Limits.* Two kinds of conditions are not supported where any number of threads may run a role:
//! - counts other than from below (`count(P@l) >= 2`);
//! - a condition on final states, which is about all threads.

use palisade_automata::{Automata, Hold, Population, StateId, ValueId};
use palisade_base::{Id, IdVec, limits};
use palisade_program::Value;
use palisade_program::running::{
    BinaryOp, CellId, Condition, Fault, Location, Property, PropertyKind, RegId, RoleId, System, ThreadId,
    UnaryOp, binary, unary,
};
use std::collections::BTreeMap;

/// The maximal number of bad combinations.
const MAX_COMBINATIONS: usize = 1 << 20;

/// A bad combination: the contents of memory, and the states of processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bad {
    pub memory: Vec<(CellId, ValueId)>,
    pub processes: Vec<(u32, StateId)>,
}

/// All bad combinations of a program, or why they cannot be determined.
pub(crate) fn bad_combinations(system: &System, automata: &Automata) -> Result<Vec<Bad>, String> {
    let mut all = Vec::new();
    for (kind, automaton) in automata.automata.iter().enumerate() {
        for (state, local) in automaton.states.iter_enumerated() {
            limits::checkpoint();
            if local.fault.is_some() {
                all.push(Bad { memory: Vec::new(), processes: vec![(kind as u32, state)] });
            }
        }
    }
    let kinds: BTreeMap<RoleId, u32> =
        automata.automata.iter().enumerate().map(|(kind, a)| (a.role, kind as u32)).collect();
    for property in &system.properties {
        let any = automata.automata.iter().any(|automaton| automaton.population == Population::Any);
        if property.kind == PropertyKind::Final && any {
            return Err("a `final` condition is about all processes, and their number is not fixed".into());
        }
        let combinations = |counts| {
            let mut found = Vec::new();
            Chooser::new(system, automata, &kinds, property, counts)?.choose(&mut found)?;
            Ok::<_, String>(found)
        };
        let found = match combinations(Counts::FromBelow) {
            Err(_) if !any => combinations(Counts::WrittenOut),
            found => found,
        };
        all.append(&mut found?);
    }
    Ok(all)
}

/// How counts are interpreted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counts {
    /// As numbers for which larger values are bad too. This takes a few elements, for any population.
    FromBelow,
    /// As sums over all threads, one by one. This is for fixed populations.
    WrittenOut,
}

/// A set of states that a condition cannot distinguish.
#[derive(Clone, Debug)]
struct Class {
    at: Vec<Location>,
    registers: BTreeMap<RegId, Value>,
    states: Vec<StateId>,
}

/// An unknown whose value is chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Unknown {
    Thread(ThreadId),
    /// The number of threads at the places of the n-th count.
    Count(usize),
    Cell(CellId),
}

struct Chooser<'a> {
    system: &'a System,
    automata: &'a Automata,
    kinds: &'a BTreeMap<RoleId, u32>,
    property: &'a Property,
    understood: Counts,
    unknowns: Vec<Unknown>,
    classes: BTreeMap<ThreadId, Vec<Class>>,
    counts: Vec<Vec<(RoleId, Location)>>,
    threads: BTreeMap<ThreadId, usize>,
    counted: Vec<Option<Value>>,
    cells: IdVec<CellId, Option<ValueId>>,
}

impl<'a> Chooser<'a> {
    fn new(
        system: &'a System,
        automata: &'a Automata,
        kinds: &'a BTreeMap<RoleId, u32>,
        property: &'a Property,
        understood: Counts,
    ) -> Result<Chooser<'a>, String> {
        let mut chooser = Chooser {
            system,
            automata,
            kinds,
            property,
            understood,
            unknowns: Vec::new(),
            classes: BTreeMap::new(),
            counts: Vec::new(),
            threads: BTreeMap::new(),
            counted: Vec::new(),
            cells: automata.values.iter().map(|_| None).collect(),
        };
        let mut seen = Seen::default();
        chooser.look(&property.bad, &mut seen);
        if property.kind == PropertyKind::Final {
            for thread in system.instances.ids() {
                seen.threads.entry(thread).or_default();
            }
        }
        for (&thread, (locations, registers)) in &seen.threads {
            let classes = chooser.classify(thread, locations, registers);
            chooser.classes.insert(thread, classes);
            chooser.unknowns.push(Unknown::Thread(thread));
        }
        chooser.unknowns.extend(seen.cells.iter().map(|&cell| Unknown::Cell(cell)));
        chooser.unknowns.extend((0..chooser.counts.len()).map(Unknown::Count));
        let named = |role: RoleId| seen.threads.keys().any(|&thread| system.instances[thread].role == role);
        if chooser.counts.iter().flatten().any(|&(role, _)| named(role)) {
            return Err(
                "a condition both names and counts the same processes, and their number is not fixed".into(),
            );
        }
        chooser.counted = vec![None; chooser.counts.len()];
        Ok(chooser)
    }

    /// The threads a count ranges over, each with the counted location.
    fn counted_threads(&self, places: &[(RoleId, Location)]) -> Vec<(ThreadId, Location)> {
        let at = |role: RoleId| places.iter().find(|(r, _)| *r == role).map(|&(_, location)| location);
        let instances = self.system.instances.iter_enumerated();
        instances.filter_map(|(thread, instance)| Some((thread, at(instance.role)?))).collect()
    }

    fn look(&mut self, condition: &Condition, seen: &mut Seen) {
        match condition {
            Condition::Const(_) => {}
            Condition::Cell(cell) => {
                if !seen.cells.contains(cell) {
                    seen.cells.push(*cell);
                }
            }
            Condition::Register(thread, register) => {
                seen.threads.entry(*thread).or_default().1.push(*register)
            }
            Condition::At(thread, location) => seen.threads.entry(*thread).or_default().0.push(*location),
            Condition::Count(places) if self.understood == Counts::WrittenOut => {
                for (thread, location) in self.counted_threads(places) {
                    seen.threads.entry(thread).or_default().0.push(location);
                }
            }
            Condition::Count(places) => {
                if !self.counts.contains(places) {
                    self.counts.push(places.clone());
                }
            }
            Condition::Unary(_, a) => self.look(a, seen),
            Condition::Binary(_, a, b) => {
                self.look(a, seen);
                self.look(b, seen);
            }
        }
    }

    /// The states of a thread's automaton in which the property is evaluated, grouped by what the property
    /// sees.
    fn classify(&self, thread: ThreadId, locations: &[Location], registers: &[RegId]) -> Vec<Class> {
        let role = self.system.instances[thread].role;
        let automaton = &self.automata.automata[self.kinds[&role] as usize];
        let mut classes: Vec<Class> = Vec::new();
        for (state, local) in automaton.states.iter_enumerated() {
            let ended = local.thread.has_ended(self.system);
            let judged = match self.property.kind {
                PropertyKind::Forbid => local.hold == Hold::Outside,
                PropertyKind::Final => ended,
            };
            if local.fault.is_some() || !judged {
                continue;
            }
            let at: Vec<Location> = locations.iter().copied().filter(|&l| local.thread.is_at(l)).collect();
            let held = &local.thread.frames[0].registers;
            let registers: BTreeMap<RegId, Value> =
                registers.iter().map(|&register| (register, held[register.index()])).collect();
            match classes.iter_mut().find(|class| class.at == at && class.registers == registers) {
                Some(class) => class.states.push(state),
                None => classes.push(Class { at, registers, states: vec![state] }),
            }
        }
        classes
    }

    /// The condition's value, or the fault of its evaluation, if the choices made so far decide it. As on the
    /// machine, the operands of `&&` and `||` are evaluated from left to right, and only as far as needed.
    fn decide(&self, condition: &Condition) -> Option<Result<Value, Fault>> {
        let either = |a: &Condition, b: &Condition, decisive: bool| match self.decide(a) {
            Some(Err(fault)) => Some(Err(fault)),
            Some(Ok(value)) if (value != 0) == decisive => Some(Ok(decisive.into())),
            Some(Ok(_)) => self.decide(b).map(|value| value.map(|value| (value != 0).into())),
            None => match self.decide(b)? {
                Ok(value) if (value != 0) == decisive && !can_fault(a) => Some(Ok(decisive.into())),
                _ => None,
            },
        };
        match condition {
            Condition::Const(value) => Some(Ok(*value)),
            Condition::Cell(cell) => self.cells[*cell].map(|value| Ok(self.automata.values[*cell][value])),
            Condition::Register(thread, register) => {
                self.class(*thread).map(|class| Ok(class.registers[register]))
            }
            Condition::At(thread, location) => {
                self.class(*thread).map(|class| Ok(class.at.contains(location).into()))
            }
            Condition::Count(places) if self.understood == Counts::WrittenOut => {
                let at = |(thread, location)| Some(Value::from(self.class(thread)?.at.contains(&location)));
                self.counted_threads(places).into_iter().map(at).sum::<Option<Value>>().map(Ok)
            }
            Condition::Count(places) => {
                let index = self.counts.iter().position(|count| count == places)?;
                self.counted[index].map(Ok)
            }
            Condition::Unary(op, a) => Some(self.decide(a)?.and_then(|a| unary(*op, a))),
            Condition::Binary(BinaryOp::And, a, b) => either(a, b, false),
            Condition::Binary(BinaryOp::Or, a, b) => either(a, b, true),
            Condition::Binary(op, a, b) => match (self.decide(a)?, self.decide(b)?) {
                (Ok(a), Ok(b)) => Some(binary(*op, a, b)),
                (Err(fault), _) | (_, Err(fault)) => Some(Err(fault)),
            },
        }
    }

    fn class(&self, thread: ThreadId) -> Option<&Class> {
        self.threads.get(&thread).map(|&class| &self.classes[&thread][class])
    }

    fn choose(&mut self, all: &mut Vec<Bad>) -> Result<(), String> {
        match self.decide(&self.property.bad) {
            // A condition that faults is false.
            Some(Ok(0) | Err(_)) => return Ok(()),
            Some(Ok(_)) if !self.must_know_more() => return self.give(all),
            _ => {}
        }
        let open = self.unknowns.iter().copied().find(|&unknown| self.is_open(unknown));
        match open.expect("with everything chosen the condition is decided") {
            Unknown::Thread(thread) => {
                for class in 0..self.classes[&thread].len() {
                    limits::checkpoint();
                    self.threads.insert(thread, class);
                    self.choose(all)?;
                }
                self.threads.remove(&thread);
            }
            Unknown::Count(_) => self.choose_counts(all)?,
            Unknown::Cell(cell) => {
                for value in self.automata.values[cell].ids() {
                    limits::checkpoint();
                    self.cells[cell] = Some(value);
                    self.choose(all)?;
                }
                self.cells[cell] = None;
            }
        }
        Ok(())
    }

    /// Called when everything else is chosen. Finds the least counts that make the condition true, and checks
    /// that larger ones do too.
    fn choose_counts(&mut self, all: &mut Vec<Bad>) -> Result<(), String> {
        let most: Option<Vec<usize>> = self.counts.iter().map(|places| self.most(places)).collect();
        let most = most
            .ok_or("if the number of processes is not fixed, counts can only be compared with constants")?;
        let vectors = most.iter().try_fold(1usize, |product, most| product.checked_mul(most + 1));
        let vectors =
            vectors.filter(|&vectors| vectors <= MAX_COMBINATIONS).ok_or("there are too many counts")?;
        let vector = |mut number: usize| -> Vec<Value> {
            let digit = |most: &usize| {
                let digit = number % (most + 1);
                number /= most + 1;
                digit as Value
            };
            most.iter().map(digit).collect()
        };
        let mut least: Vec<Vec<Value>> = Vec::new();
        for number in 0..vectors {
            limits::checkpoint();
            let counts = vector(number);
            self.counted = counts.iter().map(|&count| Some(count)).collect();
            let bad = matches!(self.decide(&self.property.bad), Some(Ok(value)) if value != 0);
            let above = least.iter().any(|other| other.iter().zip(&counts).all(|(a, b)| a <= b));
            match (bad, above) {
                (false, true) => {
                    return Err(
                        "if the number of processes is not fixed, counts can only be bounded from below"
                            .into(),
                    );
                }
                (true, false) => {
                    least.push(counts);
                    self.give(all)?;
                }
                _ => {}
            }
        }
        self.counted.fill(None);
        Ok(())
    }

    /// The largest number of processes at some places that makes a difference: all of them, or one more than
    /// the number the condition compares with.
    fn most(&self, places: &[(RoleId, Location)]) -> Option<usize> {
        let kinds = places.iter().filter_map(|(role, _)| self.kinds.get(role));
        let all = kinds.map(|&kind| match self.automata.automata[kind as usize].population {
            Population::Fixed(all) => Some(all as usize),
            Population::Any => None,
        });
        let all = all.sum::<Option<usize>>();
        let compared = compared(&self.property.bad).and_then(|number| usize::try_from(number + 1).ok());
        match (all, compared) {
            (Some(all), Some(compared)) => Some(all.min(compared)),
            (all, compared) => all.or(compared),
        }
    }

    /// In final states all threads have ended, whether the condition mentions them or not.
    fn must_know_more(&self) -> bool {
        self.property.kind == PropertyKind::Final && self.threads.len() < self.classes.len()
    }

    fn is_open(&self, unknown: Unknown) -> bool {
        match unknown {
            Unknown::Thread(thread) => !self.threads.contains_key(&thread),
            Unknown::Count(index) => self.counted[index].is_none(),
            Unknown::Cell(cell) => self.cells[cell].is_none(),
        }
    }

    /// Adds all combinations of states for the choices made.
    fn give(&self, all: &mut Vec<Bad>) -> Result<(), String> {
        let memory: Vec<_> =
            self.cells.iter_enumerated().filter_map(|(cell, value)| Some((cell, (*value)?))).collect();
        let mut partial = vec![Vec::new()];
        let mut extend = |states: Vec<(u32, StateId)>| {
            let longer = |combination: &Vec<_>| {
                let with = |&state| combination.iter().copied().chain([state]).collect::<Vec<_>>();
                states.iter().map(with).collect::<Vec<_>>()
            };
            partial = partial.iter().flat_map(longer).collect();
            if partial.len() > MAX_COMBINATIONS {
                Err("there are too many bad combinations of states".to_string())
            } else {
                Ok(())
            }
        };
        for (&thread, &class) in &self.threads {
            let kind = self.kinds[&self.system.instances[thread].role];
            extend(self.classes[&thread][class].states.iter().map(|&state| (kind, state)).collect())?;
        }
        for (places, count) in self.counts.iter().zip(&self.counted) {
            for _ in 0..count.unwrap_or(0) {
                extend(self.states_at(places))?;
            }
        }
        all.extend(partial.into_iter().map(|processes| Bad { memory: memory.clone(), processes }));
        if all.len() > MAX_COMBINATIONS {
            Err("there are too many bad combinations of states".into())
        } else {
            Ok(())
        }
    }

    fn states_at(&self, places: &[(RoleId, Location)]) -> Vec<(u32, StateId)> {
        let mut states = Vec::new();
        for &(role, location) in places {
            let Some(&kind) = self.kinds.get(&role) else { continue };
            for (state, local) in self.automata.automata[kind as usize].states.iter_enumerated() {
                if local.hold == Hold::Outside && local.fault.is_none() && local.thread.is_at(location) {
                    states.push((kind, state));
                }
            }
        }
        states
    }
}

/// Everything a condition looks at.
#[derive(Default)]
struct Seen {
    threads: BTreeMap<ThreadId, (Vec<Location>, Vec<RegId>)>,
    cells: Vec<CellId>,
}

/// The largest number with which sums of counts are compared, if counts are not used in any other way. No sum
/// above it makes a difference.
fn compared(condition: &Condition) -> Option<Value> {
    let is_sum = |condition: &Condition| {
        let mut open = vec![condition];
        while let Some(part) = open.pop() {
            limits::checkpoint();
            match part {
                Condition::Count(_) => {}
                Condition::Binary(BinaryOp::Add, a, b) => open.extend([&**a, &**b]),
                _ => return false,
            }
        }
        true
    };
    match condition {
        Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) | Condition::At(..) => Some(0),
        Condition::Count(_) => Some(0),
        Condition::Unary(UnaryOp::Not, a) => compared(a),
        Condition::Unary(_, a) => (!mentions_count(a)).then_some(0),
        Condition::Binary(BinaryOp::And | BinaryOp::Or, a, b) => Some(compared(a)?.max(compared(b)?)),
        Condition::Binary(op, a, b) => {
            let comparison = matches!(
                op,
                BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
            );
            match (constant(a), constant(b)) {
                (Some(number), _) if comparison && is_sum(b) => Some(number.clamp(0, Value::MAX - 1)),
                (_, Some(number)) if comparison && is_sum(a) => Some(number.clamp(0, Value::MAX - 1)),
                _ if mentions_count(condition) => None,
                _ => Some(0),
            }
        }
    }
}

fn mentions_count(condition: &Condition) -> bool {
    match condition {
        Condition::Count(_) => true,
        Condition::Unary(_, a) => mentions_count(a),
        Condition::Binary(_, a, b) => mentions_count(a) || mentions_count(b),
        Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) | Condition::At(..) => false,
    }
}

/// The value of a condition without unknowns.
fn constant(condition: &Condition) -> Option<Value> {
    match condition {
        Condition::Const(value) => Some(*value),
        Condition::Unary(op, a) => unary(*op, constant(a)?).ok(),
        Condition::Binary(op, a, b) => binary(*op, constant(a)?, constant(b)?).ok(),
        _ => None,
    }
}

/// Whether the evaluation of a condition can fault.
fn can_fault(condition: &Condition) -> bool {
    use BinaryOp::{And, BitAnd, BitOr, BitXor, Eq, Ge, Gt, Le, Lt, Ne, Or};
    match condition {
        Condition::Unary(UnaryOp::Neg, _) => true,
        Condition::Unary(_, a) => can_fault(a),
        Condition::Binary(And | Or | Eq | Ne | Lt | Le | Gt | Ge | BitAnd | BitOr | BitXor, a, b) => {
            can_fault(a) || can_fault(b)
        }
        Condition::Binary(..) => true,
        _ => false,
    }
}
