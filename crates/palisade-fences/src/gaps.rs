//! The gaps between statements, and programs with statements inserted into them.
//!
//! - A statement without labels and the one before it share a gap.
//! - There are two gaps before a statement with labels. The one before the labels is passed only by control
//!   that comes from the previous statement. The one after the labels is also passed by jumps to a label.
//! - Statements with the same position in the source count as one. No fence is written between them, with one
//!   exception: a jump at the end of such a group comes after anything inserted after the group. The gaps between
//!   them are [inner](Gap::inner) ones: what is next to a store changes there if the store itself is made stronger.
//! - There are no gaps inside atomic blocks, where buffers are empty.
//! - There are no gaps after jumps and endless loops, where control never passes.
//!
//! A loop returns to its labels. A fence between these and the loop would be passed only once, and the
//! process would no longer be at the label when it returns. If a property refers to the label, that would
//! change the property. So such a loop has no gap after its labels, only one before them.
//!
//! A gap is identified by its index in a walk over the program, so the same walk finds gaps and fills them.

use palisade_base::{Span, define_id, limits};
use palisade_program::written::{
    Block, Expr, ExprKind, Name, Observation, Place, PlaceKind, Program, ProgressKind, Stmt, StmtKind,
};
use rustc_hash::FxHashSet;

define_id!(
    /// A gap, by its index in a walk over the program.
    GapId
);

/// The body that a gap is in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BodyId {
    /// The body of a template, by its index.
    Template(usize),
    /// The body of a procedure, by its index.
    Procedure(usize),
}

/// A description of a gap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The body it is in.
    pub body: BodyId,
    /// The statement before it, if a fence in the gap can be written as one after that statement.
    pub preceding: Option<Span>,
    /// The statement after it, if a fence in the gap can be written as one before that statement.
    pub following: Option<Span>,
    /// Whether the statement before it stores to shared memory.
    pub after_write: bool,
    /// Whether the next action may be a load.
    pub before_read: bool,
    /// The first label of the statement after it, whether the gap is before or after the label.
    pub label: Option<String>,
    /// The first label of the statement before it.
    pub preceding_label: Option<String>,
    /// Whether there are only steps without memory access between it and the previous gap, so that a fence
    /// has the same effect in both.
    pub same_as_previous: bool,
    /// Whether it is between two statements with the same position in the source.
    pub inner: bool,
    /// The source position of the statement directly before it, if that is a store to shared memory and no full
    /// fence follows.
    pub store_before: Option<Span>,
    /// The source position of the statement directly after it, if that is a store to shared memory.
    pub store_after: Option<Span>,
    /// The source position of the statement directly after it, if that is a store-store fence.
    pub store_fence_after: Option<Span>,
}

/// All gaps of a program, in the order of the walk.
pub fn gaps(program: &Program) -> Vec<Gap> {
    let mut found = Vec::new();
    fill(program, &mut |_, gap| {
        found.push(gap);
        None
    });
    found
}

/// A program with statements inserted into gaps. If a gap is after labels, the labels move to the inserted
/// statement.
pub fn fill(program: &Program, content: &mut dyn FnMut(GapId, Gap) -> Option<Stmt>) -> Program {
    let shared = program.shared.iter().map(|shared| shared.name.as_str()).collect();
    let mut filled = program.clone();
    let mut walk = Walk { shared, observed: observed(program), content, next: 0 };
    for (index, template) in filled.templates.iter_mut().enumerate() {
        let name = template.name.to_string();
        walk.body(BodyId::Template(index), Some(name), &mut template.body);
    }
    for (index, procedure) in filled.procedures.iter_mut().enumerate() {
        walk.body(BodyId::Procedure(index), None, &mut procedure.body);
    }
    filled
}

struct Walk<'a> {
    shared: FxHashSet<&'a str>,
    /// Templates and their labels that properties refer to.
    observed: FxHashSet<(String, String)>,
    content: &'a mut dyn FnMut(GapId, Gap) -> Option<Stmt>,
    next: u32,
}

