//! Lines of output, and the columns of the comments at their ends.
//!
//! Comments at the end of adjacent lines that began in one column still do. If the author left a wide gap, they
//! keep that column as long as there is room; otherwise they keep the gap.

use super::pieces::Piece;

/// A gap of more columns is there to line up with other comments.
const NARROW: usize = 2;
/// The columns of a tab.
const TAB: usize = 4;

/// A line of output.
#[derive(Default)]
pub(super) struct Line {
    /// Everything but the comment.
    pub code: String,
    /// The comment at its end.
    pub comment: Option<Trailing>,
}

/// A comment at the end of a line, or below one.
pub(super) struct Trailing {
    text: String,
    /// Where it began in the author's text.
    column: usize,
    /// How far from the code it began.
    gap: usize,
}

impl Trailing {
    /// The comment, which follows other pieces on its line or lines up with one that does.
    pub fn new(text: &str, comment: &Piece<'_>) -> Trailing {
        let line = &text[text[..comment.start].rfind('\n').map_or(0, |end| end + 1)..comment.start];
        let column = width(line);
        let gap = column - width(line.trim_end());
        Trailing { text: comment.text.to_owned(), column, gap }
    }

    /// Whether both began in the same column.
    pub fn lines_up_with(&self, other: &Trailing) -> bool {
        self.column == other.column
    }
}

/// The columns of the last line of a text.
fn width(text: &str) -> usize {
    text[text.rfind('\n').map_or(0, |end| end + 1)..]
        .chars()
        .fold(0, |column, c| if c == '\t' { (column / TAB + 1) * TAB } else { column + 1 })
}

/// The lines as one text.
pub(super) fn join(lines: &[Line]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let run = run(&lines[at..]);
        let column = column(run);
        for line in run {
            out.push_str(&line.code);
            if let Some(comment) = &line.comment {
                let gap = column - width(&line.code);
                out.extend(std::iter::repeat_n(' ', gap));
                out.push_str(&comment.text);
            }
            out.push('\n');
        }
        at += run.len();
    }
    out
}

/// The lines from the first one on whose comments line up; at least one line.
fn run(lines: &[Line]) -> &[Line] {
    let Some(first) = &lines[0].comment else { return &lines[..1] };
    let differs = |line: &Line| line.comment.as_ref().is_none_or(|comment| !comment.lines_up_with(first));
    let len = lines.iter().position(differs).unwrap_or(lines.len());
    &lines[..len]
}

/// The column of the comments of some lines.
fn column(lines: &[Line]) -> usize {
    let with_code = || lines.iter().filter(|line| !line.code.is_empty());
    let widest = with_code().map(|line| width(&line.code)).max().unwrap_or(0);
    let comments = || with_code().filter_map(|line| line.comment.as_ref());
    let gap = comments().map(|comment| comment.gap).min().unwrap_or(0).max(1);
    let before = comments().map(|comment| comment.column).max().unwrap_or(0);
    if gap <= NARROW { widest + gap } else { before.max(widest + 1) }
}
