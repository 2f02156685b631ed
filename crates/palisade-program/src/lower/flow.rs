//! Turns statements into control flow.
//!
//! Code is emitted at a cursor ([`Body::here`]), one edge after another. Joins, jumps and labels are
//! connected by empty steps (`Nop`), without trying to avoid them. [`super::simplify`] removes those that
//! cannot be observed.

use super::Waits;
use super::fold;
use super::globals::Globals;
use super::outline::{Outline, Point, PointKind};
use super::resolve::{Binding, Effect, Node, Scope, Target, Tree};
use super::simplify;
use crate::Value;
use crate::running::{Code, Edge, Expr, Instr, Location, RegId, Register};
use crate::written::{ExprKind, Name, Place, PlaceKind, Procedure, Stmt, StmtKind, Template, Type};
use palisade_base::{Id, IdVec, Span, limits};
use rustc_hash::{FxHashMap, FxHashSet};

/// The code of a template with values for its parameters, and its outline.
pub(super) fn process_code<'p>(
    globals: &'p Globals<'p>,
    waits: Waits,
    template: &'p Template,
    args: &[Value],
    left: &'p [&'p str],
) -> (Code, Outline) {
    let mut body = Body::new(globals, waits, BodyKind::Process);
    body.left = left;
    for (param, &value) in template.params.iter().zip(args) {
        body.scope.locals.insert(param.name.as_str(), Binding::Constant(value));
    }
    body.finish(&template.name, &template.body, 0, None)
}

/// The code of a procedure, and its outline.
pub(super) fn procedure_code<'p>(
    globals: &'p Globals<'p>,
    waits: Waits,
    procedure: &'p Procedure,
) -> (Code, Outline) {
    let mut body = Body::new(globals, waits, BodyKind::Procedure);
    for param in &procedure.params {
        body.declare(&param.name, param.ty);
    }
    body.finish(&procedure.name, &procedure.body, procedure.params.len(), procedure.result)
}

/// The kind of body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Process,
    Procedure,
}

/// A location that can be jumped to, and how many atomic blocks are open there.
#[derive(Clone, Copy)]
struct JumpTarget {
    location: Location,
    atomic_depth: usize,
}

/// A loop around the cursor.
struct Loop {
    head: JumpTarget,
    after: JumpTarget,
}

/// A body that is being lowered.
pub(super) struct Body<'p> {
    pub(super) scope: Scope<'p>,
    kind: BodyKind,
    waits: Waits,
    registers: IdVec<RegId, Register>,
    /// The temporaries. The first `temporaries_in_use` hold values that are still needed. No temporary is
    /// needed after its statement.
    temporaries: Vec<RegId>,
    temporaries_in_use: usize,
    edges: Vec<Edge>,
    /// The edges of waits that do not end the wait, by their index in `edges`.
    attempts: Vec<usize>,
    /// The edges of plain accesses, by their index in `edges`.
    plain: Vec<usize>,
    /// The choice that the statement at the cursor is the beginning of an alternative of.
    choice: Option<Location>,
    locations: usize,
    /// The cursor: where the next edge starts.
    here: Location,
    exit: Location,
    labels: Vec<(&'p str, JumpTarget)>,
    label_index: FxHashMap<&'p str, usize>,
    loops: Vec<Loop>,
    atomic_depth: usize,
    /// Whether the cursor has passed a label, so that control can come here more than once.
    label_passed: bool,
    /// The statements and labels so far.
    points: Vec<Point>,
    /// The statement being lowered.
    span: Span,
    /// The innermost block around it that is in the text. Statements that are not get its place.
    around: Span,
    /// The labels whose statements a `leaves` mentions.
    left: &'p [&'p str],
    /// These statements, as far as they have been lowered.
    stays: Vec<simplify::Inside>,
}

