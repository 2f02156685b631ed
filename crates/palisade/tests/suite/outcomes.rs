//! Outcomes of well-known litmus tests, as in the literature on x86-TSO and as herd7 lists them.

use palisade::memory::Machine;
use palisade::{Interlocked, Language, Limits, Listed, Listing, Model, Options, Source};
use std::collections::BTreeSet;
use std::sync::Arc;

fn listing(language: Language, text: &str, listed: Listed) -> Listing {
    let input = palisade::read(Source::new("test", text), language, None);
    let input = input.unwrap_or_else(|refused| panic!("{refused}"));
    Listing::new(&input, listed).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

fn outcomes(listing: &Listing, model: Model) -> BTreeSet<Vec<i64>> {
    let limits = Limits::unlimited(1);
    let outcomes = listing
        .outcomes(model, Interlocked::default(), &Options::default(), &limits)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcomes.missing, None);
    for values in outcomes.found.keys() {
        let run = listing.run_to(values, model, Interlocked::default(), &Options::default(), &limits);
        let run = run.expect("no bug").expect("no limit");
        // It is a run of the machine, and it ends.
        let machine = Machine { system: &run.system, model, interlocked: run.interlocked };
        let replay = palisade::trace::take(machine, &run.run).expect("the run can be taken");
        let last = replay.states.last().expect("there is a first state");
        let ended = |thread: &Arc<palisade::memory::Thread>| {
            thread.has_ended(&run.system) && thread.buffer.is_empty()
        };
        assert!(last.fault.is_none() && last.threads.iter().all(ended));
    }
    outcomes.found.into_keys().collect()
}

/// All tuples of numbers from 0 to a maximum, except those given.
fn all_but(maxima: &[i64], excluded: &[&[i64]]) -> BTreeSet<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for &max in maxima {
        all = all.iter().flat_map(|old| (0..=max).map(move |v| [&old[..], &[v]].concat())).collect();
    }
    all.into_iter().filter(|tuple| !excluded.contains(&&tuple[..])).collect()
}

fn set(tuples: &[&[i64]]) -> BTreeSet<Vec<i64>> {
    tuples.iter().map(|tuple| tuple.to_vec()).collect()
}

/// Checks a litmus test: its columns, and its outcomes under SC, TSO and PSO.
fn check(code: &str, question: &str, names: &str, expected: [BTreeSet<Vec<i64>>; 3]) {
    let text = format!("X86 T\n{{ }}\n{code}\n{question}\n");
    let listing = listing(Language::Litmus, &text, Listed::Named);
    assert_eq!(listing.names().join(" "), names, "{text}");
    for (model, expected) in Model::ALL.into_iter().zip(expected) {
        assert_eq!(outcomes(&listing, model), expected, "{} of {text}", model.name());
    }
}

