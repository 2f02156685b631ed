//! Constants: what is known about registers, and loops that are unrolled because of it.
//!
//! [`fold`] replaces registers that always hold the same constant at a place, and removes code that control
//! cannot reach. [`unroll`] copies the blocks of loops that start or join threads, or that access arrays by a
//! varying index, once per set of known constants, if that takes few copies. Neither changes what the code does.

use crate::expr::Expr;
use crate::flat::{Block, BlockId, Code, End, RegId, Register, Step, StepKind};
use crate::liveness::Liveness;
use palisade_program::written::{BinaryOp, Check};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The most copies of a block.
const MAX_COPIES: usize = 72;

/// The most blocks of a thread after unrolling.
const MAX_BLOCKS: usize = 20_000;

/// The registers whose value is known.
type Known = BTreeMap<RegId, Expr>;

/// What is known at the start of each block, whichever way control came there; `None` if it cannot.
fn facts(code: &Code, liveness: &Liveness) -> Vec<Option<Known>> {
    let mut known: Vec<Option<Known>> = vec![None; code.blocks.len()];
    known[0] = Some(Known::new());
    let mut work = vec![BlockId(0)];
    while let Some(block) = work.pop() {
        let mut here = known[block.0 as usize].clone().expect("blocks in the list were reached");
        let (_, end) = run(code, code.block(block), &mut here);
        for (to, refined) in successors(code, &end, &here) {
            let live = liveness.live_in(to);
            let mut incoming = refined;
            incoming.retain(|register, _| live.contains(*register));
            match &mut known[to.0 as usize] {
                slot @ None => {
                    *slot = Some(incoming);
                    work.push(to);
                }
                Some(old) => {
                    let before = old.len();
                    old.retain(|register, value| incoming.get(register) == Some(value));
                    if old.len() != before {
                        work.push(to);
                    }
                }
            }
        }
    }
    known
}

/// Replaces what is constant, and cuts off what is unreachable. Returns whether anything changed.
pub(crate) fn fold(code: &mut Code) -> bool {
    let known = facts(code, &Liveness::new(code));
    let mut changed = false;
    for (block, at) in code.blocks.iter().zip(&known) {
        if let (false, Some(here)) = (code.asserted, at) {
            let (steps, end) = run(code, block, &mut here.clone());
            if drops_assertion(code, block, &steps, &end) {
                code.asserted = true;
                break;
            }
        }
    }
    for (index, at) in known.into_iter().enumerate() {
        let Some(mut here) = at else {
            let block = &mut code.blocks[index];
            if !block.steps.is_empty() || block.end != End::Stop {
                block.steps.clear();
                block.end = End::Stop;
            }
            continue;
        };
        let (steps, end) = run(code, &code.blocks[index], &mut here);
        let block = &mut code.blocks[index];
        changed |= block.end != end
            || block.steps.len() != steps.len()
            || block.steps.iter().zip(&steps).any(|(old, new)| old.kind != new.kind);
        (block.steps, block.end) = (steps, end);
    }
    changed
}

/// Whether an assertion of the program is not needed any more once a block has these steps and this end.
fn drops_assertion(code: &Code, block: &Block, steps: &[Step], end: &End) -> bool {
    let is_assertion = |step: &Step| match step.kind {
        StepKind::Assert(_, check) => matches!(check, Check::Assertion | Check::NoAbort | Check::NoPanic),
        _ => false,
    };
    let count = |steps: &[Step]| steps.iter().filter(|step| is_assertion(step)).count();
    let avoids = match (&block.end, end) {
        (End::Branch(_, yes, no), End::Goto(to)) => {
            let other = if to == yes { no } else { yes };
            other != to && code.block(*other).steps.iter().any(is_assertion)
        }
        _ => false,
    };
    let fails = steps.last().is_some_and(|step| matches!(step.kind, StepKind::Assert(Expr::Int(0), _)));
    avoids || !fails && count(steps) < count(&block.steps)
}

