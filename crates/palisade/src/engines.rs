//! The list of engines. To add an engine, add a line to [`engines()`].

use crate::check::EngineChoice;
use crate::error::AskError;
use crate::question::{Ask, Wanted};
use palisade_engine::{
    Analysis, DeadlockFreedom, Engine, FairProgress, GoalsReachable, Robustness, Suitability,
};
use std::cmp::Reverse;

/// All engines for safety, the preferred one first.
pub fn engines() -> &'static [&'static dyn Engine] {
    &[
        &palisade_explore::Explicit,
        &palisade_cover::Dual,
        &palisade_cover::Sb,
        LAZY,
        &palisade_pushdown::Pushdown,
        ROUNDS,
        AGE,
    ]
}

/// All engines for robustness, the preferred one first.
pub fn robustness_engines() -> &'static [&'static dyn Engine<Robustness>] {
    &[&palisade_robust::Attacks, &palisade_monitor::ByMonitors]
}

/// All engines for deadlocks.
pub fn deadlock_engines() -> &'static [&'static dyn Engine<DeadlockFreedom>] {
    &[&palisade_explore::Progress]
}

/// All engines for goals that must stay reachable.
pub fn goal_engines() -> &'static [&'static dyn Engine<GoalsReachable>] {
    &[&palisade_explore::Progress]
}

/// All engines for fair runs that go on forever.
pub fn fair_engines() -> &'static [&'static dyn Engine<FairProgress>] {
    &[&palisade_explore::Progress]
}

/// Lazy reachability, with explicit search under SC.
pub(crate) const LAZY: &dyn Engine = &palisade_robust::Lazy { sc: &palisade_explore::Explicit };

/// Bounded rounds, with explicit search under SC, and pushdown systems for recursive programs.
const ROUNDS: &dyn Engine =
    &palisade_bounded::Rounds { sc: &palisade_explore::Explicit, recursive: &palisade_pushdown::Pushdown };

/// Bounded store age, with explicit search under SC.
const AGE: &dyn Engine = &palisade_bounded::Age { sc: &palisade_explore::Explicit };

/// The engine with this name.
pub fn named<Q: Ask>(name: &str) -> Option<&'static dyn Engine<Q>> {
    Q::engines().iter().copied().find(|engine| engine.name() == name)
}

/// The one engine to ask, if one was chosen.
pub(crate) fn chosen<Q: Ask>(choice: &EngineChoice) -> Result<Option<&'static dyn Engine<Q>>, AskError> {
    let EngineChoice::Named(name) = choice else { return Ok(None) };
    let known = || Q::engines().iter().map(|engine| engine.name()).collect();
    let found = named(name);
    found.map(Some).ok_or_else(|| AskError::NoSuchEngine {
        name: name.clone(),
        purpose: Q::PURPOSE,
        known: known(),
    })
}

/// The engines that can try a question, best first. If a positive answer is to be proved, the engines whose
/// proofs are easy to check come first.
pub(crate) fn suited<Q: Ask>(analysis: &Analysis<'_>, wanted: Wanted) -> Vec<&'static dyn Engine<Q>> {
    let mut preferred = Q::engines().to_vec();
    match wanted {
        Wanted::Answer => preferred.extend(Q::scout(analysis)),
        Wanted::Proof | Wanted::Checked => preferred.sort_by_key(|engine| Reverse(engine.proofs())),
    }
    best_first(&preferred, analysis)
}

/// The engines that can try, the most suitable first, otherwise in the order given.
fn best_first<'e, Q: Ask>(engines: &[&'e dyn Engine<Q>], analysis: &Analysis<'_>) -> Vec<&'e dyn Engine<Q>> {
    let suits = engines.iter().map(|&engine| (engine.suits(analysis), engine));
    let mut suited: Vec<_> = suits.filter(|(suits, _)| *suits != Suitability::No).collect();
    suited.sort_by_key(|(suits, _)| Reverse(*suits));
    suited.into_iter().map(|(_, engine)| engine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::TestEngine;
    use palisade_engine::{Safety, Task, Verdict};
    use palisade_memory::Model;
    use palisade_program::written::Program;

    #[test]
    fn auto_runs_the_best_first() {
        use Suitability::{Decides, No, Reluctant, Tries};
        let program = Program::default();
        let task = Task::new(&program, Model::Tso);
        let check = |suits: &[Suitability], expected: &[&str]| {
            let fake = |(name, suits): (_, &Suitability)| {
                TestEngine::new(name, |_, _| Verdict::Holds).suiting(*suits)
            };
            let fakes: Vec<TestEngine> = ["a", "b", "c"].into_iter().zip(suits).map(fake).collect();
            let engines: Vec<&dyn Engine> = fakes.iter().map(|fake| fake as &dyn Engine).collect();
            let names: Vec<_> =
                best_first(&engines, &task.analysis()).iter().map(|engine| engine.name()).collect();
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
            assert!(named::<Safety>(engine.name()).is_some());
        }
        assert!(named::<Safety>("auto").is_none(), "`auto` is not an engine");
    }
}
