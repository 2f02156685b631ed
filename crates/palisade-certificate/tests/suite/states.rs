//! Proofs by visiting all states: accepted where the program is safe and has finitely many states, and
//! nowhere else.

use palisade_base::Source;
use palisade_certificate::{Certificate, Refusal, verify};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::{Profile, generate, seeds};
use palisade_engine::{Exhausted, Limits, Options, Proof, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};

fn read(text: &str) -> Program {
    parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program
}

fn task(program: &Program, model: Model) -> Task<'_> {
    let (interlocked, options) = (Interlocked::default(), Options::default());
    Task { program, threads: Threads::Declared, model, interlocked, options }
}

#[test]
fn they_are_accepted_exactly_where_brute_force_finds_nothing() {
    let seeds = seeds(25);
    let (mut accepted, mut refused) = (0, 0);
    for seed in &seeds {
        for profile in Profile::ALL {
            let program = generate(profile, seed);
            for model in Model::ALL {
                let task = task(&program, model);
                let system = task.lower(1);
                let expected = brute::check(task.machine(&system), Scope::states(10_000));
                let limits = Limits::unlimited(1).with_work(10_000).with_memory(1 << 26);
                let judged = verify(&task, &Proof::AllStates, &limits);
                match expected {
                    Answer::Safe => {
                        assert!(judged.is_ok(), "{profile:?} {seed} {}: {judged:?}", model.name());
                        accepted += 1;
                    }
                    Answer::Unsafe(_) => {
                        assert_eq!(judged, Err(Refusal::BadReached), "{profile:?} {seed} {}", model.name());
                        refused += 1;
                    }
                    // Too many states; fewer need to be visited here.
                    Answer::Inconclusive => {}
                }
            }
        }
    }
    let enough = accepted > seeds.count() && refused > seeds.count();
    assert!(enough || !seeds.suffice(), "{accepted} {refused}");
}

/// Whether the proof is accepted, and after how many states.
fn judge(text: &str, model: Model) -> Result<usize, Refusal> {
    let program = read(text);
    let judged = verify(&task(&program, model), &Proof::AllStates, &Limits::unlimited(1));
    judged.map(|summary| summary.elements)
}

#[test]
fn threads_that_no_property_names_are_interchangeable() {
    let visited = |property: &str| {
        let text = format!(
            "shared x: 0..3; process P[3] {{ let r: 0..3; r = x; if r < 3 {{ x = r + 1; }} done: skip; }} {property}"
        );
        judge(&text, Model::Sc).expect("it is safe")
    };
    let (all, named) = (visited("forbid count(P@done) > 3;"), visited("forbid P[0]@done && P[0].r > 3;"));
    // Exact counts. They change if threads are not sorted, or not distinguished where they have to be.
    assert_eq!((all, named), (88, 289));
    // A property that names one of them may hold for another.
    let text = "shared x: 0..1; process P[2] { let r: 0..1; r = xchg(x, 1); done: skip; }";
    let by_one = |process: usize| format!("{text} forbid P[{process}]@done && P[{process}].r == 1;");
    for process in [0, 1] {
        assert_eq!(judge(&by_one(process), Model::Tso), Err(Refusal::BadReached), "{process}");
    }
}

#[test]
fn a_section_moves_with_its_holder() {
    // Both hold the section in turn. The second one sees what the first has written.
    let text = |most: u32| {
        format!(
            "shared x: 0..2; process P[2] {{ atomic {{ let r = x; x = r + 1; assert(r < {most}); }} x = x; }}"
        )
    };
    for model in Model::ALL {
        assert!(judge(&text(2), model).is_ok());
        assert_eq!(judge(&text(1), model), Err(Refusal::BadReached));
    }
    // One of them is named, and is not sorted with the others.
    let text = |most: u32| {
        format!(
            "shared x: 0..3; process P[3] {{ atomic {{ let r = x; x = r + 1; assert(r < {most}); }} a: x = x; }}
             forbid P[0]@a && x == 0;"
        )
    };
    for model in Model::ALL {
        assert!(judge(&text(3), model).is_ok());
        assert_eq!(judge(&text(2), model), Err(Refusal::BadReached));
    }
    // A holder that is named starts threads that have to be sorted.
    let text = "shared x: 0..1; process Main { spawn V; atomic { spawn W; spawn V; x = 1; } done: skip; }
        process V on spawn { x = 1; } process W on spawn { x = 1; } forbid Main@done && x == 0;";
    for model in Model::ALL {
        assert!(judge(text, model).is_ok());
    }
    // Q is sorted before P once P has taken a step.
    let text = "shared x: 0..1; process P { atomic { x = 1; let r = x; assert(r == 0); } } process Q { await x == 1; }";
    for model in Model::ALL {
        assert_eq!(judge(text, model), Err(Refusal::BadReached));
    }
}