/// The surroundings of a block.
#[derive(Clone)]
struct Around {
    body: BodyId,
    /// Its template, if the block belongs to one.
    template: Option<String>,
    /// The source positions of the statements that contain the block.
    outer: Vec<Span>,
    /// Whether control goes from the end of the block to a condition with loads.
    then_reads: bool,
    /// The same for `continue`.
    continue_reads: bool,
}

impl Walk<'_> {
    fn body(&mut self, body: BodyId, template: Option<String>, block: &mut Block) {
        let around = Around { body, template, outer: Vec::new(), then_reads: false, continue_reads: false };
        self.block(block, &around);
    }

    fn block(&mut self, block: &mut Block, around: &Around) {
        let statements = std::mem::take(block);
        let mut previous: Option<Preceding> = None;
        let mut local_since_gap = false;
        for mut statement in statements {
            limits::checkpoint();
            let reads = self.reads_first(&statement.kind, around);
            let one = previous.as_ref().is_some_and(|preceding| {
                !statement.span().is_none()
                    && preceding.span == statement.span()
                    && statement.labels.is_empty()
            });
            let own = Some(statement.span()).filter(|span| !span.is_none());
            let stores = matches!(&statement.kind, StmtKind::Assign { place, .. } if self.is_shared(place));
            let gap = |preceding: Option<&Preceding>, following: bool, same: bool| Gap {
                body: around.body,
                preceding: preceding.and_then(|preceding| preceding.anchor),
                following: Some(statement.span())
                    .filter(|span| following && !span.is_none() && !around.outer.contains(span)),
                after_write: preceding.is_some_and(|preceding| preceding.writes),
                before_read: following && reads,
                label: first_label(&statement),
                preceding_label: preceding.and_then(|preceding| preceding.label.clone()),
                same_as_previous: same,
                inner: false,
                store_before: preceding
                    .and_then(|preceding| preceding.store)
                    .filter(|_| statement.kind != StmtKind::Fence),
                store_after: own.filter(|_| following && stores),
                store_fence_after: own.filter(|_| following && statement.kind == StmtKind::StoreFence),
            };
            let dead = previous.as_ref().is_some_and(|preceding| preceding.jumps);
            if one {
                if !dead {
                    let inner = !is_jump(&statement.kind);
                    let gap = gap(previous.as_ref(), inner, local_since_gap);
                    block.extend(self.fill_gap(Gap { inner, ..gap }));
                }
            } else if statement.labels.is_empty() {
                if !dead {
                    let gap = gap(previous.as_ref(), true, local_since_gap);
                    block.extend(self.fill_gap(gap));
                }
            } else {
                let returns = self.returns_to_observed_label(&statement, around);
                if let Some(preceding) = previous.as_ref().filter(|preceding| !preceding.jumps) {
                    let gap = gap(Some(preceding), false, local_since_gap);
                    block.extend(self.fill_gap(Gap { before_read: returns && reads, ..gap }));
                }
                if !returns {
                    let gap = gap(None, true, false);
                    if let Some(mut put) = self.fill_gap(gap) {
                        let own = std::mem::take(&mut put.labels);
                        put.labels = std::mem::take(&mut statement.labels);
                        put.labels.extend(own);
                        block.push(put);
                    }
                }
            }
            previous = Some(self.preceding(&statement, previous.as_ref().filter(|_| one)));
            local_since_gap = self.is_local(&statement) && (!one || local_since_gap);
            self.inside(&mut statement, around);
            block.push(statement);
        }
        if let Some(preceding) = previous.filter(|preceding| !preceding.jumps) {
            let gap = Gap {
                body: around.body,
                preceding: preceding.anchor,
                following: None,
                after_write: preceding.writes,
                before_read: around.then_reads,
                label: None,
                preceding_label: preceding.label,
                same_as_previous: local_since_gap,
                inner: false,
                store_before: preceding.store,
                store_after: None,
                store_fence_after: None,
            };
            block.extend(self.fill_gap(gap));
        }
    }

    /// Whether a statement is a loop that returns to one of its own labels that properties refer to.
    fn returns_to_observed_label(&self, statement: &Stmt, around: &Around) -> bool {
        let loops = matches!(statement.kind, StmtKind::While { .. } | StmtKind::Loop(_) | StmtKind::Await(_));
        let Some(template) = &around.template else { return false };
        let is_observed =
            |label: &Name| self.observed.contains(&(template.clone(), label.as_str().to_owned()));
        loops && statement.labels.iter().any(is_observed)
    }

    fn fill_gap(&mut self, gap: Gap) -> Option<Stmt> {
        let id = GapId(self.next);
        self.next += 1;
        (self.content)(id, gap)
    }

    /// The facts about a statement that the gap after it needs. `group` holds the facts about the preceding
    /// statements with the same source position.
    fn preceding(&self, statement: &Stmt, group: Option<&Preceding>) -> Preceding {
        let span = statement.span();
        // A fence after both would be written after the inner statement.
        let taken = span.is_none() || has_inside(&statement.kind, span);
        let writes = match &statement.kind {
            StmtKind::Assign { place, .. } => self.is_shared(place),
            _ => false,
        };
        Preceding {
            label: group.and_then(|group| group.label.clone()).or_else(|| first_label(statement)),
            span,
            anchor: (!taken).then_some(span),
            store: Some(span).filter(|_| writes && !span.is_none()),
            writes: writes || group.is_some_and(|group| group.writes && is_harmless(&statement.kind)),
            jumps: is_jump(&statement.kind) || is_endless(&statement.kind),
        }
    }

    fn inside(&mut self, statement: &mut Stmt, around: &Around) {
        let mut inner = around.clone();
        if !statement.span().is_none() {
            inner.outer.push(statement.span());
        }
        match &mut statement.kind {
            StmtKind::If { then, otherwise, .. } => {
                inner.then_reads = false;
                self.block(then, &inner);
                self.block(otherwise, &inner);
            }
            StmtKind::Choose(alternatives) => {
                inner.then_reads = false;
                alternatives.iter_mut().for_each(|block| self.block(block, &inner));
            }
            StmtKind::While { condition, body } => {
                let reads = self.loads(condition);
                let inner = Around { then_reads: reads, continue_reads: reads, ..inner };
                self.block(body, &inner);
            }
            StmtKind::Loop(body) => {
                let inner = Around { then_reads: false, continue_reads: false, ..inner };
                self.block(body, &inner);
            }
            StmtKind::Block(body) => {
                inner.then_reads = false;
                self.block(body, &inner);
            }
            _ => {}
        }
    }

    /// Whether the first memory access of a statement may be a load.
    fn reads_first(&self, kind: &StmtKind, around: &Around) -> bool {
        match kind {
            StmtKind::Let { init, .. } => init.as_ref().is_some_and(|init| self.loads(init)),
            StmtKind::Assign { place, value } => self.loads(value) || self.loads_address(place),
            StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                self.loads(e)
            }
            StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => self.loads(condition),
            StmtKind::Return(value) => value.as_ref().is_some_and(|value| self.loads(value)),
            StmtKind::Spawn { args, .. } => args.iter().any(|arg| self.loads(arg)),
            StmtKind::Continue => around.continue_reads,
            _ => false,
        }
    }

    /// Whether a statement does not access memory and passing it cannot be observed.
    fn is_local(&self, statement: &Stmt) -> bool {
        let local = |e: &Expr| !self.acts(e);
        match &statement.kind {
            StmtKind::Skip => true,
            StmtKind::Let { init, .. } => init.as_ref().is_none_or(local),
            StmtKind::Assign { place, value } => !self.is_shared(place) && local(value),
            StmtKind::Assume(e) | StmtKind::Assert(e, _) => local(e),
            _ => false,
        }
    }

    fn is_shared(&self, place: &Place) -> bool {
        match &place.kind {
            PlaceKind::Named(name) => self.shared.contains(name.as_str()),
            PlaceKind::Element(..) | PlaceKind::Deref(_) => true,
        }
    }

    /// Whether evaluating an expression loads from shared memory.
    fn loads(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Read(place) => self.is_shared(place) || self.loads_address(place),
            ExprKind::AddressOf(place) => self.loads_address(place),
            ExprKind::Unary(_, a) => self.loads(a),
            ExprKind::Binary(_, a, b) => self.loads(a) || self.loads(b),
            ExprKind::Locked(_, place, operands) => {
                self.loads_address(place) || operands.iter().any(|operand| self.loads(operand))
            }
            ExprKind::Call(_, args) => args.iter().any(|arg| self.loads(arg)),
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } | ExprKind::Observe(_) => false,
        }
    }

    fn loads_address(&self, place: &Place) -> bool {
        match &place.kind {
            PlaceKind::Named(_) => false,
            PlaceKind::Element(_, index) => self.loads(index),
            PlaceKind::Deref(address) => self.loads(address),
        }
    }

    /// Whether evaluating an expression does anything to memory, or might.
    fn acts(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Locked(..) | ExprKind::Call(..) => true,
            ExprKind::Unary(_, a) => self.acts(a),
            ExprKind::Binary(_, a, b) => self.acts(a) || self.acts(b),
            _ => self.loads(e),
        }
    }
}

