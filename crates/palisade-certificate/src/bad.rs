//! Every bad state is in some set.
//!
//! A property is decided by making choices one after the other: the look of a named thread, the number of
//! threads at counted places, and the value of a cell. If the choices make the property true, all
//! configurations that agree with them must be in one set. Everything that is not chosen stays open.
//!
//! Counts are interpreted from below: a number n means "at least n". If larger numbers are not bad, this
//! requires more than necessary. Where the number of threads is fixed and that fails, the threads are
//! considered one by one.
//!
//! Because of that, configurations that agree with some numbers also agree with all smaller ones. So once the choices with
//! the smaller numbers are found to be covered, nothing is left to check for the larger ones, and they are skipped. This
//! matters for proofs that can only name a few processes.

use crate::flow::Limit;
use crate::watch::Watch;
use crate::{Missing, Refusal};
use palisade_automata::{Automata, Hold, Local};
use palisade_base::{Id, limits};
use palisade_program::Value;
use palisade_program::running::{
    BinaryOp, CellId, Condition, Fault, Location, Property, PropertyKind, RegId, RoleId, System, ThreadId,
    UnaryOp, binary, unary,
};
use std::collections::{BTreeMap, BTreeSet};

/// Properties that count more threads than this are not supported.
const MAX_COUNT: Value = 1 << 10;

/// Places where threads are counted.
type Places = Vec<(RoleId, Location)>;
/// A place among the states: automaton and class.
pub(crate) type At = (u32, u32);

/// A bad state as far as it is chosen: memory, and processes by automaton and class.
#[derive(Clone, Debug)]
pub(crate) struct Bad {
    pub memory: Vec<Option<u32>>,
    pub processes: Vec<At>,
}

/// The sets of a proof, as far as the check of bad states needs them.
pub(crate) trait Sets {
    /// The number of processes of each automaton.
    fn populations(&self) -> Vec<Limit>;
    /// The number of values of each cell.
    fn values(&self) -> &[u32];
    /// The class of a state.
    fn class(&self, kind: usize, state: usize) -> u32;
    /// The classes at which processes arrive and from which silent edges lead to a class, possibly including
    /// the class itself.
    fn before(&self, at: At) -> &[u32];
    /// Whether all such states are in a set or impossible. Otherwise, a description of the missing ones.
    fn cover(&self, bad: &Bad) -> Result<(), Missing>;
}

pub(crate) fn check(
    system: &System,
    automata: &Automata,
    sets: &dyn Sets,
    watch: &Watch<'_>,
) -> Result<(), Refusal> {
    let look = Look { system, automata, populations: sets.populations(), sets, watch };
    for (kind, automaton) in automata.automata.iter().enumerate() {
        let faulty = automaton.states.iter_enumerated().filter(|(_, local)| local.fault.is_some());
        let places: BTreeSet<At> = faulty.map(|(state, _)| look.class(kind, state.index())).collect();
        look.covered(&look.open(), &[places.into_iter().collect()])?;
    }
    for property in &system.properties {
        let from_below = Question::new(&look, property, true)?.answer();
        let fixed = look.populations.iter().all(Option::is_some);
        match from_below {
            Err(Refusal::Exhausted(what)) => return Err(Refusal::Exhausted(what)),
            Err(_) if fixed => Question::new(&look, property, false)?.answer()?,
            answer => answer?,
        }
    }
    Ok(())
}

struct Look<'a> {
    system: &'a System,
    automata: &'a Automata,
    populations: Vec<Limit>,
    sets: &'a dyn Sets,
    watch: &'a Watch<'a>,
}

