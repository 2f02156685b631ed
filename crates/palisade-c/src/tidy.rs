//! Makes code compact: joins blocks, puts values where they are used, drops what is never read.
//!
//! None of this changes which accesses happen, or their order.

use crate::expr::{self, Expr};
use crate::flat::{BlockId, Code, End, RegId, Step, StepKind};
use crate::liveness::{Liveness, RegSet, step_before};
use crate::propagate;
use palisade_program::written::{BinaryOp, Check};
use rustc_hash::{FxHashMap, FxHashSet};

/// An expression with more operators stays in a register.
const MAX_EXPRESSION: usize = 24;

/// Tidies the code. Returns whether anything changed.
pub(crate) fn tidy(code: &mut Code) -> bool {
    let mut changed = false;
    changed |= skip_empty(code);
    changed |= assertions(code);
    changed |= propagate::thread_jumps(code);
    changed |= join(code);
    changed |= substitute(code);
    changed |= coalesce(code);
    changed |= drop_dead(code);
    changed
}

/// Whether the evaluation of an expression can fail.
pub(crate) fn can_fail(e: &Expr) -> bool {
    match e {
        Expr::Int(_) | Expr::Reg(_) | Expr::Address(..) => false,
        Expr::Not(a) | Expr::Wrap(_, a) => can_fail(a),
        Expr::Binary(op, a, b) => {
            let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem | BinaryOp::WordDiv | BinaryOp::WordRem);
            let here = divides && b.as_int().is_none_or(|b| b == 0)
                || matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
            here || can_fail(a) || can_fail(b)
        }
    }
}

/// Jumps to a block that only goes on lead to where it goes.
fn skip_empty(code: &mut Code) -> bool {
    let mut target: Vec<BlockId> = Vec::with_capacity(code.blocks.len());
    for index in 0..code.blocks.len() {
        let mut at = BlockId(u32::try_from(index).expect("fewer than 2^32 blocks"));
        // A ring of empty blocks is left alone.
        for _ in 0..code.blocks.len() {
            match &code.block(at).end {
                End::Goto(to) if code.block(at).steps.is_empty() && *to != at => at = *to,
                _ => break,
            }
        }
        target.push(at);
    }
    let mut changed = false;
    for block in &mut code.blocks {
        block.end.for_each_successor_mut(|to| {
            changed |= target[to.0 as usize] != *to;
            *to = target[to.0 as usize];
        });
        if let End::Branch(_, yes, no) = &block.end
            && yes == no
        {
            block.end = End::Goto(*yes);
            changed = true;
        }
    }
    changed
}

/// A branch to a failing assertion is an assertion.
fn assertions(code: &mut Code) -> bool {
    let fails = |block: BlockId| -> Option<(Check, palisade_base::Span)> {
        match code.block(block).steps.as_slice() {
            [Step { kind: StepKind::Assert(Expr::Int(0), check), span }] => Some((*check, *span)),
            _ => None,
        }
    };
    let mut found = Vec::new();
    for block in code.reachable() {
        if let End::Branch(condition, yes, no) = &code.block(block).end {
            if let Some(failure) = fails(*no) {
                found.push((block, condition.clone(), failure, *yes));
            } else if let Some(failure) = fails(*yes) {
                found.push((block, expr::not(condition.clone()), failure, *no));
            }
        }
    }
    for (block, condition, (check, span), to) in &found {
        let block = code.block_mut(*block);
        block.steps.push(Step { kind: StepKind::Assert(condition.clone(), *check), span: *span });
        block.end = End::Goto(*to);
    }
    !found.is_empty()
}

/// Appends a block to its only predecessor.
fn join(code: &mut Code) -> bool {
    let mut counts = code.predecessor_counts();
    let mut changed = false;
    for block in code.reachable() {
        while let End::Goto(to) = code.block(block).end {
            if to == block || to == BlockId(0) || counts[to.0 as usize] != 1 {
                break;
            }
            let steps = std::mem::take(&mut code.block_mut(to).steps);
            let end = std::mem::replace(&mut code.block_mut(to).end, End::Stop);
            let end_span = code.block(to).end_span;
            counts[to.0 as usize] = 0;
            let here = code.block_mut(block);
            here.steps.extend(steps);
            here.end = end;
            here.end_span = end_span;
            changed = true;
        }
    }
    changed
}

