//! Transcripts of `palisade outcomes`.

use crate::common;

use common::{ENDLESS, FENCED, STORE_BUFFERING, Scratch};
use serde_json::Value;
use snapbox::str;

const SB: &str = "\
X86 SB
{ }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
locations [x; 0:EBX;]
exists (0:EAX=0 /\\ 1:EAX=0)
";

/// The buffer grows without bound, but no run ends in more than two ways.
const PUMP: &str = "\
shared x, y: 0..1;
process P { while y == 0 { x = 1; } }
process Q { y = 1; }
final y == 1 && x >= 0;
";

fn scratch(name: &str) -> Scratch {
    Scratch::new(name)
        .file("sb.pal", STORE_BUFFERING)
        .file("fenced.pal", FENCED)
        .file("sb.litmus", SB)
        .file("pump.pal", PUMP)
        .file("endless.pal", ENDLESS)
        .file("loop.pal", "shared x: 0..1;\nprocess P { loop { x = 1; fence; x = 0; fence; } }\n")
        .file(
            "stuck.pal",
            "shared x: 0..2;\nprocess P { choose { await x == 2; } or { x = 1; assert(x == 0); } or { skip; } }\n",
        )
        .file("any.pal", "shared x: 0..1;\nprocess P[*] { x = 1; }\n")
}

