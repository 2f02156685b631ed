//! The scalars of objects that are only bytes in LLVM IR, as those of Rust are.
//!
//! *Problem.* Memory consists of scalars: a cell of 4 bytes is read and written as a whole. rustc declares objects as
//! arrays of bytes, so it is not written anywhere which bytes belong together.
//!
//! *How.* They are those that are accessed together. `reach` finds out which objects each access may reach, and
//! [`partition`] cuts an object at the edges of all accesses. Objects of which bytes are copied to one another are cut
//! alike. Copies then become loads and stores of scalars, and a plain access to several scalars becomes one access to
//! each.
//!
//! *Guarantee.* Nothing depends on the cuts being right. An access that does not fit the scalars of the object that it
//! reaches fails with [`Check::Size`](palisade_program::written::Check), which is a limit: the answer is then unknown.

mod reach;

pub(crate) use reach::Calls;

use crate::Language;
use crate::expr::{self, Expr, wrap_int};
use crate::flat::{Access, Code, ObjectId, Step, StepKind, Written};
use crate::heap::Heap;
use crate::inline::Context;
use crate::memory::{Leaf, Memory};
use crate::objects::ObjectKind;
use crate::{UNINITIALISED, flat::Register};
use palisade_base::Span;
use palisade_program::written::BinaryOp;
use reach::{Copied, Offset, Place, Reach};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Bytes that are accessed together: the offset, and the binary logarithm of the number.
type Together = (i64, u32);

/// The most scalars that one copy is made of.
const MAX_SCALARS: usize = 4096;

/// The scalars of an object that is accessed like this.
fn partition(accesses: &BTreeSet<Together>, size: i64) -> Vec<Together> {
    let inside = |&&(offset, log): &&Together| offset >= 0 && offset + (1 << log) <= size;
    let mut found = Vec::new();
    let mut rest = accesses.iter().filter(inside).copied().peekable();
    while let Some(first) = rest.next() {
        // All that overlap, one after the other.
        let mut group = vec![first];
        let mut end = first.0 + (1 << first.1);
        while let Some(&(offset, log)) = rest.peek()
            && offset < end
        {
            end = end.max(offset + (1 << log));
            group.push((offset, log));
            rest.next();
        }
        if group.iter().all(|other| *other == first) {
            found.push(first);
            continue;
        }
        let edges: BTreeSet<i64> =
            group.iter().flat_map(|&(offset, log)| [offset, offset + (1 << log)]).collect();
        let edges: Vec<i64> = edges.into_iter().collect();
        for pair in edges.windows(2) {
            let mut at = pair[0];
            while at < pair[1] {
                let fits = |log: &u32| at % (1 << log) == 0 && at + (1 << log) <= pair[1];
                let log = (0..=3).rev().find(fits).unwrap_or(0);
                found.push((at, log));
                at += 1 << log;
            }
        }
    }
    found
}

/// What some bytes of an object hold at first. `None` if they cannot be one scalar: part of a pointer.
fn initial(leaves: &[Leaf], (offset, log): Together) -> Option<Option<Expr>> {
    let end = offset + (1 << log);
    let mut bytes = [0u8; 8];
    let mut written = true;
    for leaf in leaves.iter().filter(|leaf| leaf.offset < end && offset < leaf.offset + (1 << leaf.size)) {
        if (leaf.offset, leaf.size) == (offset, log) {
            return Some(leaf.init.clone());
        }
        let at = usize::try_from(leaf.offset - offset).ok()?;
        match &leaf.init {
            None => written = false,
            Some(Expr::Int(value)) => {
                for (index, byte) in value.to_le_bytes().iter().take(1 << leaf.size).enumerate() {
                    *bytes.get_mut(at + index)? = *byte;
                }
            }
            Some(_) => return None,
        }
    }
    let value = wrap_int(8 << log, i64::from_le_bytes(bytes));
    Some(written.then_some(Expr::Int(value)))
}

/// What a load of some bytes of a constant returns.
pub(crate) fn constant(leaves: &[Leaf], offset: i64, log: u32) -> Option<Expr> {
    let end = leaves.last().map_or(0, |leaf| leaf.offset + (1 << leaf.size));
    if offset < 0 || offset + (1 << log) > end {
        return None;
    }
    initial(leaves, (offset, log)).flatten()
}

