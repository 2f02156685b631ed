//! Writes single steps as statements, with the checks that go with them.

use super::{Emitter, binary, int, named, read};
use crate::expr::{Expr, width_bounds};
use crate::flat::{Access, ObjectId, RegId, Step, StepKind, Written};
use crate::statement_of_end::reads_wakes_alone;
use crate::{FREED, UNINITIALISED};
use palisade_base::Span;
use palisade_program::written::{self, BinaryOp, Check, ExprKind, Place, Rmw, Stmt, StmtKind};
use rustc_hash::FxHashMap;

impl Emitter<'_> {
    /// Checks that a register holds something that was written and not freed.
    fn check(&self, register: RegId, written: Written, span: Span, out: &mut Vec<Stmt>) {
        let mut differs = |value: i64, check| {
            let condition = binary(BinaryOp::Ne, read(self.register(register)), int(value));
            out.push(Stmt::new(StmtKind::Assert(condition, check), span));
        };
        if self.frees {
            differs(FREED, Check::NotFreed);
        }
        if let Some(check) = written.check() {
            differs(UNINITIALISED, check);
        }
    }

    /// Checks that a cell holds something that was written and not freed, where it may not.
    fn check_place(&self, access: &Access, span: Span, out: &mut Vec<Stmt>) {
        if !self.layout.may_be_unwritten(access) {
            return;
        }
        let mut differs = |value: i64, check| {
            let condition = binary(BinaryOp::Ne, read(self.place(access)), int(value));
            out.push(Stmt::new(StmtKind::Assert(condition, check), span));
        };
        if self.frees {
            differs(FREED, Check::NotFreed);
        }
        differs(UNINITIALISED, Check::Initialised);
    }

    /// Checks that an access that writes does not touch a constant.
    fn check_writable(&self, access: &Access, span: Span, out: &mut Vec<Stmt>) {
        let mut constants: Vec<ObjectId> =
            self.layout.may_touch(access).filter(|cell| cell.constant).map(|cell| cell.object).collect();
        constants.dedup();
        for object in constants {
            let condition = if access.pointer.is_constant() {
                written::Expr::new(ExprKind::Bool(false), Span::NONE)
            } else {
                let (first, end) = self.layout.range(object);
                let outside = |op, bound| binary(op, self.expr(&access.pointer), int(bound));
                binary(BinaryOp::Or, outside(BinaryOp::Lt, first), outside(BinaryOp::Ge, end))
            };
            out.push(Stmt::new(StmtKind::Assert(condition, Check::Writable), span));
        }
    }

    pub(super) fn step(&mut self, step: &Step, out: &mut Vec<Stmt>) {
        let span = step.span;
        match &step.kind {
            StepKind::Assign(register, e) => {
                let wraps = !self.wide.contains(register);
                let value = self.assigned(e, self.code.width(*register), wraps);
                out.push(self.assign(*register, value, span));
            }
            StepKind::Load { to, from, written } => {
                out.push(self.assign(*to, read(self.place(from)), span));
                if self.layout.may_be_unwritten(from) {
                    self.check(*to, *written, span, out);
                }
            }
            StepKind::Store { to, value } => {
                let unwritten = self.layout.may_be_unwritten(to);
                // The translation itself marks memory.
                let marks = matches!(value, Expr::Int(UNINITIALISED | FREED));
                if self.frees && !marks && self.layout.may_touch(to).any(|cell| cell.heap || cell.left) {
                    let differs = binary(BinaryOp::Ne, read(self.any_place(to)), int(FREED));
                    out.push(Stmt::new(StmtKind::Assert(differs, Check::NotFreed), span));
                }
                if unwritten && to.size == 3 && !marks && !self.is_surely_written(value) {
                    // A copy of what was never written counts as never written.
                    let copied = matches!(value, Expr::Reg(register) if self.copied.contains(register));
                    let special = [UNINITIALISED, FREED].into_iter().skip(usize::from(copied));
                    for special in special {
                        let differs = binary(BinaryOp::Ne, self.expr(value), int(special));
                        out.push(Stmt::new(StmtKind::Assert(differs, Check::Value), span));
                    }
                }
                self.check_writable(to, span, out);
                let value = self.assigned(value, 8 << to.size, !unwritten);
                out.push(Stmt::new(StmtKind::Assign { place: self.place(to), value }, span));
            }
            StepKind::Locked { rmw, old, at, operand } => {
                self.check_writable(at, span, out);
                let unwritten = self.layout.may_be_unwritten(at);
                let value = self.locked(*rmw, at, vec![self.assigned(operand, 8 << at.size, !unwritten)]);
                if unwritten || self.read.contains(old) {
                    out.push(self.assign(*old, value, span));
                } else {
                    out.push(Stmt::new(StmtKind::Eval(value), span));
                }
                if unwritten {
                    self.check(*old, Written::Needed, span, out);
                    self.check_sum(*rmw, *old, at, operand, span, out);
                }
            }
            StepKind::Cas { old, done, at, expected, new } => {
                self.check_writable(at, span, out);
                let unwritten = self.layout.may_be_unwritten(at);
                if old.is_none() && !unwritten {
                    let value = self.locked(Rmw::Cas, at, vec![self.expr(expected), self.expr(new)]);
                    out.push(match done {
                        Some(done) => self.assign(*done, value, span),
                        None => Stmt::new(StmtKind::Eval(value), span),
                    });
                    return;
                }
                self.compare_exchange(*old, *done, at, expected, new, unwritten, span, out);
            }
            StepKind::AwaitCas { at, expected, new } => {
                self.check_writable(at, span, out);
                self.check_place(at, span, out);
                let value = self.locked(Rmw::Cas, at, vec![self.expr(expected), self.expr(new)]);
                out.push(Stmt::new(StmtKind::Await(value), span));
            }
            StepKind::AwaitLoad { temporary, from, condition } => {
                self.check_place(from, span, out);
                let load = StepKind::Load { to: *temporary, from: from.clone(), written: Written::Needed };
                let mut accesses = FxHashMap::default();
                accesses.insert(*temporary, (0, &load));
                let condition = self.inlined(condition, &accesses, &mut Vec::new());
                let condition = condition.expect("the condition of a wait is simple");
                out.push(Stmt::new(StmtKind::Await(condition), span));
            }
            StepKind::Atomic(steps) => {
                let mut inner = Vec::new();
                steps.iter().for_each(|step| self.step(step, &mut inner));
                out.push(Stmt::new(StmtKind::Atomic(inner), span));
            }
            StepKind::If(condition, then, otherwise) => {
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                then.iter().for_each(|step| self.step(step, &mut yes));
                otherwise.iter().for_each(|step| self.step(step, &mut no));
                let condition = self.expr(condition);
                out.push(Stmt::new(StmtKind::If { condition, then: yes, otherwise: no }, span));
            }
            StepKind::Fence => out.push(Stmt::new(StmtKind::Fence, span)),
            StepKind::StoreFence => out.push(Stmt::new(StmtKind::StoreFence, span)),
            StepKind::Assert(e, check) => {
                let condition = match e {
                    Expr::Int(0) => written::Expr::new(ExprKind::Bool(false), Span::NONE),
                    e => self.expr(e),
                };
                out.push(Stmt::new(StmtKind::Assert(condition, *check), span));
            }
            StepKind::Assume(e) if self.aim.asks_finish() => {
                let condition = self.expr(&crate::expr::not(e.clone()));
                let then = vec![self.over(span)];
                out.push(Stmt::new(StmtKind::If { condition, then, otherwise: Vec::new() }, span));
            }
            StepKind::Assume(e) => out.push(Stmt::new(StmtKind::Assume(self.expr(e)), span)),
            StepKind::Any { to, lo, hi, .. } => {
                let value = written::Expr::new(ExprKind::Any { lo: *lo, hi: *hi }, Span::NONE);
                out.push(self.assign(*to, value, span));
            }
            StepKind::AnyWaiting(to) => {
                let hi = i64::try_from(self.waiting.max(1) - 1).expect("few threads wait");
                let value = written::Expr::new(ExprKind::Any { lo: 0, hi }, Span::NONE);
                out.push(self.assign(*to, value, span));
            }
            StepKind::MayWakeAlone(to) => out.push(self.assign(*to, reads_wakes_alone(), span)),
            StepKind::Initialised(register, check) => {
                let differs = binary(BinaryOp::Ne, read(self.register(*register)), int(UNINITIALISED));
                out.push(Stmt::new(StmtKind::Assert(differs, *check), span));
            }
            StepKind::Enter(object) | StepKind::Redeclare(object) => {
                // What is there from an earlier time counts as never written.
                let cells = self.layout.cells.iter().filter(|cell| cell.object == *object);
                let places: Vec<Place> = cells.map(named).collect();
                for place in places {
                    let value = int(UNINITIALISED);
                    out.push(Stmt::new(StmtKind::Assign { place, value }, span));
                }
            }
            StepKind::Leave(object) => {
                let cells = self.layout.cells.iter().filter(|cell| cell.object == *object && cell.left);
                let places: Vec<Place> = cells.map(named).collect();
                for place in places {
                    let place = if self.races { place.plainly() } else { place };
                    let value = int(FREED);
                    out.push(Stmt::new(StmtKind::Assign { place, value }, span));
                }
            }
            StepKind::Uninitialise(_) => {}
            StepKind::Freeable(access) => {
                let differs = binary(BinaryOp::Ne, read(self.place(access)), int(FREED));
                out.push(Stmt::new(StmtKind::Assert(differs, Check::Freeable), span));
            }
            StepKind::Unsupported(_)
            | StepKind::Allocate { .. }
            | StepKind::Free { .. }
            | StepKind::Move { .. }
            | StepKind::Copy { .. }
            | StepKind::Fill { .. }
            | StepKind::Start { .. }
            | StepKind::AwaitThreads
            | StepKind::ProgramEnds { .. }
            | StepKind::Detach { .. }
            | StepKind::Unpark { .. }
            | StepKind::Finished { .. }
            | StepKind::Join { .. } => {
                unreachable!("these were refused or replaced before")
            }
        }
    }

    /// A sum that leaves the range of its width cannot be represented in a cell that may hold more.
    fn check_sum(&self, rmw: Rmw, old: RegId, at: &Access, operand: &Expr, span: Span, out: &mut Vec<Stmt>) {
        let op = match rmw {
            Rmw::FetchAdd => BinaryOp::WordAdd,
            Rmw::FetchSub => BinaryOp::WordSub,
            _ => return,
        };
        if at.size == 3 {
            return;
        }
        let (lo, hi) = width_bounds(8 << at.size);
        for (compare, bound) in [(BinaryOp::Ge, lo), (BinaryOp::Le, hi)] {
            let sum = binary(op, read(self.register(old)), self.expr(operand));
            let condition = binary(compare, sum, int(bound));
            out.push(Stmt::new(StmtKind::Assert(condition, Check::Value), span));
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn compare_exchange(
        &self,
        old: Option<RegId>,
        done: Option<RegId>,
        at: &Access,
        expected: &Expr,
        new: &Expr,
        unwritten: bool,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        // Without a register for the old value, the one that says whether it happened must be enough.
        let Some(old) = old else {
            let value = self.locked(Rmw::Cas, at, vec![self.expr(expected), self.expr(new)]);
            self.check_place(at, span, out);
            out.push(match done {
                Some(done) => self.assign(done, value, span),
                None => Stmt::new(StmtKind::Eval(value), span),
            });
            return;
        };
        if self.aim.asks_finish() {
            self.exchange_without_section(old, at, expected, new, unwritten, span, out);
            if let Some(done) = done {
                let same = binary(BinaryOp::Eq, read(self.register(old)), self.expr(expected));
                out.push(self.assign(done, same, span));
            }
            return;
        }
        let mut inner = vec![self.assign(old, read(self.place(at)), span)];
        if unwritten {
            self.check(old, Written::Needed, span, &mut inner);
        }
        let same = || binary(BinaryOp::Eq, read(self.register(old)), self.expr(expected));
        let store = Stmt::new(StmtKind::Assign { place: self.place(at), value: self.expr(new) }, span);
        let then = vec![store];
        inner.push(Stmt::new(StmtKind::If { condition: same(), then, otherwise: Vec::new() }, span));
        out.push(Stmt::new(StmtKind::Atomic(inner), span));
        if let Some(done) = done {
            out.push(self.assign(done, same(), span));
        }
    }

    /// A compare and exchange as a load and, if that finds what is expected, a locked instruction; again if the
    /// value has changed in between. It has the same effects as an atomic section, in steps of its own: an
    /// exchange that fails has loaded the value when the buffer was empty, and one that succeeds is a single step.
    /// So the search for states from which the program cannot finish may leave more states out.
    #[allow(clippy::too_many_arguments)]
    fn exchange_without_section(
        &self,
        old: RegId,
        at: &Access,
        expected: &Expr,
        new: &Expr,
        unwritten: bool,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let stmt = |kind| Stmt::new(kind, span);
        let leave_if = |condition| {
            let then = vec![stmt(StmtKind::Break)];
            stmt(StmtKind::If { condition, then, otherwise: Vec::new() })
        };
        let mut body = vec![stmt(StmtKind::Fence), self.assign(old, read(self.place(at)), span)];
        if unwritten {
            self.check(old, Written::Needed, span, &mut body);
        }
        body.push(leave_if(binary(BinaryOp::Ne, read(self.register(old)), self.expr(expected))));
        body.push(leave_if(self.locked(Rmw::Cas, at, vec![self.expr(expected), self.expr(new)])));
        out.push(stmt(StmtKind::Loop(body)));
    }

    /// Whether a value cannot be one of the two special ones.
    fn is_surely_written(&self, e: &Expr) -> bool {
        let (lo, _) = e.bounds(&self.code.registers);
        match e {
            Expr::Int(value) => *value != UNINITIALISED && *value != FREED,
            Expr::Address(..) => true,
            _ => lo > UNINITIALISED.max(FREED),
        }
    }
}
