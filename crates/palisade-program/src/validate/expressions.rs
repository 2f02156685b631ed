//! Expressions and places in the bodies of processes and procedures.

use super::body::Body;
use super::declarations::out_of_bounds;
use super::names::width;
use super::{Report, limits};
use crate::Value;
use crate::running::{Fault, binary, unary};
use crate::written::{BinaryOp, Expr, ExprKind, Name, Place, PlaceKind, Rmw, UnaryOp};
use palisade_base::{Diagnostic, Span};

/// A check of expressions that evaluates their constant parts.
pub(super) trait CheckOperators<'e> {
    /// Checks an expression and returns its value if it is constant.
    fn check_expr(&mut self, e: &'e Expr) -> Option<Value>;

    /// Where errors are reported.
    fn report(&mut self) -> &mut Report;

    /// Checks a unary operator and its operand.
    fn unary(&mut self, op: UnaryOp, a: &'e Expr, span: Span) -> Option<Value> {
        let value = unary(op, self.check_expr(a)?);
        self.constant(value, span)
    }

    /// Checks a binary operator and its operands.
    fn binary(&mut self, op: BinaryOp, a: &'e Expr, b: &'e Expr, span: Span) -> Option<Value> {
        match (op, self.check_expr(a), self.check_expr(b)) {
            (_, Some(a), Some(b)) => self.constant(binary(op, a, b), span),
            (BinaryOp::Div | BinaryOp::Rem, None, Some(0)) => self.constant(Err(Fault::DivisionByZero), span),
            _ => None,
        }
    }

    /// The value of a constant, unless its evaluation faults. The fault is reported once; continuing without
    /// a value avoids follow-up errors.
    fn constant(&mut self, value: Result<Value, Fault>, span: Span) -> Option<Value> {
        match value {
            Ok(value) => Some(value),
            Err(fault) => {
                self.report().push(Diagnostic::error("constant-fault", fault.to_string()).at(span, ""));
                None
            }
        }
    }
}

impl<'a> CheckOperators<'a> for Body<'a, '_> {
    fn check_expr(&mut self, e: &'a Expr) -> Option<Value> {
        self.expr(e)
    }

    fn report(&mut self) -> &mut Report {
        self.report
    }
}

