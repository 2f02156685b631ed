//! The basis of all other crates: typed ids, source positions, diagnostics as values, and limits on work.
//!
//! Nothing here knows what a program is, and nothing here prints.

mod diagnostic;
mod ids;
mod intern;
pub mod limits;
mod source;
mod suggest;

pub use diagnostic::{Diagnostic, Label, Severity};
pub use ids::{Id, IdVec};
pub use intern::Interner;
pub use source::{Imported, Origin, Position, Source, Span};
pub use suggest::nearest;
