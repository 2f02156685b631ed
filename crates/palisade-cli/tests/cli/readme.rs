//! Checks what the README says; `book.rs` does the same for the book.

use crate::common;

use common::Ran;
use std::path::Path;
use std::process::Command;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The console blocks of a text: command and output.
fn console_blocks(text: &str) -> Vec<(&str, &str)> {
    text.split("```console\n$ ")
        .skip(1)
        .map(|block| block.split("```").next().expect("a block ends"))
        .map(|block| block.split_once('\n').expect("a command ends its line"))
        .collect()
}

#[test]
fn the_example_of_the_readme_is_real() {
    let readme = read("README.md");
    let blocks = console_blocks(&readme);
    let (command, expected) = blocks[0];
    let args = command
        .strip_prefix("cargo run --release -p palisade-cli -- ")
        .expect("the first command runs Palisade");
    let output = Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(args.split(' '))
        .current_dir(root())
        .output()
        .expect("the command can be started");
    let ran = Ran::new(output).exits(1);
    // The last line contains states and seconds.
    let without_last = |text: &str| text.trim_end().rsplit_once('\n').expect("several lines").0.to_owned();
    assert_eq!(without_last(&ran.stdout), without_last(expected), "the README should say:\n{}", ran.stdout);
    let program = read("corpus/mutex/peterson.pal");
    let code: Vec<&str> = program.lines().filter(|line| !line.starts_with("//")).collect();
    assert!(readme.contains(&code.join("\n")), "the README should show the program unchanged");
}

/// The picture is what the commands of `docs/show.md` make today.
#[test]
fn the_picture_of_the_readme_is_real() {
    assert!(read("README.md").contains("](docs/figures/peterson.svg)"));
    let scratch = common::Scratch::new("readme_picture");
    let witness = scratch.path("run.json").display().to_string();
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_palisade")).args(args).current_dir(root()).output();
        Ran::new(output.expect("the command can be started"))
    };
    run(&["check", "corpus/mutex/peterson.pal", "--witness", &witness]).exits(1);
    let drawn = run(&["show", &witness, "--as", "svg"]).exits(0);
    let kept = read("docs/figures/peterson.svg");
    assert!(
        drawn.stdout == kept,
        "docs/figures/peterson.svg is not what `palisade show --as svg` makes:\n{}",
        drawn.stdout
    );
}

#[test]
fn the_fences_of_the_readme_are_real() {
    let readme = read("README.md");
    let blocks = console_blocks(&readme);
    let (command, expected) =
        blocks.iter().find(|(command, _)| command.contains("fences")).expect("an example");
    let (_, args) = command.split_once(" -- ").expect("the command runs Palisade");
    let output =
        Command::new(env!("CARGO_BIN_EXE_palisade")).args(args.split(' ')).current_dir(root()).output();
    let ran = Ran::new(output.expect("the command can be started")).exits(0);
    assert_eq!(ran.stdout, *expected);
}

#[test]
fn continuous_integration_runs_the_tests_of_the_readme() {
    let readme = read("README.md");
    let (command, _) = *console_blocks(&readme).last().expect("the README has commands");
    let script = read(".ci/run");
    assert_eq!(command, "./test");
    assert_eq!(script.trim_end().lines().last(), Some(command));
    assert!(script.contains("\ncargo fmt --check\n") && script.contains("\nexport PALISADE_LINTS=deny\n"));
    // With or without nextest, all tests are run, and a failing test does not hide the others.
    assert!(read("test").ends_with("\n.ci/cargo-test || failed=$?\nexit \"$failed\"\n"));
    let script = read(".ci/cargo-test").replace(" \\\n        ", " ");
    let commands: Vec<&str> =
        script.lines().map(str::trim).filter(|line| line.starts_with("cargo ")).collect();
    let expected = [
        "cargo nextest run \"${lints[@]}\" --workspace --lib --bins --tests --examples --no-fail-fast \
         --test-threads $(($(nproc) + 2)) -- \"$@\" || failed=$?",
        "cargo test \"${lints[@]}\" --workspace --no-fail-fast --doc || failed=$?",
        "cargo test \"${lints[@]}\" --workspace --no-fail-fast -- \"$@\"",
    ];
    assert_eq!(commands, expected);
}
