//! How conditions depend on numbers of threads.
//!
//! Some conditions can only become true by more threads, such as `count(P@l) >= 2`. They make bad states
//! upward closed, so coverability decides them. Other conditions are handled if each count is compared by
//! itself with something that does not depend on the number of threads. Then it is enough to try numbers up
//! to one more than the value it is compared with.

use palisade_base::Id;
use palisade_memory::State;
use palisade_program::Value;
use palisade_program::running::{BinaryOp, Condition, Location, RoleId, UnaryOp, binary, unary};
use rustc_hash::FxHashSet;

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Up {
    /// More threads never decrease it.
    More,
    /// More threads never increase it.
    Less,
}

impl Up {
    fn turned(self) -> Up {
        match self {
            Up::More => Up::Less,
            Up::Less => Up::More,
        }
    }
}

/// Whether more threads can change the truth of a condition in this direction only: from false to true, or
/// from true to false.
pub(crate) fn truth_grows(condition: &Condition, up: Up) -> bool {
    use BinaryOp::{And, Ge, Gt, Le, Lt, Or};
    match condition {
        Condition::Count(_) => up == Up::More,
        Condition::Unary(UnaryOp::Not, a) => truth_grows(a, up.turned()),
        Condition::Binary(And | Or, a, b) => truth_grows(a, up) && truth_grows(b, up),
        Condition::Binary(Ge | Gt, a, b) => value_grows(a, up) && value_grows(b, up.turned()),
        Condition::Binary(Le | Lt, a, b) => value_grows(a, up.turned()) && value_grows(b, up),
        _ => !has_count(condition),
    }
}

/// Whether more threads can change the value of a term in this direction only.
fn value_grows(condition: &Condition, up: Up) -> bool {
    match condition {
        Condition::Binary(BinaryOp::Add, a, b) => value_grows(a, up) && value_grows(b, up),
        Condition::Binary(BinaryOp::Sub, a, b) => value_grows(a, up) && value_grows(b, up.turned()),
        _ => truth_grows(condition, up),
    }
}

/// Whether counts occur only by themselves and in comparisons of one count with something else.
pub(crate) fn is_simple(condition: &Condition) -> bool {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    let is_count = |condition: &Condition| matches!(condition, Condition::Count(_));
    match condition {
        Condition::Count(_) => true,
        Condition::Unary(UnaryOp::Not, a) => is_simple(a),
        Condition::Binary(And | Or, a, b) => is_simple(a) && is_simple(b),
        Condition::Binary(Eq | Ne | Ge | Gt | Le | Lt, a, b) => match (has_count(a), has_count(b)) {
            (true, true) => false,
            (true, false) => is_count(a),
            (false, true) => is_count(b),
            (false, false) => true,
        },
        _ => !has_count(condition),
    }
}

fn has_count(condition: &Condition) -> bool {
    match condition {
        Condition::Count(_) => true,
        Condition::Unary(_, a) => has_count(a),
        Condition::Binary(_, a, b) => has_count(a) || has_count(b),
        Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) | Condition::At(..) => false,
    }
}

/// Adds the places where threads are counted.
pub(crate) fn places(condition: &Condition, found: &mut FxHashSet<(RoleId, Location)>) {
    match condition {
        Condition::Count(counted) => found.extend(counted),
        Condition::Unary(_, a) => places(a, found),
        Condition::Binary(_, a, b) => {
            places(a, found);
            places(b, found);
        }
        Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) | Condition::At(..) => {}
    }
}

/// A number that no count needs to exceed for the condition to take every value it can take. The values that
/// counts are compared with are sums and differences of these numbers. Terms without counts that multiply are
/// evaluated.
pub(crate) fn size(condition: &Condition, state: &State) -> u64 {
    match condition {
        Condition::Const(value) => value.unsigned_abs(),
        Condition::Cell(cell) => state.memory[*cell].unsigned_abs(),
        Condition::Register(thread, register) => {
            state.threads[*thread].frames[0].registers[register.index()].unsigned_abs()
        }
        Condition::At(..) => 1,
        Condition::Count(_) => 0,
        Condition::Unary(_, a) => size(a, state).saturating_add(1),
        Condition::Binary(BinaryOp::Mul | BinaryOp::Shl, a, b) => {
            let (a, b) = (size(a, state), size(b, state));
            a.saturating_mul(b).max(1u64.checked_shl(b.min(63) as u32).unwrap_or(u64::MAX).saturating_mul(a))
        }
        Condition::Binary(_, a, b) => size(a, state).saturating_add(size(b, state)).saturating_add(1),
    }
}

/// Whether a condition may be true with this memory, whatever threads do.
pub(crate) fn may_hold(condition: &Condition, memory: &[Value]) -> bool {
    fn value(condition: &Condition, memory: &[Value]) -> Option<Value> {
        match condition {
            Condition::Const(value) => Some(*value),
            Condition::Cell(cell) => Some(memory[cell.index()]),
            Condition::Register(..) | Condition::At(..) | Condition::Count(_) => None,
            Condition::Unary(op, a) => unary(*op, value(a, memory)?).ok(),
            Condition::Binary(BinaryOp::And, a, b) => match (value(a, memory), value(b, memory)) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (Some(_), Some(_)) => Some(1),
                _ => None,
            },
            Condition::Binary(BinaryOp::Or, a, b) => match (value(a, memory)?, value(b, memory)?) {
                (0, 0) => Some(0),
                _ => Some(1),
            },
            Condition::Binary(op, a, b) => binary(*op, value(a, memory)?, value(b, memory)?).ok(),
        }
    }
    value(condition, memory) != Some(0)
}

/// The greatest number that is compared with a count.
pub(crate) fn greatest(condition: &Condition) -> Value {
    match condition {
        Condition::Unary(_, a) => greatest(a),
        Condition::Binary(_, a, b) => match (a.as_ref(), b.as_ref()) {
            (Condition::Count(_), Condition::Const(value))
            | (Condition::Const(value), Condition::Count(_)) => *value,
            (a, b) => greatest(a).max(greatest(b)),
        },
        _ => 0,
    }
}
