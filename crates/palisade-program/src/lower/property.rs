//! Lowers properties: resolves what they observe and folds constants. The condition of a `final` is negated,
//! so that true always means bad.

use super::Waits;
use super::fold;
use super::globals::{Globals, constant};
use super::instances::Placement;
use crate::Value;
use crate::running::{
    self, BinaryOp, CodeId, Condition, Expr as Running, FairKind, GoalKind, Location, RegId, RoleId, System,
    UnaryOp,
};
use crate::written::{self, Expr, ExprKind, Name, Observation, Place, PlaceKind, ProgressKind, PropertyKind};
use rustc_hash::FxHashMap;

/// Lowers properties.
pub(super) fn lower(
    globals: &Globals<'_>,
    system: &System,
    placement: &Placement<'_>,
    properties: &[written::Property],
) -> Vec<running::Property> {
    let mut lowering =
        Lowering { globals, system, placement, names: FxHashMap::default(), reads_memory: false };
    properties.iter().map(|property| lowering.property(property)).collect()
}

/// Lowers `live` properties.
pub(super) fn goals(
    globals: &Globals<'_>,
    system: &System,
    placement: &Placement<'_>,
    progress: &[written::Progress],
) -> Vec<running::Goal> {
    let mut lowering =
        Lowering { globals, system, placement, names: FxHashMap::default(), reads_memory: false };
    progress.iter().filter_map(|progress| lowering.goal(progress)).collect()
}

/// The labels of a template that a `leaves` mentions.
pub(super) fn left_labels<'p>(
    program: &'p written::Program,
    template: &written::Template,
    waits: Waits,
) -> Vec<&'p str> {
    let mut labels: Vec<&str> = Vec::new();
    for progress in program.progress.iter().filter(|_| waits == Waits::Retry) {
        if let ProgressKind::Leaves { process, label } = &progress.kind
            && process.template == template.name
            && !labels.contains(&label.as_str())
        {
            labels.push(label.as_str());
        }
    }
    labels
}

/// Lowers `terminates` and `leaves` properties.
pub(super) fn fair(
    system: &System,
    placement: &Placement<'_>,
    progress: &[written::Progress],
) -> Vec<running::FairProperty> {
    let kind = |progress: &written::Progress| match &progress.kind {
        ProgressKind::Terminates => Some(FairKind::Terminates),
        ProgressKind::Leaves { process, label } => {
            let thread = placement.thread(system, process);
            let stays = &system.role_code(system.instances[thread].role).stays;
            let stay = stays.iter().find(|stay| stay.label == label.as_str());
            let stay = stay.unwrap_or_else(|| panic!("validation: the label `{label}` exists")).clone();
            Some(FairKind::Leaves { thread, stay })
        }
        ProgressKind::DeadlockFree | ProgressKind::LiveEnd | ProgressKind::Live(_) => None,
    };
    let property = |progress: &written::Progress| {
        Some(running::FairProperty { kind: kind(progress)?, span: progress.origin.0 })
    };
    progress.iter().filter_map(property).collect()
}

struct Lowering<'a> {
    globals: &'a Globals<'a>,
    system: &'a System,
    placement: &'a Placement<'a>,
    /// The names in the codes observed so far.
    names: FxHashMap<CodeId, CodeNames<'a>>,
    /// Whether the condition mentions memory, even where constants make the memory access irrelevant.
    reads_memory: bool,
}

/// The names that a property can use for a code.
struct CodeNames<'a> {
    labels: FxHashMap<&'a str, Location>,
    registers: FxHashMap<&'a str, RegId>,
}

impl<'a> Lowering<'a> {
    fn property(&mut self, property: &written::Property) -> running::Property {
        self.reads_memory = false;
        let condition = self.condition(&property.condition);
        let bad = match (property.kind, condition) {
            (PropertyKind::Forbid, bad) => bad,
            // Only the truth of the condition matters here, so the two negations cancel.
            (PropertyKind::Final, Condition::Unary(UnaryOp::Not, bad)) => *bad,
            (PropertyKind::Final, good) => negate(good),
        };
        running::Property {
            kind: property.kind,
            bad,
            reads_memory: self.reads_memory,
            span: property.origin.0,
        }
    }

    fn goal(&mut self, progress: &written::Progress) -> Option<running::Goal> {
        let kind = match &progress.kind {
            ProgressKind::DeadlockFree | ProgressKind::Terminates | ProgressKind::Leaves { .. } => {
                return None;
            }
            ProgressKind::LiveEnd => GoalKind::End,
            ProgressKind::Live(condition) => {
                self.reads_memory = false;
                let condition = self.condition(condition);
                GoalKind::Condition { condition, reads_memory: self.reads_memory }
            }
        };
        Some(running::Goal { kind, span: progress.origin.0 })
    }

