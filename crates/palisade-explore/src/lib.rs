//! Explicit-state search under SC, TSO and PSO (`--engine explicit`).
//!
//! *Problem.* Is a bad state reachable?
//!
//! *Guarantee.*
//! - `unsafe` comes with a run.
//! - `safe` is exact. This always holds under SC. Under TSO and PSO, `safe` is reported only if no thread
//!   ever wanted a longer buffer than the search allowed.
//! - If buffers may grow without bound ([`pump`]), the bound grows from 1 to the given limit, and a clean
//!   search at the limit is `unknown`.
//! - Templates with any number of instances are tried with a few instances. This finds bugs, and is `unknown`
//!   otherwise.
//! - Recursion deeper than the limit is `unknown`, and so are values that grow without bound.
//! - Where threads are started without bound, several numbers of started threads are tried in turn.
//! - An `unknown` states every bound that the search kept to. Nothing is bad within all of these bounds
//!   together.
//!
//! *Structure*
//!
//! | file | idea |
//! |---|---|
//! | `palisade-automata` | thread states, steps of the trusted machine, collapsed local steps |
//! | `palisade-automata::on_demand` | thread states by number, moves looked up instead of evaluated |
//! | [`automaton`] | where threads wait in this engine, and the notes kept on them |
//! | [`judge`] | judging packed states |
//! | [`footprint`], [`expand`] | which cells threads may still access; persistent sets |
//! | [`chain`] | states with one successor are not stored |
//! | [`layout`] | packed states; symmetry as sorting |
//! | [`symmetry`] | symmetry of threads that differ in data |
//! | `palisade-search`, [`search`] | breadth first, in batches, on all cores; same answer for any job count |
//! | `palisade-cluster`, [`shared`] | the same search, shared by several processes |
//! | [`progress`] | deadlocks, and what stays reachable |
//! | [`fair`], [`strong`] | fair runs that go on forever |
//! | [`ranking`](mod@ranking) | proofs for deadlocks and for what stays reachable |
//! | [`witness`] | back to a run of the store-buffer machine |
//! | [`coverage`](mod@coverage) | which steps runs take, by the same search |
//! | [`ends`] | all outcomes of a program, by the same search |
//! | [`shortest`](mod@shortest) | a shortest run, by the same search without reductions |

mod automaton;
mod chain;
mod coverage;
mod ends;
mod expand;
mod fair;
mod flags;
mod footprint;
mod judge;
mod layout;
mod progress;
mod pump;
mod ranking;
mod search;
mod shared;
mod shortest;
mod strong;
mod symmetry;
mod witness;

pub use coverage::{Covered, coverage};
pub use ends::{Outcomes, outcomes, run_to_end};
pub use ranking::ranking;
pub use shortest::{Shortest, shortest};

use automaton::{Automaton, Steps, automaton, share_steps, varied_register};
use ends::Ends;
use expand::Crowd;
use judge::Judge;
use layout::Layout;
use palisade_automata::{Coverage, MAX_CALLS, ThreadMachine};
use palisade_cluster::Part;
use palisade_engine::{
    Analysis, Engine, Exhausted, Limits, Options, Outcome, Proof, Proofs, Reachability, Reached, Reason,
    Reduction, Stats, Suitability, Verdict, Witness,
};
use palisade_memory::{Machine, Model};
use palisade_program::running::{CellId, Liveness, Structure};
use palisade_search::pool;
use palisade_trace::Run;
pub use progress::Progress;
use search::{Counters, End, Goal, Search, Tally};
use std::sync::Arc;
use std::time::Instant;

/// The explicit-state engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explicit;

/// The largest number of instances tried for templates that may have any number.
const MAX_INSTANCES: u32 = 4;
/// The longest buffer tried with such templates, if buffers may grow without bound.
const BUFFER_OF_MANY: usize = 2;
/// How many started threads may exist at once. Where there may be more, the numbers in [`CAPS`] are tried.
const MAX_SPAWNED: usize = 32;
/// Where threads are started without bound, these numbers of started threads are tried in turn.
const CAPS: [usize; 6] = [1, 2, 4, 8, 16, MAX_SPAWNED];
/// How many states may be visited for each of these numbers. Larger numbers of threads lead to more and more
/// states, and never prove anything.
const STATES_PER_CAP: u64 = 1 << 19;

