//! Answers as a web page: one self-contained file, or a fragment for another page.
//!
//! Everything that matters is in the HTML itself: the program, all steps as a table and as a picture, the
//! cycle, the fences, the counters. So a browser without scripts shows all of it. The script adds stepping
//! through a run. Text from programs is escaped wherever it is used.

mod compare;
mod cycle;
mod data;
mod execution;
mod fences;
mod idle;
mod lanes;
mod listing;
mod ring;
mod run;
mod sources;
mod text;
mod timeline;

use crate::account::{account, grouped, mebibytes};
use crate::{CoverageNote, Explain, FencesFinding, Finding, Report, explain, visible};
pub use compare::{models, outcomes};
pub use execution::execution;
use idle::Idle;
use listing::{Marks, lines_of, listing};
use palisade_base::{Diagnostic, Severity, Source};
use palisade_engine::{Note, Stats};
use palisade_memory::Model;
use palisade_trace::Evidence;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
pub(crate) use text::escape;
pub(crate) use timeline::{colour, drawn_run, left_out};

/// The style sheet of a page.
pub const STYLE: &str = include_str!("assets/style.css");
/// The script that steps through runs: `palisade.show(element)` activates all runs inside an element.
pub const SCRIPT: &str = concat!(
    include_str!("assets/highlight.js"),
    include_str!("assets/player.js"),
    include_str!("assets/execution.js"),
    include_str!("assets/viewer.js")
);

/// The program that an answer is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The program's text.
    pub source: &'a Source,
    /// Its language, by name.
    pub language: &'a str,
    /// Where its text is shown.
    pub text: ProgramText,
}

/// Where the text of a program is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProgramText {
    /// In the answer, as a listing.
    Here,
    /// Elsewhere on the page, for instance in an editor. Lines are marked there.
    Elsewhere,
}

/// The answer for one file, as HTML.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The file, as the user named it.
    pub file: String,
    /// The verdict, in a word.
    pub word: String,
    /// The reason, in a sentence. May be empty.
    pub why: String,
    /// Model, engine and time, for lists.
    pub account: String,
    /// Everything, without a heading.
    body: String,
}

/// The answer to a question. `number` is the number of the entry on its page.
pub fn answer<Q: Explain>(
    subject: Subject<'_>,
    finding: &Finding<'_, Q>,
    notes: &[Note],
    number: usize,
) -> Entry {
    let mut body = match &finding.evidence {
        Some(evidence) => run::run(subject, evidence, &name(number), Idle::Folded),
        None => program(subject, finding.coverage),
    };
    if let Some(coverage) = finding.coverage {
        let text = escape(&coverage.text(subject.source));
        write!(body, "<section class=\"coverage\"><h3>Coverage</h3>\n<pre>{text}</pre></section>\n")
            .expect("writing to a string");
    }
    if !finding.warnings.is_empty() {
        body.push_str(&diagnostics(subject.source, finding.warnings));
    }
    let details = Details {
        model: finding.model,
        engine: finding.outcome.engine,
        stats: &finding.outcome.stats,
        seconds: finding.seconds,
        peak_memory_bytes: finding.peak_memory_bytes,
    };
    body.push_str(&details.html(&crate::notes(subject.source, notes)));
    for line in finding.assumed().lines() {
        writeln!(body, "<p class=\"muted\">{}</p>", escape(line)).expect("writing to a string");
    }
    details.entry(finding, body)
}

/// The answer of `palisade fences`.
pub fn fences(subject: Subject<'_>, finding: &FencesFinding<'_>, number: usize) -> Entry {
    let details = Details {
        model: finding.model,
        engine: finding.engine,
        stats: finding.stats,
        seconds: finding.seconds,
        peak_memory_bytes: finding.peak_memory_bytes,
    };
    let body = fences::sets(subject, finding, &name(number)) + &details.html("");
    details.entry(finding, body)
}

/// The run of a witness file that was found valid.
pub fn replay(subject: Subject<'_>, file: &str, evidence: &Evidence<'_>) -> Entry {
    let why = explain(evidence);
    let body = run::run(subject, evidence, &name(0), Idle::Folded);
    let account = evidence.machine.model.name().to_uppercase();
    Entry { file: file.to_owned(), word: "valid".to_owned(), why, account, body }
}

