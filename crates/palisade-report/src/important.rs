//! The finding that a web page shows: the one whose schedule is kept in a file.
//!
//! Failures come first, then violations if they were asked about, then races, then executions that could not be
//! followed to their end. The words are those of the text report.

use crate::monitor::ROLES;
use crate::one_line;
use crate::run::{RunFinding, machines, reordered, times};
use palisade_harness::session::First;

/// A finding in the words of the text report.
#[derive(Clone, Debug)]
pub struct Important<'a> {
    /// What happened.
    pub message: String,
    /// In how many schedules, and how to repeat it.
    pub times: String,
    /// On which machines it can happen, if known.
    pub machines: Option<String>,
    /// Places, each with a remark.
    pub places: Vec<(String, String)>,
    /// What the program printed.
    pub output: &'a str,
    /// The execution that showed it first.
    pub first: &'a First,
}

impl RunFinding<'_> {
    /// The most important finding.
    pub fn most_important(&self) -> Option<Important<'_>> {
        let failures = |inconclusive: bool| {
            let found =
                self.findings.failures.iter().find(|found| found.what.is_inconclusive == inconclusive)?;
            let mut places = found.what.places.clone();
            places.extend(found.first.reorderings.iter().flat_map(reordered));
            Some(Important {
                message: one_line(&found.what.message),
                times: times(found),
                machines: machines(self, found.possible, found.what.is_excluded_without_buffers)
                    .filter(|_| !inconclusive),
                places,
                output: &found.what.output,
                first: &found.first,
            })
        };
        let violation = || {
            let found = self.violations().next()?;
            let instructions = [found.what.store, found.what.previous, found.what.access];
            let names =
                instructions.map(|instruction| self.findings.instructions.name(instruction).to_owned());
            Some(Important {
                message: format!(
                    "not robust: {} can break sequential consistency",
                    found.what.model.name().to_uppercase()
                ),
                times: times(found),
                machines: None,
                places: names.into_iter().zip(ROLES.map(|(_, says)| says.to_owned())).collect(),
                output: "",
                first: &found.first,
            })
        };
        let race = || {
            let found = self.findings.races.first()?;
            let access = |(name, writes): &(String, bool), more: &str| {
                (name.clone(), format!("{}{more}", if *writes { "writes" } else { "reads" }))
            };
            Some(Important {
                message: "data race".to_owned(),
                times: times(found),
                machines: None,
                places: vec![
                    access(&found.what.first, ""),
                    access(&found.what.second, " the same memory, and nothing orders the two"),
                ],
                output: "",
                first: &found.first,
            })
        };
        failures(false).or_else(violation).or_else(race).or_else(|| failures(true))
    }
}
