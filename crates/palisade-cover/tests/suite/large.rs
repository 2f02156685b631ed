//! Domains and arrays too large for the letters of the exact engines are rejected, not truncated.

use palisade_base::Source;
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Question, Safety, Task, Verdict};
use palisade_memory::Model;
use palisade_syntax::{Language, parse};

fn check(text: &str, expected: &str) {
    let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program;
    for engine in [&Dual as &dyn Engine, &Sb] {
        let task = Task::new(&program, Model::Tso);
        let found = match engine.check(&task.analysis(), &Limits::unlimited(1)).verdict {
            Verdict::Unknown(reason) => reason.to_string(),
            verdict => Safety::word(&verdict).to_owned(),
        };
        assert_eq!(found, expected, "{}: {text}", engine.name());
    }
}

#[test]
fn large_domains() {
    let text = |most| format!("shared x: 0..{most} = *; process P {{ assert(x != {most}); }}");
    check(&text(300), "unsafe");
    check(&text(40_000), "`x` can hold more than 16384 values");
    // Unused values cost nothing.
    check("shared x: 0..40000; process P { x = 40000; assert(x == 40000); }", "safe");
}

#[test]
fn large_arrays() {
    check(
        "shared a[70000]: 0..1; process P { a[69999] = 1; assert(a[0] == 0); }",
        "there are too many shared variables (70000)",
    );
}
