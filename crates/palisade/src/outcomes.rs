//! `outcomes`: all values that a program can end with.
//!
//! *How.* A forward search collects the final states ([`palisade_explore::outcomes`]). Where it had to bound
//! the buffers, the other engines are asked whether a run can end in any other way. If none can, the list is
//! complete after all.
//!
//! *Guarantee.* Every outcome in a list is the outcome of some run. A list with nothing
//! [missing](Outcomes::missing) has all of them.

use crate::check::{CheckOptions, check};
use crate::error::{AskError, Bug};
use crate::language::InputLanguage;
use crate::question::Unconfirmed;
use crate::read::{Input, bound};
use palisade_base::{Diagnostic, Origin, Span};
use palisade_engine::{Limits, Options, Reached, Reason, Stats, Verdict};
use palisade_memory::{Interlocked, Machine, Model, Violation, evaluate};
use palisade_program::running::{BinaryOp, Condition, Property as Judged, System};
use palisade_program::written::{
    Block, Count, Expr, ExprKind, Name, Observation, Place, PlaceKind, ProcessRef, Program, Property,
    PropertyKind, Select, Shared, Start, StmtKind, UnaryOp,
};
use palisade_program::{Instantiation, Value, lower};
use palisade_syntax::{Asks, Language, LitmusTest, litmus_test};
use palisade_trace::{Replay, ReplayError, Run, replay, shorten};
use std::collections::BTreeMap;
use std::time::Instant;

/// Which variables and registers are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Listed {
    /// Those that the properties name, or all shared variables if they name none. For a litmus test, those of
    /// its question and of `locations [...]`.
    #[default]
    Named,
    /// All shared variables, and all registers of the processes that exist at the start.
    All,
}

/// A program whose outcomes are listed, and what is listed of them.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Without properties.
    program: Program,
    system: System,
    columns: Vec<Column>,
    /// Litmus: outcomes in which this is false do not count.
    filter: Option<(Expr, Condition)>,
    /// True in outcomes that the program marks.
    marks: Vec<Condition>,
    /// The question of a litmus test.
    test: Option<TestQuestion>,
}

/// The name of a litmus test, and what it asks about the outcomes that are marked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestQuestion {
    /// Its name.
    pub name: String,
    /// What it asks, if it asks something.
    pub asks: Option<Asks>,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    expr: Expr,
    condition: Condition,
    can_point: bool,
}

/// The outcomes under one memory model.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// The memory model.
    pub model: Model,
    /// The outcomes by their values, and whether they are marked. The condition of a litmus test marks the
    /// outcomes that satisfy it. A `final` property marks those that violate it.
    pub found: BTreeMap<Vec<Value>, bool>,
    /// Why there may be more outcomes, or `None` if these are all.
    pub missing: Option<Reason>,
    /// Whether a run was seen that ends with an error and has no outcome.
    pub faults: bool,
    /// Whether a state was seen from which no end can be reached.
    pub dead_ends: bool,
    /// The engine that completed the list.
    pub engine: &'static str,
    /// Counters of the search.
    pub stats: Stats,
    /// Time taken.
    pub seconds: f64,
}

/// A run to an outcome, replayed on the trusted machine.
#[derive(Clone, Debug)]
pub struct OutcomeRun {
    /// The program.
    pub system: System,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// The run.
    pub run: Run,
    /// Its replay.
    pub replay: Replay,
}

/// The most outcomes with which other engines are asked whether there are more. Their question names each.
const MAX_ASKED: usize = 256;

impl Listing {
    /// What is listed of a program, or why its outcomes cannot be listed.
    pub fn new(input: &Input, listed: Listed) -> Result<Listing, Vec<Diagnostic>> {
        if let Some(template) = (input.program.templates.iter())
            .find(|template| template.start == Start::Initially && template.count == Count::Any)
        {
            let message =
                format!("`{}` has any number of instances, so it has no list of outcomes", template.name);
            let error = Diagnostic::error("any-number", message).at(template.name.span(), "");
            return Err(vec![error.help(format!("give it a number: `{}[2]`", template.name))]);
        }
        match input.language {
            InputLanguage::Text(Language::Litmus) => Listing::litmus(input, listed),
            _ => Ok(Listing::program(input, listed)),
        }
    }

