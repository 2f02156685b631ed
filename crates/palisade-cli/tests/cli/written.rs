//! Output files are written completely or not at all. An input is never overwritten, and two outputs never go
//! to the same place.

use crate::common;

use common::{FENCED, Ran, STORE_BUFFERING, Scratch};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

/// Store buffering with a long comment, so that the program is larger than the size limits below.
fn long_program() -> String {
    format!("{STORE_BUFFERING}// {}\n", "x".repeat(20_000))
}

/// Runs the command with file sizes limited to this many blocks.
fn limited(scratch: &Scratch, blocks: &str, args: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    command
        .current_dir(scratch.path("."))
        .args(["-c", "ulimit -f \"$0\"; exec \"$@\"", blocks, env!("CARGO_BIN_EXE_palisade")])
        .args(args);
    Ran::new(command.output().expect("there is a shell"))
}

/// The names in a scratch folder.
fn names(scratch: &Scratch) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(scratch.path("."))
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn fences_written_in_place_survive_a_size_limit() {
    let program = long_program();
    let scratch = Scratch::new("written_in_place").file("x.pal", &program);
    for blocks in ["0", "1", "10"] {
        let ran = limited(&scratch, blocks, &["fences", "-q", "x.pal", "--write", "x.pal"]).exits(2);
        assert!(ran.stderr.contains("error[unwritable-file]: x.pal: cannot be written"), "{}", ran.stderr);
        assert_eq!(scratch.read("x.pal"), program);
    }
    assert_eq!(names(&scratch), ["x.pal"]);
    limited(&scratch, "unlimited", &["fences", "-q", "x.pal", "--write", "x.pal"]).exits(0);
    assert!(scratch.read("x.pal").contains("fence;"));
    scratch.run(&["check", "-q", "x.pal"]).exits(0);
}

#[test]
fn every_file_survives_a_size_limit() {
    let program = long_program();
    let scratch = Scratch::new("written_limited")
        .file("d/x.pal", &program)
        .file("d/safe.pal", FENCED)
        .file("run.trace", "p store x a\np load y b\nq store y c\nq load x d\nend\n");
    scratch.run(&["check", "-q", "d/x.pal", "--witness", "w.json"]).exits(1);
    for args in [
        &["check", "d/x.pal", "--witness", "out"][..],
        &["check", "d/safe.pal", "--certificate", "out"],
        &["check", "d/x.pal", "--html", "out"],
        &["check", "d/x.pal", "--junit", "out"],
        &["check", "d/x.pal", "--sarif", "out"],
        &["check", "d", "--tsv", "out"],
        &["check", "d", "--html", "out"],
        &["check", "d", "--junit", "out"],
        &["check", "d", "--sarif", "out"],
        &["fences", "d/x.pal", "--write", "out"],
        &["fences", "d/x.pal", "--html", "out"],
        &["robust", "d/x.pal", "--dot", "out"],
        &["robust", "d/x.pal", "--witness", "out"],
        &["robust", "d/x.pal", "--html", "out"],
        &["replay", "w.json", "--html", "out"],
        &["monitor", "run.trace", "--sarif", "out"],
        &["translate", "d/x.pal", "--rounds", "1", "--to", "c", "-o", "out"],
    ] {
        fs::write(scratch.path("out"), "old").expect("a file can be written");
        let ran = limited(&scratch, "0", args);
        assert_eq!(ran.code, Some(2), "{args:?}\n{}\n{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains("error[unwritable-file]: out: cannot be written"),
            "{args:?} {}",
            ran.stderr
        );
        assert_eq!(scratch.read("out"), "old", "{args:?}");
        // Without the limit, the file exists and is complete.
        limited(&scratch, "unlimited", args);
        assert_ne!(scratch.read("out"), "old", "{args:?}");
    }
    assert_eq!(names(&scratch), ["d", "out", "run.trace", "w.json"]);
    let ran = limited(&scratch, "0", &["man", "--folder", "pages"]).exits(2);
    assert!(ran.stderr.contains("error[unwritable-file]"), "{}", ran.stderr);
}

#[test]
fn standard_output_beyond_a_size_limit_is_an_error() {
    let scratch = Scratch::new("written_stdout").file("x.pal", STORE_BUFFERING);
    let mut command = Command::new("sh");
    let script = "ulimit -f 0; exec \"$0\" check x.pal > out";
    command.current_dir(scratch.path(".")).args(["-c", script, env!("CARGO_BIN_EXE_palisade")]);
    let ran = Ran::new(command.output().expect("there is a shell")).exits(2);
    assert!(ran.stderr.contains("error[unwritable-file]: standard output"), "{}", ran.stderr);
}

#[test]
fn modes_and_links_are_kept() {
    let scratch = Scratch::new("written_modes").file("real.pal", STORE_BUFFERING);
    fs::set_permissions(scratch.path("real.pal"), fs::Permissions::from_mode(0o640)).expect("our own file");
    symlink("real.pal", scratch.path("x.pal")).expect("a link");
    scratch.run(&["fences", "-q", "x.pal", "--write", "x.pal"]).exits(0);
    assert!(fs::symlink_metadata(scratch.path("x.pal")).expect("there").is_symlink());
    assert!(scratch.read("real.pal").contains("fence;"));
    assert_eq!(fs::metadata(scratch.path("real.pal")).expect("there").mode() & 0o7777, 0o640);
}

