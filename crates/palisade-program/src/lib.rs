//! The one program representation of Palisade.
//!
//! A program has two forms:
//!
//! - the **written form** ([`written::Program`]): declarations, statements and expressions with names, as
//!   people write them. Every input language is read into it, [`print`](mod@print) turns it into `.pal`, and
//!   program-to-program translations work on it;
//! - the **running form** ([`running::System`]): one control-flow graph per process and procedure, with typed
//!   ids and one instruction per edge. The semantics and the engines work on it.
//!
//! [`lower()`] leads from the first to the second after [`validate()`] has found nothing wrong. It is the
//! only place that says in which order the loads of an expression happen.
//!
//! What is absent: nothing here takes a step or knows a memory model.

pub mod describe;
pub mod dot;
pub mod lower;
pub mod print;
pub mod running;
pub mod validate;
pub mod written;

pub use lower::{Instantiation, lower};
pub use validate::validate;

/// The values variables and registers hold. Truth is C's: 0 is false, anything else is true; comparisons and
/// logic give 0 or 1.
pub type Value = i64;
