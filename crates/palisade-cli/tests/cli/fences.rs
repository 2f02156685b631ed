//! Transcripts of `palisade fences`.

use crate::common;

use common::{FENCED, STORE_BUFFERING, Scratch};
use snapbox::str;

/// The flags of Dekker's algorithm with one store too many: the fence may be after either store.
const CHOICE: &str = "\
shared flag[2]: bool;
shared want: 0..2;

process P(i: 0..1) {
    flag[i] = true;
    want = i;
    await !flag[1 - i];
cs: skip;
}

forbid P(0)@cs && P(1)@cs;
";

/// Wrong under every memory model.
const WRONG: &str = "\
shared x: 0..2;
process P[2] {
    let r = x;
    x = r + 1;
}
final x == 2;
";

fn scratch(name: &str) -> Scratch {
    Scratch::new(name)
        .file("sb.pal", STORE_BUFFERING)
        .file("fenced.pal", FENCED)
        .file("choice.pal", CHOICE)
        .file("wrong.pal", WRONG)
}

#[test]
fn a_smallest_set_with_reasons() {
    scratch("fences_smallest")
        .run(&["fences", "sb.pal"])
        .exits(0)
        .prints(str![[r#"
repairable  sb.pal: safe with 2 fences

fences
  fence in P, after line 4: x = 1;
  fence in Q, after line 9: y = 1;

Without the fence after line 4, at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)

step   process  line  instruction        effect           buffer P  buffer Q  memory x  y
...
* step [..]: P reads y while its store from step [..] is still in the buffer
...
Without the fence after line 9, at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)
...
* step [..]: Q reads x while its store from step [..] is still in the buffer
...
TSO, engine [..], 3 engine calls, [..] s

"#]])
        .complains("");
}

#[test]
fn all_minimal_sets() {
    scratch("fences_all").run(&["fences", "choice.pal", "--all"]).exits(0).prints(str![[r#"
repairable  choice.pal: safe with 1 fence, 2 minimal sets

set 1 of 2
  fence in P, after line 5: flag[i] = true;
      needed: without it, P(0) and P(1) are both at cs (line 11: forbid P(0)@cs && P(1)@cs)

set 2 of 2
  fence in P, after line 6: want = i;
      needed: without it, P(0) and P(1) are both at cs (line 11: forbid P(0)@cs && P(1)@cs)

TSO, engine [..], 3 engine calls, [..] s

"#]]);
}

#[test]
fn none_needed() {
    scratch("fences_none").run(&["fences", "fenced.pal"]).exits(0).prints(str![[r#"
safe  fenced.pal: no fences needed

TSO, engine explicit, 1 engine call, [..] s

"#]]);
}

#[test]
fn no_fences_can_help() {
    let ran = scratch("fences_wrong").run(&["fences", "wrong.pal"]).exits(1).prints(str![[r#"
unsafe  wrong.pal: no fences can help, because it is wrong under SC too: at the end, x = 1 (line 6: final x == 2)

step   process  line  instruction  effect       memory x
...
TSO, engine [..], 1 engine call, [..] s

"#]]);
    assert!(!ran.stdout.contains("buffer"), "the run is one of SC:\n{}", ran.stdout);
}

#[test]
fn the_places_allowed_do_not_suffice() {
    scratch("fences_never").run(&["fences", "sb.pal", "-q", "--never", "4"]).exits(1).prints(str![[r#"
unsafe  sb.pal: no fence at the 1 place allowed helps: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)

"#]]);
}

#[test]
fn written_back() {
    let scratch = scratch("fences_write");
    scratch.run(&["fences", "-q", "sb.pal", "--write", "fixed.pal"]).exits(0).complains("");
    let expected = STORE_BUFFERING
        .replace("    x = 1;\n", "    x = 1;\n    fence;\n")
        .replace("    y = 1;\n", "    y = 1;\n    fence;\n");
    assert_eq!(scratch.read("fixed.pal"), expected);
    scratch.run(&["check", "-q", "fixed.pal"]).exits(0);
    scratch.run(&["fences", "-q", "fixed.pal", "--all"]).exits(0).prints(str![[r#"
safe  fixed.pal: no fences needed

"#]]);
    scratch.run(&["fences", "-q", "wrong.pal", "--write", "none.pal"]).exits(1).complains("");
    assert!(!scratch.path("none.pal").exists());
    scratch.run(&["fences", "wrong.pal", "--write", "none.pal"]).exits(1).complains(str![[r#"
none.pal: not written, there are no fences to insert

"#]]);
}

#[test]
fn json() {
    let scratch = scratch("fences_json");
    let object = |args: &[&str], code: i32| -> serde_json::Value {
        let mut all = vec!["fences", "--format", "json"];
        all.extend(args);
        let ran = scratch.run(&all).exits(code);
        assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
        serde_json::from_str(&ran.stdout).expect("one JSON object")
    };
    let found = object(&["choice.pal", "--all"], 0);
    for (field, expected) in [
        ("schema_version", "1"),
        ("command", "\"fences\""),
        ("file", "\"choice.pal\""),
        ("model", "\"tso\""),
        ("goal", "\"safety\""),
        ("verdict", "\"repairable\""),
        ("complete", "true"),
        ("costs", "[1,1]"),
    ] {
        assert_eq!(found[field].to_string(), expected, "{field}");
    }
    let sets = found["fence_sets"].as_array().expect("a list of sets");
    assert_eq!(sets.len(), 2);
    let fence = &sets[0][0];
    assert_eq!(fence["process"], "P");
    assert_eq!((fence["line"].as_u64(), fence["column"].as_u64()), (Some(5), Some(5)));
    assert_eq!(fence["label"], serde_json::Value::Null);
    assert_eq!((fence["side"].as_str(), fence["fence"].as_str()), (Some("after"), Some("fence")));
    assert_eq!(fence["text"], "flag[i] = true;");
    assert!(fence["without"]["violation"].as_str().is_some_and(|text| text.contains("both at cs")));
    assert!(fence["without"]["run"].as_array().is_some_and(|steps| steps.len() > 4));
    assert!(found["stats"]["engine_calls"].as_u64().is_some_and(|calls| calls == 3));

    let none = object(&["fenced.pal"], 0);
    assert_eq!(none["fence_sets"].to_string(), "[[]]");
    let wrong = object(&["wrong.pal"], 1);
    assert_eq!((wrong["verdict"].as_str(), wrong["wrong_under"].as_str()), (Some("unsafe"), Some("sc")));
    assert_eq!(wrong["fence_sets"].to_string(), "[]");
    assert!(wrong["run"].as_array().is_some_and(|steps| !steps.is_empty()));
    let refused = Scratch::new("fences_json_refused").file("bad.pal", "process {");
    let ran = refused.run(&["fences", "--format", "json", "bad.pal"]).exits(2);
    assert!(ran.stdout.contains("\"error\""), "{}", ran.stdout);
}

#[test]
fn robustness() {
    let scratch = Scratch::new("fences_robust").file(
        "sb.pal",
        "shared x, y: 0..1;\nprocess P { x = 1; let r = y; }\nprocess Q { y = 1; let r = x; }\n",
    );
    scratch.run(&["fences", "-q", "sb.pal"]).exits(0).prints(str![[r#"
safe  sb.pal: no fences needed

"#]]);
    scratch.run(&["fences", "sb.pal", "--goal", "robustness"]).exits(0).prints(str![[r#"
repairable  sb.pal: robust with 2 fences

fences
  fence in P, after line 2: x = 1;
  fence in Q, after line 3: y = 1;

Without the fence after line 2, P's line 2 (let r = y;) takes effect before its line 2 (x = 1;)
...
Without the fence after line 3, Q's line 3 (let r = x;) takes effect before its line 3 (y = 1;)
...
TSO, engine attacks, 3 engine calls, [..] s

"#]]);
    scratch.run(&["fences", "-q", "sb.pal", "--goal", "robustness", "--only", "2"]).exits(1).prints(str![[r#"
not-robust  sb.pal: no fence at the 1 place allowed helps: Q's line 3 (let r = x;) takes effect before its line 3 (y = 1;)

"#]]);
    let json = scratch.run(&["fences", "sb.pal", "--goal", "robustness", "--format", "json"]).exits(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("one JSON object");
    assert_eq!((json["verdict"].as_str(), json["goal"].as_str()), (Some("repairable"), Some("robustness")));
    assert!(json["fence_sets"][0][1]["without"]["run"].as_array().is_some_and(|steps| steps.len() > 3));
}

#[test]
fn usage() {
    let scratch = scratch("fences_usage");
    scratch.run(&["fences", "sb.pal", "--only", "1"]).exits(2).complains(str![[r#"
error[no-such-place]: sb.pal: no fence can be placed at `1`
...
"#]]);
    for wrong in [
        ["--only", "0"],
        ["--weight", "5"],
        ["--weight", "5=0"],
        ["--place", "nowhere"],
        ["--goal", "speed"],
        ["--model", "sc"],
        ["--engine", "magic"],
    ] {
        scratch.run(&["fences", "sb.pal", wrong[0], wrong[1]]).exits(2);
    }
    scratch.run(&["fences", "missing.pal"]).exits(2);
    let folder = Scratch::new("fences_folder").file("f/a.pal", FENCED).file("f/b.pal", FENCED);
    folder.run(&["fences", "f"]).exits(2);
}

#[test]
fn out_of_time() {
    let scratch = Scratch::new("fences_time").file("endless.pal", common::ENDLESS);
    let ran = scratch.run(&["fences", "endless.pal", "--timeout", "0.2"]).exits(3);
    assert!(ran.stdout.starts_with("unknown  endless.pal: out of time (0.2 s)"), "{}", ran.stdout);
}

#[test]
fn engines_have_their_goals() {
    let scratch = scratch("fences_engines");
    let run = |engine: &str, goal: &str| {
        scratch.run(&["fences", "sb.pal", "--engine", engine, "--goal", goal]).exits(2).stderr
    };
    let complaint = run("attacks", "safety");
    assert!(complaint.contains("the engine `attacks` is for robustness"), "{complaint}");
    assert!(complaint.contains("add `--goal robustness`"), "{complaint}");
    assert!(run("dual", "robustness").contains("the engine `dual` is for safety"));
}

/// Fences that are enough for any number of threads, and for threads that are started without bound. One fence less is not
/// enough, and that has a run.
#[test]
fn any_number_of_threads_and_started_ones() {
    let side = |own: &str, other: &str, mine: &str, theirs: &str| {
        format!("{own} = 1; let r = {other}; if (r == 0) {{ {mine} = 1; assert({theirs} == 0); }}")
    };
    let (left, right) = (side("x", "y", "a", "b"), side("y", "x", "b", "a"));
    let any =
        format!("shared x, y, a, b: 0..1;\nprocess W[*] {{\n{left}\n}}\nprocess V[*] {{\n{right}\n}}\n");
    let started = format!(
        "shared x, y, a, b: 0..1;\nprocess Main {{ loop {{ choose {{ spawn W; }} or {{ spawn V; }} }} }}\n\
         process W on spawn {{\n{left}\n}}\nprocess V on spawn {{\n{right}\n}}\n"
    );
    let scratch = Scratch::new("fences_any").file("any.pal", &any).file("started.pal", &started);
    for file in ["any.pal", "started.pal"] {
        for goal in ["safety", "robustness"] {
            let word = if goal == "safety" { "safe" } else { "robust" };
            let args = ["fences", file, "--goal", goal, "--write", "fixed.pal"];
            let ran = scratch.run(&args).exits(0);
            assert!(
                ran.stdout.starts_with(&format!("repairable  {file}: {word} with 2 fences\n")),
                "{}",
                ran.stdout
            );
            let command = if goal == "safety" { "check" } else { "robust" };
            scratch.run(&[command, "fixed.pal"]).exits(0);
            scratch.run(&[command, file]).exits(1);
            let fixed = std::fs::read_to_string(scratch.path("fixed.pal")).expect("it was written");
            let half = fixed.replacen("fence;", "skip;", 1);
            std::fs::write(scratch.path("half.pal"), half).expect("a file can be written");
            scratch.run(&[command, "half.pal"]).exits(1);
        }
    }
}

/// As Git quotes them: a name cannot add lines to a patch.
#[test]
#[cfg(unix)]
fn names_in_patches_are_quoted() {
    let name = "a\n+++ b\u{1b}[31m.pal";
    let scratch = Scratch::new("fences_names").file(name, STORE_BUFFERING);
    let ran = scratch.run(&["fences", "-q", name, "--diff"]).exits(0);
    let quoted = r#"a\n+++ b\033[31m.pal""#;
    assert!(ran.stdout.contains(&format!("\n--- \"a/{quoted}\n+++ \"b/{quoted}\n@@ ")), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
}
