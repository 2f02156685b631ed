//! Helpers for the front ends of foreign languages: names that `.pal` accepts, and small pieces of written
//! programs.

use palisade_base::{Origin, Span};
use palisade_program::Value;
use palisade_program::print::is_legal_name;
use palisade_program::written::{
    BinaryOp, END_LABEL, Expr, ExprKind, Name, Place, PlaceKind, Stmt, StmtKind, Type, UnaryOp,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Turns foreign names into distinct names that `.pal` accepts.
#[derive(Default)]
pub(crate) struct Names<'p> {
    /// The names of the enclosing scope.
    outer: Option<&'p Names<'p>>,
    taken: FxHashSet<Arc<str>>,
    /// The number to append next to a name that is already used.
    next: FxHashMap<Arc<str>, u32>,
}

impl<'p> Names<'p> {
    /// Names of an inner scope. They differ from all names of this scope.
    pub(crate) fn inner(&'p self) -> Names<'p> {
        Names { outer: Some(self), ..Names::default() }
    }

    /// A new name similar to the requested one. Characters that an identifier cannot contain become `_`, and
    /// a number is appended if the name is already used.
    pub(crate) fn fresh(&mut self, wanted: &str) -> Arc<str> {
        let base: Arc<str> = identifier(wanted).into();
        if is_legal_name(&base) && &*base != END_LABEL && self.take(&base) {
            return base;
        }
        let mut next = self.next.get(&base).copied().unwrap_or(2);
        loop {
            let name: Arc<str> = format!("{base}_{next}").into();
            next += 1;
            if self.take(&name) {
                self.next.insert(base, next);
                return name;
            }
        }
    }

    /// Reserves a name. Returns false if it is already used.
    fn take(&mut self, name: &Arc<str>) -> bool {
        let mut outer = self.outer;
        while let Some(names) = outer {
            if names.taken.contains(name) {
                return false;
            }
            outer = names.outer;
        }
        self.taken.insert(name.clone())
    }
}

/// The requested name with `_` for characters that an identifier cannot contain.
fn identifier(wanted: &str) -> String {
    let mut name: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.chars().all(|c| c == '_') || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'n');
    }
    name
}

/// A literal. The written form has no negative literals, so `-1` is a negation.
pub(crate) fn int(value: Value, span: Span) -> Expr {
    match value.checked_neg() {
        Some(positive) if value < 0 => unary(UnaryOp::Neg, int(positive, span), span),
        _ => Expr::new(ExprKind::Int(value), span),
    }
}

/// An operator with one operand.
pub(crate) fn unary(op: UnaryOp, operand: Expr, span: Span) -> Expr {
    Expr::new(ExprKind::Unary(op, Box::new(operand)), span)
}

/// An operator with two operands.
pub(crate) fn binary(op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
    Expr::new(ExprKind::Binary(op, Box::new(left), Box::new(right)), span)
}

/// A register or shared scalar.
pub(crate) fn named(name: &Arc<str>, span: Span) -> Place {
    Place::new(PlaceKind::Named(Name::new(name.clone(), span)), span)
}

/// The value of a place.
pub(crate) fn read(place: Place) -> Expr {
    let span = place.span();
    Expr::new(ExprKind::Read(place), span)
}

/// `place = value;`
pub(crate) fn assign(place: Place, value: Expr, span: Span) -> Stmt {
    Stmt::new(StmtKind::Assign { place, value }, span)
}

/// `goto label;`
pub(crate) fn goto(label: &Arc<str>, span: Span) -> Stmt {
    Stmt::new(StmtKind::Goto(Name::new(label.clone(), span)), span)
}

/// `let name = value;` with a type that is inferred.
pub(crate) fn declare(name: &Arc<str>, value: Expr, span: Span) -> Stmt {
    let name = Name::new(name.clone(), span);
    let kind = StmtKind::Let { name, ty: Type::INT, init: Some(value) };
    Stmt { labels: Vec::new(), kind, origin: Origin(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_distinct_identifiers() {
        let mut names = Names::default();
        let mut check = |wanted: &str, expected: &str| assert_eq!(&*names.fresh(wanted), expected);
        check("x", "x");
        check("x", "x_2");
        check("x_2", "x_2_2");
        check("x", "x_3");
        check("lock-free", "lock_free");
        check("lock+free", "lock_free_2");
        check("3rd", "n3rd");
        check("while", "while_2");
        check("é", "n_");
        let mut inner = names.inner();
        assert_eq!(&*inner.fresh("x"), "x_4");
        assert_eq!(&*inner.fresh("y"), "y");
    }

    #[test]
    fn only_the_smallest_literal_is_negative() {
        assert_eq!(int(-1, Span::NONE), unary(UnaryOp::Neg, Expr::int(1), Span::NONE));
        assert_eq!(int(Value::MIN, Span::NONE), Expr::int(Value::MIN));
    }
}
