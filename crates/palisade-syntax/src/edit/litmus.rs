//! Fences in litmus tests: new rows of the table.

use super::changes::Edits;
use super::fence::{FenceKind, Requests, word};
use super::lines::{line_end, line_start, margin, newline};
use super::statements::no_statement;
use super::tokens::{Comments, Token, start_of, token_at, tokens};
use palisade_base::Diagnostic;
use palisade_program::written::Program;
use std::collections::BTreeMap;
use std::ops::Range;

const COMMENTS: Comments = Comments { line: &["//", "#"], block: Some(("(*", "*)")), nest: true };

pub(super) fn edits(
    text: &str,
    program: &Program,
    requests: &Requests,
    errors: &mut Vec<Diagnostic>,
) -> Edits {
    let names = program.templates.iter().map(|template| template.name.span());
    let table = names.min().map_or(text.len(), start_of);
    let tokens = tokens(text, table, COMMENTS);
    let rows = rows(text, &tokens);
    let capitals = has_capitals(&tokens, &rows);
    // For each side of each row, the fences by column.
    let mut gaps: BTreeMap<(usize, bool), BTreeMap<usize, Fence>> = BTreeMap::new();
    for (&span, fences) in requests {
        // Two instructions that form one statement have a span from the first to the second.
        let sides = [(fences.before, start_of(span), true), (fences.after, span.end as usize - 1, false)];
        for (kind, position, before) in sides {
            let Some(kind) = kind else { continue };
            let row = rows.partition_point(|row| row.end <= position);
            let found = rows.get(row).filter(|_| row > 0).and_then(|row| row.column(position));
            let Some(column) = found else {
                errors.push(no_statement(span));
                continue;
            };
            let cell = rows[row].cells[column].clone();
            let (labels, instruction) = labels(&tokens, cell);
            // A label alone in its cell stays before the fence.
            let before = before && instruction.is_some();
            let fence = Fence { kind, labels: labels.filter(|_| before) };
            let columns = gaps.entry((row, before)).or_default();
            let slot = columns.entry(column).or_insert_with(|| fence.clone());
            slot.kind = slot.kind.max(kind);
        }
    }
    let mut edits = Edits::default();
    for ((row, before), fences) in gaps {
        let row = &rows[row];
        for labels in fences.values().filter_map(|fence| fence.labels.clone()) {
            let blanks = " ".repeat(text[labels.clone()].chars().count());
            edits.replace(labels, blanks);
        }
        let own_line = margin(text, row.first).is_some() && (before || COMMENTS.fill_line(text, row.end));
        let new = new_row(text, row, &fences, capitals, own_line);
        let newline = newline(text, row.end);
        match (own_line, before) {
            (true, true) => {
                edits.before(line_start(text, row.first), row.first, format!("{new}{newline}"), None);
            }
            (true, false) => edits.after(line_end(text, row.end), row.first, format!("{newline}{new}"), None),
            (false, true) => edits.before(row.first, row.first, format!("{} ", new.trim_start()), None),
            (false, false) => edits.after(row.end, row.first, format!(" {}", new.trim_start()), None),
        }
    }
    edits
}

#[derive(Clone)]
struct Fence {
    kind: FenceKind,
    /// The labels of the instruction, which move to the fence.
    labels: Option<Range<usize>>,
}

/// A row of the table.
struct Row {
    /// Its first token.
    first: usize,
    cells: Vec<Range<usize>>,
    /// The position after its `;`.
    end: usize,
}

impl Row {
    fn column(&self, position: usize) -> Option<usize> {
        self.cells.iter().position(|cell| cell.contains(&position))
    }
}

/// The row of thread names and all rows below it.
fn rows(text: &str, tokens: &[Token<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row: Option<Row> = None;
    let mut previous = "";
    for token in tokens {
        let row_so_far = row.get_or_insert_with(|| {
            let start = margin(text, token.start).map_or(token.start, |margin| token.start - margin.len());
            Row { first: token.start, cells: std::iter::once(start..start).collect(), end: 0 }
        });
        let last = row_so_far.cells.last_mut().expect("a row has at least one cell");
        match token.text {
            "|" => {
                last.end = token.start;
                row_so_far.cells.push(token.end()..token.end());
            }
            // The prefix `lock;` has a `;` of its own.
            ";" if !previous.eq_ignore_ascii_case("lock") => {
                last.end = token.start;
                row_so_far.end = token.end();
                rows.extend(row.take());
            }
            _ => {}
        }
        previous = token.text;
    }
    rows
}

/// The labels of a cell with their colons, and where its instruction begins.
fn labels(tokens: &[Token<'_>], cell: Range<usize>) -> (Option<Range<usize>>, Option<usize>) {
    let first = token_at(tokens, cell.start);
    let mut at = first;
    while tokens.get(at + 1).is_some_and(|colon| colon.text == ":" && colon.start < cell.end) {
        at += 2;
    }
    let labels = (at > first).then(|| tokens[first].start..tokens[at - 1].end());
    let instruction = tokens.get(at).map(|token| token.start).filter(|start| *start < cell.end);
    (labels, instruction)
}

/// Whether instructions are written in capitals, judged by the first one.
fn has_capitals(tokens: &[Token<'_>], rows: &[Row]) -> bool {
    let cells = rows.iter().skip(1).flat_map(|row| row.cells.iter().cloned());
    let first = cells.filter_map(|cell| labels(tokens, cell).1).next();
    first
        .is_some_and(|place| !tokens[token_at(tokens, place)].text.contains(|c: char| c.is_ascii_lowercase()))
}

/// A row with fences in some columns, as wide as the row it is modelled on.
fn new_row(
    text: &str,
    like: &Row,
    fences: &BTreeMap<usize, Fence>,
    capitals: bool,
    own_line: bool,
) -> String {
    let cells = like.cells.iter().enumerate().map(|(column, cell)| {
        let cell = text.get(cell.clone()).filter(|cell| own_line && !cell.contains('\n')).unwrap_or("");
        let width = cell.chars().count();
        let Some(fence) = fences.get(&column) else { return " ".repeat(width.max(1)) };
        let name = word(fence.kind, "mfence", "sfence");
        let name = if capitals { name.to_ascii_uppercase() } else { name.to_owned() };
        let labels = fence.labels.clone().map_or(String::new(), |labels| format!("{} ", &text[labels]));
        let margin = cell.len() - cell.trim_start().len();
        let margin = if margin == cell.len() { 1 } else { margin };
        let content = format!("{}{labels}{name} ", " ".repeat(margin));
        format!("{content:<width$}")
    });
    format!("{};", cells.collect::<Vec<_>>().join("|"))
}
