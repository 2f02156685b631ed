//! Mutual exclusion algorithms for any number of threads, as `.pal` and as Promela.
//!
//! Each file holds one algorithm. The two texts of an algorithm are the same program: the same accesses to
//! shared variables in the same order, one per step, the same initial values, and endless loops. Loops over
//! the other threads are unrolled, so that neither text needs a loop counter. Every thread has its own text
//! with its number inserted.
//!
//! There are two differences, which come from the languages:
//! - In Promela, a load and the branch on it are one step, a guard. In `.pal` they are a load and an
//!   assumption, which become one step only when local steps are collapsed.
//! - Promela counts the threads in their critical sections in a variable. `.pal` looks at the locations of
//!   the threads.
//!
//! In both, there is one step inside the critical section, and leaving it is one step together with the first
//! store after it.

mod bakery;
mod burns;
mod dekker;
mod lamport;
mod peterson;
mod szymanski;

use std::fmt;
use std::str::FromStr;

/// An algorithm for a number of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Model {
    algorithm: Algorithm,
    threads: usize,
}

/// An algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Algorithm {
    Dekker,
    Peterson,
    Lamport,
    Szymanski,
    Burns,
    Bakery,
}

impl Algorithm {
    const ALL: [Algorithm; 6] = [
        Algorithm::Dekker,
        Algorithm::Peterson,
        Algorithm::Lamport,
        Algorithm::Szymanski,
        Algorithm::Burns,
        Algorithm::Bakery,
    ];

    fn name(self) -> &'static str {
        match self {
            Algorithm::Dekker => "dekker",
            Algorithm::Peterson => "peterson",
            Algorithm::Lamport => "lamport",
            Algorithm::Szymanski => "szymanski",
            Algorithm::Burns => "burns",
            Algorithm::Bakery => "bakery",
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.algorithm.name(), self.threads)
    }
}

impl FromStr for Model {
    type Err = String;

    fn from_str(text: &str) -> Result<Model, String> {
        let unknown = || {
            let names: Vec<_> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
            format!("a model is an algorithm ({}) and a number of threads, e.g. lamport-3", names.join(", "))
        };
        let (name, threads) = text.split_once('-').ok_or_else(unknown)?;
        let algorithm =
            Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or_else(unknown)?;
        let most = if algorithm == Algorithm::Dekker { 2 } else { 9 };
        match threads.parse() {
            Ok(threads) if (2..=most).contains(&threads) => Ok(Model { algorithm, threads }),
            _ => Err(format!("{name} is for 2 to {most} threads")),
        }
    }
}

impl Model {
    /// The text in `.pal`.
    pub fn pal(self) -> String {
        let n = self.threads;
        match self.algorithm {
            Algorithm::Dekker => dekker::pal(),
            Algorithm::Peterson => peterson::pal(n),
            Algorithm::Lamport => lamport::pal(n),
            Algorithm::Szymanski => szymanski::pal(n),
            Algorithm::Burns => burns::pal(n),
            Algorithm::Bakery => bakery::pal(n),
        }
    }

    /// The text in Promela.
    pub fn promela(self) -> String {
        let n = self.threads;
        match self.algorithm {
            Algorithm::Dekker => dekker::promela(),
            Algorithm::Peterson => peterson::promela(n),
            Algorithm::Lamport => lamport::promela(n),
            Algorithm::Szymanski => szymanski::promela(n),
            Algorithm::Burns => burns::promela(n),
            Algorithm::Bakery => bakery::promela(n),
        }
    }
}

/// A `.pal` text: declarations, the endless loop of each thread, and the property that no two are at `cs`.
fn pal_threads(shared: &str, n: usize, body: impl Fn(usize) -> String) -> String {
    let mut text = format!("{shared}\n");
    for i in 0..n {
        text.push_str(&format!("process P{i} {{\n    loop {{\n{}\n    }}\n}}\n", indent(&body(i), 8)));
    }
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| format!("P{i}@cs && P{j}@cs")));
    text.push_str(&format!("forbid {};\n", pairs.collect::<Vec<_>>().join(" || ")));
    text
}

/// A Promela text: declarations, a counter of threads in their critical sections, and the endless loop of
/// each thread, which starts at `start`.
fn promela_threads(shared: &str, locals: &str, n: usize, body: impl Fn(usize) -> String) -> String {
    let mut text = format!("{shared}\nbyte inside;\n");
    for i in 0..n {
        let body = indent(&body(i), 4);
        text.push_str(&format!("active proctype P{i}() {{{locals}\nstart:\n{body}\n    goto start\n}}\n"));
    }
    text
}

/// The Promela text for the critical section of a thread that leaves it with the given store.
fn promela_section(store: &str) -> String {
    format!("d_step {{ inside++; assert(inside == 1) }};\nd_step {{ inside--; {store} }};")
}

/// One piece of text for each of the threads, as lines.
fn each(threads: impl Iterator<Item = usize>, text: impl Fn(usize) -> String) -> String {
    threads.map(text).collect::<Vec<_>>().join("\n")
}

/// One condition for each of the threads, joined by `||` or `&&`.
fn joined(operator: &str, threads: impl Iterator<Item = usize>, text: impl Fn(usize) -> String) -> String {
    threads.map(text).collect::<Vec<_>>().join(&format!(" {operator} "))
}

/// All threads but one.
fn others(i: usize, n: usize) -> impl Iterator<Item = usize> + Clone {
    (0..n).filter(move |&j| j != i)
}

fn indent(text: &str, by: usize) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("{:by$}{line}", "")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pal_text_is_valid() {
        for algorithm in Algorithm::ALL {
            for threads in if algorithm == Algorithm::Dekker { 2..=2 } else { 2..=4 } {
                let model = Model { algorithm, threads };
                assert_eq!(model.to_string().parse(), Ok(model));
                let source = palisade_base::Source::new(model.to_string(), model.pal());
                let parsed = palisade_syntax::parse(palisade_syntax::Language::Pal, &source);
                assert!(parsed.is_ok_and(|parsed| parsed.warnings.is_empty()), "{model}:\n{}", model.pal());
            }
        }
    }
}
