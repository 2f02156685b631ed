//! What rustc complains about, as diagnostics with their places.
//!
//! rustc prints a JSON object per line: a message, its severity, and spans with their lines and columns.

use crate::c::user_file;
use palisade::{Diagnostic, Refused, Source, Span};
use serde_json::Value;
use std::path::Path;

/// At most this many characters of what rustc prints are shown where it is not understood.
const LONGEST: usize = 380;

/// Why the compiler rejects a program. The source holds the main file. File names begin in a folder.
pub fn refused(printed: &str, name: &str, source: &Source, folder: &Path) -> Refused {
    let mut source = source.clone();
    let messages = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut errors: Vec<Diagnostic> =
        messages.filter_map(|message| error(&message, name, &mut source, folder)).collect();
    if errors.is_empty() {
        let printed: String = printed.trim().chars().take(LONGEST).collect();
        errors.push(Diagnostic::error("rust-error", format!("the compiler rejects {name}: {printed}")));
    }
    Refused { source, diagnostics: errors }
}

/// A message, if it is an error. The last one only counts the others.
fn error(message: &Value, name: &str, source: &mut Source, folder: &Path) -> Option<Diagnostic> {
    let text = message["message"].as_str()?;
    if !message["level"].as_str()?.starts_with("error") || text.starts_with("aborting due to") {
        return None;
    }
    let code = message["code"]["code"].as_str().map(|code| format!(" ({code})")).unwrap_or_default();
    let mut error = Diagnostic::error("rust-error", format!("{text}{code}"));
    let spans = message["spans"].as_array().map_or(&[][..], Vec::as_slice);
    let (primary, others): (Vec<&Value>, Vec<&Value>) =
        spans.iter().partition(|span| span["is_primary"] == true);
    for span in primary.into_iter().chain(others) {
        if let Some(place) = place(span, name, source, folder) {
            error = error.at(place, span["label"].as_str().unwrap_or(""));
        }
    }
    let children = message["children"].as_array().map_or(&[][..], Vec::as_slice);
    let help = children.iter().find(|child| child["level"] == "help" || child["level"] == "note");
    Some(match help.and_then(|help| help["message"].as_str()) {
        Some(help) => error.help(help),
        None => error,
    })
}

/// Where a span is, if it is in a file of the user. The file is added to the source.
fn place(span: &Value, name: &str, source: &mut Source, folder: &Path) -> Option<Span> {
    let mut file = match span["file_name"].as_str()? {
        "<anon>" => name.to_owned(),
        file => file.strip_prefix("./").unwrap_or(file).to_owned(),
    };
    let here = std::env::current_dir().ok()?;
    let folder = here.join(folder).display().to_string();
    if !source.files().any(|(known, _)| known == file)
        && let Some((shown, text)) = user_file(&folder, &file, &here.display().to_string())
    {
        if !source.files().any(|(known, _)| known == shown) {
            source.add(shown.as_str(), &text);
        }
        file = shown;
    }
    let offset = |line: &str, column: &str| {
        let number = |field: &str| span[field].as_u64().and_then(|number| u32::try_from(number).ok());
        let whole = source.line_of(&file, number(line)?)?;
        let characters = (number(column)? as usize).saturating_sub(1);
        let text = source.slice(whole);
        let bytes = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
        Some(whole.start as usize + bytes)
    };
    let start = offset("line_start", "column_start")?;
    let end = offset("line_end", "column_end").unwrap_or(start);
    Some(Span::new(start..end.max(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_have_places() {
        let source = Source::new("lock.rs", "fn main() {\n    let é = unknown;\n}\n");
        let printed = r#"{"message":"cannot find value `unknown`","code":{"code":"E0425"},"level":"error","spans":[{"file_name":"lock.rs","line_start":2,"line_end":2,"column_start":13,"column_end":20,"is_primary":true,"label":"not found"}],"children":[{"message":"spell it","level":"help","spans":[]}]}
{"message":"aborting due to 1 previous error","code":null,"level":"error","spans":[],"children":[]}
{"message":"a warning","code":null,"level":"warning","spans":[],"children":[]}"#;
        let refused = refused(printed, "lock.rs", &source, Path::new(""));
        let [error] = refused.diagnostics.as_slice() else { panic!("{:?}", refused.diagnostics) };
        assert_eq!(error.message, "cannot find value `unknown` (E0425)");
        assert_eq!(refused.source.slice(error.span()), "unknown");
        assert_eq!(error.labels[0].text, "not found");
        assert_eq!(error.help.as_deref(), Some("spell it"));
    }

    #[test]
    fn other_complaints_are_shown_as_they_are() {
        let source = Source::new("lock.rs", "");
        let refused = refused("Segmentation fault\n", "lock.rs", &source, Path::new(""));
        assert_eq!(refused.diagnostics[0].message, "the compiler rejects lock.rs: Segmentation fault");
    }
}
