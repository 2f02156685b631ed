//! Transcripts of `palisade check` on one program.

use crate::common;

use common::{FENCED, STORE_BUFFERING, Scratch};
use snapbox::str;

fn scratch(name: &str) -> Scratch {
    Scratch::new(name).file("sb.pal", STORE_BUFFERING).file("fenced.pal", FENCED)
}

/// A property without its end may mean the opposite.
#[test]
fn long_properties_are_quoted_whole() {
    let long = "a_name_that_is_longer_than_all_others";
    let property = format!("final (exists p in P, q in P: p != q && {long} == 1) == false");
    let text = format!("shared {long}: 0..1;\nprocess P[2] {{ {long} = 1; }}\n{property};\n");
    let scratch = Scratch::new("check_long").file("long.pal", text);
    let whole = format!("(line 3: {property})");
    for format in ["text", "json"] {
        let ran = scratch.run(&["check", "-q", "long.pal", "--format", format]).exits(1);
        assert!(ran.stdout.contains(&whole), "{}", ran.stdout);
    }
}

#[test]
fn safe() {
    scratch("check_safe")
        .run(&["check", "fenced.pal"])
        .exits(0)
        .prints(str![[r#"
safe  fenced.pal
TSO, engine explicit, [..] states, [..] s

"#]])
        .complains("");
}

#[test]
fn unsafe_with_a_run() {
    scratch("check_unsafe")
        .run(&["check", "sb.pal"])
        .exits(1)
        .prints(str![[r#"
unsafe  sb.pal: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)

step   process  line  instruction        effect           buffer P  buffer Q  memory x  y
   0                  (start)                                                        0  0
   1   P           4  x = 1;             store x = 1      x=1                        0  0
   2*  P           5  let r = y;         read y = 0       x=1                        0  0
   3   Q           9  y = 1;             store y = 1      x=1       y=1              0  0
   4   Q              (store of step 3)  y = 1 to memory  x=1                        0  1
   5   Q          10  let r = x;         read x = 0       x=1                        0  1
   6   P              (store of step 1)  x = 1 to memory                             1  1

* step 2: P reads y while its store from step 1 is still in the buffer

it breaks only with store buffers
TSO, engine explicit, [..] states, [..] s

"#]])
        .complains("");
}

#[test]
fn every_step_and_counter() {
    scratch("check_verbose").run(&["check", "-v", "sb.pal"]).exits(1).prints(str![[r#"
unsafe  sb.pal: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)

step   process  line  instruction        effect           buffer P  buffer Q  memory x  y
   0                  (start)                                                        0  0
   1   P           4  x = 1;             store x = 1      x=1                        0  0
   2*  P           5  let r = y;         read y = 0       x=1                        0  0
   3   Q           9  y = 1;             store y = 1      x=1       y=1              0  0
   4   Q              (store of step 3)  y = 1 to memory  x=1                        0  1
   5   Q          10  let r = x;         read x = 0       x=1                        0  1
   6   P              (store of step 1)  x = 1 to memory                             1  1

* step 2: P reads y while its store from step 1 is still in the buffer

it breaks only with store buffers
TSO, engine explicit, [..] states, [..] transitions, [..] s, [..] MiB
  no other engine was run

"#]]);
}

#[test]
fn models() {
    let scratch = scratch("check_models");
    for (model, code, word) in [("sc", 0, "safe"), ("tso", 1, "unsafe"), ("pso", 1, "unsafe")] {
        let ran = scratch.run(&["check", "-q", "sb.pal", "--model", model]).exits(code);
        assert_eq!(ran.stdout.split_whitespace().next(), Some(word));
        assert_eq!(ran.stdout.lines().count(), 1);
    }
}

#[test]
fn failed_assertion() {
    let program = "shared x: 0..3;\nprocess P { x = 1; }\nprocess Q { let r = x;\n    assert(r == 0); }\n";
    Scratch::new("check_assertion").file("a.pal", program).run(&["check", "-q", "a.pal"]).exits(1).prints(
        str![[r#"
unsafe  a.pal: assertion failed in Q at line 4: assert(r == 0)

"#]],
    );
}

#[test]
fn a_value_outside_the_domain() {
    let program = "shared x: 0..3;\nprocess P { loop { x = x + 1; } }\n";
    Scratch::new("check_domain").file("a.pal", program).run(&["check", "-q", "a.pal"]).exits(1).prints(str![
        [r#"
unsafe  a.pal: value 4 is outside the declared domain in P at line 2: x = x + 1

"#]
    ]);
}

#[test]
fn unknown_says_why() {
    // Nothing is read back, so buffers can grow without bound, and nothing is wrong.
    let program = "shared x, y: 0..1;\nprocess P { loop { x = 1; y = 1; x = 0; y = 0; } }\nprocess Q { loop { let r = x; let s = y; } }\nforbid Q.r == 2;\n";
    Scratch::new("check_unknown")
        .file("a.pal", program)
        .run(&["check", "a.pal", "--engine", "explicit", "--max-buffer", "2"])
        .exits(3)
        .prints(str![[r#"
unknown  a.pal: no bad state with buffers up to 2
TSO, engine explicit, [..] states, [..] s

"#]]);
}

#[test]
fn any_number_of_threads() {
    let program = "shared lock: 0..1;\nprocess P[*] {\n    await cas(lock, 0, 1);\ncs: skip;\n    lock = 0;\n}\nforbid count(P@cs) >= 2;\n";
    let scratch = Scratch::new("check_any").file("a.pal", program);
    scratch.run(&["check", "-q", "a.pal"]).exits(0).prints(str![[r#"
safe  a.pal

"#]]);
    // An engine requested by name is taken literally.
    scratch.run(&["check", "-q", "a.pal", "--engine", "explicit"]).exits(3).prints(str![[r#"
unknown  a.pal: no bad state with up to 16 threads of each kind of which any number is allowed

"#]]);
    // A run that breaks the program states how many threads it needs.
    let scratch = scratch.file("b.pal", program.replace("cas(lock, 0, 1)", "lock == 0"));
    scratch.run(&["check", "-q", "b.pal"]).exits(1).prints(str![[r#"
unsafe  b.pal: with 2 threads, P[0] and P[1] are both at cs (line 7: forbid count(P@cs) >= 2)

"#]]);
    let json = scratch.run(&["check", "--format", "json", "b.pal"]).exits(1).stdout;
    assert!(json.contains(r#""threads":2"#), "{json}");
}

#[test]
fn json() {
    let scratch = scratch("check_json");
    scratch.run(&["check", "--format", "json", "fenced.pal"]).exits(0).prints(str![[r#"
{"schema_version":1,"command":"check","file":"fenced.pal","model":"tso","engine":"explicit","verdict":"safe","seconds":[..],"peak_memory_bytes":[..],"stats":{"states":[..]}}

"#]]);
    let ran = scratch.run(&["check", "--format", "json", "sb.pal"]).exits(1);
    assert_eq!(ran.stdout.lines().count(), 1, "one object per line");
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(object["verdict"], "unsafe");
    assert_eq!(object["witness"]["program"]["file"], "sb.pal");
    let refused = scratch.run(&["check", "--format", "json", "none.pal"]).exits(2);
    let object: serde_json::Value = serde_json::from_str(&refused.stdout).expect("it is JSON");
    assert_eq!(object["error"], "no-such-file");
}

#[test]
fn bounded_integers() {
    let program = "shared x;\nprocess P { loop { x = x + 1; } }\nforbid x == 1000;\n";
    let scratch = Scratch::new("check_int_range").file("a.pal", program);
    scratch.run(&["check", "-q", "a.pal", "--int-range", "0..7", "--model", "sc"]).exits(0).prints(str![[
        r#"
safe  a.pal: with integers in 0..7

"#
    ]]);
    scratch.run(&["check", "-q", "a.pal", "--int-range", "0..2000", "--model", "sc"]).exits(1);
    scratch.run(&["check", "a.pal", "--int-range", "1..7"]).exits(2).complains(str![[r#"
error[outside-domain]: the initial value 0 of `x` is outside its domain
 --> a.pal:1:8
  |
1 | shared x;
  |        ^
  |
  = help: give `x` an initial value; without one it is 0


"#]]);
}

#[test]
fn standard_input() {
    use std::io::Write;
    use std::process::Stdio;
    let scratch = Scratch::new("check_stdin");
    let mut command = scratch.command(&["check", "-q", "-", "--input", "pal"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(FENCED.as_bytes()).expect("the child reads");
    let output = child.wait_with_output().expect("the child ends");
    common::Ran::new(output).exits(0).prints("safe  -\n");
}

#[test]
fn warnings_go_to_standard_error() {
    let program = "shared x: 0..1;\nprocess P { return; x = 1; }\nforbid x == 1;\n";
    let scratch = Scratch::new("check_warnings").file("a.pal", program);
    scratch.run(&["check", "a.pal"]).exits(0).complains(str![[r#"
warning[unreachable-code]: this code is unreachable
 --> a.pal:2:21
  |
2 | process P { return; x = 1; }
  |                     ^^^^^^


"#]]);
    scratch.run(&["check", "-q", "a.pal"]).exits(0).complains("");
}

#[test]
fn version_and_help() {
    let scratch = Scratch::new("check_help");
    scratch.run(&["--version"]).exits(0).prints(str!["palisade [..]\n"]);
    let short = scratch.run(&["-h"]).exits(0);
    let long = scratch.run(&["--help"]).exits(0);
    assert!(short.stdout.lines().count() < 40 && !short.stdout.contains("Examples:"), "{}", short.stdout);
    assert!(long.stdout.contains("Examples:") && long.stdout.contains("Exit codes:"), "{}", long.stdout);
    let check = scratch.run(&["check", "--help"]).exits(0);
    assert!(check.stdout.contains("Examples:"), "{}", check.stdout);
}

#[test]
fn every_language_by_its_extension() {
    let litmus = "X86 SB\n{ x=0; y=0; }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    let rmm = "forbidden\n  END END\ndata\n  x = 0 : [0:1]\n  y = 0 : [0:1]\nprocess\ntext\n  write: x := 1;\n  read: y = 0;\n  END: nop\nprocess\ntext\n  write: y := 1;\n  read: x = 0;\n  END: nop\n";
    let scratch =
        Scratch::new("check_languages").file("sb.litmus", litmus).file("sb.rmm", rmm).file("sb", litmus);
    for file in ["sb.litmus", "sb.rmm"] {
        scratch.run(&["check", "-q", file, "--model", "sc"]).exits(0);
        scratch.run(&["check", "-q", file]).exits(1);
        let shown = scratch.run(&["show", file, "--as", "pal"]).exits(0).stdout;
        std::fs::write(scratch.path("shown.pal"), shown).expect("a file can be written");
        scratch.run(&["check", "-q", "shown.pal", "--model", "sc"]).exits(0);
        scratch.run(&["check", "-q", "shown.pal"]).exits(1);
    }
    scratch.run(&["check", "-q", "sb"]).exits(2);
    scratch.run(&["check", "-q", "sb", "--input", "litmus"]).exits(1);
}
