//! Random programs in which processes wait for each other and mostly come to an end: announcements, looks at
//! the announcements of others, waits that depend on what was seen. Whether such a program terminates depends
//! on the memory model more often than for other programs.

use crate::random::Random;
use palisade_base::Source;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};

/// The program that a seed names. The same seed always gives the same program on one version of this file.
///
/// # Panics
/// If the generator produces an invalid program.
pub fn generate_waking(seed: u64) -> Program {
    let mut random = Random::new(seed ^ 0x7761_6b65_2d75_7021);
    let mut text = String::from("shared a, b, c: 0..1;\n");
    let mut left = String::new();
    for process in 0..2 {
        let (own, other) = if process == 0 { ("a", "b") } else { ("b", "a") };
        // Announce, look at the other, and wait for it or wake it.
        let waits = random.below(2) == 0;
        let second = if waits {
            format!("if {other} == 0 {{ l1: await c == 1; }} ")
        } else {
            format!("if {other} == 1 {{ c = 1; }} ")
        };
        let parts = [(format!("{own} = 1; "), false), (second, waits)];
        let mut body = String::new();
        let mut is_labelled = false;
        for (place, (part, has_label)) in parts.into_iter().enumerate() {
            if random.percent(30) {
                body += &statement(&mut random, process, 2 + 2 * place, &mut left);
            }
            if random.percent(90) {
                body += &part;
                is_labelled |= has_label;
            }
            if random.percent(20) {
                body += &statement(&mut random, process, 3 + 2 * place, &mut left);
            }
        }
        if is_labelled {
            left += &format!("leaves P{process}@l1;\n");
        }
        text += &format!("process P{process} {{ {body}}}\n");
    }
    text += &format!("terminates;\n{left}");
    match parse(Language::Pal, &Source::new(format!("waking-{seed}.pal"), text.as_str())) {
        Ok(parsed) => parsed.program,
        Err(problems) => panic!("seed {seed}: {problems:?}\n{text}"),
    }
}

fn statement(random: &mut Random, process: usize, place: usize, left: &mut String) -> String {
    let mut cell = || *random.pick(&["a", "b", "c"]);
    let (first, second) = (cell(), cell());
    let value = random.below(4).min(1);
    match random.below(10) {
        0..=3 => format!("{first} = {value}; "),
        4 => "fence; ".to_owned(),
        5 => format!("if {first} == 0 {{ {second} = 1; }} "),
        6 => format!("if {first} == 1 {{ {second} = 1; }} "),
        7 => format!("while xchg({first}, {value}) == 1 {{ {second} = 1; }} "),
        kind => {
            *left += &format!("leaves P{process}@l{place};\n");
            let wait = format!("l{place}: await {second} == 1; ");
            if kind == 8 { wait } else { format!("if {first} == 0 {{ {wait}}} ") }
        }
    }
}
