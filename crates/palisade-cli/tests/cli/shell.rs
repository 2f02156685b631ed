//! Completions and manual pages contain every command and option. Also: what happens when standard output
//! cannot be written.

use crate::common;

use common::{FENCED, STORE_BUFFERING, Scratch};
use std::fs::OpenOptions;
use std::process::Stdio;

/// The commands that the help lists.
fn commands(scratch: &Scratch) -> Vec<String> {
    let help = scratch.run(&["--help"]).exits(0).stdout;
    let listed = help.split("Commands:\n").nth(1).expect("there are commands").lines();
    let names = listed.take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().expect("a name").to_owned()).collect()
}

#[test]
fn completions_know_every_command() {
    let scratch = Scratch::new("completions");
    let commands = commands(&scratch);
    assert!(commands.iter().any(|command| command == "check"), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = scratch.run(&["completions", shell]).exits(0).stdout;
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell} does not know {command}");
        }
        assert!(script.contains("max-buffer"), "{shell} does not know the options of check");
    }
    scratch.run(&["completions", "tcsh"]).exits(2);
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new("man");
    let page = scratch.run(&["man"]).exits(0).stdout;
    assert!(page.contains(".SH SYNOPSIS") && page.contains("palisade"), "{page}");
    scratch.run(&["man", "--folder", "deep/man1"]).exits(0);
    for command in commands(&scratch).iter().filter(|command| *command != "help") {
        let page = std::fs::read_to_string(scratch.path(&format!("deep/man1/palisade-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(page.contains(".SH NAME"), "{page}");
    }
    let check = std::fs::read_to_string(scratch.path("deep/man1/palisade-check.1")).expect("it is written");
    assert!(check.contains("max\\-buffer"), "{check}");
    assert!(
        check.contains("\npalisade check [OPTIONS] <FILE|DIR>... [\\-\\- <COMPILER ARGUMENT>...]\n"),
        "{check}"
    );
}

#[test]
fn manual_pages_can_be_read() {
    let scratch = Scratch::new("man_pages");
    scratch.run(&["man", "--folder", "man1"]).exits(0);
    let pages: Vec<String> = std::fs::read_dir(scratch.path("man1"))
        .expect("the folder exists")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    let mut references = 0;
    for page in &pages {
        let text = scratch.read(&format!("man1/{page}"));
        // Every page that is referred to exists.
        for line in text.lines().filter(|line| line.starts_with("palisade") && line.ends_with("(1)")) {
            let name = line.trim_end_matches("(1)").replace('\\', "");
            assert!(pages.contains(&format!("{name}.1")), "{page} refers to {name}");
            references += 1;
        }
        assert!(!text.contains(".SH EXTRA"), "{page}");
        for section in text.split(".TP\n").skip(1) {
            let mut lines = section.lines();
            let (option, help) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
            assert!(!help.is_empty() && !help.starts_with('.'), "{page}: {option} is not described");
        }
    }
    assert!(references > 15, "{references}");
    let check = scratch.read("man1/palisade-check.1");
    let examples = check.split(".SH \"EXAMPLES\"\n.nf\n").nth(1).expect("there are examples");
    assert!(examples.starts_with("  palisade check peterson.pal "), "{examples}");
    assert!(check.contains(".fi\n.SH \"EXIT STATUS\"\n.nf\nExit codes: 0 safe"), "{check}");
    let memory = check.split("\\-\\-memory").nth(1).expect("it has a paragraph");
    assert!(
        memory.lines().nth(1).is_some_and(|help| help.contains("Memory the process may use")),
        "{memory}"
    );
}

/// Commands that print something.
const PRINTING: [&[&str]; 15] = [
    &["--help"],
    &["--version"],
    &["help", "check"],
    &["check", "sb.pal"],
    &["check", "sb.pal", "--format", "json"],
    &["check", "sb.pal", "fenced.pal"],
    &["robust", "sb.pal"],
    &["fences", "sb.pal"],
    &["replay", "run.json"],
    &["certify", "proof.json"],
    &["monitor", "run.trace"],
    &["show", "sb.pal", "--as", "pal"],
    &["fmt", "--check", "sb.pal"],
    &["man"],
    &["completions", "bash"],
];

fn printing(name: &str) -> Scratch {
    let scratch = Scratch::new(name)
        .file("sb.pal", STORE_BUFFERING)
        .file("fenced.pal", FENCED)
        .file("run.trace", "p store x a.c:1\nend\n");
    scratch.run(&["check", "sb.pal", "--witness", "run.json", "-q"]).exits(1);
    scratch.run(&["check", "fenced.pal", "--certificate", "proof.json", "-q"]).exits(0);
    scratch
}

#[test]
#[cfg(target_os = "linux")]
fn an_answer_that_cannot_be_written_is_an_error() {
    let scratch = printing("full");
    for args in PRINTING {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("there is such a device");
        let output = scratch.command(args).stdout(full).output().expect("the command starts");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
        let once = complaint.matches("error[unwritable-file]: standard output: cannot be written").count();
        assert_eq!(once, 1, "{args:?}: {complaint}");
    }
}

#[test]
fn a_closed_output_does_not_change_the_exit_code() {
    let scratch = printing("closed");
    for args in PRINTING {
        let expected = scratch.command(args).output().expect("the command starts");
        let mut child =
            scratch.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), expected.status.code(), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}
