//! A list of outcomes: one line per outcome, with a mark per memory model if there are several.

use crate::account::account;
use crate::json::{SCHEMA_VERSION, diagnostics_json};
use crate::report::{Detail, Layout, Report, Standing};
use crate::table::{self, Align, Column};
use crate::{LocalSteps, step_in_words, visible, witness};
use palisade_base::{Diagnostic, Source};
use palisade_engine::{Reason, Stats};
use palisade_memory::Model;
use palisade_trace::Evidence;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A list of outcomes.
#[derive(Debug)]
pub struct OutcomesFinding<'a> {
    /// The text of the program.
    pub source: &'a Source,
    /// Warnings about it.
    pub warnings: &'a [Diagnostic],
    /// What is listed, in order.
    pub names: Vec<&'a str>,
    /// The outcomes of all models, by their values.
    pub rows: Vec<OutcomeRow>,
    /// What is known about each model, in the order requested.
    pub models: Vec<ModelOutcomes<'a>>,
    /// What marks outcomes.
    pub marks: Marks<'a>,
    /// What the list is limited to, e.g. `with integers in 0..7`.
    pub limits: Option<&'a str>,
    /// A run to one of the outcomes.
    pub run: Option<ShownRun<'a>>,
    /// The peak memory.
    pub peak_memory_bytes: Option<u64>,
}

/// An outcome.
#[derive(Clone, Debug)]
pub struct OutcomeRow {
    /// Its values, in the order of the names.
    pub values: Vec<i64>,
    /// The same in words.
    pub words: Vec<String>,
    /// Whether it is an outcome under each model.
    pub under: Vec<bool>,
    /// Whether it is marked.
    pub marked: bool,
}

/// The outcomes under one model.
#[derive(Debug)]
pub struct ModelOutcomes<'a> {
    /// The model.
    pub model: Model,
    /// Why there may be more outcomes.
    pub missing: Option<&'a Reason>,
    /// Whether a run was seen that ends with an error.
    pub faults: bool,
    /// Whether a state was seen from which no end can be reached.
    pub dead_ends: bool,
    /// The engine that completed the list.
    pub engine: &'a str,
    /// Counters of the search.
    pub stats: &'a Stats,
    /// Time taken.
    pub seconds: f64,
}

/// What marks outcomes.
#[derive(Clone, Copy, Debug)]
pub enum Marks<'a> {
    /// Nothing.
    Nothing,
    /// `final` properties mark the outcomes that violate them.
    Final,
    /// The condition of a litmus test marks the outcomes that satisfy it.
    Condition(&'a str, TestAsks),
}

/// What a litmus test asks about its condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestAsks {
    /// `exists`
    Exists,
    /// `~exists`
    NotExists,
    /// `forall`
    Forall,
}

/// A run to an outcome.
#[derive(Debug)]
pub struct ShownRun<'a> {
    /// The number of the outcome, from 1.
    pub number: usize,
    /// The run.
    pub evidence: Evidence<'a>,
}

