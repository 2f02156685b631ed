//! Statements and expressions.
//!
//! *Where a round may end.*
//! - before loads, stores, locked instructions, fences, atomic blocks and `spawn`;
//! - before the change of a register that a property sees;
//! - at labels that properties see;
//! - at the end.
//!
//! Steps between two such places are local to the process, so they can be taken right before the next such
//! place.
//!
//! A process may also be stuck, or run forever, without any access. So a round may also end before statements
//! that can block, in loops, and in procedures that call others. If a property asks whether processes are
//! *not* at labels, a round may end before every statement.
//!
//! *When it may end.* A round may end if `may_end` is true. It is set by everything that others can observe:
//! loads from memory, stores that reach memory (now or when a round begins), locked instructions, atomic
//! blocks, `spawn`, and changes of registers that properties see. It is cleared by every place where the
//! round may end, and by stores that stay pending. Nothing is lost:
//! - If nothing observable happens between two places, ending the round at the second is like ending it at
//!   the first.
//! - A round that ends after a store that stays pending can also end before it. The store then belongs to the
//!   next round, which makes it one round younger, and it reaches memory when it did before. Loads of the
//!   process's own pending stores, which `may_end` does not notice, move with it: they read the same value
//!   from memory if the store has reached memory by then.
//! - A round in which nothing happens can be left out. The stores that are pending across it get one round
//!   younger.
//!
//! At labels that properties see, the round may end in any case, because places differ by what is seen there.
//! The same holds everywhere if a property asks whether processes are not at labels.
//!
//! *Labels.* A process that is at a label a property sees rests exactly there, at `at_l`, and nowhere else
//! before the first step of the statement. Otherwise it would seem to be at no label.

mod places;
mod raw;

pub(super) use places::stored;

use super::build::{self, call, name, run, stmt};
use super::helpers::{Helper, Rests, Target};
use super::{Set, Translator};
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Name, Outside, Place, PlaceKind, Procedure, Rmw, Stmt, StmtKind,
    Template, Type, UnaryOp,
};
use places::{
    Effects, begins_with_a_step, calls, collect_targets, declares_blocking, effects, first_label,
    is_declaration,
};
use rustc_hash::FxHashSet;

/// `*&p` is `p`.
fn plain(place: &Place) -> &Place {
    match &place.kind {
        PlaceKind::Deref(pointer) => match &pointer.kind {
            ExprKind::AddressOf(inner) => plain(inner),
            _ => place,
        },
        _ => place,
    }
}

/// The owner of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Process,
    Procedure,
}

/// A body under construction.
struct Body<'t, 'p> {
    translator: &'t mut Translator<'p>,
    kind: BodyKind,
    /// Labels and registers that properties see.
    labels: FxHashSet<String>,
    registers: FxHashSet<String>,
    /// Labels that some `goto` leads to.
    targets: FxHashSet<String>,
    /// The label of the end of a process, and whether a statement leads there.
    done: String,
    returns: bool,
    /// Whether a register or private variable blocks values outside its domain.
    blocking_registers: bool,
    /// Whether a new round could have begun right here. Then the next access need not offer it.
    rested: bool,
}

impl<'p> Translator<'p> {
    /// Whether the processes of a template take steps at all. If not, they are at their end from the start.
    pub(super) fn has_rounds(&self, template: &str) -> bool {
        let declared = self.program.templates.iter().find(|declared| declared.name.as_str() == template);
        declared.is_some_and(|template| !template.body.iter().all(is_declaration))
    }

    pub(super) fn template(&mut self, template: &'p Template) -> Template {
        if !self.has_rounds(template.name.as_str()) {
            return template.clone();
        }
        let text = template.name.as_str();
        let own = |set: &Set<'_>| set.iter().map(|label| (*label).to_owned()).collect();
        let (labels, registers) = (own(self.observed.labels(text)), own(self.observed.registers(text)));
        let mut body = Body::new(self, BodyKind::Process, labels, registers, &template.body);
        let mut block = Block::new();
        match first_label(&template.body, &body.labels) {
            // The process starts at this label.
            Some(label) => {
                let at = body.translator.at_label(&label);
                block.push(stmt(StmtKind::Goto(name(&at))));
            }
            None => {
                block.push(body.translator.take_token());
                block.push(body.translator.init_round());
                body.rested = true;
            }
        }
        body.block(&template.body, &mut block);
        let (returns, done) = (body.returns, body.done);
        let mut end = self.finish();
        if returns {
            end[0].labels.push(name(&done));
        }
        block.extend(end);
        Template { body: block, ..template.clone() }
    }

