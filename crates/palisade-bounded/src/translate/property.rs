//! Properties: what they see of the program, and how they are translated.
//!
//! A label is seen where a process rests at it, so conditions on labels are judged while no process is in a
//! round. Conditions on memory also require that nothing is pending.
//!
//! Usually it matters only that processes are at labels. Where it matters that they are not, processes must
//! also be able to rest everywhere between labels.
//!
//! Registers can be judged in the middle of a round. All other processes are at rest then, and the process
//! could have the same register values at the end of a round at that point.

use super::build::{equals, var};
use super::{Set, Translator, build};
use palisade_base::limits;
use palisade_program::written::{
    BinaryOp, Block, END_LABEL, Expr, ExprKind, Name, Observation, Program, Property, PropertyKind, StmtKind,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The parts of states that the properties of a program see.
#[derive(Default)]
pub(super) struct Observed<'p> {
    /// Labels by template, except those in atomic blocks, where nothing is judged.
    labels: FxHashMap<&'p str, Set<'p>>,
    /// Registers by template.
    registers: FxHashMap<&'p str, Set<'p>>,
    /// Whether memory matters.
    pub(super) memory: bool,
    /// Whether the ends of processes matter.
    pub(super) end: bool,
    /// Whether it matters that a process is *not* at a label, as in `!P@l` or `count(P@l) == 0`.
    pub(super) absence: bool,
    nothing: Set<'p>,
}

/// The parts of states that one condition sees.
#[derive(Clone, Copy, Default)]
struct Sees {
    labels: bool,
    memory: bool,
}

impl<'p> Observed<'p> {
    pub(super) fn new(program: &'p Program) -> Observed<'p> {
        let mut observed = Observed::default();
        for property in &program.properties {
            let sees = observed.collect(&property.condition);
            observed.absence |= property.kind == PropertyKind::Forbid
                && !is_monotone(&property.condition, Polarity::Positive);
            observed.memory |= sees.memory || property.kind == PropertyKind::Final;
        }
        for template in &program.templates {
            if let Some(labels) = observed.labels.get_mut(template.name.as_str()) {
                let mut sectioned = FxHashSet::default();
                labels_in_sections(&template.body, false, &mut sectioned);
                labels.retain(|label| !sectioned.contains(label) && *label != END_LABEL);
            }
        }
        observed
    }

    fn collect(&mut self, e: &'p Expr) -> Sees {
        match &e.kind {
            ExprKind::Read(_) => Sees { memory: true, ..Sees::default() },
            ExprKind::Unary(_, a) => self.collect(a),
            ExprKind::Binary(_, a, b) => {
                let (a, b) = (self.collect(a), self.collect(b));
                Sees { labels: a.labels || b.labels, memory: a.memory || b.memory }
            }
            ExprKind::Observe(observation) => {
                let (template, label) = match observation {
                    Observation::At { process, label } => (&process.template, label),
                    Observation::Count { template, label } => (template, label),
                    Observation::Register { process, register } => {
                        let registers = self.registers.entry(process.template.as_str()).or_default();
                        registers.insert(register.as_str());
                        return Sees::default();
                    }
                };
                self.end |= label.as_str() == END_LABEL;
                self.labels.entry(template.as_str()).or_default().insert(label.as_str());
                Sees { labels: true, ..Sees::default() }
            }
            _ => Sees::default(),
        }
    }

    /// The labels of a template that properties see.
    pub(super) fn labels(&self, template: &str) -> &Set<'p> {
        self.labels.get(template).unwrap_or(&self.nothing)
    }

    /// The registers of a template that properties see.
    pub(super) fn registers(&self, template: &str) -> &Set<'p> {
        self.registers.get(template).unwrap_or(&self.nothing)
    }
}

/// Whether a condition matters when it is true, or when it is false.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Polarity {
    Positive,
    Negative,
}

impl Polarity {
    fn opposite(self) -> Polarity {
        match self {
            Polarity::Positive => Polarity::Negative,
            Polarity::Negative => Polarity::Positive,
        }
    }
}

/// Whether more processes at labels can only make the condition true (or false, if the polarity is negative).
fn is_monotone(e: &Expr, polarity: Polarity) -> bool {
    use BinaryOp::{And, Ge, Gt, Le, Lt, Or};
    if !sees_labels(e) {
        return true;
    }
    match &e.kind {
        ExprKind::Unary(palisade_program::written::UnaryOp::Not, a) => is_monotone(a, polarity.opposite()),
        ExprKind::Binary(And | Or, a, b) => is_monotone(a, polarity) && is_monotone(b, polarity),
        ExprKind::Binary(Ge | Gt, a, b) => polarity == Polarity::Positive && grows(a) && !sees_labels(b),
        ExprKind::Binary(Lt | Le, a, b) => polarity == Polarity::Negative && grows(a) && !sees_labels(b),
        _ => polarity == Polarity::Positive && grows(e),
    }
}

