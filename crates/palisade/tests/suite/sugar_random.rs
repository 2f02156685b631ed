//! Random programs with loops, structs, arrays of arrays, private arrays, enumerations, domains that wrap and quantifiers
//! mean the same as the programs written out by hand, without any of these: for every engine, and after printing.

use palisade::engine::{Options, Question, Safety, Task, Threads, Verdict};
use palisade::memory::Interlocked;
use palisade::{CheckOptions, Language, Limits, Model, Source};
use palisade_conformance::{seeds, with_and_without_constructs};
use palisade_program::print::print;
use std::collections::BTreeMap;

#[test]
fn differential_random_constructs_and_their_expansions() {
    let mut verdicts = BTreeMap::new();
    let mut by_engine: BTreeMap<&str, usize> = BTreeMap::new();
    let seeds = seeds(60).starting_at(1);
    for seed in seeds.range() {
        let (short, long) = with_and_without_constructs(seed);
        let read = |text: &str| {
            let input = palisade::read(Source::new("random.pal", text), Language::Pal, None);
            input.unwrap_or_else(|refused| panic!("seed {seed}: {refused}\n{text}"))
        };
        let (written, expanded) = (read(&short), read(&long));
        assert_eq!(read(&print(&written.program)).program, written.program, "seed {seed}\n{short}");
        for model in Model::ALL {
            let options = CheckOptions { model, ..CheckOptions::default() };
            let limits = Limits::unlimited(1).with_work(2_000_000);
            let expected = palisade::check(&expanded.program, &options, &limits).expect("an answer").outcome;
            let expected = expected.word().to_owned();
            let program = &written.program;
            let (interlocked, options) = (Interlocked::default(), Options::default());
            let task = Task { program, threads: Threads::Declared, model, interlocked, options };
            for engine in palisade::engines() {
                let limits = Limits::unlimited(1).with_work(20_000);
                let verdict = engine.check(&task.analysis(), &limits).verdict;
                if let Verdict::Unknown(reason) = verdict {
                    assert_eq!(reason.bug(), None, "seed {seed}, {}\n{short}", engine.name());
                    continue;
                }
                let found = Safety::word(&verdict);
                assert_eq!(
                    found,
                    expected,
                    "seed {seed}, {}, {}\n{short}\n{long}",
                    model.name(),
                    engine.name()
                );
                *by_engine.entry(engine.name()).or_default() += 1;
            }
            *verdicts.entry(expected).or_insert(0) += 1;
        }
    }
    println!("{verdicts:?} {by_engine:?}");
    assert!(verdicts.len() > 1 || !seeds.suffice(), "{verdicts:?}");
    for engine in ["explicit", "dual", "sb", "lazy", "rounds", "age"] {
        assert!(by_engine.contains_key(engine) || !seeds.suffice(), "{engine}: {by_engine:?}");
    }
}
