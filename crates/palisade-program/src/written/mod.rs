//! The written form: a program as people write it, with names and nested statements.
//!
//! There are few *invariants*, because front ends build this form from arbitrary input. [`crate::validate()`]
//! reports what is wrong. Equality ignores source positions ([`Origin`]).

mod check;
mod expr;
mod identities;
mod plain;
mod sorts;
mod stmt;
mod walk;
mod words;

pub use check::Check;
pub use expr::{BinaryOp, Expr, ExprKind, Observation, Place, PlaceKind, ProcessRef, Rmw, Select, UnaryOp};
pub use identities::{Identities, OthersLoop, WRITTEN_NUMBER, identity_enum, others_loop};
pub use sorts::NotNames;
pub use stmt::{Block, Stmt, StmtKind};
pub use walk::{find_in_block, find_in_expr};

use crate::Value;
use palisade_base::{Origin, Span};
use std::sync::Arc;

/// The label that every process has at its end. No other label has this name.
pub const END_LABEL: &str = "end";

/// A name and where it appears in the source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Name {
    /// The name itself.
    pub text: Arc<str>,
    /// Where it appears in the source.
    pub origin: Origin,
}

impl Name {
    /// A name with its place in the source.
    pub fn new(text: impl Into<Arc<str>>, span: Span) -> Name {
        Name { text: text.into(), origin: Origin(span) }
    }

    /// A generated name, which has no place in the source.
    pub fn generated(text: impl Into<Arc<str>>) -> Name {
        Name::new(text, Span::NONE)
    }

    /// Where it appears in the source.
    pub fn span(&self) -> Span {
        self.origin.0
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A whole program. Constants are already replaced by their values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Enumerations. [`Domain::Enum`] refers to them by their index.
    pub enums: Vec<Enum>,
    /// Shared variables and arrays. Their cells are laid out in this order. The first cell has address 1, so
    /// that 0 is never the address of a cell and can serve as the null pointer.
    pub shared: Vec<Shared>,
    /// Private variables. Every process has its own copy, which its procedures can access too.
    pub privates: Vec<Private>,
    /// Procedures, callable from every process.
    pub procedures: Vec<Procedure>,
    /// Process templates.
    pub templates: Vec<Template>,
    /// The properties that must hold, in addition to assertions.
    pub properties: Vec<Property>,
    /// What must stay possible.
    pub progress: Vec<Progress>,
    /// The processes with identities, if there are any.
    pub identities: Option<Identities>,
}

/// An enumeration: names for the numbers from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enum {
    /// Its name, which is a domain.
    pub name: Name,
    /// The names of 0, 1, …. There is at least one.
    pub values: Vec<Name>,
    /// The whole declaration.
    pub origin: Origin,
}

/// A shared variable or array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shared {
    /// Its name.
    pub name: Name,
    /// `None` for a scalar, the number of cells for an array.
    pub len: Option<u32>,
    /// The type of each cell.
    pub ty: Type,
    /// The initial values.
    pub init: Init,
    /// The addresses of its cells. `None`: each cell has the address that follows from its position among all
    /// cells.
    pub at: Option<Placement>,
    /// The whole declaration.
    pub origin: Origin,
}

/// The addresses of the cells of a variable: `at 4096 step 4`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placement {
    /// The address of the first cell.
    pub address: Value,
    /// How far apart the addresses of neighbouring cells are.
    pub step: Value,
}

/// A private variable: every process has its own copy. It is like a register that the process shares with all
/// procedures it calls. It starts at 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Private {
    /// Its name.
    pub name: Name,
    /// Its type. The domain must contain 0.
    pub ty: Type,
    /// The whole declaration.
    pub origin: Origin,
}

/// Initial values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Init {
    /// The same value for every cell. It is 0 if none is written.
    Every(InitValue),
    /// One value per cell.
    Each(Vec<InitValue>),
}

/// The initial value of one cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InitValue {
    /// A constant expression: literals, operators and addresses (`&x`).
    Const(Expr),
    /// `*`: any value of the domain.
    Any,
}

/// The type of a cell, register, parameter or result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Type {
    /// The permitted values.
    pub domain: Domain,
    /// What happens when another value is assigned.
    pub outside: Outside,
}

impl Type {
    /// Any integer: the domain was not declared and is inferred.
    pub const INT: Type = Type { domain: Domain::Int, outside: Outside::Fault };
    /// 0 and 1.
    pub const BOOL: Type = Type { domain: Domain::Bool, outside: Outside::Fault };

    /// A range of integers, both ends included.
    pub fn range(lo: Value, hi: Value) -> Type {
        Type { domain: Domain::Range { lo, hi }, outside: Outside::Fault }
    }

    /// A range in which values wrap around.
    pub fn wrapping(lo: Value, hi: Value) -> Type {
        Type { domain: Domain::Range { lo, hi }, outside: Outside::Wrap }
    }

    /// The value that a number becomes if this type [wraps](Outside::Wrap); `None` if it does not.
    pub fn wrapped(self, number: i128) -> Option<Value> {
        let (Outside::Wrap, Some((lo, hi))) = (self.outside, self.domain.bounds()) else { return None };
        let (lo, hi) = (i128::from(lo), i128::from(hi));
        let offset = (number - lo).rem_euclid(hi - lo + 1);
        Some(Value::try_from(lo + offset).expect("the result is between lo and hi"))
    }
}

