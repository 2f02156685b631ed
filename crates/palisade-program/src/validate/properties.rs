//! Properties: conditions over the observable parts of a state.

use super::declarations::out_of_bounds;
use super::expressions::{CheckOperators, array_misuse};
use super::names::{BodyNames, Names, values};
use super::{Report, limits};
use crate::Value;
use crate::lower::globals::{NotConstant, constant};
use crate::written::{
    Count, END_LABEL, Expr, ExprKind, Name, Observation, Place, PlaceKind, ProcessRef, Select, Start,
    Template,
};
use palisade_base::Diagnostic;

/// Checks the condition of a property and returns its size.
pub(super) fn check(condition: &Expr, names: &Names<'_>, report: &mut Report) -> usize {
    let mut check = Check { names, report, size: 0 };
    check.expr(condition);
    check.size
}

/// Checks the process and the label of a `leaves`.
pub(super) fn check_leaves(process: &ProcessRef, label: &Name, names: &Names<'_>, report: &mut Report) {
    let mut check = Check { names, report, size: 0 };
    let Some(body) = check.process(process) else { return };
    if label.as_str() == END_LABEL {
        let message = "no process leaves its end";
        let help = format!("`live {}@end` says that the process can always reach its end", process.template);
        report.push(Diagnostic::error("leaves-end", message).at(label.span(), "").help(help));
    } else {
        check.label(&process.template, body, label);
    }
}

struct Check<'a, 'p> {
    names: &'a Names<'p>,
    report: &'a mut Report,
    /// The number of expressions so far. `count` counts once per role.
    size: usize,
}

impl CheckOperators<'_> for Check<'_, '_> {
    fn check_expr(&mut self, e: &Expr) -> Option<Value> {
        self.expr(e)
    }

    fn report(&mut self) -> &mut Report {
        self.report
    }
}

impl Check<'_, '_> {
    /// Checks an expression and returns its value if it is constant.
    fn expr(&mut self, e: &Expr) -> Option<Value> {
        self.size += 1;
        match &e.kind {
            ExprKind::Int(value) => Some(*value),
            ExprKind::Bool(value) => Some((*value).into()),
            ExprKind::Read(place) | ExprKind::AddressOf(place) => {
                self.read(place);
                None
            }
            ExprKind::Unary(op, a) => self.unary(*op, a, e.span()),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, e.span()),
            ExprKind::Locked(..) | ExprKind::Call(..) | ExprKind::Any { .. } => {
                let message = "a property describes a state and cannot execute anything";
                self.report.push(
                    Diagnostic::error("step-in-property", message)
                        .at(e.span(), "")
                        .help("use calls, locked instructions and `any` only in processes and procedures"),
                );
                None
            }
            ExprKind::Observe(observation) => {
                self.observation(observation);
                None
            }
        }
    }

    fn read(&mut self, place: &Place) {
        match &place.kind {
            PlaceKind::Named(name) => self.shared(name, None),
            PlaceKind::Element(name, index) => self.shared(name, Some(index)),
            PlaceKind::Deref(_) => {
                let message = "a property cannot dereference pointers";
                self.report.push(
                    Diagnostic::error("pointer-in-property", message)
                        .at(place.span(), "")
                        .help("name the shared variable itself"),
                );
            }
        }
    }

    fn shared(&mut self, name: &Name, index: Option<&Expr>) {
        let Some(memory) = self.names.memory.get(name.as_str()) else {
            let message = format!("there is no shared variable `{name}`");
            let diagnostic = Diagnostic::error("unknown-name", message).at(name.span(), "");
            let candidates = self.names.memory.keys().copied();
            let mut diagnostic = self.report.suggest(diagnostic, name.as_str(), candidates);
            if diagnostic.help.is_none() {
                diagnostic =
                    diagnostic.help(format!("write a register together with its process: `P.{name}`"));
            }
            self.report.push(diagnostic);
            return;
        };
        let (index, len) = match (index, memory.len) {
            (None, None) => return,
            (Some(index), Some(len)) => (index, len),
            (index, _) => {
                self.report.push(array_misuse(name, index.is_none()));
                return;
            }
        };
        let diagnostic = match constant(index, &self.names.memory) {
            Ok(value) if value > 0 && self.names.per_identity.contains(name.as_str()) => {
                let message =
                    format!("`{name}` has one cell per process, and the number of processes is open");
                Diagnostic::error("bad-identity", message)
                    .at(index.span(), "there may be no such process")
                    .help("a property can count processes, as in `count(P@cs) >= 2`")
            }
            Ok(value) if 0 <= value && value < len.into() => return,
            Ok(value) => out_of_bounds(name, len, value, index.span()),
            Err(NotConstant::Faults(fault)) => {
                Diagnostic::error("constant-fault", fault.to_string()).at(index.span(), "")
            }
            Err(NotConstant::Depends) => {
                Diagnostic::error("not-constant", "an index in a property must be a constant")
                    .at(index.span(), "")
            }
        };
        self.report.push(diagnostic);
    }

    fn observation(&mut self, observation: &Observation) {
        match observation {
            Observation::At { process, label } => {
                if let Some(body) = self.process(process) {
                    self.label(&process.template, body, label);
                }
            }
            Observation::Count { template, label } => {
                if let Some((declared, body)) = self.template(template) {
                    self.size = self.size.saturating_add(self.names.role_count(declared));
                    self.label(template, body, label);
                }
            }
            Observation::Register { process, register } => {
                let Some(body) = self.process(process) else { return };
                let (template, _) = self.names.templates[process.template.as_str()];
                let mut params = template.params.iter().map(|param| param.name.as_str());
                if !body.registers.contains_key(register.as_str()) && !params.any(|p| p == register.as_str())
                {
                    let message = format!("the process `{}` has no register `{register}`", process.template);
                    let diagnostic = Diagnostic::error("unknown-register", message).at(register.span(), "");
                    let diagnostic =
                        self.report.suggest(diagnostic, register.as_str(), body.registers.keys().copied());
                    self.report.push(diagnostic);
                }
            }
        }
    }

    fn label(&mut self, template: &Name, body: &BodyNames<'_>, label: &Name) {
        if label.as_str() != END_LABEL && !body.labels.contains_key(label.as_str()) {
            let message = format!("the process `{template}` has no label `{label}`");
            let diagnostic = Diagnostic::error("unknown-label", message).at(label.span(), "");
            let labels = body.labels.keys().copied();
            let diagnostic = self.report.suggest(diagnostic, label.as_str(), labels);
            self.report.push(diagnostic);
        }
    }
}

