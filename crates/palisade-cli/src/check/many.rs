//! Many files at a time: one line each in the order of their names, then a summary.
//!
//! Files are handed to workers one by one; what they find is put back in order before it is printed, so that the output does not
//! depend on timing.

use super::Asked;
use super::machine::{self, Remark};
use super::one::{Checked, Tell, check, failure, panicked};
use crate::args::Format;
use crate::exit::Exit;
use crate::expect::Expectations;
use crate::files::{self, Found};
use crate::html::Page;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use palisade::report::html::{self, Entry, Subject};
use palisade::report::{self, Disagreement, FileResult};
use palisade::{Diagnostic, Language, Silent, Source};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// Workers recurse over programs as deeply as the main thread does.
const STACK: usize = 16 << 20;

/// How one file went, ready to be printed.
struct Line {
    out: String,
    err: String,
    exit: Exit,
    /// Its part of a web page, if there is to be one.
    page: Option<Entry>,
    /// For files that other programs read, if there are to be any.
    remark: Option<Remark>,
    /// `None` for a file that is no program and was not meant to be one.
    verdict: Option<&'static str>,
    seconds: f64,
}

/// Checks many files.
pub(super) fn run(
    found: &[Found],
    asked: &Asked<'_>,
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
        page: Page::new(asked.args.html.as_deref()),
        exit: Exit::Fine,
        closed: false,
    };
    let workers = asked.limits.jobs.clamp(1, found.len().max(1));
    let meter = Meter::new(output.detail == Detail::Quiet);
    let next = AtomicUsize::new(0);
    let (sender, lines) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            let work = move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= found.len() || asked.limits.stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // The receiver goes away only when nobody reads the output any more.
                    if sender.send((index, look(index, &found[index], asked, workers, output))).is_err() {
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
            if tally.closed {
                asked.limits.stop.store(true, Ordering::Relaxed);
            }
        }
        // Stopped in the middle: what is known of later files is told as well.
        for (index, line) in early {
            tally.done = index;
            tally.add(line);
        }
    });
    drop(meter);
    tally.finish(asked, expectations, start)
}

/// Reads and checks one file, and puts the result into words.
fn look(index: usize, found: &Found, asked: &Asked<'_>, workers: usize, output: &Output) -> Line {
    let start = Instant::now();
    let (mut out, mut err) = (String::new(), String::new());
    let mut page = None;
    let refused_page = |source: &Source, diagnostics: &[Diagnostic]| {
        let language = asked.args.input.map_or("", Language::name);
        asked.args.html.as_ref().map(|_| html::refused(Subject { source, language }, diagnostics))
    };
    let tell = if output.detail == Detail::Verbose { Tell::Everything } else { Tell::Headline };
    // A bug that one file brings to light must not cost the answers for all others.
    let checked =
        catch_unwind(AssertUnwindSafe(|| check(found, asked, || asked.limits.budget(workers), &Silent)));
    let checked = checked.unwrap_or_else(|_| Checked::Panicked(found.path.display().to_string()));
    let remark = Remark::wanted(&checked, asked.args, output);
    let (exit, verdict) = match checked {
        Checked::Answered(answered) => {
            out = answered.told(tell, output);
            if output.detail == Detail::Verbose {
                err = output.diagnostics(&answered.input.source, &answered.input.warnings);
            }
            page = asked.args.html.as_ref().map(|_| answered.html(&[], index));
            (answered.exit(), Some(answered.answer.outcome.verdict.word()))
        }
        Checked::Refused(refused) => {
            err = output.diagnostics(&refused.source, &refused.diagnostics);
            if output.format == Format::Json {
                out = report::refused_json("check", &refused.source, &refused.diagnostics) + "\n";
            }
            page = refused_page(&refused.source, &refused.diagnostics);
            (Exit::Error, Some("error"))
        }
        Checked::Skipped => (Exit::Fine, None),
        Checked::Failed(name, error) => {
            let source = Source::new(name, "");
            err = output.diagnostics(&source, &[failure(&error)]);
            page = refused_page(&source, &[failure(&error)]);
            (Exit::Error, Some("error"))
        }
        Checked::Panicked(name) => {
            let source = Source::new(name, "");
            err = output.diagnostics(&source, &[panicked()]);
            page = refused_page(&source, &[panicked()]);
            (Exit::Error, Some("error"))
        }
    };
    Line { out, err, exit, page, remark, verdict, seconds: start.elapsed().as_secs_f64() }
}

/// What is known so far.
struct Tally<'a> {
    output: &'a Output,
    found: &'a [Found],
    /// The index of the next file.
    done: usize,
    /// How many files have been added.
    added: usize,
    /// Index and result.
    results: Vec<(usize, FileResult)>,
    /// Index and what other programs want to know.
    remarks: Vec<(usize, Remark)>,
    page: Page<'a>,
    exit: Exit,
    /// Whether standard output is closed.
    closed: bool,
}

