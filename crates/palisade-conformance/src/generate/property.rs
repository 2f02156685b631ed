//! Properties that are broken about as often as not.
//!
//! The outcome of a critical cycle is a good final condition, but noise may make it meaningless. So final
//! conditions are also taken from the program itself. An outcome that exists under one model and not under a
//! stronger one is broken under the former and holds under the latter.

use super::{Actor, Generator};
use crate::brute::{self, Observed, Scope};
use crate::build::{
    all, assign, binary, element, eq, instance, int, name, named, not, observe, property, read, stmt, var,
};
use palisade_memory::{Machine, Model, State};
use palisade_program::running::{Code, ThreadId};
use palisade_program::written::{
    BinaryOp, Check, END_LABEL, Expr, Observation, Place, PropertyKind, Select, Start, StmtKind,
};
use palisade_program::{Instantiation, Value, lower};
use std::collections::BTreeSet;

/// How many states are examined to find an outcome worth forbidding.
const LIMITS: Scope = Scope { states: 1_500, buffer: None };

impl Generator {
    /// Adds properties to the finished processes.
    pub(super) fn properties(&mut self) {
        // If a process never ends, final conditions are never evaluated.
        let ends = if self.actors.iter().any(|actor| actor.endless) { 0 } else { 1 };
        let is_cycle = if self.cycle.is_some() { 1 } else { 0 };
        let pick = *self.random.weighted(&[
            (40 * is_cycle * ends, 0),
            (25 * ends, 1),
            (30, 2),
            (8, 3),
            (8, 4),
            (6, 5),
            (4, 6),
        ]);
        let made = match pick {
            0 => self.cycle_outcome(),
            1 => self.outcome_of_a_run(),
            2 => self.state_of_a_run(),
            3 => self.forbidden_labels(),
            4 => self.assertion(),
            5 => self.forbidden_memory(),
            _ => self.forbidden_count(),
        };
        let made = if ends == 1 { made.or_else(|| self.cycle_outcome()) } else { made };
        if made.is_none() {
            self.forbidden_memory();
        }
        if self.random.percent(10) {
            self.forbidden_labels();
        }
    }

    /// `final !(the outcome of the cycle);`
    fn cycle_outcome(&mut self) -> Option<()> {
        let skeleton = self.cycle.clone()?;
        let mut parts = Vec::new();
        for actor in self.visible_actors() {
            for (register, value) in &actor.expected {
                parts.push(eq(register_of(&actor, 0, register), int(*value)));
            }
        }
        for (variable, value) in skeleton.last {
            parts.push(eq(read(self.home(variable)), int(value)));
        }
        (!parts.is_empty()).then(|| self.add(PropertyKind::Final, not(all(parts))))
    }

    /// `final !(an outcome);` where the outcome exists under some model, mostly not under a stronger one.
    fn outcome_of_a_run(&mut self) -> Option<()> {
        let system = lower(&self.program, Instantiation { any: 2, every: None });
        let mut seen: Vec<(Expr, Observed)> = Vec::new();
        for actor in self.visible_actors() {
            for index in 0..actor.instances() {
                let instance = instance_name(&actor, index);
                for register in &actor.registers {
                    let observed = Observed::named(&system, &format!("{instance}.{register}"));
                    seen.push((register_of(&actor, index, register), observed));
                }
            }
        }
        for (cell, place) in self.cells() {
            seen.push((read(place), Observed::named(&system, &cell)));
        }
        self.random.shuffle(&mut seen);
        seen.truncate(self.random.between(1, 4));
        let observed: Vec<Observed> = seen.iter().map(|(_, observed)| *observed).collect();
        let mut sets = Vec::new();
        for model in Model::ALL {
            sets.push(brute::outcomes(Machine::new(&system, model), LIMITS, &observed)?);
        }
        let mut outcome = self.distinguishing(&sets)?;
        if self.random.percent(25) {
            let at = self.random.below(outcome.len());
            outcome[at] = self.random.value(0, 2);
        }
        let parts = seen.into_iter().zip(outcome).map(|((expr, _), value)| eq(expr, int(value)));
        let condition = not(all(parts));
        self.add(PropertyKind::Final, condition);
        Some(())
    }

