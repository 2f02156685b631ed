//! The search of packed states: the problem passed to `palisade-search`, and how its result is read.
//!
//! *Guarantee.* That of `palisade-search`. [`crate::expand`] has the argument for partial expansions. The bad
//! state found has the least depth in collapsed steps, where a chain counts as one step.

use crate::automaton::{self, Automaton, Need};
use crate::chain::{Follow, Payoff};
use crate::ends::Ends;
use crate::expand::{self, Crowd, Expander};
use crate::fair;
use crate::judge::Judge;
use crate::layout::Layout;
use crate::progress;
use palisade_automata::Coverage;
use palisade_automata::on_demand::LocalId;
use palisade_engine::{Exhausted, Limits};
use palisade_search::{Effort, Expand, Expansion, Finds, Shards, StateId, Successors, Visited, Wanted};
use std::ops::AddAssign;

/// States per batch: large enough to keep all cores busy between phases, small enough for the caches.
const BATCH: usize = 1 << 14;
/// More different values than this in a cell without a declared domain count as growth without bound.
const GROWING: u64 = 1024;
/// More thread states than this count as growth without bound.
const MAX_LOCALS: usize = 1 << 20;

/// What a search looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// A bad state.
    Bad,
    /// A stuck state.
    Stuck,
    /// A state from which a goal of the program is out of reach.
    OutOfReach,
    /// A fair run that goes on forever and thereby violates a property.
    Forever,
    /// Nothing. All states are visited, to see which steps runs take.
    Steps,
}

/// How a search ended.
pub(crate) enum End {
    /// All reachable states were visited. None of them is bad.
    Clean {
        /// Whether steps that would have started threads were left out.
        left_out: bool,
    },
    /// From some states, a goal of the program can be reached only with longer buffers, if at all.
    Open,
    /// Enough steps were seen.
    Enough,
    /// The states of a run to a bad state, packed.
    Bad(Vec<Vec<u64>>),
    /// The same, unpacked.
    Run(palisade_trace::Run),
    /// Some number outgrew its field. Search again with a new layout.
    Outgrown,
    /// More threads than the layout has room for.
    TooManyThreads,
    /// The limits ran out.
    Exhausted(Exhausted),
    /// The number of values of this cell keeps growing.
    CellGrows(palisade_program::running::CellId),
    /// The number of thread states keeps growing.
    ThreadStatesGrow,
    /// A process that shared the search was lost.
    Lost(palisade_cluster::Lost),
}

/// Counters of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub states: u64,
    pub transitions: u64,
    pub depth: u64,
    /// Steps through states that were not stored.
    pub chain_steps: u64,
    pub bytes: u64,
}

/// A search.
pub(crate) struct Search<'s, 'a> {
    pub automaton: &'s mut Automaton<'a>,
    pub layout: &'s Layout,
    pub judge: &'s Judge<'a>,
    pub goal: Goal,
    /// If present, the search does not stop at bad states. It records the ends of runs.
    pub ends: Option<&'s Ends<'s>>,
    /// Whether the steps seen so far are enough.
    pub enough: Option<&'s (dyn Fn(&Coverage) -> bool + Sync)>,
    pub reduce: bool,
    pub crowd: Crowd,
    pub tally: Tally,
    pub limits: &'s Limits,
    /// Called after each batch, with what each process has done if several share the search.
    pub report: &'s (dyn Fn(&Counters, &[palisade_cluster::Part]) + Sync),
    /// The host threads, if there is more than one.
    pub pool: Option<&'s rayon::ThreadPool>,
}

/// Why a search cannot continue.
pub(crate) enum Halt {
    /// Some number outgrew its field.
    Outgrown,
    /// More threads than the layout has room for.
    TooManyThreads,
    /// The number of values of this cell keeps growing.
    CellGrows(palisade_program::running::CellId),
    /// The number of thread states keeps growing.
    ThreadStatesGrow,
    /// Enough steps were seen.
    Enough,
}

impl From<Halt> for End {
    fn from(halt: Halt) -> End {
        match halt {
            Halt::Outgrown => End::Outgrown,
            Halt::TooManyThreads => End::TooManyThreads,
            Halt::CellGrows(cell) => End::CellGrows(cell),
            Halt::ThreadStatesGrow => End::ThreadStatesGrow,
            Halt::Enough => End::Enough,
        }
    }
}

