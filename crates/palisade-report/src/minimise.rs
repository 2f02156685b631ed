//! Unnecessary fences and orders, as text and JSON.

use crate::fences::change_in_words;
use crate::json::{add_file, diagnostics_json};
use crate::report::{Layout, Report, Standing};
use crate::{SCHEMA_VERSION, one_line};
use palisade_base::{Diagnostic, Source, Span};
use palisade_fences::Change;
use palisade_memory::Model;
use serde_json::{Value, json};
use std::fmt::Write;

/// What happens if one fence or order is weaker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Alone {
    /// The program stays right.
    Unnecessary,
    /// It breaks, in this way.
    Needed(String),
    /// Not known, for this reason.
    Unknown(String),
}

/// Whether the program is right as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AsItIs {
    /// It is.
    Right,
    /// It is wrong, in this way.
    Wrong(String),
    /// Not known, for this reason.
    Unknown(String),
}

/// The answer for one file.
#[derive(Clone, Debug)]
pub struct MinimisedFinding<'a> {
    /// The text of the program.
    pub source: &'a Source,
    /// The memory model.
    pub model: Model,
    /// `safety` or `robustness`.
    pub goal: &'a str,
    /// Warnings about the program.
    pub warnings: &'a [Diagnostic],
    /// Whether it is right as it is. Otherwise there is nothing to report.
    pub as_it_is: &'a AsItIs,
    /// All fences and orders that could be weaker, in the order of the text.
    pub weakenings: Vec<ReportedWeakening<'a>>,
    /// Whether nothing else that can go together saves more.
    pub is_cheapest: bool,
    /// How many orders matter to the compiler only.
    pub for_the_compiler: usize,
    /// How many programs were checked.
    pub checks: u64,
    /// Time taken.
    pub seconds: f64,
}

/// A fence or an order that could be weaker.
#[derive(Clone, Debug)]
pub struct ReportedWeakening<'a> {
    /// The statement.
    pub span: Span,
    /// What it is.
    pub change: Change,
    /// The statement after the change.
    pub becomes: &'a str,
    /// What it costs.
    pub cost: u64,
    /// What happens if it alone is weaker.
    pub alone: &'a Alone,
    /// Whether it goes together with the others.
    pub together: bool,
    /// What goes wrong if it goes with the others, if that is known.
    pub needed: Option<&'a str>,
}

