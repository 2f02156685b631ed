//! Requests to end that reach `palisade cc`, `doctor` and `cargo`: no process and no temporary file is left.

use super::programs::{ENDLESS, compiled};
use crate::common::{Ran, Scratch, catches, signal};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A folder with empty temporary files, and a script that notes the number of its process, or of one that it starts, in
/// the file `$NOTE`.
fn with_script(scratch: Scratch, name: &str, script: &str) -> Scratch {
    let scratch = scratch.file(name, format!("#!/bin/sh\n{script}\n"));
    std::fs::create_dir_all(scratch.path("tmp")).expect("a folder can be made");
    let executable = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(scratch.path(name), executable).expect("a mode can be set");
    scratch
}

/// Starts the command, sends signals when the process of the script is ready, and returns what was printed. Nothing is
/// left after that.
fn stopped(
    scratch: &Scratch,
    command: &mut Command,
    is_ready: impl Fn(u32) -> bool,
    signals: &[&str],
) -> Ran {
    let _ = std::fs::remove_file(scratch.path("pid"));
    command
        .env("TMPDIR", scratch.path("tmp"))
        .env("NOTE", scratch.path("pid"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command can be started");
    let process = loop {
        let noted = std::fs::read_to_string(scratch.path("pid")).unwrap_or_default();
        match noted.strip_suffix('\n').and_then(|pid| pid.parse::<u32>().ok()) {
            Some(pid) if is_ready(pid) => break pid,
            _ => std::thread::yield_now(),
        }
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            let ran = Ran::new(child.wait_with_output().expect("its output can be read"));
            panic!("it ended by itself: {status}\n{}\n{}", ran.stdout, ran.stderr);
        }
    };
    signals.iter().for_each(|name| signal(&child, name));
    let ran = Ran::new(child.wait_with_output().expect("its output can be read"));
    assert!(!Path::new(&format!("/proc/{process}")).exists(), "process {process} still runs");
    let left: Vec<_> = std::fs::read_dir(scratch.path("tmp")).expect("it can be read").collect();
    assert!(left.is_empty(), "{left:?}");
    ran
}

/// A compiler that reports a version and then takes forever.
const COMPILER: &str =
    "case $1 in --version) exec gcc --version;; esac\necho $$ > \"$NOTE\"\nexec sleep 1000000";

#[test]
fn compilers_end_with_palisade() {
    let scratch = with_script(
        Scratch::new("signals_cc").file("t.c", "int main(void) { return 0; }\n"),
        "slow",
        COMPILER,
    );
    for (name, code) in [("-TERM", 143), ("-INT", 130)] {
        let compiler = format!("--compiler={}", scratch.path("slow").display());
        let mut command = scratch.command(&["cc", &compiler, "-o", "t", "t.c"]);
        command.env("PALISADE_CACHE", scratch.path("cache"));
        stopped(&scratch, &mut command, |_| true, &[name]).exits(code);
    }
}

/// A cargo that builds forever.
const BUILDS: &str = "echo $$ > \"$NOTE\"\nexec sleep 1000000";
/// A cargo that runs a program.
const RUNS: &str =
    "\"$PALISADE\" run --no-save --max-steps 1000000000000 --schedules 1 -- ./t &\necho $! > \"$NOTE\"\nwait";

fn path_with(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").expect("there are programs"));
    path
}

#[test]
fn cargo_ends_with_palisade() {
    let scratch = with_script(Scratch::new("signals_cargo"), "bin/cargo", BUILDS);
    for name in ["-TERM", "-INT"] {
        let mut command = scratch.command(&["cargo", "build"]);
        command.env("PATH", path_with(&scratch.path("bin")));
        let ran = stopped(&scratch, &mut command, |_| true, &[name]).exits(3);
        assert_eq!(ran.stdout, "unknown: stopped\n");
    }
}

#[test]
fn programs_that_cargo_runs_have_an_answer() {
    let endless = ENDLESS.replace("while (!never) {}", "for (;;) never++;");
    let scratch = with_script(compiled("signals_run", &endless), "bin/cargo", RUNS);
    let mut command = scratch.command(&["cargo", "run"]);
    command.env("PATH", path_with(&scratch.path("bin"))).env("PALISADE", env!("CARGO_BIN_EXE_palisade"));
    let ran = stopped(&scratch, &mut command, catches, &["-TERM"]).exits(3);
    assert!(ran.stdout.starts_with("unknown  ./t: "), "{}", ran.stdout);
}
