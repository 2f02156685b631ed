//! The programs of "Lazy TSO reachability" (Bouajjani, Calin, Derevenetc and Meyer, FASE 2015) that exist in
//! several sizes.

use crate::Fences;
use crate::template::fill;
use std::fmt::Write;

/// Figure 8: store buffering with a diamond of N branches between the store and the load of each thread. N is
/// at least 2.
pub fn diamond(branches: u32) -> String {
    let alternatives = |cell: &str| {
        let mut text = String::new();
        for i in 0..branches {
            let start = if i == 0 { "    choose {\n" } else { " or {\n" };
            let next = if i == 0 { 1 } else { (i + 1) % branches };
            write!(text, "{start}        assume(r == {i});\n        {cell} = {next};\n    }}")
                .expect("writing to a string succeeds");
        }
        text
    };
    let template = r#"
// Store buffering with a diamond of $N branches between the store and the load.
// Source: Bouajjani et al., "Lazy TSO reachability", FASE 2015, Fig. 8.
shared x, y: 0..1;
shared a, b: 0..$LAST;

process T1 {
    x = 1;
    let r: 0..$LAST = a;
$A
    assume(y == 0);
goal:
    skip;
}

process T2 {
    y = 1;
    let r: 0..$LAST = b;
$B
    assume(x == 0);
goal:
    skip;
}

forbid T1@goal && T2@goal;
"#;
    let values = [
        ("LAST", (branches - 1).to_string()),
        ("N", branches.to_string()),
        ("A", alternatives("a")),
        ("B", alternatives("b")),
    ];
    fill(template, Fences::None, &values)
}

/// Figure 9: the goal is reached if a loop of N stores is delayed twice. N is at least 2.
pub fn delayed_loop(length: u32) -> String {
    let template = r#"
// A loop of $N stores that has to be delayed twice before the goal is reached.
// Source: Bouajjani et al., "Lazy TSO reachability", FASE 2015, Fig. 9.
const N = $N;
shared x: 0..N - 1;
shared y: 0..1;

process T1 {
    let r: 0..N;
again:
    while r < N {
        x = r;
        r = r + 1;
    }
    choose {
        r = 0;
        goto again;
    } or {
        assume(y == 0);
    }
goal:
    skip;
}

process T2 {
    y = 1;
    assume(x == 1);
    assume(x == 0);
goal:
    skip;
}

forbid T1@goal && T2@goal;
"#;
    fill(template, Fences::None, &[("N", length.to_string())])
}
