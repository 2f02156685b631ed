//! The search for cycles: the problem passed to `palisade-search`, and how its result is read.
//!
//! States are numbered in the order in which they are found. The oracle of the lazy engine relies on this: a
//! state with a smaller number was found earlier.

use crate::discard::Candidates;
use crate::expand::{self, Expander, Question, Sink, TakenMove};
use crate::state::{Layout, State};
use crate::threads::{CODES, Need, Threads, Trouble};
use palisade_automata::on_demand::LocalId;
use palisade_base::{Id, limits};
use palisade_engine::{Exhausted, Limits, Stats};
use palisade_memory::{Machine, Model};
use palisade_program::running::CellId;
use palisade_search::{Counters, Expand, Expansion, Finds, Shards, StateId, Successors, Visited, Wanted};

/// How a search ended.
pub(crate) enum AttackEnd {
    /// Steps from these states close cycles. There is at least one. The accepted ones of one level are
    /// reported together.
    Cycles(Vec<StateId>),
    /// There is no cycle.
    Nothing,
    /// The limits ran out.
    Exhausted(Exhausted),
    /// More threads than there is room for.
    ThreadCount,
    /// Values that grow without bound, calls that nest too deep, or a section that is too long.
    Trouble(Trouble),
}

/// The resources of a search, and where it reports to.
#[derive(Clone, Copy)]
pub(crate) struct Effort<'e> {
    pub limits: &'e Limits,
    pub pool: Option<&'e rayon::ThreadPool>,
}

/// States per batch. Cycles of one batch are offered together, so batches are usually whole levels.
const BATCH: usize = 1 << 17;

/// The states found so far.
pub(crate) struct Search<'a> {
    pub question: Question,
    pub threads: Threads<'a>,
    pub layout: Layout,
    pub model: Model,
    pub candidates: Candidates,
    visited: Visited,
}

impl<'a> Search<'a> {
    pub fn new(
        question: Question,
        threads: Threads<'a>,
        layout: Layout,
        model: Model,
        candidates: Candidates,
    ) -> Search<'a> {
        let visited = no_states(layout);
        Search { question, threads, layout, model, candidates, visited }
    }

    pub fn state(&self, id: StateId) -> &[u64] {
        self.visited.state(id)
    }

    /// The states from an initial one to this one.
    pub fn path_to(&self, id: StateId) -> Vec<StateId> {
        self.visited.path_to(id)
    }

    /// Adds the counters of the search to the statistics.
    pub fn count(&self, stats: &mut Stats) {
        let attacked = |words: &&[u64]| State { words: *words, layout: self.layout }.attack().is_some();
        stats.add("states", self.visited.len());
        stats.add("attack_states", self.visited.iter().filter(attacked).count() as u64);
        stats.add("thread_states", self.threads.automaton.len() as u64);
    }

    /// Searches until there are cycles that the caller accepts, or until nothing is left. All cycles found
    /// together are offered together.
    pub fn run(
        &mut self,
        machine: Machine<'_>,
        effort: &Effort<'_>,
        stats: &Stats,
        mut wanted: impl FnMut(&mut Search<'a>, Vec<StateId>) -> Vec<StateId>,
    ) -> AttackEnd {
        let Effort { limits, pool } = *effort;
        let visited = std::mem::replace(&mut self.visited, no_states(self.layout));
        let effort = palisade_search::Effort { limits, pool, batch: BATCH };
        let mut search = palisade_search::Search::new(visited, effort);
        let mut running = Running { search: self, limits, stats };
        let end = match running.begin(&mut search, machine) {
            // The caller's choice looks at the states found so far.
            Ok(()) => search.run(&mut running, &mut |running, visited, found| {
                std::mem::swap(&mut running.search.visited, visited);
                let chosen = wanted(running.search, found);
                std::mem::swap(&mut running.search.visited, visited);
                chosen
            }),
            Err(end) => end,
        };
        self.visited = search.into_visited();
        match end {
            palisade_search::End::Clean => AttackEnd::Nothing,
            palisade_search::End::Found(cycles) => AttackEnd::Cycles(cycles),
            palisade_search::End::Halted(Halt::ThreadCount) => AttackEnd::ThreadCount,
            palisade_search::End::Halted(Halt::Trouble(trouble)) => AttackEnd::Trouble(trouble),
            palisade_search::End::Exhausted(what) => AttackEnd::Exhausted(what),
        }
    }

    pub fn expander(&self) -> Expander<'_, 'a> {
        Expander {
            question: self.question,
            threads: &self.threads,
            layout: self.layout,
            model: self.model,
            candidates: &self.candidates,
        }
    }
}

