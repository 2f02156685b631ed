//! Palisade as a library: read a program, check it, explain the answer.
//!
//! ```
//! use palisade::{CheckOptions, Language, Model, Source, Verdict};
//!
//! let source = Source::new("sb.pal", "
//!     shared x, y: 0..1;
//!     process P { x = 1; let r = y; }
//!     process Q { y = 1; let r = x; }
//!     final P.r == 1 || Q.r == 1;
//! ");
//! let input = palisade::read(source, Language::Pal, None).expect("the program is well formed");
//!
//! // Sequentially consistent machines are fine; machines with store buffers are not.
//! let check = |model| palisade::check_simply(&input.program, CheckOptions { model, ..CheckOptions::default() });
//! assert_eq!(check(Model::Sc).outcome.verdict, Verdict::Holds);
//!
//! let answer = check(Model::Tso);
//! let evidence = answer.evidence(&input.source).expect("an unsafe answer has a run");
//! assert!(palisade::report::explain(&evidence).starts_with("at the end, P.r = 0 and Q.r = 0"));
//! ```
//!
//! - [`read()`] turns text into a program, or reports everything that is wrong with it.
//! - [`check()`] runs the engines that suit the program side by side. If an engine reports a run that breaks
//!   the program, the run is replayed on the trusted machine before it is believed.
//! - [`report`] puts answers into words.
//!
//! What is absent: nothing here reads files or prints, and no engine is named outside
//! [`engines`](mod@engines).

mod answer;
mod ask;
pub mod c;
mod certify;
mod check;
mod coverage;
mod domains;
pub mod engines;
mod error;
mod fences;
mod language;
mod modulo;
mod numbers;
mod outcome_list;
mod outcomes;
mod portfolio;
mod progress;
mod property;
mod prove;
mod question;
mod races;
mod read;
mod robust;
mod scout;
mod shortest;
mod translate;
mod values;
mod without_buffers;

pub use answer::{Answer, Proved};
pub use certify::{certify, certify_input};
pub use check::{CheckOptions, EngineChoice, check, check_simply};
pub use coverage::{CoverageWanted, Reach};
pub use engines::engines;
pub use error::{AskError, Bug};
pub use fences::{
    Changes, Compile, Confirm, Costs, FencesAnswer, FencesError, FencesHelp, FencesOptions, Goal, Known,
    Minimised, Spot, WriteError, fences, fences_confirmed, minimise,
};
pub use language::InputLanguage;
pub use outcome_list::OutcomeList;
pub use outcomes::{Listed, Listing, OutcomeRun, Outcomes, TestQuestion};
pub use progress::Deadlocks;
pub use property::no_property;
pub use question::{Ask, Confirmed, Unconfirmed};
pub use read::{Input, IntRange, Refused, read, threads_of_each};
pub use robust::{RobustOptions, robust, triangular};
pub use translate::{translate_age, translate_rounds};
pub use values::{CellValues, possible_values};

pub use palisade_base::{Diagnostic, Severity, Source, Span};
pub use palisade_engine::{
    Bound, Certified, DeadlockFreedom, GoalsReachable, Limits, Note, Options, Outcome, Progress, Question,
    Reason, Reduction, Robustness, Safety, Silent, Stats, Threads, TriangularRaces, Verdict,
};
pub use palisade_fences::{Per, Placement, Which};
pub use palisade_memory::{Interlocked, Model};
pub use palisade_syntax::{Asks, Language};

pub use palisade_base as base;
pub use palisade_certificate as certificate;
pub use palisade_cluster as cluster;
pub use palisade_engine as engine;
pub use palisade_export as export;
pub use palisade_harness as harness;
pub use palisade_llvm as llvm;
pub use palisade_memory as memory;
pub use palisade_monitor as monitor;
pub use palisade_program as program;
pub use palisade_report as report;
pub use palisade_syntax as syntax;
pub use palisade_trace as trace;
pub use palisade_trace::Evidence;
pub use palisade_x86 as x86;
