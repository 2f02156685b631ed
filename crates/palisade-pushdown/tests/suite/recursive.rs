//! Recursive programs, against brute force with the same number of rounds.
//!
//! - Where a parameter bounds the recursion, brute force knows the answer, and the engine must give the same.
//! - Where nothing bounds it, brute force cuts stacks. The engine must find what brute force finds. What the
//!   engine finds must be a run that replays and keeps to the rounds.

use palisade_conformance::brute::Answer;
use palisade_conformance::generate::{Recursion, generate_recursive};
use palisade_conformance::rounds::{self, ANY, RoundLimits, most_rounds};
use palisade_conformance::{Seeds, seeds, shrink};
use palisade_engine::{
    Bound, Engine, Limits, Options, Question, Reason, Reduction, Safety, Task, Threads, Verdict,
};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::running::Structure;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_pushdown::Pushdown;
use palisade_trace::replay;

fn ask(program: &Program, rounds: Bound, reduction: Reduction) -> Verdict {
    let options = Options { rounds, reduction, ..Options::default() };
    let (model, interlocked) = (Model::Sc, Interlocked::default());
    let task = Task { program, threads: Threads::Declared, model, interlocked, options };
    let limits = Limits::unlimited(1).with_work(200_000);
    Pushdown.check(&task.analysis(), &limits).verdict
}

/// What the engine's answer was compared with, or what is wrong with it.
fn problem(program: &Program, limits: RoundLimits, reduction: Reduction) -> Result<Compared, String> {
    let system = lower(program, Instantiation { any: 1, every: None });
    let machine = Machine::new(&system, Model::Sc);
    // Without recursion, programs that start processes are decided for any number of rounds.
    let any_rounds = Structure::new(&system).spawns && !Structure::new(&system).is_recursive;
    let bound = if any_rounds { ANY } else { limits.rounds };
    let answer = rounds::check(machine, RoundLimits { rounds: bound, ..limits });
    let verdict = ask(program, Bound::Fixed(limits.rounds), reduction);
    match (&verdict, &answer) {
        (Verdict::Violated(_), Answer::Safe) => {
            return Err("unsafe, but brute force finds nothing".to_owned());
        }
        (Verdict::Violated(witness), _) => {
            replay(machine, &witness.run).map_err(|error| format!("the witness does not replay: {error}"))?;
            let used = most_rounds(&witness.run);
            if used > bound {
                return Err(format!("the witness has {used} rounds"));
            }
        }
        (Verdict::Holds | Verdict::Unknown(Reason::Rounds(_)), Answer::Unsafe(_)) => {
            return Err(format!("{}, but there is a run", Safety::word(&verdict)));
        }
        (Verdict::Holds, _) => {}
        (Verdict::Unknown(Reason::Rounds(rounds)), _) if *rounds == limits.rounds => {}
        (Verdict::Unknown(reason), _) if reason.what_ran_out().is_some() => return Ok(Compared::TooLarge),
        (Verdict::Unknown(reason), _) => return Err(format!("unknown: {reason}")),
    }
    Ok(match answer {
        Answer::Safe => Compared::Safe,
        Answer::Unsafe(_) => Compared::Broken,
        Answer::Inconclusive => Compared::Open,
    })
}

/// The answer of brute force, or that the program is too large for the engine.
#[derive(Clone, Copy, Debug)]
enum Compared {
    Safe,
    Broken,
    Open,
    TooLarge,
}

fn check(recursion: Recursion, limits: RoundLimits, reduction: Reduction, seeds: Seeds) {
    let mut tally = [0; 4];
    for seed in &seeds {
        let program = generate_recursive(recursion, seed);
        match problem(&program, limits, reduction) {
            Ok(compared) => tally[compared as usize] += 1,
            Err(text) => {
                let fails = |program: &Program| problem(program, limits, reduction).is_err();
                let small = shrink(program, &fails);
                panic!("{recursion:?}, seed {seed}, {limits:?}: {text}\n{}", print::print(&small));
            }
        }
    }
    let [safe, broken, open, too_large] = tally;
    eprintln!(
        "{recursion:?}, {} rounds: brute force says {safe} safe, {broken} unsafe, {open} inconclusive; {too_large} too large",
        limits.rounds
    );
    assert!(broken > 0 && safe + open > 0 || !seeds.suffice(), "the programs are not all alike");
    assert!(too_large * 8 < safe + broken + open || !seeds.suffice(), "most programs are compared");
}

#[test]
fn differential_recursion_bounded_by_data_agrees_exactly() {
    for (rounds, first) in [(1, 0), (2, 100_000), (3, 200_000)] {
        let limits = RoundLimits { rounds, frames: 8, threads: 6, states: 40_000 };
        check(Recursion::Bounded, limits, Reduction::Full, seeds(35).starting_at(first));
    }
}

#[test]
fn differential_cut_stacks_find_nothing_more() {
    for (rounds, first) in [(1, 0), (2, 100_000), (3, 200_000)] {
        let limits = RoundLimits { rounds, frames: 4, threads: 4, states: 30_000 };
        check(Recursion::Free, limits, Reduction::Full, seeds(35).starting_at(first));
    }
}

#[test]
fn differential_without_reduction() {
    let limits = RoundLimits { rounds: 2, frames: 8, threads: 6, states: 40_000 };
    check(Recursion::Bounded, limits, Reduction::None, seeds(30).starting_at(300_000));
    let limits = RoundLimits { rounds: 2, frames: 4, threads: 4, states: 30_000 };
    check(Recursion::Free, limits, Reduction::None, seeds(30).starting_at(300_000));
}

#[test]
fn more_rounds_break_more() {
    for seed in seeds(40) {
        let program = generate_recursive(Recursion::Free, 400_000 + seed);
        let mut broken = false;
        for rounds in 1..=3 {
            let verdict = ask(&program, Bound::Fixed(rounds), Reduction::Full);
            let now = matches!(verdict, Verdict::Violated(_));
            assert!(now || !broken, "seed {seed}: {rounds} rounds find less");
            broken = now;
        }
    }
}
