//! Programs that start threads at run time. Whatever is proved is safe, and the checker accepts the proof. Runs replay.
//! Unless many stores may be pending when threads are started, both verdicts are exact.
//!
//! `PALISADE_SEEDS=5000 cargo test --release -p palisade-cover spawning -- --nocapture` tries many programs.

use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::generate::{generate_fenced_spawning, generate_spawning};
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Question, Safety, Task, Verdict};
use palisade_memory::{Machine, Model};
use palisade_program::print::print;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use palisade_trace::replay;

pub(crate) const ENGINES: [(&dyn Engine, Model); 5] =
    [(&Dual, Model::Sc), (&Dual, Model::Tso), (&Sb, Model::Sc), (&Sb, Model::Tso), (&Sb, Model::Pso)];

/// The verdict of an engine. Proofs are checked, and runs are replayed.
pub(crate) fn verdict(program: &Program, engine: &dyn Engine, model: Model, work: u64) -> &'static str {
    let task = Task::new(program, model);
    let limits = Limits::unlimited(1).with_work(work);
    let (outcome, proof) = engine.prove(&task.analysis(), &limits);
    let what = || format!("{} {}\n{}", engine.name(), model.name(), print(program));
    for outcome in [&outcome, &engine.check(&task.analysis(), &limits)] {
        if let Verdict::Violated(witness) = &outcome.verdict {
            let system = palisade_program::lower(program, witness.instantiation);
            let end = replay(Machine::new(&system, model), &witness.run);
            end.unwrap_or_else(|trouble| panic!("{trouble:?}: {}", what()));
        }
    }
    if let Some(proof) = &proof {
        let judged = palisade_certificate::verify(&task, proof, &Limits::unlimited(1));
        judged.unwrap_or_else(|refusal| panic!("{refusal}: {}", what()));
    }
    assert_eq!(proof.is_some(), outcome.verdict == Verdict::Holds);
    Safety::word(&outcome.verdict)
}

/// Compares with brute force. Returns the numbers of answers: safe, unsafe, unknown, and conclusive comparisons.
fn compare(program: &Program, seed: u64, counts: &mut [usize; 4]) {
    let system = palisade_program::lower(program, palisade_program::Instantiation { any: 1, every: None });
    if !palisade_program::running::Structure::new(&system).spawns {
        return;
    }
    for (engine, model) in ENGINES {
        let found = verdict(program, engine, model, 20_000);
        let scope = Scope { states: 10_000, buffer: Some(3) };
        let expected = match brute::check(Machine::new(&system, model), scope) {
            Answer::Unsafe(_) => Some("unsafe"),
            Answer::Safe => Some("safe"),
            Answer::Inconclusive => None,
        };
        counts[["safe", "unsafe", "unknown"].iter().position(|word| *word == found).expect("a verdict")] += 1;
        counts[3] += usize::from(expected.is_some() && found != "unknown");
        let agree = found == "unknown" || expected.is_none_or(|expected| expected == found);
        let what = format!("seed {seed}, {} {}: {found}\n{}", engine.name(), model.name(), print(program));
        assert!(agree, "{what}");
    }
}

fn report(what: &str, [safe, wrong, unknown, compared]: [usize; 4]) {
    println!("{what}: {safe} safe, {wrong} unsafe, {unknown} unknown; {compared} compared with brute force");
}

#[test]
fn differential_threads_started_at_any_time() {
    let seeds = seeds(25).starting_at(1);
    let mut counts = [0; 4];
    for seed in &seeds {
        compare(&generate_spawning(seed), seed, &mut counts);
        compare(&generate(Profile::Full, seed), seed, &mut counts);
    }
    report("started at any time", counts);
    assert!(counts[0] > 0 && counts[1] > 0 || !seeds.suffice());
}

/// Nothing is pending when threads are started. Then there is an answer whenever there is enough time.
#[test]
fn differential_threads_started_after_fences() {
    let seeds = seeds(25).starting_at(1);
    let mut counts = [0; 4];
    for seed in &seeds {
        compare(&generate_fenced_spawning(seed), seed, &mut counts);
    }
    report("started after fences", counts);
    assert!(counts[0] > 0 && counts[1] > 0 || !seeds.suffice());
    assert!(counts[2] <= (counts[0] + counts[1]) / 10, "few searches are too long: {counts:?}");
}

