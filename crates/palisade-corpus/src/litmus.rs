//! The classic litmus tests, repeated for ever: can every kind of thread get to the end of a round at the same time?
//!
//! *Source*: Abdulla et al., "A load-buffer semantics for total store ordering", LMCS 2018, Tables 1 and 2; the shapes are those of Alglave,
//! Maranget and Tautschnig, "Herding cats", TOPLAS 2014.

use crate::Verdicts;
use crate::expected::Safety::{Safe, Unsafe};
use std::fmt::Write;

/// A litmus test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Its usual name.
    pub name: &'static str,
    /// What it is about.
    pub what: &'static str,
    /// The variables.
    pub variables: &'static str,
    /// The threads: what they do in a round.
    pub threads: &'static [&'static [&'static str]],
    /// What is expected, whatever the numbers of threads.
    pub verdicts: Verdicts,
}

const fn verdicts(tso: crate::Safety, pso: crate::Safety) -> Verdicts {
    Verdicts { sc: Some(Safe), tso: Some(tso), pso: Some(pso) }
}

/// All shapes. Where every thread stores to one variable only, PSO allows no more than TSO.
pub const SHAPES: [Shape; 8] = [
    Shape {
        name: "sb",
        what: "store buffering",
        variables: "x, y",
        threads: &[&["x = 1;", "await y == 0;"], &["y = 1;", "await x == 0;"]],
        verdicts: verdicts(Unsafe, Unsafe),
    },
    Shape {
        name: "lb",
        what: "load buffering",
        variables: "x, y",
        threads: &[&["await x == 1;", "y = 1;"], &["await y == 1;", "x = 1;"]],
        verdicts: verdicts(Safe, Safe),
    },
    Shape {
        name: "mp",
        what: "message passing",
        variables: "x, y",
        threads: &[&["x = 1;", "y = 1;"], &["await y == 1;", "await x == 0;"]],
        verdicts: verdicts(Safe, Unsafe),
    },
    Shape {
        name: "wrc",
        what: "write to read causality",
        variables: "x, y",
        threads: &[&["x = 1;"], &["await x == 1;", "y = 1;"], &["await y == 1;", "await x == 0;"]],
        verdicts: verdicts(Safe, Safe),
    },
    Shape {
        name: "isa2",
        what: "message passing through a third thread",
        variables: "x, y, z",
        threads: &[&["x = 1;", "y = 1;"], &["await y == 1;", "z = 1;"], &["await z == 1;", "await x == 0;"]],
        verdicts: verdicts(Safe, Unsafe),
    },
    Shape {
        name: "rwc",
        what: "read to write causality",
        variables: "x, y",
        threads: &[&["x = 1;"], &["await x == 1;", "await y == 0;"], &["y = 1;", "await x == 0;"]],
        verdicts: verdicts(Unsafe, Unsafe),
    },
    Shape {
        name: "w+rwc",
        what: "read to write causality after a write",
        variables: "x, y, z",
        threads: &[&["x = 1;", "y = 1;"], &["await y == 1;", "await z == 0;"], &["z = 1;", "await x == 0;"]],
        verdicts: verdicts(Unsafe, Unsafe),
    },
    Shape {
        name: "iriw",
        what: "independent reads of independent writes",
        variables: "x, y",
        threads: &[
            &["x = 1;"],
            &["await x == 1;", "await y == 0;"],
            &["y = 1;"],
            &["await y == 1;", "await x == 0;"],
        ],
        verdicts: verdicts(Safe, Safe),
    },
];

/// How many threads there are of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copies<'a> {
    /// This many of each kind, in the order of [`Shape::threads`].
    Fixed(&'a [u32]),
    /// Any number of each kind.
    Any,
}

/// A litmus test with several threads of each kind.
///
/// # Panics
/// If the numbers are not as many as the shape has kinds of threads.
pub fn litmus(shape: &Shape, copies: Copies<'_>) -> String {
    if let Copies::Fixed(numbers) = copies {
        assert_eq!(numbers.len(), shape.threads.len(), "one number per kind of thread");
    }
    let mut text = String::new();
    let mut line = |line: &str| writeln!(text, "{line}").expect("strings take everything");
    line(&format!("// {}, repeated: {}.", shape.name.to_uppercase(), shape.what));
    line(
        "// Source: Abdulla et al., \"A load-buffer semantics for total store ordering\", LMCS 2018, Tables 1 and 2.",
    );
    line(&format!("shared {}: 0..1;", shape.variables));
    let mut all_done = Vec::new();
    for (index, thread) in shape.threads.iter().enumerate() {
        let name = ["A", "B", "C", "D"][index];
        let (count, done) = match copies {
            Copies::Fixed(numbers) if numbers[index] == 1 => (String::new(), format!("{name}@done")),
            Copies::Fixed(numbers) => (format!("[{}]", numbers[index]), format!("count({name}@done) >= 1")),
            Copies::Any => ("[*]".to_owned(), format!("count({name}@done) >= 1")),
        };
        line(&format!("\nprocess {name}{count} {{\n    loop {{"));
        thread.iter().for_each(|statement| line(&format!("        {statement}")));
        line("    done:\n        skip;\n    }\n}");
        all_done.push(done);
    }
    line(&format!("\nforbid {};", all_done.join(" && ")));
    text
}

/// Store buffering in a ring: each thread stores to its variable and loads the next one's. No thread may be told 0 by all of them.
pub fn store_buffering_ring(threads: u32) -> String {
    let template = r#"
// Store buffering in a ring of $N threads: each stores to its own variable and loads that of the next.
const N = $N;
shared x[N]: 0..1;

process P(i: 0..N - 1) {
    x[i] = 1;
    let seen: 0..1 = x[(i + 1) % N];
    assume(seen == 0);
done:
    skip;
}

forbid count(P@done) >= N;
"#;
    crate::template::fill(template, crate::Fences::None, &[("N", threads.to_string())])
}
