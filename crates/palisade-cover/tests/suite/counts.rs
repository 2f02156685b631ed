//! Conditions that count processes, for a declared and for any number of them.

use palisade_base::Source;
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Question, Safety, Task, Verdict};
use palisade_memory::Model;
use palisade_syntax::{Language, parse};

/// Processes that reach `cs` in any order, and a condition on how many are there.
fn check(count: &str, condition: &str, expected: &str) {
    let text = format!(
        "shared x: 0..1; process A[{count}] {{ x = 1; a: skip; }} process B[{count}] {{ x = 1; b: skip; }} forbid {condition};"
    );
    let source = Source::new("p", text);
    let program = parse(Language::Pal, &source).expect("the program is well formed").program;
    for engine in [&Dual as &dyn Engine, &Sb] {
        let task = Task::new(&program, Model::Tso);
        let outcome = engine.check(&task.analysis(), &Limits::unlimited(1));
        let found = match &outcome.verdict {
            Verdict::Violated(witness) => format!("unsafe with {}", witness.instantiation.any),
            verdict => Safety::word(verdict).to_owned(),
        };
        assert_eq!(found, expected, "{}: [{count}] {condition}: {:?}", engine.name(), outcome.verdict);
    }
}

#[test]
fn any_number() {
    check("*", "count(A@a) >= 1", "unsafe with 1");
    check("*", "count(A@a) >= 3", "unsafe with 3");
    check("*", "count(A@a) + count(B@b) > 3 && count(B@b) > 2 - 1", "unsafe with 2");
    check("*", "!(count(A@a) < 2)", "unsafe with 2");
    // Either larger numbers can be better here, or the numbers in the condition do not suffice to see their
    // effect.
    check("*", "count(A@a) == 1", "unknown");
    check("*", "count(A@a) - 20 >= 2", "unknown");
    check("*", "count(A@a) / 20 >= 2", "unknown");
    check("*", "count(A@a) - count(B@b) >= 1", "unknown");
}

#[test]
fn declared_numbers() {
    check("3", "count(A@a) >= 3", "unsafe with 1");
    check("3", "count(A@a) >= 4", "safe");
    check("3", "count(A@a) == 1", "unsafe with 1");
    check("3", "count(A@a) - 1 >= 2", "unsafe with 1");
    check("3", "count(A@a) - 2 >= 2", "safe");
    check("3", "count(A@a) / 2 >= 2", "safe");
    check("3", "count(A@a) - count(B@b) == 3", "unsafe with 1");
    check("3", "count(A@a) + count(B@b) >= 7", "safe");
}

/// The word for the verdict, and the number of configurations.
fn counted(engine: &dyn Engine, text: &str, model: Model) -> (&'static str, u64) {
    let source = Source::new("p", text);
    let program = parse(Language::Pal, &source).expect("the program is well formed").program;
    let outcome = engine.check(&Task::new(&program, model).analysis(), &Limits::unlimited(1));
    (Safety::word(&outcome.verdict), outcome.stats.get("configurations").expect("it is counted"))
}

fn configurations(text: &str) -> u64 {
    let (verdict, configurations) = counted(&Dual, text, Model::Tso);
    assert_eq!(verdict, "safe", "{text}");
    configurations
}

/// A store with a fence is one step, and so is a read of a cell by its only writer.
#[test]
fn stores_with_fences_and_own_reads_cost_nothing() {
    let sb = |store: &str| {
        format!(
            "shared x, y: 0..1; process P {{ {} if y == 0 {{ cs: skip; }} }} process Q {{ {} if x == 0 {{ cs: skip; }} }} forbid P@cs && Q@cs;",
            store.replace('v', "x"),
            store.replace('v', "y"),
        )
    };
    let locked = configurations(&sb("xchg(v, 1);"));
    assert_eq!(configurations(&sb("v = 1; fence;")), locked);
    assert_eq!(configurations(&sb("v = 1; fence; if v == 0 { skip; }")), locked);
}

/// Lamport's bakery without fences. Runs are found early although elements have sets of values: a known cell does not
/// count beside a newest letter on it (`sb`, order of the search). Under TSO, positions that others cover are left out.
#[test]
fn sets_do_not_delay_runs() {
    let bakery = "
        shared choosing[2]: bool;
        shared number[2]: 0..2;
        process P(i: 0..1) {
            let mine: 0..2;
            let other: 0..2;
            loop {
                choosing[i] = true;
                other = number[1 - i];
                if other == 2 {
                    choosing[i] = false;
                    continue;
                }
                mine = other + 1;
                number[i] = mine;
                choosing[i] = false;
                while choosing[1 - i] {}
                other = number[1 - i];
                while other != 0 && (other < mine || other == mine && i < 1 - i) {
                    other = number[1 - i];
                }
            cs: skip;
                number[i] = 0;
            }
        }
        forbid P(0)@cs && P(1)@cs;";
    assert_eq!(counted(&Sb, bakery, Model::Tso), ("unsafe", 91));
    assert_eq!(counted(&Sb, bakery, Model::Pso), ("unsafe", 96));
}
