//! No process of a group outlives it, and none waits for another one without a reason: while the group comes together, while
//! each process works on its own, and with `palisade cluster --start`.

use crate::common;

use common::groups::{children, hosts, is_alive, pair, send, start_group};
use common::{ENDLESS, FENCED, Ran, STORE_BUFFERING, Scratch, interrupt, signal, start};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// Far too many states, with a property that each process decides on its own.
const LIVE: &str = "\
shared x[8]: 0..99;
process P(i: 0..7) { loop { x[i] = (x[(i + 1) % 8] + x[i] + 1) % 100; } }
live x[0] == 98;
";

fn wait_until_gone(processes: &[u32]) {
    while processes.iter().any(|&process| is_alive(process)) {
        std::thread::yield_now();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn process_0_notices_a_loss_while_it_works_alone() {
    let scratch = Scratch::new("group_live_killed").file("live.pal", LIVE);
    let (child, others) = start_group(&scratch, &["check", "live.pal", "--model", "sc"], 3, &[]);
    send(others[1], "-KILL");
    let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
    assert!(ran.stdout.starts_with("unknown  live.pal: process "), "{}", ran.stdout);
    assert!(ran.stdout.contains(" was lost: it has ended"), "{}", ran.stdout);
    wait_until_gone(&others);
}

#[test]
#[cfg(target_os = "linux")]
fn control_c_in_a_process_that_works_alone_stops_all() {
    let scratch = Scratch::new("group_live_interrupted").file("live.pal", LIVE);
    let (child, others) = start_group(&scratch, &["check", "live.pal", "--model", "sc"], 2, &[]);
    send(others[0], "-INT");
    let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
    let says =
        ["process 1 was stopped by its user", "stopped"].map(|why| format!("unknown  live.pal: {why}\n"));
    // If it has not begun to work alone, all of them hear that it was stopped.
    assert!(says.iter().any(|says| ran.stdout.starts_with(says)), "{}", ran.stdout);
    wait_until_gone(&others);
}

#[test]
#[cfg(target_os = "linux")]
fn nobody_is_left_if_process_0_dies_at_the_start() {
    let scratch = Scratch::new("group_early_death").file("endless.pal", ENDLESS);
    let args = ["check", "endless.pal", "--model", "sc", "--processes", "3"];
    let mut command = scratch.command(&args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be started");
    let others = loop {
        let others = children(child.id());
        if others.len() == 2 {
            break others;
        }
        std::thread::yield_now();
    };
    signal(&child, "-KILL");
    child.wait().expect("it was killed");
    // Waiting for a process that does not come would take 20 s.
    let since = std::time::Instant::now();
    wait_until_gone(&others);
    assert!(since.elapsed().as_secs() < 15, "they notice at once");
}

/// A command in one of the processes of the file `hosts`, once it handles signals.
#[cfg(target_os = "linux")]
fn process(scratch: &Scratch, args: &[&str], index: &str) -> Child {
    start(&mut scratch.command(&[args, &["--hosts", "hosts", "--process", index]].concat()))
}

#[test]
#[cfg(target_os = "linux")]
fn control_c_ends_the_waiting_for_others() {
    let scratch = Scratch::new("group_waiting").file("a.pal", FENCED).file("hosts", hosts(2));
    for index in ["0", "1"] {
        let child = process(&scratch, &["check", "a.pal"], index);
        interrupt(&child);
        let ran = Ran::new(child.wait_with_output().expect("it ends")).exits(3);
        assert_eq!(ran.stderr, "stopped before the processes were connected\n");
    }
}

/// A connection to one of the processes of a hosts file, as soon as it listens.
fn call(addresses: &str, process: usize) -> TcpStream {
    let address = addresses.lines().nth(process).expect("it is in the list");
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) => std::thread::yield_now(),
        }
    }
}

