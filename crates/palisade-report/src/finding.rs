//! The answer to a question about one file.

use crate::account::{account, grouped, process_in_words, reached, reached_in_brief};
use crate::json::{SCHEMA_VERSION, counters, diagnostics_json};
use crate::report::{Detail, Layout, Report, Standing};
use crate::{CoverageNote, LocalSteps, ProgressNote, witness};
use palisade_base::{Diagnostic, Source};
use palisade_engine::{Certified, Outcome, Question, Reason, Safety, Stats, Verdict};
use palisade_memory::Model;
use palisade_trace::{Evidence, WitnessFile};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A question whose answers can be reported.
pub trait Explain: Question {
    /// What the run of a violation shows in addition to its replay.
    type Shows: Clone + std::fmt::Debug + Send + Sync;
    /// The command that asks it.
    const COMMAND: &'static str;

    /// What is bad, in words.
    fn violation(evidence: &Evidence<'_>, shows: &Self::Shows) -> String;

    /// What is good, apart from what the answer is limited to, in words.
    fn good(_: &Finding<'_, Self>) -> Option<String> {
        None
    }

    /// The text after the table of the run.
    fn after_run(_: &Evidence<'_>, _: &Self::Shows) -> String {
        String::new()
    }

    /// What the run shows, as a key and a value for an object.
    fn shown_json(_: &Evidence<'_>, _: &Self::Shows) -> Option<(&'static str, Value)> {
        None
    }
}

/// The answer for one file.
#[derive(Debug)]
pub struct Finding<'a, Q: Explain = Safety> {
    /// The text of the program. Its name is the file's, as the user named it.
    pub source: &'a Source,
    /// Warnings about the program.
    pub warnings: &'a [Diagnostic],
    /// The memory model.
    pub model: Model,
    /// The answer.
    pub outcome: &'a Outcome<Q>,
    /// What the other engines had found by then.
    pub others: &'a [Outcome<Q>],
    /// What the answer is limited to, e.g. `with integers in 0..7`.
    pub limits: Option<&'a str>,
    /// What a positive answer rests on, a sentence each.
    pub assumptions: &'a [String],
    /// What the answer is about, whatever it is, a sentence each.
    pub circumstances: &'a [String],
    /// Time taken.
    pub seconds: f64,
    /// The peak memory.
    pub peak_memory_bytes: Option<u64>,
    /// The run that shows a violation.
    pub evidence: Option<Evidence<'a>>,
    /// What else the run shows.
    pub shows: Option<&'a Q::Shows>,
    /// The same run in the form that is stored in files.
    pub witness: Option<&'a WitnessFile>,
    /// How many threads take part in the run, if the number of threads is not fixed. In a program with identities, how
    /// many processes have one.
    pub threads: Option<usize>,
    /// The process with identities, if `threads` counts only that.
    pub threads_of: Option<&'a str>,
    /// How the proof was checked.
    pub certified: Option<Certified>,
    /// What is known about progress.
    pub progress: Option<&'a ProgressNote>,
    /// Which statements runs reach, if that was requested.
    pub coverage: Option<&'a CoverageNote>,
    /// Whether the run is a shortest one, if that was requested; if this is not known, why.
    pub shortest: Option<&'a Result<(), Reason>>,
    /// Whether the program breaks under SC as well, if that is known.
    pub also_under_sc: Option<bool>,
}

impl<Q: Explain> Clone for Finding<'_, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: Explain> Copy for Finding<'_, Q> {}

