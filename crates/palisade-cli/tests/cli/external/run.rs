//! Transcripts of `palisade run`.

use super::programs::{BUFFERING, RACE, compiled};
use crate::common::{Ran, Scratch};
use snapbox::str;

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

/// `--` may be left out. What follows the program belongs to it.
#[test]
fn the_program_follows_the_options() {
    let source = "int main(int count, char **words) { return count == 3 && words[1][0] == '-' ? 0 : 9; }\n";
    let scratch = compiled("run_program", source);
    for args in [["run", "-q", "./t", "--seed", "1"].as_slice(), &["run", "-q", "--", "./t", "-a", "b"]] {
        scratch.run(args).exits(0).complains("");
    }
    let ran = scratch.run(&["run", "--sedd", "1", "./t"]).exits(2);
    assert!(ran.stderr.contains("a similar argument exists: '--seed'"), "{}", ran.stderr);
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
fn options_that_do_not_go_together() {
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
    check(&["--depth", "3"], "--depth is about PCT");
    check(&["--strategy", "exhaustive", "--depth", "3"], "--depth is about PCT");
    check(&["--preemptions", "1"], "about a search through all executions");
    scratch.run(&["run", "--no-save", "--max-steps", "0", "--", "./t"]).exits(2);
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

/// Names of programs and arguments may have any bytes, also in schedules.
#[test]
fn names_that_are_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let source = "#include <assert.h>\nint x;\nint main(int count, char **arguments)\n{\n    x = count;\n    \
                  assert(count < 2 || (unsigned char)arguments[1][0] != 255);\n    return 0;\n}\n";
    let scratch = compiled("run_bytes", source);
    let name = OsStr::from_bytes(b"./n\xffon");
    std::fs::rename(scratch.path("t"), scratch.folder().join(name)).expect("a file can be renamed");
    let run = |options: &[&str], words: &[&OsStr]| {
        let mut command = scratch.command(&["run", "-q", "--schedules", "2"]);
        Ran::new(command.args(options).args(words).output().expect("the command can be started"))
    };
    let ran = run(&["--no-save", "--"], &[name]).exits(0);
    assert!(ran.stdout.starts_with("clean  ./n\u{fffd}on: "), "{}", ran.stdout);
    run(&["--save", "s", "--"], &[name, OsStr::from_bytes(b"\xff")]).exits(4);
    run(&["--replay", "s"], &[]).exits(4);
}
