//! Processes that were asked different things share nothing: no answer is about another question than the one that
//! process 0 was asked.

use crate::common;

use common::groups::{hosts, pair};
use common::{FENCED, STORE_BUFFERING, Scratch};

const ARGUMENTS: &str = "process 1 was lost: it was asked something else, with other arguments;";
const FILES: &str = "process 1 was lost: it was asked something else, about other files;";

/// A folder with programs that are safe under SC only.
fn folder(name: &str) -> Scratch {
    let scratch = Scratch::new(name).file("hosts", hosts(2));
    (0..4).fold(scratch, |scratch, file| scratch.file(&format!("d/{file}.pal"), STORE_BUFFERING))
}

#[test]
fn a_folder_under_two_models_has_no_verdicts() {
    let scratch = folder("group_two_models");
    let (first, second) = pair(&scratch, &["check", "d", "--model", "sc"], &["check", "d", "--model", "tso"]);
    let first = first.exits(3);
    assert!(!first.stdout.contains("safe  d/"), "{}", first.stdout);
    assert!(first.stderr.contains(ARGUMENTS), "{}", first.stderr);
    let says = "the shared work was not completed: process 0 was lost: it was asked something else, with other arguments;";
    assert!(second.exits(3).stderr.starts_with(says));
}

#[test]
fn options_that_one_process_does_not_have() {
    let check = |option: &[&str]| {
        let scratch = Scratch::new("group_options").file("a.pal", FENCED).file("hosts", hosts(2));
        let other = [&["check", "a.pal"], option].concat();
        for (first, second) in
            [(["check", "a.pal"].as_slice(), other.as_slice()), (&other, &["check", "a.pal"])]
        {
            let (first, _) = pair(&scratch, first, second);
            assert!(first.stdout.contains(ARGUMENTS), "{option:?}: {}{}", first.stdout, first.stderr);
            first.exits(3);
        }
    };
    check(&["--deadlock"]);
    check(&["--shortest"]);
    check(&["--coverage"]);
    check(&["--max-buffer", "3"]);
    check(&["--threads", "2"]);
}

#[test]
fn options_that_may_differ() {
    let scratch = Scratch::new("group_free_options").file("a.pal", FENCED).file("hosts", hosts(2));
    let first = ["check", "a.pal", "-q", "--memory", "1"];
    let second = ["check", "a.pal", "--format", "json", "--jobs", "1", "--html", "page.html"];
    let (first, second) = pair(&scratch, &first, &second);
    first.exits(0).prints("safe  a.pal\n");
    second.exits(0).prints("").complains("");
}

/// Two machines with the same folder, except for this file.
fn machines(name: &str, file: &str, here: &str, there: &str) -> (Scratch, Scratch) {
    let hosts = hosts(2);
    let machine = |name: &str, text: &str| Scratch::new(name).file("hosts", &hosts).file(file, text);
    (machine(name, here), machine(&format!("{name}_there"), there))
}

#[test]
fn files_that_differ_are_noticed() {
    let check = |file: &str, args: &[&str], more: &[(&str, &str)]| {
        let (mut here, mut there) = machines("group_files", file, FENCED, STORE_BUFFERING);
        for (name, text) in more {
            (here, there) = (here.file(name, text), there.file(name, text));
        }
        let (first, second) = common::groups::pair_of(&here, args, &there, args);
        assert!(format!("{}{}", first.stdout, first.stderr).contains(FILES), "{file}: {}", first.stderr);
        first.exits(3);
        second.exits(3);
    };
    check("d/a.pal", &["check", "d"], &[]);
    check("a.pal", &["check", "a.pal"], &[]);
    check(
        "d/parts/lock.pal",
        &["check", "d/a.pal", "d/b.pal"],
        &[("d/a.pal", "import \"parts/lock.pal\";\n"), ("d/b.pal", FENCED)],
    );
}

#[test]
fn files_with_other_names_are_noticed() {
    let hosts = hosts(2);
    let machine = |file: &str| {
        Scratch::new(&format!("group_names_{file}"))
            .file("hosts", &hosts)
            .file(&format!("d/{file}.pal"), FENCED)
    };
    let (here, there) = (machine("a").file("d/c.pal", FENCED), machine("b").file("d/c.pal", FENCED));
    let (first, _) = common::groups::pair_of(&here, &["check", "d"], &there, &["check", "d"]);
    assert!(first.stderr.contains(FILES), "{}", first.stderr);
    first.exits(3);
}

#[test]
fn traces_that_differ_are_noticed() {
    let clean = "p store x\np fence\nq load x\nend\n";
    let (here, there) = machines("group_traces", "a.trace", clean, "p store x\n");
    let (here, there) = (here.file("b.trace", clean), there.file("b.trace", clean));
    let args = ["monitor", "a.trace", "b.trace"];
    let (first, _) = common::groups::pair_of(&here, &args, &there, &args);
    assert!(first.stderr.contains(FILES), "{}", first.stderr);
    assert_eq!(first.exits(3).stdout, "");
}

#[test]
fn lines_of_a_folder_look_the_same_everywhere() {
    let scratch = folder("group_looks");
    let json = ["check", "d", "--format", "json"];
    let (first, _) = pair(&scratch, &json, &["check", "d"]);
    assert!(first.stderr.contains("process 1 was lost: it was asked something else;"), "{}", first.stderr);
    assert_eq!(first.exits(3).stdout, "");
}
