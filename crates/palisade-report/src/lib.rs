//! Renderings of verdicts, witnesses and diagnostics, one file each: text, tables, JSON.
//!
//! Everything that can be reported implements [`Report`]: a verdict, a headline, the text below it, and JSON.
//! An answer to a question about a program is a [`Finding`]. What differs between questions is in
//! [`Explain`].
//!
//! What is absent: nothing here prints, reads the environment, or decides anything.

mod account;
mod changes;
mod coverage;
mod cycle;
mod diagnostics;
mod explain;
mod faults;
mod fences;
mod finding;
mod forever;
pub mod html;
mod important;
mod json;
mod junit;
mod minimise;
mod models;
mod monitor;
mod notes;
mod outcomes;
mod progress;
mod races;
mod report;
mod robustness;
mod run;
mod run_sarif;
mod safety;
mod sarif;
mod silenced;
mod story;
mod summary;
pub mod svg;
mod table;
mod visible;
mod witness;

pub use account::{counter, mebibytes, process_in_words};
pub use changes::{changed_lines, unified_diff};
pub use coverage::CoverageNote;
pub use cycle::{cycle, cycle_dot, explain_cycle};
pub use diagnostics::{diagnostic, diagnostics};
pub use explain::{explain, last_fault, last_place};
pub use fences::{FencesEnd, FencesFinding, ReportedFence};
pub use finding::{Explain, Finding};
pub use important::Important;
pub use json::{SCHEMA_VERSION, refused_json};
pub use junit::{TestCase, TestResult, junit};
pub use minimise::{Alone, AsItIs, MinimisedFinding, ReportedWeakening};
pub use models::{ModelRow, models};
pub use monitor::{MonitorFinding, SourcePlace, monitor_sarif};
pub use notes::notes;
pub use outcomes::{Marks, ModelOutcomes, OutcomeRow, OutcomesFinding, ShownRun, TestAsks};
pub use progress::ProgressNote;
pub use report::{Colour, Detail, Layout, Report, Standing};
pub use run::{RunFinding, RunQuestion, RunVerdict, unfollowed_name};
pub use run_sarif::run_sarif;
pub use sarif::{Problem, Scanned, ScannedPlace, check_sarif};
pub use story::{StepInWords, step_in_words};
pub use summary::{Compared, Disagreement, FileResult, FileVerdict, summary};
pub use visible::{patch_name, visible, visible_json, visible_text};
pub use witness::{LocalSteps, witness};

/// The width of output that goes to a file or to another program: nothing is cut.
pub const UNLIMITED: usize = usize::MAX;

/// The text, cut to a number of characters, with an ellipsis if something was cut off.
fn fit(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The same as [`whole_line`], but at most a screenful.
fn one_line(text: &str) -> String {
    match text.char_indices().nth(2000) {
        None => whole_line(text),
        Some((end, _)) => whole_line(&text[..end]),
    }
}

/// The text on one line. White space of any kind becomes one blank, and other control characters are removed.
fn whole_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|&c| !visible::is_hidden(c)).collect()
}
