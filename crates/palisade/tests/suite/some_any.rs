//! Any number of some processes and one of the others: what engines say about random programs is compared with brute
//! force for one to three processes.

use palisade::{CheckOptions, EngineChoice, Input, Language, Limits, Model, Source, Threads, Verdict};
use palisade_conformance::brute::{self, Answer};
use palisade_conformance::{Profile, generate, seeds};
use palisade_memory::{Interlocked, Machine};
use palisade_program::print::print;
use palisade_program::written::{Count, Program, Start};
use palisade_program::{Instantiation, lower};

/// The program with this many of the first process, and one of each other.
fn with(program: &Program, count: u32) -> Program {
    let mut program = program.clone();
    for (index, template) in program.templates.iter_mut().enumerate() {
        if template.start == Start::Initially {
            template.count = Count::Fixed(if index == 0 { count } else { 1 });
        }
    }
    program
}

/// What brute force says about one to three of the first process.
fn brute_force(program: &Program, model: Model) -> Vec<Answer> {
    let answers = (1..=3).map(|count| {
        let system = lower(&with(program, count), Instantiation::declared(1));
        let machine = Machine { system: &system, model, interlocked: Interlocked::default() };
        brute::check(machine, brute::Scope::states(20_000))
    });
    answers.collect()
}

#[test]
fn differential_any_number_of_one_process() {
    let engines = palisade::engines();
    let names = engines.iter().map(|engine| EngineChoice::Named(engine.name().to_owned()));
    let choices: Vec<EngineChoice> = [EngineChoice::Auto].into_iter().chain(names).collect();
    let (mut safe, mut broken, mut mixed) = (0, 0, 0);
    for seed in seeds(8).starting_at(1) {
        let profile = [Profile::Simple, Profile::Cyclic][(seed % 2) as usize];
        let program = generate(profile, seed);
        let text = print(&with(&program, 2));
        let read = palisade::read(Source::new("random.pal", text.as_str()), Language::Pal, None);
        // Properties may refer to instances by number.
        let Ok(Ok(input)) = read.map(Input::with_any_number_of_several) else { continue };
        mixed += u32::from(input.program.templates.iter().any(|template| template.count == Count::Fixed(1)));
        for model in Model::ALL {
            let expected = brute_force(&program, model);
            for engine in &choices {
                let options = CheckOptions {
                    model,
                    engine: engine.clone(),
                    threads: Threads::Several,
                    ..CheckOptions::default()
                };
                let limits = Limits::unlimited(1).with_work(5_000);
                let answer = palisade::check(&input.program, &options, &limits).expect("an answer");
                let what = format!("seed {seed}, {}, {engine:?}\n{text}", model.name());
                match &answer.outcome.verdict {
                    Verdict::Holds => {
                        let wrong = expected.iter().any(|answer| matches!(answer, Answer::Unsafe(_)));
                        assert!(!wrong, "safe for any number, but brute force finds a run: {what}");
                        safe += 1;
                    }
                    Verdict::Violated(witness) => {
                        let number = witness.instantiation.any as usize;
                        let there = number.checked_sub(1).and_then(|index| expected.get(index));
                        assert!(!matches!(there, Some(Answer::Safe)), "no such run with {number}: {what}");
                        broken += 1;
                    }
                    Verdict::Unknown(_) => {}
                }
            }
        }
    }
    assert!(mixed == 0 || safe > 0 && broken > 0, "{safe} safe, {broken} unsafe of {mixed} programs");
}
