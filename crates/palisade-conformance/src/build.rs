//! Short functions for building programs in Rust, without a source text.

use palisade_base::{Origin, Span};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Count, Expr, ExprKind, Init, InitValue, Name, Observation, Param, Place, PlaceKind,
    ProcessRef, Property, PropertyKind, Rmw, Select, Shared, Start, Stmt, StmtKind, Template, Type, UnaryOp,
};

/// A name.
pub fn name(text: impl Into<String>) -> Name {
    Name::generated(text.into())
}

/// An expression.
pub fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::NONE)
}

/// A literal; a negated one if the value is negative.
pub fn int(value: Value) -> Expr {
    if value < 0 {
        expr(ExprKind::Unary(UnaryOp::Neg, Box::new(Expr::int(-value))))
    } else {
        Expr::int(value)
    }
}

/// A place.
pub fn place(kind: PlaceKind) -> Place {
    Place::new(kind, Span::NONE)
}

/// A variable or register.
pub fn named(text: &str) -> Place {
    place(PlaceKind::Named(name(text)))
}

/// `a[e]`
pub fn element(array: &str, index: Expr) -> Place {
    place(PlaceKind::Element(name(array), Box::new(index)))
}

/// `*e`
pub fn deref(pointer: Expr) -> Place {
    place(PlaceKind::Deref(Box::new(pointer)))
}

/// A read of a place.
pub fn read(place: Place) -> Expr {
    expr(ExprKind::Read(place))
}

/// A read of a variable or register.
pub fn var(text: &str) -> Expr {
    read(named(text))
}

/// `a op b`
pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    expr(ExprKind::Binary(op, Box::new(a), Box::new(b)))
}

/// `a == b`
pub fn eq(a: Expr, b: Expr) -> Expr {
    binary(BinaryOp::Eq, a, b)
}

/// `!a`
pub fn not(a: Expr) -> Expr {
    expr(ExprKind::Unary(UnaryOp::Not, Box::new(a)))
}

/// `a && b && …`; 1 if there are no conditions.
pub fn all(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    let joined = conditions.into_iter().reduce(|a, b| binary(BinaryOp::And, a, b));
    joined.unwrap_or_else(|| expr(ExprKind::Bool(true)))
}

/// A locked instruction.
pub fn locked(rmw: Rmw, place: Place, operands: Vec<Expr>) -> Expr {
    expr(ExprKind::Locked(rmw, place, operands))
}

/// A statement.
pub fn stmt(kind: StmtKind) -> Stmt {
    Stmt::new(kind, Span::NONE)
}

/// A statement with a label.
pub fn labelled(label: &str, kind: StmtKind) -> Stmt {
    Stmt { labels: vec![name(label)], ..stmt(kind) }
}

/// `let r = e;`
pub fn declare(register: &str, ty: Type, value: Expr) -> Stmt {
    stmt(StmtKind::Let { name: name(register), ty, init: Some(value) })
}

/// `p = e;`
pub fn assign(place: Place, value: Expr) -> Stmt {
    stmt(StmtKind::Assign { place, value })
}

/// `shared x: T = v;`
pub fn shared(text: &str, len: Option<u32>, ty: Type, init: InitValue) -> Shared {
    Shared { name: name(text), len, ty, init: Init::Every(init), at: None, origin: Origin::NONE }
}

/// A process with one instance that starts initially.
pub fn process(text: &str, body: Block) -> Template {
    template(text, Vec::new(), Count::Fixed(1), Start::Initially, body)
}

/// A template.
pub fn template(text: &str, params: Vec<Param>, count: Count, start: Start, body: Block) -> Template {
    Template { name: name(text), params, count, start, body, origin: Origin::NONE }
}

/// A property.
pub fn property(kind: PropertyKind, condition: Expr) -> Property {
    Property { kind, condition, origin: Origin::NONE }
}

/// An instance.
pub fn instance(template: &str, select: Select) -> ProcessRef {
    ProcessRef { template: name(template), select, origin: Origin::NONE }
}

/// What a property observes.
pub fn observe(observation: Observation) -> Expr {
    expr(ExprKind::Observe(observation))
}
