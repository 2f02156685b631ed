//! Executions that share a process show exactly what they show in processes of their own.

use crate::common::{compile, compile_with, random, rust_program, start};
use palisade_conformance::seeds;
use palisade_harness::explore::Searched;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::schedule::Strategy;
use palisade_harness::session::{Findings, First, Occurrences, Options, Session};
use palisade_memory::Model;
use std::fmt::{Debug, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that was found, as text.
fn text(findings: &Findings) -> String {
    fn list<T: Debug>(text: &mut String, found: &[Occurrences<T>]) {
        for Occurrences { what, executions, count, possible, first, .. } in found {
            let First { number, seed, strategy, turns, event, reorderings, .. } = first;
            let turns = turns.as_ref().map(|turns| &turns.turns);
            let _ = writeln!(text, "{what:?} in {executions}, {count} times, {possible:?}");
            let _ =
                writeln!(text, "    first in {number} {seed} {strategy} {turns:?} {event} {reorderings:?}");
        }
    }
    let mut text = String::new();
    list(&mut text, &findings.violations);
    list(&mut text, &findings.races);
    list(&mut text, &findings.failures);
    list(&mut text, &findings.reorderings);
    let Findings { unfollowed, executions, steps, events, accesses, assumed, longest, threads, .. } =
        findings;
    let _ = writeln!(
        text,
        "{unfollowed:?} {executions} {steps} {events} {accesses} {assumed} {longest} {threads} {:?} {:?} {:?}",
        findings.violating, findings.reordered, findings.lost
    );
    text
}

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    Random,
    Pct,
    Exhaustive,
    Bounded,
}

const SCHEDULES: u64 = 40;
const EXECUTIONS: u64 = 200;

fn options(how: How, model: Model) -> Options {
    let strategy = if how == How::Pct { Strategy::Pct { depth: 3 } } else { Strategy::Random };
    Options { strategy, model, steps: 50_000, ..random(SCHEDULES) }
}

fn session(
    command: &[String],
    how: How,
    model: Model,
    scheduling: Scheduling,
) -> (Session, Option<Searched>) {
    let program = Program { command: command.to_vec(), scheduling };
    let mut session = start(&program, &options(how, model));
    let preemptions = (how == How::Bounded).then_some(2);
    let searched = match how {
        How::Exhaustive | How::Bounded => Some(session.explore(preemptions, EXECUTIONS, |_| true)),
        How::Random | How::Pct => {
            session.run(|_| true);
            None
        }
    };
    (session, searched)
}

/// Compares both ways to run a program. Returns how many executions have shared a process.
fn compare(command: &[String], hows: &[How], models: &[Model]) -> u64 {
    let mut shared = 0;
    for &how in hows {
        for &model in models {
            let (forked, expected) = session(command, how, model, Scheduling::Forked);
            let (restored, searched) = session(command, how, model, Scheduling::Restored);
            let what = format!("{command:?} {how:?} {model:?}");
            assert_eq!(searched, expected, "{what}");
            assert_eq!(text(&restored.findings), text(&forked.findings), "{what}");
            assert_eq!(forked.restored(), 0, "{what}");
            shared += restored.restored();
        }
    }
    shared
}

const ALL: [How; 4] = [How::Random, How::Pct, How::Exhaustive, How::Bounded];
const BUFFERED: [Model; 2] = [Model::Sc, Model::Tso];

fn command(path: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = vec![path.display().to_string()];
    command.extend(arguments.iter().map(|&argument| argument.to_owned()));
    command
}

#[test]
fn random_programs() {
    let path = compile("random.c", &[]);
    let seeds = seeds(6);
    let mut shared = 0;
    for seed in seeds.range() {
        shared += compare(&command(&path, &[&seed.to_string()]), &ALL, &BUFFERED);
    }
    assert!(shared > seeds.count() * SCHEDULES, "{shared}");
}