/// Cuts an object into scalars.
fn settle(memory: &mut Memory<'_>, id: ObjectId, accesses: &BTreeSet<Together>) {
    let object = &memory.objects[id.0 as usize];
    let cut = |part: &Together| match initial(&object.leaves, *part) {
        Some(init) => vec![Leaf { offset: part.0, size: part.1, init }],
        // Part of a pointer, which no access fits.
        None => Vec::new(),
    };
    let mut leaves: Vec<Leaf> = partition(accesses, object.size).iter().flat_map(cut).collect();
    // Whether a heap object was freed is seen in its first scalar.
    if leaves.is_empty() && object.kind == ObjectKind::Heap {
        leaves.extend(object.leaves.first().cloned());
    }
    memory.objects[id.0 as usize].leaves = leaves;
    memory.open.remove(&id);
}

/// Cuts the local objects that a thread only accesses at known offsets. Returns whether there were any.
pub(crate) fn settle_locals(code: &Code, memory: &mut Memory<'_>) -> bool {
    if memory.open.is_empty() {
        return false;
    }
    let mut direct: FxHashMap<ObjectId, BTreeSet<Together>> = FxHashMap::default();
    let mut others: FxHashSet<ObjectId> = FxHashSet::default();
    for id in code.reachable() {
        let block = code.block(id);
        for step in &block.steps {
            let mut access = |access: &Access| match access.pointer {
                Expr::Address(object, offset) => {
                    direct.entry(object).or_default().insert((offset, access.size));
                }
                _ => access.pointer.for_each_object(&mut |object| _ = others.insert(object)),
            };
            match &step.kind {
                StepKind::Load { from, .. } => access(from),
                StepKind::Store { to, value } => {
                    access(to);
                    value.for_each_object(&mut |object| _ = others.insert(object));
                }
                kind => {
                    kind.for_each_expr(&mut |e| e.for_each_object(&mut |object| _ = others.insert(object)))
                }
            }
        }
        if let crate::flat::End::Branch(condition, ..) = &block.end {
            condition.for_each_object(&mut |object| _ = others.insert(object));
        }
    }
    let mut chosen: Vec<(ObjectId, BTreeSet<Together>)> = direct
        .into_iter()
        .filter(|(object, _)| {
            let local = memory.object(*object).kind.is_local();
            local && memory.open.contains(object) && !others.contains(object)
        })
        .collect();
    chosen.sort_unstable_by_key(|(object, _)| *object);
    chosen.iter().for_each(|(object, accesses)| settle(memory, *object, accesses));
    !chosen.is_empty()
}

/// Cuts all objects that are left, and replaces the steps that waited for that.
pub(crate) fn settle_all(codes: &mut [&mut Code], calls: &Calls, context: &mut Context<'_>) {
    let reach = Reach::new(codes, calls, &context.memory, &context.heap);
    let mut accesses = reach.accesses.clone();
    share(&mut accesses, &reach.copies, &context.heap);
    let mut open: Vec<ObjectId> = context.memory.open.iter().copied().collect();
    open.sort_unstable();
    let none = BTreeSet::new();
    for object in open {
        settle(&mut context.memory, object, accesses.get(&object).unwrap_or(&none));
    }
    context.heap.take_leaves(&context.memory);
    for (thread, code) in codes.iter_mut().enumerate() {
        Expander { reach: &reach, thread, context: &mut *context }.code(code);
    }
}

/// Objects of which bytes are copied to one another, and heap objects of one shape, are accessed alike.
fn share(accesses: &mut FxHashMap<ObjectId, BTreeSet<Together>>, copies: &BTreeSet<Copied>, heap: &Heap) {
    loop {
        let before: usize = accesses.values().map(BTreeSet::len).sum();
        for copied in copies {
            for (from, to) in [(copied.from, copied.to), (copied.to, copied.from)] {
                let range = from.1..from.1 + copied.size;
                let all = accesses.get(&from.0).into_iter().flatten();
                let inside = all.filter(|(at, log)| *at >= range.start && at + (1 << log) <= range.end);
                let moved: Vec<Together> = inside.map(|(at, log)| (at - from.1 + to.1, *log)).collect();
                accesses.entry(to.0).or_default().extend(moved);
            }
        }
        for shape in 0..heap.shapes.len() {
            let alike = || heap.objects.iter().filter(|(_, of)| *of == shape).map(|(object, _)| *object);
            let all: BTreeSet<Together> =
                alike().filter_map(|object| accesses.get(&object)).flatten().copied().collect();
            for object in alike().filter(|_| !all.is_empty()) {
                accesses.entry(object).or_default().extend(&all);
            }
        }
        if accesses.values().map(BTreeSet::len).sum::<usize>() == before {
            return;
        }
    }
}

