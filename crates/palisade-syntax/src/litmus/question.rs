//! The final condition as a property.
//!
//! `exists P` and `~exists P` ask whether P can hold at the end, so the property forbids P. `forall P` asks
//! whether P can fail, so the property forbids not-P. With `filter F`, only outcomes that satisfy F count.

use super::bank::Bank;
use super::knowledge::Knowledge;
use super::registers::{Part, Register, Width};
use super::state::RegisterNames;
use super::test::{Atom, Condition, Constant, Location, Quantifier, Side, Test, Word};
use super::values::{Facts, Maker, Val};
use super::variables::{Variables, too_wide, unknown_thread};
use crate::generate::{self, named, read};
use crate::report::{Report, plural};
use palisade_base::{Diagnostic, Origin, Span};
use palisade_program::written::{
    BinaryOp, Expr, ExprKind, Name, Observation, Place, PlaceKind, ProcessRef, Property, PropertyKind,
    Select, UnaryOp,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a condition can refer to.
pub(super) struct ConditionContext<'s, 'a> {
    pub(super) variables: &'s Variables<'a>,
    pub(super) banks: &'s [Bank],
    pub(super) knowledge: &'s Knowledge,
    /// The names of each thread's template and registers.
    pub(super) templates: &'s [Arc<str>],
    pub(super) registers: &'s [RegisterNames],
    /// The position of each thread.
    pub(super) by_number: FxHashMap<u32, usize>,
}

/// The question of a test.
pub(super) struct Question<'a> {
    pub(super) filter: Option<Condition<'a>>,
    pub(super) question: Option<(Quantifier, Condition<'a>, Span)>,
}

/// Reports undefined names in conditions.
pub(super) fn check(test: &Test<'_>, variables: &Variables<'_>, report: &mut Report) {
    let numbers: FxHashMap<u32, ()> = test.threads.iter().map(|thread| (thread.number, ())).collect();
    let mut visit = |location: &Location<'_>| match *location {
        Location::Register { thread, span, .. } => {
            if !numbers.contains_key(&thread) {
                report.push(unknown_thread(thread, span, test));
            }
        }
        Location::Variable { name, element, span } => match variables.find(name.text) {
            None => report.push(variables.unknown(name, report.has_room())),
            Some(var) => {
                let len = variables.all[var].len;
                if let Some(element) = element
                    && element >= len.unwrap_or(0)
                {
                    let message = format!("`{}` has no element {element}", name.text);
                    report.push(Diagnostic::error("outside-variable", message).at(span, ""));
                }
            }
        },
    };
    test.locations.iter().for_each(&mut visit);
    let conditions = || test.filter.iter().chain(test.question.as_ref().map(|(_, condition, _)| condition));
    conditions().for_each(|condition| super::bank::observed(condition, &mut visit));
    conditions().for_each(|condition| addresses(condition, variables, report));
}

/// Reports addresses of variables that do not exist.
fn addresses(condition: &Condition<'_>, variables: &Variables<'_>, report: &mut Report) {
    let mut check = |constant: &Constant<'_>| {
        if let Constant::Address(name, element) = constant {
            match variables.find(name.text) {
                None => report.push(variables.unknown(*name, report.has_room())),
                Some(var) if *element >= variables.all[var].len.unwrap_or(1) => {
                    let message = format!("`{}` has no element {element}", name.text);
                    report.push(Diagnostic::error("outside-variable", message).at(name.span, ""));
                }
                Some(_) => {}
            }
        }
    };
    match condition {
        Condition::Constant(..) => {}
        Condition::Atom(atom) => match &atom.right {
            Side::Constant(constant, _) => check(constant),
            Side::Elements(elements) => elements.iter().for_each(|(constant, _)| check(constant)),
            Side::Location(_) => {}
        },
        Condition::Not(operand, _) => addresses(operand, variables, report),
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().for_each(|part| addresses(part, variables, report));
        }
        Condition::Implies(left, right) => {
            addresses(left, variables, report);
            addresses(right, variables, report);
        }
    }
}

