//! The outcomes of a program under one or more memory models, side by side.

use crate::outcomes::{Listing, OutcomeRun, Outcomes};
use crate::read::Input;
use palisade_memory::{Machine, Model};
use palisade_report::{Marks, ModelOutcomes, OutcomeRow, OutcomesFinding, ShownRun, TestAsks};
use palisade_syntax::Asks;
use palisade_trace::Evidence;
use std::collections::BTreeMap;

/// The outcomes under some models, in one list.
#[derive(Clone, Debug)]
pub struct OutcomeList {
    listing: Listing,
    outcomes: Vec<Outcomes>,
    rows: Vec<OutcomeRow>,
}

impl OutcomeList {
    /// The list of what was found under each model.
    pub fn new(listing: Listing, outcomes: Vec<Outcomes>) -> OutcomeList {
        let rows = rows(&listing, &outcomes);
        OutcomeList { listing, outcomes, rows }
    }

    /// What is listed.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// The outcomes, by their values.
    pub fn rows(&self) -> &[OutcomeRow] {
        &self.rows
    }

    /// The first model that has an outcome.
    pub fn strongest(&self, row: &OutcomeRow) -> Model {
        let has = row.under.iter().zip(&self.outcomes).find(|(under, _)| **under);
        has.expect("an outcome is listed because a model has it").1.model
    }

    /// The list for a report, with the run to the outcome of a given number, counted from 1. `limits` is what the list
    /// is limited to.
    pub fn finding<'a>(
        &'a self,
        input: &'a Input,
        run: Option<(usize, &'a OutcomeRun)>,
        limits: Option<&'a str>,
    ) -> OutcomesFinding<'a> {
        let models = self.outcomes.iter().map(|outcomes| ModelOutcomes {
            model: outcomes.model,
            missing: outcomes.missing.as_ref(),
            faults: outcomes.faults,
            dead_ends: outcomes.dead_ends,
            engine: outcomes.engine,
            stats: &outcomes.stats,
            seconds: outcomes.seconds,
        });
        let run = run.map(|(number, run)| {
            let OutcomeRun { system, model, interlocked, run, replay } = run;
            let machine = Machine { system, model: *model, interlocked: *interlocked };
            let evidence =
                Evidence { source: &input.source, addresses: input.addresses(), machine, run, replay };
            ShownRun { number, evidence }
        });
        OutcomesFinding {
            source: &input.source,
            warnings: &input.warnings,
            names: self.listing.names(),
            rows: self.rows.clone(),
            models: models.collect(),
            marks: self.marks(),
            limits,
            run,
            peak_memory_bytes: None,
        }
    }

    fn marks(&self) -> Marks<'_> {
        match self.listing.test() {
            Some(test) => match test.asks {
                None => Marks::Nothing,
                Some(Asks::Exists) => Marks::Condition(&test.name, TestAsks::Exists),
                Some(Asks::NotExists) => Marks::Condition(&test.name, TestAsks::NotExists),
                Some(Asks::Forall) => Marks::Condition(&test.name, TestAsks::Forall),
            },
            None if self.listing.has_marks() => Marks::Final,
            None => Marks::Nothing,
        }
    }
}

/// The outcomes of all models, by their values.
fn rows(listing: &Listing, outcomes: &[Outcomes]) -> Vec<OutcomeRow> {
    let mut all: BTreeMap<&Vec<i64>, bool> = BTreeMap::new();
    for (values, marked) in outcomes.iter().flat_map(|outcomes| &outcomes.found) {
        *all.entry(values).or_default() |= marked;
    }
    let row = |(values, marked): (&Vec<i64>, bool)| OutcomeRow {
        values: values.clone(),
        words: values.iter().enumerate().map(|(column, &value)| listing.value(column, value)).collect(),
        under: outcomes.iter().map(|outcomes| outcomes.found.contains_key(values)).collect(),
        marked,
    };
    all.into_iter().map(row).collect()
}
