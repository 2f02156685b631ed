//! Whether `cas` could tell a variable that wraps around from one that does not.
//!
//! A store to a variable that wraps around stores what the number becomes there. `cas` does the same with the number
//! that it expects: in a variable of the domain 0..7, `cas(x, 11, v)` succeeds if x is 3. If the variable did not wrap, it
//! would never succeed. So the two are the same only if what `cas` expects is always in the domain.

use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Domain, Expr, ExprKind, Place, PlaceKind, Program, Rmw, StmtKind, UnaryOp, find_in_block,
};

/// Whether every `cas` that may be on this variable expects a number of the domain, as far as can be seen from the text.
pub(crate) fn expects_within(program: &Program, variable: &str, domain: Domain) -> bool {
    let templates = program.templates.iter().map(|template| &template.body);
    let mut bodies = templates.chain(program.procedures.iter().map(|procedure| &procedure.body));
    let search = Search { program, variable, domain };
    bodies.all(|body| find_in_block(body, &mut |e| search.may_differ(e).then_some(())).is_none())
}

struct Search<'p> {
    program: &'p Program,
    variable: &'p str,
    domain: Domain,
}

impl Search<'_> {
    /// Whether an expression is a `cas` that may be on the variable, and may expect another number.
    fn may_differ(&self, e: &Expr) -> bool {
        let ExprKind::Locked(Rmw::Cas, place, operands) = &e.kind else { return false };
        let may_be_on_it = match &place.kind {
            PlaceKind::Named(name) | PlaceKind::Element(name, _) => name.as_str() == self.variable,
            PlaceKind::Deref(_) => true,
        };
        may_be_on_it && !self.is_within(&operands[0])
    }

    /// Whether an expression has values of the domain only.
    fn is_within(&self, e: &Expr) -> bool {
        let from_to = |lo: Value, hi: Value| self.domain.contains(lo) && self.domain.contains(hi);
        match &e.kind {
            ExprKind::Int(value) => self.domain.contains(*value),
            ExprKind::Any { lo, hi } => from_to(*lo, *hi),
            ExprKind::Unary(UnaryOp::Neg, a) => {
                let ExprKind::Int(value) = a.kind else { return false };
                value.checked_neg().is_some_and(|value| self.domain.contains(value))
            }
            ExprKind::Bool(_)
            | ExprKind::Unary(UnaryOp::Not, _)
            | ExprKind::Locked(Rmw::Cas, ..)
            | ExprKind::Binary(
                BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::WordLt
                | BinaryOp::WordLe,
                ..,
            ) => from_to(0, 1),
            ExprKind::Read(Place { kind: PlaceKind::Named(name) | PlaceKind::Element(name, _), .. }) => {
                // A register is 0 before anything is assigned to it.
                let domains = self.domains_of(name.as_str());
                let fits = |domain: Domain| domain.bounds().is_some_and(|(lo, hi)| from_to(lo, hi));
                self.domain.contains(0) && domains.into_iter().all(fits)
            }
            _ => false,
        }
    }

    /// The domains of everything with this name, in any body.
    fn domains_of(&self, name: &str) -> Vec<Domain> {
        let Program { shared, privates, templates, procedures, .. } = self.program;
        let mut found = Vec::new();
        found.extend(shared.iter().filter(|shared| shared.name.as_str() == name).map(|one| one.ty.domain));
        found
            .extend(privates.iter().filter(|private| private.name.as_str() == name).map(|one| one.ty.domain));
        let templates = templates.iter().map(|template| (&template.params, &template.body));
        let bodies = templates.chain(procedures.iter().map(|one| (&one.params, &one.body)));
        for (params, body) in bodies {
            found.extend(params.iter().filter(|param| param.name.as_str() == name).map(|one| one.ty.domain));
            registers(body, name, &mut found);
        }
        found
    }
}

fn registers(block: &Block, wanted: &str, found: &mut Vec<Domain>) {
    for stmt in block {
        if let StmtKind::Let { name, ty, .. } = &stmt.kind
            && name.as_str() == wanted
        {
            found.push(ty.domain);
        }
        stmt.kind.blocks().into_iter().for_each(|inner| registers(inner, wanted, found));
    }
}