impl Engine for Explicit {
    fn name(&self) -> &'static str {
        "explicit"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        let system = analysis.system(1);
        if analysis.task.is_parameterized() || pump::can_pump(analysis.machine(&system)) {
            Suitability::Tries
        } else {
            Suitability::Decides
        }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        let mut searches = Searches::new(Goal::Bad, &analysis.task.options, limits);
        if analysis.wants_coverage() {
            searches.coverage = limits.within(|| Coverage::new(&analysis.system(1))).ok();
        }
        let mut run = Check { analysis, searches };
        let verdict = if analysis.task.is_parameterized() {
            run.any_number()
        } else {
            run.fixed(1, analysis.task.options.max_buffer)
        };
        if let (Verdict::Holds, Some(coverage)) = (&verdict, run.searches.coverage) {
            // Nothing is bad, so there was no fault, and the reductions keep all steps.
            analysis.learn_coverage(coverage);
        }
        Outcome::new(self.name(), verdict, run.searches.stats)
    }

    fn proofs(&self) -> Proofs {
        Proofs::ByVisitingAll
    }

    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome, Option<Proof>) {
        let outcome = self.check(analysis, limits);
        let proof = (outcome.verdict == Verdict::Holds).then_some(Proof::AllStates);
        (outcome, proof)
    }
}

impl Reachability for Explicit {
    fn reach(&self, machine: Machine<'_>, options: &Options, limits: &Limits, stats: &mut Stats) -> Reached {
        let mut searches = Searches::new(Goal::Bad, options, limits);
        let bound = if machine.model == Model::Sc { usize::MAX } else { options.max_buffer.max(1) };
        let found = match limits.within(|| Arc::new(Liveness::new(machine.system))) {
            Ok(liveness) => searches.bounded(machine, &liveness, bound),
            Err(what) => Bounded::Unknown(Reason::Exhausted(what)),
        };
        searches.stats.iter().for_each(|(name, value)| stats.add(name, value));
        match found {
            Bounded::Bad(run) => Reached::Bad(run),
            Bounded::Clean(cuts) => match cuts.reason(bound) {
                None => Reached::Nothing,
                Some(reason) => Reached::Unknown(reason),
            },
            Bounded::Unknown(reason) => Reached::Unknown(reason),
            Bounded::Open | Bounded::Enough => unreachable!("bad states are looked for"),
        }
    }
}

struct Check<'c> {
    analysis: &'c Analysis<'c>,
    searches: Searches<'c>,
}

/// A series of searches of running forms.
struct Searches<'c> {
    goal: Goal,
    options: &'c Options,
    limits: &'c Limits,
    stats: Stats,
    pool: Option<rayon::ThreadPool>,
    /// If present, what is searched for: the ends of runs, not bad states.
    ends: Option<&'c Ends<'c>>,
    /// The steps that all searches have seen, if they are wanted.
    coverage: Option<Coverage>,
    /// Whether these steps are enough.
    enough: Option<&'c (dyn Fn(&Coverage) -> bool + Sync)>,
    /// Whether some thread caused a fault.
    fault_seen: bool,
}

