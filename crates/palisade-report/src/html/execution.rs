//! One execution of a real program: the finding, the source beside a picture of the steps by thread, and a table of
//! all steps that needs no script.
//!
//! Long executions stay readable: steps that do not matter are folded (see `palisade_harness::timeline`). A page has
//! at most [`MAX_TABLE`] steps in its table and [`lanes::MAX_ROWS`] in its picture, and says what it leaves out.

use super::text::escape;
use super::timeline::colour;
use super::{Entry, lanes, sources};
use crate::important::Important;
use crate::monitor::{SourcePlace, shown_place};
use crate::{Report, RunFinding, fit, visible};
use palisade_base::Source;
use palisade_harness::timeline::{Fold, StepKind, Timeline};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many steps the table has at most.
const MAX_TABLE: usize = 5_000;

/// The result of running a program, with the execution that shows the most important finding. `problem` says why
/// there is no such execution. `texts` are the source texts by their names.
pub fn execution(
    finding: &RunFinding<'_>,
    timeline: Result<&Timeline, &str>,
    texts: &BTreeMap<String, Source>,
) -> Entry {
    let important = finding.most_important();
    let mut body = String::new();
    let why = match &important {
        Some(important) => {
            let machines =
                important.machines.as_deref().map_or_else(String::new, |text| format!(" – {text}"));
            format!("{}{machines}", important.message)
        }
        None => String::new(),
    };
    match timeline {
        Ok(timeline) => {
            let page = Execution { timeline, texts, important: important.as_ref() };
            body.push_str(&page.html());
        }
        Err(problem) => {
            writeln!(body, "<p class=\"problem\">{}</p>", escape(problem)).expect("writing to a string");
        }
    }
    if let Some(important) = &important {
        body.push_str(&statement(important, texts));
    }
    if let Some(problem) = finding.problem {
        writeln!(body, "<p class=\"muted\">{}</p>", escape(problem)).expect("writing to a string");
    }
    let counts = finding.why().unwrap_or_default();
    let account = match &important {
        Some(important) => format!("{}. In all: {counts}", important.times),
        None => counts,
    };
    Entry { file: finding.subject().to_owned(), word: finding.word().to_owned(), why, account, body }
}

/// Where a finding is, and what the program printed.
fn statement(important: &Important<'_>, texts: &BTreeMap<String, Source>) -> String {
    const LINES: usize = 40;
    let mut html = String::new();
    if !important.places.is_empty() {
        html.push_str("<h3>Where</h3>\n<div class=\"wide\" role=\"region\" aria-label=\"Places\" tabindex=\"0\"><table class=\"places\"><tbody>\n");
        for (name, says) in &important.places {
            let (place, text) = shown_place(name, texts);
            writeln!(
                html,
                "<tr><td class=\"code\">{}</td><td class=\"code\">{}</td><td>{}</td></tr>",
                escape(&visible(&place)),
                escape(&fit(&text, 100)),
                escape(says)
            )
            .expect("writing to a string");
        }
        html.push_str("</tbody></table></div>\n");
    }
    let lines: Vec<&str> = important.output.lines().filter(|line| !line.trim().is_empty()).collect();
    if !lines.is_empty() {
        let last = &lines[lines.len().saturating_sub(LINES)..];
        let title = if last.len() < lines.len() { "What it printed (last lines)" } else { "What it printed" };
        let shown: Vec<String> = last.iter().map(|line| visible(&fit(line, 400)).into_owned()).collect();
        writeln!(html, "<h3>{title}</h3>\n<pre class=\"engine-notes\">{}</pre>", escape(&shown.join("\n")))
            .expect("writing to a string");
    }
    html
}

/// What the parts of a page about one execution need.
pub(super) struct Execution<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) texts: &'a BTreeMap<String, Source>,
    pub(super) important: Option<&'a Important<'a>>,
}