impl<'p> Body<'p> {
    fn new(globals: &'p Globals<'p>, waits: Waits, kind: BodyKind) -> Body<'p> {
        let mut body = Body {
            scope: Scope { globals, locals: FxHashMap::default() },
            kind,
            waits,
            registers: IdVec::new(),
            temporaries: Vec::new(),
            temporaries_in_use: 0,
            edges: Vec::new(),
            attempts: Vec::new(),
            plain: Vec::new(),
            choice: None,
            locations: 2,
            here: Location(0),
            exit: Location(1),
            labels: Vec::new(),
            label_index: FxHashMap::default(),
            loops: Vec::new(),
            atomic_depth: 0,
            label_passed: false,
            points: Vec::new(),
            span: Span::NONE,
            around: Span::NONE,
            left: &[],
            stays: Vec::new(),
        };
        globals.privates.iter().for_each(|private| body.declare(&private.name, private.ty));
        body
    }

    /// Whether an expression reads a private variable.
    pub(super) fn reads_private(&self, value: &Expr) -> bool {
        let mut found = false;
        value.registers(&mut |register| found |= register.index() < self.scope.globals.privates.len());
        found
    }

    fn finish(
        mut self,
        name: &Name,
        block: &'p [Stmt],
        params: usize,
        result: Option<Type>,
    ) -> (Code, Outline) {
        let entry = self.here;
        self.collect(block, 0);
        self.block(block);
        self.span = Span::NONE;
        match self.kind {
            BodyKind::Process => self.edge(Instr::Nop, self.exit, Span::NONE),
            BodyKind::Procedure => self.edge(Instr::Return(None), self.exit, Span::NONE),
        }
        let labels = self.labels.iter().map(|(name, target)| (name.to_string(), target.location)).collect();
        let flow = self.edges.iter().map(|edge| (edge.source, edge.target)).collect();
        let mut outline = Outline::new(self.points, entry, self.locations, flow);
        let graph = simplify::Graph {
            locations: self.locations,
            entry,
            exit: self.exit,
            edges: simplify::marked(self.edges, &self.attempts, &self.plain, &self.stays),
            labels,
            stays: self.stays,
            waits: self.waits,
        };
        let mut code = graph.into_code(name.to_string(), &mut outline);
        code.registers = self.registers;
        code.params = params;
        code.result = result;
        (code, outline)
    }

    /// Declares the registers and labels of a block before lowering it, because a `goto` can jump forward.
    fn collect(&mut self, block: &'p [Stmt], atomic_depth: usize) {
        limits::checkpoint();
        for stmt in block {
            if !stmt.labels.is_empty() {
                let target = JumpTarget { location: self.fresh(), atomic_depth };
                for label in &stmt.labels {
                    self.label_index.insert(label.as_str(), self.labels.len());
                    self.labels.push((label.as_str(), target));
                }
            }
            match &stmt.kind {
                StmtKind::Let { name, ty, .. } => {
                    self.declare(name, *ty);
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.collect(then, atomic_depth);
                    self.collect(otherwise, atomic_depth);
                }
                StmtKind::While { body, .. } | StmtKind::Loop(body) | StmtKind::Block(body) => {
                    self.collect(body, atomic_depth);
                }
                StmtKind::Choose(blocks) => blocks.iter().for_each(|block| self.collect(block, atomic_depth)),
                StmtKind::Atomic(body) => self.collect(body, atomic_depth + 1),
                _ => {}
            }
        }
    }

    fn declare(&mut self, name: &'p Name, ty: Type) {
        let register = self.registers.push(Register::declared(name.to_string(), ty));
        let previous = self.scope.locals.insert(name.as_str(), Binding::Register(register));
        assert!(previous.is_none(), "validation: the register `{name}` is declared once");
    }

    fn block(&mut self, block: &'p [Stmt]) {
        block.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &'p Stmt) {
        limits::checkpoint();
        self.begin(stmt);
        let (start, first) = (self.here, self.edges.len());
        let kind = PointKind::of(&stmt.kind);
        let point = kind.map(|kind| Point { kind, span: stmt.span(), start, after: start });
        let index = self.points.len();
        self.points.extend(point);
        self.stmt_at(stmt);
        if PointKind::of(&stmt.kind).is_some() {
            self.points[index].after = self.here;
        }
        if stmt.labels.iter().any(|label| self.left.contains(&label.as_str())) {
            self.inside(stmt, first);
        }
    }

    /// Notes what is inside a statement, whose edges begin with the given one.
    ///
    /// While a procedure runs, its caller is where the call leads to. That place has to be inside too.
    fn inside(&mut self, stmt: &'p Stmt, first: usize) {
        let calls = self.edges[first..].iter().filter(|edge| matches!(edge.instr, Instr::Call { .. }));
        let pinned: Vec<Location> = calls.map(|edge| edge.target).collect();
        if pinned.contains(&self.here) {
            self.emit(Instr::Nop, stmt.span());
        }
        let start = self.label(&stmt.labels[0]).location;
        let sources = self.edges[first..].iter().map(|edge| edge.source);
        let locations: FxHashSet<Location> = std::iter::once(start).chain(sources).collect();
        for label in stmt.labels.iter().filter(|label| self.left.contains(&label.as_str())) {
            self.stays.push(simplify::Inside {
                label: label.to_string(),
                locations: locations.clone(),
                edges: first..self.edges.len(),
                pinned: pinned.clone(),
            });
        }
    }

    /// Lowers a statement at the cursor.
    fn stmt_at(&mut self, stmt: &'p Stmt) {
        let choice = self.choice.take().filter(|_| stmt.labels.is_empty());
        match &stmt.kind {
            StmtKind::If { condition, then, otherwise } => {
                let (yes, no, after) = (self.fresh(), self.fresh(), self.fresh());
                let condition = self.scope.expr(condition);
                self.branch(condition, Some(yes), Some(no));
                self.branch_body(yes, then, after);
                self.branch_body(no, otherwise, after);
                self.here = after;
            }
            StmtKind::While { condition, body } if self.is_wait(condition, body) => {
                let (head, after) = (self.here, self.fresh());
                let condition = self.scope.expr(condition);
                self.attempt(condition, head, after, after);
                self.here = after;
            }
            StmtKind::Await(condition) if self.waits == Waits::Retry && !calls(condition) => {
                let (head, after) = (self.here, self.fresh());
                let (condition, again) = (self.scope.expr(condition), choice.unwrap_or(head));
                self.attempt(condition, after, again, after);
                self.here = after;
            }
            StmtKind::While { condition, body } => {
                let (head, inside, after) = (self.here, self.fresh(), self.fresh());
                let condition = self.scope.expr(condition);
                self.branch(condition, Some(inside), Some(after));
                self.loop_body(head, inside, body, after);
            }
            StmtKind::Loop(body) => {
                let (head, after) = (self.here, self.fresh());
                self.loop_body(head, head, body, after);
            }
            StmtKind::Choose(blocks) => {
                let (fork, after) = (self.here, self.fresh());
                for block in blocks {
                    // Each alternative gets its own start. Otherwise a loop in it would lead back to the
                    // choice.
                    let start = self.fresh();
                    self.here = fork;
                    self.edge(Instr::Nop, start, stmt.span());
                    self.choice = Some(choice.unwrap_or(fork));
                    self.branch_body(start, block, after);
                    self.choice = None;
                }
                self.here = after;
            }
            StmtKind::Block(block) => {
                let around = self.around;
                self.around = if stmt.span().is_none() { around } else { stmt.span() };
                self.choice = choice;
                self.block(block);
                self.choice = None;
                self.around = around;
            }
            StmtKind::Atomic(block) => {
                self.emit(Instr::AtomicBegin, stmt.span());
                self.atomic_depth += 1;
                self.block(block);
                self.atomic_depth -= 1;
                self.emit(Instr::AtomicEnd, stmt.span());
            }
            _ => self.simple(stmt),
        }
    }

    /// Whether a loop waits for something: see [`Waits::Retry`].
    fn is_wait(&self, condition: &crate::written::Expr, body: &[Stmt]) -> bool {
        let does_nothing = |stmt: &Stmt| stmt.kind == StmtKind::Skip && stmt.labels.is_empty();
        self.waits == Waits::Retry
            && body.iter().all(does_nothing)
            && !calls(condition)
            && self.scope.expr(condition).effect > Effect::Pure
    }

    /// An attempt of a wait. It goes to the first location if the condition is true, to the second if it is
    /// false. One of them is `after`, where the wait is over. At the other one the next attempt starts.
    fn attempt(&mut self, condition: Node, yes: Location, no: Location, after: Location) {
        let first = self.edges.len();
        self.branch(condition, Some(yes), Some(no));
        let attempt = self.edges[first..].iter().zip(first..);
        self.attempts.extend(attempt.filter(|(edge, _)| edge.target != after).map(|(_, index)| index));
    }

    /// Moves the cursor to the statement's labels and frees the temporaries of the previous statement.
    fn begin(&mut self, stmt: &'p Stmt) {
        self.span = if stmt.span().is_none() { self.around } else { stmt.span() };
        self.temporaries_in_use = 0;
        if let Some(label) = stmt.labels.first() {
            let target = self.label(label).location;
            self.edge(Instr::Nop, target, stmt.span());
            self.here = target;
            self.label_passed = true;
            for label in &stmt.labels {
                let (kind, span) = (PointKind::Label(label.clone()), label.span());
                self.points.push(Point { kind, span, start: target, after: target });
            }
        }
    }

    /// Lowers an alternative that starts and ends at the given locations.
    fn branch_body(&mut self, start: Location, block: &'p [Stmt], after: Location) {
        self.here = start;
        self.block(block);
        self.edge(Instr::Nop, after, self.span);
    }

    fn loop_body(&mut self, head: Location, start: Location, block: &'p [Stmt], after: Location) {
        let target = |location| JumpTarget { location, atomic_depth: self.atomic_depth };
        let (head, after) = (target(head), target(after));
        self.loops.push(Loop { head, after });
        self.branch_body(start, block, head.location);
        self.loops.pop();
        self.here = after.location;
    }

    /// Lowers a statement that contains no other statements.
    fn simple(&mut self, stmt: &'p Stmt) {
        let span = stmt.span();
        match &stmt.kind {
            StmtKind::Skip => {
                if !stmt.labels.is_empty() {
                    self.emit(Instr::Nop, span);
                }
            }
            StmtKind::Let { name, ty, init } => {
                let value = init.as_ref().map(|init| self.scope.expr(init));
                let zero = matches!(
                    value.as_ref().map(|value| &value.tree),
                    None | Some(Tree::Pure(Expr::Const(0)))
                );
                let first_time = self.loops.is_empty() && !self.label_passed;
                // Registers start at 0. If control comes here only once, nothing has changed this one.
                if zero && first_time && ty.domain.contains(0) {
                    return;
                }
                let Some(&Binding::Register(register)) = self.scope.locals.get(name.as_str()) else {
                    panic!("validation: no register has the name of the parameter `{name}`")
                };
                match value {
                    Some(value) => {
                        self.evaluate_to(value, Some(register), span);
                    }
                    None => self.emit(Instr::Assign(register, Expr::Const(0)), span),
                }
            }
            StmtKind::Assign { place, value } => self.assign(place, value, span),
            StmtKind::Eval(e) => self.eval(e, span),
            StmtKind::Fence => self.emit(Instr::Fence, span),
            StmtKind::StoreFence => self.emit(Instr::StoreFence, span),
            StmtKind::Assume(e) => {
                let (condition, after) = (self.scope.expr(e), self.fresh());
                self.branch(condition, Some(after), None);
                self.here = after;
            }
            StmtKind::Await(e) => {
                let (condition, head, after) = (self.scope.expr(e), self.here, self.fresh());
                // An attempt that only loads changes nothing when it fails. A run that fails several times
                // before it succeeds reaches nothing more than a run that delays its only attempt. So no loop
                // is needed.
                let again = (self.waits == Waits::Retry || condition.effect == Effect::Acts).then_some(head);
                self.branch(condition, Some(after), again);
                self.here = after;
            }
            StmtKind::Assert(e, check) => {
                let condition = self.scope.expr(e);
                if condition.branches() {
                    let (failed, after) = (self.fresh(), self.fresh());
                    self.branch(condition, Some(after), Some(failed));
                    self.here = failed;
                    self.edge(Instr::Assert(Expr::Const(0), *check), after, span);
                    self.here = after;
                } else {
                    match self.value(condition) {
                        Expr::Const(value) if value != 0 => {}
                        condition => self.emit(Instr::Assert(condition, *check), span),
                    }
                }
            }
            StmtKind::Break => {
                let target = self.loops.last().expect("validation: `break` is inside a loop").after;
                self.jump(target, span);
            }
            StmtKind::Continue => {
                let target = self.loops.last().expect("validation: `continue` is inside a loop").head;
                self.jump(target, span);
            }
            StmtKind::Goto(label) => {
                let target = self.label(label);
                self.jump(target, span);
            }
            StmtKind::Return(value) => self.return_(value.as_ref(), span),
            StmtKind::Spawn { template, args } => {
                let id = *self
                    .scope
                    .globals
                    .templates
                    .get(template.as_str())
                    .unwrap_or_else(|| panic!("validation: the spawned process `{template}` exists"));
                let args = self.scope.exprs(args);
                let args = self.operands(args, Effect::Pure);
                self.emit(Instr::Spawn(id, args), span);
            }
            StmtKind::If { .. }
            | StmtKind::While { .. }
            | StmtKind::Loop(_)
            | StmtKind::Choose(_)
            | StmtKind::Block(_)
            | StmtKind::Atomic(_) => unreachable!("compound statements are lowered by `stmt`"),
        }
    }

    fn assign(&mut self, place: &Place, value: &crate::written::Expr, span: Span) {
        let value = self.scope.expr(value);
        match self.scope.place(place) {
            Target::Local(Binding::Register(register)) => {
                self.evaluate_to(value, Some(register), span);
            }
            Target::Local(Binding::Constant(_)) => {
                panic!("validation: the parameters of a process are not assigned")
            }
            Target::Shared(address) => {
                let value = self.value(value);
                let value = self.settle(value, address.effect());
                let plain = address.plain;
                let address = self.address(address);
                self.emit_access(Instr::Store(address, value), plain, span);
            }
        }
    }

    /// Evaluates an expression for its effects only.
    fn eval(&mut self, e: &crate::written::Expr, span: Span) {
        let node = self.scope.expr(e);
        match node.tree {
            Tree::Call { code, args, .. } => {
                let args = self.operands(args, Effect::Pure);
                self.emit(Instr::Call { code, args, result: None }, span);
            }
            Tree::Locked(..) => {
                self.evaluate_to(node, None, span);
            }
            _ => {
                // The value is unused, but computing it may fault.
                let value = self.value(node);
                self.settle_faults(value, span);
            }
        }
    }

    fn return_(&mut self, value: Option<&crate::written::Expr>, span: Span) {
        match self.kind {
            BodyKind::Process => self.jump(JumpTarget { location: self.exit, atomic_depth: 0 }, span),
            BodyKind::Procedure => {
                let value = value.map(|value| {
                    let value = self.scope.expr(value);
                    self.value(value)
                });
                self.close_sections(0, span);
                self.edge(Instr::Return(value), self.exit, span);
                self.here = self.fresh();
            }
        }
    }

    /// Jumps to another location. Code after the jump is reachable only through its labels.
    fn jump(&mut self, target: JumpTarget, span: Span) {
        self.close_sections(target.atomic_depth, span);
        self.edge(Instr::Nop, target.location, span);
        self.here = self.fresh();
    }

    /// Closes the atomic blocks that are nested deeper than the given depth.
    fn close_sections(&mut self, depth: usize, span: Span) {
        assert!(depth <= self.atomic_depth, "validation: no `goto` jumps into an atomic block");
        for _ in depth..self.atomic_depth {
            self.emit(Instr::AtomicEnd, span);
        }
    }

    fn label(&self, name: &Name) -> JumpTarget {
        match self.label_index.get(name.as_str()) {
            Some(&index) => self.labels[index].1,
            None => panic!("validation: the label `{name}` exists"),
        }
    }

    /// Returns a new location.
    pub(super) fn fresh(&mut self) -> Location {
        self.locations += 1;
        Location::from_index(self.locations - 1)
    }

    /// Moves the cursor.
    pub(super) fn continue_at(&mut self, location: Location) {
        self.here = location;
    }

    /// Adds an edge from the cursor to a location. A step without its own place in the text gets the place of
    /// its statement.
    pub(super) fn edge(&mut self, instr: Instr, target: Location, span: Span) {
        let span = if span.is_none() { self.span } else { span };
        self.edges.push(Edge { source: self.here, target, instr, span });
    }

    /// Adds an edge from the cursor to a new location, and moves the cursor there.
    pub(super) fn emit(&mut self, instr: Instr, span: Span) {
        let target = self.fresh();
        self.edge(instr, target, span);
        self.here = target;
    }

    /// The same for a load or store.
    pub(super) fn emit_access(&mut self, instr: Instr, plain: bool, span: Span) {
        if plain {
            self.plain.push(self.edges.len());
        }
        self.emit(instr, span);
    }

    /// The span of the statement being lowered.
    pub(super) fn statement_span(&self) -> Span {
        self.span
    }

    /// The type of a register.
    pub(super) fn register_type(&self, register: RegId) -> Type {
        self.registers[register].ty
    }

    /// How many temporaries are in use. [`Body::release`] restores this number.
    pub(super) fn mark(&self) -> usize {
        self.temporaries_in_use
    }

    /// Frees the temporaries taken since the mark.
    pub(super) fn release(&mut self, mark: usize) {
        self.temporaries_in_use = mark;
    }

    /// Takes a temporary for values of a domain. A temporary that is used several times gets a domain that
    /// covers all its uses, so that it never faults.
    pub(super) fn temporary(&mut self, domain: crate::written::Domain) -> RegId {
        let index = self.temporaries_in_use;
        self.temporaries_in_use += 1;
        match self.temporaries.get(index) {
            Some(&register) => {
                let ty = &mut self.registers[register].ty;
                ty.domain = fold::hull(ty.domain, domain);
                register
            }
            None => {
                let ty = Type { domain, ..Type::INT };
                let register = self.registers.push(Register::temporary(index, ty));
                self.temporaries.push(register);
                register
            }
        }
    }
}

/// Whether an expression calls a procedure.
fn calls(e: &crate::written::Expr) -> bool {
    let place = |place: &Place| match &place.kind {
        PlaceKind::Named(_) => false,
        PlaceKind::Element(_, e) | PlaceKind::Deref(e) => calls(e),
    };
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } | ExprKind::Observe(_) => false,
        ExprKind::Read(from) | ExprKind::AddressOf(from) => place(from),
        ExprKind::Unary(_, a) => calls(a),
        ExprKind::Binary(_, a, b) => calls(a) || calls(b),
        ExprKind::Locked(_, at, operands) => place(at) || operands.iter().any(calls),
        ExprKind::Call(..) => true,
    }
}
