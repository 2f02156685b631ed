//! The corpus: programs of the literature with expected verdicts, and families of programs of any size.
//!
//! Files are in `corpus/` of the repository, one program each; `corpus/expected.tsv` says what is expected of them and why
//! ([`expectations()`]). Programs that exist in many sizes are generated here by template ([`families()`]); the sizes that are also kept as files
//! are listed in [`generated()`], and a test sees to it that the two agree.
//!
//! The texts of all files are in the library ([`texts()`]). What is absent: nothing here runs or checks a program.

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

pub use expected::{Expectation, Safety, Verdicts, expectations};
pub use families::{Family, families};
pub use files::generated;
pub use rounds::{RoundExpectation, Within, round_expectations};
pub use texts::{text, texts};

/// Whether a program has the fences that TSO needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fences {
    /// As the algorithm was published for sequential consistency.
    None,
    /// With fences for TSO.
    Tso,
}