impl Execution<'_> {
    fn html(&self) -> String {
        let steps = &self.timeline.steps;
        let table = self.in_table();
        let folded = steps.iter().filter(|step| step.fold.is_some()).count();
        let shown: Vec<usize> = (0..steps.len()).filter(|&step| steps[step].fold.is_none()).collect();
        let listed = sources::Listed::of(self, &table);
        let mut html = format!("<section class=\"execution\" aria-label=\"The execution\">\n{PLAYER}");
        html.push_str("<div class=\"beside\">\n");
        html.push_str(&listed.html);
        html.push_str(&lanes::picture(self, &shown));
        html.push_str("</div>\n");
        html.push_str(&self.left_out(folded, &shown, &table));
        html.push_str(&self.table(&table, &listed));
        html.push_str("</section>\n");
        html
    }

    /// The steps of the table: all of them if there is room, else those that are not folded, else the last of those.
    fn in_table(&self) -> Vec<usize> {
        let steps = &self.timeline.steps;
        let mut table: Vec<usize> = (0..steps.len()).collect();
        if table.len() > MAX_TABLE {
            table.retain(|&step| steps[step].fold.is_none());
        }
        let first = table.len().saturating_sub(MAX_TABLE);
        table.split_off(first)
    }

    /// What is folded, and what is not on the page.
    fn left_out(&self, folded: usize, shown: &[usize], table: &[usize]) -> String {
        let mut sentences = Vec::new();
        if self.timeline.dropped > 0 {
            sentences.push(format!("The first {} steps were not kept.", self.timeline.dropped));
        }
        if folded > 0 {
            let count =
                |fold: Fold| self.timeline.steps.iter().filter(|step| step.fold == Some(fold)).count();
            let reasons: Vec<String> = [
                (Fold::Private, "touch only memory that no other thread touches"),
                (Fold::Round, "repeat a loop iteration between the first and the last"),
                (Fold::Nothing, "do not touch memory"),
            ]
            .into_iter()
            .filter(|(fold, _)| count(*fold) > 0)
            .map(|(fold, says)| format!("those that {says} ({})", count(fold)))
            .collect();
            let kept = if self.timeline.dropped > 0 { ", as far as the steps were kept" } else { "" };
            let are = if folded == 1 { "step is" } else { "steps are" };
            sentences.push(format!("{folded} {are} folded: {}{kept}.", reasons.join(", ")));
        }
        if shown.len() > lanes::MAX_ROWS {
            sentences.push(format!("The picture has the last {} of {} steps.", lanes::MAX_ROWS, shown.len()));
        }
        if folded > 0 && self.timeline.steps.len() > MAX_TABLE {
            sentences.push("The folded steps are not on this page.".to_owned());
        }
        if table.len() < shown.len() {
            sentences.push(format!("The table has the last {} of {} steps.", table.len(), shown.len()));
        }
        if sentences.is_empty() {
            return String::new();
        }
        format!("<p class=\"left-out muted\">{}</p>\n", escape(&sentences.join(" ")))
    }

    fn table(&self, table: &[usize], listed: &sources::Listed) -> String {
        let steps = &self.timeline.steps;
        let folded = table.iter().filter(|&&step| steps[step].fold.is_some()).count();
        let mut html = String::from("<details class=\"steps\"><summary>The steps as a table</summary>\n");
        if folded > 0 {
            let plural = if folded == 1 { "step" } else { "steps" };
            writeln!(
                html,
                "<input type=\"checkbox\" id=\"folded\" class=\"local-switch\"><label for=\"folded\">show {folded} folded {plural}</label>"
            )
            .expect("writing to a string");
        }
        html.push_str(
            "<div class=\"wide\" role=\"region\" aria-label=\"Steps\" tabindex=\"0\"><table><thead><tr>",
        );
        for heading in ["step", "thread", "place", "source", "effect"] {
            write!(html, "<th scope=\"col\">{heading}</th>").expect("writing to a string");
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        let overtakes: BTreeMap<usize, usize> =
            self.timeline.overtakings.iter().map(|overtaking| (overtaking.step, overtaking.store)).collect();
        let reached = self.reached();
        for &step in table {
            let shown = &steps[step];
            let mut class = colour(shown.lane);
            if shown.fold.is_some() {
                class.push_str(" local");
            }
            let mut effect = self.effect(step, &reached);
            let mut note = String::new();
            if let Some(store) = overtakes.get(&step) {
                class.push_str(" overtaking");
                note = format!(" data-note=\"{}\"", escape(&self.overtaken(*store)));
                write!(effect, ". {}", self.overtaken(*store)).expect("writing to a string");
            }
            let at = listed.at(&shown.place).map_or_else(String::new, |at| format!(" data-at=\"{at}\""));
            let (place, text) = self.words(step);
            writeln!(
                html,
                "<tr class=\"{class}\" data-step=\"{step}\"{at}{note}><th scope=\"row\">{}</th><td class=\"who\">{}</td><td class=\"code\">{}</td><td class=\"code\">{}</td><td>{}</td></tr>",
                self.number(step),
                self.thread(shown.lane),
                escape(&visible(&fit(&place, 80))),
                escape(&fit(&text, 90)),
                escape(&effect)
            )
            .expect("writing to a string");
        }
        html.push_str("</tbody></table></div></details>\n");
        html
    }

    /// The number of a step, from 1.
    pub(super) fn number(&self, step: usize) -> u64 {
        self.timeline.dropped + step as u64 + 1
    }

    /// The name of a lane's thread.
    pub(super) fn thread(&self, lane: usize) -> String {
        format!("thread {}", self.timeline.threads[lane])
    }

    /// The place of a step, and the source text there.
    pub(super) fn words(&self, step: usize) -> (String, String) {
        shown_place(&self.timeline.steps[step].place, self.texts)
    }

    /// The line of a step's place.
    pub(super) fn line(&self, step: usize) -> Option<u32> {
        SourcePlace::of(&self.timeline.steps[step].place).map(|place| place.line)
    }

    /// The steps in which stores reach memory, by the steps that made them.
    pub(super) fn reached(&self) -> BTreeMap<usize, usize> {
        let reaches = |(index, step): (usize, &palisade_harness::timeline::Step)| match step.kind {
            StepKind::Reach(Some(store)) => Some((store, index)),
            _ => None,
        };
        self.timeline.steps.iter().enumerate().filter_map(reaches).collect()
    }

    /// What a step does.
    pub(super) fn effect(&self, step: usize, reached: &BTreeMap<usize, usize>) -> String {
        match self.timeline.steps[step].kind {
            StepKind::Load => "reads memory".to_owned(),
            StepKind::Forward(store) => format!("reads the pending store of step {}", self.number(store)),
            StepKind::Store => "writes memory".to_owned(),
            StepKind::Buffer => match reached.get(&step) {
                Some(&reach) => format!("waits in the store buffer until step {}", self.number(reach)),
                None => "waits in the store buffer until the end".to_owned(),
            },
            StepKind::Reach(Some(store)) => {
                format!("the store of step {} reaches memory", self.number(store))
            }
            StepKind::Reach(None) => "an earlier store reaches memory".to_owned(),
            StepKind::Locked => "locked: reads and writes memory".to_owned(),
            StepKind::LockedLoad => "locked: reads memory, and writes nothing".to_owned(),
            StepKind::Fence => "fence: waits until the store buffer is empty".to_owned(),
            StepKind::StoreFence => "store-store fence".to_owned(),
            StepKind::Start(lane) => format!("starts {}", self.thread(lane)),
            StepKind::Join(lane) => format!("has waited for {} to end", self.thread(lane)),
            StepKind::Free => "frees memory".to_owned(),
            StepKind::Pause => "does not touch memory".to_owned(),
            StepKind::Ended => "ends".to_owned(),
        }
    }

    /// The number of a store that a step overtook, in a sentence.
    pub(super) fn overtaken(&self, store: usize) -> String {
        format!(
            "It took effect before the store of step {}, which was still in the store buffer",
            self.number(store)
        )
    }
}

/// The parts that the page's script fills in. They are hidden until it does.
const PLAYER: &str = concat!(
    "<div class=\"player\" role=\"group\" aria-label=\"Step through the execution\" hidden>\n",
    include_str!("assets/controls.html"),
    "</div>\n"
);
