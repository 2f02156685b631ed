//! Breadth-first search over packed states, in batches, on all cores.
//!
//! *What is absent.* A state is a few machine words. [`Expand`] defines what the words mean, what the
//! successors of a state are, and what the search looks for.
//!
//! *How.* Each level of the search is processed in batches. A batch takes one or more *rounds*:
//! 1. The states are expanded with the expander's tables in their current form.
//! 2. One host thread adds the missing table entries, in a fixed order.
//! 3. Two kinds of states are expanded again: those that had to wait for the tables, and those whose partial
//!    successors all turned out to be old.
//!
//! Expansion and insertion are separate phases. Nothing is written while states are expanded, and each shard
//! of the visited set is filled by one host thread.
//!
//! *No thread is ignored forever.* A state may be expanded in [part](Wanted::Part) only if such partial
//! expansions alone lead from it to a state that is expanded fully. Whatever another thread can do is then
//! done there. Each waiting state has a *rank*. Two conditions on ranks ensure that a fully expanded state is
//! reached:
//! 1. At least one successor of a partially expanded state is new, or waits in the next level. This is the
//!    queue proviso of Bošnački and Holzmann for breadth-first search. The rank of that successor is raised
//!    above the state's rank, unless it is already greater.
//! 2. A state whose rank is [`PATIENCE`] is expanded fully. Successors of fully expanded states have rank 0,
//!    unless a partially expanded state raises it.
//!
//! By 1, the rank grows with each level along those successors. By 2, it cannot grow forever. In a finite
//! state space 1 alone would be enough, because some state is expanded last. An infinite state space need not
//! have a last state: a thread that counts up a register reaches a new state with every step.
//!
//! *Guarantee.*
//! - If a goal of the search is reachable, then it, or another goal before it, is found after finitely many
//!   levels. This also holds for infinite state spaces.
//! - State numbers, parents and results do not depend on the number of jobs, because the insertions into each
//!   shard follow the order of the batch.
//! - The result has the least depth.
//!
//! *Invariants*
//! 1. A state is in the visited set once, in the shard of its hash ([`Visited::check_invariants`]).
//! 2. A parent was visited before its child (also [`Visited::check_invariants`]).
//! 3. Every state that waits for the next level has a rank (a `debug_assert!` where states are inserted).

mod round;
mod visited;

pub use visited::{Inserted, Shard, Shards, StateId, Visited, hash};

use palisade_base::limits;
use palisade_engine::{Exhausted, Limits, Pace};
use round::{Chunk, Level, Phases, Turn};
use std::ops::AddAssign;

/// How many states in a row may be expanded in part. The number is small, so that no thread waits long for
/// its turn. Few programs take this many steps in a row that concern no other thread.
pub const PATIENCE: u16 = 32;

/// Which successors of a state are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// A sufficient part, if there is one.
    Part,
    /// All.
    All,
}

/// The result of an expansion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expansion {
    /// All successors were produced.
    All,
    /// A sufficient part was produced. It counts only if the search continues from it.
    Part,
    /// The tables lack an entry. The successors produced so far do not count.
    Missing,
}

/// The goals of a search, and when they are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finds {
    /// States, found when they are inserted.
    States,
    /// Steps, found when the state before them is expanded. All steps found in one round are reported
    /// together, before any state of that round is inserted.
    Steps,
}

/// The successors of a state, in order.
#[derive(Default)]
pub struct Successors<T> {
    /// Their words.
    pub words: Vec<u64>,
    /// The weight of each successor, added up if the successor is new. Weights missing at the end are 0.
    pub weights: Vec<u16>,
    /// Whether some step of the state is a goal of the search.
    pub found: bool,
    /// Further counters.
    pub tally: T,
}

impl<T> Successors<T> {
    /// Forgets the successors, but not the counters.
    pub fn clear(&mut self) {
        self.words.clear();
        self.weights.clear();
        self.found = false;
    }

    /// The weight of a successor.
    #[inline]
    pub fn weight(&self, index: usize) -> u16 {
        self.weights.get(index).copied().unwrap_or(0)
    }
}

/// A search problem.
pub trait Expand: Sync {
    /// An entry that the tables lack.
    type Need: Ord + Send + Sync;
    /// Why the search cannot continue.
    type Halt: Send + Sync;
    /// Further counters.
    type Tally: Default + Send + Sync + AddAssign;

