//! Expressions with the values of wide variables taken modulo a number: see [`super`] for the argument.

use super::growth::{BodyIndex, Variable, bodies, is_truth};
use super::{MAX_OPERANDS, MAX_STEP, binary};
use crate::Refusal;
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Domain, Expr, ExprKind, Name, Observation, Place, PlaceKind, Program, Rmw, StmtKind,
    UnaryOp,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known about the value of a rewritten expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It is the value of the original expression.
    Exactly,
    /// It has the same remainder. The original is at most this many wide values plus or minus this number.
    Modulo { wide: u64, plus: u64 },
}

const WIDE: Known = Known::Modulo { wide: 1, plus: 0 };

/// What a condition is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    /// The process waits until it is true.
    Wait,
    /// It is a violation if it is false.
    Assert,
}

/// Which conditions are true in place of the condition of a property.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    /// True if the original may be true.
    May,
    /// True only if the original must be true.
    Must,
}

/// What names mean, and which variables are wide.
pub(super) struct Names<'p> {
    program: &'p Program,
    growing: &'p FxHashSet<Variable<'p>>,
    /// The domains of registers and parameters, by body.
    locals: Vec<FxHashMap<&'p str, Domain>>,
    modulus: u32,
}

fn refuse<T>(why: &str) -> Result<T, Refusal> {
    Err(Refusal::Unfit(format!("integers are taken modulo a number, but {why}")))
}

