//! How threads run where any number of them may be started: the policy of the thread automaton.
//!
//! *Guarantee.* A thread waits in these places:
//! - where it may access memory, start a thread, or open or close an atomic section;
//! - at the head of a loop;
//! - where its next step changes what `forbid` properties see.
//!
//! All other steps concern no other thread, and there are finitely many in a row. So they are taken together
//! with the step before them: whatever others do in between, they can do before or after.

use crate::views::loop_heads;
use palisade_automata::on_demand::{
    self, Access, Arrival, Birth, Identity, LocalId, Offer, OneWay, Policy, Reached, ThreadAutomaton,
};
use palisade_automata::{After, Hold, Local, Observer, StepKind, ThreadMachine};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Machine};
use palisade_program::running::{CellId, Instr, Liveness, Location, RoleId};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Thread states and their moves.
pub(crate) type Tokens<'a> = ThreadAutomaton<'a, Crowding>;
pub(crate) type Target = on_demand::Target<Option<Child>>;

/// A thread that is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Child {
    pub role: RoleId,
    pub wakes: Wakes,
}

/// When a new thread takes its first local steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wakes {
    AtOnce,
    /// Its parent is in an atomic section.
    Later,
}

/// The threads of a program without recursion, under SC.
pub(crate) fn tokens(machine: Machine<'_>, liveness: Arc<Liveness>) -> Tokens<'_> {
    let system = machine.system;
    let heads = system.codes.iter().map(loop_heads).collect();
    let policy = Crowding { observer: Observer::new(system), heads };
    ThreadAutomaton::new(ThreadMachine::new(machine, liveness, usize::MAX, false), policy, &[()])
}

/// How threads run.
pub(crate) struct Crowding {
    observer: Observer,
    /// The heads of loops, by code.
    pub heads: Vec<FxHashSet<Location>>,
}

impl Crowding {
    /// The local steps of a thread state that does not wait.
    fn passes_through(&self, machine: &ThreadMachine<'_>, local: &Local) -> Option<Vec<(Action, Local)>> {
        let top = local.thread.top();
        if local.fault.is_some() || self.heads[top.code.index()].contains(&top.location) {
            return None;
        }
        let view = self.observer.view(local);
        let code = &machine.machine.system.codes[top.code];
        let mut steps = Vec::new();
        for edge in machine.edges(local) {
            let sections = matches!(code.edges()[edge].instr, Instr::AtomicBegin | Instr::AtomicEnd);
            if sections || machine.kind(local, edge) != StepKind::Local {
                return None;
            }
            for action in machine.actions(local, edge) {
                let Some(after) = machine.step(local, action, None) else { continue };
                if after.local.fault.is_some() || self.observer.view(&after.local) != view {
                    return None;
                }
                steps.push((action, after.local));
            }
        }
        (!steps.is_empty()).then_some(steps)
    }
}

impl Policy for Crowding {
    type Way = OneWay;
    type Letter = Access;
    type Note = ();
    type Mark = Option<Child>;

    fn reads(access: Access) -> Option<CellId> {
        access.reads()
    }

    fn offers(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        OneWay: OneWay,
        (): &mut (),
    ) -> Vec<Offer<Access>> {
        Offer::all(machine, local)
    }

    fn run_on(
        &mut self,
        machine: &ThreadMachine<'_>,
        _: Option<&Local>,
        after: After,
        OneWay: OneWay,
    ) -> Vec<Arrival<Option<Child>>> {
        let wakes = if after.local.hold == Hold::Outside { Wakes::AtOnce } else { Wakes::Later };
        let child = after.child.map(|child| Child { role: child.thread.role, wakes });
        let mut arrivals = Vec::new();
        let mut seen: FxHashSet<Local> = FxHashSet::default();
        let mut work = vec![(after.local, Vec::new())];
        while let Some((local, actions)) = work.pop() {
            limits::checkpoint();
            if !seen.insert(local.clone()) {
                continue;
            }
            match self.passes_through(machine, &local) {
                Some(steps) => {
                    for (action, next) in steps.into_iter().rev() {
                        work.push((next, actions.iter().copied().chain([action]).collect()));
                    }
                }
                None => arrivals.push(Arrival::at(local, actions, child)),
            }
        }
        arrivals
    }

    /// The two searches differ in when a child takes its first steps.
    fn birth(&self, _: &Local) -> Birth {
        Birth::InMark
    }

    fn identify(&mut self, _: &ThreadMachine<'_>, _: &Local, _: LocalId, _: Reached<()>) -> Identity<()> {
        Identity::New(())
    }
}
