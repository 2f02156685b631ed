//! The suite for engines that answer for any number of threads.
//!
//! For each random program ([`generate_parameterized`]) and model, the engine answers for any number of
//! threads, and for 1, 2, … threads of each kind:
//! 1. if some fixed number is unsafe (by brute force), any number is unsafe;
//! 2. if the engine answers unsafe for any number, the witness replays with the number of threads that it
//!    names, and brute force does not call that number safe;
//! 3. if the engine answers safe for any number, no fixed number is unsafe;
//! 4. for each fixed number, the engine agrees with brute force.
//!
//! For any number of threads, an engine stops after [`WORK`] configurations. A search that long is counted, not compared,
//! and few searches may be. So the result does not depend on how fast the machine is.
//!
//! A failure is shrunk and printed as `.pal` with its seed; `PALISADE_SEEDS` and `PALISADE_SEED` work as in
//! the [suite](crate::suite).

use crate::brute::{self, Answer};
use crate::generate::{Profile, generate_parameterized};
use crate::suite::{Law, Problem, Subject, SuiteConfig, Unknown, compact, seeds};
use palisade_engine::{
    Engine, Exhausted, Limits, Question, Safety, Suitability, Task, Threads, Verdict, Witness,
};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::lower;
use palisade_program::written::Program;
use palisade_trace::replay;

/// The largest number of threads of each kind that brute force tries.
pub const MAX_THREADS: u32 = 4;

/// The work of an engine on one program for any number of threads.
const WORK: u64 = 20_000;

/// At most one search in this many is longer than that.
const RARELY: usize = 100;

/// Tests an engine with random programs for any number of threads. The profiles of the configuration are not
/// used.
///
/// # Panics
/// If the engine fails, with a small program that shows it.
pub fn check_parameterized(engine: &dyn Engine, config: SuiteConfig) {
    check_parameterized_with(engine, config, generate_parameterized);
}

/// The same with programs of another generator.
///
/// # Panics
/// If the engine fails, with a small program that shows it.
pub fn check_parameterized_with(engine: &dyn Engine, config: SuiteConfig, generate: fn(u64) -> Program) {
    let seeds = seeds(&config);
    let mut tally = Tally::default();
    for seed in seeds.clone() {
        let program = generate(seed);
        let subject = Subject { engine, config: &config, profile: Profile::Cyclic, seed };
        let examine = |program: &Program, tally: &mut Tally| {
            config.models.iter().try_for_each(|&model| examine(&subject, program, model, tally))
        };
        if let Err(problem) = examine(&program, &mut tally) {
            let problem_of = |program: &Program| examine(program, &mut Tally::default()).err();
            subject.report("a program for any number of threads", program, &problem, &problem_of);
        }
    }
    eprintln!("{} on programs for any number of threads, seeds {seeds:?}: {tally}", engine.name());
    let Tally { safe, broken, too_long, .. } = tally;
    let most = config.models.len() + (safe + broken) / RARELY;
    assert!(too_long <= most, "{too_long} searches are too long");
}

/// How many verdicts of each kind there were.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    safe: usize,
    broken: usize,
    unknown: usize,
    /// Searches that were stopped.
    too_long: usize,
    /// Witnesses with more than two threads of a kind.
    large: usize,
    /// Fixed numbers for which brute force had an answer.
    compared: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { safe, broken, unknown, too_long, large, compared } = self;
        write!(f, "{safe} safe, {broken} unsafe ({large} with more than two threads of a kind), ")?;
        write!(
            f,
            "{unknown} unknown, {too_long} stopped after {WORK} configurations; {compared} fixed numbers of threads compared with brute force"
        )
    }
}

/// All laws for one program and model. `Err` says which one is broken.
fn examine(subject: &Subject<'_>, program: &Program, model: Model, tally: &mut Tally) -> Result<(), Problem> {
    let name = model.name();
    let any = Task { threads: Threads::Declared, ..subject.task(program, model, Interlocked::WholeBuffer) };
    if subject.engine.suits(&any.analysis()) == Suitability::No {
        return Ok(());
    }
    let limits = Limits::unlimited(1).with_timeout(subject.config.timeout).with_work(WORK);
    let verdict = subject.answer_within(&any, &limits)?;
    match &verdict {
        Verdict::Holds => tally.safe += 1,
        Verdict::Violated(witness) => {
            tally.broken += 1;
            tally.large += usize::from(witness.instantiation.any > 2);
            replays(&any, witness)?;
        }
        Verdict::Unknown(reason) if matches!(reason.what_ran_out(), Some(Exhausted::Work(_))) => {
            tally.too_long += 1
        }
        Verdict::Unknown(reason) => {
            tally.unknown += 1;
            if subject.config.unknown != Unknown::Always {
                return Law::Decides.broken(format!("{name}: unknown ({reason}) for any number of threads"));
            }
        }
    }
    for threads in 1..=MAX_THREADS {
        let fixed = Task { threads: Threads::Each(threads), ..any.clone() };
        let system = fixed.lower(threads);
        let answer = brute::check(fixed.machine(&system), subject.config.limits);
        tally.compared += usize::from(answer != Answer::Inconclusive);
        match (&answer, &verdict) {
            (Answer::Unsafe(run), Verdict::Holds) => {
                let run = compact(run);
                let text = format!("{name}: safe for any number of threads, but {threads} have a run {run}");
                return Law::FindsBugs.broken(text);
            }
            (Answer::Safe, Verdict::Violated(witness)) if witness.instantiation.any == threads => {
                let text = format!("{name}: a run of {threads} threads, but brute force finds nothing there");
                return Law::NoFalseAlarm.broken(text);
            }
            _ => {}
        }
        let of_fixed = subject.answer_within(&fixed, &limits)?;
        if let Verdict::Violated(witness) = &of_fixed {
            replays(&fixed, witness)?;
        }
        let (word, expected) = (Safety::word(&of_fixed), answer.word());
        let wrong = match (&of_fixed, &answer) {
            (Verdict::Violated(_), Answer::Safe) => Some(Law::NoFalseAlarm),
            (Verdict::Holds, Answer::Unsafe(_)) => Some(Law::FindsBugs),
            // The run of the smaller number is also a run of any number.
            (Verdict::Violated(_), _) if verdict == Verdict::Holds => Some(Law::FindsBugs),
            _ => None,
        };
        if let Some(law) = wrong {
            let text = format!(
                "{name}: {word} for {threads} threads of each kind, {} for any number; brute force says {expected}",
                Safety::word(&verdict)
            );
            return law.broken(text);
        }
        if matches!(answer, Answer::Unsafe(_)) {
            break;
        }
    }
    Ok(())
}

fn replays(task: &Task<'_>, witness: &Witness) -> Result<(), Problem> {
    let system = lower(task.program, witness.instantiation);
    let machine = Machine { system: &system, model: task.model, interlocked: task.interlocked };
    match replay(machine, &witness.run) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = format!("{}: the witness does not replay: {error}", task.model.name());
            Law::WitnessReplays.broken(text)
        }
    }
}