/// The blocks that follow, with what is known there.
fn successors(code: &Code, end: &End, known: &Known) -> Vec<(BlockId, Known)> {
    match end {
        End::Branch(condition, yes, no) => {
            let (mut on_yes, mut on_no) = (known.clone(), known.clone());
            match condition {
                Expr::Binary(BinaryOp::Eq, a, b) => {
                    if let (Expr::Reg(register), true) = (&**a, b.is_constant()) {
                        on_yes.insert(*register, (**b).clone());
                    }
                }
                Expr::Binary(BinaryOp::Ne, a, b) => {
                    if let (Expr::Reg(register), true) = (&**a, b.is_constant()) {
                        on_no.insert(*register, (**b).clone());
                    }
                }
                // A truth value.
                Expr::Reg(register) => {
                    on_no.insert(*register, Expr::Int(0));
                    if code.width(*register) == 1 {
                        on_yes.insert(*register, Expr::Int(1));
                    }
                }
                Expr::Not(a) => {
                    if let Expr::Reg(register) = **a {
                        on_yes.insert(register, Expr::Int(0));
                        if code.width(register) == 1 {
                            on_no.insert(register, Expr::Int(1));
                        }
                    }
                }
                _ => {}
            }
            vec![(*yes, on_yes), (*no, on_no)]
        }
        _ => {
            let mut all = Vec::new();
            end.for_each_successor(|to| all.push((to, known.clone())));
            all
        }
    }
}

/// Runs a block with what is known. Returns its steps and end with constants replaced.
fn run(code: &Code, block: &Block, known: &mut Known) -> (Vec<Step>, End) {
    let registers = &code.registers;
    let mut steps = Vec::with_capacity(block.steps.len());
    for step in &block.steps {
        let mut kind = step.kind.clone();
        {
            // What an atomic section assigns is not known inside it either.
            if matches!(kind, StepKind::Atomic(_) | StepKind::AwaitLoad { .. }) {
                kind.for_each_written(&mut |register| _ = known.remove(&register));
            }
            let value = |register: RegId| known.get(&register).cloned();
            kind.for_each_expr_mut(&mut |e| *e = e.substitute(&value, registers));
        }
        match &kind {
            StepKind::Assign(register, e) => match e.is_constant() {
                true => _ = known.insert(*register, e.clone()),
                false => _ = known.remove(register),
            },
            other => other.for_each_written(&mut |register| _ = known.remove(&register)),
        }
        let stops = match &kind {
            StepKind::Assert(Expr::Int(value), _) | StepKind::Assume(Expr::Int(value)) => {
                if *value != 0 {
                    continue;
                }
                true
            }
            StepKind::Unsupported(_) => true,
            _ => false,
        };
        let nothing = matches!(&kind, StepKind::Assume(Expr::Int(0)));
        // In a list of outcomes, runs that are given up must not look like those in which the thread ends.
        steps.push(Step { kind, span: step.span });
        if stops {
            // Where an assumption fails, there is no run to judge.
            return (steps, if nothing { End::Over } else { End::Stop });
        }
    }
    let end = match &block.end {
        End::Branch(condition, yes, no) => {
            let value = |register: RegId| known.get(&register).cloned();
            match condition.substitute(&value, registers) {
                Expr::Int(0) => End::Goto(*no),
                Expr::Int(_) => End::Goto(*yes),
                _ if yes == no => End::Goto(*yes),
                condition => End::Branch(condition, *yes, *no),
            }
        }
        end => end.clone(),
    };
    (steps, end)
}

/// Operations on constants that fail, such as a division by zero, are to fail when control comes to them. Programs
/// with constants that have no value are not valid, so one operand is put into a register. This comes last: what it
/// does, [`fold`] would undo.
pub(crate) fn keep_faults(code: &mut Code) {
    for index in 0..code.blocks.len() {
        let old = std::mem::take(&mut code.blocks[index].steps);
        let mut steps = Vec::with_capacity(old.len());
        for mut step in old {
            let mut operands = Vec::new();
            let registers = &mut code.registers;
            step.kind.for_each_expr_mut(&mut |e| move_operand(e, registers, &mut operands));
            for (register, value) in operands {
                let kind = StepKind::Assign(register, Expr::Int(value));
                steps.push(Step { kind, span: step.span });
            }
            steps.push(step);
        }
        code.blocks[index].steps = steps;
    }
}

