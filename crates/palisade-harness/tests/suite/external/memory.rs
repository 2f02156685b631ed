//! Memory errors: freed blocks, frames that were left, and accesses outside blocks.

use crate::common::{compile_with, failures, programs, random, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, NamedFailure, Options};
use palisade_memory::Model;

struct Built(String);

impl Built {
    fn new(compiler: &str, source: &str, flags: &[&str]) -> Built {
        Built(compile_with(compiler, source, flags).display().to_string())
    }

    fn program(&self, how: &str) -> Program {
        Program { command: vec![self.0.clone(), how.to_owned()], scheduling: Scheduling::Best }
    }

    fn random(&self, how: &str, model: Model, schedules: u64) -> Findings {
        let options = Options { model, steps: 1_000_000, ..random(schedules) };
        let mut session = start(&self.program(how), &options);
        session.run(|_| true);
        assert_eq!(session.findings.lost, None);
        session.findings
    }

    fn all(&self, how: &str, model: Model) -> Findings {
        let mut session = start(&self.program(how), &Options { model, ..random(1) });
        let searched = session.explore(None, 20_000, |_| true);
        // An error ends the execution in the middle of what other threads do.
        let is_complete = searched.complete || !session.findings.failures.is_empty();
        assert!(is_complete, "{how} {model:?}: {searched:?} {:?}", session.findings.divergence);
        session.findings
    }
}

const WRONG: [(&str, &str); 14] = [
    ("reads", "use-after-free"),
    ("writes", "use-after-free"),
    ("moves", "use-after-free"),
    ("double", "double-free"),
    ("global", "invalid-free"),
    ("inside", "invalid-free"),
    ("mutex", "use-after-free"),
    ("after", "heap-overflow"),
    ("before", "heap-overflow"),
    ("alone", "use-after-free"),
    ("thread-local", "thread-local-use-after-end"),
    ("ended", "stack-use-after-return"),
    ("leaves", "stack-use-after-return"),
    ("starts", "stack-use-after-return"),
];

const RIGHT: [&str; 8] = [
    "right-released",
    "right-frees",
    "right-taken",
    "right-mutex",
    "right-stays",
    "right-stays-often",
    "right-starts",
    "right-thread-local",
];

#[test]
fn errors_are_found_in_random_schedules() {
    for compiler in ["gcc", "clang"] {
        let built = Built::new(compiler, "memory.c", &[]);
        for model in [Model::Sc, Model::Tso, Model::Pso] {
            for (how, expected) in WRONG {
                let findings = built.random(how, model, 300);
                assert_eq!(failures(&findings), [expected], "{compiler} {how} {model:?}");
            }
            for how in RIGHT {
                let findings = built.random(how, model, 300);
                assert_eq!(
                    failures(&findings),
                    [""; 0],
                    "{compiler} {how} {model:?}: {:?}",
                    findings.failures
                );
            }
            let findings = built.random("right-sizes", model, 1);
            assert_eq!(failures(&findings), [""; 0], "{compiler} {model:?}: {:?}", findings.failures);
        }
    }
}

#[test]
fn errors_are_found_in_all_executions() {
    for compiler in ["gcc", "clang"] {
        let built = Built::new(compiler, "memory.c", &[]);
        for model in [Model::Sc, Model::Tso, Model::Pso] {
            // Only between two steps of the owner does nothing else lie where the frame was.
            for (how, expected) in WRONG.iter().copied().chain([("goes-on", "stack-use-after-return")]) {
                assert_eq!(failures(&built.all(how, model)), [expected], "{compiler} {how} {model:?}");
            }
            for how in RIGHT {
                let findings = built.all(how, model);
                assert_eq!(
                    failures(&findings),
                    [""; 0],
                    "{compiler} {how} {model:?}: {:?}",
                    findings.failures
                );
            }
        }
    }
}

/// A store that waits in a buffer while another thread frees the block, which only PSO allows here.
#[test]
fn pending_stores_to_freed_blocks() {
    let built = Built::new("gcc", "memory.c", &[]);
    for (model, expected) in [(Model::Sc, None), (Model::Tso, None), (Model::Pso, Some("use-after-free"))] {
        let expected: Vec<&str> = expected.into_iter().collect();
        let all = built.all("relaxed", model);
        assert_eq!(failures(&all), expected, "{model:?}");
        for failure in &all.failures {
            assert_eq!(failure.possible, Some(Model::Pso), "{failure:?}");
            assert!(failure.what.message.contains("store buffer"), "{failure:?}");
        }
        assert_eq!(failures(&built.random("relaxed", model, 500)), expected, "{model:?}");
    }
}

/// The report has the places of the access, of `free`, and of the allocation.
#[test]
fn places() {
    let line = |file: &str, text: &str| {
        let source = std::fs::read_to_string(programs().join(file)).expect("a test program");
        let at = source.lines().position(|line| line.contains(text)).expect("the line is there") + 1;
        format!("{file}:{at}:")
    };
    let check = |findings: &Findings, expected: [(String, &str); 3]| {
        let is = |failure: &NamedFailure| {
            failure.places.len() == expected.len()
                && failure.places.iter().zip(&expected).all(|((place, note), (file, says))| {
                    place.starts_with(file.as_str()) && note.contains(says)
                })
        };
        assert!(
            findings.failures.iter().any(|found| is(&found.what)),
            "{expected:?}: {:?}",
            findings.failures
        );
    };
    let findings = Built::new("gcc", "memory.c", &[]).random("reads", Model::Tso, 100);
    let expected = [
        (line("memory.c", "node->value == 7"), "accesses it here"),
        (line("memory.c", "free(atomic_load(&shared));"), "freed it here"),
        (line("memory.c", "malloc(sizeof *node)"), "allocated it here"),
    ];
    check(&findings, expected);
    for compiler in ["g++", "clang++"] {
        let built = Built::new(compiler, "memory.cpp", &["-std=c++17"]);
        let findings = built.random("", Model::Tso, 300);
        assert_eq!(failures(&findings), ["use-after-free"], "{compiler}");
        for does in ["accesses it here", "has stored to it here"] {
            let expected = [
                (line("memory.cpp", "plain->value++"), does),
                // The destructor that frees is made by the compiler.
                (line("memory.cpp", "struct Derived"), "freed it here"),
                (line("memory.cpp", "new Derived"), "allocated it here"),
            ];
            check(&findings, expected);
        }
        assert_eq!(failures(&built.random("right", Model::Tso, 200)), [""; 0], "{compiler}");
    }
}