/// A run that is only displayed, whatever it shows.
pub fn steps(subject: Subject<'_>, evidence: &Evidence<'_>) -> Entry {
    let bad = evidence.replay.violation.is_some();
    let why = if bad { explain(evidence) } else { String::new() };
    let body = run::run(subject, evidence, &name(0), Idle::Shown);
    let word = if bad { "unsafe" } else { "steps" }.to_owned();
    let account = evidence.machine.model.name().to_uppercase();
    Entry { file: subject.source.name().to_owned(), word, why, account, body }
}

/// A question that was abandoned without an answer, and the reason.
pub fn unknown(subject: Subject<'_>, why: &str) -> Entry {
    Entry {
        file: subject.source.name().to_owned(),
        word: "unknown".to_owned(),
        why: why.to_owned(),
        account: String::new(),
        body: listing(subject, &Marks::default()),
    }
}

/// A file that was refused, with everything that is wrong with it.
pub fn refused(subject: Subject<'_>, diagnostics: &[Diagnostic]) -> Entry {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let why = if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") };
    let mut marks = Marks::default();
    for diagnostic in diagnostics {
        marks.broken.extend(lines_of(subject.source, diagnostic.span()));
    }
    let mut body = self::diagnostics(subject.source, diagnostics);
    body.push_str(&listing(subject, &marks));
    Entry {
        file: subject.source.name().to_owned(),
        word: "error".to_owned(),
        why,
        account: String::new(),
        body,
    }
}

/// Diagnostics as a list.
pub fn diagnostics(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let mut html = String::from("<ul class=\"diagnostics\">\n");
    for diagnostic in diagnostics {
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let span = diagnostic.span();
        let place = source.position(span).zip(source.row(span)).zip(source.line_in_words(span));
        let place = place.map_or_else(String::new, |((place, row), line)| {
            format!(
                "<button type=\"button\" class=\"place\" data-line=\"{row}\" data-column=\"{}\">{}</button> ",
                place.column,
                escape(&line)
            )
        });
        let help = diagnostic.help.as_ref();
        let help = help
            .map_or_else(String::new, |help| format!("<br><span class=\"muted\">{}</span>", escape(help)));
        writeln!(
            html,
            "<li class=\"{severity}\"><strong>{severity}</strong> {place}{}{help} <code class=\"muted\">{}</code></li>",
            escape(&diagnostic.message),
            diagnostic.id
        )
        .expect("writing to a string");
    }
    html.push_str("</ul>\n");
    html
}

impl Entry {
    /// The entry as a fragment of a page.
    pub fn fragment(&self) -> String {
        let why = match self.why.as_str() {
            "" => String::new(),
            why => format!("<p class=\"why\">{}</p>\n", escape(why)),
        };
        let account = match self.account.as_str() {
            "" => String::new(),
            account => format!("<p class=\"account\">{}</p>\n", escape(account)),
        };
        format!(
            "<header class=\"verdict {0}\"><h2><span class=\"badge\">{0}</span> <span class=\"file\">{1}</span></h2>\n{why}{account}</header>\n{2}",
            escape(&self.word),
            escape(&visible(&self.file)),
            self.body
        )
    }
}

/// A whole page for one or more files. `title` is the command, e.g. `palisade check`. `maker` is what made
/// the page.
pub fn page(title: &str, entries: &[Entry], maker: &str) -> String {
    let of = match entries {
        [only] => format!("{}: {}", only.word, visible(&only.file)),
        _ => format!("{} files", entries.len()),
    };
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} – {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the answer</a>\n\
         <header class=\"top\"><p class=\"brand\">{LOGO}<span>Palisade</span></p><p class=\"command\"><code>{}</code></p></header>\n<main id=\"main\">\n",
        escape(&of),
        escape(title),
        escape(title)
    );
    if let [only] = entries {
        write!(html, "<article id=\"{}\">\n{}</article>\n", name(0), only.fragment())
            .expect("writing to a string");
    } else {
        html.push_str(&list(entries));
        for (number, entry) in entries.iter().enumerate() {
            let (id, fragment) = (name(number), entry.fragment());
            write!(html, "<article id=\"{id}\">\n{fragment}<p class=\"back\"><a href=\"#main\">Back to the list</a></p></article>\n")
                .expect("writing to a string");
        }
    }
    write!(
        html,
        "</main>\n<footer class=\"foot\">Made by {}. Keys: ← → one step, Home and End, space plays.</footer>\n<script>\n{SCRIPT}\npalisade.show(document);\n</script>\n</body>\n</html>\n",
        escape(maker)
    )
    .expect("writing to a string");
    html
}

