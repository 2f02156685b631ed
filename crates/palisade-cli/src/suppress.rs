//! `palisade run --suppress FILE`: reading the file, and what is wrong with comments about suppressions.

use crate::exit::Exit;
use crate::files;
use crate::output::Output;
use palisade::harness::session::Session;
use palisade::harness::suppress::Suppressions;
use palisade::{Diagnostic, Refused, Source, Span};
use std::path::Path;
use std::sync::Arc;

/// Reads the file. If it is not well-formed, all that is wrong with it is reported.
pub fn read(path: Option<&Path>, output: &Output) -> Result<Arc<Suppressions>, Exit> {
    let Some(path) = path else { return Ok(Arc::default()) };
    let name = path.display().to_string();
    let text = files::text(path).map_err(|error| output.refuse_about(&name, error))?;
    Suppressions::parse(&name, &text).map(Arc::new).map_err(|errors| {
        let diagnostics: Vec<Diagnostic> = errors
            .into_iter()
            .map(|error| {
                let diagnostic = Diagnostic::error("malformed-suppression", error.message);
                diagnostic.at(Span::new(error.range), "").help(error.help)
            })
            .collect();
        output.refuse(&Refused { source: Source::new(name, text), diagnostics })
    })
}

/// A source file, for comments in it.
pub fn source(name: &str) -> Option<String> {
    files::text(Path::new(name)).ok()
}

/// Warns about comments that name unknown kinds of findings.
pub fn warn(session: &Session, output: &Output) {
    for unknown in session.unknown_kinds() {
        let place = format!("{}:{}", unknown.file, unknown.line);
        let diagnostic = Diagnostic::warning("malformed-suppression", unknown.message.clone())
            .help("docs/run.md lists the kinds of findings");
        output.complain_about(&place, diagnostic);
    }
}
