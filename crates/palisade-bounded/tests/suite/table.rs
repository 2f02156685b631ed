//! Table 1 of Atig, Bouajjani and Parlato (CAV 2011): four protocols, with their loops unchanged. Without
//! fences, a run is found within two rounds and with store age 2. With fences, there is no such run within
//! these bounds.

use palisade_base::Source;
use palisade_bounded::{Age, Rounds};
use palisade_engine::{Bound, Engine, Limits, Options, Reason, Task, Verdict};
use palisade_explore::Explicit;
use palisade_memory::Model;
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};

const ROUNDS: Rounds = Rounds { sc: &Explicit, recursive: &Pushdown };
const AGE: Age = Age { sc: &Explicit };

/// The verdict with a bound.
fn check(engine: &dyn Engine, file: &str, bound: u32) -> Verdict {
    let text = palisade_corpus::text(file).unwrap_or_else(|| panic!("the corpus has {file}"));
    let program = parse(Language::Pal, &Source::new(file, text)).expect("the corpus is well formed").program;
    let bounds = Bound::Fixed(bound);
    let task = Task {
        options: Options { rounds: bounds, age: bounds, ..Options::default() },
        ..Task::new(&program, Model::Tso)
    };
    engine.check(&task.analysis(), &Limits::unlimited(1)).verdict
}

const PROTOCOLS: [&str; 4] = ["mutex/dekker", "mutex/lamport_fast", "mutex/peterson", "mutex/szymanski"];

#[test]
fn without_fences_a_run_is_found_with_the_least_bounds() {
    let least = |engine: &dyn Engine, protocol: &str| {
        let broken = |bound| matches!(check(engine, &format!("{protocol}.pal"), bound), Verdict::Violated(_));
        (0..=2).find(|&bound| broken(bound))
    };
    for protocol in PROTOCOLS {
        assert_eq!((least(&ROUNDS, protocol), least(&AGE, protocol)), (Some(1), Some(1)), "{protocol}");
    }
}

#[test]
fn with_fences_no_run_is_found() {
    for protocol in PROTOCOLS {
        let file = format!("{protocol}.fenced.pal");
        let rounds = check(&ROUNDS, &file, 2);
        assert_eq!(rounds, Verdict::Unknown(Reason::Rounds(2)), "{protocol}");
        let age = check(&AGE, &file, 2);
        assert!(matches!(age, Verdict::Holds | Verdict::Unknown(Reason::StoreAge(2))), "{protocol}: {age:?}");
    }
}
