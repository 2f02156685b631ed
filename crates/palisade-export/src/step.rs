//! The conditions and effects of a step, as text that both languages share.

use crate::expression::{Condition, Scope, Term};
use crate::ranges::Range;
use crate::routine::Move;
use crate::uses::Guard;
use palisade_program::running::{Address, BinaryOp, Expr, Instr, RegId, Register, Rmw, Type};

/// An effect of a step. Effects take place in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// An assignment.
    Set(String, String),
    /// An increment.
    Increment(String),
    /// A decrement.
    Decrement(String),
    /// A choice by a condition.
    If(String, Vec<Effect>, Vec<Effect>),
}

/// The conditions of a step, in order, and its effects.
#[derive(Clone, Default, Debug)]
pub(crate) struct Plain {
    pub conditions: Vec<Condition>,
    pub effects: Vec<Effect>,
}

/// A step that is not a choice and does not concern other routines or sections. Each language handles those
/// itself.
pub(crate) fn plain(
    scope: &Scope<'_>,
    registers: &palisade_base::IdVec<RegId, Register>,
    step: &Move,
) -> Plain {
    let mut plain = Plain::default();
    if let Some((_, address)) = &step.load {
        scope.check_address(address, &mut plain.conditions);
    }
    let ty = |register: RegId| registers[register].ty;
    let name = |register: RegId| scope.registers.name(register);
    match &step.instr {
        Instr::Assign(register, e) => {
            scope.check(e, &mut plain.conditions);
            let value = scope.term(e);
            plain.conditions.extend(scope.fit(&value, scope.range(e), ty(*register)));
            plain.effects.push(Effect::Set(name(*register), value.text));
        }
        Instr::Assume(e) => {
            scope.check(e, &mut plain.conditions);
            plain.conditions.push(Condition::May(scope.truth(e)));
        }
        Instr::Assert(e, _) => {
            scope.check(e, &mut plain.conditions);
            plain.conditions.push(Condition::Must(scope.truth(e), "assertion"));
        }
        Instr::Load(register, address) => {
            scope.check_address(address, &mut plain.conditions);
            let value = scope.cell(address);
            let range = scope.ranges.read(scope.code, address);
            plain.conditions.extend(scope.fit(&value, range, ty(*register)));
            plain.effects.push(Effect::Set(name(*register), value.text));
        }
        Instr::Store(address, e) => {
            scope.check(e, &mut plain.conditions);
            scope.check_address(address, &mut plain.conditions);
            let value = scope.term(e);
            plain.conditions.extend(fit_cell(scope, address, &value, scope.range(e)));
            plain.effects.push(Effect::Set(scope.place(address), value.text));
        }
        Instr::Locked { rmw, result, address, operands } => {
            locked(scope, ty(*result), *rmw, *result, address, operands, &mut plain);
        }
        Instr::Nop | Instr::Fence | Instr::StoreFence => {}
        Instr::Havoc(..)
        | Instr::AtomicBegin
        | Instr::AtomicEnd
        | Instr::Call { .. }
        | Instr::Return(_)
        | Instr::Spawn(..) => panic!("not a plain step: {:?}", step.instr),
    }
    plain
}

fn locked(
    scope: &Scope<'_>,
    result_type: Type,
    rmw: Rmw,
    result: RegId,
    address: &Address,
    operands: &[Expr],
    plain: &mut Plain,
) {
    operands.iter().for_each(|operand| scope.check(operand, &mut plain.conditions));
    scope.check_address(address, &mut plain.conditions);
    let cell = scope.cell(address);
    let place = cell.text.clone();
    let old = scope.ranges.read(scope.code, address);
    let register = scope.registers.name(result);
    if rmw == Rmw::Cas {
        let equal = format!("{place} == {}", scope.right(BinaryOp::Eq, &operands[0]));
        plain.conditions.extend(scope.fit(&Term::word("1"), Range { lo: 0, hi: 1 }, result_type));
        let new = scope.term(&operands[1]);
        let fits = fit_cell(scope, address, &new, scope.range(&operands[1]));
        plain.conditions.extend(fits.into_iter().map(|fits| fits.unless(&format!("!({equal})"))));
        let set = |value: &str| Effect::Set(register.clone(), value.to_owned());
        // The cell is written before the register, which may be part of the operands.
        plain.effects.push(Effect::If(equal, vec![Effect::Set(place, new.text), set("1")], vec![set("0")]));
        return;
    }
    let (new, range) = match operator(rmw) {
        None => (scope.term(&operands[0]), scope.range(&operands[0])),
        Some((op, sign)) => {
            let exact = crate::ranges::binary_exact(op, old, scope.range(&operands[0]));
            let (lo, hi) = scope.width.bounds();
            let check = match op {
                BinaryOp::Add => Some(Guard::Add),
                BinaryOp::Sub => Some(Guard::Sub),
                _ => None,
            };
            if let Some(check) = check.filter(|_| !exact.within(lo, hi)) {
                let text = scope.uses.guard(check, &place, &scope.expr(&operands[0]));
                plain.conditions.push(Condition::Must(text, "overflow"));
            }
            let new = format!("{place} {sign} {}", scope.right(op, &operands[0]));
            (Term::operation(new), exact)
        }
    };
    plain.conditions.extend(scope.fit(&cell, old, result_type));
    plain.conditions.extend(fit_cell(scope, address, &new, range));
    if mentions(address, operands, result) {
        plain.effects.push(Effect::Set(scope.uses.old_value(), place.clone()));
        plain.effects.push(Effect::Set(place, new.text));
        plain.effects.push(Effect::Set(register, scope.uses.old_value()));
    } else {
        plain.effects.push(Effect::Set(register, place.clone()));
        plain.effects.push(Effect::Set(place, new.text));
    }
}

/// The operation on the old value and the operand, and its symbol.
fn operator(rmw: Rmw) -> Option<(BinaryOp, &'static str)> {
    match rmw {
        Rmw::Cas | Rmw::Exchange => None,
        Rmw::FetchAdd => Some((BinaryOp::Add, "+")),
        Rmw::FetchSub => Some((BinaryOp::Sub, "-")),
        Rmw::FetchAnd => Some((BinaryOp::BitAnd, "&")),
        Rmw::FetchOr => Some((BinaryOp::BitOr, "|")),
        Rmw::FetchXor => Some((BinaryOp::BitXor, "^")),
    }
}

fn mentions(address: &Address, operands: &[Expr], register: RegId) -> bool {
    let mut found = false;
    address.registers(&mut |other| found |= other == register);
    operands.iter().for_each(|operand| operand.registers(&mut |other| found |= other == register));
    found
}

/// The conditions that the cells of an address put on a value.
fn fit_cell(scope: &Scope<'_>, address: &Address, value: &Term, range: Range) -> Vec<Condition> {
    let reached = scope.memory.reached(address);
    let mut conditions = Vec::new();
    for (variable, first, last) in reached {
        let Some(fits) = scope.fit(value, range, variable.ty) else { continue };
        conditions.push(match address {
            Address::Cell(_) | Address::Element { .. } => fits,
            Address::Pointer(pointer) => {
                let pointer = scope.tight(pointer);
                fits.unless(&format!("{pointer} < {first} || {pointer} > {last}"))
            }
        });
    }
    conditions
}
