//! Expressions. Operands are evaluated left to right; each mention of a shared variable is one load.

use super::Name;
use crate::Value;
use palisade_base::{Origin, Span};

/// An expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Where it appears in the source.
    pub origin: Origin,
}

impl Expr {
    /// An expression with its place in the source.
    pub fn new(kind: ExprKind, span: Span) -> Expr {
        Expr { kind, origin: Origin(span) }
    }

    /// A generated literal, which has no place in the source.
    pub fn int(value: Value) -> Expr {
        Expr::new(ExprKind::Int(value), Span::NONE)
    }

    /// Where it appears in the source.
    pub fn span(&self) -> Span {
        self.origin.0
    }
}

/// What an expression computes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExprKind {
    /// A literal. It is never negative (`-1` is a negated literal), except for the smallest integer.
    Int(Value),
    /// `true` or `false`: 1 or 0.
    Bool(bool),
    /// The value of a register or parameter, or a load of a shared cell.
    Read(Place),
    /// `&p`: the address of a shared cell. No load, except those in the index.
    AddressOf(Place),
    /// An operator with one operand.
    Unary(UnaryOp, Box<Expr>),
    /// An operator with two operands; `&&` and `||` evaluate the second only if needed.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A locked instruction on a shared cell. The operands are evaluated first, then the address, then the
    /// access happens.
    Locked(Rmw, Place, Vec<Expr>),
    /// `f(e, …)`
    Call(Name, Vec<Expr>),
    /// `any(lo..hi)`: any value of the range, both ends included.
    Any {
        /// The smallest value.
        lo: Value,
        /// The largest value.
        hi: Value,
    },
    /// An observation of a process. Only in properties.
    Observe(Observation),
}

/// Something that can be read or assigned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The kind of place.
    pub kind: PlaceKind,
    /// Whether the access is plain: no other thread may access the cell at the same time, unless both only load.
    pub plain: bool,
    /// Where it appears in the source.
    pub origin: Origin,
}

impl Place {
    /// A place expression with its place in the source.
    pub fn new(kind: PlaceKind, span: Span) -> Place {
        Place { kind, plain: false, origin: Origin(span) }
    }

    /// The same place, accessed plainly.
    pub fn plainly(self) -> Place {
        Place { plain: true, ..self }
    }

    /// Where it appears in the source.
    pub fn span(&self) -> Span {
        self.origin.0
    }
}

/// The kinds of places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    /// A register, parameter or shared scalar, by name.
    Named(Name),
    /// `a[e]`: a cell of a shared array. An index out of bounds is a run-time error.
    Element(Name, Box<Expr>),
    /// `*e`: the cell with that address. A value that is not the address of a cell is a run-time error.
    Deref(Box<Expr>),
}

/// Locked read-modify-write instructions. Each first drains the buffer and then acts on memory in one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rmw {
    /// `cas(p, expected, new)`: 1 if it stored `new`, else 0.
    Cas,
    /// `xchg(p, new)`: the old value.
    Exchange,
    /// `fetch_add(p, d)`: the old value.
    FetchAdd,
    /// `fetch_sub(p, d)`: the old value.
    FetchSub,
    /// `fetch_and(p, m)`: the old value.
    FetchAnd,
    /// `fetch_or(p, m)`: the old value.
    FetchOr,
    /// `fetch_xor(p, m)`: the old value.
    FetchXor,
}

impl Rmw {
    /// All locked instructions with their names in `.pal`.
    pub const ALL: [(Rmw, &'static str); 7] = [
        (Rmw::Cas, "cas"),
        (Rmw::Exchange, "xchg"),
        (Rmw::FetchAdd, "fetch_add"),
        (Rmw::FetchSub, "fetch_sub"),
        (Rmw::FetchAnd, "fetch_and"),
        (Rmw::FetchOr, "fetch_or"),
        (Rmw::FetchXor, "fetch_xor"),
    ];

    /// Its name in `.pal`.
    pub fn name(self) -> &'static str {
        Rmw::ALL.iter().find(|(rmw, _)| *rmw == self).expect("ALL holds every locked instruction").1
    }

    /// The number of operands, not counting the place.
    pub fn operands(self) -> usize {
        if self == Rmw::Cas { 2 } else { 1 }
    }
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`: 1 for 0, else 0.
    Not,
    /// `~`: all bits flipped.
    BitNot,
}

/// Operators with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`, truncated as in C and Rust
    Div,
    /// `%`, with the sign of the first operand, as in C and Rust
    Rem,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `<<`
    Shl,
    /// `>>`, arithmetic
    Shr,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `+%`: the lower 64 bits of the sum. Like the operators below, it takes its operands as 64-bit words.
    WordAdd,
    /// `-%`: the lower 64 bits of the difference
    WordSub,
    /// `*%`: the lower 64 bits of the product
    WordMul,
    /// `/%`: the quotient of unsigned words
    WordDiv,
    /// `%%`: the remainder of unsigned words
    WordRem,
    /// `<<%`: a shift that drops the bits that leave the word
    WordShl,
    /// `>>%`: a shift that fills with zeros
    WordShr,
    /// `<%`: compares unsigned words
    WordLt,
    /// `<=%`: compares unsigned words
    WordLe,
}

impl BinaryOp {
    /// The operators on 64-bit words.
    pub const WORD: [BinaryOp; 9] = [
        BinaryOp::WordAdd,
        BinaryOp::WordSub,
        BinaryOp::WordMul,
        BinaryOp::WordDiv,
        BinaryOp::WordRem,
        BinaryOp::WordShl,
        BinaryOp::WordShr,
        BinaryOp::WordLt,
        BinaryOp::WordLe,
    ];

    /// Its symbol in `.pal`. Except for the operators on words, it is the same in C and Promela.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
            BinaryOp::WordAdd => "+%",
            BinaryOp::WordSub => "-%",
            BinaryOp::WordMul => "*%",
            BinaryOp::WordDiv => "/%",
            BinaryOp::WordRem => "%%",
            BinaryOp::WordShl => "<<%",
            BinaryOp::WordShr => ">>%",
            BinaryOp::WordLt => "<%",
            BinaryOp::WordLe => "<=%",
        }
    }
}

/// What a property can observe of processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Observation {
    /// `P(0)@cs`: 1 if the process is at that label, about to execute the statement after it; else 0. Every
    /// body has the label `end` at its end.
    At {
        /// The process.
        process: ProcessRef,
        /// The label.
        label: Name,
    },
    /// `count(P@cs)`: how many instances of the template are at the label, spawned ones included.
    Count {
        /// The template.
        template: Name,
        /// The label.
        label: Name,
    },
    /// `P(0).r`: the value of a register of the process body.
    Register {
        /// The process.
        process: ProcessRef,
        /// The register.
        register: Name,
    },
}

/// One instance of a template that starts initially.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessRef {
    /// The template.
    pub template: Name,
    /// The instance.
    pub select: Select,
    /// Where it appears in the source.
    pub origin: Origin,
}

/// How an instance is selected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Select {
    /// `P`: the only instance.
    Only,
    /// `P[2]`: by number, from 0. Instances are ordered by parameter values, then by copy.
    Index(u32),
    /// `P(0, 1)`: the one with these parameter values.
    Args(Vec<Value>),
}
