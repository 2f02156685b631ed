//! The engine `attacks`: robustness under TSO and PSO, by one search for all attacks.
//!
//! *Guarantee.* `robust` is exact, and `not-robust` comes with a run; see `expand` for the argument. The
//! search terminates for every program with finitely many SC states. Any number of threads is decided if control flow
//! rules out every attack, and otherwise by counting threads ([`crate::crowd`]). Runs are found by trying a few.

use crate::crowd::has_cycle;
use crate::discard::Candidates;
use crate::expand::Question;
use crate::search::{AttackEnd, Effort, Search};
use crate::state::{Layout, MAX_CELLS, MAX_THREADS};
use crate::threads::{Threads, Trouble};
use crate::witness::unfold;
use palisade_automata::Population;
use palisade_engine::{
    Analysis, Engine, Exhausted, IDENTITIES, Limits, Outcome, Reason, Robustness, Stats, Suitability,
    Verdict, Witness,
};
use palisade_memory::{Machine, Model};
use palisade_program::running::{CellId, Instr, System};
use palisade_search::{StateId, pool};
use palisade_trace::Run;

/// Robustness by attacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attacks;

/// The number of instances tried for templates that may have any number, before threads are counted. Most cycles need
/// no more.
const FIRST_INSTANCES: u32 = 2;
/// The same if it is not known whether there is a cycle.
const MAX_INSTANCES: u32 = 3;
/// The same if there is one.
const MAX_INSTANCES_OF_CYCLE: u32 = 8;
/// One part in this many of the time is kept for trying more instances.
const SHARE: u32 = 4;
/// Room for started threads at first. It is doubled when it is not enough.
const STARTED: usize = 4;
/// Threads that are counted have no run.
const CYCLE_WITHOUT_RUN: &str =
    "store buffers add behaviour with some number of threads, but no run was found";
/// How much work counting started threads may take.
const WORK: u64 = 1 << 16;

impl Engine<Robustness> for Attacks {
    fn name(&self) -> &'static str {
        "attacks"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        if analysis.task.is_parameterized() { Suitability::Tries } else { Suitability::Decides }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<Robustness> {
        let mut stats = Stats::new();
        let answer = if analysis.task.is_parameterized() {
            any_number(analysis, limits, &mut stats)
        } else {
            fixed(analysis, 1, limits, &mut stats)
        };
        Outcome::new(self.name(), answer, stats)
    }
}

/// Tries one instance and two, which finds most cycles. Then threads are counted. If that does not decide the question,
/// or if there is a cycle, more instances are tried.
fn any_number(analysis: &Analysis<'_>, limits: &Limits, stats: &mut Stats) -> Verdict {
    if analysis.task.has_open_identities() {
        return Verdict::Unknown(Reason::Unsupported(IDENTITIES.into()));
    }
    // With two instances of each of these templates, the analysis of control flow already considers other
    // instances of the same template. So an attack that it rules out is ruled out for any number.
    let two = analysis.system(2);
    let candidates = match Candidates::new(Question::Cycle, analysis.machine(&two), limits) {
        Err(reason) => return Verdict::Unknown(reason),
        Ok(found) if analysis.task.model == Model::Sc || found.is_empty() => {
            stats.set("states", 0);
            return Verdict::Holds;
        }
        Ok(found) => found,
    };
    let mut reached = None;
    // What counting threads showed.
    let mut counted = None;
    let mut most = MAX_INSTANCES;
    for any in 1..=MAX_INSTANCES_OF_CYCLE {
        if any > most {
            break;
        }
        if any > FIRST_INSTANCES && counted.is_none() {
            let mut system = two.as_ref().clone();
            system.properties.clear();
            let population = |role| analysis.task.population(&system, role);
            let limits = limits.clone().leaving_one_in(SHARE);
            let has_cycle = || has_cycle(analysis.machine(&system), &population, &candidates, &limits, stats);
            match limits.within(has_cycle).unwrap_or_else(|what| Err(Reason::Exhausted(what))) {
                Ok(false) => return Verdict::Holds,
                Ok(true) => {
                    most = MAX_INSTANCES_OF_CYCLE;
                    counted = Some(Reason::Unshown(CYCLE_WITHOUT_RUN.to_owned()));
                }
                Err(why) => counted = Some(why),
            }
        }
        let found = limits.within(|| fixed(analysis, any, limits, stats));
        match found.unwrap_or_else(|what| Verdict::Unknown(Reason::Exhausted(what))) {
            found @ Verdict::Violated(_) => return found,
            Verdict::Holds => reached = Some(any),
            Verdict::Unknown(reason) => {
                return Verdict::Unknown(match (reason.what_ran_out(), reached) {
                    (Some(what), reached) => match counted {
                        Some(why @ Reason::Unshown(_)) => why,
                        _ => Reason::exhausted(what, reached.map(Reason::RobustUpTo)),
                    },
                    _ => reason,
                });
            }
        }
    }
    Verdict::Unknown(match counted {
        Some(why @ Reason::Unshown(_)) => why,
        Some(why) => why.and_known(Reason::RobustUpTo(most)),
        None => Reason::RobustUpTo(most),
    })
}

/// Searches with this many instances of each template that may have any number.
fn fixed(analysis: &Analysis<'_>, any: u32, limits: &Limits, stats: &mut Stats) -> Verdict {
    let mut system = analysis.system(any).as_ref().clone();
    // Properties do not matter here.
    system.properties.clear();
    match attack(&system, analysis, limits, stats) {
        Ok(None) => Verdict::Holds,
        Ok(Some(run)) => Verdict::Violated(Witness { instantiation: analysis.instantiation(any), run }),
        Err(reason) => Verdict::Unknown(reason),
    }
}