    pub(super) fn procedure(&mut self, procedure: &'p Procedure) -> Procedure {
        let nothing = FxHashSet::default;
        let takes_part = |ty: &Type| ty.outside == Outside::Block;
        let mut body = Body::new(self, BodyKind::Procedure, nothing(), nothing(), &procedure.body);
        body.blocking_registers |= procedure.params.iter().any(|param| takes_part(&param.ty));
        let mut block = Block::new();
        // Calls may nest without bound.
        if !body.rests_soon(&procedure.body) && calls(&procedure.body) {
            body.rest(&mut block);
            body.rested = true;
        }
        body.block(&procedure.body, &mut block);
        if body.translator.observed.absence {
            body.rest(&mut block);
        }
        Procedure { body: block, ..procedure.clone() }
    }

    /// The version of a procedure that is called in atomic blocks, where nothing is pending.
    pub(super) fn atomic_procedure(&mut self, procedure: &'p Procedure) -> Procedure {
        let nothing = FxHashSet::default;
        let text = self.atomic[procedure.name.as_str()].clone();
        let mut body = Body::new(self, BodyKind::Procedure, nothing(), nothing(), &procedure.body);
        let block = body.raw_block(&procedure.body);
        Procedure { name: Name::new(text, procedure.name.span()), body: block, ..procedure.clone() }
    }
}

impl<'t, 'p> Body<'t, 'p> {
    fn new(
        translator: &'t mut Translator<'p>,
        kind: BodyKind,
        labels: FxHashSet<String>,
        registers: FxHashSet<String>,
        block: &Block,
    ) -> Body<'t, 'p> {
        let mut targets = FxHashSet::default();
        collect_targets(block, &mut targets);
        let done = match kind {
            BodyKind::Process => translator.names.fresh("done"),
            BodyKind::Procedure => String::new(),
        };
        let privates = translator.program.privates.iter();
        let blocking_registers =
            privates.into_iter().any(|p| p.ty.outside == Outside::Block) || declares_blocking(block);
        Body {
            translator,
            kind,
            labels,
            registers,
            targets,
            done,
            returns: false,
            blocking_registers,
            rested: false,
        }
    }

    fn block(&mut self, block: &'p Block, out: &mut Block) {
        block.iter().for_each(|stmt| self.stmt(stmt, out));
    }

    fn inner(&mut self, block: &'p Block) -> Block {
        let mut out = Block::new();
        self.rested = false;
        self.block(block, &mut out);
        out
    }

    fn stmt(&mut self, stmt: &'p Stmt, out: &mut Block) {
        let start = out.len();
        let kept: Vec<Name> =
            stmt.labels.iter().filter(|label| self.targets.contains(label.as_str())).cloned().collect();
        let seen: Vec<&Name> =
            stmt.labels.iter().filter(|label| self.labels.contains(label.as_str())).collect();
        if !kept.is_empty() {
            self.rested = false;
        }
        // Control may return here forever.
        let comes_back = !kept.is_empty() && !self.rests_soon(std::slice::from_ref(stmt));
        let rest = (!seen.is_empty()).then(|| self.rest_at(&seen));
        let with_origin = |kind| Stmt { labels: Vec::new(), kind, origin: stmt.origin };
        match (&stmt.kind, rest) {
            // Control returns to the label of a loop.
            (StmtKind::Loop(body), Some(rest)) => {
                let mut inner = rest;
                self.rested = true;
                self.block(body, &mut inner);
                out.push(with_origin(StmtKind::Loop(inner)));
            }
            (StmtKind::While { condition, body }, Some(rest)) => {
                let mut inner = rest;
                self.rested = true;
                let condition = not(self.settled(condition, &mut inner));
                inner.push(with_origin(leave_if(condition)));
                self.rested = false;
                self.loop_body(body, &mut inner);
                out.push(with_origin(StmtKind::Loop(inner)));
            }
            (StmtKind::Await(condition), Some(rest)) => {
                let mut inner = rest;
                self.rested = true;
                let condition = self.settled(condition, &mut inner);
                inner.push(with_origin(leave_if(condition)));
                out.push(with_origin(StmtKind::Loop(inner)));
            }
            // The value of the condition is visible before the process acts on it.
            (StmtKind::While { condition, body }, None) if self.settles(condition) => {
                let mut inner = Block::new();
                self.rested = false;
                let condition = not(self.settled(condition, &mut inner));
                inner.push(with_origin(leave_if(condition)));
                self.loop_body(body, &mut inner);
                out.push(with_origin(StmtKind::Loop(inner)));
            }
            (StmtKind::Await(condition), None) if self.settles(condition) => {
                let mut inner = Block::new();
                self.rested = false;
                let condition = self.settled(condition, &mut inner);
                inner.push(with_origin(leave_if(condition)));
                out.push(with_origin(StmtKind::Loop(inner)));
            }
            (_, rest) => {
                if let Some(rest) = rest {
                    out.extend(rest);
                    self.rested = true;
                } else if comes_back
                    || self.may_stay_forever(stmt)
                    || self.translator.observed.absence && !is_declaration(stmt)
                {
                    self.rest(out);
                    self.rested = true;
                }
                self.unlabelled(stmt, out);
            }
        }
        self.rested &= is_declaration(stmt);
        if !kept.is_empty() {
            if out.len() == start {
                out.push(with_origin(StmtKind::Skip));
            }
            out[start].labels.splice(0..0, kept);
        }
    }