impl<'a, Q: Explain> Finding<'a, Q> {
    /// An answer with nothing else to show.
    pub fn bare(source: &'a Source, model: Model, outcome: &'a Outcome<Q>, seconds: f64) -> Finding<'a, Q> {
        Finding {
            source,
            warnings: &[],
            model,
            outcome,
            others: &[],
            limits: None,
            assumptions: &[],
            circumstances: &[],
            seconds,
            peak_memory_bytes: None,
            evidence: None,
            shows: None,
            witness: None,
            threads: None,
            threads_of: None,
            certified: None,
            progress: None,
            coverage: None,
            shortest: None,
            also_under_sc: None,
        }
    }

    /// The same without the run.
    pub fn without_run(self) -> Finding<'a, Q> {
        Finding { evidence: None, shows: None, witness: None, threads: None, shortest: None, ..self }
    }

    fn violation(&self) -> Option<String> {
        Some(Q::violation(self.evidence.as_ref()?, self.shows?))
    }

    /// How long the run is, if a shortest one was requested.
    fn length(&self) -> String {
        let (Some(shortest), Some(evidence)) = (self.shortest, &self.evidence) else { return String::new() };
        let steps = evidence.run.steps.len();
        let plural = if steps == 1 { "" } else { "s" };
        match shortest {
            Ok(()) => format!("a shortest run: {steps} step{plural}\n"),
            Err(reason) => {
                let why = match (reason.what_ran_out(), reason.covered()) {
                    (None, Some(covered)) => format!("only runs with {covered} were searched"),
                    (Some(what), _) => what.to_string(),
                    (None, None) => reason.to_string(),
                };
                format!("the run has {steps} step{plural}, and there may be a shorter one: {why}\n")
            }
        }
    }

    /// What the answer is about, and what a positive one rests on, a line each.
    pub(crate) fn assumed(&self) -> String {
        let assumptions = match self.outcome.verdict {
            Verdict::Holds => self.assumptions,
            Verdict::Violated(_) | Verdict::Unknown(_) => &[],
        };
        let all = self.circumstances.iter().chain(assumptions);
        all.map(|note| format!("assuming: {note}\n")).collect()
    }

    /// How the answer was found.
    ///
    /// - In brief: model, engine, the first counter, time.
    /// - In full: also every counter, the peak memory and the other engines.
    pub(crate) fn details(&self, full: bool) -> String {
        let Finding { model, outcome, seconds, peak_memory_bytes, .. } = *self;
        let mut text = account(model, outcome.engine, &outcome.stats, seconds, peak_memory_bytes, full);
        if let Some(certified) = self.certified {
            if certified.engine != outcome.engine {
                write!(text, "; proof by engine {}", certified.engine).expect("writing to a string");
            }
            write!(
                text,
                "; proof of {} elements checked in {:.2} s",
                grouped(certified.elements),
                certified.seconds
            )
            .expect("writing to a string");
        }
        for (index, process) in outcome.stats.processes().iter().enumerate() {
            write!(text, "\n  process {index}: {}", process_in_words(process, full))
                .expect("writing to a string");
        }
        if full && self.others.is_empty() {
            text.push_str("\n  no other engine was run");
        }
        for other in self.others.iter().filter(|_| full) {
            write!(text, "\n  {}: {}", other.engine, reached(other)).expect("writing to a string");
        }
        text
    }
}

/// What a run depends on beside the text of the program: values of constants, and the number of threads that it has. In
/// a program with identities, these are the threads of one process.
pub(crate) fn with_given(source: &Source, threads: Option<usize>, of: Option<&str>) -> String {
    let constants = source.constants().iter().map(|(name, value)| format!("{name} = {value}"));
    let threads = threads.map(|threads| {
        let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        of.map_or_else(|| threads.clone(), |of| format!("{threads} of {of}"))
    });
    let given: Vec<String> = constants.chain(threads).collect();
    if given.is_empty() { String::new() } else { format!("with {}, ", given.join(", ")) }
}