/// A set of values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Domain {
    /// `bool`: 0 and 1, written `false` and `true`.
    Bool,
    /// `lo..hi`: both ends included.
    Range {
        /// Least value.
        lo: Value,
        /// Greatest value.
        hi: Value,
    },
    /// `State`: the values of an enumeration.
    Enum {
        /// Its index in [`Program::enums`].
        which: u32,
        /// The number of its last value.
        last: Value,
    },
    /// `int`, or no domain written: whatever values occur.
    Int,
}

impl Domain {
    /// The smallest and largest value, if declared.
    pub fn bounds(self) -> Option<(Value, Value)> {
        match self {
            Domain::Bool => Some((0, 1)),
            Domain::Range { lo, hi } => Some((lo, hi)),
            Domain::Enum { last, .. } => Some((0, last)),
            Domain::Int => None,
        }
    }

    /// Whether the value belongs to the domain.
    pub fn contains(self, value: Value) -> bool {
        self.bounds().is_none_or(|(lo, hi)| lo <= value && value <= hi)
    }
}

/// What happens to a process that assigns a value outside the domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outside {
    /// A run-time error, reported like a failed assertion.
    Fault,
    /// The process is blocked (`blocking` in `.pal`; the rule of `.rmm`).
    Block,
    /// The value wraps around (`wrap` in `.pal`; the rule of machine words): it becomes the value of the
    /// domain from which it differs by a multiple of the domain's size. Only ranges can wrap.
    Wrap,
}

/// A parameter of a template or procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type. For templates the domain is finite: there is one instance per value.
    pub ty: Type,
}

/// A process template. Its instances run the same code. There are `count` instances per combination of
/// parameter values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// Its name.
    pub name: Name,
    /// The parameters, which are constant during the run.
    pub params: Vec<Param>,
    /// The number of instances per combination of parameter values.
    pub count: Count,
    /// When its instances start.
    pub start: Start,
    /// The body that they run.
    pub body: Block,
    /// The heading, without the body.
    pub origin: Origin,
}

/// The number of instances.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Count {
    /// Exactly this many; 1 if no number is written.
    Fixed(u32),
    /// `[*]`: any number.
    Any,
}

/// When the instances of a template start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Start {
    /// At the beginning of the run.
    Initially,
    /// `on spawn`: when a `spawn` statement starts them.
    OnSpawn,
}

/// A procedure. Parameters and locals are registers of the activation. Procedures can call each other and
/// themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Procedure {
    /// Its name.
    pub name: Name,
    /// The parameters, which can be assigned like registers.
    pub params: Vec<Param>,
    /// The type of its result, if it returns one.
    pub result: Option<Type>,
    /// The body.
    pub body: Block,
    /// The heading, without the body.
    pub origin: Origin,
}

/// A property of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// When it is checked.
    pub kind: PropertyKind,
    /// The condition, over observations, shared variables (by constant index) and constants.
    pub condition: Expr,
    /// The whole property.
    pub origin: Origin,
}

/// Something that must stay possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// What must stay possible.
    pub kind: ProgressKind,
    /// The whole property.
    pub origin: Origin,
}

/// What must stay possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProgressKind {
    /// `deadlock-free;` No reachable state is stuck: some process has not ended, and no process can ever move
    /// again.
    DeadlockFree,
    /// `live end;` From every reachable state, all processes can still end.
    LiveEnd,
    /// `live C;` From every reachable state, a state that satisfies C can still be reached. C is checked
    /// where the condition of a `forbid` is.
    Live(Expr),
    /// `terminates;` With a fair scheduler, every run ends: all processes end and all stores reach memory.
    Terminates,
    /// `leaves P@wait;` With a fair scheduler, the process is never inside the labelled statement forever.
    Leaves {
        /// The process.
        process: ProcessRef,
        /// The label of the statement.
        label: Name,
    },
}

impl ProgressKind {
    /// Whether it is about fair runs, not about what stays reachable.
    pub fn is_fair(&self) -> bool {
        match self {
            ProgressKind::Terminates | ProgressKind::Leaves { .. } => true,
            ProgressKind::DeadlockFree | ProgressKind::LiveEnd | ProgressKind::Live(_) => false,
        }
    }

    /// Whether it is a goal that must stay reachable.
    pub fn is_goal(&self) -> bool {
        matches!(self, ProgressKind::LiveEnd | ProgressKind::Live(_))
    }

    /// The condition that it is about, if it has one.
    pub fn condition(&self) -> Option<&Expr> {
        match self {
            ProgressKind::Live(condition) => Some(condition),
            ProgressKind::DeadlockFree
            | ProgressKind::LiveEnd
            | ProgressKind::Terminates
            | ProgressKind::Leaves { .. } => None,
        }
    }
}

/// When a property is checked, and whether its condition is bad or good.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PropertyKind {
    /// `forbid C;` No reachable state outside atomic sections satisfies C. If C mentions memory, it is
    /// checked only in states where every store buffer is empty.
    Forbid,
    /// `final C;` Every reachable state in which all processes have ended and all buffers are empty satisfies
    /// C.
    Final,
}
