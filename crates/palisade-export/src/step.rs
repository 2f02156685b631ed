//! The conditions and effects of a step, as text that both languages share.

use crate::expression::{Condition, Scope, Term};
use crate::ranges::Range;
use crate::routine::Move;
use crate::uses::Guard;
use crate::wrap;
use palisade_program::Value;
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
            let value = scope.become_(&value, scope.range(e), ty(*register));
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
            let value = scope.become_(&value, range, ty(*register));
            plain.effects.push(Effect::Set(name(*register), value.text));
        }
        Instr::Store(address, e) => {
            scope.check(e, &mut plain.conditions);
            scope.check_address(address, &mut plain.conditions);
            let value = scope.term(e);
            plain.conditions.extend(fit_cell(scope, address, &value, scope.range(e)));
            let value = become_in_cell(scope, address, &value, scope.range(e));
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
        let expected = scope.term(&operands[0]);
        let expected = match become_in_cell(scope, address, &expected, scope.range(&operands[0])) {
            same if same.text == expected.text => scope.right(BinaryOp::Eq, &operands[0]),
            wrapped => wrapped.tight(),
        };
        let equal = format!("{place} == {expected}");
        for (answer, otherwise) in [(1, format!("!({equal})")), (0, equal.clone())] {
            let fits = scope.fit(&Term::word(answer.to_string()), Range::of(answer), result_type);
            plain.conditions.extend(fits.map(|fits| fits.unless(&otherwise)));
        }
        let new = scope.term(&operands[1]);
        let fits = fit_cell(scope, address, &new, scope.range(&operands[1]));
        plain.conditions.extend(fits.into_iter().map(|fits| fits.unless(&format!("!({equal})"))));
        let new = become_in_cell(scope, address, &new, scope.range(&operands[1]));
        let set = |answer: Value| {
            let answer = scope.become_(&Term::word(answer.to_string()), Range::of(answer), result_type);
            Effect::Set(register.clone(), answer.text)
        };
        // The cell is written before the register, which may be part of the operands.
        plain.effects.push(Effect::If(equal, vec![Effect::Set(place, new.text), set(1)], vec![set(0)]));
        return;
    }
    let (new, range) = match operator(rmw) {
        None => (scope.term(&operands[0]), scope.range(&operands[0])),
        Some((op, sign)) => {
            let exact = crate::ranges::binary_exact(op, old, scope.range(&operands[0]));
            let new = format!("{place} {sign} {}", scope.right(op, &operands[0]));
            (Term::operation(new), exact)
        }
    };
    let (lo, hi) = scope.width.bounds();
    let new = match rmw {
        Rmw::FetchAdd | Rmw::FetchSub if !range.within(lo, hi) => {
            let (guard, sum) = far_sum(scope, rmw, address, &operands[0]);
            plain.conditions.extend(guard);
            plain.conditions.extend(scope.fit(&cell, old, result_type));
            plain.conditions.extend(fit_cell(scope, address, &new, range));
            sum
        }
        _ => {
            plain.conditions.extend(scope.fit(&cell, old, result_type));
            plain.conditions.extend(fit_cell(scope, address, &new, range));
            become_in_cell(scope, address, &new, range)
        }
    };
    let answer = |text: String| scope.become_(&Term::word(text), old, result_type).text;
    if mentions(address, operands, result) {
        plain.effects.push(Effect::Set(scope.uses.old_value(), place.clone()));
        plain.effects.push(Effect::Set(place, new.text));
        plain.effects.push(Effect::Set(register, answer(scope.uses.old_value())));
    } else {
        plain.effects.push(Effect::Set(register, scope.become_(&cell, old, result_type).text));
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

/// A sum that may be too large for the other language: the condition that it is not, and what it becomes in the cell of
/// an address. In a cell that wraps around, the operand is reduced first; the sum is then small ([`wrap::refuse`]).
/// Elsewhere the sum must fit.
fn far_sum(scope: &Scope<'_>, rmw: Rmw, address: &Address, operand: &Expr) -> (Option<Condition>, Term) {
    let (op, sign) = operator(rmw).expect("it is a sum or a difference");
    let guard = if op == BinaryOp::Add { Guard::Add } else { Guard::Sub };
    let place = scope.cell(address).text;
    let mut new = Term::operation(format!("{place} {sign} {}", scope.right(op, operand)));
    let fits = || Condition::Must(scope.uses.guard(guard, &place, &scope.expr(operand)), "overflow");
    let reached = scope.memory.reached(address);
    let all = |wraps: bool| reached.iter().filter(move |(variable, ..)| is_wrapping(variable.ty) == wraps);
    let condition = all(false).next().map(|_| {
        let others = all(true).map(|(_, first, last)| within(scope, address, *first, *last));
        let others: Vec<String> = others.flatten().collect();
        if others.is_empty() { fits() } else { fits().unless(&others.join(" || ")) }
    });
    for (variable, first, last) in all(true) {
        let (lo, hi, size) = wrap::size(variable.ty).expect("the variable wraps around");
        let reduced = format!("{place} {sign} {} % {}", scope.tight(operand), scope.number(size));
        let wrapped = scope.uses.wrap(&reduced, &scope.number(lo), &scope.number(hi));
        new = match within(scope, address, *first, *last) {
            None => Term::word(wrapped),
            Some(here) => scope.choice(&here, &wrapped, &new.text),
        };
    }
    (condition, new)
}

fn is_wrapping(ty: Type) -> bool {
    wrap::size(ty).is_some()
}

/// The condition that a pointer leads to a cell between two addresses; `None` if the address is not a pointer.
fn within(scope: &Scope<'_>, address: &Address, first: Value, last: Value) -> Option<String> {
    let Address::Pointer(pointer) = address else { return None };
    let pointer = scope.tight(pointer);
    Some(if first == last {
        format!("{pointer} == {first}")
    } else {
        format!("({pointer} >= {first} && {pointer} <= {last})")
    })
}

/// What a value becomes in the cell of an address.
fn become_in_cell(scope: &Scope<'_>, address: &Address, value: &Term, range: Range) -> Term {
    let mut result = value.clone();
    for (variable, first, last) in scope.memory.reached(address) {
        let wrapped = scope.become_(value, range, variable.ty);
        if wrapped.text == value.text {
            continue;
        }
        result = match within(scope, address, first, last) {
            None => wrapped,
            Some(here) => scope.choice(&here, &wrapped.text, &result.text),
        };
    }
    result
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
