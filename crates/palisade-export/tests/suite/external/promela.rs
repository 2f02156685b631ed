//! Spin finds an error in an exported program exactly if explicit search finds the program unsafe under SC.

use crate::common::{Subject, WRAPPING, corpus, scratch, spin};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds, transform, with_and_without_constructs};
use palisade_export::Target;

/// Compares Spin with explicit search.
#[track_caller]
fn check(folder: &std::path::Path, subject: &Subject) {
    let expected = subject.is_safe();
    let start = std::time::Instant::now();
    let model = subject.export(Target::Promela);
    let verified = spin(folder, &subject.name, &model);
    eprintln!("{}: {expected:?} {verified:?} {:?}", subject.name, start.elapsed());
    assert_eq!(Some(verified.safe), expected, "{}:\n{model}", subject.name);
}

#[test]
fn the_corpus() {
    let folder = scratch("promela-corpus");
    for subject in corpus() {
        check(&folder, &subject);
    }
}

fn random(profile: Profile, programs: u64) {
    let folder = scratch(&format!("promela-{profile:?}"));
    for seed in seeds(programs).starting_at(1) {
        check(&folder, &Subject::generated(&format!("{profile:?} {seed}.pal"), &generate(profile, seed)));
    }
}

#[test]
fn random_acyclic_programs() {
    random(Profile::Acyclic, 15);
}

#[test]
fn random_cyclic_programs() {
    random(Profile::Cyclic, 6);
}

#[test]
fn random_programs_with_everything() {
    random(Profile::Full, 15);
}

/// Values that wrap around, in everything that has a type.
#[test]
fn random_programs_whose_values_wrap_around() {
    let folder = scratch("promela-wrapping");
    for seed in seeds(12).starting_at(1) {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = transform::wrapping(&generate(profile, seed), &mut Random::new(seed));
        check(&folder, &Subject::generated(&format!("wrapping {profile:?} {seed}.pal"), &program));
    }
}

/// Loops, structs, arrays of arrays, private arrays, enumerations and quantifiers.
#[test]
fn random_programs_with_constructs_that_stand_for_others() {
    let folder = scratch("promela-constructs");
    for seed in seeds(8).starting_at(1) {
        let (text, _) = with_and_without_constructs(seed);
        check(&folder, &Subject::read(&format!("constructs {seed}.pal"), &text));
    }
}