/// Whether an initial state could be added.
type Begun = Result<(), palisade_search::End<Halt>>;

/// Counters of expansions, in addition to states.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Whether a step was not taken because of [`Crowd::Capped`].
    pub left_out: bool,
    /// Whether looking for chains was worth it.
    pub payoff: Payoff,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.left_out = self.left_out || other.left_out;
        self.payoff.add(other.payoff);
    }
}

impl Search<'_, '_> {
    /// Searches all states.
    ///
    /// Where all states are wanted ([`Goal::OutOfReach`], [`Goal::Forever`]), they are judged at the end.
    pub fn run(&mut self) -> (End, Counters, Vec<palisade_cluster::Part>) {
        if let Some(found) = self.run_shared() {
            return found;
        }
        let effort = Effort { limits: self.limits, pool: self.pool, batch: BATCH };
        let visited = Visited::new(self.layout.words, Shards::Many);
        let mut search = palisade_search::Search::new(visited, effort);
        let end = match self.begin(&mut |own, state| search.begin(own, state)) {
            Ok(()) => search.run(self, &mut |_, _, found| found),
            Err(end) => end,
        };
        let counters = self.counters(&search.counters(self));
        let end = match end {
            palisade_search::End::Clean if self.goal == Goal::OutOfReach => {
                progress::judge(self, search.visited())
            }
            palisade_search::End::Clean if self.goal == Goal::Forever => fair::judge(self, search.visited()),
            palisade_search::End::Clean => End::Clean { left_out: self.tally.left_out },
            palisade_search::End::Found(bad) => self.bad(search.visited(), bad[0]),
            palisade_search::End::Halted(halt) => halt.into(),
            palisade_search::End::Exhausted(what) => End::Exhausted(what),
        };
        (end, counters, Vec::new())
    }

    pub fn counters(&self, counters: &palisade_search::Counters) -> Counters {
        let &palisade_search::Counters { states, transitions, depth, bytes } = counters;
        Counters { states, transitions, depth, bytes, chain_steps: self.tally.payoff.walked }
    }

    #[inline]
    pub fn expander(&self) -> Expander<'_, '_> {
        Expander {
            automaton: self.automaton,
            layout: self.layout,
            judge: self.judge,
            goal: self.goal,
            ends: self.ends,
            reduce: self.reduce,
            crowd: self.crowd,
            follow: self.follow(),
        }
    }

    fn follow(&self) -> Follow {
        match (self.follows_chains(), self.tally.payoff.follow()) {
            (false, _) => Follow::No,
            // Whether a state is stuck takes longer to see than whether it is bad, so no part is walked often.
            (true, Follow::ToTheEnd) if self.goal == Goal::Stuck => Follow::ToWaypoints,
            (true, follow) => follow,
        }
    }

    /// Whether states with one successor are left out. They are judged, but not kept.
    pub fn follows_chains(&self) -> bool {
        self.reduce && matches!(self.goal, Goal::Bad | Goal::Stuck | Goal::Steps)
    }

    pub fn bad(&self, visited: &Visited, id: StateId) -> End {
        self.bad_path(visited.path_to(id).into_iter().map(|id| visited.state(id)))
    }

