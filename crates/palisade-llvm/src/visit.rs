//! Visits the operands and blocks that an operation mentions.

use crate::calls::{ArgumentValue, Call, Callee};
use crate::instructions::Op;
use crate::module::BlockId;
use crate::values::Operand;

impl Op {
    /// Visits the blocks to which a terminator may lead, once per way.
    pub fn for_each_successor(&self, mut visit: impl FnMut(BlockId)) {
        match self {
            Op::Branch(to) => visit(*to),
            Op::BranchIf { then, otherwise, .. } => {
                visit(*then);
                visit(*otherwise);
            }
            Op::Switch { default, cases, .. } => {
                visit(*default);
                cases.iter().for_each(|(_, to)| visit(*to));
            }
            Op::IndirectBranch { targets, .. } => targets.iter().copied().for_each(visit),
            Op::Invoke { normal, unwind, .. } => {
                visit(*normal);
                visit(*unwind);
            }
            Op::CallBranch { fallthrough, targets, .. } => {
                visit(*fallthrough);
                targets.iter().copied().for_each(visit);
            }
            _ => {}
        }
    }

    /// Visits every mention of a block, including those in a phi.
    pub(crate) fn for_each_block_mut(&mut self, mut visit: impl FnMut(&mut BlockId)) {
        match self {
            Op::Branch(to) => visit(to),
            Op::BranchIf { then, otherwise, .. } => {
                visit(then);
                visit(otherwise);
            }
            Op::Switch { default, cases, .. } => {
                visit(default);
                cases.iter_mut().for_each(|(_, to)| visit(to));
            }
            Op::IndirectBranch { targets, .. } => targets.iter_mut().for_each(visit),
            Op::Invoke { normal, unwind, .. } => {
                visit(normal);
                visit(unwind);
            }
            Op::CallBranch { fallthrough, targets, .. } => {
                visit(fallthrough);
                targets.iter_mut().for_each(visit);
            }
            Op::Phi(incoming) => incoming.iter_mut().for_each(|(_, from)| visit(from)),
            _ => {}
        }
    }

    /// Visits the operands, in the order of the text. The cases of a `switch` are constants and not among
    /// them.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Operand)) {
        match self {
            Op::Return(value) => value.iter().copied().for_each(visit),
            Op::Branch(_) | Op::Unreachable | Op::Fence { .. } => {}
            Op::BranchIf { condition: operand, .. }
            | Op::Switch { value: operand, .. }
            | Op::IndirectBranch { address: operand, .. }
            | Op::Resume(operand)
            | Op::Load { pointer: operand, .. }
            | Op::FloatNegate(operand)
            | Op::Cast { value: operand, .. }
            | Op::Freeze(operand)
            | Op::ExtractValue { aggregate: operand, .. }
            | Op::NextArgument { list: operand } => visit(*operand),
            Op::Alloca { count, .. } => count.iter().copied().for_each(visit),
            Op::Store { value: first, pointer: second, .. }
            | Op::ReadModifyWrite { pointer: first, value: second, .. }
            | Op::Binary { left: first, right: second, .. }
            | Op::Compare { left: first, right: second, .. }
            | Op::FloatCompare { left: first, right: second, .. }
            | Op::InsertValue { aggregate: first, value: second, .. }
            | Op::ExtractElement { vector: first, index: second } => {
                visit(*first);
                visit(*second);
            }
            Op::CompareExchange { pointer: first, expected: second, new: third, .. }
            | Op::Select { condition: first, yes: second, no: third }
            | Op::InsertElement { vector: first, value: second, index: third }
            | Op::ShuffleVector { left: first, right: second, mask: third } => {
                visit(*first);
                visit(*second);
                visit(*third);
            }
            Op::GetElementPtr { base, indices, .. } => {
                visit(*base);
                indices.iter().copied().for_each(visit);
            }
            Op::Phi(incoming) => incoming.iter().for_each(|(value, _)| visit(*value)),
            Op::LandingPad { clauses, .. } => clauses.iter().copied().for_each(visit),
            Op::Call(call) | Op::Invoke { call, .. } | Op::CallBranch { call, .. } => {
                for_each_operand_of_call(call, visit);
            }
        }
    }
}

fn for_each_operand_of_call(call: &Call, mut visit: impl FnMut(Operand)) {
    if let Callee::Value(callee) = call.callee {
        visit(callee);
    }
    for argument in &call.arguments {
        if let ArgumentValue::Operand(operand) = argument.value {
            visit(operand);
        }
    }
    call.bundles.iter().flat_map(|bundle| bundle.operands.iter().copied()).for_each(visit);
}
