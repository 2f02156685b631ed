//! Many files at a time: one line each in the order of their names, then a summary.
//!
//! Files are handed to workers one by one. The results are put back in order before they are printed, so that
//! the output does not depend on timing.
//!
//! With several processes, each of them is handed files one by one, in the same way.

use super::Request;
use super::machine::{self, Expected, Remark};
use super::one::{Checked, Portion, check, failure, panicked};
use crate::args::Format;
use crate::exit::Exit;
use crate::expect::Expectations;
use crate::files::{self, InputFile};
use crate::group::{self, Role};
use crate::html::Page;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use palisade::report::html::{self, Entry, ProgramText, Subject};
use palisade::report::{self, Compared, Disagreement, FileResult, FileVerdict};
use palisade::{Diagnostic, InputLanguage, Source};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// Workers recurse over programs as deeply as the main thread does.
const STACK: usize = 16 << 20;

/// The result for one file, ready to be printed.
#[derive(Serialize, Deserialize)]
struct Line {
    out: String,
    err: String,
    exit: Exit,
    /// Its part of the web page, if one was requested.
    page: Option<Entry>,
    /// Its part of the output for other programs, if any was requested.
    remark: Option<Remark>,
    /// `None` for a file that is not a program and was not meant to be one.
    verdict: Option<FileVerdict>,
    seconds: f64,
    /// Whether the program states no property, and that matters.
    is_without_property: bool,
}

/// Checks many files.
pub(super) fn run(
    found: &[InputFile],
    request: &Request<'_>,
    expectations: Option<&Expectations>,
    output: &Output,
) -> Exit {
    let start = Instant::now();
    let mut tally = Tally {
        output,
        found,
        done: 0,
        added: 0,
        results: Vec::new(),
        remarks: Vec::new(),
        page: Page::new(request.args.html.as_deref()),
        exit: Exit::Fine,
        lost: None,
    };
    if request.role != Role::Alone {
        return shared(tally, request, expectations, start);
    }
    let workers = request.limits.jobs.clamp(1, found.len().max(1));
    let meter = Meter::new(output.detail == Detail::Quiet);
    let next = AtomicUsize::new(0);
    let (sender, lines) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            let work = move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= found.len() || request.limits.stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // The receiver goes away only when the output is no longer read.
                    if sender.send((index, look(index, &found[index], request, workers, output))).is_err() {
                        break;
                    }
                }
            };
            std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, work)
                .expect("the host lets a process have one thread per core");
        }
        drop(sender);
        let mut early = BTreeMap::new();
        for (index, line) in lines {
            early.insert(index, line);
            while let Some(line) = early.remove(&tally.done) {
                meter.wipe();
                tally.add(line);
                meter.files(tally.done, found.len());
            }
            if output.is_closed() {
                request.limits.stop.store(true, Ordering::Relaxed);
            }
        }
        // Stopped early: the known results of later files are reported as well.
        for (index, line) in early {
            tally.done = index;
            tally.add(line);
        }
    });
    drop(meter);
    tally.finish(request, expectations, start)
}

/// Checks many files together with other processes.
fn shared(
    mut tally: Tally<'_>,
    request: &Request<'_>,
    expectations: Option<&Expectations>,
    start: Instant,
) -> Exit {
    let (found, output) = (tally.found, tally.output);
    let meter = Meter::new(output.detail == Detail::Quiet || request.role == Role::Follows);
    // Each file is one process's alone.
    let (options, limits) = (request.options.clone(), request.limits.clone());
    let alone = Request { args: request.args, common: request.common, options, limits, role: Role::Alone };
    let answer = |index: usize| {
        let line = look(index, &found[index], &alone, 1, output);
        serde_json::to_vec(&line).expect("a line has only string keys")
    };
    let mut deliver = |index: usize, line: Vec<u8>| {
        let line = serde_json::from_slice(&line).expect("another process runs the same version");
        meter.wipe();
        tally.done = index;
        tally.add(line);
        meter.files(tally.done, found.len());
        !output.is_closed()
    };
    let shared = group::share_out(request.common, found.len(), &request.limits.stop, &answer, &mut deliver);
    drop(meter);
    if request.role == Role::Follows {
        return Exit::Fine;
    }
    if let Err(lost) = shared {
        tally.lost = Some(lost);
    }
    tally.finish(request, expectations, start)
}

