//! The extension R ⊕ σ: a program that does, under SC, what a thread does when it puts off the stores of σ to
//! the end of σ.
//!
//! *Source.* Bouajjani, Calin, Derevenetc and Meyer, "Lazy TSO reachability" (FASE 2015), section 3 and
//! appendix B.
//!
//! σ = inst₁ … instₙ is a path of one thread that begins with a store, ends with a load (or the start of a
//! thread) and has no fence on it. A copy of the path is added from the source of inst₁, through new
//! locations q₁ … qₙ. On the copy, stores go to registers and loads look there first. After qₙ the stores
//! follow, and control is back in the program.
//!
//! With [`Variant::Superset`] nothing else changes, and everything that was possible is still possible. The
//! copy is entered only with registers that satisfy its assumptions, as far as these do not depend on loads.
//! Nothing is lost, since any other walk would get stuck.
//!
//! With [`Variant::Deleting`] inst₁ is removed, and everything that is lost with it is added:
//! - at qᵢ, every other instruction that is possible there, after the stores so far;
//! - at q₁, and at qᵢ if instᵢ is a load and i < n: the first store and a fence, then the other stores so
//!   far, and back into the program.
//!
//! *Guarantee* (Lemma 1). The same states with empty buffers are TSO-reachable.
//!
//! *Differences from the paper.*
//! - The paper's last rule leads back to the source of a load instᵢ, which would make the load happen twice.
//!   It has to lead to the target of the load, as in the proof of Lemma 1.
//! - Addresses known from the text are not compared at run time.
//! - A store outside its variable's domain fails (or blocks) when it is put off, not when it reaches memory,
//!   as on the store-buffer machine. For the same reason a value wraps around when it is put off.

use crate::lazy::draft::{Draft, DraftCode, Tag};
use palisade_base::{Span, limits};
use palisade_program::Value;
use palisade_program::running::{
    Address, BinaryOp, CellId, Check, CodeId, Edge, Expr, Instr, Location, Outside, RegId, Register, System,
    Type, UnaryOp,
};
use rustc_hash::FxHashMap;

/// What happens to the first instruction of σ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Variant {
    /// It stays, so everything that was possible is still possible.
    Superset,
    /// It is removed, so every path is taken in one way only.
    Deleting,
}

/// A store that is put off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PutOff {
    to: Destination,
    value: RegId,
}

/// The address of a store that is put off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Destination {
    Cell(CellId),
    /// The address is in this register.
    Register(RegId),
}

impl PutOff {
    fn store(self) -> Instr {
        let address = match self.to {
            Destination::Cell(cell) => Address::Cell(cell),
            Destination::Register(register) => Address::Pointer(Expr::Reg(register)),
        };
        Instr::Store(address, Expr::Reg(self.value))
    }
}