    fn litmus(input: &Input, listed: Listed) -> Result<Listing, Vec<Diagnostic>> {
        let LitmusTest { mut program, name, shown, filter, question } = litmus_test(&input.source)?;
        if let Some(range) = input.int_range {
            bound(&mut program, range);
        }
        let named = shown.into_iter().map(|shown| (Some(shown.name), shown.value, shown.can_point));
        let mut exprs: Vec<_> = named.collect();
        if listed == Listed::All || exprs.is_empty() {
            exprs.extend(everything(&program, listed).map(|expr| (None, expr, false)));
        }
        let asks = question.as_ref().map(|question| question.asks);
        // The condition itself marks an outcome. As a `forbid`, it is not negated.
        let marks = question.map(|question| mark(PropertyKind::Forbid, question.condition));
        let listing = Listing::of(program, exprs, filter, marks.into_iter().collect());
        Ok(Listing { test: Some(TestQuestion { name, asks }), ..listing })
    }

    fn program(input: &Input, listed: Listed) -> Listing {
        let program = &input.program;
        let mut exprs = Vec::new();
        for property in &program.properties {
            observed(&property.condition, &mut exprs);
        }
        if listed == Listed::All || exprs.is_empty() {
            // What a translation adds is not part of an outcome.
            let is_made = |address| input.addresses().is_some_and(|addresses| addresses.is_made(address));
            let own = |shared: &Shared| !shared.at.is_some_and(|at| is_made(at.address));
            let shared = program.shared.iter().filter(|shared| own(shared)).cloned().collect();
            exprs = everything(&Program { shared, ..program.clone() }, listed).collect();
        }
        let finals = program.properties.iter().filter(|property| property.kind == PropertyKind::Final);
        let marks = finals.cloned().collect();
        let exprs = exprs.into_iter().map(|expr| (None, expr, false)).collect();
        Listing::of(Program { properties: Vec::new(), ..program.clone() }, exprs, None, marks)
    }

    fn of(
        program: Program,
        exprs: Vec<(Option<String>, Expr, bool)>,
        filter: Option<Expr>,
        marks: Vec<Property>,
    ) -> Listing {
        let instantiation = Instantiation { any: 1, every: None };
        // Properties are the place where expressions over states are resolved. The condition of a `forbid`
        // keeps its value.
        let shown = exprs.iter().map(|(_, expr, _)| mark(PropertyKind::Forbid, expr.clone()));
        let filtered = filter.iter().map(|filter| mark(PropertyKind::Forbid, filter.clone()));
        let properties = shown.chain(filtered).chain(marks).collect();
        let mut system = lower(&Program { properties, ..program.clone() }, instantiation);
        let mut conditions = std::mem::take(&mut system.properties).into_iter().map(|judged| judged.bad);
        let mut columns: Vec<Column> = Vec::new();
        for (name, expr, can_point) in exprs {
            let condition = conditions.next().expect("one property per expression");
            let known = columns.iter().any(|column| column.condition == condition);
            // Parameters are constants. They are not part of an outcome.
            if let Some(name) = name.or_else(|| name_of(&system, &condition))
                && !known
            {
                columns.push(Column { name, expr, condition, can_point });
            }
        }
        let filter = filter.map(|expr| (expr, conditions.next().expect("one property for the filter")));
        let marks = conditions.collect();
        Listing { program, system, columns, filter, marks, test: None }
    }

    /// The names of what is listed, in order.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// The question of a litmus test.
    pub fn test(&self) -> Option<&TestQuestion> {
        self.test.as_ref()
    }