fn no_states(layout: Layout) -> Visited {
    Visited::new(layout.words(), Shards::One)
}

/// Why a search cannot continue.
enum Halt {
    /// More threads than there is room for.
    ThreadCount,
    Trouble(Trouble),
}

/// A search in progress. The visited states are stored elsewhere.
struct Running<'r, 'a> {
    limits: &'r Limits,
    search: &'r mut Search<'a>,
    stats: &'r Stats,
}

impl Running<'_, '_> {
    /// Adds the initial states.
    fn begin(
        &mut self,
        search: &mut palisade_search::Search<'_>,
        machine: Machine<'_>,
    ) -> Result<(), palisade_search::End<Halt>> {
        let layout = self.search.layout;
        let threads = &mut self.search.threads;
        let roles = machine.system.instances.iter().map(|instance| instance.role);
        let locals: Vec<LocalId> = roles.map(|role| threads.start(role)).collect();
        for initial in machine.initial_states() {
            limits::checkpoint();
            let mut state = State { words: vec![0; layout.words()], layout };
            for (cell, &value) in initial.memory.iter().enumerate() {
                let cell = CellId::from_index(cell);
                let code = self.search.threads.automaton.values.code(cell, value);
                if code >= CODES {
                    return Err(palisade_search::End::Halted(Halt::Trouble(Trouble::Values(cell))));
                }
                state.set_memory(cell, code);
            }
            locals.iter().enumerate().for_each(|(thread, &local)| state.set_thread(thread, local));
            search.begin(self, &state.words)?;
        }
        Ok(())
    }
}

impl Expand for Running<'_, '_> {
    type Need = Need;
    type Halt = Halt;
    type Tally = Nothing;

    const FINDS: Finds = Finds::Steps;

    fn expand(
        &self,
        state: &[u64],
        _: Wanted,
        successors: &mut Successors<Nothing>,
        needs: &mut Vec<Need>,
    ) -> Result<Expansion, Halt> {
        match self.search.expander().expand(state, &mut Collect(successors), needs) {
            Ok(()) => Ok(Expansion::All),
            Err(expand::Trouble::Needs) => Ok(Expansion::Missing),
            Err(expand::Trouble::Threads) => Err(Halt::ThreadCount),
        }
    }

    fn count(&mut self, Nothing: Nothing, _: u64) {}

    fn report(&self, counters: &Counters) {
        let mut stats = self.stats.clone();
        stats.add("states", counters.states);
        stats.add("thread_states", self.search.threads.automaton.len() as u64);
        self.limits.report("searching for a cycle", &stats);
    }

    fn supply(&mut self, need: Need) {
        self.search.threads.supply(need);
    }

    fn check(&self) -> Result<(), Halt> {
        self.search.threads.trouble().map_or(Ok(()), |trouble| Err(Halt::Trouble(trouble)))
    }

    fn bytes(&self) -> u64 {
        self.search.threads.bytes()
    }
}

/// Nothing is counted in addition to states.
#[derive(Default)]
struct Nothing;

impl std::ops::AddAssign for Nothing {
    fn add_assign(&mut self, Nothing: Nothing) {}
}

/// Collects successors. A step that closes a cycle is a goal of the search.
struct Collect<'c>(&'c mut Successors<Nothing>);

impl Sink for Collect<'_> {
    fn take(&mut self, _: TakenMove<'_>, next: Option<&[u64]>) {
        match next {
            Some(words) => self.0.words.extend_from_slice(words),
            None => self.0.found = true,
        }
    }
}