/// Extends the code by a path, given by the numbers of its edges. If the path has an instruction that waits
/// for the buffer, it changes nothing and returns false.
pub(crate) fn extend(draft: &mut Draft, code: CodeId, path: &[usize], variant: Variant) -> bool {
    let edges: Vec<(Edge, Tag)> = path.iter().map(|&number| draft.code(code).edge(number).clone()).collect();
    if !edges.iter().all(|(edge, _)| can_put_off(&edge.instr)) {
        return false;
    }
    let cells = draft.system().clone();
    let mut extension = Extension { system: &cells, code: draft.code_mut(code), buffer: Vec::new() };
    let last = edges.len() - 1;
    let mut at = edges[0].0.source;
    if variant == Variant::Superset
        && let Some(condition) = entry_condition(extension.code, edges.iter().map(|(edge, _)| &edge.instr))
    {
        let (source, target) = (at, extension.code.location());
        let (instr, span) = (Instr::Assume(condition), edges[0].0.span);
        extension.code.add(Edge { source, target, instr, span }, Tag::NOTHING);
        at = target;
    }
    for (index, (edge, tag)) in edges.iter().enumerate() {
        limits::checkpoint();
        // Alternatives to this instruction, from q₁ on.
        if variant == Variant::Deleting && index > 0 {
            let others: Vec<(Edge, Tag)> = extension
                .code
                .edges
                .iter()
                .enumerate()
                .filter_map(|(number, other)| Some((number, other.as_ref()?)))
                .filter(|(number, (other, _))| other.source == edge.source && *number != path[index])
                .map(|(_, other)| other.clone())
                .collect();
            for (other, tag) in others {
                let here = extension.flush(at, None, other.span);
                extension.code.add(Edge { source: here, ..other }, tag);
            }
        }
        at = extension.copy(at, edge, *tag);
        let may_reach_memory = index == 0 || matches!(edge.instr, Instr::Load(..) | Instr::Spawn(..));
        if variant == Variant::Deleting && index < last && may_reach_memory {
            extension.flush_first(at, edge.target, edge.span);
        }
    }
    extension.flush(at, Some(edges[last].0.target), edges[last].0.span);
    if variant == Variant::Deleting {
        draft.code_mut(code).edges[path[0]] = None;
    }
    true
}

fn can_put_off(instr: &Instr) -> bool {
    !matches!(
        instr,
        Instr::Fence
            | Instr::Locked { .. }
            | Instr::AtomicBegin
            | Instr::AtomicEnd
            | Instr::Call { .. }
            | Instr::Return(_)
    )
}

struct Extension<'e> {
    system: &'e System,
    code: &'e mut DraftCode,
    /// Oldest first.
    buffer: Vec<PutOff>,
}

