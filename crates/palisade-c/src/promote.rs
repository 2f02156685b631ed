//! Objects of one thread whose address does not leave it become registers, one per scalar.
//!
//! *Guarantee.* An object is promoted only if every mention of its address is that of a load or store of exactly
//! one of its scalars, in one thread. Nobody else can then access it, so buffers make no difference.

use crate::expr::Expr;
use crate::flat::{Access, Code, ObjectId, RegId, Step, StepKind};
use crate::memory::{Memory, MemoryObject};
use palisade_base::Span;
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
    let mut chosen: Vec<ObjectId> =
        mentioned.into_iter().filter(|object| !kept.contains(object) && candidate(*object)).collect();
    chosen.sort_unstable();
    if chosen.is_empty() {
        return false;
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
            let register = code.new_register(leaf_name(memory, object, leaf.offset, leaf.size), 8 << leaf.size);
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
    let place = |access: &Access| match access.pointer {
        Expr::Address(object, offset) => registers.get(&(object, offset)).copied(),
        _ => None,
    };
    for block in &mut code.blocks {
        let old = std::mem::take(&mut block.steps);
        for step in old {
            let span = step.span;
            let mut push = |kind| block.steps.push(Step { kind, span });
            match step.kind {
                StepKind::Load { to, from, raw } => match place(&from) {
                    Some(register) => {
                        if !raw {
                            push(StepKind::Initialised(register));
                        }
                        push(StepKind::Assign(to, Expr::Reg(register)));
                    }
                    None => push(StepKind::Load { to, from, raw }),
                },
                StepKind::Store { to, value } => match place(&to) {
                    Some(register) => push(StepKind::Assign(register, value)),
                    None => push(StepKind::Store { to, value }),
                },
                StepKind::Enter(object) if chosen.binary_search(&object).is_ok() => {
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
            let leaves = &memory.object(object).leaves;
            let leaf = leaves.binary_search_by_key(&offset, |leaf| leaf.offset);
            if !leaf.is_ok_and(|index| leaves[index].size == access.size) {
                kept.insert(object);
            }
        }
        _ => access.pointer.for_each_object(&mut |object| _ = kept.insert(object)),
    };
    match kind {
        StepKind::Load { from, .. } => direct(from, kept),
        StepKind::Store { to, value } => {
            direct(to, kept);
            value.for_each_object(&mut |object| _ = kept.insert(object));
        }
        StepKind::Enter(object) => _ = mentioned.insert(*object),
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
    format!("{}{path}", object.name)
}
