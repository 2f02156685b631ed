//! Data races: explicit search against the definition.

use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds, transform};
use palisade_engine::{Engine, Limits, Options, Question, Reduction, Safety, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Machine, Model, Violation};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_syntax::{Language, parse};
use palisade_trace::replay;

#[test]
fn differential_races_are_those_of_brute_force() {
    let seeds = seeds(300).starting_at(1);
    let (mut safe, mut races) = (0, 0);
    for seed in &seeds {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let mut random = Random::new(seed);
        let mut program = generate(profile, seed);
        // Without the other properties, races are all that can be wrong.
        if random.percent(60) {
            program.properties.clear();
        }
        if random.percent(30) {
            program = transform::in_words(&program, &mut random);
        }
        let program = transform::with_plain(&program, &mut random);
        if palisade_program::validate(&program).iter().any(|found| found.is_error()) {
            continue;
        }
        let system = lower(&program, Instantiation { any: 2, every: None });
        for model in Model::ALL {
            let machine = Machine::new(&system, model);
            let expected = match brute::check(machine, Scope { states: 5_000, buffer: Some(3) }) {
                Answer::Safe => "safe",
                Answer::Unsafe(_) => "unsafe",
                Answer::Inconclusive => continue,
            };
            for reduction in [Reduction::Full, Reduction::Local, Reduction::None] {
                let options = Options { reduction, max_buffer: 3, ..Options::default() };
                let interlocked = Interlocked::default();
                let threads = Threads::Declared;
                let task = Task { program: &program, threads, model, interlocked, options };
                let verdict = Explicit.check(&task.analysis(), &Limits::unlimited(1)).verdict;
                let text =
                    || format!("seed {seed}, {}, {reduction:?}\n{}", model.name(), print::print(&program));
                match &verdict {
                    Verdict::Unknown(_) => continue,
                    Verdict::Holds => safe += 1,
                    Verdict::Violated(witness) => {
                        let violation = replay(machine, &witness.run).expect("the run replays").violation;
                        races += usize::from(matches!(violation, Some(Violation::Race(..))));
                        assert!(violation.is_some(), "{}", text());
                    }
                }
                assert_eq!(Safety::word(&verdict), expected, "{}", text());
            }
        }
    }
    println!("{safe} safe, {races} races");
    assert!(safe > 100 && races > 100 || !seeds.suffice(), "{safe} safe, {races} races");
}

/// A write that comes after a pending store. The store can reach memory before the thread makes the write, and another
/// thread that sees it can then be about to access the same variable.
#[test]
fn a_write_after_a_store_that_others_wait_for() {
    let texts = [
        "shared ready: 0..1; shared data: 0..1;
         process P { ready = 1; data = 1; }
         process Q { let r: 0..1; if ready == 1 { r = data; } }",
        "shared ready: 0..1; shared data: 0..1; shared last: 0..1;
         process P { last = 1; ready = 1; last = 0; data = 1; }
         process Q { if ready == 1 { data = 0; } }",
    ];
    for text in texts {
        let program = program(text, &["data"]);
        for model in Model::ALL {
            for reduction in [Reduction::Full, Reduction::Local, Reduction::None] {
                assert_eq!(
                    word(&program, model, reduction),
                    "unsafe",
                    "{} {reduction:?}\n{text}",
                    model.name()
                );
            }
        }
    }
}

/// Under PSO a store may still be pending while another thread reacts to a later one.
#[test]
fn a_pending_store_that_was_overtaken() {
    let check = |text: &str, expected: [&str; 3]| {
        let program = program(text, &["data"]);
        for (model, expected) in Model::ALL.into_iter().zip(expected) {
            for reduction in [Reduction::Full, Reduction::Local, Reduction::None] {
                let found = word(&program, model, reduction);
                assert_eq!(found, expected, "{} {reduction:?}\n{text}", model.name());
            }
        }
    };
    let reader = "process Q { let r: 0..1; if ready == 1 { r = data; } }";
    let start = "shared ready: 0..1; shared data: 0..1;";
    check(&format!("{start} process P {{ data = 1; ready = 1; }} {reader}"), ["safe", "safe", "unsafe"]);
    check(&format!("{start} process P {{ data = 1; sfence; ready = 1; }} {reader}"), ["safe"; 3]);
    check(
        &format!("{start} process P {{ data = 1; ready = 1; }} process Q {{ let r: 0..1; r = ready; }}"),
        ["safe"; 3],
    );
}

/// Short threads that store, load and look at what they have loaded, against brute force.
#[test]
fn differential_short_threads() {
    let seeds = seeds(400).starting_at(1);
    let (mut safe, mut races) = (0, 0);
    for seed in &seeds {
        let mut random = Random::new(seed);
        let mut text = "shared x: 0..1; shared y: 0..1; shared z: 0..1;\n".to_owned();
        for name in ["P", "Q"] {
            text += &format!("process {name} {{ let r: 0..1;\n");
            for _ in 0..random.between(2, 5) {
                let cell = ["x", "x", "y", "y", "z"][random.below(5)];
                text += &match random.below(4) {
                    0 => format!("r = {cell};\n"),
                    1 => format!("if {} == 1 {{ z = 1; }}\n", ["x", "y"][random.below(2)]),
                    2 if random.percent(20) => "fence;\n".to_owned(),
                    _ => format!("{cell} = 1;\n"),
                };
            }
            text += "}\n";
        }
        let program = program(&text, &["z"]);
        let system = lower(&program, Instantiation { any: 2, every: None });
        for model in Model::ALL {
            let machine = Machine::new(&system, model);
            let expected = match brute::check(machine, Scope { states: 100_000, buffer: None }) {
                Answer::Safe => "safe",
                Answer::Unsafe(_) => "unsafe",
                Answer::Inconclusive => panic!("these programs are small"),
            };
            for reduction in [Reduction::Full, Reduction::Local] {
                let found = word(&program, model, reduction);
                assert_eq!(found, expected, "seed {seed}, {} {reduction:?}\n{text}", model.name());
            }
            safe += usize::from(expected == "safe");
            races += usize::from(expected == "unsafe");
        }
    }
    assert!(safe > 100 && races > 100 || !seeds.suffice(), "{safe} safe, {races} races");
}

/// The program of a text, with plain accesses to some variables.
fn program(text: &str, plain: &[&str]) -> Program {
    let source = Source::new("p.pal", text);
    let parsed = parse(Language::Pal, &source).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    transform::with_plain_variables(&parsed.program, plain)
}

fn word(program: &Program, model: Model, reduction: Reduction) -> &'static str {
    let options = Options { reduction, max_buffer: 8, ..Options::default() };
    let task =
        Task { program, threads: Threads::Declared, model, interlocked: Interlocked::default(), options };
    Safety::word(&Explicit.check(&task.analysis(), &Limits::unlimited(1)).verdict)
}
