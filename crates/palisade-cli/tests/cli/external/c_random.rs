//! Random C programs through the command, against judges that know nothing of the translation of C.
//!
//! - Litmus tests, in C and in Rust: the outcomes under SC, TSO and PSO are those of the brute-force interpreter on a program that is
//!   built from the same description.
//! - The same tests, compiled and run once per partial order with the store buffers of a model, have these outcomes too.
//! - Concurrent programs: the outcomes under each model are those of the compiled program, run once per partial order.
//! - Litmus tests and concurrent programs, compiled to object files and to assembly: the outcomes are those of the source and of
//!   the compiled program, run once per partial order.
//! - Sequential programs: the outcome is that of the program compiled by gcc. Where its sanitizers stop it, `check`
//!   reports the same mistake in the same line.
//!
//! `PALISADE_SEEDS=1000` looks further.

use crate::common::Scratch;
use palisade::Model;
use palisade_conformance::c::{concurrent, litmus, sequential};
use palisade_conformance::{Seeds, seeds};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What a program can end with under a memory model: the values of `o0`, `o1`, …
#[derive(Clone, PartialEq, Eq, Debug)]
struct Outcomes {
    values: BTreeSet<Vec<i64>>,
    /// Whether some runs never end.
    stuck: bool,
}

/// The outcomes by the command, one set per model. An error says why there are none.
fn outcomes(scratch: &Scratch, file: &str, model: &str) -> Result<Vec<Outcomes>, String> {
    let options = ["--model", model, "--no-races", "--format", "json", "--timeout", "60"];
    let ran = scratch.run(&[&["outcomes", file][..], &options].concat());
    if ran.code == Some(3) {
        return Err(format!("{UNKNOWN}{}", ran.stdout));
    }
    if ran.code != Some(0) {
        return Err(format!("outcomes: {}{}", ran.stdout, ran.stderr));
    }
    let record: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let of_row = |number: &Value| -> Vec<i64> {
        let row = &record["outcomes"][number.as_u64().expect("a number") as usize - 1]["values"];
        (0..).map_while(|index| row.get(format!("o{index}"))).map(|o| o.as_i64().expect("a number")).collect()
    };
    let of_model = |model: &Value| Outcomes {
        values: model["outcomes"].as_array().expect("a list").iter().map(of_row).collect(),
        stuck: model["runs_that_cannot_end"].as_bool().expect("a truth value"),
    };
    Ok(record["models"].as_array().expect("a list").iter().map(of_model).collect())
}

/// What an error begins with if there is nothing to compare: a pointer to one member of a struct may reach another of
/// a different size, and what a loop allocates may be too much.
const UNKNOWN: &str = "unknown: ";

/// Compares one program. An error says how it differs.
type Comparison = fn(&Scratch, &str, u64) -> Result<(), String>;

/// Compares the programs of all seeds, and keeps those that differ in the folder of the test.
fn check(name: &str, seeds: Seeds, compare: Comparison) {
    let scratch = Scratch::new(name);
    let (mut wrong, mut unknown, count) = (Vec::new(), 0, seeds.count());
    for seed in seeds {
        let file = format!("{seed}.c");
        match compare(&scratch, &file, seed) {
            Ok(()) => _ = std::fs::remove_file(scratch.path(&file)),
            Err(why) if why.starts_with(UNKNOWN) => {
                println!("seed {seed}: {why}");
                unknown += 1;
            }
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "in {}:\n{}", scratch.path("").display(), wrong.join("\n"));
    assert!(unknown <= 1 + count / 8, "{unknown} of {count} are unknown");
}

fn write(scratch: &Scratch, file: &str, text: &str) {
    std::fs::write(scratch.path(file), text).expect("a file can be written");
}

/// Describes how two sets of outcomes differ.
fn same(what: &str, found: &BTreeSet<Vec<i64>>, expected: &BTreeSet<Vec<i64>>) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let missing: Vec<_> = expected.difference(found).collect();
    let additional: Vec<_> = found.difference(expected).collect();
    Err(format!("{what}: missing {missing:?}, additional {additional:?}"))
}

#[test]
fn litmus_tests_have_the_outcomes_of_the_machine() {
    check("c_random_litmus", seeds(24), |scratch, file, seed| {
        let test = litmus::generate(seed);
        write(scratch, file, &test.text());
        let found = outcomes(scratch, file, "all")?;
        for (model, found) in Model::ALL.into_iter().zip(found) {
            let Some(expected) = test.outcomes(model) else { continue };
            same(model.name(), &found.values, &expected)?;
        }
        Ok(())
    });
}

/// The same in Rust. Starting rustc takes most of the time, so there are few by default.
#[test]
fn litmus_tests_in_rust_have_the_outcomes_of_the_machine() {
    check("c_random_litmus_in_rust", seeds(5), |scratch, file, seed| {
        let test = litmus::generate(seed);
        let file = file.replace(".c", ".rs");
        write(scratch, &file, &test.rust());
        let found = outcomes(scratch, &file, "all")?;
        for (model, found) in Model::ALL.into_iter().zip(found) {
            let Some(expected) = test.outcomes(model) else { continue };
            same(model.name(), &found.values, &expected)?;
        }
        Ok(())
    });
}

