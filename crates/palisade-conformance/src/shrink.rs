//! Makes a failing program small: removes everything that can be removed without losing the failure.

use crate::walk;
use palisade_program::validate;
use palisade_program::written::{
    BinaryOp, Block, Count, Expr, ExprKind, Init, InitValue, Program, Stmt, StmtKind, UnaryOp,
};

/// The maximum number of programs to try.
const TRIES: usize = 4_000;

/// A valid program that fails and from which nothing more can be removed, unless the maximum number of tries
/// was reached.
///
/// `fails` must hold for the program itself.
pub fn shrink(program: Program, fails: &dyn Fn(&Program) -> bool) -> Program {
    let mut best = program;
    let mut tries = 0;
    loop {
        let mut progress = false;
        for cut in CUTS {
            // Later items first, because they depend on earlier ones.
            let mut index = count(&best, *cut);
            while index > 0 && tries < TRIES {
                index -= 1;
                let mut candidate = best.clone();
                if !cut(&mut candidate, index) || candidate == best {
                    continue;
                }
                tries += 1;
                if is_valid(&candidate) && fails(&candidate) {
                    best = candidate;
                    progress = true;
                }
            }
        }
        if !progress || tries >= TRIES {
            return best;
        }
    }
}

/// Makes the change with this index; returns false if there is no such change.
type Cut = fn(&mut Program, usize) -> bool;

const CUTS: &[Cut] = &[
    cut_template,
    cut_property,
    |program, index| remove(&mut program.procedures, index),
    |program, index| edit_statement(program, index, &mut |block, at| drop(block.remove(at))),
    unwrap_statement,
    |program, index| remove(&mut program.shared, index),
    cut_copy,
    cut_label,
    fix_initial_value,
    simplify_condition,
];

/// How many changes of a kind there are.
fn count(program: &Program, cut: Cut) -> usize {
    (0..).find(|&index| !cut(&mut program.clone(), index)).expect("a program has finitely many parts")
}

fn is_valid(program: &Program) -> bool {
    !validate(program).iter().any(palisade_base::Diagnostic::is_error)
}

fn remove<T>(items: &mut Vec<T>, index: usize) -> bool {
    let exists = index < items.len();
    if exists {
        items.remove(index);
    }
    exists
}

/// Removes a template and everything that mentions it.
fn cut_template(program: &mut Program, index: usize) -> bool {
    let Some(template) = program.templates.get(index) else { return false };
    let name = template.name.clone();
    program.templates.remove(index);
    walk::blocks(program, &mut |block| {
        block.retain(|stmt| !matches!(&stmt.kind, StmtKind::Spawn { template, .. } if *template == name));
    });
    let mentions = |condition: &Expr| {
        let mut found = false;
        walk::expr(&mut condition.clone(), &mut |other| found |= *other == name);
        found
    };
    for property in &mut program.properties {
        while mentions(&property.condition) {
            let smaller = smaller_conditions(&property.condition);
            let Some(rest) = smaller.iter().find(|rest| !mentions(rest)).or(smaller.first()) else { break };
            property.condition = rest.clone();
        }
    }
    program.properties.retain(|property| !mentions(&property.condition));
    true
}

fn cut_property(program: &mut Program, index: usize) -> bool {
    remove(&mut program.properties, index)
}

/// Calls `edit` with the block and position of the statement with this index, in the order of the walk.
fn edit_statement(program: &mut Program, index: usize, edit: &mut dyn FnMut(&mut Block, usize)) -> bool {
    let mut left = Some(index);
    walk::blocks(program, &mut |block| match left {
        Some(at) if at < block.len() => {
            left = None;
            edit(block, at);
        }
        Some(at) => left = Some(at - block.len()),
        None => {}
    });
    left.is_none()
}

/// Replaces a compound statement by one of its parts. There are up to three parts per statement.
fn unwrap_statement(program: &mut Program, index: usize) -> bool {
    edit_statement(program, index / 3, &mut |block, at| {
        let statement = &mut block[at];
        let labels = statement.labels.clone();
        let Some(part) = statement.kind.blocks_mut().into_iter().nth(index % 3) else { return };
        let mut part = std::mem::take(part);
        if part.is_empty() {
            part.push(Stmt::new(StmtKind::Skip, palisade_base::Span::NONE));
        }
        part[0].labels.splice(0..0, labels);
        block.splice(at..=at, part);
    })
}

/// Removes one instance.
fn cut_copy(program: &mut Program, index: usize) -> bool {
    let Some(template) = program.templates.get_mut(index) else { return false };
    if let Count::Fixed(copies @ 2..) = template.count {
        template.count = Count::Fixed(copies - 1);
    }
    true
}

fn cut_label(program: &mut Program, index: usize) -> bool {
    edit_statement(program, index, &mut |block, at| block[at].labels.clear())
}

fn fix_initial_value(program: &mut Program, index: usize) -> bool {
    let Some(shared) = program.shared.get_mut(index) else { return false };
    shared.init = Init::Every(InitValue::Const(Expr::int(0)));
    true
}

/// Simplifies a property or the condition of a statement.
fn simplify_condition(program: &mut Program, index: usize) -> bool {
    const VARIANTS: usize = 8;
    let (item, variant) = (index / VARIANTS, index % VARIANTS);
    let simplify = |condition: &mut Expr| {
        if let Some(smaller) = smaller_conditions(condition).into_iter().nth(variant) {
            *condition = smaller;
        }
    };
    let properties = program.properties.len();
    if let Some(property) = program.properties.get_mut(item) {
        simplify(&mut property.condition);
        return true;
    }
    edit_statement(program, item - properties, &mut |block, at| match &mut block[at].kind {
        StmtKind::If { condition: e, .. }
        | StmtKind::While { condition: e, .. }
        | StmtKind::Assign { value: e, .. }
        | StmtKind::Let { init: Some(e), .. }
        | StmtKind::Assume(e)
        | StmtKind::Await(e)
        | StmtKind::Assert(e, _) => simplify(e),
        _ => {}
    })
}

/// Expressions with one operand fewer.
fn smaller_conditions(e: &Expr) -> Vec<Expr> {
    let rebuild = |kind| Expr::new(kind, e.span());
    match &e.kind {
        ExprKind::Unary(op, a) => {
            let inner = smaller_conditions(a).into_iter().map(|a| rebuild(ExprKind::Unary(*op, Box::new(a))));
            let bare = (*op != UnaryOp::Not).then(|| (**a).clone());
            inner.chain(bare).collect()
        }
        ExprKind::Binary(op, a, b) => {
            let left = smaller_conditions(a)
                .into_iter()
                .map(|a| rebuild(ExprKind::Binary(*op, Box::new(a), b.clone())));
            let right = smaller_conditions(b)
                .into_iter()
                .map(|b| rebuild(ExprKind::Binary(*op, a.clone(), Box::new(b))));
            let mut all = vec![(**a).clone(), (**b).clone()];
            if matches!(op, BinaryOp::And | BinaryOp::Or) {
                all.extend(left.chain(right));
            }
            all
        }
        _ => Vec::new(),
    }
}
