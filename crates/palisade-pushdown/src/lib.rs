//! Sequentially consistent programs with recursive procedures, within a number of rounds (`--engine pushdown`).
//!
//! *Problem.* Is a bad state reachable under SC, if each process runs in at most K rounds? Processes have procedures that call themselves, so their stacks have no greatest height.
//!
//! *Guarantee.* `unsafe` comes with a run. `safe` holds for any number of rounds and stacks of any height. `unknown` with [`Reason::Rounds`] is an exact answer about K rounds: no run in which
//! every process has at most K rounds is bad. Without a bound on the rounds the question is undecidable (two stacks are enough), so there the number of rounds grows until more rounds add nothing
//! or the budget runs out.
//!
//! *How it is made*
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
//! | [`proof`] | what was met, for those who check it |

mod calls;
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

pub use calls::{is_recursive, spawns};

use contexts::{Contexts, Counters, Found, Interrupted};
use palisade_engine::{
    Bound, Budget, Engine, Outcome, Progress, Proof, Proofs, Reason, Stats, Suitability, Task, Verdict,
    Witness,
};
use palisade_memory::{Machine, Model};
use population::Population;
use witness::NoRun;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pushdown;

/// Threads that may be started in a run with stacks.
const MOST_STARTED: usize = 8;
/// Threads in one thread state that are told apart before the answer is `unknown`. Where that can be decided, a few are enough.
const MOST_IN_ONE_PLACE: u32 = 32;

impl Engine for Pushdown {
    fn name(&self) -> &'static str {
        "pushdown"
    }

    fn suits(&self, task: &Task<'_>) -> Suitability {
        if task.model != Model::Sc || task.is_parameterized() {
            return Suitability::No;
        }
        let system = task.system(1);
        match (is_recursive(&system), spawns(&system)) {
            (true, _) => Suitability::Tries,
            (false, true) => Suitability::Decides,
            (false, false) => Suitability::Reluctant,
        }
    }

    fn check(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> Outcome {
        self.answer(task, budget, progress, false).0
    }

    fn proofs(&self) -> Proofs {
        Proofs::Argued
    }

    fn prove(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> (Outcome, Option<Proof>) {
        self.answer(task, budget, progress, true)
    }
}

impl Pushdown {
    fn answer(
        &self,
        task: &Task<'_>,
        budget: &Budget,
        progress: &dyn Progress,
        prove: bool,
    ) -> (Outcome, Option<Proof>) {
        let mut stats = Stats::new();
        let (verdict, proof) = match refusal(task) {
            Some(why) => (Verdict::Unknown(Reason::Unsupported(why)), None),
            None => {
                let system = task.system(1);
                let machine = task.machine(&system);
                let asked = Asked { task, machine, budget, progress, prove };
                if spawns(&system) && !is_recursive(&system) {
                    by_numbers(&asked, &mut stats)
                } else {
                    by_rounds(&asked, &mut stats)
                }
            }
        };
        (Outcome { verdict, engine: self.name(), stats }, proof)
    }
}

/// A question that the engine takes.
struct Asked<'q> {
    task: &'q Task<'q>,
    machine: Machine<'q>,
    budget: &'q Budget,
    progress: &'q dyn Progress,
    /// Whether `safe` is to be proved.
    prove: bool,
}

/// Why the engine does not take a task.
fn refusal(task: &Task<'_>) -> Option<String> {
    if task.model != Model::Sc {
        return Some(format!(
            "the engine `pushdown` knows sequential consistency only, not {}; `--engine rounds` translates TSO for it",
            task.model.name()
        ));
    }
    task.is_parameterized().then(|| "the engine `pushdown` does not take any number of processes".to_owned())
}

/// No recursion, but threads without end: counts of threads.
fn by_numbers(asked: &Asked<'_>, stats: &mut Stats) -> (Verdict, Option<Proof>) {
    let Asked { task, machine, budget, progress, prove } = *asked;
    let tell = |counters: &population::Counters| {
        let doing = format!("searching with up to {} processes in one place", counters.bound);
        let mut stats = Stats::new();
        stats.set("states", counters.states);
        progress.tell(&doing, &stats);
    };
    let mut population = Population::new(machine, budget, &tell);
    let found = population.search(MOST_IN_ONE_PLACE, prove);
    stats.set("states", population.counters.states);
    stats.set("in_one_place", population.counters.bound.into());
    stats.set("thread_states", population.tokens.len() as u64);
    stats.set("memories", population.memories.len() as u64);
    // With so many in one place, every run is covered that starts no more.
    let bounded = |bound: u32| Reason::Spawned(bound as usize);
    let verdict = match found {
        Ok(population::Found::Bad(run)) => {
            Verdict::Unsafe(Witness { instantiation: task.instantiation(1), run })
        }
        Ok(population::Found::Nothing(proof)) => return (Verdict::Safe, proof.map(Proof::Crowds)),
        Ok(population::Found::Open(bound)) => Verdict::Unknown(bounded(bound)),
        Err(Interrupted::Exhausted(what)) => {
            let reached = population.counters.bound.checked_sub(1).filter(|&bound| bound > 0);
            Verdict::Unknown(Reason::exhausted(what, reached.map(bounded)))
        }
        Err(interrupted) => Verdict::Unknown(reason(interrupted, None)),
    };
    (verdict, None)
}

/// Stacks: rounds of threads.
fn by_rounds(asked: &Asked<'_>, stats: &mut Stats) -> (Verdict, Option<Proof>) {
    let Asked { task, machine, budget, progress, prove } = *asked;
    let most_rounds = match task.options.rounds {
        Bound::Fixed(rounds) => rounds,
        Bound::Auto => u32::MAX,
    };
    let tell = |counters: &Counters| {
        let doing = match counters.level {
            0 | 1 => "searching runs with one round per process".to_owned(),
            rounds => format!("searching runs with up to {rounds} rounds per process"),
        };
        let mut stats = Stats::new();
        stats.set("states", counters.edges);
        progress.tell(&doing, &stats);
    };
    let mut contexts = Contexts::new(machine, MOST_STARTED, task.options.reduction, budget, &tell);
    let found = contexts.search(most_rounds);
    let verdict = match found {
        Ok(Found::Nothing) if contexts.is_cut() => Verdict::Unknown(started(None)),
        Ok(Found::Nothing) => Verdict::Safe,
        Ok(Found::NothingUpTo(rounds)) if contexts.is_cut() => Verdict::Unknown(started(Some(rounds))),
        Ok(Found::NothingUpTo(rounds)) => Verdict::Unknown(Reason::Rounds(rounds)),
        Ok(Found::Bad(last, target)) => match witness::run(&mut contexts, last, &target) {
            Ok(run) => Verdict::Unsafe(Witness { instantiation: task.instantiation(1), run }),
            Err(NoRun::TooLong(steps)) => Verdict::Unknown(Reason::Unshown(format!(
                "a bad state is reachable, but the shortest run that was found has {steps} steps or more, which is too long to be shown"
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
    let proved = prove && verdict == Verdict::Safe;
    let proof = proved.then(|| Proof::Stacks(proof::stacks(&contexts)));
    (verdict, proof)
}

/// Runs that start more processes were left out.
fn started(rounds: Option<u32>) -> Reason {
    Reason::Started { processes: MOST_STARTED, rounds }
}

fn reason(interrupted: Interrupted, reached: Option<Reason>) -> Reason {
    match interrupted {
        Interrupted::Exhausted(what) => Reason::exhausted(what, reached),
        Interrupted::Growing(growing) => Reason::Growing { name: growing.name, values: growing.values },
    }
}
