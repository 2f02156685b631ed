//! Findings inside library functions are reported where the program calls them, and are distinguished by that.

use crate::common::{compile_with, program, programs, random, run, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options};
use palisade_memory::Model;

const OPTIMISED: [&[&str]; 2] = [&["-O0"], &["-O2"]];

fn sites(compiler: &str, flags: &[&str], how: &str) -> Program {
    let path = compile_with(compiler, "sites.cpp", flags);
    Program { command: vec![path.display().to_string(), how.to_owned()], scheduling: Scheduling::Best }
}

/// For each compiler, without and with optimisation.
fn each(how: &str, check: impl Fn(&str, &Program)) {
    for compiler in ["g++", "clang++"] {
        for flags in OPTIMISED {
            check(&format!("{compiler} {flags:?}"), &sites(compiler, flags, how));
        }
    }
}

/// The lines of `sites.cpp` that contain a text.
fn all_at(text: &str) -> Vec<String> {
    let source = std::fs::read_to_string(programs().join("sites.cpp")).expect("the program is there");
    let lines = (1..).zip(source.lines()).filter(|(_, line)| line.contains(text));
    lines.map(|(number, _)| format!("sites.cpp:{number}")).collect()
}

/// The first of them.
fn at(text: &str) -> String {
    all_at(text).swap_remove(0)
}

/// The file and line of a place.
fn line(name: &str) -> String {
    name.split(':').take(2).collect::<Vec<_>>().join(":")
}

/// The lines of all races, each with whether it writes.
fn races(findings: &Findings) -> Vec<[(String, bool); 2]> {
    let mut all: Vec<[(String, bool); 2]> = findings
        .races
        .iter()
        .map(|found| [&found.what.first, &found.what.second].map(|(name, writes)| (line(name), *writes)))
        .collect();
    all.iter_mut().for_each(|race| race.sort());
    all.sort();
    all
}

#[test]
fn reorderings_through_the_library_are_told_apart() {
    each("buffering", |how, program| {
        let mut session = start(program, &Options { model: Model::Tso, ..random(5000) });
        session.run(|findings| findings.reorderings.len() < 2 || findings.executions < 200);
        let findings = &session.findings;
        assert!(findings.failures.is_empty() && findings.races.is_empty(), "{how}: {findings:?}");
        let mut lines: Vec<(String, String)> = findings
            .reorderings
            .iter()
            .map(|found| (line(&found.what.store), line(&found.what.access)))
            .collect();
        lines.sort();
        let expected = [(at("a.store(1"), at("= b.load")), (at("b.store(1"), at("= a.load"))];
        assert_eq!(lines, expected, "{how}");
        for found in &findings.reorderings {
            let frames = session.frames().get(&found.what.store);
            let through = frames.map(|frames| frames.through.join("\n")).unwrap_or_default();
            assert!(through.contains("atomic"), "{how}: {through}");
            assert!(found.executions <= findings.executions, "{how}");
        }
    });
}

#[test]
fn races_through_the_library_are_told_apart() {
    each("races", |how, program| {
        let findings = run(program, &random(200));
        let lines = races(&findings);
        let places: Vec<&str> = lines.iter().flatten().map(|(place, _)| place.as_str()).collect();
        assert!(places.iter().all(|place| place.starts_with("sites.cpp:")), "{how}: {lines:?}");
        for both in [vec![at("std::exchange"), at("other = 2;")], all_at("std::swap")] {
            let found = lines.iter().any(|race| [&race[0].0, &race[1].0] == [&both[0], &both[1]]);
            assert!(found, "{how}: {both:?} in {lines:?}");
        }
        for found in &findings.races {
            assert!(found.executions <= findings.executions, "{how}: {found:?}");
        }
    });
}

#[test]
fn locks_of_the_library() {
    each("deadlock", |how, program| {
        let findings = run(program, &random(200));
        let found = findings.failures.first().unwrap_or_else(|| panic!("{how}: no deadlock"));
        let mut lines: Vec<String> = found.what.places.iter().map(|(place, _)| line(place)).collect();
        lines.sort();
        assert_eq!(lines, [at("two(n)"), at("m.lock()")], "{how}");
    });
}

/// `std::thread::join` is a precompiled function, which waits by itself.
#[test]
fn waits_in_the_precompiled_library() {
    each("waits", |how, program| {
        let findings = run(program, &random(50));
        let found = findings.failures.first().unwrap_or_else(|| panic!("{how}: no deadlock"));
        let mut lines: Vec<String> = found.what.places.iter().map(|(place, _)| line(place)).collect();
        lines.sort();
        assert_eq!(lines, [at("never.wait(lock)"), all_at("first.join()")[3].clone()], "{how}");
    });
}

/// What the function of a thread does last is a step of the program, and has its place there.
#[test]
fn calls_in_the_place_of_a_return() {
    each("ends", |how, program| {
        let mut session = start(program, &Options { model: Model::Tso, ..random(0) });
        let searched = session.explore(None, 1_000, |_| true);
        let failures = &session.findings.failures;
        let [found] = failures.as_slice() else { panic!("{how}: {searched:?} {failures:?}") };
        let lines: Vec<String> = found.what.places.iter().map(|(place, _)| line(place)).collect();
        let expected = [at("block.load()->store"), at("delete block"), at("block = new")];
        assert_eq!((found.what.name, lines), ("use-after-free", expected.to_vec()), "{how}");
    });
}

#[test]
fn crashes_in_the_library() {
    each("crash", |how, program| {
        let findings = run(program, &random(1));
        let found = findings.failures.first().unwrap_or_else(|| panic!("{how}: no crash"));
        let lines: Vec<String> = found.what.places.iter().map(|(place, _)| line(place)).collect();
        assert_eq!((found.what.name, lines), ("crash", vec![at("nothing->store")]), "{how}");
    });
}

/// A macro counts where it is used. A function in a header of the program counts where it is, and if it was inlined,
/// the functions around it are known.
#[test]
fn macros_and_headers_of_the_program() {
    for compiler in ["gcc", "clang"] {
        for flags in OPTIMISED {
            let how = format!("{compiler} {flags:?}");
            let program = program(&compile_with(compiler, "macro.c", flags));
            let mut session = start(&program, &random(50));
            session.run(|_| true);
            let both = |one: &str, other: &str| [(one.to_owned(), true), (other.to_owned(), true)];
            assert_eq!(
                races(&session.findings),
                [both("macro.c:18", "macro.c:9"), both("sites.h:4", "sites.h:4")],
                "{how}"
            );
            let header = session.findings.races.iter().find(|found| line(&found.what.first.0) == "sites.h:4");
            let name = &header.expect("a race in the header").what.first.0;
            let from = session.frames().get(name).map(|frames| frames.from.concat()).unwrap_or_default();
            assert_eq!(from.contains("macro.c:"), flags == ["-O2"], "{how}: {from}");
        }
    }
}
