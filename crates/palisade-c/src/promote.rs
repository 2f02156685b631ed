//! Objects of one thread whose address does not leave it become registers, one per scalar.
//!
//! *Guarantee.* An object is promoted only if every mention of its address is that of a load or store of whole
//! scalars, or of part of one, in one thread. No other thread can then access it, so buffers make no difference.

use crate::expr::{self, Expr};
use crate::flat::{Access, Code, ObjectId, RegId, Register, Step, StepKind, Written};
use crate::memory::{Leaf, Memory, MemoryObject};
use palisade_base::Span;
use palisade_program::written::{BinaryOp, Check};
use rustc_hash::{FxHashMap, FxHashSet};

/// Promotes the candidates that can be. Returns whether there were any.
pub(crate) fn promote(code: &mut Code, memory: &Memory<'_>, candidate: &dyn Fn(ObjectId) -> bool) -> bool {
    let mut mentioned: FxHashSet<ObjectId> = FxHashSet::default();
    let mut kept: FxHashSet<ObjectId> = FxHashSet::default();
    for block in code.reachable() {
        for step in &code.block(block).steps {
            inspect(&step.kind, memory, &mut mentioned, &mut kept);
        }
        if let crate::flat::End::Branch(condition, ..) = &code.block(block).end {
            condition.for_each_object(&mut |object| _ = kept.insert(object));
        }
    }
    let constants = load_constants(code, memory);
    let can_be =
        |object: &ObjectId| !kept.contains(object) && !memory.open.contains(object) && candidate(*object);
    let mut chosen: Vec<ObjectId> = mentioned.into_iter().filter(can_be).collect();
    chosen.sort_unstable();
    if chosen.is_empty() {
        return constants;
    }
    let mut registers: FxHashMap<(ObjectId, i64), RegId> = FxHashMap::default();
    let mut initial = Vec::new();
    let mut entered: FxHashSet<ObjectId> = FxHashSet::default();
    for block in &code.blocks {
        for step in &block.steps {
            if let StepKind::Enter(object) = step.kind {
                entered.insert(object);
            }
        }
    }
    for &id in &chosen {
        let object = memory.object(id);
        for leaf in &object.leaves {
            let register =
                code.new_register(leaf_name(memory, object, leaf.offset, leaf.size), 8 << leaf.size);
            registers.insert((id, leaf.offset), register);
            if !entered.contains(&id) {
                let kind = match &leaf.init {
                    Some(value) => StepKind::Assign(register, value.clone()),
                    None => StepKind::Uninitialise(register),
                };
                initial.push(Step { kind, span: Span::NONE });
            }
        }
    }
    let types = code.registers.clone();
    let place = |access: &Access| match access.pointer {
        Expr::Address(object, offset) if chosen.binary_search(&object).is_ok() => {
            let covered = covered(memory.object(object), offset, access.size)?;
            let registers: Vec<RegId> =
                covered.parts.iter().map(|part| registers[&(object, part.offset)]).collect();
            Some((covered, registers))
        }
        _ => None,
    };
    for block in &mut code.blocks {
        let old = std::mem::take(&mut block.steps);
        for step in old {
            let span = step.span;
            let mut push = |kind| block.steps.push(Step { kind, span });
            match step.kind {
                StepKind::Load { to, from, written } => match place(&from) {
                    Some((covered, registers)) => {
                        // A struct may be copied as one word even if parts of it were never written.
                        let several = registers.len() > 1;
                        let check = written.check().map(|check| if several { Check::Value } else { check });
                        for &register in &registers {
                            check.iter().for_each(|&check| push(StepKind::Initialised(register, check)));
                        }
                        let value = covered.load(&registers, 8 << from.size, &types);
                        push(StepKind::Assign(to, value));
                    }
                    None => push(StepKind::Load { to, from, written }),
                },
                StepKind::Store { to, value } => match place(&to) {
                    Some((covered, registers)) => {
                        for (register, value) in covered.store(&registers, &value, 8 << to.size, &types) {
                            push(StepKind::Assign(register, value));
                        }
                    }
                    None => push(StepKind::Store { to, value }),
                },
                StepKind::Enter(object) | StepKind::Redeclare(object) | StepKind::Leave(object)
                    if chosen.binary_search(&object).is_ok() =>
                {
                    for leaf in &memory.object(object).leaves {
                        push(StepKind::Uninitialise(registers[&(object, leaf.offset)]));
                    }
                }
                kind => push(kind),
            }
        }
    }
    code.blocks[0].steps.splice(0..0, initial);
    true
}

/// Replaces loads of what never changes. Returns whether there were any.
fn load_constants(code: &mut Code, memory: &Memory<'_>) -> bool {
    let mut changed = false;
    for step in code.blocks.iter_mut().flat_map(|block| &mut block.steps) {
        let StepKind::Load { to, from: Access { pointer: Expr::Address(object, offset), size, .. }, written } =
            &step.kind
        else {
            continue;
        };
        if !memory.object(*object).constant {
            continue;
        }
        if let Some(value) = constant(memory, *object, *offset, *size) {
            step.kind = StepKind::Assign(*to, value);
            changed = true;
        } else if *written == Written::Copied && is_nothing(memory.object(*object), *offset, *size) {
            step.kind = StepKind::Uninitialise(*to);
            changed = true;
        }
    }
    changed
}

/// Whether a constant has no value at this place, such as padding.
fn is_nothing(object: &MemoryObject, offset: i64, size: u32) -> bool {
    let end = offset + (1 << size);
    let mut inside = object
        .leaves
        .iter()
        .filter(|leaf| leaf.offset < end && offset < leaf.offset + (1 << leaf.size))
        .peekable();
    offset >= 0 && end <= object.size && inside.peek().is_some() && inside.all(|leaf| leaf.init.is_none())
}

