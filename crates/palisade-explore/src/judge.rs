//! Judging packed states: the properties of the program over thread states and value codes.
//!
//! This repeats, on packed states, the definition that `Machine::violation` gives for states. Every bad state
//! found this way is replayed against that definition. For data races, what a thread was about to access in its last
//! local steps counts as well; see [`palisade_automata::run_on`].

use crate::automaton::Automaton;
use crate::flags::{Flags, OfThreads};
use crate::layout::{Field, Layout};
use palisade_automata::on_demand::LocalId;
use palisade_base::Id;
use palisade_memory::{Fault, NextAccess};
use palisade_program::Value;
use palisade_program::running::{BinaryOp, Condition, Property, PropertyKind, System, binary, unary};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a property is judged.
struct Rule<'a> {
    property: &'a Property,
    /// Whether the condition is certainly false while no thread is at a location that a `forbid` looks at.
    needs_location: bool,
}

/// Judges states.
pub(crate) struct Judge<'a> {
    rules: Vec<Rule<'a>>,
    /// Whether a state was judged in which all threads have ended and all buffers are empty.
    ended: AtomicBool,
}

impl<'a> Judge<'a> {
    pub fn new(system: &'a System) -> Judge<'a> {
        let rule = |property: &'a Property| Rule {
            needs_location: property.kind == PropertyKind::Forbid && !may_hold_elsewhere(&property.bad),
            property,
        };
        Judge { rules: system.properties.iter().map(rule).collect(), ended: AtomicBool::new(false) }
    }

    /// Whether a state was judged in which all threads have ended and all buffers are empty.
    pub fn has_seen_end(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Notes that another process has judged such a state.
    pub fn note_end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether the state is bad.
    pub fn is_bad(&self, automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> bool {
        let flags = |field: &Field| automaton.note(LocalId(field.get(state))).flags;
        let OfThreads { some, two } =
            layout.threads.iter().fold(OfThreads::default(), |all, field| all.and(flags(field)));
        let (faulted, finished) = (some.has(Flags::FAULTED), !some.has(Flags::UNFINISHED));
        let judged = !some.has(Flags::ENTERED | Flags::UNJUDGED);
        let (at_seen, drained) = (some.has(Flags::AT_SEEN), !some.has(Flags::PENDING));
        if finished && !faulted {
            self.ended.store(true, Ordering::Relaxed);
        }
        faulted
            || judged && two.has(Flags::MAY_RACE) && self.is_race(automaton, layout, state)
            || self.rules.iter().any(|rule| {
                let now = match rule.property.kind {
                    PropertyKind::Forbid => {
                        judged
                            && (at_seen || !rule.needs_location)
                            && (drained || !rule.property.reads_memory)
                    }
                    PropertyKind::Final => finished,
                };
                let at = Packed { automaton, layout, state };
                now && at.evaluate(&rule.property.bad).is_ok_and(|value| value != 0)
            })
    }
}

impl Judge<'_> {
    /// Whether two threads are in a data race, or were before their last local steps.
    fn is_race(&self, automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> bool {
        let threads = layout.threads.iter().map(|field| LocalId(field.get(state)));
        let racing = threads.filter(|&local| automaton.note(local).flags.has(Flags::MAY_RACE));
        let model = automaton.machine.machine.model;
        let next = |local| automaton.policy.observer.last_accesses(model, automaton.local(local));
        let mut seen: SmallVec<[Vec<NextAccess>; 4]> = SmallVec::new();
        for accesses in racing.map(next) {
            let races = |other: &NextAccess| accesses.iter().any(|access| access.races_with(*other));
            if seen.iter().flatten().any(races) {
                return true;
            }
            seen.push(accesses);
        }
        false
    }
}

/// Whether the condition may be true while no thread is at a location it mentions.
fn may_hold_elsewhere(condition: &Condition) -> bool {
    // The value with all locations and counts set to 0, if that determines it. Otherwise the condition may be
    // true.
    fn value(condition: &Condition) -> Option<Value> {
        match condition {
            Condition::Const(value) => Some(*value),
            Condition::At(..) | Condition::Count(_) => Some(0),
            Condition::Cell(_) | Condition::Register(..) => None,
            Condition::Unary(op, a) => unary(*op, value(a)?).ok(),
            Condition::Binary(BinaryOp::And, a, b) => match (value(a), value(b)) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (Some(a), Some(b)) => Some((a != 0 && b != 0).into()),
                _ => None,
            },
            Condition::Binary(op, a, b) => binary(*op, value(a)?, value(b)?).ok(),
        }
    }
    value(condition) != Some(0)
}

/// The value of a condition in a packed state.
pub(crate) fn value(
    automaton: &Automaton<'_>,
    layout: &Layout,
    state: &[u64],
    condition: &Condition,
) -> Result<Value, Fault> {
    Packed { automaton, layout, state }.evaluate(condition)
}

struct Packed<'s, 'a> {
    automaton: &'s Automaton<'a>,
    layout: &'s Layout,
    state: &'s [u64],
}

impl Packed<'_, '_> {
    fn evaluate(&self, condition: &Condition) -> Result<Value, Fault> {
        match condition {
            Condition::Const(value) => Ok(*value),
            Condition::Cell(cell) => {
                Ok(self.automaton.values.value(*cell, self.layout.cells[*cell].get(self.state)))
            }
            Condition::Register(thread, register) => {
                let local = self.automaton.local(self.layout.thread(self.state, thread.index()));
                Ok(local.thread.frames[0].registers[register.index()])
            }
            Condition::At(thread, location) => {
                let local = self.automaton.local(self.layout.thread(self.state, thread.index()));
                Ok(local.thread.is_at(*location).into())
            }
            Condition::Count(places) => {
                let threads =
                    self.layout.threads.iter().map(|field| field.get(self.state)).filter(|&id| id != 0);
                let there = threads.filter(|&id| {
                    let thread = &self.automaton.local(LocalId(id)).thread;
                    places.iter().any(|&(role, location)| thread.role == role && thread.is_at(location))
                });
                Ok(there.count() as Value)
            }
            Condition::Unary(op, a) => unary(*op, self.evaluate(a)?),
            Condition::Binary(BinaryOp::And, a, b) => {
                Ok((self.evaluate(a)? != 0 && self.evaluate(b)? != 0).into())
            }
            Condition::Binary(BinaryOp::Or, a, b) => {
                Ok((self.evaluate(a)? != 0 || self.evaluate(b)? != 0).into())
            }
            Condition::Binary(op, a, b) => binary(*op, self.evaluate(a)?, self.evaluate(b)?),
        }
    }
}
