//! Standard output and standard error, and what happens when they cannot be written.
//!
//! - If the reader of standard output has gone away (`| head`), the rest is not written, and the exit code is
//!   that of the answer.
//! - If standard output cannot be written for another reason (a full disk), this is reported, and the exit
//!   code is 2. [`Output`] remembers it, and `main` asks at the end.

use crate::args::{Format, Palisade};
use crate::exit::Exit;
use crate::ran_out::{LastWords, Question};
pub use palisade::report::Detail;
use palisade::report::{self, Colour, Layout, Report};
use palisade::{Diagnostic, Input, Refused, Source};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// At most this many diagnostics are printed per file, unless more are requested.
const MAX_DIAGNOSTICS: usize = 50;

/// Where output goes, and how it looks.
#[derive(Debug)]
pub struct Output {
    /// The command, as typed.
    command: &'static str,
    /// Text or JSON.
    pub format: Format,
    /// How much to print.
    pub detail: Detail,
    /// Colour on standard output.
    pub colour: Colour,
    /// Columns of standard output. Without a limit if it is not a terminal.
    pub width: usize,
    /// Whether standard output is a terminal.
    is_terminal: bool,
    colour_of_errors: Colour,
    /// Nothing more can be printed.
    closed: AtomicBool,
    /// Something could not be printed, for a reason other than a reader that has gone away.
    failed: AtomicBool,
    /// The first problem because of which there is no answer.
    problem: OnceLock<String>,
    /// What was printed to standard output and standard error, if it is kept instead.
    kept: Option<Mutex<(String, String)>>,
}

/// The width of tables on a terminal that does not report its own.
const USUAL_WIDTH: usize = 120;