/// How the C program may fail, and whether executions share a process.
#[test]
fn failing_programs() {
    let path = compile("fails.c", &[]);
    for (how, shares) in [
        ("deadlock", true),
        ("lost-signal", true),
        ("crash", true),
        ("assertion", true),
        ("exit-code", true),
        ("early-exit", true),
        ("leaked-threads", true),
        ("never-joined", true),
        ("livelock", true),
        ("fork", false),
        ("signal", false),
        ("output", false),
        ("main-leaves", true),
    ] {
        let shared = compare(&command(&path, &[how]), &[How::Random, How::Exhaustive], &[Model::Tso]);
        assert_eq!(shared > 0, shares, "{how}: {shared}");
    }
}

/// Runs a few schedules in both ways. Returns how many executions have shared a process.
fn compare_few(command: &[String], patience: Duration) -> u64 {
    let run = |scheduling: Scheduling| {
        let options =
            Options { schedules: 3, steps: 1_000_000, patience, ..options(How::Random, Model::Tso) };
        let mut session = start(&Program { command: command.to_vec(), scheduling }, &options);
        session.run(|_| true);
        (text(&session.findings), session.restored())
    };
    let (forked, restored) = (run(Scheduling::Forked), run(Scheduling::Restored));
    assert_eq!((&restored.0, 0), (&forked.0, forked.1), "{command:?}");
    restored.1
}

/// An execution without events is ended, and the next one begins in a new process.
#[test]
fn a_stalled_execution() {
    let path = compile("fails.c", &[]);
    let patience = Duration::from_millis(300);
    assert_eq!(compare_few(&command(&path, &["stalled"]), patience), 3);
    // It makes a system call before.
    assert_eq!(compare_few(&command(&path, &["blocked"]), patience), 0);
}

fn corpus(name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/c").join(name);
    compile_with("gcc", &source.display().to_string(), flags)
}

#[test]
fn the_corpus() {
    let mut shared = 0;
    for name in ["dekker.c", "bakery.c", "treiber_free.c", "cond_queue.c", "c11_threads.c", "stack_request.c"]
    {
        for flags in [&[][..], &["-DBROKEN_1"]] {
            let path = corpus(name, flags);
            shared +=
                compare(&command(&path, &[]), &[How::Random, How::Exhaustive], &[Model::Tso, Model::Pso]);
        }
    }
    assert!(shared > 1000, "{shared}");
}

#[test]
fn memory_is_restored() {
    let path = compile("restored.c", &["-O1", "-Wl,--no-as-needed", "-lm"]);
    for how in ["globals", "heap", "stack", "locals", "print", "float", "many", "threads"] {
        let shared = compare(&command(&path, &[how]), &[How::Random, How::Exhaustive], &[Model::Tso]);
        assert!(shared > SCHEDULES, "{how}: {shared}");
    }
}

/// What cannot be undone is done in a process of its own.
#[test]
fn what_is_outside_is_not_restored() {
    let path = compile("restored.c", &["-Wl,--no-as-needed", "-lm"]);
    for how in ["long", "talks"] {
        assert_eq!(compare_few(&command(&path, &[how]), Options::default().patience), 0, "{how}");
    }
    for how in ["file", "mask", "map", "protect", "raise", "read"] {
        let shared = compare(&command(&path, &[how]), &[How::Random, How::Exhaustive], &[Model::Tso]);
        assert_eq!(shared, 0, "{how}");
    }
}

#[test]
fn other_languages() {
    let path = compile("cxx.cpp", &[]);
    compare(&command(&path, &[]), &[How::Random], &BUFFERED);
    let path = compile("memory.cpp", &[]);
    compare(&command(&path, &[]), &[How::Random], &BUFFERED);
    let path = rust_program("buffering");
    // With store buffers it panics, and prints the number of its kernel thread, which may have more digits or fewer.
    let shared = compare(&command(&path, &[]), &[How::Random, How::Exhaustive], &[Model::Sc]);
    assert!(shared > SCHEDULES, "{shared}");
}
