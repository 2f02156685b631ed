//! Properties over states of the running form.

use super::{BinaryOp, CellId, Location, RegId, RoleId, ThreadId, UnaryOp};
use crate::Value;
pub use crate::written::PropertyKind;
use palisade_base::Span;

/// A bad condition: a state that satisfies it, where it is judged, breaks the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// `Forbid` is judged outside atomic sections, and with empty buffers if it mentions memory; `Final` with
    /// all threads at their end and all buffers empty. Lowering has already negated the written condition of
    /// a `Final`: **true is bad for both**.
    pub kind: PropertyKind,
    /// When it is bad. A condition whose evaluation faults (division by zero) counts as false.
    pub bad: Condition,
    /// Whether `bad` reads memory.
    pub reads_memory: bool,
    /// Where it was written.
    pub span: Span,
}

/// An expression over what can be seen of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// A constant.
    Const(Value),
    /// What a cell holds in memory.
    Cell(CellId),
    /// What a register of an initial instance's process body holds (its bottom frame).
    Register(ThreadId, RegId),
    /// 1 if an initial instance is at a location of its process body, with no procedure entered.
    At(ThreadId, Location),
    /// How many threads with one of these roles are at the location given for it, with no procedure entered.
    Count(Vec<(RoleId, Location)>),
    /// One operand.
    Unary(UnaryOp, Box<Condition>),
    /// Two operands; `&&` and `||` evaluate the second only if needed.
    Binary(BinaryOp, Box<Condition>, Box<Condition>),
}
