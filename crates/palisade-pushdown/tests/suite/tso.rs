//! Recursive programs under TSO, end to end: translated to SC within K rounds, decided with stacks of any
//! height, and translated back. Compared with brute force on the store-buffer machine with the same number of
//! rounds.

use palisade_bounded::Rounds;
use palisade_conformance::brute::Answer;
use palisade_conformance::generate::{Recursion, generate_recursive, generate_spawning};
use palisade_conformance::rounds::{self, RoundLimits};
use palisade_conformance::{seeds, shrink};
use palisade_engine::{Bound, Engine, Limits, Options, Question, Reason, Safety, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_pushdown::Pushdown;
use palisade_trace::replay;
use std::collections::BTreeMap;

const ROUNDS: Rounds = Rounds { sc: &Explicit, recursive: &Pushdown };

fn ask(program: &Program, rounds: u32) -> Verdict {
    let options = Options { rounds: Bound::Fixed(rounds), ..Options::default() };
    let (model, interlocked) = (Model::Tso, Interlocked::default());
    let task = Task { program, threads: Threads::Declared, model, interlocked, options };
    ROUNDS.check(&task.analysis(), &Limits::unlimited(1).with_work(WORK)).verdict
}

/// The work that the engine may spend on one program.
const WORK: u64 = 60_000;

/// The answers of the engine and of brute force, or what is wrong with the engine's answer.
fn problem(program: &Program, limits: RoundLimits) -> Result<(&'static str, &'static str), String> {
    let system = lower(program, Instantiation { any: 1, every: None });
    let machine = Machine::new(&system, Model::Tso);
    let answer = rounds::check(machine, limits);
    let verdict = ask(program, limits.rounds);
    match (&verdict, &answer) {
        (Verdict::Violated(_), Answer::Safe) => {
            return Err("unsafe, but brute force finds nothing".to_owned());
        }
        (Verdict::Violated(witness), _) => {
            replay(machine, &witness.run).map_err(|error| format!("the witness does not replay: {error}"))?;
        }
        (Verdict::Holds | Verdict::Unknown(Reason::Rounds(_)), Answer::Unsafe(_)) => {
            return Err(format!("{}, but there is a run", Safety::word(&verdict)));
        }
        (Verdict::Holds | Verdict::Unknown(Reason::Rounds(_)), _) => {
            return Ok(("safe within the rounds", answer.word()));
        }
        (Verdict::Unknown(reason), _) if reason.what_ran_out().is_some() => {
            return Ok(("too large", answer.word()));
        }
        (Verdict::Unknown(reason), _) => return Err(format!("unknown: {reason}")),
    }
    Ok((Safety::word(&verdict), answer.word()))
}

fn check(limits: RoundLimits, programs: u64, generate: impl Fn(u64) -> Program) {
    let seeds = seeds(programs);
    let mut tally = BTreeMap::new();
    for seed in &seeds {
        let program = generate(seed);
        match problem(&program, limits) {
            Ok(words) => *tally.entry(words).or_insert(0) += 1,
            Err(text) => {
                let small = shrink(program, &|program| problem(program, limits).is_err());
                panic!("seed {seed}, {limits:?}: {text}\n{}", print::print(&small));
            }
        }
    }
    eprintln!("{} rounds; engine, brute force: {tally:?}", limits.rounds);
    let too_large: u64 = tally.iter().filter(|((engine, _), _)| *engine == "too large").map(|(_, n)| n).sum();
    assert!(too_large * 2 < seeds.count() || !seeds.suffice(), "most programs are compared: {tally:?}");
}

#[test]
fn differential_recursion_bounded_by_data() {
    for rounds in [1, 2] {
        let limits = RoundLimits { rounds, frames: 8, threads: 6, states: 20_000 };
        check(limits, 25, |seed| {
            generate_recursive(Recursion::Bounded, 500_000 + 1000 * u64::from(rounds) + seed)
        });
    }
}

#[test]
fn differential_recursion_without_bound() {
    for rounds in [1, 2] {
        let limits = RoundLimits { rounds, frames: 3, threads: 4, states: 20_000 };
        check(limits, 25, |seed| {
            generate_recursive(Recursion::Free, 500_000 + 1000 * u64::from(rounds) + seed)
        });
    }
}

#[test]
fn differential_threads_without_bound() {
    let limits = RoundLimits { rounds: 1, frames: 3, threads: 4, states: 15_000 };
    check(limits, 25, |seed| generate_spawning(501_000 + seed));
}
