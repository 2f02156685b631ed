//! Robustness with any number of processes, against brute force with a few. The answer is `robust` only if there is no
//! cycle with any of these numbers. If counting threads finds a cycle, there is a run. A claim up to a number of instances
//! holds for these numbers.

use palisade_base::Source;
use palisade_conformance::generate::generate_parameterized;
use palisade_conformance::robust::{Answer, check};
use palisade_conformance::seeds;
use palisade_engine::{Engine, Limits, Options, Reason, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::{Instantiation, lower, print};
use palisade_robust::Attacks;
use palisade_syntax::{Language, parse};

#[test]
fn random_templates() {
    let (mut robust, mut not_robust, mut claims) = (0, 0, 0);
    for seed in seeds(16) {
        let program = generate_parameterized(seed);
        for model in [Model::Tso, Model::Pso] {
            let interlocked = Interlocked::default();
            let options = Options::default();
            let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
            let limits = Limits::unlimited(1).with_work(20_000);
            let no_cycle_up_to = |most: u32| {
                for any in 1..=most {
                    let system = lower(&program, Instantiation { any, every: None });
                    let found = check(Machine::new(&system, model), 1_500);
                    let text = print::print(&program);
                    assert!(!matches!(found, Answer::NotRobust(_)), "{seed} {model:?}, {any} each\n{text}");
                }
            };
            match Attacks.check(&task.analysis(), &limits).verdict {
                Verdict::Holds => {
                    no_cycle_up_to(3);
                    robust += 1;
                }
                Verdict::Violated(_) => not_robust += 1,
                Verdict::Unknown(Reason::Unshown(why)) => {
                    // A cycle with more threads takes more work to show.
                    let limits = Limits::unlimited(1).with_work(2_000_000);
                    let again = Attacks.check(&task.analysis(), &limits).verdict;
                    assert!(matches!(again, Verdict::Violated(_)), "{seed} {model:?}: {why}");
                    not_robust += 1;
                }
                Verdict::Unknown(reason) => {
                    if let Some(most) = reason.known_threads() {
                        no_cycle_up_to(most);
                        claims += 1;
                    }
                }
            }
        }
    }
    if seeds(16).suffice() {
        assert!(robust > 2 && not_robust > 2, "{robust} robust, {not_robust} not, {claims} up to a number");
    }
}

/// Programs that control flow alone does not decide.
#[test]
fn counted_threads() {
    let check = |text: &str, expected: &str| {
        let source = Source::new("p", text);
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        for model in [Model::Tso, Model::Pso] {
            let task = Task::new(&program, model);
            let outcome = Attacks.check(&task.analysis(), &Limits::unlimited(1).with_work(200_000));
            let found = match &outcome.verdict {
                Verdict::Holds => "robust".to_owned(),
                Verdict::Violated(witness) => format!("{} of each", witness.instantiation.any),
                Verdict::Unknown(reason) => reason.to_string(),
            };
            assert_eq!(found, expected, "{model:?} {text}");
        }
    };
    // Whoever holds the lock is alone with x and y.
    let locked = "shared lock, x, y: 0..1;
                  process P[*] { await cas(lock, 0, 1); x = 1; let r = y; y = 1; let s = x; xchg(lock, 0); }";
    check(locked, "robust");
    check(&locked.replace("await cas(lock, 0, 1);", ""), "2 of each");
    check(
        "shared x, y: 0..1; process P[*] { x = 1; let r = y; } process Q[*] { y = 1; let r = x; }",
        "1 of each",
    );
    // The third and the fourth thread play against each other.
    let late = "shared n: 0..5 wrap; shared x, y: 0..1;
                process P[*] {
                    let k = fetch_add(n, 1);
                    if (k == 2) { x = 1; FENCE let r = y; }
                    if (k == 3) { y = 1; FENCE let s = x; }
                }";
    check(&late.replace("FENCE", ""), "4 of each");
    check(&late.replace("FENCE", "fence;"), "robust");
    // Threads that are started without bound, each of which takes the lock.
    let started = "shared lock, x, y: 0..1;
                   process Main { loop { spawn W; } }
                   process W on spawn { await cas(lock, 0, 1); x = 1; let r = y; y = 1; let s = x; xchg(lock, 0); }";
    check(started, "robust");
    check(&started.replace("await cas(lock, 0, 1);", ""), "1 of each");
}
