//! Input languages: text to program.
//!
//! One folder per language, each with a `parse` that turns a source into the written form of
//! `palisade-program` or says everything that is wrong with it. [`parse()`] picks the language and runs the
//! validator behind it.
//!
//! What is absent: nothing here lowers, runs or searches a program, reads files or prints diagnostics.
//!
//! *Guarantee*: no input panics, overflows the stack or takes more than linear time and memory. [`limits`]
//! says where the parsers give up.

pub mod edit;
mod generate;
pub mod limits;
mod litmus;
mod pal;
mod report;
mod rmm;
mod trencher;

/// "Did you mean …?"
mod suggest {
    pub(crate) use palisade_base::nearest;
}

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
    /// All of them.
    pub const ALL: [Language; 4] = [Language::Pal, Language::Rmm, Language::Litmus, Language::Trencher];

    /// The name, as in `--input pal`; also the usual file extension.
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

    /// The language of files with that extension (without the dot). Trencher's files are often called `.txt`.
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

/// A program that was read and found valid.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The program.
    pub program: Program,
    /// What is suspicious about it.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a program and validates it.
///
/// On failure the diagnostics hold at least one error; errors and warnings come in the order of their places.
/// Of very many errors only the first [`limits::MAX_ERRORS`] are given and the rest are counted.
pub fn parse(language: Language, source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    let Parsed { program, warnings } = read(language, source)?;
    let mut diagnostics = warnings;
    diagnostics.extend(palisade_program::validate(&program));
    let diagnostics = report::arrange(diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        Err(diagnostics)
    } else {
        Ok(Parsed { program, warnings: diagnostics })
    }
}

/// Reads a program without validating it: the text has the right form, but names may be missing and types may
/// not fit.
pub fn read(language: Language, source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    if source.text().len() >= limits::MAX_BYTES {
        let message = format!("the text is larger than {} MB", limits::MAX_BYTES / 1_000_000);
        return Err(vec![Diagnostic::error("too-large", message).at(Span::new(0..0), "")]);
    }
    let parsed = match language {
        Language::Pal => pal::parse(source),
        Language::Rmm => rmm::parse(source),
        Language::Litmus => litmus::parse(source),
        Language::Trencher => trencher::parse(source),
    };
    parsed.map_err(report::arrange)
}
