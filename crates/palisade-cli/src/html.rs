//! `--html FILE`: answers as a web page.

use crate::files;
use crate::output::Output;
use palisade::report::html::{self, Entry, ProgramText, Subject};
use palisade::{Diagnostic, Input, Source, report};
use std::path::Path;

/// The program, as a page shows it.
pub fn subject(input: &Input) -> Subject<'_> {
    Subject { source: &input.source, language: input.language.name(), text: ProgramText::Here }
}

/// The page to be written, if one was requested.
pub struct Page<'a> {
    file: Option<&'a Path>,
    entries: Vec<Entry>,
}

impl<'a> Page<'a> {
    /// A page that will be written to this file.
    pub fn new(file: Option<&'a Path>) -> Page<'a> {
        Page { file, entries: Vec::new() }
    }

    /// Adds an entry, if there is a page. The entry is given a number of its own.
    pub fn add(&mut self, entry: impl FnOnce(usize) -> Entry) {
        if self.file.is_some() {
            self.entries.push(entry(self.entries.len()));
        }
    }

    /// Adds a file that was refused.
    pub fn refuse(&mut self, source: &Source, diagnostics: &[Diagnostic]) {
        self.add(|_| html::refused(Subject { source, language: "", text: ProgramText::Here }, diagnostics));
    }

    /// Writes the page. Returns false if that fails.
    pub fn write(&self, output: &Output) -> bool {
        let Some(file) = self.file else { return true };
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
        let title = format!("palisade {}", report::visible(&arguments.join(" ")));
        let page = html::page(&title, &self.entries, concat!("Palisade ", env!("PALISADE_VERSION")));
        let written = files::write(file, &page);
        written.map_err(|error| output.complain_about(&file.display().to_string(), error)).is_ok()
    }
}
