//! Programs for which `safe` is claimed for any number of processes.
//!
//! The search works with a fixed number M of identities. What it finds holds for every number of processes because of
//! the theorem about programs whose identities are only names (`palisade_program`, `written/sorts.rs`):
//! 1. *Steps.* A step of a process in the program with N processes is, up to renaming, one in the program with M, if M
//!    is at least the number of identities that the step involves. [`known_at_once`] is a bound on that number, and the
//!    search uses more. By induction the thread states, and the values that cells can hold, are the same up to renaming.
//! 2. *Loops over all others* go through N - 1 processes. They are read as single steps ([`super::view`]), in any order,
//!    so that the order of identities does not matter.
//! 3. *Elements.* Every identity that an element does not name stands for all processes that it does not name. Steps
//!    that involve some of these name them first. If that would leave no identity that is not named, there is no proof.
//! 4. *Bad states.* The properties that are counted here are about at most [`MAX_COUNT`] processes with identities,
//!    wherever the others are. The same is true for a fault, which is about one. Of each choice of such processes, with
//!    the identities that they remember, there is a renaming among the M, or one that needs all of them, and then there
//!    is no proof. The cells with identities that a property names are fewer than M.
//! 5. *Values.* Cells without a domain hold the values that any number of processes can give them, not only those that M can.
//!
//! Violations need none of this: their runs are replayed.

use palisade_program::written::{BinaryOp, Expr, ExprKind, Observation, Program};

/// The most processes with identities that a property may be about.
const MAX_COUNT: i64 = 3;

/// How many identities one step involves, or why a proof would not cover the program.
pub(crate) fn known_at_once(program: &Program) -> Result<usize, &'static str> {
    let known = program.identities_are_names()?;
    let few = |condition: &Expr| counted(condition).is_some_and(|count| count <= MAX_COUNT);
    match program.properties.iter().all(|property| few(&property.condition)) {
        true => Ok(known),
        false => Err("a property is not about few processes at labels"),
    }
}

/// How many processes a condition is about: the sum of the numbers in `count(P@label) >= number`. `None` if it counts
/// in another way.
fn counted(condition: &Expr) -> Option<i64> {
    let of_count = |count: &Expr, number: &Expr| match (&count.kind, &number.kind) {
        (ExprKind::Observe(Observation::Count { .. }), ExprKind::Int(number)) => Some(*number),
        _ => None,
    };
    match &condition.kind {
        _ if !counts(condition) => Some(0),
        ExprKind::Binary(BinaryOp::And, a, b) => counted(a)?.checked_add(counted(b)?),
        ExprKind::Binary(BinaryOp::Or, a, b) => Some(counted(a)?.max(counted(b)?)),
        ExprKind::Binary(BinaryOp::Ge, a, b) => of_count(a, b),
        ExprKind::Binary(BinaryOp::Gt, a, b) => of_count(a, b)?.checked_add(1),
        _ => None,
    }
}

fn counts(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Observe(Observation::Count { .. }) => true,
        ExprKind::Unary(_, a) => counts(a),
        ExprKind::Binary(_, a, b) => counts(a) || counts(b),
        _ => false,
    }
}
