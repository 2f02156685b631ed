//! Threads without recursion, started at run time in any number.
//!
//! *Problem.* Can a bad state be reached under SC if threads start threads without bound? A state consists of
//! memory, the threads that exist from the start, and the number of started threads in each of finitely many
//! thread states. This is a Petri net with control states. If bad states require at least some number of
//! threads somewhere, this is a coverability problem, which is decidable.
//!
//! *Source.* Expand, enlarge and check (Geeraerts, Raskin and Van Begin, "Expand, enlarge and check: new
//! algorithms for the coverability problem of WSTS", JCSS 2006). For c = 1, 2, 3, … the net is searched
//! twice, both times with finitely many states:
//! - *from below*: if there are more than c threads in one thread state, only c are followed (or a few more,
//!   if a condition counts up to them). The others just stay where they are. So a bad state found this way is
//!   real, and comes with a run.
//! - *from above*: more than c threads in one thread state count as any number. If nothing bad is found this
//!   way, nothing bad is reachable.
//!
//! *Guarantee.* `unsafe` comes with a run, and `safe` is exact. Suppose that more threads can only make a
//! state worse (all conditions have the form `count(P@l) >= n`). Then one of the two searches answers for
//! some c. A bad run has finitely many threads. If there is no bad run, the set of all markings below
//! reachable ones has finitely many limits, so some c is at least as large as all their finite numbers.
//! Otherwise (`final`, or a count with an upper limit) the answer may stay unknown, unless the number of
//! threads turns out to be bounded.
//!
//! *Reductions.*
//! - Local steps are taken together ([`crate::tokens`]).
//! - Finished threads that no condition counts are forgotten.
//! - If more threads can only make a state worse, states with fewer threads than another one are dropped.
//! - While a section is open, only its holder runs.

mod judge;
mod proof;
mod search;

use crate::contexts::Interrupted;
use crate::numbers::{Up, greatest, is_simple, places, truth_grows};
use crate::rules::MemoryId;
use crate::tokens::{Tokens, tokens};
use palisade_automata::on_demand::LocalId;
use palisade_base::Interner;
use palisade_engine::Limits;
use palisade_engine::proof::Crowds;
use palisade_memory::Machine;
use palisade_program::Value;
use palisade_program::running::{Liveness, Location, PropertyKind, RoleId};
use palisade_trace::Run;
use rustc_hash::FxHashSet;
use search::{Search, Searched, Side};
use std::sync::Arc;

/// Any number of threads.
const ANY: u32 = u32::MAX;

/// A state of the net.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Marking {
    memory: MemoryId,
    /// The threads that exist from the start.
    named: Vec<LocalId>,
    /// How many started threads are in which thread state, sorted.
    started: Vec<(LocalId, u32)>,
}

/// The result of the search.
pub(crate) enum PopulationEnd {
    Bad(Run),
    /// With a proof, if one was requested and found.
    Nothing(Option<Crowds>),
    /// Neither search has an answer with up to this many threads in one thread state.
    Open(u32),
}

/// Counters of a search.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub states: u64,
    /// The number c of the search.
    pub bound: u32,
}

/// The search.
pub(crate) struct Population<'a, 'c> {
    pub tokens: Tokens<'a>,
    pub memories: Interner<MemoryId, Vec<Value>>,
    pub counters: Counters,
    limits: &'c Limits,
    report: &'c dyn Fn(&Counters),
    monotone: bool,
    /// Whether every count is compared with something that does not depend on the number of threads.
    simple: bool,
    /// The largest number that counts are compared with, as far as it is small and written in the program.
    counted_up_to: u32,
    /// Where threads are counted.
    counted: FxHashSet<(RoleId, Location)>,
    /// Whether threads matter wherever they are, because there is a condition on final states.
    all_seen: bool,
    /// Roles whose threads are forgotten when they finish.
    vanishing: Vec<bool>,
    bytes: u64,
}

impl<'a, 'c> Population<'a, 'c> {
    /// A search of a program without recursion, under SC.
    pub fn new(
        machine: Machine<'a>,
        liveness: Arc<Liveness>,
        limits: &'c Limits,
        report: &'c dyn Fn(&Counters),
    ) -> Population<'a, 'c> {
        let system = machine.system;
        let monotone = system
            .properties
            .iter()
            .all(|property| property.kind == PropertyKind::Forbid && truth_grows(&property.bad, Up::More));
        let simple = system.properties.iter().all(|property| is_simple(&property.bad));
        let counted_up_to =
            system.properties.iter().map(|property| greatest(&property.bad)).max().unwrap_or(0);
        let mut counted = FxHashSet::default();
        system.properties.iter().for_each(|property| places(&property.bad, &mut counted));
        let counted_at_end = |role: RoleId| counted.contains(&(role, system.role_code(role).exit));
        let vanishing = system.roles.ids().map(|role| !counted_at_end(role)).collect();
        Population {
            tokens: tokens(machine, liveness),
            memories: Interner::new(),
            counters: Counters::default(),
            limits,
            report,
            monotone,
            simple,
            counted_up_to: counted_up_to.clamp(1, 8) as u32 - 1,
            counted,
            all_seen: system.properties.iter().any(|property| property.kind == PropertyKind::Final),
            vanishing,
            bytes: 0,
        }
    }

    /// Searches from below and above with growing numbers.
    pub fn search(&mut self, most: u32, prove: bool) -> Result<PopulationEnd, Interrupted> {
        for bound in 1..=most {
            self.counters.bound = bound;
            let (searched, proof) = self.side(Side::Above, bound, prove)?;
            if let Searched::Clean = searched {
                return Ok(PopulationEnd::Nothing(proof));
            }
            // With fewer threads in one place than a count requires, there is often nothing to find.
            let enough = bound.saturating_add(self.counted_up_to);
            match self.side(Side::Below, enough, false)?.0 {
                Searched::Bad(run) => return Ok(PopulationEnd::Bad(run)),
                // No thread was left out, so the search from above finds the same markings.
                Searched::Clean if prove => {
                    return Ok(PopulationEnd::Nothing(self.side(Side::Above, enough, true)?.1));
                }
                Searched::Clean => return Ok(PopulationEnd::Nothing(None)),
                Searched::CleanSoFar | Searched::Perhaps => {}
            }
        }
        Ok(PopulationEnd::Open(most))
    }

    /// Runs one search. If it finds nothing and a proof is wanted, the markings it found are returned as the
    /// proof.
    fn side(
        &mut self,
        side: Side,
        bound: u32,
        prove: bool,
    ) -> Result<(Searched, Option<Crowds>), Interrupted> {
        let before = self.bytes;
        let mut search = Search::new(self, side, bound);
        let found = search.run();
        let proved = prove && matches!(found, Ok(Searched::Clean));
        let proof = proved.then(|| search.proof());
        self.bytes = before;
        Ok((found?, proof))
    }
}
