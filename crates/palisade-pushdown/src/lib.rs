//! Sequentially consistent programs with recursive procedures, within a number of rounds (`--engine
//! pushdown`).
//!
//! *Problem.* Is a bad state reachable under SC, if each process runs in at most K rounds? Processes have
//! procedures that call themselves, so the height of their stacks has no bound.
//!
//! *Guarantee.*
//! - `unsafe` comes with a run.
//! - `safe` holds for any number of rounds and stacks of any height.
//! - `unknown` with [`Reason::Rounds`] is an exact answer about K rounds: no run in which every process has
//!   at most K rounds is bad.
//!
//! Without a bound on the rounds the question is undecidable (two stacks are enough). So in that case the
//! number of rounds grows until more rounds add nothing or the limits are reached.
//!
//! *Structure*
//!
//! | file | idea |
//! |---|---|
//! | [`calls`] | which programs are recursive, which start threads |
//! | [`rules`] | threads as pushdown systems; every rule is a step of the trusted machine |
//! | [`saturate`](mod@saturate) | all stacks a thread can reach when it runs alone, as an automaton |
//! | [`language`] | sets of stacks in normal form |
//! | [`contexts`] | rounds of all threads, level by level |
//! | [`views`] | what properties see of sets of stacks |
//! | [`witness`] | back to a run of the machine |
//! | [`tokens`], [`numbers`], [`population`] | threads without recursion, started in any number |
//! | [`proof`] | the sets and markings found, as a proof that can be checked |

mod contexts;
mod language;
mod numbers;
mod population;
mod proof;
mod rules;
mod saturate;
mod tokens;
mod views;
mod witness;

use contexts::{Contexts, ContextsEnd, Counters, Interrupted};
use palisade_engine::{
    Analysis, Bound, Engine, Limits, ONLY_EXPLICIT_FINDS_RACES, Outcome, Proof, Proofs, Reason, Stats,
    Suitability, Verdict, Witness,
};
use palisade_memory::{Machine, Model};
use population::Population;
use witness::NoRun;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pushdown;

/// How many threads may be started in a run with stacks.
const MAX_STARTED: usize = 8;
/// How many threads in one thread state are distinguished before the answer is `unknown`. In decidable cases,
/// a few are enough.
const MAX_IN_ONE_PLACE: u32 = 32;

impl Engine for Pushdown {
    fn name(&self) -> &'static str {
        "pushdown"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        if analysis.task.model != Model::Sc || analysis.task.is_parameterized() {
            return Suitability::No;
        }
        let structure = analysis.structure();
        match (structure.is_recursive, structure.spawns) {
            (true, _) => Suitability::Tries,
            (false, true) => Suitability::Decides,
            (false, false) => Suitability::Reluctant,
        }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        self.answer(analysis, limits, false).0
    }

    fn proofs(&self) -> Proofs {
        Proofs::Argued
    }

    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome, Option<Proof>) {
        self.answer(analysis, limits, true)
    }
}

impl Pushdown {
    fn answer(&self, analysis: &Analysis<'_>, limits: &Limits, prove: bool) -> (Outcome, Option<Proof>) {
        let mut stats = Stats::new();
        let (verdict, proof) = match refusal(analysis) {
            Some(why) => (Verdict::Unknown(Reason::Unsupported(why)), None),
            None => {
                let system = analysis.system(1);
                let machine = analysis.machine(&system);
                let request = Request { analysis, machine, limits, prove };
                let structure = analysis.structure();
                if structure.spawns && !structure.is_recursive {
                    by_numbers(&request, &mut stats)
                } else {
                    by_rounds(&request, &mut stats)
                }
            }
        };
        (Outcome::new(self.name(), verdict, stats), proof)
    }
}

/// A task that the engine accepts.
struct Request<'q> {
    analysis: &'q Analysis<'q>,
    machine: Machine<'q>,
    limits: &'q Limits,
    /// Whether a proof of `safe` is wanted.
    prove: bool,
}

/// Why the engine does not accept a task.
fn refusal(analysis: &Analysis<'_>) -> Option<String> {
    if analysis.task.model != Model::Sc {
        return Some(format!(
            "the engine `pushdown` supports only sequential consistency, not {}; `--engine rounds` translates TSO for it",
            analysis.task.model.name()
        ));
    }
    if analysis.structure().has_plain {
        return Some(ONLY_EXPLICIT_FINDS_RACES.to_owned());
    }
    analysis
        .task
        .is_parameterized()
        .then(|| "the engine `pushdown` needs a fixed number of processes".to_owned())
}