impl<'a, 'p> Check<'a, 'p> {
    fn template(&mut self, name: &Name) -> Option<(&'p Template, &'a BodyNames<'p>)> {
        let names = self.names;
        if let Some((template, body)) = names.templates.get(name.as_str()) {
            return Some((template, body));
        }
        let message = format!("there is no process `{name}`");
        let diagnostic = Diagnostic::error("unknown-process", message).at(name.span(), "");
        let candidates = names.templates.keys().copied();
        let diagnostic = self.report.suggest(diagnostic, name.as_str(), candidates);
        self.report.push(diagnostic);
        None
    }

    /// Checks that a reference means exactly one process.
    fn process(&mut self, process: &ProcessRef) -> Option<&'a BodyNames<'p>> {
        let (template, body) = self.template(&process.template)?;
        if let Some(diagnostic) = self.wrong_selection(process, template) {
            self.report.push(diagnostic);
        }
        Some(body)
    }

    fn wrong_selection(&self, process: &ProcessRef, template: &Template) -> Option<Diagnostic> {
        let (name, span) = (&process.template, process.origin.0);
        if template.start == Start::OnSpawn {
            let message = format!("`{name}` is started by `spawn`, so its instances cannot be named");
            return Some(
                Diagnostic::error("not-initial", message)
                    .at(span, "")
                    .help(format!("count them: `count({name}@label) >= 1`")),
            );
        }
        let roles = template.params.iter().map(values).fold(1u64, u64::saturating_mul);
        let several = |help: String| {
            let message = format!("`{name}` has several instances");
            Some(Diagnostic::error("ambiguous-process", message).at(span, "").help(help))
        };
        let missing = |message: String, help: String| {
            Some(Diagnostic::error("no-such-process", message).at(span, "").help(help))
        };
        match (&process.select, template.count) {
            (Select::Only, Count::Fixed(copies)) => {
                let all = roles.saturating_mul(copies.into());
                if all <= 1 {
                    return None;
                }
                several(match template.params.is_empty() {
                    true => format!("name one of them: `{name}[0]` to `{name}[{}]`", all - 1),
                    false => {
                        format!("name one by its parameters, such as `{name}({})`", first_args(template))
                    }
                })
            }
            (Select::Only, Count::Any) if roles > 1 => {
                several(format!("count them: `count({name}@label) >= 2`"))
            }
            (Select::Only, Count::Any) => several(format!(
                "name one by its number, such as `{name}[0]`, or count them: `count({name}@label) >= 2`"
            )),
            (Select::Index(index), Count::Fixed(copies)) => {
                let all = roles.saturating_mul(copies.into());
                if u64::from(*index) < all {
                    return None;
                }
                missing(
                    format!("`{name}` has no instance number {index}"),
                    format!("its instances are numbered from 0 to {}", all.saturating_sub(1)),
                )
            }
            (Select::Index(index), Count::Any) => {
                if roles > 1 {
                    return several(
                        "instances of a process with `[*]` are numbered only if it has no parameters".into(),
                    );
                }
                if u64::from(*index) < limits::MAX_INSTANCES {
                    return None;
                }
                missing(
                    format!("the instance number {index} of `{name}` is too large"),
                    format!("instance numbers must be less than {}", limits::MAX_INSTANCES),
                )
            }
            (Select::Args(args), count) => {
                if args.len() != template.params.len() {
                    let (given, expected) = (args.len(), template.params.len());
                    let values = if expected == 1 { "value" } else { "values" };
                    let message = format!("`{name}` takes {expected} parameter {values}, not {given}");
                    let diagnostic = Diagnostic::error("wrong-arity", message).at(span, "");
                    return Some(diagnostic.at(template.name.span(), "declared here"));
                }
                let outside = template.params.iter().zip(args).find(|(p, arg)| !p.ty.domain.contains(**arg));
                if let Some((param, arg)) = outside {
                    return missing(
                        format!("there is no such instance of `{name}`"),
                        format!("{arg} is not a value of the parameter `{}`", param.name),
                    );
                }
                match count {
                    Count::Fixed(0 | 1) => None,
                    Count::Fixed(_) => several(format!(
                        "name one by its number among all instances of `{name}`, such as `{name}[0]`"
                    )),
                    Count::Any => several(format!("count them: `count({name}@label) >= 2`")),
                }
            }
        }
    }
}

/// The smallest parameter values, as an example.
fn first_args(template: &Template) -> String {
    let least = |param: &crate::written::Param| param.ty.domain.bounds().map_or(0, |(lo, _)| lo).to_string();
    template.params.iter().map(least).collect::<Vec<_>>().join(", ")
}
