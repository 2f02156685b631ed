//! Small programs in which every instruction matters: litmus tests of two processes with reads of own stores,
//! fences of both kinds, locked instructions and other accesses in between. The question is whether both
//! processes can reach their ends with the reads that the litmus test specifies.

use palisade_base::Source;
use palisade_certificate::verify;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Options, Question, Safety, Suitability, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_syntax::{Language, parse};

/// An access of a litmus test: whether it stores, the cell, and the value that is stored or waited for.
type Access = (bool, &'static str, usize);

const fn store(cell: &'static str, value: usize) -> Access {
    (true, cell, value)
}

const fn read(cell: &'static str, value: usize) -> Access {
    (false, cell, value)
}

/// The litmus tests of two processes with two accesses each, and the final contents of memory.
const SHAPES: [([[Access; 2]; 2], &str); 7] = [
    ([[store("x", 1), read("y", 0)], [store("y", 1), read("x", 0)]], ""),
    ([[store("x", 1), store("y", 1)], [read("y", 1), read("x", 0)]], ""),
    ([[store("x", 1), store("y", 1)], [store("y", 2), read("x", 0)]], " && y == 2"),
    ([[store("x", 2), store("y", 1)], [read("y", 1), store("x", 1)]], " && x == 2"),
    ([[store("x", 1), store("y", 2)], [store("y", 1), store("x", 2)]], " && x == 1 && y == 1"),
    ([[read("x", 1), store("y", 1)], [read("y", 1), store("x", 1)]], ""),
    ([[store("x", 1), store("x", 2)], [read("x", 2), read("x", 1)]], ""),
];

/// Writes a process and remembers what it has stored.
struct Writer<'r> {
    random: &'r mut Random,
    text: String,
    stored: Vec<(&'static str, usize)>,
    registers: usize,
}

impl Writer<'_> {
    fn access(&mut self, (stores, cell, value): Access) {
        if stores {
            self.text += &format!("{cell} = {value}; ");
            self.stored.retain(|(other, _)| *other != cell);
            self.stored.push((cell, value));
        } else {
            self.text += &format!("await {cell} == {value}; ");
        }
    }

    /// Adds something in between that may or may not matter.
    fn decorate(&mut self) {
        let cell = *self.random.pick(&["x", "y", "z"]);
        let (value, other) = (self.random.below(2), self.random.below(2));
        match *self.random.weighted(&[(8, 0), (8, 1), (3, 2), (2, 3), (1, 4), (1, 5), (1, 6)]) {
            0 => self.text += "sfence; ",
            1 if !self.stored.is_empty() => {
                let (cell, value) = *self.random.pick(&self.stored);
                self.access(read(cell, value));
            }
            1 | 2 => self.access(store(cell, value)),
            3 => self.access(read(cell, value)),
            4 => self.text += "fence; ",
            5 => {
                let register = self.registers;
                self.registers += 1;
                self.text +=
                    &format!("let o{register} = xchg({cell}, {value}); assume(o{register} == {other}); ");
                self.stored.retain(|(other, _)| *other != cell);
            }
            _ => {
                self.text += &format!("atomic {{ x = {value}; z = {other}; }} ");
                self.stored.clear();
            }
        }
    }
}

fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let (shape, memory) = random.pick(&SHAPES);
    let mut text = "shared x, y, z: 0..2;\n".to_owned();
    for (number, accesses) in shape.iter().enumerate() {
        let mut writer =
            Writer { random: &mut random, text: String::new(), stored: Vec::new(), registers: 0 };
        for (place, &access) in accesses.iter().enumerate() {
            for _ in 0..writer.random.below(if place == 0 { 2 } else { 4 }) {
                writer.decorate();
            }
            writer.access(access);
        }
        if writer.random.percent(20) {
            writer.decorate();
        }
        let body = writer.text;
        // Some run forever, so that buffers can grow.
        let body =
            if random.percent(10) { format!("loop {{ {body}e: skip; }}") } else { format!("{body}e: skip;") };
        text += &format!("process P{number} {{ {body} }}\n");
    }
    if random.percent(30) {
        let mut writer =
            Writer { random: &mut random, text: String::new(), stored: Vec::new(), registers: 0 };
        (0..3).for_each(|_| writer.decorate());
        text += &format!("process Q {{ {} }}\n", writer.text);
    }
    format!("{text}forbid P0@e && P1@e{memory};\n")
}

#[test]
fn differential_programs_in_which_every_instruction_matters() {
    let seeds = seeds(600).starting_at(1);
    let (mut safe, mut broken) = (0, 0);
    for seed in &seeds {
        let text = program(seed);
        let program = parse(Language::Pal, &Source::new("p", text.clone())).expect(&text).program;
        for (model, interlocked) in [
            (Model::Sc, Interlocked::WholeBuffer),
            (Model::Tso, Interlocked::WholeBuffer),
            (Model::Pso, Interlocked::WholeBuffer),
            (Model::Pso, Interlocked::OwnAddress),
        ] {
            let options = Options::default();
            let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
            let system = task.lower(1);
            let expected =
                match brute::check(task.machine(&system), Scope { states: 20_000, buffer: Some(5) }) {
                    Answer::Safe => "safe",
                    Answer::Unsafe(_) => "unsafe",
                    Answer::Inconclusive => continue,
                };
            *(if expected == "safe" { &mut safe } else { &mut broken }) += 1;
            if seed % 8 == 0 && expected == "safe" {
                let proof = Sb.prove(&task.analysis(), &Limits::unlimited(1)).1.expect("it is safe");
                if let Err(refusal) = verify(&task, &proof, &Limits::unlimited(1)) {
                    panic!(
                        "seed {seed}: the proof under {}, {interlocked:?}: {refusal}\n{text}",
                        model.name()
                    );
                }
            }
            for engine in [&Sb as &dyn Engine, &Dual] {
                if engine.suits(&task.analysis()) != Suitability::No {
                    let verdict = engine.check(&task.analysis(), &Limits::unlimited(1)).verdict;
                    let (name, model) = (engine.name(), model.name());
                    assert_eq!(
                        Safety::word(&verdict),
                        expected,
                        "seed {seed}: {name} under {model}, {interlocked:?}\n{text}"
                    );
                }
            }
        }
    }
    println!("{safe} safe, {broken} unsafe");
    assert!(safe > 0 && broken > 0 || !seeds.suffice());
}
