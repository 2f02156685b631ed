//! Checks that a program is the original one plus fences.

use palisade_base::limits;
use palisade_program::written::{Block, Program, Stmt, StmtKind};
use rustc_hash::FxHashSet;

/// Whether removing the fences at the given positions turns the second program into the first. Every position
/// must have a fence.
pub(super) fn same_but_for(original: &Program, mut fenced: Program, positions: &[usize]) -> bool {
    let mut remover =
        FenceRemover { positions: positions.iter().copied().collect(), removed: FxHashSet::default() };
    fenced.templates.iter_mut().for_each(|template| remover.block(&mut template.body));
    fenced.procedures.iter_mut().for_each(|procedure| remover.block(&mut procedure.body));
    remover.removed.len() == remover.positions.len() && fenced == *original
}

/// A fence, perhaps under a condition.
fn is_fence(statement: &Stmt) -> bool {
    match &statement.kind {
        StmtKind::Fence | StmtKind::StoreFence => true,
        StmtKind::If { then, otherwise, .. } => {
            otherwise.is_empty() && matches!(then.as_slice(), [only] if is_fence(only))
        }
        _ => false,
    }
}

struct FenceRemover {
    positions: FxHashSet<usize>,
    removed: FxHashSet<usize>,
}

impl FenceRemover {
    /// Removes the fences from a block. Their labels move to the next statement.
    fn block(&mut self, block: &mut Block) {
        let mut labels = Vec::new();
        let mut kept = Block::with_capacity(block.len());
        for mut statement in block.drain(..) {
            limits::checkpoint();
            let start = statement.span().start as usize;
            let is_fence = is_fence(&statement);
            labels.append(&mut statement.labels);
            if is_fence && self.positions.contains(&start) {
                self.removed.insert(start);
                continue;
            }
            statement.labels.append(&mut labels);
            statement.kind.blocks_mut().into_iter().for_each(|body| self.block(body));
            kept.push(statement);
        }
        if let Some(last) = labels.last() {
            // A label with no statement after it.
            let span = last.span();
            kept.push(Stmt { labels, ..Stmt::new(StmtKind::Skip, span) });
        }
        *block = kept;
    }
}
