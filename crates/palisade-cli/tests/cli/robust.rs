//! Transcripts of `palisade robust`.

use crate::common;

use common::{FENCED, STORE_BUFFERING, Scratch};
use snapbox::str;

const MESSAGE_PASSING: &str = "\
shared x, y: 0..1;
process P { x = 1; y = 1; }
process Q { let a = y; let b = x; }
";

fn scratch(name: &str) -> Scratch {
    Scratch::new(name)
        .file("sb.pal", STORE_BUFFERING)
        .file("fenced.pal", FENCED)
        .file("mp.pal", MESSAGE_PASSING)
}

#[test]
fn robust() {
    scratch("robust_yes")
        .run(&["robust", "fenced.pal"])
        .exits(0)
        .prints(str![[r#"
robust  fenced.pal
TSO, engine attacks, 0 states, [..] s

"#]])
        .complains("");
}

#[test]
fn not_robust_with_a_run_and_its_cycle() {
    let scratch = scratch("robust_no");
    scratch
        .run(&["robust", "sb.pal", "--dot", "cycle.dot"])
        .exits(1)
        .prints(str![[r#"
not-robust  sb.pal: P's line 5 (let r = y;) takes effect before its line 4 (x = 1;)

step   process  line  instruction        effect           buffer P  buffer Q  memory x  y
   0                  (start)                                                        0  0
   1   P           4  x = 1;             store x = 1      x=1                        0  0
   2*  P           5  let r = y;         read y = 0       x=1                        0  0
   3   Q           9  y = 1;             store y = 1      x=1       y=1              0  0
   4   Q              (store of step 3)  y = 1 to memory  x=1                        0  1
   5   Q          10  let r = x;         read x = 0       x=1                        0  1

* step 2: P reads y while its store from step 1 is still in the buffer

happens-before cycle:
  P  line 4 (x = 1;)       comes before P's line 5 (let r = y;) (program order)
  P  line 5 (let r = y;)   comes before Q's line 9 (y = 1;) (from-read of y)
  Q  line 9 (y = 1;)       comes before Q's line 10 (let r = x;) (program order)
  Q  line 10 (let r = x;)  comes before P's line 4 (x = 1;) (from-read of x)

TSO, engine attacks, [..] states, [..] s

"#]])
        .complains("");
    snapbox::assert_data_eq!(
        scratch.read("cycle.dot"),
        str![[r#"
digraph happens_before {
  node [shape=box, fontname="sans-serif"];
  edge [fontname="sans-serif"];
  subgraph cluster_0 {
    label="P";
    e0 [label="line 4 (x = 1;)"];
    e1 [label="line 5 (let r = y;)"];
  }
  subgraph cluster_1 {
    label="Q";
    e2 [label="line 9 (y = 1;)"];
    e3 [label="line 10 (let r = x;)"];
  }
  e0 -> e1 [label="program order", style=solid];
  e1 -> e2 [label="from-read of y", style=dashed];
  e2 -> e3 [label="program order", style=solid];
  e3 -> e0 [label="from-read of x", style=dashed];
}

"#]]
    );
}

#[test]
fn under_pso() {
    let scratch = scratch("robust_pso");
    scratch.run(&["robust", "mp.pal", "-q"]).exits(0).prints("robust  mp.pal\n");
    scratch.run(&["robust", "mp.pal", "-q", "--model", "pso"]).exits(1).prints(str![[r#"
not-robust  mp.pal: P's line 2 (y = 1;) takes effect before its line 2 (x = 1;)

"#]]);
}

#[test]
fn the_run_is_kept_and_replayed() {
    let scratch = scratch("robust_witness");
    scratch.run(&["robust", "sb.pal", "-q", "--witness", "run.json"]).exits(1);
    scratch.run(&["replay", "run.json", "-q"]).exits(0).prints(str![[r#"
valid  run.json: P's line 5 (let r = y;) takes effect before its line 4 (x = 1;)

"#]]);
}

#[test]
fn several_files() {
    let scratch = scratch("robust_many");
    scratch.run(&["robust", "fenced.pal", "sb.pal"]).exits(1).prints(str![[r#"
robust  fenced.pal
not-robust  sb.pal: P's line 5 (let r = y;) takes effect before its line 4 (x = 1;)

"#]]);
    scratch.run(&["robust", "fenced.pal", "sb.pal", "--dot", "x.dot"]).exits(2);
}

#[test]
fn json() {
    let scratch = scratch("robust_json");
    let printed = scratch.run(&["robust", "sb.pal", "--format", "json"]).exits(1).stdout;
    let record: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(record["verdict"], "not-robust");
    assert_eq!((&record["model"], &record["engine"]), (&"tso".into(), &"attacks".into()));
    assert_eq!(record["cycle"][1]["relation"], "from-read");
    assert_eq!(
        (&record["cycle"][1]["from"]["line"], &record["cycle"][1]["to"]["line"]),
        (&5.into(), &9.into())
    );
    assert_eq!(record["cycle"][1]["cell"], "y");
    assert_eq!(record["witness"]["violation"]["kind"], "cycle");
}

#[test]
fn triangular_races() {
    let scratch = scratch("robust_triangular");
    scratch.run(&["robust", "--triangular", "fenced.pal", "-q"]).exits(0).prints(str![[r#"
race-free  fenced.pal: no triangular race, so the program is robust

"#]]);
    scratch.run(&["robust", "--triangular", "sb.pal"]).exits(1).prints(str![[r#"
racy  sb.pal: P's line 5 (let r = y;) loads what Q's line 9 (y = 1;) stores, while P's line 4 (x = 1;) may still be in its buffer

step   process  line  instruction  effect       memory x  y
   0                  (start)                          0  0
   1   P           4  x = 1;       write x = 1         1  0
   2   P           5  let r = y;   read y = 0          1  0
   3   Q           9  y = 1;       write y = 1         1  1

TSO, engine triangular, [..] states, [..] s

"#]]);
    let printed = scratch.run(&["robust", "--triangular", "sb.pal", "--format", "json"]).exits(1).stdout;
    let record: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!((&record["verdict"], &record["race"]["rival"]["line"]), (&"racy".into(), &9.into()));
    scratch.run(&["robust", "--triangular", "sb.pal", "--model", "pso"]).exits(2);
}

#[test]
fn lazy_reachability_reports_what_it_delays() {
    scratch("robust_lazy").run(&["check", "--engine", "lazy", "-v", "sb.pal"]).exits(1).prints(str![[r#"
unsafe  sb.pal: at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)
...
TSO, engine lazy, [..] states, [..] chain steps, 3 sc queries, 1 extension, [..] s, [..] MiB
  no other engine was run
1. lazy: P delays its stores in: x = 1; r = y (lines 4, 5)

"#]]);
}

#[test]
fn all_models_in_one_table() {
    let scratch = scratch("robust_all");
    scratch.run(&["robust", "mp.pal", "--model", "all"]).exits(1).prints(str![[r#"
not-robust  mp.pal: robust under TSO, not-robust under PSO

model  verdict     engine   seconds  why
TSO    robust      [..]
PSO    not-robust  [..]
`palisade robust mp.pal --model pso` shows the run

"#]]);
    scratch.run(&["robust", "fenced.pal", "--model", "all", "-q"]).exits(0).prints(str![[r#"
robust  fenced.pal: robust under TSO, robust under PSO

"#]]);
    let ran = scratch.run(&["robust", "mp.pal", "--model", "all", "--format", "json"]).exits(1);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    let ran = scratch.run(&["robust", "mp.pal", "--model", "all", "--dot", "cycle.dot"]).exits(2);
    assert!(ran.stderr.contains("one-model-only"), "{}", ran.stderr);
}
