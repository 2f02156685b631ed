//! The run as a picture. There is a lane per thread, time runs downwards, and memory is on the right.
//!
//! - A store is a box. A bar below it lasts as long as the store waits in the buffer. Where the bar ends, an
//!   arrow leads to memory.
//!   Where very many stores wait, the first have bars, and a number such as `+3` counts the others.
//! - A load has an arrow from memory.
//! - A step that overtakes stores is drawn next to their bars. An arrow leads from it to above the oldest of
//!   them, because that is where the step took effect in program order.

mod narrow;

use super::data::kind;
use super::idle::{Cast, Idle};
use super::text::escape;
use crate::story::Story;
use crate::svg::Drawn;
use crate::{fit, forever};
use palisade_base::Id;
use palisade_memory::{Action, Effect};
use palisade_program::running::ThreadId;
use palisade_trace::Evidence;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Pictures of runs with more rows than this are useless.
const MAX_ROWS: usize = 300;
/// Neither are pictures with more lanes than this.
const MAX_LANES: usize = 12;

const ROW: usize = 34;
const TOP: usize = 52;
const LEFT: usize = 44;
/// Space for arrows to the left of a lane's boxes, and for bars to the right of them.
const ARROWS: usize = 34;
const BOX_HEIGHT: usize = 24;
const BAR: usize = 7;
/// At most this many stores of a thread have bars next to each other. Where more wait, a number says how many.
const MAX_BARS: usize = 10;
/// Space for the bars: for few of them, and for a number.
const BARS: usize = 52;
const NUMBER: usize = 26;
/// Boxes and notes on memory are as wide as the longest text in one of them, within this range of characters.
const TEXT: std::ops::RangeInclusive<usize> = 12..=28;
/// The width of a character, in tenths of a pixel.
const CHARACTER: usize = 77;

/// The number of thread colours. A thread's colour follows from its number.
const COLOURS: usize = 6;

/// The class that gives a thread its colour.
pub(crate) fn colour(thread: usize) -> String {
    format!("t{}", thread % COLOURS)
}

/// The picture, or `None` if the run is too long or has too many threads.
pub(super) fn timeline(evidence: &Evidence<'_>, story: &Story<'_>, cast: &Cast) -> Option<String> {
    let shown = shown_steps(evidence, story);
    let drawing = Drawing::new(evidence, story, cast, &shown)?;
    let (Drawn { width, height, elements }, description) = (drawing.draw(), drawing.description());
    // Where there is little room, another picture is shown instead.
    let narrow = drawing.narrow(&description);
    Some(format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>The run as a picture</title>\n<desc>{}</desc>\n{elements}</svg>\n{narrow}",
        escape(&description)
    ))
}

/// The picture of a run without a frame.
pub(crate) fn drawn_run(evidence: &Evidence<'_>) -> Option<Drawn> {
    let (cast, story) = (Cast::new(evidence, Idle::Folded), Story::new(evidence));
    Some(Drawing::new(evidence, &story, &cast, &shown_steps(evidence, &story))?.draw())
}

/// What the picture of a run does not show, in a sentence. Empty if it shows all steps.
pub(crate) fn left_out(evidence: &Evidence<'_>, story: &Story<'_>) -> String {
    match evidence.run.steps.len() - shown_steps(evidence, story).len() {
        0 => String::new(),
        1 => "1 local step is left out.".to_owned(),
        count => format!("{count} local steps are left out."),
    }
}

/// The steps that are drawn: those that others can see, and the last.
fn shown_steps(evidence: &Evidence<'_>, story: &Story<'_>) -> Vec<usize> {
    let steps = evidence.run.steps.len();
    (0..steps).filter(|&step| step + 1 == steps || !story.is_local(step)).collect()
}

/// The direction of an arrow.
enum Towards {
    Memory,
    Thread,
}

struct Drawing<'a> {
    evidence: &'a Evidence<'a>,
    story: &'a Story<'a>,
    cast: &'a Cast,
    shown: &'a [usize],
    /// The row of each step that is shown.
    row_of: Vec<usize>,
    /// For each step that is a store: how many bars are to the left of its own.
    slots: Vec<usize>,
    lanes: usize,
    box_width: usize,
    memory_width: usize,
}

