//! Explicit-state search under SC, TSO and PSO (`--engine explicit`).
//!
//! *Problem.* Is a bad state reachable?
//!
//! *Guarantee.* `unsafe` comes with a run. `safe` is exact: under SC always, under TSO and PSO if no thread ever wanted a longer buffer than the search
//! allowed. If buffers may grow without bound ([`pump`]), the bound grows from 1 to the limit given, and a clean search at the limit is
//! `unknown`. Templates with any number of instances are tried with a few: this finds bugs, and is `unknown` otherwise. Recursion deeper than the limit, more live threads than the limit and values without end are `unknown` as well.
//!
//! *How it is made*
//!
//! | file | idea |
//! |---|---|
//! | `palisade-automata` | thread states, single steps by the trusted machine, local steps that run on to the next access |
//! | [`automaton`] | thread states by number, moves looked up instead of evaluated |
//! | [`judge`] | judging packed states |
//! | [`footprint`], [`expand`] | what threads may still access; persistent sets |
//! | [`chain`] | states with one successor are not stored |
//! | [`codes`], [`layout`], [`visited`] | packed states; symmetry as sorting; the visited set |
//! | [`search`] | breadth first, in batches, on all cores, with the same answer for any number of jobs |
//! | [`witness`] | back to a run of the store-buffer machine |

mod automaton;
mod chain;
mod codes;
mod expand;
mod footprint;
mod judge;
mod layout;
mod pump;
mod search;
mod visited;
mod witness;

use automaton::Automaton;
use chain::Payoff;
use judge::Judge;
use layout::Layout;
use palisade_automata::ThreadMachine;
use palisade_engine::{
    Budget, Engine, Exhausted, Options, Outcome, Progress, Proof, Proofs, Reachability, Reached, Reason,
    Reduction, Stats, Suitability, Task, Verdict, Witness,
};
use palisade_memory::{Machine, Model};
use palisade_program::running::{CellId, Instr, System};
use palisade_trace::Run;
use search::{Counters, End, Search};

/// The explicit-state engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explicit;

/// Instances tried of templates that may have any number.
const MOST_INSTANCES: u32 = 4;
/// The longest buffer tried with such templates, if it may grow without bound.
const BUFFER_OF_MANY: usize = 2;
/// Spawned threads alive at once.
const MOST_SPAWNED: usize = 32;

impl Engine for Explicit {
    fn name(&self) -> &'static str {
        "explicit"
    }

    fn suits(&self, task: &Task<'_>) -> Suitability {
        let system = task.system(1);
        if task.is_parameterized() || pump::can_pump(task.machine(&system)) {
            Suitability::Tries
        } else {
            Suitability::Decides
        }
    }

    fn check(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> Outcome {
        let searches = Searches::new(&task.options, budget, progress);
        let mut run = Check { task, searches };
        let verdict =
            if task.is_parameterized() { run.any_number() } else { run.fixed(1, task.options.max_buffer) };
        Outcome { verdict, engine: self.name(), stats: run.searches.stats }
    }

    fn proofs(&self) -> Proofs {
        Proofs::ByVisitingAll
    }

    fn prove(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> (Outcome, Option<Proof>) {
        let outcome = self.check(task, budget, progress);
        let proof = (outcome.verdict == Verdict::Safe).then_some(Proof::AllStates);
        (outcome, proof)
    }
}

impl Reachability for Explicit {
    fn reach(
        &self,
        machine: Machine<'_>,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
        stats: &mut Stats,
    ) -> Reached {
        let mut searches = Searches::new(options, budget, progress);
        let bound = if machine.model == Model::Sc { usize::MAX } else { options.max_buffer.max(1) };
        let found = searches.bounded(machine, bound);
        searches.stats.iter().for_each(|(name, value)| stats.add(name, value));
        match found {
            Bounded::Bad(run) => Reached::Bad(run),
            Bounded::Clean { bound_hit: false } => Reached::Nothing,
            Bounded::Clean { bound_hit: true } => Reached::Unknown(Reason::BufferBound(bound)),
            Bounded::Unknown(reason) => Reached::Unknown(reason),
        }
    }
}

/// Host threads, if more than one may be used.
fn pool(budget: &Budget) -> Option<rayon::ThreadPool> {
    let jobs = budget.jobs();
    (jobs > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(jobs).build().ok()).flatten()
}

struct Check<'c> {
    task: &'c Task<'c>,
    searches: Searches<'c>,
}

/// Searches of running forms, one after the other.
struct Searches<'c> {
    options: &'c Options,
    budget: &'c Budget,
    progress: &'c dyn Progress,
    stats: Stats,
    pool: Option<rayon::ThreadPool>,
}

