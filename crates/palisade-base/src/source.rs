//! Source texts and positions in them.

use std::ops::Range;

/// A range of bytes of the one source text a program was read from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of code that has no source text, such as generated code.
    pub const NONE: Span = Span { start: u32::MAX, end: u32::MAX };

    /// A span over a range of bytes.
    pub fn new(range: Range<usize>) -> Span {
        Span { start: clamp(range.start), end: clamp(range.end) }
    }

    /// The smallest span that contains both.
    pub fn to(self, other: Span) -> Span {
        match (self.is_none(), other.is_none()) {
            (true, _) => other,
            (_, true) => self,
            _ => Span { start: self.start.min(other.start), end: self.end.max(other.end) },
        }
    }

    /// Whether this is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self == Span::NONE
    }

    /// The bytes as a range of indices.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

fn clamp(byte: usize) -> u32 {
    u32::try_from(byte).unwrap_or(u32::MAX)
}

/// Where a piece of a program was written.
///
/// It is ignored by equality and hashing: two programs are equal if they have the same content, wherever it
/// was written.
#[derive(Clone, Copy, Debug)]
pub struct Origin(pub Span);

impl Origin {
    /// The origin of generated code.
    pub const NONE: Origin = Origin(Span::NONE);
}

impl Default for Origin {
    fn default() -> Self {
        Origin::NONE
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

impl Eq for Origin {}

impl std::hash::Hash for Origin {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A named source text that knows where its lines begin.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// A source with the name that messages use for it (usually its path).
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i + 1))
            .collect();
        Source { name: name.into(), text, line_starts }
    }

    /// The name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span; empty if the span lies outside the text or inside a character.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column of the start of a span; `None` for [`Span::NONE`].
    pub fn position(&self, span: Span) -> Option<Position> {
        if span.is_none() {
            return None;
        }
        let byte = (span.start as usize).min(self.text.len());
        let line = self.line_starts.partition_point(|&start| start <= byte) - 1;
        let column = self.text.get(self.line_starts[line]..byte).map_or(0, |s| s.chars().count());
        Some(Position { line: clamp(line + 1), column: clamp(column + 1) })
    }

    /// The text of a line (counted from 1), without its end.
    pub fn line(&self, line: u32) -> &str {
        let index = line as usize - 1;
        let Some(&start) = self.line_starts.get(index) else { return "" };
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |&next| next - 1);
        self.text[start..end].trim_end_matches('\r')
    }

    /// The number of lines.
    pub fn line_count(&self) -> usize {
        self.line_starts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::new("t", "ab\nçd\n");
        assert_eq!(source.position(Span::new(0..1)), Some(Position { line: 1, column: 1 }));
        assert_eq!(source.position(Span::new(5..6)), Some(Position { line: 2, column: 2 }));
        assert_eq!(source.position(Span::new(99..99)), Some(Position { line: 3, column: 1 }));
        assert_eq!(source.position(Span::NONE), None);
        assert_eq!(source.line(2), "çd");
        assert_eq!(source.line(3), "");
    }

    #[test]
    fn joining_with_nothing_changes_nothing() {
        let span = Span::new(3..5);
        assert_eq!(span.to(Span::NONE), span);
        assert_eq!(Span::NONE.to(span), span);
        assert_eq!(span.to(Span::new(1..4)), Span::new(1..5));
    }
}