impl ConditionContext<'_, '_> {
    /// The property of a test with a question. Names have already been checked.
    pub(super) fn property(&self, question: Question<'_>, report: &mut Report) -> Option<Property> {
        let (quantifier, condition, span) = question.question?;
        let filter = question.filter.map(|filter| self.condition(filter, report));
        let condition = self.condition(condition, report);
        let not = |condition| generate::unary(UnaryOp::Not, condition, span);
        let join = |op, left, right| generate::binary(op, left, right, span);
        let condition = match (quantifier, filter) {
            (Quantifier::Reachable | Quantifier::Unreachable, None) => not(condition),
            (Quantifier::Reachable | Quantifier::Unreachable, Some(filter)) => {
                not(join(BinaryOp::And, filter, condition))
            }
            (Quantifier::Always, None) => condition,
            (Quantifier::Always, Some(filter)) => join(BinaryOp::Or, not(filter), condition),
        };
        Some(Property { kind: PropertyKind::Final, condition, origin: Origin(span) })
    }

    /// Consumes the condition while building the expression, because both can be large.
    pub(super) fn condition(&self, condition: Condition<'_>, report: &mut Report) -> Expr {
        match condition {
            Condition::Constant(value, span) => Expr::new(ExprKind::Bool(value), span),
            Condition::Atom(atom) => self.atom(&atom, report),
            Condition::Not(operand, span) => {
                generate::unary(UnaryOp::Not, self.condition(*operand, report), span)
            }
            Condition::And(parts) => self.all(BinaryOp::And, parts, report),
            Condition::Or(parts) => self.all(BinaryOp::Or, parts, report),
            Condition::Implies(left, right) => {
                let left = self.condition(*left, report);
                let right = self.condition(*right, report);
                let span = left.span().to(right.span());
                generate::binary(BinaryOp::Or, generate::unary(UnaryOp::Not, left, span), right, span)
            }
        }
    }

    fn all(&self, op: BinaryOp, parts: Vec<Condition<'_>>, report: &mut Report) -> Expr {
        join(op, parts.into_iter().map(|part| self.condition(part, report)).collect())
    }

    fn atom(&self, atom: &Atom<'_>, report: &mut Report) -> Expr {
        let maker = Maker { build: true, span: atom.span };
        let op = if atom.equal { BinaryOp::Eq } else { BinaryOp::Ne };
        if let Side::Elements(elements) = &atom.right {
            return self.elements(atom, elements, op, report);
        }
        let (left, width) = self.location(&atom.left, maker);
        let right = match &atom.right {
            Side::Constant(constant, span) => self.constant(constant, width, *span, report),
            Side::Location(location) => self.location(location, maker).0,
            Side::Elements(_) => unreachable!("handled above"),
        };
        maker.compare(op, left, right).expr.expect("built")
    }

