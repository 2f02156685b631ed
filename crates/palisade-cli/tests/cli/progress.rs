//! Transcripts about deadlocks and about what must stay possible.

use crate::common;

use common::Scratch;
use snapbox::str;

const LOCKS: &str = "\
shared a, b: bool;

process P {
    while xchg(a, true) {}
    while xchg(b, true) {}
}

process Q {
    while xchg(b, true) {}
    while xchg(a, true) {}
}
";

const WAKE_UP: &str = "\
shared work, asleep, woken: bool;
process Sleeper {
    asleep = true;
    if !work {
        await woken;
    }
}
process Waker {
    work = true;
    if asleep { woken = true; }
}
live end;
";

#[test]
fn a_deadlock_is_asked_for() {
    let scratch = Scratch::new("progress_asked").file("locks.pal", format!("{LOCKS}forbid a == 2;\n"));
    // The verdict about bad states does not change, but there is a remark.
    scratch.run(&["check", "locks.pal"]).exits(0).prints(str![[r#"
safe  locks.pal
a stuck state was seen; --deadlock shows it
TSO, engine [..]

"#]]);
    scratch.run(&["check", "locks.pal", "-q", "--deadlock"]).exits(1).prints(str![[r#"
unsafe  locks.pal: deadlock: P waits at line 5: while xchg(b, true) {} (b is 1); Q waits at line 10: while xchg(a, true) {} (a is 1)

"#]]);
}

#[test]
fn a_program_says_what_it_wants() {
    let scratch = Scratch::new("progress_stated").file("wake.pal", WAKE_UP);
    scratch.run(&["check", "-q", "wake.pal", "--model", "sc"]).exits(0).prints(str![[r#"
safe  wake.pal: all `live` properties hold

"#]]);
    scratch.run(&["check", "-q", "wake.pal", "--model", "sc", "--deadlock", "--certify"]).exits(0).prints(
        str![[r#"
safe  wake.pal: free of deadlocks, all `live` properties hold, proof checked[..]

"#]],
    );
    scratch.run(&["check", "-q", "wake.pal"]).exits(1).prints(str![[r#"
unsafe  wake.pal: live end (line 12) is out of reach: [..]

"#]]);
}

#[test]
fn runs_are_kept_and_replayed() {
    let scratch = Scratch::new("progress_replay").file("wake.pal", WAKE_UP).file("locks.pal", LOCKS);
    scratch.run(&["check", "-q", "wake.pal", "--witness", "w.json"]).exits(1);
    scratch.run(&["replay", "-q", "w.json"]).exits(0).prints(str![[r#"
valid  w.json: live end (line 12) is out of reach: [..]

"#]]);
    scratch.run(&["check", "-q", "locks.pal", "--deadlock", "--witness", "d.json"]).exits(1);
    scratch.run(&["replay", "-q", "d.json"]).exits(0).prints(str![[r#"
valid  d.json: deadlock: P waits at line 5: [..]

"#]]);
    // A run that ends too early, or about another program, is not believed.
    let longer = LOCKS.replace("process Q {", "process Q {\n    fence;");
    let scratch = scratch.file("longer.pal", longer);
    scratch.run(&["replay", "-q", "d.json", "--program", "longer.pal"]).exits(1);
    let forged = scratch.read("w.json").replace("\"live\"", "\"deadlock\"");
    let scratch = scratch.file("forged.json", forged);
    scratch.run(&["replay", "-q", "forged.json"]).exits(1);
    let mut early: serde_json::Value = serde_json::from_str(&scratch.read("w.json")).expect("it is JSON");
    early["steps"].as_array_mut().expect("there are steps").truncate(1);
    let scratch = scratch.file("early.json", early.to_string());
    scratch.run(&["replay", "-q", "early.json"]).exits(1).prints(str![[r#"
invalid  early.json: the run claims that a goal is out of reach, but its last state can still reach it

"#]]);
}

#[test]
fn certificates_cover_what_the_program_states() {
    let fenced = WAKE_UP
        .replace("asleep = true;", "asleep = true; fence;")
        .replace("work = true;", "work = true; fence;");
    let scratch = Scratch::new("progress_certificates").file("wake.pal", WAKE_UP).file("fenced.pal", fenced);
    scratch.run(&["check", "-q", "fenced.pal", "--certificate", "c.json"]).exits(0);
    scratch.run(&["certify", "-q", "c.json"]).exits(0);
    // The program without fences has no bad state either, but it gets stuck. A proof that says nothing about
    // that is not a proof for the program that states it.
    let plain = WAKE_UP.replace("live end;", "");
    let scratch = scratch.file("plain.pal", plain);
    scratch.run(&["check", "-q", "plain.pal", "--certificate", "p.json"]).exits(0);
    scratch.run(&["certify", "-q", "p.json"]).exits(0);
    scratch.run(&["certify", "-q", "p.json", "--program", "wake.pal"]).exits(1).prints(str![[r#"
invalid  p.json: the program reaches a state from which one of its `live` properties is out of reach

"#]]);
}

#[test]
fn other_engines_do_not_know() {
    let scratch = Scratch::new("progress_engines").file("wake.pal", WAKE_UP);
    scratch.run(&["check", "-q", "wake.pal", "--model", "sc", "--engine", "dual"]).exits(3).prints(str![[
        r#"
unknown  wake.pal: engine `dual` does not search for what must stay reachable; use explicit or auto

"#
    ]]);
}

#[test]
fn languages_in_which_a_read_waits() {
    let rmm = "forbidden CS\ndata\n  x = 0 : [0:1]\nprocess\ntext\n  read: x = 1;\nCS: nop\n";
    let scratch = Scratch::new("progress_rmm").file("p.rmm", rmm);
    scratch.run(&["check", "-q", "p.rmm"]).exits(0);
    scratch.run(&["check", "-q", "p.rmm", "--deadlock"]).exits(1);
}