#[test]
fn pipes_and_standard_output_are_written() {
    let scratch = Scratch::new("written_streams").file("x.pal", STORE_BUFFERING);
    let ran = scratch.run(&["check", "-q", "x.pal", "--witness", "/dev/stdout"]).exits(1);
    let (first, witness) = ran.stdout.split_once('\n').expect("two parts");
    assert!(first.starts_with("unsafe"), "{first}");
    serde_json::from_str::<serde_json::Value>(witness).expect("the witness is JSON");
    scratch.run(&["check", "-q", "x.pal", "--witness", "/dev/null", "--html", "/dev/null"]).exits(1);
    // The same if standard output is a file: the written file follows the printed text.
    let script = "exec \"$0\" check -q x.pal --witness /dev/stdout > out";
    let mut command = Command::new("sh");
    command.current_dir(scratch.path(".")).args(["-c", script, env!("CARGO_BIN_EXE_palisade")]);
    Ran::new(command.output().expect("there is a shell")).exits(1);
    assert_eq!(scratch.read("out"), ran.stdout);
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let scratch = Scratch::new("written_input")
        .file("d/x.pal", STORE_BUFFERING)
        .file("expected.tsv", "x.pal\tunsafe\n")
        .file("run.trace", "p store x a.c:1\np load y a.c:1\nq store y a.c:1\nq load x a.c:1\nend\n")
        .file("a.c", "int main;\n");
    scratch.run(&["check", "-q", "d/x.pal", "--witness", "w.json"]).exits(1);
    fs::hard_link(scratch.path("d/x.pal"), scratch.path("hard")).expect("a hard link");
    symlink("d/x.pal", scratch.path("soft")).expect("a link");
    let read = ["d/x.pal", "expected.tsv", "run.trace", "w.json"];
    let before = read.map(|name| scratch.read(name));
    for args in [
        &["check", "d/x.pal", "--witness", "d/x.pal"][..],
        &["check", "d/x.pal", "--witness", "./d/../d/x.pal"],
        &["check", "d/x.pal", "--certificate", "hard"],
        &["check", "d/x.pal", "--html", "soft"],
        &["check", "d", "--tsv", "d/x.pal"],
        &["check", "d", "--sarif", "hard"],
        &["check", "d", "--expect", "expected.tsv", "--junit", "expected.tsv"],
        &["fences", "d/x.pal", "--html", "d/x.pal"],
        &["robust", "d/x.pal", "--dot", "soft"],
        &["replay", "w.json", "--html", "w.json"],
        &["replay", "w.json", "--html", "d/x.pal"],
        &["monitor", "run.trace", "--sarif", "run.trace"],
        &["translate", "d/x.pal", "--as-is", "--to", "c", "-o", "hard"],
    ] {
        let ran = scratch.run(args).exits(2);
        assert!(ran.stderr.contains("error[output-is-input]"), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
        assert_eq!(read.map(|name| scratch.read(name)), before, "{args:?}");
    }
    // Standard input may be a file, and source lines are read in order to quote them.
    let mut command = scratch.command(&["check", "-", "--input", "pal", "--html", "d/x.pal"]);
    let input = fs::File::open(scratch.path("d/x.pal")).expect("the file exists");
    let ran = Ran::new(command.stdin(input).output().expect("the command starts")).exits(2);
    assert!(ran.stderr.contains("error[output-is-input]"), "{}", ran.stderr);
    let ran = scratch.run(&["monitor", "-q", "run.trace", "--sarif", "a.c"]).exits(2);
    assert!(ran.stderr.contains("error[output-is-input]"), "{}", ran.stderr);
    assert_eq!((scratch.read("d/x.pal"), scratch.read("a.c").as_str()), (before[0].clone(), "int main;\n"));
}

#[test]
fn two_outputs_to_one_file_are_refused() {
    let scratch = Scratch::new("written_twice").file("x.pal", STORE_BUFFERING).file("there", "old");
    fs::hard_link(scratch.path("there"), scratch.path("hard")).expect("a hard link");
    symlink("none", scratch.path("dangling")).expect("a link");
    for [first, second] in
        [["none", "none"], ["none", "./none"], ["none", "dangling"], ["there", "hard"], ["there", "there"]]
    {
        for args in [
            ["check", "x.pal", "--witness", first, "--html", second],
            ["check", "x.pal", "--junit", first, "--sarif", second],
            ["fences", "x.pal", "--write", first, "--html", second],
            ["robust", "x.pal", "--dot", first, "--witness", second],
        ] {
            let ran = scratch.run(&args).exits(2);
            assert!(ran.stderr.contains("error[same-output]"), "{args:?}: {}", ran.stderr);
        }
    }
    assert_eq!(names(&scratch), ["dangling", "hard", "there", "x.pal"]);
    assert_eq!(scratch.read("there"), "old");
}