    /// The kind of goal.
    const FINDS: Finds;

    /// Appends the successors of a state, and pushes the table entries missing for it.
    fn expand(
        &self,
        state: &[u64],
        wanted: Wanted,
        successors: &mut Successors<Self::Tally>,
        needs: &mut Vec<Self::Need>,
    ) -> Result<Expansion, Self::Halt>;

    /// Whether partial expansions are wanted.
    fn wants_parts(&self) -> bool {
        false
    }

    /// Whether a new state is a goal of the search.
    fn is_goal(&self, _state: &[u64]) -> bool {
        false
    }

    /// Records the counters of a round and the total weight of all new states.
    fn count(&mut self, tally: Self::Tally, weight_of_new: u64);

    /// Reports progress, after each batch.
    fn report(&self, counters: &Counters);

    /// Adds a missing entry to the tables.
    fn supply(&mut self, need: Self::Need);

    /// Whether the search can continue with the current tables.
    fn check(&self) -> Result<(), Self::Halt>;

    /// Roughly how much memory the tables take.
    fn bytes(&self) -> u64;
}

/// How a search ended.
pub enum End<H> {
    /// All reachable states were visited, and nothing was found.
    Clean,
    /// These states, or steps from them, were found. They are in the order of their numbers.
    Found(Vec<StateId>),
    /// The search cannot continue.
    Halted(H),
    /// The limits ran out.
    Exhausted(Exhausted),
}

/// Counters of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// States visited.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// Levels.
    pub depth: u64,
    /// Memory for states and tables, in bytes.
    pub bytes: u64,
}

/// The resources of a search.
#[derive(Clone, Copy)]
pub struct Effort<'e> {
    /// When to give up.
    pub limits: &'e Limits,
    /// The host threads, if there is more than one.
    pub pool: Option<&'e rayon::ThreadPool>,
    /// States per batch: enough to keep all cores busy between phases.
    pub batch: usize,
}

/// Host threads, if more than one may be used.
pub fn pool(limits: &Limits) -> Option<rayon::ThreadPool> {
    let jobs = limits.jobs();
    (jobs > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(jobs).build().ok()).flatten()
}

/// Selects from the states that have a goal step. If it selects none, the search continues.
pub type Choose<'c, E> = &'c mut dyn FnMut(&mut E, &mut Visited, Vec<StateId>) -> Vec<StateId>;

/// A search.
pub struct Search<'s> {
    effort: Effort<'s>,
    visited: Visited,
    counters: Counters,
    pace: Pace,
    found: Option<StateId>,
}