/// The facts about a statement that the gap after it needs.
struct Preceding {
    label: Option<String>,
    span: Span,
    anchor: Option<Span>,
    /// The position of the statement, if it is a store.
    store: Option<Span>,
    writes: bool,
    jumps: bool,
}

/// The labels that properties refer to, with their templates.
fn observed(program: &Program) -> FxHashSet<(String, String)> {
    fn collect(e: &Expr, found: &mut FxHashSet<(String, String)>) {
        match &e.kind {
            ExprKind::Observe(Observation::At { process, label }) => {
                found.insert((process.template.to_string(), label.to_string()));
            }
            ExprKind::Observe(Observation::Count { template, label }) => {
                found.insert((template.to_string(), label.to_string()));
            }
            ExprKind::Unary(_, a) => collect(a, found),
            ExprKind::Binary(_, a, b) => {
                collect(a, found);
                collect(b, found);
            }
            _ => {}
        }
    }
    let mut found = FxHashSet::default();
    program.properties.iter().for_each(|property| collect(&property.condition, &mut found));
    for progress in &program.progress {
        if let ProgressKind::Live(condition) = &progress.kind {
            collect(condition, &mut found);
        }
    }
    found
}

fn first_label(statement: &Stmt) -> Option<String> {
    statement.labels.first().map(|label| label.as_str().to_owned())
}

fn is_jump(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Goto(_) | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_))
}

/// Whether control leaves a statement only by jumps: a `loop` without a `break` of its own.
fn is_endless(kind: &StmtKind) -> bool {
    fn breaks(block: &Block) -> bool {
        block.iter().any(|statement| match &statement.kind {
            StmtKind::Break => true,
            StmtKind::If { then, otherwise, .. } => breaks(then) || breaks(otherwise),
            StmtKind::Choose(alternatives) => alternatives.iter().any(breaks),
            StmtKind::Atomic(body) | StmtKind::Block(body) => breaks(body),
            _ => false,
        })
    }
    matches!(kind, StmtKind::Loop(body) if !breaks(body))
}

/// Whether the last action is still the store when this statement follows a store with the same source
/// position.
fn is_harmless(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Skip | StmtKind::Goto(_) | StmtKind::Let { init: None, .. })
}

/// Whether a statement inside this one has that source position.
fn has_inside(kind: &StmtKind, span: Span) -> bool {
    let any = |block: &Block| block.iter().any(|inner| inner.span() == span || has_inside(&inner.kind, span));
    kind.blocks().into_iter().any(any)
}
