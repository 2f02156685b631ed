//! What `unknown` states about programs with infinitely many states is true, and no process starves the
//! others in the search.

use palisade_base::Source;
use palisade_engine::{Engine, Limits, Options, Question, Reason, Reduction, Safety, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Model};
use palisade_syntax::{Language, parse};
use std::time::Duration;

fn ask(text: &str, model: Model, reduction: Reduction, states: u64) -> Verdict {
    let source = Source::new("p.pal", text);
    let program = parse(Language::Pal, &source).unwrap_or_else(|errors| panic!("{errors:?}")).program;
    let options = Options { reduction, ..Options::default() };
    let interlocked = Interlocked::default();
    let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
    let limits = Limits::unlimited(1).with_work(states).with_timeout(Duration::from_secs(300));
    Explicit.check(&task.analysis(), &limits).verdict
}

const REDUCTIONS: [Reduction; 3] = [Reduction::None, Reduction::Local, Reduction::Full];

/// Checks that the program is unsafe, found within a number of states, under every model and with every
/// reduction.
fn check_unsafe(text: &str) {
    for model in Model::ALL {
        for reduction in REDUCTIONS {
            let verdict = ask(text, model, reduction, 100_000);
            assert_eq!(Safety::word(&verdict), "unsafe", "{}, {reduction:?}: {verdict:?}", model.name());
        }
    }
}

fn check_unknown(text: &str, model: Model, expected: &str) {
    for reduction in REDUCTIONS {
        match ask(text, model, reduction, 200_000) {
            Verdict::Unknown(reason) => assert_eq!(reason.to_string(), expected, "{reduction:?}"),
            verdict => panic!("{reduction:?}: {verdict:?}"),
        }
    }
}

#[test]
fn a_failing_started_process_is_found_though_processes_are_started_without_bound() {
    check_unsafe(
        "shared x: 0..1;
         process Main { loop { spawn W; } }
         process W on spawn { assert(x == 1); }",
    );
}

#[test]
fn processes_started_without_bound_are_searched_up_to_the_stated_number() {
    let text = "shared x: 0..1;
         process Main { loop { spawn W; } }
         process W on spawn { x = 1; at: x = 1; }
         forbid count(W@at) >= COUNT;";
    check_unsafe(&text.replace("COUNT", "3"));
    let safe = "shared x: 0..1;
         process Main { loop { spawn W; } }
         process W on spawn { assert(x == 0); }";
    for model in Model::ALL {
        let verdict = ask(safe, model, Reduction::Full, 1_000_000);
        let Verdict::Unknown(reason) = &verdict else { panic!("{verdict:?}") };
        assert!(matches!(reason, Reason::Spawned(2..)), "{reason}");
    }
}

#[test]
fn a_process_that_counts_up_a_register_does_not_starve_the_others() {
    check_unsafe(
        "shared x, y: 0..1;
         process A { let r = 0; loop { let t = y; r = r + 1; } }
         process B { x = 1; fence; assert(x == 0); }",
    );
    check_unsafe(
        "shared x: 0..1;
         process A { let r = 0; loop { r = r + 1; } }
         process B { x = 1; fence; assert(x == 0); }",
    );
}

#[test]
fn a_process_that_counts_up_a_cell_of_its_own_does_not_starve_the_others() {
    check_unsafe(
        "shared x: 0..1;
         shared n;
         process A { loop { n = n + 1; fence; } }
         process B { x = 1; fence; assert(x == 0); }",
    );
}

#[test]
fn calls_are_followed_to_the_stated_depth() {
    let text = "shared x: 0..1;
         proc down(n: 0..1000) { if n == 0 { assert(x == 1); } else { down(n - 1); } }
         process P { down(DEPTH); }";
    // One call in P, and one per recursive step.
    check_unsafe(&text.replace("DEPTH", "255"));
    check_unknown(&text.replace("DEPTH", "256"), Model::Sc, "no bad state with up to 256 nested calls");
}

#[test]
fn what_happens_before_a_call_that_is_too_deep_is_seen_by_others() {
    check_unsafe(
        "shared x, y: 0..1;
         proc forever() { forever(); }
         process P { x = 1; fence; forever(); }
         process Q { assert(x == 0); }",
    );
    check_unknown(
        "shared x: 0..1;
         proc forever() { x = 1; forever(); }
         process P { forever(); }
         process Q { assert(x < 2); }",
        Model::Sc,
        "no bad state with up to 256 nested calls",
    );
}

#[test]
fn all_bounds_that_the_search_kept_to_are_stated() {
    check_unknown(
        "shared x: 0..1;
         proc forever() { forever(); }
         process P { loop { x = 1; choose { skip; } or { forever(); } } }",
        Model::Tso,
        "no bad state with buffers up to 8 and up to 256 nested calls",
    );
    check_unknown(
        "shared x: 0..1;
         process P[*] { loop { x = 1; } }
         process Q { assert(x < 2); }",
        Model::Tso,
        "no bad state with up to 4 threads of each kind of which any number is allowed and buffers up to 2",
    );
}