/// Whether the value can only grow with more processes at labels.
fn grows(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Observe(_) => true,
        ExprKind::Binary(BinaryOp::Add, a, b) => grows(a) && grows(b),
        _ => !sees_labels(e),
    }
}

fn sees_labels(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Observe(Observation::At { .. } | Observation::Count { .. }) => true,
        ExprKind::Unary(_, a) => sees_labels(a),
        ExprKind::Binary(_, a, b) => sees_labels(a) || sees_labels(b),
        _ => false,
    }
}

fn labels_in_sections<'p>(block: &'p Block, inside: bool, found: &mut Set<'p>) {
    for stmt in block {
        limits::checkpoint();
        if inside {
            found.extend(stmt.labels.iter().map(Name::as_str));
        }
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                labels_in_sections(then, inside, found);
                labels_in_sections(otherwise, inside, found);
            }
            StmtKind::While { body, .. } | StmtKind::Loop(body) | StmtKind::Block(body) => {
                labels_in_sections(body, inside, found);
            }
            StmtKind::Atomic(body) => labels_in_sections(body, true, found),
            StmtKind::Choose(blocks) => {
                blocks.iter().for_each(|block| labels_in_sections(block, inside, found))
            }
            _ => {}
        }
    }
}

impl Translator<'_> {
    /// Translates a property.
    pub(super) fn property(&mut self, property: &Property) -> Property {
        let sees = Observed::default().collect(&property.condition);
        let condition = self.condition(&property.condition);
        let drained = self.pending.as_ref().map(|pending| equals(var(pending), 0));
        let condition = match property.kind {
            PropertyKind::Forbid => {
                let resting = (sees.labels || sees.memory).then(|| equals(var(&self.sim), 0));
                let drained = drained.filter(|_| sees.memory);
                let judged = resting.into_iter().chain(drained);
                let judged = judged.reduce(|a, b| build::binary(BinaryOp::And, a, b));
                match judged {
                    Some(judged) => build::binary(BinaryOp::And, judged, condition),
                    None => condition,
                }
            }
            // All processes are at their end, so none is in a round.
            PropertyKind::Final => match drained {
                Some(drained) => {
                    let not = ExprKind::Unary(palisade_program::written::UnaryOp::Not, Box::new(drained));
                    let not = Expr::new(not, property.condition.span());
                    build::binary(BinaryOp::Or, not, condition)
                }
                None => condition,
            },
        };
        Property { kind: property.kind, condition, origin: property.origin }
    }

    fn condition(&mut self, e: &Expr) -> Expr {
        let kind = match &e.kind {
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, Box::new(self.condition(a))),
            ExprKind::Binary(op, a, b) => {
                ExprKind::Binary(*op, Box::new(self.condition(a)), Box::new(self.condition(b)))
            }
            ExprKind::Observe(Observation::At { process, label }) => {
                let at = |label| ExprKind::Observe(Observation::At { process: process.clone(), label });
                let kind = at(self.seen_label(&process.template, label));
                return self.or_flushing(&process.template, label, kind, BinaryOp::Or, at);
            }
            ExprKind::Observe(Observation::Count { template, label }) => {
                let at = |label| ExprKind::Observe(Observation::Count { template: template.clone(), label });
                let kind = at(self.seen_label(template, label));
                return self.or_flushing(template, label, kind, BinaryOp::Add, at);
            }
            other => other.clone(),
        };
        Expr::new(kind, e.span())
    }

    /// A process whose last stores are still pending is also at its end.
    fn or_flushing(
        &mut self,
        template: &Name,
        label: &Name,
        kind: ExprKind,
        op: BinaryOp,
        at: impl Fn(Name) -> ExprKind,
    ) -> Expr {
        let seen = Expr::new(kind, label.span());
        let rests = self.r_tso.is_some() && self.has_rounds(template.as_str());
        if label.as_str() != END_LABEL || !rests {
            return seen;
        }
        let flushing = at(Name::new(self.at_label(END_LABEL), label.span()));
        build::binary(op, seen, Expr::new(flushing, label.span()))
    }

    fn seen_label(&mut self, template: &Name, label: &Name) -> Name {
        if self.observed.labels(template.as_str()).contains(label.as_str()) {
            Name::new(self.at_label(label.as_str()), label.span())
        } else {
            label.clone()
        }
    }
}
