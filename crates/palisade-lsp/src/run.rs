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
    /// Another file of the program.
    pub(crate) other: &'a dyn Fn(&str) -> Option<Other<'a>>,
}

/// A file that is not the main one of its program.
pub(crate) struct Other<'a> {
    pub(crate) uri: Uri,
    /// Its text, if it is known.
    pub(crate) text: Option<&'a str>,
}

impl Files<'_> {
    /// The place of a statement.
    fn location(&self, file: Option<&str>, line: u32, column: u32, statement: &str) -> Location {
        match file.and_then(|file| (self.other)(file)) {
            Some(Other { uri, text: Some(text) }) => {
                Location::new(uri, Lines::new(text).statement(text, line, column, statement))
            }
            Some(Other { uri, text: None }) => {
                let line = line.saturating_sub(1);
                Location::new(uri, Range::new(Position::new(line, 0), Position::new(line + 1, 0)))
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
        let message = overtaking(&step.process, &stores, &shown.location.uri);
        let overtakes = found(shown.location.range, DiagnosticSeverity::INFORMATION, "overtakes", message);
        let overtakes = Diagnostic { related_information: Some(stores), ..overtakes };
        all.push((shown.location.uri.clone(), overtakes));
    }
    all
}

/// Which stores of a process are still in its buffer.
fn overtaking(process: &str, stores: &[DiagnosticRelatedInformation], here: &Uri) -> String {
    let mut places: Vec<(Option<&str>, u32)> = Vec::new();
    for Location { uri, range } in stores.iter().map(|store| &store.location) {
        let file = (uri != here).then(|| uri.as_str().rsplit('/').next().unwrap_or_default());
        places.push((file, range.start.line + 1));
    }
    places.sort_unstable();
    places.dedup();
    let is_one_file = places.windows(2).all(|pair| pair[0].0 == pair[1].0);
    let in_file = |file: Option<&str>| file.map_or_else(String::new, |file| format!(" of {file}"));
    let each = |&(file, line): &(Option<&str>, u32)| {
        if is_one_file { line.to_string() } else { format!("line {line}{}", in_file(file)) }
    };
    let lines: Vec<String> = places.iter().map(each).collect();
    let listed = match lines.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => lines.concat(),
    };
    let word = match (is_one_file, lines.len()) {
        (false, _) => "",
        (true, 1) => "line ",
        (true, _) => "lines ",
    };
    let file = if is_one_file { in_file(places.first().and_then(|(file, _)| *file)) } else { String::new() };
    let (noun, verb) = if stores.len() == 1 { ("store", "is") } else { ("stores", "are") };
    format!(
        "in this run, {process} is here while its {noun} from {word}{listed}{file} {verb} still in the buffer"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_listed_by_their_lines() {
        let uri = |name: &str| -> Uri { format!("file:///a/{name}").parse().expect("an address") };
        let check = |stores: &[(&str, u32)], expected: &str| {
            let store = |&(file, line): &(&str, u32)| DiagnosticRelatedInformation {
                location: Location::new(
                    uri(file),
                    Range::new(Position::new(line - 1, 0), Position::new(line - 1, 1)),
                ),
                message: String::new(),
            };
            let stores: Vec<_> = stores.iter().map(store).collect();
            let expected = format!("in this run, P is here while its {expected} still in the buffer");
            assert_eq!(overtaking("P", &stores, &uri("main.pal")), expected);
        };
        check(&[("main.pal", 6)], "store from line 6 is");
        check(&[("main.pal", 6), ("main.pal", 6)], "stores from line 6 are");
        check(&[("main.pal", 15), ("main.pal", 13), ("main.pal", 16)], "stores from lines 13, 15 and 16 are");
        check(&[("lock.pal", 2)], "store from line 2 of lock.pal is");
        check(&[("lock.pal", 2), ("main.pal", 3)], "stores from line 3 and line 2 of lock.pal are");
    }
}
