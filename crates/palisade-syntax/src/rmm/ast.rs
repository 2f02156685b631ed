//! The syntax tree of a file. Names are not resolved yet.

use super::token::Here;
use palisade_program::Value;

/// A word and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    /// The word. Registers are without their `$`.
    pub text: &'a str,
    /// Its place.
    pub here: Here,
}

/// A whole file.
#[derive(Debug, Default)]
pub(crate) struct File<'a> {
    /// The combinations of labels that must not be reached.
    pub forbidden: Vec<Combination<'a>>,
    /// Global variables.
    pub globals: Vec<Declaration<'a>>,
    /// The processes of the file, before copies are made.
    pub processes: Vec<Process<'a>>,
}

/// One label, or `*`, per process.
#[derive(Debug)]
pub(crate) struct Combination<'a> {
    /// The label (`None` for `*`) and its place.
    pub entries: Vec<(Option<&'a str>, Here)>,
    /// The whole combination.
    pub here: Here,
}

/// A variable or register.
#[derive(Debug)]
pub(crate) struct Declaration<'a> {
    /// Its name.
    pub name: Word<'a>,
    /// Its initial value; `None` for `*`.
    pub init: Option<Value>,
    /// The smallest and largest value; `None` for `Z`.
    pub domain: Option<(Value, Value)>,
    /// The whole declaration.
    pub here: Here,
}

/// A process of the file.
#[derive(Debug)]
pub(crate) struct Process<'a> {
    /// The number of copies.
    pub count: u32,
    /// Its own memory.
    pub data: Vec<Declaration<'a>>,
    /// Its registers.
    pub registers: Vec<Declaration<'a>>,
    /// All labels in the order of the text, including those of statements that could not be parsed.
    pub labels: Vec<Word<'a>>,
    /// Its statements.
    pub body: Vec<Statement<'a>>,
    /// The heading: `process(2)`.
    pub here: Here,
}

/// A statement with its label.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// The label before it, as an index into the labels of the process.
    pub label: Option<u32>,
    /// What it does.
    pub kind: StatementKind<'a>,
    /// The span of the statement without its label. For a compound statement, that of its heading.
    pub here: Here,
}

/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// `read`, `write`
    Plain,
    /// `locked write`
    Locked,
    /// `slocked write`
    StoreLocked,
    /// `syncrd`, `syncwr`
    Synchronised,
}

/// What a statement does. Large parts are boxed, because files of many megabytes consist mostly of small
/// statements.
#[derive(Debug)]
pub(crate) enum StatementKind<'a> {
    /// `nop`
    Nop,
    /// `read: ml = e`
    Await(Access, Box<(Cell<'a>, Expr<'a>)>),
    /// `read: $r := ml`
    Load(Access, Box<(Word<'a>, Cell<'a>)>),
    /// `write: ml := e`
    Write(Access, Box<(Cell<'a>, Expr<'a>)>),
    /// `cas(ml, e, e)`
    Cas(Box<(Cell<'a>, Expr<'a>, Expr<'a>)>),
    /// `fence`
    Fence,
    /// `ssfence`
    StoreFence,
    /// `llfence`
    LoadFence,
    /// `$r := e`
    Assign(Box<(Word<'a>, Expr<'a>)>),
    /// `assume: b`
    Assume(Box<Expr<'a>>),
    /// `if b then s else s`
    If(Box<(Expr<'a>, Vec<Statement<'a>>, Vec<Statement<'a>>)>),
    /// `while b do s`
    While(Box<(Expr<'a>, Vec<Statement<'a>>)>),
    /// `goto L`
    Goto(Box<Word<'a>>),
    /// `either{ss or ss}`
    Either(Vec<Vec<Statement<'a>>>),
    /// `locked{ss or ss}`
    Locked(Vec<Vec<Statement<'a>>>),
    /// `{ss}`
    Block(Vec<Statement<'a>>),
}

/// A memory location.
#[derive(Debug)]
pub(crate) enum Cell<'a> {
    /// `x`
    Global(Word<'a>),
    /// `x[my]`, with the place of the whole expression.
    Own(Word<'a>, Here),
    /// `x[N]`
    Other(Word<'a>, Value, Here),
    /// `[e]`
    Pointer(Expr<'a>, Here),
}

/// An arithmetic or Boolean expression over registers.
#[derive(Debug)]
pub(crate) struct Expr<'a> {
    /// What it computes.
    pub kind: ExprKind<'a>,
    /// Its place.
    pub here: Here,
    /// The height of its tree.
    pub height: u32,
}

/// What an expression computes.
#[derive(Debug)]
pub(crate) enum ExprKind<'a> {
    /// `$r`, without the `$`
    Register(&'a str),
    /// A number; never negative.
    Int(Value),
    /// `true` or `false`
    Bool(bool),
    /// `-e`
    Neg(Box<Expr<'a>>),
    /// `not b`
    Not(Box<Expr<'a>>),
    /// Any operator with two operands.
    Binary(Op, Box<(Expr<'a>, Expr<'a>)>),
}

/// Operators with two operands.
pub(crate) use palisade_program::written::BinaryOp as Op;
