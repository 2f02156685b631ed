//! Several processes that share many questions: the files of a folder, programs with fences, traces. The answers are
//! those of one process, and no process goes on after the others have ended.

use crate::common;

use common::groups::{is_alive, send, start_group};
use common::{ENDLESS, FENCED, Ran, STORE_BUFFERING, Scratch, interrupt, signal};
use serde_json::Value;
use snapbox::str;

/// Peterson's algorithm for three threads, as a filter: many sets of fences.
const FILTER: &str = "\
shared level[3]: 0..2;
shared victim[3]: 0..2;
process P(i: 0..2) {
    level[i] = 1;
    victim[1] = i;
    await victim[1] != i || (level[(i + 1) % 3] < 1 && level[(i + 2) % 3] < 1);
    level[i] = 2;
    victim[2] = i;
    await victim[2] != i || (level[(i + 1) % 3] < 2 && level[(i + 2) % 3] < 2);
cs: skip;
    level[i] = 0;
}
forbid P(0)@cs && P(1)@cs;
";

/// What must not depend on the number of processes.
fn essence(ran: &Ran) -> Value {
    let mut answer: Value =
        serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout));
    for key in ["seconds", "peak_memory_bytes"] {
        answer[key].take();
    }
    answer["stats"]["table_bytes"].take();
    answer
}

#[test]
fn the_same_fences_from_any_number_of_processes() {
    let scratch = Scratch::new("group_fences").file("sb.pal", STORE_BUFFERING).file("filter.pal", FILTER);
    let questions: [&[&str]; 5] = [
        &["fences", "sb.pal"],
        &["fences", "sb.pal", "--all", "--place", "anywhere", "--model", "pso"],
        &["fences", "filter.pal"],
        &["fences", "filter.pal", "--all", "--per", "instance"],
        &["fences", "filter.pal", "--goal", "robustness"],
    ];
    for question in questions {
        let engine = if question.contains(&"robustness") { "auto" } else { "explicit" };
        let asked = [question, &["-q", "--engine", engine, "--format", "json"]].concat();
        let one = essence(&scratch.run(&asked).exits(0));
        for processes in ["1", "2", "3", "4"] {
            let several = scratch.run(&[asked.as_slice(), &["--processes", processes]].concat());
            let several = several.exits(0).complains("");
            assert_eq!(essence(&several), one, "{question:?}, {processes} processes");
        }
    }
    let written = |name: &str, more: &[&str]| {
        scratch.run(&[&["fences", "filter.pal", "-q", "--write", name], more].concat()).exits(0);
        scratch.read(name)
    };
    assert_eq!(written("two.pal", &["--processes", "2"]), written("one.pal", &[]));
}

/// A violation, and the first of its events that show it.
const TRACE: &str = "palisade trace 1\np store x a:1\np load y a:2\nq store y b:1\nq load x b:2\nend\n";