    /// The run along stored states, with the states that were not stored.
    pub fn bad_path<'p>(&self, stored: impl Iterator<Item = &'p [u64]>) -> End {
        let mut path: Vec<Vec<u64>> = Vec::new();
        for state in stored {
            if let Some(before) = path.last().filter(|_| self.follows_chains()) {
                let between = self.expander().between(before, state);
                path.extend(between);
            }
            path.push(state.to_vec());
        }
        End::Bad(path)
    }

    /// Passes on all initial states: every initial memory with every choice of first thread states.
    pub fn begin(&mut self, add: &mut dyn FnMut(&Self, &[u64]) -> Begun) -> Begun {
        use palisade_search::End;
        let machine = self.automaton.machine.machine;
        let automaton = &mut *self.automaton;
        let start = |role| automaton.starts(role).to_vec();
        let starts = machine.system.instances.iter().map(|instance| instance.role).map(start);
        let starts = self.limits.within(|| starts.collect::<Vec<Vec<LocalId>>>()).map_err(End::Exhausted)?;
        if !self.layout.fits(self.automaton) {
            return Err(End::Halted(Halt::Outgrown));
        }
        let mut state = vec![0; self.layout.words];
        for initial in machine.initial_states() {
            for (cell, &value) in initial.memory.iter_enumerated() {
                let code = self.automaton.values.code(cell, value);
                if !self.layout.cells[cell].holds(code) {
                    return Err(End::Halted(Halt::Outgrown));
                }
                self.layout.cells[cell].set(&mut state, code);
            }
            let mut choice = vec![0; starts.len()];
            'choices: loop {
                for (thread, &option) in choice.iter().enumerate() {
                    self.layout.threads[thread].set(&mut state, starts[thread][option].0);
                }
                // Threads with different data stay where they are, so that runs begin in an initial state.
                let mut sorted = state.clone();
                self.layout.sort(&mut sorted);
                add(self, &sorted)?;
                for (thread, option) in choice.iter_mut().enumerate() {
                    *option += 1;
                    if *option < starts[thread].len() {
                        continue 'choices;
                    }
                    *option = 0;
                }
                break;
            }
        }
        Ok(())
    }
}

impl Expand for Search<'_, '_> {
    type Need = Need;
    type Halt = Halt;
    type Tally = Tally;

    const FINDS: Finds = Finds::States;

    fn expand(
        &self,
        state: &[u64],
        wanted: Wanted,
        successors: &mut Successors<Tally>,
        needs: &mut Vec<Need>,
    ) -> Result<Expansion, Halt> {
        if self.goal != Goal::Bad && progress::is_over(self.automaton, self.layout, state) {
            return Ok(Expansion::All);
        }
        let before = successors.words.len();
        match self.expander().expand(state, wanted, successors, needs) {
            expand::Expansion::All => {
                if let Some(ends) = self.ends.filter(|_| successors.words.len() == before) {
                    ends.no_successors(self.automaton, self.layout, state);
                }
                Ok(Expansion::All)
            }
            expand::Expansion::Part => Ok(Expansion::Part),
            expand::Expansion::Missing => Ok(Expansion::Missing),
            expand::Expansion::TooManyThreads => Err(Halt::TooManyThreads),
        }
    }

    fn wants_parts(&self) -> bool {
        self.reduce
    }

    fn is_goal(&self, state: &[u64]) -> bool {
        if let Some(ends) = self.ends {
            return ends.look(self.automaton, self.layout, state);
        }
        match self.goal {
            Goal::Bad => self.judge.is_bad(self.automaton, self.layout, state),
            Goal::Stuck => progress::is_stuck(self.automaton, self.layout, state),
            Goal::OutOfReach | Goal::Forever => false,
            Goal::Steps => {
                // What matters is whether this is the end of a run.
                self.judge.is_bad(self.automaton, self.layout, state);
                false
            }
        }
    }

    fn count(&mut self, tally: Tally, steps_to_new: u64) {
        self.tally += tally;
        self.tally.payoff.to_new += steps_to_new;
    }

    fn report(&self, counters: &palisade_search::Counters) {
        (self.report)(&self.counters(counters), &[]);
    }

    fn supply(&mut self, need: Need) {
        automaton::supply(self.automaton, need);
    }

    fn check(&self) -> Result<(), Halt> {
        if let Some(enough) = self.enough {
            let mut coverage = self.automaton.policy.coverage.clone();
            automaton::share_steps(self.automaton, &mut coverage);
            coverage.ends |= self.judge.has_seen_end();
            if enough(&coverage) {
                return Err(Halt::Enough);
            }
        }
        if let Some(cell) = self.automaton.values.most_varied(GROWING + 1) {
            return Err(Halt::CellGrows(cell));
        }
        if self.automaton.numbers() > MAX_LOCALS {
            return Err(Halt::ThreadStatesGrow);
        }
        if self.layout.fits(self.automaton) { Ok(()) } else { Err(Halt::Outgrown) }
    }

    fn bytes(&self) -> u64 {
        self.automaton.bytes() + self.ends.map_or(0, Ends::bytes)
    }
}
