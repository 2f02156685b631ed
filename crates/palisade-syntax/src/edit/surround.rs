//! Fences beside a statement, in a language with statements and blocks (`.pal` and `.rmm`).

use super::changes::Edits;
use super::lines::{indentation, line_end, line_start, margin, newline};
use super::tokens::Comments;

/// A statement of a language with blocks.
pub(super) struct Target {
    /// Where its labels begin.
    pub(super) labels: usize,
    /// Where the statement begins.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
    /// The position after its `;` or `}`, if it has one.
    pub(super) closed: Option<usize>,
    /// Whether a fence beside it needs new braces around both.
    pub(super) alone: bool,
}

/// Inserts fences before and after a statement.
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
        edits.before(start, start, format!("{fence}{}{gap}", terminator(fence)), Some(0));
    }
    if let Some(fence) = after {
        if alone {
            let (text, offset) = match closed {
                Some(_) => (format!(" {fence}{}", terminator(fence)), 1),
                None => (format!("; {fence}"), 2),
            };
            edits.after(end, start, text, Some(offset));
        } else if comments.fill_line(text, closed.unwrap_or(end)) {
            let semicolon = if closed.is_some() { terminator(fence) } else { "" };
            if closed.is_none() {
                edits.after(end, start, ";".to_owned(), None);
            }
            let line = format!("{}{}", newline(text, closed.unwrap_or(end)), indent(text, target));
            let at = line_end(text, closed.unwrap_or(end));
            let offset = line.len();
            edits.after(at, start, format!("{line}{fence}{semicolon}"), Some(offset));
        } else {
            let (text, offset) = match closed {
                Some(_) => (format!(" {fence}{}", terminator(fence)), 1),
                None => (format!("; {fence}"), 2),
            };
            edits.after(closed.unwrap_or(end), start, text, Some(offset));
        }
    }
    if alone {
        edits.after(end, start, " }".to_owned(), None);
    }
}

/// The terminator of a statement: `;`, or nothing after a block.
pub(super) fn terminator(statement: &str) -> &'static str {
    if statement.ends_with('}') { "" } else { ";" }
}

/// The indentation of a line after a statement: that of the statement itself, without its labels.
fn indent(text: &str, target: &Target) -> String {
    let margin = indentation(text, target.start);
    let line = line_start(text, target.start);
    if line + margin.len() == target.labels && target.labels < target.start {
        let labels = text[target.labels..target.start].chars().count();
        return format!("{margin}{}", " ".repeat(labels));
    }
    margin.to_owned()
}
