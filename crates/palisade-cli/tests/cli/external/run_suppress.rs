//! `palisade run` with suppressions: by a file, by comments, and what the verdict then says.

use super::programs::{RACE, compiled};
use super::sarif_shape;
use crate::common::Scratch;
use serde_json::Value;
use snapbox::str;

const RUN: &[&str] = &["run", "--no-save", "--schedules", "50"];

fn run(scratch: &Scratch, args: &[&str]) -> crate::common::Ran {
    scratch.run(&[RUN, args, &["--", "./t"]].concat())
}

fn json(scratch: &Scratch, args: &[&str], code: i32) -> Value {
    let ran = run(scratch, &[&["--format", "json"], args].concat()).exits(code);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn a_file_silences_races_by_place_and_kind() {
    let scratch = compiled("suppress_race", RACE)
        .file("line", "# known\nrace t.c:3\nrace other.c\n")
        .file("function", "race function:m*n\n")
        .file("all", "race *\n")
        .file("kind", "deadlock t.c:3\n")
        .file("elsewhere", "race t.c:4\n");
    run(&scratch, &[]).exits(5);
    run(&scratch, &["--suppress", "line"]).exits(0).complains("").prints(str![[r#"
clean  ./t: 1 silenced, 50 schedules, [..] events

silenced: 1 finding
  race at t.c:[..] (in 50 schedules, first with --seed 0), by line:2

suppressions that match nothing:
  line:3  race other.c

"#]]);
    for (file, code) in [("function", 0), ("all", 0), ("kind", 5), ("elsewhere", 5)] {
        run(&scratch, &["-q", "--suppress", file]).exits(code);
    }
    let found = json(&scratch, &["--suppress", "line"], 0);
    assert_eq!((&found["verdict"], &found["races"]), (&"clean".into(), &Value::Array(Vec::new())));
    let silenced = &found["silenced"][0];
    assert_eq!((&silenced["kind"], &silenced["by"]), (&"race".into(), &"line:2".into()));
    assert_eq!(found["unused_suppressions"][0]["line"], 3);
    // The exhaustive search says the same: a race does not end an execution.
    let all = ["run", "-q", "--no-save", "--strategy", "exhaustive", "--suppress", "all", "--", "./t"];
    scratch.run(&all).exits(0);
}

#[test]
fn mistakes_in_a_file_are_errors() {
    let scratch = compiled("suppress_mistakes", RACE).file("s", "race *\nrase t.c\nstep-limit *\nrace\n");
    let ran = run(&scratch, &["--suppress", "s"]).exits(2);
    for line in
        ["s:2:1", "s:3:1", "s:4:1", "`rase` is not a kind of finding", "`step-limit` cannot be silenced"]
    {
        assert!(ran.stderr.contains(line), "{line} in {}", ran.stderr);
    }
    run(&scratch, &["--suppress", "missing"]).exits(2);
}

#[test]
fn comments_silence_findings() {
    let comment = |line: &str, comment: &str| RACE.replace(line, &format!("{line} {comment}"));
    let store = "x = 2;";
    let check = |name: &str, source: &str, code: i32| {
        let scratch = compiled(name, source);
        run(&scratch, &["-q"]).exits(code)
    };
    check("suppress_same_line", &comment(store, "// palisade: allow race"), 0);
    check("suppress_line_above", &RACE.replace(store, "/* palisade: allow race */\n x = 2;"), 0);
    check("suppress_code_above", &RACE.replace(store, "; // palisade: allow race\n x = 2;"), 5);
    check("suppress_other_kind", &comment(store, "// palisade: allow deadlock"), 5);
    let ran = check("suppress_unknown", &comment(store, "// palisade: allow rase"), 5);
    assert!(ran.stderr.contains("`rase` is not a kind of finding"), "{}", ran.stderr);
}

/// Fails in some schedules, and would fail again later in all of them.
const TWO_FAILURES: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *run(void *nothing) { x = 1; return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    int seen = x;
    pthread_join(thread, 0);
    assert(seen == EARLY);
    assert(seen != 1);
    return 0;
}
";

#[test]
fn what_a_silenced_failure_cuts_short_is_not_clean() {
    // The first assertion hides the second: it fails in exactly the schedules in which the second would fail.
    let scratch = compiled("suppress_hidden", &TWO_FAILURES.replace("EARLY", "0"))
        .file("s", "assertion t.c:12\n")
        .file("both", "assertion t.c\n");
    run(&scratch, &["-q"]).exits(4);
    run(&scratch, &["--suppress", "s"]).exits(0).prints(str![[r#"
clean  ./t: 1 silenced, 50 schedules, [..] of them ended early at [..], [..] events
...
"#]]);
    let search = ["run", "--no-save", "--strategy", "exhaustive", "--suppress", "s", "--", "./t"];
    scratch.run(&search).exits(3).prints(str![[r#"
unknown  ./t: 1 silenced, [..] partial orders, not all, [..] ended early at [..], [..] events
...
1 of 2 schedules ended early at a silenced failure, and what the program does after that is not known.

"#]]);
    // With the other assertion in front, only the second is left.
    let scratch = compiled("suppress_remaining", &TWO_FAILURES.replace("EARLY", "1"))
        .file("s", "assertion t.c:12\n")
        .file("both", "assertion t.c\n");
    let found = json(&scratch, &["--suppress", "s"], 4);
    assert_eq!(found["failures"][0]["places"][0]["place"]["line"], 13, "{found}");
    // Nothing is known if no schedule comes to its end.
    run(&scratch, &["--suppress", "both"]).exits(3).prints(str![[r#"
unknown  ./t: 2 silenced, 50 schedules, 50 of them ended early at silenced failures, [..] events
...
All 50 schedules ended early at silenced failures, and what the program does after that is not known.

"#]]);
    // The first finding that is not silenced ends the run.
    let found = json(&scratch, &["--suppress", "s", "--stop-at-first"], 4);
    assert_eq!(found["failures"].as_array().map(Vec::len), Some(1), "{found}");
}

const LEAK: &str = "\
#include <pthread.h>
#include <stdatomic.h>
#include <assert.h>
static atomic_int x;
static void *run(void *nothing) { x = 1; assert(x == EXPECTED); return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    return 0;
}
";

#[test]
fn threads_may_outlive_main() {
    let scratch = compiled("suppress_leak", &LEAK.replace("EXPECTED", "1")).file("s", "leaked-threads *\n");
    run(&scratch, &["-q"]).exits(4);
    run(&scratch, &["-q", "--suppress", "s"]).exits(0);
    run(&scratch, &["-q", "--allow-leaked-threads"]).exits(0);
    let search = |scratch: &Scratch, code: i32| {
        let search = ["run", "--no-save", "-q", "--strategy", "exhaustive", "--allow-leaked-threads"];
        scratch.run(&[&search[..], &["--", "./t"]].concat()).exits(code)
    };
    search(&scratch, 0);
    // What these threads do counts all the same.
    let scratch = compiled("suppress_leak_fails", &LEAK.replace("EXPECTED", "2"));
    run(&scratch, &["-q", "--allow-leaked-threads"]).exits(4);
    search(&scratch, 4);
}

#[test]
fn sarif_lists_what_is_suppressed() {
    let source =
        RACE.replace("int main", "static int y; static void *other(void *n) { y = 1; return n; }\nint main");
    let source = source.replace("    x = 2;", "    pthread_t t; pthread_create(&t, 0, other, 0);\n    y = 2; // palisade: allow race\n    x = 2;\n    pthread_join(t, 0);");
    let scratch = compiled("suppress_sarif", &source).file("s", "race t.c:3\n");
    let results = |args: &[&str], code: i32| -> Vec<Value> {
        run(&scratch, &[&["-q", "--sarif", "out.sarif"], args].concat()).exits(code);
        let sarif: Value = serde_json::from_str(&scratch.read("out.sarif")).expect("SARIF is JSON");
        sarif_shape::check(&sarif);
        sarif["runs"][0]["results"].as_array().expect("results").clone()
    };
    let found = results(&[], 5);
    let kinds = |found: &[Value]| -> Vec<Value> {
        found.iter().map(|result| result["suppressions"][0]["kind"].clone()).collect()
    };
    assert_eq!(kinds(&found), [Value::Null, "inSource".into()]);
    assert_eq!(found[0]["suppressions"], Value::Array(Vec::new()), "either all have it, or none");
    let found = results(&["--suppress", "s"], 0);
    let mut kinds = kinds(&found);
    kinds.sort_by_key(Value::to_string);
    assert_eq!(kinds, ["external", "inSource"]);
}
