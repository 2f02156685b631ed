//! Pictures that stand alone: a run, or the control flow of a program, as SVG.
//!
//! A picture has its own colours and its own background, light or dark as the reader prefers. So it can be read wherever
//! it is shown, and needs no other file.

mod flow;
mod style;

use crate::explain;
use crate::html::{drawn_run, escape, left_out};
use crate::story::Story;
use palisade_program::running::System;
use palisade_trace::Evidence;
use std::fmt::Write;

/// Space around everything.
const MARGIN: usize = 16;
/// The height of a line of text.
const LINE: usize = 20;
/// The size of a heading, in tenths of a pixel. Text below the picture is a little smaller.
const SIZE: usize = 140;

/// A part of a picture: its size, and the elements in it.
pub(crate) struct Drawn {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) elements: String,
}

/// A run as a picture: who did what when, which stores waited, and what the run shows. `None` if the run is too long or
/// has too many processes for a picture.
pub fn run(evidence: &Evidence<'_>) -> Option<String> {
    let drawn = drawn_run(evidence)?;
    let model = evidence.machine.model.name().to_uppercase();
    let what = format!("{}, {model}: {}", evidence.source.name(), explain(evidence));
    let mut legend = "Time runs downwards. A bar is a store waiting in its buffer.".to_owned();
    if drawn.elements.contains("class=\"overtakes\"") {
        legend
            .push_str(" An orange arrow leads from a step that took effect early to the store it overtook.");
    }
    if drawn.elements.contains(">+1<") {
        legend.push_str(" A number such as +1 counts waiting stores that have no bar.");
    }
    let local = left_out(evidence, &Story::new(evidence));
    Some(picture(&what, &drawn, &[&legend, &local]))
}

/// The control flow of a program as a picture. `None` if it is too large for one.
pub fn program(name: &str, system: &System) -> Option<String> {
    Some(picture(name, &flow::flow(system)?, &[]))
}

/// A whole picture with lines above and below.
fn picture(title: &str, drawn: &Drawn, legend: &[&str]) -> String {
    let width = drawn.width.max(360) + 2 * MARGIN;
    let above = wrapped(title, width);
    let below: Vec<String> = legend.iter().flat_map(|text| wrapped(text, width)).collect();
    let top = MARGIN + above.len() * LINE + 4;
    let bottom = top + drawn.height;
    let height = bottom + below.len() * LINE + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{}</style>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\" rx=\"12\"/>\n",
        escape(title),
        style::sheet()
    );
    let mut lines = |class: &str, lines: &[String], from: usize| {
        for (index, line) in lines.iter().enumerate() {
            let y = from + index * LINE + 14;
            writeln!(svg, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escape(line))
                .expect("writing to a string");
        }
    };
    lines("heading", &above, MARGIN);
    lines("legend", &below, bottom + 4);
    let left = (width - drawn.width) / 2;
    write!(svg, "<g transform=\"translate({left} {top})\">\n{}</g>\n</svg>\n", drawn.elements)
        .expect("writing to a string");
    svg
}

/// A text in lines that fit into a width, broken between words. Words that do not fit into a line are broken, too.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let most = (width - 2 * MARGIN) * 10;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(" ") + text_width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(String::new()),
        }
        let Some(line) = lines.last_mut().filter(|line| line.is_empty()) else { continue };
        let mut parts = vec![String::new()];
        for c in word.chars() {
            let part = parts.last_mut().expect("there is a first part");
            if !part.is_empty() && text_width(part) + character_width(c) > most {
                parts.push(c.to_string());
            } else {
                part.push(c);
            }
        }
        *line = parts.remove(0);
        lines.extend(parts);
    }
    lines
}

/// The width of a heading, in tenths of a pixel.
fn text_width(text: &str) -> usize {
    text.chars().map(character_width).sum()
}

/// The width of a character of a heading, in tenths of a pixel. Fonts differ; this is that of a wide one, in bold.
fn character_width(c: char) -> usize {
    let percent = match c {
        'i' | 'j' | 'l' | 'I' | ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '/' => 40,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '_' | '"' | '!' => 52,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 112,
        '&' | '+' | '<' | '=' | '>' | '≠' | '≤' | '≥' => 90,
        'A'..='Z' => 82,
        _ if c.is_ascii() => 73,
        _ => 105,
    };
    SIZE * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("", 400), Vec::<String>::new());
        assert_eq!(wrapped("a b", 400), ["a b"]);
        let lines = wrapped(&"word ".repeat(30), 392);
        assert!(lines.iter().all(|line| line.len() <= 46) && lines.len() == 5, "{lines:?}");
    }

    #[test]
    fn long_words_are_broken() {
        let word = "a_long_name".repeat(20);
        let lines = wrapped(&format!("x {word} y"), 392);
        assert!(lines.iter().all(|line| text_width(line) <= 3600), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), format!("x{word}y"));
    }
}