/// No recursion, but threads started without bound: decided by counting threads.
fn by_numbers(request: &Request<'_>, stats: &mut Stats) -> (Verdict, Option<Proof>) {
    let Request { analysis, machine, limits, prove } = *request;
    let report = |counters: &population::Counters| {
        let doing = format!("searching with up to {} processes in one place", counters.bound);
        let mut stats = Stats::new();
        stats.set("states", counters.states);
        limits.report(&doing, &stats);
    };
    let mut population = Population::new(machine, analysis.liveness(1), limits, &report);
    let found = population.search(MAX_IN_ONE_PLACE, prove);
    stats.set("states", population.counters.states);
    stats.set("in_one_place", population.counters.bound.into());
    stats.set("thread_states", population.tokens.len() as u64);
    stats.set("memories", population.memories.len() as u64);
    // With this many threads in one place, every run that starts at most this many is covered.
    let bounded = |bound: u32| Reason::Spawned(bound as usize);
    let verdict = match found {
        Ok(population::PopulationEnd::Bad(run)) => {
            Verdict::Violated(Witness { instantiation: analysis.instantiation(1), run })
        }
        Ok(population::PopulationEnd::Nothing(proof)) => return (Verdict::Holds, proof.map(Proof::Crowds)),
        Ok(population::PopulationEnd::Open(bound)) => Verdict::Unknown(bounded(bound)),
        Err(Interrupted::Exhausted(what)) => {
            let reached = population.counters.bound.checked_sub(1).filter(|&bound| bound > 0);
            Verdict::Unknown(Reason::exhausted(what, reached.map(bounded)))
        }
        Err(interrupted) => Verdict::Unknown(reason(interrupted, None)),
    };
    (verdict, None)
}

/// With stacks: decided by rounds of threads.
fn by_rounds(request: &Request<'_>, stats: &mut Stats) -> (Verdict, Option<Proof>) {
    let Request { analysis, machine, limits, prove } = *request;
    let most_rounds = match analysis.task.options.rounds {
        Bound::Fixed(rounds) => rounds,
        Bound::Auto => u32::MAX,
    };
    let report = |counters: &Counters| {
        let doing = match counters.level {
            0 | 1 => "searching runs with one round per process".to_owned(),
            rounds => format!("searching runs with up to {rounds} rounds per process"),
        };
        let mut stats = Stats::new();
        stats.set("states", counters.edges);
        limits.report(&doing, &stats);
    };
    let mut contexts = Contexts::new(
        machine,
        analysis.liveness(1),
        MAX_STARTED,
        analysis.task.options.reduction,
        limits,
        &report,
    );
    let found = contexts.search(most_rounds);
    let verdict = match found {
        Ok(ContextsEnd::Nothing) if contexts.is_cut() => Verdict::Unknown(started(None)),
        Ok(ContextsEnd::Nothing) => Verdict::Holds,
        Ok(ContextsEnd::NothingUpTo(rounds)) if contexts.is_cut() => Verdict::Unknown(started(Some(rounds))),
        Ok(ContextsEnd::NothingUpTo(rounds)) => Verdict::Unknown(Reason::Rounds(rounds)),
        Ok(ContextsEnd::Bad(last, target)) => match witness::run(&mut contexts, last, &target) {
            Ok(run) => Verdict::Violated(Witness { instantiation: analysis.instantiation(1), run }),
            Err(NoRun::TooLong(steps)) => Verdict::Unknown(Reason::Unshown(format!(
                "a bad state is reachable, but the shortest run that was found has {steps} steps or more, which is too long to show"
            ))),
            Err(NoRun::Interrupted(interrupted)) => Verdict::Unknown(reason(interrupted, None)),
        },
        Err(interrupted) => {
            let reached = contexts.counters.level.checked_sub(1).filter(|&rounds| rounds > 0);
            let cut = contexts.is_cut();
            let reached =
                reached.map(|rounds| if cut { started(Some(rounds)) } else { Reason::Rounds(rounds) });
            Verdict::Unknown(reason(interrupted, reached))
        }
    };
    let (frames, memories) = contexts.rules.counts();
    stats.set("states", contexts.counters.edges + contexts.met.len() as u64);
    stats.set("rounds", contexts.counters.level.into());
    stats.set("contexts", contexts.counters.rounds);
    stats.set("global_sets", contexts.met.len() as u64);
    stats.set("stack_sets", contexts.languages.len() as u64);
    stats.set("frames", frames as u64);
    stats.set("memories", memories as u64);
    let proved = prove && verdict == Verdict::Holds;
    let proof = proved.then(|| Proof::Stacks(proof::stacks(&contexts)));
    (verdict, proof)
}

/// Runs that start more processes were left out.
fn started(rounds: Option<u32>) -> Reason {
    Reason::Started { processes: MAX_STARTED, rounds }
}

fn reason(interrupted: Interrupted, reached: Option<Reason>) -> Reason {
    match interrupted {
        Interrupted::Exhausted(what) => Reason::exhausted(what, reached),
        Interrupted::Growing(growing) => Reason::Growing { name: growing.name, values: growing.values },
    }
}
