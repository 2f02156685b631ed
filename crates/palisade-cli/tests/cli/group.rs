//! Several processes that share a check: the same answers as one, and what happens when one of them is lost.
//!
//! The processes are real ones, on the loopback interface. That counts are equal on many random programs is tested in
//! `palisade-explore`, and on the corpus in `palisade-corpus`.

use crate::common;

use common::groups::{hosts, is_alive, send};
use common::{ENDLESS, FENCED, Ran, STORE_BUFFERING, Scratch, interrupt, signal};
use serde_json::Value;
use snapbox::str;
use std::process::{Child, Command};

fn answer(ran: &Ran) -> Value {
    serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

/// What must not depend on the number of processes.
fn essence(answer: &Value) -> Value {
    let mut essence = answer.clone();
    for key in ["seconds", "peak_memory_bytes", "processes"] {
        essence[key].take();
    }
    essence["stats"]["table_bytes"].take();
    essence
}

#[test]
fn the_same_answer_from_any_number_of_processes() {
    let scratch = Scratch::new("group_same").file("sb.pal", STORE_BUFFERING).file("fenced.pal", FENCED);
    for (file, code) in [("sb.pal", 1), ("fenced.pal", 0)] {
        for model in ["sc", "pso"] {
            let run = |processes: &str| {
                let args = ["check", file, "--model", model, "--format", "json", "--processes", processes];
                scratch.run(&args).exits(if model == "sc" { 0 } else { code })
            };
            let one = answer(&run("1"));
            for processes in ["2", "4"] {
                let ran = run(processes);
                let several = answer(&ran);
                assert_eq!(essence(&several), essence(&one), "{file}, {model}, {processes} processes");
                let parts = several["processes"].as_array().expect("each process is listed");
                assert_eq!(parts.len().to_string(), processes);
                let states: u64 = parts.iter().filter_map(|part| part["states"].as_u64()).sum();
                assert_eq!(several["stats"]["states"].as_u64(), Some(states));
                assert_eq!(ran.stderr, "");
            }
        }
    }
}

#[test]
fn text_shows_each_process() {
    Scratch::new("group_text")
        .file("fenced.pal", FENCED)
        .run(&["check", "fenced.pal", "--processes", "2"])
        .exits(0)
        .complains("")
        .prints(str![[r#"
safe  fenced.pal
TSO, engine explicit, [..] states, [..] s
  process 0: [..] states ([..]/s), [..] MiB
  process 1: [..] states ([..]/s), [..] MiB

"#]]);
}

#[test]
fn a_folder_is_shared_out() {
    let mut scratch = Scratch::new("group_folder").file("d/bad.pal", "shared x");
    for index in 0..12 {
        let text = if index % 3 == 0 { STORE_BUFFERING } else { FENCED };
        scratch = scratch.file(&format!("d/{index}.pal"), text);
    }
    let lines = |ran: &Ran| {
        let lines = ran.stdout.lines().filter(|line| !line.contains(" files in "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let one = scratch.run(&["check", "d", "--html", "one.html", "--junit", "one.xml"]).exits(2);
    for processes in ["1", "2", "3"] {
        let args = ["check", "d", "--html", "many.html", "--junit", "many.xml", "--processes", processes];
        let several = scratch.run(&args).exits(2);
        assert_eq!(lines(&several), lines(&one), "{processes} processes");
        assert_eq!(several.stderr, one.stderr, "{processes} processes");
        let tests = |file: &str| scratch.read(file).matches("<testcase").count();
        assert_eq!(tests("many.xml"), tests("one.xml"));
        assert!(scratch.read("many.html").contains("d/11.pal"));
    }
}

/// A search that does not end by itself, and the processes other than the first, once all of them take part.
#[cfg(target_os = "linux")]
fn endless(scratch: &Scratch, processes: usize, more: &[&str]) -> (Child, Vec<u32>) {
    common::groups::start_group(scratch, &["check", "endless.pal", "--model", "sc"], processes, more)
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_process_ends_the_run() {
    let scratch = Scratch::new("group_killed").file("endless.pal", ENDLESS);
    let (child, others) = endless(&scratch, 3, &["--html", "answer.html", "--witness", "run.json"]);
    send(others[1], "-KILL");
    let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
    assert!(ran.stdout.starts_with("unknown  endless.pal: process "), "{}", ran.stdout);
    assert!(ran.stdout.contains(" was lost: it has ended\n"), "{}", ran.stdout);
    assert!(others.iter().all(|&other| !is_alive(other)), "no process is left");
    assert!(!scratch.path("run.json").exists(), "there is no run to keep");
    assert!(scratch.read("answer.html").trim_end().ends_with("</html>"), "files are whole");
}

#[test]
#[cfg(target_os = "linux")]
fn the_others_end_when_the_first_is_killed() {
    let scratch = Scratch::new("group_first_killed").file("endless.pal", ENDLESS);
    let (mut child, others) = endless(&scratch, 3, &[]);
    signal(&child, "-KILL");
    child.wait().expect("it was killed");
    while others.iter().any(|&other| is_alive(other)) {
        std::thread::yield_now();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn control_c_stops_everything() {
    let scratch = Scratch::new("group_interrupted").file("endless.pal", ENDLESS);
    for first in [true, false] {
        let (child, others) = endless(&scratch, 3, &[]);
        if first {
            interrupt(&child)
        } else {
            send(others[0], "-INT")
        }
        let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
        assert!(ran.stdout.starts_with("unknown  endless.pal: stopped\n"), "{}", ran.stdout);
        assert!(others.iter().all(|&other| !is_alive(other)), "no process is left");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_stands_still_for_a_while_is_waited_for() {
    let scratch = Scratch::new("group_slow").file("endless.pal", ENDLESS);
    let (child, others) = endless(&scratch, 2, &[]);
    let state = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, after)| after.split_whitespace().next().map(str::to_owned))
    };
    send(others[0], "-STOP");
    // The first one waits for it sooner or later.
    for expected in [(others[0], "T"), (child.id(), "S")] {
        while state(expected.0).as_deref() != Some(expected.1) {
            std::thread::yield_now();
        }
    }
    send(others[0], "-CONT");
    interrupt(&child);
    let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
    assert!(ran.stdout.starts_with("unknown  endless.pal: stopped\n"), "{}", ran.stdout);
}

#[test]
fn a_full_memory_ends_the_run() {
    let scratch = Scratch::new("group_memory").file("endless.pal", ENDLESS);
    let args = ["check", "-q", "endless.pal", "--model", "sc", "--processes", "2", "--memory", "0.03"];
    scratch.run(&args).exits(3).complains("").prints(str![[r#"
unknown  endless.pal: out of memory (0.03 GiB)

"#]]);
}

#[test]
fn one_command_per_machine() {
    let scratch = Scratch::new("group_hosts").file("fenced.pal", FENCED).file("hosts", hosts(3));
    let command = |index: &str| {
        let args = ["check", "fenced.pal", "--hosts", "hosts", "--process", index, "--format", "json"];
        scratch.command(&args)
    };
    let others = ["1", "2"].map(|index| command(index).stdout(std::process::Stdio::piped()).spawn());
    let first = Ran::new(command("0").output().expect("the command can be started")).exits(0);
    assert_eq!(answer(&first)["processes"].as_array().map(Vec::len), Some(3));
    for other in others {
        let other = other.expect("the command can be started").wait_with_output();
        let other = Ran::new(other.expect("the command ends")).exits(0);
        assert_eq!(other.stdout, "", "process 0 gives the answer");
    }
}

#[test]
fn processes_that_are_asked_something_else() {
    let scratch = Scratch::new("group_disagree")
        .file("a.pal", FENCED)
        .file("b.pal", STORE_BUFFERING)
        .file("hosts", hosts(2));
    let command = |file: &str, index: &str| {
        let mut command = scratch.command(&["check", file, "--hosts", "hosts", "--process", index]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    };
    let other = command("b.pal", "1").spawn().expect("the command can be started");
    let first = Ran::new(command("a.pal", "0").output().expect("the command can be started")).exits(3);
    assert!(first.stdout.contains("process 1 was lost: it was asked something else"), "{}", first.stdout);
    other.wait_with_output().expect("it ends, too");
}

#[test]
fn the_commands_of_a_cluster() {
    let scratch = Scratch::new("group_cluster")
        .file("fenced.pal", FENCED)
        .file("hosts.txt", "127.0.0.1:2101\nnode-b:2101 # fast\n")
        .file("here.txt", hosts(2));
    let ran = scratch.run(&["cluster", "hosts.txt", "check", "fenced.pal", "--model", "pso"]).exits(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "palisade check fenced.pal --model pso --hosts hosts.txt --process 0");
    assert!(lines[1].starts_with("ssh node-b 'cd "), "{}", lines[1]);
    assert!(lines[1].ends_with(" && palisade check fenced.pal --model pso --hosts hosts.txt --process 1'"));
    let scratch = scratch.file("v6.txt", "[::1]:2101\n[fe80::7]:2101\n");
    let ran = scratch.run(&["cluster", "v6.txt", "run", "-n", "--", "./test", "--process", "1"]).exits(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "palisade run --hosts v6.txt --process 0 -n -- ./test --process 1");
    assert!(lines[1].starts_with("ssh fe80::7 'cd "), "{}", lines[1]);
    let args = ["cluster", "here.txt", "--start", "check", "fenced.pal", "-q"];
    scratch.run(&args).exits(0).complains("").prints("safe  fenced.pal\n");
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let scratch = Scratch::new("group_refused")
        .file("a.pal", FENCED)
        .file("hosts", "a:1\nb\n")
        .file("good", "a:1\n")
        .file("bad", "a:1\n-oProxyCommand=x:1\n")
        .file("spaces", "a:1\nnode b:1\n");
    let check = |args: &[&str], part: &str| {
        let ran = scratch.run(args).exits(2);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    };
    check(&["check", "a.pal", "--processes", "2", "--engine", "dual"], "only explicit search is shared");
    check(&["check", "-", "--processes", "2"], "standard input cannot be read by several processes");
    check(&["check", "a.pal", "--hosts", "hosts", "--process", "0"], "`b` is not an address");
    for option in ["--processes=3", "--process", "--hosts"] {
        check(&["cluster", "good", "check", "a.pal", option, "1"], "`palisade cluster` adds --");
    }
    check(&["cluster", "bad", "check", "a.pal"], "`-oProxyCommand=x:1` is not the name of a host");
    check(&["cluster", "spaces", "check", "a.pal"], "`node b:1` is not the name of a host");
    check(&["check", "a.pal", "--processes", "0"], "0");
    let scratch = scratch.file("one", "127.0.0.1:1\n");
    let ran = scratch.run(&["check", "a.pal", "--hosts", "one", "--process", "1"]).exits(2);
    assert!(ran.stderr.contains("there is no process 1 in one"), "{}", ran.stderr);
}

/// Two processes in networks of their own, with a cable between them. `$1` is the command.
const TWO_NETWORKS: &str = r#"
set -e
ip link set lo up
unshare --net sleep 60 &
other=$!
trap 'kill $other' EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
ip link add here type veth peer name there netns $other
ip addr add 10.9.0.1/24 dev here
ip link set here up
there="nsenter --net=/proc/$other/ns/net"
$there ip addr add 10.9.0.2/24 dev there
$there ip link set there up
$there "$1" check fenced.pal --hosts hosts --process 1 &
"$1" check -q fenced.pal --hosts hosts --process 0
"#;

#[test]
#[cfg(target_os = "linux")]
fn two_networks() {
    let scratch = Scratch::new("group_networks")
        .file("fenced.pal", FENCED)
        .file("hosts", "10.9.0.1:2101\n10.9.0.2:2101\n");
    let namespace = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net"]).args(args).current_dir(scratch.folder());
        command.output()
    };
    // Not every machine has these programs, or allows it.
    let tried = "ip link set lo up && ip link add a type veth peer name b && command -v nsenter";
    if namespace(&["sh", "-c", tried]).is_ok_and(|tried| tried.status.success()) {
        let ran = namespace(&["sh", "-c", TWO_NETWORKS, "sh", env!("CARGO_BIN_EXE_palisade")]);
        let ran = Ran::new(ran.expect("it worked before")).exits(0);
        assert_eq!(ran.stdout, "safe  fenced.pal\n");
    }
}
