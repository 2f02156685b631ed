//! The style sheet of a picture that stands alone. Colours are written out, because not every program that shows SVG knows
//! variables.

use std::fmt::Write;

/// The colours of a picture.
struct Palette {
    paper: &'static str,
    card: &'static str,
    ink: &'static str,
    muted: &'static str,
    over: &'static str,
    bad: &'static str,
    threads: [&'static str; 6],
}

const LIGHT: Palette = Palette {
    paper: "#ffffff",
    card: "#ffffff",
    ink: "#1c2230",
    muted: "#596174",
    over: "#9a4300",
    bad: "#b3261e",
    threads: ["#1f5fc4", "#8034b5", "#0a7263", "#b02a68", "#7e5109", "#475569"],
};

const DARK: Palette = Palette {
    paper: "#14171c",
    card: "#1c2027",
    ink: "#e8eaee",
    muted: "#a3abb9",
    over: "#ffa657",
    bad: "#ff8f85",
    threads: ["#82b1ff", "#d09bf5", "#58cdb9", "#ff93bd", "#e2b368", "#a9b6c8"],
};

/// Shapes and fonts, whatever the colours.
const SHAPES: &str = "\
text { font: 12.5px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
.heading { font: 600 14px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; }
.legend { font: 12.5px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; }
.name { font: 700 14px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; }
.number { text-anchor: end; font-size: 11.5px; }
.row { fill: none; }
.lane { fill-opacity: .07; }
.node rect { stroke-width: 1.4; }
.node.update rect { stroke-dasharray: 4 3; }
.bar { opacity: .4; }
.wire, .edge, .overtakes path, .repeats rect, .repeats path { fill: none; }
.wire { stroke-width: 1.3; opacity: .75; }
.from .wire { stroke-dasharray: 3 4; }
.cell.to { font-weight: 700; }
.overtakes path { stroke-width: 2; }
.repeats rect { stroke-width: 1.6; stroke-dasharray: 7 4; }
.repeats text { font: 700 11.5px system-ui, sans-serif; text-anchor: middle; }
.overtakes .head, .repeats .head { stroke: none; }
.edge { stroke-width: 1.3; }
.place { stroke-width: 1.4; }
.exit { stroke-width: 3; }
";

/// The style sheet: light, or dark if the reader prefers that.
pub(super) fn sheet() -> String {
    let dark = colours(&DARK);
    let dark = dark.lines().map(|line| format!("  {line}\n")).collect::<String>();
    format!("{SHAPES}{}@media (prefers-color-scheme: dark) {{\n{dark}}}\n", colours(&LIGHT))
}

fn colours(palette: &Palette) -> String {
    let Palette { paper, card, ink, muted, over, bad, threads } = palette;
    let mut css = format!(
        ".paper {{ fill: {paper}; }}\ntext {{ fill: {ink}; }}\n.legend, .number, .cell.from {{ fill: {muted}; }}\n\
         .lane, .name, .arrow-head {{ fill: {muted}; }}\n.node rect, .place {{ fill: {card}; }}\n.edge, .place {{ stroke: {muted}; }}\n\
         .overtakes path, .repeats path {{ stroke: {over}; }}\n.overtakes .head {{ fill: {over}; }}\n\
         .repeats rect, .repeats path {{ stroke: {bad}; }}\n.repeats text, .repeats .head {{ fill: {bad}; }}\n"
    );
    for (number, colour) in threads.iter().enumerate() {
        writeln!(
            css,
            ".t{number} .lane, .t{number} .name, .t{number} .bar, .t{number} .head {{ fill: {colour}; }}\n\
             .t{number} .wire, .node.t{number} rect, .t{number} .place {{ stroke: {colour}; }}"
        )
        .expect("writing to a string");
    }
    writeln!(css, ".node.fault rect {{ stroke: {bad}; }}").expect("writing to a string");
    css
}