    /// Whether something marks outcomes: a condition or a `final` property.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// A value of a column, in words. Addresses are names of variables, and enumerations have names for their values.
    pub fn value(&self, column: usize, value: Value) -> String {
        let domain = match self.columns[column].condition {
            Condition::Cell(cell) => Some(self.system.cells[cell].ty.domain),
            Condition::Register(thread, register) => {
                let code = self.system.role_code(self.system.instances[thread].role);
                Some(code.registers[register].ty.domain)
            }
            _ => None,
        };
        if let Some(name) = domain.and_then(|domain| self.system.value_name(domain, value)) {
            return name.to_owned();
        }
        let cell = self.system.cell_at(value).filter(|_| self.columns[column].can_point);
        cell.map_or_else(|| value.to_string(), |cell| self.system.cells[cell].name.clone())
    }

    /// The outcomes under a memory model.
    pub fn outcomes(
        &self,
        model: Model,
        interlocked: Interlocked,
        options: &Options,
        limits: &Limits,
    ) -> Result<Outcomes, AskError> {
        let start = Instant::now();
        let machine = Machine { system: &self.system, model, interlocked };
        let shown = self.columns.iter().map(|column| &column.condition);
        let conditions: Vec<Condition> =
            shown.chain(self.filter.iter().map(|(_, filter)| filter)).chain(&self.marks).cloned().collect();
        let search = palisade_explore::outcomes(machine, &conditions, options, limits);
        let mut found = BTreeMap::new();
        for values in search.found {
            self.add(&mut found, values);
        }
        let mut outcomes = Outcomes {
            model,
            found,
            missing: search.missing,
            faults: search.faults,
            dead_ends: search.dead_ends,
            engine: "explicit",
            stats: search.stats,
            seconds: 0.0,
        };
        if outcomes.missing.as_ref().is_some_and(Reason::is_bound) {
            self.complete(&mut outcomes, interlocked, options, limits)?;
        }
        outcomes.seconds = start.elapsed().as_secs_f64();
        Ok(outcomes)
    }

    /// Adds an outcome, given the values of all conditions, unless it does not count.
    fn add(&self, found: &mut BTreeMap<Vec<Value>, bool>, mut values: Vec<Value>) {
        let mut judged = values.split_off(self.columns.len()).into_iter();
        if self.filter.is_none() || judged.next() != Some(0) {
            *found.entry(values).or_default() |= judged.any(|mark| mark != 0);
        }
    }

