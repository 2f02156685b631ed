//! Turns expressions into edges: one edge per load, locked instruction, call or choice. The rest remains an
//! expression.

use super::flow::Body;
use super::fold;
use super::resolve::{Address, AddressForm, Effect, Node, Tree};
use crate::running::{Address as Running, BinaryOp, Check, Expr, Instr, Location, RegId, Rmw, UnaryOp};
use crate::written::Domain;
use palisade_base::Span;

impl Body<'_> {
    /// Evaluates an expression. The result reads registers only.
    pub(super) fn value(&mut self, node: Node) -> Expr {
        let span = node.span;
        match node.tree {
            Tree::Pure(e) => e,
            Tree::Unary(op, a) if op != UnaryOp::Not || !a.branches() => {
                let a = self.value(*a);
                fold::unary(op, a)
            }
            Tree::Binary(op, a, b) if !short_circuits(op, &b) => {
                let a = self.value(*a);
                let a = self.settle(a, b.effect);
                let b = self.value(*b);
                fold::binary(op, a, b)
            }
            Tree::AddressOf { memory, len, index } => {
                let index = self.value(*index);
                if !self.is_surely_below(&index, len) {
                    let at_least = fold::binary(BinaryOp::Ge, index.clone(), Expr::Const(0));
                    let less = fold::binary(BinaryOp::Lt, index.clone(), Expr::Const(len.into()));
                    let inside = fold::binary(BinaryOp::And, at_least, less);
                    self.emit(Instr::Assert(inside, Check::Index), span);
                }
                let offset = match memory.at.step {
                    1 => index,
                    step => fold::binary(BinaryOp::Mul, index, Expr::Const(step)),
                };
                fold::binary(BinaryOp::Add, Expr::Const(memory.address(0)), offset)
            }
            _ => Expr::Reg(self.evaluate_to(node, None, span)),
        }
    }

    /// Evaluates an expression into a register, or into a temporary if none is given. The last step gets the
    /// given span.
    pub(super) fn evaluate_to(&mut self, node: Node, register: Option<RegId>, span: Span) -> RegId {
        let mark = self.mark();
        match node.tree {
            Tree::Load(address) => {
                let (domain, plain) = (address.domain, address.plain);
                let address = self.address(*address);
                let register = self.destination(register, mark, domain);
                self.emit_access(Instr::Load(register, address), plain, span);
                register
            }
            Tree::Locked(rmw, address, operands) => {
                let domain = if rmw == Rmw::Cas { Domain::Bool } else { address.domain };
                let operands = self.operands(operands, address.effect());
                let address = self.address(*address);
                let result = self.destination(register, mark, domain);
                self.emit(Instr::Locked { rmw, result, address, operands }, span);
                result
            }
            Tree::Call { code, result, args } => {
                let args = self.operands(args, Effect::Pure);
                let domain = result.expect("validation: only results that exist are used").domain;
                let register = self.destination(register, mark, domain);
                self.emit(Instr::Call { code, args, result: Some(register) }, span);
                register
            }
            Tree::Any(lo, hi) => {
                let register = self.destination(register, mark, Domain::Range { lo, hi });
                self.emit(Instr::Havoc(register, lo, hi), span);
                register
            }
            Tree::Binary(op, a, b) if short_circuits(op, &b) => {
                let register = self.destination(register, mark, Domain::Bool);
                let (decided, second, join) = (self.fresh(), self.fresh(), self.fresh());
                let known = match op {
                    BinaryOp::And => {
                        self.branch(*a, Some(second), Some(decided));
                        0
                    }
                    _ => {
                        self.branch(*a, Some(decided), Some(second));
                        1
                    }
                };
                self.continue_at(second);
                let inner = self.mark();
                let b = self.value(*b);
                self.release(inner);
                self.edge(Instr::Assign(register, fold::truth(b)), join, span);
                self.continue_at(decided);
                self.edge(Instr::Assign(register, Expr::Const(known)), join, span);
                self.continue_at(join);
                register
            }
            Tree::Unary(UnaryOp::Not, ref a) if a.branches() => {
                let register = self.destination(register, mark, Domain::Bool);
                let (yes, no, join) = (self.fresh(), self.fresh(), self.fresh());
                self.branch(node, Some(yes), Some(no));
                for (location, value) in [(yes, 1), (no, 0)] {
                    self.continue_at(location);
                    self.edge(Instr::Assign(register, Expr::Const(value)), join, span);
                }
                self.continue_at(join);
                register
            }
            tree => {
                let value = self.value(Node { tree, ..node });
                let register = self.destination(register, mark, Domain::Int);
                self.emit(Instr::Assign(register, value), span);
                register
            }
        }
    }

    /// Goes to the first location if the condition is true, to the second if it is false. If that location is
    /// `None`, the process is stuck. The cursor is undefined afterwards.
    pub(super) fn branch(&mut self, condition: Node, yes: Option<Location>, no: Option<Location>) {
        let mark = self.mark();
        match condition.tree {
            Tree::Unary(UnaryOp::Not, a) => self.branch(*a, no, yes),
            Tree::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if short_circuits(op, &b) => {
                let second = self.fresh();
                match op {
                    BinaryOp::And => self.branch(*a, Some(second), no),
                    _ => self.branch(*a, yes, Some(second)),
                }
                self.continue_at(second);
                self.branch(*b, yes, no);
            }
            _ => match self.value(condition) {
                Expr::Const(value) => {
                    if let Some(target) = if value == 0 { no } else { yes } {
                        self.edge(Instr::Nop, target, self.statement_span());
                    }
                }
                condition => {
                    let span = self.statement_span();
                    if let Some(target) = yes {
                        self.edge(Instr::Assume(condition.clone()), target, span);
                    }
                    if let Some(target) = no {
                        self.edge(Instr::Assume(fold::negate(condition)), target, span);
                    }
                }
            },
        }
        self.release(mark);
    }

    /// Computes an address.
    pub(super) fn address(&mut self, address: Address) -> Running {
        match address.form {
            AddressForm::Cell(cell) => Running::Cell(cell),
            AddressForm::Element { base, len, index } => {
                let index = self.value(index);
                match fold::element(base, len, &index) {
                    Some(cell) => Running::Cell(cell),
                    None => Running::Element { base, len, index },
                }
            }
            AddressForm::Pointer(pointer) => match self.value(pointer) {
                Expr::Const(address) => match self.scope.globals.cell_at(address) {
                    Some(cell) => Running::Cell(cell),
                    None => Running::Pointer(Expr::Const(address)),
                },
                pointer => Running::Pointer(pointer),
            },
        }
    }

    /// Evaluates operands from left to right. `then` is the effect of what follows them.
    pub(super) fn operands(&mut self, operands: Vec<Node>, then: Effect) -> Vec<Expr> {
        // For each operand, the effect of everything after it.
        let mut later: Vec<Effect> = Vec::with_capacity(operands.len());
        let mut effect = then;
        for operand in operands.iter().rev() {
            later.push(effect);
            effect = effect.max(operand.effect);
        }
        operands
            .into_iter()
            .zip(later.into_iter().rev())
            .map(|(operand, later)| {
                let value = self.value(operand);
                self.settle(value, later)
            })
            .collect()
    }

    /// Evaluates an expression early if needed. If it can fault, it must do so before a later operation that
    /// may never return. If it reads private variables, it must do so before a call changes them.
    pub(super) fn settle(&mut self, value: Expr, later: Effect) -> Expr {
        match later {
            Effect::Acts if self.reads_private(&value) => self.evaluate_now(value, Span::NONE),
            Effect::Acts => self.settle_faults(value, Span::NONE),
            Effect::Pure | Effect::Loads => value,
        }
    }

    /// Evaluates an expression now if it can fault.
    pub(super) fn settle_faults(&mut self, value: Expr, span: Span) -> Expr {
        if fold::can_fault(&value) { self.evaluate_now(value, span) } else { value }
    }

    fn evaluate_now(&mut self, value: Expr, span: Span) -> Expr {
        let register = self.temporary(Domain::Int);
        self.emit(Instr::Assign(register, value), span);
        Expr::Reg(register)
    }

    /// Whether the domain of a register guarantees that an index is inside an array of this length.
    fn is_surely_below(&self, index: &Expr, len: u32) -> bool {
        match index {
            Expr::Reg(register) => {
                let bounds = self.register_type(*register).domain.bounds();
                bounds.is_some_and(|(lo, hi)| lo >= 0 && hi < len.into())
            }
            _ => false,
        }
    }

    /// The register itself, or a temporary. Temporaries taken since the mark can be reused: the instruction
    /// reads them before it writes.
    fn destination(&mut self, register: Option<RegId>, mark: usize, domain: Domain) -> RegId {
        self.release(mark);
        register.unwrap_or_else(|| self.temporary(domain))
    }
}

/// Whether only control flow can skip the second operand.
fn short_circuits(op: BinaryOp, b: &Node) -> bool {
    matches!(op, BinaryOp::And | BinaryOp::Or) && b.effect > Effect::Pure
}
