//! Random programs whose procedures call themselves and each other.
//!
//! They are small on purpose: two shared variables with three values, one or two procedures, one to three
//! processes. The recursion ends in one of two ways:
//! - With [`Recursion::Bounded`], a parameter decreases with every call, so there are finitely many states.
//! - With [`Recursion::Free`], a choice ends it, so there is no maximum stack height.

use crate::random::Random;
use palisade_base::Source;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};

/// What ends the recursion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recursion {
    /// A parameter that decreases.
    Bounded,
    /// Only a choice.
    Free,
}

/// The recursive program that a seed names. The same seed always gives the same program on one version of
/// this file.
///
/// # Panics
/// If the generator produces an invalid program.
pub fn generate_recursive(recursion: Recursion, seed: u64) -> Program {
    let mut random = Random::new(seed ^ 0x7265_6375_7273_6976 ^ ((recursion as u64) << 40));
    let writer = Writer {
        recursion,
        procedures: random.between(1, 2),
        processes: *random.weighted(&[(2, 1), (6, 2), (1, 3)]),
        spawns: random.percent(15),
        private: random.percent(30),
        in_procedure: false,
        may_spawn: false,
        registers: 0,
        lines: Vec::new(),
        random,
    };
    let text = writer.program();
    match parse(Language::Pal, &Source::new(format!("recursive-{seed}.pal"), text.as_str())) {
        Ok(parsed) => parsed.program,
        Err(problems) => panic!("seed {seed}: {problems:?}\n{text}"),
    }
}

struct Writer {
    random: Random,
    recursion: Recursion,
    procedures: usize,
    processes: usize,
    spawns: bool,
    private: bool,
    in_procedure: bool,
    may_spawn: bool,
    /// How many registers the body has declared so far.
    registers: usize,
    lines: Vec<String>,
}

impl Writer {
    fn program(mut self) -> String {
        let blocking = if self.random.percent(20) { " blocking" } else { "" };
        self.line(0, format!("shared x: 0..2{blocking};"));
        let initial = if self.random.percent(20) { " = *" } else { "" };
        self.line(0, format!("shared y: 0..2{initial};"));
        if self.private {
            self.line(0, "private mine: 0..2;".to_owned());
        }
        for number in 0..self.procedures {
            self.procedure(number);
        }
        for number in 0..self.processes {
            self.process(&format!("P{number}"), "");
        }
        if self.spawns {
            self.process("S", " on spawn");
        }
        for _ in 0..self.random.between(1, 2) {
            self.property();
        }
        self.lines.join("\n")
    }

    fn line(&mut self, depth: usize, line: String) {
        self.lines.push("    ".repeat(depth) + &line);
    }

    fn procedure(&mut self, number: usize) {
        (self.in_procedure, self.may_spawn, self.registers) = (true, false, 0);
        let domain = *self.random.pick(&["0..2", "int"]);
        self.line(0, format!("proc f{number}(d: 0..2, v: 0..2) -> {domain} {{"));
        if self.recursion == Recursion::Bounded {
            self.line(1, "if d == 0 { return v; }".to_owned());
        }
        let statements = self.random.between(2, 4);
        (0..statements).for_each(|_| self.statement(1));
        let value = self.value();
        self.line(1, format!("return {value};"));
        self.line(0, "}".to_owned());
    }

    fn process(&mut self, name: &str, start: &str) {
        (self.in_procedure, self.may_spawn, self.registers) = (false, self.spawns && start.is_empty(), 0);
        self.line(0, format!("process {name}{start} {{"));
        self.line(1, "let r: 0..2 = 0;".to_owned());
        let statements = self.random.below(3);
        (0..statements).for_each(|_| self.statement(1));
        self.call(1);
        if self.random.percent(50) {
            self.statement(1);
        }
        self.line(0, "cs:".to_owned());
        self.line(1, "skip;".to_owned());
        self.line(0, "}".to_owned());
    }

    fn block(&mut self, depth: usize) {
        let statements = self.random.between(1, 2);
        (0..statements).for_each(|_| self.statement(depth));
    }

