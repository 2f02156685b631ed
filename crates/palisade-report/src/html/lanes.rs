//! The steps of an execution as a picture. There is a lane per thread, and time runs downwards.
//!
//! - A store that waits in its buffer has a bar, from the step that made it to the step in which it reaches memory. A lane is as
//!   wide as its longest buffer. Stores beyond [`Shape::max_bars`] share a bar, with their number beside it.
//! - An arrow leads from a step that overtook a store to above that store.
//! - Folded steps leave a gap with their number.
//!
//! For narrow screens there is another picture, in which lanes are thin and the text of a step is to the right of them.

use super::execution::Execution;
use super::text::escape;
use super::timeline::colour;
use crate::{fit, visible};
use palisade_harness::timeline::StepKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A picture has at most this many steps: the last ones.
pub(super) const MAX_ROWS: usize = 400;
/// Pictures with more lanes are useless.
const MAX_LANES: usize = 16;

const ROW: usize = 32;
const GAP: usize = 24;
const TOP: usize = 48;
const LEFT: usize = 50;
/// Space for arrows to the left of a lane's boxes.
const ARROWS: usize = 22;
const BOX_HEIGHT: usize = 24;
const BAR: usize = 7;
/// Space for the number of stores that have no bar of their own.
const MORE: usize = 26;
/// Boxes are as wide as the longest text in one of them, within this range of characters.
const TEXT: std::ops::RangeInclusive<usize> = 12..=36;
/// With more than two lanes, boxes have at most this many characters.
const NARROW: usize = 25;
/// The width of a character, in tenths of a pixel.
const CHARACTER: usize = 70;
/// In thin lanes, a step is a mark of this size.
const MARK: usize = 10;
/// The longest text of a step to the right of thin lanes.
const BESIDE: usize = 34;
/// The height of the box that says how the execution ended.
const END: usize = 40;

/// The picture of the steps that are not folded.
pub(super) fn picture(execution: &Execution<'_>, shown: &[usize]) -> String {
    let lanes = execution.timeline.threads.len();
    let mut html = String::from("<figure class=\"timeline\">");
    if lanes > MAX_LANES {
        writeln!(
            html,
            "<p class=\"muted\">There is no picture: {lanes} threads are too many to draw.</p></figure>"
        )
        .expect("writing to a string");
        return html;
    }
    let shown = &shown[shown.len().saturating_sub(MAX_ROWS)..];
    let drawing = Drawing::new(execution, shown, lanes, Shape::Wide);
    write!(
        html,
        "<div class=\"wide tall\" role=\"region\" aria-label=\"Picture of the execution\" tabindex=\"0\">\n{}{}</div>\n{}</figure>\n",
        drawing.svg(),
        Drawing::new(execution, shown, lanes, Shape::Thin).svg(),
        drawing.legend()
    )
    .expect("writing to a string");
    html
}

/// How wide lanes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Each has room for the text of its steps.
    Wide,
    /// The text is to the right of all lanes.
    Thin,
}

impl Shape {
    /// How many bars one of these lanes has next to each other at most. With more, the others would not fit the screen.
    fn max_bars(self, lanes: usize) -> usize {
        match self {
            Shape::Wide => 8,
            Shape::Thin if lanes > 3 => 3,
            Shape::Thin => 6,
        }
    }
}

struct Drawing<'a> {
    shape: Shape,
    execution: &'a Execution<'a>,
    shown: &'a [usize],
    lanes: usize,
    box_width: usize,
    text_width: usize,
    /// The middle of the row of each step that is shown.
    y: BTreeMap<usize, usize>,
    /// Gaps: where, and how many steps are folded there.
    gaps: Vec<(usize, usize)>,
    top: usize,
    bottom: usize,
    reached: BTreeMap<usize, usize>,
    /// The bar of each store that is shown, by its position beside the boxes.
    slots: BTreeMap<usize, usize>,
    /// How many bars each lane would have next to each other.
    longest: Vec<usize>,
}

