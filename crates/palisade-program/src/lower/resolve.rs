//! Resolves the names in an expression and folds constants.
//!
//! The result is a tree. Everything that needs no step of its own is already one pure expression over
//! registers. Every other node records what its evaluation does ([`Effect`]).

use super::fold;
use super::globals::{Globals, Memory};
use crate::Value;
use crate::running::{BinaryOp, CellId, CodeId, Expr, RegId, Rmw, Type, UnaryOp};
use crate::written::{self, Domain, ExprKind, Place, PlaceKind};
use palisade_base::Span;
use rustc_hash::FxHashMap;

/// What the evaluation of an expression does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// Nothing: it is an expression over registers.
    Pure,
    /// It loads from memory. This changes only temporaries and never waits.
    Loads,
    /// It calls, uses locked instructions or chooses. It may change memory, wait, or never return.
    Acts,
}

/// A resolved expression.
pub(super) struct Node {
    pub(super) tree: Tree,
    pub(super) effect: Effect,
    pub(super) span: Span,
}

/// The forms of a resolved expression. All except the first need steps of their own.
pub(super) enum Tree {
    Pure(Expr),
    Load(Box<Address>),
    /// The address of an array element whose index is checked at run time.
    AddressOf {
        memory: Memory,
        len: u32,
        index: Box<Node>,
    },
    Unary(UnaryOp, Box<Node>),
    Binary(BinaryOp, Box<Node>, Box<Node>),
    Locked(Rmw, Box<Address>, Vec<Node>),
    Call {
        code: CodeId,
        result: Option<Type>,
        args: Vec<Node>,
    },
    Any(Value, Value),
}

/// A resolved shared place, with a domain that contains all its values.
pub(super) struct Address {
    pub(super) form: AddressForm,
    pub(super) domain: Domain,
    /// Whether it is accessed plainly.
    pub(super) plain: bool,
}

/// The form of an address.
pub(super) enum AddressForm {
    Cell(CellId),
    Element { base: CellId, len: u32, index: Node },
    Pointer(Node),
}

impl Address {
    /// What computing the address does.
    pub(super) fn effect(&self) -> Effect {
        match &self.form {
            AddressForm::Cell(_) => Effect::Pure,
            AddressForm::Element { index, .. } => index.effect,
            AddressForm::Pointer(pointer) => pointer.effect,
        }
    }
}

impl Node {
    /// Whether it is an `&&` or `||` (perhaps negated) whose second operand needs steps, so that only control
    /// flow can skip it.
    pub(super) fn branches(&self) -> bool {
        match &self.tree {
            Tree::Unary(UnaryOp::Not, a) => a.branches(),
            Tree::Binary(BinaryOp::And | BinaryOp::Or, _, b) => b.effect > Effect::Pure,
            _ => false,
        }
    }
}

/// The meaning of a name in a body: a register, or a known constant.
#[derive(Clone, Copy)]
pub(super) enum Binding {
    Register(RegId),
    Constant(Value),
}

/// A place that can be read or assigned.
pub(super) enum Target {
    Local(Binding),
    Shared(Address),
}

/// The names that can be used in one body.
pub(super) struct Scope<'p> {
    pub(super) globals: &'p Globals<'p>,
    pub(super) locals: FxHashMap<&'p str, Binding>,
}

