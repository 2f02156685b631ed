//! Options of `palisade run` that `palisade cargo` passes on.
//!
//! `palisade cargo --strategy exhaustive --suppress known.txt test` has options of `palisade run` before cargo's own
//! arguments. Cargo starts `palisade run` for each program. It would split a command with options at every space, so
//! the options are passed in an environment variable.

use super::{Common, Palisade, command};
use clap::{ArgAction, Parser};
use palisade::harness::process::CARGO_OPTIONS;
use std::ffi::OsString;

/// Options whose values are files. Cargo starts programs in other folders.
const FILES: [&str; 4] = ["suppress", "save", "sarif", "html"];

/// Options that make no sense for a program that cargo has just built, or that cargo's command decides.
const NOT_PASSED_ON: [&str; 5] = ["replay", "tests", "processes", "hosts", "process"];

/// Options of every command that may stand between those of `palisade run`. Cargo has no such options before its
/// command.
const EVERYWHERE: [&str; 4] = ["seed", "jobs", "timeout", "memory"];

/// Separates the options in the variable.
const SEPARATOR: char = '\x1f';

/// Splits the arguments of `palisade cargo` into options of `palisade run` and arguments of cargo.
pub fn split(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let command = command();
    let run = command.find_subcommand("run").expect("there is such a command");
    let mut at = 0;
    while let Some(word) = arguments.get(at).and_then(|word| word.strip_prefix("--")) {
        let name = word.split('=').next().unwrap_or(word);
        let everywhere = command
            .get_arguments()
            .filter(|option| option.get_long().is_some_and(|name| EVERYWHERE.contains(&name)));
        let known = run.get_arguments().chain(everywhere).find(|option| option.get_long() == Some(name));
        let Some(option) = known.filter(|_| !NOT_PASSED_ON.contains(&name)) else { break };
        let takes_value = matches!(option.get_action(), ArgAction::Set) && !word.contains('=');
        at += 1 + usize::from(takes_value);
    }
    let (options, rest) = arguments.split_at(at.min(arguments.len()));
    (absolute(options), rest.to_vec())
}

/// The same options with whole paths.
fn absolute(options: &[String]) -> Vec<String> {
    let whole = |path: &str| {
        std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
    };
    let mut is_path = false;
    let mut words = Vec::new();
    for word in options {
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let names_file = name.strip_prefix("--").is_some_and(|name| FILES.contains(&name));
        words.push(match value {
            _ if is_path => whole(word),
            Some(value) if names_file => format!("{name}={}", whole(value)),
            _ => word.clone(),
        });
        is_path = !is_path && names_file && value.is_none();
    }
    words
}

/// What `palisade run` would say about these options.
pub fn check(options: &[String], has_tests: bool) -> Result<(), clap::Error> {
    let words = ["palisade", "run"].into_iter().chain(options.iter().map(String::as_str));
    let tests = has_tests.then_some("--tests");
    Palisade::try_parse_from(words.chain(tests).chain(["--", "program"])).map(|_| ())
}

/// The options of every command that concern `palisade run`, as words.
pub fn common(common: &Common) -> Vec<String> {
    let mut words = Vec::new();
    if common.seed != 0 {
        words.extend(["--seed".to_owned(), common.seed.to_string()]);
    }
    if let Some(jobs) = common.jobs {
        words.extend(["--jobs".to_owned(), jobs.to_string()]);
    }
    if let Some(timeout) = common.timeout {
        words.extend(["--timeout".to_owned(), timeout.as_secs_f64().to_string()]);
    }
    if let Some(bytes) = common.memory {
        words.extend(["--memory".to_owned(), (bytes as f64 / (1u64 << 30) as f64).to_string()]);
    }
    words.extend(common.quiet.then(|| "--quiet".to_owned()));
    words.extend(common.verbose.then(|| "--verbose".to_owned()));
    words
}

/// The variable and its value.
pub fn variable(options: &[String]) -> (&'static str, String) {
    (CARGO_OPTIONS, options.join(&SEPARATOR.to_string()))
}

/// The command line of `palisade run` with the options that were passed on.
pub fn with_passed_on(words: Vec<OsString>) -> Vec<OsString> {
    let passed = std::env::var(CARGO_OPTIONS).unwrap_or_default();
    with(words, &passed)
}

fn with(mut words: Vec<OsString>, passed: &str) -> Vec<OsString> {
    if !passed.is_empty() && words.get(1).is_some_and(|name| name == "run") {
        words.splice(2..2, passed.split(SEPARATOR).map(OsString::from));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_arguments_of_cargo() {
        let check = |given: &str, options: &str, rest: &str| {
            let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
            let (found, left) = split(&given);
            assert_eq!((found.join(" ").as_str(), left.join(" ").as_str()), (options, rest), "{given:?}");
        };
        check("test", "", "test");
        check(
            "--model pso --strategy=exhaustive test --lib",
            "--model pso --strategy=exhaustive",
            "test --lib",
        );
        check("--suppress /known.txt --robust run", "--suppress /known.txt --robust", "run");
        check("--model pso --seed 3 test --jobs 2", "--model pso --seed 3", "test --jobs 2");
        check("--no-save -q test --model x", "--no-save", "-q test --model x");
        check("--offline --model pso test", "", "--offline --model pso test");
        // These are not passed on.
        check("--tests --lib", "", "--tests --lib");
        check("--replay x test", "", "--replay x test");
    }

    #[test]
    fn paths_are_whole() {
        let here = std::path::absolute("known.txt").expect("there is a folder").display().to_string();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(split(&words("--suppress known.txt test")).0, ["--suppress", &here]);
        assert_eq!(split(&words("--suppress=known.txt test")).0, [format!("--suppress={here}")]);
    }

    #[test]
    fn every_option_is_passed_on_or_not_on_purpose() {
        let command = command();
        let run = command.find_subcommand("run").expect("there is such a command");
        for option in run.get_arguments().filter_map(|option| option.get_long()) {
            let value = "1".to_owned();
            let given = [format!("--{option}"), value, "test".to_owned()];
            let (options, _) = split(&given);
            assert_eq!(options.is_empty(), NOT_PASSED_ON.contains(&option), "{option}");
        }
    }

    #[test]
    fn what_run_refuses_is_refused_at_once() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(check(&words("--model pso"), true).is_ok());
        assert!(check(&words("--html /x.html"), false).is_ok());
        assert!(check(&words("--html /x.html"), true).is_err());
        assert!(check(&words("--model arm"), true).is_err());
    }

    #[test]
    fn options_are_put_after_the_command() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            with(words("p run --tests -- x"), "--model\x1fpso"),
            words("p run --model pso --tests -- x")
        );
        assert_eq!(with(words("p check x"), "--model\x1fpso"), words("p check x"));
        assert_eq!(with(words("p run x"), ""), words("p run x"));
    }
}
