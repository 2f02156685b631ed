//! Machine-readable output: JUnit's XML, SARIF, checked proofs, and how far each engine got.

use crate::common;

use common::{ENDLESS, FENCED, STORE_BUFFERING, Scratch};
use serde_json::Value;
use snapbox::{assert_data_eq, str};

fn scratch(name: &str) -> Scratch {
    Scratch::new(name)
        .file("t/bad.pal", STORE_BUFFERING)
        .file("t/good.pal", FENCED)
        .file("t/grows.pal", "shared x: 0..1; process P { loop { x = 1 - x; } }")
        .file("t/wrong.pal", "process P { x = ; }")
}

fn read(scratch: &Scratch, file: &str) -> String {
    std::fs::read_to_string(scratch.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn a_folder_as_tests() {
    let scratch = scratch("junit");
    let args = ["check", "t", "--junit", "tests.xml", "--engine", "explicit", "-q"];
    scratch.run(&args).exits(2);
    assert_data_eq!(
        read(&scratch, "tests.xml"),
        str![[r#"
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" errors="1" skipped="1" time="[..]">
  <testsuite name="palisade check" tests="4" failures="1" errors="1" skipped="1" time="[..]">
    <testcase classname="palisade.tso" name="t/bad.pal" time="[..]">
      <failure message="at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)">[..]store x = 1[..]</failure>
    </testcase>
    <testcase classname="palisade.tso" name="t/good.pal" time="[..]"/>
    <testcase classname="palisade.tso" name="t/grows.pal" time="[..]">
      <skipped message="no bad state with buffers up to 8"></skipped>
    </testcase>
    <testcase classname="palisade.tso" name="t/wrong.pal" time="[..]">
      <error message="[..]">error[..]process P { x = ; }[..]</error>
    </testcase>
  </testsuite>
</testsuites>

"#]]
    );
}

/// A refused file is reported with all of its errors.
#[test]
fn every_error_of_a_file() {
    let scratch = Scratch::new("all_errors")
        .file("e.pal", "process P { x = 1; }\nprocess Q {\n  y = 2;\n  z = 3;\n}\n");
    scratch.run(&["check", "e.pal", "--junit", "tests.xml", "--sarif", "found.sarif"]).exits(2);
    let tests = read(&scratch, "tests.xml");
    assert!(tests.contains("(and 2 more errors)"), "{tests}");
    assert!(["x = 1;", "y = 2;", "z = 3;"].iter().all(|part| tests.contains(part)), "{tests}");
    let found: Value = serde_json::from_str(&read(&scratch, "found.sarif")).expect("SARIF is JSON");
    let run = &found["runs"][0];
    for list in [&run["results"], &run["invocations"][0]["toolExecutionNotifications"]] {
        let errors = list.as_array().expect("a list");
        let lines: Vec<&Value> = errors
            .iter()
            .map(|error| &error["locations"][0]["physicalLocation"]["region"]["startLine"])
            .collect();
        assert_eq!(lines, [1, 3, 4], "{found}");
    }
}

#[test]
fn tests_with_expectations_pass_if_these_are_met() {
    let scratch = scratch("junit_expect").file("e.tsv", "file\ttso\nt/bad.pal\tunsafe\nt/good.pal\tunsafe\n");
    let args = ["check", "t/bad.pal", "t/good.pal", "--junit", "tests.xml", "--expect", "e.tsv", "-q"];
    scratch.run(&args).exits(1);
    let tests = read(&scratch, "tests.xml");
    assert!(tests.contains(r#"tests="2" failures="1" errors="0""#), "{tests}");
    assert!(tests.contains("expected unsafe, got safe"), "{tests}");
}

/// Failures are reported where the exit code is 1.
#[test]
fn tests_and_exit_code_agree() {
    let scratch = scratch("junit_agree")
        .file("met.tsv", "file\ttso\ngood.pal\tsafe\n")
        .file("missing.tsv", "file\ttso\ngood.pal\tsafe\ngone.pal\tunsafe\n");
    std::fs::remove_file(scratch.path("t/wrong.pal")).expect("it exists");
    let check = |table: &str, code: i32, totals: &str, part: &str, summary: &str| {
        let args = ["check", "t", "--junit", "tests.xml", "--expect", table, "--engine", "explicit"];
        let ran = scratch.run(&args).exits(code);
        assert!(ran.stdout.contains(summary), "{}", ran.stdout);
        let tests = read(&scratch, "tests.xml");
        assert!(tests.contains(totals) && tests.contains(part), "{tests}");
    };
    check(
        "met.tsv",
        0,
        r#"tests="3" failures="0" errors="0" skipped="2""#,
        r#"<skipped message="there is no expectation for this file">"#,
        "1 of 1 verdicts as expected, 2 files without an expectation\n",
    );
    check(
        "missing.tsv",
        1,
        r#"tests="4" failures="1" errors="0" skipped="2""#,
        r#"<failure message="expected unsafe, got missing: there is no such file">"#,
        "1 of 2 verdicts not as expected, 2 files without an expectation:\n  gone.pal: expected unsafe, got missing\n",
    );
}

/// `safe` for a program without a property says less than people think.
#[test]
fn no_property() {
    let scratch = Scratch::new("no_property")
        .file("t/plain.pal", "shared x: 0..1; process P { x = 1; }")
        .file("t/fault.pal", "shared x: 0..1; process P { x = 2; }")
        .file("t/good.pal", FENCED)
        .file("t/old.trencher", "thread t\ninitial a\ntransition a b write 1 0\nend\n");
    let warned = |args: &[&str], file: &str, code: i32, expected: bool| {
        let ran = scratch.run(&[args, &[file]].concat()).exits(code);
        assert_eq!(
            ran.stderr.matches("warning[no-property]").count(),
            usize::from(expected),
            "{}",
            ran.stderr
        );
        let json = scratch.run(&[args, &[file, "--format", "json"]].concat()).exits(code);
        let record: Value = serde_json::from_str(&json.stdout).expect("a line of JSON");
        let ids: Vec<&str> =
            record["diagnostics"].as_array().into_iter().flatten().filter_map(|d| d["id"].as_str()).collect();
        assert_eq!(ids, if expected { &["no-property"][..] } else { &[] });
        ran.stderr
    };
    let warning = warned(&["check"], "t/plain.pal", 0, true);
    assert!(warning.contains("only faults were looked for") && warning.contains("`assert`"), "{warning}");
    let warning = warned(&["check"], "t/old.trencher", 0, true);
    assert!(
        warning.contains("`palisade robust t/old.trencher` answers the question that Trencher answers"),
        "{warning}"
    );
    warned(&["check"], "t/fault.pal", 1, false);
    warned(&["check"], "t/good.pal", 0, false);
    warned(&["fences"], "t/plain.pal", 0, true);
    warned(&["fences", "--goal", "robustness"], "t/plain.pal", 0, false);
    assert_eq!(scratch.run(&["check", "-q", "t/plain.pal"]).exits(0).stderr, "");
    let folder = scratch.run(&["check", "t"]).exits(1);
    assert!(
        folder.stdout.contains("\n2 files state no property: only faults were looked for\n"),
        "{}",
        folder.stdout
    );
    assert_eq!(folder.stderr, "");
}

#[test]
fn code_scanning_gets_everything_that_is_not_safe() {
    let scratch = scratch("sarif");
    scratch.run(&["check", "t", "--sarif", "out.sarif", "--engine", "explicit", "-q"]).exits(2);
    let sarif: Value = serde_json::from_str(&read(&scratch, "out.sarif")).expect("SARIF is JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let rules: Vec<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    assert_eq!(rules, ["unsafe", "unknown", "refused"]);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"t/bad.pal".into(), &13.into())
    );
    let steps = results[0]["codeFlows"][0]["threadFlows"][0]["locations"].as_array().expect("a run");
    assert!(steps.len() >= 4, "{steps:?}");
    let invocation = &sarif["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false, "a file was refused");
    let notification = &invocation["toolExecutionNotifications"][0];
    let place = &notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "t/wrong.pal");
    // One file, and a file that cannot be written.
    scratch.run(&["check", "t/good.pal", "--sarif", "one.sarif", "-q"]).exits(0);
    assert!(read(&scratch, "one.sarif").contains("\"results\": []"));
    assert!(read(&scratch, "one.sarif").contains("\"executionSuccessful\": true"));
    scratch.run(&["check", "t/good.pal", "--sarif", "no/such/folder.sarif", "-q"]).exits(2);
    scratch.run(&["check", "t/good.pal", "--junit", "no/such/folder.xml", "-q"]).exits(2);
}

#[test]
fn proofs_are_checked_at_once() {
    let scratch = scratch("check_certify");
    scratch.run(&["check", "t/good.pal", "--certify"]).exits(0).prints(str![[r#"
safe  t/good.pal: proof checked
TSO, engine [..], [..] s; proof of [..] elements checked in [..] s

"#]]);
    scratch.run(&["check", "t/good.pal", "--certify", "--engine", "explicit", "-q"]).exits(0).prints(str![[
        r#"
safe  t/good.pal: proof checked by visiting all states

"#
    ]]);
    // Engines that give no proofs of their own.
    scratch.run(&["check", "t/good.pal", "--certify", "--engine", "lazy"]).exits(0).prints(str![[r#"
safe  t/good.pal: proof checked
TSO, engine lazy, [..] s; proof by engine dual; proof of [..] elements checked in [..] s

"#]]);
    scratch.run(&["check", "t/bad.pal", "--certify", "-q"]).exits(1);
    let json = scratch
        .run(&["check", "t/good.pal", "--certify", "--engine", "explicit", "--format", "json"])
        .exits(0);
    let record: Value = serde_json::from_str(&json.stdout).expect("a line of JSON");
    assert_eq!(record["certified"]["kind"], "all-states");
}

#[test]
fn verbose_shows_how_far_the_others_got() {
    let scratch = Scratch::new("others").file("endless.pal", ENDLESS);
    let ran = scratch.run(&["check", "endless.pal", "-v", "--timeout", "1"]).exits(3);
    for engine in ["dual", "explicit", "lazy", "sb"] {
        assert!(ran.stdout.contains(engine), "{engine} is missing:\n{}", ran.stdout);
    }
    assert!(ran.stdout.starts_with("unknown  endless.pal: out of time (1 s)"), "{}", ran.stdout);
}