#[test]
fn traces_are_shared_out() {
    let scratch = Scratch::new("group_monitor")
        .file("bad.trace", TRACE)
        .file("clean.trace", "p store x\np fence\nq load x\nend\n")
        .file("cut.trace", "p store x\n")
        .file("odd.trace", "palisade trace 1\nwhat\n");
    let traces = ["clean.trace", "bad.trace", "cut.trace", "odd.trace", "missing.trace", "clean.trace"];
    let one = scratch.run(&[&["monitor", "-q"], traces.as_slice()].concat()).exits(2);
    for processes in ["1", "2", "4"] {
        let several = [&["monitor", "-q", "--processes", processes], traces.as_slice()].concat();
        let several = scratch.run(&several).exits(2);
        assert_eq!((&several.stdout, &several.stderr), (&one.stdout, &one.stderr), "{processes} processes");
    }
    one.prints(str![[r#"
clean  clean.trace: 3 events
violations  bad.trace: 1 under TSO, 1 under PSO, 4 events
unknown  cut.trace: no violation in 1 event read; the trace has no end mark, so events may be missing
unknown  odd.trace: no violation in 0 events read; [..]
clean  clean.trace: 3 events

"#]]);
    let refused = scratch.run(&["monitor", "bad.trace", "clean.trace", "--sarif", "out"]).exits(2);
    assert!(refused.stderr.contains("--sarif is for one trace at a time"), "{}", refused.stderr);
}

/// Fences for a program that has far too many states.
fn endless_fences(name: &str) -> Scratch {
    Scratch::new(name).file("endless.pal", ENDLESS)
}

const FENCES: [&str; 6] = ["fences", "endless.pal", "--place", "anywhere", "--engine", "explicit"];

/// A folder in which the first file is checked at once, and every process gets one that has far too many states.
fn endless_folder(name: &str) -> Scratch {
    let scratch = Scratch::new(name).file("d/0.pal", FENCED);
    (1..5).fold(scratch, |scratch, file| scratch.file(&format!("d/{file}.pal"), ENDLESS))
}

const FOLDER: [&str; 5] = ["check", "d", "-q", "--engine", "explicit"];

#[test]
#[cfg(target_os = "linux")]
fn a_killed_process_ends_the_work_on_questions() {
    let check = |scratch: Scratch, args: &[&str], says: &str| {
        let (child, others) = start_group(&scratch, args, 3, &[]);
        send(others[1], "-KILL");
        let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(says) && said.contains(" was lost: it has ended"), "{said}");
        assert!(others.iter().all(|&other| !is_alive(other)), "no process is left");
    };
    check(endless_fences("group_fences_killed"), &FENCES, "unknown  endless.pal: process ");
    check(endless_folder("group_folder_killed"), &FOLDER, " more were not checked");
}

#[test]
#[cfg(target_os = "linux")]
fn nobody_works_on_when_the_first_is_killed() {
    let check = |scratch: Scratch, args: &[&str]| {
        let (mut child, others) = start_group(&scratch, args, 3, &[]);
        signal(&child, "-KILL");
        child.wait().expect("it was killed");
        while others.iter().any(|&other| is_alive(other)) {
            std::thread::yield_now();
        }
    };
    check(endless_fences("group_fences_first_killed"), &FENCES);
    check(endless_folder("group_folder_first_killed"), &FOLDER);
}

#[test]
#[cfg(target_os = "linux")]
fn control_c_anywhere_stops_the_work_on_questions() {
    let check = |scratch: &Scratch, args: &[&str], is_right: &dyn Fn(&Ran) -> bool| {
        for first in [true, false] {
            let (child, others) = start_group(scratch, args, 3, &[]);
            if first {
                interrupt(&child)
            } else {
                send(others[0], "-INT")
            }
            let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
            assert!(is_right(&ran), "{}{}", ran.stdout, ran.stderr);
            assert!(others.iter().all(|&other| !is_alive(other)), "no process is left");
        }
    };
    check(&endless_fences("group_fences_interrupted"), &FENCES, &|ran| {
        ran.stdout.starts_with("unknown  endless.pal: stopped\n")
    });
    // It may come before some files are looked at, or before all of them.
    check(&endless_folder("group_folder_interrupted"), &FOLDER, &|ran| {
        let lines: Vec<&str> = ran.stdout.lines().collect();
        let left = match lines.len() {
            5 => String::new(),
            looked_at => format!("stopped before {} more\n", 5 - looked_at),
        };
        let is_right = |line: &&str| *line == "safe  d/0.pal" || line.ends_with(".pal: stopped");
        lines.iter().all(is_right) && ran.stderr == left
    });
}

#[test]
fn questions_that_cannot_be_shared() {
    let scratch = Scratch::new("group_not_shared").file("a.c", "int main(void) { return 0; }\n");
    let check = |args: &[&str], part: &str| {
        let ran = scratch.run(args).exits(2);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    };
    check(&["fences", "-", "--processes", "2"], "standard input cannot be read by several processes");
    check(&["monitor", "-", "--processes", "2"], "standard input cannot be read by several processes");
    check(&["fences", "a.c", "--minimise", "--processes", "2"], "--minimise cannot be shared");
    check(&["run", "--tests", "--processes", "2", "t"], "--tests");
}
