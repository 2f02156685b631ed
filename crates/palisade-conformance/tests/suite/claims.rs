//! False claims are refuted, and true ones are not.

use palisade_base::Source;
use palisade_conformance::brute::Scope;
use palisade_conformance::claims::{Within, check_claims};
use palisade_conformance::suite::SuiteConfig;
use palisade_conformance::{TestEngine, seeds};
use palisade_engine::{Reason, Verdict};
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Makes the same claim about every program, without a search.
fn claims(reason: Reason) -> TestEngine {
    TestEngine::new("claims", move |_, _| Verdict::Unknown(reason.clone()))
}

#[test]
fn claims_without_a_search_are_refuted() {
    let false_claims = [
        (Reason::BufferBound(8), "unknown (no bad state with buffers up to 8), but"),
        (Reason::CallDepth(256), "unknown (no bad state with up to 256 nested calls), but"),
        (Reason::Spawned(33), "unknown (no bad state in runs that start up to 33 processes), but"),
        (Reason::Rounds(2), "unknown (safe up to 2 rounds), but"),
        (Reason::StoreAge(2), "unknown (safe up to store age 2), but"),
        (Reason::InstanceBound(2), "unknown (no bad state with up to 2 threads of each kind of which any"),
        (Reason::Bug("no run".to_owned()), "contradicts itself: no run"),
    ];
    // Fewer programs may not refute a claim.
    if !seeds(10).suffice() {
        return;
    }
    for (reason, part) in false_claims {
        let limits = Scope { states: 500, buffer: None };
        let config = SuiteConfig { programs: 10, limits, models: vec![Model::Sc], ..SuiteConfig::default() };
        let found = catch_unwind(AssertUnwindSafe(|| check_claims(&claims(reason), config)));
        let panic = found.expect_err("a claim is false");
        let text = panic.downcast_ref::<String>().expect("the message is formatted");
        assert!(text.contains(part), "{text}");
    }
}

/// A program breaks under TSO within a bound that is just large enough, and not within a bound that is one
/// smaller.
#[test]
fn bounds_are_kept_to() {
    let check = |text: &str, bound: fn(usize) -> Reason, enough: usize| {
        let source = Source::new("p.pal", text);
        let program = parse(Language::Pal, &source).unwrap_or_else(|errors| panic!("{errors:?}")).program;
        let system = lower(&program, Instantiation { any: 1, every: None });
        let breaks = |n| {
            let within = Within::new(&[bound(n)]);
            within.refute(Machine::new(&system, Model::Tso), 20_000).is_some()
        };
        assert_eq!([breaks(enough - 1), breaks(enough)], [false, true], "{text}");
    };
    check(
        "shared x, y, z: 0..1; process P { x = 1; y = 1; let r = z; at: skip; }
         process Q { z = 1; fence; let r = x; at: skip; }
         forbid P@at && Q@at && P.r == 0 && Q.r == 0;",
        Reason::BufferBound,
        2,
    );
    check(
        "shared x: 0..1; proc down(n: 0..9) { if n == 0 { assert(x == 1); } else { down(n - 1); } }
         process P { down(3); }",
        Reason::CallDepth,
        4,
    );
    check(
        "shared x: 0..1; process Main { loop { spawn W; } } process W on spawn { at: skip; }
         forbid count(W@at) >= 3;",
        Reason::Spawned,
        3,
    );
    check(
        "shared x: 0..2; process P { x = 1; fence; assume(x == 2); assert(false); }
         process Q { assume(x == 1); x = 2; }",
        |n| Reason::Rounds(n as u32),
        2,
    );
    // The store has to wait while Q has its round.
    check(
        "shared x, y: 0..1; process P { x = 1; let r = y; assume(r == 0); x = 1; fence; done: skip; }
         process Q { y = 1; fence; let s = x; at: skip; }
         forbid P@done && Q@at && Q.s == 0;",
        |n| Reason::StoreAge(n as u32),
        1,
    );
}
