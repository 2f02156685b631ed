//! Atomic sections that never access memory still wait for the store buffer.

use palisade_base::Source;
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Task};
use palisade_memory::Model;
use palisade_syntax::{Language, parse};

/// Store buffering with something between store and load.
fn check(between: &str, expected: &str) {
    let text = format!(
        "shared x, y, z: 0..1;
         proc nothing() {{ skip; }}
         process P {{ let t: 0..1 = 0; x = 1; {between} let r = y; }}
         process Q {{ let t: 0..1 = 0; y = 1; {between} let r = x; }}
         final P.r == 1 || Q.r == 1;"
    );
    let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program;
    for (engine, model) in [(&Dual as &dyn Engine, Model::Tso), (&Sb, Model::Tso), (&Sb, Model::Pso)] {
        let task = Task::new(&program, model);
        let outcome = engine.check(&task.analysis(), &Limits::unlimited(1));
        assert_eq!(outcome.word(), expected, "{}, {}: {between}: {outcome:?}", engine.name(), model.name());
    }
}

#[test]
fn sections_wait_for_the_buffer() {
    check("", "unsafe");
    check("skip;", "unsafe");
    check("nothing();", "unsafe");
    check("atomic { }", "safe");
    check("atomic { skip; }", "safe");
    check("atomic { t = 1; }", "safe");
    check("atomic { atomic { skip; } }", "safe");
    check("atomic { nothing(); }", "safe");
    check("atomic { z = 1; }", "safe");
    check("atomic { if t == 1 { z = 1; } }", "safe");
    check("if t == 1 { atomic { skip; } }", "unsafe");
    check("choose { atomic { skip; } } or { skip; }", "unsafe");
}