    /// `t = {1, 2}`
    fn elements(
        &self,
        atom: &Atom<'_>,
        elements: &[(Constant<'_>, Span)],
        op: BinaryOp,
        report: &mut Report,
    ) -> Expr {
        let wrong = |report: &mut Report, message: String| {
            report.push(Diagnostic::error("bad-array", message).at(atom.span, ""));
            Expr::new(ExprKind::Bool(false), atom.span)
        };
        let Location::Variable { name, element: None, .. } = atom.left else {
            return wrong(report, "only a whole array can be compared with a list of values".to_owned());
        };
        let Some(var) = self.variables.find(name.text) else { unreachable!("names were checked") };
        let len = self.variables.all[var].len.unwrap_or(1) as usize;
        if len != elements.len() {
            return wrong(
                report,
                format!(
                    "`{}` has {}, but the list has {}",
                    name.text,
                    plural(len, "element"),
                    plural(elements.len(), "value")
                ),
            );
        }
        let maker = Maker { build: true, span: atom.span };
        let compare = |(position, (constant, span)): (usize, &(Constant<'_>, Span)), report: &mut Report| {
            let place = self.place(name, Some(position as u32), atom.span);
            let left = Val::new(Some(read(place)), Facts::exactly(0));
            let right = self.constant(constant, self.variables.width(var), *span, report);
            maker.compare(op, left, right).expr.expect("built")
        };
        let parts = elements.iter().enumerate().map(|part| compare(part, report)).collect();
        join(if atom.equal { BinaryOp::And } else { BinaryOp::Or }, parts)
    }

    fn constant(&self, constant: &Constant<'_>, width: Width, span: Span, report: &mut Report) -> Val {
        let maker = Maker { build: true, span };
        match constant {
            Constant::Number(number) => {
                let value = width.signed(*number).unwrap_or_else(|| {
                    report.push(too_wide(*number, width, span));
                    0
                });
                maker.constant(value)
            }
            Constant::Address(name, element) => {
                let place = self.place(*name, Some(*element), span);
                Val::new(Some(Expr::new(ExprKind::AddressOf(place), span)), Facts::exactly(0))
            }
        }
    }

    /// A variable, or an element of an array.
    fn place(&self, name: Word<'_>, element: Option<u32>, span: Span) -> Place {
        let var = self.variables.find(name.text).expect("names were checked");
        let variable = &self.variables.all[var];
        match variable.len {
            None => named(&variable.name, span),
            Some(_) => {
                let index = Expr::new(ExprKind::Int(element.unwrap_or(0).into()), span);
                Place::new(PlaceKind::Element(Name::new(variable.name.clone(), span), Box::new(index)), span)
            }
        }
    }

    /// The value at a location, and its width.
    pub(super) fn location(&self, location: &Location<'_>, maker: Maker) -> (Val, Width) {
        match *location {
            Location::Variable { name, element, span } => {
                let var = self.variables.find(name.text).expect("names were checked");
                let value =
                    Val::new(Some(read(self.place(name, element, span))), self.knowledge.variable(var));
                (value, self.variables.width(var))
            }
            Location::Register { thread, register, span } => (
                self.register(self.by_number[&thread], register, Maker { span, ..maker }),
                register.part.width(),
            ),
        }
    }

    fn register(&self, thread: usize, register: Register, maker: Maker) -> Val {
        let slot = usize::from(register.family.0);
        let name = self.registers[thread][slot].clone().expect("the bank holds every register observed");
        let process = ProcessRef {
            template: Name::new(self.templates[thread].clone(), maker.span),
            select: Select::Only,
            origin: Origin(maker.span),
        };
        let observed = Observation::Register { process, register: Name::new(name, maker.span) };
        let facts = self.knowledge.registers[thread][slot].unwrap_or(Facts::exactly(0));
        let whole = Val::new(Some(Expr::new(ExprKind::Observe(observed), maker.span)), facts);
        debug_assert!(self.banks[thread].widths[slot].is_some(), "observed registers are in the bank");
        match register.part {
            Part::High8 => maker.sign_extend(maker.shift_arithmetic(whole, 8), Width::BYTE),
            part => maker.sign_extend(whole, part.width()),
        }
    }
}

/// Joins conditions into a tree that is as flat as possible.
fn join(op: BinaryOp, mut parts: Vec<Expr>) -> Expr {
    // A few conditions are joined from left to right, as people write them.
    if parts.len() <= 16 {
        let all = parts.into_iter().reduce(|left, right| both(op, left, right));
        return all.unwrap_or_else(|| Expr::new(ExprKind::Bool(op == BinaryOp::And), Span::NONE));
    }
    while parts.len() > 1 {
        let mut joined = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                Some(right) => both(op, left, right),
                None => left,
            });
        }
        parts = joined;
    }
    parts.remove(0)
}

fn both(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let span = left.span().to(right.span());
    generate::binary(op, left, right, span)
}
