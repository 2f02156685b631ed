//! Triangular races: their absence is a simpler condition that is sufficient for robustness under TSO.
//!
//! *Source.* Owens, "Reasoning about the implementation of concurrency abstractions on x86-TSO" (ECOOP 2010).
//!
//! *Definition.* A run under SC has a triangular race if both of these hold at its end:
//! - A thread loads from a cell that another thread can store to at the same time (plainly, by a locked
//!   instruction or in an atomic section).
//! - The last store of the first thread went to another cell, with no fence, locked instruction or atomic
//!   section since.
//!
//! Starting a thread in place of that load counts as well, because the new thread may load what was stored.
//!
//! *Guarantee.* A program without triangular races is robust under TSO. An attack holds back a store past a
//! load of its thread, and the first other thread that enters does so by storing to the loaded cell. Up to
//! that point the run can be taken under SC. The converse does not hold.
//!
//! *The search* is the search for cycles, with different steps after the store: all threads continue as under
//! SC, except that the thread that stored takes no step that waits for its buffer.

use crate::attacks::find;
use crate::expand::Question;
use crate::search::{Effort, Search};
use crate::state::State;
use crate::threads::Letter;
use crate::witness::unfold_before;
use palisade_base::Id;
use palisade_engine::{
    Analysis, Engine, Limits, Outcome, Reason, Stats, Suitability, TriangularRaces, Verdict, Witness,
};
use palisade_memory::{Machine, Model};
use palisade_program::running::ThreadId;
use palisade_search::{StateId, pool};
use palisade_trace::Run;

/// Looks for triangular races.
#[derive(Clone, Copy, Debug, Default)]
pub struct Triangles;

impl Engine<TriangularRaces> for Triangles {
    fn name(&self) -> &'static str {
        "triangular"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        if analysis.task.is_parameterized() { Suitability::No } else { Suitability::Decides }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<TriangularRaces> {
        let mut stats = Stats::new();
        let answer = if analysis.task.is_parameterized() {
            let why = "the search for triangular races needs a fixed number of processes";
            Verdict::Unknown(Reason::Unsupported(why.to_owned()))
        } else {
            let mut system = analysis.system(1).as_ref().clone();
            system.properties.clear();
            // An attacker cannot pass what drains its buffer under TSO. Its stores reach memory at once.
            let machine = Machine::new(&system, Model::Tso);
            let pool = pool(limits);
            let effort = Effort { limits, pool: pool.as_ref() };
            let sc = Machine { model: Model::Sc, ..machine };
            let found = find(
                Question::Triangle,
                machine,
                &effort,
                &mut stats,
                |_, races| races,
                |search, races| race(search, sc, races[0]),
            );
            match found {
                Ok(None) => Verdict::Holds,
                Ok(Some(run)) => Verdict::Violated(Witness { instantiation: analysis.instantiation(1), run }),
                Err(reason) => Verdict::Unknown(reason),
            }
        };
        Outcome::new(self.name(), answer, stats)
    }
}

/// A run under SC that ends with the load and the store of a race. The store comes first if the load is an
/// error.
fn race(search: &mut Search<'_>, machine: Machine<'_>, last: StateId) -> Run {
    let (mut taking, closing) = unfold_before(search, machine, last);
    let loader = ThreadId::from_index(closing.thread);
    let rival = match closing.mv.letter {
        Letter::Load(cell) => {
            let state = State { words: search.state(last), layout: search.layout };
            let found = search.expander().rival(&state, closing.thread, cell);
            found.ok().flatten()
        }
        _ => None,
    };
    let loads_last = closing.to.is_some_and(|target| target.mark.faults());
    if !loads_last {
        taking.take(loader, closing.mv.action, true);
    }
    for rival in rival.iter() {
        let thread = ThreadId::from_index(rival.thread);
        rival.steps.iter().for_each(|&action| taking.take(thread, action, true));
    }
    if loads_last {
        taking.take(loader, closing.mv.action, true);
    }
    Run { memory: taking.memory, steps: taking.steps }
}