impl Extension<'_> {
    /// Adds an instruction that leads to a new location.
    fn step(&mut self, source: Location, instr: Instr, span: Span, tag: Tag) -> Location {
        let target = self.code.own_location();
        self.code.add(Edge { source, target, instr, span }, tag);
        target
    }

    /// Adds the copy of an instruction of σ.
    fn copy(&mut self, at: Location, edge: &Edge, tag: Tag) -> Location {
        match &edge.instr {
            Instr::Store(address, value) => self.put_off(at, edge.span, tag, address, value),
            Instr::Load(register, address) => self.load(at, edge.span, tag, *register, address),
            other => self.step(at, other.clone(), edge.span, tag),
        }
    }

    fn put_off(&mut self, at: Location, span: Span, tag: Tag, address: &Address, value: &Expr) -> Location {
        let number = self.code.registers.len();
        // What the step does in the original, except that the store stays in the buffer.
        let tag = Tag { updates: false, ..tag };
        let mut at = self.check_address(at, span, tag, address);
        for outside in [Outside::Fault, Outside::Block] {
            let Some(inside) = self.fits(address, value, outside) else { continue };
            at = match outside {
                Outside::Fault => {
                    let fails = Tag { only_if_faulting: true, ..tag };
                    self.step(at, Instr::Assert(inside, Check::Assertion), span, fails)
                }
                Outside::Block => self.step(at, Instr::Assume(inside), span, Tag::NOTHING),
                Outside::Wrap => unreachable!("values that wrap around fit"),
            };
        }
        let to = match address {
            Address::Cell(cell) => Destination::Cell(*cell),
            other => {
                let register = self.code.temporary(format_args!("a{number}"));
                at = self.step(at, Instr::Assign(register, number_of(other)), span, Tag::NOTHING);
                Destination::Register(register)
            }
        };
        let register = self.code.temporary(format_args!("v{number}"));
        at = self.put_value(at, span, tag, address, value, register);
        self.buffer.push(PutOff { to, value: register });
        at
    }

    /// Puts the value of a store into a register, wrapped around if the cell's type says so. Loads of the thread
    /// itself read it from there.
    fn put_value(
        &mut self,
        mut at: Location,
        span: Span,
        tag: Tag,
        address: &Address,
        value: &Expr,
        register: RegId,
    ) -> Location {
        let after = self.code.own_location();
        for (ty, here) in self.wrapping(address) {
            limits::checkpoint();
            let source = match &here {
                Some(here) => self.step(at, Instr::Assume(here.clone()), span, Tag::NOTHING),
                None => at,
            };
            let suffix = format!("w{}", self.code.registers.len());
            let wrapped = self.code.registers.push(Register::temporary(suffix, ty));
            let source = self.step(source, Instr::Assign(wrapped, value.clone()), span, Tag::NOTHING);
            let instr = Instr::Assign(register, Expr::Reg(wrapped));
            self.code.add(Edge { source, target: after, instr, span }, tag);
            let Some(here) = here else { return after };
            let elsewhere = Expr::Unary(UnaryOp::Not, Box::new(here));
            at = self.step(at, Instr::Assume(elsewhere), span, Tag::NOTHING);
        }
        let instr = Instr::Assign(register, value.clone());
        self.code.add(Edge { source: at, target: after, instr, span }, tag);
        after
    }

    /// The types that wrap around among those of the cells that an address may refer to, each with the condition
    /// that the address refers to a cell of that type. `None` if it always does.
    fn wrapping(&self, address: &Address) -> Vec<(Type, Option<Expr>)> {
        let wraps = |ty: &Type| ty.outside == Outside::Wrap;
        match address {
            Address::Cell(cell) | Address::Element { base: cell, .. } => {
                let ty = self.system.cells[*cell].ty;
                if wraps(&ty) { vec![(ty, None)] } else { Vec::new() }
            }
            Address::Pointer(pointer) => {
                let mut found: Vec<(Type, Option<Expr>)> = Vec::new();
                for (cell, info) in self.system.cells.iter_enumerated().filter(|(_, info)| wraps(&info.ty)) {
                    limits::checkpoint();
                    let number = Expr::Const(Value::from(cell.0) + 1);
                    let here = Expr::Binary(BinaryOp::Eq, Box::new(pointer.clone()), Box::new(number));
                    match found.iter_mut().find(|(ty, _)| *ty == info.ty) {
                        Some((_, Some(known))) => {
                            let before = std::mem::replace(known, Expr::Const(0));
                            *known = Expr::Binary(BinaryOp::Or, Box::new(before), Box::new(here));
                        }
                        _ => found.push((info.ty, Some(here))),
                    }
                }
                found
            }
        }
    }

    /// The condition that a value fits the domain of the variable it is stored to. `None` if the domain is
    /// not bounded, or does not treat values outside it as `outside` says.
    fn fits(&self, address: &Address, value: &Expr, outside: Outside) -> Option<Expr> {
        let fits = |ty: Type| {
            let (lo, hi) = ty.domain.bounds().filter(|_| ty.outside == outside)?;
            Some(both(at_least(value.clone(), lo), at_most(value.clone(), hi)))
        };
        match address {
            Address::Cell(cell) | Address::Element { base: cell, .. } => fits(self.system.cells[*cell].ty),
            Address::Pointer(pointer) => {
                let guarded = self.system.cells.iter_enumerated().filter_map(|(cell, info)| {
                    let number = Expr::Const(Value::from(cell.0) + 1);
                    let another = Expr::Binary(BinaryOp::Ne, Box::new(pointer.clone()), Box::new(number));
                    Some(Expr::Binary(BinaryOp::Or, Box::new(another), Box::new(fits(info.ty)?)))
                });
                guarded.reduce(both)
            }
        }
    }

    fn load(&mut self, at: Location, span: Span, tag: Tag, register: RegId, address: &Address) -> Location {
        let mut at = self.check_address(at, span, tag, address);
        let after = self.code.own_location();
        for entry in self.buffer.clone().into_iter().rev() {
            let taken = Instr::Assign(register, Expr::Reg(entry.value));
            match (entry.to, address) {
                (Destination::Cell(cell), Address::Cell(other)) if cell == *other => {
                    self.code.add(Edge { source: at, target: after, instr: taken, span }, tag);
                    return after;
                }
                (Destination::Cell(_), Address::Cell(_)) => {}
                (place, _) => {
                    let place = match place {
                        Destination::Cell(cell) => Expr::Const(Value::from(cell.0) + 1),
                        Destination::Register(register) => Expr::Reg(register),
                    };
                    let compare =
                        |op| Expr::Binary(op, Box::new(place.clone()), Box::new(number_of(address)));
                    let hit = self.step(at, Instr::Assume(compare(BinaryOp::Eq)), span, Tag::NOTHING);
                    self.code.add(Edge { source: hit, target: after, instr: taken, span }, tag);
                    at = self.step(at, Instr::Assume(compare(BinaryOp::Ne)), span, Tag::NOTHING);
                }
            }
        }
        let instr = Instr::Load(register, address.clone());
        self.code.add(Edge { source: at, target: after, instr, span }, tag);
        after
    }

    /// A nonexistent address is an error, and is checked before anything else.
    fn check_address(&mut self, at: Location, span: Span, tag: Tag, address: &Address) -> Location {
        let inside = match address {
            Address::Cell(_) => return at,
            Address::Element { len, index, .. } => {
                both(at_least(index.clone(), 0), at_most(index.clone(), Value::from(*len) - 1))
            }
            Address::Pointer(pointer) => {
                let cells = self.system.cells.len() as Value;
                both(at_least(pointer.clone(), 1), at_most(pointer.clone(), cells))
            }
        };
        self.step(at, Instr::Assert(inside, Check::Assertion), span, Tag { only_if_faulting: true, ..tag })
    }

    /// Adds the stores so far, leading to the given location or a new one.
    fn flush(&mut self, at: Location, target: Option<Location>, span: Span) -> Location {
        self.flush_from(at, 0, target, span)
    }

    fn flush_from(
        &mut self,
        mut at: Location,
        first: usize,
        target: Option<Location>,
        span: Span,
    ) -> Location {
        let entries = self.buffer[first..].to_vec();
        for (index, entry) in entries.iter().enumerate() {
            limits::checkpoint();
            match target {
                Some(target) if index + 1 == entries.len() => {
                    self.code.add(Edge { source: at, target, instr: entry.store(), span }, Tag::UPDATE);
                    return target;
                }
                _ => at = self.step(at, entry.store(), span, Tag::UPDATE),
            }
        }
        if let Some(target) = target {
            self.code.add(Edge { source: at, target, instr: Instr::Nop, span }, Tag::NOTHING);
            return target;
        }
        at
    }

    /// Adds the first store and a fence, the other stores so far, and the way back into the program.
    fn flush_first(&mut self, at: Location, target: Location, span: Span) {
        let stored = self.step(at, self.buffer[0].store(), span, Tag::UPDATE);
        let fenced = self.step(stored, Instr::Fence, span, Tag::NOTHING);
        self.flush_from(fenced, 1, Some(target), span);
    }
}

