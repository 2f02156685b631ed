//! A happens-before cycle as a picture: a column per thread, events in program order, arrows with their
//! reasons. Narrow screens show another picture, the [`ring`](super::ring).

use super::ring::ring;
use super::text::escape;
use super::timeline::colour;
use crate::cycle::{place_of_step, why};
use crate::fit;
use palisade_base::Id;
use palisade_program::running::ThreadId;
use palisade_trace::Evidence;
use palisade_trace::{Arrow, Cycle, HappensBefore, Relation};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const BOX: f64 = 230.0;
const BOX_HEIGHT: f64 = 34.0;
const ROW: f64 = 96.0;
const GAP: f64 = 350.0;
const TOP: f64 = 60.0;
const LEFT: f64 = 70.0;
/// The number of characters that fit into a box.
const BOX_TEXT: usize = 29;

/// The picture, with the arrows as a list below it.
pub(super) fn picture(evidence: &Evidence<'_>, happens_before: &HappensBefore, cycle: &Cycle) -> String {
    let drawing = Drawing::new(evidence, happens_before, cycle);
    let mut html = String::from(
        "<figure class=\"cycle\">\n<div class=\"wide\" role=\"region\" aria-label=\"Happens-before cycle\" tabindex=\"0\">\n",
    );
    html.push_str(&drawing.svg());
    html.push_str(&ring(evidence, happens_before, cycle));
    html.push_str("</div>\n<figcaption>Each event comes before the next, and the last before the first. No total order of them exists, so no sequentially consistent run behaves like this one.</figcaption>\n<ol>\n");
    for arrow in &cycle.arrows {
        let place = |event: usize| {
            let event = &happens_before.events[event];
            format!("{}’s {}", evidence.name(event.thread), place_of_step(evidence, event.steps[0]))
        };
        writeln!(
            html,
            "<li>{} comes before {} <span class=\"muted\">({})</span></li>",
            escape(&place(arrow.from)),
            escape(&place(arrow.to)),
            escape(&why(evidence, arrow))
        )
        .expect("writing to a string");
    }
    html.push_str("</ol>\n</figure>\n");
    html
}

struct Drawing<'a> {
    evidence: &'a Evidence<'a>,
    happens_before: &'a HappensBefore,
    cycle: &'a Cycle,
    threads: Vec<ThreadId>,
    /// Column and row of an event.
    places: BTreeMap<usize, (usize, usize)>,
}

