//! Where lines begin and how far they are indented.

use super::comments::{Line, Trailing, join};
use super::pieces::{Piece, PieceKind};
use super::spacing::{Use, space, usage};
use palisade_base::limits;

/// The columns of a level.
const LEVEL: usize = 4;

/// Lays out the pieces of a text.
pub(super) fn lines(text: &str, pieces: &[Piece<'_>]) -> String {
    let mut layout = Layout::new(text, pieces);
    for index in 0..pieces.len() {
        limits::checkpoint();
        layout.put(index);
    }
    if !pieces.is_empty() {
        layout.end_line();
    }
    join(&layout.lines)
}

/// Where the next token is in its statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenPosition {
    /// It begins a statement or an item, or ends a block.
    Start,
    /// It follows a label.
    AfterLabel,
    /// It continues what has begun.
    Inside,
}

/// How a block is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// On one line with its braces.
    OneLine,
    /// Its statements have lines of their own.
    Lines,
}

struct Layout<'s> {
    text: &'s str,
    pieces: &'s [Piece<'s>],
    /// For each `{`, how its block is laid out.
    shapes: Vec<Shape>,
    lines: Vec<Line>,
    /// The line that is being written.
    line: Line,
    /// Whether tokens, not only comments, are on it.
    has_tokens: bool,
    /// The open blocks.
    open: Vec<Shape>,
    /// Whether this is an enumeration or a struct. The lines between its braces are values or fields, not parts of
    /// one statement.
    enumeration: bool,
    place: TokenPosition,
    /// The token before the next one in the same statement, with its use, and whatever piece came last.
    token: Option<(usize, Use)>,
    last: Option<(usize, Use)>,
}

