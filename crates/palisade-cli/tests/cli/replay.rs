//! Transcripts of `palisade replay` and `palisade show`.

use crate::common;

use common::{STORE_BUFFERING, Scratch};
use snapbox::str;

/// A folder with a program and the witness against it.
fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name).file("sb.pal", STORE_BUFFERING);
    scratch.run(&["check", "-q", "sb.pal", "--witness", "w.json"]).exits(1);
    scratch
}

#[test]
fn a_good_witness() {
    let scratch = scratch("replay_good");
    scratch.run(&["replay", "w.json"]).exits(0).complains("").prints(str![[r#"
valid  w.json: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)

step   process  line  instruction        effect           buffer P  buffer Q  memory x  y
   0                  (start)                                                        0  0
   1   P           4  x = 1;             store x = 1      x=1                        0  0
   2*  P           5  let r = y;         read y = 0       x=1                        0  0
   3   Q           9  y = 1;             store y = 1      x=1       y=1              0  0
   4   Q              (store of step 3)  y = 1 to memory  x=1                        0  1
   5   Q          10  let r = x;         read x = 0       x=1                        0  1
   6   P              (store of step 1)  x = 1 to memory                             1  1

* step 2: P reads y while its store from step 1 is still in the buffer

"#]]);
    scratch.run(&["replay", "--format", "json", "w.json"]).exits(0).prints(str![[r#"
{"command":"replay","file":"w.json","language":"pal","model":"tso","program":"sb.pal","schema_version":1,"steps":6,"verdict":"valid","violation":"at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)"}

"#]]);
}

#[test]
fn a_program_that_has_moved() {
    let scratch = scratch("replay_moved").file("away/p.pal", STORE_BUFFERING);
    std::fs::remove_file(scratch.path("sb.pal")).expect("the program can be removed");
    scratch.run(&["replay", "-q", "w.json"]).exits(2).complains(str![[r#"
error[no-such-file]: sb.pal: there is no such file or folder


"#]]);
    scratch.run(&["replay", "-q", "w.json", "--program", "away/p.pal"]).exits(0);
}

#[test]
fn a_program_that_was_changed() {
    let fenced = STORE_BUFFERING.replace("x = 1;", "x = 1; fence;");
    let scratch = scratch("replay_changed").file("sb.pal", fenced);
    scratch
        .run(&["replay", "w.json"])
        .exits(1)
        .complains(str![[r#"
warning[program-changed]: w.json: sb.pal has changed since the witness was found

"#]])
        .prints(str![[r#"
invalid  w.json: step 2 is not possible: the store buffer must be empty first

"#]]);
    let renamed = STORE_BUFFERING.replace("shared x", "shared z, x");
    scratch.file("sb.pal", renamed).run(&["replay", "w.json"]).exits(1).prints(str![[r#"
invalid  w.json: the initial value of `z` is missing

"#]]);
}

#[test]
fn a_different_program() {
    let fenced = STORE_BUFFERING.replace("x = 1;", "x = 1; fence;");
    let scratch = scratch("replay_another").file("other.pal", fenced);
    scratch.run(&["replay", "w.json", "--program", "other.pal"]).exits(1).complains(str![[r#"
warning[another-program]: w.json: other.pal is not the program that the witness was found for

"#]]);
}

#[test]
fn damaged_witnesses() {
    let scratch = scratch("replay_damaged");
    let good: serde_json::Value = serde_json::from_str(&scratch.read("w.json")).expect("a witness is JSON");
    let steps = good["steps"].as_array().expect("steps").len();
    let check = |code: i32, part: &str, damage: &dyn Fn(&mut serde_json::Value)| {
        let mut bad = good.clone();
        damage(&mut bad);
        std::fs::write(scratch.path("bad.json"), bad.to_string()).expect("a file can be written");
        let ran = scratch.run(&["replay", "bad.json"]).exits(code);
        assert!(
            ran.stdout.contains(part) || ran.stderr.contains(part),
            "{part}:\n{}{}",
            ran.stdout,
            ran.stderr
        );
    };
    check(1, "the run does not start in an initial state", &|w| w["memory"]["x"] = 1.into());
    check(1, "step 1 is not possible", &|w| w["steps"][0]["thread"] = 77.into());
    check(1, "step 1 does not do what the file says", &|w| w["steps"][0]["effect"]["value"] = 5.into());
    check(1, "step 2 overtakes the store of step 1, but the file says the stores of steps 7, 8", &|w| {
        w["steps"][1]["overtakes"] = serde_json::json!([7, 8]);
    });
    check(1, "step 1 is missing", &|w| {
        w["steps"].as_array_mut().expect("steps").remove(0);
    });
    check(1, "the last state, after step", &|w| {
        w["steps"].as_array_mut().expect("steps").truncate(steps - 1);
    });
    check(1, "no variable `q`", &|w| w["memory"]["q"] = 0.into());
    check(1, "unknown memory model `arm`", &|w| w["model"] = "arm".into());
    check(2, "bad-witness", &|w| w["schema_version"] = 99.into());
    check(2, "bad-witness", &|w| w["instantiation"]["any"] = 4_000_000_000u32.into());
    check(2, "bad-witness", &|w| w["program"]["language"] = "cobol".into());
    check(2, "no-such-file", &|w| w["program"]["file"] = "nowhere.pal".into());
    check(2, "bad-witness", &|w| w["steps"] = "none".into());
    check(2, "bad-witness", &|w| *w = serde_json::json!([1, 2]));
}

#[test]
fn files_that_are_not_witnesses() {
    let scratch = Scratch::new("replay_wrong").file("empty.json", "").file("sb.pal", STORE_BUFFERING);
    scratch.run(&["replay", "empty.json"]).exits(2).prints("").complains(str![[r#"
error[bad-witness]: empty.json: not a witness file: EOF while parsing a value at line 1 column 0
 |
 = help: give a file that `palisade check --witness FILE` wrote, unchanged

"#]]);
    scratch.run(&["replay", "sb.pal"]).exits(2).prints("");
    let ran = scratch.run(&["certify", "sb.pal"]).exits(2).prints("");
    assert!(ran.stderr.contains("that `palisade check --certificate FILE` wrote"), "{}", ran.stderr);
    scratch.run(&["replay", "missing.json"]).exits(2).prints("");
}

#[test]
fn no_run_to_keep() {
    let scratch = scratch("replay_none");
    let ran = scratch.run(&["check", "sb.pal", "--model", "sc", "--witness", "none.json"]).exits(0);
    assert!(ran.stderr.contains("there is no run to keep"), "{}", ran.stderr);
    assert!(!scratch.path("none.json").exists());
}

#[test]
fn show() {
    let scratch = scratch("replay_show");
    let shown = scratch.run(&["show", "sb.pal", "--as", "pal"]).exits(0);
    let scratch = scratch.file("again.pal", &shown.stdout);
    scratch.run(&["show", "again.pal", "--as", "pal"]).exits(0).prints(shown.stdout.as_str());
    let dot = scratch.run(&["show", "sb.pal", "--as", "dot"]).exits(0);
    assert!(dot.stdout.starts_with("digraph") && dot.stdout.ends_with("}\n"), "{}", dot.stdout);
}

#[test]
fn show_draws_programs_and_runs() {
    let scratch = scratch("replay_svg");
    let drawn = scratch.run(&["show", "sb.pal", "--as", "svg"]).exits(0).stdout;
    assert!(drawn.starts_with("<svg xmlns=") && drawn.ends_with("</svg>\n"), "{drawn}");
    assert!(drawn.contains(">process P<") && drawn.contains("x = 1"), "{drawn}");
    scratch.run(&["check", "sb.pal", "--witness", "run.json"]).exits(1);
    let drawn = scratch.run(&["show", "run.json", "--as", "svg"]).exits(0).stdout;
    for part in ["class=\"overtakes\"", "class=\"bar", "sb.pal, TSO: ", "prefers-color-scheme: dark"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    assert!(!drawn.contains("http://www.w3.org/1999/xhtml") && !drawn.contains("<script"), "it stands alone");
    // A run that does not replay is not drawn, and a program that is too large is refused.
    let run = std::fs::read_to_string(scratch.path("run.json")).expect("it was written");
    let scratch = scratch
        .file("bad.json", run.replacen("\"thread\": 0", "\"thread\": 1", 1))
        .file("no.json", "{}")
        .file("long.pal", format!("shared x: 0..1;\nprocess P {{ {} }}\n", "x = 1; ".repeat(300)));
    let refused = scratch.run(&["show", "run.json", "--as", "pal"]).exits(2);
    assert!(refused.stderr.contains("error[not-a-program]: run.json: this is a run"), "{}", refused.stderr);
    scratch.run(&["show", "bad.json", "--as", "svg"]).exits(2);
    scratch.run(&["show", "no.json", "--as", "svg"]).exits(2);
    let refused = scratch.run(&["show", "long.pal", "--as", "svg"]).exits(2);
    assert!(refused.stderr.contains("too-large-to-draw"), "{}", refused.stderr);
}
