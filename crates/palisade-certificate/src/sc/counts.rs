//! Conditions on numbers of threads that are known within bounds.
//!
//! A condition is evaluated to a range that contains all values it can take. If the range says that the
//! condition may be true, the numbers are split until they are known or the condition can no longer be true.
//! If that takes too many splits, the condition counts as true.

use palisade_base::Id;
use palisade_memory::Thread;
use palisade_program::Value;
use palisade_program::running::{
    BinaryOp, Condition, Location, PropertyKind, RoleId, System, UnaryOp, binary, unary,
};

/// The maximal number of splits for one condition.
const MAX_SPLITS: u32 = 1 << 13;

/// No upper bound.
pub(super) const ANY: u32 = u32::MAX;

/// A set of states: memory, threads that are present, and threads in numbers between two bounds.
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
        if splits > MAX_SPLITS {
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

/// All values that a condition can have without a fault; `None` if there are no such values. A condition with
/// a fault is not true.
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
            let reaches_b = a.may_be_true();
            Range::truth(
                reaches_b && b.is_some_and(Range::may_be_true),
                a.may_be_false() || (reaches_b && b.is_some_and(Range::may_be_false)),
            )
        }
        Condition::Binary(BinaryOp::Or, a, b) => {
            let (a, b) = (eval(a)?, eval(b));
            let reaches_b = a.may_be_false();
            Range::truth(
                a.may_be_true() || (reaches_b && b.is_some_and(Range::may_be_true)),
                reaches_b && b.is_some_and(Range::may_be_false),
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

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::{Id, Source};
    use palisade_memory::{Machine, Model, State};
    use palisade_program::running::CellId;
    use palisade_program::{Instantiation, lower};
    use palisade_syntax::{Language, parse};
    use std::sync::Arc;

    /// A program whose only property is of this kind. The test sets the condition.
    fn system(kind: &str) -> System {
        let text = format!(
            "shared x: 0..1; process Main {{ spawn A; spawn B; }}
             process A on spawn {{ a: skip; }} process B on spawn {{ b: skip; }} {kind} x == 1;"
        );
        let program = parse(Language::Pal, &Source::new("p", &text)).expect("a program").program;
        lower(&program, Instantiation { any: 1, every: None })
    }

    fn thread(system: &System, name: &str, ended: bool) -> Thread {
        let is_named = |role: &RoleId| system.role_code(*role).name == name;
        let role = system.roles.ids().find(is_named).expect("there is such a process");
        let mut thread = Thread::start(system, role);
        if ended {
            thread.frames[0].location = system.role_code(role).exit;
        }
        thread
    }

    fn here(thread: &Thread) -> (RoleId, Location) {
        (thread.role, thread.frames[0].location)
    }

    fn count(threads: &[&Thread]) -> Condition {
        Condition::Count(threads.iter().map(|thread| here(thread)).collect())
    }

    fn constant(value: Value) -> Condition {
        Condition::Const(value)
    }

    fn both(op: BinaryOp, a: &Condition, b: &Condition) -> Condition {
        Condition::Binary(op, Box::new(a.clone()), Box::new(b.clone()))
    }

    fn one(op: UnaryOp, a: &Condition) -> Condition {
        Condition::Unary(op, Box::new(a.clone()))
    }

    /// Whether one of the states is bad by the definition of the machine.
    fn is_one_bad(system: &System, situation: &Situation<'_>) -> bool {
        let machine = Machine::new(system, Model::Sc);
        let mut threads = vec![situation.named.iter().map(|&thread| thread.clone()).collect::<Vec<_>>()];
        for &(thread, least, most) in &situation.started {
            let numbers = least..=most.min(6);
            let more = |before: &Vec<Thread>| -> Vec<Vec<Thread>> {
                let with =
                    |number: u32| before.iter().cloned().chain((0..number).map(|_| thread.clone())).collect();
                numbers.clone().map(with).collect()
            };
            threads = threads.iter().flat_map(more).collect();
        }
        threads.into_iter().any(|threads| {
            let memory = situation.memory.to_vec().into();
            let threads = threads.into_iter().map(Arc::new).collect();
            let state = State { memory, threads, section: None, fault: None };
            machine.violation(&state).is_some()
        })
    }

    const BOUNDS: [(u32, u32); 8] = [(0, 0), (1, 1), (3, 3), (0, 1), (0, 2), (1, 2), (2, 3), (1, ANY)];

    fn check(system: &mut System, condition: Condition, situation: &Situation<'_>) {
        system.properties[0].bad = condition;
        let bounds: Vec<(u32, u32)> =
            situation.started.iter().map(|&(_, least, most)| (least, most)).collect();
        let (found, expected) = (may_be_bad(system, situation), is_one_bad(system, situation));
        // Without an upper bound, the splits may not suffice to decide it.
        let is_fine =
            if bounds.iter().all(|&(_, most)| most != ANY) { found == expected } else { found || !expected };
        assert!(is_fine, "{expected} with {bounds:?}: {:?}", system.properties[0].bad);
    }

    /// All conditions of a few kinds on numbers within bounds, compared with the definition of the machine.
    #[test]
    fn a_condition_may_hold_if_it_does_for_some_numbers() {
        use BinaryOp::{Add, And, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Sub};
        let mut system = system("forbid");
        let (main, a, b) =
            (thread(&system, "Main", false), thread(&system, "A", false), thread(&system, "B", false));
        let (ended, in_procedure) = (thread(&system, "A", true), {
            let mut other = a.clone();
            other.frames.push(a.frames[0].clone());
            other
        });
        let (of_a, of_b, of_all) = (count(&[&a]), count(&[&b]), count(&[&a, &b, &main]));
        let fault = both(Div, &constant(1), &constant(0));
        let mut conditions = vec![of_a.clone(), of_all.clone(), one(UnaryOp::Not, &of_a), fault.clone()];
        for op in [Eq, Ne, Lt, Le, Gt, Ge, Add, Sub, Mul, Div] {
            for number in [0, 2] {
                conditions.push(both(op, &of_a, &constant(number)));
                conditions.push(both(op, &constant(number), &of_a));
                conditions.push(both(op, &of_all, &constant(number)));
            }
            conditions.push(both(op, &of_a, &of_b));
            conditions.push(both(Eq, &both(op, &of_a, &of_b), &constant(2)));
            conditions.push(both(Eq, &both(op, &of_a, &of_b), &constant(-1)));
        }
        conditions.push(both(Eq, &one(UnaryOp::Neg, &of_a), &constant(-2)));
        conditions.push(both(Eq, &one(UnaryOp::BitNot, &of_a), &constant(-3)));
        let (two_a, one_b) = (both(Eq, &of_a, &constant(2)), both(Eq, &of_b, &constant(1)));
        let memory = Condition::Cell(CellId(0));
        for op in [And, Or] {
            for (left, right) in [(&two_a, &one_b), (&two_a, &fault), (&fault, &two_a), (&two_a, &memory)] {
                conditions.push(both(op, left, right));
                conditions.push(one(UnaryOp::Not, &both(op, left, right)));
            }
        }
        let mut tried = 0;
        for condition in conditions {
            for first in BOUNDS {
                for second in BOUNDS {
                    let (named, memory) = (vec![&main], &[0][..]);
                    let others = [(&ended, 0, 1), (&in_procedure, 0, 1)];
                    let numbers = [(&a, first.0, first.1), (&b, second.0, second.1)];
                    let started = numbers.into_iter().chain(others).collect();
                    check(&mut system, condition.clone(), &Situation { memory, named, started });
                    tried += 1;
                }
            }
        }
        assert!(tried > 4000, "{tried}");
    }

    /// A `final` condition is evaluated where all threads have ended. So the numbers of those that have not
    /// ended must be able to be 0.
    #[test]
    fn final_conditions_wait_for_all_threads() {
        let mut system = system("final");
        let [running, ended] = [false, true].map(|ended| thread(&system, "A", ended));
        let [main_runs, main_ended] = [false, true].map(|ended| thread(&system, "Main", ended));
        let of_running = both(BinaryOp::Ge, &count(&[&running]), &constant(1));
        let of_ended = both(BinaryOp::Eq, &count(&[&ended]), &constant(2));
        for condition in [Condition::Cell(CellId(0)), of_running, of_ended] {
            for named in [vec![], vec![&main_ended], vec![&main_runs], vec![&main_ended, &main_runs]] {
                for first in BOUNDS {
                    for second in BOUNDS {
                        let started = vec![(&running, first.0, first.1), (&ended, second.0, second.1)];
                        let situation = Situation { memory: &[1], named: named.clone(), started };
                        check(&mut system, condition.clone(), &situation);
                    }
                }
            }
        }
    }

    /// The ranges are as narrow as possible. Wider ones would cost splits.
    #[test]
    fn ranges_are_exact() {
        use BinaryOp::{Add, And, Eq, Ge, Gt, Le, Lt, Ne, Or, Sub};
        let system = system("forbid");
        let (a, b) = (thread(&system, "A", false), thread(&system, "B", false));
        let hull = |values: &[Value]| {
            let (least, most) = (values.iter().min()?, values.iter().max()?);
            Some(Range((*least).into(), (*most).into()))
        };
        let bounds = |(least, most): (u32, u32)| Value::from(least) - 1..=Value::from(most) - 1;
        for first in BOUNDS.into_iter().filter(|bounds| bounds.1 != ANY) {
            for second in BOUNDS.into_iter().filter(|bounds| bounds.1 != ANY) {
                let started = vec![(&a, first.0, first.1), (&b, second.0, second.1)];
                let situation = Situation { memory: &[0], named: Vec::new(), started };
                // Numbers from -1 on, so that there are some on both sides of 0.
                let [left, right] = [&a, &b].map(|thread| both(Sub, &count(&[thread]), &constant(1)));
                for op in [Add, Sub, Eq, Ne, Lt, Le, Gt, Ge, And, Or] {
                    let pairs = bounds(first).flat_map(|x| bounds(second).map(move |y| (x, y)));
                    let result = |(x, y): (Value, Value)| match op {
                        And => (x != 0 && y != 0).into(),
                        Or => (x != 0 || y != 0).into(),
                        _ => binary(op, x, y).expect("no fault"),
                    };
                    let all: Vec<Value> = pairs.map(result).collect();
                    let found = value(&both(op, &left, &right), &situation);
                    assert_eq!(found, hull(&all), "{op:?} of {first:?} and {second:?}, each less 1");
                }
                let all: Vec<Value> = bounds(first).map(|x| (x == 0).into()).collect();
                assert_eq!(value(&one(UnaryOp::Not, &left), &situation), hull(&all), "not {first:?} less 1");
            }
        }
        // An operation that faults has no value. An operand before it may have one.
        let fault = both(BinaryOp::Div, &constant(1), &constant(0));
        let situation = Situation { memory: &[0], named: Vec::new(), started: Vec::new() };
        let at = |condition: &Condition| value(condition, &situation);
        assert_eq!(at(&fault), None);
        for number in [0, 1] {
            let (decided, open) = if number == 0 { (And, Or) } else { (Or, And) };
            assert_eq!(at(&both(decided, &constant(number), &fault)), Some(Range::one(number)));
            assert_eq!(at(&both(open, &constant(number), &fault)), None);
            assert_eq!(at(&both(decided, &fault, &constant(number))), None);
        }
    }

    #[test]
    fn numbers_without_a_greatest_one() {
        let system = system("forbid");
        let a = thread(&system, "A", false);
        let may = |condition: Condition, least: u32| {
            may_hold(
                &condition,
                Situation { memory: &[0], named: Vec::new(), started: vec![(&a, least, ANY)] },
            )
        };
        assert!(!may(both(BinaryOp::Le, &count(&[&a]), &constant(2)), 3));
        assert!(may(both(BinaryOp::Le, &count(&[&a]), &constant(3)), 3));
        assert!(may(both(BinaryOp::Gt, &count(&[&a]), &constant(Value::from(u32::MAX) + 1)), 3));
        // No number of threads times 0 is true, but checking this for each number would take too long.
        assert!(may(both(BinaryOp::Mul, &count(&[&a]), &constant(0)), 1));
    }

    #[test]
    fn places_that_are_counted() {
        let mut system = system("forbid");
        let (a, b) = (thread(&system, "A", true), thread(&system, "B", true));
        let of_a = count(&[&a]);
        for condition in [
            of_a.clone(),
            one(UnaryOp::Not, &of_a),
            both(BinaryOp::And, &of_a, &constant(1)),
            both(BinaryOp::And, &constant(1), &of_a),
        ] {
            system.properties[0].bad = condition;
            assert!(is_counted(&system, here(&a).0, here(&a).1));
            assert!(!is_counted(&system, here(&a).0, Location(0)));
            assert!(!is_counted(&system, here(&b).0, here(&b).1));
        }
        system.properties[0].bad = Condition::Cell(CellId::from_index(0));
        assert!(!is_counted(&system, here(&a).0, here(&a).1));
    }
}