impl<'a> Body<'a, '_> {
    /// Checks an expression and returns its value if it is constant.
    pub(super) fn expr(&mut self, e: &'a Expr) -> Option<Value> {
        self.size += 1;
        match &e.kind {
            ExprKind::Int(value) => Some(*value),
            ExprKind::Bool(value) => Some((*value).into()),
            ExprKind::Read(place) => {
                self.place(place);
                None
            }
            ExprKind::AddressOf(place) => {
                if let PlaceKind::Named(name) = &place.kind
                    && self.is_local(name)
                {
                    self.not_shared(name, "registers have no address");
                } else {
                    self.place(place);
                }
                None
            }
            ExprKind::Unary(op, a) => self.unary(*op, a, e.span()),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, e.span()),
            ExprKind::Locked(rmw, place, operands) => {
                self.locked(*rmw, place, operands, e.span());
                None
            }
            ExprKind::Call(name, args) => {
                self.call(name, args);
                if let Some(procedure) = self.names.procedures.get(name.as_str())
                    && procedure.result.is_none()
                {
                    let message = format!("the procedure `{name}` does not return a value");
                    self.report.push(
                        Diagnostic::error("no-result", message)
                            .at(name.span(), "its result is used here")
                            .at(procedure.name.span(), "declared here")
                            .help(format!("declare the type of its result: `proc {name}(…) -> int`")),
                    );
                }
                None
            }
            ExprKind::Any { lo, hi } => {
                match width(*lo, *hi) {
                    None => {
                        let message = format!("the range {lo}..{hi} is empty");
                        let diagnostic = Diagnostic::error("empty-domain", message).at(e.span(), "");
                        self.report
                            .push(diagnostic.help("write the smaller value first; both ends are included"));
                    }
                    Some(values) if values > limits::MAX_CHOICES => {
                        let message = format!("`any` chooses from more than {} values", limits::MAX_CHOICES);
                        self.report.push(Diagnostic::error("too-many-choices", message).at(e.span(), ""));
                    }
                    Some(_) => {}
                }
                None
            }
            ExprKind::Observe(_) => {
                let message = "processes can be observed only in `forbid` and `final`";
                self.report.push(Diagnostic::error("observation-in-code", message).at(e.span(), ""));
                None
            }
        }
    }

    /// Checks a place that is read or written.
    pub(super) fn place(&mut self, place: &'a Place) {
        match &place.kind {
            PlaceKind::Named(name) => {
                if self.is_local(name) {
                    return;
                }
                match self.names.memory.get(name.as_str()) {
                    None => self.unknown(name),
                    Some(memory) if memory.len.is_some() => self.report.push(array_misuse(name, true)),
                    Some(_) => {}
                }
            }
            PlaceKind::Element(name, index) => {
                let value = self.expr(index);
                let local = self.is_local(name);
                match self.names.memory.get(name.as_str()) {
                    _ if local => {
                        let message = format!("`{name}` is a register, not an array");
                        let diagnostic = Diagnostic::error("not-an-array", message).at(name.span(), "");
                        self.report.push(diagnostic.help("only shared variables can be arrays"));
                    }
                    None => self.unknown(name),
                    Some(memory) => match (memory.len, value) {
                        (None, _) => self.report.push(array_misuse(name, false)),
                        (Some(len), Some(value)) if value < 0 || value >= len.into() => {
                            self.report.push(out_of_bounds(name, len, value, index.span()));
                        }
                        _ => {}
                    },
                }
            }
            PlaceKind::Deref(pointer) => {
                self.expr(pointer);
            }
        }
    }

    fn locked(&mut self, rmw: Rmw, place: &'a Place, operands: &'a [Expr], span: Span) {
        operands.iter().for_each(|operand| {
            self.expr(operand);
        });
        if operands.len() != rmw.operands() {
            let (wanted, found) = (rmw.operands() + 1, operands.len() + 1);
            let message = format!("`{}` takes {wanted} arguments, not {found}", rmw.name());
            self.report.push(Diagnostic::error("wrong-arity", message).at(span, ""));
        }
        if let PlaceKind::Named(name) = &place.kind
            && self.is_local(name)
        {
            let reason = format!("`{}` works only on shared variables", rmw.name());
            self.not_shared(name, &reason);
        } else {
            self.place(place);
        }
    }

    /// Checks a call, with or without a result.
    pub(super) fn call(&mut self, name: &'a Name, args: &'a [Expr]) {
        args.iter().for_each(|arg| {
            self.expr(arg);
        });
        match self.names.procedures.get(name.as_str()) {
            Some(procedure) => {
                self.arity("procedure", name, args.len(), procedure.params.len(), procedure.name.span());
            }
            None => {
                let message = format!("there is no procedure `{name}`");
                let diagnostic = Diagnostic::error("unknown-procedure", message).at(name.span(), "");
                let candidates = self.names.procedures.keys().copied();
                let diagnostic = self.report.suggest(diagnostic, name.as_str(), candidates);
                self.report.push(diagnostic);
            }
        }
    }

    fn not_shared(&mut self, name: &Name, reason: &str) {
        let what = if self.params.contains_key(name.as_str()) { "parameter" } else { "register" };
        let message = format!("`{name}` is a {what}: {reason}");
        self.report.push(Diagnostic::error("not-shared", message).at(name.span(), ""));
    }
}

/// The error for an array without an index, or a scalar with one.
pub(super) fn array_misuse(name: &Name, is_array: bool) -> Diagnostic {
    if is_array {
        Diagnostic::error("array-without-index", format!("`{name}` is an array"))
            .at(name.span(), "")
            .help(format!("name one of its elements: `{name}[0]`"))
    } else {
        Diagnostic::error("not-an-array", format!("`{name}` is not an array"))
            .at(name.span(), "")
            .help(format!("write `{name}` without an index, or declare `shared {name}[…]`"))
    }
}
