//! Random programs in which processes wait for each other: `await`, `assume`, spinning, locks taken in any
//! order. They state what must stay possible.

use crate::random::Random;
use palisade_base::Source;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};

/// The waiting program that a seed names. The same seed always gives the same program on one version of this
/// file.
///
/// # Panics
/// If the generator produces an invalid program.
pub fn generate_waiting(seed: u64) -> Program {
    let random = Random::new(seed ^ 0x7761_6974_696e_6721);
    let text = Writer { random, labels: 0 }.program();
    match parse(Language::Pal, &Source::new(format!("waiting-{seed}.pal"), text.as_str())) {
        Ok(parsed) => parsed.program,
        Err(problems) => panic!("seed {seed}: {problems:?}\n{text}"),
    }
}

struct Writer {
    random: Random,
    /// How many labels were made so far.
    labels: usize,
}

const CELLS: [&str; 3] = ["x", "y", "lock"];

impl Writer {
    fn program(mut self) -> String {
        let mut text = String::from("shared x, y, lock: 0..2;\n");
        let processes = self.random.between(1, 3);
        let mut goals = vec!["end".to_owned(), format!("x == {}", self.random.below(3))];
        let mut left = String::new();
        for process in 0..processes {
            let length = self.random.between(1, 6 - processes);
            let mut labels = Vec::new();
            let mut body = self.block(length, 2, &mut labels);
            match self.random.below(8) {
                0 => body = format!("loop {{ {body}}}"),
                1 => body = format!("loop {{ {body}fence; }}"),
                _ => {}
            }
            text += &format!("process P{process} {{ {body}}}\n");
            goals.push(format!("P{process}@end"));
            labels.sort_unstable();
            for label in labels {
                goals.push(format!("P{process}@l{label}"));
                left += &format!("leaves P{process}@l{label};\n");
            }
        }
        if self.random.percent(15) {
            text += "process W on spawn { await x == 1; y = 1; }\n";
        } else {
            text = text.replace("spawn W; ", "skip; ");
        }
        let goal = self.random.pick(&goals).clone();
        text + &format!("deadlock-free;\nlive {goal};\nlive end;\nterminates;\n{left}")
    }

    /// Some statements. Adds the labels in them.
    fn block(&mut self, length: usize, depth: usize, labels: &mut Vec<usize>) -> String {
        (0..length).map(|_| self.statement(depth, labels)).collect()
    }

    fn statement(&mut self, depth: usize, labels: &mut Vec<usize>) -> String {
        let label = if self.random.percent(10) {
            labels.push(self.labels);
            self.labels += 1;
            format!("l{}: ", self.labels - 1)
        } else {
            String::new()
        };
        let (cell, value) = (*self.random.pick(&CELLS), self.random.below(3));
        let condition = self.condition();
        let inner = self.random.between(0, 2);
        let mut labels_inside = Vec::new();
        let inside = if depth > 0 { self.block(inner, depth - 1, &mut labels_inside) } else { String::new() };
        let kind = self.random.below(if depth > 0 { 22 } else { 15 });
        if kind >= 15 && kind != 20 {
            labels.append(&mut labels_inside);
        }
        label
            + &match kind {
                0..=3 => format!("{cell} = {value}; "),
                4..=6 => format!("await {condition}; "),
                7 => format!("assume({condition}); "),
                8 => format!("while {condition} {{}} "),
                9 => "while xchg(lock, 1) == 1 {} ".to_owned(),
                10 => format!("await cas(lock, 0, {value}); "),
                11 => "fence; ".to_owned(),
                12 => format!("await fetch_add({cell}, 0) == {value}; "),
                13 => "lock = 0; ".to_owned(),
                14 => "spawn W; ".to_owned(),
                15 | 16 => format!("if {condition} {{ {inside}}} "),
                17 => format!("while {condition} {{ {inside}fence; }} "),
                18 => format!("choose {{ await {condition}; {inside}}} or {{ await {cell} == {value}; }} "),
                19 => format!("choose {{ {inside}}} or {{ {cell} = {value}; }} "),
                20 => format!("atomic {{ await {condition}; {cell} = {value}; }} "),
                _ => format!("atomic {{ {inside}}} ").replace("spawn W; ", ""),
            }
    }

    fn condition(&mut self) -> String {
        let (cell, value) = (*self.random.pick(&CELLS), self.random.below(3));
        let (other, second) = (*self.random.pick(&CELLS), self.random.below(3));
        match self.random.below(6) {
            0 => format!("{cell} != {value}"),
            1 => format!("{cell} == {value} && {other} == {second}"),
            2 => format!("{cell} == {value} || {other} == {second}"),
            3 => format!("!({cell} < {value})"),
            _ => format!("{cell} == {value}"),
        }
    }
}
