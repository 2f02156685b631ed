//! Starts of processes, and two rewrites of the automata for proofs that say so.
//!
//! # Starts
//! If stores are delayed ([`Starts::Drained`]), nothing else is pending when a process is started. Otherwise, where the
//! invariant says that no store of the parent is pending, the parent's buffer is empty in the machine. A
//! fence before the start changes nothing there. So the start needs an empty load buffer, and everything that the new
//! process sees is propagated after it. Elsewhere, the new process may see older memory, and its stores may come before
//! pending ones of its parent. There the start is a local step, and any number of such processes may be there from the
//! beginning. That only adds runs.
//!
//! # Rewrites
//! 1. A store to a class m and the fence after it become one locked store, if m is not a start, all edges into m
//!    are stores, all edges out of it are fences to other classes, and properties do not distinguish the states
//!    of m from those after the fence.
//! 2. A read by the only writer of a cell is a local step, or is never taken, where the invariant leaves one value.
//!
//! # Why this is sound
//! 1. Let a process p store and later take the fence, in a run of the load-buffer semantics. The fence needs an
//!    empty buffer. So whatever is in p's buffer after the store can be deleted, what is propagated to p before the
//!    fence can be left out, and p can take the fence immediately after its store. Other processes see neither
//!    p's class nor its buffer. What remains is a store after which p's buffer is empty. The rules for a locked
//!    store say the same. In a run that ends with p at m, p can take the fence at once as well. Then p is at a
//!    class that has the same states of properties, so if the end was bad, it is still bad.
//! 2. Stores reach memory at once, and no other process writes the cell. While p's newest store is in its buffer,
//!    p reads it. When it is not, all older messages are gone too, since messages are deleted from the old end. The
//!    newer ones on the cell have that value, or the initial one if p never wrote. The invariant says that this
//!    is what memory holds. So p can read that value and no other, whatever its buffer holds. Memory still has
//!    the value, so it can be propagated again and read without deleting anything that p needs.

use crate::flow::{Act, Flow};
use crate::invariant::Invariant;
use palisade_automata::{Automata, Automaton, Hold, Letter, Local, Starts};
use palisade_base::{Id, limits};
use palisade_program::Value;
use palisade_program::running::{Condition, Location, RegId, RoleId, System};

/// An edge between classes; `None` if it has no effect.
pub(crate) type ClassEdge = (u32, u32, Option<Act>);

/// What the rewrites depend on.
pub(crate) struct Rewrite<'a> {
    pub system: &'a System,
    pub automata: &'a Automata,
    pub classes: &'a [Vec<u32>],
    pub invariant: &'a Invariant,
    /// The automata before, for which the invariant holds.
    pub flow: &'a Flow,
    pub starts: Starts,
    /// Whether the proof is about rewritten automata.
    pub rewritten: bool,
}

/// What properties see of a thread of some role.
#[derive(Clone, PartialEq, Eq)]
struct Look {
    judged: bool,
    ended: bool,
    fault: bool,
    at: Vec<Location>,
    registers: Vec<Value>,
}