impl Tally<'_> {
    /// Prints the line of the next file and counts it.
    fn add(&mut self, line: Line) {
        self.output.complain(&line.err);
        if !line.out.is_empty() && !self.closed {
            self.closed = self.output.print(&line.out).is_err();
        }
        self.exit = self.exit.worst(line.exit);
        line.page.into_iter().for_each(|entry| self.page.add(|_| entry));
        self.remarks.extend(line.remark.map(|remark| (self.done, remark)));
        if let Some(verdict) = line.verdict {
            let file = self.found[self.done].path.display().to_string();
            self.results.push((self.done, FileResult { file, verdict, seconds: line.seconds }));
        }
        self.done += 1;
        self.added += 1;
    }

    /// Compares, prints the summary, writes the table, and says how it all ended.
    fn finish(mut self, asked: &Asked<'_>, expectations: Option<&Expectations>, start: Instant) -> Exit {
        let stopped = asked.limits.stop.load(Ordering::Relaxed);
        let left = self.found.len() - self.added;
        if left > 0 {
            self.exit = self.exit.worst(Exit::Unknown);
        }
        if let Some(path) = &asked.args.tsv {
            let rows =
                self.results.iter().map(|(index, r)| format!("{}\t{}\n", self.found[*index].key, r.verdict));
            let table = "file\tverdict\n".to_owned() + &rows.collect::<String>();
            if let Err(error) = files::write(path, &table) {
                self.output.complain_about(&path.display().to_string(), error);
                return Exit::Error;
            }
        }
        if !self.page.write(self.output) || !self.write_for_machines(asked, expectations, start) {
            return Exit::Error;
        }
        let compared = expectations.map(|expectations| self.compare(expectations, stopped));
        if let (Some((_, disagreements)), true) = (&compared, left == 0 && self.exit != Exit::Error) {
            // An expected `unsafe` is no failure, an unexpected `safe` is one.
            self.exit = if disagreements.is_empty() { Exit::Fine } else { Exit::Violated };
        }
        if self.output.format == Format::Text && self.output.detail != Detail::Quiet && !self.closed {
            let results: Vec<FileResult> = self.results.into_iter().map(|(_, result)| result).collect();
            let compared = compared.as_ref().map(|(count, disagreements)| (*count, disagreements.as_slice()));
            let summary = report::summary(&results, compared, left, start.elapsed().as_secs_f64());
            let _ = self.output.print(&format!("\n{summary}"));
        } else if let Some((count, disagreements)) = &compared {
            // Programs that read the output look at the exit code; people who wonder why look here.
            for d in disagreements {
                self.output.complain(&format!("{}: expected {}, got {}\n", d.file, d.expected, d.verdict));
            }
            let as_expected = count - disagreements.len();
            self.output.complain(&format!("{as_expected} of {count} verdicts as expected\n"));
        }
        self.exit
    }

    /// Writes what other programs read. False if it cannot be written.
    fn write_for_machines(
        &self,
        asked: &Asked<'_>,
        expectations: Option<&Expectations>,
        start: Instant,
    ) -> bool {
        let files: Vec<String> =
            self.remarks.iter().map(|(index, _)| self.found[*index].path.display().to_string()).collect();
        let entries = self.remarks.iter().zip(&files).map(|((index, remark), file)| {
            let key = self.found[*index].key.trim_start_matches("./");
            let expected = expectations.and_then(|all| all.iter().find(|(file, _)| *file == key));
            let result = self.results.iter().find(|(other, _)| other == index);
            machine::Entry {
                file,
                seconds: result.map_or(0.0, |(_, result)| result.seconds),
                remark,
                expected: expected.map(|(_, expected)| expected),
            }
        });
        let entries: Vec<machine::Entry<'_>> = entries.collect();
        machine::write(asked.args, &entries, start.elapsed().as_secs_f64(), self.output)
    }

    /// How many expectations were compared, and which were not met. Files that were expected but are not there do not
    /// meet them either, unless the check was stopped.
    fn compare(&self, expectations: &Expectations, stopped: bool) -> (usize, Vec<Disagreement>) {
        let verdicts: BTreeMap<&str, &'static str> = self
            .results
            .iter()
            .map(|(index, result)| (self.found[*index].key.trim_start_matches("./"), result.verdict))
            .collect();
        let mut compared = 0;
        let mut disagreements = Vec::new();
        for (file, expected) in expectations.iter() {
            let verdict = match verdicts.get(file) {
                Some(verdict) => verdict,
                None if stopped => continue,
                None => "missing",
            };
            compared += 1;
            if verdict != expected {
                disagreements.push(Disagreement {
                    file: file.to_owned(),
                    expected: expected.to_owned(),
                    verdict: verdict.to_owned(),
                });
            }
        }
        (compared, disagreements)
    }
}