/// For each step of a block, how often the values that it assigns are read in the block. A value that may be read
/// after the block counts as read often.
fn reads(code: &Code, id: BlockId, out: &RegSet) -> Vec<Vec<(RegId, u32)>> {
    const OFTEN: u32 = 1000;
    let mut counts: FxHashMap<RegId, u32> = FxHashMap::default();
    let block = code.block(id);
    if let End::Branch(condition, ..) = &block.end {
        condition.for_each_register(&mut |register| *counts.entry(register).or_insert(0) += 1);
    }
    let mut written_later: FxHashSet<RegId> = FxHashSet::default();
    let mut found = vec![Vec::new(); block.steps.len()];
    for (step, found) in block.steps.iter().zip(&mut found).rev() {
        step.kind.for_each_written(&mut |register| {
            let mut count = counts.remove(&register).unwrap_or(0);
            if !written_later.contains(&register) && out.contains(register) {
                count += OFTEN;
            }
            found.push((register, count));
        });
        // An assignment in an atomic section may not happen.
        if !step.kind.may_not_write() {
            step.kind.for_each_written(&mut |register| _ = written_later.insert(register));
        }
        step.kind.for_each_read(&mut |register| *counts.entry(register).or_insert(0) += 1);
    }
    found
}

/// The registers that may be read after a block, not counting its condition.
fn live_out(code: &Code, liveness: &Liveness, id: BlockId) -> RegSet {
    let mut out = RegSet::new(code.registers.len());
    code.block(id).end.for_each_successor(|to| _ = out.add(liveness.live_in(to)));
    out
}

/// Puts the values of intermediate registers where they are used, within each block.
fn substitute(code: &mut Code) -> bool {
    let liveness = Liveness::new(code);
    let mut changed = false;
    for id in code.reachable() {
        let out = live_out(code, &liveness, id);
        let reads = reads(code, id, &out);
        let registers = code.registers.clone();
        let block = code.block_mut(id);
        let old = std::mem::take(&mut block.steps);
        let mut pending: Vec<Pending> = Vec::new();
        let mut steps = Vec::with_capacity(old.len());
        for (step, reads) in old.into_iter().zip(reads) {
            let Step { mut kind, span } = step;
            // What happens after an assignment in the same step must not read the register instead of its value.
            if matches!(kind, StepKind::Atomic(_) | StepKind::AwaitLoad { .. }) {
                flush(&kind, &mut pending, &mut steps);
            }
            {
                let value = |register: RegId| {
                    pending.iter().find(|(known, ..)| *known == register).map(|(_, e, _)| e.clone())
                };
                let before = kind.clone();
                kind.for_each_expr_mut(&mut |e| *e = e.substitute(&value, &registers));
                // A check of a copy is a check of what was copied.
                if let StepKind::Initialised(register, check) = kind {
                    match value(register) {
                        Some(Expr::Reg(original)) => kind = StepKind::Initialised(original, check),
                        Some(Expr::Int(crate::UNINITIALISED)) => {
                            kind = StepKind::Assert(Expr::Int(0), check);
                        }
                        Some(_) => continue,
                        None => {}
                    }
                }
                changed |= before != kind;
            }
            flush(&kind, &mut pending, &mut steps);
            if let StepKind::Assign(register, e) = &kind {
                let index = register.0 as usize;
                let intermediate = registers[index].name.is_empty();
                let once = reads.iter().all(|(_, count)| *count == 1);
                let cheap = e.size() == 1 || (once && e.size() <= MAX_EXPRESSION);
                let fits = match e {
                    Expr::Reg(other) => registers[other.0 as usize].width <= registers[index].width,
                    _ => true,
                };
                if intermediate && cheap && fits && !can_fail(e) && !e.mentions(*register) {
                    pending.push((*register, e.clone(), span));
                    continue;
                }
            }
            steps.push(Step { kind, span });
        }
        let value = |register: RegId| {
            pending.iter().find(|(known, ..)| *known == register).map(|(_, e, _)| e.clone())
        };
        if let End::Branch(condition, ..) = &mut block.end {
            let new = condition.substitute(&value, &registers);
            changed |= *condition != new;
            *condition = new;
        }
        for (register, e, span) in pending {
            if out.contains(register) {
                steps.push(Step { kind: StepKind::Assign(register, e), span });
            } else {
                changed = true;
            }
        }
        block.steps = steps;
    }
    changed
}

/// A value that was put off, and where it comes from.
type Pending = (RegId, Expr, palisade_base::Span);