fn check(text: &str, expected: [&str; 5]) {
    let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program;
    let found = ENGINES.map(|(engine, model)| verdict(&program, engine, model, 100_000));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn workers_that_share_a_lock() {
    let workers = |enter: &str| {
        format!(
            "shared lock: bool; process Main {{ loop {{ spawn Worker; }} }} process Worker on spawn {{ {enter} cs: skip; lock = false; }} forbid count(Worker@cs) >= 2;"
        )
    };
    check(&workers("while xchg(lock, true) {}"), ["safe"; 5]);
    check(&workers("while lock {} lock = true;"), ["unsafe"; 5]);
}

/// A worker may be started while the store before is still pending. With a fence, it sees the store.
#[test]
fn stores_before_a_start() {
    let text = |fence: &str| {
        format!(
            "shared x: 0..1; process Main {{ x = 1; {fence} spawn Worker; }} process Worker on spawn {{ assert(x == 1); }}"
        )
    };
    check(&text("fence;"), ["safe"; 5]);
    check(&text(""), ["safe", "unsafe", "safe", "unsafe", "unsafe"]);
}

/// Many stores are pending at a start. The worker exists only after it was started, and sees them in their order.
#[test]
fn many_stores_before_a_start() {
    let text = |stores: &str, look: &str| {
        format!(
            "shared a, b, c, d, e, f: 0..1; process Main {{ f = 1; fence; {stores} spawn Worker; }} process Worker on spawn {{ {look} }}"
        )
    };
    let stores = "a = 1; b = 1; c = 1; d = 1; e = 1;";
    check(&text(stores, "assert(f == 1);"), ["safe"; 5]);
    check(&text(stores, "assert(a == 1);"), ["safe", "unsafe", "safe", "unsafe", "unsafe"]);
    check(&text(stores, "if e == 1 { assert(a == 1); }"), ["safe", "safe", "safe", "safe", "unsafe"]);
    check(&text(stores, "if e == 0 { assert(a == 1); }"), ["safe", "unsafe", "safe", "unsafe", "unsafe"]);
    // There is no bound on the number of stores.
    let endless = "loop { choose { a = 1; } or { a = 0; } or { break; } }";
    check(&text(endless, "assert(f == 1);"), ["safe", "unknown", "safe", "unknown", "unknown"]);
}

/// The worker's store may reach memory before one that its parent made earlier. With a fence it may not.
#[test]
fn stores_of_a_worker_and_of_its_parent() {
    let text = |fence: &str| {
        format!(
            "shared x, y: bool; process Main {{ x = true; {fence} spawn Worker; }} process Worker on spawn {{ y = true; }} process Q {{ await y; if !x {{ bad: skip; }} }} forbid Q@bad;"
        )
    };
    check(&text("fence;"), ["safe"; 5]);
    check(&text(""), ["safe", "unsafe", "safe", "unsafe", "unsafe"]);
}

/// A worker exists only after it was started.
#[test]
fn nothing_happens_before_the_start() {
    let text = "shared x, y: bool; process Main { await x; spawn Worker; } process Worker on spawn { y = true; } process Q { await y; if !x { bad: skip; } } process R { x = true; } forbid Q@bad;";
    check(text, ["safe"; 5]);
    let number =
        "process Main { spawn Worker; } process Worker on spawn { cs: skip; } forbid count(Worker@cs) >= N;";
    check(&number.replace('N', "1"), ["unsafe"; 5]);
    check(&number.replace('N', "2"), ["safe"; 5]);
}

/// Without a bound on the number of workers.
#[test]
fn workers_that_start_workers() {
    let text = "shared lock: bool; process Main { spawn Worker; } process Worker on spawn { spawn Worker; while xchg(lock, true) {} cs: skip; lock = false; } forbid count(Worker@cs) >= 2;";
    check(text, ["safe"; 5]);
    check(&text.replace("while xchg(lock, true) {}", "await !lock; lock = true;"), ["unsafe"; 5]);
}

/// A property that looks at memory counts only when nothing is pending in any thread, whether it mentions the thread or
/// not.
#[test]
fn stores_that_are_pending_where_a_property_looks_at_memory() {
    let text = |condition: &str| {
        format!(
            "shared x, z: 0..3; process Main {{ z = 1; spawn Worker; }} process Worker on spawn {{ l: let p = &z; }} forbid count(Worker@l) && {condition};"
        )
    };
    check(&text("x == 0"), ["unsafe"; 5]);
    check(&text("z == 1"), ["unsafe"; 5]);
    check(&text("x == 1"), ["safe"; 5]);
    check(&text("z == 0"), ["safe", "unknown", "safe", "unknown", "unknown"]);
}
