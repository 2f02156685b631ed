//! `palisade run --tests`: each test of a Rust test program on its own, under many schedules.
//!
//! libtest is asked for the names of the tests. Then each of them is run by name, with one test thread, so that the
//! threads of an execution are those of the program: the first, the one on which libtest runs the test, and those
//! that the test starts. libtest joins its thread before it ends.

use crate::args::{Common, Format, RunArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::{cargo, interrupt, run};
use palisade::Diagnostic;
use palisade::harness::words::{decoded, shown};
use palisade::report::visible;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs all tests that the arguments select.
pub fn run(args: &RunArgs, common: &Common, output: &Output) -> Exit {
    let Some((program, selection)) = args.command.split_first() else { return Exit::Error };
    let tests = match selected(program, selection) {
        Ok(tests) => tests,
        Err(problem) => return output.refuse_about(&shown(program), problem),
    };
    let mut exits = Vec::new();
    let mut are_noted = true;
    for test in &tests {
        if interrupt::is_stopped() {
            break;
        }
        let one = RunArgs {
            tests: false,
            label: Some(test.clone()),
            save: Some(schedule_file(test)).filter(|_| !args.no_save),
            command: command(program, test),
            ..args.clone()
        };
        // A program that cannot run its first test cannot run any.
        let exit = match exits.first() {
            Some(Exit::Error) => Exit::Error,
            _ => run::run(&one, common, output),
        };
        are_noted &= cargo::note_test(exit);
        exits.push(exit);
    }
    if are_noted && !exits.is_empty() {
        // `palisade cargo` has a summary of all test programs. For cargo itself, everything went well.
        return Exit::Fine;
    }
    if output.format == Format::Text {
        output.print(&format!("{}\n", summary(&exits)));
    }
    exits.into_iter().fold(Exit::Fine, Exit::worst)
}

/// How a single test is run. A test that is ignored by default has been selected on purpose.
fn command(program: &str, test: &str) -> Vec<String> {
    [program, test, "--exact", "--include-ignored", "--test-threads=1"].map(str::to_owned).to_vec()
}

/// The file for the schedule of a test: its name without the characters that file names should not have.
fn schedule_file(test: &str) -> PathBuf {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let name: String =
        test.replace("::", ".").chars().map(|c| if is_plain(c) || c == '.' { c } else { '_' }).collect();
    PathBuf::from(format!("{}.schedule", name.trim_start_matches('.')))
}

/// The names of the tests that libtest would run with these arguments.
fn selected(program: &str, selection: &[String]) -> Result<Vec<String>, Diagnostic> {
    let all = listed(program, selection, None)?;
    let chooses_ignored = selection.iter().any(|word| word == "--ignored" || word == "--include-ignored");
    if chooses_ignored {
        return Ok(all);
    }
    let ignored: BTreeSet<String> = listed(program, selection, Some("--ignored"))?.into_iter().collect();
    Ok(all.into_iter().filter(|test| !ignored.contains(test)).collect())
}

fn listed(program: &str, selection: &[String], more: Option<&str>) -> Result<Vec<String>, Diagnostic> {
    let not_tests = |why: String| {
        Diagnostic::error("not-tests", why)
            .help("--tests is for test programs that cargo has built with libtest, the default; run others without it")
    };
    let listed = Command::new(decoded(program))
        .args(selection.iter().map(|word| decoded(word)))
        .args(more)
        .args(["--list", "--format", "terse"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Diagnostic::error("cannot-start", format!("cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let tests = names(&text).filter(|_| listed.status.success());
    tests.ok_or_else(|| {
        let errors = String::from_utf8_lossy(&listed.stderr);
        let first = errors.lines().next().map_or_else(String::new, |line| format!(": {}", visible(line)));
        not_tests(format!("does not list its tests{first}"))
    })
}

/// The tests in libtest's list. `None` if it is not such a list. Benchmarks are left out.
fn names(list: &str) -> Option<Vec<String>> {
    let mut tests = Vec::new();
    for line in list.lines().filter(|line| !line.is_empty()) {
        match line.rsplit_once(": ")? {
            (name, "test") => tests.push(name.to_owned()),
            (_, "benchmark") => {}
            _ => return None,
        }
    }
    Some(tests)
}

/// How many tests ended in which way.
pub fn summary(exits: &[Exit]) -> String {
    let words = [
        (Exit::Fine, "clean"),
        (Exit::Failed, "failed"),
        (Exit::Violated, "with violations"),
        (Exit::Races, "with data races"),
        (Exit::Unknown, "unknown"),
        (Exit::Error, "not run"),
    ];
    let counts = words.into_iter().filter_map(|(exit, word)| {
        let count = exits.iter().filter(|&&other| other == exit).count();
        (count > 0).then(|| format!("{count} {word}"))
    });
    let counts: Vec<String> = counts.collect();
    let tests = if exits.len() == 1 { "test" } else { "tests" };
    match counts.as_slice() {
        [] => "0 tests".to_owned(),
        counts => format!("{} {tests}: {}", exits.len(), counts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_libtest() {
        let check = |list: &str, expected: Option<&[&str]>| {
            let expected =
                expected.map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
            assert_eq!(names(list), expected, "{list}");
        };
        check("", Some(&[]));
        check("a: test\nb::c: test\nslow: benchmark\n", Some(&["a", "b::c"]));
        check("a - should panic: test\n", Some(&["a - should panic"]));
        check("running 2 tests\n", None);
        check("progress: 3\n", None);
    }

    #[test]
    fn files_and_counts() {
        assert_eq!(schedule_file("queue::tests::push"), PathBuf::from("queue.tests.push.schedule"));
        assert_eq!(schedule_file("../a b"), PathBuf::from("_a_b.schedule"));
        let exits = [Exit::Fine, Exit::Failed, Exit::Fine];
        assert_eq!(summary(&exits), "3 tests: 2 clean, 1 failed");
        assert_eq!(summary(&[]), "0 tests");
    }
}
