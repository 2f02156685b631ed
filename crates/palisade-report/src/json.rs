//! One JSON object per file and line. Fields are only ever added; whoever changes the meaning of one counts up the schema version.

use crate::verdict::reached_in_brief;
use crate::{Finding, explain};
use palisade_base::{Diagnostic, Severity, Source};
use palisade_engine::{Outcome, Stats, Verdict};
use palisade_trace::WitnessFile;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// The version of the objects this file makes.
pub const SCHEMA_VERSION: u32 = 1;

/// The answer for one file as a line of JSON, without the line break. The warnings are about the source of its program.
pub fn check_json(command: &str, finding: &Finding<'_>, source: &Source, warnings: &[Diagnostic]) -> String {
    let reason = match &finding.outcome.verdict {
        Verdict::Unknown(reason) => Some(reason.to_string()),
        _ => None,
    };
    let record = CheckRecord {
        schema_version: SCHEMA_VERSION,
        command,
        file: finding.file,
        model: finding.model.name(),
        engine: finding.outcome.engine,
        verdict: finding.outcome.word(),
        reason,
        limits: finding.limits,
        violation: finding.evidence.as_ref().map(explain),
        threads: finding.threads,
        seconds: finding.seconds,
        peak_memory_bytes: finding.peak_memory_bytes,
        stats: &finding.outcome.stats,
        others: finding.others.iter().map(OtherRecord::of).collect(),
        certified: finding.certified.map(|certified| CertifiedRecord {
            engine: certified.engine,
            kind: certified.kind.name(),
            elements: certified.elements,
            seconds: certified.seconds,
        }),
        diagnostics: diagnostics_json(source, warnings),
        witness: finding.witness,
    };
    serde_json::to_string(&record).expect("the record has only string keys")
}

#[derive(Serialize)]
struct CheckRecord<'a> {
    schema_version: u32,
    command: &'a str,
    file: &'a str,
    model: &'a str,
    engine: &'a str,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    #[serde(serialize_with = "counters")]
    stats: &'a Stats,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<OtherRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certified: Option<CertifiedRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<&'a WitnessFile>,
}

/// What another engine had found out.
#[derive(Serialize)]
struct OtherRecord<'a> {
    engine: &'a str,
    reached: String,
    #[serde(serialize_with = "counters")]
    stats: &'a Stats,
}

impl OtherRecord<'_> {
    fn of(outcome: &Outcome) -> OtherRecord<'_> {
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

/// Counters as an object, in their own order.
fn counters<S: Serializer>(stats: &Stats, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(stats.iter())
}

/// A file that was refused, as a line of JSON: `error` instead of `verdict`, and the diagnostics.
pub fn refused_json(command: &str, source: &Source, diagnostics: &[Diagnostic]) -> String {
    let error = diagnostics.iter().find(|diagnostic| diagnostic.is_error()).or(diagnostics.first());
    json!({
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "file": source.name(),
        "error": error.map_or("", |diagnostic| diagnostic.id),
        "diagnostics": diagnostics_json(source, diagnostics),
    })
    .to_string()
}

/// Each diagnostic as an object.
pub(crate) fn diagnostics_json(source: &Source, diagnostics: &[Diagnostic]) -> Vec<Value> {
    diagnostics.iter().map(|diagnostic| diagnostic_json(source, diagnostic)).collect()
}

fn diagnostic_json(source: &Source, diagnostic: &Diagnostic) -> Value {
    let position = source.position(diagnostic.span());
    json!({
        "id": diagnostic.id,
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "message": diagnostic.message,
        "line": position.map(|position| position.line),
        "column": position.map(|position| position.column),
        "help": diagnostic.help,
    })
}
