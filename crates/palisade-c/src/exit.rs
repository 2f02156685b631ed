//! The end of the program: which threads still run when `main` returns, and what was allocated.
//!
//! *Problem.* When `main` returns, threads that still run are cut off, and memory that was not freed is lost. Neither
//! is an error of the language, but both are worth a warning.
//!
//! *How.* In the translation for [`Aim::Exit`](crate::Aim)
//! 1. `main` asserts before it returns that every thread that was started, and not detached, has ended;
//! 2. then it lets the threads that were never started end, so that the program has a final state;
//! 3. every thread stores at its end how many objects it has allocated at each place. No other thread uses these
//!    cells.
//!
//! [`may_outlive`] decides from the text alone whether a thread may still run. Most programs join all their threads,
//! and no search is needed to see that.

use crate::cells::{Cells, number_at};
use crate::expr::{self, Expr};
use crate::flat::{Access, BlockId, Code, End, ObjectId, RegId, Step, StepKind, Written};
use crate::heap::Heap;
use crate::layout::Layout;
use crate::memory::{Memory, ThreadNumber};
use palisade_base::Span;
use palisade_program::written::{BinaryOp, Check};
use rustc_hash::FxHashSet;

/// An object that the program may allocate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// The address of its first byte; -1 if it is not used.
    pub address: i64,
    /// Its size in bytes; 0 if it is not used.
    pub size: i64,
    /// The cell that shows whether it was freed, by the address of its declaration.
    pub first: Option<i64>,
    /// The cell that holds, at the end, how many objects of its pool were allocated.
    pub counter: i64,
    /// Which of them it is, from 0.
    pub index: i64,
    /// The place that allocates it.
    pub span: Span,
}

/// A pool of objects, and the cell that holds at the end how many were allocated.
pub(crate) struct Counter {
    cell: ObjectId,
    objects: Vec<ObjectId>,
}

/// Whether a thread may still run when the thread that started it ends, as far as the text says.
pub(crate) fn may_outlive(threads: &[(ThreadNumber, &Code)]) -> bool {
    threads.iter().any(|(_, code)| leaves_children(code))
}

/// Whether a path leads to the end of a thread on which it has started a thread and not joined it.
fn leaves_children(code: &Code) -> bool {
    let mut running: Vec<Option<FxHashSet<ThreadNumber>>> = vec![None; code.blocks.len()];
    running[0] = Some(FxHashSet::default());
    let mut work = vec![BlockId(0)];
    while let Some(block) = work.pop() {
        let mut now = running[block.0 as usize].clone().expect("blocks in the list were reached");
        let mut fails = false;
        for step in &code.block(block).steps {
            match &step.kind {
                StepKind::Start { thread: Expr::Int(thread), .. } => _ = now.insert(*thread),
                StepKind::Start { .. } => return true,
                StepKind::Join { thread: Expr::Int(thread), .. } => _ = now.remove(thread),
                StepKind::AwaitThreads => now.clear(),
                StepKind::Assert(Expr::Int(0), _) => fails = true,
                _ => {}
            }
        }
        if fails {
            continue;
        }
        if matches!(code.block(block).end, End::Stop | End::Over) && !now.is_empty() {
            return true;
        }
        code.block(block).end.for_each_successor(|to| {
            let known = &mut running[to.0 as usize];
            let before = known.as_ref().map(FxHashSet::len);
            let known = known.get_or_insert_default();
            known.extend(now.iter().copied());
            if before != Some(known.len()) {
                work.push(to);
            }
        });
    }
    false
}

/// Replaces the step at the end of the program: what `main` does between blocks `from` and `to`.
pub(crate) fn expand_end(
    code: &mut Code,
    (from, to): (BlockId, BlockId),
    span: Span,
    threads: &[Cells],
    checks: Checks,
) {
    let mut here = from;
    for cells in threads.iter().filter(|_| checks.running) {
        let started = code.new_register("", 32);
        let load = |to, cell| StepKind::Load { to, from: number_at(cell), written: Written::Needed };
        let (running, next) = (code.new_block(), code.new_block());
        let is_started = expr::binary(BinaryOp::Eq, Expr::Reg(started), Expr::Int(1), &code.registers);
        push(code, here, load(started, cells.started), span);
        end(code, here, End::Branch(is_started, running, next), span);
        let ended = code.new_register("", 32);
        push(code, running, load(ended, cells.ended), span);
        let mut fine = expr::binary(BinaryOp::Ne, Expr::Reg(ended), Expr::Int(0), &code.registers);
        if checks.detaches {
            let detached = code.new_register("", 32);
            push(code, running, load(detached, cells.detached), span);
            let released = expr::binary(BinaryOp::Ne, Expr::Reg(detached), Expr::Int(0), &code.registers);
            fine = expr::binary(BinaryOp::Or, fine, released, &code.registers);
        }
        push(code, running, StepKind::Assert(fine, Check::AllEnded), span);
        end(code, running, End::Goto(next), span);
        here = next;
    }
    for cells in threads {
        let (at, expected, new) = (number_at(cells.started), Expr::Int(0), Expr::Int(NEVER_STARTED));
        push(code, here, StepKind::Cas { old: None, done: None, at, expected, new }, span);
    }
    end(code, here, End::Goto(to), span);
}

