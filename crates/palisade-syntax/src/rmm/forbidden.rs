//! Turns the forbidden combinations of labels into properties.
//!
//! Identical copies are often forbidden in every order: `CS CS *; CS * CS; * CS CS`. If all combinations that
//! differ only in the order of the copies of one template are present, they become one property that counts.
//! This lets a search exploit the symmetry of the copies.

use super::ast::{Combination, File};
use super::memory::{binary, int, suggest};
use super::messages::Messages;
use super::translate::Labels;
use palisade_base::{Diagnostic, Origin};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Expr, ExprKind, Name, Observation, ProcessRef, Property, PropertyKind, Select,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Processes that become one template.
pub(crate) struct Group<'a> {
    /// The index of the process in the file.
    pub process: usize,
    /// The template.
    pub template: Arc<str>,
    /// The numbers of the processes.
    pub copies: Range<u32>,
    /// Whether a parameter distinguishes the copies.
    pub by_number: bool,
    /// The labels.
    pub labels: Arc<Labels<'a>>,
}

/// One property per combination, or one for several.
pub(crate) fn properties(file: &File<'_>, groups: &[Group<'_>], messages: &mut Messages) -> Vec<Property> {
    let total = groups.last().map_or(0, |group| group.copies.end as usize);
    let mut seen = HashSet::new();
    let mut valid_combinations = Vec::new();
    for combination in &file.forbidden {
        // If there are no processes, an error has been reported.
        if total > 0 && check(combination, file, groups, total, messages) {
            let labels: Vec<Option<&str>> = combination.entries.iter().map(|(label, _)| *label).collect();
            if seen.insert(labels) {
                valid_combinations.push(combination);
            }
        }
    }
    if messages.has_errors() {
        return Vec::new();
    }
    // Combinations that are equal up to the order of copies, in the order of the file.
    let mut classes: Vec<Vec<&Combination<'_>>> = Vec::new();
    let mut class_of = HashMap::new();
    for combination in valid_combinations {
        let class = *class_of.entry(shape(combination, groups)).or_insert(classes.len());
        match classes.get_mut(class) {
            Some(class) => class.push(combination),
            None => classes.push(vec![combination]),
        }
    }
    let mut properties = Vec::new();
    for class in classes {
        let all_orders = orders(class[0], groups) == Some(class.len() as u64);
        if all_orders && has_one_label_per_template(class[0], groups) {
            properties.push(property(counting(class[0], groups), class[0]));
        } else {
            properties
                .extend(class.iter().map(|combination| property(naming(combination, groups), combination)));
        }
    }
    properties
}

/// Whether a combination is valid.
fn check(
    combination: &Combination<'_>,
    file: &File<'_>,
    groups: &[Group<'_>],
    total: usize,
    messages: &mut Messages,
) -> bool {
    let found = combination.entries.len();
    if found != total {
        let entries = if found == 1 { "1 entry".to_owned() } else { format!("{found} entries") };
        let there_are =
            if total == 1 { "there is 1 process".to_owned() } else { format!("there are {total} processes") };
        let message = format!("this combination has {entries}, but {there_are}");
        let help = "write one label, or `*`, per process; separate combinations with `;`";
        messages.at(combination.here, "", Diagnostic::error("wrong-process-count", message).help(help));
        return false;
    }
    let mut valid = true;
    // A process without code has been reported.
    for group in groups.iter().filter(|group| !file.processes[group.process].body.is_empty()) {
        for number in group.copies.clone() {
            let (label, here) = combination.entries[number as usize];
            let Some(label) = label.filter(|label| !group.labels.contains_key(label)) else { continue };
            let error =
                Diagnostic::error("unknown-label", format!("process {number} has no label `{label}`"));
            let error = suggest(error, label, group.labels.keys().copied());
            messages.at(here, "", error);
            valid = false;
        }
    }
    if combination.entries.iter().all(|(label, _)| label.is_none()) {
        let error = Diagnostic::error("forbids-everything", "this combination forbids every state");
        messages.at(combination.here, "", error.help("name a label of at least one process"));
        valid = false;
    }
    valid
}

/// The labels of a combination per template, in alphabetical order.
fn shape<'a>(combination: &Combination<'a>, groups: &[Group<'_>]) -> Vec<Option<&'a str>> {
    let mut labels: Vec<Option<&str>> = combination.entries.iter().map(|(label, _)| *label).collect();
    for group in groups {
        labels[group.copies.start as usize..group.copies.end as usize].sort_unstable();
    }
    labels
}

/// How many times each label occurs in a template's part of a combination, in the order of the combination.
fn tally<'a>(combination: &Combination<'a>, group: &Group<'_>) -> Vec<(Option<&'a str>, u64)> {
    let mut tally: Vec<(Option<&str>, u64)> = Vec::new();
    for (label, _) in &combination.entries[group.copies.start as usize..group.copies.end as usize] {
        match tally.iter_mut().find(|(known, _)| known == label) {
            Some((_, count)) => *count += 1,
            None => tally.push((*label, 1)),
        }
    }
    tally
}

/// How many combinations differ from this one only in the order of copies; `None` if there are too many to
/// count.
fn orders(combination: &Combination<'_>, groups: &[Group<'_>]) -> Option<u64> {
    let mut orders: u64 = 1;
    for group in groups {
        let mut placed = 0;
        for (_, count) in tally(combination, group) {
            for i in 1..=count {
                placed += 1;
                // The product of the first i factors divided by i! is an integer.
                orders = orders.checked_mul(placed)? / i;
            }
        }
    }
    Some(orders)
}