impl OutcomesFinding<'_> {
    fn is_complete(&self) -> bool {
        self.models.iter().all(|model| model.missing.is_none())
    }

    fn count(&self, model: usize) -> usize {
        self.rows.iter().filter(|row| row.under[model]).count()
    }

    pub(crate) fn words(&self, row: &OutcomeRow) -> String {
        let parts = self.names.iter().zip(&row.words).map(|(name, value)| format!("{name}={value};"));
        parts.collect::<Vec<_>>().join(" ")
    }

    /// How many outcomes of a model satisfy the condition of a litmus test, and how many do not.
    fn observed(&self, model: usize) -> (usize, usize) {
        let all = self.count(model);
        let positive = self.rows.iter().filter(|row| row.under[model] && row.marked).count();
        (positive, all - positive)
    }

    /// What herd7's users look for, if the list is complete: whether the test is as it should be, and how often its
    /// condition holds.
    fn observation(&self, model: usize) -> Option<(bool, &'static str)> {
        let Marks::Condition(_, asks) = self.marks else { return None };
        if self.models[model].missing.is_some() {
            return None;
        }
        let (positive, negative) = self.observed(model);
        let ok = match asks {
            TestAsks::Exists => positive > 0,
            TestAsks::NotExists => positive == 0,
            TestAsks::Forall => negative == 0,
        };
        let word = match (positive, negative) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        };
        Some((ok, word))
    }

    pub(crate) fn mark(&self, row: &OutcomeRow) -> &'static str {
        match self.marks {
            Marks::Condition(..) if row.marked => "*",
            Marks::Final if row.marked => "violates final",
            _ => "",
        }
    }

    fn table(&self) -> String {
        let cells = |cell: &dyn Fn(usize, &OutcomeRow) -> String| -> Vec<String> {
            self.rows.iter().enumerate().map(|(index, row)| cell(index, row)).collect()
        };
        let mut columns = vec![
            Column::new("", Align::Right, cells(&|index, _| (index + 1).to_string())),
            Column::new("outcome", Align::Left, cells(&|_, row| self.words(row))),
        ];
        if self.models.len() > 1 {
            for (index, model) in self.models.iter().enumerate() {
                let mark = |row: &OutcomeRow| match (row.under[index], model.missing) {
                    (true, _) => "yes",
                    (false, None) => "-",
                    (false, Some(_)) => "?",
                };
                let heading = model.model.name().to_uppercase();
                columns.push(Column::new(heading, Align::Left, cells(&|_, row| mark(row).to_owned())));
            }
        }
        columns.push(Column::new("", Align::Left, cells(&|_, row| self.mark(row).to_owned())));
        table::lines(&columns).into_iter().map(|line| format!("{line}\n")).collect()
    }

    /// The model, if there are several.
    fn under(&self, model: &ModelOutcomes<'_>) -> String {
        if self.models.len() == 1 {
            String::new()
        } else {
            format!(" under {}", model.model.name().to_uppercase())
        }
    }

    pub(crate) fn remarks(&self) -> String {
        let mut text = String::new();
        for (index, model) in self.models.iter().enumerate() {
            let under = self.under(model);
            if let (Some((ok, word)), Marks::Condition(name, _)) = (self.observation(index), self.marks) {
                let (positive, negative) = self.observed(index);
                let (name, ok) = (visible(name), if ok { "Ok" } else { "No" });
                writeln!(text, "{ok}{under}").expect("writing to a string");
                writeln!(text, "Observation {name} {word} {positive} {negative}")
                    .expect("writing to a string");
            }
            // If no run ends at all, the first line says so.
            if model.dead_ends && (self.count(index) > 0 || model.missing.is_some()) {
                writeln!(text, "some runs{under} never end: they reach a state from which they cannot end")
                    .expect("writing to a string");
            }
            if model.faults {
                writeln!(
                    text,
                    "some runs{under} end with an error and have no outcome: `palisade check` shows one"
                )
                .expect("writing to a string");
            }
        }
        text
    }
}

/// Why a list may not be complete.
fn why_missing(reason: &Reason) -> String {
    match (reason.what_ran_out(), reason.covered()) {
        (Some(what), Some(covered)) => format!("{what}; all runs with {covered} were followed"),
        (None, Some(covered)) => format!("only runs with {covered} were followed"),
        (_, None) => reason.to_string(),
    }
}

/// The steps of a run, as objects.
fn steps(evidence: &Evidence<'_>) -> Vec<Value> {
    let step = |index: usize| {
        let words = step_in_words(evidence, index);
        let mut record = json!({
            "number": index + 1,
            "process": evidence.name(evidence.run.steps[index].thread),
            "line": words.line,
            "text": words.text,
            "effect": words.effect,
        });
        if let Some(file) = words.file {
            record["file"] = file.into();
        }
        record
    };
    (0..evidence.run.steps.len()).map(step).collect()
}

