//! Transcripts of `palisade cc`, `palisade run` and `palisade doctor`.

use crate::common;

use common::{Ran, Scratch, interrupt};
use snapbox::str;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const BUFFERING: &str = "\
#include <pthread.h>
volatile int x, y, r[2];
static void *p(void *a) { x = 1; r[0] = y; return a; }
static void *q(void *a) { y = 1; r[1] = x; return a; }
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

const DEADLOCK: &str = "\
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void two(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}
static void *run(void *nothing) { two(&b, &a); return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    two(&a, &b);
    pthread_join(thread, 0);
    return 0;
}
";

const RACE: &str = "\
#include <pthread.h>
static int x;
static void *run(void *nothing) { x = 1; return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    x = 2;
    pthread_join(thread, 0);
    return 0;
}
";

const ENDLESS: &str = "\
#include <pthread.h>
volatile int never;
static void *run(void *nothing) { while (!never) {} return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    return 0;
}
";

/// A folder with a compiled program.
fn compiled(name: &str, source: &str) -> Scratch {
    let scratch = Scratch::new(name).file("t.c", source);
    let compiled = cc(&scratch, &["cc", "-o", "t", "t.c"]);
    assert_eq!(compiled.code, Some(0), "gcc is needed (`./test` installs it): {}", compiled.stderr);
    scratch
}

fn cc(scratch: &Scratch, args: &[&str]) -> Ran {
    let mut command = scratch.command(args);
    command.env("PALISADE_CACHE", scratch.path("../run_cache"));
    Ran::new(command.output().expect("the command can be started"))
}

