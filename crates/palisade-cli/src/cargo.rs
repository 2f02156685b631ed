//! `palisade cargo`: runs cargo to build programs that `palisade run` can run.
//!
//! Exit codes: those of `palisade run` if cargo runs a program, 0 if it only builds one, and 2 if it cannot.
//! Cargo passes on the exit code of the program it runs, and uses the same codes for problems of its own. So
//! `palisade run` leaves a note that it was started. With `cargo test`, the note has the exit code of each test, and
//! the worst of them counts.

use crate::args::{CargoArgs, Common, run_options};
use crate::cc;
use crate::exit::Exit;
use crate::output::{Output, print_instead};
use crate::{interrupt, rust_tests, supervise};
use palisade::Diagnostic;
use palisade::harness::cache::{Cache, temporary_folder};
use palisade::harness::rust::{self, Runs};
use signal_hook::consts::SIGTERM;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Runs the command.
pub fn run(args: &CargoArgs, common: &Common, output: &Output) -> Exit {
    let (mut options, given) = run_options::split(&args.arguments);
    let cache = match cc::user_cache(output) {
        Ok(cache) => cache,
        Err(exit) => return exit,
    };
    let (arguments, runs) = match arguments(&given) {
        Ok(arguments) => arguments,
        Err(problem) => return cannot_build(problem, output),
    };
    if let Err(error) = run_options::check(&options, runs == Runs::Tests) {
        print_instead(&error);
        return Exit::Error;
    }
    options.splice(0..0, run_options::common(common));
    // From now on, a request to end is passed on to cargo, and we stay to tell what is known.
    interrupt::stop_flag();
    supervise::adopt();
    let ended = cargo(arguments, runs, &options, &cache);
    let is_stopped = ended.as_ref().map_or_else(|_| interrupt::is_stopped(), |ended| ended.is_stopped);
    let has_answer = |ended: &Ended| {
        ended.note.as_ref().is_some_and(|note| ended.runs == Runs::Programs || !note.is_empty())
    };
    if is_stopped && !ended.as_ref().is_ok_and(has_answer) {
        output.print("unknown: stopped\n");
        return Exit::Unknown;
    }
    match ended {
        Ok(Ended { code, note: None, .. }) => exit(code, false),
        Ok(Ended { code: None, note: Some(_), runs: Runs::Programs, .. }) if is_stopped => Exit::Unknown,
        Ok(Ended { code, note: Some(_), runs: Runs::Programs, .. }) => exit(code, true),
        Ok(Ended { code, note: Some(note), runs: Runs::Tests, .. }) => {
            let exits: Vec<Exit> = note.lines().map(|line| exit(line.parse().ok(), true)).collect();
            output.print(&format!("{}\n", rust_tests::summary(&exits)));
            let least = if is_stopped { Exit::Unknown } else { Exit::Fine };
            let worst = exits.into_iter().fold(least, Exit::worst);
            // If all tests are fine, something else went wrong.
            if worst == Exit::Fine && code != Some(0) { Exit::Error } else { worst }
        }
        Err(problem) => cannot_build(problem, output),
    }
}

fn cannot_build(problem: String, output: &Output) -> Exit {
    let diagnostic = Diagnostic::error("cannot-build", problem)
        .help("run `palisade doctor` to see what is missing on this machine");
    output.complain_about("cargo", diagnostic);
    Exit::Error
}

/// The arguments, if rustc has started this program as its linker.
pub fn linker_arguments() -> Option<Vec<std::ffi::OsString>> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    let is_linker = name.file_name()?.to_string_lossy().starts_with(rust::LINKER);
    is_linker.then(|| arguments.collect())
}