impl Check<'_> {
    /// Tries one instance, two, three and so on. This finds bugs, but proves nothing for all numbers.
    fn any_number(&mut self) -> Verdict {
        // The bounds of the searches other than the number of instances.
        let mut other_bounds = None;
        let mut reached = None;
        for any in 1..=MAX_INSTANCES {
            match self.fixed(any, self.analysis.task.options.max_buffer.min(BUFFER_OF_MANY)) {
                found @ Verdict::Violated(_) => return found,
                Verdict::Holds => {}
                Verdict::Unknown(bound) if bound.is_bound() => {
                    other_bounds = Reason::within(other_bounds.into_iter().chain([bound]));
                }
                Verdict::Unknown(reason) => {
                    return Verdict::Unknown(match reason.what_ran_out() {
                        Some(what) => Reason::exhausted(what, reached),
                        None => reason,
                    });
                }
            }
            reached = Reason::within([Reason::InstanceBound(any)].into_iter().chain(other_bounds.clone()));
        }
        Verdict::Unknown(reached.expect("at least one number was tried"))
    }

    /// Searches with this many instances of each template that may have any number.
    fn fixed(&mut self, any: u32, max_buffer: usize) -> Verdict {
        let analysis = self.analysis;
        let (system, liveness) =
            match self.searches.limits.within(|| (analysis.system(any), analysis.liveness(any))) {
                Ok(lowered) => lowered,
                Err(what) => return Verdict::Unknown(Reason::Exhausted(what)),
            };
        let machine = self.analysis.machine(&system);
        let instantiation = self.analysis.instantiation(any);
        let found = |run: Run| Verdict::Violated(Witness { instantiation, run });
        let (mut bound, limit) =
            if pump::can_pump(machine) { (1, max_buffer.max(1)) } else { (usize::MAX, usize::MAX) };
        let mut reached = None;
        loop {
            match self.searches.bounded(machine, &liveness, bound) {
                Bounded::Bad(run) => return found(run),
                Bounded::Clean(cuts) => match cuts.reason(bound) {
                    None => return Verdict::Holds,
                    // Longer buffers add nothing, or are not tried.
                    Some(reason) if !cuts.buffers || bound == limit => return Verdict::Unknown(reason),
                    Some(reason) => reached = Some(reason),
                },
                Bounded::Unknown(Reason::Exhausted(what)) => {
                    return Verdict::Unknown(Reason::exhausted(what, reached));
                }
                Bounded::Unknown(reason) => return Verdict::Unknown(reason),
                Bounded::Enough => return Verdict::Holds,
                Bounded::Open if bound == limit => return Verdict::Unknown(progress::open(bound)),
                Bounded::Open => {}
            }
            bound = (bound * 2).min(limit);
        }
    }
}