    /// An item that exists under some model, mostly one that does not exist under a stronger model. The sets
    /// belong to the models, strongest first.
    fn distinguishing<T: Ord + Clone>(&mut self, sets: &[BTreeSet<T>]) -> Option<T> {
        let fresh = |weak: usize| sets[weak].difference(&sets[weak - 1]).cloned().collect::<Vec<T>>();
        let all = |model: usize| sets[model].iter().cloned().collect::<Vec<T>>();
        let candidates = match self.random.below(10) {
            0..=4 => [fresh(1), fresh(2)],
            5..=8 => [fresh(2), fresh(1)],
            _ => [all(0), all(2)],
        };
        let candidates = candidates.into_iter().find(|set| !set.is_empty())?;
        Some(self.random.pick(&candidates).clone())
    }

    /// `forbid P@l && Q@m && P.r == v;` where some model reaches such a state.
    fn state_of_a_run(&mut self) -> Option<()> {
        let system = lower(&self.program, Instantiation { any: 2, every: None });
        let actors = self.visible_actors();
        let mut instances: Vec<(&Actor, usize)> =
            actors.iter().flat_map(|actor| (0..actor.instances()).map(move |index| (actor, index))).collect();
        self.random.shuffle(&mut instances);
        instances.truncate(2);
        let mut threads = Vec::new();
        let mut registers = Vec::new();
        for &(actor, index) in &instances {
            let instance = instance_name(actor, index);
            let (thread, found) =
                system.instances.iter_enumerated().find(|(_, other)| other.name == instance)?;
            threads.push((thread, system.role_code(found.role)));
            for register in &actor.registers {
                let observed = Observed::named(&system, &format!("{instance}.{register}"));
                registers.push((register_of(actor, index, register), observed));
            }
        }
        self.random.shuffle(&mut registers);
        registers.truncate(2);
        let label_of = |state: &State, &(thread, code): &(ThreadId, &Code)| {
            let is_at = |location| state.threads[thread].is_at(location);
            let label = code.labels.iter().find(|(_, location)| is_at(*location));
            label.map(|(label, _)| label.clone()).or_else(|| is_at(code.exit).then(|| END_LABEL.to_owned()))
        };
        let view = |state: &State| {
            let labels: Option<Vec<String>> = threads.iter().map(|thread| label_of(state, thread)).collect();
            let values: Vec<Value> = registers.iter().map(|(_, observed)| observed.value(state)).collect();
            labels.filter(|_| state.section.is_none()).map(|labels| (labels, values))
        };
        let mut sets = Vec::new();
        for model in Model::ALL {
            let search = brute::reachable(Machine::new(&system, model), Scope { buffer: Some(3), ..LIMITS });
            sets.push(search.states.iter().filter_map(view).collect());
        }
        let (labels, values) = self.distinguishing(&sets)?;
        let places = instances.iter().zip(labels).map(|(&(actor, index), label)| {
            let process = instance(&actor.template, select(actor, index));
            observe(Observation::At { process, label: name(label) })
        });
        let values = registers.into_iter().zip(values).map(|((expr, _), value)| eq(expr, int(value)));
        let condition = all(places.chain(values));
        self.add(PropertyKind::Forbid, condition);
        Some(())
    }

    /// `forbid P@l && Q@m && P.r == v;`
    fn forbidden_labels(&mut self) -> Option<()> {
        let mut actors = self.visible_actors();
        self.random.shuffle(&mut actors);
        let mut parts = Vec::new();
        for (position, actor) in actors.iter().take(2).enumerate() {
            let index = if actors.len() == 1 { position } else { self.random.below(actor.instances()) };
            let label = self.some_label(actor);
            let process = instance(&actor.template, select(actor, index));
            parts.push(observe(Observation::At { process, label: name(label) }));
            if !actor.registers.is_empty() && self.random.percent(60) {
                let register = self.random.pick(&actor.registers).clone();
                let value = int(self.random.value(0, 1));
                parts.push(eq(register_of(actor, index, &register), value));
            }
        }
        (!parts.is_empty()).then(|| self.add(PropertyKind::Forbid, all(parts)))
    }

