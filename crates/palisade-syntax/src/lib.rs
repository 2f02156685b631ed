//! Input languages: text to program.
//!
//! There is one folder per language. Each has a `parse` that turns a source into the written form of
//! `palisade-program`, or reports everything that is wrong with it. [`parse()`] selects the language and then
//! runs the validator.
//!
//! What is absent: nothing here lowers, runs or searches a program, reads files or prints diagnostics.
//!
//! *Guarantee*: no input causes a panic, overflows the stack or takes more than linear time and memory.
//! [`limits`] lists the limits of the parsers.

mod bound;
pub mod edit;
mod format;
mod generate;
pub mod limits;
mod litmus;
pub mod names;
mod pal;
mod report;
mod rmm;
mod trencher;

/// "Did you mean …?"
mod suggest {
    pub(crate) use palisade_base::nearest;
}

pub use bound::{Bound, BoundKind};
pub use format::format as format_pal;
pub use litmus::{Asks, LitmusQuestion, LitmusTest, Shown, litmus_test};
pub use pal::{ImportedFile, find_imports};

use palisade_base::{Diagnostic, Source, Span};
use palisade_program::written::Program;
use std::fmt;

/// An input language.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Language {
    /// Palisade's own language.
    Pal,
    /// Memorax's language.
    Rmm,
    /// x86 litmus tests, as herd7 reads them.
    Litmus,
    /// Trencher's language.
    Trencher,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 4] = [Language::Pal, Language::Rmm, Language::Litmus, Language::Trencher];

    /// The name, as in `--input pal`. It is also the usual file extension.
    pub fn name(self) -> &'static str {
        match self {
            Language::Pal => "pal",
            Language::Rmm => "rmm",
            Language::Litmus => "litmus",
            Language::Trencher => "trencher",
        }
    }

    /// The language with that name.
    pub fn from_name(name: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.name() == name)
    }

    /// The language of files with that extension (without the dot). Trencher's files often have the extension
    /// `.txt`.
    pub fn from_extension(extension: &str) -> Option<Language> {
        match extension {
            "txt" => Some(Language::Trencher),
            _ => Language::from_name(extension),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A valid program.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The program.
    pub program: Program,
    /// Warnings about it.
    pub warnings: Vec<Diagnostic>,
    /// Names that are not in the program, such as the variables of quantifiers.
    pub bound: Vec<Bound>,
}

/// Parses and validates a program.
///
/// On failure the diagnostics contain at least one error. Errors and warnings are in the order of the text.
/// At most [`limits::MAX_ERRORS`] errors are returned; the rest are only counted.
pub fn parse(language: Language, source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    let Parsed { program, warnings, bound } = read(language, source)?;
    let mut diagnostics = warnings;
    diagnostics.extend(palisade_program::validate(&program));
    let diagnostics = report::arrange(diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        Err(diagnostics)
    } else {
        Ok(Parsed { program, warnings: diagnostics, bound })
    }
}

/// Parses a program without validating it. The text has the right form, but names may be undeclared and types
/// may not match.
pub fn read(language: Language, source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    if source.text().len() >= limits::MAX_BYTES {
        let message = format!("the text is larger than {} MB", limits::MAX_BYTES / 1_000_000);
        return Err(vec![Diagnostic::error("too-large", message).at(Span::new(0..0), "")]);
    }
    if language != Language::Pal && !source.constants().is_empty() {
        let message = format!("-D sets constants of `.pal` programs, and this is a program in `{language}`");
        return Err(vec![Diagnostic::error("unknown-constant", message).at(Span::new(0..0), "")]);
    }
    let parsed = match language {
        Language::Pal => pal::parse(source),
        Language::Rmm => rmm::parse(source),
        Language::Litmus => litmus::parse(source),
        Language::Trencher => trencher::parse(source),
    };
    parsed.map_err(report::arrange)
}
