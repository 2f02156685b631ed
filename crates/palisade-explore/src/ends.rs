//! Where runs end: the values of chosen variables and registers when a run is over (`palisade outcomes`).
//!
//! *Problem.* Which combinations of values can the observed cells and registers have in a *final state*:
//! every thread is at its end and every buffer is empty?
//!
//! *Guarantee.*
//! - Every outcome reported is the outcome of some run.
//! - If nothing is [missing](Outcomes::missing), every outcome of every run is reported.
//! - A [dead end](Outcomes::dead_ends) is reported only if some reachable state has no final state after it.
//!   Not every such state is found: threads may keep each other busy forever, and with collapsed steps a
//!   thread that reads a value and then blocks is taken to wait for another value.
//!
//! *Why the reductions keep all final states.* The search is the one for bad states. Its observed conditions
//! are those of `final` properties, so registers that are observed are never taken as 0, and threads whose
//! registers are observed are not interchangeable. In a final state no step is possible.
//! 1. *Persistent sets* keep every state without steps (Godefroid, theorem 4.3): in a run to such a state,
//!    some step of the set is taken, and it can be taken first. A step that faults ends the run, so it is on
//!    no run to a final state, and it cannot come between.
//! 2. *Collapsed local steps* are taken in every run to a final state, because the thread reaches its end.
//!    They commute with the steps of others, so the run that takes them at once ends in the same state. A
//!    thread that gets stuck never ends, so nothing is lost where it is forgotten.
//! 3. *Symmetry* exchanges threads of one role that no observed condition names. That changes no observed value.
//!    Threads that differ in data are not exchanged.
//! 4. *Chains* leave out states with one successor. Final states have none, and here they are stored.
//!
//! *Differences from the search for bad states.* The search does not stop at a final state. States after a
//! fault are not expanded. States without successors are stored, so that dead ends are seen.

use crate::automaton::Automaton;
use crate::flags::Flags;
use crate::judge;
use crate::layout::Layout;
use crate::search::Goal;
use crate::{Bounded, Searches, pump};
use palisade_automata::on_demand::LocalId;
use palisade_base::Span;
use palisade_engine::{Limits, Options, Reached, Reason, Stats};
use palisade_memory::Machine;
use palisade_program::Value;
use palisade_program::running::{Condition, Liveness, Property, PropertyKind, System};
use palisade_trace::Run;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The ends of runs.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// The values of the observed conditions in final states. A condition whose evaluation faults is 0.
    pub found: BTreeSet<Vec<Value>>,
    /// Why there may be more outcomes, or `None` if these are all.
    pub missing: Option<Reason>,
    /// Whether a run was seen that ends with a fault.
    pub faults: bool,
    /// Whether a state was seen from which no final state can be reached.
    pub dead_ends: bool,
    /// Counters of the last search.
    pub stats: Stats,
}

/// The outcomes of all runs of a machine, in terms of these conditions.
pub fn outcomes(
    machine: Machine<'_>,
    observed: &[Condition],
    options: &Options,
    limits: &Limits,
) -> Outcomes {
    let ends = Ends::new(observed, Wanted::All);
    let searched = search(machine, &ends, options, limits);
    let dead_ends_count = matches!(searched.cut, Cut::Nothing | Cut::Buffers);
    Outcomes {
        found: ends.found.into_inner().unwrap_or_else(PoisonError::into_inner),
        missing: searched.missing,
        faults: ends.fault.into_inner(),
        dead_ends: dead_ends_count && ends.dead_end.into_inner(),
        stats: searched.stats,
    }
}

/// A run to a final state in which a condition is 1. Other runs may end with faults.
pub fn run_to_end(
    machine: Machine<'_>,
    condition: &Condition,
    options: &Options,
    limits: &Limits,
) -> Reached {
    let ends = Ends::new(std::slice::from_ref(condition), Wanted::One);
    let searched = search(machine, &ends, options, limits);
    match (searched.run, searched.missing) {
        (Some(run), _) => Reached::Bad(run),
        (None, None) => Reached::Nothing,
        (None, Some(reason)) => Reached::Unknown(reason),
    }
}

/// The result of a search.
struct Searched {
    run: Option<Run>,
    missing: Option<Reason>,
    cut: Cut,
    stats: Stats,
}

/// What was cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    Nothing,
    /// Longer buffers. A thread whose buffer is full can always take a step, so dead ends are real.
    Buffers,
    /// Something after which a thread may seem to be stuck.
    Steps,
}

