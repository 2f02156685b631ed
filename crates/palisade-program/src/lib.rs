//! The one program representation of Palisade.
//!
//! A program has two forms:
//!
//! - The **written form** ([`written::Program`]) has declarations, statements and expressions with names, as
//!   people write them. Every input language is parsed into it. [`print`](mod@print) turns it into `.pal`,
//!   and program-to-program translations work on it.
//! - The **running form** ([`running::System`]) has one control-flow graph per process and procedure, with
//!   typed ids and one instruction per edge. The semantics and the engines work on it.
//!
//! [`lower()`] turns the first into the second, after [`validate()`] has found no errors. It alone defines
//! the order in which the loads of an expression happen.
//!
//! What is absent: nothing here executes a step or knows a memory model.

pub mod describe;
pub mod dot;
pub mod lower;
pub mod print;
pub mod running;
pub mod validate;
pub mod written;

pub use lower::{
    Instantiation, Outline, Point, PointKind, Waits, element_name, lower, lower_retrying, lower_with,
    mentions_more_than, outlines,
};
pub use validate::validate;

/// The values of variables and registers. As in C, 0 is false and anything else is true. Comparisons and
/// logical operators return 0 or 1.
pub type Value = i64;
