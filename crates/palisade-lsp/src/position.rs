//! Positions: bytes of a text, and lines with columns that count UTF-16 units, as the protocol has them.

use lsp_types::{Position, Range, TextDocumentContentChangeEvent};
use palisade::Span;

/// Where the lines of a text begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Lines { starts: std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect() }
    }

    /// The text of a line (from 0) with its end; empty after the last one.
    pub(crate) fn line<'t>(&self, text: &'t str, line: usize) -> &'t str {
        let Some(&start) = self.starts.get(line) else { return "" };
        &text[start..self.starts.get(line + 1).copied().unwrap_or(text.len())]
    }

    /// The position of a byte. Within a character, its start is meant.
    pub(crate) fn position(&self, text: &str, byte: usize) -> Position {
        let byte = byte.min(text.len());
        let line = self.starts.partition_point(|&start| start <= byte) - 1;
        let before = text.get(self.starts[line]..byte);
        let units =
            before.map_or_else(|| units_before(&text[self.starts[line]..], byte - self.starts[line]), units);
        Position::new(clamp(line), clamp(units))
    }

    /// The byte of a position. A column after the end of its line is its end; a line after the last is the end.
    pub(crate) fn byte(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.starts.get(line) else { return text.len() };
        let content = self.line(text, line).trim_end_matches(['\r', '\n']);
        let mut units = position.character as usize;
        for (offset, c) in content.char_indices() {
            if units < c.len_utf16() {
                return start + offset;
            }
            units -= c.len_utf16();
        }
        start + content.len()
    }

    /// The range of a span. One outside the text is its start.
    pub(crate) fn range(&self, text: &str, span: Span) -> Range {
        if span.is_none() {
            return Range::default();
        }
        Range::new(self.position(text, span.start as usize), self.position(text, span.end as usize))
    }

    /// From a column (from 1, in characters) of a line (from 1) to the end of the statement there, which has this
    /// text.
    pub(crate) fn statement(&self, text: &str, line: u32, column: u32, statement: &str) -> Range {
        let index = (line as usize).saturating_sub(1);
        let content = self.line(text, index).trim_end();
        let indent = content.len() - content.trim_start().len();
        let skipped: usize =
            content.chars().take((column as usize).saturating_sub(1)).map(char::len_utf8).sum();
        let start = if column <= 1 { indent } else { skipped };
        let rest = &content[start.min(content.len())..];
        let first = statement.lines().next().unwrap_or("");
        let len = if !first.is_empty() && rest.starts_with(first) { first.len() } else { rest.len() };
        let begin = self.starts.get(index).copied().unwrap_or(text.len()) + start.min(content.len());
        Range::new(self.position(text, begin), self.position(text, begin + len))
    }
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

fn units_before(text: &str, byte: usize) -> usize {
    text.char_indices()
        .take_while(|(offset, c)| offset + c.len_utf8() <= byte)
        .map(|(_, c)| c.len_utf16())
        .sum()
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Applies a change of the client to a text.
pub(crate) fn apply(text: &mut String, change: TextDocumentContentChangeEvent) {
    match change.range {
        None => *text = change.text,
        Some(range) => {
            let lines = Lines::new(text);
            let (start, end) = (lines.byte(text, range.start), lines.byte(text, range.end));
            text.replace_range(start.min(end)..end.max(start), &change.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_utf_16_units() {
        let text = "a𝔵b\né\r\n\nlast";
        let lines = Lines::new(text);
        let check = |byte: usize, line, character| {
            assert_eq!(lines.position(text, byte), Position::new(line, character), "{byte}");
            assert_eq!(lines.byte(text, Position::new(line, character)), byte, "{line}:{character}");
        };
        check(0, 0, 0);
        check(1, 0, 1);
        check(5, 0, 3);
        check(6, 0, 4);
        check(7, 1, 0);
        check(9, 1, 1);
        check(11, 2, 0);
        check(12, 3, 0);
        check(16, 3, 4);
        // Inside a character, after the end of a line, after the last line.
        assert_eq!(lines.position(text, 3), Position::new(0, 1));
        assert_eq!(lines.byte(text, Position::new(0, 2)), 1);
        assert_eq!(lines.byte(text, Position::new(1, 99)), 9);
        assert_eq!(lines.byte(text, Position::new(99, 0)), text.len());
    }

    #[test]
    fn changes_are_applied_where_they_are() {
        let change = |range, text: &str| TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text: text.into(),
        };
        let range = |a, b, c, d| Some(Range::new(Position::new(a, b), Position::new(c, d)));
        let mut text = "𝔵 = 1;\nnext\n".to_owned();
        apply(&mut text, change(range(0, 5, 0, 6), "2"));
        assert_eq!(text, "𝔵 = 2;\nnext\n");
        apply(&mut text, change(range(0, 7, 1, 4), ""));
        assert_eq!(text, "𝔵 = 2;\n");
        apply(&mut text, change(None, "all"));
        assert_eq!(text, "all");
        apply(&mut text, change(range(7, 0, 9, 0), "!"));
        assert_eq!(text, "all!");
    }
}