impl<'a> Drawing<'a> {
    /// `None` if the run is too long or has too many threads.
    fn new(
        evidence: &'a Evidence<'a>,
        story: &'a Story<'a>,
        cast: &'a Cast,
        shown: &'a [usize],
    ) -> Option<Drawing<'a>> {
        let lanes = cast.shown.len();
        if shown.is_empty() || shown.len() > MAX_ROWS || lanes > MAX_LANES {
            return None;
        }
        let mut row_of = vec![0; evidence.run.steps.len()];
        for (row, &step) in shown.iter().enumerate() {
            row_of[step] = row;
        }
        let slots = slots(evidence, story);
        let mut drawing =
            Drawing { evidence, story, cast, shown, row_of, slots, lanes, box_width: 0, memory_width: 0 };
        let width = |longest: Option<usize>| {
            let characters = longest.unwrap_or(0).clamp(*TEXT.start(), *TEXT.end());
            16 + characters * CHARACTER / 10
        };
        let length = |step: &usize| drawing.box_text(*step).chars().count();
        let box_width = width(shown.iter().map(length).max());
        let in_memory = |step: &usize| drawing.in_memory(*step).map_or(0, |(_, text)| text.chars().count());
        let memory_width = 24 + width(shown.iter().map(in_memory).max());
        (drawing.box_width, drawing.memory_width) = (box_width, memory_width);
        Some(drawing)
    }

    fn draw(&self) -> Drawn {
        let width = self.memory_left() + self.memory_width;
        let height = TOP + self.shown.len() * ROW + 16;
        let mut svg = String::new();
        self.lanes_and_memory(&mut svg, height);
        self.repeated(&mut svg);
        for &step in self.shown {
            self.row(&mut svg, step);
        }
        // What is on top is drawn last.
        for &step in self.shown {
            self.bar(&mut svg, step);
        }
        for &step in self.shown {
            self.arrows(&mut svg, step);
        }
        for &step in self.shown {
            self.node(&mut svg, step);
        }
        let mut nested = vec![0; self.lanes];
        for &step in self.shown {
            self.overtaking(&mut svg, step, &mut nested);
        }
        Drawn { width, height, elements: svg }
    }

    /// A description for readers who cannot see the picture.
    fn description(&self) -> String {
        let notes = self.story.notes();
        let text = if notes.is_empty() { "No step overtakes a store.".to_owned() } else { notes.join(". ") };
        format!("{} steps of {} threads. {text}", self.shown.len(), self.lanes)
    }

    fn lane_width(&self) -> usize {
        ARROWS + self.box_width + self.bars_width()
    }

    /// The room for the bars, which is the same in all lanes.
    fn bars_width(&self) -> usize {
        let most = self.slots.iter().max().map_or(0, |slot| slot + 1);
        let number = if most > MAX_BARS { NUMBER } else { 0 };
        (14 + most.min(MAX_BARS) * (BAR + 2) + number).max(BARS)
    }

    fn lane_left(&self, lane: usize) -> usize {
        LEFT + lane * self.lane_width()
    }

    fn box_left(&self, step: usize) -> usize {
        self.lane_left(self.lane(step)) + ARROWS
    }

    fn memory_left(&self) -> usize {
        LEFT + self.lanes * self.lane_width()
    }

    fn thread(&self, step: usize) -> usize {
        self.evidence.run.steps[step].thread.index()
    }

    /// The lane of a step's thread.
    fn lane(&self, step: usize) -> usize {
        self.cast.column(self.evidence.run.steps[step].thread)
    }

    /// The middle of a step's row.
    fn y(&self, step: usize) -> usize {
        TOP + self.row_of[step] * ROW + ROW / 2
    }

    fn lanes_and_memory(&self, svg: &mut String, height: usize) {
        for (lane, &thread) in self.cast.shown.iter().enumerate() {
            let name = self.evidence.name(thread);
            let (left, colour) = (self.lane_left(lane), colour(thread.index()));
            writeln!(
                svg,
                "<g class=\"{colour}\"><rect class=\"lane\" x=\"{}\" y=\"8\" width=\"{}\" height=\"{}\" rx=\"10\"/>\
                 <text class=\"name\" x=\"{}\" y=\"31\">{}</text></g>",
                left + 4,
                self.lane_width() - 8,
                height - 16,
                left + ARROWS,
                escape(&fit(&name, 24))
            )
            .expect("writing to a string");
        }
        writeln!(
            svg,
            "<g><rect class=\"lane memory\" x=\"{}\" y=\"8\" width=\"{}\" height=\"{}\" rx=\"10\"/>\
             <text class=\"name\" x=\"{}\" y=\"31\">memory</text></g>",
            self.memory_left() + 4,
            self.memory_width - 8,
            height - 16,
            self.memory_left() + 20
        )
        .expect("writing to a string");
    }

    /// If steps are repeated forever: the number of rows before them, and of their rows.
    fn repeated_rows(&self) -> Option<(usize, usize)> {
        let from = forever::first_step(self.evidence)?;
        let before = self.shown.iter().filter(|&&step| step < from).count();
        let rows = self.shown.len() - before;
        (rows > 0).then_some((before, rows))
    }

    /// A frame around the steps that are repeated forever, with an arrow back to the first of them.
    fn repeated(&self, svg: &mut String) {
        let Some((before, rows)) = self.repeated_rows() else { return };
        let (top, height) = (TOP + before * ROW, rows * ROW);
        let (width, middle) = (self.memory_left() + self.memory_width - 4, top + height / 2);
        let (first, last) = (top + 10, top + height - 10);
        writeln!(
            svg,
            "<g class=\"repeats\"><title>These steps are repeated forever</title>\
             <rect x=\"2\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\
             <path d=\"M9 {last}V{first}\"/><path class=\"head\" d=\"M9 {}l-4 8h8z\"/>\
             <text x=\"{label}\" y=\"{middle}\" transform=\"rotate(-90 {label} {middle})\">forever</text></g>",
            first - 4,
            label = width - 4
        )
        .expect("writing to a string");
    }

    fn row(&self, svg: &mut String, step: usize) {
        let y = self.y(step);
        writeln!(
            svg,
            "<rect class=\"row\" data-step=\"{step}\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{ROW}\" rx=\"4\"/>\
             <text class=\"number\" x=\"{}\" y=\"{}\">{}</text>",
            y - ROW / 2,
            self.memory_left() + self.memory_width,
            LEFT - 10,
            y + 4,
            step + 1
        )
        .expect("writing to a string");
    }

    /// The position of a waiting store's bar. Stores that wait at the same time have bars next to each other.
    fn bar_left(&self, store: usize) -> usize {
        self.box_left(store) + self.box_width + 6 + self.slots[store].min(MAX_BARS) * (BAR + 2)
    }

    /// The step in which a store reaches memory.
    fn update_of(&self, store: usize) -> Option<usize> {
        (store + 1..self.evidence.run.steps.len())
            .find(|&step| self.story.links.store_of[step] == Some(store))
    }

    /// A bar from a store down to where it reaches memory.
    fn bar(&self, svg: &mut String, step: usize) {
        if !matches!(self.evidence.replay.effects[step], Effect::Buffered(..)) {
            return;
        }
        let (top, left) = (self.y(step), self.bar_left(step));
        if let Some(others) = self.slots[step].checked_sub(MAX_BARS) {
            writeln!(
                svg,
                "<text class=\"number\" x=\"{}\" y=\"{}\">+{}<title>the store of step {} waits in the buffer, too</title></text>",
                left + NUMBER - 4,
                top + 4,
                others + 1,
                step + 1
            )
            .expect("writing to a string");
            return;
        }
        let (bottom, class) = match self.update_of(step) {
            Some(update) => (self.y(update), "bar"),
            None => (TOP + self.shown.len() * ROW, "bar endless"),
        };
        writeln!(
            svg,
            "<g class=\"{}\"><rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{BAR}\" height=\"{}\" rx=\"3\"><title>the store of step {} waits in the buffer</title></rect></g>",
            colour(self.thread(step)),
            bottom.saturating_sub(top).max(BAR),
            step + 1
        )
        .expect("writing to a string");
    }

    /// What a step does to memory: whether it reads or writes, and what memory holds then.
    fn in_memory(&self, step: usize) -> Option<(Towards, String)> {
        let name = |cell| self.evidence.machine.system.cells[cell].name.as_str();
        match self.evidence.replay.effects[step] {
            Effect::Updated(cell, value)
            | Effect::Wrote(cell, value)
            | Effect::Locked { cell, wrote: Some(value), .. } => {
                Some((Towards::Memory, format!("{} = {}", name(cell), self.evidence.value(cell, value))))
            }
            Effect::ReadMemory(cell, value) | Effect::Locked { cell, read: value, wrote: None } => {
                Some((Towards::Thread, format!("{}: {}", name(cell), self.evidence.value(cell, value))))
            }
            _ => None,
        }
    }

    /// Arrows to and from memory, and what memory holds then.
    fn arrows(&self, svg: &mut String, step: usize) {
        let Some((towards, text)) = self.in_memory(step) else { return };
        let behind_box = self.box_left(step) + self.box_width;
        let bar = self.story.links.store_of[step].map(|store| self.bar_left(store) + BAR);
        let (here, memory) = (bar.unwrap_or(behind_box), self.memory_left() + 14);
        let (from, to, head, class) = match towards {
            Towards::Memory => (here, memory, -7, "to"),
            Towards::Thread => (memory, here, 7, "from"),
        };
        let y = self.y(step);
        writeln!(
            svg,
            "<g class=\"{} {class}\"><path class=\"wire\" d=\"M{from} {y}H{to}\"/><path class=\"head\" d=\"M{to} {y}l{head} -4v8z\"/></g>\
             <text class=\"cell {class}\" x=\"{}\" y=\"{}\">{}{}</text>",
            colour(self.thread(step)),
            self.memory_left() + 20,
            y + 4,
            title_if_cut(&text),
            escape(&fit(&text, *TEXT.end()))
        )
        .expect("writing to a string");
    }

    /// The text in the box of a step.
    fn box_text(&self, step: usize) -> String {
        fit(&self.whole_text(step), *TEXT.end())
    }

    /// The same, however long it is.
    fn whole_text(&self, step: usize) -> String {
        match self.evidence.run.steps[step].action {
            Action::Update { .. } => "reaches memory".to_owned(),
            Action::Execute { .. } => Some(self.story.effect(step))
                .filter(|effect| !effect.is_empty())
                .unwrap_or_else(|| self.story.source(step)),
        }
    }

    fn node(&self, svg: &mut String, step: usize) {
        let (left, y) = (self.box_left(step), self.y(step));
        let (kind, _) = kind(&self.evidence.replay.effects[step]);
        let line = self.story.line(step);
        let line = if line.is_empty() { String::new() } else { format!("line {line}: ") };
        let (text, whole) = (self.box_text(step), self.whole_text(step));
        let effect = if text == whole { String::new() } else { format!(" → {whole}") };
        writeln!(
            svg,
            "<g class=\"node {kind} {}\" data-step=\"{step}\"><title>step {}, {line}{}{}</title><rect x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/>\
             <text x=\"{}\" y=\"{}\">{}</text></g>",
            colour(self.thread(step)),
            step + 1,
            escape(&fit(&self.story.source(step), 120)),
            escape(&effect),
            y - BOX_HEIGHT / 2,
            self.box_width,
            left + 8,
            y + 4,
            escape(&text)
        )
        .expect("writing to a string");
    }

    /// An arrow from a step to above the oldest store that it overtook.
    fn overtaking(&self, svg: &mut String, step: usize, nested: &mut [usize]) {
        let Some(&oldest) = self.story.links.overtakes[step].first() else { return };
        let lane = self.lane(step);
        let (left, from, to) = (self.box_left(step), self.y(step), self.y(oldest) - BOX_HEIGHT / 2 - 2);
        let bend = left - 12 - (nested[lane] % 3) * 8;
        nested[lane] += 1;
        let note = self.story.note(step).unwrap_or_default();
        writeln!(
            svg,
            "<g class=\"overtakes\" data-step=\"{step}\"><title>{}</title><path d=\"M{left} {from}C{bend} {from} {bend} {from} {bend} {}V{}C{bend} {to} {bend} {to} {} {to}\"/>\
             <path class=\"head\" d=\"M{} {to}l-8 -4v8z\"/></g>",
            escape(&note),
            from - 10,
            to + 8,
            left - 2,
            left + 6
        )
        .expect("writing to a string");
    }
}

/// How many bars are to the left of each store's own: it takes the first place that no waiting store has.
fn slots(evidence: &Evidence<'_>, story: &Story<'_>) -> Vec<usize> {
    let mut slots = vec![0; evidence.run.steps.len()];
    let mut waiting: BTreeMap<ThreadId, Vec<Option<usize>>> = BTreeMap::new();
    for (step, effect) in evidence.replay.effects.iter().enumerate() {
        let places = waiting.entry(evidence.run.steps[step].thread).or_default();
        if matches!(effect, Effect::Buffered(..)) {
            let free = places.iter().position(Option::is_none).unwrap_or(places.len());
            places.resize(places.len().max(free + 1), None);
            places[free] = Some(step);
            slots[step] = free;
        }
        if let Some(store) = story.links.store_of[step] {
            places.iter_mut().filter(|place| **place == Some(store)).for_each(|place| *place = None);
        }
    }
    slots
}

/// The whole text as a title, where only a part of it fits.
fn title_if_cut(text: &str) -> String {
    if text.chars().count() <= *TEXT.end() {
        return String::new();
    }
    format!("<title>{}</title>", escape(text))
}
