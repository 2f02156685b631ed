//! Expected verdicts of programs with recursion, and of programs that start processes without bound:
//! `corpus/rounds.tsv`.
//!
//! Such programs have infinitely many states, so the exact engines do not accept them. Under TSO the question
//! is limited to a number of rounds.

/// The verdict of a program, perhaps within a number of rounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Within {
    /// No bad state is reachable.
    Safe,
    /// A bad state is reachable within the rounds.
    Unsafe,
    /// No bad state is reachable within the rounds.
    Bounded,
}

/// One line of `corpus/rounds.tsv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundExpectation {
    /// The file, relative to `corpus/`.
    pub file: &'static str,
    /// The number of rounds of each process.
    pub rounds: u32,
    /// The expected verdict under SC.
    pub sc: Within,
    /// The expected verdict under TSO.
    pub tso: Within,
    /// How this is known.
    pub source: &'static str,
}

/// All lines, in the order of the file.
///
/// # Panics
/// If a line is malformed.
pub fn round_expectations() -> Vec<RoundExpectation> {
    let mut lines = crate::texts::table("rounds.tsv").lines();
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