    /// The body of a loop. A process that stays in it forever must be able to let others continue.
    fn loop_body(&mut self, body: &'p Block, out: &mut Block) {
        if !self.rests_soon(body) {
            self.rest(out);
            self.rested = true;
        }
        self.block(body, out);
        self.rested = false;
    }

    /// A place where the round may end, with the process at these labels until its next round.
    fn rest_at(&mut self, labels: &[&Name]) -> Block {
        let at: Vec<Name> = labels
            .iter()
            .map(|label| Name::new(self.translator.at_label(label.as_str()), label.span()))
            .collect();
        self.translator.may_switch(at)
    }

    /// Lets a new round begin, unless one could have begun just now.
    fn rest(&mut self, out: &mut Block) {
        if !std::mem::take(&mut self.rested) {
            out.push(run(&self.translator.new_round));
        }
    }

    /// The same, but then continues only if nothing is pending.
    fn drain(&mut self, out: &mut Block) {
        self.rest(out);
        out.extend(self.translator.drained());
    }

    fn unlabelled(&mut self, stmt: &'p Stmt, out: &mut Block) {
        let with_origin = |kind| Stmt { labels: Vec::new(), kind, origin: stmt.origin };
        let kind = match &stmt.kind {
            // A store-store fence has no effect under TSO.
            StmtKind::Skip | StmtKind::StoreFence => return,
            StmtKind::Fence => return self.drain(out),
            StmtKind::Let { name, ty, init: Some(init) } => {
                let init = self.assigned(name, init, out);
                StmtKind::Let { name: name.clone(), ty: *ty, init: Some(init) }
            }
            StmtKind::Let { name, .. } => {
                if self.registers.contains(name.as_str()) && !self.rested {
                    self.rest(out);
                }
                stmt.kind.clone()
            }
            StmtKind::Assign { place, value } => match self.target(place) {
                Some(_) => return self.store(place, value, stmt, out),
                None => {
                    let PlaceKind::Named(name) = &place.kind else {
                        unreachable!("only names are registers")
                    };
                    let value = self.assigned(name, value, out);
                    StmtKind::Assign { place: place.clone(), value }
                }
            },
            StmtKind::Eval(e) => StmtKind::Eval(self.expr(e)),
            StmtKind::Assume(e) => StmtKind::Assume(self.settled(e, out)),
            StmtKind::Await(e) => {
                self.rested = false;
                StmtKind::Await(self.expr(e))
            }
            StmtKind::Assert(e, check) => StmtKind::Assert(self.settled(e, out), *check),
            StmtKind::If { condition, then, otherwise } => {
                let condition = self.settled(condition, out);
                StmtKind::If { condition, then: self.inner(then), otherwise: self.inner(otherwise) }
            }
            StmtKind::While { condition, body } => {
                self.rested = false;
                let condition = self.expr(condition);
                let mut inner = Block::new();
                self.rested = false;
                self.loop_body(body, &mut inner);
                StmtKind::While { condition, body: inner }
            }
            StmtKind::Loop(body) => {
                let mut inner = Block::new();
                self.rested = false;
                self.loop_body(body, &mut inner);
                StmtKind::Loop(inner)
            }
            StmtKind::Choose(blocks) => {
                // The choice is made together with the first step after it. Until then the process is at the
                // place of the choice.
                let rested = self.rested && blocks.len() > 1;
                let alternative = |block: &'p Block| {
                    let mut out = Block::new();
                    self.rested = rested && begins_with_a_step(block);
                    self.block(block, &mut out);
                    out
                };
                StmtKind::Choose(blocks.iter().map(alternative).collect())
            }
            StmtKind::Block(body) => {
                let mut inner = Block::new();
                self.block(body, &mut inner);
                StmtKind::Block(inner)
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Goto(_) => stmt.kind.clone(),
            StmtKind::Return(value) => {
                let value = value.as_ref().map(|value| self.expr(value));
                if self.kind == BodyKind::Process {
                    self.returns = true;
                    StmtKind::Goto(name(&self.done))
                } else {
                    StmtKind::Return(value)
                }
            }
            StmtKind::Atomic(body) => {
                self.drain(out);
                out.push(self.translator.set_may_end(build::truth(true)));
                StmtKind::Atomic(self.raw_block(body))
            }
            StmtKind::Spawn { template, args } => {
                self.rest(out);
                let args = args.iter().map(|arg| self.settled(arg, out)).collect();
                StmtKind::Spawn { template: template.clone(), args }
            }
        };
        out.push(with_origin(kind));
        if self.is_seen(stmt) {
            out.push(self.translator.set_may_end(build::truth(true)));
        }
    }

