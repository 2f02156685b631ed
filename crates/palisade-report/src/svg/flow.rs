//! Control flow: a column per process and procedure, its places below each other, its instructions on the way from one to
//! the next. Jumps run along the right side, those that span less further inside.

use super::Drawn;
use crate::fit;
use crate::html::{colour, escape};
use palisade_base::Id;
use palisade_program::describe;
use palisade_program::running::{Code, CodeId, Edge, Location, System};
use std::fmt::Write;

/// Pictures with more places or edges than this are useless.
const MAX_PARTS: usize = 400;
/// The longest text of an instruction, in characters.
const LONGEST: usize = 44;
/// The width of a character, in tenths of a pixel.
const CHARACTER: usize = 77;
/// The room of one instruction, and of a place.
const LINE: usize = 24;
const PLACE: usize = 22;
const TOP: usize = 52;
/// Where the places of a column are, and where the texts begin.
const MIDDLE: usize = 84;
const TEXT: usize = MIDDLE + 16;
/// Room below the last jump.
const BOTTOM: usize = 8;
/// The distance of two jumps that run side by side.
const TRACK: usize = 11;
const GAP: usize = 18;

/// The control flow of everything in a program, or `None` if that is too much.
pub(super) fn flow(system: &System) -> Option<Drawn> {
    let parts: usize = system.codes.iter().map(|code| code.location_count() + code.edges().len()).sum();
    if parts > MAX_PARTS {
        return None;
    }
    let (mut x, mut height) = (0, 0);
    let mut elements = String::new();
    for (id, code) in system.codes.iter_enumerated() {
        let column = Column::new(system, code);
        let (width, tall) = column.size();
        writeln!(
            elements,
            "<g class=\"{}\" transform=\"translate({x} 0)\"><rect class=\"lane\" width=\"{width}\" height=\"{tall}\" rx=\"10\"/>\
             <text class=\"name\" x=\"16\" y=\"28\">{}</text>",
            colour(id.index()),
            with_title(&title(system, id, code), width.saturating_sub(24) * 10 / 85)
        )
        .expect("writing to a string");
        column.draw(&mut elements);
        elements.push_str("</g>\n");
        x += width + GAP;
        height = height.max(tall);
    }
    Some(Drawn { width: x.saturating_sub(GAP), height: height + 8, elements })
}

fn title(system: &System, id: CodeId, code: &Code) -> String {
    match system.roles.iter().find(|role| role.code == id) {
        Some(role) => format!("process {}", role.name),
        None => format!("procedure {}", code.name),
    }
}

/// A text, or as much of it as fits, with the whole as a title.
fn with_title(text: &str, most: usize) -> String {
    let title = match text.chars().count() > most {
        true => format!("<title>{}</title>", escape(text)),
        false => String::new(),
    };
    title + &escape(&fit(text, most))
}

/// An instruction of a column.
struct Way<'a> {
    from: usize,
    to: usize,
    /// All of its text. Only a part of it may fit.
    text: String,
    edge: &'a Edge,
    /// Which track it runs along, or `None` if it leads to the place below.
    track: Option<usize>,
}

/// A process or procedure, laid out.
struct Column<'a> {
    code: &'a Code,
    /// The places from top to bottom, and where they are.
    places: Vec<Location>,
    y: Vec<usize>,
    ways: Vec<Way<'a>>,
    height: usize,
}

