//! One JSON object per file, on a line of its own. Fields are only ever added. A change in the meaning of a
//! field requires a new schema version.

use palisade_base::{Diagnostic, Severity, Source, Span};
use palisade_engine::Stats;
use serde::Serializer;
use serde_json::{Value, json};

/// The version of the objects this file makes.
pub const SCHEMA_VERSION: u32 = 1;

/// Counters as an object, in their own order.
pub(crate) fn counters<S: Serializer>(stats: &Stats, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(stats.iter())
}

/// A file that was refused, as a line of JSON. It has `error` instead of `verdict`, and the diagnostics.
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
    let mut record = json!({
        "id": diagnostic.id,
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "message": diagnostic.message,
        "line": position.map(|position| position.line),
        "column": position.map(|position| position.column),
        "help": diagnostic.help,
    });
    add_file(&mut record, source, diagnostic.span());
    record
}

/// Adds the name of the file that a span is in, if it is not the main file.
pub(crate) fn add_file(record: &mut Value, source: &Source, span: Span) {
    if let Some(file) = source.other_file(span) {
        record["file"] = file.into();
    }
}
