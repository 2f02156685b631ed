//! Where new rounds must be able to begin: statements that block, code that runs forever, and first labels
//! and steps.

use super::{Body, Set, Target, plain};
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Outside, Place, PlaceKind, Procedure, Program, Stmt, StmtKind, Type,
};
use rustc_hash::FxHashSet;

/// The variables that some store outside atomic blocks may change. `None` means all variables, if a
/// store goes through a pointer. Procedures are assumed to be called from outside atomic blocks.
pub(in super::super) fn stored(program: &Program) -> Option<Set<'_>> {
    let mut stored = Set::default();
    let bodies = program.procedures.iter().map(|procedure| &procedure.body);
    let all = bodies
        .chain(program.templates.iter().map(|template| &template.body))
        .all(|body| stores_of(body, &mut stored));
    all.then_some(stored)
}

/// Whether all stores name their variable.
fn stores_of<'p>(block: &'p Block, stored: &mut Set<'p>) -> bool {
    block.iter().all(|stmt| match &stmt.kind {
        StmtKind::Assign { place, .. } => match &plain(place).kind {
            PlaceKind::Named(name) | PlaceKind::Element(name, _) => {
                stored.insert(name.as_str());
                true
            }
            PlaceKind::Deref(_) => false,
        },
        StmtKind::If { then, otherwise, .. } => stores_of(then, stored) && stores_of(otherwise, stored),
        StmtKind::While { body, .. } | StmtKind::Loop(body) | StmtKind::Block(body) => {
            stores_of(body, stored)
        }
        StmtKind::Choose(blocks) => blocks.iter().all(|block| stores_of(block, stored)),
        _ => true,
    })
}

/// The label at which a process starts, if a property sees it: only declarations come before it.
pub(super) fn first_label(block: &Block, labels: &FxHashSet<String>) -> Option<String> {
    for stmt in block {
        if let Some(label) = stmt.labels.iter().find(|label| labels.contains(label.as_str())) {
            return Some(label.to_string());
        }
        match &stmt.kind {
            _ if !stmt.labels.is_empty() => return None,
            StmtKind::Loop(body) => return first_label(body, labels),
            StmtKind::Block(body) if !body.iter().all(is_declaration) => return first_label(body, labels),
            _ if is_declaration(stmt) => {}
            _ => return None,
        }
    }
    None
}

/// Whether the statement takes no step when control reaches it for the first time.
pub(super) fn is_declaration(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Let { ty, init, .. } => {
            let zero =
                init.as_ref().is_none_or(|e| matches!(e.kind, ExprKind::Int(0) | ExprKind::Bool(false)));
            zero && ty.domain.contains(0)
        }
        StmtKind::Skip => stmt.labels.is_empty(),
        StmtKind::Block(body) => stmt.labels.is_empty() && body.iter().all(is_declaration),
        _ => false,
    }
}

/// Whether an alternative of a choice begins with a step that control does not return to, so that there is no
/// separate place before it.
pub(super) fn begins_with_a_step(block: &Block) -> bool {
    block.first().is_some_and(|stmt| {
        let is_step = match &stmt.kind {
            StmtKind::Assign { .. } | StmtKind::Eval(_) | StmtKind::Fence | StmtKind::Assume(_) => true,
            StmtKind::Atomic(_) | StmtKind::Spawn { .. } => true,
            StmtKind::Let { init, .. } => init.is_some() && !is_declaration(stmt),
            _ => false,
        };
        is_step && stmt.labels.is_empty()
    })
}

/// Whether a body calls procedures.
pub(super) fn calls(block: &Block) -> bool {
    let called = |e: &Expr| effects(e, &|_| false) == Effects::Acts;
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::Let { init: Some(e), .. }
        | StmtKind::Assign { value: e, .. }
        | StmtKind::Eval(e)
        | StmtKind::Assume(e)
        | StmtKind::Await(e)
        | StmtKind::Assert(e, _)
        | StmtKind::Return(Some(e)) => called(e),
        StmtKind::If { condition, then, otherwise } => called(condition) || calls(then) || calls(otherwise),
        StmtKind::While { condition, body } => called(condition) || calls(body),
        StmtKind::Loop(body) | StmtKind::Block(body) => calls(body),
        StmtKind::Choose(blocks) => blocks.iter().any(calls),
        StmtKind::Spawn { args, .. } => args.iter().any(called),
        _ => false,
    })
}

pub(super) fn collect_targets(block: &Block, targets: &mut FxHashSet<String>) {
    for stmt in block {
        if let StmtKind::Goto(label) = &stmt.kind {
            targets.insert(label.to_string());
        }
        stmt.kind.blocks().into_iter().for_each(|block| collect_targets(block, targets));
    }
}

/// Whether a register of a body blocks values outside its domain.
pub(super) fn declares_blocking(block: &Block) -> bool {
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::Let { ty, .. } => ty.outside == Outside::Block,
        kind => kind.blocks().into_iter().any(declares_blocking),
    })
}

/// The effects of evaluating an expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effects {
    /// Nothing that others can see or change.
    None,
    /// It loads.
    Loads,
    /// It calls procedures or runs locked instructions.
    Acts,
}

