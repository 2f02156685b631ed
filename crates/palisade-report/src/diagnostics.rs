//! Diagnostics as text: place, source line, caret, help.
//!
//! Only the lines that a diagnostic points at are passed to the renderer, and only a window of a very long
//! line. So the cost of a message does not depend on the size of the file. A span of several lines is shown
//! by its first line.

use crate::visible::{visible, visible_lines, visible_source};
use crate::{Colour, fit};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use palisade_base::{Diagnostic, Position, Severity, Source, Span};
use std::fmt::Write;
use std::ops::Range;

/// Longer lines are cut to a window around what is pointed at.
const WIDEST_LINE: usize = 160;
/// How much of a cut line is kept in front of the first marked place.
const LEAD: usize = 40;
/// Labels whose lines are at most this far apart share an excerpt.
const NEAR: u32 = 6;
/// Messages and labels are cut to this many characters, because they may quote the input.
const LONGEST_MESSAGE: usize = 400;

/// Diagnostics about one source as text, one after the other. Shows at most `limit` of them. If there are
/// several, a last line counts them.
pub fn diagnostics(source: &Source, diagnostics: &[Diagnostic], limit: usize, colour: Colour) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(limit) {
        text.push_str(&self::diagnostic(source, diagnostic, colour));
        text.push('\n');
    }
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if diagnostics.len() > limit {
        writeln!(text, "{} more not shown", diagnostics.len() - limit).expect("writing to a string");
    }
    if errors > 1 {
        write!(text, "{}: {errors} errors", visible(source.name())).expect("writing to a string");
        if warnings > 0 {
            let plural = if warnings == 1 { "" } else { "s" };
            write!(text, ", {warnings} warning{plural}").expect("writing to a string");
        }
        text.push('\n');
    }
    text
}

/// One diagnostic as text, ending with a line break.
pub fn diagnostic(source: &Source, diagnostic: &Diagnostic, colour: Colour) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let excerpts = excerpts(source, diagnostic);
    let name = visible(source.file(diagnostic.span()));
    let message = visible_lines(&fit(&diagnostic.message, LONGEST_MESSAGE));
    let message = if excerpts.is_empty() { format!("{name}: {message}") } else { message };
    let mut group = Group::with_title(level.primary_title(message).id(diagnostic.id));
    let mut moved = Vec::new();
    for excerpt in excerpts {
        let name = visible(excerpt.file);
        if excerpt.shown_column != excerpt.place.column {
            let place = |column: u32| format!("{name}:{}:{column}", excerpt.place.line);
            moved.push((place(excerpt.shown_column), place(excerpt.place.column)));
        }
        let annotations = excerpt.marks.into_iter().map(|mark| {
            let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            let annotation = kind.span(mark.range);
            if mark.text.is_empty() { annotation } else { annotation.label(visible(&mark.text).into_owned()) }
        });
        let snippet = Snippet::source(visible_source(&excerpt.text))
            .path(name.into_owned())
            .line_start(excerpt.first_line as usize)
            .annotations(annotations);
        group = group.element(snippet);
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(
            Level::HELP.message(annotate_snippets::normalize_untrusted_str(&fit(help, LONGEST_MESSAGE))),
        );
    }
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let mut text = renderer.render(&[group]);
    // The renderer counts columns in the excerpt. In a cut line the true column is different.
    for (shown, place) in moved {
        text = text.replacen(&shown, &place, 1);
    }
    text.push('\n');
    text
}

/// Neighbouring lines of the source, shortened, with their marks.
struct Excerpt<'s> {
    file: &'s str,
    text: String,
    first_line: u32,
    /// The place named above the excerpt.
    place: Position,
    /// Its column in the excerpt.
    shown_column: u32,
    marks: Vec<Mark>,
}

/// A marked range, in bytes of the excerpt.
struct Mark {
    range: Range<usize>,
    primary: bool,
    text: String,
}

/// A label on its line. Bytes are those of the line.
struct Pointer<'a> {
    span: Span,
    row: u32,
    place: Position,
    bytes: Range<usize>,
    primary: bool,
    text: &'a str,
}

/// The excerpts of a diagnostic. The one with the primary label comes first.
fn excerpts<'s>(source: &'s Source, diagnostic: &Diagnostic) -> Vec<Excerpt<'s>> {
    let mut pointers: Vec<Pointer<'_>> = diagnostic
        .labels
        .iter()
        .enumerate()
        .filter_map(|(index, label)| pointer(source, label.span, &label.text, index == 0))
        .collect();
    pointers.sort_by_key(|pointer| (pointer.row, pointer.bytes.start));
    let near = |a: &Pointer<'_>, b: &Pointer<'_>| {
        b.row - a.row <= NEAR && source.file(a.span) == source.file(b.span)
    };
    let mut excerpts: Vec<Excerpt<'_>> = pointers.chunk_by(near).map(|near| excerpt(source, near)).collect();
    if let Some(first) = excerpts.iter().position(|excerpt| excerpt.marks.iter().any(|mark| mark.primary)) {
        excerpts[..=first].rotate_right(1);
    }
    excerpts
}

fn pointer<'a>(source: &Source, span: Span, text: &'a str, primary: bool) -> Option<Pointer<'a>> {
    let (place, row) = (source.position(span)?, source.row(span)?);
    let line = source.line(row);
    let start = line.char_indices().nth(place.column as usize - 1).map_or(line.len(), |(byte, _)| byte);
    let length = (span.end.saturating_sub(span.start)) as usize;
    let mut end = start.saturating_add(length).min(line.len()).max(start);
    while !line.is_char_boundary(end) {
        end += 1;
    }
    Some(Pointer { span, row, place, bytes: start..end, primary, text })
}