    fn condition(&mut self, e: &Expr) -> Condition {
        match &e.kind {
            ExprKind::Int(value) => Condition::Const(*value),
            ExprKind::Bool(value) => Condition::Const((*value).into()),
            ExprKind::AddressOf(_) => Condition::Const(self.constant(e)),
            ExprKind::Read(place) => self.cell(place),
            ExprKind::Unary(UnaryOp::Not, a) => negate(self.condition(a)),
            ExprKind::Unary(op, a) => unary(*op, self.condition(a)),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.condition(a), self.condition(b));
                binary(*op, a, b)
            }
            ExprKind::Observe(observation) => self.observation(observation),
            ExprKind::Locked(..) | ExprKind::Call(..) | ExprKind::Any { .. } => {
                panic!("validation: a property executes nothing")
            }
        }
    }

    fn cell(&mut self, place: &Place) -> Condition {
        self.reads_memory = true;
        let (name, index) = match &place.kind {
            PlaceKind::Named(name) => (name, 0),
            PlaceKind::Element(name, index) => (name, self.constant(index)),
            PlaceKind::Deref(_) => panic!("validation: a property dereferences no pointers"),
        };
        let memory = self.globals.shared.get(name.as_str());
        let memory = memory.unwrap_or_else(|| panic!("validation: `{name}` is declared"));
        let cell = fold::element(memory.base, memory.len.unwrap_or(1), &Running::Const(index));
        Condition::Cell(cell.unwrap_or_else(|| panic!("validation: `{name}[{index}]` exists")))
    }

    fn constant(&self, e: &Expr) -> Value {
        constant(e, &self.globals.shared)
            .expect("validation: indices and addresses in properties are constants")
    }

    fn observation(&mut self, observation: &Observation) -> Condition {
        match observation {
            Observation::At { process, label } => {
                let thread = self.placement.thread(self.system, process);
                let location = self.label(self.system.instances[thread].role, label);
                Condition::At(thread, location)
            }
            Observation::Count { template, label } => {
                let (_, id) = self.placement.template(template);
                let roles = &self.system.templates[id].roles;
                Condition::Count(roles.iter().map(|&role| (role, self.label(role, label))).collect())
            }
            Observation::Register { process, register } => {
                let thread = self.placement.thread(self.system, process);
                let role = self.system.instances[thread].role;
                // Parameters are constants of the role.
                let (template, _) = self.placement.template(&process.template);
                if let Some(i) = template.params.iter().position(|param| param.name == *register) {
                    return Condition::Const(self.system.roles[role].args[i]);
                }
                let found = self.names(role).registers.get(register.as_str()).copied();
                let found = found.unwrap_or_else(|| panic!("validation: the register `{register}` exists"));
                Condition::Register(thread, found)
            }
        }
    }

    fn label(&mut self, role: RoleId, label: &Name) -> Location {
        let found = self.names(role).labels.get(label.as_str()).copied();
        found.unwrap_or_else(|| panic!("validation: the label `{label}` exists"))
    }

    fn names(&mut self, role: RoleId) -> &CodeNames<'a> {
        let system = self.system;
        self.names.entry(system.roles[role].code).or_insert_with(|| {
            let code = system.role_code(role);
            CodeNames {
                labels: code.labels.iter().map(|(label, location)| (label.as_str(), *location)).collect(),
                registers: code.registers.iter_enumerated().map(|(id, r)| (r.name.as_str(), id)).collect(),
            }
        })
    }
}

fn unary(op: UnaryOp, a: Condition) -> Condition {
    if let Condition::Const(value) = a
        && let Ok(value) = running::unary(op, value)
    {
        return Condition::Const(value);
    }
    Condition::Unary(op, Box::new(a))
}

fn binary(op: BinaryOp, a: Condition, b: Condition) -> Condition {
    match (op, &a, &b) {
        (BinaryOp::And, Condition::Const(0), _) => return Condition::Const(0),
        (BinaryOp::Or, Condition::Const(value), _) if *value != 0 => return Condition::Const(1),
        (_, Condition::Const(left), Condition::Const(right)) => {
            if let Ok(value) = running::binary(op, *left, *right) {
                return Condition::Const(value);
            }
        }
        _ => {}
    }
    Condition::Binary(op, Box::new(a), Box::new(b))
}

/// 1 if the condition is 0, else 0.
fn negate(condition: Condition) -> Condition {
    match condition {
        Condition::Binary(op, a, b) => match fold::opposite(op) {
            Some(op) => Condition::Binary(op, a, b),
            None => Condition::Unary(UnaryOp::Not, Box::new(Condition::Binary(op, a, b))),
        },
        other => unary(UnaryOp::Not, other),
    }
}