/// Replaces the steps of a thread that waited for scalars.
struct Expander<'r, 'a, 'c> {
    reach: &'r Reach,
    thread: usize,
    context: &'c mut Context<'a>,
}

impl Expander<'_, '_, '_> {
    fn code(&mut self, code: &mut Code) {
        for index in 0..code.blocks.len() {
            let old = std::mem::take(&mut code.blocks[index].steps);
            let mut new = Vec::with_capacity(old.len());
            for step in old {
                self.step(step, code, &mut new);
            }
            code.blocks[index].steps = new;
        }
    }

    /// The scalars of some bytes, by their offset from where they begin, if all places agree.
    fn parts(&self, places: &BTreeSet<Place>, size: i64) -> Option<Vec<Together>> {
        let mut found: Option<Vec<Together>> = None;
        for (object, offset) in places {
            let Offset::At(start) = *offset else { return None };
            let object = self.context.memory.object(*object);
            // Where there is not enough room, the access to the first scalar that is missing fails.
            if start < 0 || start + size > object.size {
                continue;
            }
            let inside = object
                .leaves
                .iter()
                .filter(|leaf| leaf.offset < start + size && start < leaf.offset + (1 << leaf.size));
            let parts: Vec<Together> = inside.map(|leaf| (leaf.offset - start, leaf.size)).collect();
            if parts.iter().any(|(at, log)| *at < 0 || at + (1 << log) > size) {
                return None;
            }
            match &found {
                Some(known) if *known != parts => return None,
                _ => found = Some(parts),
            }
        }
        found.filter(|parts| parts.len() <= MAX_SCALARS)
    }

    fn step(&mut self, step: Step, code: &mut Code, new: &mut Vec<Step>) {
        let span = step.span;
        let refuse = |this: &mut Self, new: &mut Vec<Step>, what: &str| {
            let kind = this.context.unsupported(what, span);
            new.push(Step { kind, span });
        };
        match step.kind {
            StepKind::Copy { from, to, size } => {
                let Some(size) = size.as_int() else {
                    return refuse(self, new, "a copy whose size is not a constant");
                };
                let [sources, targets] = [&from, &to].map(|pointer| self.reach.places(self.thread, pointer));
                // A pointer that reaches nothing is not one: the access fails with its value.
                for pointer in
                    [(&from, &sources), (&to, &targets)].iter().filter(|(_, places)| places.is_empty())
                {
                    let from = Access { pointer: pointer.0.clone(), size: 0, plain: true };
                    let nothing = code.new_register("", 8);
                    new.push(Step {
                        kind: StepKind::Load { to: nothing, from, written: Written::Copied },
                        span,
                    });
                }
                if sources.is_empty() || targets.is_empty() {
                    return;
                }
                let parts = match (self.parts(&sources, size), self.parts(&targets, size)) {
                    (Some(a), Some(b)) if a == b => a,
                    _ => return refuse(self, new, "a copy of memory whose layout is not known"),
                };
                copy(code, &parts, (&from, &to), span, new);
            }
            StepKind::Fill { to, size, byte } => {
                let places = self.reach.places(self.thread, &to);
                // Memory that was freed is handed out again only if there is some.
                if places.is_empty() && byte.is_none() {
                    return;
                }
                let Some(parts) = size.as_int().and_then(|size| self.parts(&places, size)) else {
                    return refuse(self, new, "memory of unknown layout that is filled");
                };
                for (offset, log) in parts {
                    let value = match byte {
                        Some(byte) => wrap_int(8 << log, i64::from_le_bytes([byte; 8])),
                        None => UNINITIALISED,
                    };
                    let pointer = moved(&to, offset, &code.registers);
                    let to = Access { pointer, size: log, plain: byte.is_some() };
                    new.push(Step { kind: StepKind::Store { to, value: Expr::Int(value) }, span });
                }
            }
            StepKind::Load { to, from, written } if from.plain => match self.several(&from) {
                Some(parts) => {
                    self.note_parts();
                    load(code, &parts, to, &from, written, span, new);
                }
                None => new.push(Step { kind: StepKind::Load { to, from, written }, span }),
            },
            StepKind::Store { to, value } if to.plain => match self.several(&to) {
                Some(parts) => {
                    self.note_parts();
                    store(code, &parts, &to, &value, span, new);
                }
                None => new.push(Step { kind: StepKind::Store { to, value }, span }),
            },
            kind => new.push(Step { kind, span }),
        }
    }

    /// An access of the machine that is made in parts has more runs than it has there, where it is made at once.
    fn note_parts(&mut self) {
        if self.context.language == Language::Machine {
            let note = "an access to several variables at once is made as one access to each";
            self.context.circumstances.insert(crate::Note(note.to_owned()));
        }
    }

    /// The scalars of a plain access, if there are several.
    fn several(&self, access: &Access) -> Option<Vec<Together>> {
        if self.context.language == Language::C {
            return None;
        }
        let parts = self.parts(&self.reach.places(self.thread, &access.pointer), 1 << access.size)?;
        let covered: i64 = parts.iter().map(|(_, log)| 1 << log).sum();
        (parts.len() > 1 && covered == 1 << access.size).then_some(parts)
    }
}

