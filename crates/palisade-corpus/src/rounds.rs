//! What is expected of programs with recursion and of programs that start processes without end: `corpus/rounds.tsv`.
//!
//! Such programs have states without end, so exact engines do not take them, and under TSO the question is asked within a number of rounds.

/// What is known of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Within {
    /// Nothing bad can happen.
    Safe,
    /// Something bad can happen, within the rounds.
    Unsafe,
    /// Nothing bad can happen within the rounds.
    Bounded,
}

/// One line of `corpus/rounds.tsv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundExpectation {
    /// The file, relative to `corpus/`.
    pub file: &'static str,
    /// How many rounds each process has.
    pub rounds: u32,
    /// What is expected under SC.
    pub sc: Within,
    /// What is expected under TSO.
    pub tso: Within,
    /// Where this is known from.
    pub source: &'static str,
}

/// All lines, in the order of the file.
///
/// # Panics
/// If a line is not as it should be.
pub fn round_expectations() -> Vec<RoundExpectation> {
    let mut lines = include_str!("../../../corpus/rounds.tsv").lines();
    assert_eq!(lines.next(), Some("file\trounds\tsc\ttso\tsource"), "the first line names the columns");
    lines
        .map(|line| expectation(line).unwrap_or_else(|| panic!("rounds.tsv: cannot read `{line}`")))
        .collect()
}

fn expectation(line: &'static str) -> Option<RoundExpectation> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [file, rounds, sc, tso, source] = fields[..] else { return None };
    let within = |field| match field {
        "safe" => Some(Within::Safe),
        "unsafe" => Some(Within::Unsafe),
        "unknown" => Some(Within::Bounded),
        _ => None,
    };
    let rounds = rounds.parse().ok()?;
    (!source.is_empty()).then_some(RoundExpectation {
        file,
        rounds,
        sc: within(sc)?,
        tso: within(tso)?,
        source,
    })
}
