//! The on-demand thread automaton does what the machine does, one step at a time, and keeps its invariants.

use palisade_automata::on_demand::{
    Access, Arrival, Birth, Identity, LocalId, Need, Offer, OneWay, Policy, Reached, ThreadAutomaton,
};
use palisade_automata::{After, Local, ThreadMachine};
use palisade_base::Id;
use palisade_conformance::{Profile, generate};
use palisade_memory::{Machine, Model};
use palisade_program::running::{CellId, Liveness};
use palisade_program::{Instantiation, lower};
use std::sync::Arc;

/// The number of thread states to visit.
const MAX_STATES: usize = 300;
/// The number of values to read from a cell.
const MAX_VALUES: u64 = 4;

/// A thread waits after every step. A thread that has ended becomes "no thread".
struct EveryStep;

impl Policy for EveryStep {
    type Way = OneWay;
    type Letter = Access;
    type Note = ();
    type Mark = ();

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
        _: &ThreadMachine<'_>,
        _: Option<&Local>,
        after: After,
        OneWay: OneWay,
    ) -> Vec<Arrival<()>> {
        vec![Arrival::at(after.local, Vec::new(), ())]
    }

    fn birth(&self, _: &Local) -> Birth {
        Birth::Asleep
    }

    fn identify(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        _: LocalId,
        _: Reached<()>,
    ) -> Identity<()> {
        let ended = local.fault.is_none() && local.thread.has_ended(machine.machine.system);
        if ended { Identity::SameAs(LocalId::NONE) } else { Identity::New(()) }
    }
}

#[test]
fn outcomes_are_steps_of_the_machine() {
    let mut steps = 0;
    for seed in 1..=40 {
        for profile in Profile::ALL {
            let system = lower(&generate(profile, seed), Instantiation { any: 1, every: None });
            let liveness = Arc::new(Liveness::new(&system));
            let machine =
                || ThreadMachine::new(Machine::new(&system, Model::Sc), liveness.clone(), usize::MAX, false);
            let mut automaton = ThreadAutomaton::new(machine(), EveryStep, &[()]);
            let machine = machine();
            system.roles.ids().for_each(|role| _ = automaton.starts(role));
            let mut next = 1;
            while next < automaton.numbers().min(MAX_STATES) {
                let id = LocalId::from_index(next);
                assert!(
                    automaton.moves(id, OneWay).is_none(),
                    "the moves are not computed before they are needed"
                );
                let local = automaton.local(id).clone();
                for mv in automaton.work_out_moves(id, OneWay).to_vec() {
                    let read = mv.letter.reads();
                    let codes = read.map_or(1, |cell| automaton.values.size(cell).clamp(1, MAX_VALUES));
                    for code in 0..codes as u32 {
                        let known = read.is_none_or(|cell| u64::from(code) < automaton.values.size(cell));
                        if !known {
                            continue;
                        }
                        automaton.supply(Need::Outcome(mv.number(), code, OneWay));
                        let targets = automaton.outcome(&mv, code, OneWay).expect("it was just supplied");
                        let value = read.map(|cell| (cell, automaton.values.value(cell, code)));
                        let Some(after) = machine.step(&local, mv.action, value) else {
                            assert!(targets.is_empty(), "the machine does not allow {mv:?} in {local:?}");
                            continue;
                        };
                        let [target] = targets else {
                            panic!("one step leads to one place, not {targets:?}")
                        };
                        if target.local == LocalId::NONE {
                            assert!(after.local.thread.has_ended(&system), "{:?}", after.local);
                        } else {
                            assert_eq!(*automaton.local(target.local), after.local);
                        }
                        let wrote = target.write().zip(mv.letter.cell());
                        let wrote = wrote.map(|(code, cell)| (cell, automaton.values.value(cell, code)));
                        assert_eq!(wrote, after.write);
                        steps += 1;
                    }
                }
                next += 1;
            }
            automaton.check_invariants();
        }
    }
    assert!(steps > 4_000, "{steps}");
}
