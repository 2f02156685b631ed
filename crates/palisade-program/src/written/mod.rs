//! The written form: a program as people write it, with names and nested statements.
//!
//! *Invariants* are few, since front ends build this from whatever was typed; [`crate::validate()`] reports
//! what is wrong. Equality ignores where things were written ([`Origin`]).

mod expr;
mod stmt;

pub use expr::{BinaryOp, Expr, ExprKind, Observation, Place, PlaceKind, ProcessRef, Rmw, Select, UnaryOp};
pub use stmt::{Block, Stmt, StmtKind};

use crate::Value;
use palisade_base::{Origin, Span};
use std::sync::Arc;

/// A name and where it was written.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Name {
    /// The name itself.
    pub text: Arc<str>,
    /// Where.
    pub origin: Origin,
}

impl Name {
    /// A name written at a place.
    pub fn new(text: impl Into<Arc<str>>, span: Span) -> Name {
        Name { text: text.into(), origin: Origin(span) }
    }

    /// A name that nobody wrote.
    pub fn generated(text: impl Into<Arc<str>>) -> Name {
        Name::new(text, Span::NONE)
    }

    /// Where it was written.
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
    /// Shared variables and arrays. Their cells are laid out in this order; the first cell has address 1, so
    /// that 0 is no cell's address and can serve as the null pointer.
    pub shared: Vec<Shared>,
    /// Variables of which every process has its own; its procedures see them too.
    pub privates: Vec<Private>,
    /// Procedures, callable from every process.
    pub procedures: Vec<Procedure>,
    /// Process templates.
    pub templates: Vec<Template>,
    /// What must not happen, besides failed assertions.
    pub properties: Vec<Property>,
}

/// A shared variable or array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shared {
    /// Its name.
    pub name: Name,
    /// `None` for a scalar, the number of cells for an array.
    pub len: Option<u32>,
    /// What each cell can hold.
    pub ty: Type,
    /// What the cells hold at the start.
    pub init: Init,
    /// The whole declaration.
    pub origin: Origin,
}

/// A variable of which every process has its own. It is like a register that the process and all procedures
/// it calls have in common, and starts at 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Private {
    /// Its name.
    pub name: Name,
    /// What it can hold; 0 among others.
    pub ty: Type,
    /// The whole declaration.
    pub origin: Origin,
}

/// Initial contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Init {
    /// The same for every cell. The value 0 if nothing was written.
    Every(InitValue),
    /// One per cell.
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

/// What a cell, register, parameter or result can hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Type {
    /// The values.
    pub domain: Domain,
    /// What happens on an attempt to put another value there.
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
    /// `int`, or nothing written: whatever values occur.
    Int,
}

impl Domain {
    /// Least and greatest value, if declared.
    pub fn bounds(self) -> Option<(Value, Value)> {
        match self {
            Domain::Bool => Some((0, 1)),
            Domain::Range { lo, hi } => Some((lo, hi)),
            Domain::Int => None,
        }
    }

    /// Whether the value belongs to the domain.
    pub fn contains(self, value: Value) -> bool {
        self.bounds().is_none_or(|(lo, hi)| lo <= value && value <= hi)
    }
}

/// What a value outside the domain does to the process that tries to put it there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outside {
    /// It is an error of the program, reported like a failed assertion.
    Fault,
    /// The process is blocked (`blocking` in `.pal`; the rule of `.rmm`).
    Block,
}

/// A parameter of a template or procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its values. For templates the domain is finite: there is one instance per value.
    pub ty: Type,
}

/// A process template: its instances run the same code, one instance (times `count`) per combination of
/// parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// Its name.
    pub name: Name,
    /// Parameters, constant during the run.
    pub params: Vec<Param>,
    /// How many instances per combination of parameter values.
    pub count: Count,
    /// When its instances start.
    pub start: Start,
    /// What they do.
    pub body: Block,
    /// The heading, without the body.
    pub origin: Origin,
}

/// How many instances.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Count {
    /// Exactly this many; 1 if nothing was written.
    Fixed(u32),
    /// `[*]`: any number.
    Any,
}

/// When the instances of a template start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Start {
    /// At the beginning of the run.
    Initially,
    /// `on spawn`: only when a `spawn` statement says so.
    OnSpawn,
}

/// A procedure. Parameters and locals are registers of the activation; procedures may call each other and
/// themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Procedure {
    /// Its name.
    pub name: Name,
    /// Parameters, assignable like registers.
    pub params: Vec<Param>,
    /// What it returns, if anything.
    pub result: Option<Type>,
    /// What it does.
    pub body: Block,
    /// The heading, without the body.
    pub origin: Origin,
}

/// A property: what must not happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// When it is judged.
    pub kind: PropertyKind,
    /// The condition, over observations, shared variables (by constant index) and constants.
    pub condition: Expr,
    /// The whole property.
    pub origin: Origin,
}

/// When a property is judged, and whether its condition is bad or good.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PropertyKind {
    /// `forbid C;` No reachable state outside atomic sections satisfies C. If C mentions memory, it is judged
    /// only in states where every store buffer is empty.
    Forbid,
    /// `final C;` Every reachable state with all processes at their end and all buffers empty satisfies C.
    Final,
}
