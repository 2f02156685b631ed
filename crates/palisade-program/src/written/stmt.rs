//! Statements.

use super::{Expr, Name, Place, Type};
use palisade_base::{Origin, Span};

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement with its labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stmt {
    /// `l:` in front of it; the location just before the statement.
    pub labels: Vec<Name>,
    /// What it does.
    pub kind: StmtKind,
    /// The statement without its labels; for compound statements the heading only (`while e`), so that a step
    /// has one line.
    pub origin: Origin,
}

impl Stmt {
    /// A statement without labels.
    pub fn new(kind: StmtKind, span: Span) -> Stmt {
        Stmt { labels: Vec::new(), kind, origin: Origin(span) }
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        self.origin.0
    }
}

/// What a statement does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StmtKind {
    /// `skip;`
    Skip,
    /// `let r: T = e;` declares a register of the process or procedure. It is visible from here to the end of
    /// the enclosing body (blocks do not end its scope); no name is declared twice in one body. Without an
    /// initial value it is set to 0.
    Let {
        /// The register.
        name: Name,
        /// What it can hold.
        ty: Type,
        /// Its value when control passes here.
        init: Option<Expr>,
    },
    /// `p = e;` A store if `p` is shared, an assignment if it is a register. The right side is evaluated
    /// first, then the index or pointer of the left side.
    Assign {
        /// Where to.
        place: Place,
        /// What.
        value: Expr,
    },
    /// `e;` for its effects: a call, cas, exchange or fetch-and-op.
    Eval(Expr),
    /// `fence;` waits until the own buffer is empty.
    Fence,
    /// `sfence;` keeps the stores before it before the stores after it.
    StoreFence,
    /// `assume(e);` goes on only if `e` is true; a process that finds it false is stuck for ever.
    Assume(Expr),
    /// `await e;` evaluates `e` again and again until it is true.
    Await(Expr),
    /// `assert(e);` a false `e` is an error.
    Assert(Expr),
    /// `if c { … } else { … }`
    If {
        /// The condition.
        condition: Expr,
        /// Taken if true.
        then: Block,
        /// Taken if false.
        otherwise: Block,
    },
    /// `while c { … }`
    While {
        /// The condition.
        condition: Expr,
        /// Repeated while it is true.
        body: Block,
    },
    /// `loop { … }`
    Loop(Block),
    /// `break;` leaves the innermost loop.
    Break,
    /// `continue;` goes to the start of the innermost loop.
    Continue,
    /// `goto l;` to a label of the same body, not into an atomic block. Leaving an atomic block, in whatever
    /// way, closes it.
    Goto(Name),
    /// `choose { … } or { … }` takes one of the alternatives.
    Choose(Vec<Block>),
    /// `atomic { … }` drains the own buffer, then runs without interference; its stores reach memory at once.
    Atomic(Block),
    /// `{ … }`
    Block(Block),
    /// `return;` or `return e;` In a process: its end.
    Return(Option<Expr>),
    /// `spawn T(e, …);` starts an instance of a template declared `on spawn`, with an empty buffer. Not a
    /// fence.
    Spawn {
        /// Which template.
        template: Name,
        /// Its parameters.
        args: Vec<Expr>,
    },
}
