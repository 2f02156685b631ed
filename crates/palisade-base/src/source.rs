//! Source texts and positions in them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

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
///
/// It may hold several files, one after the other in one text: the main file first, then those that it
/// includes or is compiled with. Spans are ranges of the whole text, and lines are counted within each file.
/// A *row* is a line counted over the whole text. In a source of one file, rows are lines.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    row_starts: Vec<usize>,
    /// At least one. The first is the main file.
    files: Vec<File>,
    given: Box<Given>,
}

/// What is given from outside. In a box, because errors contain sources.
#[derive(Clone, Debug, Default)]
struct Given {
    /// Values of constants.
    constants: Vec<(String, i64)>,
    /// What the imports in the files refer to: by the number of the file, and the path that is written there.
    imports: BTreeMap<usize, BTreeMap<String, Imported>>,
}

/// What an import refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Imported {
    /// The file with this number.
    File(usize),
    /// Nothing: why, and what to do.
    Missing(String, String),
}

/// One file of a source.
#[derive(Clone, Debug)]
struct File {
    name: String,
    /// Where it begins in the text.
    start: usize,
    /// How many rows precede it.
    rows_before: usize,
    /// How many of its lines come before those that are here.
    lines_before: usize,
}

impl Source {
    /// A source with the name that messages use for it (usually its path).
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let row_starts = row_starts(&text);
        Source {
            text,
            row_starts,
            files: vec![File { name: name.into(), start: 0, rows_before: 0, lines_before: 0 }],
            given: Box::default(),
        }
    }

    /// The same source, in which constants have these values instead of those in the text. The last value of a
    /// name counts.
    pub fn with_constants(mut self, constants: impl IntoIterator<Item = (String, i64)>) -> Source {
        for (name, value) in constants {
            self.given.constants.retain(|(known, _)| *known != name);
            self.given.constants.push((name, value));
        }
        self
    }

    /// The values of constants that were given from outside.
    pub fn constants(&self) -> &[(String, i64)] {
        &self.given.constants
    }

    /// A source of one file with another text. The name of the main file and the given constants stay the same.
    pub fn with_text(&self, text: impl Into<String>) -> Source {
        let given = Given { constants: self.given.constants.clone(), imports: BTreeMap::new() };
        Source { given: Box::new(given), ..Source::new(self.name(), text) }
    }

    /// The same files with other texts. Names, constants and what imports refer to stay the same.
    pub fn with_texts<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Source {
        let mut texts = self.files.iter().zip(texts);
        let (main, text) = texts.next().expect("there is a main file");
        let mut source = Source::new(main.name.as_str(), text);
        for (file, text) in texts {
            source.add(file.name.as_str(), text);
        }
        Source { given: self.given.clone(), ..source }
    }

    /// The same source after changes of its whole text that move the end of each file as given.
    pub fn with_changes(&self, text: &str, moved: impl Fn(usize) -> usize) -> Source {
        let mut start = 0;
        let texts: Vec<&str> = (0..self.files.len())
            .map(|file| {
                let end = moved(self.file_span(file).end as usize);
                &text[std::mem::replace(&mut start, end)..end]
            })
            .collect();
        self.with_texts(texts)
    }

    /// Says what the import of a path in a file refers to.
    pub fn import(&mut self, from: usize, path: &str, target: Imported) {
        self.given.imports.entry(from).or_default().insert(path.to_owned(), target);
    }

    /// What the import of a path in a file refers to. `None` if nobody has looked for it.
    pub fn imported(&self, from: usize, path: &str) -> Option<&Imported> {
        self.given.imports.get(&from)?.get(path)
    }

    /// A text that identifies the source: no other source with imports has the same one. It is the whole text if
    /// there are no imports.
    pub fn identity(&self) -> Cow<'_, str> {
        if self.given.imports.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let starts: Vec<String> = self.files.iter().map(|file| file.start.to_string()).collect();
        Cow::Owned(format!("{}\0files at {}", self.text, starts.join(" ")))
    }

    /// Where a file is in the text. Files are numbered from 0, which is the main file.
    pub fn file_span(&self, file: usize) -> Span {
        let end = self.files.get(file + 1).map_or(self.text.len(), |next| next.start);
        Span::new(self.files[file].start..end)
    }

    /// The number of the file that a span begins in.
    pub fn file_number(&self, span: Span) -> usize {
        match span.is_none() {
            true => 0,
            false => self.files.partition_point(|file| file.start <= span.start as usize) - 1,
        }
    }

    /// The text of the main file.
    pub fn main_text(&self) -> &str {
        self.slice(self.file_span(0))
    }

    /// Adds a file after all others, and returns where it is in the text. A last line without an end gets
    /// one.
    pub fn add(&mut self, name: impl Into<String>, text: &str) -> Span {
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let start = self.text.len();
        self.text.push_str(text);
        // The last row ends where the file begins.
        let known = self.row_starts.partition_point(|&row| row < start);
        self.row_starts.truncate(known);
        self.row_starts.extend(row_starts(text).into_iter().map(|row| start + row));
        let rows_before = self.row_starts.partition_point(|&row| row < start);
        self.files.push(File { name: name.into(), start, rows_before, lines_before: 0 });
        Span::new(start..self.text.len())
    }

    /// Adds lines of a file whose text is not known, by their numbers (from 1), after all others.
    pub fn add_empty_lines(&mut self, name: impl Into<String>, lines: RangeInclusive<u32>) {
        let count = (lines.end().saturating_sub(*lines.start())).saturating_add(1);
        self.add(name, &"\n".repeat(count as usize));
        if let Some(file) = self.files.last_mut() {
            file.lines_before = (*lines.start() as usize).saturating_sub(1);
        }
    }

    /// The name of the main file.
    pub fn name(&self) -> &str {
        &self.files[0].name
    }

    /// The name of the file that a span begins in: the main file for [`Span::NONE`].
    pub fn file(&self, span: Span) -> &str {
        &self.file_of(span).name
    }

    /// The name of the file that a span begins in, if that is not the main file.
    pub fn other_file(&self, span: Span) -> Option<&str> {
        let file = self.file_of(span);
        (file.start > 0).then_some(file.name.as_str())
    }

    /// The names of all files, each with the row of its first line.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.files.iter().map(|file| (file.name.as_str(), clamp(file.rows_before + 1)))
    }

    fn file_of(&self, span: Span) -> &File {
        &self.files[self.file_number(span)]
    }

    /// The whole text, of all files.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span; empty if the span lies outside the text or inside a character.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column of the start of a span in its file; `None` for [`Span::NONE`].
    pub fn position(&self, span: Span) -> Option<Position> {
        if span.is_none() {
            return None;
        }
        let byte = (span.start as usize).min(self.text.len());
        let row = self.row_of(byte);
        let column = self.text.get(self.row_starts[row]..byte).map_or(0, |s| s.chars().count());
        let file = self.file_of(span);
        let line = row + 1 - file.rows_before + file.lines_before;
        Some(Position { line: clamp(line), column: clamp(column + 1) })
    }

    /// The row of the start of a span, from 1; `None` for [`Span::NONE`].
    pub fn row(&self, span: Span) -> Option<u32> {
        (!span.is_none()).then(|| clamp(self.row_of((span.start as usize).min(self.text.len())) + 1))
    }

    fn row_of(&self, byte: usize) -> usize {
        self.row_starts.partition_point(|&start| start <= byte) - 1
    }

    /// `12`, or `queue.h:12` outside the main file. `None` for [`Span::NONE`].
    pub fn line_number(&self, span: Span) -> Option<String> {
        let line = self.position(span)?.line;
        Some(self.other_file(span).map_or_else(|| line.to_string(), |file| format!("{file}:{line}")))
    }

    /// `line 12`, or `line 12 of queue.h` outside the main file. `None` for [`Span::NONE`].
    pub fn line_in_words(&self, span: Span) -> Option<String> {
        let line = self.position(span)?.line;
        let file = self.other_file(span).map_or_else(String::new, |file| format!(" of {file}"));
        Some(format!("line {line}{file}"))
    }

    /// The text of a row (counted from 1), without its end.
    pub fn line(&self, row: u32) -> &str {
        let index = row as usize - 1;
        let Some(&start) = self.row_starts.get(index) else { return "" };
        let end = self.row_starts.get(index + 1).map_or(self.text.len(), |&next| next - 1);
        self.text[start..end].trim_end_matches('\r')
    }

    /// The number of rows.
    pub fn line_count(&self) -> usize {
        self.row_starts.len()
    }

    /// The span of a line (counted from 1) of a file, without its end. `None` if there is no such file or line.
    pub fn line_of(&self, file: &str, line: u32) -> Option<Span> {
        let index = self.files.iter().position(|known| known.name == file)?;
        let end = self.files.get(index + 1).map_or(self.text.len(), |next| next.start);
        let file = &self.files[index];
        let row = file.rows_before + (line as usize).checked_sub(1)?.checked_sub(file.lines_before)?;
        let start = *self.row_starts.get(row).filter(|&&start| start < end)?;
        Some(Span::new(start..start + self.line(clamp(row + 1)).len()))
    }
}

