//! The classic litmus tests, repeated forever: can every kind of thread reach the end of a round at the same
//! time?
//!
//! *Source*: Abdulla et al., "A load-buffer semantics for total store ordering", LMCS 2018, Tables 1 and 2.
//! The shapes are those of Alglave, Maranget and Tautschnig, "Herding cats", TOPLAS 2014.

use crate::Verdicts;
use crate::expected::Safety::{Safe, Unsafe};
use std::fmt::Write;

/// A litmus test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Its usual name.
    pub name: &'static str,
    /// The name written out.
    pub what: &'static str,
    /// The shared variables.
    pub variables: &'static str,
    /// For each kind of thread, its statements in one round.
    pub threads: &'static [&'static [&'static str]],
    /// The expected verdicts, for any numbers of threads.
    pub verdicts: Verdicts,
}

const fn verdicts(tso: crate::Safety, pso: crate::Safety) -> Verdicts {
    Verdicts { sc: Some(Safe), tso: Some(tso), pso: Some(pso) }
}

/// All shapes. Where every thread stores to one variable only, PSO allows nothing that TSO does not.
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

/// The number of threads of each kind.
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
/// If the number of counts differs from the shape's number of kinds of threads.
pub fn litmus(shape: &Shape, copies: Copies<'_>) -> String {
    if let Copies::Fixed(numbers) = copies {
        assert_eq!(numbers.len(), shape.threads.len(), "one number per kind of thread");
    }
    let mut text = String::new();
    let mut line = |line: &str| writeln!(text, "{line}").expect("writing to a string succeeds");
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

/// Store buffering in a ring: each thread stores to its own variable and loads the next thread's. It is
/// forbidden that all of them load 0.
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
