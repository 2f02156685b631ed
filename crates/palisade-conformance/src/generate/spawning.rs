//! Random programs that start threads in loops, so that their number is unbounded. No procedures.

use crate::random::Random;
use palisade_base::Source;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};

/// The spawning program that a seed names. The same seed always gives the same program on one version of this
/// file.
///
/// # Panics
/// If the generator produces an invalid program.
pub fn generate_spawning(seed: u64) -> Program {
    generate(seed, false)
}

/// The same program with a fence before each start.
///
/// # Panics
/// If the generator produces an invalid program.
pub fn generate_fenced_spawning(seed: u64) -> Program {
    generate(seed, true)
}

fn generate(seed: u64, fenced: bool) -> Program {
    let random = Random::new(seed ^ 0x7370_6177_6e69_6e67);
    let text = Writer { random, lines: Vec::new(), fenced }.program();
    match parse(Language::Pal, &Source::new(format!("spawning-{seed}.pal"), text.as_str())) {
        Ok(parsed) => parsed.program,
        Err(problems) => panic!("seed {seed}: {problems:?}\n{text}"),
    }
}

struct Writer {
    random: Random,
    lines: Vec<String>,
    fenced: bool,
}

impl Writer {
    fn program(mut self) -> String {
        self.line(0, "shared x: 0..2;".to_owned());
        self.line(0, "shared y: 0..2 blocking;".to_owned());
        let endless = self.random.percent(70);
        self.line(0, "process Main {".to_owned());
        self.steps(1, &["spawn W(0);", "spawn W(1);"]);
        if endless {
            self.line(1, "loop {".to_owned());
            self.steps(2, &["break;", "spawn W(1);"]);
            self.line(2, "spawn W(0);".to_owned());
            self.line(1, "}".to_owned());
        } else {
            self.line(1, "spawn W(0);".to_owned());
        }
        self.steps(1, &[]);
        self.line(0, "}".to_owned());
        self.line(0, "process W(i: 0..1) on spawn {".to_owned());
        self.line(1, "let r: 0..2 = 0;".to_owned());
        // A worker may start another one, but only with parameter 1, so that not all of them do.
        let child = if self.random.percent(30) { "if i == 1 { spawn W(0); }" } else { "skip;" };
        self.steps(1, &[child]);
        self.line(0, "cs:".to_owned());
        self.line(1, "skip;".to_owned());
        self.steps(1, &[]);
        self.line(0, "}".to_owned());
        if self.random.percent(40) {
            self.line(0, "process Other {".to_owned());
            self.steps(1, &[]);
            self.line(0, "}".to_owned());
        }
        let (count, value) = (self.random.between(1, 4), self.random.below(3));
        let property = match self.random.below(5) {
            0 => format!("forbid count(W@cs) >= {count};"),
            1 | 2 => format!("forbid count(W@cs) >= {count} && x == {value};"),
            3 => format!("forbid Main@end && y == {value} && count(W@cs) > {};", count - 1),
            _ => format!("forbid Main@end && x == {value} && y == {};", self.random.below(3)),
        };
        self.line(0, property);
        self.lines.join("\n")
    }

    fn line(&mut self, depth: usize, line: String) {
        let line = if self.fenced { line.replace("spawn W(", "fence; spawn W(") } else { line };
        self.lines.push("    ".repeat(depth) + &line);
    }

    /// A few statements, some of which may be among the given ones.
    fn steps(&mut self, depth: usize, others: &[&str]) {
        for _ in 0..self.random.between(1, 3) {
            let (cell, value) = (*self.random.pick(&["x", "y"]), self.random.below(3));
            let waits = self.random.percent(25);
            let line = match self.random.below(9) {
                0 => format!("{cell} = {value};"),
                1 => format!("{cell} = ({cell} + 1) % 3;"),
                2 if waits => format!("assume({cell} == {value});"),
                2 => format!("if {cell} == {value} {{ x = {}; }}", self.random.below(3)),
                3 if waits => format!("await {cell} != {value};"),
                3 => format!("xchg({cell}, {value});"),
                4 => format!("if {cell} < 2 {{ fetch_add({cell}, 1); }}"),
                5 if waits => format!("assume(cas({cell}, {value}, {}));", self.random.below(3)),
                5 => format!("cas({cell}, {value}, {});", self.random.below(3)),
                6 => format!("atomic {{ assume({cell} != {value}); {cell} = {value}; }}"),
                7 => format!("choose {{ {cell} = {value}; }} or {{ skip; }}"),
                _ if others.is_empty() => "skip;".to_owned(),
                _ => match *self.random.pick(others) {
                    "break;" => format!("if {cell} == {value} {{ break; }}"),
                    other => other.to_owned(),
                },
            };
            self.line(depth, line);
        }
    }
}
