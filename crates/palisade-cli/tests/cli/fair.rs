//! Transcripts about runs that never end: `terminates` and `leaves`.

use crate::common;

use common::Scratch;
use snapbox::str;

const WAKE_UP: &str = "\
shared work, asleep, woken: bool;
process Sleeper {
    asleep = true;
    if !work {
        wait: await woken;
    }
}
process Waker {
    work = true;
    if asleep { woken = true; }
}
terminates;
leaves Sleeper@wait;
";

const LOCK: &str = "\
shared lock: bool;
process P(i: 0..1) {
    loop {
        wait: while xchg(lock, true) {}
        lock = false;
    }
}
leaves P(0)@wait;
";

#[test]
fn the_cycle_is_marked() {
    let scratch = Scratch::new("fair_cycle").file("wake.pal", WAKE_UP).file("lock.pal", LOCK);
    scratch.run(&["check", "wake.pal"]).exits(1).prints(str![[r#"
unsafe  wake.pal: does not terminate (line 12); forever, Sleeper waits at line 5: wait: await woken (woken is 0)

step   process  line  instruction        effect                buffer Sleeper  buffer Waker  memory work  asleep  woken
   0                  (start)                                                                          0       0      0
   1   Sleeper     3  asleep = true;     store asleep = 1      asleep=1                                0       0      0
   2*  Sleeper     4  work               read work = 0         asleep=1                                0       0      0
   4   Waker       9  work = true;       store work = 1        asleep=1        work=1                  0       0      0
   5   Waker          (store of step 4)  work = 1 to memory    asleep=1                                1       0      0
   6   Waker      10  asleep             read asleep = 0       asleep=1                                1       0      0
   7   Sleeper        (store of step 1)  asleep = 1 to memory                                          1       1      0
from here on, forever:
   9   Sleeper     5  woken              read woken = 0                                                1       1      0
  10   Sleeper     5  await woken;                                                                     1       1      0

* step 2: Sleeper reads work while its store from step 1 is still in the buffer

2 local steps not shown (-v shows all)

it breaks only with store buffers
TSO, engine explicit, [..] states, [..] s

"#]]);
    scratch.run(&["check", "-q", "lock.pal", "--model", "sc"]).exits(1).prints(str![[r#"
unsafe  lock.pal: P(0) never leaves wait (line 8); forever, P(0) waits at line 4: wait: while xchg(lock, true) {} (lock is 1 when it looks); P(1) repeats lines 4 and 5

"#]]);
    scratch.run(&["check", "-q", "wake.pal", "--model", "sc", "--certify"]).exits(0).prints(str![[r#"
safe  wake.pal: terminates, all `leaves` properties hold, proof checked[..]

"#]]);
}

#[test]
fn processes_that_only_spin_or_cannot_move() {
    let check = |name: &str, text: &str, expected: snapbox::data::Inline| {
        let scratch = Scratch::new(&format!("fair_{name}")).file("p.pal", text);
        scratch.run(&["check", "p.pal", "--model", "sc"]).exits(1).prints(expected);
    };
    check(
        "spins",
        "process P {\n    loop { skip; }\n}\nprocess Q {\n    loop { skip; }\n}\nterminates;\n",
        str![[r#"
unsafe  p.pal: does not terminate (line 7); forever, P repeats line 2; Q repeats line 5

step   process  line  instruction  effect
   0                  (start)
from here on, forever:
   1   P           2  skip;
   2   Q           5  skip;

SC, engine explicit, 1 state, [..] s

"#]],
    );
    check(
        "blocked",
        "shared x: bool;\nprocess P {\n    assume(x);\n}\nterminates;\n",
        str![[r#"
unsafe  p.pal: does not terminate (line 5); in the end, P is blocked at line 3: assume(x)

step   process  line  instruction  effect      memory x
   0                  (start)                         0
   1   P           3  (x)          read x = 0         0
from here on, forever: no process can move

SC, engine explicit, 2 states, [..] s

"#]],
    );
    check(
        "section",
        "shared x: bool;\nprocess P {\n    atomic { await x; }\n}\nprocess Q {\n    x = true;\n}\nterminates;\n",
        str![[r#"
unsafe  p.pal: does not terminate (line 8); forever, P waits at line 3: atomic { await x; } (x is 0); Q cannot move while P is in its atomic section
...
"#]],
    );
}

#[test]
fn lassos_are_kept_and_replayed() {
    let scratch = Scratch::new("fair_replay").file("wake.pal", WAKE_UP).file("lock.pal", LOCK);
    for program in ["wake.pal", "lock.pal"] {
        scratch.run(&["check", "-q", program, "--witness", "w.json", "--html", "w.html"]).exits(1);
        scratch.run(&["replay", "-q", "w.json"]).exits(0).prints(str![[r#"
valid  w.json: [..] forever, [..]

"#]]);
        let page = scratch.read("w.html");
        assert!(page.contains("from here on, forever:") && page.contains("class=\"repeats\""));
        // The cycle may not begin elsewhere, and nothing may be left out of it.
        let witness: serde_json::Value = serde_json::from_str(&scratch.read("w.json")).expect("it is JSON");
        let start = witness["violation"]["cycle"].as_u64().expect("there is a cycle");
        let forged = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut changed = witness.clone();
            change(&mut changed);
            let scratch = Scratch::new("fair_forged").file(program, scratch.read(program));
            scratch.file("w.json", changed.to_string()).run(&["replay", "-q", "w.json"]).exits(1);
        };
        forged(&|witness| witness["violation"]["cycle"] = (start + 1).into());
        forged(&|witness| witness["violation"]["cycle"] = 0.into());
        forged(&|witness| witness["violation"]["cycle"] = 1_000.into());
        forged(&|witness| witness["violation"]["property"] = 7.into());
        forged(&|witness| witness["violation"]["cycle"] = serde_json::Value::Null);
        forged(&|witness| drop(witness["steps"].as_array_mut().expect("there are steps").pop()));
        forged(&|witness| witness["violation"]["kind"] = "deadlock".into());
    }
    // A cycle that ignores a process is not fair: the run under SC stops looking at the lock.
    scratch.run(&["check", "-q", "lock.pal", "--model", "sc", "--witness", "w.json"]).exits(1);
    let mut witness: serde_json::Value = serde_json::from_str(&scratch.read("w.json")).expect("it is JSON");
    let steps = witness["steps"].as_array_mut().expect("there are steps");
    steps.retain(|step| step["process"] == "P(1)");
    steps.iter_mut().zip(1..).for_each(|(step, number)| step["number"] = number.into());
    witness["violation"]["cycle"] = 3.into();
    let scratch = scratch.file("unfair.json", witness.to_string());
    scratch.run(&["replay", "-q", "unfair.json"]).exits(1);
}

#[test]
fn json_says_where_the_cycle_begins() {
    let scratch = Scratch::new("fair_json").file("wake.pal", WAKE_UP);
    let printed = scratch.run(&["check", "wake.pal", "--format", "json"]).exits(1).stdout;
    let object: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    let steps = object["witness"]["steps"].as_array().expect("there are steps").len() as u64;
    let (stem, cycle) = (&object["lasso"]["stem_steps"], &object["lasso"]["cycle_steps"]);
    let (stem, cycle) = (stem.as_u64().expect("a number"), cycle.as_u64().expect("a number"));
    assert_eq!(
        (stem + cycle, stem + 1),
        (steps, object["witness"]["violation"]["cycle"].as_u64().expect("a number"))
    );
}

#[test]
fn other_engines_and_shortest_runs() {
    let scratch = Scratch::new("fair_engines").file("wake.pal", WAKE_UP);
    scratch.run(&["check", "-q", "wake.pal", "--engine", "dual"]).exits(3).prints(str![[r#"
unknown  wake.pal: engine `dual` does not search for `terminates` and `leaves`; use explicit or auto

"#]]);
    scratch.run(&["check", "wake.pal", "--shortest"]).exits(1).prints(str![[r#"
unsafe  wake.pal: does not terminate [..]
...
the run has 10 steps, and there may be a shorter one: shortest runs are searched for only with bad states, not with deadlocks or endless runs
...
"#]]);
}

#[test]
fn mistakes() {
    let check = |name: &str, property: &str, expected: snapbox::data::Inline| {
        let scratch = Scratch::new(&format!("fair_mistake_{name}"));
        let text = format!("shared x: bool;\nprocess P {{\n    wait: await x;\n}}\n{property}\n");
        scratch.file("p.pal", text).run(&["check", "-q", "p.pal"]).exits(2).complains(expected);
    };
    check(
        "end",
        "leaves P@end;",
        str![[r#"
error[leaves-end]: no process leaves its end
...
"#]],
    );
    check(
        "label",
        "leaves P@wiat;",
        str![[r#"
error[unknown-label]: the process `P` has no label `wiat`
...
"#]],
    );
    check(
        "condition",
        "leaves x;",
        str![[r#"
error[leaves-what]: `leaves` takes one process and one label
...
"#]],
    );
    check(
        "semicolon",
        "terminates",
        str![[r#"
error[..]
...
"#]],
    );
}

#[test]
fn robust_programs_are_asked_under_sc() {
    // The first process stores without end, so its buffer may grow without bound.
    let endless =
        "shared x, y: bool;\nprocess P {\n    loop { x = true; }\n}\nprocess Q {\n    w: await x;\n}\n";
    let scratch = Scratch::new("fair_robust")
        .file("x.pal", format!("{endless}leaves Q@w;\nlive Q@end;\n"))
        .file("y.pal", format!("{endless}leaves Q@w;\n").replace("await x", "await y"))
        .file(
            "atomic.pal",
            format!("{endless}leaves Q@w;\n").replace("w: await x;", "w: await x; atomic { skip; }"),
        );
    for model in ["tso", "pso"] {
        scratch.run(&["check", "-q", "x.pal", "--model", model]).exits(0).prints(str![[r#"
safe  x.pal: all `live` properties hold, all `leaves` properties hold

"#]]);
        scratch.run(&["check", "-q", "y.pal", "--model", model]).exits(1).prints(str![[r#"
unsafe  y.pal: Q never leaves w (line 8); forever, P repeats line 3; Q waits at line 6: w: await y (y is 0)

"#]]);
        // The argument is not about atomic sections.
        scratch.run(&["check", "-q", "atomic.pal", "--model", model]).exits(3).prints(str![[r#"
unknown  atomic.pal: no violation of `terminates` or `leaves` with buffers up to 8

"#]]);
    }
}