impl Output {
    /// Looks at the options, the terminal and `NO_COLOR`.
    pub fn new(palisade: &Palisade) -> Output {
        let common = &palisade.common;
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
            _ if io::stdout().is_terminal() => USUAL_WIDTH,
            _ => report::UNLIMITED,
        };
        Output {
            command: palisade.command.name(),
            format: common.format,
            detail,
            colour: colour(io::stdout().is_terminal()),
            width,
            is_terminal: io::stdout().is_terminal(),
            colour_of_errors: colour(io::stderr().is_terminal()),
            closed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            problem: OnceLock::new(),
            kept: None,
        }
    }

    /// An output that looks the same, and whose text is kept and printed later, perhaps by another process.
    pub fn keeping(&self) -> Output {
        Output {
            closed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            problem: OnceLock::new(),
            kept: Some(Mutex::default()),
            ..*self
        }
    }

    /// What was kept: the text for standard output, and that for standard error.
    pub fn into_kept(self) -> (String, String) {
        self.kept
            .map_or_else(Default::default, |kept| kept.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether text is kept.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    fn keep(&self, keep: impl FnOnce(&mut (String, String))) -> bool {
        let Some(kept) = &self.kept else { return false };
        keep(&mut kept.lock().unwrap_or_else(PoisonError::into_inner));
        true
    }

    /// Prints to standard output, as long as that is possible.
    pub fn print(&self, text: &str) {
        if self.is_closed() {
            return;
        }
        let text = match self.format {
            Format::Text => Cow::Borrowed(text),
            Format::Json => report::visible_json(text),
        };
        if self.keep(|(out, _)| out.push_str(&text)) {
            return;
        }
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            self.closed.store(true, Ordering::Relaxed);
            if let Some(problem) = unwritten(&error) {
                self.failed.store(true, Ordering::Relaxed);
                self.complain_about(STANDARD_OUTPUT, problem);
            }
        }
    }

    /// Prints text that is a program's own. On a terminal, control characters in it have no effect; files and pipes get
    /// them unchanged.
    pub fn print_content(&self, text: &str) {
        match self.is_terminal {
            true => self.print(&report::visible_text(text)),
            false => self.print(text),
        }
    }

    /// How text is laid out.
    pub fn layout(&self) -> Layout {
        Layout { detail: self.detail, width: self.width, colour: self.colour }
    }

    /// A report in the requested format.
    pub fn rendered(&self, report: &impl Report) -> String {
        match self.format {
            Format::Json => report.json() + "\n",
            Format::Text => report.text(&self.layout()),
        }
    }

    /// What is printed about a file if time or memory runs out before there is an answer.
    pub fn last_words(&self, file: &std::path::Path, question: Question) -> LastWords {
        LastWords {
            file: file.display().to_string(),
            format: self.format,
            colour: self.colour,
            question,
            start: Instant::now(),
        }
    }

    /// Whether nothing more can be printed, e.g. because of `| head`.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The exit of the command. An answer that could not be written does not count as one.
    pub fn ended(&self, exit: Exit) -> Exit {
        if self.failed.load(Ordering::Relaxed) { Exit::Error } else { exit }
    }

    /// Prints to standard error. If that is closed, nothing can be done about it.
    pub fn complain(&self, text: &str) {
        if self.keep(|(_, err)| err.push_str(text)) {
            return;
        }
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Diagnostics as printed to standard error.
    pub fn diagnostics(&self, source: &Source, diagnostics: &[Diagnostic]) -> String {
        let limit = if self.detail == Detail::Verbose { usize::MAX } else { MAX_DIAGNOSTICS };
        report::diagnostics(source, diagnostics, limit, self.colour_of_errors)
    }

    /// Reports why there is no answer for a file. With JSON, this goes to standard output as well.
    pub fn refuse(&self, refused: &Refused) -> Exit {
        refused.diagnostics.iter().for_each(|problem| self.note(refused.source.name(), problem));
        self.complain(&self.diagnostics(&refused.source, &refused.diagnostics));
        self.print(&self.refused(&refused.source, &refused.diagnostics));
        Exit::Error
    }

    /// The same for something that is not in a source text.
    pub fn refuse_about(&self, name: &str, problem: Diagnostic) -> Exit {
        self.note(name, &problem);
        self.print(&self.refused(&Source::new(name, ""), std::slice::from_ref(&problem)));
        self.complain_about(name, problem);
        Exit::Error
    }

    fn note(&self, name: &str, problem: &Diagnostic) {
        self.problem.get_or_init(|| format!("{name}: {}", problem.message));
    }

    /// The first problem because of which there is no answer.
    pub fn problem(&self) -> Option<&str> {
        self.problem.get().map(String::as_str)
    }

    /// The same for files, each with its problem.
    pub fn refuse_all(&self, problems: Vec<(String, Diagnostic)>) -> Exit {
        problems.into_iter().for_each(|(name, problem)| {
            self.refuse_about(&name, problem);
        });
        Exit::Error
    }

    /// What is printed to standard output for a file without an answer: nothing, or a JSON object.
    pub fn refused(&self, source: &Source, diagnostics: &[Diagnostic]) -> String {
        match self.format {
            Format::Text => String::new(),
            Format::Json => report::refused_json(self.command, source, diagnostics) + "\n",
        }
    }

    /// Prints warnings about a program that was accepted.
    pub fn warn(&self, input: &Input) {
        if !input.warnings.is_empty() && self.detail != Detail::Quiet {
            self.complain(&self.diagnostics(&input.source, &input.warnings));
        }
    }

    /// Prints some of the warnings about a program that was accepted.
    pub fn warn_where(&self, input: &Input, is_wanted: impl Fn(&Diagnostic) -> bool) {
        let wanted: Vec<Diagnostic> =
            input.warnings.iter().filter(|found| is_wanted(found)).cloned().collect();
        if !wanted.is_empty() && self.detail != Detail::Quiet {
            self.complain(&self.diagnostics(&input.source, &wanted));
        }
    }

    /// Reports a problem that is not in a source text.
    pub fn complain_about(&self, name: &str, diagnostic: Diagnostic) {
        self.complain(&report::diagnostic(&Source::new(name, ""), &diagnostic, self.colour_of_errors));
    }
}

const STANDARD_OUTPUT: &str = "standard output";

/// Why standard output could not be written. `None` if its reader has gone away.
fn unwritten(error: &io::Error) -> Option<Diagnostic> {
    let is_failure = error.kind() != io::ErrorKind::BrokenPipe;
    is_failure.then(|| Diagnostic::error("unwritable-file", format!("cannot be written: {error}")))
}

/// Prints the text that replaces running a command: help, the version, or what is wrong with the command
/// line. Returns the exit code.
pub fn print_instead(message: &clap::Error) -> u8 {
    let printed = message.print().and_then(|()| io::stdout().flush());
    match printed.err().and_then(|error| unwritten(&error)) {
        Some(problem) => {
            let problem = report::diagnostic(&Source::new(STANDARD_OUTPUT, ""), &problem, Colour::Never);
            // If standard error cannot be written either, only the exit code remains.
            let _ = io::stderr().lock().write_all(problem.as_bytes());
            Exit::Error.code()
        }
        None => u8::try_from(message.exit_code()).unwrap_or(Exit::Error.code()),
    }
}
