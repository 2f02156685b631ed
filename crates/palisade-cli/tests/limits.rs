//! Running out of time or memory, and Ctrl-C, are answers: `unknown`, with the reason, promptly, exit code 3.

mod common;

use common::{ENDLESS, FENCED, Ran, Scratch, interrupt};
use snapbox::str;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

#[test]
fn out_of_time() {
    Scratch::new("limits_time")
        .file("endless.pal", ENDLESS)
        .run(&["check", "-q", "endless.pal", "--model", "sc", "--timeout", "0.3"])
        .exits(3)
        .prints(str![[r#"
unknown  endless.pal: out of time (0.3 s)

"#]])
        .complains("");
}

#[test]
fn out_of_memory() {
    Scratch::new("limits_memory")
        .file("endless.pal", ENDLESS)
        .run(&["check", "endless.pal", "--model", "sc", "--memory", "0.02"])
        .exits(3)
        .prints(str![[r#"
unknown  endless.pal: out of memory (0.02 GiB)
SC, engine explicit, [..] states, [..] s

"#]])
        .complains("");
}

#[test]
#[cfg(target_os = "linux")]
fn interrupted() {
    let scratch = Scratch::new("limits_interrupted").file("d/endless.pal", ENDLESS);
    let child = start(scratch.command(&["check", "d/endless.pal", "--model", "sc"]));
    interrupt(&child);
    let ran = Ran::new(child.wait_with_output().expect("the child ends")).exits(3);
    assert!(
        ran.stdout.starts_with("unknown  d/endless.pal: stopped\nSC, engine explicit,"),
        "{}",
        ran.stdout
    );
}

#[test]
#[cfg(target_os = "linux")]
fn interrupted_among_many_files() {
    let scratch =
        Scratch::new("limits_many").file("d/a.pal", FENCED).file("d/b.pal", ENDLESS).file("d/c.pal", FENCED);
    let mut child = start(scratch.command(&["check", "d", "--model", "sc", "--jobs", "1"]));
    // The line of the first file comes while the second one is looked at.
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut stdout = String::new();
    reader.read_line(&mut stdout).expect("the child prints text");
    interrupt(&child);
    reader.read_to_string(&mut stdout).expect("the child prints text");
    let ran = Ran { stdout, ..Ran::new(child.wait_with_output().expect("the child ends")) }.exits(3);
    assert!(ran.stdout.starts_with("safe  d/a.pal\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("stopped before "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("d/c.pal"), "{}", ran.stdout);
}

/// Starts the command and waits until it listens to Ctrl-C.
#[cfg(target_os = "linux")]
fn start(mut command: Command) -> Child {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started");
    while !listens(&mut child) {
        std::thread::yield_now();
    }
    child
}

/// Whether the process catches SIGINT (signal 2, the second bit of the mask that the kernel tells).
#[cfg(target_os = "linux")]
fn listens(child: &mut Child) -> bool {
    if let Ok(Some(status)) = child.try_wait() {
        panic!("the command ended by itself: {status}");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
}