#[test]
fn violations_are_reported_and_their_schedule_is_kept() {
    let scratch = compiled("run_violations", BUFFERING);
    scratch.run(&["run", "--robust", "--schedules", "200", "--", "./t"]).exits(1).complains("").prints(str![
        [r#"
violations  ./t: [..] under TSO, [..] under PSO, 200 schedules, [..] events

TSO (in [..] schedules, first with --seed [..]), PSO (in [..] schedules, first with --seed [..])
  t.c:[..]  static void *[..]  this store can still be buffered
  t.c:[..]  static void *[..]  while another thread, having passed here,
  t.c:[..]  static void *[..]  makes this access before the store reaches memory
...
The schedule is in t.schedule: repeat it with `palisade run --replay t.schedule`.

"#]
    ]);
    assert!(scratch.read("t.schedule").starts_with("palisade schedule 1\nprogram ./t\n"));
    scratch.run(&["run", "-q", "--replay", "t.schedule"]).exits(1).prints(str![[r#"
violations  ./t: [..] under TSO, [..] under PSO, 1 schedule, [..] events

"#]]);
    let json = scratch.run(&[
        "run",
        "--robust",
        "--format",
        "json",
        "--no-save",
        "--schedules",
        "50",
        "--sarif",
        "out.sarif",
        "--model",
        "tso",
        "--",
        "./t",
    ]);
    let json: serde_json::Value = serde_json::from_str(&json.exits(1).stdout).expect("JSON");
    assert_eq!(
        (&json["verdict"], &json["schedules"], &json["threads"]),
        (&"violations".into(), &50.into(), &3.into())
    );
    let violation = &json["violations"][0];
    assert_eq!((&violation["store"]["file"], &violation["pso"]), (&"t.c".into(), &serde_json::Value::Null));
    let seed = violation["tso"]["seed"].to_string();
    // The seed repeats it.
    let again = ["run", "--robust", "-q", "--no-save", "--schedules", "1", "--seed", &seed, "--", "./t"];
    scratch.run(&again).exits(1);
    let sarif: serde_json::Value = serde_json::from_str(&scratch.read("out.sarif")).expect("SARIF is JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "tso-violation");
}

/// Both threads go on although each has stored before it loads.
fn asserting() -> String {
    BUFFERING
        .replace("#include", "#include <assert.h>\n#include")
        .replace("return 0;", "assert(r[0] || r[1]);\n    return 0;")
}

#[test]
fn failures_that_need_store_buffers() {
    let scratch = compiled("run_buffers", &asserting());
    scratch.run(&["run", "--model", "sc", "--schedules", "200", "--no-save", "-q", "--", "./t"]).exits(0);
    scratch.run(&["run", "--schedules", "200", "--", "./t"]).exits(4).complains("").prints(str![[r#"
failed  ./t: assertion, 200 schedules, [..] events

t.c:13: assertion `r[0] || r[1]` failed in main (in [..] schedules, first with --seed [..])
  with store buffers (TSO, PSO); not seen without them
  t.c:13:5  assert(r[0] || r[1]);  here
  t.c:[..]  static void *[..]  this store was still in the store buffer
  t.c:[..]  static void *[..]  when this load read memory
...
not robust: [..] schedules were not sequentially consistent. This alone is not an error.
...
The schedule is in t.schedule: repeat it with `palisade run --replay t.schedule`.

"#]]);
    assert!(scratch.read("t.schedule").contains("\nmodel tso\n"));
    scratch.run(&["run", "-q", "--replay", "t.schedule"]).exits(4);
    // The exhaustive search shows that there is no other way.
    let fixed = ["run", "--strategy", "exhaustive", "--no-save", "--format", "json", "--", "./t"];
    let json: serde_json::Value = serde_json::from_str(&scratch.run(&fixed).exits(4).stdout).expect("JSON");
    let failure = &json["failures"][0];
    assert_eq!(
        (&failure["possible_under"], &failure["only_with_store_buffers"]),
        (&"tso".into(), &true.into())
    );
    assert_eq!((&json["question"], &json["model"]), (&"failures".into(), &"tso".into()));
    assert_eq!(failure["reorderings"][0]["store"]["file"], "t.c", "{failure}");
    // Without the assertion, this alone is not an error.
    let scratch = compiled("run_not_robust", BUFFERING);
    scratch.run(&["run", "--strategy", "exhaustive", "--no-save", "--", "./t"]).exits(0).prints(str![[r#"
clean  ./t: all 4 partial orders, [..] events

not robust: 1 schedule was not sequentially consistent. This alone is not an error.
...
"#]]);
}

#[test]
fn options_about_store_buffers_that_do_not_go_together() {
    let scratch = compiled("run_options", BUFFERING);
    let check = |args: &[&str], problem: &str| {
        let ran = scratch.run(&[&["run", "--no-save"], args, &["--", "./t"]].concat()).exits(2);
        assert!(
            ran.stderr.starts_with("error[unsuitable-options]") && ran.stderr.contains(problem),
            "{}",
            ran.stderr
        );
    };
    check(&["--robust", "--model", "sc"], "--model sc has none");
    check(&["--interlocked", "own-address"], "is about violations under PSO");
    scratch
        .run(&[
            "run",
            "-q",
            "--robust",
            "--model",
            "pso",
            "--interlocked",
            "own-address",
            "--no-save",
            "--",
            "./t",
        ])
        .exits(1);
}

/// Touches a different cell in every process.
const PROCESS_ID: &str = "\
#include <pthread.h>
#include <unistd.h>
volatile int cells[1 << 16];
static void *run(void *nothing)
{
    cells[0] = 1;
    cells[getpid() % 65521 + 1] = 1;
    return nothing;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    cells[0] = 2;
    pthread_join(thread, 0);
    return 0;
}
";

#[test]
fn a_program_that_does_not_repeat_is_unknown_with_the_first_event_that_differed() {
    let scratch = compiled("run_process_id", PROCESS_ID);
    scratch.run(&["run", "--no-save", "--strategy", "exhaustive", "--", "./t"]).exits(3).prints(str![[r#"
...
The program did not behave the same when its threads took the same turns again. [..]
...
"#]]);
    let fixed = ["run", "--model", "sc", "--no-save", "--strategy", "exhaustive", "--", "./t"];
    scratch.run(&fixed).exits(3).prints(str![[r#"
unknown  ./t: [..] partial order[..], not all, [..] events

The program did not behave the same when its threads took the same turns again. After [..] steps, thread 1 was expected to store 4 bytes at [..] (t.c:7[..] in run), but was about to store 4 bytes at [..] (t.c:7[..] in run). It depends on something that the scheduler does not decide or see: [..]
  t.c:7[..]  cells[getpid() % 65521 + 1] = 1;  expected: store 4 bytes at [..]
  t.c:7[..]  cells[getpid() % 65521 + 1] = 1;  happened: store 4 bytes at [..]

"#]]);
    let arguments =
        ["run", "--model", "sc", "--format", "json", "--no-save", "--strategy", "exhaustive", "--", "./t"];
    let json = scratch.run(&arguments).exits(3);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let divergence = &json["divergence"];
    assert_eq!(divergence["thread"], 1, "{divergence}");
    for side in ["expected", "happened"] {
        let side = &divergence[side];
        assert_eq!((&side["place"]["file"], &side["place"]["line"]), (&"t.c".into(), &7.into()), "{side}");
        assert!(side["action"].as_str().is_some_and(|action| action.starts_with("store 4 bytes")), "{side}");
    }
    assert_ne!(divergence["expected"], divergence["happened"]);
}

#[test]
fn all_partial_orders() {
    let scratch = compiled(
        "run_exhaustive",
        &BUFFERING
            .replace("x = 1;", "x = 1; __sync_synchronize();")
            .replace("y = 1;", "y = 1; __sync_synchronize();"),
    );
    scratch.run(&["run", "--strategy", "exhaustive", "--", "./t"]).exits(0).complains("").prints(str![[r#"
clean  ./t: all 3 partial orders, [..] events

"#]]);
    scratch.run(&["run", "--strategy", "exhaustive", "--preemptions", "0", "--", "./t"]).exits(0).prints(
        str![[r#"
clean  ./t: [..] with at most 0 preemptions, [..] events

"#]],
    );
}

#[test]
fn failures_and_races() {
    let scratch = compiled("run_deadlock", DEADLOCK);
    scratch
        .run(&["run", "--schedules", "100", "--save", "kept", "--shorten", "--", "./t"])
        .exits(4)
        .complains("")
        .prints(str![[r#"
failed  ./t: deadlock, 100 schedules, [..] events

deadlock: thread 0 waits at t.c:6:5 in two; thread 1 waits at t.c:6:5 in two (in [..] schedules, first with --seed [..])
  on any machine: it does not depend on store buffers
  t.c:6:5  pthread_mutex_lock(second);  thread 0 waits here
  t.c:6:5  pthread_mutex_lock(second);  thread 1 waits here

The schedule is in kept: repeat it with `palisade run --replay kept`.

"#]]);
    scratch.run(&["run", "-q", "--replay", "kept"]).exits(4);
    let turns = scratch.read("kept");
    let count =
        turns.lines().filter(|line| line.starts_with("turns")).flat_map(str::split_whitespace).count() - 1;
    assert!(count <= 3, "two threads that take one lock each, after one or two switches: {turns}");
    compiled("run_race", RACE).run(&["run", "--schedules", "20", "--no-save", "--", "./t"]).exits(5).prints(
        str![[r#"
races  ./t: 1 data race, 20 schedules, [..] events

data race (in 20 schedules, first with --seed 0)
  on any machine: it does not depend on store buffers
  t.c:[..]  [..]  writes
  t.c:[..]  [..]  writes the same memory, and nothing orders the two

"#]],
    );
}

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
    let check = |strategy: &[&str], reason: &str| {
        let _ = std::fs::remove_file(scratch.path("starts"));
        let fixed =
            ["run", "--no-save", "--patience", "60", "--execution-timeout", "0.3", "--schedules", "1"];
        let all: Vec<&str> = fixed.iter().chain(strategy).chain(&["--", "./t"]).copied().collect();
        let ran = scratch.run(&all).exits(3);
        assert!(ran.stdout.contains("time limit") && ran.stdout.contains(reason), "{}", ran.stdout);
        assert_eq!(scratch.read("starts"), ".", "{strategy:?}: it was run once");
    };
    check(&["--strategy", "pct"], "The one schedule could not be followed to its end");
    check(
        &["--strategy", "exhaustive"],
        "One execution, with the search through it, took longer than --execution-timeout allows.",
    );
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
        "if (atomic_fetch_add(&x, 1) == 100000) fclose(fopen(\"starts\", \"a\"));",
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

/// A program with two threads, the first of which does this.
fn doing(name: &str, what: &str) -> Scratch {
    let source = format!(
        "#define _GNU_SOURCE\n#include <pthread.h>\n#include <signal.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
         atomic_int x; int y;\nstatic void handle(int number) {{ x = number; }}\n\
         static void *run(void *nothing) {{ x = 1; return nothing; }}\n\
         int main(void)\n{{\n    pthread_t thread;\n    pthread_create(&thread, 0, run, 0);\n    {what}\n    pthread_join(thread, 0);\n    return handle == 0;\n}}\n"
    );
    compiled(name, &source)
}

#[test]
fn clean_means_that_everything_was_followed() {
    let run = |scratch: &Scratch| scratch.run(&["run", "--schedules", "3", "--no-save", "--", "./t"]);
    run(&doing("run_follows_all", "x = 2;")).exits(0);
    let check = |name: &str, what: &str, reason: &str| {
        let scratch = doing(name, what);
        let ran = run(&scratch).exits(3);
        assert!(ran.stdout.starts_with("unknown  ./t: ") && ran.stdout.contains(reason), "{}", ran.stdout);
        let json = scratch.run(&["run", "--format", "json", "--schedules", "3", "--no-save", "--", "./t"]);
        let json: serde_json::Value = serde_json::from_str(&json.exits(3).stdout).expect("JSON");
        assert_eq!(json["verdict"], "unknown");
        assert!(json["reason"].as_str().is_some_and(|text| text.contains(reason)), "{json}");
    };
    check("run_system", "if (system(\"true\")) abort();", "Not everything could be followed (fork)");
    check("run_handler", "signal(SIGUSR1, handle);", "Not everything could be followed (signal-handler)");
    check(
        "run_assembly",
        "__asm__ volatile(\"incl %0\" : \"+m\"(y));",
        "Not everything could be followed (inline-assembly)",
    );
    check(
        "run_bytes",
        "__asm__ volatile(\".byte 0x90\");",
        "Not everything could be followed (inline-assembly)",
    );
    check("run_kill", "signal(SIGUSR1, handle); pthread_kill(thread, SIGUSR1);", "pthread_kill");
    check("run_stop", "raise(SIGSTOP);", "stopped by signal 19");
}

#[test]
fn runs_without_events_are_unknown() {
    let scratch = compiled("run_nothing", "int main(void) { return 0; }\n");
    let ran = scratch.run(&["run", "--schedules", "2", "--no-save", "--", "./t"]).exits(3);
    // The end of the program is not an event for the monitors.
    assert!(ran.stdout.contains("No event was seen in 2 schedules"), "{}", ran.stdout);
    scratch.run(&["run", "--schedules", "0", "--no-save", "--", "./t"]).exits(3);
}

#[test]
fn a_lock_prefix_after_a_label() {
    let lock = "__asm__ volatile(\"1: lock; decl %0\\n\\tjs 1b\" : \"+m\"(y));";
    let scratch = doing("run_label", &format!("y = 5; {lock} if (y != 4) abort();"));
    scratch.run(&["run", "--schedules", "3", "--no-save", "--", "./t"]).exits(0);
}

/// The cache and temporary folders belong to the user, wherever they are.
#[test]
fn no_other_users_cache_is_used() {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let scratch = Scratch::new("run_cache_trust").file("t.c", BUFFERING);
    // The runtime is compiled five times here. Without optimisation that is several times faster.
    let scratch = scratch.file("quick-gcc", "#!/bin/sh\nexec gcc \"$@\" -O0\n");
    let quick = scratch.path("quick-gcc");
    std::fs::set_permissions(&quick, std::fs::Permissions::from_mode(0o700)).expect("a mode can be set");
    let compile = |set: &[(&str, &Path)]| {
        let mut command = scratch.command(&["cc", "-o", "t", "t.c"]);
        command.env("CC", &quick);
        command.env_remove("PALISADE_CACHE").env_remove("XDG_CACHE_HOME").env_remove("HOME");
        command.envs(set.iter().copied());
        let ran = Ran::new(command.output().expect("the command can be started"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        scratch.run(&["run", "--robust", "-q", "--schedules", "50", "--no-save", "--", "./t"]).exits(1);
        ran.stderr
    };
    // The folder in which the tests run may be open to everyone; this one is not.
    let private = std::env::temp_dir().join(format!("palisade-cache-test-{}", std::process::id()));
    let folder = |name: &str, mode: u32| {
        let path = private.join(name);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode can be set");
        path
    };
    let entries = |path: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(path)
            .map_or_else(|_| Vec::new(), |all| all.flatten().map(|entry| entry.path()).collect())
    };
    std::fs::DirBuilder::new().mode(0o700).create(&private).expect("a new folder can be made");
    // Without a home directory, nothing is left among the temporary files. These already contain an entry
    // with the old name.
    let temporary = folder("tmp", 0o700);
    std::fs::create_dir(temporary.join("palisade")).expect("a folder can be made");
    assert_eq!(compile(&[("TMPDIR", &temporary)]), "");
    assert_eq!(entries(&temporary), [temporary.join("palisade")]);
    assert_eq!(entries(&temporary.join("palisade")), [""; 0].map(std::path::PathBuf::from));
    // A home directory that cannot be written to, at least not by every user.
    let home = folder("home", 0o500);
    assert_eq!(compile(&[("HOME", &home)]), "");
    // With a home directory, the runtime is kept there once, and made again if it is damaged.
    let home = folder("home2", 0o755);
    let cache = home.join(".cache/palisade");
    assert_eq!(compile(&[("HOME", &home)]), "");
    let [entry] = entries(&cache).try_into().expect("one runtime");
    let content = std::fs::read(&entry).expect("it can be read");
    std::fs::write(&entry, b"damaged").expect("it can be damaged");
    assert_eq!(compile(&[("HOME", &home)]), "");
    assert_eq!(entries(&cache), std::slice::from_ref(&entry));
    assert_eq!(std::fs::read(&entry).expect("it can be read"), content);
    let mode = std::fs::metadata(&cache).expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // A folder above it that is world-writable.
    let open = folder("open", 0o777);
    let warning = compile(&[("XDG_CACHE_HOME", &open)]);
    assert!(warning.starts_with("warning[cache-not-used]: cache: the cache is not used: "), "{warning}");
    std::fs::remove_dir_all(private).expect("the folder can be removed");
}

#[test]
fn two_compilers_at_once() {
    let scratch = Scratch::new("run_cache_twice").file("t.c", BUFFERING);
    let children: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let mut command = scratch.command(&["cc", "-o", name, "t.c"]);
            command.env("PALISADE_CACHE", scratch.path("cache")).spawn().expect("the command can be started")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    for program in ["./a", "./b", "./c"] {
        scratch.run(&["run", "--robust", "-q", "--schedules", "50", "--no-save", "--", program]).exits(1);
    }
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

#[test]
fn what_is_not_instrumented_is_refused() {
    let scratch = compiled("run_refused", BUFFERING);
    scratch.run(&["run", "--", "/bin/true"]).exits(2).prints("").complains(str![[r#"
error[not-instrumented]: /bin/true: is not instrumented: [..]
...
"#]]);
    scratch.run(&["run", "--", "./nothing"]).exits(2).complains(str![[r#"
error[cannot-start]: ./nothing: cannot be started: [..]
...
"#]]);
    // Linked with the runtime, but compiled without it.
    let plain = std::process::Command::new("gcc")
        .current_dir(scratch.path("."))
        .args(["-c", "t.c", "-o", "t.o"])
        .status()
        .expect("gcc starts");
    assert!(plain.success());
    assert_eq!(cc(&scratch, &["cc", "t.o", "-o", "linked"]).code, Some(0));
    scratch.run(&["run", "--schedules", "3", "--", "./linked"]).exits(3).prints(str![[r#"
unknown  ./linked: 3 schedules, [..] events

not followed: this code was not compiled by `palisade cc`; what it does to memory is not seen
  t.o    here
...
"#]]);
    scratch.run(&["run", "--replay", "t.c"]).exits(2).complains(str![[r#"
error[malformed-schedule]: t.c: line 1: a schedule begins with `palisade schedule 1`

"#]]);
    assert_eq!(cc(&scratch, &["cc", "-static", "t.c"]).code, Some(2));
    assert_eq!(cc(&scratch, &["cc", "nothing.c"]).code, Some(2));
}

#[test]
fn doctor() {
    let scratch = Scratch::new("run_doctor");
    let ran = cc(&scratch, &["doctor"]).exits(0);
    assert!(ran.stdout.starts_with("ready\n") && ran.stdout.contains("fine     C, gcc"), "{}", ran.stdout);
    let json = cc(&scratch, &["doctor", "--format", "json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["command"], &json["verdict"]), (&"doctor".into(), &"ready".into()));
}