    fn statement(&mut self, depth: usize) {
        let nests = if depth < 3 { 1 } else { 0 };
        let kind = *self.random.weighted(&[
            (7, "assign"),
            (1, "assume"),
            (3, "call"),
            (3 * nests, "if"),
            (3 * nests, "choose"),
            (2, "locked"),
            (nests, "atomic"),
            (2, "let"),
            (1, "await"),
            (1, "assert"),
            (if self.may_spawn { 2 } else { 0 }, "spawn"),
        ]);
        match kind {
            "assign" => {
                let target = self.target();
                let value = match self.random.below(3) {
                    0 => format!("({target} + 1) % 3"),
                    _ => self.value(),
                };
                self.line(depth, format!("{target} = {value};"));
            }
            "assume" => {
                let condition = self.condition();
                self.line(depth, format!("assume({condition});"));
            }
            "call" => self.call(depth),
            "if" => {
                let condition = self.condition();
                self.line(depth, format!("if {condition} {{"));
                self.block(depth + 1);
                if self.random.percent(40) {
                    self.line(depth, "} else {".to_owned());
                    self.block(depth + 1);
                }
                self.line(depth, "}".to_owned());
            }
            "choose" => {
                self.line(depth, "choose {".to_owned());
                self.block(depth + 1);
                self.line(depth, "} or {".to_owned());
                self.block(depth + 1);
                self.line(depth, "}".to_owned());
            }
            "locked" => {
                let (cell, a, b) = (self.shared(), self.random.below(3), self.random.below(3));
                let line = match self.random.below(3) {
                    0 => format!("cas({cell}, {a}, {b});"),
                    1 => format!("xchg({cell}, {b});"),
                    _ => "fence;".to_owned(),
                };
                self.line(depth, line);
            }
            "atomic" => {
                self.line(depth, "atomic {".to_owned());
                self.block(depth + 1);
                self.line(depth, "}".to_owned());
            }
            "let" => {
                let name = format!("t{}", self.registers);
                self.registers += 1;
                let value = if self.random.percent(30) { "any(0..2)".to_owned() } else { self.value() };
                let target = self.target();
                self.line(depth, format!("let {name}: 0..2 = {value};"));
                self.line(depth, format!("{target} = {name};"));
            }
            "await" => {
                let (cell, value) = (self.shared(), self.random.below(3));
                self.line(depth, format!("await {cell} != {value};"));
            }
            "assert" => {
                let condition = self.condition();
                self.line(depth, format!("assert({condition});"));
            }
            _ => self.line(depth, "spawn S;".to_owned()),
        }
    }

    fn call(&mut self, depth: usize) {
        let procedure = self.random.below(self.procedures);
        let value = self.value();
        let target = if self.in_procedure { self.target() } else { "r".to_owned() };
        let left = match (self.recursion, self.in_procedure) {
            (Recursion::Bounded, true) => "d - 1",
            (Recursion::Bounded, false) => "2",
            (Recursion::Free, _) => *self.random.pick(&["0", "1", "2"]),
        };
        let call = format!("{target} = f{procedure}({left}, {value});");
        if self.recursion == Recursion::Free && self.in_procedure {
            self.line(depth, format!("choose {{ {call} }} or {{ skip; }}"));
        } else {
            self.line(depth, call);
        }
    }

    fn property(&mut self) {
        let process = self.random.below(self.processes);
        let value = self.random.below(3);
        let cell = self.shared();
        let property = match self.random.below(5) {
            0 => format!("forbid P{process}@cs && {cell} == {value};"),
            1 => format!("forbid P{process}.r == {value} && {cell} == {};", self.random.below(3)),
            2 => format!("final P{process}.r != {value} || {cell} != {};", self.random.below(3)),
            3 if self.spawns => format!("forbid count(S@cs) >= 1 && {cell} == {value};"),
            _ if self.processes > 1 => format!("forbid P0@cs && P1@cs && {cell} == {value};"),
            _ => format!("final {cell} != {value};"),
        };
        self.line(0, property);
    }

    fn shared(&mut self) -> String {
        (*self.random.pick(&["x", "y"])).to_owned()
    }

    /// Something that can be assigned.
    fn target(&mut self) -> String {
        let own = if self.in_procedure { "v" } else { "r" };
        let private = if self.private { "mine" } else { "x" };
        (*self.random.weighted(&[(3, "x"), (3, "y"), (1, own), (2, private)])).to_owned()
    }

    fn value(&mut self) -> String {
        match self.random.below(3) {
            0 => self.random.below(3).to_string(),
            _ => self.target(),
        }
    }

    fn condition(&mut self) -> String {
        let (left, right) = (self.target(), self.value());
        let operator = *self.random.pick(&["==", "!=", "<="]);
        format!("{left} {operator} {right}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_program::print::print;

    #[test]
    fn seeds_name_programs() {
        for recursion in [Recursion::Bounded, Recursion::Free] {
            for seed in 0..300 {
                let program = generate_recursive(recursion, seed);
                assert_eq!(print(&program), print(&generate_recursive(recursion, seed)));
            }
        }
        let text = |recursion, seed| print(&generate_recursive(recursion, seed));
        assert_ne!(text(Recursion::Free, 1), text(Recursion::Free, 2));
        assert_ne!(text(Recursion::Free, 1), text(Recursion::Bounded, 1));
    }
}