/// Cases that are rare in the corpus.
#[test]
fn corners() {
    let folder = scratch("promela-corners");
    let check = |text: &str| check(&folder, &Subject::read("corner.pal", text));
    check(include_str!("../common/privates.pal"));
    check(include_str!("../common/parts.pal"));
    WRAPPING.iter().for_each(|text| check(text));
    // A process that does nothing forever, and ones that choose to.
    check("shared x: 0..1; process P { loop {} } process Q { x = 1; } forbid x == 1;");
    check("shared x: 0..1; process P { loop { choose { x = 1; } or {} } } forbid x == 1;");
    check("shared x: 0..1; process P { here: goto here; } process Q { x = 1; } forbid x == 1 && P@end;");
    // A process that is stuck in an atomic block stops all others.
    check(
        "shared x, y: 0..1; process P { atomic { y = 1; assume(x == 1); } } process Q { if y == 1 { assert(false); } }",
    );
    check(
        "shared x, y: 0..1; process P { atomic { y = 1; loop {} } } process Q { if y == 1 { assert(false); } }",
    );
    check(
        "shared x, y: 0..1; process P { atomic { y = 1; } assume(x == 1); } process Q { if y == 1 { assert(false); } }",
    );
    // An atomic block that waits at its start.
    check(
        "shared x, y: 0..1; process P { atomic { assume(x == 1); y = 1; } } process Q { x = 1; } forbid y == 1;",
    );
    check(
        "shared x, y: 0..1; process P { atomic { assume(x == 1); y = 1; } } process Q { y = 1; x = 1; } forbid x == 1 && y == 0;",
    );
    // Properties are not checked inside.
    check("shared x: 0..2; process P { atomic { x = 1; x = 2; } } forbid x == 1;");
    check(
        "shared x: 0..2; process P { atomic { x = 1; if x == 1 { x = 2; } else { return; } } l: x = 0; } forbid x == 1 || P@l && x != 2;",
    );
    // All ways to leave an atomic block.
    check(
        "shared x: 0..9;
         process P[2] { loop { atomic { if x == 3 { break; } if x == 1 { x = 3; continue; } x = 1; } assert(x != 2); } }
         process Q { atomic { x = 2; x = 0; } }",
    );
    // Faults and blocking domains in one step.
    check("shared x: 0..3 blocking; process P { let r: 0..2 = x; x = x + 2; x = 1; } process Q { x = 3; }");
    check("shared x: 0..3; process P[2] { x = x + 2; }");
    check("shared a[2]: 0..1; process P { let i: 0..2 = *; a[i] = 1; }");
    check("shared x: 0..3 = *; process P { let y = 6 / x; }");
    check("shared x: 0..3 = *; process P { if x != 0 && 6 / x == 3 { l: skip; } } forbid P@l;");
    check(
        "shared x: -3..3 = *; process P { assert((x << 2) % 4 == 0 && (x >> 1) <= x * x && ~x == -x - 1); }",
    );
    check("shared x: 0..1; process P { let r: 0..3 blocking = any(0..9); assert(r <= 3); }");
    check("shared x: 0..1; process P { let r: 0..3 = any(0..9); }");
    // Large numbers.
    check("shared x = 1; process P { while x < 1_000_000 { x = x * 7; } assert(x == 5_764_801); }");
    check("shared x: 0..300 = *; process P { assert(x < 301); } forbid x == 300 && P@end;");
    check("shared x; process P { loop { x = x + 1; if x == 100 { break; } } } forbid x == 100;");
    // Locked instructions whose result is among their operands.
    check(
        "shared a[3]: 0..2 = [2, 0, 1]; process P { let r: 0..2 = 1; r = xchg(a[r], r); assert(r == 0 && a[1] == 1); }",
    );
    check(
        "shared x: 0..9 = 3; process P[2] { let r = 2; r = fetch_add(x, r); assert(r == 3 || r == 5); } final x == 7;",
    );
    check(
        "shared x: 0..9 = 3; process P { let r = 3; r = cas(x, r, r + 1); assert(r && x == 4); r = fetch_xor(x, 6); assert(x == 2); }",
    );
    // Recursion, and processes that start others.
    check(
        "proc sum(n: 0..5, m: 0..5) -> 0..99 { if n == 0 { return m; } let r = sum(n - 1, m) + n; return r; }
         process P { assert(sum(4, 3) == 13); assert(sum(2, 2) != 5); }",
    );
    check(
        "shared x: 0..9;
         proc even(n: 0..4) -> bool { if n == 0 { return true; } return !odd(n - 1) == false; }
         proc odd(n: 0..4) -> bool { if n == 0 { return false; } x = x + 1; return even(n - 1); }
         process P { assert(even(4)); assert(odd(3)); assert(x == 4); }",
    );
    check(
        "shared x: 0..9;
         process Main { let i: 0..3 = 1; while i < 3 { spawn W(i); i = i + 1; } }
         process W(k: 1..2) on spawn { l: x = x + k; }
         final x == 3;
         forbid count(W@l) == 3;",
    );
    check("process Main { spawn W(any(0..3)); } process W(k: 1..2) on spawn { skip; }");
    check(
        "process Main { spawn W; spawn W; } process W on spawn { l: skip; m: skip; } forbid count(W@l) == 1 && count(W@m) == 1;",
    );
    // Several distinguished processes of one template.
    check(
        "shared x: 0..3; process P[3] { let r = x; x = r + 1; } forbid P[0].r == 2 && P[1].r == 1 && P[2].r == 0;",
    );
    check("shared x: 0..3; process P[3] { l: x = x + 1; } forbid P[0]@l && P[1]@end && P[2]@end && x == 0;");
    // Names with a meaning in Spin or C.
    check(
        "shared init, proctype, now, max, SAFETY, int_, len[2]: 0..1;
         process run_ { init = 1; end_: proctype = 1; accept: len[1] = 1; progress: now = 1; let r = SAFETY + max + int_; }
         process P0 { let P1 = 1; assert(now <= init); }
         forbid run_@accept && proctype == 0;",
    );
    // Pointers.
    check(
        "shared a[2]: 0..5 = 3; shared p: int = &a[1]; process P { *p = 4; assert(a[1] == 4 && *(p - 1) == 3); *(p + 1) = 0; }",
    );
    check("shared b: 0..1; shared c: 0..9; process P { let p = any(1..2); *p = 5; }");
    check("process P { skip; } final P@end;");
    check("shared x: 0..1; process P { x = 1; } final x == 0;");
}