#[test]
fn two_threads() {
    let sc = all_but(&[1, 1], &[&[0, 0]]);
    let every = all_but(&[1, 1], &[]);
    let eax = "exists (0:EAX=0 /\\ 1:EAX=0)";
    let sb = "P0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EAX,[x] ;";
    check(sb, eax, "0:EAX 1:EAX", [sc.clone(), every.clone(), every.clone()]);
    let fenced = "P0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMFENCE | MFENCE ;\nMOV EAX,[y] | MOV EAX,[x] ;";
    check(fenced, eax, "0:EAX 1:EAX", [sc.clone(), sc.clone(), sc.clone()]);
    let locked =
        "P0 | P1 ;\nMOV EBX,$1 | MOV EBX,$1 ;\nXCHG [x],EBX | XCHG [y],EBX ;\nMOV EAX,[y] | MOV EAX,[x] ;";
    check(locked, eax, "0:EAX 1:EAX", [sc.clone(), sc.clone(), sc]);
    let mp = "P0 | P1 ;\nMOV [x],$1 | MOV EAX,[y] ;\nMOV [y],$1 | MOV EBX,[x] ;";
    let strong = all_but(&[1, 1], &[&[1, 0]]);
    check(mp, "exists (1:EAX=1 /\\ 1:EBX=0)", "1:EAX 1:EBX", [strong.clone(), strong, every]);
    let lb = "P0 | P1 ;\nMOV EAX,[x] | MOV EAX,[y] ;\nMOV [y],$1 | MOV [x],$1 ;";
    let lb_all = all_but(&[1, 1], &[&[1, 1]]);
    check(lb, "~exists (0:EAX=1 /\\ 1:EAX=1)", "0:EAX 1:EAX", [lb_all.clone(), lb_all.clone(), lb_all]);
    let s = "P0 | P1 ;\nMOV [x],$2 | MOV EAX,[y] ;\nMOV [y],$1 | MOV [x],$1 ;";
    let strong = set(&[&[0, 1], &[0, 2], &[1, 1]]);
    let weak = set(&[&[0, 1], &[0, 2], &[1, 1], &[1, 2]]);
    check(s, "exists (1:EAX=1 /\\ x=2)", "1:EAX [x]", [strong.clone(), strong, weak]);
    let r = "P0 | P1 ;\nMOV [x],$1 | MOV [y],$2 ;\nMOV [y],$1 | MOV EAX,[x] ;";
    let strong = set(&[&[0, 1], &[1, 1], &[1, 2]]);
    let weak = set(&[&[0, 1], &[0, 2], &[1, 1], &[1, 2]]);
    check(r, "exists (1:EAX=0 /\\ y=2)", "1:EAX [y]", [strong, weak.clone(), weak]);
    let two_writes = "P0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV [y],$2 | MOV [x],$2 ;";
    let strong = set(&[&[1, 2], &[2, 1], &[2, 2]]);
    let weak = set(&[&[1, 1], &[1, 2], &[2, 1], &[2, 2]]);
    check(two_writes, "exists (x=1 /\\ y=1)", "[x] [y]", [strong.clone(), strong, weak]);
}

#[test]
fn own_stores_are_read_early() {
    // SB with reads of the own stores: the first read always returns 1.
    let code =
        "P0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[x] | MOV EAX,[y] ;\nMOV EBX,[y] | MOV EBX,[x] ;";
    let sc = set(&[&[1, 0, 1, 1], &[1, 1, 1, 0], &[1, 1, 1, 1]]);
    let weak = set(&[&[1, 0, 1, 0], &[1, 0, 1, 1], &[1, 1, 1, 0], &[1, 1, 1, 1]]);
    let question = "exists (0:EAX=1 /\\ 0:EBX=0 /\\ 1:EAX=1 /\\ 1:EBX=0)";
    check(code, question, "0:EAX 0:EBX 1:EAX 1:EBX", [sc, weak.clone(), weak]);
    // n5 and n4b of the x86-TSO paper: forbidden everywhere.
    let n5 = "P0 | P1 ;\nMOV [x],$1 | MOV [x],$2 ;\nMOV EAX,[x] | MOV EAX,[x] ;";
    let all = set(&[&[1, 1], &[1, 2], &[2, 2]]);
    check(n5, "exists (0:EAX=2 /\\ 1:EAX=1)", "0:EAX 1:EAX", [all.clone(), all.clone(), all]);
    let n4b = "P0 | P1 ;\nMOV EAX,[x] | MOV EAX,[x] ;\nMOV [x],$1 | MOV [x],$2 ;";
    let all = set(&[&[0, 0], &[0, 1], &[2, 0]]);
    check(n4b, "exists (0:EAX=2 /\\ 1:EAX=1)", "0:EAX 1:EAX", [all.clone(), all.clone(), all]);
    // n6: allowed, and only because a thread reads its own buffer.
    let n6 = "P0 | P1 ;\nMOV [x],$1 | MOV [y],$2 ;\nMOV EAX,[x] | MOV [x],$2 ;\nMOV EBX,[y] | ;";
    let text = format!("X86 n6\n{{ }}\n{n6}\nexists (0:EAX=1 /\\ 0:EBX=0 /\\ x=1)\n");
    let n6 = listing(Language::Litmus, &text, Listed::Named);
    assert_eq!(n6.names(), ["0:EAX", "0:EBX", "[x]"]);
    let seen = vec![1, 0, 1];
    assert_eq!(Model::ALL.map(|model| outcomes(&n6, model).contains(&seen)), [false, true, true]);
}

