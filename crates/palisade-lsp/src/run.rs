//! A run as a diagnostic: at the line where it breaks the program, with its steps as related information.

use crate::position::Lines;
use crate::problems::found;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, Position, Range, Uri,
};
use palisade::trace::WitnessFile;

/// An editor shows all of them. More are not read.
const MAX_STEPS: usize = 200;

/// The files of a program: where they are, and their texts as far as they are known.
pub(crate) struct Files<'a> {
    pub(crate) uri: &'a Uri,
    pub(crate) text: &'a str,
    pub(crate) lines: &'a Lines,
    /// The address of another file of the program.
    pub(crate) other: &'a dyn Fn(&str) -> Option<Uri>,
}

impl Files<'_> {
    /// The place of a statement.
    fn location(&self, file: Option<&str>, line: u32, column: u32, statement: &str) -> Location {
        match file.and_then(|file| (self.other)(file)) {
            Some(other) => {
                let line = line.saturating_sub(1);
                Location::new(other, Range::new(Position::new(line, 0), Position::new(line + 1, 0)))
            }
            None => {
                let range = self.lines.statement(self.text, line, column, statement);
                Location::new(self.uri.clone(), range)
            }
        }
    }
}

/// What a run shows: the violation, and the steps that overtake stores, each at its place.
pub(crate) fn diagnostics(
    files: &Files<'_>,
    witness: &WitnessFile,
    id: &str,
    severity: DiagnosticSeverity,
    why: &str,
) -> Vec<(Uri, Diagnostic)> {
    let mut steps = Vec::new();
    for step in witness.steps.iter().take(MAX_STEPS) {
        let Some(line) = step.line else { continue };
        let location = files.location(step.file.as_deref(), line, step.column.unwrap_or(1), &step.text);
        let message = format!("step {}: {}: {} ({})", step.number, step.process, step.text, step.effect);
        steps.push((DiagnosticRelatedInformation { location, message }, step));
    }
    let violation = &witness.violation;
    let place = match (violation.line, steps.last()) {
        (Some(line), _) => files.location(violation.file.as_deref(), line, 1, ""),
        (None, Some((last, _))) => last.location.clone(),
        (None, None) => Location::new(files.uri.clone(), Range::default()),
    };
    let left = witness.steps.len().saturating_sub(MAX_STEPS);
    let more = if left > 0 { format!("\n{left} more steps are not listed") } else { String::new() };
    let mut broken = found(place.range, severity, id, format!("{id}: {why}{more}"));
    broken.related_information = Some(steps.iter().map(|(step, _)| step.clone()).collect());
    let mut all = vec![(place.uri, broken)];
    for (shown, step) in steps.iter().filter(|(_, step)| !step.overtakes.is_empty()) {
        let stores = steps.iter().filter(|(_, store)| step.overtakes.contains(&store.number));
        let stores: Vec<_> = stores.map(|(store, _)| store.clone()).collect();
        let lines: Vec<String> =
            stores.iter().map(|store| (store.location.range.start.line + 1).to_string()).collect();
        let message = format!(
            "in this run, {} is here while its store from line {} is still in the buffer",
            step.process,
            lines.join(" and ")
        );
        let overtakes = found(shown.location.range, DiagnosticSeverity::INFORMATION, "overtakes", message);
        let overtakes = Diagnostic { related_information: Some(stores), ..overtakes };
        all.push((shown.location.uri.clone(), overtakes));
    }
    all
}