#[test]
fn steps_that_a_property_sees_are_not_skipped() {
    let refused = |text: &str| {
        for model in Model::ALL {
            assert_eq!(judge(text, model), Err(Refusal::BadReached), "{text}");
        }
    };
    // A label between local steps, a register that is overwritten at once, the end, and loops that are never
    // left.
    refused("process P { skip; here: skip; skip; } forbid P@here;");
    refused(
        "process P { let r: 0..1; r = 1; here: assume(r == 0); } process Q { there: skip; } forbid Q@there && !P@here;",
    );
    refused("process P { let r: 0..2; r = 1; r = 2; r = 0; } forbid P.r == 2;");
    refused("process P { let r: 0..2; r = 1; r = 2; } final P.r == 1;");
    refused("process P { skip; loop { skip; } } process Q { skip; assert(false); }");
    refused(
        "shared x: 0..1; process P { let r: 0..1; loop { r = 1 - r; } } process Q { x = 1; let r = x; assert(r == 0); }",
    );
    refused("process P { loop { here: skip; skip; } } process Q { there: skip; } forbid P@here && Q@there;");
    refused("process P { skip; choose { skip; } or { assert(false); } }");
    refused("process P { loop { assert(false); } }");
    // Threads that are named in any order.
    refused(
        "shared x: 0..1; process P[3] { x = 1; a: x = 0; b: x = 1; } forbid P[1]@b && P[0]@a && count(P@a) == 2;",
    );
    refused("shared x: 0..1; process P { x = 1; skip; here: skip; } forbid P@here && x == 1;");
}

#[test]
fn local_steps_count_as_one() {
    // Each process has one state before its store and one after it, however much it computes.
    let text = |steps: &str| {
        format!("shared x: 0..1; process P {{ let r: 0..9; {steps} x = 1; {steps} }} process Q {{ x = 0; }}")
    };
    let few = judge(&text("r = 1;"), Model::Sc).expect("it is safe");
    assert_eq!(judge(&text("r = 1; r = r + 1; r = r + 2;"), Model::Sc), Ok(few));
}

#[test]
fn infinitely_many_states_and_any_number_of_processes_are_rejected() {
    let limits = Limits::unlimited(1).with_memory(1 << 22);
    let endless = read("shared x: 0..1; process P { loop { x = 1; } }");
    let judged = verify(&task(&endless, Model::Tso), &Proof::AllStates, &limits);
    assert_eq!(judged, Err(Refusal::Exhausted(Exhausted::Memory(1 << 22))));
    assert!(verify(&task(&endless, Model::Sc), &Proof::AllStates, &limits).is_ok());
    let any = read("shared x: 0..1; process P[*] { x = 1; }");
    assert!(matches!(verify(&task(&any, Model::Sc), &Proof::AllStates, &limits), Err(Refusal::Unsuited(_))));
}

#[test]
fn recursion_and_started_processes_are_fine() {
    let program = read(
        "shared x: 0..3;
         proc count(n: 0..3) { if n > 0 { x = n; count(n - 1); } }
         process P { count(3); spawn Q; }
         process Q on spawn { let r = x; assert(r <= 3); }",
    );
    for model in Model::ALL {
        let judged = verify(&task(&program, model), &Proof::AllStates, &Limits::unlimited(1));
        assert!(judged.is_ok(), "{judged:?}");
    }
}

#[test]
fn they_can_be_written_to_files_and_read_back() {
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "0".into(),
        build: None,
        model: Model::Tso,
        interlocked: Interlocked::default(),
        threads: Threads::Declared,
        int_range: None,
        constants: Default::default(),
        engine: "explicit".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof: Proof::AllStates,
    };
    let text = certificate.to_json();
    assert!(text.contains("all-states"), "{text}");
    assert_eq!(Certificate::from_json(&text).expect("it is a certificate"), certificate);
    assert!(Certificate::from_json(&text.replace("\"proof\":{}", "\"proof\":{\"a\":1}")).is_err());
}
