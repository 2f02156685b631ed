//! Changes of a text, its lines, and a scanner that knows just enough of each language.

use super::FenceKind;
use palisade_base::{Span, limits};

/// Changes of a text that do not overlap.
#[derive(Default)]
pub(super) struct Edits {
    all: Vec<Edit>,
}

struct Edit {
    at: usize,
    /// What comes first at one place: what closes (the innermost first), then what opens (the outermost
    /// first), then what replaces.
    order: (u8, i64),
    remove: usize,
    text: String,
    /// Where in the text a fence begins.
    fence: Option<usize>,
}

impl Edits {
    /// Puts a text behind a statement that starts at the given place.
    pub(super) fn behind(&mut self, at: usize, statement: usize, text: String, fence: Option<usize>) {
        self.all.push(Edit { at, order: (0, -(statement as i64)), remove: 0, text, fence });
    }

    /// Puts a text in front of a statement that starts at the given place.
    pub(super) fn before(&mut self, at: usize, statement: usize, text: String, fence: Option<usize>) {
        self.all.push(Edit { at, order: (1, statement as i64), remove: 0, text, fence });
    }

    /// Replaces what stands at a place.
    pub(super) fn replace(&mut self, place: std::ops::Range<usize>, text: String) {
        self.all.push(Edit { at: place.start, order: (2, 0), remove: place.len(), text, fence: None });
    }

    /// The new text, and where in it the fences begin, in order.
    pub(super) fn apply(mut self, text: &str) -> (String, Vec<usize>) {
        self.all.sort_by_key(|edit| (edit.at, edit.order));
        let mut out =
            String::with_capacity(text.len() + self.all.iter().map(|e| e.text.len()).sum::<usize>());
        let mut fences = Vec::new();
        let mut at = 0;
        for edit in self.all {
            out.push_str(&text[at..edit.at.max(at)]);
            fences.extend(edit.fence.map(|offset| out.len() + offset));
            out.push_str(&edit.text);
            at = edit.at.max(at) + edit.remove;
        }
        out.push_str(&text[at..]);
        (out, fences)
    }
}

/// The words of a language for its fences.
pub(super) fn word(kind: FenceKind, full: &'static str, store_store: &'static str) -> &'static str {
    match kind {
        FenceKind::Full => full,
        FenceKind::StoreStore => store_store,
    }
}

/// A word or a sign.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// How comments look.
#[derive(Clone, Copy)]
pub(super) struct Comments {
    /// What begins a comment up to the end of the line.
    pub(super) line: &'static [&'static str],
    /// What begins and ends other comments.
    pub(super) block: Option<(&'static str, &'static str)>,
    /// Whether those nest.
    pub(super) nest: bool,
}

impl Comments {
    /// The end of the comment that begins at a place, if one does.
    fn end(&self, text: &str, at: usize) -> Option<usize> {
        let rest = &text.as_bytes()[at..];
        if self.line.iter().any(|begin| rest.starts_with(begin.as_bytes())) {
            return Some(line_end(text, at));
        }
        let (open, close) = self.block?;
        if !rest.starts_with(open.as_bytes()) {
            return None;
        }
        let (mut depth, mut at) = (0, at);
        while at < text.len() {
            limits::go_on();
            let rest = &text.as_bytes()[at..];
            if rest.starts_with(close.as_bytes()) && depth > 0 {
                depth -= 1;
                at += close.len();
                if depth == 0 {
                    break;
                }
            } else if rest.starts_with(open.as_bytes()) && (depth == 0 || self.nest) {
                depth += 1;
                at += open.len();
            } else {
                at += 1;
            }
        }
        Some(at)
    }

    /// Whether the rest of a line holds nothing, or only comments that end there.
    pub(super) fn fill(&self, text: &str, from: usize) -> bool {
        let end = line_end(text, from);
        let mut at = from;
        while at < end {
            match self.end(text, at) {
                Some(after) if after <= end => at = after,
                Some(_) => return false,
                None if text.as_bytes()[at].is_ascii_whitespace() => at += 1,
                None => return false,
            }
        }
        true
    }
}