fn search(machine: Machine<'_>, ends: &Ends<'_>, options: &Options, limits: &Limits) -> Searched {
    let prepared = limits.within(|| {
        let system = with_conditions(machine.system, ends.observed);
        let liveness = Arc::new(Liveness::new(&system));
        (system, liveness)
    });
    let (system, liveness) = match prepared {
        Ok(prepared) => prepared,
        Err(what) => {
            let missing = Some(Reason::Exhausted(what));
            return Searched { run: None, missing, cut: Cut::Steps, stats: Stats::new() };
        }
    };
    let machine = Machine { system: &system, ..machine };
    let mut searches = Searches { ends: Some(ends), ..Searches::new(Goal::Bad, options, limits) };
    let limit = options.max_buffer.max(1);
    let mut bound = if pump::can_pump(machine) { 1 } else { usize::MAX };
    let mut reached = None;
    let (run, missing, cut) = loop {
        // Dead ends of a search with shorter buffers are seen again with longer ones.
        ends.dead_end.store(false, Ordering::Relaxed);
        match searches.bounded(machine, &liveness, bound) {
            Bounded::Bad(run) => break (Some(run), None, Cut::Steps),
            Bounded::Clean(cuts) => match cuts.reason(bound) {
                None => break (None, None, Cut::Nothing),
                Some(reason) if !cuts.buffers || bound >= limit => {
                    let cut = if cuts.calls || cuts.spawned.is_some() { Cut::Steps } else { Cut::Buffers };
                    break (None, Some(reason), cut);
                }
                Some(reason) => reached = Some(reason),
            },
            Bounded::Open | Bounded::Enough => unreachable!("ends are looked for"),
            Bounded::Unknown(Reason::Exhausted(what)) => {
                break (None, Some(Reason::exhausted(what, reached)), Cut::Steps);
            }
            Bounded::Unknown(reason) => break (None, Some(reason), Cut::Steps),
        }
        bound = (bound * 2).min(limit);
    };
    Searched { run, missing, cut, stats: searches.stats }
}

/// The same program with other properties. Every final state is bad. The observed conditions are conditions
/// of properties, so that the values they need are kept.
fn with_conditions(system: &System, observed: &[Condition]) -> System {
    let property =
        |bad: Condition| Property { kind: PropertyKind::Final, bad, reads_memory: true, span: Span::NONE };
    let conditions = std::iter::once(Condition::Const(1)).chain(observed.iter().cloned());
    System { properties: conditions.map(property).collect(), ..system.clone() }
}

/// What a search has seen of the ends of runs. Several host threads add to it. It is a set, so their order
/// does not matter.
pub(crate) struct Ends<'o> {
    observed: &'o [Condition],
    wanted: Wanted,
    found: Mutex<BTreeSet<Vec<Value>>>,
    fault: AtomicBool,
    dead_end: AtomicBool,
}

/// What a search is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// All outcomes.
    All,
    /// A final state in which the only observed condition is 1.
    One,
}

impl<'o> Ends<'o> {
    fn new(observed: &'o [Condition], wanted: Wanted) -> Ends<'o> {
        Ends {
            observed,
            wanted,
            found: Mutex::default(),
            fault: AtomicBool::new(false),
            dead_end: AtomicBool::new(false),
        }
    }

    /// Looks at a new state. Returns whether the search is over.
    pub fn look(&self, automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> bool {
        match end_of(automaton, layout, state) {
            None => {}
            Some(End::Fault) => self.fault.store(true, Ordering::Relaxed),
            Some(End::Final) => {
                let value = |condition| judge::value(automaton, layout, state, condition).unwrap_or(0);
                let values: Vec<Value> = self.observed.iter().map(value).collect();
                if self.wanted == Wanted::One {
                    return values == [1];
                }
                self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(values);
            }
        }
        false
    }

    /// Records that a state has no successors.
    pub fn no_successors(&self, automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) {
        if end_of(automaton, layout, state).is_none() {
            self.dead_end.store(true, Ordering::Relaxed);
        }
    }

    /// Roughly how much memory the outcomes take.
    pub fn bytes(&self) -> u64 {
        let each = size_of::<Vec<Value>>() + self.observed.len() * size_of::<Value>() + 16;
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).len();
        (found * each) as u64
    }
}

/// How a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Every thread is at its end, and every buffer is empty.
    Final,
    /// A thread caused a fault.
    Fault,
}

/// Whether a run is over in a state, and how.
pub(crate) fn end_of(automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> Option<End> {
    let mut finished = true;
    for field in &layout.threads {
        let info = automaton.note(LocalId(field.get(state)));
        if info.flags.has(Flags::FAULTED) {
            return Some(End::Fault);
        }
        finished &= !info.flags.has(Flags::UNFINISHED);
    }
    finished.then_some(End::Final)
}