/// What registers must satisfy at the start of a path so that its assumptions hold. Only assumptions that do
/// not depend on loads and cannot be an error are included.
fn entry_condition<'i>(code: &DraftCode, path: impl Iterator<Item = &'i Instr>) -> Option<Expr> {
    // The current values of registers in terms of their values at the start. `None` if a value depends on
    // memory.
    let mut now: FxHashMap<RegId, Option<Expr>> = FxHashMap::default();
    let mut conditions = Vec::new();
    for instr in path {
        limits::checkpoint();
        match instr {
            // What a value becomes in a register that wraps around is not written as an expression.
            Instr::Assign(register, _) if code.registers[*register].ty.outside == Outside::Wrap => {
                now.insert(*register, None);
            }
            Instr::Assign(register, value) => _ = now.insert(*register, at_start(value, &now)),
            Instr::Load(register, _)
            | Instr::Havoc(register, ..)
            | Instr::Locked { result: register, .. } => {
                now.insert(*register, None);
            }
            Instr::Assume(condition) => {
                conditions.extend(at_start(condition, &now).filter(|condition| is_harmless(code, condition)));
            }
            _ => {}
        }
    }
    // The conjunction is built as a tree of small depth.
    while conditions.len() > 1 {
        let mut joined = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut left = conditions.into_iter();
        while let Some(a) = left.next() {
            joined.push(match left.next() {
                Some(b) => both(a, b),
                None => a,
            });
        }
        conditions = joined;
    }
    conditions.pop()
}

