//! Compilers and programs.

use palisade_x86::{Contents, File};
use std::path::Path;
use std::process::Command;

/// Runs a command, and returns what it prints. Fails if it does.
#[track_caller]
pub fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error} (gcc, clang and binutils are needed; `./test` installs them)")
    });
    assert!(output.status.success(), "{command:?} fails: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Lifts an object file, with the names of its functions changed by a prefix, to a file for clang.
#[track_caller]
pub fn lift_to(object: &Path, to: &Path, prefix: &str) {
    let bytes = std::fs::read(object).expect("the object file was written");
    let file = File { name: "test.o", contents: Contents::Object(&bytes) };
    let lifted = palisade_x86::lift(&[file]).unwrap_or_else(|(_, error)| panic!("{error:?}"));
    let mut text = String::new();
    for line in lifted[0].module.lines() {
        // Clang knows no such machine, and the debug information is not its own.
        if line.starts_with("target triple") || line.starts_with('!') {
            continue;
        }
        let line = line.split(", !dbg ").next().unwrap_or_default();
        let line = match line.find(" !dbg ") {
            Some(at) => format!("{} {{", &line[..at]),
            None => line.to_owned(),
        };
        if line.contains("@\"palisade.assume ") {
            continue;
        }
        // What is not followed ends the program in a way that can be seen.
        let line = match line.find("@\"palisade.refuse ") {
            Some(_) if line.starts_with("declare") => continue,
            Some(at) => format!("{}@palisade_refused()", &line[..at]),
            None if line.starts_with("declare") && line.contains("palisade.not_followed") => continue,
            None => line.replace("@palisade.not_followed", "@palisade_refused"),
        };
        text.push_str(&line.replace("@\"case", &format!("@\"{prefix}case")));
        text.push('\n');
    }
    text.push_str("declare void @palisade_refused()\n");
    std::fs::write(to, text).expect("the module can be written");
}

/// What lifted code needs besides: choices, and what ends a program that is not followed.
pub const SUPPORT: &str = "#include <stdlib.h>\nvoid palisade_refused(void) { _Exit(77); }\n\
    int __VERIFIER_nondet_bool(void) { static int n; return n++ & 1; }\n";

/// A clang that knows pointers without a type.
pub fn clang() -> Command {
    let names = ["clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang"];
    let works = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let name = names.into_iter().find(|name| works(name)).expect("clang is needed (`./test` installs it)");
    let mut command = Command::new(name);
    if name == "clang" {
        let version = String::from_utf8_lossy(&run(Command::new(name).arg("--version"))).into_owned();
        if version.contains("version 14.") {
            command.args(["-mllvm", "-opaque-pointers"]);
        }
    }
    command.arg("-Wno-override-module");
    command
}