impl Report for OutcomesFinding<'_> {
    fn subject(&self) -> &str {
        self.source.name()
    }

    fn word(&self) -> &str {
        if self.is_complete() { "complete" } else { "unknown" }
    }

    fn standing(&self) -> Standing {
        if self.is_complete() { Standing::Good } else { Standing::Open }
    }

    fn why(&self) -> Option<String> {
        let parts = self.models.iter().enumerate().map(|(index, model)| {
            let count = self.count(index);
            let outcomes = match (index, count) {
                (0, 1) => " outcome",
                (0, _) => " outcomes",
                _ => "",
            };
            let under = model.model.name().to_uppercase();
            match model.missing {
                None if count == 0 => format!("no run ends under {under}"),
                None => format!("{count}{outcomes} under {under}"),
                Some(reason) if count == 0 => {
                    format!("no outcome found so far under {under} ({})", why_missing(reason))
                }
                Some(reason) => {
                    format!("at least {count}{outcomes} under {under} ({})", why_missing(reason))
                }
            }
        });
        let parts: Vec<String> = parts.chain(self.limits.map(str::to_owned)).collect();
        Some(parts.join(", "))
    }

    fn body(&self, layout: &Layout) -> String {
        let full = layout.detail == Detail::Verbose;
        let mut text = String::new();
        if !self.rows.is_empty() {
            text = format!("\n{}\n", self.table());
        }
        text.push_str(&self.remarks());
        if let Some(ShownRun { number, evidence }) = &self.run {
            let local = if full { LocalSteps::Shown } else { LocalSteps::Folded };
            let model = evidence.machine.model.name().to_uppercase();
            write!(text, "\na run to outcome {number} under {model}:\n\n").expect("writing to a string");
            text.push_str(&witness(evidence, local, layout.width, layout.colour));
            text.push('\n');
        }
        for model in &self.models {
            let peak = self.peak_memory_bytes;
            let line = account(model.model, model.engine, model.stats, model.seconds, peak, full);
            text.push_str(&(line + "\n"));
        }
        text
    }

    fn json(&self) -> String {
        let values = |row: &OutcomeRow| -> Map<String, Value> {
            self.names
                .iter()
                .zip(&row.values)
                .map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect()
        };
        let models = self.models.iter().enumerate().map(|(index, model)| {
            let numbers =
                self.rows.iter().zip(1..).filter(|(row, _)| row.under[index]).map(|(_, number)| number);
            let mut object = json!({
                "model": model.model.name(),
                "verdict": if model.missing.is_none() { "complete" } else { "unknown" },
                "outcomes": numbers.collect::<Vec<usize>>(),
                "runs_that_cannot_end": model.dead_ends,
                "runs_with_errors": model.faults,
                "engine": model.engine,
                "seconds": model.seconds,
                "stats": model.stats.iter().collect::<std::collections::BTreeMap<_, _>>(),
            });
            if let Some(reason) = model.missing {
                object["reason"] = json!(why_missing(reason));
            }
            if let Some((ok, word)) = self.observation(index) {
                let (positive, negative) = self.observed(index);
                object["observation"] =
                    json!({ "ok": ok, "word": word, "positive": positive, "negative": negative });
            }
            object
        });
        let models: Vec<Value> = models.collect();
        let rows = self.rows.iter().zip(1..).map(|(row, number): (&OutcomeRow, usize)| {
            let mut object = json!({ "number": number, "values": values(row), "text": self.words(row) });
            match self.marks {
                Marks::Nothing => {}
                Marks::Final => object["violates_final"] = json!(row.marked),
                Marks::Condition(..) => object["satisfies_condition"] = json!(row.marked),
            }
            object
        });
        let rows: Vec<Value> = rows.collect();
        let mut record = json!({
            "schema_version": SCHEMA_VERSION,
            "command": "outcomes",
            "file": self.source.name(),
            "verdict": self.word(),
            "outcomes": rows,
            "models": models,
            "peak_memory_bytes": self.peak_memory_bytes,
        });
        if let Some(limits) = self.limits {
            record["limits"] = json!(limits);
        }
        if let Marks::Condition(name, _) = self.marks {
            record["test"] = json!(name);
        }
        if !self.warnings.is_empty() {
            record["diagnostics"] = json!(diagnostics_json(self.source, self.warnings));
        }
        if let Some(run) = &self.run {
            record["run"] = json!({
                "number": run.number,
                "model": run.evidence.machine.model.name(),
                "steps": steps(&run.evidence),
            });
        }
        record.to_string()
    }
}