impl<'s> Layout<'s> {
    fn new(text: &'s str, pieces: &'s [Piece<'s>]) -> Layout<'s> {
        Layout {
            text,
            pieces,
            shapes: shapes(text, pieces),
            lines: Vec::new(),
            line: Line::default(),
            has_tokens: false,
            open: Vec::new(),
            enumeration: false,
            place: TokenPosition::Start,
            token: None,
            last: None,
        }
    }

    /// Writes one piece.
    fn put(&mut self, index: usize) {
        let piece = &self.pieces[index];
        let closes = piece.is("}");
        let closed = if closes { self.open.pop() } else { None };
        let before = self.token.map(|(token, used)| (&self.pieces[token], used));
        let used = match self.place {
            TokenPosition::Inside => usage(piece, before, !self.open.is_empty()),
            TokenPosition::Start | TokenPosition::AfterLabel => usage(piece, None, !self.open.is_empty()),
        };
        if let Some((last, last_used)) = self.last {
            if self.continues_comment(index) {
                self.end_line();
                self.line.comment = Some(Trailing::new(self.text, piece));
                self.last = Some((index, used));
                return;
            }
            if self.breaks_before(index, closed) {
                let blank = piece.breaks > 1
                    && self.place == TokenPosition::Start
                    && !closes
                    && !self.pieces[last].is("{");
                self.end_line();
                if blank {
                    self.lines.push(Line::default());
                }
                self.indent(index, closed);
            } else if piece.kind == PieceKind::LineComment {
                self.line.comment = Some(Trailing::new(self.text, piece));
                self.last = Some((index, used));
                return;
            } else if space(&self.pieces[last], last_used, piece, used) {
                let gap = self.after_label(index).unwrap_or(1);
                self.line.code.extend(std::iter::repeat_n(' ', gap));
            }
        }
        self.line.code.push_str(piece.text);
        self.last = Some((index, used));
        if piece.is_token() {
            self.has_tokens = true;
            self.advance(index, used);
        }
    }

    /// Follows the structure of the program past a token.
    fn advance(&mut self, index: usize, used: Use) {
        let piece = &self.pieces[index];
        self.token = Some((index, used));
        match piece.text {
            "enum" => self.enumeration = true,
            "struct" if self.open.is_empty() && self.next_token(index).is_some_and(Piece::is_name) => {
                self.enumeration = true;
            }
            "}" => self.enumeration = false,
            _ => {}
        }
        self.place = match piece.text {
            ";" => TokenPosition::Start,
            "{" => {
                self.open.push(self.shapes[index]);
                TokenPosition::Start
            }
            "}" if !self.next_token(index).is_some_and(|next| next.is("else") || next.is("or")) => {
                TokenPosition::Start
            }
            ":" if self.ends_label(index) => TokenPosition::AfterLabel,
            _ if self.place != TokenPosition::Inside && self.begins_label(index) => self.place,
            _ => TokenPosition::Inside,
        };
    }

    /// Whether a line begins before a piece that is not the first one.
    fn breaks_before(&self, index: usize, closed: Option<Shape>) -> bool {
        let piece = &self.pieces[index];
        let last = &self.pieces[index - 1];
        if last.kind == PieceKind::LineComment {
            return true;
        }
        if !piece.is_token() {
            return piece.breaks > 0 && self.shape() == Shape::Lines;
        }
        if piece.is("}") {
            return closed != Some(Shape::OneLine) && !last.is("{");
        }
        if self.shape() == Shape::OneLine {
            return false;
        }
        match self.place {
            TokenPosition::Start if self.is_colon_of_label(index) => false,
            TokenPosition::Start => self.has_tokens || piece.breaks > 0,
            TokenPosition::AfterLabel if self.is_colon_of_label(index) => false,
            TokenPosition::AfterLabel => piece.breaks > 0,
            TokenPosition::Inside => {
                let joins = ["{", ";", ",", ":"].iter().any(|sign| piece.is(sign));
                let joins = joins || last.is("}") && (piece.is("else") || piece.is("or"));
                let joins = joins || last.is("else");
                !joins && piece.breaks > 0
            }
        }
    }

    /// Whether a line comment continues the one above it, at the end of a line of code.
    fn continues_comment(&self, index: usize) -> bool {
        let piece = &self.pieces[index];
        piece.kind == PieceKind::LineComment
            && piece.breaks == 1
            && self
                .line
                .comment
                .as_ref()
                .is_some_and(|above| Trailing::new(self.text, piece).lines_up_with(above))
    }

    /// Indents a new line that begins with a piece.
    fn indent(&mut self, index: usize, closed: Option<Shape>) {
        let piece = &self.pieces[index];
        let level = self.open.iter().filter(|shape| **shape == Shape::Lines).count();
        let level = match self.place {
            _ if closed.is_some() => level,
            TokenPosition::Start | TokenPosition::AfterLabel if self.begins_label(index) => {
                level.saturating_sub(1)
            }
            TokenPosition::Start | TokenPosition::AfterLabel => level,
            TokenPosition::Inside => {
                let next = if piece.is_token() { Some(piece) } else { self.next_token(index) };
                let outer = ["{", ")", "]", "else", "or"];
                let is_outer = next.is_some_and(|next| outer.iter().any(|text| next.is(text)));
                let is_value = self.enumeration && !self.open.is_empty();
                if is_outer || is_value { level } else { level + 1 }
            }
        };
        self.line.code.extend(std::iter::repeat_n(' ', level * LEVEL));
    }

    /// The gap between a short label and its statement, so that the statement is where it would be without it.
    fn after_label(&self, index: usize) -> Option<usize> {
        let label = self.line.code.trim_start();
        let alone = self.place == TokenPosition::AfterLabel && self.shape() == Shape::Lines;
        let alone = alone && self.pieces[index].is_token() && !self.is_colon_of_label(index);
        let is_first = self.pieces[index - 1].is(":") && label.matches(':').count() == 1;
        (alone && is_first).then(|| LEVEL.saturating_sub(label.chars().count()).max(1))
    }

    /// Whether a token is the name of a label.
    fn begins_label(&self, index: usize) -> bool {
        let is_block = !self.open.is_empty() && !self.enumeration;
        is_block && self.pieces[index].is_name() && self.next_token(index).is_some_and(|next| next.is(":"))
    }

    /// Whether a colon is that of a label: it follows the first name of a statement.
    fn ends_label(&self, index: usize) -> bool {
        self.place != TokenPosition::Inside && self.pieces[index].is(":") && !self.enumeration
    }

    fn is_colon_of_label(&self, index: usize) -> bool {
        let after_name = self.token.is_some_and(|(token, _)| self.pieces[token].is_name());
        self.pieces[index].is(":") && after_name && !self.enumeration
    }

    fn next_token(&self, index: usize) -> Option<&'s Piece<'s>> {
        self.pieces[index + 1..].iter().find(|piece| piece.is_token())
    }

    /// How the innermost block is laid out; the program itself has lines.
    fn shape(&self) -> Shape {
        self.open.last().copied().unwrap_or(Shape::Lines)
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.has_tokens = false;
    }
}

/// For each `{`, how its block is laid out: on one line if the author wrote it on one, or if it is empty.
fn shapes(text: &str, pieces: &[Piece<'_>]) -> Vec<Shape> {
    let mut shapes = vec![Shape::Lines; pieces.len()];
    let mut open = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        if piece.is("{") {
            open.push(index);
        } else if piece.is("}")
            && let Some(start) = open.pop()
        {
            let is_empty = start + 1 == index;
            if is_empty || !text[pieces[start].start..piece.start].contains('\n') {
                shapes[start] = Shape::OneLine;
            }
        }
    }
    shapes
}