impl<'a> Column<'a> {
    fn new(system: &System, code: &'a Code) -> Column<'a> {
        let places = in_order(code);
        let row = |location: Location| places.iter().position(|&other| other == location);
        let mut ways: Vec<Way<'a>> = Vec::new();
        for edge in code.edges() {
            let (Some(from), Some(to)) = (row(edge.source), row(edge.target)) else { continue };
            let text = describe::instruction(system, code, &edge.instr);
            ways.push(Way { from, to, text, edge, track: None });
        }
        tracks(&mut ways);
        let mut y = Vec::new();
        let mut at = TOP;
        for place in 0..places.len() {
            y.push(at + PLACE / 2);
            let leaving = ways.iter().filter(|way| way.from == place).count();
            at += PLACE + leaving.max(1) * LINE;
        }
        Column { code, places, y, ways, height: at + BOTTOM }
    }

    fn text_width(&self) -> usize {
        self.ways.iter().map(|way| way.text.chars().count().min(LONGEST)).max().unwrap_or(0) * CHARACTER / 10
    }

    fn size(&self) -> (usize, usize) {
        let tracks = self.ways.iter().filter_map(|way| way.track).max().map_or(0, |track| track + 1);
        ((TEXT + self.text_width() + 18 + tracks * TRACK).max(170), self.height)
    }

    fn draw(&self, svg: &mut String) {
        let mut below = vec![0; self.places.len()];
        // Those that lead to the place below come last, next to it.
        let mut ways: Vec<&Way<'_>> = self.ways.iter().collect();
        ways.sort_by_key(|way| (way.from, way.track.is_none(), way.track));
        for way in ways {
            let line = self.y[way.from] + PLACE / 2 + below[way.from] * LINE;
            below[way.from] += 1;
            self.way(svg, way, line);
        }
        for (row, &place) in self.places.iter().enumerate() {
            self.place(svg, row, place);
        }
    }

    /// An instruction whose text is in a given line.
    fn way(&self, svg: &mut String, way: &Way<'_>, line: usize) {
        let (from, to) = (self.y[way.from], self.y[way.to]);
        let baseline = line + 13;
        match way.track {
            None => writeln!(
                svg,
                "<path class=\"edge\" d=\"M{MIDDLE} {from}V{}\"/><path class=\"arrow-head\" d=\"M{MIDDLE} {}l-4 -8h8z\"/>",
                to - 8,
                to - 7
            ),
            Some(track) => {
                let x = TEXT + self.text_width() + 10 + track * TRACK;
                let (bend, left) = (line + 20, MIDDLE + 9);
                writeln!(
                    svg,
                    "<path class=\"edge\" d=\"M{MIDDLE} {from}V{bend}H{x}V{to}H{left}\"/><path class=\"arrow-head\" d=\"M{} {to}l8 -4v8z\"/>",
                    left - 1
                )
            }
        }
        .expect("writing to a string");
        let text = with_title(&way.text, LONGEST);
        writeln!(svg, "<text x=\"{TEXT}\" y=\"{baseline}\">{text}</text>").expect("writing to a string");
    }

    fn place(&self, svg: &mut String, row: usize, place: Location) {
        let y = self.y[row];
        let class = if place == self.code.exit { "place exit" } else { "place" };
        let labels: Vec<&str> =
            self.code.labels.iter().filter(|(_, at)| *at == place).map(|(label, _)| label.as_str()).collect();
        writeln!(svg, "<circle class=\"{class}\" cx=\"{MIDDLE}\" cy=\"{y}\" r=\"6\"/>")
            .expect("writing to a string");
        if !labels.is_empty() {
            writeln!(
                svg,
                "<text class=\"number\" x=\"{}\" y=\"{}\">{}</text>",
                MIDDLE - 12,
                y + 4,
                with_title(&labels.join(", "), 9)
            )
            .expect("writing to a string");
        }
    }
}

/// The places that can be reached, in the order in which the program has them: depth first, the end at the end.
fn in_order(code: &Code) -> Vec<Location> {
    let mut found = Vec::new();
    let mut open = vec![code.entry];
    while let Some(place) = open.pop() {
        if found.contains(&place) {
            continue;
        }
        found.push(place);
        let targets = code.edges_from(place).map(|edge| code.edges().as_slice()[edge as usize].target);
        open.extend(targets.collect::<Vec<_>>().into_iter().rev());
    }
    if let Some(at) = found.iter().position(|&place| place == code.exit) {
        found.remove(at);
        found.push(code.exit);
    }
    found
}

/// Gives every jump a track, such that two jumps on one track do not touch. Only the first way to the place below is not a
/// jump.
fn tracks(ways: &mut [Way<'_>]) {
    let mut straight = std::collections::BTreeSet::new();
    let mut jumps: Vec<usize> = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        debug_assert!(way.edge.source != way.edge.target || way.from == way.to);
        if way.to != way.from + 1 || !straight.insert(way.from) {
            jumps.push(index);
        }
    }
    jumps.sort_by_key(|&index| ways[index].from.abs_diff(ways[index].to));
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    for index in jumps {
        let (low, high) = (ways[index].from.min(ways[index].to), ways[index].from.max(ways[index].to));
        let is_free = |spans: &Vec<(usize, usize)>| spans.iter().all(|&(a, b)| high < a || b < low);
        let track = taken.iter().position(is_free).unwrap_or(taken.len());
        if track == taken.len() {
            taken.push(Vec::new());
        }
        taken[track].push((low, high));
        ways[index].track = Some(track);
    }
}
