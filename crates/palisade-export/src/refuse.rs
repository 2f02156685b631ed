//! What the other language cannot express.

use crate::routine::expressions;
use palisade_base::{Diagnostic, Span};
use palisade_program::Value;
use palisade_program::running::{Condition, Expr, Instr, System};

/// Numbers that do not fit 32 bits.
pub(crate) fn numbers(system: &System) -> Vec<Diagnostic> {
    let mut problems: Vec<Diagnostic> = Vec::new();
    let mut refuse = |value: Value, span: Span| {
        if i32::try_from(value).is_err() {
            let message = format!("{value} does not fit into 32 bits, the size of numbers in Promela");
            let problem = Diagnostic::error("number-too-large", message).at(span, "");
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    };
    for cell in &system.cells {
        match (cell.init, cell.ty.domain.bounds()) {
            (Some(value), _) => refuse(value, cell.span),
            (None, Some((lo, hi))) => [lo, hi].into_iter().for_each(|value| refuse(value, cell.span)),
            (None, None) => {}
        }
    }
    for edge in system.codes.iter().flat_map(|code| code.edges()) {
        expressions(&edge.instr, &mut |e| constants(e, &mut |value| refuse(value, edge.span)));
        if let Instr::Havoc(_, lo, hi) = edge.instr {
            [lo, hi].into_iter().for_each(|value| refuse(value, edge.span));
        }
    }
    for property in &system.properties {
        condition(&property.bad, &mut |value| refuse(value, property.span));
    }
    problems
}

fn constants(e: &Expr, visit: &mut dyn FnMut(Value)) {
    match e {
        Expr::Const(value) => visit(*value),
        Expr::Reg(_) => {}
        Expr::Unary(_, a) => constants(a, visit),
        Expr::Binary(_, a, b) => {
            constants(a, visit);
            constants(b, visit);
        }
    }
}

fn condition(bad: &Condition, visit: &mut dyn FnMut(Value)) {
    match bad {
        Condition::Const(value) => visit(*value),
        Condition::Unary(_, a) => condition(a, visit),
        Condition::Binary(_, a, b) => {
            condition(a, visit);
            condition(b, visit);
        }
        _ => {}
    }
}