impl Look<'_> {
    fn class(&self, kind: usize, state: usize) -> At {
        (kind as u32, self.sets.class(kind, state))
    }

    /// Any memory, no processes.
    fn open(&self) -> Bad {
        Bad { memory: vec![None; self.sets.values().len()], processes: Vec::new() }
    }

    fn kind(&self, role: RoleId) -> Option<usize> {
        self.automata.automata.iter().position(|automaton| automaton.role == role)
    }

    /// The classes of an automaton with a state that passes.
    fn classes(&self, kind: usize, passes: impl Fn(&Local) -> bool) -> BTreeSet<At> {
        let states = self.automata.automata[kind].states.iter_enumerated();
        states.filter(|(_, local)| passes(local)).map(|(state, _)| self.class(kind, state.index())).collect()
    }

    /// Checks that every configuration with one process at each list of places is in a set. Processes are
    /// taken back to before their silent steps.
    fn covered(&self, bad: &Bad, places: &[Vec<At>]) -> Result<(), Refusal> {
        self.watch.look(0)?;
        let Err(missing) = self.sets.cover(bad) else { return Ok(()) };
        let Some((first, rest)) = places.split_first() else {
            return Err(Refusal::BadMissing(missing));
        };
        for &(kind, class) in first {
            for &state in self.sets.before((kind, class)) {
                let mut bad = bad.clone();
                bad.processes.push((kind, state));
                self.covered(&bad, rest)?;
            }
        }
        Ok(())
    }
}

/// The look of a thread: those of the relevant locations at which it is, and the contents of its relevant
/// registers.
type Looks = (Vec<Location>, Vec<(RegId, Value)>);

/// A property, and the choices made so far.
struct Question<'a> {
    look: &'a Look<'a>,
    property: &'a Property,
    /// For each relevant thread, its possible looks, and its possible places for each of them.
    threads: BTreeMap<ThreadId, Vec<(Looks, Vec<At>)>>,
    /// The places of each count, with the largest number that matters.
    counts: Vec<(Places, Value)>,
    cells: Vec<CellId>,
    chosen_threads: BTreeMap<ThreadId, usize>,
    chosen_counts: Vec<Option<Value>>,
    chosen_cells: BTreeMap<CellId, u32>,
    /// The numbers for which all configurations are covered, by the looks and cells that were chosen with them.
    covered: BTreeMap<Chosen, Vec<Vec<Option<Value>>>>,
}

/// The looks of named threads, and the values of cells.
type Chosen = (BTreeMap<ThreadId, usize>, BTreeMap<CellId, u32>);

