//! The corpus: programs from the literature with expected verdicts, and families of programs of any size.
//!
//! The files are in `corpus/` of the repository, one program each. `corpus/expected.tsv` gives their expected
//! verdicts and how these are known ([`expectations()`]). Programs that exist in many sizes are generated
//! here from templates ([`families()`]). Some sizes are also kept as files: [`generated()`] lists them, and a
//! test checks that files and templates agree.
//!
//! The library contains the texts of all files ([`texts()`]). Nothing here runs or checks a program.

mod c;
pub mod data_structures;
mod expected;
mod families;
pub mod figures;
mod files;
pub mod litmus;
pub mod mutex;
mod rounds;
mod template;
mod texts;

pub use c::{CExpectation, Question, c_expectations, rust_expectations};
pub use expected::{Expectation, Safety, Verdicts, expectations, progress_expectations};
pub use families::{Family, families};
pub use files::generated;
pub use rounds::{RoundExpectation, Within, round_expectations};
pub use texts::{c_texts, text, texts};

/// Whether a program has the fences that TSO needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fences {
    /// As published for sequential consistency.
    None,
    /// With fences for TSO.
    Tso,
}