/// Whether at most one label occurs in each template. Two labels can be at the same location, as in
/// `A: {B: nop}`, and one process would then be counted for both.
fn has_one_label_per_template(combination: &Combination<'_>, groups: &[Group<'_>]) -> bool {
    groups
        .iter()
        .all(|group| tally(combination, group).iter().filter(|(label, _)| label.is_some()).count() <= 1)
}

/// `count(P0@CS) >= 2 && P3@CS`
fn counting(combination: &Combination<'_>, groups: &[Group<'_>]) -> Vec<Expr> {
    let mut conditions = Vec::new();
    let span = combination.here.span;
    for group in groups {
        for (label, count) in tally(combination, group) {
            let Some((label, _)) = label.and_then(|label| group.labels.get(label)) else { continue };
            let (template, label) =
                (Name::new(Arc::clone(&group.template), span), Name::new(Arc::clone(label), span));
            conditions.push(if group.copies.len() == 1 {
                at(template, Select::Only, label)
            } else {
                let count_at = Expr::new(ExprKind::Observe(Observation::Count { template, label }), span);
                binary(BinaryOp::Ge, count_at, int(Value::try_from(count).unwrap_or(Value::MAX), span), span)
            });
        }
    }
    conditions
}

/// `P0@CS && P1[0]@CS`
fn naming(combination: &Combination<'_>, groups: &[Group<'_>]) -> Vec<Expr> {
    let mut conditions = Vec::new();
    for group in groups {
        for (position, number) in group.copies.clone().enumerate() {
            let (label, here) = combination.entries[number as usize];
            let Some((label, _)) = label.and_then(|label| group.labels.get(label)) else { continue };
            let select = match group.copies.len() {
                1 => Select::Only,
                _ if group.by_number => Select::Args(vec![number.into()]),
                _ => Select::Index(position as u32),
            };
            let template = Name::new(Arc::clone(&group.template), here.span);
            conditions.push(at(template, select, Name::new(Arc::clone(label), here.span)));
        }
    }
    conditions
}

fn at(template: Name, select: Select, label: Name) -> Expr {
    let span = label.span();
    let process = ProcessRef { template, select, origin: Origin(span) };
    Expr::new(ExprKind::Observe(Observation::At { process, label }), span)
}

fn property(conditions: Vec<Expr>, combination: &Combination<'_>) -> Property {
    let span = combination.here.span;
    let all = conditions.into_iter().reduce(|all, next| binary(BinaryOp::And, all, next, span));
    let condition = all.expect("a combination names a label");
    Property { kind: PropertyKind::Forbid, condition, origin: Origin(span) }
}