/// Computes what depends on a register that a step is about to change.
fn flush(kind: &StepKind, pending: &mut Vec<Pending>, steps: &mut Vec<Step>) {
    let mut written = Vec::new();
    kind.for_each_written(&mut |register| written.push(register));
    let may_not_happen = kind.may_not_write();
    let mut index = 0;
    while index < pending.len() {
        let (register, e, _) = &pending[index];
        if written.iter().any(|w| e.mentions(*w) || register == w) {
            let (register, e, span) = pending.remove(index);
            if may_not_happen || !written.contains(&register) {
                steps.push(Step { kind: StepKind::Assign(register, e), span });
            }
        } else {
            index += 1;
        }
    }
}

/// A value that only one other register gets is put there at once.
fn coalesce(code: &mut Code) -> bool {
    let liveness = Liveness::new(code);
    let mut changed = false;
    for id in code.reachable() {
        let out = live_out(code, &liveness, id);
        let mut reads = reads(code, id, &out);
        let registers = code.registers.clone();
        let steps = &mut code.block_mut(id).steps;
        let mut index = 0;
        while index < steps.len() {
            let StepKind::Assign(to, Expr::Reg(from)) = steps[index].kind else {
                index += 1;
                continue;
            };
            let same = registers[from.0 as usize].width == registers[to.0 as usize].width;
            let source = steps[..index].iter().rposition(|step| {
                let mut writes = false;
                step.kind.for_each_written(&mut |register| writes |= register == from);
                writes
            });
            let once = |source: usize| {
                reads[source].iter().all(|(register, count)| *register != from || *count == 1)
            };
            let Some(source) = source.filter(|source| once(*source) && same && to != from) else {
                index += 1;
                continue;
            };
            let free = steps[source + 1..index].iter().all(|step| {
                let mut uses = false;
                step.kind.for_each_read(&mut |register| uses |= register == to);
                step.kind.for_each_written(&mut |register| uses |= register == to);
                !uses
            });
            if !free || !retarget(&mut steps[source].kind, from, to) {
                index += 1;
                continue;
            }
            let taken = std::mem::take(&mut reads[index]);
            reads[source].retain(|(register, _)| *register != from);
            reads[source].extend(taken);
            steps.remove(index);
            reads.remove(index);
            changed = true;
        }
    }
    changed
}

/// Makes a step write another register.
fn retarget(kind: &mut StepKind, from: RegId, to: RegId) -> bool {
    let change = |register: &mut RegId| {
        if *register == from {
            *register = to;
        }
    };
    match kind {
        StepKind::Assign(register, _)
        | StepKind::Load { to: register, .. }
        | StepKind::Any { to: register, .. }
        | StepKind::Locked { old: register, .. } => change(register),
        StepKind::Cas { old, done, at, expected, new } => {
            // Both results in one register would be wrong, and so would one that the rest still reads after the
            // old value was assigned.
            let both = old.is_some_and(|old| old == to) || done.is_some_and(|done| done == to);
            if both || at.pointer.mentions(to) || expected.mentions(to) || new.mentions(to) {
                return false;
            }
            old.iter_mut().chain(done).for_each(change);
        }
        StepKind::Join { result: Some(register), .. } => change(register),
        _ => return false,
    }
    true
}

/// Drops assignments to registers that are never read, and results that are not used.
fn drop_dead(code: &mut Code) -> bool {
    let liveness = Liveness::new(code);
    let mut changed = false;
    for id in code.reachable() {
        let mut live = liveness.at_end(code, id);
        let old = std::mem::take(&mut code.block_mut(id).steps);
        let mut kept = Vec::with_capacity(old.len());
        for mut step in old.into_iter().rev() {
            let dead = match &mut step.kind {
                StepKind::Assign(register, e) => !live.contains(*register) && !can_fail(e),
                StepKind::Any { to, .. } | StepKind::Uninitialise(to) => !live.contains(*to),
                StepKind::Cas { old, done, .. } => {
                    for result in [old, done] {
                        if result.is_some_and(|register| !live.contains(register)) {
                            *result = None;
                            changed = true;
                        }
                    }
                    false
                }
                StepKind::Join { result, .. } => {
                    if result.is_some_and(|register| !live.contains(register)) {
                        *result = None;
                        changed = true;
                    }
                    false
                }
                _ => false,
            };
            if dead {
                changed = true;
                continue;
            }
            step_before(&step.kind, &mut live);
            kept.push(step);
        }
        kept.reverse();
        code.block_mut(id).steps = kept;
    }
    changed
}
