//! Standard output and error: who reads them, and what happens when nobody does any more.

use crate::args::{Common, Format};
use crate::exit::Exit;
use palisade::report::{self, Colour};
use palisade::{Diagnostic, Input, Refused, Source};
use std::io::{self, IsTerminal, Write};

/// At most this many diagnostics are printed per file, unless more are asked for.
const MOST_DIAGNOSTICS: usize = 50;

/// Where output goes and how it looks.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Text or JSON.
    pub format: Format,
    /// How much to tell.
    pub detail: Detail,
    /// Colour on standard output.
    pub colour: Colour,
    /// Columns of standard output.
    pub width: usize,
    colour_of_errors: Colour,
}

/// How much to tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Detail {
    /// The verdict only.
    Quiet,
    /// A run with the steps that matter.
    Normal,
    /// Everything.
    Verbose,
}

/// Nobody reads standard output any more, e.g. behind `| head`.
#[derive(Clone, Copy, Debug)]
pub struct Closed;

/// The width of tables where there is no terminal to ask.
const USUAL_WIDTH: usize = 120;

impl Output {
    /// Looks at the options, the terminal and `NO_COLOR`.
    pub fn new(common: &Common) -> Output {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let colour = |terminal: bool| if terminal && !plain { Colour::Always } else { Colour::Never };
        let detail = match (common.quiet, common.verbose) {
            (true, _) => Detail::Quiet,
            (_, true) => Detail::Verbose,
            _ => Detail::Normal,
        };
        let width = match terminal_size::terminal_size_of(io::stdout()) {
            Some((terminal_size::Width(width), _)) if width > 0 => usize::from(width),
            _ => USUAL_WIDTH,
        };
        Output {
            format: common.format,
            detail,
            colour: colour(io::stdout().is_terminal()),
            width,
            colour_of_errors: colour(io::stderr().is_terminal()),
        }
    }

    /// Prints to standard output.
    pub fn print(&self, text: &str) -> Result<(), Closed> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|_| Closed)
    }

    /// Prints to standard error; if that is closed, there is nobody left to tell.
    pub fn complain(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Diagnostics as they go to standard error.
    pub fn diagnostics(&self, source: &Source, diagnostics: &[Diagnostic]) -> String {
        let limit = if self.detail == Detail::Verbose { usize::MAX } else { MOST_DIAGNOSTICS };
        report::diagnostics(source, diagnostics, limit, self.colour_of_errors)
    }

    /// Says what is wrong with a program that was refused; in JSON on standard output as well.
    pub fn refuse(&self, command: &str, refused: &Refused) -> Exit {
        self.complain(&self.diagnostics(&refused.source, &refused.diagnostics));
        if self.format == Format::Json {
            let line = report::refused_json(command, &refused.source, &refused.diagnostics);
            let _ = self.print(&(line + "\n"));
        }
        Exit::Error
    }

    /// Prints warnings about a program that was taken.
    pub fn warn(&self, input: &Input) {
        if !input.warnings.is_empty() && self.detail != Detail::Quiet {
            self.complain(&self.diagnostics(&input.source, &input.warnings));
        }
    }

    /// Complains about files, each with its problem.
    pub fn complain_about_all(&self, problems: Vec<(String, Diagnostic)>) -> Exit {
        problems.into_iter().for_each(|(name, problem)| self.complain_about(&name, problem));
        Exit::Error
    }

    /// Complains about something that is not in a source text.
    pub fn complain_about(&self, name: &str, diagnostic: Diagnostic) {
        self.complain(&report::diagnostic(&Source::new(name, ""), &diagnostic, self.colour_of_errors));
    }
}