impl<'a> Drawing<'a> {
    fn new(evidence: &'a Evidence<'a>, happens_before: &'a HappensBefore, cycle: &'a Cycle) -> Drawing<'a> {
        let events: BTreeSet<usize> = cycle.arrows.iter().map(|arrow| arrow.from).collect();
        let thread = |event: usize| happens_before.events[event].thread;
        let mut threads: Vec<ThreadId> = Vec::new();
        for arrow in &cycle.arrows {
            if !threads.contains(&thread(arrow.from)) {
                threads.push(thread(arrow.from));
            }
        }
        let mut rows = vec![0; threads.len()];
        let mut places = BTreeMap::new();
        for event in events {
            let column = threads.iter().position(|&other| other == thread(event)).expect("all are listed");
            places.insert(event, (column, rows[column]));
            rows[column] += 1;
        }
        Drawing { evidence, happens_before, cycle, threads, places }
    }

    fn svg(&self) -> String {
        let rows = self.places.values().map(|&(_, row)| row + 1).max().unwrap_or(1);
        let width = 2.0 * LEFT + self.threads.len() as f64 * (BOX + GAP) - GAP;
        let height = TOP + (rows - 1) as f64 * ROW + BOX_HEIGHT + 50.0;
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\"><title>Happens-before cycle</title>\n"
        );
        for (column, &thread) in self.threads.iter().enumerate() {
            let x = LEFT + column as f64 * (BOX + GAP);
            writeln!(
                svg,
                "<text class=\"name {}\" x=\"{x}\" y=\"32\">{}</text>",
                colour(thread.index()),
                escape(&fit(&self.evidence.name(thread), BOX_TEXT))
            )
            .expect("writing to a string");
        }
        for arrow in &self.cycle.arrows {
            self.arrow(&mut svg, arrow);
        }
        for &event in self.places.keys() {
            self.node(&mut svg, event);
        }
        // Words are drawn above boxes and lines.
        for arrow in &self.cycle.arrows {
            self.label(&mut svg, arrow);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Left and middle of an event's box.
    fn place(&self, event: usize) -> (f64, f64) {
        let (column, row) = self.places[&event];
        (LEFT + column as f64 * (BOX + GAP), TOP + row as f64 * ROW + BOX_HEIGHT / 2.0)
    }

    fn node(&self, svg: &mut String, event: usize) {
        let (x, y) = self.place(event);
        let event = &self.happens_before.events[event];
        let text = place_of_step(self.evidence, event.steps[0]);
        writeln!(
            svg,
            "<g class=\"node {}\" data-step=\"{}\"><title>{}</title><rect x=\"{x}\" y=\"{}\" width=\"{BOX}\" height=\"{BOX_HEIGHT}\" rx=\"8\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
            colour(event.thread.index()),
            event.steps[0],
            escape(&text),
            y - BOX_HEIGHT / 2.0,
            x + 10.0,
            y + 4.5,
            escape(&fit(&text, BOX_TEXT))
        )
        .expect("writing to a string");
    }

    /// The four points of an arrow's curve.
    fn curve(&self, arrow: &Arrow) -> [(f64, f64); 4] {
        let ((x1, y1), (x2, y2)) = (self.place(arrow.from), self.place(arrow.to));
        let half = BOX_HEIGHT / 2.0;
        if x1 == x2 && (y2 - y1 - ROW).abs() < 1.0 {
            // To the next box below.
            let x = x1 + BOX / 2.0;
            return [(x, y1 + half), (x, y1 + half + 12.0), (x, y2 - half - 24.0), (x, y2 - half)];
        }
        if x1 == x2 {
            // Past boxes of the same thread, on their left.
            let x = x1 - LEFT + 14.0;
            return [(x1, y1), (x, y1), (x, y2), (x2, y2)];
        }
        let (from, to) = if x1 < x2 { (x1 + BOX, x2) } else { (x1, x2 + BOX) };
        let bend = (to - from) * 0.45;
        [(from, y1), (from + bend, y1), (to - bend, y2), (to, y2)]
    }

    fn arrow(&self, svg: &mut String, arrow: &Arrow) {
        let [a, b, c, d] = self.curve(arrow);
        let angle = (d.1 - c.1).atan2(d.0 - c.0).to_degrees();
        writeln!(
            svg,
            "<g class=\"arrow {}\"><path d=\"M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}\"/><path class=\"head\" transform=\"translate({:.1} {:.1}) rotate({angle:.1})\" d=\"M0 0l-10 -5v10z\"/></g>",
            class(arrow.relation), a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1, d.0, d.1
        )
        .expect("writing to a string");
    }

    fn label(&self, svg: &mut String, arrow: &Arrow) {
        let [a, b, c, d] = self.curve(arrow);
        let label = fit(&why(self.evidence, arrow), 24);
        let width = label.chars().count() as f64 * 6.4 + 10.0;
        let at = |t: f64| {
            let s = 1.0 - t;
            let mix = |f: fn((f64, f64)) -> f64| {
                s.powi(3) * f(a) + 3.0 * s * s * t * f(b) + 3.0 * s * t * t * f(c) + t.powi(3) * f(d)
            };
            (mix(|p| p.0), mix(|p| p.1))
        };
        // Next to the box where the arrow starts, so that the words of crossing arrows stay apart.
        let far_enough = |t: &f64| (at(*t).0 - a.0).abs() >= width / 2.0 + 8.0;
        let (x, y) = match a.0 == d.0 {
            true => at(0.5),
            false => at((1..50).map(|i| f64::from(i) / 100.0).find(far_enough).unwrap_or(0.5)),
        };
        writeln!(
            svg,
            "<g class=\"label {}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"19\" rx=\"5\"/><text x=\"{x:.1}\" y=\"{:.1}\">{}</text></g>",
            class(arrow.relation),
            x - width / 2.0,
            y - 9.5,
            y + 4.0,
            escape(&label)
        )
        .expect("writing to a string");
    }
}

/// The class that gives an arrow its colour.
pub(super) fn class(relation: Relation) -> &'static str {
    match relation {
        Relation::ProgramOrder | Relation::Starts => "po",
        Relation::ReadsFrom => "rf",
        Relation::Coherence => "co",
        Relation::FromRead => "fr",
    }
}