impl Rewrite<'_> {
    /// Whether a process may have pending stores in a class. Processes get there by silent steps from the classes
    /// about which the invariant says something.
    fn may_have_pending(&self, kind: usize, class: u32) -> bool {
        if self.starts == Starts::Drained {
            return false;
        }
        let mut before = self.flow.kinds[kind].before[class as usize].iter();
        before.any(|&class| self.invariant.may_have_pending(kind as u32, class))
    }

    /// Whether processes of an automaton are started where stores may be pending.
    pub fn starts_anytime(&self, child: u32) -> bool {
        self.automata.automata.iter().enumerate().any(|(kind, automaton)| {
            automaton.edges.iter().any(|edge| {
                let class = self.classes[kind][edge.source.index()];
                edge.letter == Letter::Spawn(child) && self.may_have_pending(kind, class)
            })
        })
    }

    /// The edges of an automaton, with starts as they are treated, and rewritten if the proof says so.
    pub fn apply(&self, kind: usize, is_start: &[bool], mut edges: Vec<ClassEdge>) -> Vec<ClassEdge> {
        for (source, _, act) in &mut edges {
            if matches!(act, Some(Act::Spawn(_))) && self.may_have_pending(kind, *source) {
                *act = None;
            }
        }
        match self.rewritten {
            true => self.rewrite(kind, is_start, &edges),
            false => edges,
        }
    }

    fn rewrite(&self, kind: usize, is_start: &[bool], edges: &[ClassEdge]) -> Vec<ClassEdge> {
        let looks = Looks::new(self.system, &self.automata.automata[kind], &self.classes[kind], is_start);
        let counts = |edge: &&ClassEdge| edge.0 != edge.1 || edge.2.is_some();
        let mut only_stores = vec![true; is_start.len()];
        let mut only_fences = vec![true; is_start.len()];
        let mut has_fence = vec![false; is_start.len()];
        for (source, target, act) in edges.iter().filter(counts) {
            limits::checkpoint();
            only_stores[*target as usize] &= matches!(act, Some(Act::Write(..)));
            let fence = *act == Some(Act::Fence) && source != target && looks.are_alike(*source, *target);
            only_fences[*source as usize] &= fence;
            has_fence[*source as usize] |= fence;
        }
        let between = |class: u32| {
            let class = class as usize;
            !is_start[class] && only_stores[class] && only_fences[class] && has_fence[class]
        };
        let mut rewritten = Vec::new();
        for (source, target, act) in edges {
            if between(*source) {
                // The fence is part of the store.
                continue;
            }
            match act {
                Some(act @ Act::Write(..)) if between(*target) => {
                    for (_, after, _) in edges.iter().filter(|edge| edge.0 == *target).filter(counts) {
                        let act = Act::Locked { guard: Vec::new(), effect: act.writes() };
                        rewritten.push((*source, *after, Some(act)));
                    }
                }
                Some(Act::Read(cell, value)) => {
                    match self.invariant.only_value(kind as u32, *cell, *source) {
                        Some(only) if only == *value => rewritten.push((*source, *target, None)),
                        Some(_) => {}
                        None => rewritten.push((*source, *target, act.clone())),
                    }
                }
                act => rewritten.push((*source, *target, act.clone())),
            }
        }
        rewritten
    }
}

/// What properties see of the states of each class. `None` if that is not the same for all of them.
pub(crate) struct Looks<'a> {
    of_class: Vec<Option<Look>>,
    is_start: &'a [bool],
}

impl<'a> Looks<'a> {
    pub fn new(system: &System, automaton: &Automaton, classes: &[u32], is_start: &'a [bool]) -> Looks<'a> {
        let (mut locations, mut registers) = (Vec::new(), Vec::new());
        for property in &system.properties {
            look_at(system, automaton.role, &property.bad, &mut locations, &mut registers);
        }
        let look = |local: &Local| Look {
            judged: local.hold == Hold::Outside,
            ended: local.thread.has_ended(system),
            fault: local.fault.is_some(),
            at: locations.iter().copied().filter(|&location| local.thread.is_at(location)).collect(),
            registers: registers.iter().map(|r| local.thread.frames[0].registers[r.index()]).collect(),
        };
        let mut looks: Vec<Option<Look>> = vec![None; is_start.len()];
        let mut differ = vec![false; is_start.len()];
        for (state, local) in automaton.states.iter_enumerated() {
            limits::checkpoint();
            let class = classes[state.index()] as usize;
            let seen = look(local);
            differ[class] |= looks[class].as_ref().is_some_and(|other| *other != seen);
            looks[class] = Some(seen);
        }
        let of_class = looks.into_iter().zip(differ).map(|(look, differ)| look.filter(|_| !differ));
        Looks { of_class: of_class.collect(), is_start }
    }

    /// Whether properties do not distinguish the states of two classes.
    pub fn are_alike(&self, a: u32, b: u32) -> bool {
        let (a, b) = (a as usize, b as usize);
        self.is_start[a] == self.is_start[b]
            && self.of_class[a].as_ref().is_some_and(|look| self.of_class[b].as_ref() == Some(look))
    }
}

/// What a condition looks at in threads of a role.
fn look_at(
    system: &System,
    role: RoleId,
    condition: &Condition,
    locations: &mut Vec<Location>,
    registers: &mut Vec<RegId>,
) {
    match condition {
        Condition::Const(_) | Condition::Cell(_) => {}
        Condition::Register(thread, register) => {
            if system.instances[*thread].role == role {
                registers.push(*register);
            }
        }
        Condition::At(thread, location) => {
            if system.instances[*thread].role == role {
                locations.push(*location);
            }
        }
        Condition::Count(places) => {
            locations.extend(places.iter().filter(|place| place.0 == role).map(|place| place.1));
        }
        Condition::Unary(_, a) => look_at(system, role, a, locations, registers),
        Condition::Binary(_, a, b) => {
            look_at(system, role, a, locations, registers);
            look_at(system, role, b, locations, registers);
        }
    }
}