impl<'c> Searches<'c> {
    fn new(goal: Goal, options: &'c Options, limits: &'c Limits) -> Searches<'c> {
        Searches {
            goal,
            options,
            limits,
            stats: Stats::new(),
            pool: pool(limits),
            ends: None,
            coverage: None,
            enough: None,
            fault_seen: false,
        }
    }

    /// Searches with buffers up to a bound. Where threads are started without bound, several numbers of them
    /// are tried in turn.
    fn bounded(&mut self, machine: Machine<'_>, liveness: &Arc<Liveness>, bound: usize) -> Bounded {
        let collapse = self.options.reduction != Reduction::None;
        let steps = match self.goal {
            _ if !collapse => Steps::Single,
            Goal::Bad | Goal::Steps => Steps::Collapsed,
            Goal::Stuck | Goal::OutOfReach => Steps::Settled,
            Goal::Forever => unreachable!("fair runs are searched without reductions"),
        };
        let symmetric = self.symmetric() && self.ends.is_none();
        let prepare =
            || automaton(ThreadMachine::new(machine, liveness.clone(), bound, collapse), steps, symmetric);
        let mut automaton = match self.limits.within(prepare) {
            Ok(automaton) => automaton,
            Err(what) => return Bounded::Unknown(Reason::Exhausted(what)),
        };
        let mut room = if Structure::new(machine.system).spawns { 2 } else { 0 };
        loop {
            let end = self.search(&mut automaton, room, Crowd::Grows, self.limits);
            match end {
                End::TooManyThreads if room < MAX_SPAWNED => room *= 2,
                End::TooManyThreads if matches!(self.goal, Goal::OutOfReach | Goal::Forever) => {
                    return Bounded::Unknown(progress::too_many_threads(self.goal));
                }
                End::TooManyThreads => break,
                end => return self.answer(&mut automaton, end, room),
            }
        }
        let mut reached = None;
        for cap in CAPS {
            // A limit that an earlier search hit counts for this search only if this one hits it too.
            let mut automaton = match self.limits.within(prepare) {
                Ok(automaton) => automaton,
                Err(what) => {
                    let reached = reached.and_then(|cuts: Cuts| cuts.reason(bound));
                    return Bounded::Unknown(Reason::exhausted(what, reached));
                }
            };
            let limits = self.limits.clone().at_most_work(STATES_PER_CAP);
            let end = self.search(&mut automaton, cap, Crowd::Capped, &limits);
            match self.answer(&mut automaton, end, cap) {
                Bounded::Clean(cuts) => reached = Some(cuts),
                Bounded::Unknown(Reason::Exhausted(Exhausted::Work(STATES_PER_CAP))) => break,
                Bounded::Unknown(Reason::Exhausted(what)) => {
                    let reached = reached.and_then(|cuts| cuts.reason(bound));
                    return Bounded::Unknown(Reason::exhausted(what, reached));
                }
                other => return other,
            }
        }
        reached.map_or_else(
            || {
                let why = "the program starts processes without bound, and there are too many states even with only one of them";
                Bounded::Unknown(Reason::Unsupported(why.to_owned()))
            },
            Bounded::Clean,
        )
    }

    /// Whether interchangeable threads are exchanged.
    fn symmetric(&self) -> bool {
        match self.goal {
            Goal::Bad | Goal::Steps => self.options.reduction == Reduction::Full,
            Goal::Stuck | Goal::OutOfReach => self.options.reduction != Reduction::None,
            Goal::Forever => false,
        }
    }

    /// One search, with room for this many started threads.
    fn search(&mut self, automaton: &mut Automaton<'_>, room: usize, crowd: Crowd, limits: &Limits) -> End {
        let reduce = self.options.reduction == Reduction::Full;
        let symmetry = self.symmetric();
        let machine = automaton.machine.machine;
        let bound = automaton.machine.bound;
        let judge = match limits.within(|| Judge::new(machine.system)) {
            Ok(judge) => judge,
            Err(what) => return End::Exhausted(what),
        };
        let shown = if bound == usize::MAX { None } else { Some(bound) };
        if let Some(known) = &self.coverage {
            automaton.policy.coverage.add(known);
        }
        loop {
            let layout = Layout::new(automaton, room, symmetry);
            let doing = describe(machine, shown);
            let limits = self.limits;
            let began = Instant::now();
            let report = move |counters: &Counters, parts: &[Part]| {
                limits.report(&doing, &stats(counters, shown, 0, parts, began));
            };
            let mut search = Search {
                automaton,
                layout: &layout,
                judge: &judge,
                goal: self.goal,
                ends: self.ends,
                enough: self.enough,
                reduce,
                crowd,
                tally: Tally::default(),
                limits,
                report: &report,
                pool: self.pool.as_ref(),
            };
            let (end, counters, parts) = search.run();
            if cfg!(debug_assertions) {
                automaton.check_invariants();
            }
            self.stats = stats(&counters, shown, automaton.len() as u64, &parts, began);
            if let Some(symmetry) = automaton.policy.symmetry.as_ref().filter(|_| layout.symmetric) {
                self.stats.set("symmetric_threads", symmetry.threads.len() as u64);
            }
            self.fault_seen |= automaton.policy.fault_seen;
            if let Some(coverage) = &mut self.coverage {
                coverage.add(&automaton.policy.coverage);
                share_steps(automaton, coverage);
                coverage.ends |= judge.has_seen_end();
            }
            match end {
                End::Outgrown => {}
                End::Bad(path) if self.goal == Goal::Bad => {
                    return End::Run(witness::unfold(automaton, &layout, &path));
                }
                End::Bad(path) => return End::Run(witness::unfold_all(automaton, &layout, &path)),
                end => return end,
            }
        }
    }

    /// The answer given by the end of a search with room for this many started threads.
    fn answer(&self, automaton: &mut Automaton<'_>, end: End, room: usize) -> Bounded {
        match end {
            End::Run(run) => Bounded::Bad(run),
            End::Open => Bounded::Open,
            End::Enough => Bounded::Enough,
            End::Clean { left_out } => Bounded::Clean(Cuts {
                buffers: automaton.policy.bound_hit,
                calls: automaton.policy.too_deep,
                spawned: left_out.then_some(room),
            }),
            End::Exhausted(Exhausted::Stopped) => Bounded::Unknown(Reason::Exhausted(Exhausted::Stopped)),
            End::Exhausted(what) => Bounded::Unknown(match automaton.values.most_varied(SUSPICIOUS) {
                Some(cell) => growing(automaton, cell),
                None => Reason::Exhausted(what),
            }),
            End::CellGrows(cell) => Bounded::Unknown(growing(automaton, cell)),
            End::ThreadStatesGrow => Bounded::Unknown(match varied_register(automaton) {
                Some((name, values)) if values >= VARIED => Reason::Growing { name, values },
                _ => Reason::Unsupported(format!(
                    "the number of local states of the processes keeps growing ({} so far)",
                    automaton.len()
                )),
            }),
            End::Lost(lost) => Bounded::Unknown(Reason::Observed(lost.to_string())),
            End::Bad(_) | End::Outgrown | End::TooManyThreads => unreachable!("handled by the caller"),
        }
    }
}

