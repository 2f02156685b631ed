//! Executions repeat, whatever the machine is like. The same programs run under all stack limits, with and
//! without address space randomisation, with a large environment, and with all compilers. What a search sees
//! must be the same to the last event, and a schedule made in one environment must be followed in all others.

use crate::common::{compile_with, random, rust_program, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::schedule::{Strategy, Turns};
use palisade_harness::session::{Findings, Options};
use palisade_memory::Model;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Shell commands that set up each environment before the program is started.
const PLACES: [(&str, &str); 8] = [
    ("a stack limit of 1024 KiB", "ulimit -S -s 1024"),
    ("a stack limit of 8188 KiB", "ulimit -S -s 8188"),
    ("a stack limit of 8192 KiB", "ulimit -S -s 8192"),
    ("a stack limit of 65536 KiB", "ulimit -S -s 65536"),
    ("no stack limit", "ulimit -S -s unlimited"),
    // As if the system did not allow the runtime to switch randomisation off.
    ("randomised addresses", "export PALISADE_RUN=again"),
    ("randomised addresses and no stack limit", "ulimit -S -s unlimited; export PALISADE_RUN=again"),
    ("a larger environment", "export FILLER=\"$(seq 1 999)\""),
];

/// The environments that the hard limits of this process allow.
fn places() -> Vec<(&'static str, &'static str)> {
    let allowed = |place: &(&str, &str)| {
        let tried = Command::new("sh").args(["-c", place.1]).output().expect("there is a shell");
        tried.status.success() && tried.stderr.is_empty()
    };
    let places: Vec<_> = PLACES.into_iter().filter(allowed).collect();
    assert!(places.len() >= 3, "some of them are always allowed: {places:?}");
    places
}

fn program_at(path: &Path, before: &str) -> Program {
    let script = format!("{before}; exec \"$0\"");
    let command = ["sh", "-c", &script, &path.display().to_string()].map(str::to_owned).to_vec();
    Program { command, scheduling: Scheduling::Best }
}

/// All findings as text.
fn shown(findings: &Findings) -> Vec<String> {
    let violations = findings.violations.iter().map(|found| {
        let name = |instruction| findings.instructions.name(instruction).to_owned();
        let names = [found.what.store, found.what.previous, found.what.access].map(name);
        format!("{} {}: {}", found.what.model.name(), names.join(" | "), found.executions)
    });
    let races = findings.races.iter().map(|found| format!("{:?}: {}", found.what, found.executions));
    let failures = findings.failures.iter().map(|found| format!("{:?}: {}", found.what, found.executions));
    violations.chain(races).chain(failures).collect()
}

/// Checks that the search and some schedules of a program are the same everywhere. The number of partial
/// orders depends on the compiler's output for the program, but it must be the same everywhere.
fn check(what: &str, path: &Path) -> u64 {
    let options = Options { steps: 20_000, ..random(1) };
    let mut first: Option<(Vec<String>, u64, u64, u64)> = None;
    let mut schedules: Vec<(Turns, u64, u64, String)> = Vec::new();
    for (place, before) in places() {
        let program = program_at(path, before);
        let mut search = start(&program, &options);
        let searched = search.explore(None, 20_000, |_| true);
        let divergence = search.findings.divergence.as_ref().map(|divergence| divergence.text());
        assert!(searched.complete && !searched.broken, "{what}, {place}: {searched:?} {divergence:?}");
        let seen = (shown(&search.findings), searched.executions, searched.runs, search.findings.events);
        assert_eq!(*first.get_or_insert(seen.clone()), seen, "{what}, {place}");
        let mut session = start(&program, &options);
        if schedules.is_empty() {
            for seed in 0..5 {
                let command = session.command(Strategy::Random, seed, 0, Turns::default());
                let execution = session.execute(&command).expect("an execution");
                let turns = execution.portable_turns().expect("they are few");
                schedules.push((turns, execution.end.steps, execution.events, execution.output.text()));
            }
        }
        for (turns, steps, events, output) in &schedules {
            let command = session.command(Strategy::Stay, 0, 0, turns.clone());
            let execution = session.execute(&command).expect("an execution");
            assert_eq!(execution.diverged, None, "{what}, {place}");
            let again = (execution.end.steps, execution.events, execution.output.text());
            assert_eq!((*steps, *events, output.clone()), again, "{what}, {place}");
        }
    }
    first.expect("there are places").1
}

#[test]
fn programs_in_c() {
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O2"] {
            let compile = |source: &str| compile_with(compiler, source, &[level]);
            let what = format!("{compiler} {level}");
            assert!(check(&what, &compile("repeat/threads.c")) > 1);
            assert_eq!(check(&what, &compile("repeat/last.c")), 2);
            assert_eq!(check(&what, &compile("../../../../docs/tour/flags_fixed.c")), 7);
        }
    }
}

#[test]
fn programs_in_cxx() {
    for compiler in ["g++", "clang++"] {
        for level in ["-O0", "-O2"] {
            let path = compile_with(compiler, "repeat/queue.cpp", &[level]);
            assert!(check(&format!("{compiler} {level}"), &path) > 1);
        }
    }
}

#[test]
fn programs_in_rust() {
    assert!(check("threads.rs", &rust_program("repeat/threads")) > 1);
    assert!(check("hashes.rs", &rust_program("repeat/hashes")) > 1);
}

