//! Lines of text with indentation, and comments that quote the source.

use palisade_base::{Source, Span};

/// Text under construction.
pub(crate) struct Text<'a> {
    text: String,
    depth: usize,
    source: &'a Source,
    /// The source line of the last comment.
    last: Option<u32>,
}

/// Comments begin at this column if the code leaves room.
const COMMENTS: usize = 56;

/// Longer quotations are cut.
const LONGEST: usize = 70;

impl<'a> Text<'a> {
    pub fn new(source: &'a Source) -> Text<'a> {
        Text { text: String::new(), depth: 0, source, last: None }
    }

    pub fn finish(self) -> String {
        self.text
    }

    /// A line.
    pub fn line(&mut self, line: &str) {
        if !line.is_empty() {
            (0..self.depth).for_each(|_| self.text.push_str("    "));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// A line with less indentation.
    pub fn outdented(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
        self.depth += 1;
    }

    /// A line with a comment that quotes the source, unless the previous comment quoted the same source line.
    pub fn commented(&mut self, line: &str, span: Span) {
        let position = self.source.position(span).filter(|position| self.last != Some(position.line));
        let Some(position) = position else { return self.line(line) };
        self.last = Some(position.line);
        let quoted = self.quote(span);
        let width = self.depth * 4 + line.chars().count();
        let gap = COMMENTS.saturating_sub(width).max(1);
        self.line(&format!("{line}{:gap$}/* {}: {quoted} */", "", position.line));
    }

    /// The source of a span, on one line, made safe for a comment.
    pub fn quote(&self, span: Span) -> String {
        let text: Vec<&str> = self.source.slice(span).split_whitespace().collect();
        let text = text.join(" ").replace("/*", "/ *").replace("*/", "* /").replace('\\', "/");
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// Makes the next comment appear even if it quotes the same line.
    pub fn forget_line(&mut self) {
        self.last = None;
    }

    /// An empty text about the same source.
    pub fn part(&self) -> Text<'a> {
        Text { depth: self.depth, ..Text::new(self.source) }
    }

    /// Adds text that was written before.
    pub fn paste(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub fn indent(&mut self) {
        self.depth += 1;
    }

    pub fn dedent(&mut self) {
        self.depth -= 1;
    }
}