    /// Whether others can see the effect of a statement that accesses no memory: it starts a process, or
    /// changes a register that a property sees.
    fn is_seen(&self, stmt: &Stmt) -> bool {
        let register = |name: &Name| self.registers.contains(name.as_str());
        match &stmt.kind {
            StmtKind::Spawn { .. } => true,
            StmtKind::Let { name, .. } => register(name),
            StmtKind::Assign { place, .. } => matches!(&place.kind, PlaceKind::Named(name) if register(name)),
            _ => false,
        }
    }

    /// The value for a register. If a property sees the register, others may see the old value until right
    /// before the change.
    fn assigned(&mut self, register: &Name, value: &'p Expr, out: &mut Block) -> Expr {
        if self.settles(value)
            && !matches!(value.kind, ExprKind::Read(_) | ExprKind::Locked(..) | ExprKind::Call(..))
        {
            return self.settled(value, out);
        }
        if !self.registers.contains(register.as_str()) {
            return self.expr(value);
        }
        match effects(value, &|place| self.target(place).is_some()) {
            Effects::None => {
                self.rest(out);
                self.expr(value)
            }
            Effects::Loads => self.expr(value),
            Effects::Acts if matches!(value.kind, ExprKind::Locked(..)) => self.expr(value),
            Effects::Acts => {
                let held = self.translator.names.fresh(format!("new_{register}"));
                let init = Some(self.expr(value));
                out.push(stmt(StmtKind::Let { name: name(&held), ty: Type::INT, init }));
                self.rested = false;
                self.rest(out);
                build::var(&held)
            }
        }
    }

    /// Whether it matters that the process is at no label between the evaluation of an expression and its
    /// use.
    fn settles(&self, e: &Expr) -> bool {
        let absence = self.translator.observed.absence && self.kind == BodyKind::Process;
        absence && effects(e, &|place| self.target(place).is_some()) != Effects::None
    }

    /// The value of an expression, with a place to rest after its evaluation if that matters.
    fn settled(&mut self, e: &'p Expr, out: &mut Block) -> Expr {
        if !self.settles(e) {
            return self.expr(e);
        }
        let held = self.translator.names.fresh("held");
        let init = Some(self.expr(e));
        out.push(stmt(StmtKind::Let { name: name(&held), ty: Type::INT, init }));
        self.rested = false;
        self.rest(out);
        build::var(&held)
    }

