//! Which statements of a program runs reach.

use crate::explain::quote;
use palisade_base::{Source, Span};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Which statements runs reach.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CoverageNote {
    /// How many statements the program has.
    pub count: usize,
    /// The statements that no run reaches.
    pub never: Vec<Span>,
    /// The statements that no run was seen to reach, although some run might.
    pub open: Vec<Span>,
    /// Why not all runs were seen, if that matters.
    pub missing: Option<String>,
}

impl CoverageNote {
    /// The note as text: one line, and a line for each statement that is not reached.
    pub(crate) fn text(&self, source: &Source) -> String {
        let mut text = String::new();
        if self.never.is_empty() && self.open.is_empty() {
            text.push_str("coverage: every statement is reached\n");
        }
        if !self.never.is_empty() {
            let count = counted(self.never.len(), self.count);
            let is = if self.never.len() == 1 { "is" } else { "are" };
            text += &format!("coverage: {count} {is} never reached\n{}", list(source, &self.never));
        }
        if !self.open.is_empty() {
            let count = counted(self.open.len(), self.count);
            let was = if self.open.len() == 1 { "was" } else { "were" };
            let why = self.missing.as_deref().unwrap_or("not all runs were searched");
            text += &format!(
                "coverage is not known: {count} {was} not reached so far ({why})\n{}",
                list(source, &self.open)
            );
        }
        text
    }

    /// The note as JSON.
    pub(crate) fn json(&self, source: &Source) -> Value {
        let list = |spans: &[Span]| -> Vec<Value> {
            let record = |position: StatementPosition| {
                let mut value =
                    json!({ "line": position.line, "column": position.column, "text": position.text });
                if let Some(file) = position.file {
                    value["file"] = file.into();
                }
                value
            };
            positions(source, spans).into_iter().map(record).collect()
        };
        let mut value = json!({
            "complete": self.open.is_empty(),
            "statements": self.count,
            "never_reached": list(&self.never),
        });
        if !self.open.is_empty() {
            value["not_reached_so_far"] = list(&self.open).into();
        }
        if let Some(missing) = &self.missing {
            value["reason"] = missing.as_str().into();
        }
        value
    }

    /// The rows with statements that no run reaches.
    pub(crate) fn never_rows(&self, source: &Source) -> BTreeSet<u32> {
        self.never.iter().filter_map(|span| source.row(*span)).collect()
    }
}

/// `2 of 7 statements`, and the verb that fits.
fn counted(some: usize, all: usize) -> String {
    let plural = if all == 1 { "" } else { "s" };
    format!("{some} of {all} statement{plural}")
}

struct StatementPosition {
    /// The file, if it is not the main one.
    file: Option<String>,
    in_words: String,
    line: u32,
    column: u32,
    text: String,
}

/// The positions of statements, in the order of the text.
fn positions(source: &Source, spans: &[Span]) -> Vec<StatementPosition> {
    let mut spans: Vec<Span> = spans.to_vec();
    spans.sort_by_key(|span| (span.start, span.end));
    spans.dedup();
    let place = |span: &Span| {
        let position = source.position(*span)?;
        let text = quote(source.slice(*span).lines().next().unwrap_or_default());
        let file = source.other_file(*span).map(str::to_owned);
        let in_words = source.line_in_words(*span)?;
        Some(StatementPosition { file, in_words, line: position.line, column: position.column, text })
    };
    spans.iter().filter_map(place).collect()
}

fn list(source: &Source, spans: &[Span]) -> String {
    let positions = positions(source, spans);
    positions.iter().map(|position| format!("  {}: {}\n", position.in_words, position.text)).collect()
}