impl<'a> Question<'a> {
    fn new(look: &'a Look<'a>, property: &'a Property, from_below: bool) -> Result<Question<'a>, Refusal> {
        let mut named: BTreeMap<ThreadId, (Vec<Location>, Vec<RegId>)> = BTreeMap::new();
        let mut question = Question {
            look,
            property,
            threads: BTreeMap::new(),
            counts: Vec::new(),
            cells: Vec::new(),
            chosen_threads: BTreeMap::new(),
            chosen_counts: Vec::new(),
            chosen_cells: BTreeMap::new(),
            covered: BTreeMap::new(),
        };
        question.collect(&property.bad, from_below, &mut named)?;
        let any = look.populations.iter().any(Option::is_none);
        let unsuited = |what: &str| Err(Refusal::Unsuited(what.into()));
        if property.kind == PropertyKind::Final {
            if any {
                return unsuited("`final` conditions are not supported with any number of threads");
            }
            look.system.instances.ids().for_each(|thread| _ = named.entry(thread).or_default());
        }
        let counted = |role: RoleId| question.counts.iter().any(|(p, _)| p.iter().any(|&(r, _)| r == role));
        if named.keys().any(|&thread| counted(look.system.instances[thread].role)) {
            return unsuited("a condition that both names and counts the same threads is not supported");
        }
        for (thread, (locations, registers)) in named {
            question.threads.insert(thread, question.looks(thread, &locations, &registers));
        }
        question.chosen_counts = vec![None; question.counts.len()];
        Ok(question)
    }

    fn collect(
        &mut self,
        condition: &Condition,
        from_below: bool,
        named: &mut BTreeMap<ThreadId, (Vec<Location>, Vec<RegId>)>,
    ) -> Result<(), Refusal> {
        match condition {
            Condition::Const(_) => {}
            // A cell named twice is chosen once; listing it twice would only cost time. The same holds for
            // counts.
            Condition::Cell(cell) if self.cells.contains(cell) => {}
            Condition::Cell(cell) => self.cells.push(*cell),
            Condition::Register(thread, register) => named.entry(*thread).or_default().1.push(*register),
            Condition::At(thread, location) => named.entry(*thread).or_default().0.push(*location),
            Condition::Count(places) if from_below => {
                if self.counts.iter().all(|(other, _)| other != places) {
                    self.counts.push((places.clone(), self.largest(places)?));
                }
            }
            Condition::Count(places) => {
                for (thread, location) in self.threads_at(places) {
                    named.entry(thread).or_default().0.push(location);
                }
            }
            Condition::Unary(_, a) => self.collect(a, from_below, named)?,
            Condition::Binary(_, a, b) => {
                self.collect(a, from_below, named)?;
                self.collect(b, from_below, named)?;
            }
        }
        Ok(())
    }

    /// The threads a count ranges over.
    fn threads_at(&self, places: &Places) -> Vec<(ThreadId, Location)> {
        let at = |role: RoleId| places.iter().find(|(r, _)| *r == role).map(|&(_, location)| location);
        let instances = self.look.system.instances.iter_enumerated();
        instances.filter_map(|(thread, instance)| Some((thread, at(instance.role)?))).collect()
    }

    /// A number above which more threads at the places change nothing: all threads, or more than the
    /// condition compares with.
    fn largest(&self, places: &Places) -> Result<Value, Refusal> {
        let populations = places.iter().filter_map(|&(role, _)| self.look.kind(role));
        let populations: Option<Vec<u32>> = populations.map(|kind| self.look.populations[kind]).collect();
        let largest = match populations {
            Some(counts) => counts.iter().map(|&count| Some(Value::from(count))).sum::<Option<Value>>(),
            None => compared(&self.property.bad).and_then(|number| number.checked_add(1)),
        };
        match largest {
            Some(largest) if largest > MAX_COUNT => {
                Err(Refusal::Unsuited(format!("counts of more than {MAX_COUNT} threads are not supported")))
            }
            Some(largest) => Ok(largest),
            None => Err(Refusal::Unsuited(
                "with any number of threads, counts may only be compared with constants".into(),
            )),
        }
    }

    fn looks(&self, thread: ThreadId, locations: &[Location], registers: &[RegId]) -> Vec<(Looks, Vec<At>)> {
        let role = self.look.system.instances[thread].role;
        let Some(kind) = self.look.kind(role) else { return Vec::new() };
        let mut found: BTreeMap<Looks, BTreeSet<At>> = BTreeMap::new();
        for (state, local) in self.look.automata.automata[kind].states.iter_enumerated() {
            limits::checkpoint();
            // A fault is bad by itself, so including or excluding these states makes no difference here or in
            // `covered`.
            if local.fault.is_none() && self.is_judged(local) {
                let at = locations.iter().copied().filter(|&location| local.thread.is_at(location)).collect();
                let bottom = &local.thread.frames[0].registers;
                let held = registers.iter().map(|&register| (register, bottom[register.index()])).collect();
                found.entry((at, held)).or_default().insert(self.look.class(kind, state.index()));
            }
        }
        found.into_iter().map(|(looks, places)| (looks, places.into_iter().collect())).collect()
    }

    fn is_judged(&self, local: &Local) -> bool {
        match self.property.kind {
            PropertyKind::Forbid => local.hold == Hold::Outside,
            PropertyKind::Final => local.thread.has_ended(self.look.system),
        }
    }

    fn answer(&mut self) -> Result<(), Refusal> {
        // For a `forbid`, choosing the other threads as well would only split the same states further.
        let all_named =
            self.property.kind == PropertyKind::Forbid || self.chosen_threads.len() == self.threads.len();
        match self.value(&self.property.bad) {
            // A condition that faults is false.
            Some(Ok(0) | Err(_)) => return Ok(()),
            Some(Ok(_)) if all_named => return self.check_covered(),
            _ => {}
        }
        let thread = self.threads.keys().find(|thread| !self.chosen_threads.contains_key(thread)).copied();
        if let Some(thread) = thread {
            for looks in 0..self.threads[&thread].len() {
                self.chosen_threads.insert(thread, looks);
                self.answer()?;
            }
            self.chosen_threads.remove(&thread);
            return Ok(());
        }
        let cell = self.cells.iter().find(|cell| !self.chosen_cells.contains_key(cell)).copied();
        if let Some(cell) = cell {
            for value in 0..self.look.sets.values()[cell.index()] {
                limits::checkpoint();
                self.chosen_cells.insert(cell, value);
                self.answer()?;
            }
            self.chosen_cells.remove(&cell);
            return Ok(());
        }
        let count = self.chosen_counts.iter().position(Option::is_none).expect("something is still open");
        for number in 0..=self.counts[count].1 {
            self.chosen_counts[count] = Some(number);
            self.answer()?;
        }
        self.chosen_counts[count] = None;
        Ok(())
    }

    /// Checks that all configurations that agree with the choices are in a set, unless that follows from an earlier
    /// check with smaller numbers.
    fn check_covered(&mut self) -> Result<(), Refusal> {
        let chosen = (self.chosen_threads.clone(), self.chosen_cells.clone());
        let smaller = |known: &Vec<Option<Value>>| {
            let mut numbers = known.iter().zip(&self.chosen_counts);
            numbers.all(|(known, number)| known.unwrap_or(0) <= number.unwrap_or(0))
        };
        if self.covered.get(&chosen).is_some_and(|known| known.iter().any(smaller)) {
            return Ok(());
        }
        self.all_covered()?;
        self.covered.entry(chosen).or_default().push(self.chosen_counts.clone());
        Ok(())
    }

    /// Checks that all configurations that agree with the choices are in a set.
    fn all_covered(&self) -> Result<(), Refusal> {
        let mut bad = self.look.open();
        for (cell, value) in &self.chosen_cells {
            bad.memory[cell.index()] = Some(*value);
        }
        let mut places: Vec<Vec<At>> = self
            .chosen_threads
            .iter()
            .map(|(thread, &looks)| self.threads[thread][looks].1.clone())
            .collect();
        for ((counted, _), number) in self.counts.iter().zip(&self.chosen_counts) {
            let at: BTreeSet<At> = counted
                .iter()
                .filter_map(|&(role, location)| Some((self.look.kind(role)?, location)))
                .flat_map(|(kind, location)| {
                    let there = |local: &Local| {
                        local.fault.is_none() && local.hold == Hold::Outside && local.thread.is_at(location)
                    };
                    self.look.classes(kind, there)
                })
                .collect();
            for _ in 0..number.unwrap_or(0) {
                places.push(at.iter().copied().collect());
            }
        }
        self.look.covered(&bad, &places)
    }

    /// The condition's value, or the fault of its evaluation, if the choices decide it. As on the machine, the
    /// operands of `&&` and `||` are evaluated from left to right, and only as far as needed.
    fn value(&self, condition: &Condition) -> Option<Result<Value, Fault>> {
        let looks =
            |thread: &ThreadId| self.chosen_threads.get(thread).map(|&looks| &self.threads[thread][looks].0);
        let either = |a: &Condition, b: &Condition, decisive: bool| {
            let decides = |value: Value| (value != 0) == decisive;
            match self.value(a) {
                Some(Ok(value)) if decides(value) => Some(Ok(decisive.into())),
                Some(Ok(_)) => Some(self.value(b)?.map(|value| (value != 0).into())),
                Some(Err(fault)) => Some(Err(fault)),
                // The second operand decides only if the evaluation of the first cannot fault.
                None if always_has_a_value(a) => {
                    self.value(b)?.ok().filter(|&value| decides(value)).map(|_| Ok(decisive.into()))
                }
                None => None,
            }
        };
        match condition {
            Condition::Const(value) => Some(Ok(*value)),
            Condition::Cell(cell) => {
                let value = self.chosen_cells.get(cell)?;
                Some(Ok(self.look.automata.values[*cell].as_slice()[*value as usize]))
            }
            Condition::Register(thread, register) => {
                looks(thread)?.1.iter().find(|(held, _)| held == register).map(|&(_, value)| Ok(value))
            }
            Condition::At(thread, location) => Some(Ok(looks(thread)?.0.contains(location).into())),
            Condition::Count(places) => match self.counts.iter().position(|(other, _)| other == places) {
                Some(count) => self.chosen_counts[count].map(Ok),
                None => {
                    let at = |(thread, location)| Some(Value::from(looks(&thread)?.0.contains(&location)));
                    self.threads_at(places).into_iter().map(at).sum::<Option<Value>>().map(Ok)
                }
            },
            Condition::Unary(op, a) => Some(self.value(a)?.and_then(|a| unary(*op, a))),
            Condition::Binary(BinaryOp::And, a, b) => either(a, b, false),
            Condition::Binary(BinaryOp::Or, a, b) => either(a, b, true),
            Condition::Binary(op, a, b) => match (self.value(a)?, self.value(b)?) {
                (Ok(a), Ok(b)) => Some(binary(*op, a, b)),
                (Err(fault), _) | (_, Err(fault)) => Some(Err(fault)),
            },
        }
    }
}

/// Whether the form of a condition shows that its evaluation never faults.
fn always_has_a_value(condition: &Condition) -> bool {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    match condition {
        Condition::Unary(UnaryOp::Not, a) => always_has_a_value(a),
        Condition::Binary(And | Or | Eq | Ne | Lt | Le | Gt | Ge, a, b) => {
            always_has_a_value(a) && always_has_a_value(b)
        }
        Condition::Unary(..) | Condition::Binary(..) => false,
        _ => true,
    }
}

/// The largest number that a condition compares sums of counts with, if it does nothing else with counts.
/// Counts above that number make no difference.
fn compared(condition: &Condition) -> Option<Value> {
    if !has_count(condition) {
        return Some(0);
    }
    match condition {
        Condition::Unary(UnaryOp::Not, a) => compared(a),
        Condition::Binary(BinaryOp::And | BinaryOp::Or, a, b) => Some(compared(a)?.max(compared(b)?)),
        Condition::Binary(
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge,
            a,
            b,
        ) => match (number(a), number(b)) {
            (Some(number), None) if is_sum(b) => Some(number.max(0)),
            (None, Some(number)) if is_sum(a) => Some(number.max(0)),
            _ => None,
        },
        sum => is_sum(sum).then_some(0),
    }
}

fn has_count(condition: &Condition) -> bool {
    match condition {
        Condition::Count(_) => true,
        Condition::Unary(_, a) => has_count(a),
        Condition::Binary(_, a, b) => has_count(a) || has_count(b),
        Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) | Condition::At(..) => false,
    }
}

/// Whether a condition is a sum of counts.
fn is_sum(condition: &Condition) -> bool {
    match condition {
        Condition::Count(_) => true,
        Condition::Binary(BinaryOp::Add, a, b) => is_sum(a) && is_sum(b),
        _ => false,
    }
}

/// The value of a condition made of numbers.
fn number(condition: &Condition) -> Option<Value> {
    match condition {
        Condition::Const(value) => Some(*value),
        Condition::Unary(op, a) => unary(*op, number(a)?).ok(),
        Condition::Binary(op, a, b) => binary(*op, number(a)?, number(b)?).ok(),
        _ => None,
    }
}