pub(super) fn effects(e: &Expr, is_shared: &dyn Fn(&Place) -> bool) -> Effects {
    let of = |e: &Expr| effects(e, is_shared);
    let of_place = |place: &Place| match &place.kind {
        PlaceKind::Named(_) => Effects::None,
        PlaceKind::Element(_, e) | PlaceKind::Deref(e) => of(e),
    };
    match &e.kind {
        ExprKind::Read(place) if is_shared(place) => of_place(place).max(Effects::Loads),
        ExprKind::AddressOf(place) => of_place(place),
        ExprKind::Unary(_, a) => of(a),
        ExprKind::Binary(_, a, b) => of(a).max(of(b)),
        ExprKind::Locked(..) | ExprKind::Call(..) => Effects::Acts,
        _ => Effects::None,
    }
}

impl Body<'_, '_> {
    /// Whether a new round may begin before control can leave the statements, stay in them forever, or reach
    /// another choice.
    pub(super) fn rests_soon(&self, block: &[Stmt]) -> bool {
        for stmt in block {
            if stmt.labels.iter().any(|label| self.labels.contains(label.as_str())) {
                return true;
            }
            let loads_first = |e: &Expr| self.loads_first(e);
            match &stmt.kind {
                _ if self.may_stay_forever(stmt) => return true,
                StmtKind::Fence | StmtKind::Atomic(_) | StmtKind::Spawn { .. } => return true,
                StmtKind::Assign { place, .. } if self.target(place).is_some() => return true,
                StmtKind::Let { init: Some(e), .. } | StmtKind::Assign { value: e, .. }
                    if !loads_first(e) =>
                {
                    if effects(e, &|place| self.target(place).is_some()) != Effects::None {
                        return false;
                    }
                }
                StmtKind::Let { init: None, .. } | StmtKind::Skip | StmtKind::StoreFence => {}
                StmtKind::Let { init: Some(e), .. }
                | StmtKind::Assign { value: e, .. }
                | StmtKind::Eval(e)
                | StmtKind::Assume(e)
                | StmtKind::Await(e)
                | StmtKind::Assert(e, _)
                | StmtKind::If { condition: e, .. }
                | StmtKind::While { condition: e, .. }
                | StmtKind::Return(Some(e)) => return loads_first(e),
                StmtKind::Loop(body) | StmtKind::Block(body) => return self.rests_soon(body),
                StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Goto(_)
                | StmtKind::Choose(_)
                | StmtKind::Return(None) => return false,
            }
        }
        false
    }

    /// Whether the evaluation of an expression certainly begins with an access, apart from parts that take no
    /// steps.
    fn loads_first(&self, e: &Expr) -> bool {
        let of_place = |place: &Place| match &plain(place).kind {
            PlaceKind::Named(_) => false,
            PlaceKind::Element(_, e) | PlaceKind::Deref(e) => self.loads_first(e),
        };
        match &e.kind {
            ExprKind::Read(place) => self.target(place).is_some() || of_place(place),
            ExprKind::AddressOf(place) => of_place(place),
            ExprKind::Unary(_, a) => self.loads_first(a),
            ExprKind::Binary(BinaryOp::And | BinaryOp::Or, a, _) => self.loads_first(a),
            ExprKind::Binary(_, a, b) => {
                let pure = effects(a, &|place| self.target(place).is_some()) == Effects::None;
                self.loads_first(a) || pure && self.loads_first(b)
            }
            ExprKind::Locked(_, _, operands) => {
                let pure = |e: &Expr| effects(e, &|place| self.target(place).is_some()) == Effects::None;
                operands.iter().all(pure)
                    || operands.iter().find(|e| !pure(e)).is_some_and(|e| self.loads_first(e))
            }
            _ => false,
        }
    }

    /// Whether a process may be stuck at the statement forever without an access, so that others must be able
    /// to continue.
    pub(super) fn may_stay_forever(&self, stmt: &Stmt) -> bool {
        let blocking = |ty: &Type| ty.outside == Outside::Block;
        match &stmt.kind {
            StmtKind::Assume(e) | StmtKind::Await(e) => !self.loads_first(e),
            StmtKind::Let { ty, init: Some(e), .. } => {
                (blocking(ty) || self.may_block_in(e)) && !self.loads_first(e)
            }
            StmtKind::Assign { place, value } => {
                let shared = match self.target(place) {
                    Some(Target::Variable(number)) => blocking(&self.translator.program.shared[number].ty),
                    Some(Target::Pointer) => {
                        self.translator.program.shared.iter().any(|variable| blocking(&variable.ty))
                    }
                    None => self.blocking_registers,
                };
                (shared || self.may_block_in(value)) && !self.loads_first(value)
            }
            StmtKind::Eval(e)
            | StmtKind::Assert(e, _)
            | StmtKind::Return(Some(e))
            | StmtKind::If { condition: e, .. }
            | StmtKind::While { condition: e, .. } => self.may_block_in(e) && !self.loads_first(e),
            _ => false,
        }
    }

    /// Whether a call in an expression may get stuck at its arguments or result.
    fn may_block_in(&self, e: &Expr) -> bool {
        let blocking = |ty: &Type| ty.outside == Outside::Block;
        let procedure = |procedure: &Procedure| {
            procedure.params.iter().any(|param| blocking(&param.ty))
                || procedure.result.as_ref().is_some_and(blocking)
        };
        self.translator.program.procedures.iter().any(procedure) && effects(e, &|_| false) == Effects::Acts
    }
}
