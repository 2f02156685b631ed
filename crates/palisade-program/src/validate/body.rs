//! The statements of processes and procedures.

use super::Report;
use super::declarations::{check_type, domain_help, hides_private, hides_shared, is_empty};
use super::names::{BodyNames, Names, declared_twice};
use crate::written::{
    END_LABEL, Expr, ExprKind, Name, Param, PlaceKind, Procedure, Start, Stmt, StmtKind, Template, Type,
};
use palisade_base::{Diagnostic, Span, limits};
use rustc_hash::{FxHashMap, FxHashSet};

/// Checks the body of a process and returns its size.
pub(super) fn check_process(template: &Template, names: &Names<'_>, report: &mut Report) -> usize {
    check(&template.body, &template.params, BodyKind::Process, names, report).size
}

/// Checks the body of a procedure and returns its size.
pub(super) fn check_procedure(procedure: &Procedure, names: &Names<'_>, report: &mut Report) -> usize {
    let kind = BodyKind::Procedure { result: procedure.result };
    let outcome = check(&procedure.body, &procedure.params, kind, names, report);
    if procedure.result.is_some() && outcome.flow == Flow::ReachesEnd {
        let message = format!("`{}` can end without returning a value; the result is then 0", procedure.name);
        report.push(
            Diagnostic::warning("missing-return", message)
                .at(procedure.name.span(), "")
                .help("end every path with `return e;`"),
        );
    }
    outcome.size
}

/// The kind of body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Process,
    Procedure { result: Option<Type> },
}

/// Whether control can reach the end of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    ReachesEnd,
    NeverReachesEnd,
}

struct Outcome {
    size: usize,
    flow: Flow,
}

/// A loop around the statement being checked.
struct Loop {
    has_break: bool,
}

/// The state of checking one body.
pub(super) struct Body<'a, 'p> {
    pub(super) names: &'a Names<'p>,
    pub(super) report: &'a mut Report,
    pub(super) kind: BodyKind,
    body: BodyNames<'a>,
    pub(super) params: FxHashMap<&'a str, &'a Param>,
    /// Registers whose `let` has been seen.
    declared: FxHashSet<&'a str>,
    /// Names already reported as unknown or used too early. Each is reported once.
    reported: FxHashSet<&'a str>,
    labels: FxHashSet<&'a str>,
    /// The number of labels so far, to find out whether a statement contains any.
    label_count: usize,
    loops: Vec<Loop>,
    /// The numbers of the atomic blocks around the statement, as in [`super::names::LabelPlace`].
    atomic: Vec<usize>,
    atomic_blocks: usize,
    /// The number of statements and expressions so far.
    pub(super) size: usize,
}

fn check<'a>(
    block: &'a [Stmt],
    params: &'a [Param],
    kind: BodyKind,
    names: &'a Names<'_>,
    report: &'a mut Report,
) -> Outcome {
    let mut body = Body {
        names,
        report,
        kind,
        body: BodyNames::new(block),
        params: params.iter().map(|param| (param.name.as_str(), param)).collect(),
        declared: FxHashSet::default(),
        reported: FxHashSet::default(),
        labels: FxHashSet::default(),
        label_count: 0,
        loops: Vec::new(),
        atomic: Vec::new(),
        atomic_blocks: 0,
        size: 0,
    };
    let flow = body.block(block);
    Outcome { size: body.size, flow }
}

