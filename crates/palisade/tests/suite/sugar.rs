//! Constructs that are read as others mean what they stand for: each engine says the same about a program and about
//! the program written out by hand, and explicit search visits no more states.

use palisade::{CheckOptions, EngineChoice, Language, Limits, Model, Source};

/// A program, and the same program without the construct.
const PAIRS: &[(&str, &str)] = &[
    (
        "shared flag[3]: bool;
         process P(i: 0..2) {
             flag[i] = true;
             for j in 0..2 { if j == i { continue; } if flag[j] { return; } }
         cs: skip;
         }
         forbid exists p in P, q in P: p < q && p@cs && q@cs;",
        "shared flag[3]: bool;
         process P(i: 0..2) {
             flag[i] = true;
             if 0 != i { if flag[0] { return; } }
             if 1 != i { if flag[1] { return; } }
             if 2 != i { if flag[2] { return; } }
         cs: skip;
         }
         forbid P[0]@cs && P[1]@cs || P[0]@cs && P[2]@cs || P[1]@cs && P[2]@cs;",
    ),
    (
        "shared x[2]: 0..3;
         process P(i: 0..1) {
             for k in 1..3 { x[i] = k; if x[1 - i] == k { break; } }
             let done = 1;
         }
         final exists i in 0..1: x[i] == 3;",
        "shared x[2]: 0..3;
         process P(i: 0..1) {
             x[i] = 1;
             if x[1 - i] != 1 { x[i] = 2; if x[1 - i] != 2 { x[i] = 3; if x[1 - i] == 3 { skip; } } }
             let done = 1;
         }
         final x[0] == 3 || x[1] == 3;",
    ),
    (
        "shared a[2]: bool; shared x: 0..2;
         process W(i: 0..1) { a[i] = true; fetch_add(x, 1); }
         process R { await forall i in 0..1: a[i]; for i in 3..2 { x = 0; } assert(x == 2); }",
        "shared a[2]: bool; shared x: 0..2;
         process W(i: 0..1) { a[i] = true; fetch_add(x, 1); }
         process R { await a[0] && a[1]; assert(x == 2); }",
    ),
    (
        "enum S { Idle, Want, Busy } shared s[2]: S;
         process P(i: 0..1) { s[i] = Want; if s[1 - i] == Idle { s[i] = Busy; cs: skip; } s[i] = any(S); }
         process Q(e: S) { if s[0] == e { assert(exists v in S: v == e); } }
         forbid P(0)@cs && P(1)@cs;",
        "shared s[2]: 0..2;
         process P(i: 0..1) { s[i] = 1; if s[1 - i] == 0 { s[i] = 2; cs: skip; } s[i] = any(0..2); }
         process Q(e: 0..2) { if s[0] == e { assert(0 == e || 1 == e || 2 == e); } }
         forbid P(0)@cs && P(1)@cs;",
    ),
    (
        "shared t: u8 = 254; process P[3] { fetch_add(t, 1); } final t == 2;",
        "shared t: 0..255 wrap = 254; process P[3] { fetch_add(t, 1); } final t == 2;",
    ),
    (
        "struct Node { value: 0..1, ready[2]: bool } shared node[2]: Node;
         process W { node[1].value = 1; node[1].ready[0] = true; }
         process R { let k: 0..1 = 1; await node[k].ready[0]; assert(node[1].value == 1); }",
        "shared value[2]: 0..1; shared ready0[2]: bool; shared ready1[2]: bool;
         process W { value[1] = 1; ready0[1] = true; }
         process R { await ready0[1]; assert(value[1] == 1); }",
    ),
    (
        // The first index is out of bounds if the other process was faster.
        "shared m[2][2]: bool; shared x: 0..2;
         process P { m[x][1] = true; } process Q { x = 2; }",
        "shared m0[2], m1[2]: bool; shared x: 0..2;
         process P { let k = x; if k == 0 { m0[1] = true; } else if k == 1 { m1[1] = true; } else { assert(false); } }
         process Q { x = 2; }",
    ),
    (
        "shared x: 0..1; private p[2]: 0..1;
         process P(i: 0..1) { p[i] = x; x = 1; p[1 - i] = p[i]; assert(p[0] == p[1]); }
         final x == 1;",
        "shared x: 0..1; private p0, p1: 0..1;
         process P(i: 0..1) {
             if i == 0 { p0 = x; } else { p1 = x; } x = 1;
             if i == 0 { p1 = p0; } else { p0 = p1; } assert(p0 == p1);
         }
         final x == 1;",
    ),
];

/// The verdict, and the states that were visited.
fn ask(text: &str, model: Model, engine: EngineChoice) -> (String, Option<u64>) {
    let input = palisade::read(Source::new("sugar.pal", text), Language::Pal, None);
    let input = input.unwrap_or_else(|refused| panic!("{refused}"));
    let options = CheckOptions { model, engine, ..CheckOptions::default() };
    let answer = palisade::check(&input.program, &options, &Limits::unlimited(1).with_work(200_000));
    let outcome = answer.unwrap_or_else(|error| panic!("{error}\n{text}")).outcome;
    let states = outcome.stats.get("states");
    (outcome.word().to_owned(), states)
}

#[test]
fn differential_constructs_and_their_expansions() {
    let mut verdicts = std::collections::BTreeSet::new();
    for (short, long) in PAIRS {
        for model in Model::ALL {
            let expected = ask(long, model, EngineChoice::Named("explicit".to_owned()));
            for engine in palisade::engines() {
                let found = ask(short, model, EngineChoice::Named(engine.name().to_owned()));
                let name = (engine.name(), model.name());
                assert!(
                    found.0 == expected.0 || found.0 == "unknown",
                    "{name:?}: {found:?} {expected:?}\n{short}"
                );
                if engine.name() == "explicit" {
                    assert_eq!(found.0, expected.0, "{name:?}\n{short}");
                    verdicts.insert(found.0.clone());
                    if expected.0 == "safe" {
                        assert!(found.1 <= expected.1, "{name:?}: {found:?} {expected:?}\n{short}");
                    }
                }
            }
        }
    }
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
}
