//! Threads that are started together, and threads that are joined together.
//!
//! *Problem.* A loop that starts n threads has n states between its steps, and each of them is combined with
//! everything that the threads do. The same goes for a loop that joins them.
//!
//! *How.*
//! 1. Where a thread starts several threads with nothing but computations in between, all of them wait for one
//!    cell, which is set when the last one is started. A thread that runs before the next one is started cannot
//!    notice this, nor can anyone notice that it has not run yet: the steps in between touch no memory that
//!    others access. So every state of the others is reached, with the same contents of memory, by a run in
//!    which the thread starts a little later.
//! 2. Where a thread joins several threads with nothing but computations in between, it waits for one cell that
//!    counts them. Until the last one has ended, the thread only computes, so waiting for all of them at once
//!    delays nothing that others could notice.
//!
//! Both hold only for threads that are started and joined at one known place, which control passes once.

use crate::expr::Expr;
use crate::flat::{Access, BlockId, Code, ObjectId, Step, StepKind};
use crate::memory::ThreadNumber;
use crate::propagate;
use crate::tidy::can_fail;
use palisade_program::written::Rmw;
use rustc_hash::{FxHashMap, FxHashSet};

/// Which threads are started and joined together.
#[derive(Default)]
pub(crate) struct Groups {
    /// For a thread that is started together with others, the last one of them.
    pub(crate) started_with: FxHashMap<ThreadNumber, ThreadNumber>,
    /// For a thread that is joined at one place, the last one of those joined there, and how many they are.
    pub(crate) joined_with: FxHashMap<ThreadNumber, (ThreadNumber, i64)>,
    /// Threads that are never joined.
    pub(crate) unjoined: FxHashSet<ThreadNumber>,
}

/// Finds the groups of a program. `results` are the threads whose results are read.
pub(crate) fn find(codes: &[&Code], threads: &[ThreadNumber], results: &FxHashSet<ThreadNumber>) -> Groups {
    let (mut starts, mut joins) = (FxHashMap::default(), FxHashMap::default());
    let (mut unknown_start, mut unknown_join) = (false, false);
    for code in codes {
        for block in code.reachable() {
            for step in &code.block(block).steps {
                match &step.kind {
                    StepKind::Start { thread: Expr::Int(thread), .. } => {
                        *starts.entry(*thread).or_insert(0) += 1;
                    }
                    StepKind::Join { thread: Expr::Int(thread), .. } => {
                        *joins.entry(*thread).or_insert(0) += 1;
                    }
                    StepKind::Start { .. } => unknown_start = true,
                    StepKind::Join { .. }
                    | StepKind::Detach { .. }
                    | StepKind::Finished { .. }
                    | StepKind::AwaitThreads => {
                        unknown_join = true;
                    }
                    _ => {}
                }
            }
        }
    }
    let mut groups = Groups::default();
    for code in codes {
        let again = propagate::in_loops(code);
        for block in code.reachable().into_iter().filter(|block| !again.contains(block)) {
            let start = |step: &Step| match &step.kind {
                StepKind::Start { thread: Expr::Int(thread), .. } => Some(*thread),
                _ => None,
            };
            for group in runs(code, block, &start).into_iter().filter(|_| !unknown_start) {
                let last = *group.last().expect("groups are not empty");
                if group.len() > 1 && group.iter().all(|thread| starts[thread] == 1) {
                    group.iter().for_each(|&thread| _ = groups.started_with.insert(thread, last));
                }
            }
            let join = |step: &Step| match &step.kind {
                StepKind::Join { thread: Expr::Int(thread), .. } if threads.contains(thread) => Some(*thread),
                _ => None,
            };
            for group in runs(code, block, &join).into_iter().filter(|_| !unknown_join) {
                let last = *group.last().expect("groups are not empty");
                let once = |thread: &ThreadNumber| joins[thread] == 1 && !results.contains(thread);
                if group.iter().all(once) {
                    let count = i64::try_from(group.len()).expect("few threads");
                    group.iter().for_each(|&thread| _ = groups.joined_with.insert(thread, (last, count)));
                }
            }
        }
    }
    if !unknown_join {
        let unjoined = threads.iter().copied().filter(|thread| !joins.contains_key(thread));
        groups.unjoined = unjoined.collect();
    }
    groups
}

/// The threads that steps of one kind name, with nothing but computations between those of one list.
fn runs(code: &Code, block: BlockId, of: &dyn Fn(&Step) -> Option<ThreadNumber>) -> Vec<Vec<ThreadNumber>> {
    let mut all = Vec::new();
    let mut run: Vec<ThreadNumber> = Vec::new();
    for step in &code.block(block).steps {
        match (&step.kind, of(step)) {
            (_, Some(thread)) => run.push(thread),
            (StepKind::Assign(_, e), None) if !can_fail(e) => {}
            _ if run.is_empty() => {}
            _ => all.push(std::mem::take(&mut run)),
        }
    }
    if !run.is_empty() {
        all.push(run);
    }
    all
}

/// Makes a thread wait for the cell of its group instead of its own.
pub(crate) fn wait_for(code: &mut Code, own: ObjectId, group: ObjectId) {
    for step in code.blocks.iter_mut().flat_map(|block| &mut block.steps) {
        if let StepKind::AwaitLoad { from, .. } = &mut step.kind
            && from.pointer == Expr::Address(own, 0)
        {
            from.pointer = Expr::Address(group, 0);
        }
    }
}

/// Makes a thread count itself in the cell of its group at its end, instead of setting its own; or do nothing if
/// no thread waits for it.
pub(crate) fn count_end(code: &mut Code, own: ObjectId, group: Option<ObjectId>) {
    for block in &mut code.blocks {
        block.steps.retain_mut(|step| {
            let StepKind::Locked { rmw, at: Access { pointer, .. }, operand, .. } = &mut step.kind else {
                return true;
            };
            if *pointer != Expr::Address(own, 0) || *rmw != Rmw::Exchange || *operand != Expr::Int(1) {
                return true;
            }
            if let Some(group) = group {
                *rmw = Rmw::FetchAdd;
                *pointer = Expr::Address(group, 0);
            }
            group.is_some()
        });
    }
}
