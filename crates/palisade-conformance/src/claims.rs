//! Facts in `unknown` answers: every bound that an engine claims is checked against brute force.
//!
//! The random programs do not terminate ([`generate_endless`], [`generate_spawning`], [`generate_recursive`],
//! [`generate_parameterized`] and programs with loops). For each program and model:
//! 1. if the engine claims that nothing is bad within some bounds, brute force finds nothing bad on runs that
//!    keep to all of them;
//! 2. if it answers `safe`, brute force finds nothing bad at all; if it answers `unsafe`, its run replays;
//! 3. it does not contradict itself.
//!
//! Brute force gives up after a number of states. It tries the shortest runs first, and these are enough to
//! refute most false claims. A failure is shrunk and printed as `.pal` with its seed; `PALISADE_SEEDS` and
//! `PALISADE_SEED` work as in the [suite](crate::suite).

use crate::generate::{
    Profile, Recursion, generate, generate_endless, generate_parameterized, generate_recursive,
    generate_spawning,
};
use crate::suite::{Law, Problem, Subject, SuiteConfig, compact, seeds};
use palisade_base::Id;
use palisade_engine::{Engine, Limits, Reason, Suitability, Task, Verdict};
use palisade_memory::{Action, Interlocked, Machine, Pending, State, Step};
use palisade_program::lower;
use palisade_program::running::ThreadId;
use palisade_program::written::Program;
use palisade_trace::{Run, replay};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// The maximum number of instances to try for templates that may have any number.
const MAX_INSTANCES: u32 = 3;

/// The engine's work limits: a small one, so that it reports what it has found out by then, and a larger one.
const WORK: [u64; 2] = [300, 4_000];

/// Tests an engine's claims about programs that do not terminate. The profiles of the configuration are not
/// used. Returns how many claims of each kind were compared.
///
/// # Panics
/// If a claim is refuted, with a small program that shows it.
pub fn check_claims(engine: &dyn Engine, config: SuiteConfig) -> BTreeMap<&'static str, usize> {
    let seeds = seeds(&config);
    let mut tally = BTreeMap::new();
    for seed in seeds.clone() {
        let kinds: [(&str, Program); 6] = [
            ("an endless program", generate_endless(seed)),
            ("a spawning program", generate_spawning(seed)),
            ("a recursive program", generate_recursive(Recursion::Free, seed)),
            ("a program for any number of threads", generate_parameterized(seed)),
            ("a program with loops", generate(Profile::Cyclic, seed)),
            ("a full program", generate(Profile::Full, seed)),
        ];
        for (kind, program) in kinds {
            let subject = Subject { engine, config: &config, profile: Profile::Full, seed };
            let examine = |program: &Program, tally: &mut BTreeMap<&'static str, usize>| {
                config.models.iter().try_for_each(|&model| {
                    let task = subject.task(program, model, Interlocked::WholeBuffer);
                    examine(&subject, &task, tally).map_err(|problem| Problem {
                        text: format!("{}: {}", model.name(), problem.text),
                        ..problem
                    })
                })
            };
            if let Err(problem) = examine(&program, &mut tally) {
                let problem_of = |program: &Program| examine(program, &mut BTreeMap::new()).err();
                subject.report(kind, program, &problem, &problem_of);
            }
        }
    }
    eprintln!("{} on programs that do not terminate, seeds {seeds:?}: {tally:?}", engine.name());
    tally
}

fn examine(
    subject: &Subject<'_>,
    task: &Task<'_>,
    tally: &mut BTreeMap<&'static str, usize>,
) -> Result<(), Problem> {
    if subject.engine.suits(&task.analysis()) == Suitability::No {
        return Ok(());
    }
    let work = WORK[subject.seed as usize % WORK.len()];
    let limits = Limits::unlimited(1).with_timeout(subject.config.timeout).with_work(work);
    let verdict = subject.answer_within(task, &limits)?;
    let claimed = match &verdict {
        Verdict::Holds => Within::default(),
        Verdict::Unknown(reason) if !reason.bounds().is_empty() => Within::new(reason.bounds()),
        Verdict::Unknown(_) => {
            *tally.entry("no claim").or_default() += 1;
            return Ok(());
        }
        Verdict::Violated(witness) => {
            *tally.entry("unsafe").or_default() += 1;
            let system = lower(task.program, witness.instantiation);
            return match replay(task.machine(&system), &witness.run) {
                Ok(_) => Ok(()),
                Err(error) => Law::WitnessReplays.broken(format!("the witness does not replay: {error}")),
            };
        }
    };
    let most =
        if task.is_parameterized() { claimed.instances.unwrap_or(u32::MAX).min(MAX_INSTANCES) } else { 1 };
    for any in 1..=most {
        let system = task.lower(any);
        if let Some(run) = claimed.refute(task.machine(&system), subject.config.limits.states) {
            let run = compact(&run);
            return match verdict {
                Verdict::Unknown(reason) => Law::ClaimsHold
                    .broken(format!("unknown ({reason}), but with {any} of each kind there is a run {run}")),
                _ => Law::FindsBugs.broken(format!("safe, but with {any} of each kind there is a run {run}")),
            };
        }
    }
    match &verdict {
        Verdict::Unknown(reason) => {
            reason.bounds().iter().for_each(|bound| *tally.entry(kind(bound)).or_default() += 1)
        }
        _ => *tally.entry("safe").or_default() += 1,
    }
    Ok(())
}

