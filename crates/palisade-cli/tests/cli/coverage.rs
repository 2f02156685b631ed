//! Transcripts about what no run reaches.

use crate::common;

use common::Scratch;
use serde_json::Value;
use snapbox::str;

const UNREACHED: &str = "\
shared x, y: 0..1;
process P {
    x = 1;
    await y == 1;
    cs: skip;
    assert(x == 0);
}
process Q on spawn { skip; }
forbid P@cs && x == 1;
final x == 1;
";

#[test]
fn safe_says_what_it_is_not_about() {
    let scratch = Scratch::new("coverage_warnings").file("p.pal", UNREACHED);
    let ran = scratch.run(&["check", "p.pal"]).exits(0);
    let warnings: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("warning")).collect();
    assert_eq!(
        warnings,
        [
            "warning[never-passed]: no run under TSO gets past this wait",
            "warning[never-reached]: no run under TSO reaches the label `cs`",
            "warning[never-reached]: no run under TSO reaches this assertion",
            "warning[never-started]: no run under TSO starts the process `Q`",
            "warning[never-ends]: no run under TSO ends, so this `final` is never checked",
        ]
    );
    let ran = scratch.run(&["check", "p.pal", "--format", "json", "--sarif", "p.sarif"]).exits(0);
    let record: Value = serde_json::from_str(&ran.stdout).expect("a line of JSON");
    let lines = record["diagnostics"].as_array().into_iter().flatten().map(|found| found["line"].as_u64());
    assert_eq!(lines.collect::<Vec<_>>(), [Some(4), Some(5), Some(6), Some(8), Some(10)]);
    let sarif: Value = serde_json::from_str(&scratch.read("p.sarif")).expect("SARIF is JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 5);
    assert_eq!((&results[2]["ruleId"], &results[2]["level"]), (&"never-reached".into(), &"warning".into()));
    let region = &results[2]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 6);
    // All models: what no run reaches under PSO, none reaches under the others.
    let ran = scratch.run(&["check", "p.pal", "--model", "all"]).exits(0);
    assert_eq!(ran.stderr.matches("no run under PSO").count(), 5, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("no run under").count(), 5, "{}", ran.stderr);
}

#[test]
fn what_must_not_be_reached_is_not_missed() {
    let check = |name: &str, text: &str, expected: usize| {
        let scratch = Scratch::new(&format!("coverage_{name}")).file("p.pal", text);
        let ran = scratch.run(&["check", "p.pal"]).exits(0);
        assert_eq!(ran.stderr.matches("warning[never").count(), expected, "{text}: {}", ran.stderr);
    };
    let with = |body: &str, property: &str| {
        format!("shared x: 0..2; process P {{ x = 1; {body} }} process Q {{ let r = x; }} {property}")
    };
    check("label", &with("if x == 2 { bad: skip; }", "forbid P@bad;"), 0);
    check("wait", &with("await x == 2; bad: skip;", "forbid P@bad || x == 2;"), 0);
    check("count", &with("await x == 2; bad: skip;", "forbid count(P@bad) >= 1;"), 0);
    check("fail", &with("if x == 2 { assert(false); }", ""), 0);
    check("two", &with("if x == 2 { a: skip; }", "forbid P@a && x == 1;"), 1);
    check("counts", &with("if x == 2 { a: skip; }", "forbid count(P@a) >= 2;"), 1);
    check("assertion", &with("if x == 2 { assert(x == 1); }", ""), 1);
    check("reached", &with("if x == 1 { a: assert(x == 1); }", "final x == 1;"), 0);
    // Only with store buffers.
    let sb = "shared x, y: 0..1; process P { x = 1; if y == 0 { p: skip; } } \
              process Q { y = 1; if x == 0 { q: skip; } } forbid P@p && Q@q && x == 2;";
    check("buffers", sb, 0);
    // An answer other than `safe` has a better reason to be looked at.
    let scratch =
        Scratch::new("coverage_unsafe").file("p.pal", with("await x == 2; a: skip;", "forbid x == 1;"));
    let ran = scratch.run(&["check", "p.pal"]).exits(1);
    assert!(!ran.stderr.contains("never"), "{}", ran.stderr);
}

#[test]
fn coverage_is_listed_on_request() {
    let scratch = Scratch::new("coverage_listed")
        .file("p.pal", UNREACHED)
        .file("all.pal", "shared x: 0..1; process P { loop { x = 1; } } forbid x == 2;")
        .file("open.pal", "shared x: 0..1; process P { loop { x = 1; if x == 0 { x = 0; } } } forbid x == 2;")
        .file("any.pal", "shared x: 0..2; process P[*] { x = 1; if x == 2 { x = 0; } } forbid x == 2;")
        .file(
            "bad.pal",
            "shared x: 0..1; process P { x = 1; assert(x == 0); skip; } process Q { x = 0; x = 1; }",
        );
    scratch.run(&["check", "p.pal", "--coverage"]).exits(0).prints(str![[r#"
safe  p.pal
a stuck state was seen; --deadlock shows it
coverage: 3 of 5 statements are never reached
  line 5: skip
  line 6: assert(x == 0)
  line 8: skip
TSO, engine [..]

"#]]);
    let listed = |args: &[&str], code: i32, expected: &str| {
        let ran = scratch.run(&[args, &["--coverage"]].concat()).exits(code);
        assert!(ran.stdout.contains(expected), "{args:?}: {}", ran.stdout);
    };
    listed(&["check", "all.pal"], 0, "coverage: every statement is reached\n");
    let open = "coverage is not known: 1 of 4 statements was not reached so far \
                (only runs with buffers up to 8 were searched)\n  line 1: x = 0\n";
    listed(&["check", "open.pal"], 0, open);
    listed(
        &["check", "open.pal", "--model", "sc"],
        0,
        "coverage: 1 of 4 statements is never reached\n  line 1: x = 0",
    );
    // Any number of processes: no process can do it, whatever the others do.
    listed(&["check", "any.pal"], 0, "coverage: 1 of 3 statements is never reached\n  line 1: x = 0");
    // A program that breaks has its coverage, too.
    listed(&["check", "bad.pal"], 1, "coverage: every statement is reached\n");
    scratch.run(&["check", "p.pal", "--coverage", "-q", "--html", "p.html"]).exits(0);
    let page = scratch.read("p.html");
    assert!(page.contains("<li class=\"line unreached\" data-line=\"6\">"));
    assert!(page.contains("3 of 5 statements are never reached") && page.contains("never-started"));
}