/// Puts the second operand of an operation on constants that fails into a register.
fn move_operand(e: &mut Expr, registers: &mut Vec<Register>, operands: &mut Vec<(RegId, i64)>) {
    match e {
        Expr::Int(_) | Expr::Reg(_) | Expr::Address(..) => {}
        Expr::Not(a) | Expr::Wrap(_, a) => move_operand(a, registers, operands),
        Expr::Binary(op, a, b) => {
            move_operand(a, registers, operands);
            move_operand(b, registers, operands);
            let Expr::Int(y) = **b else { return };
            let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem | BinaryOp::WordDiv | BinaryOp::WordRem);
            let fails = match **a {
                Expr::Int(x) => palisade_program::running::binary(*op, x, y).is_err(),
                _ => divides && y == 0,
            };
            if fails {
                let register = RegId(u32::try_from(registers.len()).expect("fewer than 2^32 registers"));
                registers.push(Register { name: "operand".to_owned(), width: 64 });
                operands.push((register, y));
                **b = Expr::Reg(register);
            }
        }
    }
}

/// Where a branch that nothing precedes is decided on the way to it, control goes on to where it leads. Returns
/// whether anything changed.
pub(crate) fn thread_jumps(code: &mut Code) -> bool {
    let known = facts(code, &Liveness::new(code));
    let mut changed = false;
    for id in code.reachable() {
        let Some(mut here) = known[id.0 as usize].clone() else { continue };
        let (steps, end) = run(code, code.block(id), &mut here);
        // What `fold` has still to change is not touched.
        if end != code.block(id).end || steps.len() != code.block(id).steps.len() {
            continue;
        }
        let mut moved = Vec::new();
        for (to, refined) in successors(code, &end, &here) {
            let target = decided(code, to, &refined);
            changed |= target != to;
            moved.push(target);
        }
        let mut next = moved.into_iter();
        code.block_mut(id).end.for_each_successor_mut(|to| {
            *to = next.next().expect("one target per successor");
        });
    }
    changed
}

/// Where control ends up from a block on, as far as branches that nothing precedes are decided. A ring of such
/// branches is left alone.
fn decided(code: &Code, start: BlockId, known: &Known) -> BlockId {
    let value = |register: RegId| known.get(&register).cloned();
    let mut at = start;
    let mut seen = FxHashSet::default();
    while seen.insert(at) {
        let block = code.block(at);
        let next = match &block.end {
            _ if !block.steps.is_empty() => return at,
            End::Goto(to) => *to,
            End::Branch(condition, yes, no) => match condition.substitute(&value, &code.registers) {
                Expr::Int(0) => *no,
                Expr::Int(_) => *yes,
                _ => return at,
            },
            _ => return at,
        };
        at = next;
    }
    start
}

/// Unrolls a loop. Returns whether there was one. Blocks of loops that could not be unrolled are remembered.
pub(crate) fn unroll(code: &mut Code, refused: &mut FxHashSet<BlockId>) -> bool {
    for blocks in loops(code) {
        let worth = blocks.iter().any(|&block| code.block(block).steps.iter().any(|step| worth(&step.kind)));
        if !worth || blocks.iter().any(|block| refused.contains(block)) {
            continue;
        }
        let wanted: FxHashSet<BlockId> = blocks.iter().copied().collect();
        match copies(code, &wanted) {
            Some((blocks, origins)) => {
                code.blocks = blocks;
                let all = origins.iter().enumerate().filter(|(_, origin)| refused.contains(origin));
                let moved: FxHashSet<BlockId> =
                    all.map(|(index, _)| BlockId(u32::try_from(index).expect("fewer than 2^32"))).collect();
                *refused = moved;
                return true;
            }
            None => refused.extend(wanted),
        }
    }
    false
}

