//! Transcripts of `palisade check --certificate` and `palisade certify`.

use crate::common;

use common::{FENCED, STORE_BUFFERING, Scratch};
use snapbox::str;

/// A folder with a program and the proof that it is safe.
fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name).file("sb.pal", FENCED);
    scratch.run(&["check", "-q", "sb.pal", "--certificate", "proof.json"]).exits(0).complains("");
    scratch
}

#[test]
fn a_good_certificate() {
    let scratch = scratch("certify_good");
    scratch.run(&["certify", "proof.json"]).exits(0).complains("").prints(str![[r#"
valid  proof.json: sb.pal is safe under TSO with the threads it declares, by load buffers ([..] elements, [..] steps checked) [fnv1a64:[..]]

"#]]);
    scratch.run(&["certify", "--format", "json", "proof.json"]).exits(0).prints(str![[r#"
{"command":"certify","elements":[..],"file":"proof.json","interlocked":"whole-buffer","kind":"load-buffers","language":"pal","model":"tso","predecessors":[..],"program":"sb.pal","program_hash":"fnv1a64:[..]","schema_version":1,"threads":"declared","verdict":"valid"}

"#]]);
    std::fs::rename(scratch.path("sb.pal"), scratch.path("moved.pal")).expect("the program can be moved");
    scratch.run(&["certify", "-q", "proof.json"]).exits(2);
    scratch.run(&["certify", "proof.json", "--program", "moved.pal"]).exits(0);
}

#[test]
fn other_models_and_engines() {
    let check = |options: &[&str], model: &str, kind: &str| {
        let scratch = Scratch::new("certify_models").file("sb.pal", FENCED);
        scratch.run(&[&["check", "-q", "sb.pal", "--certificate", "proof.json"], options].concat()).exits(0);
        assert!(scratch.read("proof.json").contains(kind), "{options:?}");
        let printed = scratch.run(&["certify", "proof.json"]).exits(0).complains("").stdout;
        assert!(
            printed.starts_with(&format!("valid  proof.json: sb.pal is safe under {model}")),
            "{printed}"
        );
    };
    check(&["--model", "pso"], "PSO", "single-buffer");
    check(&["--model", "pso", "--interlocked", "own-address"], "PSO", "own-address");
    check(&["--engine", "sb"], "TSO", "load-buffers");
    check(&["--engine", "sb", "--model", "sc"], "SC", "load-buffers");
}

#[test]
fn recursion_and_unbounded_processes() {
    let check = |text: &str, kind: &str| {
        let scratch = Scratch::new("certify_sc").file("p.pal", text);
        let options = ["--model", "sc", "--engine", "pushdown", "--certificate", "proof.json"];
        scratch.run(&[&["check", "-q", "p.pal"][..], &options].concat()).exits(0);
        assert!(scratch.read("proof.json").contains(kind), "{kind}");
        scratch.run(&["certify", "proof.json"]).exits(0).complains("").prints(str![[r#"
valid  proof.json: p.pal is safe under SC with the threads it declares, by [..] ([..] elements, [..] steps checked) [fnv1a64:[..]]

"#]]);
        let json =
            ["check", "p.pal", "--model", "sc", "--engine", "pushdown", "--certify", "--format", "json"];
        let record = scratch.run(&json).exits(0).stdout;
        assert!(record.contains(&format!("\"kind\":\"{kind}\"")), "{record}");
    };
    check(
        "shared x: 0..1; proc deeper() { choose { deeper(); } or { x = 1; } }
         process P { deeper(); assert(x == 1); } process Q { deeper(); }",
        "sets-of-stacks",
    );
    check(
        "shared x: 0..1; process P { loop { spawn Q; } } process Q on spawn { x = 1; assert(x == 1); }",
        "numbers-of-threads",
    );
}

#[test]
fn a_program_that_was_changed() {
    let scratch = scratch("certify_changed").file("sb.pal", STORE_BUFFERING);
    scratch
        .run(&["certify", "proof.json"])
        .exits(1)
        .complains(str![[r#"
warning[program-changed]: proof.json: sb.pal has changed since the proof was found

"#]])
        .prints(str![[r#"
invalid  proof.json: [..]

"#]]);
    // A proof that still holds is still accepted.
    scratch.file("sb.pal", FENCED.to_owned() + "\n// A remark.\n").run(&["certify", "proof.json"]).exits(0);
}

#[test]
fn a_different_program() {
    let scratch = scratch("certify_another").file("other.pal", STORE_BUFFERING);
    scratch.run(&["certify", "proof.json", "--program", "other.pal"]).exits(1).complains(str![[r#"
warning[another-program]: proof.json: other.pal is not the program that the proof was found for

"#]]);
}

#[test]
fn the_time_is_up() {
    let scratch = Scratch::new("certify_time").file("endless.pal", common::ENDLESS);
    let proof = r#"{"schema_version":2,"kind":"all-states","program":{"file":"endless.pal","language":"pal","hash":""},"model":"tso","threads":"declared","engine":"explicit","digest":"","proof":{}}"#;
    let digest = format!("\"digest\":\"{}\"", palisade::trace::text_hash(proof));
    let scratch = scratch.file("proof.json", proof.replace("\"digest\":\"\"", &digest));
    scratch.run(&["certify", "proof.json", "--timeout", "0.2"]).exits(3).prints(str![[r#"
unknown  proof.json: the check did not finish: out of time (0.2 s)

"#]]);
}

/// A certificate states what it proves: for how many threads, for which integers, under which model, and how.
#[test]
fn the_question_is_stated() {
    let check = |name: &str, text: &str, options: &[&str], printed: &str, json: &[&str]| {
        let scratch = Scratch::new("certify_question").file(name, text);
        scratch.run(&[&["check", "-q", name, "--certificate", "proof.json"], options].concat()).exits(0);
        let valid = scratch.run(&["certify", "proof.json"]).exits(0).complains("").stdout;
        assert!(valid.starts_with(&format!("valid  proof.json: {name} is safe under {printed}")), "{valid}");
        let record = scratch.run(&["certify", "proof.json", "--format", "json"]).exits(0).stdout;
        for part in json {
            assert!(record.contains(part), "{part}: {record}");
        }
    };
    // A single worker never meets another, so this says nothing about more of them.
    let workers = "shared x: bool; process W[*] { x = true; cs: skip; } forbid count(W@cs) >= 2;";
    check(
        "w.pal",
        workers,
        &["--threads", "1"],
        "TSO with 1 thread of each process, by ",
        &["\"threads\":\"1\""],
    );
    let locked = "shared l: bool; process W[*] { while xchg(l, true) {} cs: skip; l = false; } forbid count(W@cs) >= 2;";
    check(
        "w.pal",
        locked,
        &[],
        "TSO with any number of threads where it declares `[*]`, by load buffers (",
        &["\"threads\":\"declared\"", "\"kind\":\"load-buffers\""],
    );
    check(
        "w.pal",
        locked,
        &["--threads", "any=all"],
        "TSO with any number of threads of each process, by load buffers (",
        &["\"threads\":\"any\""],
    );
    check(
        "w.pal",
        &locked.replace("[*]", "[3]"),
        &["--threads", "any"],
        "TSO with any number of threads of each process that it declares with several, by load buffers (",
        &["\"threads\":\"any-of-several\""],
    );
    check(
        "w.pal",
        locked,
        &["--threads", "2", "--engine", "explicit", "--model", "pso", "--interlocked", "own-address"],
        "PSO with 2 threads of each process, with locked instructions that wait for their own address only, by visiting all states (",
        &["\"threads\":\"2\"", "\"interlocked\":\"own-address\"", "\"kind\":\"all-states\""],
    );
    // Under TSO, locked instructions always wait for the whole buffer.
    check(
        "w.pal",
        locked,
        &["--threads", "2", "--interlocked", "own-address"],
        "TSO with 2 threads of each process, by ",
        &["\"interlocked\":\"whole-buffer\""],
    );
    check(
        "n.pal",
        "shared n; process P { loop { n = n + 1; } } process Q { let r = n; assert(r == 0); }",
        &["--int-range", "0..0"],
        "TSO with the threads it declares, with integers in 0..0, by ",
        &["\"int_range\":[0,0]"],
    );
}

#[test]
fn damaged_certificates() {
    let scratch = scratch("certify_damaged");
    let good = scratch.read("proof.json");
    let check = |from: &str, to: &str, code: i32, part: &str| {
        assert!(good.contains(from), "{good}");
        let scratch = Scratch::new("certify_damaged_copy").file("sb.pal", FENCED);
        let run = scratch.file("proof.json", good.replacen(from, to, 1)).run(&["certify", "proof.json"]);
        let run = run.exits(code);
        let printed = run.stdout + &run.stderr;
        assert!(printed.contains(part), "{printed}");
    };
    check(
        "\"elements\":[{",
        "\"elements\":[{\"memory\":[],\"processes\":[]},{",
        2,
        "was changed since it was written",
    );
    for (from, to) in [
        ("\"model\":\"tso\"", "\"model\":\"pso\""),
        ("\"threads\":\"declared\"", "\"threads\":\"any\""),
        ("\"language\":\"pal\"", "\"language\":\"rmm\""),
        ("\"hash\":\"", "\"hash\":\"0"),
    ] {
        check(from, to, 2, "was changed since it was written");
    }
    check("\"schema_version\":3", "\"schema_version\":9", 2, "version 9");
    check(
        "\"schema_version\":3",
        "\"schema_version\":1",
        2,
        "version 1, which does not seal what it proves; this Palisade reads versions 2 to 3. Create a new one with `palisade check --certificate`",
    );
    check("{", "", 2, "not a certificate");
    check("\"kind\":\"load-buffers\"", "\"kind\":\"single-buffer\"", 2, "was changed since it was written");
    check("\"kind\":\"load-buffers\"", "\"kind\":\"magic\"", 2, "`magic`, which is not a valid value");
}

#[test]
fn programs_without_a_proof() {
    let scratch = Scratch::new("certify_none").file("sb.pal", STORE_BUFFERING).file("safe.pal", FENCED);
    scratch.run(&["check", "sb.pal", "--certificate", "proof.json"]).exits(1).complains(str![[r#"
proof.json: not written, there is no proof to keep

"#]]);
    // For an engine without proofs of its own, another engine provides the proof.
    let lazy = ["check", "safe.pal", "--engine", "lazy", "--certificate", "proof.json"];
    scratch.run(&lazy).exits(0).complains(str![""]);
    scratch.run(&["certify", "proof.json", "-q"]).exits(0);
    scratch.run(&["check", "sb.pal", "safe.pal", "--certificate", "proof.json"]).exits(2).complains(str![[
        r#"
error[certificate-of-many]: --certificate: --certificate can keep the proof of one program only
 |
 = help: check one file at a time

"#
    ]]);
    scratch.run(&["certify", "nothing.json"]).exits(2);
}

/// A text that is a program in two languages: unsafe in one, safe in the other.
const TWO_LANGUAGES: &str = "\
/* /* /* */ forbidden */*/
shared x: 0..1;
process T { x = 1; assert(x == 0); }
// */ BAD data x = 0 : [0:1] process text write: x := 1 process text write: x := 1; goto END; BAD: nop; END: nop
";

#[test]
fn the_certificate_does_not_choose_the_language() {
    let scratch = Scratch::new("certify_language").file("two.pal", TWO_LANGUAGES);
    scratch.run(&["check", "-q", "two.pal"]).exits(1);
    let as_rmm = ["check", "-q", "two.pal", "--input", "rmm", "--certificate", "proof.json"];
    scratch.run(&as_rmm).exits(0);
    scratch.run(&["certify", "proof.json"]).exits(2).complains(str![[r#"
error[bad-certificate]: proof.json: it is about two.pal read as `rmm`, but the file name says `pal`

"#]]);
    scratch.run(&["certify", "--program", "two.pal", "proof.json"]).exits(2);
}

#[test]
fn properties_that_mention_more_threads_than_there_are() {
    let text = "shared x: 0..3; process P[2] { fetch_add(x, 1); } forbid P[1]@end && x == 3; final x == 2;";
    let scratch = Scratch::new("certify_mentioned").file("p.pal", text);
    scratch.run(&["check", "-q", "p.pal", "--certificate", "proof.json"]).exits(0);
    scratch.run(&["check", "-q", "p.pal", "--threads", "1"]).exits(2);
    scratch.run(&["check", "-q", "p.pal", "--threads", "2"]).exits(0);
    // The number of processes of a numbered `live` property counts too.
    let text = "process P[2] { assume(false); cs: skip; } process Q { loop { cs: skip; } } live P[1]@cs;";
    let scratch = Scratch::new("certify_mentioned_live").file("p.pal", text);
    scratch.run(&["check", "-q", "p.pal"]).exits(1);
    scratch.run(&["check", "-q", "p.pal", "--threads", "1"]).exits(2);
    scratch.run(&["check", "-q", "p.pal", "--threads", "3"]).exits(1);
}

#[test]
fn a_run_states_how_many_threads_it_has() {
    let text = "shared x: 0..1; process W[*] { cs: skip; x = 1; } forbid W[0]@cs && W[1]@cs && x == 1;";
    let scratch = Scratch::new("certify_states_threads").file("w.pal", text);
    let printed = scratch.run(&["check", "-q", "w.pal"]).exits(1).stdout;
    assert!(printed.contains("with 3 threads, "), "{printed}");
    let declared = "shared x: 0..3; process P[1] { fetch_add(x, 1); } forbid x == 3;";
    let scratch = Scratch::new("certify_replay_threads").file("p.pal", declared);
    scratch.run(&["check", "-q", "p.pal", "--threads", "3", "--witness", "run.json"]).exits(1);
    let printed = scratch.run(&["replay", "-q", "run.json"]).exits(0).stdout;
    assert!(printed.contains("with 3 threads of each process, "), "{printed}");
}