/// Words (letters, digits, `_`, `.` and `$`) and single signs, `:=` being one, from a place on.
pub(super) fn tokens(text: &str, from: usize, comments: Comments) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let is_word =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') || !byte.is_ascii();
    let mut found = Vec::new();
    let mut at = from;
    while at < bytes.len() {
        limits::go_on();
        if let Some(end) = comments.end(text, at) {
            at = end;
            continue;
        }
        let start = at;
        at += 1;
        if bytes[start].is_ascii_whitespace() || bytes[start] == 0x0b {
            continue;
        }
        if is_word(bytes[start]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        } else if bytes[start..].starts_with(b":=") {
            at += 1;
        }
        found.push(Token { text: &text[start..at], start });
    }
    found
}

/// The first token that does not begin before a place.
pub(super) fn token_at(tokens: &[Token<'_>], place: usize) -> usize {
    tokens.partition_point(|token| token.start < place)
}

/// The start of the line that holds a place.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The end of the line that holds a place, without its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if end > at && text.as_bytes()[end - 1] == b'\r' { end - 1 } else { end }
}

/// The line break used at the end of the line that holds a place.
pub(super) fn newline(text: &str, at: usize) -> &'static str {
    if text[line_end(text, at)..].starts_with('\r') { "\r\n" } else { "\n" }
}

/// What stands in front of a place in its line, if that is only white space.
pub(super) fn margin(text: &str, at: usize) -> Option<&str> {
    let margin = &text[line_start(text, at)..at];
    margin.chars().all(|c| c == ' ' || c == '\t').then_some(margin)
}

/// The white space that begins the line of a place.
pub(super) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// A statement of a language with blocks.
pub(super) struct Target {
    /// Where its labels begin.
    pub(super) labels: usize,
    /// Where the statement begins.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
    /// Behind its `;` or `}`, if it has one.
    pub(super) closed: Option<usize>,
    /// Whether it can only have a neighbour inside of new braces.
    pub(super) alone: bool,
}

/// Puts fences beside a statement.
pub(super) fn surround(
    edits: &mut Edits,
    text: &str,
    comments: Comments,
    target: &Target,
    before: Option<&str>,
    after: Option<&str>,
) {
    let &Target { labels, start, end, closed, alone } = target;
    if alone {
        edits.before(labels, start, "{ ".to_owned(), None);
    }
    if let Some(fence) = before {
        let line = margin(text, start).filter(|_| !alone);
        let gap = line.map_or(" ".to_owned(), |margin| format!("{}{margin}", newline(text, start)));
        edits.before(start, start, format!("{fence}{}{gap}", stop(fence)), Some(0));
    }
    if let Some(fence) = after {
        if alone {
            let (text, offset) = match closed {
                Some(_) => (format!(" {fence}{}", stop(fence)), 1),
                None => (format!("; {fence}"), 2),
            };
            edits.behind(end, start, text, Some(offset));
        } else if comments.fill(text, closed.unwrap_or(end)) {
            let semicolon = if closed.is_some() { stop(fence) } else { "" };
            if closed.is_none() {
                edits.behind(end, start, ";".to_owned(), None);
            }
            let line = format!("{}{}", newline(text, closed.unwrap_or(end)), indent(text, target));
            let at = line_end(text, closed.unwrap_or(end));
            let offset = line.len();
            edits.behind(at, start, format!("{line}{fence}{semicolon}"), Some(offset));
        } else {
            let (text, offset) = match closed {
                Some(_) => (format!(" {fence}{}", stop(fence)), 1),
                None => (format!("; {fence}"), 2),
            };
            edits.behind(closed.unwrap_or(end), start, text, Some(offset));
        }
    }
    if alone {
        edits.behind(end, start, " }".to_owned(), None);
    }
}

/// What ends a statement.
pub(super) fn stop(statement: &str) -> &'static str {
    if statement.ends_with('}') { "" } else { ";" }
}

/// The margin of a line behind a statement: that of the statement itself, its labels not counted.
fn indent(text: &str, target: &Target) -> String {
    let margin = indentation(text, target.start);
    let line = line_start(text, target.start);
    if line + margin.len() == target.labels && target.labels < target.start {
        let labels = text[target.labels..target.start].chars().count();
        return format!("{margin}{}", " ".repeat(labels));
    }
    margin.to_owned()
}

/// The place of a range.
pub(super) fn starts(span: Span) -> usize {
    span.start as usize
}