/// Reads and checks one file, and puts the result into words.
fn look(index: usize, found: &InputFile, request: &Request<'_>, workers: usize, output: &Output) -> Line {
    let start = Instant::now();
    let (mut out, mut err) = (String::new(), String::new());
    let mut page = None;
    let refused_page = |source: &Source, diagnostics: &[Diagnostic]| {
        let language = request.args.reading.input.map_or("", InputLanguage::name);
        let subject = Subject { source, language, text: ProgramText::Here };
        request.args.html.as_ref().map(|_| html::refused(subject, diagnostics))
    };
    let portion = if output.detail == Detail::Verbose { Portion::Everything } else { Portion::Headline };
    let limits = request.limits.per_file(workers);
    // A bug triggered by one file must not cost the answers for all others.
    let checked = catch_unwind(AssertUnwindSafe(|| check(found, request, &limits, output)));
    let checked = checked.unwrap_or_else(|_| Checked::Panicked(found.path.display().to_string()));
    let remark = Remark::wanted(&checked, request.args);
    let is_without_property = matches!(&checked, Checked::Answered(answered) if !answered.has_property);
    let (exit, verdict) = match checked {
        Checked::Answered(answered) => {
            out = answered.rendered(portion, &limits, output);
            if output.detail == Detail::Verbose {
                err = output.diagnostics(&answered.input.source, &answered.input.warnings);
            }
            page = request.args.html.as_ref().map(|_| answered.html(&[], index));
            (answered.exit(), Some(FileVerdict::from(&answered.answer.outcome.verdict)))
        }
        Checked::Refused(refused) => {
            err = output.diagnostics(&refused.source, &refused.diagnostics);
            out = output.refused(&refused.source, &refused.diagnostics);
            page = refused_page(&refused.source, &refused.diagnostics);
            (Exit::Error, Some(FileVerdict::Error))
        }
        Checked::Skipped | Checked::TookPart => (Exit::Fine, None),
        Checked::RanOut(last_words, what) => {
            out = last_words.say(what);
            (Exit::Unknown, Some(FileVerdict::Unknown))
        }
        Checked::Failed(name, error) => {
            let source = Source::new(name, "");
            err = output.diagnostics(&source, &[failure(&error)]);
            out = output.refused(&source, &[failure(&error)]);
            page = refused_page(&source, &[failure(&error)]);
            (Exit::Error, Some(FileVerdict::Error))
        }
        Checked::Panicked(name) => {
            let source = Source::new(name, "");
            err = output.diagnostics(&source, &[panicked()]);
            out = output.refused(&source, &[panicked()]);
            page = refused_page(&source, &[panicked()]);
            (Exit::Error, Some(FileVerdict::Error))
        }
    };
    Line {
        out,
        err,
        exit,
        page,
        remark,
        verdict,
        seconds: start.elapsed().as_secs_f64(),
        is_without_property,
    }
}

/// The results so far.
struct Tally<'a> {
    output: &'a Output,
    found: &'a [InputFile],
    /// The index of the next file.
    done: usize,
    /// How many files have been added.
    added: usize,
    /// Index and result.
    results: Vec<(usize, FileResult)>,
    /// Index and result for other programs.
    remarks: Vec<(usize, Remark)>,
    page: Page<'a>,
    exit: Exit,
    /// What happened if a process was lost.
    lost: Option<String>,
}

