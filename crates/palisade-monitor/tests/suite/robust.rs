//! Compares the engine `monitor` with brute force: Theorems 3 to 6 on random programs, under TSO and both
//! kinds of PSO.

use palisade_conformance::Profile;
use palisade_conformance::robust_suite::{Config, check_robustness};
use palisade_engine::{
    Analysis, Engine, Limits, Options, Outcome, Reason, Robustness, Suitability, Task, Threads, Verdict,
};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_monitor::ByMonitors;
use palisade_program::{lower, written::Program};
use palisade_syntax::Language;
use palisade_trace::violating;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Counts answers.
#[derive(Default)]
struct Counting {
    all: AtomicUsize,
    unknown: AtomicUsize,
}

impl Engine<Robustness> for Counting {
    fn name(&self) -> &'static str {
        ByMonitors.name()
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        ByMonitors.suits(analysis)
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<Robustness> {
        let outcome = ByMonitors.check(analysis, limits);
        self.all.fetch_add(1, Ordering::Relaxed);
        let unknown = matches!(outcome.verdict, Verdict::Unknown(_));
        self.unknown.fetch_add(unknown.into(), Ordering::Relaxed);
        outcome
    }
}

/// Programs that terminate. About one in a thousand has violations only where a register does not accept a
/// value or a process is stuck. The engine claims nothing about those.
#[test]
fn conformance() {
    let config = Config {
        profiles: vec![Profile::Simple, Profile::Acyclic],
        programs: 80,
        unknown: true,
        timeout: Duration::from_secs(20),
        ..Config::default()
    };
    let engine = Counting::default();
    check_robustness(&engine, &config);
    let (all, unknown) = (engine.all.into_inner(), engine.unknown.into_inner());
    assert!(unknown * 200 <= all, "{unknown} of {all} answers are unknown");
}

/// Programs with loops: whatever the engine claims within small limits is right.
#[test]
fn conformance_with_loops() {
    let config = Config {
        profiles: vec![Profile::Cyclic, Profile::Full],
        programs: 4,
        unknown: true,
        most: 3_000,
        timeout: Duration::from_millis(50),
        ..Config::default()
    };
    check_robustness(&ByMonitors, &config);
}

fn program(text: &str) -> Program {
    let source = palisade_base::Source::new("test.pal", text);
    let parsed = palisade_syntax::parse(Language::Pal, &source);
    parsed.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
}

fn ask(program: &Program, model: Model, interlocked: Interlocked, work: u64) -> Outcome<Robustness> {
    let task = Task { program, threads: Threads::Declared, model, interlocked, options: Options::default() };
    let outcome = ByMonitors.check(&task.analysis(), &Limits::unlimited(1).with_work(work));
    if let Verdict::Violated(witness) = &outcome.verdict {
        let system = lower(program, witness.instantiation);
        let shown = violating(Machine { system: &system, model, interlocked }, &witness.run);
        assert!(shown.is_ok(), "the run shows the violation: {:?}", shown.err());
    }
    outcome
}

fn check(text: &str, tso: &str, pso: &str, own_address: &str) {
    let program = program(text);
    let word = |model, interlocked| ask(&program, model, interlocked, u64::MAX).word();
    assert_eq!(word(Model::Tso, Interlocked::WholeBuffer), tso, "TSO\n{text}");
    assert_eq!(word(Model::Pso, Interlocked::WholeBuffer), pso, "PSO\n{text}");
    assert_eq!(word(Model::Pso, Interlocked::OwnAddress), own_address, "PSO, own address\n{text}");
}

/// Figure 6 of the paper: SOBER reports nothing on any execution of this program.
#[test]
fn figure_6() {
    check(
        "shared a, b, c: 0..2;
         process P { a = 1; if a == 1 { let r = b; } }
         process Q { b = 1; a = 2; fetch_add(c, 1); let r = a; }",
        "not-robust",
        "not-robust",
        "not-robust",
    );
}

/// The program of Figure 8: the paper's monitor needs the execution in which the store of the second process
/// comes last.
#[test]
fn figure_8() {
    check(
        "shared a, b: 0..2;
         process P { a = 1; let r = b; }
         process Q { a = 2; }
         process R { b = 1; let r = a; }",
        "not-robust",
        "not-robust",
        "not-robust",
    );
}