impl Scope<'_> {
    /// Resolves an expression.
    pub(super) fn expr(&self, e: &written::Expr) -> Node {
        let span = e.span();
        let pure = |e| Node { tree: Tree::Pure(e), effect: Effect::Pure, span };
        match &e.kind {
            ExprKind::Int(value) => pure(Expr::Const(*value)),
            ExprKind::Bool(value) => pure(Expr::Const((*value).into())),
            ExprKind::Read(place) => match self.place(place) {
                Target::Local(Binding::Constant(value)) => pure(Expr::Const(value)),
                Target::Local(Binding::Register(register)) => pure(Expr::Reg(register)),
                Target::Shared(address) => {
                    let effect = address.effect().max(Effect::Loads);
                    Node { tree: Tree::Load(Box::new(address)), effect, span }
                }
            },
            ExprKind::AddressOf(place) => self.address_of(place, span),
            ExprKind::Unary(op, a) => {
                let a = self.expr(a);
                match a.tree {
                    Tree::Pure(a) => pure(fold::unary(*op, a)),
                    _ => Node { effect: a.effect, tree: Tree::Unary(*op, Box::new(a)), span },
                }
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, self.expr(a), b, span),
            ExprKind::Locked(rmw, place, operands) => {
                let Target::Shared(address) = self.place(place) else {
                    panic!("validation: a locked instruction works on shared memory")
                };
                let operands = self.exprs(operands);
                Node { tree: Tree::Locked(*rmw, Box::new(address), operands), effect: Effect::Acts, span }
            }
            ExprKind::Call(name, args) => {
                let &(code, procedure) = self
                    .globals
                    .procedures
                    .get(name.as_str())
                    .unwrap_or_else(|| panic!("validation: the procedure `{name}` exists"));
                let tree = Tree::Call { code, result: procedure.result, args: self.exprs(args) };
                Node { tree, effect: Effect::Acts, span }
            }
            ExprKind::Any { lo, hi } if lo == hi => pure(Expr::Const(*lo)),
            ExprKind::Any { lo, hi } => Node { tree: Tree::Any(*lo, *hi), effect: Effect::Acts, span },
            ExprKind::Observe(_) => panic!("validation: only properties observe processes"),
        }
    }

    /// Resolves several expressions.
    pub(super) fn exprs(&self, exprs: &[written::Expr]) -> Vec<Node> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn binary(&self, op: BinaryOp, a: Node, b: &written::Expr, span: Span) -> Node {
        // `0 && e` and `1 || e` never evaluate `e`.
        match (op, &a.tree) {
            (BinaryOp::And, Tree::Pure(Expr::Const(0))) => {
                return Node { tree: Tree::Pure(Expr::Const(0)), effect: Effect::Pure, span };
            }
            (BinaryOp::Or, Tree::Pure(Expr::Const(value))) if *value != 0 => {
                return Node { tree: Tree::Pure(Expr::Const(1)), effect: Effect::Pure, span };
            }
            _ => {}
        }
        let b = self.expr(b);
        let effect = a.effect.max(b.effect);
        match (a, b) {
            (Node { tree: Tree::Pure(a), .. }, Node { tree: Tree::Pure(b), .. }) => {
                Node { tree: Tree::Pure(fold::binary(op, a, b)), effect, span }
            }
            // `1 && e` and `0 || e` reduce to the truth value of `e`.
            (Node { tree: Tree::Pure(Expr::Const(_)), .. }, b)
                if matches!(op, BinaryOp::And | BinaryOp::Or) =>
            {
                let zero = Node { tree: Tree::Pure(Expr::Const(0)), effect: Effect::Pure, span };
                Node { tree: Tree::Binary(BinaryOp::Ne, Box::new(b), Box::new(zero)), effect, span }
            }
            (a, b) => Node { tree: Tree::Binary(op, Box::new(a), Box::new(b)), effect, span },
        }
    }

    /// Resolves a place.
    pub(super) fn place(&self, place: &Place) -> Target {
        let plain = place.plain;
        match &place.kind {
            PlaceKind::Named(name) => match self.locals.get(name.as_str()) {
                Some(binding) => Target::Local(*binding),
                None => {
                    let memory = self.memory(name);
                    let form = AddressForm::Cell(memory.base);
                    Target::Shared(Address { form, domain: memory.ty.domain, plain })
                }
            },
            PlaceKind::Element(name, index) => {
                let memory = self.memory(name);
                let (base, len) = (memory.base, length(name, memory));
                let index = self.expr(index);
                let cell = match &index.tree {
                    Tree::Pure(index) => fold::element(base, len, index),
                    _ => None,
                };
                let form = match cell {
                    Some(cell) => AddressForm::Cell(cell),
                    None => AddressForm::Element { base, len, index },
                };
                Target::Shared(Address { form, domain: memory.ty.domain, plain })
            }
            PlaceKind::Deref(pointer) => match &pointer.kind {
                // `*&p` is `p`.
                ExprKind::AddressOf(place) => match self.place(place) {
                    Target::Shared(address) => Target::Shared(Address { plain, ..address }),
                    local => local,
                },
                _ => {
                    let form = AddressForm::Pointer(self.expr(pointer));
                    Target::Shared(Address { form, domain: Domain::Int, plain })
                }
            },
        }
    }

    fn address_of(&self, place: &Place, span: Span) -> Node {
        let pure = |e| Node { tree: Tree::Pure(e), effect: Effect::Pure, span };
        // `&*e` is `e`. Nothing is accessed yet.
        if let PlaceKind::Deref(pointer) = &place.kind {
            return self.expr(pointer);
        }
        let Target::Shared(address) = self.place(place) else {
            panic!("validation: only shared variables have addresses")
        };
        match address.form {
            AddressForm::Cell(cell) => pure(Expr::Const(self.globals.address(cell))),
            AddressForm::Element { len, index, .. } => {
                let PlaceKind::Element(name, _) = &place.kind else {
                    unreachable!("only elements have an index")
                };
                let effect = index.effect.max(Effect::Loads);
                let tree = Tree::AddressOf { memory: self.memory(name), len, index: Box::new(index) };
                Node { tree, effect, span }
            }
            AddressForm::Pointer(_) => unreachable!("`&*e` was handled above"),
        }
    }

    fn memory(&self, name: &written::Name) -> Memory {
        *self.globals.shared.get(name.as_str()).unwrap_or_else(|| panic!("validation: `{name}` is declared"))
    }
}

fn length(name: &written::Name, memory: Memory) -> u32 {
    memory.len.unwrap_or_else(|| panic!("validation: only arrays are indexed, not `{name}`"))
}