/// The logo: a palisade.
pub const LOGO: &str = "<svg class=\"logo\" viewBox=\"0 0 24 24\" width=\"24\" height=\"24\" aria-hidden=\"true\"><path d=\"M3 21V7l2.5-4L8 7v14zM9.5 21V7L12 3l2.500 4v14zM16 21V7l2.500-4L21 7v14z\"/><path class=\"rail\" d=\"M1.500 10.500h21M1.500 16.500h21\"/></svg>";

/// The list of a page with several files.
fn list(entries: &[Entry]) -> String {
    let mut html = String::from("<nav aria-label=\"Files\"><p class=\"counts\">");
    let mut words: Vec<&str> = Vec::new();
    for entry in entries {
        if !words.contains(&entry.word.as_str()) {
            words.push(&entry.word);
        }
    }
    for word in words {
        let count = entries.iter().filter(|entry| entry.word == word).count();
        write!(html, "<span class=\"count {0}\"><strong>{count}</strong> {0}</span> ", escape(word))
            .expect("writing to a string");
    }
    html.push_str("</p>\n<div class=\"wide\"><table class=\"files\"><thead><tr><th scope=\"col\">verdict</th><th scope=\"col\">file</th><th scope=\"col\">why</th><th scope=\"col\">how</th></tr></thead><tbody>\n");
    for (number, entry) in entries.iter().enumerate() {
        writeln!(
            html,
            "<tr class=\"{0}\"><td><span class=\"badge\">{0}</span></td><td><a href=\"#{1}\">{2}</a></td><td>{3}</td><td class=\"muted\">{4}</td></tr>",
            escape(&entry.word),
            name(number),
            escape(&visible(&entry.file)),
            escape(&entry.why),
            escape(&entry.account)
        )
        .expect("writing to a string");
    }
    html.push_str("</tbody></table></div></nav>\n");
    html
}

fn name(number: usize) -> String {
    format!("f{number}")
}

fn program(subject: Subject<'_>, coverage: Option<&CoverageNote>) -> String {
    let unreached = coverage.map(|coverage| coverage.never_rows(subject.source)).unwrap_or_default();
    listing(subject, &Marks { unreached, ..Marks::default() })
}

/// How an answer was found.
struct Details<'a> {
    model: Model,
    engine: &'a str,
    stats: &'a Stats,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
}

impl Details<'_> {
    fn entry(&self, report: &impl Report, body: String) -> Entry {
        let account = account(self.model, self.engine, self.stats, self.seconds, None, false);
        let (file, word) = (report.subject().to_owned(), report.word().to_owned());
        Entry { file, word, why: report.why().unwrap_or_default(), account, body }
    }

    /// All counters, and the notes of the engine.
    fn html(&self, notes: &str) -> String {
        let mut html = String::from("<section class=\"stats\"><h3>How the answer was found</h3>\n<dl>\n");
        let mut item = |name: &str, value: &str| {
            writeln!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value))
                .expect("writing to a string");
        };
        item("memory model", &self.model.name().to_uppercase());
        item("engine", self.engine);
        item("time", &format!("{:.2} s", self.seconds));
        if let Some(bytes) = self.peak_memory_bytes {
            item("peak memory", &mebibytes(bytes));
        }
        for (name, value) in self.stats.iter() {
            item(&name.replace('_', " "), &grouped(value));
        }
        html.push_str("</dl>\n");
        if !notes.is_empty() {
            writeln!(html, "<pre class=\"engine-notes\">{}</pre>", escape(notes))
                .expect("writing to a string");
        }
        html.push_str("</section>\n");
        html
    }
}