fn kind(bound: &Reason) -> &'static str {
    match bound {
        Reason::BufferBound(_) => "buffers",
        Reason::InstanceBound(_) => "instances",
        Reason::CallDepth(_) => "nested calls",
        Reason::Spawned(_) | Reason::Started { .. } => "started processes",
        Reason::Rounds(_) => "rounds",
        Reason::StoreAge(_) => "store age",
        _ => "other",
    }
}

/// Bounds that a run keeps to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Within {
    buffer: Option<usize>,
    calls: Option<usize>,
    started: Option<usize>,
    rounds: Option<u32>,
    age: Option<u32>,
    /// The number of instances of templates that may have any number.
    instances: Option<u32>,
}

/// A state on a run, and what is counted along the run.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Node {
    state: State,
    last: Option<ThreadId>,
    /// The rounds each thread has had, if they are bounded.
    used: Vec<u32>,
    /// The ages of the pending stores of each thread, if they are bounded.
    ages: Vec<Vec<u32>>,
}

impl Within {
    /// All of these bounds.
    ///
    /// # Panics
    /// If one of them is not a bound.
    pub fn new(bounds: &[Reason]) -> Within {
        let mut within = Within::default();
        for bound in bounds {
            match *bound {
                Reason::BufferBound(bound) => within.buffer = Some(bound),
                Reason::InstanceBound(bound) => within.instances = Some(bound),
                Reason::CallDepth(bound) => within.calls = Some(bound),
                Reason::Spawned(bound) => within.started = Some(bound),
                Reason::Rounds(bound) => within.rounds = Some(bound),
                Reason::StoreAge(bound) => within.age = Some(bound),
                Reason::Started { processes, rounds } => {
                    within.started = Some(processes);
                    within.rounds = within.rounds.into_iter().chain(rounds).min();
                }
                ref other => panic!("not a bound: {other:?}"),
            }
        }
        within
    }

    /// A shortest run to a bad state that keeps to the bounds, among at most `most` states.
    pub fn refute(&self, machine: Machine<'_>, most: usize) -> Option<Run> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut parents: Vec<Option<(usize, Step)>> = Vec::new();
        let mut known: FxHashSet<Node> = FxHashSet::default();
        let start = |state: State| {
            let threads = state.threads.len();
            Node { state, last: None, used: vec![0; threads], ages: vec![Vec::new(); threads] }
        };
        let mut found: Vec<(Node, Option<(usize, Step)>)> =
            machine.initial_states().map(|state| (start(state), None)).collect();
        let mut next = 0;
        loop {
            for (node, parent) in found.drain(..) {
                if !self.keeps(machine, &node.state) || !known.insert(node.clone()) {
                    continue;
                }
                let bad = machine.violation(&node.state).is_some() && self.can_end(&node);
                nodes.push(node);
                parents.push(parent);
                if bad {
                    return Some(run_to(&nodes, &parents));
                }
            }
            if next == nodes.len() || nodes.len() >= most {
                return None;
            }
            for successor in machine.successors(&nodes[next].state) {
                if let Some(node) = self.after(&nodes[next], successor.step, successor.state) {
                    found.push((node, Some((next, successor.step))));
                }
            }
            next += 1;
        }
    }

    fn keeps(&self, machine: Machine<'_>, state: &State) -> bool {
        let threads = || state.threads.iter();
        let started = state.threads.len() - machine.system.instances.len();
        self.buffer.is_none_or(|most| threads().all(|thread| thread.buffer.len() <= most))
            && self.calls.is_none_or(|most| threads().all(|thread| thread.frames.len() <= most + 1))
            && self.started.is_none_or(|most| started <= most)
    }

    /// Whether the run may end here: its end also ends a round.
    fn can_end(&self, node: &Node) -> bool {
        match (self.age, node.last) {
            (Some(age), Some(last)) => {
                node.state.section.is_none() && node.ages[last.index()].iter().all(|&a| a < age)
            }
            _ => true,
        }
    }

    /// The run with one more step, if it keeps to the bounds on rounds.
    fn after(&self, node: &Node, step: Step, state: State) -> Option<Node> {
        let (Step { thread, action }, at) = (step, step.thread.index());
        let mut next = node.clone();
        next.used.resize(state.threads.len(), 0);
        next.ages.resize(state.threads.len(), Vec::new());
        if self.rounds.is_some() || self.age.is_some() {
            if node.last != Some(thread) {
                if !self.can_end(node) {
                    return None;
                }
                if let (Some(_), Some(last)) = (self.age, node.last) {
                    next.ages[last.index()].iter_mut().for_each(|age| *age += 1);
                }
                if let Some(rounds) = self.rounds {
                    next.used[at] += 1;
                    if next.used[at] > rounds {
                        return None;
                    }
                }
            }
            next.last = Some(thread);
        }
        if self.age.is_some() {
            match action {
                Action::Update { position } => _ = next.ages[at].remove(position),
                Action::Execute { .. } => {
                    let stores = state.threads[thread].buffer.iter();
                    let stores = stores.filter(|entry| matches!(entry, Pending::Store(..)));
                    next.ages[at].resize(stores.count(), 0);
                }
            }
        }
        next.state = state;
        Some(next)
    }
}

fn run_to(nodes: &[Node], parents: &[Option<(usize, Step)>]) -> Run {
    let mut steps = Vec::new();
    let mut at = nodes.len() - 1;
    while let Some((parent, step)) = parents[at] {
        steps.push(step);
        at = parent;
    }
    steps.reverse();
    Run { memory: nodes[at].state.memory.as_slice().to_vec(), steps }
}
