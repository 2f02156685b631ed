//! Renderings of verdicts, witnesses and diagnostics, one file each: text, tables, JSON.
//!
//! Every function returns a `String`. What is absent: nothing here prints, reads the environment, or decides anything.

mod cycle;
mod diagnostics;
mod explain;
mod fences;
pub mod html;
mod json;
mod junit;
mod monitor;
mod notes;
mod robustness;
mod run;
mod sarif;
mod story;
mod summary;
mod table;
mod verdict;
mod visible;
mod witness;

pub use cycle::{cycle, cycle_dot, explain_cycle};
pub use diagnostics::{diagnostic, diagnostics};
pub use explain::explain;
pub use fences::{
    FencesEnd, FencesFinding, Runs, ToldFence, fence_sets, fences_details, fences_headline, fences_json,
};
pub use json::{SCHEMA_VERSION, check_json, refused_json};
pub use junit::{TestCase, TestResult, junit};
pub use monitor::{
    MonitorFinding, Place, monitor_headline, monitor_json, monitor_sarif, monitor_text, monitor_verdict,
};
pub use notes::notes;
pub use robustness::{
    RaceFinding, RobustFinding, race_details, race_headline, race_json, robust_details, robust_headline,
    robust_json,
};
pub use run::{RunFinding, run_headline, run_json, run_sarif, run_text, run_verdict, unfollowed_name};
pub use sarif::{Problem, Scanned, check_sarif};
pub use story::{StepInWords, step_in_words};
pub use summary::{Compared, Disagreement, FileResult, summary};
pub use verdict::{counter, details, headline, mebibytes};
pub use visible::{visible, visible_json};
pub use witness::{LocalSteps, witness};

use palisade_engine::{Certified, Outcome};
use palisade_memory::Model;
use palisade_trace::{Evidence, WitnessFile};

/// Whether to colour text for a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Colour {
    /// Plain text.
    #[default]
    Never,
    /// With escape sequences.
    Always,
}

impl Colour {
    /// The text in the style of an escape sequence such as `1;31`.
    fn paint(self, style: &str, text: &str) -> String {
        match self {
            Colour::Never => text.to_owned(),
            Colour::Always => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
        }
    }
}

/// The answer for one file.
#[derive(Clone, Copy, Debug)]
pub struct Finding<'a> {
    /// The file, as the user called it.
    pub file: &'a str,
    /// The memory model.
    pub model: Model,
    /// The answer.
    pub outcome: &'a Outcome,
    /// What the answer is limited to, e.g. `with integers in 0..7`.
    pub limits: Option<&'a str>,
    /// Time taken.
    pub seconds: f64,
    /// The most memory in use.
    pub peak_memory_bytes: Option<u64>,
    /// The run that breaks the program.
    pub evidence: Option<Evidence<'a>>,
    /// The same run in the form that is kept in files.
    pub witness: Option<&'a WitnessFile>,
    /// How many threads take part in the run, if there may be any number of them.
    pub threads: Option<usize>,
    /// What the other engines had found out by then.
    pub others: &'a [Outcome],
    /// How the proof of `safe` was checked.
    pub certified: Option<Certified>,
}

/// The width of what goes to a file or to another program: nothing is cut.
pub const UNLIMITED: usize = usize::MAX;

/// The text, cut to a number of characters, with an ellipsis if something was cut off.
fn fit(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The text on one line: white space of any kind becomes one blank, other control characters vanish. Reads no more than
/// a screenful.
fn one_line(text: &str) -> String {
    let start: String = text.chars().take(2000).collect();
    let words: Vec<&str> = start.split_whitespace().collect();
    words.join(" ").chars().filter(|&c| !visible::is_hidden(c)).collect()
}
