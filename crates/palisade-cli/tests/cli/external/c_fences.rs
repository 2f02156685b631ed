//! Fences for C programs: wake-ups that are lost, also with condition variables.
//!
//! The judge is `check`: with the fences in its text, a program is safe and can always finish, and without any one of
//! them it is not.

use crate::common::Scratch;
use palisade_corpus::{CExpectation, Question, Safety, c_expectations, c_texts};
use serde_json::Value;

/// A fence after a line, counted from 1.
type Fence = (u64, String);

/// The text with fences.
fn with_fences(text: &str, fences: &[Fence]) -> String {
    let mut fenced = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        fenced += line;
        fenced += "\n";
        for (_, kind) in fences.iter().filter(|(after, _)| *after == number) {
            fenced += match kind.as_str() {
                "fence" => "__atomic_thread_fence(__ATOMIC_SEQ_CST);\n",
                "sfence" => "__atomic_thread_fence(__ATOMIC_RELEASE);\n",
                other => panic!("{other} is not a fence"),
            };
        }
    }
    fenced
}

/// The fences of the one set that is found, each once: a function can be part of several threads.
fn fences(record: &Value) -> Vec<Fence> {
    let sets = record["fence_sets"].as_array().expect("there are sets");
    assert_eq!(sets.len(), 1, "{record}");
    let mut fences: Vec<Fence> = Vec::new();
    for fence in sets[0].as_array().expect("a set is a list") {
        assert_eq!(fence["side"], "after", "{fence}");
        let line = fence["line"].as_u64().expect("a fence has a line");
        fences.push((line, fence["fence"].as_str().expect("a fence has a kind").to_owned()));
    }
    fences.sort();
    fences.dedup();
    fences
}

/// What `fences` and `check` say about a program that can get stuck under the model, but not under SC.
fn repaired(expected: &CExpectation, model: &str) {
    let texts = c_texts();
    let (_, text) = texts.iter().find(|(file, _)| *file == expected.file).expect("it is in the corpus");
    let name = format!("c_fences_{}_{}_{model}", expected.file.replace('/', "_"), expected.flags.join("_"));
    let scratch = Scratch::new(&name).file("p.c", text);
    let run = |command: &str, file: &str| {
        let mut args = vec![command, file, "--model", model, "--format", "json", "--timeout", "60", "--"];
        args.extend(&expected.flags);
        let ran = scratch.run(&args);
        let record: Value = serde_json::from_str(&ran.stdout).expect("an answer is JSON");
        record
    };
    let mut args = vec!["fences", "p.c", "--model", model, "--format", "json", "--timeout", "60"];
    args.extend(["--changes", "fences", "--write", "written.c", "--"]);
    args.extend(&expected.flags);
    let answer: Value = serde_json::from_str(&scratch.run(&args).stdout).expect("an answer is JSON");
    assert_eq!(answer["verdict"], "repairable", "{name}: {answer}");
    let found = fences(&answer);
    assert!(!found.is_empty(), "{name}: without fences it is not safe");
    let check = |fences: &[Fence]| {
        std::fs::write(scratch.path("fenced.c"), with_fences(text, fences)).expect("a text can be written");
        run("check", "fenced.c")
    };
    let answer = run("check", "written.c");
    assert_eq!(answer["verdict"], "safe", "{name} with {found:?}: {answer}");
    assert!(answer.to_string().contains("`main` can always finish"), "{name}: {answer}");
    for left_out in 0..found.len() {
        let mut others = found.clone();
        others.remove(left_out);
        let answer = check(&others);
        assert_eq!(answer["verdict"], "unsafe", "{name} with {others:?}: {answer}");
    }
}

#[test]
fn lost_wake_ups_of_the_corpus_are_repaired() {
    let mut count = 0;
    for expected in c_expectations().iter().filter(|expected| expected.question == Question::Progress) {
        let verdicts = &expected.verdicts;
        if verdicts.sc == Some(Safety::Safe) {
            for (model, verdict) in [("tso", verdicts.tso), ("pso", verdicts.pso)] {
                if verdict == Some(Safety::Unsafe) {
                    repaired(expected, model);
                    count += 1;
                }
            }
        }
    }
    assert!(count >= 20, "{count}");
}

