//! One run: the program next to the machine it runs on, a picture of all steps, and a table that needs no
//! script.

use super::idle::{Cast, Idle};
use super::listing::{Marks, lines_of, listing};
use super::text::{escape, script_json};
use super::timeline::{colour, left_out, timeline};
use super::{ProgramText, Subject, cycle, data};
use crate::forever;
use crate::story::Story;
use palisade_base::Id;
use palisade_memory::{Pending, State, Violation};
use palisade_program::running::ThreadId;
use palisade_trace::Evidence;
use palisade_trace::HappensBefore;
use serde_json::json;
use std::fmt::Write;

/// Everything there is to show about a run, except what it shows: the heading says that. `name` is the name of the
/// run on the page, made of letters and digits.
pub(super) fn run(subject: Subject<'_>, evidence: &Evidence<'_>, name: &str, idle: Idle) -> String {
    let story = Story::new(evidence);
    let cast = Cast::new(evidence, idle);
    let marks = marks(evidence, &story);
    let mut data = data::data(evidence, &story, &cast);
    if subject.text == ProgramText::Elsewhere {
        data["passed"] = json!(marks.passed);
        data["broken"] = json!(marks.broken);
    }
    let mut html = format!("<section class=\"run\" data-run=\"{name}\" aria-label=\"The run\">\n");
    writeln!(html, "<script type=\"application/json\" class=\"run-data\">{}</script>", script_json(&data))
        .expect("writing to a string");
    html.push_str("<div class=\"stage\">\n");
    html.push_str(&listing(subject, &marks));
    html.push_str(PLAYER);
    html.push_str("</div>\n");
    if let Some(picture) = timeline(evidence, &story, &cast) {
        let caption = |words: String| format!("<figcaption>{}</figcaption>\n", escape(&words));
        let idle = cast.in_words(evidence).map(|words| caption(words + "."));
        let local = Some(left_out(evidence, &story)).filter(|words| !words.is_empty()).map(caption);
        write!(
            html,
            "<h3>All steps</h3>\n<figure class=\"timeline\"><div class=\"wide\" role=\"region\" aria-label=\"Picture of the run\" tabindex=\"0\">\n{picture}</div>\n{LEGEND}{}{}{}</figure>\n",
            local.unwrap_or_default(),
            idle.unwrap_or_default(),
            if forever::first_step(evidence).is_some() { REPEATED_LEGEND } else { "" }
        )
        .expect("writing to a string");
    }
    let notes: Vec<String> = (0..evidence.run.steps.len())
        .filter_map(|step| Some(format!("Step {}: {}", step + 1, story.note(step)?)))
        .collect();
    if !notes.is_empty() {
        html.push_str("<ul class=\"notes\">\n");
        notes.iter().for_each(|note| {
            writeln!(html, "<li>{}</li>", escape(note)).expect("writing to a string");
        });
        html.push_str("</ul>\n");
    }
    html.push_str(&table(evidence, &story, name, &cast));
    let happens_before = HappensBefore::of(evidence.machine, evidence.run, evidence.replay);
    if let Some(found) = happens_before.cycle() {
        html.push_str("<h3>Why no sequentially consistent run behaves like this</h3>\n");
        html.push_str(&cycle::picture(evidence, &happens_before, &found));
    }
    html.push_str("</section>\n");
    html
}

/// The parts that the page's script fills in. They are hidden until it does.
const PLAYER: &str = concat!(
    "<div class=\"player\" role=\"group\" aria-label=\"Step through the run\" hidden>\n",
    include_str!("assets/controls.html"),
    include_str!("assets/machine.html"),
    "</div>\n"
);

const LEGEND: &str = "<figcaption>Time runs downwards. A bar is a store waiting in its buffer; <span class=\"over\">an orange arrow</span> leads from a step that took effect early to the store it overtook.</figcaption>\n";

const REPEATED_LEGEND: &str = "<figcaption><span class=\"repeats\">The framed steps</span> are repeated forever. A fair scheduler need not end this: every process that can always move does move, and every store reaches memory.</figcaption>\n";

fn marks(evidence: &Evidence<'_>, story: &Story<'_>) -> Marks {
    let mut marks = Marks::default();
    let steps = 0..evidence.run.steps.len();
    marks.passed = steps.filter_map(|step| story.row(step)).collect();
    if let Some(Violation::Property(index)) = evidence.replay.violation {
        marks.broken = lines_of(evidence.source, evidence.machine.system.properties[index].span);
    }
    if let Some(Violation::Forever { property, .. }) = evidence.replay.violation {
        marks.broken = lines_of(evidence.source, evidence.machine.system.fair[property].span);
    }
    marks
}