impl<'s> Search<'s> {
    /// A search that fills a visited set.
    pub fn new(visited: Visited, effort: Effort<'s>) -> Search<'s> {
        Search { effort, visited, counters: Counters::default(), pace: Pace::new(), found: None }
    }

    /// The states visited.
    pub fn visited(&self) -> &Visited {
        &self.visited
    }

    /// The states visited, after the search.
    pub fn into_visited(self) -> Visited {
        self.visited
    }

    /// The counters so far.
    pub fn counters<E: Expand>(&mut self, expand: &E) -> Counters {
        self.measure(expand);
        self.counters
    }

    /// Adds an initial state.
    pub fn begin<E: Expand>(&mut self, expand: &E, state: &[u64]) -> Result<(), End<E::Halt>> {
        let visited = &mut self.visited;
        let limits = self.effort.limits;
        limits.check_often(&mut self.pace, || visited.bytes()).map_err(End::Exhausted)?;
        let hash = hash(state);
        let shard = visited.numbering().shard_of(hash);
        match visited.shards[shard].insert(hash, state, StateId::NONE) {
            Inserted::New(position) if expand.is_goal(state) => {
                let id = visited.numbering().id(shard, position);
                self.found = Some(self.found.map_or(id, |old| old.min(id)));
            }
            Inserted::New(_) | Inserted::Known(_) => {}
            Inserted::Full => return Err(End::Exhausted(Exhausted::Memory(limits.memory()))),
        }
        Ok(())
    }

    /// Searches all states that are reachable from the initial ones.
    pub fn run<E: Expand>(&mut self, expand: &mut E, choose: Choose<'_, E>) -> End<E::Halt> {
        let end = self.search(expand, choose).unwrap_or_else(|end| end);
        self.measure(expand);
        if cfg!(debug_assertions) {
            self.visited.check_invariants();
        }
        end
    }

    fn measure<E: Expand>(&mut self, expand: &E) {
        self.counters.states = self.visited.len();
        self.counters.bytes = self.visited.bytes() + expand.bytes();
    }

    fn search<E: Expand>(
        &mut self,
        expand: &mut E,
        choose: Choose<'_, E>,
    ) -> Result<End<E::Halt>, End<E::Halt>> {
        if let Some(found) = self.found {
            return Ok(End::Found(vec![found]));
        }
        let mut chunks = Vec::new();
        let mut round = Vec::new();
        let numbering = self.visited.numbering();
        let mut start = vec![0; self.visited.shards.len()];
        let mut ranks: Vec<Vec<u16>> = self.visited.lens().iter().map(|&len| vec![0; len as usize]).collect();
        loop {
            let end = self.visited.lens();
            if start == end {
                return Ok(End::Clean);
            }
            let mut level = Level { end, ranks: vec![Vec::new(); start.len()] };
            let ends = level.end.clone();
            let parts = expand.wants_parts();
            for shard in 0..start.len() {
                for (position, &rank) in (start[shard]..ends[shard]).zip(&ranks[shard]) {
                    let wanted = if parts && rank < PATIENCE { Wanted::Part } else { Wanted::All };
                    round.push(Turn { id: numbering.id(shard, position as usize), rank, wanted });
                    if round.len() == self.effort.batch {
                        self.take_batch(expand, choose, &mut round, &mut level, &mut chunks)?;
                    }
                }
            }
            if !round.is_empty() {
                self.take_batch(expand, choose, &mut round, &mut level, &mut chunks)?;
            }
            self.counters.depth += 1;
            start = ends;
            ranks = level.ranks;
        }
    }

    /// Runs the rounds that a batch takes, and leaves the batch empty.
    fn take_batch<E: Expand>(
        &mut self,
        expand: &mut E,
        choose: Choose<'_, E>,
        batch: &mut Vec<Turn>,
        level: &mut Level,
        chunks: &mut Vec<Chunk<E>>,
    ) -> Result<(), End<E::Halt>> {
        let mut again = self.take_round(expand, choose, batch, level, chunks)?;
        while !again.is_empty() {
            again = self.take_round(expand, choose, &again, level, chunks)?;
        }
        batch.clear();
        self.measure(expand);
        expand.report(&self.counters);
        let limits = self.effort.limits;
        limits.check(self.counters.bytes).map_err(End::Exhausted)?;
        limits.check_work(self.counters.states).map_err(End::Exhausted)
    }

    /// Runs one round. Returns the states that must be expanded again.
    fn take_round<E: Expand>(
        &mut self,
        expand: &mut E,
        choose: Choose<'_, E>,
        round: &[Turn],
        level: &mut Level,
        chunks: &mut Vec<Chunk<E>>,
    ) -> Result<Vec<Turn>, End<E::Halt>> {
        let phases = Phases { effort: self.effort, visited: &mut self.visited, level, round };
        let outcome = phases.run(expand, choose, chunks);
        self.counters.transitions += outcome.transitions;
        if !outcome.found.is_empty() {
            return Err(End::Found(outcome.found));
        }
        if let Some(halt) = outcome.halt {
            return Err(End::Halted(halt));
        }
        if let Some(what) = outcome.exhausted {
            return Err(End::Exhausted(what));
        }
        self.supply(expand, outcome.needs)?;
        Ok(outcome.again)
    }

    /// Adds the missing table entries, in a fixed order. Some threads do a lot of work between two accesses,
    /// so this may take a while.
    fn supply<E: Expand>(&self, expand: &mut E, mut needs: Vec<E::Need>) -> Result<(), End<E::Halt>> {
        needs.sort_unstable();
        needs.dedup();
        let limits = self.effort.limits;
        limits.check(self.counters.bytes).map_err(End::Exhausted)?;
        let supply = || {
            needs.into_iter().for_each(|need| {
                limits::checkpoint();
                expand.supply(need);
            });
        };
        limits.within(supply).map_err(End::Exhausted)?;
        expand.check().map_err(End::Halted)
    }
}