/// What a load of a constant returns.
fn constant(memory: &Memory<'_>, object: ObjectId, offset: i64, size: u32) -> Option<Expr> {
    let leaves = &memory.object(object).leaves;
    if memory.open.contains(&object) {
        return crate::shapes::constant(leaves, offset, size);
    }
    leaves.iter().find(|leaf| leaf.offset == offset && leaf.size == size)?.init.clone()
}

/// The scalars that an access covers: whole ones, or part of a single one.
struct Covered {
    parts: Vec<Part>,
}

/// A scalar of an access.
struct Part {
    /// Its offset in the object.
    offset: i64,
    /// Its width in bits.
    width: u32,
    /// The bit of the access at which it starts; negative if it starts before the access.
    shift: i64,
}

/// The scalars that an access covers, if it can be done with registers.
fn covered(object: &MemoryObject, offset: i64, size: u32) -> Option<Covered> {
    let end = offset.checked_add(1 << size)?;
    let overlaps = |leaf: &&Leaf| leaf.offset < end && offset < leaf.offset + (1 << leaf.size);
    let inside: Vec<&Leaf> = object.leaves.iter().filter(overlaps).collect();
    let whole = inside.iter().all(|leaf| leaf.offset >= offset && leaf.offset + (1 << leaf.size) <= end);
    let within = inside.len() == 1;
    // Accesses outside the object must fail.
    if inside.is_empty() || offset < 0 || end > object.size || !(whole || within) {
        return None;
    }
    if within && !whole && (inside[0].offset > offset || inside[0].offset + (1 << inside[0].size) < end) {
        return None;
    }
    let part =
        |leaf: &Leaf| Part { offset: leaf.offset, width: 8 << leaf.size, shift: (leaf.offset - offset) * 8 };
    Some(Covered { parts: inside.into_iter().map(part).collect() })
}

impl Covered {
    /// What a load of this many bits returns.
    fn load(&self, registers: &[RegId], width: u32, types: &[Register]) -> Expr {
        let mut sum = Expr::Int(0);
        for (part, &register) in self.parts.iter().zip(registers) {
            if part.shift == 0 && part.width == width {
                return Expr::Reg(register);
            }
            let value = expr::unsigned(part.width, Expr::Reg(register), types);
            let shift = |op, by: i64, value| expr::binary(op, value, Expr::Int(by), types);
            let value = match part.shift {
                by @ 1.. => shift(BinaryOp::WordShl, by, value),
                0 => value,
                by => shift(BinaryOp::WordShr, -by, value),
            };
            sum = expr::binary(BinaryOp::BitOr, sum, value, types);
        }
        expr::wrap(width, sum, types)
    }

    /// What a store of this many bits assigns.
    fn store(&self, registers: &[RegId], value: &Expr, width: u32, types: &[Register]) -> Vec<(RegId, Expr)> {
        let binary = |op, a, b| expr::binary(op, a, b, types);
        let each = self.parts.iter().zip(registers).map(|(part, &register)| {
            if part.shift == 0 && part.width == width {
                return (register, value.clone());
            }
            if part.shift >= 0 && part.width <= width {
                let moved = binary(BinaryOp::WordShr, value.clone(), Expr::Int(part.shift));
                return (register, expr::wrap(part.width, moved, types));
            }
            let by = Expr::Int(-part.shift);
            let ones = expr::mask(width) << -part.shift;
            let kept = binary(BinaryOp::BitAnd, Expr::Reg(register), Expr::Int(!ones));
            let new = expr::unsigned(width, value.clone(), types);
            let new = binary(BinaryOp::WordShl, new, by);
            (register, expr::wrap(part.width, binary(BinaryOp::BitOr, kept, new), types))
        });
        each.collect()
    }
}

/// Notes the objects that a step mentions, and those that must stay in memory because of it.
fn inspect(
    kind: &StepKind,
    memory: &Memory<'_>,
    mentioned: &mut FxHashSet<ObjectId>,
    kept: &mut FxHashSet<ObjectId>,
) {
    let mut direct = |access: &Access, kept: &mut FxHashSet<ObjectId>| match access.pointer {
        Expr::Address(object, offset) => {
            mentioned.insert(object);
            if covered(memory.object(object), offset, access.size).is_none() {
                kept.insert(object);
            }
        }
        _ => access.pointer.for_each_object(&mut |object| _ = kept.insert(object)),
    };
    match kind {
        StepKind::Load { from, .. } => direct(from, kept),
        StepKind::Store { to, value } => {
            direct(to, kept);
            // A write to a constant is an error, which is found in memory.
            let constant = to.pointer.base().filter(|&object| memory.object(object).constant);
            kept.extend(constant);
            value.for_each_object(&mut |object| _ = kept.insert(object));
        }
        StepKind::Enter(object) | StepKind::Redeclare(object) | StepKind::Leave(object) => {
            _ = mentioned.insert(*object)
        }
        other => other.for_each_expr(&mut |e| e.for_each_object(&mut |object| _ = kept.insert(object))),
    }
}

/// What a scalar of an object is called.
pub(crate) fn leaf_name(memory: &Memory<'_>, object: &MemoryObject, offset: i64, size: u32) -> String {
    if object.name.is_empty() {
        return String::new();
    }
    let path = match object.debug {
        Some((module, ty)) => {
            let debug = &memory.linked.modules[module].debug;
            debug.path(ty, u64::try_from(offset).unwrap_or(0), Some(1 << size))
        }
        None if object.leaves.len() > 1 => format!("+{offset}"),
        None => String::new(),
    };
    // What the C library calls its parts says nothing to the user.
    let path = path.find(".__").map_or(path.as_str(), |at| &path[..at]);
    format!("{}{path}", object.name)
}