impl Check<'_> {
    /// One instance, two, three …: finds bugs, but proves nothing for all numbers.
    fn any_number(&mut self) -> Verdict {
        let mut reached = None;
        for any in 1..=MOST_INSTANCES {
            match self.fixed(any, self.task.options.max_buffer.min(BUFFER_OF_MANY)) {
                found @ Verdict::Unsafe(_) => return found,
                Verdict::Unknown(Reason::Exhausted(what) | Reason::Partly(what, _)) => {
                    return Verdict::Unknown(Reason::exhausted(what, reached.map(Reason::InstanceBound)));
                }
                Verdict::Safe | Verdict::Unknown(_) => reached = Some(any),
            }
        }
        Verdict::Unknown(Reason::InstanceBound(MOST_INSTANCES))
    }

    /// With this many instances where any number is meant.
    fn fixed(&mut self, any: u32, max_buffer: usize) -> Verdict {
        let system = self.task.system(any);
        let machine = self.task.machine(&system);
        let instantiation = self.task.instantiation(any);
        let found = |run: Run| Verdict::Unsafe(Witness { instantiation, run });
        if !pump::can_pump(machine) {
            return match self.searches.bounded(machine, usize::MAX) {
                Bounded::Bad(run) => found(run),
                Bounded::Clean { .. } => Verdict::Safe,
                Bounded::Unknown(reason) => Verdict::Unknown(reason),
            };
        }
        let limit = max_buffer.max(1);
        let mut reached = None;
        let mut bound = 1;
        loop {
            match self.searches.bounded(machine, bound) {
                Bounded::Bad(run) => return found(run),
                Bounded::Clean { bound_hit: false } => return Verdict::Safe,
                Bounded::Clean { bound_hit: true } if bound == limit => {
                    return Verdict::Unknown(Reason::BufferBound(limit));
                }
                Bounded::Clean { bound_hit: true } => reached = Some(bound),
                Bounded::Unknown(Reason::Exhausted(what)) => {
                    return Verdict::Unknown(Reason::exhausted(what, reached.map(Reason::BufferBound)));
                }
                Bounded::Unknown(reason) => return Verdict::Unknown(reason),
            }
            bound = (bound * 2).min(limit);
        }
    }
}

impl<'c> Searches<'c> {
    fn new(options: &'c Options, budget: &'c Budget, progress: &'c dyn Progress) -> Searches<'c> {
        Searches { options, budget, progress, stats: Stats::new(), pool: pool(budget) }
    }

    /// With buffers up to a bound.
    fn bounded(&mut self, machine: Machine<'_>, bound: usize) -> Bounded {
        let reduce = self.options.reduction == Reduction::Full;
        let collapse = self.options.reduction != Reduction::None;
        let judge = Judge::new(machine.system);
        let mut automaton = Automaton::new(ThreadMachine::new(machine, bound, collapse), collapse);
        let mut spawned = if spawns(machine.system) { 2 } else { 0 };
        let shown = if bound == usize::MAX { None } else { Some(bound) };
        loop {
            let layout = Layout::new(&automaton, spawned, reduce);
            let doing = describe(machine, shown);
            let progress = self.progress;
            let tell = move |counters: &Counters| progress.tell(&doing, &stats(counters, shown, 0));
            let mut search = Search {
                automaton: &mut automaton,
                layout: &layout,
                judge: &judge,
                reduce,
                chains: Payoff::default(),
                budget: self.budget,
                tell: &tell,
                pool: self.pool.as_ref(),
            };
            let (end, counters) = search.run();
            self.stats = stats(&counters, shown, automaton.len() as u64 - 1);
            return match end {
                End::Outgrown => continue,
                End::TooManyThreads if spawned < MOST_SPAWNED => {
                    spawned *= 2;
                    continue;
                }
                End::TooManyThreads => {
                    Bounded::Unknown(Reason::ThreadCount(machine.system.instances.len() + MOST_SPAWNED))
                }
                End::Bad(path) => Bounded::Bad(witness::unfold(&mut automaton, &layout, &path)),
                End::Clean if automaton.too_deep => {
                    Bounded::Unknown(Reason::CallDepth(palisade_automata::MOST_FRAMES))
                }
                End::Clean => Bounded::Clean { bound_hit: automaton.bound_hit },
                End::Exhausted(Exhausted::Stopped) => Bounded::Unknown(Reason::Exhausted(Exhausted::Stopped)),
                End::Exhausted(what) => Bounded::Unknown(match automaton.codes.suspicious(machine.system) {
                    Some(cell) => growing(&automaton, cell),
                    None => Reason::Exhausted(what),
                }),
                End::CellGrows(cell) => Bounded::Unknown(growing(&automaton, cell)),
                End::ThreadStatesGrow => Bounded::Unknown(Reason::Growing {
                    name: automaton.most_varied_register().unwrap_or_default(),
                    values: automaton.len(),
                }),
            };
        }
    }
}

/// The answer of a search with bounded buffers.
enum Bounded {
    Bad(Run),
    Clean { bound_hit: bool },
    Unknown(Reason),
}

fn growing(automaton: &Automaton<'_>, cell: CellId) -> Reason {
    let name = automaton.machine.machine.system.cells[cell].name.clone();
    Reason::Growing { name, values: automaton.codes.size(cell) as usize }
}

fn spawns(system: &System) -> bool {
    let mut edges = system.codes.iter().flat_map(|code| code.edges().iter());
    edges.any(|edge| matches!(edge.instr, Instr::Spawn(..)))
}

fn describe(machine: Machine<'_>, bound: Option<usize>) -> String {
    let model = machine.model.name();
    match (machine.model, bound) {
        (Model::Sc, _) => format!("searching states under {model}"),
        (_, None) => format!("searching states under {model}, buffers of any length"),
        (_, Some(bound)) => format!("searching states under {model}, buffers up to {bound}"),
    }
}

fn stats(counters: &Counters, bound: Option<usize>, thread_states: u64) -> Stats {
    let mut stats = Stats::new();
    stats.set("states", counters.states);
    stats.set("transitions", counters.transitions);
    stats.set("depth", counters.depth);
    stats.set("thread_states", thread_states);
    stats.set("table_bytes", counters.bytes);
    if let Some(bound) = bound {
        stats.set("buffer_bound", bound as u64);
    }
    stats
}
