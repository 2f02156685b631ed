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

/// A folder with a program in it, compiled.
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
fn violations_are_told_and_their_schedule_is_kept() {
    let scratch = compiled("run_violations", BUFFERING);
    scratch.run(&["run", "--schedules", "200", "--", "./t"]).exits(1).complains("").prints(str![[r#"
violations  ./t: [..] under TSO, [..] under PSO, 200 schedules, [..] events

TSO (in [..] schedules, first with --seed [..]), PSO (in [..] schedules, first with --seed [..])
  t.c:[..]  static void *[..]  this store may still wait in its buffer
  t.c:[..]  static void *[..]  when another process has got here, after the store,
  t.c:[..]  static void *[..]  and this access comes before the store
...
The schedule is in t.schedule: repeat it with `palisade run --replay t.schedule`.

"#]]);
    assert!(scratch.read("t.schedule").starts_with("palisade schedule 1\nprogram ./t\n"));
    scratch.run(&["run", "-q", "--replay", "t.schedule"]).exits(1).prints(str![[r#"
violations  ./t: [..] under TSO, [..] under PSO, 1 schedule, [..] events

"#]]);
    let json = scratch.run(&[
        "run",
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
    scratch.run(&["run", "-q", "--no-save", "--schedules", "1", "--seed", &seed, "--", "./t"]).exits(1);
    let sarif: serde_json::Value = serde_json::from_str(&scratch.read("out.sarif")).expect("SARIF is JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "tso-violation");
}

/// Touches another cell in every process.
const PROCESS_ID: &str = "\
#include <pthread.h>
#include <unistd.h>
volatile int cells[64];
static void *run(void *nothing)
{
    cells[0] = 1;
    cells[getpid() % 63 + 1] = 1;
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
unknown  ./t: [..] partial orders, not all, [..] events

The program did not do the same again when its threads took the same turns. After [..] steps, thread 1 was expected to store 4 bytes at [..] (t.c:7[..] in run), but was about to store 4 bytes at [..] (t.c:7[..] in run). It depends on something that the scheduler does not decide or see: [..]
  t.c:7[..]  cells[getpid() % 63 + 1] = 1;  expected: store 4 bytes at [..]
  t.c:7[..]  cells[getpid() % 63 + 1] = 1;  happened: store 4 bytes at [..]

"#]]);
    let arguments = ["run", "--format", "json", "--no-save", "--strategy", "exhaustive", "--", "./t"];
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
clean  ./t: all [..] schedules with at most 0 preemptions, [..] events

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

deadlock: no thread can go on (in [..] schedules, first with --seed [..])
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
  t.c:[..]  [..]  writes
  t.c:[..]  [..]  writes the same memory, and nothing orders the two

"#]],
    );
}

#[test]
fn what_does_not_end_is_unknown() {
    let scratch = compiled("run_endless", ENDLESS);
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
the execution was ended at the limit of its time (in [..] schedules, first with --seed 0)
...
"#]]);
    scratch
        .run(&["run", "--timeout", "0.5", "--no-save", "-q", "--max-steps", "1000000000", "--", "./t"])
        .exits(3);
    scratch.run(&["run", "--strategy", "exhaustive", "--no-save", "-q", "--", "./t"]).exits(4).prints(str![
        [r#"
failed  ./t: endless loop, all 1 partial orders, [..] events

"#]
    ]);
}

/// Interrupts a run once its program has been started so many times.
fn interrupted(scratch: &Scratch, started: u64) -> Ran {
    let args = ["run", "--schedules", "1000000000", "--max-steps", "1000000000000", "--no-save", "--", "./t"];
    let mut command = scratch.command(&args);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started");
    let starts = || std::fs::metadata(scratch.path("starts")).map_or(0, |file| file.len());
    while starts() < started {
        assert_eq!(child.try_wait().expect("it can be asked"), None, "it does not end by itself");
        std::thread::yield_now();
    }
    interrupt(&child);
    let ran = Ran::new(child.wait_with_output().expect("the child ends"));
    // The kernel ends the processes of the program when the one that forked them is gone: soon, if not at once.
    let start = Instant::now();
    while is_in_use(&scratch.path(".")) {
        assert!(start.elapsed() < Duration::from_secs(60), "processes of the program are left over");
        std::thread::yield_now();
    }
    ran
}

/// Whether a process works in a folder.
fn is_in_use(folder: &Path) -> bool {
    let folder = folder.canonicalize().expect("the folder is there");
    let processes = std::fs::read_dir("/proc").expect("Linux tells its processes");
    processes
        .flatten()
        .any(|process| std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == folder))
}

#[test]
fn ctrl_c_tells_what_is_known_and_leaves_nothing_behind() {
    let starts = "int main(void)\n{\n    FILE *file = fopen(\"starts\", \"a\");\n    fputc('.', file);\n    fclose(file);\n";
    let noting = |program: &str| {
        program.replace("int main(void)\n{\n", starts).replace("#include", "#include <stdio.h>\n#include")
    };
    // Many executions, with something in nearly every one of them.
    let scratch = compiled("run_interrupted", &noting(BUFFERING));
    let ran = interrupted(&scratch, 200).exits(1);
    assert!(ran.stdout.starts_with("violations  ./t: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("The run was stopped; what was found in "), "{}", ran.stdout);
    // In the midst of one that has no end.
    let scratch = compiled("run_interrupted_once", &noting(ENDLESS));
    let ran = interrupted(&scratch, 1).exits(3);
    assert!(ran.stdout.starts_with("unknown  ./t: "), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("The run was stopped; what was found in 0 schedules is told."),
        "{}",
        ran.stdout
    );
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
    scratch.run(&["run", "--schedules", "3", "--", "./linked"]).exits(2).complains(str![[r#"
error[not-instrumented]: ./linked: no access to memory was seen
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