#[test]
fn one_model() {
    let scratch = scratch("outcomes_one");
    scratch.run(&["outcomes", "sb.pal"]).exits(0).complains("").prints(str![[r#"
complete  sb.pal: 4 outcomes under TSO

   outcome
1  P.r=0; Q.r=0;  violates final
2  P.r=0; Q.r=1;
3  P.r=1; Q.r=0;
4  P.r=1; Q.r=1;

TSO, engine explicit, [..] s

"#]]);
    let first = "complete  sb.pal: 3 outcomes under SC\n";
    scratch.run(&["outcomes", "sb.pal", "--model", "sc", "-q"]).exits(0).prints(first);
    let all = "complete  sb.pal: 4 outcomes under TSO\n";
    scratch.run(&["outcomes", "sb.pal", "--all", "-q"]).exits(0).prints(all);
}

#[test]
fn all_models_side_by_side() {
    scratch("outcomes_all").run(&["outcomes", "sb.pal", "--model", "all", "--all"]).exits(0).prints(str![[
        r#"
complete  sb.pal: 3 outcomes under SC, 4 under TSO, 4 under PSO

   outcome                  SC   TSO  PSO
1  x=1; y=1; P.r=0; Q.r=0;  -    yes  yes  violates final
2  x=1; y=1; P.r=0; Q.r=1;  yes  yes  yes
3  x=1; y=1; P.r=1; Q.r=0;  yes  yes  yes
4  x=1; y=1; P.r=1; Q.r=1;  yes  yes  yes

SC, engine explicit, [..] s
TSO, engine explicit, [..] s
PSO, engine explicit, [..] s

"#
    ]]);
}

#[test]
fn litmus_tests_as_herd_lists_them() {
    scratch("outcomes_litmus").run(&["outcomes", "sb.litmus", "--model", "all"]).exits(0).prints(str![[r#"
complete  sb.litmus: 3 outcomes under SC, 4 under TSO, 4 under PSO

   outcome                            SC   TSO  PSO
1  0:EAX=0; 0:EBX=0; 1:EAX=0; [x]=1;  -    yes  yes  *
2  0:EAX=0; 0:EBX=0; 1:EAX=1; [x]=1;  yes  yes  yes
3  0:EAX=1; 0:EBX=0; 1:EAX=0; [x]=1;  yes  yes  yes
4  0:EAX=1; 0:EBX=0; 1:EAX=1; [x]=1;  yes  yes  yes

No under SC
Observation SB Never 0 3
Ok under TSO
Observation SB Sometimes 1 3
Ok under PSO
Observation SB Sometimes 1 3
SC, engine explicit, [..] s
TSO, engine explicit, [..] s
PSO, engine explicit, [..] s

"#]]);
}

#[test]
fn a_run_to_an_outcome() {
    let scratch = scratch("outcomes_run");
    scratch.run(&["outcomes", "sb.pal", "--model", "all", "--run", "1"]).exits(0).prints(str![[r#"
complete  sb.pal: 3 outcomes under SC, 4 under TSO, 4 under PSO
...
a run to outcome 1 under TSO:

step   process  line  instruction        effect           buffer P  buffer Q  memory x  y
...
"#]]);
    let ran = scratch.run(&["outcomes", "sb.pal", "--model", "all", "--run", "4"]).exits(0);
    assert!(ran.stdout.contains("a run to outcome 4 under SC:"), "{}", ran.stdout);
    let wrong = scratch.run(&["outcomes", "sb.pal", "--run", "5"]).exits(2);
    assert!(wrong.stderr.contains("there is no outcome 5: the list has 4"), "{}", wrong.stderr);
    // The run ends in an error in other cases. The run that is shown does not.
    let ran = scratch.run(&["outcomes", "stuck.pal", "--run", "1"]).exits(0);
    assert!(ran.stdout.contains("a run to outcome 1"), "{}", ran.stdout);
}

#[test]
fn runs_without_an_outcome() {
    let scratch = scratch("outcomes_none");
    scratch.run(&["outcomes", "loop.pal"]).exits(0).prints(str![[r#"
complete  loop.pal: no run ends under TSO
TSO, engine explicit, [..] s

"#]]);
    scratch.run(&["outcomes", "stuck.pal"]).exits(0).prints(str![[r#"
complete  stuck.pal: 1 outcome under TSO

   outcome
1  x=0;

some runs end with an error and have no outcome: `palisade check` shows one
TSO, engine explicit, [..] s

"#]]);
}

#[test]
fn lists_that_may_not_be_complete() {
    let scratch = scratch("outcomes_unknown");
    let ran = scratch.run(&["outcomes", "endless.pal", "--timeout", "0.5"]).exits(3);
    assert!(ran.stdout.starts_with("unknown  endless.pal: "), "{}", ran.stdout);
    let wrong = scratch.run(&["outcomes", "any.pal"]).exits(2);
    assert!(wrong.stderr.contains("any-number"), "{}", wrong.stderr);
    assert!(wrong.stdout.is_empty());
}

/// Another engine knows that there is no further outcome.
#[test]
fn buffers_without_bound() {
    let ran = scratch("outcomes_pump").run(&["outcomes", "pump.pal", "--model", "all"]).exits(0);
    let first = "complete  pump.pal: 2 outcomes under SC, 2 under TSO, 2 under PSO";
    assert_eq!(ran.stdout.lines().next(), Some(first));
}

#[test]
fn as_json() {
    let scratch = scratch("outcomes_json");
    let ran =
        scratch.run(&["outcomes", "sb.litmus", "--model", "all", "--run", "1", "--format", "json"]).exits(0);
    let json: Value = serde_json::from_str(&ran.stdout).expect("a line of JSON");
    assert_eq!((&json["command"], &json["verdict"]), (&"outcomes".into(), &"complete".into()));
    let numbers = |model: usize| json["models"][model]["outcomes"].to_string();
    assert_eq!([numbers(0), numbers(1), numbers(2)], ["[2,3,4]", "[1,2,3,4]", "[1,2,3,4]"]);
    assert_eq!(json["outcomes"][0]["values"]["0:EAX"], 0);
    assert_eq!(json["outcomes"][0]["satisfies_condition"], true);
    assert_eq!(json["models"][0]["observation"]["word"], "Never");
    assert_eq!(json["run"]["model"], "tso");
    assert!(json["run"]["steps"].as_array().is_some_and(|steps| steps.len() >= 4), "{json}");
}

#[test]
fn check_under_all_models() {
    let scratch = scratch("check_all");
    scratch.run(&["check", "sb.pal", "--model", "all"]).exits(1).complains("").prints(str![[r#"
unsafe  sb.pal: safe under SC, unsafe under TSO, unsafe under PSO

model  verdict  engine    seconds  why
SC     safe     [..]
TSO    unsafe   [..]  at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)
PSO    unsafe   [..]  at the end, P.r = 0 and Q.r = 0 (line 13: final P.r == 1 || Q.r == 1)

it breaks only with store buffers
`palisade check sb.pal --model tso` shows the run

"#]]);
    let two = "\
unsafe  sb.pal: safe under SC, unsafe under TSO, unsafe under PSO
safe  fenced.pal: safe under SC, safe under TSO, safe under PSO
";
    scratch.run(&["check", "sb.pal", "fenced.pal", "--model", "all", "-q"]).exits(1).prints(two);
    scratch.run(&["check", "fenced.pal", "--model", "all", "-q"]).exits(0);
    scratch.run(&["check", "missing.pal", "sb.pal", "--model", "all", "-q"]).exits(2);
    let refused = scratch.run(&["check", "sb.pal", "--model", "all", "--witness", "run.json"]).exits(2);
    assert!(refused.stderr.contains("one-model-only"), "{}", refused.stderr);
    let ran = scratch.run(&["check", "sb.pal", "--model", "all", "--format", "json"]).exits(1);
    let objects: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let words: Vec<_> =
        objects.iter().map(|object| (object["model"].as_str(), object["verdict"].as_str())).collect();
    let expected = [("sc", "safe"), ("tso", "unsafe"), ("pso", "unsafe")];
    assert_eq!(words, expected.map(|(model, verdict)| (Some(model), Some(verdict))));
}

#[test]
fn shortest_runs() {
    let scratch = scratch("check_shortest");
    let ran = scratch.run(&["check", "sb.pal", "--shortest"]).exits(1);
    assert!(ran.stdout.contains("\na shortest run: 6 steps\n"), "{}", ran.stdout);
    let ran = scratch.run(&["check", "sb.pal", "--shortest", "--format", "json"]).exits(1);
    let json: Value = serde_json::from_str(&ran.stdout).expect("a line of JSON");
    assert_eq!(json["shortest"], true);
    assert_eq!(json["witness"]["steps"].as_array().map(Vec::len), Some(6));
    let ran = scratch.run(&["check", "fenced.pal", "--shortest", "--format", "json"]).exits(0);
    let json: Value = serde_json::from_str(&ran.stdout).expect("a line of JSON");
    assert!(json.get("shortest").is_none(), "{json}");
}
