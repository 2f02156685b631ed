//! What an engine did during its work, with the source lines that this is about.

use palisade_base::Source;
use palisade_engine::Note;

/// At most this many characters of a note's text are shown.
const WIDEST: usize = 400;

/// A numbered line per note: its text and the source lines it is about, without repetitions.
pub fn notes(source: &Source, notes: &[Note]) -> String {
    let mut text = String::new();
    for (index, note) in notes.iter().enumerate() {
        let mut lines: Vec<String> = Vec::new();
        for line in note.places.iter().filter_map(|&span| source.line_number(span)) {
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        let words = crate::fit(&note.text, WIDEST);
        let places = match lines.len() {
            0 => String::new(),
            1 => format!(" (line {})", lines[0]),
            _ => format!(" (lines {})", crate::fit(&lines.join(", "), WIDEST)),
        };
        text.push_str(&format!("{}. {words}{places}\n", index + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Span;

    #[test]
    fn places_are_given_by_line() {
        let source = Source::new("a.pal", "one\ntwo\nthree\n");
        let note = |text: &str, starts: &[usize]| Note {
            text: text.to_owned(),
            places: starts.iter().map(|&start| Span::new(start..start + 1)).collect(),
        };
        let text = notes(&source, &[note("a", &[0, 1, 4, 8]), note("b", &[5]), note("c", &[])]);
        assert_eq!(text, "1. a (lines 1, 2, 3)\n2. b (line 2)\n3. c\n");
    }
}
