//! Sets of fences: the program with each set inserted, and for every fence the run that becomes possible
//! without it.

use super::idle::Idle;
use super::listing::{Marks, listing};
use super::text::escape;
use super::{Subject, run};
use crate::fences::{describe, explain_run, word};
use crate::one_line;
use crate::{FencesEnd, FencesFinding, ReportedFence};
use palisade_base::Source;
use palisade_fences::Side;
use std::fmt::Write;

/// The sets, or the run that no fences prevent. `name` is the name of the file on the page.
pub(super) fn sets(subject: Subject<'_>, finding: &FencesFinding<'_>, name: &str) -> String {
    let mut html = String::new();
    let several = finding.sets.len() > 1;
    for (index, set) in finding.sets.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        let added = set.iter().all(|fence| fence.change().is_added());
        let heading = match (several, set.len()) {
            (true, _) => format!("Set {} of {}", index + 1, finding.sets.len()),
            (false, 1) if added => "The fence".to_owned(),
            (false, _) if added => "The fences".to_owned(),
            (false, 1) => "The change".to_owned(),
            (false, _) => "The changes".to_owned(),
        };
        let cost = match finding.costs[index] == set.len() as u64 {
            true => String::new(),
            false => format!(" <span class=\"muted\">cost {}</span>", finding.costs[index]),
        };
        let what = if added { "fence" } else { "change" };
        writeln!(
            html,
            "<section class=\"fence-set\" data-set=\"{index}\" data-changes=\"{what}\"><h3>{heading}{cost}</h3>"
        )
        .expect("writing to a string");
        html.push_str(&listing(subject, &with_fences(subject.source, set)));
        html.push_str("<ol class=\"fences\">\n");
        for (number, fence) in set.iter().enumerate() {
            let without = fence.without_it();
            let becomes = fence.becomes.as_ref().map_or_else(String::new, |becomes| {
                format!("<p class=\"fence\">becomes <code>{}</code></p>", escape(&one_line(becomes)))
            });
            let why = explain_run(&fence.without);
            // The first reason is open, because that is what people want to see.
            let open = if index == 0 && number == 0 { " open" } else { "" };
            write!(
                html,
                "<li><p class=\"fence\"><code>{}</code></p>{becomes}\n<details class=\"reason\"{open}><summary>Needed: {without}, {}</summary>\n{}</details></li>\n",
                escape(&describe(subject.source, fence)),
                escape(&why),
                run::run(subject, &fence.without, &format!("{name}s{index}f{number}"), Idle::Folded)
            )
            .expect("writing to a string");
        }
        html.push_str("</ol></section>\n");
    }
    match &finding.end {
        FencesEnd::WrongUnderSc(evidence)
        | FencesEnd::NotAllowed(evidence)
        | FencesEnd::NotKnownUnderSc(evidence, _) => {
            html.push_str("<h2>A run that no fences forbid</h2>\n");
            html.push_str(&run::run(subject, evidence, name, Idle::Folded));
        }
        FencesEnd::Complete | FencesEnd::Unknown(_) => {
            if finding.sets.iter().all(Vec::is_empty) {
                html.push_str(&listing(subject, &Marks::default()));
            }
        }
    }
    html
}

/// The fences of a set at their places in the text. A semicolon after a statement belongs to it, whatever its
/// span says.
fn with_fences(source: &Source, set: &[ReportedFence<'_>]) -> Marks {
    let mut marks = Marks::default();
    let added = set.iter().filter(|fence| fence.change().is_added());
    for fence in added.filter(|fence| !fence.place.span.is_none()) {
        let range = fence.place.span.range();
        let (at, text) = match fence.place.side {
            Side::Before => (range.start, format!("{}; ", word(fence.kind))),
            Side::After => {
                let rest = source.text().get(range.end..).unwrap_or("");
                let semicolon = usize::from(rest.starts_with(';'));
                (range.end + semicolon, format!(" {};", word(fence.kind)))
            }
        };
        marks.inserted.entry(at).or_default().push_str(&text);
    }
    marks
}
