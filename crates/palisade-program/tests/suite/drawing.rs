//! Control flow as DOT, and instructions as text.

use crate::common;

use common::system;
use palisade_program::{describe, dot};

#[test]
fn one_cluster_per_code() {
    let system = system("shared x; proc f(n) { x = n; } process P(i: 0..0) { cs: f(i - 1); }");
    let expected = r#"digraph program {
  node [shape=circle, fontname="sans-serif"];
  edge [fontname="monospace"];
  subgraph cluster_0 {
    label="process P(0)";
    c0_start [shape=point];
    c0_0 [label="cs", shape=box];
    c0_1 [label="end", shape=doublecircle];
    c0_start -> c0_0;
    c0_0 -> c0_1 [label="f(-1)"];
  }
  subgraph cluster_1 {
    label="procedure f(n)";
    c1_start [shape=point];
    c1_0 [label="0"];
    c1_1 [label="1"];
    c1_2 [label="end", shape=doublecircle];
    c1_start -> c1_0;
    c1_0 -> c1_1 [label="x = n"];
    c1_1 -> c1_2 [label="return"];
  }
}
"#;
    assert_eq!(dot::control_flow(&system), expected);
}

#[test]
fn strings_are_escaped() {
    let mut system = system("process P { skip; }");
    system.roles.iter_mut().for_each(|role| role.name = "a\"b\\c\n".to_owned());
    assert!(dot::control_flow(&system).contains(r#"label="process a\"b\\c";"#));
}

#[test]
fn instructions_in_words() {
    let text = "shared x, a[2]; shared b: bool;
        process Q(i: 0..1) on spawn { }
        proc f(n) -> int { return -n; }
        process P {
            let r = x; let p = r; let q = p;
            r = -(r + 1) * 2 - (p - q);
            r = (r == 1) == (p < 2 || q >= 3 && !r);
            a[r + 1] = r << 1 & 3 | 4 ^ 1;
            *p = 1;
            *(p + 1) = -1 - -r;
            r = cas(*p, r, 0);
            r = any(-1..1);
            fence; sfence;
            atomic { assert(r != 1); }
            spawn Q(r);
            r = f(r);
            f(1);
            assume(!(r == 1));
        }";
    let system = system(text);
    let code = &system.codes[system.roles.iter().find(|role| role.name == "P").unwrap().code];
    let words: Vec<String> =
        code.edges().iter().map(|edge| describe::instruction(&system, code, &edge.instr)).collect();
    assert_eq!(
        words,
        [
            "r = x",
            "p = r",
            "q = p",
            "r = -(r + 1) * 2 - (p - q)",
            "r = (r == 1) == (p < 2 || q >= 3 && !r)",
            "a[r + 1] = r << 1 & 3 | 5",
            "*p = 1",
            "*(p + 1) = -1 - -r",
            "r = cas(*p, r, 0)",
            "r = any(-1..1)",
            "fence",
            "sfence",
            "atomic {",
            "assert(r != 1)",
            "} atomic",
            "spawn Q(r)",
            "r = f(r)",
            "f(1)",
            "assume(r != 1)",
        ]
    );
}