    /// `forbid x == 1 && y == 0;`
    fn forbidden_memory(&mut self) -> Option<()> {
        let mut cells = self.cells();
        self.random.shuffle(&mut cells);
        cells.truncate(self.random.between(1, 3));
        let mut parts = Vec::new();
        for (_, place) in cells {
            parts.push(eq(read(place), int(self.random.value(0, 2))));
        }
        if let Some(actor) = self.visible_actors().first()
            && self.random.percent(50)
        {
            let label = self.some_label(actor);
            let process = instance(&actor.template, select(actor, 0));
            parts.push(observe(Observation::At { process, label: name(label) }));
        }
        self.add(PropertyKind::Forbid, all(parts));
        Some(())
    }

    /// `forbid count(P@l) >= 2;`
    fn forbidden_count(&mut self) -> Option<()> {
        let actors = self.actors.clone();
        let actor = self.random.pick(&actors);
        let label = name(self.some_label(actor));
        let count = observe(Observation::Count { template: name(actor.template.as_str()), label });
        let most = actor.instances().min(self.random.between(1, 2));
        let condition = binary(BinaryOp::Ge, count, int(most as Value));
        let rest = self.cells().into_iter().next().map(|(_, place)| eq(read(place), int(0)));
        let condition = if self.random.percent(40) {
            all([Some(condition), rest].into_iter().flatten())
        } else {
            condition
        };
        self.add(PropertyKind::Forbid, condition);
        Some(())
    }

    /// `assert(r != v);` at the end of a process that has read something.
    fn assertion(&mut self) -> Option<()> {
        let readers: Vec<usize> =
            (0..self.actors.len()).filter(|&at| !self.actors[at].registers.is_empty()).collect();
        if readers.is_empty() {
            return None;
        }
        let at = *self.random.pick(&readers);
        let registers = self.actors[at].registers.clone();
        let parts: Vec<Expr> = (0..self.random.between(1, 2))
            .map(|_| {
                let register = self.random.pick(&registers);
                eq(var(register), int(self.random.value(0, 1)))
            })
            .collect();
        let body = &mut self.program.templates[at].body;
        body.push(stmt(StmtKind::Assert(not(all(parts)), Check::Assertion)));
        if self.random.percent(20) {
            // A statement after it, so that it is not always the last step.
            let place = self.home(0);
            self.program.templates[at].body.push(assign(place, int(1)));
        }
        Some(())
    }

    fn add(&mut self, kind: PropertyKind, condition: Expr) {
        self.program.properties.push(property(kind, condition));
    }

    /// The processes that exist from the start.
    fn visible_actors(&self) -> Vec<Actor> {
        self.actors.iter().filter(|actor| actor.start == Start::Initially).cloned().collect()
    }

    fn some_label(&mut self, actor: &Actor) -> String {
        match actor.labels.as_slice() {
            [] => END_LABEL.to_owned(),
            _ if self.random.percent(30) => END_LABEL.to_owned(),
            labels => self.random.pick(labels).clone(),
        }
    }

    /// All cells with the names the running form gives them.
    fn cells(&self) -> Vec<(String, Place)> {
        let mut cells = Vec::new();
        for shared in &self.program.shared {
            let text = shared.name.as_str();
            match shared.len {
                None => cells.push((text.to_owned(), named(text))),
                Some(len) => {
                    cells.extend((0..len).map(|at| (format!("{text}[{at}]"), element(text, int(at.into())))))
                }
            }
        }
        cells
    }
}

impl Actor {
    fn instances(&self) -> usize {
        self.count as usize * self.params.max(1)
    }
}

fn select(actor: &Actor, index: usize) -> Select {
    match (actor.params, actor.instances()) {
        (0, 1) => Select::Only,
        (0, _) => Select::Index(index as u32),
        _ => Select::Args(vec![index as Value]),
    }
}

/// The name the running form gives to an instance.
fn instance_name(actor: &Actor, index: usize) -> String {
    match select(actor, index) {
        Select::Only => actor.template.clone(),
        Select::Index(index) => format!("{}[{index}]", actor.template),
        Select::Args(_) => format!("{}({index})", actor.template),
    }
}

fn register_of(actor: &Actor, index: usize, register: &str) -> Expr {
    let process = instance(&actor.template, select(actor, index));
    observe(Observation::Register { process, register: name(register) })
}
