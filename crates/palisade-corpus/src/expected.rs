//! The expected verdicts of the files of the corpus: `corpus/expected.tsv`.

/// Whether a program is safe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Safety {
    /// No bad state is reachable.
    Safe,
    /// A bad state is reachable.
    Unsafe,
}

impl Safety {
    /// `safe` or `unsafe`.
    pub fn name(self) -> &'static str {
        match self {
            Safety::Safe => "safe",
            Safety::Unsafe => "unsafe",
        }
    }
}

/// The expected verdict under each model; `None` if it is not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Verdicts {
    /// Sequential consistency.
    pub sc: Option<Safety>,
    /// Total store order.
    pub tso: Option<Safety>,
    /// Partial store order.
    pub pso: Option<Safety>,
}

/// One line of `corpus/expected.tsv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectation {
    /// The file, relative to `corpus/`.
    pub file: &'static str,
    /// The expected verdicts.
    pub verdicts: Verdicts,
    /// How this is known.
    pub source: &'static str,
}

/// All lines, in the order of the file.
///
/// # Panics
/// If a line is malformed.
pub fn expectations() -> Vec<Expectation> {
    table("expected.tsv", crate::texts::table("expected.tsv"))
}

/// The same for the programs that say what must stay possible: `corpus/progress.tsv`. Only some engines
/// answer questions about that.
///
/// # Panics
/// If a line is malformed.
pub fn progress_expectations() -> Vec<Expectation> {
    table("progress.tsv", crate::texts::table("progress.tsv"))
}

fn table(name: &str, text: &'static str) -> Vec<Expectation> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("file\tsc\ttso\tpso\tsource"), "the first line names the columns");
    lines.map(|line| expectation(line).unwrap_or_else(|| panic!("{name}: cannot read `{line}`"))).collect()
}

fn expectation(line: &'static str) -> Option<Expectation> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [file, sc, tso, pso, source] = fields[..] else { return None };
    let safety = |field| match field {
        "safe" => Some(Some(Safety::Safe)),
        "unsafe" => Some(Some(Safety::Unsafe)),
        "-" => Some(None),
        _ => None,
    };
    let verdicts = Verdicts { sc: safety(sc)?, tso: safety(tso)?, pso: safety(pso)? };
    (!source.is_empty()).then_some(Expectation { file, verdicts, source })
}
