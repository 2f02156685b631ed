//! Walking over programs: every block, every name.

use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Init, InitValue, Name, Observation, Place, PlaceKind, ProcessRef,
    Program, ProgressKind, Stmt, StmtKind,
};

/// Calls `visit` for every block of the program, outer ones first.
pub(crate) fn blocks(program: &mut Program, visit: &mut dyn FnMut(&mut Block)) {
    let procedures = program.procedures.iter_mut().map(|procedure| &mut procedure.body);
    let templates = program.templates.iter_mut().map(|template| &mut template.body);
    procedures.chain(templates).for_each(|body| block(body, visit));
}

fn block(stmts: &mut Block, visit: &mut dyn FnMut(&mut Block)) {
    visit(stmts);
    for statement in stmts {
        statement.kind.blocks_mut().into_iter().for_each(|part| block(part, visit));
    }
}

/// Calls `visit` for every name of the program, at its declaration and at its uses.
pub(crate) fn names(program: &mut Program, visit: &mut dyn FnMut(&mut Name)) {
    for shared in &mut program.shared {
        visit(&mut shared.name);
        let values = match &mut shared.init {
            Init::Every(value) => vec![value],
            Init::Each(values) => values.iter_mut().collect(),
        };
        for value in values {
            if let InitValue::Const(value) = value {
                expr(value, visit);
            }
        }
    }
    for procedure in &mut program.procedures {
        visit(&mut procedure.name);
        procedure.params.iter_mut().for_each(|param| visit(&mut param.name));
    }
    for template in &mut program.templates {
        visit(&mut template.name);
        template.params.iter_mut().for_each(|param| visit(&mut param.name));
    }
    blocks(program, &mut |stmts| stmts.iter_mut().for_each(|statement| own_names(statement, visit)));
    for property in &mut program.properties {
        expr(&mut property.condition, visit);
    }
    for progress in &mut program.progress {
        match &mut progress.kind {
            ProgressKind::Live(condition) => expr(condition, visit),
            ProgressKind::Leaves { process, label } => {
                visit(&mut process.template);
                visit(label);
            }
            ProgressKind::DeadlockFree | ProgressKind::LiveEnd | ProgressKind::Terminates => {}
        }
    }
}

/// Calls `visit` for every place that a body reads or assigns, except those inside other places.
pub(crate) fn places(program: &mut Program, visit: &mut dyn FnMut(&mut Place)) {
    blocks(program, &mut |stmts| {
        for statement in stmts {
            if let StmtKind::Assign { place, .. } = &mut statement.kind {
                visit(place);
            }
            own_expressions(statement, &mut |e| places_of(e, visit));
        }
    });
}

fn places_of(e: &mut Expr, visit: &mut dyn FnMut(&mut Place)) {
    match &mut e.kind {
        ExprKind::Read(place) => visit(place),
        ExprKind::Unary(_, a) => places_of(a, visit),
        ExprKind::Binary(_, a, b) => {
            places_of(a, visit);
            places_of(b, visit);
        }
        ExprKind::Locked(_, _, operands) | ExprKind::Call(_, operands) => {
            operands.iter_mut().for_each(|operand| places_of(operand, visit));
        }
        _ => {}
    }
}

/// Calls `visit` for every operator with two operands in a body.
pub(crate) fn operators(program: &mut Program, visit: &mut dyn FnMut(&mut BinaryOp)) {
    blocks(program, &mut |stmts| {
        stmts.iter_mut().for_each(|statement| own_expressions(statement, &mut |e| operators_of(e, visit)));
    });
}

/// The expressions of a statement itself, without those of the blocks inside it and those inside places.
fn own_expressions(statement: &mut Stmt, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut statement.kind {
        StmtKind::Let { init, .. } => init.iter_mut().for_each(visit),
        StmtKind::Assign { value, .. } => visit(value),
        StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => visit(e),
        StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => visit(condition),
        StmtKind::Return(value) => value.iter_mut().for_each(visit),
        StmtKind::Spawn { args, .. } => args.iter_mut().for_each(visit),
        _ => {}
    }
}

fn operators_of(e: &mut Expr, visit: &mut dyn FnMut(&mut BinaryOp)) {
    match &mut e.kind {
        ExprKind::Unary(_, a) => operators_of(a, visit),
        ExprKind::Binary(op, a, b) => {
            visit(op);
            operators_of(a, visit);
            operators_of(b, visit);
        }
        ExprKind::Locked(_, _, operands) | ExprKind::Call(_, operands) => {
            operands.iter_mut().for_each(|operand| operators_of(operand, visit));
        }
        _ => {}
    }
}

/// The names of a statement itself, without those of the blocks inside it.
fn own_names(statement: &mut Stmt, visit: &mut dyn FnMut(&mut Name)) {
    statement.labels.iter_mut().for_each(&mut *visit);
    match &mut statement.kind {
        StmtKind::Let { name, init, .. } => {
            visit(name);
            init.iter_mut().for_each(|init| expr(init, visit));
        }
        StmtKind::Assign { place: to, value } => {
            place(to, visit);
            expr(value, visit);
        }
        StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
            expr(e, visit)
        }
        StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => expr(condition, visit),
        StmtKind::Goto(label) => visit(label),
        StmtKind::Return(value) => value.iter_mut().for_each(|value| expr(value, visit)),
        StmtKind::Spawn { template, args } => {
            visit(template);
            args.iter_mut().for_each(|arg| expr(arg, visit));
        }
        StmtKind::Skip
        | StmtKind::Fence
        | StmtKind::StoreFence
        | StmtKind::Loop(_)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Choose(_)
        | StmtKind::Atomic(_)
        | StmtKind::Block(_) => {}
    }
}

/// Calls `visit` for every name in an expression.
pub(crate) fn expr(e: &mut Expr, visit: &mut dyn FnMut(&mut Name)) {
    match &mut e.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } => {}
        ExprKind::Read(from) | ExprKind::AddressOf(from) => place(from, visit),
        ExprKind::Unary(_, a) => expr(a, visit),
        ExprKind::Binary(_, a, b) => {
            expr(a, visit);
            expr(b, visit);
        }
        ExprKind::Locked(_, at, operands) => {
            place(at, visit);
            operands.iter_mut().for_each(|operand| expr(operand, visit));
        }
        ExprKind::Call(procedure, args) => {
            visit(procedure);
            args.iter_mut().for_each(|arg| expr(arg, visit));
        }
        ExprKind::Observe(observation) => match observation {
            Observation::At { process, label } => {
                self::process(process, visit);
                visit(label);
            }
            Observation::Count { template, label } => {
                visit(template);
                visit(label);
            }
            Observation::Register { process, register } => {
                self::process(process, visit);
                visit(register);
            }
        },
    }
}

fn place(place: &mut Place, visit: &mut dyn FnMut(&mut Name)) {
    match &mut place.kind {
        PlaceKind::Named(name) => visit(name),
        PlaceKind::Element(name, index) => {
            visit(name);
            expr(index, visit);
        }
        PlaceKind::Deref(pointer) => expr(pointer, visit),
    }
}

fn process(process: &mut ProcessRef, visit: &mut dyn FnMut(&mut Name)) {
    visit(&mut process.template);
}
