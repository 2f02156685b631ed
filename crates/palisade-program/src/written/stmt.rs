//! Statements.

use super::{Check, Expr, Name, Place, Type};
use palisade_base::{Origin, Span};

/// A sequence of statements.
pub type Block = Vec<Stmt>;

/// A statement with its labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stmt {
    /// The labels before the statement. They mark the location just before it.
    pub labels: Vec<Name>,
    /// What it does.
    pub kind: StmtKind,
    /// The span of the statement without its labels. For compound statements it covers only the heading
    /// (`while e`), so that a step has one line.
    pub origin: Origin,
}

impl Stmt {
    /// A statement without labels.
    pub fn new(kind: StmtKind, span: Span) -> Stmt {
        Stmt { labels: Vec::new(), kind, origin: Origin(span) }
    }

    /// Where it appears in the source.
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
    /// the enclosing body; blocks do not end its scope. No name is declared twice in one body. Without an
    /// initial value it is set to 0.
    Let {
        /// The register.
        name: Name,
        /// Its type.
        ty: Type,
        /// The value assigned when this statement executes.
        init: Option<Expr>,
    },
    /// `p = e;` A store if `p` is shared, an assignment if it is a register. The right side is evaluated
    /// first, then the index or pointer of the left side.
    Assign {
        /// The left side.
        place: Place,
        /// The right side.
        value: Expr,
    },
    /// `e;` evaluated for its effects: a call, cas, exchange or fetch-and-op.
    Eval(Expr),
    /// `fence;` waits until the thread's own buffer is empty.
    Fence,
    /// `sfence;` keeps the stores before it ahead of the stores after it.
    StoreFence,
    /// `assume(e);` continues only if `e` is true. A process for which it is false is stuck forever.
    Assume(Expr),
    /// `await e;` evaluates `e` repeatedly until it is true.
    Await(Expr),
    /// `assert(e);` or `assert(e) else CHECK;` is a run-time error if `e` is false.
    Assert(Expr, Check),
    /// `if c { … } else { … }`
    If {
        /// The condition.
        condition: Expr,
        /// Executed if true.
        then: Block,
        /// Executed if false.
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
    /// `goto l;` jumps to a label of the same body, but not into an atomic block. Leaving an atomic block in
    /// any way closes it.
    Goto(Name),
    /// `choose { … } or { … }` executes one of the alternatives.
    Choose(Vec<Block>),
    /// `atomic { … }` drains the thread's own buffer, then runs without interference. Its stores reach memory
    /// at once.
    Atomic(Block),
    /// `{ … }`
    Block(Block),
    /// `return;` or `return e;` In a process it ends the process.
    Return(Option<Expr>),
    /// `spawn T(e, …);` starts an instance of a template declared `on spawn`, with an empty buffer. It is not
    /// a fence.
    Spawn {
        /// The template.
        template: Name,
        /// The parameter values.
        args: Vec<Expr>,
    },
}

impl StmtKind {
    /// The blocks directly inside the statement.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            StmtKind::If { then, otherwise, .. } => vec![then, otherwise],
            StmtKind::While { body, .. } => vec![body],
            StmtKind::Loop(body) | StmtKind::Atomic(body) | StmtKind::Block(body) => vec![body],
            StmtKind::Choose(alternatives) => alternatives.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The blocks directly inside the statement, to be changed. The list of statements without blocks is
    /// complete, so that a new kind of statement is not forgotten here or in [`StmtKind::blocks`].
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            StmtKind::If { then, otherwise, .. } => vec![then, otherwise],
            StmtKind::While { body, .. } => vec![body],
            StmtKind::Loop(body) | StmtKind::Atomic(body) | StmtKind::Block(body) => vec![body],
            StmtKind::Choose(alternatives) => alternatives.iter_mut().collect(),
            StmtKind::Skip
            | StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Eval(_)
            | StmtKind::Fence
            | StmtKind::StoreFence
            | StmtKind::Assume(_)
            | StmtKind::Await(_)
            | StmtKind::Assert(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Goto(_)
            | StmtKind::Return(_)
            | StmtKind::Spawn { .. } => Vec::new(),
        }
    }
}