fn moved(pointer: &Expr, offset: i64, registers: &[Register]) -> Expr {
    expr::binary(BinaryOp::WordAdd, pointer.clone(), Expr::Int(offset), registers)
}

/// Loads everything, and then stores it.
fn copy(code: &mut Code, parts: &[Together], (from, to): (&Expr, &Expr), span: Span, new: &mut Vec<Step>) {
    let mut loaded = Vec::new();
    for &(offset, log) in parts {
        let register = code.new_register("", 8 << log);
        let from = Access { pointer: moved(from, offset, &code.registers), size: log, plain: true };
        new.push(Step { kind: StepKind::Load { to: register, from, written: Written::Copied }, span });
        loaded.push((offset, log, register));
    }
    for (offset, log, register) in loaded {
        let to = Access { pointer: moved(to, offset, &code.registers), size: log, plain: true };
        new.push(Step { kind: StepKind::Store { to, value: Expr::Reg(register) }, span });
    }
}

/// A load of several scalars.
fn load(
    code: &mut Code,
    parts: &[Together],
    to: crate::flat::RegId,
    from: &Access,
    written: Written,
    span: Span,
    new: &mut Vec<Step>,
) {
    // A struct may be loaded as one word even if parts of it were never written.
    let written = if written == Written::Any { written } else { Written::Partly };
    let mut sum = Expr::Int(0);
    for &(offset, log) in parts {
        let register = code.new_register("", 8 << log);
        let at = Access { pointer: moved(&from.pointer, offset, &code.registers), size: log, plain: true };
        new.push(Step { kind: StepKind::Load { to: register, from: at, written }, span });
        let value = expr::unsigned(8 << log, Expr::Reg(register), &code.registers);
        let value = match offset {
            0 => value,
            _ => expr::binary(BinaryOp::WordShl, value, Expr::Int(offset * 8), &code.registers),
        };
        sum = expr::binary(BinaryOp::BitOr, sum, value, &code.registers);
    }
    let value = expr::wrap(8 << from.size, sum, &code.registers);
    new.push(Step { kind: StepKind::Assign(to, value), span });
}

/// A store of several scalars.
fn store(code: &mut Code, parts: &[Together], to: &Access, value: &Expr, span: Span, new: &mut Vec<Step>) {
    for &(offset, log) in parts {
        let part = match offset {
            0 => value.clone(),
            _ => expr::binary(BinaryOp::WordShr, value.clone(), Expr::Int(offset * 8), &code.registers),
        };
        let part = expr::wrap(8 << log, part, &code.registers);
        let at = Access { pointer: moved(&to.pointer, offset, &code.registers), size: log, plain: true };
        new.push(Step { kind: StepKind::Store { to: at, value: part }, span });
    }
}