/// An excerpt from the first to the last line of these pointers.
fn excerpt<'s>(source: &'s Source, pointers: &[Pointer<'_>]) -> Excerpt<'s> {
    let (first, last) = (&pointers[0], &pointers[pointers.len() - 1]);
    let shown = pointers.iter().find(|pointer| pointer.primary).unwrap_or(&pointers[0]);
    let mut excerpt = Excerpt {
        file: source.file(first.span),
        text: String::new(),
        first_line: first.place.line,
        place: shown.place,
        shown_column: shown.place.column,
        marks: Vec::new(),
    };
    for row in first.row..=last.row {
        let here = pointers.iter().filter(|pointer| pointer.row == row);
        let focus = here.clone().find(|pointer| pointer.primary).or_else(|| here.clone().next());
        let line = source.line(row);
        let window = window(line, focus.map_or(0, |pointer| pointer.bytes.start));
        if window.start > 0 {
            excerpt.text.push('…');
            if row == shown.row {
                let before =
                    line[window.start..shown.bytes.start.clamp(window.start, window.end)].chars().count();
                excerpt.shown_column = before as u32 + 2;
            }
        }
        let offset = excerpt.text.len();
        excerpt.text.push_str(&line[window.clone()]);
        for pointer in here {
            let clip = |byte: usize| offset + byte.clamp(window.start, window.end) - window.start;
            excerpt.marks.push(Mark {
                range: clip(pointer.bytes.start)..clip(pointer.bytes.end),
                primary: pointer.primary,
                text: fit(pointer.text, LONGEST_MESSAGE),
            });
        }
        if window.end < line.len() {
            excerpt.text.push('…');
        }
        excerpt.text.push('\n');
    }
    excerpt
}

/// The part of a line to show. That is all of it, unless it is too long.
fn window(line: &str, focus: usize) -> Range<usize> {
    if line.len() <= WIDEST_LINE {
        return 0..line.len();
    }
    let boundary = |mut byte: usize| {
        while !line.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    };
    let start = boundary(focus.saturating_sub(LEAD).min(line.len() - WIDEST_LINE));
    start..boundary((start + WIDEST_LINE).min(line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, labels: &[(Span, &str)], expected: &str) {
        let source = Source::new("t.pal", text);
        let mut error = Diagnostic::error("some-id", "something is wrong");
        for (span, label) in labels {
            error = error.at(*span, *label);
        }
        let rendered = diagnostic(&source, &error.help("fix it"), Colour::Never);
        assert_eq!(rendered.trim_end(), expected.trim_matches('\n'), "\n{rendered}");
    }

    #[test]
    fn one_place() {
        check(
            "shared x;\nprocess P { y = 1; }\n",
            &[(Span::new(22..23), "not declared")],
            "
error[some-id]: something is wrong
 --> t.pal:2:13
  |
2 | process P { y = 1; }
  |             ^ not declared
  |
  = help: fix it",
        );
    }

    #[test]
    fn nowhere_and_the_end_of_the_file() {
        check("", &[(Span::NONE, "")], "error[some-id]: t.pal: something is wrong\n |\n = help: fix it");
        for text in ["ab", "ab\n"] {
            let source = Source::new("t", text);
            for byte in [2, 3, 4, 9000] {
                let error = Diagnostic::error("i", "m").at(Span::new(byte..byte + 3), "here");
                let rendered = diagnostic(&source, &error, Colour::Never);
                assert!(rendered.contains("^ here"), "{rendered}");
            }
        }
    }

    #[test]
    fn every_span_of_any_text_can_be_shown() {
        for text in ["", "\n", "ç", "aç\r\né\u{200d}x\n\n", "\t😀\u{1b}[31m\u{0}\n"] {
            let source = Source::new("t", text);
            for start in 0..text.len() + 2 {
                for end in 0..text.len() + 3 {
                    let span = Span { start: start as u32, end: end as u32 };
                    let error = Diagnostic::error("i", "m").at(span, "here").at(Span::new(0..1), "and");
                    assert!(diagnostic(&source, &error, Colour::Never).contains("here"));
                }
            }
        }
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_place() {
        let text = format!("{}!{}", "ç".repeat(500_000), "b".repeat(500_000));
        let source = Source::new("t", text);
        let error = Diagnostic::error("i", "m").at(Span::new(1_000_000..1_000_001), "here");
        let rendered = diagnostic(&source, &error, Colour::Never);
        assert!(rendered.len() < 1500, "{} bytes", rendered.len());
        assert!(rendered.contains("t:1:500001") && rendered.contains("ç!b"), "{rendered}");
    }

    #[test]
    fn far_places_get_their_own_excerpts_and_the_primary_one_comes_first() {
        let text = "first\n".to_owned() + &"\n".repeat(50) + "second\n";
        check(
            &text,
            &[(Span::new(56..62), "declared again"), (Span::new(0..5), "declared here")],
            "
error[some-id]: something is wrong
  --> t.pal:52:1
   |
52 | second
   | ^^^^^^ declared again
   |
  ::: t.pal:1:1
   |
 1 | first
   | ----- declared here
   |
   = help: fix it",
        );
    }
}
