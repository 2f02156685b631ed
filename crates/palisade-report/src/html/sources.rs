//! The source files of an execution, one after the other. Files of the system, and long files, are shown in excerpts
//! around the lines that matter.

use super::execution::Execution;
use super::text::escape;
use crate::monitor::SourcePlace;
use crate::visible;
use palisade_base::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Longer files are shown in excerpts.
const MAX_LINES: usize = 1_500;
/// How many lines an excerpt has before and after a line that matters.
const AROUND: u32 = 6;
/// A longer line is cut.
const MAX_WIDTH: usize = 400;

/// The files, and which lines of them are on the page.
pub(super) struct Listed {
    /// The listing.
    pub(super) html: String,
    /// The numbers of the files.
    files: BTreeMap<String, usize>,
}

impl Listed {
    /// The source lines of some steps, and of the finding.
    pub(super) fn of(execution: &Execution<'_>, steps: &[usize]) -> Listed {
        let mut used: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        let mut broken: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        let mut order: Vec<String> = Vec::new();
        let mut add = |lines: &mut BTreeMap<String, BTreeSet<u32>>, name: &str| {
            let Some(place) = SourcePlace::of(name).filter(|place| execution.texts.contains_key(&place.file))
            else {
                return;
            };
            if !order.contains(&place.file) {
                order.push(place.file.clone());
            }
            lines.entry(place.file).or_default().insert(place.line);
        };
        if let Some(important) = execution.important {
            important.places.iter().for_each(|(name, _)| add(&mut broken, name));
        }
        let names: BTreeSet<&str> =
            steps.iter().map(|&step| execution.timeline.steps[step].place.as_str()).collect();
        names.into_iter().for_each(|name| add(&mut used, name));
        // The program's own files come first.
        order.sort_by_key(|file| file.starts_with('/'));
        let none = BTreeSet::new();
        let mut html = String::from(
            "<div class=\"listing\" role=\"region\" aria-label=\"Source\" tabindex=\"0\" dir=\"ltr\">\n",
        );
        if order.is_empty() {
            html.push_str("<p class=\"muted\">No source text is available.</p>\n");
        }
        for (number, file) in order.iter().enumerate() {
            let lines = |of: &BTreeMap<String, BTreeSet<u32>>| of.get(file).unwrap_or(&none).clone();
            one(&mut html, number, &execution.texts[file], &lines(&used), &lines(&broken));
        }
        html.push_str("</div>\n");
        Listed { html, files: order.into_iter().zip(0..).collect() }
    }

    /// Where a place is on the page.
    pub(super) fn at(&self, name: &str) -> Option<String> {
        let place = SourcePlace::of(name)?;
        Some(format!("{}:{}", self.files.get(&place.file)?, place.line))
    }
}

fn one(html: &mut String, file: usize, source: &Source, used: &BTreeSet<u32>, broken: &BTreeSet<u32>) {
    let text = source.text();
    let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let is_whole = lines.len() <= MAX_LINES && !source.name().starts_with('/');
    let is_near = |line: u32| {
        let near = line.saturating_sub(AROUND)..=line.saturating_add(AROUND);
        is_whole || used.range(near.clone()).next().is_some() || broken.range(near).next().is_some()
    };
    writeln!(
        html,
        "<ol class=\"lines\" data-language=\"{}\">\n<li class=\"file\">{}</li>",
        language(source.name()),
        escape(&visible(source.name()))
    )
    .expect("writing to a string");
    let mut last = 0;
    for (line, number) in lines.iter().zip(1u32..).filter(|(_, number)| is_near(*number)) {
        if last + 1 != number {
            writeln!(
                html,
                "<li class=\"gap\" style=\"counter-set:line {}\" aria-label=\"lines left out\">⋯</li>",
                number - 1
            )
            .expect("writing to a string");
        }
        last = number;
        let mut class = String::new();
        let mut note = "";
        if used.contains(&number) {
            class.push_str(" passed");
        }
        if broken.contains(&number) {
            class.push_str(" broken");
            note = "<span class=\"sr\">(part of the finding) </span>";
        }
        writeln!(
            html,
            "<li class=\"line{class}\" data-line=\"{file}:{number}\"><span class=\"marks\" aria-hidden=\"true\"></span><code>{note}{}</code></li>",
            escape(&crate::fit(line.trim_end_matches('\r'), MAX_WIDTH))
        )
        .expect("writing to a string");
    }
    html.push_str("</ol>\n");
}

/// The language of a file, for colours.
fn language(name: &str) -> &'static str {
    if name.ends_with(".rs") { "rust" } else { "c" }
}
