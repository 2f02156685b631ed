//! Running out of time or memory, and Ctrl-C, are answers: `unknown`, with the reason, promptly, exit code 3.

use crate::common;

use common::{ENDLESS, FENCED, Ran, Scratch, interrupt, signal, start};
use snapbox::str;
use std::io::{BufRead, BufReader, Read};

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
    let child = start(&mut scratch.command(&["check", "d/endless.pal", "--model", "sc"]));
    interrupt(&child);
    let ran = Ran::new(child.wait_with_output().expect("the child ends")).exits(3);
    // How far the engine got by then depends on the machine.
    assert!(ran.stdout.starts_with("unknown  d/endless.pal: stopped\n"), "{}", ran.stdout);
}

#[test]
#[cfg(target_os = "linux")]
fn sigterm_and_sighup_stop_like_control_c() {
    let scratch = Scratch::new("limits_signals").file("endless.pal", ENDLESS);
    // Under `nohup`, SIGHUP is ignored from the start, and stays so.
    let names = if ignores_sighup("self") { &["-TERM"][..] } else { &["-TERM", "-HUP"] };
    for name in names {
        let child = start(&mut scratch.command(&["check", "endless.pal", "--model", "sc"]));
        signal(&child, name);
        let ran = Ran::new(child.wait_with_output().expect("the child ends")).exits(3);
        // How far the engine got by then depends on the machine.
        let expected = "unknown  endless.pal: stopped\n";
        assert!(ran.stdout.starts_with(expected), "{name}: {}", ran.stdout);
    }
    let mut command = scratch.command(&["monitor", "-q", "-"]);
    let mut child = start(command.stdin(std::process::Stdio::piped()));
    let stdin = child.stdin.take().expect("a pipe");
    signal(&child, "-TERM");
    let ran = Ran::new(child.wait_with_output().expect("it ends")).exits(3);
    assert!(ran.stdout.starts_with("unknown  -: no violation in 0 events read"), "{}", ran.stdout);
    drop(stdin);
}

/// Whether a process ignores SIGHUP (signal 1, the first bit of the mask that the kernel shows).
#[cfg(target_os = "linux")]
fn ignores_sighup(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask of signals");
    u64::from_str_radix(ignored.trim(), 16).expect("a hexadecimal number") & 1 == 1
}

/// `nohup` makes programs ignore SIGHUP, and they continue.
#[test]
#[cfg(target_os = "linux")]
fn sighup_that_was_ignored_stays_ignored() {
    let scratch = Scratch::new("limits_nohup").file("endless.pal", ENDLESS);
    let mut command = std::process::Command::new("sh");
    let script = "trap '' HUP; exec \"$0\" check -q endless.pal --model sc";
    command.current_dir(scratch.path(".")).args(["-c", script, env!("CARGO_BIN_EXE_palisade")]);
    let child = start(&mut command);
    signal(&child, "-HUP");
    assert!(ignores_sighup(&child.id().to_string()));
    signal(&child, "-TERM");
    Ran::new(child.wait_with_output().expect("the child ends")).exits(3);
}

#[test]
#[cfg(target_os = "linux")]
fn interrupted_among_many_files() {
    let scratch =
        Scratch::new("limits_many").file("d/a.pal", FENCED).file("d/b.pal", ENDLESS).file("d/c.pal", FENCED);
    let mut child = start(&mut scratch.command(&["check", "d", "--model", "sc", "--jobs", "1"]));
    // The line of the first file is printed while the second file is being checked.
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

/// Reported: the command waited for a pipe without a reader, whatever the time limit.
#[test]
#[cfg(target_os = "linux")]
fn an_output_pipe_without_a_reader() {
    let scratch = Scratch::new("limits_output_pipe");
    std::fs::write(scratch.path("x.pal"), "shared a: 0..1; process P { a = 1; } forbid a == 1;")
        .expect("written");
    let made = std::process::Command::new("mkfifo").arg(scratch.path("pipe")).status();
    assert!(made.expect("`mkfifo` can be run").success());
    for output in ["--junit", "--sarif", "--html", "--witness"] {
        let ran = scratch.run(&["check", "x.pal", output, "pipe", "--timeout", "5"]).exits(2);
        assert!(ran.stderr.contains("no process reads this pipe"), "{output}: {}", ran.stderr);
    }
}

/// A pipe without a writer, and standard input that is never closed: the command waits no longer than the
/// time limit.
#[test]
#[cfg(target_os = "linux")]
fn waiting_for_a_program() {
    let scratch = Scratch::new("limits_pipe");
    let made = std::process::Command::new("mkfifo").arg(scratch.path("pipe.pal")).status();
    assert!(made.expect("`mkfifo` can be run").success());
    scratch.run(&["check", "pipe.pal", "--timeout", "0.2"]).exits(2).complains(str![[r#"
error[no-input]: pipe.pal: reading was stopped before the end of the input


"#]]);
    let mut command = scratch.command(&["check", "-", "--input", "pal"]);
    let mut child = start(command.stdin(std::process::Stdio::piped()));
    let stdin = child.stdin.take().expect("a pipe");
    interrupt(&child);
    let ran = Ran::new(child.wait_with_output().expect("it ends")).exits(2);
    assert!(ran.stderr.contains("error[no-input]"), "{}", ran.stderr);
    drop(stdin);
}
