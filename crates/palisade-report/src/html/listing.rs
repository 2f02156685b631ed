//! The program, line by line. Lines that the run passes are marked, and fences are inserted where they
//! belong.

use super::text::escape;
use super::{ProgramText, Subject};
use palisade_base::{Source, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What is shown together with the text of a program.
#[derive(Default)]
pub(super) struct Marks {
    /// Rows that the run passes.
    pub(super) passed: BTreeSet<u32>,
    /// Rows of the property that is broken.
    pub(super) broken: BTreeSet<u32>,
    /// Lines with statements that no run reaches.
    pub(super) unreached: BTreeSet<u32>,
    /// Text to insert, by the offset of the byte that it goes in front of.
    pub(super) inserted: BTreeMap<usize, String>,
}

/// The rows that a span covers.
pub(super) fn lines_of(source: &Source, span: Span) -> BTreeSet<u32> {
    if span.is_none() {
        return BTreeSet::new();
    }
    let last = Span { start: span.end.saturating_sub(1).max(span.start), end: span.end };
    match (source.row(span), source.row(last)) {
        (Some(first), Some(last)) => (first..=last).collect(),
        _ => BTreeSet::new(),
    }
}

/// The program as a list of numbered lines, unless it is shown elsewhere. `data-line` is the row. Several files have
/// their names above them.
pub(super) fn listing(subject: Subject<'_>, marks: &Marks) -> String {
    let Subject { source, language, text } = subject;
    if text == ProgramText::Elsewhere {
        return String::new();
    }
    let mut html = format!(
        "<div class=\"listing\" role=\"region\" aria-label=\"Program {}\" tabindex=\"0\" dir=\"ltr\"><ol class=\"lines\" data-language=\"{}\">\n",
        escape(&crate::visible(source.name())),
        escape(language)
    );
    let mut start = 0;
    let text = source.text();
    // A line break at the very end of the text does not begin a new line.
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let mut files = source.files().peekable();
    let several = files.len() > 1;
    for (index, line) in lines.enumerate() {
        let number = index as u32 + 1;
        while let Some((name, _)) = files.next_if(|(_, first)| *first <= number) {
            if several {
                writeln!(html, "<li class=\"file\">{}</li>", escape(&crate::visible(name)))
                    .expect("writing to a string");
            }
        }
        let mut class = String::new();
        let mut note = String::new();
        if marks.passed.contains(&number) {
            class.push_str(" passed");
        }
        if marks.broken.contains(&number) {
            class.push_str(" broken");
            note.push_str("<span class=\"sr\">(broken property) </span>");
        }
        if marks.unreached.contains(&number) {
            class.push_str(" unreached");
            note.push_str("<span class=\"sr\">(never reached) </span>");
        }
        write!(
            html,
            "<li class=\"line{class}\" data-line=\"{number}\"><span class=\"marks\" aria-hidden=\"true\"></span><code>{note}"
        )
        .expect("writing to a string");
        let mut from = 0;
        for (&byte, inserted) in marks.inserted.range(start..=start + line.len()) {
            let at = byte - start;
            html.push_str(&escape(line.get(from..at).unwrap_or("")));
            write!(html, "<ins>{}</ins>", escape(inserted)).expect("writing to a string");
            from = at;
        }
        html.push_str(&escape(line.get(from..).unwrap_or("").trim_end_matches('\r')));
        html.push_str("</code></li>\n");
        start += line.len() + 1;
    }
    html.push_str("</ol></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_marks_and_insertions() {
        let source = Source::new("a.pal", "x = 1;\nif y < 2 {}\n\n");
        let mut marks = Marks::default();
        marks.passed.insert(1);
        marks.broken.insert(2);
        marks.inserted.insert(6, " fence;".to_owned());
        let subject = Subject { source: &source, language: "pal", text: ProgramText::Here };
        let html = listing(subject, &marks);
        assert_eq!(listing(Subject { text: ProgramText::Elsewhere, ..subject }, &marks), "");
        assert!(html.contains("<li class=\"line passed\" data-line=\"1\">"), "{html}");
        assert!(html.contains("x = 1;<ins> fence;</ins></code>"), "{html}");
        assert!(html.contains("if y &lt; 2 {}"), "{html}");
        assert_eq!(html.matches("<li").count(), 3);
        assert_eq!(lines_of(&source, Span::new(0..10)), BTreeSet::from([1, 2]));
        assert_eq!(lines_of(&source, Span::new(0..7)), BTreeSet::from([1]));
    }
}