#[test]
fn more_threads() {
    let corr = "P0 | P1 ;\nMOV [x],$1 | MOV EAX,[x] ;\n | MOV EBX,[x] ;";
    let all = all_but(&[1, 1], &[&[1, 0]]);
    check(corr, "exists (1:EAX=1 /\\ 1:EBX=0)", "1:EAX 1:EBX", [all.clone(), all.clone(), all]);
    let iriw = "P0 | P1 | P2 | P3 ;\nMOV [x],$1 | MOV [y],$1 | MOV EAX,[x] | MOV EAX,[y] ;\n | | MOV EBX,[y] | MOV EBX,[x] ;";
    let all = all_but(&[1, 1, 1, 1], &[&[1, 0, 1, 0]]);
    let question = "exists (2:EAX=1 /\\ 2:EBX=0 /\\ 3:EAX=1 /\\ 3:EBX=0)";
    check(iriw, question, "2:EAX 2:EBX 3:EAX 3:EBX", [all.clone(), all.clone(), all]);
    let wrc = "P0 | P1 | P2 ;\nMOV [x],$1 | MOV EAX,[x] | MOV EAX,[y] ;\n | MOV [y],$1 | MOV EBX,[x] ;";
    let all = all_but(&[1, 1, 1], &[&[1, 1, 0]]);
    check(
        wrc,
        "exists (1:EAX=1 /\\ 2:EAX=1 /\\ 2:EBX=0)",
        "1:EAX 2:EAX 2:EBX",
        [all.clone(), all.clone(), all],
    );
    let rwc = "P0 | P1 | P2 ;\nMOV [x],$1 | MOV EAX,[x] | MOV [y],$1 ;\n | MOV EBX,[y] | MOV EAX,[x] ;";
    let (sc, weak) = (all_but(&[1, 1, 1], &[&[1, 0, 0]]), all_but(&[1, 1, 1], &[]));
    check(rwc, "exists (1:EAX=1 /\\ 1:EBX=0 /\\ 2:EAX=0)", "1:EAX 1:EBX 2:EAX", [sc, weak.clone(), weak]);
}

#[test]
fn locations_and_filters() {
    let code = "P0 | P1 ;\nMOV [x],$1 | MOV EAX,[x] ;";
    let both = set(&[&[0, 0, 1], &[0, 1, 1]]);
    let with = "locations [x; 0:EBX;]\nexists (1:EAX=1)";
    check(code, with, "0:EBX 1:EAX [x]", [both.clone(), both.clone(), both]);
    let filtered = set(&[&[1]]);
    let with = "filter (1:EAX=1)\nforall (x=1)";
    check(code, with, "[x]", [filtered.clone(), filtered.clone(), filtered]);
    let addresses = "X86_64 T\n{ int x; int *p=&x; int y; 0:rdi=y; }\nP0 | P1 ;\nmovq %rdi,(p) | movq (p),%rax ;\nexists (1:rax=y)\n";
    let listing = listing(Language::Litmus, addresses, Listed::Named);
    let found = outcomes(&listing, Model::Tso);
    let words: Vec<String> = found.iter().map(|values| listing.value(0, values[0])).collect();
    assert_eq!(words, ["x", "y"]);
}

#[test]
fn programs_in_other_languages() {
    let named = |text: &str, listed| listing(Language::Pal, text, listed).names().join(" ");
    let text = "shared x, a[2]: 0..1; process P(i: 0..1) { let r = x; a[i] = r; } process Q[2] { x = 1; let s = 2; }";
    assert_eq!(named(text, Listed::Named), "x a[0] a[1]");
    assert_eq!(named(text, Listed::All), "x a[0] a[1] P(0).r P(1).r Q[0].s Q[1].s");
    let with = format!("{text} final P(1).r == 0 || a[1] != 0 && P(1).i == 1; forbid a[1] == 7;");
    assert_eq!(named(&with, Listed::Named), "P(1).r a[1]");
    let with = listing(Language::Pal, &with, Listed::Named);
    for model in Model::ALL {
        assert_eq!(outcomes(&with, model), set(&[&[0, 0], &[1, 1]]), "{}", model.name());
    }
}