/// The code with one copy of each block of a loop per set of known constants, and which block each one is a copy
/// of. `None` if that takes too many copies, or none.
fn copies(code: &Code, wanted: &FxHashSet<BlockId>) -> Option<(Vec<Block>, Vec<BlockId>)> {
    let liveness = Liveness::new(code);
    let facts = facts(code, &liveness);
    let mut copies: FxHashMap<(BlockId, Known), BlockId> = FxHashMap::default();
    let mut counts: FxHashMap<BlockId, usize> = FxHashMap::default();
    let mut blocks: Vec<Option<Block>> = vec![None];
    let mut origins = vec![BlockId(0)];
    let mut work = vec![(BlockId(0), Known::new(), BlockId(0))];
    copies.insert((BlockId(0), Known::new()), BlockId(0));
    while let Some((block, mut known, id)) = work.pop() {
        let (steps, mut end) = run(code, code.block(block), &mut known);
        let after = successors(code, &end, &known);
        let mut targets = after.into_iter().map(|(to, mut incoming)| {
            let live = liveness.live_in(to);
            incoming.retain(|register, _| live.contains(*register));
            // Outside the loops all paths share one copy.
            if !wanted.contains(&to) {
                incoming = facts[to.0 as usize].clone().unwrap_or_default();
            }
            *copies.entry((to, incoming.clone())).or_insert_with(|| {
                *counts.entry(to).or_insert(0) += 1;
                blocks.push(None);
                origins.push(to);
                let new = BlockId(u32::try_from(blocks.len() - 1).expect("fewer than 2^32 blocks"));
                work.push((to, incoming, new));
                new
            })
        });
        let targets: Vec<BlockId> = targets.by_ref().collect();
        let mut next = targets.into_iter();
        end.for_each_successor_mut(|to| *to = next.next().expect("one copy per successor"));
        let end_span = code.block(block).end_span;
        blocks[id.0 as usize] = Some(Block { steps, end, end_span });
        let many = counts.iter().find(|(_, count)| **count > MAX_COPIES).map(|(block, _)| *block);
        if many.is_some() || blocks.len() > MAX_BLOCKS {
            return None;
        }
    }
    if blocks.len() <= code.reachable().len() {
        return None;
    }
    let blocks = blocks.into_iter().map(|block| block.expect("every copy was made")).collect();
    Some((blocks, origins))
}

/// Whether a loop with this step gains by being unrolled.
fn worth(kind: &StepKind) -> bool {
    let mut found = matches!(
        kind,
        StepKind::Start { .. } | StepKind::Join { .. } | StepKind::Detach { .. } | StepKind::Allocate { .. }
    );
    kind.for_each_access(&mut |access| {
        found |= !access.pointer.is_constant() && access.pointer.base().is_some();
    });
    found
}

/// The loops: sets of blocks each of which can reach all others.
fn loops(code: &Code) -> Vec<Vec<BlockId>> {
    // Tarjan's algorithm with an explicit stack.
    let n = code.blocks.len();
    let (mut index, mut low) = (vec![usize::MAX; n], vec![0usize; n]);
    let mut on_stack = vec![false; n];
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let follow = |block: usize| {
        let mut all = Vec::new();
        code.blocks[block].end.for_each_successor(|to| all.push(to.0 as usize));
        all
    };
    let mut enter = |block: usize, index: &mut Vec<usize>, low: &mut Vec<usize>| {
        index[block] = next;
        low[block] = next;
        next += 1;
    };
    enter(0, &mut index, &mut low);
    stack.push(0);
    on_stack[0] = true;
    open.push((0, follow(0)));
    while let Some((block, rest)) = open.last_mut() {
        let block = *block;
        if let Some(to) = rest.pop() {
            if index[to] == usize::MAX {
                enter(to, &mut index, &mut low);
                stack.push(to);
                on_stack[to] = true;
                open.push((to, follow(to)));
            } else if on_stack[to] {
                low[block] = low[block].min(index[to]);
            }
            continue;
        }
        open.pop();
        if let Some((parent, _)) = open.last() {
            low[*parent] = low[*parent].min(low[block]);
        }
        if low[block] == index[block] {
            let mut component = Vec::new();
            while let Some(top) = stack.pop() {
                on_stack[top] = false;
                component.push(BlockId(u32::try_from(top).expect("fewer than 2^32 blocks")));
                if top == block {
                    break;
                }
            }
            if component.len() > 1 || follow(block).contains(&block) {
                found.push(component);
            }
        }
    }
    found
}

/// The blocks that control may enter more than once.
pub(crate) fn in_loops(code: &Code) -> FxHashSet<BlockId> {
    loops(code).into_iter().flatten().collect()
}