impl<Q: Explain> Report for Finding<'_, Q> {
    fn subject(&self) -> &str {
        self.source.name()
    }

    fn word(&self) -> &str {
        self.outcome.word()
    }

    fn standing(&self) -> Standing {
        Standing::from(&self.outcome.verdict)
    }

    fn why(&self) -> Option<String> {
        match &self.outcome.verdict {
            Verdict::Unknown(reason) => Some(reason.to_string()),
            Verdict::Violated(_) => {
                Some(with_given(self.source, self.threads, self.threads_of) + &self.violation()?)
            }
            Verdict::Holds => {
                let holds = self.progress.into_iter().flat_map(|progress| progress.holds.clone());
                let parts: Vec<String> =
                    self.limits.map(str::to_owned).into_iter().chain(holds).chain(Q::good(self)).collect();
                (!parts.is_empty()).then(|| parts.join(", "))
            }
        }
    }

    fn body(&self, layout: &Layout) -> String {
        let full = layout.detail == Detail::Verbose;
        let mut text = String::new();
        if let (Some(evidence), Some(shows)) = (&self.evidence, self.shows) {
            let local = if full { LocalSteps::Shown } else { LocalSteps::Folded };
            text = format!("\n{}\n", witness(evidence, local, layout.width, layout.colour));
            text.push_str(&Q::after_run(evidence, shows));
        }
        if self.progress.is_some_and(|progress| progress.stuck_state_seen) {
            text.push_str("a stuck state was seen; --deadlock shows it\n");
        }
        if let Some(coverage) = self.coverage {
            text.push_str(&coverage.text(self.source));
        }
        text.push_str(&self.length());
        text.push_str(match self.also_under_sc {
            Some(true) => "it breaks even without store buffers\n",
            Some(false) => "it breaks only with store buffers\n",
            None => "",
        });
        text + &self.details(full) + "\n" + &self.assumed()
    }

    fn json(&self) -> String {
        let shown = self.evidence.as_ref().zip(self.shows);
        let shown = shown.and_then(|(evidence, shows)| Q::shown_json(evidence, shows));
        let record = Record {
            schema_version: SCHEMA_VERSION,
            command: Q::COMMAND,
            file: self.source.name(),
            model: self.model.name(),
            engine: self.outcome.engine,
            verdict: self.outcome.word(),
            reason: self.outcome.verdict.reason().map(ToString::to_string),
            known_threads: self.outcome.verdict.reason().and_then(Reason::known_threads),
            limits: self.limits,
            assumptions: self.circumstances.iter().chain(self.assumptions).collect(),
            violation: self.violation(),
            shown: shown.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            threads: self.threads,
            progress: self.progress.map(|progress| progress.holds.as_slice()).unwrap_or_default(),
            stuck_state_seen: self.progress.is_some_and(|progress| progress.stuck_state_seen),
            coverage: self.coverage.map(|coverage| coverage.json(self.source)),
            shortest: self.shortest.map(Result::is_ok),
            also_under_sc: self.also_under_sc,
            seconds: self.seconds,
            peak_memory_bytes: self.peak_memory_bytes,
            stats: &self.outcome.stats,
            processes: self
                .outcome
                .stats
                .processes()
                .iter()
                .map(|process| process.iter().collect())
                .collect(),
            others: self.others.iter().map(OtherRecord::of).collect(),
            certified: self.certified.map(|certified| CertifiedRecord {
                engine: certified.engine,
                kind: certified.kind.name(),
                elements: certified.elements,
                seconds: certified.seconds,
            }),
            diagnostics: diagnostics_json(self.source, self.warnings),
            witness: self.witness,
        };
        serde_json::to_string(&record).expect("the record has only string keys")
    }
}

#[derive(Serialize)]
struct Record<'a> {
    schema_version: u32,
    command: &'a str,
    file: &'a str,
    model: &'a str,
    engine: &'a str,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known_threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumptions: Vec<&'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<String>,
    #[serde(flatten)]
    shown: serde_json::Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    progress: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stuck_state_seen: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shortest: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    also_under_sc: Option<bool>,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    #[serde(serialize_with = "counters")]
    stats: &'a Stats,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<BTreeMap<&'static str, u64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<OtherRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certified: Option<CertifiedRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<&'a WitnessFile>,
}

/// What another engine had found.
#[derive(Serialize)]
struct OtherRecord<'a> {
    engine: &'a str,
    reached: String,
    #[serde(serialize_with = "counters")]
    stats: &'a Stats,
}

impl OtherRecord<'_> {
    fn of<Q: Question>(outcome: &Outcome<Q>) -> OtherRecord<'_> {
        let reached = reached_in_brief(outcome);
        OtherRecord { engine: outcome.engine, reached, stats: &outcome.stats }
    }
}

/// How the proof was checked.
#[derive(Serialize)]
struct CertifiedRecord {
    engine: &'static str,
    kind: &'static str,
    elements: u64,
    seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Colour;
    use palisade_engine::Reason;

    #[test]
    fn lines() {
        let mut stats = Stats::new();
        stats.set("states", 1_234_567);
        stats.set("peak_frontier", 12);
        let source = Source::new("a.pal", "");
        let check = |verdict, limits, line: &str, details: &str| {
            let outcome: Outcome = Outcome::new("explicit", verdict, stats.clone());
            let finding = Finding {
                limits,
                peak_memory_bytes: Some(3 << 20),
                ..Finding::bare(&source, Model::Tso, &outcome, 1.5)
            };
            assert_eq!(finding.headline(Colour::Never), line);
            assert_eq!(finding.details(line.starts_with("unknown")), details);
        };
        check(Verdict::Holds, None, "safe  a.pal", "TSO, engine explicit, 1,234,567 states, 1.50 s");
        check(
            Verdict::Holds,
            Some("with integers in 0..7"),
            "safe  a.pal: with integers in 0..7",
            "TSO, engine explicit, 1,234,567 states, 1.50 s",
        );
        check(
            Verdict::Unknown(Reason::BufferBound(8)),
            None,
            "unknown  a.pal: no bad state with buffers up to 8",
            "TSO, engine explicit, 1,234,567 states, peak frontier 12, 1.50 s, 3.0 MiB\n  no other engine was run",
        );
    }
}