/// The steps as a table. Local steps are included, and shown if the box above the table is ticked.
fn table(evidence: &Evidence<'_>, story: &Story<'_>, name: &str, cast: &Cast) -> String {
    let steps = evidence.run.steps.len();
    let is_local = |step: usize| step + 1 < steps && story.is_local(step);
    let local = (0..steps).filter(|&step| is_local(step)).count();
    let mut html = String::from("<details class=\"steps\" open><summary>The steps as a table</summary>\n");
    if local > 0 {
        let plural = if local == 1 { "step" } else { "steps" };
        writeln!(
            html,
            "<input type=\"checkbox\" id=\"{name}-local\" class=\"local-switch\"><label for=\"{name}-local\">show {local} local {plural}</label>"
        )
        .expect("writing to a string");
    }
    html.push_str(
        "<div class=\"wide\" role=\"region\" aria-label=\"Steps\" tabindex=\"0\"><table><thead><tr>",
    );
    for (heading, class) in
        [("step", ""), ("process", ""), ("line", "at-line"), ("instruction", ""), ("effect", "")]
    {
        write!(html, "<th scope=\"col\" class=\"{class}\">{heading}</th>").expect("writing to a string");
    }
    for &thread in &cast.shown {
        let name = escape(&evidence.name(thread));
        write!(html, "<th scope=\"col\" class=\"buffer\">buffer {name}</th>").expect("writing to a string");
    }
    html.push_str("<th scope=\"col\" class=\"memory-column\">memory</th>");
    html.push_str("</tr></thead>\n<tbody>\n");
    let state = |html: &mut String, index: usize| {
        let state = &evidence.replay.states[index];
        for &thread in &cast.shown {
            write!(html, "<td class=\"code buffer\">{}</td>", pieces(&buffer(evidence, state, thread)))
                .expect("writing to a string");
        }
        let memory: Vec<String> =
            story.cells().into_iter().map(|cell| story.assignment(cell, state.memory[cell])).collect();
        writeln!(html, "<td class=\"code memory-column\">{}</td></tr>", pieces(&memory))
            .expect("writing to a string");
    };
    html.push_str("<tr data-step=\"-1\"><th scope=\"row\">0</th><td></td><td class=\"at-line\"></td><td>(start)</td><td></td>");
    state(&mut html, 0);
    let repeated = forever::first_step(evidence);
    let columns = 6 + cast.shown.len();
    let heading = |html: &mut String, text: &str| {
        writeln!(html, "<tr class=\"forever\"><th scope=\"rowgroup\" colspan=\"{columns}\">{text}</th></tr>")
            .expect("writing to a string");
    };
    for step in 0..steps {
        let thread = evidence.run.steps[step].thread;
        let mut class = colour(thread.index());
        if repeated == Some(step) {
            heading(&mut html, forever::FROM_HERE);
        }
        if repeated.is_some_and(|from| step >= from) {
            class.push_str(" repeated");
        }
        if is_local(step) {
            class.push_str(" local");
        }
        if !story.links.overtakes[step].is_empty() {
            class.push_str(" overtaking");
        }
        let star = if story.links.overtakes[step].is_empty() { "" } else { "*" };
        write!(
            html,
            "<tr class=\"{class}\" data-step=\"{step}\"><th scope=\"row\">{}{star}</th><td class=\"who\">{}</td><td class=\"at-line\">{}</td><td class=\"code\">{}</td><td class=\"code\">{}</td>",
            step + 1,
            escape(&evidence.name(thread)),
            story.line(step),
            escape(&crate::fit(&story.source(step), 60)),
            escape(&story.effect(step))
        )
        .expect("writing to a string");
        state(&mut html, step + 1);
    }
    if repeated == Some(steps) {
        heading(&mut html, forever::NOTHING_MOVES);
    }
    html.push_str("</tbody></table></div></details>\n");
    html
}

/// Texts that stay in one piece each where the line is broken.
fn pieces(texts: &[String]) -> String {
    let pieces = texts.iter().map(|text| format!("<span class=\"piece\">{}</span>", escape(text)));
    pieces.collect::<Vec<_>>().join(" ")
}

fn buffer(evidence: &Evidence<'_>, state: &State, thread: ThreadId) -> Vec<String> {
    let Some(thread) = state.threads.get(thread) else { return Vec::new() };
    let entries = thread.buffer.iter().map(|entry| match *entry {
        Pending::Store(cell, value) => {
            format!("{}={}", evidence.machine.system.cells[cell].name, evidence.value(cell, value))
        }
        Pending::Barrier => "|".to_owned(),
    });
    entries.collect()
}