#[test]
fn the_heap_is_the_same_if_randomisation_is_off_already() {
    let path = compile_with("gcc", "repeat/heap.c", &[]);
    let printed = |before: &[&str]| {
        let command = before.iter().copied().map(str::to_owned).chain([path.display().to_string()]);
        let program = Program { command: command.collect(), scheduling: Scheduling::Best };
        let mut session = start(&program, &random(1));
        let command = session.command(Strategy::Random, 0, 0, Turns::default());
        session.execute(&command).expect("an execution").output.text()
    };
    let usual = printed(&[]);
    assert!(usual.starts_with("0x"), "{usual}");
    assert_eq!(printed(&["env", "PALISADE_RUN=again"]), usual, "randomised addresses");
    // Containers may forbid it.
    if Command::new("setarch").args(["-R", "true"]).status().is_ok_and(|status| status.success()) {
        assert_eq!(printed(&["setarch", "-R"]), usual, "no randomisation from the start");
    }
}

#[test]
fn a_loop_on_a_stack_that_others_look_at_is_not_cut_short() {
    let path = compile_with("gcc", "repeat/stacks.c", &[]);
    let options = Options { steps: 60, ..random(1) };
    let mut session = start(&program_at(&path, ":"), &options);
    let searched = session.explore(None, 2_000, |_| true);
    assert!(!searched.broken, "{searched:?} {:?}", session.findings.divergence);
    let codes: Vec<&str> =
        session.findings.failures.iter().map(|found| found.what.message.as_str()).collect();
    assert!(codes.contains(&"the program ended with exit code 1"), "{codes:?}");
}

#[test]
fn what_does_not_repeat_is_reported_with_the_first_event_that_differed() {
    let path = compile_with("gcc", "repeat/process_id.c", &[]);
    let mut session = start(&program_at(&path, ":"), &Options::default());
    let searched = session.explore(None, u64::MAX, |_| true);
    assert!(searched.broken && !searched.complete, "{searched:?}");
    let divergence = session.findings.divergence.expect("it says where");
    let line = 1 + include_str!("../../programs/repeat/process_id.c")
        .lines()
        .position(|line| line.contains("/* here */"))
        .expect("the line is marked");
    for side in [&divergence.expected, &divergence.happened] {
        let place = side.place.as_deref().unwrap_or("");
        assert!(place.contains(&format!("process_id.c:{line}")), "{divergence:?}");
        assert!(side.what.starts_with("execute a locked instruction"), "{divergence:?}");
    }
    assert_ne!(divergence.expected, divergence.happened);
    assert!(divergence.thread == 1 || divergence.thread == 2, "{divergence:?}");
    assert!(divergence.text().contains("was expected to"), "{}", divergence.text());
}

/// A regression test: the search knew only the first piece and assumed that no other thread touches the
/// pieces after it.
#[test]
fn all_pieces_of_an_overlapping_move_count() {
    let path = compile_with("gcc", "repeat/move.c", &["-O0", "-fno-builtin"]);
    let mut session = start(&program_at(&path, ":"), &Options::default());
    let searched = session.explore(None, u64::MAX, |_| true);
    assert!(searched.complete, "{searched:?}");
    let by_search = codes(&session.findings);
    let mut by_chance = start(&program_at(&path, ":"), &random(500));
    by_chance.run(|_| true);
    assert_eq!(by_search, codes(&by_chance.findings));
    assert!(by_search.len() >= 2, "{by_search:?}");
}

/// The ways in which the program failed.
fn codes(findings: &Findings) -> BTreeSet<String> {
    findings.failures.iter().map(|found| found.what.message.clone()).collect()
}

/// A regression test: threads that share nothing never repeat turns, so the search itself compares nothing.
#[test]
fn what_does_not_repeat_is_noticed_where_the_search_compares_nothing() {
    let path = compile_with("gcc", "repeat/process_id.c", &["-DTHREADS=1"]);
    let mut session = start(&program_at(&path, ":"), &Options::default());
    let searched = session.explore(None, u64::MAX, |_| true);
    assert!(searched.broken && !searched.complete, "{searched:?}");
    assert!(session.findings.divergence.is_some());
}

/// A regression test: a thread that finds that it need not wait in the kernel takes the lock in the same step.
#[test]
fn a_lock_that_three_threads_wait_for_repeats() {
    let path = rust_program("repeat/counter");
    for model in [Model::Sc, Model::Tso] {
        let mut session = start(&program_at(&path, ":"), &Options { model, ..random(1) });
        let searched = session.explore(None, 1_500, |_| true);
        assert!(!searched.broken, "{searched:?} {:?}", session.findings.divergence);
        assert!(session.findings.failures.is_empty(), "{:?}", session.findings.failures);
    }
}

/// How many steps it takes to compare an argument with a word does not depend on where the kernel puts the argument.
#[test]
fn arguments_are_the_same_in_all_environments() {
    let path = compile_with("gcc", "fresh.c", &["-D_GNU_SOURCE"]).display().to_string();
    let seen: BTreeSet<u64> = (0..16)
        .step_by(3)
        .map(|length| {
            let script = format!("export FILLER={}; exec \"$0\" right-zeros", "x".repeat(length));
            let command = ["sh", "-c", &script, &path].map(str::to_owned).to_vec();
            let mut session = start(&Program { command, scheduling: Scheduling::Best }, &random(10));
            session.run(|_| true);
            session.findings.events
        })
        .collect();
    assert_eq!(seen.len(), 1, "{seen:?}");
}
