//! Expected verdicts of the C and Rust programs and their broken twins: `corpus/c.tsv`, `corpus/rust.tsv`.

use crate::expected::{Safety, Verdicts};

/// What is asked of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Question {
    /// Assertions, memory errors and data races.
    Safety,
    /// Whether `main` can still return from every reachable state.
    Progress,
}

/// One line of `corpus/c.tsv` or `corpus/rust.tsv`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CExpectation {
    /// The file, relative to `corpus/`.
    pub file: &'static str,
    /// The flags for the compiler; none for the right program.
    pub flags: Vec<&'static str>,
    /// What is asked.
    pub question: Question,
    /// The expected verdicts, all of them known.
    pub verdicts: Verdicts,
    /// What can go wrong; empty if the program is safe under all models.
    pub kinds: Vec<&'static str>,
    /// How this is known.
    pub source: &'static str,
}

/// All lines about C programs, in the order of the file.
///
/// # Panics
/// If a line is malformed.
pub fn c_expectations() -> Vec<CExpectation> {
    table(crate::texts::table("c.tsv"))
}

/// All lines about Rust programs, in the order of the file.
///
/// # Panics
/// If a line is malformed.
pub fn rust_expectations() -> Vec<CExpectation> {
    table(crate::texts::table("rust.tsv"))
}

fn table(text: &'static str) -> Vec<CExpectation> {
    let mut lines = text.lines();
    let columns = "file\tflags\tproperty\tsc\ttso\tpso\tkind\tsource";
    assert_eq!(lines.next(), Some(columns), "the first line names the columns");
    lines.map(|line| expectation(line).unwrap_or_else(|| panic!("cannot read `{line}`"))).collect()
}

fn expectation(line: &'static str) -> Option<CExpectation> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [file, flags, property, sc, tso, pso, kind, source] = fields[..] else { return None };
    let question = match property {
        "safety" => Question::Safety,
        "progress" => Question::Progress,
        _ => return None,
    };
    let safety = |field| match field {
        "safe" => Some(Safety::Safe),
        "unsafe" => Some(Safety::Unsafe),
        _ => None,
    };
    let verdicts = Verdicts { sc: Some(safety(sc)?), tso: Some(safety(tso)?), pso: Some(safety(pso)?) };
    let list = |field: &'static str, separator| match field {
        "-" => Vec::new(),
        _ => field.split(separator).collect(),
    };
    let (flags, kinds) = (list(flags, ' '), list(kind, ','));
    (!source.is_empty()).then_some(CExpectation { file, flags, question, verdicts, kinds, source })
}