fn row_starts(text: &str) -> Vec<usize> {
    let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect()
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

    #[test]
    fn several_files_in_one_text() {
        let mut source = Source::new("main.c", "one\ntwo");
        let header = source.add("list.h", "three\n  four;\n");
        let last = source.add("empty.h", "");
        assert_eq!((source.name(), source.slice(header)), ("main.c", "three\n  four;\n"));
        assert_eq!(source.files().collect::<Vec<_>>(), [("main.c", 1), ("list.h", 3), ("empty.h", 5)]);
        let two = Span::new(4..7);
        assert_eq!((source.file(two), source.other_file(two)), ("main.c", None));
        assert_eq!(source.line_number(two).as_deref(), Some("2"));
        let four = source.line_of("list.h", 2).expect("there is such a line");
        assert_eq!((source.slice(four), source.file(four)), ("  four;", "list.h"));
        assert_eq!(source.position(four), Some(Position { line: 2, column: 1 }));
        assert_eq!((source.row(four), source.line(4)), (Some(4), "  four;"));
        assert_eq!(source.line_in_words(four).as_deref(), Some("line 2 of list.h"));
        assert_eq!(source.line_number(four).as_deref(), Some("list.h:2"));
        assert_eq!(source.file(last), "empty.h");
        assert_eq!((source.file(Span::NONE), source.row(Span::NONE)), ("main.c", None));
        source.add_empty_lines("grammar.y", 40..=42);
        let last = source.line_of("grammar.y", 42).expect("there is such a line");
        assert_eq!((source.slice(last), source.line_number(last).as_deref()), ("", Some("grammar.y:42")));
        for (file, line) in [
            ("list.h", 0),
            ("list.h", 3),
            ("other.h", 1),
            ("grammar.y", 39),
            ("grammar.y", 43),
            ("grammar.y", 1),
        ] {
            assert_eq!(source.line_of(file, line), None, "{file} {line}");
        }
    }
}
