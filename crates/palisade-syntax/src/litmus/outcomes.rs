//! What a list of outcomes shows of a litmus test, as herd7 prints it: the registers and variables of the
//! question and those in `locations [...]`. Registers come first, by thread and name, then variables by name.

use super::question::ConditionContext;
use super::test::{Condition, Location, Quantifier, Side, Test};
use super::values::Maker;
use crate::report::Report;
use palisade_base::{Diagnostic, Source, Span};
use palisade_program::written::{Expr, Program};

/// A litmus test whose outcomes are wanted.
#[derive(Clone, Debug)]
pub struct LitmusTest {
    /// The program. It has no property: the question is separate.
    pub program: Program,
    /// Its name.
    pub name: String,
    /// What is shown of an outcome, in order.
    pub shown: Vec<Shown>,
    /// Outcomes in which this is 0 do not count.
    pub filter: Option<Expr>,
    /// What the test asks.
    pub question: Option<LitmusQuestion>,
}

/// A part of an outcome.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its name, as herd7 prints it: `0:EAX` or `[x]`.
    pub name: String,
    /// Its value, as the condition of a property.
    pub value: Expr,
    /// Whether it can hold the address of a variable.
    pub can_point: bool,
}

/// What a test asks about its outcomes.
#[derive(Clone, Debug)]
pub struct LitmusQuestion {
    /// How the condition is meant.
    pub asks: Asks,
    /// The condition.
    pub condition: Expr,
}

/// How the condition of a test is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// `exists P`: some outcome satisfies P.
    Exists,
    /// `~exists P`: no outcome satisfies P.
    NotExists,
    /// `forall P`: every outcome satisfies P.
    Forall,
}

/// Parses a litmus test for a list of its outcomes. Registers that only `locations [...]` mentions are kept.
pub fn litmus_test(source: &Source) -> Result<LitmusTest, Vec<Diagnostic>> {
    let mut report = Report::default();
    let test = super::translate_for_outcomes(source.text(), &mut report);
    match test {
        Some(test) if !report.has_errors() => Ok(test),
        _ => Err(crate::report::arrange(report.into_diagnostics())),
    }
}

/// The locations that are shown, each once.
pub(super) fn locations<'a>(test: &Test<'a>) -> Vec<Location<'a>> {
    let mut all: Vec<Location<'a>> = test.locations.clone();
    if let Some((_, condition, _)) = &test.question {
        super::bank::observed(condition, &mut |location| all.push(*location));
    }
    all
}

/// Whether a condition compares a whole array, so that each of its elements is shown.
fn whole_arrays<'c, 'a>(condition: &'c Condition<'a>, visit: &mut impl FnMut(&'c Location<'a>)) {
    match condition {
        Condition::Constant(..) => {}
        Condition::Atom(atom) => {
            if matches!(atom.right, Side::Elements(_)) {
                visit(&atom.left);
            }
        }
        Condition::Not(operand, _) => whole_arrays(operand, visit),
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().for_each(|part| whole_arrays(part, visit));
        }
        Condition::Implies(left, right) => {
            whole_arrays(left, visit);
            whole_arrays(right, visit);
        }
    }
}

/// The order in which herd7 prints locations.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FinalLocation {
    Register(u32, String, u32),
    Variable(String, Option<u32>),
}

impl ConditionContext<'_, '_> {
    /// The locations that a test shows, with their values.
    pub(super) fn shown(&self, text: &str, test: &Test<'_>) -> Vec<Shown> {
        let mut whole = Vec::new();
        if let Some((_, condition, _)) = &test.question {
            whole_arrays(condition, &mut |location| {
                if let Location::Variable { name, .. } = location {
                    whole.push(name.text);
                }
            });
        }
        whole.extend(test.locations.iter().filter_map(|location| match location {
            Location::Variable { name, element: None, .. } => Some(name.text),
            _ => None,
        }));
        let mut shown: Vec<(FinalLocation, Shown)> = Vec::new();
        for location in locations(test) {
            match location {
                Location::Register { thread, register, span } => {
                    let name = register_name(text, span);
                    let width = register.part.width().0;
                    let place = FinalLocation::Register(thread, name.to_ascii_lowercase(), width);
                    shown.push((place, self.one(format!("{thread}:{name}"), location)));
                }
                Location::Variable { name, element, span } => {
                    let var = self.variables.find(name.text).expect("names were checked");
                    let elements = match self.variables.all[var].len {
                        None => vec![None],
                        Some(len) if element.is_none() && whole.contains(&name.text) => {
                            (0..len).map(Some).collect()
                        }
                        Some(_) => vec![Some(element.unwrap_or(0))],
                    };
                    for element in elements {
                        let location = Location::Variable { name, element, span };
                        let written = match element {
                            None => format!("[{}]", name.text),
                            Some(element) => format!("{}[{element}]", name.text),
                        };
                        let place = FinalLocation::Variable(name.text.to_owned(), element);
                        shown.push((place, self.one(written, location)));
                    }
                }
            }
        }
        shown.sort_by(|(a, _), (b, _)| a.cmp(b));
        shown.dedup_by(|(a, _), (b, _)| a == b);
        shown.into_iter().map(|(_, shown)| shown).collect()
    }

    fn one(&self, name: String, location: Location<'_>) -> Shown {
        let (value, _) = self.location(&location, Maker { build: true, span: Span::NONE });
        Shown { name, can_point: value.facts.points != 0, value: value.expr.expect("built") }
    }

    /// The question and the filter as expressions.
    pub(super) fn judged(
        &self,
        question: super::question::Question<'_>,
        report: &mut Report,
    ) -> (Option<Expr>, Option<LitmusQuestion>) {
        let filter = question.filter.map(|filter| self.condition(filter, report));
        let question = question.question.map(|(quantifier, condition, _)| LitmusQuestion {
            asks: match quantifier {
                Quantifier::Reachable => Asks::Exists,
                Quantifier::Unreachable => Asks::NotExists,
                Quantifier::Always => Asks::Forall,
            },
            condition: self.condition(condition, report),
        });
        (filter, question)
    }
}

/// The name of a register as the test writes it, without the thread.
fn register_name(text: &str, span: Span) -> &str {
    let written = &text[span.range()];
    let name = written.rsplit(':').next().unwrap_or(written);
    name.trim().trim_start_matches('%')
}
