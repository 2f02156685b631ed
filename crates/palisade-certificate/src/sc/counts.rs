//! Conditions on numbers of threads that are known within bounds.
//!
//! A condition is evaluated to a range that holds all values it can take. Where the range says that it may be true, the numbers are split until they are known or it may no longer be; if that does
//! not end soon, it counts as true.

use palisade_base::Id;
use palisade_memory::Thread;
use palisade_program::Value;
use palisade_program::running::{
    BinaryOp, Condition, Location, PropertyKind, RoleId, System, UnaryOp, binary, unary,
};

/// How often numbers are split for one condition.
const MOST_SPLITS: u32 = 1 << 13;

/// No greatest number.
pub(super) const ANY: u32 = u32::MAX;

/// A set of states: memory, threads that are there, and threads in numbers between two bounds.
#[derive(Clone)]
pub(super) struct Situation<'a> {
    pub memory: &'a [Value],
    pub named: Vec<&'a Thread>,
    pub started: Vec<(&'a Thread, u32, u32)>,
}

/// Whether one of the states, none of which is in an atomic section, may violate a property.
pub(super) fn may_be_bad(system: &System, situation: &Situation<'_>) -> bool {
    system.properties.iter().any(|property| {
        let mut situation = situation.clone();
        if property.kind == PropertyKind::Final {
            let (ended, running): (Vec<_>, Vec<_>) =
                situation.started.into_iter().partition(|(thread, ..)| thread.has_ended(system));
            if !situation.named.iter().all(|thread| thread.has_ended(system))
                || running.iter().any(|&(_, least, _)| least > 0)
            {
                return false;
            }
            situation.started = ended;
        }
        may_hold(&property.bad, situation)
    })
}

fn may_hold(condition: &Condition, situation: Situation<'_>) -> bool {
    let mut parts = vec![situation];
    let mut splits = 0;
    while let Some(situation) = parts.pop() {
        if !value(condition, &situation).is_some_and(Range::may_be_true) {
            continue;
        }
        let open = situation.started.iter().position(|&(thread, least, most)| {
            least < most && counts(condition, &|places| is_there(thread, places))
        });
        let Some(open) = open else { return true };
        splits += 1;
        if splits > MOST_SPLITS {
            return true;
        }
        let (thread, least, most) = situation.started[open];
        for (least, most) in [(least + 1, most), (least, least)] {
            let mut part = situation.clone();
            part.started[open] = (thread, least, most);
            parts.push(part);
        }
    }
    false
}

/// Where threads are counted.
type Places = [(RoleId, Location)];

/// Whether some count of a condition has such places.
fn counts(condition: &Condition, wanted: &dyn Fn(&Places) -> bool) -> bool {
    match condition {
        Condition::Count(places) => wanted(places),
        Condition::Unary(_, a) => counts(a, wanted),
        Condition::Binary(_, a, b) => counts(a, wanted) || counts(b, wanted),
        Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) | Condition::At(..) => false,
    }
}

/// Whether a property counts the threads of a role at a location.
pub(super) fn is_counted(system: &System, role: RoleId, location: Location) -> bool {
    let wanted = |places: &Places| places.contains(&(role, location));
    system.properties.iter().any(|property| counts(&property.bad, &wanted))
}

fn is_there(thread: &Thread, places: &Places) -> bool {
    places.iter().any(|&(role, location)| thread.role == role && thread.is_at(location))
}

/// All numbers from the first to the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range(i128, i128);

/// All values.
const ALL: Range = Range(Value::MIN as i128, Value::MAX as i128);

impl Range {
    fn one(value: Value) -> Range {
        Range(value.into(), value.into())
    }

    fn single(self) -> Option<Value> {
        (self.0 == self.1).then(|| Value::try_from(self.0).ok()).flatten()
    }

    fn may_be_true(self) -> bool {
        self != Range(0, 0)
    }

    fn may_be_false(self) -> bool {
        self.0 <= 0 && 0 <= self.1
    }

    /// A truth value.
    fn truth(may_be_true: bool, may_be_false: bool) -> Option<Range> {
        (may_be_true || may_be_false).then(|| Range((!may_be_false).into(), may_be_true.into()))
    }
}

/// All values that a condition can have without a fault; `None` if there are none. A condition with a fault is not true.
fn value(condition: &Condition, situation: &Situation<'_>) -> Option<Range> {
    let eval = |condition: &Condition| value(condition, situation);
    match condition {
        Condition::Const(value) => Some(Range::one(*value)),
        Condition::Cell(cell) => Some(Range::one(situation.memory[cell.index()])),
        Condition::Register(thread, register) => {
            Some(Range::one(situation.named[thread.index()].frames[0].registers[register.index()]))
        }
        Condition::At(thread, location) => {
            Some(Range::one(situation.named[thread.index()].is_at(*location).into()))
        }
        Condition::Count(places) => {
            let named = situation.named.iter().filter(|thread| is_there(thread, places)).count() as i128;
            let started = situation.started.iter().filter(|(thread, ..)| is_there(thread, places));
            Some(started.fold(Range(named, named), |Range(lo, hi), &(_, least, most)| {
                let most = if most == ANY { Value::MAX } else { most.into() };
                Range(lo + i128::from(least), hi + i128::from(most))
            }))
        }
        Condition::Unary(op, a) => {
            let a = eval(a)?;
            match (a.single(), op) {
                (Some(a), _) => unary(*op, a).ok().map(Range::one),
                (None, UnaryOp::Not) => Range::truth(a.may_be_false(), a.may_be_true()),
                (None, UnaryOp::Neg | UnaryOp::BitNot) => Some(ALL),
            }
        }
        Condition::Binary(BinaryOp::And, a, b) => {
            let (a, b) = (eval(a)?, eval(b));
            let goes_on = a.may_be_true();
            Range::truth(
                goes_on && b.is_some_and(Range::may_be_true),
                a.may_be_false() || (goes_on && b.is_some_and(Range::may_be_false)),
            )
        }
        Condition::Binary(BinaryOp::Or, a, b) => {
            let (a, b) = (eval(a)?, eval(b));
            let goes_on = a.may_be_false();
            Range::truth(
                a.may_be_true() || (goes_on && b.is_some_and(Range::may_be_true)),
                goes_on && b.is_some_and(Range::may_be_false),
            )
        }
        Condition::Binary(op, a, b) => {
            let (a, b) = (eval(a)?, eval(b)?);
            match (a.single(), b.single()) {
                (Some(a), Some(b)) => binary(*op, a, b).ok().map(Range::one),
                _ => ranged(*op, a, b),
            }
        }
    }
}

fn ranged(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    let meet = a.0 <= b.1 && b.0 <= a.1;
    match op {
        BinaryOp::Add => Some(Range(a.0 + b.0, a.1 + b.1)),
        BinaryOp::Sub => Some(Range(a.0 - b.1, a.1 - b.0)),
        BinaryOp::Lt => Range::truth(a.0 < b.1, a.1 >= b.0),
        BinaryOp::Ge => Range::truth(a.1 >= b.0, a.0 < b.1),
        BinaryOp::Gt => Range::truth(a.1 > b.0, a.0 <= b.1),
        BinaryOp::Le => Range::truth(a.0 <= b.1, a.1 > b.0),
        BinaryOp::Eq => Range::truth(meet, true),
        BinaryOp::Ne => Range::truth(true, meet),
        _ => Some(ALL),
    }
}