/// Whether evaluating an expression can never be an error, whatever registers hold: comparisons and sums of
/// small numbers.
fn is_harmless(code: &DraftCode, e: &Expr) -> bool {
    const SMALL: Value = 1 << 32;
    let small = |value: Value| (-SMALL..=SMALL).contains(&value);
    match e {
        Expr::Const(value) => small(*value),
        Expr::Reg(register) => {
            let bounds = code.registers[*register].ty.domain.bounds();
            bounds.is_some_and(|(lo, hi)| small(lo) && small(hi))
        }
        Expr::Unary(UnaryOp::Not, a) => is_harmless(code, a),
        Expr::Unary(..) => false,
        Expr::Binary(op, a, b) => {
            use BinaryOp::{Add, And, Eq, Ge, Gt, Le, Lt, Ne, Or, Sub};
            let known = matches!(op, Add | And | Eq | Ge | Gt | Le | Lt | Ne | Or | Sub);
            known && is_harmless(code, a) && is_harmless(code, b)
        }
    }
}

/// An expression in terms of the registers at the start. Sums with constants are kept short.
fn at_start(value: &Expr, now: &FxHashMap<RegId, Option<Expr>>) -> Option<Expr> {
    match value {
        Expr::Const(_) => Some(value.clone()),
        Expr::Reg(register) => now.get(register).cloned().unwrap_or_else(|| Some(value.clone())),
        Expr::Unary(op, a) => Some(Expr::Unary(*op, Box::new(at_start(a, now)?))),
        Expr::Binary(op, a, b) => {
            let (a, b) = (at_start(a, now)?, at_start(b, now)?);
            let sum = match (op, &a, &b) {
                (BinaryOp::Add, Expr::Const(a), Expr::Const(b)) => a.checked_add(*b).map(Expr::Const),
                (BinaryOp::Add, Expr::Binary(BinaryOp::Add, inner, c), Expr::Const(d)) => match **c {
                    Expr::Const(c) => c
                        .checked_add(*d)
                        .map(|sum| Expr::Binary(BinaryOp::Add, inner.clone(), Box::new(Expr::Const(sum)))),
                    _ => None,
                },
                _ => None,
            };
            Some(sum.unwrap_or_else(|| Expr::Binary(*op, Box::new(a), Box::new(b))))
        }
    }
}

/// The number of the cell that an address refers to, plus 1.
fn number_of(address: &Address) -> Expr {
    match address {
        Address::Cell(cell) => Expr::Const(Value::from(cell.0) + 1),
        Address::Element { base, index, .. } => {
            let first = Expr::Const(Value::from(base.0) + 1);
            Expr::Binary(BinaryOp::Add, Box::new(first), Box::new(index.clone()))
        }
        Address::Pointer(pointer) => pointer.clone(),
    }
}

fn at_least(value: Expr, lo: Value) -> Expr {
    Expr::Binary(BinaryOp::Ge, Box::new(value), Box::new(Expr::Const(lo)))
}

fn at_most(value: Expr, hi: Value) -> Expr {
    Expr::Binary(BinaryOp::Le, Box::new(value), Box::new(Expr::Const(hi)))
}

fn both(a: Expr, b: Expr) -> Expr {
    Expr::Binary(BinaryOp::And, Box::new(a), Box::new(b))
}
