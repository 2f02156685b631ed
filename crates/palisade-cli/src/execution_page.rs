//! `palisade run --html FILE`: the execution that shows the most important finding, as a web page.
//!
//! The schedule is run again in a session of its own, so that the report does not change. The page shows an execution
//! only if it took the same turns and shows the same finding.

use crate::files;
use palisade::harness::execution::Execution;
use palisade::harness::schedule::Command;
use palisade::harness::session::Session;
use palisade::harness::timeline::Timeline;
use palisade::report::{RunFinding, SourcePlace, html, visible};
use palisade::{Diagnostic, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The page if nothing was found.
pub const NOTHING: &str = "Nothing was found, so there is no execution to show.";

const NOT_REPEATED: &str = "The execution that shows this could not be repeated, so its steps are not known.";

/// Runs a schedule again in a fresh session. The findings of `session` are what it has to show.
pub fn steps(session: &mut Session, fresh: &mut Session, command: &Command) -> Result<Timeline, String> {
    let (execution, recording) = fresh.record(command).ok_or(NOT_REPEATED)?;
    if execution.diverged.is_some() || !shows_the_same(session, fresh, &execution) {
        return Err(NOT_REPEATED.to_owned());
    }
    let numbers = session.thread_numbers(&execution);
    Ok(Timeline::new(&execution, &recording, &numbers, |place| fresh.place(place)))
}

/// Whether an execution shows the most important finding.
fn shows_the_same(session: &mut Session, fresh: &mut Session, execution: &Execution) -> bool {
    let failures = &session.findings.failures;
    let failure = failures.iter().find(|found| !found.what.is_inconclusive).or_else(|| {
        let only_failures = session.findings.violations.is_empty() && session.findings.races.is_empty();
        failures.first().filter(|_| only_failures)
    });
    match failure.map(|found| found.what.clone()) {
        // The threads' numbers depend on what a session has seen before.
        Some(failure) => session.fails(execution, &failure) || fresh.fails(execution, &failure),
        None => !execution.violations.is_empty() || !execution.races.is_empty(),
    }
}

/// Writes the page.
pub fn write(
    path: &Path,
    finding: &RunFinding<'_>,
    timeline: &Result<Timeline, String>,
) -> Result<(), Diagnostic> {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let title = format!("palisade {}", visible(&arguments.join(" ")));
    let timeline = timeline.as_ref().map_err(String::as_str);
    let texts = sources(finding, timeline.ok());
    let entry = html::execution(finding, timeline, &texts);
    files::write(path, &html::page(&title, &[entry], concat!("Palisade ", env!("PALISADE_VERSION"))))
}

/// The source texts of the steps and of the finding, as far as they can be read.
fn sources(finding: &RunFinding<'_>, timeline: Option<&Timeline>) -> BTreeMap<String, Source> {
    let mut texts = finding.sources.clone();
    let steps = timeline.iter().flat_map(|timeline| &timeline.steps);
    let names: BTreeSet<&str> = steps.map(|step| step.place.as_str()).collect();
    let files: BTreeSet<String> =
        names.into_iter().filter_map(SourcePlace::of).map(|place| place.file).collect();
    for file in files {
        if !texts.contains_key(&file)
            && let Ok(text) = files::text(Path::new(&file))
        {
            texts.insert(file.clone(), Source::new(file, text));
        }
    }
    texts
}