impl Report for MinimisedFinding<'_> {
    fn subject(&self) -> &str {
        self.source.name()
    }

    fn word(&self) -> &str {
        match (self.as_it_is, self.goal) {
            (AsItIs::Unknown(_), _) => "unknown",
            (AsItIs::Right, "robustness") => "robust",
            (AsItIs::Right, _) => "safe",
            (AsItIs::Wrong(_), "robustness") => "not-robust",
            (AsItIs::Wrong(_), _) => "unsafe",
        }
    }

    fn standing(&self) -> Standing {
        match self.as_it_is {
            AsItIs::Right => Standing::Good,
            AsItIs::Wrong(_) => Standing::Bad,
            AsItIs::Unknown(_) => Standing::Open,
        }
    }

    fn why(&self) -> Option<String> {
        let going = self.weakenings.iter().filter(|one| one.together).count();
        match self.as_it_is {
            AsItIs::Right => {}
            AsItIs::Wrong(why) => {
                return Some(format!("it is wrong to begin with, so fix that first: {why}"));
            }
            AsItIs::Unknown(why) => return Some(format!("it is not known to be right to begin with: {why}")),
        }
        Some(match (self.weakenings.len(), going) {
            (0, _) => "it has no fences or orders that could be weaker".to_owned(),
            (all, 0) => format!("none of the {} in its text can be weaker", strong(all)),
            (all, going) => format!("{going} of {} in its text can be weaker", strong(all)),
        })
    }

    fn body(&self, _: &Layout) -> String {
        let mut text = String::new();
        let mut part = |title: &str, wanted: &dyn Fn(&ReportedWeakening<'_>) -> bool| {
            let all: Vec<_> = self.weakenings.iter().filter(|one| wanted(one)).collect();
            if all.is_empty() {
                return;
            }
            writeln!(text, "\n{title}").expect("writing to a string");
            for one in all {
                let line = self.source.line_in_words(one.span).unwrap_or_else(|| "line ?".to_owned());
                let statement = one_line(self.source.slice(one.span));
                writeln!(text, "  {} at {line}: {statement}", change_in_words(one.change))
                    .expect("writing to a string");
                let detail = match (one.together, one.alone) {
                    (true, _) => format!("becomes: {}", one_line(one.becomes)),
                    (false, Alone::Needed(why)) => format!("needed: {why}"),
                    (false, Alone::Unknown(why)) => format!("not known: {why}"),
                    (false, Alone::Unnecessary) => {
                        format!("with the others: {}", one.needed.unwrap_or("this was not shown to be right"))
                    }
                };
                writeln!(text, "      {detail}").expect("writing to a string");
            }
        };
        let saved: u64 = self.weakenings.iter().filter(|one| one.together).map(|one| one.cost).sum();
        let cheapest = if self.is_cheapest { "" } else { " (other sets may save more)" };
        part(&format!("can be weaker, each alone and all together, saving {saved}{cheapest}"), &|one| {
            one.together
        });
        part("can be weaker alone, but not together with those above", &|one| {
            !one.together && *one.alone == Alone::Unnecessary
        });
        part("needed", &|one| !one.together && matches!(one.alone, Alone::Needed(_)));
        part("not known", &|one| !one.together && matches!(one.alone, Alone::Unknown(_)));
        if self.for_the_compiler > 0 {
            let orders = match self.for_the_compiler {
                1 => "1 call of a seq_cst load or read-modify-write is".to_owned(),
                orders => format!("{orders} calls of seq_cst loads and read-modify-writes are"),
            };
            write!(
                text,
                "\n{orders} left alone: a weaker order costs the same on this machine, and matters only to the compiler\n"
            )
            .expect("writing to a string");
        }
        if self.weakenings.iter().any(|one| one.together) {
            let machine = if self.model == Model::Pso { "PSO (SPARC)" } else { "TSO (x86, SPARC)" };
            writeln!(
                text,
                "\nthis holds for this program on {machine}: on other machines, such as Arm, the weaker one may be wrong"
            )
            .expect("writing to a string");
        }
        let plural = if self.checks == 1 { "" } else { "s" };
        let model = self.model.name().to_uppercase();
        write!(text, "\n{model}, {} program{plural} checked, {:.2} s\n", self.checks, self.seconds)
            .expect("writing to a string");
        text
    }

    fn json(&self) -> String {
        let one = |one: &ReportedWeakening<'_>| {
            let position = self.source.position(one.span);
            let (alone, why) = match one.alone {
                Alone::Unnecessary => ("unnecessary", None),
                Alone::Needed(why) => ("needed", Some(why)),
                Alone::Unknown(why) => ("unknown", Some(why)),
            };
            let mut record = json!({
                "line": position.map(|position| position.line),
                "column": position.map(|position| position.column),
                "text": one_line(self.source.slice(one.span)),
                "kind": one.change.name(),
                "becomes": one_line(one.becomes),
                "cost": one.cost,
                "alone": alone,
                "why": why,
                "together": one.together,
                "with_others": one.needed,
            });
            add_file(&mut record, self.source, one.span);
            record
        };
        let saved: u64 = self.weakenings.iter().filter(|one| one.together).map(|one| one.cost).sum();
        let mut record = json!({
            "schema_version": SCHEMA_VERSION,
            "command": "fences",
            "minimise": true,
            "file": self.source.name(),
            "model": self.model.name(),
            "goal": self.goal,
            "verdict": self.word(),
            "reason": match self.as_it_is {
                AsItIs::Right => None,
                AsItIs::Wrong(why) | AsItIs::Unknown(why) => Some(why),
            },
            "weakenings": self.weakenings.iter().map(one).collect::<Value>(),
            "saves": saved,
            "cheapest": self.is_cheapest,
            "for_the_compiler": self.for_the_compiler,
            "checks": self.checks,
            "seconds": self.seconds,
        });
        if !self.warnings.is_empty() {
            record["diagnostics"] = diagnostics_json(self.source, self.warnings).into();
        }
        record.to_string()
    }
}

fn strong(count: usize) -> String {
    match count {
        1 => "1 fence or strong order".to_owned(),
        _ => format!("{count} fences and strong orders"),
    }
}
