//! Programs with plain accesses, and the same programs without the question whether these race.

use super::{Block, Expr, ExprKind, Place, PlaceKind, Program, StmtKind, UnaryOp};

impl Program {
    /// Whether some access is plain, so that data races are possible.
    pub fn has_plain(&self) -> bool {
        let mut found = false;
        places(&mut self.clone(), &mut |place| found |= place.plain);
        found
    }

    /// The same program with no access marked as plain. It has the same runs.
    pub fn without_plain(&self) -> Program {
        let mut program = self.clone();
        places(&mut program, &mut |place| place.plain = false);
        program
    }

    /// The same program, in which stores of this constant are not plain.
    pub fn without_plain_stores_of(&self, value: i64) -> Program {
        let mut program = self.clone();
        let procedures = program.procedures.iter_mut().map(|procedure| &mut procedure.body);
        let templates = program.templates.iter_mut().map(|template| &mut template.body);
        procedures.chain(templates).for_each(|body| stores_of(body, value));
        program
    }
}

/// Calls `visit` for every place in a body. Nothing outside bodies accesses memory plainly.
fn places(program: &mut Program, visit: &mut dyn FnMut(&mut Place)) {
    let procedures = program.procedures.iter_mut().map(|procedure| &mut procedure.body);
    let templates = program.templates.iter_mut().map(|template| &mut template.body);
    procedures.chain(templates).for_each(|body| in_block(body, visit));
}

fn stores_of(block: &mut Block, constant: i64) {
    for stmt in block {
        if let StmtKind::Assign { place, value } = &mut stmt.kind
            && is_constant(value, constant)
        {
            place.plain = false;
        }
        stmt.kind.blocks_mut().into_iter().for_each(|inner| stores_of(inner, constant));
    }
}

fn is_constant(e: &Expr, constant: i64) -> bool {
    match &e.kind {
        ExprKind::Int(value) => *value == constant,
        ExprKind::Unary(UnaryOp::Neg, a) => {
            matches!(a.kind, ExprKind::Int(value) if value.checked_neg() == Some(constant))
        }
        _ => false,
    }
}

/// The parsers limit how deep blocks and expressions nest.
fn in_block(block: &mut Block, visit: &mut dyn FnMut(&mut Place)) {
    for stmt in block {
        match &mut stmt.kind {
            StmtKind::Let { init, .. } => init.iter_mut().for_each(|init| in_expr(init, visit)),
            StmtKind::Assign { place, value } => {
                in_place(place, visit);
                in_expr(value, visit);
            }
            StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                in_expr(e, visit);
            }
            StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => in_expr(condition, visit),
            StmtKind::Return(value) => value.iter_mut().for_each(|value| in_expr(value, visit)),
            StmtKind::Spawn { args, .. } => args.iter_mut().for_each(|arg| in_expr(arg, visit)),
            StmtKind::Skip
            | StmtKind::Fence
            | StmtKind::StoreFence
            | StmtKind::Loop(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Goto(_)
            | StmtKind::Choose(_)
            | StmtKind::Atomic(_)
            | StmtKind::Block(_) => {}
        }
        stmt.kind.blocks_mut().into_iter().for_each(|inner| in_block(inner, visit));
    }
}

fn in_expr(e: &mut Expr, visit: &mut dyn FnMut(&mut Place)) {
    match &mut e.kind {
        ExprKind::Read(place) | ExprKind::AddressOf(place) => in_place(place, visit),
        ExprKind::Unary(_, a) => in_expr(a, visit),
        ExprKind::Binary(_, a, b) => {
            in_expr(a, visit);
            in_expr(b, visit);
        }
        ExprKind::Locked(_, place, operands) => {
            in_place(place, visit);
            operands.iter_mut().for_each(|operand| in_expr(operand, visit));
        }
        ExprKind::Call(_, args) => args.iter_mut().for_each(|arg| in_expr(arg, visit)),
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } | ExprKind::Observe(_) => {}
    }
}

fn in_place(place: &mut Place, visit: &mut dyn FnMut(&mut Place)) {
    visit(place);
    match &mut place.kind {
        PlaceKind::Named(_) => {}
        PlaceKind::Element(_, e) | PlaceKind::Deref(e) => in_expr(e, visit),
    }
}
