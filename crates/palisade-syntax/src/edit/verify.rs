//! Whether a program is another one with fences.

use palisade_base::limits;
use palisade_program::written::{Block, Program, Stmt, StmtKind};
use rustc_hash::FxHashSet;

/// Whether the second program is the first one when the fences at the given places of its text are taken
/// away, and all of them are there.
pub(super) fn same_but_for(original: &Program, mut fenced: Program, places: &[usize]) -> bool {
    let mut taken = Taken { places: places.iter().copied().collect(), found: FxHashSet::default() };
    fenced.templates.iter_mut().for_each(|template| taken.block(&mut template.body));
    fenced.procedures.iter_mut().for_each(|procedure| taken.block(&mut procedure.body));
    taken.found.len() == taken.places.len() && fenced == *original
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

struct Taken {
    places: FxHashSet<usize>,
    found: FxHashSet<usize>,
}

impl Taken {
    /// Takes the fences out of a block; their labels go to what follows.
    fn block(&mut self, block: &mut Block) {
        let mut labels = Vec::new();
        let mut kept = Block::with_capacity(block.len());
        for mut statement in block.drain(..) {
            limits::go_on();
            let start = statement.span().start as usize;
            let is_fence = is_fence(&statement);
            labels.append(&mut statement.labels);
            if is_fence && self.places.contains(&start) {
                self.found.insert(start);
                continue;
            }
            statement.labels.append(&mut labels);
            self.inside(&mut statement);
            kept.push(statement);
        }
        if let Some(last) = labels.last() {
            // A label with nothing behind it.
            let span = last.span();
            kept.push(Stmt { labels, ..Stmt::new(StmtKind::Skip, span) });
        }
        *block = kept;
    }

    fn inside(&mut self, statement: &mut Stmt) {
        match &mut statement.kind {
            StmtKind::If { then, otherwise, .. } => {
                self.block(then);
                self.block(otherwise);
            }
            StmtKind::Choose(alternatives) => alternatives.iter_mut().for_each(|body| self.block(body)),
            StmtKind::While { body, .. }
            | StmtKind::Loop(body)
            | StmtKind::Atomic(body)
            | StmtKind::Block(body) => self.block(body),
            _ => {}
        }
    }
}
