//! Which reads of locals need a check that the local was assigned before.
//!
//! *Guarantee.* A check is dropped only if on every path to it the register was assigned a value that was itself
//! written. [`StepKind::Uninitialise`] becomes an assignment of [`crate::UNINITIALISED`] where a check or a store
//! may see it, and nothing elsewhere.

use crate::expr::Expr;
use crate::flat::{BlockId, Code, RegId, Step, StepKind, Written};
use crate::liveness::RegSet;
use rustc_hash::FxHashSet;

/// Drops the checks that are not needed. Loads from memory are checked where `emit` knows what they may see.
pub(crate) fn resolve(code: &mut Code) {
    let order = code.reachable();
    let mut seen = drop_checks(code);
    // What is copied to a register that is seen is seen too.
    loop {
        let before = seen.len();
        for &block in &order {
            for step in &code.block(block).steps {
                if let StepKind::Assign(to, Expr::Reg(from)) = &step.kind
                    && seen.contains(to)
                {
                    seen.insert(*from);
                }
            }
        }
        if seen.len() == before {
            break;
        }
    }
    for &block in &order {
        let steps = std::mem::take(&mut code.block_mut(block).steps);
        let changed = steps.into_iter().filter_map(|Step { kind, span }| match kind {
            StepKind::Uninitialise(register) => seen
                .contains(&register)
                .then_some(Step { kind: StepKind::Assign(register, Expr::Int(crate::UNINITIALISED)), span }),
            kind => Some(Step { kind, span }),
        });
        code.block_mut(block).steps = changed.collect();
    }
}

/// Drops the checks that are not needed. Returns the registers whose missing value may be seen.
pub(crate) fn drop_checks(code: &mut Code) -> FxHashSet<RegId> {
    let order = code.reachable();
    let mut at: Vec<Option<RegSet>> = vec![None; code.blocks.len()];
    at[0] = Some(RegSet::new(code.registers.len()));
    let mut work = vec![BlockId(0)];
    while let Some(block) = work.pop() {
        let mut state = at[block.0 as usize].clone().expect("blocks in the list were reached");
        for step in &code.block(block).steps {
            transfer(&step.kind, &mut state);
        }
        code.block(block).end.for_each_successor(|to| match &mut at[to.0 as usize] {
            slot @ None => {
                *slot = Some(state.clone());
                work.push(to);
            }
            Some(old) => {
                if old.add(&state) {
                    work.push(to);
                }
            }
        });
    }
    let mut seen: FxHashSet<RegId> = FxHashSet::default();
    for &block in &order {
        let mut state = at[block.0 as usize].clone().expect("reachable blocks were reached");
        code.block_mut(block).steps.retain(|step| {
            let keep = match &step.kind {
                StepKind::Initialised(register, _) => {
                    let needed = state.contains(*register);
                    if needed {
                        seen.insert(*register);
                    }
                    needed
                }
                StepKind::Store { value: Expr::Reg(register), .. } if state.contains(*register) => {
                    seen.insert(*register);
                    true
                }
                _ => true,
            };
            transfer(&step.kind, &mut state);
            keep
        });
    }
    seen
}

/// The registers that may hold no value after a step.
fn transfer(kind: &StepKind, state: &mut RegSet) {
    match kind {
        StepKind::Uninitialise(register) => state.insert(*register),
        StepKind::Initialised(register, _) => state.remove(*register),
        // A copy of what was never written was not written either.
        StepKind::Load { to, written: Written::Copied, .. } => state.insert(*to),
        StepKind::Assign(to, Expr::Reg(from)) => {
            if state.contains(*from) {
                state.insert(*to)
            } else {
                state.remove(*to)
            }
        }
        other if other.may_not_write() => {}
        other => other.for_each_written(&mut |register| state.remove(register)),
    }
}
