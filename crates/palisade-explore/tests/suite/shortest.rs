//! Shortest runs, compared with the brute-force interpreter.

use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::{Profile, generate, seeds};
use palisade_engine::{Limits, Options};
use palisade_explore::{Shortest, shortest};
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower, print};
use palisade_syntax::{Language, parse};
use palisade_trace::replay;

#[test]
fn differential_as_long_as_by_brute_force() {
    let seeds = seeds(60);
    let mut found = 0;
    for (seed, profile) in seeds.range().flat_map(|seed| Profile::ALL.map(|profile| (seed, profile))) {
        let program = generate(profile, seed);
        let system = lower(&program, Instantiation { any: 2, every: None });
        for model in Model::ALL {
            let context = || format!("{profile:?} {seed}, {}:\n{}", model.name(), print::print(&program));
            let machine = Machine::new(&system, model);
            let expected = brute::check(machine, Scope::states(10_000));
            if expected == Answer::Inconclusive {
                continue;
            }
            match (expected, shortest(machine, &Options::default(), &Limits::unlimited(1))) {
                (Answer::Unsafe(expected), Shortest::Known(run)) => {
                    assert!(replay(machine, &run).is_ok(), "{}", context());
                    assert_eq!(run.steps.len(), expected.steps.len(), "{}", context());
                    found += 1;
                }
                (Answer::Unsafe(_), other) => panic!("{other:?} for {}", context()),
                (_, Shortest::Nothing | Shortest::Unknown(_)) => {}
                (_, other) => panic!("{other:?} for {}", context()),
            }
        }
    }
    assert!(found > 30 || !seeds.suffice(), "{found}");
}

#[test]
fn longer_buffers_can_make_a_run_shorter() {
    // With short buffers the detour over y is needed. With a buffer of three the direct way is open.
    let text = "shared x, y: 0..3; shared s: 0..1;
        process P {
            loop { x = 1; x = 2; x = 3; s = 1; let r = y; if r == 0 { break; } }
        }
        process Q { let a = s; y = 1; if a == 0 { bad: skip; } }
        forbid Q@bad && P@end;";
    let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program;
    let system = lower(&program, Instantiation { any: 1, every: None });
    for model in Model::ALL {
        let machine = Machine::new(&system, model);
        let Answer::Unsafe(expected) = brute::check(machine, Scope::states(100_000)) else {
            panic!("the program is unsafe under {}", model.name())
        };
        match shortest(machine, &Options::default(), &Limits::unlimited(1)) {
            Shortest::Known(run) => assert_eq!(run.steps.len(), expected.steps.len(), "{}", model.name()),
            other => panic!("{other:?} under {}", model.name()),
        }
    }
}
