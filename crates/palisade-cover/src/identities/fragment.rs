//! Programs for which `safe` is claimed for any number of processes.
//!
//! The search works with a fixed number of identities and checks on its automata that it treats them alike. That says
//! nothing about what only larger numbers of processes can show: a constant that no identity of the search reaches, a
//! property that needs more processes than the search has, an `atomic` step that reads many identities at once, an
//! address. So the answer `safe` is limited to programs that cannot tell how many processes there are:
//! - Beside the processes with identities there are single processes only, and no procedures.
//! - At most [`MAX_CELLS`] cells hold an identity.
//! - Numbers and bounds of domains are at most [`MAX_NUMBER`].
//! - There is no `atomic` block, no address, and no choice other than that of an identity.
//! - Properties are assertions, or forbid numbers of processes at labels, at most [`MAX_COUNT`] in all.
//!
//! Violations need no such limits: their runs are replayed.

use palisade_program::written::{
    BinaryOp, Block, Count, Domain, Expr, ExprKind, Identities, Observation, Place, PlaceKind, Program,
    PropertyKind, StmtKind, Type,
};

const MAX_CELLS: usize = 2;
const MAX_NUMBER: i64 = 3;
const MAX_COUNT: i64 = 3;

/// Why a proof would not cover the program, if that is so.
pub(crate) fn outside(program: &Program) -> Option<&'static str> {
    let identities = program.identities.as_ref()?;
    let fragment = Fragment { identities };
    let single = |count: Count| count == Count::Fixed(1);
    let others = program.templates.iter().filter(|template| template.name.as_str() != &*identities.process);
    if !others.clone().all(|template| single(template.count) && template.params.is_empty()) {
        return Some("there are several processes of another kind");
    }
    if !program.procedures.is_empty() || !program.privates.is_empty() {
        return Some("there are procedures or private variables");
    }
    let holds = program.shared.iter().filter(|shared| identities.is_identity(shared.ty.domain));
    if holds.clone().count() > MAX_CELLS || holds.clone().any(|shared| shared.len.is_some()) {
        return Some("too many cells hold an identity");
    }
    if !program.shared.iter().all(|shared| shared.at.is_none() && fragment.ty(&shared.ty)) {
        return Some("a domain has too many values");
    }
    let property = |condition: &Expr| counted(condition).is_some_and(|count| count <= MAX_COUNT);
    if !program.properties.iter().all(|p| p.kind == PropertyKind::Forbid && property(&p.condition)) {
        return Some("a property is not about few processes at labels");
    }
    let within = program.templates.iter().all(|template| fragment.block(&template.body));
    (!within).then_some("it computes with large numbers, addresses, arbitrary numbers or atomic blocks")
}

/// The sum of the numbers in a conjunction of conditions `count(P@label) >= number`.
fn counted(condition: &Expr) -> Option<i64> {
    match &condition.kind {
        ExprKind::Binary(BinaryOp::And, a, b) => counted(a)?.checked_add(counted(b)?),
        ExprKind::Binary(BinaryOp::Ge, a, b) => match (&a.kind, &b.kind) {
            (ExprKind::Observe(Observation::Count { .. }), ExprKind::Int(number)) => Some(*number),
            _ => None,
        },
        _ => None,
    }
}

struct Fragment<'p> {
    identities: &'p Identities,
}

impl Fragment<'_> {
    fn ty(&self, ty: &Type) -> bool {
        match ty.domain {
            Domain::Bool => true,
            Domain::Range { lo, hi } => lo >= 0 && hi <= MAX_NUMBER,
            domain => self.identities.is_identity(domain),
        }
    }

    fn block(&self, block: &Block) -> bool {
        block.iter().all(|stmt| {
            let here = match &stmt.kind {
                StmtKind::Let { ty, init, .. } => {
                    self.ty(ty) && init.as_ref().is_none_or(|init| self.is_any(ty, init) || self.expr(init))
                }
                StmtKind::Assign { place, value } => self.place(place) && self.expr(value),
                StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                    self.expr(e)
                }
                StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => self.expr(condition),
                StmtKind::Atomic(_) | StmtKind::Spawn { .. } | StmtKind::Return(Some(_)) => false,
                _ => true,
            };
            here && stmt.kind.blocks().into_iter().all(|inner| self.block(inner))
        })
    }

    /// Whether this is any identity, or none.
    fn is_any(&self, ty: &Type, init: &Expr) -> bool {
        let all = ExprKind::Any { lo: 0, hi: self.identities.number.into() };
        self.identities.is_identity(ty.domain) && init.kind == all
    }

    fn expr(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Int(number) => *number <= MAX_NUMBER,
            ExprKind::Bool(_) => true,
            ExprKind::Read(place) => self.place(place),
            ExprKind::Unary(_, a) => self.expr(a),
            ExprKind::Binary(_, a, b) => self.expr(a) && self.expr(b),
            ExprKind::Locked(_, place, operands) => {
                self.place(place) && operands.iter().all(|operand| self.expr(operand))
            }
            ExprKind::AddressOf(_) | ExprKind::Call(..) | ExprKind::Any { .. } | ExprKind::Observe(_) => {
                false
            }
        }
    }

    fn place(&self, place: &Place) -> bool {
        match &place.kind {
            PlaceKind::Named(_) => true,
            PlaceKind::Element(_, e) => self.expr(e),
            PlaceKind::Deref(_) => false,
        }
    }
}
