//! The same picture for narrow screens: the lanes of the threads and of memory are thin, and what a step does is written to
//! the right of all of them, with the thread's name.

use super::{BOX_HEIGHT, Drawing, ROW, TOP, Towards, colour};
use crate::fit;
use crate::html::data::kind;
use crate::html::text::escape;
use palisade_base::Id;
use palisade_memory::{Action, Effect};
use std::fmt::Write;

const LEFT: usize = 36;
/// The room of a lane: for arrows, the mark of a step, and bars.
const ARROWS: usize = 8;
const MARK: usize = 10;
/// Room for this many bars next to each other, and for more if there are few lanes. Other stores have no bar.
const BARS: usize = 3;
const MORE_BARS: usize = 8;
/// The width of the lane of memory.
const MEMORY: usize = 14;
/// The longest text of a step.
const LONGEST: usize = 30;

impl Drawing<'_> {
    /// The picture for narrow screens.
    pub(super) fn narrow(&self, description: &str) -> String {
        let text = |step: &usize| self.narrow_text(*step).chars().count();
        let longest = self.shown.iter().map(text).max().unwrap_or(0).min(LONGEST);
        let width = self.text_left() + longest * super::CHARACTER / 10 + 8;
        let height = TOP - 30 + self.shown.len() * ROW + 12;
        let mut svg = String::new();
        for (lane, &thread) in self.cast.shown.iter().enumerate() {
            writeln!(
                svg,
                "<g class=\"{}\"><rect class=\"thin\" x=\"{}\" y=\"4\" width=\"{}\" height=\"{}\" rx=\"6\"><title>{}</title></rect></g>",
                colour(thread.index()),
                self.thin_left(lane),
                self.thin_width() - 3,
                height - 8,
                escape(&self.evidence.name(thread))
            )
            .expect("writing to a string");
        }
        writeln!(
            svg,
            "<rect class=\"thin\" x=\"{0}\" y=\"4\" width=\"{MEMORY}\" height=\"{1}\" rx=\"6\"/><text class=\"memory\" x=\"{0}\" y=\"16\">memory</text>",
            self.thin_left(self.lanes),
            height - 8
        )
        .expect("writing to a string");
        if let Some((before, rows)) = self.repeated_rows() {
            writeln!(
                svg,
                "<g class=\"repeats\"><title>These steps are repeated forever</title>\
                 <rect x=\"2\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\"/></g>",
                TOP - 30 + before * ROW,
                width - 4,
                rows * ROW
            )
            .expect("writing to a string");
        }
        for &step in self.shown {
            self.narrow_row(&mut svg, step, width);
        }
        for &step in self.shown {
            self.narrow_bar(&mut svg, step);
        }
        for &step in self.shown {
            self.narrow_wire(&mut svg, step);
        }
        for &step in self.shown {
            self.narrow_node(&mut svg, step);
        }
        for &step in self.shown {
            self.narrow_overtaking(&mut svg, step);
        }
        format!(
            "<svg class=\"narrow\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
             <title>The run as a picture</title>\n<desc>{}</desc>\n{svg}</svg>\n",
            escape(description)
        )
    }

    /// Lanes are thinner where there are many.
    fn thin_bar(&self) -> usize {
        if self.lanes > 5 || self.thin_bars() > BARS { 2 } else { 4 }
    }

    /// How many bars there is room for.
    fn thin_bars(&self) -> usize {
        let most = self.slots.iter().max().map_or(0, |slot| slot + 1);
        if self.lanes > 2 { BARS } else { most.clamp(BARS, MORE_BARS) }
    }

    fn thin_width(&self) -> usize {
        ARROWS + MARK + 3 + self.thin_bars() * (self.thin_bar() + 1) + 3
    }

    fn thin_left(&self, lane: usize) -> usize {
        LEFT + lane * self.thin_width()
    }

    fn text_left(&self) -> usize {
        self.thin_left(self.lanes) + MEMORY + 6
    }

    fn mark_left(&self, step: usize) -> usize {
        self.thin_left(self.lane(step)) + ARROWS
    }

    /// The middle of a step's row.
    fn narrow_y(&self, step: usize) -> usize {
        self.y(step) - 30
    }

    fn narrow_text(&self, step: usize) -> String {
        let name = self.evidence.name(self.evidence.run.steps[step].thread);
        let text = match (self.evidence.run.steps[step].action, self.in_memory(step)) {
            (Action::Update { .. }, Some((_, now))) => format!("{now} in memory"),
            _ => self.box_text(step),
        };
        fit(&format!("{} {text}", fit(&name, 12)), LONGEST)
    }

    fn narrow_row(&self, svg: &mut String, step: usize, width: usize) {
        let y = self.narrow_y(step);
        writeln!(
            svg,
            "<rect class=\"row\" data-step=\"{step}\" x=\"0\" y=\"{}\" width=\"{width}\" height=\"{ROW}\" rx=\"4\"/>\
             <text class=\"number\" x=\"{}\" y=\"{}\">{}</text>",
            y - ROW / 2,
            LEFT - 6,
            y + 4,
            step + 1
        )
        .expect("writing to a string");
    }

    fn narrow_bar_left(&self, store: usize) -> usize {
        self.mark_left(store) + MARK + 3 + self.slots[store].min(self.thin_bars()) * (self.thin_bar() + 1)
    }

    /// An arrow to or from memory.
    fn narrow_wire(&self, svg: &mut String, step: usize) {
        let Some((towards, _)) = self.in_memory(step) else { return };
        let bar = self.story.links.store_of[step].map(|store| self.narrow_bar_left(store) + self.thin_bar());
        let here = bar.unwrap_or(self.mark_left(step) + MARK);
        let (memory, y) = (self.thin_left(self.lanes) + MEMORY / 2, self.narrow_y(step));
        let (from, to, head, class) = match towards {
            Towards::Memory => (here, memory, -6, "to"),
            Towards::Thread => (memory, here, 6, "from"),
        };
        writeln!(
            svg,
            "<g class=\"{} {class}\"><path class=\"wire\" d=\"M{from} {y}H{to}\"/><path class=\"head\" d=\"M{to} {y}l{head} -3v6z\"/></g>",
            colour(self.thread(step))
        )
        .expect("writing to a string");
    }

    /// A bar as long as a store waits.
    fn narrow_bar(&self, svg: &mut String, step: usize) {
        let is_store = matches!(self.evidence.replay.effects[step], Effect::Buffered(..));
        if !is_store || self.slots[step] >= self.thin_bars() {
            return;
        }
        let (left, top) = (self.narrow_bar_left(step), self.narrow_y(step));
        let bottom = match self.update_of(step) {
            Some(update) => self.narrow_y(update),
            None => TOP - 30 + self.shown.len() * ROW,
        };
        writeln!(
            svg,
            "<g class=\"{}\"><rect class=\"bar\" x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" rx=\"2\"><title>the store of step {} waits in the buffer</title></rect></g>",
            colour(self.thread(step)),
            self.thin_bar(),
            bottom.saturating_sub(top).max(self.thin_bar()),
            step + 1
        )
        .expect("writing to a string");
    }

    fn narrow_node(&self, svg: &mut String, step: usize) {
        let (left, y) = (self.mark_left(step), self.narrow_y(step));
        let (kind, _) = kind(&self.evidence.replay.effects[step]);
        writeln!(
            svg,
            "<g class=\"node {kind} {}\" data-step=\"{step}\"><title>{}</title><rect x=\"{left}\" y=\"{}\" width=\"{MARK}\" height=\"{MARK}\" rx=\"5\"/>\
             <text x=\"{}\" y=\"{}\">{}</text></g>",
            colour(self.thread(step)),
            escape(&self.whole_text(step)),
            y - MARK / 2,
            self.text_left(),
            y + 4,
            escape(&self.narrow_text(step))
        )
        .expect("writing to a string");
    }

    /// An arrow from a step to above the oldest store that it overtook.
    fn narrow_overtaking(&self, svg: &mut String, step: usize) {
        let Some(&oldest) = self.story.links.overtakes[step].first() else { return };
        let (left, from) = (self.mark_left(step), self.narrow_y(step));
        let (bend, to) = (left - ARROWS + 3, self.narrow_y(oldest) - BOX_HEIGHT / 2 + 2);
        writeln!(
            svg,
            "<g class=\"overtakes\" data-step=\"{step}\"><title>{}</title><path d=\"M{left} {from}H{bend}V{to}H{}\"/>\
             <path class=\"head\" d=\"M{} {to}l-6 -3v6z\"/></g>",
            escape(&self.story.note(step).unwrap_or_default()),
            left + 2,
            left + 7
        )
        .expect("writing to a string");
    }
}
