//! Properties that are about as often broken as not.
//!
//! The outcome of a critical cycle is a good final condition, but noise may make it meaningless. So final conditions are also taken from the program itself: an
//! outcome that one model has and a stronger one has not is broken under the one and holds under the other.

use super::{Actor, Generator};
use crate::brute::{self, Limits, Observed};
use crate::build::{
    all, assign, binary, element, eq, instance, int, name, named, not, observe, property, read, stmt, var,
};
use palisade_memory::{Machine, Model};
use palisade_program::written::{BinaryOp, Expr, Observation, Place, PropertyKind, Select, Start, StmtKind};
use palisade_program::{Instantiation, Value, lower};
use std::collections::BTreeSet;

/// How many states are looked at to find an outcome worth forbidding.
const LIMITS: Limits = Limits { states: 4_000, buffer: None };

impl Generator {
    /// Adds properties to the finished processes.
    pub(super) fn properties(&mut self) {
        let is_cycle = self.cycle.is_some();
        let pick = *self.random.weighted(&[
            (if is_cycle { 40 } else { 0 }, 0),
            (25, 1),
            (12, 2),
            (10, 3),
            (8, 4),
            (5, 5),
        ]);
        let made = match pick {
            0 => self.cycle_outcome(),
            1 => self.outcome_of_a_run(),
            2 => self.forbidden_labels(),
            3 => self.assertion(),
            4 => self.forbidden_memory(),
            _ => self.forbidden_count(),
        };
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

    /// `final !(an outcome);` where the outcome is one of some model, if possible not of a stronger one.
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
        let fresh = |weak: usize| sets[weak].difference(&sets[weak - 1]).cloned().collect::<BTreeSet<_>>();
        let candidates = match self.random.below(10) {
            0..=3 => [fresh(1), fresh(2), sets[2].clone()],
            4..=6 => [fresh(2), fresh(1), sets[0].clone()],
            _ => [BTreeSet::new(), BTreeSet::new(), sets[2].clone()],
        };
        let candidates = candidates.into_iter().find(|set| !set.is_empty())?;
        let candidates = Vec::from_iter(candidates);
        let mut outcome = self.random.pick(&candidates).clone();
        if self.random.percent(25) {
            let at = self.random.below(outcome.len());
            outcome[at] = self.random.value(0, 2);
        }
        let parts = seen.into_iter().zip(outcome).map(|((expr, _), value)| eq(expr, int(value)));
        let condition = not(all(parts));
        self.add(PropertyKind::Final, condition);
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
        body.push(stmt(StmtKind::Assert(not(all(parts)))));
        if self.random.percent(20) {
            // Something to do after it, so that it is not always the last step.
            let place = self.home(0);
            self.program.templates[at].body.push(assign(place, int(1)));
        }
        Some(())
    }

    fn add(&mut self, kind: PropertyKind, condition: Expr) {
        self.program.properties.push(property(kind, condition));
    }

    /// Those that exist from the start.
    fn visible_actors(&self) -> Vec<Actor> {
        self.actors.iter().filter(|actor| actor.start == Start::Initially).cloned().collect()
    }

    fn some_label(&mut self, actor: &Actor) -> String {
        match actor.labels.as_slice() {
            [] => "end".to_owned(),
            _ if self.random.percent(30) => "end".to_owned(),
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
