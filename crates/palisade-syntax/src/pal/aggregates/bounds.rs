//! The bounds of variables, and of what is computed from them.

use super::super::parser::Parser;
use palisade_program::Value;
use palisade_program::written::{BinaryOp, Expr, ExprKind, Name, PlaceKind, Rmw, Type, UnaryOp};

impl Parser<'_> {
    /// Notes the bounds of a shared or private variable.
    pub(super) fn note_global(&mut self, name: &Name, ty: Type) {
        if let Some((lo, hi)) = ty.domain.bounds() {
            self.aggregates.global.insert(name.text.clone(), (lo.min(0), hi.max(0)));
        }
    }

    /// Notes the bounds of a register, which is 0 at first.
    pub fn note_register(&mut self, name: &Name, ty: Type) {
        if let Some((lo, hi)) = ty.domain.bounds() {
            self.aggregates.local.insert(name.text.clone(), (lo.min(0), hi.max(0)));
        }
    }

    /// Notes the bounds of a parameter or of the variable of a loop.
    pub fn note_bounds(&mut self, name: &Name, lo: Value, hi: Value) {
        self.aggregates.local.insert(name.text.clone(), (lo, hi.max(lo)));
    }

    /// Forgets the variable of a loop that is over.
    pub fn forget_bounds(&mut self, name: &Name) {
        self.aggregates.local.remove(&name.text);
    }

    /// At the start of a body.
    pub fn forget_registers(&mut self) {
        self.aggregates.local.clear();
    }

    /// Numbers between which the value of an expression is, if they are known: from the domains of the variables in
    /// it. Whatever is stored, assigned or passed was checked against its domain, wrapped or blocked.
    pub(super) fn interval(&self, expr: &Expr) -> Option<(i128, i128)> {
        let boolean = Some((0, 1));
        let bounds = |(lo, hi): (Value, Value)| (i128::from(lo), i128::from(hi));
        let fits = |(lo, hi): (i128, i128)| {
            let is_value = |number: i128| Value::try_from(number).is_ok();
            (is_value(lo) && is_value(hi)).then_some((lo, hi))
        };
        match &expr.kind {
            ExprKind::Int(value) => Some(bounds((*value, *value))),
            ExprKind::Bool(value) => Some(bounds(((*value).into(), (*value).into()))),
            ExprKind::Any { lo, hi } => Some(bounds((*lo, *hi))),
            ExprKind::Read(place) | ExprKind::Locked(_, place, _) => {
                if let ExprKind::Locked(Rmw::Cas, ..) = expr.kind {
                    return boolean;
                }
                let (PlaceKind::Named(name) | PlaceKind::Element(name, _)) = &place.kind else { return None };
                let known = self.aggregates.local.get(&name.text);
                known.or_else(|| self.aggregates.global.get(&name.text)).map(|&known| bounds(known))
            }
            ExprKind::Unary(UnaryOp::Not, _) => boolean,
            ExprKind::Unary(UnaryOp::Neg, a) => self.interval(a).and_then(|(lo, hi)| fits((-hi, -lo))),
            ExprKind::Binary(op, a, b) => {
                if let BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge = op
                {
                    return boolean;
                }
                if let BinaryOp::And | BinaryOp::Or | BinaryOp::WordLt | BinaryOp::WordLe = op {
                    return boolean;
                }
                let (b_lo, b_hi) = self.interval(b)?;
                // `e % 3` is known even if `e` is not.
                let (a_lo, a_hi) = match (op, self.interval(a)) {
                    (_, Some(known)) => known,
                    (BinaryOp::Rem, None) => (i128::from(Value::MIN), i128::from(Value::MAX)),
                    (_, None) => return None,
                };
                match op {
                    BinaryOp::Add => fits((a_lo + b_lo, a_hi + b_hi)),
                    BinaryOp::Sub => fits((a_lo - b_hi, a_hi - b_lo)),
                    BinaryOp::Mul => {
                        let ends = [a_lo * b_lo, a_lo * b_hi, a_hi * b_lo, a_hi * b_hi];
                        let least = ends.into_iter().min().expect("there are four");
                        fits((least, ends.into_iter().max().expect("there are four")))
                    }
                    BinaryOp::Rem if b_lo > 0 => {
                        let most = b_hi - 1;
                        Some((
                            if a_lo < 0 { a_lo.max(-most) } else { 0 },
                            if a_hi > 0 { a_hi.min(most) } else { 0 },
                        ))
                    }
                    BinaryOp::Div if b_lo > 0 => Some((a_lo.min(0), a_hi.max(0))),
                    BinaryOp::BitAnd if a_lo >= 0 && b_lo >= 0 => Some((0, a_hi.min(b_hi))),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
