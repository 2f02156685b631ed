//! Properties over states of the running form.

use super::{BinaryOp, CellId, EdgeId, Location, RegId, RoleId, ThreadId, UnaryOp};
use crate::Value;
pub use crate::written::PropertyKind;
use palisade_base::Span;

/// A bad condition. The program is wrong if a state in which the property is checked satisfies it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// When the property is checked. `Forbid` is checked outside atomic sections, and only with empty buffers
    /// if it mentions memory. `Final` is checked when all threads have ended and all buffers are empty.
    /// Lowering has already negated the written condition of a `Final`: **true is bad for both**.
    pub kind: PropertyKind,
    /// The bad condition. If its evaluation faults (division by zero), it counts as false.
    pub bad: Condition,
    /// Whether `bad` reads memory.
    pub reads_memory: bool,
    /// Where the property appears in the source.
    pub span: Span,
}

/// What must stay reachable from every reachable state (`live`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Goal {
    /// When a state satisfies it.
    pub kind: GoalKind,
    /// Where the property appears in the source.
    pub span: Span,
}

/// When a state satisfies a goal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GoalKind {
    /// All threads have ended and all buffers are empty.
    End,
    /// The condition is true. It is checked outside atomic sections, and only with empty buffers if it
    /// mentions memory. If its evaluation faults, it counts as false.
    Condition {
        /// The condition.
        condition: Condition,
        /// Whether it reads memory.
        reads_memory: bool,
    },
}

/// What holds in every fair run (`terminates` and `leaves`). `palisade-memory` defines fair runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FairProperty {
    /// What holds.
    pub kind: FairKind,
    /// Where the property appears in the source.
    pub span: Span,
}

/// What holds in every fair run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FairKind {
    /// The run ends.
    Terminates,
    /// The thread, an initial instance, is never inside a statement forever.
    Leaves {
        /// The thread.
        thread: ThreadId,
        /// The statement.
        stay: Stay,
    },
}

/// The inside of a labelled statement of a process body.
///
/// A thread is inside while its process body (its bottom frame) is at one of the locations. A step of the
/// process body that is not one of the edges leaves the statement, even if it comes back at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stay {
    /// The label.
    pub label: String,
    /// The locations inside, in increasing order. The location of the label is one of them.
    pub locations: Vec<Location>,
    /// The edges that stay inside, in increasing order.
    pub edges: Vec<EdgeId>,
}

/// An expression over the observable parts of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// A constant.
    Const(Value),
    /// The value of a cell in memory.
    Cell(CellId),
    /// The value of a register in the process body of an initial instance (its bottom frame).
    Register(ThreadId, RegId),
    /// 1 if an initial instance is at a location of its process body, with no procedure entered; else 0.
    At(ThreadId, Location),
    /// How many threads with one of these roles are at the role's location, with no procedure entered.
    Count(Vec<(RoleId, Location)>),
    /// One operand.
    Unary(UnaryOp, Box<Condition>),
    /// Two operands; `&&` and `||` evaluate the second only if needed.
    Binary(BinaryOp, Box<Condition>, Box<Condition>),
}