impl<'p> Names<'p> {
    pub fn new(program: &'p Program, growing: &'p FxHashSet<Variable<'p>>, modulus: u32) -> Names<'p> {
        let templates = program.templates.iter().map(|template| &template.params);
        let params = templates.chain(program.procedures.iter().map(|procedure| &procedure.params));
        let locals = bodies(program).zip(params).map(|(body, params)| {
            let privates = program.privates.iter().map(|private| (private.name.as_str(), private.ty.domain));
            let params = params.iter().map(|param| (param.name.as_str(), param.ty.domain));
            let mut locals: FxHashMap<&str, Domain> = privates.chain(params).collect();
            declare(body, &mut locals);
            locals
        });
        let locals = locals.collect();
        Names { program, growing, locals, modulus }
    }

    pub fn is_wide_register(&self, body: BodyIndex, name: &Name) -> bool {
        self.growing.contains(&(Some(body), name.as_str()))
    }

    pub fn is_wide(&self, body: BodyIndex, place: &Place) -> bool {
        let (PlaceKind::Named(name) | PlaceKind::Element(name, _)) = &place.kind else { return false };
        match self.locals[body].contains_key(name.as_str()) {
            true => self.is_wide_register(body, name),
            false => self.growing.contains(&(None, name.as_str())),
        }
    }

    /// A place, with its index.
    pub fn place(&self, body: BodyIndex, place: &Place) -> Result<Place, Refusal> {
        let kind = match &place.kind {
            PlaceKind::Named(_) => return Ok(place.clone()),
            PlaceKind::Element(name, index) => {
                PlaceKind::Element(name.clone(), Box::new(self.exact(body, index)?))
            }
            PlaceKind::Deref(_) => return refuse("the program has pointers"),
        };
        Ok(Place { kind, ..place.clone() })
    }

    /// An expression whose value must be known exactly.
    pub fn exact(&self, body: BodyIndex, e: &Expr) -> Result<Expr, Refusal> {
        match self.expr(body, e)? {
            (e, Known::Exactly) => Ok(e),
            _ => refuse("a value is used that has to be known exactly"),
        }
    }

    /// An expression whose value is stored in a variable that may be wide.
    pub fn stored(&self, body: BodyIndex, e: &Expr, in_wide: bool) -> Result<Expr, Refusal> {
        if !in_wide {
            return self.exact(body, e);
        }
        let (rewritten, known) = self.expr(body, e)?;
        match self.size(body, e, known)? {
            (0 | 1, 0..=MAX_STEP) => Ok(rewritten),
            _ => refuse("one step changes a variable by too much"),
        }
    }

    /// A condition: its own truth, or less where this is as good.
    pub fn condition(&self, body: BodyIndex, e: &Expr, demand: Demand) -> Result<Expr, Refusal> {
        if demand == Demand::Wait
            && let ExprKind::Locked(Rmw::Cas, place, operands) = &e.kind
            && self.is_wide(body, place)
        {
            return self.cas(body, e, place, operands);
        }
        if acts(e) { self.exact(body, e) } else { self.conjunct(body, e, demand) }
    }

    fn conjunct(&self, body: BodyIndex, e: &Expr, demand: Demand) -> Result<Expr, Refusal> {
        let wanted = match demand {
            Demand::Wait => BinaryOp::Eq,
            Demand::Assert => BinaryOp::Ne,
        };
        match &e.kind {
            ExprKind::Binary(BinaryOp::And, a, b) => {
                let (a, b) = (self.conjunct(body, a, demand)?, self.conjunct(body, b, demand)?);
                Ok(binary(BinaryOp::And, a, b, e))
            }
            ExprKind::Binary(op, a, b) if *op == wanted => {
                let ((left, of_left), (right, of_right)) = (self.expr(body, a)?, self.expr(body, b)?);
                if of_left == Known::Exactly && of_right == Known::Exactly {
                    return Ok(binary(*op, left, right, e));
                }
                compared(of_left)?;
                compared(of_right)?;
                Ok(self.remainder(*op, left, right, e))
            }
            _ => self.exact(body, e),
        }
    }

    /// An expression, and what is known about its value.
    pub fn expr(&self, body: BodyIndex, e: &Expr) -> Result<(Expr, Known), Refusal> {
        let exactly = |kind| Ok((Expr { kind, origin: e.origin }, Known::Exactly));
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } => Ok((e.clone(), Known::Exactly)),
            ExprKind::Read(place) => {
                let known = if self.is_wide(body, place) { WIDE } else { Known::Exactly };
                Ok((Expr { kind: ExprKind::Read(self.place(body, place)?), origin: e.origin }, known))
            }
            ExprKind::AddressOf(_) => refuse("the program has pointers"),
            ExprKind::Observe(_) => refuse("code observes a process"),
            ExprKind::Unary(UnaryOp::Neg, a) => {
                let (a, known) = self.expr(body, a)?;
                Ok((Expr { kind: ExprKind::Unary(UnaryOp::Neg, Box::new(a)), origin: e.origin }, known))
            }
            ExprKind::Unary(op, a) => exactly(ExprKind::Unary(*op, Box::new(self.exact(body, a)?))),
            ExprKind::Binary(op, a, b) => self.operator(body, e, *op, a, b),
            ExprKind::Locked(rmw, place, operands) => self.locked(body, e, *rmw, place, operands),
            ExprKind::Call(name, args) => {
                let args: Result<Vec<Expr>, Refusal> = args.iter().map(|arg| self.exact(body, arg)).collect();
                exactly(ExprKind::Call(name.clone(), args?))
            }
        }
    }

    fn operator(
        &self,
        body: BodyIndex,
        e: &Expr,
        op: BinaryOp,
        a: &Expr,
        b: &Expr,
    ) -> Result<(Expr, Known), Refusal> {
        let ((left, of_left), (right, of_right)) = (self.expr(body, a)?, self.expr(body, b)?);
        if of_left == Known::Exactly && of_right == Known::Exactly {
            return Ok((binary(op, left, right, e), Known::Exactly));
        }
        match op {
            BinaryOp::Add | BinaryOp::Sub => {
                let ((wide, plus), more) = (self.size(body, a, of_left)?, self.size(body, b, of_right)?);
                let known =
                    Known::Modulo { wide: wide.saturating_add(more.0), plus: plus.saturating_add(more.1) };
                Ok((binary(op, left, right, e), known))
            }
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                compared(of_left)?;
                compared(of_right)?;
                let choice = Expr { kind: ExprKind::Any { lo: 0, hi: 1 }, origin: e.origin };
                let chosen = match op {
                    BinaryOp::Eq => binary(BinaryOp::And, self.remainder(op, left, right, e), choice, e),
                    BinaryOp::Ne => binary(BinaryOp::Or, self.remainder(op, left, right, e), choice, e),
                    _ => {
                        let nothing = binary(BinaryOp::Mul, self.difference(left, right, e), Expr::int(0), e);
                        let never = binary(BinaryOp::Ne, nothing, Expr::int(0), e);
                        binary(BinaryOp::Or, never, choice, e)
                    }
                };
                Ok((chosen, Known::Exactly))
            }
            _ => refuse("an operator is used on a value that is not known exactly"),
        }
    }

    fn locked(
        &self,
        body: BodyIndex,
        e: &Expr,
        rmw: Rmw,
        place: &Place,
        operands: &[Expr],
    ) -> Result<(Expr, Known), Refusal> {
        if !self.is_wide(body, place) {
            let operands: Result<Vec<Expr>, Refusal> =
                operands.iter().map(|operand| self.exact(body, operand)).collect();
            let kind = ExprKind::Locked(rmw, self.place(body, place)?, operands?);
            return Ok((Expr { kind, origin: e.origin }, Known::Exactly));
        }
        let operand = match (rmw, operands) {
            (Rmw::Cas, _) => {
                let cas = self.cas(body, e, place, operands)?;
                let choice = Expr { kind: ExprKind::Any { lo: 0, hi: 1 }, origin: e.origin };
                return Ok((binary(BinaryOp::And, choice, cas, e), Known::Exactly));
            }
            (Rmw::Exchange, [new]) => self.stored(body, new, true)?,
            (Rmw::FetchAdd | Rmw::FetchSub, [by]) => {
                self.size(body, by, Known::Exactly)?;
                self.exact(body, by)?
            }
            _ => {
                return refuse("a locked instruction is used on a variable whose value is not known exactly");
            }
        };
        let kind = ExprKind::Locked(rmw, self.place(body, place)?, vec![operand]);
        Ok((Expr { kind, origin: e.origin }, WIDE))
    }

    /// A `cas` on a wide variable, without a choice.
    fn cas(&self, body: BodyIndex, e: &Expr, place: &Place, operands: &[Expr]) -> Result<Expr, Refusal> {
        let index = match &place.kind {
            PlaceKind::Element(_, index) => Some(&**index),
            _ => None,
        };
        let ([expected, new], false) =
            (operands, operands.iter().chain(index).any(|operand| self.takes_steps(body, operand)))
        else {
            return refuse("an operand of `cas` takes steps of its own");
        };
        let (old, known) = self.expr(body, expected)?;
        compared(known)?;
        let new = self.stored(body, new, true)?;
        let kind = ExprKind::Locked(Rmw::Cas, self.place(body, place)?, vec![old, new]);
        Ok(Expr { kind, origin: e.origin })
    }

    fn difference(&self, left: Expr, right: Expr, at: &Expr) -> Expr {
        let modulus = Expr::int(self.modulus.into());
        binary(BinaryOp::Rem, binary(BinaryOp::Sub, left, right, at), modulus, at)
    }

    /// Whether two values have the same remainder (`==`), or not (`!=`).
    fn remainder(&self, op: BinaryOp, left: Expr, right: Expr, at: &Expr) -> Expr {
        binary(op, self.difference(left, right, at), Expr::int(0), at)
    }

    /// A bound on the absolute value of the original expression: how many wide values, and how much more.
    fn size(&self, body: BodyIndex, e: &Expr, known: Known) -> Result<(u64, u64), Refusal> {
        match known {
            Known::Modulo { wide, plus } => Ok((wide, plus)),
            Known::Exactly => match self.bound(body, e).filter(|bound| *bound <= MAX_STEP) {
                Some(bound) => Ok((0, bound)),
                None => refuse("a number that is added or stored may be large"),
            },
        }
    }

    /// A bound on the absolute value of an expression that is known exactly.
    fn bound(&self, body: BodyIndex, e: &Expr) -> Option<u64> {
        let of_range = |lo: Value, hi: Value| lo.unsigned_abs().max(hi.unsigned_abs());
        match &e.kind {
            ExprKind::Int(value) => Some(value.unsigned_abs()),
            ExprKind::Bool(_) | ExprKind::Unary(UnaryOp::Not, _) | ExprKind::Locked(Rmw::Cas, ..) => Some(1),
            ExprKind::Any { lo, hi } => Some(of_range(*lo, *hi)),
            ExprKind::Binary(op, ..) if is_truth(*op) => Some(1),
            ExprKind::Unary(UnaryOp::Neg, a) => self.bound(body, a),
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
                self.bound(body, a)?.checked_add(self.bound(body, b)?)
            }
            ExprKind::Binary(BinaryOp::Mul, a, b) => self.bound(body, a)?.checked_mul(self.bound(body, b)?),
            ExprKind::Read(place) => {
                let (PlaceKind::Named(name) | PlaceKind::Element(name, _)) = &place.kind else { return None };
                let shared = || self.program.shared.iter().find(|shared| shared.name == *name);
                let local = self.locals[body].get(name.as_str()).copied();
                let (lo, hi) = local.or_else(|| shared().map(|shared| shared.ty.domain))?.bounds()?;
                Some(of_range(lo, hi))
            }
            _ => None,
        }
    }

    /// Whether an expression loads or has effects.
    fn takes_steps(&self, body: BodyIndex, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) => false,
            ExprKind::Read(Place { kind: PlaceKind::Named(name), .. }) => {
                !self.locals[body].contains_key(name.as_str())
            }
            ExprKind::Unary(_, a) => self.takes_steps(body, a),
            ExprKind::Binary(_, a, b) => self.takes_steps(body, a) || self.takes_steps(body, b),
            _ => true,
        }
    }

    /// The condition of a property.
    pub fn property(&self, e: &Expr, truth: Truth) -> Result<Expr, Refusal> {
        if !self.observes_wide(e) {
            return Ok(e.clone());
        }
        let kind = match (&e.kind, truth) {
            (ExprKind::Unary(UnaryOp::Not, a), Truth::May) => {
                ExprKind::Unary(UnaryOp::Not, Box::new(self.property(a, Truth::Must)?))
            }
            (ExprKind::Unary(UnaryOp::Not, a), Truth::Must) => {
                ExprKind::Unary(UnaryOp::Not, Box::new(self.property(a, Truth::May)?))
            }
            (ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b), _) => {
                let (a, b) = (self.property(a, truth)?, self.property(b, truth)?);
                ExprKind::Binary(*op, Box::new(a), Box::new(b))
            }
            (ExprKind::Binary(op, a, b), _) if is_truth(*op) && self.is_side(a) && self.is_side(b) => {
                let (a, b) = (self.side(a), self.side(b));
                return match (op, truth) {
                    (BinaryOp::Eq, Truth::May) | (BinaryOp::Ne, Truth::Must) => {
                        Ok(self.remainder(*op, a, b, e))
                    }
                    // The variables stay: whether a property mentions memory decides when it is checked.
                    (BinaryOp::WordLt | BinaryOp::WordLe, _) => refuse("a property compares words"),
                    (_, Truth::May) => {
                        let same = self.remainder(BinaryOp::Eq, a, b, e);
                        Ok(binary(BinaryOp::Or, same, Expr::int(1), e))
                    }
                    (_, Truth::Must) => {
                        let same = self.remainder(BinaryOp::Eq, a, b, e);
                        Ok(binary(BinaryOp::And, same, Expr::int(0), e))
                    }
                };
            }
            _ => return refuse("a property needs a value exactly"),
        };
        Ok(Expr { kind, origin: e.origin })
    }

    /// One side of a comparison in a property. A value that is known exactly may be large, and the difference of both
    /// sides must not overflow: a condition with an overflow is not true. So its remainder is taken first.
    fn side(&self, e: &Expr) -> Expr {
        match self.observes_wide(e) || self.terms(e).is_some() {
            true => e.clone(),
            false => binary(BinaryOp::Rem, e.clone(), Expr::int(self.modulus.into()), e),
        }
    }

    /// Whether this is one side of a comparison in a property: a value, or a sum of few wide values and small numbers.
    fn is_side(&self, e: &Expr) -> bool {
        matches!(e.kind, ExprKind::Read(_) | ExprKind::Observe(_))
            || self.terms(e).is_some_and(|terms| terms <= MAX_OPERANDS)
    }

    fn terms(&self, e: &Expr) -> Option<u64> {
        match &e.kind {
            ExprKind::Int(value) => (value.unsigned_abs() <= MAX_STEP / MAX_OPERANDS).then_some(1),
            ExprKind::Bool(_) => Some(1),
            ExprKind::Read(_) | ExprKind::Observe(_) => self.observes_wide(e).then_some(1),
            ExprKind::Unary(UnaryOp::Neg, a) => self.terms(a),
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
                self.terms(a)?.checked_add(self.terms(b)?)
            }
            _ => None,
        }
    }

    /// Whether a property's condition is about wide variables.
    fn observes_wide(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Read(place) => match &place.kind {
                PlaceKind::Named(name) | PlaceKind::Element(name, _) => {
                    self.growing.contains(&(None, name.as_str()))
                }
                PlaceKind::Deref(_) => true,
            },
            ExprKind::Observe(Observation::Register { process, register }) => {
                let templates = &self.program.templates;
                let body = templates.iter().position(|template| template.name == process.template);
                body.is_none_or(|body| self.is_wide_register(body, register))
            }
            ExprKind::Observe(Observation::At { .. } | Observation::Count { .. }) => false,
            ExprKind::Int(_) | ExprKind::Bool(_) => false,
            ExprKind::Unary(_, a) => self.observes_wide(a),
            ExprKind::Binary(_, a, b) => self.observes_wide(a) || self.observes_wide(b),
            ExprKind::AddressOf(_) | ExprKind::Locked(..) | ExprKind::Call(..) | ExprKind::Any { .. } => true,
        }
    }
}