/// The lines that a program appended to a file, as numbers.
fn printed(scratch: &Scratch, file: &str) -> BTreeSet<Vec<i64>> {
    let text = std::fs::read_to_string(scratch.path(file)).unwrap_or_default();
    let number = |word: &str| word.parse().expect("a number");
    text.lines().map(|line| line.split_whitespace().map(number).collect()).collect()
}

/// What a compiled program ends with, run once per partial order with the store buffers of a model, and what the
/// command reports about it. Programs with more partial orders than this are left out.
fn exhaustively(
    scratch: &Scratch,
    program: &str,
    model: Model,
) -> Result<(BTreeSet<Vec<i64>>, Value), String> {
    let options =
        ["--strategy", "exhaustive", "--schedules", "3000", "--format", "json", "--no-save", "--model"];
    let path = format!("./{program}");
    let ran = scratch.run(&[&["run"][..], &options, &[model.name(), "--", &path]].concat());
    let results = format!("{program}.txt");
    let outcomes = printed(scratch, &results);
    let _ = std::fs::remove_file(scratch.path(&results));
    let record = serde_json::from_str(&ran.stdout).map_err(|_| ran.stderr)?;
    Ok((outcomes, record))
}

/// Compiles a program that appends its outcomes to a file.
fn compiled(scratch: &Scratch, compiler: &str, file: &str, program: &str) -> Result<(), String> {
    let macros = format!("-DOUTCOMES=\"{program}.txt\"");
    let compiled = scratch.run(&["cc", "--compiler", compiler, "-w", &macros, file, "-o", program]);
    if compiled.code == Some(0) { Ok(()) } else { Err(compiled.stderr) }
}

#[test]
fn litmus_tests_run_with_store_buffers_have_the_outcomes_of_the_machine() {
    check("c_random_buffers", seeds(24), |scratch, file, seed| {
        let test = litmus::generate(seed);
        write(scratch, file, &test.text());
        let program = format!("{seed}.program");
        compiled(scratch, ["gcc", "clang"][seed as usize % 2], file, &program)?;
        for model in Model::ALL {
            let (found, record) = exhaustively(scratch, &program, model)?;
            if record["exhaustive"]["complete"] != true {
                return Err(format!("{UNKNOWN}{} {}", record["verdict"], record["reason"]));
            }
            let Some(expected) = test.outcomes(model) else { continue };
            same(&format!("run, {}", model.name()), &found, &expected)?;
        }
        std::fs::remove_file(scratch.path(&program)).expect("the program was made");
        Ok(())
    });
}

#[test]
fn concurrent_programs_have_the_outcomes_of_the_compiled_program() {
    check("c_random_concurrent", seeds(16), |scratch, file, seed| {
        write(scratch, file, &concurrent::generate(seed));
        let program = format!("{seed}.program");
        compiled(scratch, "clang", file, &program)?;
        for model in Model::ALL {
            let (expected, record) = exhaustively(scratch, &program, model)?;
            if record["exhaustive"]["complete"] != true {
                println!("seed {seed}: {} {}", record["verdict"], record["reason"]);
                break;
            }
            let failures: Vec<&str> = record["failures"]
                .as_array()
                .map(|failures| failures.iter().filter_map(|failure| failure["kind"].as_str()).collect())
                .unwrap_or_default();
            if failures.iter().any(|kind| *kind != "deadlock") {
                return Err(format!("run: {failures:?}"));
            }
            let found = outcomes(scratch, file, model.name())?.remove(0);
            same(model.name(), &found.values, &expected)?;
            // Not every run that never ends is noticed by the list of outcomes.
            if found.stuck && failures.is_empty() {
                return Err("no run of the compiled program is stuck".to_owned());
            }
        }
        std::fs::remove_file(scratch.path(&program)).expect("the program was made");
        Ok(())
    });
}

/// The object file or the assembly of a program as a compiler makes it.
fn built(scratch: &Scratch, (compiler, level): (&str, &str), file: &str, to: &str) -> Result<(), String> {
    let kind = if to.ends_with(".s") { "-S" } else { "-c" };
    let compiled = Command::new(compiler)
        .current_dir(scratch.path(""))
        .args([level, "-w", "-pthread", kind, "-o", to, file])
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    if compiled.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&compiled.stderr).into_owned())
    }
}

/// Whether `check` finds a data race in a program.
fn has_data_race(scratch: &Scratch, file: &str, model: Model) -> bool {
    let ran = scratch.run(&["check", file, "--model", model.name(), "--timeout", "60"]);
    ran.code == Some(1) && ran.stdout.contains("data race")
}