/// Links a Rust program. rustc shows what is printed here if it fails.
pub fn link(arguments: Vec<std::ffi::OsString>) -> ExitCode {
    let arguments = arguments.into_iter().map(std::ffi::OsString::into_string).collect::<Result<_, _>>();
    let linked = match arguments {
        Ok(arguments) => rust::link(arguments).map_err(|error| error.to_string()),
        Err(argument) => Err(format!("{} cannot be linked: its name is not UTF-8", argument.display())),
    };
    match linked {
        Ok(linked) if linked.success => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(problem) => {
            // If it cannot be printed, the exit code still says that something is wrong.
            let _ = writeln!(std::io::stderr(), "palisade: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The variable that names the file in which `palisade run` notes that cargo started it.
const NOTE: &str = palisade::harness::process::CARGO_NOTE;

/// Notes that this is `palisade run`, if it was started through `palisade cargo`.
pub fn note_run() {
    note("");
}

/// Notes how a test ended. Returns whether `palisade cargo` will see it.
pub fn note_test(exit: Exit) -> bool {
    note(&format!("{}\n", exit.code()))
}

/// Without the note, the code is taken for cargo's own, which is an error in any case.
fn note(text: &str) -> bool {
    let Some(path) = std::env::var_os(NOTE) else { return false };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).is_ok()
}

/// The meaning of cargo's exit code.
fn exit(code: Option<i32>, has_run: bool) -> Exit {
    let all = [Exit::Fine, Exit::Violated, Exit::Unknown, Exit::Failed, Exit::Races];
    let known = if has_run { &all[..] } else { &all[..1] };
    known.iter().copied().find(|exit| Some(i32::from(exit.code())) == code).unwrap_or(Exit::Error)
}

/// How cargo ended.
struct Ended {
    code: Option<i32>,
    /// Whether it was asked to end.
    is_stopped: bool,
    /// What `palisade run` has noted, if cargo has started it.
    note: Option<String>,
    runs: Runs,
}

/// Cargo's arguments, and what it runs. `cargo test` continues after a failure, so that there is a verdict for every
/// test. Documentation tests are compiled by rustdoc, which does not instrument them.
fn arguments(given: &[String]) -> Result<(Vec<String>, Runs), String> {
    const SELECT: [&str; 10] = [
        "--lib",
        "--bin",
        "--bins",
        "--test",
        "--tests",
        "--example",
        "--examples",
        "--bench",
        "--benches",
        "--all-targets",
    ];
    let own: Vec<&String> = given.iter().take_while(|word| *word != "--").collect();
    let Some(at) = own.iter().position(|word| *word == "test" || *word == "t") else {
        return Ok((given.to_vec(), Runs::Programs));
    };
    if given[..at].iter().any(|word| !word.starts_with(['-', '+'])) {
        // It is an argument of another command.
        return Ok((given.to_vec(), Runs::Programs));
    }
    if own.iter().any(|word| *word == "--doc") {
        return Err("documentation tests cannot be instrumented: leave out --doc".to_owned());
    }
    let has = |option: &str| own.iter().any(|word| word.split('=').next() == Some(option));
    let mut arguments = given.to_vec();
    let mut add = |option: &str| arguments.insert(at + 1, option.to_owned());
    if !SELECT.into_iter().any(has) {
        add("--tests");
    }
    if !has("--no-fail-fast") {
        add("--no-fail-fast");
    }
    let runs = if has("--no-run") { Runs::Programs } else { Runs::Tests };
    Ok((arguments, runs))
}

fn cargo(arguments: Vec<String>, runs: Runs, options: &[String], cache: &Cache) -> Result<Ended, String> {
    let palisade = std::env::current_exe().map_err(|error| error.to_string())?;
    // As in cargo, the encoded flags take precedence over the plain ones.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok().or_else(|| {
        let plain = std::env::var("RUSTFLAGS").ok()?;
        Some(plain.split_whitespace().collect::<Vec<_>>().join("\x1f"))
    });
    let flags = flags.filter(|flags| !flags.is_empty());
    let environment =
        rust::environment(cache, &palisade, flags.as_deref(), runs).map_err(|error| error.to_string())?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folder = temporary_folder("palisade-cargo-").map_err(|error| error.to_string())?;
    let note = folder.path().join("run");
    let status = Command::new("cargo")
        // A backtrace takes a hundred times as many steps as a test.
        .env("RUST_BACKTRACE", "0")
        .args(arguments)
        .envs(environment)
        .env("CARGO_TARGET_DIR", target.join("palisade"))
        .env(NOTE, &note)
        .envs([run_options::variable(options)])
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    // The signal has reached all of us, and cargo may be the first to notice.
    let is_stopped = interrupt::is_stopped() || status.signal() == Some(SIGTERM);
    if is_stopped {
        // Cargo ends at once. `palisade run` still has something to say.
        supervise::wait_for_group();
    }
    let note = std::fs::read_to_string(note).ok();
    Ok(Ended { code: status.code(), is_stopped, note, runs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_test_runs_all_tests_that_can_be_instrumented() {
        let check = |given: &str, expected: &str, runs: Runs| {
            let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
            let (arguments, found) = arguments(&given).expect("cargo accepts them");
            assert_eq!((arguments.join(" ").as_str(), found), (expected, runs), "{given:?}");
        };
        check("test", "test --no-fail-fast --tests", Runs::Tests);
        check("-q test --offline name", "-q test --no-fail-fast --tests --offline name", Runs::Tests);
        check("test --lib -- --ignored", "test --no-fail-fast --lib -- --ignored", Runs::Tests);
        check("t --test=a --no-fail-fast", "t --test=a --no-fail-fast", Runs::Tests);
        check("test --no-run", "test --no-fail-fast --tests --no-run", Runs::Programs);
        check("run --bin test", "run --bin test", Runs::Programs);
        check("build -- test", "build -- test", Runs::Programs);
        assert!(arguments(&["test".to_owned(), "--doc".to_owned()]).is_err());
    }
}
