//! Small programs in which every instruction matters: random stores, blocking reads, fences of both kinds and locked instructions over two cells, and the question
//! whether all processes can come to their ends. Brute force decides all of them.

use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Limits};
use palisade_conformance::random::Random;
use palisade_cover::{Dual, Single};
use palisade_engine::{Budget, Engine, Options, Silent, Suitability, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_syntax::{Language, parse};

/// A process as text. Its reads wait for a value; it ends at `e`.
fn process(number: usize, random: &mut Random) -> String {
    let mut body = String::new();
    for place in 0..random.between(2, 5) {
        let cell = *random.pick(&["x", "y"]);
        let (value, other) = (random.below(2), random.below(2));
        body += &match *random.weighted(&[(8, 0), (8, 1), (4, 2), (1, 3), (1, 4), (1, 5)]) {
            0 => format!("{cell} = {value}; "),
            1 => format!("await {cell} == {value}; "),
            2 => "sfence; ".to_owned(),
            3 => "fence; ".to_owned(),
            4 => format!("let o{place} = xchg({cell}, {value}); assume(o{place} == {other}); "),
            _ => format!("atomic {{ x = {value}; y = {other}; }} "),
        };
    }
    format!("process P{number} {{ {body}e: skip; }}\n")
}

fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let processes = random.between(1, 3);
    let bodies: String = (0..processes).map(|number| process(number, &mut random)).collect();
    let ends: Vec<String> = (0..processes).map(|number| format!("P{number}@e")).collect();
    let memory = *random.pick(&["", " && x == 0", " && x == 1 && y == 0"]);
    format!("shared x, y: 0..1;\n{bodies}forbid {}{memory};\n", ends.join(" && "))
}

#[test]
fn differential_programs_in_which_every_instruction_matters() {
    let seeds = std::env::var("PALISADE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(400);
    let (mut safe, mut broken) = (0, 0);
    for seed in 1..=seeds {
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
            let system = task.system(1);
            let expected = match brute::check(task.machine(&system), Limits::states(100_000)) {
                Answer::Safe => "safe",
                Answer::Unsafe(_) => "unsafe",
                Answer::Inconclusive => continue,
            };
            *(if expected == "safe" { &mut safe } else { &mut broken }) += 1;
            for engine in [&Single as &dyn Engine, &Dual] {
                if engine.suits(&task) != Suitability::No {
                    let verdict = engine.check(&task, &Budget::unlimited(1), &Silent).verdict;
                    let (name, model) = (engine.name(), model.name());
                    assert_eq!(
                        verdict.word(),
                        expected,
                        "seed {seed}: {name} under {model}, {interlocked:?}\n{text}"
                    );
                }
            }
        }
    }
    println!("{safe} safe, {broken} unsafe");
    assert!(safe > 0 && broken > 0);
}
