//! A happens-before cycle: as a sentence, as a list by source line, and as a drawing in Graphviz's DOT
//! language.

use crate::{fit, whole_line};
use palisade_base::Span;
use palisade_memory::{Action, Effect};
use palisade_program::running::CellId;
use palisade_trace::Evidence;
use palisade_trace::{Arrow, Cycle, Event, HappensBefore, Relation};
use std::collections::BTreeSet;
use std::fmt::Write;

/// At most this many characters of the text of an instruction are drawn.
const LONGEST: usize = 80;

/// The cycle in a sentence: which instruction overtakes which, e.g. `P's line 3 (r = y) takes effect before
/// its line 2 (x = 1)`.
pub fn explain_cycle(evidence: &Evidence<'_>, happens_before: &HappensBefore, cycle: &Cycle) -> String {
    let program_order = |arrow: &&Arrow| arrow.relation == Relation::ProgramOrder;
    let overtaken: Vec<String> = cycle
        .arrows
        .iter()
        .filter(program_order)
        .filter(|arrow| is_overtaken(evidence, happens_before, arrow))
        .map(|arrow| {
            let (early, late) = (&happens_before.events[arrow.from], &happens_before.events[arrow.to]);
            let who = evidence.name(late.thread);
            format!("{who}'s {} takes effect before its {}", place(evidence, late), place(evidence, early))
        })
        .collect();
    match overtaken.as_slice() {
        [] => "happens-before has a cycle".to_owned(),
        [first, ..] => first.clone(),
    }
}

/// Whether the later event of a program-order arrow took effect before the earlier one, which is a store.
fn is_overtaken(evidence: &Evidence<'_>, happens_before: &HappensBefore, arrow: &Arrow) -> bool {
    let (early, late) = (&happens_before.events[arrow.from], &happens_before.events[arrow.to]);
    let buffered = |event: &Event| matches!(evidence.replay.effects[event.steps[0]], Effect::Buffered(..));
    let effect = |event: &Event| match (event.updates.first(), buffered(event)) {
        (Some(&step), _) => step,
        (None, true) => usize::MAX,
        (None, false) => event.steps[0],
    };
    buffered(early) && effect(late) < effect(early)
}

/// The cycle, one event per line, each with the arrow that leads to the next.
pub fn cycle(evidence: &Evidence<'_>, happens_before: &HappensBefore, cycle: &Cycle) -> String {
    let describe = |event: usize| {
        let event = &happens_before.events[event];
        (evidence.name(event.thread), place(evidence, event))
    };
    let events: Vec<(String, String)> = cycle.arrows.iter().map(|arrow| describe(arrow.from)).collect();
    let width = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max();
    let (names, places) = (
        width(&mut events.iter().map(|(name, _)| name)).unwrap_or(0),
        width(&mut events.iter().map(|(_, place)| place)).unwrap_or(0),
    );
    let mut text = String::from("happens-before cycle:\n");
    for (arrow, (name, place)) in cycle.arrows.iter().zip(&events) {
        let next = describe(arrow.to);
        let blanks = " ".repeat(places - place.chars().count());
        let name = format!("{name}{}", " ".repeat(names - name.chars().count()));
        writeln!(
            text,
            "  {name}  {place}{blanks}  comes before {}'s {} ({})",
            next.0,
            next.1,
            why(evidence, arrow)
        )
        .expect("writing to a string");
    }
    text
}

/// The events of the cycle and their arrows as a graph.
pub fn cycle_dot(evidence: &Evidence<'_>, happens_before: &HappensBefore, cycle: &Cycle) -> String {
    let mut text = String::from(
        "digraph happens_before {\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n",
    );
    let events: BTreeSet<usize> = cycle.arrows.iter().map(|arrow| arrow.from).collect();
    let threads: BTreeSet<_> = events.iter().map(|&event| happens_before.events[event].thread).collect();
    for thread in threads {
        let name = evidence.name(thread);
        writeln!(text, "  subgraph cluster_{} {{\n    label={};", thread.0, quoted(&name))
            .expect("writing to a string");
        for &event in events.iter().filter(|&&event| happens_before.events[event].thread == thread) {
            let label = fit(&place(evidence, &happens_before.events[event]), LONGEST);
            writeln!(text, "    e{event} [label={}];", quoted(&label)).expect("writing to a string");
        }
        text.push_str("  }\n");
    }
    for arrow in &cycle.arrows {
        let style = match arrow.relation {
            Relation::ProgramOrder | Relation::Starts => "solid",
            Relation::ReadsFrom | Relation::Coherence => "bold",
            Relation::FromRead => "dashed",
        };
        let label = quoted(&why(evidence, arrow));
        writeln!(text, "  e{} -> e{} [label={label}, style={style}];", arrow.from, arrow.to)
            .expect("writing to a string");
    }
    text.push_str("}\n");
    text
}

pub(crate) fn why(evidence: &Evidence<'_>, arrow: &Arrow) -> String {
    let name = |cell: CellId| &evidence.machine.system.cells[cell].name;
    match arrow.cell {
        Some(cell) => format!("{} of {}", arrow.relation.name(), name(cell)),
        None => arrow.relation.name().to_owned(),
    }
}

/// The source span of an event. For an atomic section, that of its first access.
pub(crate) fn span(evidence: &Evidence<'_>, event: &Event) -> Option<Span> {
    span_of_step(evidence, event.steps[0])
}

/// The source span of a step. `None` for a pending store that reaches memory.
pub(crate) fn span_of_step(evidence: &Evidence<'_>, step: usize) -> Option<Span> {
    let Action::Execute { edge, .. } = evidence.run.steps[step].action else { return None };
    let top = evidence.replay.states[step].threads[evidence.run.steps[step].thread].top();
    Some(evidence.machine.system.codes[top.code].edges()[edge].span)
}

fn place(evidence: &Evidence<'_>, event: &Event) -> String {
    place_of_step(evidence, event.steps[0])
}

/// `line 3 (r = y)`
pub(crate) fn place_of_step(evidence: &Evidence<'_>, step: usize) -> String {
    let Some(span) = span_of_step(evidence, step) else { return "(pending store)".to_owned() };
    let quote = whole_line(evidence.source.slice(span));
    match evidence.source.line_in_words(span) {
        Some(line) => format!("{line} ({quote})"),
        None => format!("({quote})"),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