/// A run with a cycle, if there is one.
fn attack(
    system: &System,
    analysis: &Analysis<'_>,
    limits: &Limits,
    stats: &mut Stats,
) -> Result<Option<Run>, Reason> {
    if analysis.task.model == Model::Sc {
        return Ok(None);
    }
    let machine = analysis.machine(system);
    let pool = pool(limits);
    let effort = Effort { limits, pool: pool.as_ref() };
    find(
        Question::Cycle,
        machine,
        &effort,
        stats,
        |_, cycles| cycles,
        |search, cycles| unfold(search, machine, cycles[0]),
    )
}

/// Searches for cycles that the caller accepts, and passes them on. `None` if there are none.
pub(crate) fn find<'s, T>(
    question: Question,
    machine: Machine<'s>,
    effort: &Effort<'_>,
    stats: &mut Stats,
    mut wanted: impl FnMut(&mut Search<'s>, Vec<StateId>) -> Vec<StateId>,
    make: impl FnOnce(&mut Search<'s>, Vec<StateId>) -> T,
) -> Result<Option<T>, Reason> {
    let Machine { system, model, interlocked } = machine;
    let instances = system.instances.len();
    if system.cells.len() >= MAX_CELLS || instances > MAX_THREADS || system.roles.is_empty() {
        let nothing = system.roles.is_empty();
        let why = "the program has too many variables or processes for this engine";
        return if nothing { Ok(None) } else { Err(Reason::Unsupported(why.to_owned())) };
    }
    let candidates = Candidates::new(question, machine, effort.limits)?;
    stats.add("states", 0);
    stats.add("attacks", candidates.attacks);
    stats.add("attacks_discarded", candidates.attacks.saturating_sub(candidates.left));
    if candidates.is_empty() {
        return Ok(None);
    }
    let starts = system.codes.iter().flat_map(|code| code.edges().iter());
    let may_start = starts.into_iter().any(|edge| matches!(edge.instr, Instr::Spawn(..)));
    let mut room = if may_start { STARTED } else { 0 };
    // There may be no bound on the number of started threads. Then they are counted, once.
    let mut count = may_start && question == Question::Cycle;
    let mut has_cycle = false;
    loop {
        let threads = Threads::new(system, model, interlocked);
        let layout = Layout { cells: system.cells.len(), threads: (instances + room).min(MAX_THREADS) };
        let mut search = Search::new(question, threads, layout, model, candidates.clone());
        let limits = if count { effort.limits.clone().leaving_one_in(SHARE) } else { effort.limits.clone() };
        let found = search.run(machine, &Effort { limits: &limits, ..*effort }, stats, &mut wanted);
        if cfg!(debug_assertions) {
            search.threads.automaton.check_invariants();
        }
        let is_too_large = match found {
            AttackEnd::ThreadCount => true,
            AttackEnd::Exhausted(what) => what != Exhausted::Stopped,
            _ => false,
        };
        if is_too_large && count {
            count = false;
            match count_threads(machine, &candidates, effort.limits, stats) {
                Ok(false) => return Ok(None),
                Ok(true) => has_cycle = true,
                Err(_) => {}
            }
        }
        if matches!(found, AttackEnd::ThreadCount) && layout.threads < MAX_THREADS {
            room *= 2;
            continue;
        }
        search.count(stats);
        return match found {
            AttackEnd::Cycles(cycles) => Ok(Some(make(&mut search, cycles))),
            AttackEnd::Nothing => Ok(None),
            _ if is_too_large && has_cycle => Err(Reason::Unshown(CYCLE_WITHOUT_RUN.to_owned())),
            found => Err(reason(&search, machine, found)),
        };
    }
}

/// Whether there is a cycle with any number of started threads.
fn count_threads(
    machine: Machine<'_>,
    candidates: &Candidates,
    limits: &Limits,
    stats: &mut Stats,
) -> Result<bool, Reason> {
    let population = |role| {
        let instances = machine.system.instances.iter().filter(|instance| instance.role == role);
        Population::Fixed(instances.count() as u32)
    };
    let limits = limits.clone().at_most_work(WORK).leaving_one_in(SHARE);
    has_cycle(machine, &population, candidates, &limits, stats)
}

/// Why a search has no answer.
fn reason(search: &Search<'_>, machine: Machine<'_>, found: AttackEnd) -> Reason {
    match found {
        AttackEnd::Exhausted(Exhausted::Stopped) => Reason::Exhausted(Exhausted::Stopped),
        AttackEnd::Exhausted(what) => match search.threads.automaton.values.most_varied(SUSPICIOUS) {
            Some(cell) => growing(search, machine, cell),
            None => Reason::Exhausted(what),
        },
        AttackEnd::ThreadCount => Reason::Unsupported(format!("there are more than {MAX_THREADS} processes")),
        AttackEnd::Trouble(Trouble::Values(cell)) => growing(search, machine, cell),
        AttackEnd::Trouble(Trouble::Calls) => {
            let most = palisade_automata::MAX_CALLS;
            Reason::Unsupported(format!("there are more than {most} nested calls"))
        }
        AttackEnd::Trouble(Trouble::Section) => {
            Reason::Unsupported("an atomic section takes too many steps".to_owned())
        }
        AttackEnd::Cycles(_) | AttackEnd::Nothing => unreachable!("these are answers"),
    }
}

/// When the limits are reached, this many values of a variable without a declared domain are suspicious.
const SUSPICIOUS: u64 = 64;

fn growing(search: &Search<'_>, machine: Machine<'_>, cell: CellId) -> Reason {
    let name = machine.system.cells[cell].name.clone();
    Reason::Growing { name, values: search.threads.automaton.values.size(cell) as usize }
}