/// What the cell of a thread holds that `main` lets end without having started it.
pub(crate) const NEVER_STARTED: i64 = 2;

/// What `main` checks at the end of the program.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// Whether it returns, and asserts that no thread still runs.
    pub(crate) running: bool,
    /// Whether threads are detached.
    pub(crate) detaches: bool,
}

fn push(code: &mut Code, block: BlockId, kind: StepKind, span: Span) {
    code.block_mut(block).steps.push(Step { kind, span });
}

fn end(code: &mut Code, block: BlockId, end: End, span: Span) {
    let block = code.block_mut(block);
    (block.end, block.end_span) = (end, span);
}

/// Makes a thread store at its end how many objects it has allocated at each place. `ended` is the cell that it sets
/// when it ends. Returns the registers that count, and their cells.
///
/// This comes before anything is simplified: later, these registers would not be read at the end.
pub(crate) fn count_allocations(
    code: &mut Code,
    name: &str,
    ended: Option<ObjectId>,
    memory: &mut Memory<'_>,
) -> Vec<(RegId, ObjectId)> {
    let steps = code.blocks.iter().flat_map(|block| &block.steps);
    let counts: Vec<RegId> = steps
        .filter_map(|step| match step.kind {
            StepKind::Allocate { count, .. } => Some(count),
            _ => None,
        })
        .collect();
    let counted: Vec<(RegId, ObjectId)> =
        counts.into_iter().map(|count| (count, memory.add_cell(format!("{name}.allocated"), 3, 0))).collect();
    let sets_ended = |step: &Step| match &step.kind {
        StepKind::ProgramEnds { .. } => true,
        StepKind::Locked { at, .. } => ended.is_some_and(|cell| at.pointer == Expr::Address(cell, 0)),
        _ => false,
    };
    for id in code.reachable() {
        let block = code.block_mut(id);
        let fails = block.steps.iter().any(|step| matches!(step.kind, StepKind::Assert(Expr::Int(0), _)));
        if !matches!(block.end, End::Stop | End::Over) || fails {
            continue;
        }
        let at = block.steps.iter().position(sets_ended).unwrap_or(block.steps.len());
        let stores = counted.iter().map(|(count, cell)| {
            let to = Access { pointer: Expr::Address(*cell, 0), size: 3, plain: false };
            Step { kind: StepKind::Store { to, value: Expr::Reg(*count) }, span: Span::NONE }
        });
        let stores: Vec<Step> = stores.collect();
        block.steps.splice(at..at, stores);
    }
    counted
}

/// The pools of a thread and the cells that count their objects. `None` if one place allocates objects of several
/// shapes, whose numbers are not known separately.
pub(crate) fn counters(code: &Code, counted: &[(RegId, ObjectId)]) -> Option<Vec<Counter>> {
    let pools: Vec<(RegId, Vec<ObjectId>)> = code.sites.iter().map(|site| site.pool()).collect();
    let mut found = Vec::new();
    for (count, objects) in &pools {
        let (_, cell) = counted.iter().find(|(counted, _)| counted == count)?;
        if pools.iter().filter(|(other, _)| other == count).count() > 1 {
            return None;
        }
        found.push(Counter { cell: *cell, objects: objects.clone() });
    }
    Some(found)
}

/// The address of an object that is not used.
const NOWHERE: i64 = -1;

/// The objects of all pools.
pub(crate) fn allocations(
    counters: &[Counter],
    layout: &Layout,
    memory: &Memory<'_>,
    heap: &Heap,
) -> Vec<Allocation> {
    let mut found = Vec::new();
    for counter in counters {
        let Some(address_of_counter) = layout.known_address(counter.cell) else { continue };
        for (index, &object) in counter.objects.iter().enumerate() {
            let of_memory = memory.object(object);
            // Without an address, the object is not used, and nothing can lead to it.
            let (address, size) = match layout.known_address(object) {
                Some(address) => (address, of_memory.size),
                None => (NOWHERE, 0),
            };
            let first = heap.first_leaf(object).filter(|_| address != NOWHERE);
            let first = first.map(|leaf| (address + leaf.offset) * 8 + i64::from(leaf.size));
            found.push(Allocation {
                address,
                size,
                first,
                counter: address_of_counter * 8 + 3,
                index: i64::try_from(index).expect("pools are small"),
                span: of_memory.span,
            });
        }
    }
    found
}