/// Starts a command in one of the processes of the file `hosts`.
fn begin(scratch: &Scratch, args: &[&str], index: &str) -> Child {
    let mut command = scratch.command(&[args, &["--hosts", "hosts", "--process", index]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started")
}

#[test]
fn a_process_that_fails_before_it_joins_says_why() {
    let addresses = hosts(2);
    let scratch = Scratch::new("group_absent").file("a.pal", FENCED).file("hosts", &addresses);
    let check = |wrong: &[&str], of: usize, why: &str| {
        let waits = begin(&scratch, &["check", "a.pal"], &(1 - of).to_string());
        // From now on, it can be informed.
        drop(call(&addresses, 1 - of));
        let fails = begin(&scratch, wrong, &of.to_string());
        Ran::new(fails.wait_with_output().expect("it ends")).exits(2);
        let ran = Ran::new(waits.wait_with_output().expect("it ends")).exits(2);
        let says =
            format!("error[process-refused]: the other processes: process {of} cannot take part: {why}");
        assert!(ran.stderr.contains(&says), "{says}: {}", ran.stderr);
    };
    check(&["check", "a.pal", "--wrong"], 1, "unexpected argument '--wrong' found");
    check(&["check", "a.pal", "--model", "best"], 0, "invalid value 'best' for '--model <MODEL>'");
    check(&["check", "missing.pal"], 1, "missing.pal: there is no such file or folder");
    check(&["check", "a.pal", "--engine", "dual"], 0, "--engine: only explicit search is shared");
    check(&["monitor", "-"], 1, "-: standard input cannot be read by several processes");
    check(&["run"], 1, "the following required arguments were not provided");
}

#[test]
fn strangers_are_named_on_request() {
    let addresses = hosts(2);
    let scratch = Scratch::new("group_noise").file("a.pal", FENCED).file("hosts", &addresses);
    let first = begin(&scratch, &["check", "a.pal", "-v"], "0");
    let mut stranger = call(&addresses, 0);
    stranger.write_all(b"GET / HTTP/1.1\n").expect("it reads");
    // The connection is closed once it was noticed that this is not Palisade.
    while stranger.read(&mut [0]).is_ok_and(|count| count > 0) {}
    let second = begin(&scratch, &["check", "a.pal", "-q"], "1");
    let first = Ran::new(first.wait_with_output().expect("it ends")).exits(0);
    let says = "ignored while waiting for the other processes: 127.0.0.1:";
    assert!(first.stderr.contains(says) && first.stderr.contains(" is not Palisade\n"), "{}", first.stderr);
    Ran::new(second.wait_with_output().expect("it ends")).exits(0).complains("");
}

#[test]
fn a_slow_stranger_keeps_nobody_waiting() {
    let addresses = hosts(2);
    let scratch = Scratch::new("group_stranger").file("a.pal", FENCED).file("hosts", &addresses);
    let command = |index: &str| begin(&scratch, &["check", "a.pal", "-q"], index);
    let first = command("0");
    let mut stranger = call(&addresses, 0);
    stranger.write_all(b"pali").expect("it reads");
    let second = command("1");
    let first = Ran::new(first.wait_with_output().expect("it ends")).exits(0);
    assert_eq!(first.stdout, "safe  a.pal\n");
    Ran::new(second.wait_with_output().expect("it ends")).exits(0);
}

#[test]
#[cfg(target_os = "linux")]
fn the_others_say_why_there_is_no_answer() {
    let scratch = Scratch::new("group_no_answer").file("endless.pal", ENDLESS).file("hosts", hosts(2));
    let check = |stop: &str, says: &str| {
        let args = ["check", "endless.pal", "--model", "sc"];
        let (mut first, second) = (process(&scratch, &args, "0"), process(&scratch, &args, "1"));
        for child in [&first, &second] {
            while !common::groups::is_connected(child.id()) {
                std::thread::yield_now();
            }
        }
        signal(&first, stop);
        first.wait().expect("it ends");
        let second = Ran::new(second.wait_with_output().expect("it ends")).exits(3);
        assert_eq!(second.stdout, "", "{says}");
        assert_eq!(second.stderr, format!("the shared work was not completed: {says}\n"));
    };
    check("-KILL", "process 0 was lost: it has ended");
    check("-INT", "stopped");
}

#[test]
fn the_others_say_that_memory_ran_out() {
    let scratch = Scratch::new("group_memory_hosts").file("endless.pal", ENDLESS).file("hosts", hosts(2));
    let args = ["check", "endless.pal", "--model", "sc", "-q", "--memory", "0.03"];
    let (first, second) = pair(&scratch, &args, &args);
    first.exits(3).prints("unknown  endless.pal: out of memory (0.03 GiB)\n");
    let says = "the shared work was not completed: process 0 has no complete answer\n";
    second.exits(3).prints("").complains(says);
}

#[test]
fn the_others_wait_for_the_answer() {
    // Finding a shortest run, and `unsafe`, are up to process 0.
    let scratch = Scratch::new("group_shortest").file("a.pal", STORE_BUFFERING).file("hosts", hosts(2));
    let args = ["check", "a.pal", "--shortest"];
    let (first, second) = pair(&scratch, &args, &args);
    first.exits(1);
    second.exits(0).prints("").complains("");
}

#[test]
#[cfg(target_os = "linux")]
fn a_cluster_ends_with_its_command() {
    for stop in ["-TERM", "-INT", "-KILL"] {
        let scratch = Scratch::new("group_cluster_ends").file("endless.pal", ENDLESS).file("hosts", hosts(3));
        let args = ["cluster", "hosts", "--start", "check", "endless.pal", "--model", "sc", "-q"];
        let mut cluster = start(&mut scratch.command(&args));
        let started = loop {
            let started = children(cluster.id());
            if started.len() == 3 && started.iter().all(|&process| common::groups::is_connected(process)) {
                break started;
            }
            std::thread::yield_now();
        };
        signal(&cluster, stop);
        let status = cluster.wait().expect("it ends");
        assert_eq!(status.code(), if stop == "-KILL" { None } else { Some(3) });
        wait_until_gone(&started);
    }
}

#[test]
fn a_cluster_ends_if_a_process_cannot_be_started() {
    let addresses = hosts(1) + "192.0.2.1:2101\n";
    let scratch = Scratch::new("group_cluster_refused").file("a.pal", FENCED).file("hosts", addresses);
    let ran = scratch.run(&["cluster", "hosts", "--ssh", "false", "--start", "check", "a.pal"]).exits(2);
    assert!(ran.stderr.contains("process 1 ended with exit code 1\n"), "{}", ran.stderr);
}

#[test]
fn an_invitation_that_is_left_over_is_ignored() {
    let scratch = Scratch::new("group_left_over").file("a.pal", FENCED);
    let mut command = scratch.command(&["check", "a.pal", "-q", "--processes", "2"]);
    command.env("PALISADE_GROUP", "1 00ff 1 127.0.0.1:1 127.0.0.1:2").stdin(Stdio::null());
    Ran::new(command.output().expect("it can be started")).exits(0).prints("safe  a.pal\n");
}

#[test]
fn too_few_open_files_are_refused() {
    let scratch = Scratch::new("group_few_files").file("a.pal", FENCED);
    let mut command = std::process::Command::new("sh");
    let line = r#"ulimit -n 16 && exec "$1" check a.pal --processes 5"#;
    command.args(["-c", line, "sh", env!("CARGO_BIN_EXE_palisade")]).current_dir(scratch.folder());
    let ran = Ran::new(command.output().expect("there is a shell")).exits(2);
    assert!(
        ran.stderr.contains("5 processes need 52 open files each, and the limit is 16"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("ulimit -n 52"), "{}", ran.stderr);
}
