//! Data races: explicit search against the definition.

use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds, transform};
use palisade_engine::{Engine, Limits, Options, Question, Reduction, Safety, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Machine, Model, Violation};
use palisade_program::{Instantiation, lower, print};
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
