//! Robustness with any number of processes. The answer is `robust` if control flow rules out every attack,
//! and never if there is a cycle with some number of processes. A claim up to a number of instances holds for
//! these numbers.

use palisade_conformance::generate::generate_parameterized;
use palisade_conformance::robust::{Answer, check};
use palisade_engine::{Engine, Limits, Options, Reason, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::{Instantiation, lower, print};
use palisade_robust::Attacks;

#[test]
fn random_templates() {
    let (mut robust, mut not_robust, mut claims) = (0, 0, 0);
    for seed in 0..14 {
        let program = generate_parameterized(seed);
        for model in [Model::Tso, Model::Pso] {
            let interlocked = Interlocked::default();
            let options = Options::default();
            let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
            let limits = Limits::unlimited(1).with_work(20_000);
            let no_cycle_up_to = |most: u32| {
                for any in 1..=most {
                    let system = lower(&program, Instantiation { any, every: None });
                    let found = check(Machine::new(&system, model), 1_000);
                    let text = print::print(&program);
                    assert!(!matches!(found, Answer::NotRobust(_)), "{seed} {model:?}, {any} each\n{text}");
                }
            };
            match Attacks.check(&task.analysis(), &limits).verdict {
                Verdict::Holds => {
                    no_cycle_up_to(2);
                    robust += 1;
                }
                Verdict::Violated(_) => not_robust += 1,
                Verdict::Unknown(Reason::RobustUpTo(most)) => {
                    no_cycle_up_to(most);
                    claims += 1;
                }
                Verdict::Unknown(Reason::Partly(_, reached)) => {
                    if let Reason::RobustUpTo(most) = *reached {
                        no_cycle_up_to(most);
                        claims += 1;
                    }
                }
                Verdict::Unknown(_) => {}
            }
        }
    }
    assert!(
        robust > 0 && not_robust > 2 && claims > 0,
        "{robust} robust, {not_robust} not, {claims} up to a number"
    );
}
