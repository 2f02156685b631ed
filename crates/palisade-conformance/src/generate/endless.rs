//! Random programs that do not terminate: counters that grow, processes started in loops, unbounded
//! recursion, any number of instances. A property is broken soon, or never.

use crate::random::Random;
use palisade_base::Source;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};

/// The endless program that a seed names. The same seed always gives the same program on one version of this
/// file.
///
/// # Panics
/// If the generator produces an invalid program.
pub fn generate_endless(seed: u64) -> Program {
    let random = Random::new(seed ^ 0x656e_646c_6573_7321);
    let text = Writer { random }.program();
    match parse(Language::Pal, &Source::new(format!("endless-{seed}.pal"), text.as_str())) {
        Ok(parsed) => parsed.program,
        Err(problems) => panic!("seed {seed}: {problems:?}\n{text}"),
    }
}

struct Writer {
    random: Random,
}

/// What continues forever.
#[derive(Clone, Copy)]
enum Endless {
    /// A register counts up.
    Register,
    /// A cell of the process counts up.
    Cell,
    /// Stores go into the buffer.
    Stores,
    Spawns,
    Calls,
}

impl Writer {
    fn program(mut self) -> String {
        let mut text = String::from("shared x, y: 0..2;\nshared n, m;\n");
        text += &format!(
            "proc dig() {{ {}choose {{ dig(); }} or {{ skip; }} {}}}\n",
            self.steps(1),
            self.steps(1)
        );
        let kinds = [Endless::Register, Endless::Cell, Endless::Stores, Endless::Spawns, Endless::Calls];
        let first = *self.random.pick(&kinds);
        // Searches tend to follow the first process in the program.
        text += &self.endless("A", "n", first);
        if self.random.percent(30) {
            let second = *self.random.pick(&kinds);
            text += &self.endless("C", "m", second);
        }
        let count = if self.random.percent(20) { "[*]" } else { "" };
        text += &format!("process B{count} {{ {}b: skip; {}}}\n", self.steps(2), self.steps(2));
        text += &format!("process W on spawn {{ {}w: skip; {}}}\n", self.steps(1), self.steps(1));
        let (value, count) = (self.random.below(3), self.random.between(1, 3));
        text += &match self.random.below(5) {
            0 => format!("forbid count(W@w) >= {count};\n"),
            1 => format!("forbid count(W@w) >= 1 && x == {value};\n"),
            2 => format!("forbid count(B@b) >= {count} && y == {value};\n"),
            3 => format!("forbid x == {value} && y == {};\n", self.random.below(3)),
            _ => String::new(),
        };
        text
    }

    fn endless(&mut self, name: &str, cell: &str, endless: Endless) -> String {
        let (before, inside) = (self.steps(1), self.steps(1));
        let body = match endless {
            // Without the access, one step of the process would be thousands of local steps.
            Endless::Register => format!("let r = 0; {before}loop {{ r = r + 1; let t = {cell}; }}"),
            Endless::Cell => format!("{before}loop {{ {cell} = {cell} + 1; }}"),
            Endless::Stores => format!("{before}loop {{ x = 1; {inside}}}"),
            Endless::Spawns => format!("{before}loop {{ spawn W; {inside}}}"),
            Endless::Calls => format!("{before}dig(); {inside}"),
        };
        format!("process {name} {{ {body} }}\n")
    }

    /// At most this many statements.
    fn steps(&mut self, most: usize) -> String {
        (0..self.random.between(0, most)).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> String {
        let (cell, value, other) =
            (*self.random.pick(&["x", "y"]), self.random.below(3), self.random.below(3));
        match self.random.below(9) {
            0..=2 => format!("{cell} = {value}; "),
            3 => format!("assert({cell} != {value}); "),
            4 => format!("if {cell} == {value} {{ y = {other}; }} "),
            5 => format!("cas({cell}, {value}, {other}); "),
            6 => format!("assume({cell} == {value}); "),
            7 => "fence; ".to_owned(),
            _ => format!("atomic {{ {cell} = {value}; x = {other}; }} "),
        }
    }
}
