//! Reads of memory that was never written.

use crate::common::{compile_with, failures, random, start};
use palisade_conformance::seeds;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options};
use palisade_memory::Model;

fn session(path: &str, how: &str, options: &Options) -> palisade_harness::session::Session {
    start(&Program { command: vec![path.to_owned(), how.to_owned()], scheduling: Scheduling::Best }, options)
}

fn at_random(path: &str, how: &str, model: Model, schedules: u64) -> Findings {
    let mut session = session(path, how, &Options { model, ..random(schedules) });
    session.run(|_| true);
    assert_eq!(session.findings.lost, None);
    session.findings
}

fn all(path: &str, how: &str, model: Model) -> Findings {
    let mut session = session(path, how, &Options { model, ..random(1) });
    let searched = session.explore(None, 20_000, |_| true);
    let is_complete = searched.complete || !session.findings.failures.is_empty();
    assert!(is_complete, "{how} {model:?}: {searched:?} {:?}", session.findings.divergence);
    session.findings
}

const WRONG: [&str; 10] =
    ["heap", "member", "pointer", "atomic", "add", "swap", "flag", "tail", "stack", "own"];

const RIGHT: [&str; 10] = [
    "right-heap",
    "right-pointer",
    "right-atomic",
    "right-swap",
    "right-flag",
    "right-zeros",
    "right-set",
    "right-stack",
    "right-copies",
    "right-alone",
];

/// Stores that may reach memory after the address of what they write: only under PSO.
const LATE: [&str; 2] = ["late", "late-local"];

fn uninitialised_reads_are_found(compiler: &str) {
    let path = compile_with(compiler, "fresh.c", &["-D_GNU_SOURCE"]).display().to_string();
    for model in Model::ALL {
        let wrong = |how: &str| WRONG.contains(&how) || LATE.contains(&how) && model == Model::Pso;
        for how in WRONG.iter().chain(&RIGHT).chain(&LATE) {
            let expected: &[&str] = if wrong(how) { &["uninitialised-read"] } else { &[] };
            for findings in [at_random(&path, how, model, 100), all(&path, how, model)] {
                let seen = (findings.executions, findings.events, &findings.unfollowed);
                assert_eq!(failures(&findings), expected, "{compiler} {how} {model:?} {seen:?}");
                for failure in &findings.failures {
                    let possible = if LATE.contains(how) { Model::Pso } else { Model::Sc };
                    assert_eq!(failure.possible, Some(possible), "{compiler} {how} {model:?}");
                }
            }
        }
    }
}

#[test]
fn uninitialised_reads_are_found_with_gcc() {
    uninitialised_reads_are_found("gcc");
    // clang announces no accesses of a thread to structs in its own frames.
    let path = compile_with("gcc", "fresh.c", &["-D_GNU_SOURCE"]).display().to_string();
    let findings = at_random(&path, "own-member", Model::Tso, 1);
    assert_eq!(failures(&findings), ["uninitialised-read"]);
}

#[test]
fn uninitialised_reads_are_found_with_clang() {
    uninitialised_reads_are_found("clang");
}

/// The report has the places of the read and of the allocation.
#[test]
fn places() {
    let path = compile_with("gcc", "fresh.c", &["-D_GNU_SOURCE"]).display().to_string();
    let findings = at_random(&path, "heap", Model::Tso, 20);
    let failure = &findings.failures[0].what;
    let message =
        "uninitialised read: thread 1 reads 4 bytes in a block of 32 bytes that no store has reached yet";
    assert!(failure.message.starts_with(message), "{}", failure.message);
    let notes: Vec<&str> = failure.places.iter().map(|(_, note)| note.as_str()).collect();
    assert_eq!(notes, ["thread 1 reads it here", "thread 0 allocated it here"]);
}

/// Optimised code copies structs by loads of their parts, so nothing is reported there.
#[test]
fn optimised_programs() {
    let path = compile_with("gcc", "fresh.c", &["-D_GNU_SOURCE", "-O2"]).display().to_string();
    for how in ["heap", "stack", "right-copies", "right-alone"] {
        assert_eq!(failures(&at_random(&path, how, Model::Tso, 20)), [""; 0], "{how}");
    }
}

/// A random text for `fresh_random.c`, and whether it reads a cell that was never written.
fn text(seed: u64) -> (String, bool) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % limit) as usize
    };
    let (mut text, mut written, mut is_wrong) = (String::new(), [false; 16], false);
    let name = |cell: usize| char::from(b'a' + cell as u8);
    for _ in 0..4 + below(16) {
        let (what, cell, to) = (below(16), below(16), below(16));
        let (from, to) = (cell & !1, to & !1);
        match what {
            0..=3 => {
                written[cell] = true;
                text.extend([*[&'w', &'s', &'f', &'w'][what], name(cell)]);
            }
            4 | 5 => {
                (written[from], written[from + 1]) = (true, true);
                text.extend(['z', name(cell)]);
            }
            6..=8 => {
                (written[to], written[to + 1]) = (written[from], written[from + 1]);
                text.extend([['c', 'm', 'b'][what - 6], name(cell), name(to)]);
            }
            9 => text.push('|'),
            10 => text.push('x'),
            _ if written[cell] || below(8) == 0 => {
                is_wrong |= !written[cell];
                text.extend([['r', 'l'][what % 2], name(cell)]);
            }
            _ => {}
        }
    }
    (text, is_wrong)
}

/// What is reported is what a table of the cells says.
#[test]
fn oracle_random_programs() {
    let mut wrong = 0;
    let seeds = seeds(60);
    for seed in seeds.range() {
        let (text, is_wrong) = text(seed);
        let compiler = if seed % 2 == 0 { "gcc" } else { "clang" };
        let path = compile_with(compiler, "fresh_random.c", &[]).display().to_string();
        let model = if seed % 4 < 2 { Model::Tso } else { Model::Sc };
        let findings = at_random(&path, &text, model, 2);
        let expected: &[&str] = if is_wrong { &["uninitialised-read"] } else { &[] };
        assert_eq!(failures(&findings), expected, "seed {seed} {compiler}: {text}");
        wrong += u64::from(is_wrong);
    }
    let is_both = wrong * 6 > seeds.count() && wrong * 6 < 5 * seeds.count();
    assert!(is_both || !seeds.suffice(), "{wrong} of {} read too early", seeds.count());
}