    fn store(&mut self, place: &'p Place, value: &'p Expr, stmt: &'p Stmt, out: &mut Block) {
        let place = plain(place);
        let target = self.target(place).expect("the place is shared");
        let address = match &place.kind {
            PlaceKind::Named(_) => None,
            PlaceKind::Element(_, index) => Some(&**index),
            PlaceKind::Deref(pointer) => Some(&**pointer),
        };
        let is_shared = |place: &Place| self.target(place).is_some();
        let pure = effects(value, &is_shared) == Effects::None
            && address.is_none_or(|address| effects(address, &is_shared) == Effects::None);
        let rests = if pure {
            self.rest(out);
            Rests::No
        } else {
            Rests::Before
        };
        let mut args = vec![self.expr(value)];
        args.extend(address.map(|address| self.expr(address)));
        let store = self.translator.helper_name(Helper::Store(target, rests));
        let kind = StmtKind::Eval(call(&store, args, stmt.span()));
        out.push(Stmt { labels: Vec::new(), kind, origin: stmt.origin });
    }

    /// The target of a place, if it is shared.
    fn target(&self, place: &Place) -> Option<Target> {
        match &plain(place).kind {
            PlaceKind::Named(name) | PlaceKind::Element(name, _) => {
                self.translator.by_name.get(name.as_str()).copied().map(Target::Variable)
            }
            PlaceKind::Deref(_) => Some(Target::Pointer),
        }
    }

    /// Whether an access happens immediately or lets a new round begin.
    fn rests(&mut self) -> Rests {
        if std::mem::take(&mut self.rested) { Rests::No } else { Rests::Before }
    }

    fn expr(&mut self, e: &'p Expr) -> Expr {
        let kind = match &e.kind {
            ExprKind::Read(place) => match self.target(place) {
                None => e.kind.clone(),
                Some(target) => {
                    let args = match &plain(place).kind {
                        PlaceKind::Named(_) => Vec::new(),
                        PlaceKind::Element(_, address) | PlaceKind::Deref(address) => {
                            vec![self.expr(address)]
                        }
                    };
                    let helper = Helper::Load(target, self.rests());
                    return call(&self.translator.helper_name(helper), args, e.span());
                }
            },
            ExprKind::AddressOf(place) => match &plain(place).kind {
                PlaceKind::Named(_) => e.kind.clone(),
                PlaceKind::Element(array, index) => {
                    let element = PlaceKind::Element(array.clone(), Box::new(self.expr(index)));
                    ExprKind::AddressOf(Place::new(element, place.span()))
                }
                PlaceKind::Deref(pointer) => return self.expr(pointer),
            },
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, Box::new(self.expr(a))),
            ExprKind::Binary(op, a, b) => {
                let before = self.rested;
                let a = self.expr(a);
                // A decision that needs no load is a step of its own.
                if matches!(op, BinaryOp::And | BinaryOp::Or) && before {
                    self.rested = false;
                }
                ExprKind::Binary(*op, Box::new(a), Box::new(self.expr(b)))
            }
            ExprKind::Locked(rmw, place, operands) => return self.locked(*rmw, place, operands, e),
            ExprKind::Call(procedure, args) => {
                let args = args.iter().map(|arg| self.expr(arg)).collect();
                self.rested = false;
                ExprKind::Call(procedure.clone(), args)
            }
            ExprKind::Any { .. } => {
                self.rested = false;
                e.kind.clone()
            }
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Observe(_) => e.kind.clone(),
        };
        Expr::new(kind, e.span())
    }

    fn locked(&mut self, rmw: Rmw, place: &'p Place, operands: &'p [Expr], e: &'p Expr) -> Expr {
        let target = self.target(place).expect("validation: locked instructions work on shared variables");
        let mut args: Vec<Expr> = operands.iter().map(|operand| self.expr(operand)).collect();
        match &plain(place).kind {
            PlaceKind::Named(_) => {}
            PlaceKind::Element(_, address) | PlaceKind::Deref(address) => args.push(self.expr(address)),
        }
        let helper = Helper::Locked(rmw, target, self.rests());
        call(&self.translator.helper_name(helper), args, e.span())
    }
}

/// `if e { break; }`
fn leave_if(condition: Expr) -> StmtKind {
    let then = vec![stmt(StmtKind::Break)];
    StmtKind::If { condition, then, otherwise: Block::new() }
}

fn not(e: Expr) -> Expr {
    match e.kind {
        ExprKind::Unary(UnaryOp::Not, inner) => *inner,
        _ => {
            let span = e.span();
            Expr::new(ExprKind::Unary(UnaryOp::Not, Box::new(e)), span)
        }
    }
}