fn declare<'p>(block: &'p Block, locals: &mut FxHashMap<&'p str, Domain>) {
    for stmt in block {
        if let StmtKind::Let { name, ty, .. } = &stmt.kind {
            locals.insert(name.as_str(), ty.domain);
        }
        stmt.kind.blocks().into_iter().for_each(|inner| declare(inner, locals));
    }
}

/// Whether an expression has locked instructions, calls or choices.
fn acts(e: &Expr) -> bool {
    let in_place = |place: &Place| match &place.kind {
        PlaceKind::Named(_) => false,
        PlaceKind::Element(_, e) | PlaceKind::Deref(e) => acts(e),
    };
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Observe(_) => false,
        ExprKind::Read(place) | ExprKind::AddressOf(place) => in_place(place),
        ExprKind::Unary(_, a) => acts(a),
        ExprKind::Binary(_, a, b) => acts(a) || acts(b),
        ExprKind::Locked(..) | ExprKind::Call(..) | ExprKind::Any { .. } => true,
    }
}

/// Checks that a value that is compared does not overflow early.
fn compared(known: Known) -> Result<(), Refusal> {
    match known {
        Known::Exactly | Known::Modulo { wide: 0..=MAX_OPERANDS, plus: 0..=MAX_STEP } => Ok(()),
        Known::Modulo { .. } => refuse("a comparison has too many operands"),
    }
}