#[test]
fn known_programs() {
    let robust = "robust";
    let not = "not-robust";
    // Store buffering without fences, with one and with two. Also with locked instructions instead of fences.
    let sb = |p: &str, q: &str| {
        format!(
            "shared x, y, z: 0..3; process P {{ x = 1; {p} let r = y; }} process Q {{ y = 1; {q} let r = x; }}"
        )
    };
    check(&sb("", ""), not, not, not);
    check(&sb("fence;", ""), not, not, not);
    check(&sb("sfence;", "sfence;"), not, not, not);
    check(&sb("fence;", "fence;"), robust, robust, robust);
    check(&sb("fetch_add(z, 1);", "fetch_add(z, 1);"), robust, robust, not);
    check(&sb("atomic { z = 1; }", "fence;"), robust, robust, robust);
    // Message passing.
    let mp = |p: &str| {
        format!("shared d, f: 0..1; process P {{ d = 1; {p} f = 1; }} process Q {{ let r = f; let s = d; }}")
    };
    check(&mp(""), robust, not, not);
    check(&mp("sfence;"), robust, robust, robust);
    // What a process does before it spawns another happens before the other. A spawn drains nothing here.
    check("shared x: 0..1; process P { x = 1; spawn Q; } process Q on spawn { let r = x; }", not, not, not);
    check(
        "shared x: 0..1; process P { x = 1; fence; spawn Q; } process Q on spawn { let r = x; }",
        robust,
        robust,
        robust,
    );
    // Blocking.
    check(
        "shared x, y: 0..1; process P { x = 1; await y == 1; } process Q { await x == 1; y = 1; }",
        robust,
        robust,
        robust,
    );
    // An atomic section that sees one store but not an older one is a cycle by itself.
    check(
        "shared x, y: 0..1; process P { x = 1; y = 1; } process Q { atomic { let r = y; let s = x; } }",
        robust,
        not,
        not,
    );
}

#[test]
fn undecided_programs_are_unknown_with_a_reason() {
    let endless =
        program("shared x: 0..1; process P { loop { x = 1; let r = x; } } process Q { loop { x = 0; } }");
    let outcome = ask(&endless, Model::Tso, Interlocked::WholeBuffer, 20_000);
    let Verdict::Unknown(reason) = outcome.verdict else { panic!("{:?}", outcome.verdict) };
    assert!(reason.to_string().contains("more than 20000"), "{reason}");
    // A violation is found nevertheless.
    let broken = program(
        "shared x, y: 0..1;
         process P { loop { x = 1; let r = y; } }
         process Q { loop { y = 1; let r = x; } }",
    );
    assert_eq!(ask(&broken, Model::Tso, Interlocked::WholeBuffer, u64::MAX).word(), "not-robust");
    // A process that computes forever between two accesses.
    let local = program("shared x: 0..1; process P { let r: int = 0; x = 1; loop { r = r + 1; } }");
    let answer = ask(&local, Model::Tso, Interlocked::WholeBuffer, u64::MAX).verdict;
    assert!(matches!(&answer, Verdict::Unknown(Reason::Unsupported(_))), "{answer:?}");
    // Any number of processes.
    let any = program("shared x: 0..1; process P[*] { x = 1; }");
    let task = Task::new(&any, Model::Tso);
    assert_eq!(ByMonitors.suits(&task.analysis()), Suitability::No);
    let answer = ByMonitors.check(&task.analysis(), &Limits::unlimited(1)).verdict;
    assert!(matches!(&answer, Verdict::Unknown(Reason::Unsupported(_))), "{answer:?}");
}

/// Model programs also get one execution per partial order.
#[test]
fn executions_are_counted() {
    let check = |text: &str, executions: u64| {
        let outcome = ask(&program(text), Model::Tso, Interlocked::WholeBuffer, u64::MAX);
        assert_eq!(outcome.verdict, Verdict::Holds, "{text}");
        assert_eq!(outcome.stats.get("executions"), Some(executions), "{text}");
        assert_eq!(outcome.stats.get("broken_off"), Some(0), "{text}");
    };
    check("shared x: 0..1; process W { x = 1; } process R[5] { let r = x; }", 32);
    check(
        "shared x, y: 0..1; process P { x = 1; fence; let r = y; } process Q { y = 1; fence; let r = x; }",
        3,
    );
    // `lastzero` of Abdulla et al. (POPL 2014) has (n + 3) · 2ⁿ⁻² traces. The second size is longer than the
    // first length at which executions are cut off.
    for (n, traces) in [(5, 64), (8, 704)] {
        let text = format!(
            "shared a[{m}]: 0..{m};
             process Search {{ let i: 0..{n} = {n}; while a[i] != 0 {{ i = i - 1; }} }}
             process T(j: 1..{n}) {{ a[j] = a[j - 1] + 1; }}",
            m = n + 1
        );
        check(&text, traces);
    }
    // The two choices of each process are distinguished.
    check("shared x: 0..1; process P[2] { let c: 0..1 = *; x = c; }", 8);
}
