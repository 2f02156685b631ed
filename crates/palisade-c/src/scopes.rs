//! Where the variables of a block begin and cease to exist.
//!
//! The compiler marks the beginning and the end of the lifetime of a local variable (`llvm.lifetime`). A variable
//! begins with contents that were never written, in every iteration of a loop, and must not be used after its end.
//!
//! Where a `goto` leads backwards over a declaration, there are no marks: the variable continues to exist, and its
//! value counts as never written each time the declaration is reached (C17 6.2.4, paragraph 6). The debug information
//! shows where that is.
//!
//! The variables of `main` itself, other than those of its blocks, exist until the program ends.

use crate::Note;
use crate::expr::Expr;
use crate::flat::{Code, ObjectId, Step, StepKind};
use crate::inline::{Generator, Refused};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::objects::ObjectKind;
use crate::propagate;
use crate::threads::ThreadCode;
use palisade_llvm::Module;
use palisade_llvm::calls::{ArgumentValue, Callee};
use palisade_llvm::flow::Flow;
use palisade_llvm::instructions::{CastOp, Op};
use palisade_llvm::module::{BlockId, Body, RecordKind};
use palisade_llvm::values::{ConstantKind, Operand, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The beginning or the end of a lifetime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Start,
    End,
}

fn mark(name: &str) -> Option<Mark> {
    if name.starts_with("llvm.lifetime.start") {
        Some(Mark::Start)
    } else if name.starts_with("llvm.lifetime.end") {
        Some(Mark::End)
    } else {
        None
    }
}

/// The locals of a function for which the text marks where they begin. Such a local has ends as well, on all paths on
/// which the function returns.
pub(crate) fn marked(module: &Module, body: &Body) -> FxHashSet<ValueId> {
    let mut casts: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    let mut found = FxHashSet::default();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Cast { op: CastOp::BitCast, value: Operand::Local(of), .. }, Some(result)) =
            (&instruction.op, instruction.result)
        {
            casts.insert(result, *of);
        }
        let Some(call) = instruction.op.call() else { continue };
        let Callee::Value(Operand::Constant(callee)) = call.callee else { continue };
        let ConstantKind::Symbol(symbol) = module.constants[callee].kind else { continue };
        if mark(&module.symbols[symbol].name) != Some(Mark::Start) {
            continue;
        }
        for argument in &call.arguments {
            if let ArgumentValue::Operand(Operand::Local(value)) = argument.value {
                found.insert(casts.get(&value).copied().unwrap_or(value));
            }
        }
    }
    found
}

/// The declarations of locals without marks that control can reach more than once, by the instruction that follows.
/// Parameters are not among them: they have their value before.
pub(crate) fn declared_again(
    module: &Module,
    body: &Body,
    flow: &Flow,
    marked: &FxHashSet<ValueId>,
) -> FxHashMap<(BlockId, usize), Vec<ValueId>> {
    let mut found: FxHashMap<(BlockId, usize), Vec<ValueId>> = FxHashMap::default();
    for record in &body.records {
        if let (RecordKind::Declare, Some(Operand::Local(local))) = (record.kind, record.place)
            && !marked.contains(&local)
            && module.debug.variable(record.variable).is_some_and(|variable| variable.parameter.is_none())
            && flow.is_reachable(record.block)
            && reaches_itself(flow, record.block)
        {
            found.entry((record.block, record.before as usize)).or_default().push(local);
        }
    }
    found
}

/// Whether control can come from a block back to it.
fn reaches_itself(flow: &Flow, block: BlockId) -> bool {
    let mut seen: FxHashSet<BlockId> = FxHashSet::default();
    let mut open: Vec<BlockId> = flow.predecessors(block).to_vec();
    while let Some(before) = open.pop() {
        if before == block {
            return true;
        }
        if seen.insert(before) {
            open.extend(flow.predecessors(before));
        }
    }
    false
}

impl Generator<'_, '_> {
    /// A mark of a lifetime; `None` if the function is not one.
    pub(crate) fn lifetime(&mut self, name: &str, operands: &[Operand]) -> Result<Option<()>, Refused> {
        let Some(mark) = mark(name) else { return Ok(None) };
        let Some(&pointer) = operands.last() else {
            return Err(self.refuse("a call with too few arguments"));
        };
        let Expr::Address(object, 0) = self.scalar(pointer)? else {
            return Err(self.refuse("the lifetime of something that is not a local variable"));
        };
        match mark {
            Mark::Start => self.step(StepKind::Enter(object)),
            Mark::End => {
                let of_function = self.context.memory.object(object).kind == ObjectKind::Local;
                if !(of_function && self.in_main_itself()) {
                    self.step(StepKind::Leave(object));
                }
            }
        }
        Ok(Some(()))
    }
}

/// An object that is entered once holds from the start what it holds then. After loops are unrolled, an object may
/// be entered at several places.
pub(crate) fn enter_once(code: &mut Code) {
    let again = propagate::in_loops(code);
    let mut places: FxHashMap<ObjectId, usize> = FxHashMap::default();
    for block in code.reachable() {
        for step in &code.block(block).steps {
            if let StepKind::Enter(object) = step.kind {
                *places.entry(object).or_default() += 1;
            }
        }
    }
    for block in code.reachable() {
        if !again.contains(&block) {
            let once = |step: &Step| matches!(step.kind, StepKind::Enter(object) if places[&object] == 1);
            code.block_mut(block).steps.retain(|step| !once(step));
        }
    }
}

/// How the compiler's names for compound literals begin.
const LITERAL: &str = ".compoundliteral";

/// Whether a local is a compound literal whose address, or that of a part, is stored in a variable.
pub(crate) fn is_kept_literal(body: &Body, local: ValueId) -> bool {
    if !body.values[local].name.starts_with(LITERAL) {
        return false;
    }
    let mut addresses = vec![local];
    let mut next = 0;
    while let Some(&address) = addresses.get(next) {
        next += 1;
        for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
            match (&instruction.op, instruction.result) {
                (Op::Store { value, .. }, _) if *value == Operand::Local(address) => return true,
                (Op::Cast { value: base, .. } | Op::GetElementPtr { base, .. }, Some(result))
                    if *base == Operand::Local(address) && !addresses.contains(&result) =>
                {
                    addresses.push(result);
                }
                _ => {}
            }
        }
    }
    false
}

/// At most this many variables are named in one sentence.
const MAX_NAMES: usize = 3;

/// A variable that is entered again has the same address as before. A pointer to the one before would be taken for
/// one to the new one, if the address is kept somewhere. This comes after [`enter_once`].
pub(crate) fn kept_pointers(threads: &[ThreadCode], layout: &Layout, memory: &Memory<'_>) -> Option<Note> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for thread in threads {
        for block in thread.code.reachable() {
            for step in &thread.code.block(block).steps {
                if let StepKind::Enter(object) = step.kind
                    && layout.is_exposed(object)
                {
                    names.insert(&memory.object(object).name);
                }
            }
        }
    }
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let which = match names.as_slice() {
        [] => return None,
        names if names.len() <= MAX_NAMES => format!("`{}`", names.join("` or `")),
        [first, ..] => format!("`{first}` or {} other variables", names.len() - 1),
    };
    Some(Note(format!(
        "no pointer to {which} is kept from one iteration of a loop, or one call, to the next"
    )))
}