/// The answer of a search with bounded buffers.
enum Bounded {
    Bad(Run),
    /// Nothing bad was found outside the parts that were cut off.
    Clean(Cuts),
    /// See [`End::Open`].
    Open,
    /// See [`End::Enough`].
    Enough,
    Unknown(Reason),
}

/// The limits at which a search was cut off.
#[derive(Clone, Copy, Debug)]
struct Cuts {
    /// Some thread wanted a longer buffer.
    buffers: bool,
    /// Some thread called deeper than the search follows.
    calls: bool,
    /// More threads than this would have been started.
    spawned: Option<usize>,
}

impl Cuts {
    /// The bounds that the search kept to, or `None` if it is exact.
    fn reason(self, buffer: usize) -> Option<Reason> {
        let buffers = self.buffers.then_some(Reason::BufferBound(buffer));
        let calls = self.calls.then_some(Reason::CallDepth(MAX_CALLS));
        Reason::within(buffers.into_iter().chain(calls).chain(self.spawned.map(Reason::Spawned)))
    }
}

/// When the limits are reached, this many values of a cell without a declared domain are suspicious.
const SUSPICIOUS: u64 = 64;

/// A register with this many values is named as the reason why the number of thread states keeps growing.
const VARIED: usize = 1 << 10;

fn growing(automaton: &Automaton<'_>, cell: CellId) -> Reason {
    let name = automaton.system().cells[cell].name.clone();
    Reason::Growing { name, values: automaton.values.size(cell) as usize }
}

fn describe(machine: Machine<'_>, bound: Option<usize>) -> String {
    let model = machine.model.name();
    match (machine.model, bound) {
        (Model::Sc, _) => format!("searching states under {model}"),
        (_, None) => format!("searching states under {model}, buffers of any length"),
        (_, Some(bound)) => format!("searching states under {model}, buffers up to {bound}"),
    }
}

fn stats(
    counters: &Counters,
    bound: Option<usize>,
    thread_states: u64,
    parts: &[Part],
    began: Instant,
) -> Stats {
    let mut stats = Stats::new();
    stats.set("states", counters.states);
    stats.set("transitions", counters.transitions);
    stats.set("depth", counters.depth);
    stats.set("chain_steps", counters.chain_steps);
    stats.set("thread_states", thread_states);
    stats.set("table_bytes", counters.bytes);
    if let Some(bound) = bound {
        stats.set("buffer_bound", bound as u64);
    }
    stats.set_processes(parts.iter().map(|part| shared::stats_of(part, began)).collect());
    stats
}
