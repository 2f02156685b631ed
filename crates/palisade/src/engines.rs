//! The engines there are. A new engine is one more line in [`engines()`].

use crate::check::Wanted;
use crate::scout::Scout;
use palisade_engine::{Engine, RobustnessEngine, Suitability, Task};

/// All engines, the preferred one first.
pub fn engines() -> &'static [&'static dyn Engine] {
    &[
        &palisade_explore::Explicit,
        &palisade_cover::Dual,
        &palisade_cover::Single,
        LAZY,
        &palisade_pushdown::Pushdown,
        ROUNDS,
        AGE,
    ]
}

/// Lazy reachability, with explicit search under SC.
const LAZY: &dyn Engine = &palisade_robust::Lazy { sc: &palisade_explore::Explicit };

/// Bounded rounds, with explicit search under SC, and pushdown systems for recursive programs.
const ROUNDS: &dyn Engine =
    &palisade_bounded::Rounds { sc: &palisade_explore::Explicit, recursive: &palisade_pushdown::Pushdown };

/// Bounded store age, with explicit search under SC.
const AGE: &dyn Engine = &palisade_bounded::Age { sc: &palisade_explore::Explicit };

/// The engine with a name.
pub fn named(name: &str) -> Option<&'static dyn Engine> {
    engines().iter().copied().find(|engine| engine.name() == name)
}

/// The engines that can try the task, those that decide it first and reluctant ones last, otherwise in the order of [`engines()`]; to prove `safe`, those first whose proofs are easy to check.
pub(crate) fn suited(task: &Task<'_>, wanted: Wanted) -> Vec<&'static dyn Engine> {
    let mut preferred = engines().to_vec();
    match wanted {
        // Lazy reachability finds out by itself whether a program is robust.
        Wanted::Answer if LAZY.suits(task) == Suitability::No => preferred.push(&Scout),
        Wanted::Answer => {}
        Wanted::Proof | Wanted::Checked => {
            preferred.sort_by_key(|engine| std::cmp::Reverse(engine.proofs()));
        }
    }
    best_first(&preferred, task)
}

/// All engines for robustness, the preferred one first.
pub fn robustness_engines() -> &'static [&'static dyn RobustnessEngine] {
    &[&palisade_robust::Attacks, &palisade_monitor::ByMonitors]
}

/// The engines for robustness that can try the task, the best first.
pub fn suited_for_robustness(task: &Task<'_>) -> Vec<&'static dyn RobustnessEngine> {
    let mut suited: Vec<_> = robustness_engines().to_vec();
    suited.retain(|engine| engine.suits(task) != Suitability::No);
    suited.sort_by_key(|engine| std::cmp::Reverse(engine.suits(task)));
    suited
}

fn best_first<'e>(engines: &[&'e dyn Engine], task: &Task<'_>) -> Vec<&'e dyn Engine> {
    let suits = engines.iter().map(|&engine| (engine.suits(task), engine));
    let mut suited: Vec<_> = suits.filter(|(suits, _)| *suits != Suitability::No).collect();
    suited.sort_by_key(|(suits, _)| std::cmp::Reverse(*suits));
    suited.into_iter().map(|(_, engine)| engine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_engine::{Budget, Options, Outcome, Progress, Stats, Threads, Verdict};
    use palisade_memory::{Interlocked, Model};
    use palisade_program::written::Program;

    struct Fake(&'static str, Suitability);

    impl Engine for Fake {
        fn name(&self) -> &'static str {
            self.0
        }
        fn suits(&self, _: &Task<'_>) -> Suitability {
            self.1
        }
        fn check(&self, _: &Task<'_>, _: &Budget, _: &dyn Progress) -> Outcome {
            Outcome { verdict: Verdict::Safe, engine: self.0, stats: Stats::new() }
        }
    }

    #[test]
    fn auto_asks_the_best_first() {
        use Suitability::{Decides, No, Reluctant, Tries};
        let program = Program::default();
        let task = Task {
            program: &program,
            threads: Threads::Declared,
            model: Model::Tso,
            interlocked: Interlocked::WholeBuffer,
            options: Options::default(),
        };
        let check = |suits: &[Suitability], expected: &[&str]| {
            let fakes: Vec<Fake> = ["a", "b", "c"].into_iter().zip(suits).map(|(n, s)| Fake(n, *s)).collect();
            let engines: Vec<&dyn Engine> = fakes.iter().map(|fake| fake as &dyn Engine).collect();
            let names: Vec<_> = best_first(&engines, &task).iter().map(|engine| engine.name()).collect();
            assert_eq!(names, expected);
        };
        check(&[No, No, No], &[]);
        check(&[No, Tries, Tries], &["b", "c"]);
        check(&[Tries, Decides, Decides], &["b", "c", "a"]);
        check(&[Decides, No, Decides], &["a", "c"]);
        check(&[Reluctant, Tries, No], &["b", "a"]);
        check(&[No, Reluctant, Reluctant], &["b", "c"]);
    }

    #[test]
    fn names_are_unique() {
        for engine in engines() {
            assert_eq!(engines().iter().filter(|other| other.name() == engine.name()).count(), 1);
            assert!(named(engine.name()).is_some());
        }
        assert!(named("auto").is_none(), "`auto` is no engine");
    }
}