impl<'a> Body<'a, '_> {
    fn block(&mut self, block: &'a [Stmt]) -> Flow {
        let mut flow = Flow::ReachesEnd;
        let mut warned = false;
        for stmt in block {
            limits::checkpoint();
            let labels_before = self.label_count;
            let after = self.stmt(stmt);
            let is_unreachable = flow == Flow::NeverReachesEnd && self.label_count == labels_before;
            if is_unreachable && !warned && !stmt.span().is_none() {
                warned = true;
                let message = "this code is unreachable";
                self.report.push(Diagnostic::warning("unreachable-code", message).at(stmt.span(), ""));
            }
            if !is_unreachable {
                flow = after;
                warned = false;
            }
        }
        flow
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Flow {
        self.size += 1;
        stmt.labels.iter().for_each(|label| self.label(label));
        match &stmt.kind {
            StmtKind::Skip | StmtKind::Fence | StmtKind::StoreFence => {}
            StmtKind::Let { name, ty, init } => {
                if let Some(init) = init {
                    self.expr(init);
                } else if !ty.domain.contains(0) && !is_empty(ty.domain) {
                    let message =
                        format!("without an initial value `{name}` is 0, which is outside its domain");
                    let diagnostic = Diagnostic::error("outside-domain", message).at(name.span(), "");
                    self.report.push(diagnostic.help(domain_help(ty.domain)));
                }
                self.declare(name, *ty);
            }
            StmtKind::Assign { place, value } => {
                self.expr(value);
                self.assigned(place);
            }
            StmtKind::Eval(e) => self.eval(e),
            StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                self.expr(e);
            }
            StmtKind::If { condition, then, otherwise } => {
                self.expr(condition);
                let flows = [self.block(then), self.block(otherwise)];
                return join(flows);
            }
            StmtKind::While { condition, body } => {
                let endless = self.expr(condition).is_some_and(|value| value != 0);
                let has_break = self.loop_body(body);
                return if endless && !has_break { Flow::NeverReachesEnd } else { Flow::ReachesEnd };
            }
            StmtKind::Loop(body) => {
                let has_break = self.loop_body(body);
                return if has_break { Flow::ReachesEnd } else { Flow::NeverReachesEnd };
            }
            StmtKind::Break | StmtKind::Continue => {
                self.leave_loop(&stmt.kind, stmt.span());
                return Flow::NeverReachesEnd;
            }
            StmtKind::Goto(label) => {
                self.goto(label);
                return Flow::NeverReachesEnd;
            }
            StmtKind::Choose(alternatives) => {
                if alternatives.is_empty() {
                    let message = "`choose` has no alternatives";
                    self.report.push(Diagnostic::error("empty-choice", message).at(stmt.span(), ""));
                }
                let flows: Vec<Flow> = alternatives.iter().map(|block| self.block(block)).collect();
                return join(flows);
            }
            StmtKind::Atomic(block) => {
                self.atomic_blocks += 1;
                self.atomic.push(self.atomic_blocks);
                let flow = self.block(block);
                self.atomic.pop();
                return flow;
            }
            StmtKind::Block(block) => return self.block(block),
            StmtKind::Return(value) => {
                self.return_(value.as_ref(), stmt.span());
                return Flow::NeverReachesEnd;
            }
            StmtKind::Spawn { template, args } => self.spawn(template, args),
        }
        Flow::ReachesEnd
    }

    fn loop_body(&mut self, block: &'a [Stmt]) -> bool {
        self.loops.push(Loop { has_break: false });
        self.block(block);
        self.loops.pop().expect("the loop was pushed above").has_break
    }

    fn label(&mut self, label: &'a Name) {
        self.label_count += 1;
        if label.as_str() == END_LABEL {
            let message = "the label `end` is reserved for the end of every body";
            let diagnostic = Diagnostic::error("reserved-label", message).at(label.span(), "");
            self.report.push(diagnostic.help("choose another name"));
        }
        if !self.labels.insert(label.as_str()) {
            let first = self.body.labels[label.as_str()].span;
            let message = format!("the label `{label}` is declared twice");
            let diagnostic =
                Diagnostic::error("duplicate-label", message).at(label.span(), "declared again here");
            self.report.push(diagnostic.at(first, "first declared here"));
        }
    }

    fn declare(&mut self, name: &'a Name, ty: Type) {
        check_type(ty, name.as_str(), name.span(), self.report);
        if let Some(param) = self.params.get(name.as_str()) {
            let message = format!("the register `{name}` has the same name as a parameter");
            let diagnostic = Diagnostic::error("duplicate-name", message).at(name.span(), "");
            self.report.push(diagnostic.at(param.name.span(), "the parameter is declared here"));
        } else if !self.declared.insert(name.as_str()) {
            let first = self.body.registers[name.as_str()];
            let help = "the scope of a register does not end with its block; assign it without `let`, or choose another name";
            self.report.push(declared_twice("register", name, first).help(help));
        }
        if let Some(&shared) = self.names.shared.get(name.as_str()) {
            self.report.push(hides_shared("register", name, shared));
        }
        if let Some(&private) = self.names.privates.get(name.as_str()) {
            self.report.push(hides_private("register", name, private));
        }
    }

    /// Whether a name is a register or parameter. Reports an error if its `let` comes later.
    pub(super) fn is_local(&mut self, name: &'a Name) -> bool {
        let text = name.as_str();
        let private = self.names.privates.contains_key(text);
        if private || self.params.contains_key(text) || self.declared.contains(text) {
            return true;
        }
        let Some(&declaration) = self.body.registers.get(name.as_str()) else { return false };
        // If it has the same name as a shared variable, that is reported at its declaration.
        if !self.names.shared.contains_key(name.as_str()) && self.reported.insert(name.as_str()) {
            let message = format!("the register `{name}` is used before it is declared");
            self.report.push(
                Diagnostic::error("used-before-declaration", message)
                    .at(name.span(), "used here")
                    .at(declaration, "declared here"),
            );
        }
        true
    }

    /// Reports an unknown name, once.
    pub(super) fn unknown(&mut self, name: &'a Name) {
        if !self.reported.insert(name.as_str()) {
            return;
        }
        let message = format!("there is no variable or register `{name}`");
        let diagnostic = Diagnostic::error("unknown-name", message).at(name.span(), "");
        let locals = self.declared.iter().copied().chain(self.params.keys().copied());
        let privates = self.names.privates.keys().copied();
        let candidates = locals.chain(privates).chain(self.names.shared.keys().copied());
        let mut diagnostic = self.report.suggest(diagnostic, name.as_str(), candidates);
        if diagnostic.help.is_none() {
            let help = format!("declare it: `shared {name};` or `let {name} = …;`");
            diagnostic = diagnostic.help(help);
        }
        self.report.push(diagnostic);
    }

    fn eval(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Call(name, args) => {
                self.size += 1;
                self.call(name, args);
            }
            ExprKind::Locked(..) => {
                self.expr(e);
            }
            _ => {
                self.expr(e);
                if !e.span().is_none() {
                    let message = "the value is not used";
                    self.report.push(Diagnostic::warning("unused-value", message).at(e.span(), ""));
                }
            }
        }
    }

    fn leave_loop(&mut self, kind: &StmtKind, span: Span) {
        let breaks = matches!(kind, StmtKind::Break);
        match self.loops.last_mut() {
            Some(around) => around.has_break |= breaks,
            None => {
                let word = if breaks { "break" } else { "continue" };
                let message = format!("`{word}` is not inside a loop");
                self.report.push(Diagnostic::error("outside-loop", message).at(span, ""));
            }
        }
    }

    fn goto(&mut self, label: &'a Name) {
        let Some(place) = self.body.labels.get(label.as_str()) else {
            let message = format!("there is no label `{label}` here");
            let mut diagnostic = Diagnostic::error("unknown-label", message).at(label.span(), "");
            if label.as_str() == END_LABEL {
                diagnostic = diagnostic.help("write `return;` to jump to the end");
            } else {
                let labels = self.body.labels.keys().copied();
                diagnostic = self.report.suggest(diagnostic, label.as_str(), labels);
            }
            self.report.push(diagnostic);
            return;
        };
        // The label's atomic blocks must also contain the `goto`. It is enough to compare the innermost one.
        let inside = match place.atomic_depth.checked_sub(1) {
            None => true,
            Some(innermost) => self.atomic.get(innermost) == Some(&place.atomic_block),
        };
        if !inside {
            let message = format!("`goto {label}` jumps into an atomic block");
            self.report.push(
                Diagnostic::error("goto-into-atomic", message)
                    .at(label.span(), "")
                    .at(place.span, "the label is inside an atomic block")
                    .help("an atomic block can be entered only at its start"),
            );
        }
    }

    fn return_(&mut self, value: Option<&'a Expr>, span: Span) {
        if let Some(value) = value {
            self.expr(value);
        }
        let diagnostic = match (self.kind, value) {
            (BodyKind::Process, Some(value)) => {
                Diagnostic::error("unexpected-result", "a process does not return a value")
                    .at(value.span(), "")
                    .help("`return;` ends the process")
            }
            (BodyKind::Procedure { result: None }, Some(value)) => {
                Diagnostic::error("unexpected-result", "this procedure does not return a value")
                    .at(value.span(), "")
                    .help("declare the type of its result, such as `proc f() -> int`")
            }
            (BodyKind::Procedure { result: Some(_) }, None) => {
                Diagnostic::error("missing-result", "this procedure must return a value")
                    .at(span, "")
                    .help("write `return e;`")
            }
            _ => return,
        };
        self.report.push(diagnostic);
    }

    fn spawn(&mut self, name: &'a Name, args: &'a [Expr]) {
        args.iter().for_each(|arg| {
            self.expr(arg);
        });
        let Some((template, _)) = self.names.templates.get(name.as_str()) else {
            let message = format!("there is no process `{name}`");
            let diagnostic = Diagnostic::error("unknown-process", message).at(name.span(), "");
            let candidates = self.names.templates.keys().copied();
            let diagnostic = self.report.suggest(diagnostic, name.as_str(), candidates);
            self.report.push(diagnostic);
            return;
        };
        if template.start != Start::OnSpawn {
            let message = format!("`{name}` starts automatically and cannot be spawned");
            self.report.push(
                Diagnostic::error("not-spawnable", message)
                    .at(name.span(), "")
                    .at(template.name.span(), "declared here")
                    .help(format!("declare it `process {name} on spawn`")),
            );
        }
        self.arity("process", name, args.len(), template.params.len(), template.name.span());
    }

    /// Checks the number of arguments.
    pub(super) fn arity(&mut self, what: &str, name: &Name, found: usize, wanted: usize, declared: Span) {
        if found != wanted {
            let arguments = if wanted == 1 { "argument" } else { "arguments" };
            let message = format!("the {what} `{name}` takes {wanted} {arguments}, not {found}");
            self.report.push(
                Diagnostic::error("wrong-arity", message).at(name.span(), "").at(declared, "declared here"),
            );
        }
    }

    /// Checks the left side of an assignment.
    fn assigned(&mut self, place: &'a crate::written::Place) {
        if let PlaceKind::Named(name) = &place.kind
            && self.kind == BodyKind::Process
            && let Some(param) = self.params.get(name.as_str())
        {
            let message = format!("`{name}` is a parameter of the process and cannot be assigned");
            self.report.push(
                Diagnostic::error("assigned-parameter", message)
                    .at(name.span(), "")
                    .at(param.name.span(), "declared here")
                    .help(format!("copy it to a register first: `let r = {name};`")),
            );
            return;
        }
        self.place(place);
    }
}

/// Control can reach the end of a choice if it can reach the end of one of the alternatives.
fn join(flows: impl IntoIterator<Item = Flow>) -> Flow {
    if flows.into_iter().any(|flow| flow == Flow::ReachesEnd) {
        Flow::ReachesEnd
    } else {
        Flow::NeverReachesEnd
    }
}
