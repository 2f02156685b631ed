//! Completions and manual pages know every command and option that there is.

mod common;

use common::Scratch;

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
}
