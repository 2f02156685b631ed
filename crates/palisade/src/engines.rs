//! The engines there are. A new engine is one more line in [`engines()`].

use palisade_engine::{Engine, Suitability, Task};

/// All engines, the preferred one first.
pub fn engines() -> &'static [&'static dyn Engine] {
    &[&palisade_explore::Explicit]
}

/// The engine with a name.
pub fn named(name: &str) -> Option<&'static dyn Engine> {
    engines().iter().copied().find(|engine| engine.name() == name)
}

/// The first of those that suit the task best; none if no engine can even try.
pub fn best(task: &Task<'_>) -> Option<&'static dyn Engine> {
    first_of_the_best(engines(), task)
}

fn first_of_the_best<'e>(engines: &[&'e dyn Engine], task: &Task<'_>) -> Option<&'e dyn Engine> {
    let mut best: Option<(&dyn Engine, Suitability)> = None;
    for &engine in engines {
        let suits = engine.suits(task);
        if suits > best.map_or(Suitability::No, |(_, found)| found) {
            best = Some((engine, suits));
        }
    }
    best.map(|(engine, _)| engine)
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
    fn auto_takes_the_first_of_the_best() {
        use Suitability::{Decides, No, Tries};
        let program = Program::default();
        let task = Task {
            program: &program,
            threads: Threads::Declared,
            model: Model::Tso,
            interlocked: Interlocked::WholeBuffer,
            options: Options::default(),
        };
        let check = |suits: &[Suitability], expected: Option<&str>| {
            let fakes: Vec<Fake> = ["a", "b", "c"].into_iter().zip(suits).map(|(n, s)| Fake(n, *s)).collect();
            let engines: Vec<&dyn Engine> = fakes.iter().map(|fake| fake as &dyn Engine).collect();
            assert_eq!(first_of_the_best(&engines, &task).map(|engine| engine.name()), expected);
        };
        check(&[No, No, No], None);
        check(&[No, Tries, Tries], Some("b"));
        check(&[Tries, Decides, Decides], Some("b"));
        check(&[Decides, No, Decides], Some("a"));
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
