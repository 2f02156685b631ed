//! Programs that start threads without bound, against brute force with a few threads.
//!
//! If a few threads can violate a property, the engine finds a violation. Where the number of threads turns
//! out to be bounded, both agree.

use palisade_conformance::brute::Answer;
use palisade_conformance::generate::generate_spawning;
use palisade_conformance::rounds::{self, ANY, RoundLimits};
use palisade_conformance::{seeds, shrink};
use palisade_engine::{Bound, Engine, Limits, Options, Question, Safety, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_pushdown::Pushdown;
use palisade_trace::replay;

/// The engine's verdict on a program.
fn ask(program: &Program) -> Verdict {
    let (model, interlocked, options) = (Model::Sc, Interlocked::default(), Options::default());
    let task = Task { program, threads: Threads::Declared, model, interlocked, options };
    Pushdown.check(&task.analysis(), &Limits::unlimited(1).with_work(300_000)).verdict
}

/// The answers of the engine and of brute force, or what is wrong with the engine's answer.
fn problem(program: &Program) -> Result<(&'static str, &'static str), String> {
    let system = lower(program, Instantiation { any: 1, every: None });
    let machine = Machine::new(&system, Model::Sc);
    let limits = RoundLimits { rounds: ANY, frames: 4, threads: 5, states: 8_000 };
    let answer = rounds::check(machine, limits);
    let verdict = ask(program);
    match (&verdict, &answer) {
        (Verdict::Holds, Answer::Unsafe(_)) => return Err("safe, but there is a run".to_owned()),
        (Verdict::Violated(_), Answer::Safe) => {
            return Err("unsafe, but brute force finds nothing".to_owned());
        }
        (Verdict::Violated(witness), _) => {
            replay(machine, &witness.run).map_err(|error| format!("the witness does not replay: {error}"))?;
        }
        (Verdict::Holds, _) => {}
        (Verdict::Unknown(reason), _) => return Err(format!("unknown: {reason}")),
    }
    Ok((Safety::word(&verdict), answer.word()))
}

/// An open section keeps all other threads from running, so a state inside it does not cover one outside.
#[test]
fn sections_of_started_threads_end() {
    let text =
        "shared y: 0..2; process Main { spawn W; } process W on spawn { atomic { y = 2; } } forbid y == 2;";
    let source = palisade_base::Source::new("section.pal", text);
    let program =
        palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("it is valid").program;
    assert_eq!(Safety::word(&ask(&program)), "unsafe");
}

/// Nine threads are needed for a violation, and with recursion at most eight are explored. The answer then
/// claims nothing about more threads, not even within a number of rounds.
#[test]
fn nothing_is_claimed_about_threads_that_are_not_explored() {
    let text = "
        shared n: 0..9;
        proc dig() { choose { dig(); } or { skip; } }
        process Main { dig(); while n < 9 { spawn W; n = n + 1; } }
        process W on spawn { assert(n < 9); }
    ";
    let source = palisade_base::Source::new("nine.pal", text);
    let program =
        palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("it is valid").program;
    let start = "no bad state in runs that start up to 8 processes";
    let end = "; in recursive programs no further started processes are explored: start fewer, or write the recursion as a loop";
    for (rounds, between) in
        [(Bound::Auto, ""), (Bound::Fixed(1), ", with up to 1 round each"), (Bound::Fixed(2), "")]
    {
        let options = Options { rounds, ..Options::default() };
        let (model, interlocked) = (Model::Sc, Interlocked::default());
        let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
        let verdict = Pushdown.check(&task.analysis(), &Limits::unlimited(1).with_work(300_000)).verdict;
        let Verdict::Unknown(reason) = verdict else { panic!("nine threads are not explored: {verdict:?}") };
        assert_eq!(reason.to_string(), format!("{start}{between}{end}"));
    }
}

#[test]
fn differential_a_few_threads_find_nothing_more() {
    let seeds = seeds(200);
    let mut tally = std::collections::BTreeMap::new();
    for seed in &seeds {
        let program = generate_spawning(seed);
        match problem(&program) {
            Ok(words) => *tally.entry(words).or_insert(0) += 1,
            Err(text) => {
                let small = shrink(program, &|program| problem(program).is_err());
                panic!("seed {seed}: {text}\n{}", print::print(&small));
            }
        }
    }
    eprintln!("engine, brute force: {tally:?}");
    for words in [("safe", "inconclusive"), ("unsafe", "unsafe"), ("safe", "safe")] {
        assert!(tally.contains_key(&words) || !seeds.suffice(), "some programs are {words:?}: {tally:?}");
    }
}