    /// Asks all engines whether there is any other outcome, and adds those that they find.
    fn complete(
        &self,
        outcomes: &mut Outcomes,
        interlocked: Interlocked,
        options: &Options,
        limits: &Limits,
    ) -> Result<(), AskError> {
        while outcomes.found.len() <= MAX_ASKED {
            let known = outcomes.found.keys().map(|values| self.ends_with(values));
            let known = known.reduce(|a, b| join(BinaryOp::Or, a, b)).unwrap_or_else(|| truth(false));
            let condition = match &self.filter {
                None => known,
                Some((filter, _)) => join(BinaryOp::Or, not(filter.clone()), known),
            };
            let program =
                Program { properties: vec![mark(PropertyKind::Final, condition)], ..self.program.clone() };
            let question = CheckOptions {
                model: outcomes.model,
                interlocked,
                options: options.clone(),
                ..CheckOptions::default()
            };
            let answer = check(&program, &question, limits)?;
            match &answer.outcome.verdict {
                Verdict::Holds => {
                    outcomes.missing = None;
                    outcomes.engine = answer.outcome.engine;
                    return Ok(());
                }
                Verdict::Unknown(_) => return Ok(()),
                Verdict::Violated(_) => {
                    let confirmed = answer.confirmed.as_ref().expect("a violation is replayed");
                    let last = confirmed.replay.states.last().expect("a replay has a first state");
                    // A fault is a violation too. It says nothing about outcomes, and it hides what would.
                    if last.fault.is_some() {
                        return Ok(());
                    }
                    let shown = self.columns.iter().map(|column| &column.condition);
                    let judged = self.filter.iter().map(|(_, filter)| filter).chain(&self.marks);
                    let values: Vec<Value> =
                        shown.chain(judged).map(|condition| evaluate(condition, last).unwrap_or(0)).collect();
                    let before = outcomes.found.len();
                    self.add(&mut outcomes.found, values);
                    if outcomes.found.len() == before {
                        let what = "a run to a new outcome has a known outcome".to_owned();
                        return Err(Bug::Contradiction { engine: answer.outcome.engine, what }.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// The condition that a run ends with these values.
    fn ends_with(&self, values: &[Value]) -> Expr {
        let equal =
            |(column, &value): (&Column, &Value)| join(BinaryOp::Eq, column.expr.clone(), literal(value));
        let parts = self.columns.iter().zip(values).map(equal);
        parts.reduce(|a, b| join(BinaryOp::And, a, b)).unwrap_or_else(|| truth(true))
    }

    /// A run to an outcome, replayed on the trusted machine. `Ok(Err(…))` says why none was found.
    pub fn run_to(
        &self,
        values: &[Value],
        model: Model,
        interlocked: Interlocked,
        options: &Options,
        limits: &Limits,
    ) -> Result<Result<OutcomeRun, Reason>, AskError> {
        let equal = |(column, &value): (&Column, &Value)| {
            let value = Box::new(Condition::Const(value));
            Condition::Binary(BinaryOp::Eq, Box::new(column.condition.clone()), value)
        };
        let parts = self.columns.iter().zip(values).map(equal);
        let filter = self.filter.iter().map(|(_, filter)| filter.clone());
        let all = std::iter::once(Condition::Const(1)).chain(parts).chain(filter);
        let all = all.reduce(|a, b| Condition::Binary(BinaryOp::And, a.into(), b.into()));
        let bad = all.expect("there is at least one part");
        let mut system = self.system.clone();
        let machine = Machine { system: &self.system, model, interlocked };
        let run = match palisade_explore::run_to_end(machine, &bad, options, limits) {
            Reached::Bad(run) => run,
            Reached::Unknown(reason) => return Ok(Err(reason)),
            Reached::Nothing => {
                let what = "no run has an outcome that was found before".to_owned();
                return Err(Bug::Contradiction { engine: "explicit", what }.into());
            }
        };
        // The machine judges the last state: it is bad if it is the outcome.
        system.properties =
            vec![Judged { kind: PropertyKind::Final, bad, reads_memory: true, span: Span::NONE }];
        let machine = Machine { system: &system, model, interlocked };
        let replayed = limits.clone().with_grace().within(|| {
            let shorter = shorten(machine, run.clone());
            // A shorter run may end with a fault instead.
            match replay(machine, &shorter) {
                Ok(replay) if replay.violation == Some(Violation::Property(0)) => Ok((shorter, replay)),
                _ => replay(machine, &run).map(|replay| (run, replay)),
            }
        });
        match replayed {
            Err(what) => Ok(Err(Reason::Exhausted(what))),
            Ok(Ok((run, replay))) if replay.violation == Some(Violation::Property(0)) => {
                // The property has served its purpose. Nothing is bad about an outcome.
                system.properties.clear();
                let replay = Replay { violation: None, ..replay };
                Ok(Ok(OutcomeRun { system, model, interlocked, run, replay }))
            }
            Ok(Ok((run, _))) => {
                let error = Unconfirmed::Replay(ReplayError::NotBad { steps: run.steps.len() });
                Err(Bug::Unconfirmed { engine: "explicit", word: "reachable", error }.into())
            }
            Ok(Err(error)) => {
                let error = Unconfirmed::Replay(error);
                Err(Bug::Unconfirmed { engine: "explicit", word: "reachable", error }.into())
            }
        }
    }
}

/// An expression as a property that is resolved but never judged.
fn mark(kind: PropertyKind, condition: Expr) -> Property {
    Property { kind, condition, origin: Origin(Span::NONE) }
}

fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::NONE)
}

fn join(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    expr(ExprKind::Binary(op, Box::new(a), Box::new(b)))
}

fn not(a: Expr) -> Expr {
    expr(ExprKind::Unary(UnaryOp::Not, Box::new(a)))
}

fn truth(value: bool) -> Expr {
    expr(ExprKind::Bool(value))
}

/// A literal. The written form has no negative literals.
fn literal(value: Value) -> Expr {
    match value.checked_neg() {
        Some(positive) if value < 0 => expr(ExprKind::Unary(UnaryOp::Neg, Box::new(Expr::int(positive)))),
        _ => Expr::int(value),
    }
}

/// The name of a cell or register. `None` for a constant.
fn name_of(system: &System, condition: &Condition) -> Option<String> {
    match condition {
        Condition::Cell(cell) => Some(system.cells[*cell].name.clone()),
        Condition::Register(thread, register) => {
            let instance = &system.instances[*thread];
            let register = &system.role_code(instance.role).registers[*register];
            Some(format!("{}.{}", instance.name, register.name))
        }
        _ => None,
    }
}

/// The variables and registers in a condition.
fn observed(condition: &Expr, found: &mut Vec<Expr>) {
    match &condition.kind {
        ExprKind::Read(_) | ExprKind::Observe(Observation::Register { .. }) => found.push(condition.clone()),
        ExprKind::Unary(_, a) => observed(a, found),
        ExprKind::Binary(_, a, b) => {
            observed(a, found);
            observed(b, found);
        }
        _ => {}
    }
}

/// All shared variables, and if all registers are listed, those of the processes that exist at the start.
fn everything(program: &Program, listed: Listed) -> impl Iterator<Item = Expr> {
    let named = |name: &Name| Name::generated(name.text.clone());
    let place = |kind| expr(ExprKind::Read(Place::new(kind, Span::NONE)));
    let mut all = Vec::new();
    for shared in &program.shared {
        match shared.len {
            None => all.push(place(PlaceKind::Named(named(&shared.name)))),
            Some(len) => all.extend((0..len).map(|index| {
                let index = Box::new(Expr::int(index.into()));
                place(PlaceKind::Element(named(&shared.name), index))
            })),
        }
    }
    let starts = program.templates.iter().filter(|template| template.start == Start::Initially);
    for template in starts.filter(|_| listed == Listed::All) {
        let mut registers: Vec<Name> = program.privates.iter().map(|private| named(&private.name)).collect();
        declared(&template.body, &mut registers);
        let roles: u64 = template.params.iter().map(|param| size(param.ty.domain.bounds())).product();
        let copies = match template.count {
            Count::Fixed(copies) => copies,
            Count::Any => 0,
        };
        let instances = u32::try_from(roles * u64::from(copies)).expect("validation limits the instances");
        for index in 0..instances {
            all.extend(registers.iter().map(|register| {
                let select = if instances == 1 { Select::Only } else { Select::Index(index) };
                let template = named(&template.name);
                let process = ProcessRef { template, select, origin: Origin(Span::NONE) };
                expr(ExprKind::Observe(Observation::Register { process, register: register.clone() }))
            }));
        }
    }
    all.into_iter()
}

fn size(bounds: Option<(Value, Value)>) -> u64 {
    bounds.map_or(1, |(lo, hi)| hi.abs_diff(lo) + 1)
}

/// The registers that a block declares, each once.
fn declared(block: &Block, names: &mut Vec<Name>) {
    for statement in block {
        if let StmtKind::Let { name, .. } = &statement.kind
            && !names.iter().any(|other| other.text == name.text)
        {
            names.push(Name::generated(name.text.clone()));
        }
        statement.kind.blocks().into_iter().for_each(|body| declared(body, names));
    }
}
