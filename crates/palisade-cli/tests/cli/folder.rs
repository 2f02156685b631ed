//! Transcripts of `palisade check` on many files.

use crate::common;

use common::{FENCED, STORE_BUFFERING, Scratch};
use snapbox::str;
use std::process::Stdio;

fn scratch(name: &str) -> Scratch {
    Scratch::new(name)
        .file("d/b/sb.pal", STORE_BUFFERING)
        .file("d/a.pal", FENCED)
        .file("d/c.pal", FENCED)
        .file("d/notes.txt", "Not a program at all.\n")
        .file("d/readme.md", "# nothing\n")
        .file("d/.hidden.pal", "nonsense")
}

#[test]
fn a_folder() {
    let scratch = scratch("folder_plain");
    for jobs in ["1", "7"] {
        scratch.run(&["check", "d", "--jobs", jobs]).exits(1).complains("").prints(str![[r#"
safe  d/a.pal
unsafe  d/b/sb.pal: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)
safe  d/c.pal

verdict  files
safe         2
unsafe       1
unknown      0
3 files in [..] s

"#]]);
    }
}

#[test]
fn refused_files_do_not_stop_the_others() {
    scratch("folder_refused")
        .file("d/bad.pal", "shared x")
        .run(&["check", "d"])
        .exits(2)
        .complains(str![[r#"
error[missing-semicolon]: expected `;`, found the end of the file
 --> d/bad.pal:1:9
  |
1 | shared x
  |         ^ `;` is missing here


"#]])
        .prints(str![[r#"
safe  d/a.pal
unsafe  d/b/sb.pal: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)
safe  d/c.pal

verdict  files
safe         2
unsafe       1
unknown      0
error        1
4 files in [..] s

"#]]);
}

#[test]
fn json_has_one_object_per_file() {
    let ran = scratch("folder_json")
        .file("d/bad.pal", "shared x")
        .run(&["check", "--format", "json", "d"])
        .exits(2);
    let objects: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let verdicts: Vec<(&str, Option<&str>)> = objects
        .iter()
        .map(|object| (object["file"].as_str().expect("a file"), object["verdict"].as_str()))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("d/a.pal", Some("safe")),
            ("d/b/sb.pal", Some("unsafe")),
            ("d/bad.pal", None),
            ("d/c.pal", Some("safe"))
        ]
    );
}

#[test]
fn expectations() {
    let scratch = scratch("folder_expect")
        .file(
            "right.tsv",
            "file\tsc\ttso\na.pal\tsafe\tunreachable\nb/sb.pal\tsafe\treachable\nc.pal\t-\t-\n",
        )
        .file("wrong.tsv", "a.pal\tunsafe\nb/sb.pal\tunsafe\nmissing.pal\tsafe\n");
    let expect = |table: &str, model: &str| scratch.run(&["check", "d", "--expect", table, "--model", model]);
    expect("right.tsv", "tso").exits(0).prints(str![[r#"
safe  d/a.pal
unsafe  d/b/sb.pal: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)
safe  d/c.pal

verdict  files
safe         2
unsafe       1
unknown      0
3 files in [..] s
2 of 2 verdicts as expected, 1 file without an expectation

"#]]);
    expect("right.tsv", "sc").exits(0);
    expect("right.tsv", "pso").exits(2).complains(str![[r#"
error[bad-expectation]: the table has no verdicts for PSO
 --> right.tsv:1:1
  |
1 | file    sc    tso
  | ^^^^^^^^^^^^^^^^^ no column `pso` or `verdict`


"#]]);
    expect("wrong.tsv", "tso").exits(1).prints(str![[r#"
safe  d/a.pal
unsafe  d/b/sb.pal: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)
safe  d/c.pal

verdict  files
safe         2
unsafe       1
unknown      0
3 files in [..] s
2 of 3 verdicts not as expected, 1 file without an expectation:
  a.pal: expected unsafe, got safe
  missing.pal: expected safe, got missing

"#]]);
    let ran = scratch.run(&["check", "-q", "d", "--expect", "wrong.tsv"]).exits(1);
    assert!(ran.stderr.contains("a.pal: expected unsafe, got safe"), "{}", ran.stderr);
}

#[test]
fn verdicts_as_a_table_that_can_be_expected() {
    let scratch = scratch("folder_tsv");
    scratch.run(&["check", "-q", "d", "--tsv", "out.tsv"]).exits(1);
    assert_eq!(scratch.read("out.tsv"), "file\tverdict\na.pal\tsafe\nb/sb.pal\tunsafe\nc.pal\tsafe\n");
    scratch.run(&["check", "-q", "d", "--expect", "out.tsv"]).exits(0);
}

#[test]
fn several_files_in_the_order_given() {
    let scratch = scratch("folder_files");
    let ran = scratch.run(&["check", "-q", "d/c.pal", "d/b/sb.pal", "d/a.pal"]).exits(1);
    let files: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(files, ["d/c.pal", "d/b/sb.pal:", "d/a.pal"]);
}

#[test]
fn one_language_only() {
    let scratch = scratch("folder_language");
    scratch.run(&["check", "-q", "d", "--input", "pal"]).exits(1);
    scratch.run(&["check", "-q", "d", "--input", "rmm"]).exits(2);
}

#[test]
fn a_closed_output_does_not_cause_a_panic() {
    let scratch = scratch("folder_pipe");
    for args in [&["check", "d"] as &[&str], &["check", "d/b/sb.pal"], &["show", "d/a.pal", "--as", "pal"]] {
        let mut command = scratch.command(args);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the child ends");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 4), "{args:?}: {:?}", output.status);
        assert!(!complaints.contains("panicked"), "{args:?}: {complaints}");
    }
}

#[test]
#[cfg(unix)]
fn a_broken_link_is_an_unreadable_file() {
    let scratch = scratch("folder_link");
    std::os::unix::fs::symlink("gone.pal", scratch.path("d/link.pal")).expect("links can be made");
    let ran = scratch.run(&["check", "d", "-q"]).exits(2);
    assert!(ran.stderr.contains("error[no-such-file]: d/link.pal"), "{}", ran.stderr);
}