impl<'a> Drawing<'a> {
    fn new(execution: &'a Execution<'a>, shown: &'a [usize], lanes: usize, shape: Shape) -> Drawing<'a> {
        let (mut y, mut gaps) = (BTreeMap::new(), Vec::new());
        let top = if shape == Shape::Thin { TOP / 2 } else { TOP };
        let mut bottom = top;
        let mut before = shown.first().copied().unwrap_or(0);
        for &step in shown {
            let folded = (step - before).saturating_sub(1);
            if folded > 0 {
                gaps.push((bottom + GAP / 2, folded));
                bottom += GAP;
            }
            y.insert(step, bottom + ROW / 2);
            bottom += ROW;
            before = step;
        }
        let after = execution.timeline.steps.len().saturating_sub(before + 1);
        if after > 0 && !shown.is_empty() {
            gaps.push((bottom + GAP / 2, after));
            bottom += GAP;
        }
        let reached = execution.reached();
        let slots = slots(execution, shown, &reached);
        let mut longest = vec![0; lanes];
        for (&store, &slot) in &slots {
            let longest = &mut longest[execution.timeline.steps[store].lane];
            *longest = (slot + 1).max(*longest);
        }
        let mut drawing = Drawing {
            shape,
            execution,
            shown,
            lanes,
            box_width: 0,
            text_width: 0,
            y,
            gaps,
            top,
            bottom,
            reached,
            slots,
            longest,
        };
        let longest = shown.iter().map(|&step| drawing.text(step).chars().count()).max().unwrap_or(0);
        drawing.text_width = 16 + longest.max(*TEXT.start()) * CHARACTER / 10;
        drawing.box_width = if shape == Shape::Thin { MARK } else { drawing.text_width };
        drawing
    }

    /// Space for arrows.
    fn arrows(&self) -> usize {
        if self.shape == Shape::Thin { 8 } else { ARROWS }
    }

    /// The width of a bar. Thin lanes are thinner where there are many.
    fn bar_width(&self) -> usize {
        match self.shape {
            Shape::Wide => BAR,
            Shape::Thin if self.lanes > 5 => 2,
            Shape::Thin => 4,
        }
    }

    fn max_bars(&self) -> usize {
        self.shape.max_bars(self.lanes)
    }

    fn lane_width(&self, lane: usize) -> usize {
        let longest = self.longest[lane];
        let bars = longest.clamp(1, self.max_bars());
        let more = if longest > self.max_bars() { self.bar_width() + MORE } else { 0 };
        more + match self.shape {
            Shape::Wide => ARROWS + self.box_width + 8 + bars * (BAR + 2),
            Shape::Thin => self.arrows() + MARK + 6 + bars * (self.bar_width() + 1),
        }
    }

    fn lane_left(&self, lane: usize) -> usize {
        LEFT + (0..lane).map(|lane| self.lane_width(lane)).sum::<usize>()
    }

    fn width(&self) -> usize {
        let lanes = self.lane_left(self.lanes) + 6;
        if self.shape == Shape::Thin { lanes + self.text_width } else { lanes }
    }

    fn lane(&self, step: usize) -> usize {
        self.execution.timeline.steps[step].lane
    }

    fn box_left(&self, step: usize) -> usize {
        self.lane_left(self.lane(step)) + self.arrows()
    }

    fn text_left(&self, step: usize) -> usize {
        match self.shape {
            Shape::Wide => self.box_left(step) + 8,
            Shape::Thin => self.lane_left(self.lanes) + 6,
        }
    }

    fn box_height(&self) -> usize {
        if self.shape == Shape::Thin { MARK } else { BOX_HEIGHT }
    }

    fn svg(&self) -> String {
        let end = self.execution.important.map(|important| important.message.as_str());
        let (width, height) = (self.width(), self.bottom + if end.is_some() { END + 16 } else { 12 });
        let mut svg = format!(
            "<svg{} viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
             <title>The execution as a picture</title>\n<desc>{} steps of {} threads. {} of them overtake a store.</desc>\n",
            if self.shape == Shape::Thin { " class=\"narrow\"" } else { "" },
            self.shown.len(),
            self.lanes,
            self.overtakings().count()
        );
        for lane in 0..self.lanes {
            let name = match self.shape {
                Shape::Wide => format!(
                    "<text class=\"name\" x=\"{}\" y=\"30\">{}</text>",
                    self.lane_left(lane) + ARROWS,
                    self.execution.thread(lane)
                ),
                Shape::Thin => {
                    let middle = self.lane_left(lane) + self.arrows() + MARK / 2;
                    format!("<text class=\"number\" x=\"{}\" y=\"20\">{lane}</text>", middle + 4)
                }
            };
            let gap = if self.shape == Shape::Thin { 1 } else { 2 };
            writeln!(
                svg,
                "<g class=\"{}\"><rect class=\"lane\" x=\"{}\" y=\"6\" width=\"{}\" height=\"{}\" rx=\"10\"/>{name}</g>",
                colour(lane),
                self.lane_left(lane) + gap,
                self.lane_width(lane) - 2 * gap,
                self.bottom - 2
            )
            .expect("writing to a string");
        }
        // What is on top is drawn last.
        self.shown.iter().for_each(|&step| self.row(&mut svg, step));
        self.gaps(&mut svg);
        self.slots.keys().for_each(|&store| self.bar(&mut svg, store));
        (0..self.lanes).for_each(|lane| self.more(&mut svg, lane));
        self.shown.iter().for_each(|&step| self.node(&mut svg, step));
        self.overtaking(&mut svg);
        if let Some(message) = end {
            let room = (width - 60) * 10 / CHARACTER;
            writeln!(
                svg,
                "<g class=\"outcome\"><rect x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
                self.bottom + 10,
                width - LEFT - 6,
                END - 8,
                LEFT + 12,
                self.bottom + 10 + END / 2,
                escape(&fit(message, room))
            )
            .expect("writing to a string");
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn row(&self, svg: &mut String, step: usize) {
        let y = self.y[&step];
        writeln!(
            svg,
            "<rect class=\"row\" data-step=\"{step}\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{ROW}\" rx=\"4\"/>\
             <text class=\"number\" x=\"{}\" y=\"{}\">{}</text>",
            y - ROW / 2,
            self.width(),
            LEFT - 8,
            y + 4,
            self.execution.number(step)
        )
        .expect("writing to a string");
    }

    fn gaps(&self, svg: &mut String) {
        for &(y, folded) in &self.gaps {
            let steps = if folded == 1 { "step" } else { "steps" };
            writeln!(
                svg,
                "<g class=\"gap\"><path d=\"M{} {y}H{}\"/><text x=\"{}\" y=\"{}\">⋯</text><title>{folded} {steps} folded</title></g>",
                LEFT,
                self.width() - 8,
                LEFT - 8,
                y + 4
            )
            .expect("writing to a string");
        }
    }

    fn bar_left(&self, store: usize) -> usize {
        self.box_left(store)
            + self.box_width
            + (self.arrows() / 3).min(6)
            + self.slots[&store].min(self.max_bars()) * (self.bar_width() + 1)
    }

    /// The step in which a store reaches memory. Later than all steps if it does not.
    fn end(&self, store: usize) -> usize {
        self.reached.get(&store).copied().unwrap_or(usize::MAX)
    }

    /// A bar from a store down to where it, or the store that ends last, reaches memory.
    fn rect(&self, svg: &mut String, store: usize, end: usize, title: &str) {
        let top = self.y.get(&store).copied().unwrap_or(self.top);
        let width = self.bar_width();
        let (bottom, class) = match self.y.get(&end) {
            Some(&bottom) => (bottom, "bar"),
            None => (self.bottom, "bar endless"),
        };
        writeln!(
            svg,
            "<g class=\"{}\"><rect class=\"{class}\" data-store=\"{store}\" x=\"{}\" y=\"{top}\" width=\"{width}\" height=\"{}\" rx=\"3\"><title>{title}</title></rect></g>",
            colour(self.lane(store)),
            self.bar_left(store),
            bottom.saturating_sub(top).max(width),
        )
        .expect("writing to a string");
    }

    /// The bars of stores that have none of their own: one for all that wait at the same time, with their number where it
    /// changes.
    fn more(&self, svg: &mut String, lane: usize) {
        let has_bar = |slot: usize| slot < self.max_bars();
        let stores = self.slots.iter().filter(|&(&store, &slot)| self.lane(store) == lane && !has_bar(slot));
        let stores: Vec<usize> = stores.map(|(&store, _)| store).collect();
        let waiting =
            |step: usize| stores.iter().filter(|&&store| store <= step && step < self.end(store)).count();
        let first = self.shown.first().copied().unwrap_or(0);
        let mut rest = stores.as_slice();
        while let Some((&start, _)) = rest.split_first() {
            let mut end = self.end(start);
            let together = rest.iter().take_while(|&&store| {
                store == start
                    || store < end && {
                        end = end.max(self.end(store));
                        true
                    }
            });
            let (run, after) = rest.split_at(together.count());
            rest = after;
            let most = run.iter().map(|&store| waiting(store)).max().unwrap_or(0);
            let stores = if most == 1 { "store waits" } else { "stores wait" };
            self.rect(svg, start, end, &format!("{most} more {stores} in the store buffer"));
            let left = self.bar_left(start) + self.bar_width() + 2;
            let changes = run.iter().flat_map(|&store| [store.max(first), self.end(store)]);
            for step in changes.collect::<BTreeSet<usize>>() {
                let Some((&y, count)) = self.y.get(&step).zip(Some(waiting(step)).filter(|&count| count > 0))
                else {
                    continue;
                };
                let colour = colour(lane);
                writeln!(
                    svg,
                    "<g class=\"{colour}\"><text class=\"more\" x=\"{left}\" y=\"{}\">+{count}</text></g>",
                    y + 4
                )
                .expect("writing to a string");
            }
        }
    }

    /// A bar from a store down to where it reaches memory.
    fn bar(&self, svg: &mut String, store: usize) {
        let width = self.bar_width();
        let reach = self.reached.get(&store);
        if self.slots[&store] < self.max_bars() {
            let number = self.execution.number(store);
            let title = format!("the store of step {number} waits in the store buffer");
            self.rect(svg, store, self.end(store), &title);
        }
        if let Some(&y) = reach.and_then(|reach| self.y.get(reach)) {
            let from = self.box_left(store) + self.box_width;
            writeln!(
                svg,
                "<g class=\"{}\"><path class=\"wire\" d=\"M{from} {y}H{}\"/></g>",
                colour(self.lane(store)),
                self.bar_left(store) + width
            )
            .expect("writing to a string");
        }
    }

    /// The text in the box of a step.
    fn text(&self, step: usize) -> String {
        let line = self.execution.line(step).map_or_else(String::new, |line| format!("{line}: "));
        let text = match self.execution.timeline.steps[step].kind {
            StepKind::Reach(Some(store)) => format!("step {} reaches memory", self.execution.number(store)),
            StepKind::Reach(None) | StepKind::Free | StepKind::Ended => {
                self.execution.effect(step, &self.reached)
            }
            StepKind::Start(lane) => format!("{line}starts {}", self.execution.thread(lane)),
            StepKind::Join(lane) => format!("{line}joins {}", self.execution.thread(lane)),
            _ => {
                let (place, text) = self.execution.words(step);
                if text.is_empty() { place } else { format!("{line}{text}") }
            }
        };
        match self.shape {
            Shape::Wide => fit(&text, if self.lanes > 2 { NARROW } else { *TEXT.end() }),
            Shape::Thin => fit(&text, BESIDE),
        }
    }

    fn node(&self, svg: &mut String, step: usize) {
        let (left, y) = (self.box_left(step), self.y[&step]);
        let kind = match self.execution.timeline.steps[step].kind {
            StepKind::Store | StepKind::Buffer | StepKind::Locked => "store",
            StepKind::Reach(_) => "update",
            StepKind::Load | StepKind::Forward(_) | StepKind::LockedLoad => "load",
            _ => "other",
        };
        let (place, text) = self.execution.words(step);
        let height = self.box_height();
        writeln!(
            svg,
            "<g class=\"node {kind} {}\" data-step=\"{step}\"><title>step {}, {} {}: {}</title><rect x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{height}\" rx=\"{}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text></g>",
            colour(self.lane(step)),
            self.execution.number(step),
            escape(&visible(&place)),
            escape(&fit(&text, 120)),
            escape(&self.execution.effect(step, &self.reached)),
            y - height / 2,
            self.box_width,
            (height / 4).max(5),
            self.text_left(step),
            y + 4,
            escape(&self.text(step))
        )
        .expect("writing to a string");
    }

    /// Overtakings whose ends are both in the picture.
    fn overtakings(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.execution.timeline.overtakings.iter().map(|found| (found.step, found.store));
        all.filter(|(step, store)| self.y.contains_key(step) && self.y.contains_key(store))
    }

    /// Arrows from steps to above the stores that they overtook.
    fn overtaking(&self, svg: &mut String) {
        for (step, store) in self.overtakings() {
            let (left, from) = (self.box_left(step), self.y[&step]);
            let to = self.y[&store] - self.box_height() / 2 - 2;
            let bend = left - self.arrows() * 2 / 3;
            writeln!(
                svg,
                "<g class=\"overtakes\" data-step=\"{step}\"><title>{}</title><path d=\"M{left} {from}C{bend} {from} {bend} {from} {bend} {}V{}C{bend} {to} {bend} {to} {} {to}\"/>\
                 <path class=\"head\" d=\"M{} {to}l-8 -4v8z\"/></g>",
                escape(&self.execution.overtaken(store)),
                from - 10,
                to + 8,
                left - 2,
                left + 6
            )
            .expect("writing to a string");
        }
    }

    fn legend(&self) -> String {
        let mut text = String::from("Time runs downwards.");
        if !self.slots.is_empty() {
            text.push_str(" A bar is a store waiting in its buffer.");
        }
        // The thin picture has fewer bars.
        let bars = Shape::Thin.max_bars(self.lanes);
        if self.longest.iter().any(|&longest| longest > bars) {
            text.push_str(" A number such as +5 stands for further stores that wait.");
        }
        if self.overtakings().next().is_some() {
            text.push_str(" <span class=\"over\">An orange arrow</span> leads from a step to the older store that it overtook.");
        }
        format!("<figcaption>{text}</figcaption>\n")
    }
}

/// The positions of the bars. Stores of one thread that wait at the same time have bars next to each other.
fn slots(
    execution: &Execution<'_>,
    shown: &[usize],
    reached: &BTreeMap<usize, usize>,
) -> BTreeMap<usize, usize> {
    let mut slots: BTreeMap<usize, usize> = BTreeMap::new();
    let Some((&first, &last)) = shown.first().zip(shown.last()) else { return slots };
    let steps = &execution.timeline.steps;
    let end = |store: usize| reached.get(&store).copied().unwrap_or(usize::MAX);
    // Which store uses a slot of a lane.
    let mut used: Vec<Vec<usize>> = vec![Vec::new(); execution.timeline.threads.len()];
    for store in (0..=last).filter(|&step| steps[step].kind == StepKind::Buffer && steps[step].fold.is_none())
    {
        if end(store) < first {
            continue;
        }
        let lane = &mut used[steps[store].lane];
        let free = lane.iter().position(|&other| end(other) <= store).unwrap_or(lane.len());
        if free == lane.len() {
            lane.push(store);
        } else {
            lane[free] = store;
        }
        slots.insert(store, free);
    }
    slots
}