impl Tally<'_> {
    /// Prints the line of the next file, and counts it.
    fn add(&mut self, line: Line) {
        self.output.complain(&line.err);
        self.output.print(&line.out);
        self.exit = self.exit.worst(line.exit);
        line.page.into_iter().for_each(|entry| self.page.add(|_| entry));
        self.remarks.extend(line.remark.map(|remark| (self.done, remark)));
        if let Some(verdict) = line.verdict {
            let file = self.found[self.done].path.display().to_string();
            let is_without_property = line.is_without_property;
            let result = FileResult { file, verdict, seconds: line.seconds, is_without_property };
            self.results.push((self.done, result));
        }
        self.done += 1;
        self.added += 1;
    }

    /// Compares, prints the summary, writes the table, and returns the exit of the command.
    fn finish(mut self, request: &Request<'_>, expectations: Option<&Expectations>, start: Instant) -> Exit {
        let stopped = request.limits.stop.load(Ordering::Relaxed);
        let left = self.found.len() - self.added;
        if left > 0 {
            self.exit = self.exit.worst(Exit::Unknown);
        }
        if let Some(path) = &request.args.tsv {
            let rows = self.results.iter().map(|(index, r)| {
                format!("{}\t{}\n", report::visible(&self.found[*index].key), r.verdict.name())
            });
            let table = "file\tverdict\n".to_owned() + &rows.collect::<String>();
            if let Err(error) = files::write(path, &table) {
                self.output.complain_about(&path.display().to_string(), error);
                return Exit::Error;
            }
        }
        let compared = expectations.map(|expectations| self.compare(expectations, stopped));
        if !self.page.write(self.output)
            || !self.write_for_machines(request, expectations, compared.as_ref(), start)
        {
            return Exit::Error;
        }
        if let (Some(compared), true) = (&compared, left == 0 && self.exit != Exit::Error) {
            // An expected `unsafe` is not a failure. An unexpected `safe` is one.
            self.exit = if compared.disagreements.is_empty() { Exit::Fine } else { Exit::Violated };
        }
        if self.output.format == Format::Text && self.output.detail != Detail::Quiet {
            let results: Vec<FileResult> = self.results.into_iter().map(|(_, result)| result).collect();
            if let Some(lost) = &self.lost {
                self.output.complain(&format!("{lost}\n"));
            }
            let summary = report::summary(&results, compared.as_ref(), left, start.elapsed().as_secs_f64());
            self.output.print(&format!("\n{summary}"));
            return self.exit;
        }
        // Programs that read the output look at the exit code. People who wonder about it look here.
        match &self.lost {
            Some(lost) => self.output.complain(&format!("{lost}; {left} more were not checked\n")),
            None if left > 0 => self.output.complain(&format!("stopped before {left} more\n")),
            None => {}
        }
        if let Some(compared) = &compared {
            for d in &compared.disagreements {
                self.output.complain(&format!(
                    "{}: expected {}, got {}\n",
                    report::visible(&d.file),
                    d.expected.name(),
                    d.verdict.name()
                ));
            }
            self.output.complain(&format!("{}\n", compared.in_words()));
        }
        self.exit
    }

    /// Writes the output for other programs. Returns false if it cannot be written.
    fn write_for_machines(
        &self,
        request: &Request<'_>,
        expectations: Option<&Expectations>,
        compared: Option<&Compared>,
        start: Instant,
    ) -> bool {
        let files: Vec<String> =
            self.remarks.iter().map(|(index, _)| self.found[*index].path.display().to_string()).collect();
        let entries = self.remarks.iter().zip(&files).map(|((index, remark), file)| {
            let key = self.key(*index);
            let result = self.results.iter().find(|(other, _)| other == index);
            machine::Entry {
                file,
                seconds: result.map_or(0.0, |(_, result)| result.seconds),
                remark,
                expected: match expectations {
                    None => Expected::Safe,
                    Some(all) => all.of(key).map_or(Expected::Nothing, Expected::Verdict),
                },
            }
        });
        let mut entries: Vec<machine::Entry<'_>> = entries.collect();
        // A file that does not exist is not as expected.
        let missing = Remark::missing();
        let disagreements = compared.map_or(&[][..], |compared| &compared.disagreements);
        entries.extend(disagreements.iter().filter(|d| d.verdict == FileVerdict::Missing).map(|d| {
            machine::Entry {
                file: &d.file,
                seconds: 0.0,
                remark: &missing,
                expected: Expected::Verdict(d.expected),
            }
        }));
        machine::write(request.args, &entries, start.elapsed().as_secs_f64(), self.output)
    }

    /// The name of a file in tables of expectations.
    fn key(&self, index: usize) -> &str {
        self.found[index].key.trim_start_matches("./")
    }

    /// Which expectations were not met. A file that was expected but does not exist does not meet its
    /// expectation either, unless the check was stopped.
    fn compare(&self, expectations: &Expectations, stopped: bool) -> Compared {
        let verdicts: BTreeMap<&str, FileVerdict> =
            self.results.iter().map(|(index, result)| (self.key(*index), result.verdict)).collect();
        let mut compared = Compared::default();
        for (file, expected) in expectations.iter() {
            let verdict = match verdicts.get(file) {
                Some(&verdict) => verdict,
                None if stopped => continue,
                None => FileVerdict::Missing,
            };
            compared.expectations += 1;
            if verdict != expected {
                compared.disagreements.push(Disagreement { file: file.to_owned(), expected, verdict });
            }
        }
        let unexpected = |(index, _): &&(usize, FileResult)| expectations.of(self.key(*index)).is_none();
        compared.unexpected = self.results.iter().filter(unexpected).count();
        compared
    }
}