/// What `fences` says in its first line.
#[track_caller]
fn check(name: &str, code: &str, flags: &[&str], exit: i32, words: &str) {
    let scratch = Scratch::new(&format!("c_fences_{name}")).file("p.c", code);
    let mut args = vec!["fences", "p.c", "-q", "--"];
    args.extend(flags);
    let ran = scratch.run(&args).exits(exit);
    let first = ran.stdout.lines().next().unwrap_or_default();
    assert!(first.contains(words), "{name}: {words}\n{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stderr, "", "{name}");
}

/// A thread that sleeps until there is work, and one that wakes it only if it says that it sleeps.
const SLEEPER: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int sleeps, work, woken;
static void *sleeper(void *nothing)
{
    atomic_store_explicit(&sleeps, 1, memory_order_relaxed);
    if (!atomic_load_explicit(&work, memory_order_relaxed)) {
        pthread_mutex_lock(&mutex);
        WAIT
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, sleeper, 0);
    atomic_store_explicit(&work, 1, memory_order_relaxed);
    if (atomic_load_explicit(&sleeps, memory_order_relaxed)) {
        pthread_mutex_lock(&mutex);
        atomic_store_explicit(&woken, 1, memory_order_relaxed);
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    pthread_join(thread, 0);
    return 0;
}
";

#[test]
fn waits_for_condition_variables() {
    let wait = |statement: &str| SLEEPER.replace("WAIT", statement);
    let until = "while (!atomic_load_explicit(&woken, memory_order_relaxed))";
    let right = wait(&format!("{until} pthread_cond_wait(&condition, &mutex);"));
    check("lost", &right, &[], 0, "repairable  p.c: safe with 2 changes");
    // A wait with a timeout ends in any case.
    let timed = format!(
        "struct timespec when = {{0, 0}};\n{until} if (pthread_cond_timedwait(&condition, &mutex, &when)) break;"
    );
    check("timed", &wait(&timed), &[], 0, "safe  p.c: no fences needed");
    // One that starts again after a timeout can end only if it is woken.
    let again = format!(
        "struct timespec when = {{0, 0}};\n{until} pthread_cond_timedwait(&condition, &mutex, &when);"
    );
    check("timed_again", &wait(&again), &[], 0, "repairable  p.c: safe with 2 changes");
    // A wait can end without a signal. No fence helps if the program relies on the signal.
    let once = "pthread_cond_wait(&condition, &mutex); assert(atomic_load(&woken));";
    check("once", &wait(once), &[], 1, "unsafe  p.c");
}

/// Two threads that store and then load, through a function in a header.
const HEADER: &str = "\
#include <stdatomic.h>
static inline int both(atomic_int *mine, atomic_int *other)
{
    if (mine)
        atomic_store_explicit(mine, 1, memory_order_release);
    return atomic_load(other);
}
";
const MAIN: &str = "\
#include <assert.h>
#include <pthread.h>
#include \"both.h\"
static atomic_int x, y;
static int r1, r2;
static void *first(void *nothing) { r1 = both(&x, &y); return nothing; }
static void *second(void *nothing) { x_then_y; return nothing; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(r1 == 1 || r2 == 1);
    return 0;
}";

#[test]
fn a_patch_for_a_header() {
    let main = MAIN.replace("x_then_y", "r2 = both(&y, &x)");
    let scratch = Scratch::new("c_fences_header").file("src/main.c", &main).file("src/both.h", HEADER);
    let ran = scratch.run(&["fences", "src/main.c", "-q", "--changes", "fences", "--diff"]).exits(0);
    let expected = "\
repairable  src/main.c: safe with 1 fence
--- a/src/both.h
+++ b/src/both.h
@@ -1,7 +1,9 @@
 #include <stdatomic.h>
 static inline int both(atomic_int *mine, atomic_int *other)
 {
-    if (mine)
+    if (mine) {
         atomic_store_explicit(mine, 1, memory_order_release);
+        atomic_thread_fence(memory_order_seq_cst);
+    }
     return atomic_load(other);
 }
";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (expected, ""));
    let ran = scratch.run(&["fences", "src/main.c", "-q", "--write", "out.c"]).exits(2);
    assert!(ran.stderr.contains("error[several-files]: out.c"), "{}", ran.stderr);
    assert!(!scratch.path("out.c").exists(), "nothing is written");
    assert_eq!(std::fs::read_to_string(scratch.path("src/both.h")).expect("it is there"), HEADER);
}

#[test]
fn a_program_from_standard_input() {
    let main = MAIN.replace("both(&x, &y)", "0; x = 1; __asm__(\"\"); r1 = y");
    let main = main.replace("x_then_y", "y = 1; r2 = x").replace("atomic_int x, y", "volatile int x, y");
    let scratch = Scratch::new("c_fences_stdin").file("main.c", &main).file("both.h", "");
    let input = std::fs::File::open(scratch.path("main.c")).expect("the file exists");
    let args = ["fences", "-", "-q", "--input", "c", "--no-races", "--diff", "--write", "fenced.c"];
    let output = scratch.command(&args).stdin(input).output().expect("the command can be started");
    let printed = String::from_utf8(output.stdout).expect("it prints text");
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        printed.contains(
            "+static void *second(void *nothing) { __atomic_exchange_n(&y, 1, __ATOMIC_SEQ_CST); r2"
        ),
        "{printed}"
    );
    scratch.run(&["check", "-q", "--no-races", "fenced.c"]).exits(0);
    // The last line has no end, before and after.
    let fenced = std::fs::read_to_string(scratch.path("fenced.c")).expect("it was written");
    assert!(!fenced.ends_with('\n'), "{fenced}");
}

/// The store and the load are one statement of the text.
#[test]
fn no_room_inside_a_macro() {
    let main = MAIN.replace("x_then_y", "BOTH(y, x, r2)").replace("both(&x, &y)", "0; BOTH(x, y, r1)");
    let header = "#include <stdatomic.h>\n#define BOTH(a, b, r) atomic_store_explicit(&a, 1, memory_order_release); r = b\n";
    let scratch = Scratch::new("c_fences_macro").file("main.c", &main).file("both.h", header);
    let ran = scratch.run(&["fences", "main.c", "-q", "--diff"]).exits(1);
    assert!(ran.stdout.starts_with("unsafe  main.c: no fence at the "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("+++"), "{}", ran.stdout);
}

/// What `fences` changes in two threads that store and then load, each in the same way.
#[track_caller]
fn changed(name: &str, header: &str, body: &str, args: &[&str], expected: &[&str]) {
    let thread = |mine, other, result| {
        body.replace("MINE", mine).replace("OTHER", other).replace("RESULT", result) + ";\n "
    };
    let main = MAIN.replace("r1 = both(&x, &y);", &thread("x", "y", "r1"));
    let main = main.replace("x_then_y;", &thread("y", "x", "r2"));
    let scratch = Scratch::new(&format!("c_changes_{name}")).file("main.c", &main).file("both.h", header);
    let mut all = vec!["fences", "main.c", "-q", "--no-races", "--diff"];
    all.extend(args);
    let ran = scratch.run(&all).exits(0);
    let added: Vec<&str> =
        ran.stdout.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++")).collect();
    assert_eq!(added.len(), expected.len(), "{name}: {}", ran.stdout);
    for (line, part) in added.iter().zip(expected) {
        assert!(line.contains(part), "{name}: {part}\n{}", ran.stdout);
    }
    // The program `patch` accepts it, and the result is right.
    let patch = ran.stdout.split_once('\n').map_or("", |(_, patch)| patch);
    std::fs::write(scratch.path("the.patch"), patch).expect("a file can be written");
    let applied = std::process::Command::new("patch")
        .args(["-p1", "-s", "-i", "the.patch"])
        .current_dir(scratch.path("."))
        .status()
        .expect("patch can be started");
    assert!(applied.success(), "{name}: {patch}");
    let mut check = vec!["check", "-q", "--no-races", "main.c"];
    if let [.., "--model", model] = args {
        check.extend(["--model", model]);
    }
    scratch.run(&check).exits(0);
}

const ATOMIC: &str = "#include <stdatomic.h>\n";

#[test]
fn stronger_accesses() {
    let volatile = "#define atomic_int volatile int\n";
    let store = "atomic_store_explicit(&MINE, 1, memory_order_release);\n  RESULT = atomic_load_explicit(&OTHER, memory_order_acquire)";
    let strong = "atomic_store_explicit(&x, 1, memory_order_seq_cst);";
    let other = "atomic_store_explicit(&y, 1, memory_order_seq_cst);";
    changed("seq_cst", ATOMIC, store, &[], &[strong, other]);
    let fence = "__atomic_thread_fence(__ATOMIC_SEQ_CST);";
    changed("dear", ATOMIC, store, &["--cost", "fence=20,seq_cst=30"], &[fence, fence]);
    changed("fences", ATOMIC, store, &["--changes", "fences"], &[fence, fence]);
    changed("robust", ATOMIC, store, &["--goal", "robustness"], &[strong, other]);
    let builtin =
        "__atomic_store_n(&MINE, 1, __ATOMIC_RELAXED);\n  RESULT = __atomic_load_n(&OTHER, __ATOMIC_ACQUIRE)";
    let [x, y] = ["x", "y"].map(|name| format!("__atomic_store_n(&{name}, 1, __ATOMIC_SEQ_CST);"));
    changed("builtin", volatile, builtin, &[], &[&x, &y]);
    let [x, y] = ["x", "y"].map(|name| format!("__atomic_exchange_n(&{name}, 1, __ATOMIC_SEQ_CST);"));
    changed("exchange", volatile, "MINE = 1;\n  RESULT = OTHER", &[], &[&x, &y]);
    let full = "__atomic_thread_fence(__ATOMIC_SEQ_CST);";
    let weak = "MINE = 1;\n  __atomic_thread_fence(__ATOMIC_RELEASE);\n  RESULT = OTHER";
    changed("fence", volatile, weak, &["--cost", "exchange=50"], &[full, full]);
    let sfence = "MINE = 1;\n  __asm__ volatile(\"sfence\" ::: \"memory\");\n  RESULT = OTHER";
    changed(
        "mfence",
        volatile,
        sfence,
        &["--changes", "accesses", "--cost", "exchange=50"],
        &["mfence", "mfence"],
    );
}

/// Under PSO a release store or a store-store fence may be enough.
/// A store after a label, and one that is all that an `if` or a loop does.
#[test]
fn stronger_accesses_after_labels_and_conditions() {
    let text = MAIN
        .replace("#include \"both.h\"\nstatic atomic_int", "static volatile int")
        .replace("r1 = both(&x, &y)", "\n    if (!nothing) x = 1; else x = 2;\n    r1 = y")
        .replace(
            "x_then_y",
            "\n    switch (x) {\n    case 0: y = 1; break;\n    default: label: y = 1;\n    }\n    r2 = x",
        );
    let scratch = Scratch::new("c_fences_labels").file("p.c", text);
    let ran = scratch.run(&["fences", "-q", "p.c", "--changes", "accesses", "--write", "q.c"]).exits(0);
    assert!(ran.stdout.starts_with("repairable  p.c: safe with 2 changes"), "{}", ran.stdout);
    let changed = scratch.read("q.c");
    for statement in ["x, 1", "y, 1"] {
        assert!(
            changed.contains(&format!("__atomic_exchange_n(&{statement}, __ATOMIC_SEQ_CST)")),
            "{changed}"
        );
    }
    scratch.run(&["check", "-q", "q.c"]).exits(0);
}

#[test]
fn weaker_changes_under_pso() {
    let main = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int data, ready;
static void *writer(void *nothing)
{
    atomic_store_explicit(&data, 1, memory_order_relaxed);
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return nothing;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, writer, 0);
    if (atomic_load(&ready))
        assert(atomic_load(&data));
    pthread_join(thread, 0);
    return 0;
}
";
    let scratch = Scratch::new("c_changes_pso").file("main.c", main);
    let run = |args: &[&str]| {
        let mut all = vec!["fences", "main.c", "--format", "json", "--model", "pso"];
        all.extend(args);
        let record: Value =
            serde_json::from_str(&scratch.run(&all).exits(0).stdout).expect("an answer is JSON");
        let sets = record["fence_sets"].as_array().expect("there are sets").iter();
        let change = |fence: &Value| format!("{} {}", fence["change"].as_str().unwrap_or("?"), fence["line"]);
        sets.map(|set| {
            set.as_array().expect("a set is a list").iter().map(change).collect::<Vec<_>>().join(" ")
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(run(&["--all"]), ["release 8", "sfence 7", "seq_cst 7"]);
    assert_eq!(run(&["--cost", "sfence=9"]), ["release 8"]);
    assert_eq!(run(&["--cost", "release=9"]), ["sfence 7"]);
    assert_eq!(run(&["--changes", "accesses", "--cost", "release=99,seq_cst=99"]).len(), 1);
}

/// Where a statement hides in a macro, or a change does not compile, the next possibility is tried.
#[test]
fn the_next_possibility() {
    // The use of the macro is a statement: the fence follows it.
    let header =
        "#include <stdatomic.h>\n#define SET(a) atomic_store_explicit(&a, 1, memory_order_release)\n";
    changed(
        "macro",
        header,
        "SET(MINE);\n  RESULT = atomic_load(&OTHER)",
        &[],
        &["__atomic_thread_fence", "__atomic_thread_fence"],
    );
    // A fence after the store would be inside the condition. The store itself can be changed there.
    let condition =
        "if (atomic_store_explicit(&MINE, 1, memory_order_release), atomic_load(&OTHER))\n  RESULT = 1";
    changed(
        "condition",
        ATOMIC,
        condition,
        &[],
        &["&x, 1, memory_order_seq_cst", "&y, 1, memory_order_seq_cst"],
    );
    // The last use of a macro ends the line before: a fence goes before the next statement.
    let braces =
        "#include <stdatomic.h>\n#define SET(a) { atomic_store_explicit(&a, 1, memory_order_release); }\n";
    changed(
        "no_semicolon",
        braces,
        "SET(MINE)\n  RESULT = atomic_load(&OTHER)",
        &[],
        &["__atomic_thread_fence", "__atomic_thread_fence"],
    );
}

/// Each of them is repaired by one change, unless both sides lack their fence.
#[test]
fn published_bugs() {
    for (file, flag, changes) in [
        ("jdk_parker", "-DBROKEN_1", 1),
        ("musl_unlock", "-DBROKEN_1", 1),
        ("edk2_ring", "-DBROKEN_1", 1),
        ("kthread_sleep", "-DBROKEN_1", 1),
        ("postgres_latch", "-DBROKEN_1", 1),
        ("ompi_barrier", "-DBROKEN_2", 1),
        ("ompi_barrier", "-DBROKEN_1", 2),
    ] {
        let texts = c_texts();
        let name = format!("c/{file}.c");
        let (_, text) = texts.iter().find(|(known, _)| *known == name).expect("it is in the corpus");
        let scratch = Scratch::new(&format!("c_published_{file}{flag}")).file("p.c", text);
        let args = ["fences", "p.c", "--format", "json", "--write", "q.c", "--timeout", "60", "--", flag];
        let answer: Value =
            serde_json::from_str(&scratch.run(&args).exits(0).stdout).expect("an answer is JSON");
        assert_eq!(answer["fence_sets"][0].as_array().map(Vec::len), Some(changes), "{name}: {answer}");
        assert_eq!(answer["fewest"], changes, "{name}");
        scratch.run(&["check", "-q", "q.c", "--timeout", "60", "--", flag]).exits(0);
    }
}
