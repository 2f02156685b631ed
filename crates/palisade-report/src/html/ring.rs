//! A happens-before cycle for narrow screens: the events are below each other in the order of the cycle. Each arrow leads to
//! the next event, and one on the right leads from the last back to the first.

use super::cycle::class;
use super::text::escape;
use super::timeline::colour;
use crate::cycle::{place_of_step, why};
use crate::fit;
use palisade_base::Id;
use palisade_trace::Evidence;
use palisade_trace::{Arrow, Cycle, HappensBefore};
use std::fmt::Write;

const LEFT: usize = 4;
const TOP: usize = 6;
const BOX: usize = 292;
const BOX_HEIGHT: usize = 46;
const GAP: usize = 44;
/// How far to the right of the boxes the arrow back to the first event runs.
const BACK: usize = 24;
/// The number of characters that fit into a box, and above an arrow.
const BOX_TEXT: usize = 35;
const LABEL_TEXT: usize = 42;

/// The picture for narrow screens.
pub(super) fn ring(evidence: &Evidence<'_>, happens_before: &HappensBefore, cycle: &Cycle) -> String {
    let rows = cycle.arrows.len();
    let (width, height) = (LEFT + BOX + BACK + 8, TOP + rows * (BOX_HEIGHT + GAP) + 4);
    let mut svg = format!(
        "<svg class=\"narrow\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\"><title>Happens-before cycle</title>\n"
    );
    for (row, arrow) in cycle.arrows.iter().enumerate() {
        node(&mut svg, evidence, happens_before, arrow.from, top(row));
        way(&mut svg, evidence, arrow, row, row + 1 == rows);
    }
    svg.push_str("</svg>\n");
    svg
}

fn top(row: usize) -> usize {
    TOP + row * (BOX_HEIGHT + GAP)
}

fn node(svg: &mut String, evidence: &Evidence<'_>, happens_before: &HappensBefore, event: usize, top: usize) {
    let event = &happens_before.events[event];
    let (text, colour) = (place_of_step(evidence, event.steps[0]), colour(event.thread.index()));
    writeln!(
        svg,
        "<g class=\"node {colour}\" data-step=\"{}\"><title>{}</title><rect x=\"{LEFT}\" y=\"{top}\" width=\"{BOX}\" height=\"{BOX_HEIGHT}\" rx=\"8\"/>\
         <text class=\"name\" x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\">{}</text></g>",
        event.steps[0],
        escape(&text),
        LEFT + 10,
        top + 18,
        escape(&fit(&evidence.name(event.thread), BOX_TEXT)),
        LEFT + 10,
        top + 36,
        escape(&fit(&text, BOX_TEXT))
    )
    .expect("writing to a string");
}

/// An arrow to the box below, or from the last box to the first.
fn way(svg: &mut String, evidence: &Evidence<'_>, arrow: &Arrow, row: usize, is_last: bool) {
    let (middle, from) = (LEFT + BOX / 2, top(row) + BOX_HEIGHT);
    let (path, x, y, angle) = match is_last {
        false => (format!("M{middle} {from}V{}", from + GAP), middle, from + GAP, 90),
        true => {
            let (below, beside, first) = (from + GAP - 6, LEFT + BOX + BACK, TOP + BOX_HEIGHT / 2);
            (format!("M{middle} {from}V{below}H{beside}V{first}H{}", LEFT + BOX), LEFT + BOX, first, 180)
        }
    };
    let (class, label) = (class(arrow.relation), fit(&why(evidence, arrow), LABEL_TEXT));
    let width = label.chars().count() * 64 / 10 + 10;
    writeln!(
        svg,
        "<g class=\"arrow {class}\"><path d=\"{path}\"/><path class=\"head\" transform=\"translate({x} {y}) rotate({angle})\" d=\"M0 0l-10 -5v10z\"/></g>\
         <g class=\"label {class}\"><rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"19\" rx=\"5\"/><text x=\"{middle}\" y=\"{}\">{}</text></g>",
        middle.saturating_sub(width / 2),
        from + 9,
        from + 22,
        escape(&label)
    )
    .expect("writing to a string");
}
