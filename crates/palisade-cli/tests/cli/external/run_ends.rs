//! `palisade run` on programs that do not end, and its limits: time, steps, memory, Ctrl-C.

use super::programs::{BUFFERING, ENDLESS, compiled};
use crate::common::{self, Ran, Scratch, interrupt};
use snapbox::str;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn programs_that_do_not_end() {
    let scratch = compiled("run_endless", ENDLESS);
    // Long enough to see that it waits forever, or too short for that.
    scratch.run(&["run", "--schedules", "3", "--no-save", "-q", "--", "./t"]).exits(4).prints(str![[r#"
failed  ./t: deadlock, 3 schedules, [..] events

"#]]);
    let scratch = compiled("run_counts", &ENDLESS.replace("while (!never) {}", "for (;;) never++;"));
    scratch.run(&["run", "--max-steps", "1000", "--no-save", "-q", "--", "./t"]).exits(3).prints(str![[r#"
unknown  ./t: step limit, [..] schedules, [..] events

"#]]);
    let ran = scratch.run(&[
        "run",
        "--execution-timeout",
        "0.1",
        "--no-save",
        "--max-steps",
        "1000000000",
        "--",
        "./t",
    ]);
    ran.exits(3).prints(str![[r#"
unknown  ./t: time limit, [..] schedules, [..] events
...
the execution was ended at its time limit (in [..] schedules, first with --seed 0)
...
"#]]);
    scratch
        .run(&["run", "--timeout", "0.5", "--no-save", "-q", "--max-steps", "1000000000", "--", "./t"])
        .exits(3);
    let scratch = compiled("run_endless", ENDLESS);
    scratch.run(&["run", "--strategy", "exhaustive", "--no-save", "-q", "--", "./t"]).exits(4).prints(str![
        [r#"
failed  ./t: deadlock, the only partial order, [..] events

"#]
    ]);
}

#[test]
fn one_execution_that_does_not_end_is_reported_as_such() {
    let check = |name: &str, what: &str, reason: &str| {
        let source = format!(
            "#include <signal.h>\n#include <stdatomic.h>\n#include <unistd.h>\natomic_int x;\n\
             int main(void)\n{{\n    x = 1;\n    {what}\n    return 0;\n}}\n"
        );
        let scratch = compiled(name, &source);
        let fixed = ["run", "--no-save", "--strategy", "exhaustive", "--patience", "0.3", "--", "./t"];
        let ran = scratch.run(&fixed).exits(3);
        let is_reported = ran.stdout.contains("1 partial order, not all")
            && ran.stdout.contains("The one schedule could not be followed to its end: ")
            && ran.stdout.contains(reason)
            && !ran.stdout.contains("There are more executions");
        assert!(is_reported, "{}", ran.stdout);
    };
    check("run_one_stops", "raise(SIGSTOP);", "stopped by signal 19");
    check("run_one_stalls", "for (;;) {}", "for longer than --patience allows");
    check("run_one_execs", "execl(\"/bin/true\", \"true\", (char *)0);", "exec");
}

#[test]
fn an_execution_gets_its_time_limit_only_once() {
    let source = "#include <stdatomic.h>\n#include <stdio.h>\natomic_int x;\n\
         int main(void)\n{\n    FILE *file = fopen(\"starts\", \"a\");\n    fputc('.', file);\n    fclose(file);\n    x = 1;\n    for (;;) {}\n}\n";
    let scratch = compiled("run_time_once", source);
    let reason =
        "The one schedule could not be followed to its end: the execution was ended at its time limit";
    for strategy in [["--strategy", "pct"], ["--strategy", "exhaustive"]] {
        let _ = std::fs::remove_file(scratch.path("starts"));
        let fixed =
            ["run", "--no-save", "--patience", "60", "--execution-timeout", "0.3", "--schedules", "1"];
        let all: Vec<&str> = fixed.iter().chain(&strategy).chain(&["--", "./t"]).copied().collect();
        let ran = scratch.run(&all).exits(3);
        assert!(ran.stdout.contains("time limit") && ran.stdout.contains(reason), "{}", ran.stdout);
        assert_eq!(scratch.read("starts"), ".", "{strategy:?}: it was run once");
    }
}

/// Interrupts a run once its program has been started this many times.
fn interrupted(scratch: &Scratch, started: u64) -> Ran {
    let args = [
        "run",
        "--robust",
        "--schedules",
        "1000000000",
        "--max-steps",
        "1000000000000",
        "--no-save",
        "--",
        "./t",
    ];
    let mut command = scratch.command(&args);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started");
    let starts = || std::fs::metadata(scratch.path("starts")).map_or(0, |file| file.len());
    while starts() < started {
        assert_eq!(child.try_wait().expect("its status is known"), None, "it does not end by itself");
        std::thread::yield_now();
    }
    interrupt(&child);
    let ran = Ran::new(child.wait_with_output().expect("the child ends"));
    // The kernel ends the processes of the program once the process that forked them has ended. This happens
    // soon, though not necessarily at once.
    let start = Instant::now();
    while is_in_use(&scratch.path(".")) {
        assert!(start.elapsed() < Duration::from_secs(60), "processes of the program are left over");
        std::thread::yield_now();
    }
    ran
}

/// Whether a process works in a folder.
fn is_in_use(folder: &Path) -> bool {
    let folder = folder.canonicalize().expect("the folder exists");
    let processes = std::fs::read_dir("/proc").expect("Linux lists its processes");
    processes
        .flatten()
        .any(|process| std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == folder))
}

#[test]
fn ctrl_c_reports_what_is_known_and_leaves_nothing_behind() {
    let starts = "int main(void)\n{\n    FILE *file = fopen(\"starts\", \"a\");\n    fputc('.', file);\n    fclose(file);\n";
    let noting = |program: &str| {
        program.replace("int main(void)\n{\n", starts).replace("#include", "#include <stdio.h>\n#include")
    };
    // Many executions, nearly all of them with a finding.
    let scratch = compiled("run_interrupted", &noting(BUFFERING));
    let ran = interrupted(&scratch, 200).exits(1);
    assert!(ran.stdout.starts_with("violations  ./t: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("The run was stopped; this report covers "), "{}", ran.stdout);
    // In the middle of an execution that never ends.
    let counts = ENDLESS.replace("while (!never) {}", "for (;;) never++;");
    let scratch = compiled("run_interrupted_once", &noting(&counts));
    let ran = interrupted(&scratch, 1).exits(3);
    assert!(ran.stdout.starts_with("unknown  ./t: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("The run was stopped; this report covers "), "{}", ran.stdout);
}

/// Shows a violation and a race in its first steps, and then never ends.
const EARLY: &str = "\
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
atomic_int flag[2], x;
int race;
static void *run(void *argument)
{
    long me = (long)argument;
    race = (int)me;
    atomic_store_explicit(&flag[me], 1, memory_order_release);
    (void)atomic_load_explicit(&flag[1 - me], memory_order_acquire);
    for (;;) atomic_fetch_add(&x, 1);
    return 0;
}
int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";

#[test]
fn what_an_execution_shows_before_it_is_cut_off_counts() {
    let scratch = compiled("run_early", EARLY);
    let fixed = ["run", "--no-save", "--max-steps", "1000000000000", "--timeout", "1.5"];
    let check = |strategy: &[&str], what: &str| {
        let all: Vec<&str> = fixed.iter().chain(strategy).chain(&["--", "./t"]).copied().collect();
        let ran = scratch.run(&all);
        assert!(ran.stdout.contains(what), "{strategy:?}: {}", ran.stdout);
        assert!(ran.stdout.contains("The run ran out of time; this report covers "), "{}", ran.stdout);
        assert!(!ran.stdout.contains(" 0 events"), "{strategy:?}: {}", ran.stdout);
    };
    check(&["--jobs", "1"], "data race");
    check(&["--jobs", "3"], "data race");
    check(&["--strategy", "random", "--jobs", "2", "--robust"], "violations  ./t: ");
    // Ctrl-C, once something was found.
    let noting = EARLY.replace(
        "atomic_fetch_add(&x, 1);",
        "if (atomic_fetch_add(&x, 1) == 20000) fclose(fopen(\"starts\", \"a\"));",
    );
    let scratch = compiled("run_early_interrupted", &noting);
    let fixed = ["run", "--no-save", "--max-steps", "1000000000000", "--", "./t"];
    let child = scratch
        .command(&fixed)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    while !scratch.path("starts").exists() {
        std::thread::yield_now();
    }
    interrupt(&child);
    let ran = Ran::new(child.wait_with_output().expect("the child ends"));
    assert!(ran.stdout.contains("The run was stopped; this report covers "), "{}", ran.stdout);
    assert!(ran.stdout.contains("data race"), "{}", ran.stdout);
}

/// Executions of very many steps.
const LONG: &str = "\
#include <pthread.h>
volatile long x, y;
static void *p(void *a) { for (long i = 0; i < 1000000000; i++) { x = i; } return a; }
static void *q(void *a) { for (long i = 0; i < 1000000000; i++) { y = i; x; } return a; }
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, p, 0);
    pthread_create(&t[1], 0, q, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    return 0;
}
";

/// How much later than requested it may end. This is far less than without the limit, and far more than a
/// machine without other load needs.
const SLACK: Duration = Duration::from_secs(20);

#[test]
fn limits_hold_within_executions_and_between() {
    let scratch = compiled("run_limits", LONG);
    let run = |args: &[&str], reason: &str| {
        let fixed = ["run", "--no-save", "--max-steps", "1000000000000"];
        let all: Vec<&str> = fixed.iter().chain(args).chain(&["--", "./t"]).copied().collect();
        let start = Instant::now();
        let ran = scratch.run(&all).exits(3);
        assert!(start.elapsed() < SLACK, "{args:?}: {:?}", start.elapsed());
        assert!(
            ran.stdout.starts_with("unknown  ./t: ") && ran.stdout.contains(reason),
            "{args:?}: {}",
            ran.stdout
        );
    };
    let strategies: [&[&str]; 5] = [
        &["--strategy", "random", "--jobs", "1"],
        &["--strategy", "random", "--jobs", "3"],
        &["--strategy", "pct"],
        &["--strategy", "exhaustive"],
        &["--strategy", "exhaustive", "--preemptions", "2"],
    ];
    for strategy in strategies {
        run(&[strategy, &["--timeout", "0.5"]].concat(), "The run ran out of time");
    }
    run(&["--strategy", "exhaustive", "--execution-timeout", "0.3"], "--execution-timeout");
    run(&["--strategy", "exhaustive", "--memory", "0.06"], "The run ran out of memory (0.06 GiB)");
    run(&["--timeout", "0.000001"], "The run ran out of time");
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_within_a_search() {
    let scratch = compiled("run_search_interrupted", LONG);
    for strategy in [&["--strategy", "exhaustive"][..], &["--strategy", "exhaustive", "--preemptions", "1"]] {
        let fixed = ["run", "--no-save", "--max-steps", "1000000000000"];
        let all: Vec<&str> = fixed.iter().chain(strategy).chain(&["--", "./t"]).copied().collect();
        let child = common::start(&mut scratch.command(&all));
        interrupt(&child);
        let start = Instant::now();
        let ran = Ran::new(child.wait_with_output().expect("it ends")).exits(3);
        assert!(start.elapsed() < SLACK, "{:?}", start.elapsed());
        assert!(ran.stdout.contains("The run was stopped"), "{}", ran.stdout);
    }
}

#[test]
fn memory_of_many_threads_and_addresses() {
    let scratch = compiled(
        "run_memory",
        "#include <pthread.h>\n#include <stdlib.h>\nstatic long *a;\n\
         static void *p(void *n) { for (long i = 0; i < 1000000; i++) a[i] = 1; return n; }\n\
         int main(void)\n{\n    a = malloc(8000000);\n    pthread_t t[64];\n    for (int i = 0; i < 64; i++) pthread_create(&t[i], 0, p, 0);\n    for (int i = 0; i < 64; i++) pthread_join(t[i], 0);\n    return 0;\n}\n",
    );
    // The threads write the same memory. That race is seen before memory runs out.
    for jobs in ["1", "3"] {
        let ran = scratch
            .run(&[
                "run",
                "--robust",
                "--no-save",
                "--memory",
                "0.0625",
                "--jobs",
                jobs,
                "--max-steps",
                "1000000000",
                "--",
                "./t",
            ])
            .exits(5);
        assert!(ran.stdout.contains("The run ran out of memory (0.06 GiB)"), "{}", ran.stdout);
    }
}

/// What is kept about threads and steps grows with both, and is checked often enough.
#[test]
fn memory_of_thousands_of_threads() {
    let scratch = compiled(
        "run_memory_threads",
        "#include <pthread.h>\n#include <stdatomic.h>\nstatic atomic_int x;\n\
         static void *p(void *n) { x++; return n; }\n\
         int main(void)\n{\n    pthread_t t;\n    for (;;) pthread_create(&t, 0, p, 0);\n}\n",
    );
    let ran = scratch
        .run(&["run", "--strategy", "exhaustive", "--memory", "0.0625", "--format", "json", "--", "./t"])
        .exits(3);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it prints JSON");
    let reason = json["reason"].as_str().expect("the verdict is unknown");
    assert!(reason.starts_with("The run ran out of memory (0.06 GiB)"), "{json}");
    let peak = json["peak_memory_bytes"].as_u64().expect("Linux reports it");
    assert!(peak <= (64 + 32) << 20, "{peak}");
}