/// The source, its build and the running program have the same outcomes under SC and TSO. Every second program is a litmus
/// test.
#[test]
fn three_ways_to_the_same_outcomes() {
    check("c_random_three_ways", seeds(2), |scratch, file, seed| {
        let text = match seed % 2 {
            0 => litmus::generate(seed).text(),
            _ => concurrent::generate(seed),
        };
        write(scratch, file, &text.replace("static long o", "long o"));
        let program = format!("{seed}.program");
        compiled(scratch, "clang", file, &program)?;
        let builds = [
            ("gcc", "-O2"),
            ("clang", "-O0"),
            ("gcc", "-O0"),
            ("clang", "-O2"),
            ("gcc", "-O1"),
            ("gcc", "-Os"),
        ];
        let build = builds[seed as usize / 2 % builds.len()];
        let object = format!("{seed}.{}", ["o", "s"][seed as usize / 4 % 2]);
        built(scratch, build, file, &object)?;
        for model in [Model::Sc, Model::Tso] {
            let (run, record) = exhaustively(scratch, &program, model)?;
            if record["exhaustive"]["complete"] != true {
                return Err(format!("{UNKNOWN}{} {}", record["verdict"], record["reason"]));
            }
            let source = outcomes(scratch, file, model.name())?.remove(0).values;
            same(&format!("source and run, {}", model.name()), &source, &run)?;
            let object = match outcomes(scratch, &object, model.name()) {
                // An instruction that is refused by name, such as one that spills a register of which a part is not set.
                Err(why) if why.contains("c-unsupported") => return Err(format!("{UNKNOWN}{why}")),
                other => other?.remove(0).values,
            };
            // An optimiser that assumes that there are no data races reads a variable once instead of twice.
            let optimised = build.1 != "-O0" && object.len() < source.len() && object.is_subset(&source);
            if !optimised || !has_data_race(scratch, file, model) {
                same(&format!("{build:?} and source, {}", model.name()), &object, &source)?;
            }
            println!("seed {seed}: {} outcomes under {}", run.len(), model.name());
        }
        for name in [&program, &object] {
            std::fs::remove_file(scratch.path(name)).expect("it was made");
        }
        Ok(())
    });
}

/// What sanitizers call a mistake, and what `check` calls it.
const MISTAKES: [(&str, &str); 12] = [
    ("left shift of", "signed integer overflow"),
    ("signed integer overflow", "signed integer overflow"),
    ("negation of", "signed integer overflow"),
    ("cannot be represented", "signed integer overflow"),
    ("division by zero", "division by zero"),
    ("shift exponent", "shift by a negative number or by at least the width"),
    ("out of bounds for type", "access out of bounds"),
    ("buffer-overflow", "access out of bounds"),
    ("buffer-underflow", "access out of bounds"),
    ("heap-use-after-free", "use after free"),
    ("double-free", "double or invalid free"),
    ("SEGV", "access"),
];

/// The mistake that a sanitizer reported, and the line.
fn mistake(report: &str, file: &str) -> Option<(&'static str, u64)> {
    let (_, word) = MISTAKES.iter().find(|(words, _)| report.contains(words))?;
    let at = report.find(&format!("{file}:"))?;
    let line = report[at + file.len() + 1..].split(|c: char| !c.is_ascii_digit()).next()?;
    Some((word, line.parse().ok()?))
}

#[test]
fn sequential_programs_do_what_the_compiled_program_does() {
    check("c_random_sequential", seeds(24), |scratch, file, seed| {
        write(scratch, file, &sequential::generate(seed));
        let (program, results) = (format!("{seed}.program"), format!("{seed}.txt"));
        let compiled = Command::new("gcc")
            .current_dir(scratch.path(""))
            .args(["-w", "-g", "-O0", &format!("-DOUTCOMES=\"{results}\""), file, "-o", &program])
            .args(["-fsanitize=address,signed-integer-overflow,integer-divide-by-zero,shift-exponent,bounds"])
            .arg("-fno-sanitize-recover=all")
            .output()
            .expect("gcc is installed");
        if !compiled.status.success() {
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
        let ran = Command::new(scratch.path(&program))
            .current_dir(scratch.path(""))
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .output()
            .expect("the program can be started");
        let expected = printed(scratch, &results);
        for file in [&program, &results] {
            let _ = std::fs::remove_file(scratch.path(file));
        }
        if ran.status.success() {
            let found = outcomes(scratch, file, "sc")?.remove(0);
            return same("sc", &found.values, &expected);
        }
        let report = String::from_utf8_lossy(&ran.stderr).into_owned();
        let (what, line) = mistake(&report, file).ok_or(report)?;
        let checked = scratch.run(&["check", "-q", file, "--model", "sc", "--timeout", "60"]);
        let reported = checked.stdout.trim_end();
        let at = format!(" at line {line}:");
        // An address that is far off belongs to no object.
        let reported = &reported.replace("invalid pointer dereferenced", "access out of bounds");
        match reported.starts_with("unsafe") && reported.contains(what) && reported.contains(&at) {
            true => Ok(()),
            false if reported.starts_with("unknown") => Err(format!("{UNKNOWN}{reported}")),
            false => Err(format!("{what} at line {line} expected: {reported}{}", checked.stderr)),
        }
    });
}
