//! Proofs by visiting all states: they convince where the program is safe and has finitely many states, and nowhere else.

use palisade_base::Source;
use palisade_certificate::{Certificate, Refusal, verify};
use palisade_conformance::{Profile, generate};
use palisade_engine::{Budget, Engine, Exhausted, Options, Proof, Silent, Task, Threads, Verdict};
use palisade_explore::Explicit;
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
fn they_convince_exactly_where_explicit_search_says_safe() {
    let seeds = std::env::var("PALISADE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    let (mut convinced, mut refused) = (0, 0);
    for seed in 0..seeds {
        for profile in [Profile::Simple, Profile::Acyclic] {
            let program = generate(profile, seed);
            for model in Model::ALL {
                let task = task(&program, model);
                let (outcome, proof) = Explicit.prove(&task, &Budget::unlimited(1), &Silent);
                let judged = verify(&task, &Proof::AllStates, &Budget::unlimited(1), &Silent);
                match outcome.verdict {
                    Verdict::Safe => {
                        assert_eq!(proof, Some(Proof::AllStates));
                        assert!(judged.is_ok(), "{profile:?} {seed} {}: {judged:?}", model.name());
                        convinced += 1;
                    }
                    Verdict::Unsafe(_) => {
                        assert_eq!(proof, None);
                        assert_eq!(judged, Err(Refusal::BadReached), "{profile:?} {seed} {}", model.name());
                        refused += 1;
                    }
                    Verdict::Unknown(reason) => panic!("{profile:?} {seed}: {reason}"),
                }
            }
        }
    }
    assert!(convinced > 0 && refused > 0);
}

#[test]
fn endless_states_and_any_number_of_processes_are_not_accepted() {
    let budget = Budget::unlimited(1).with_memory(1 << 22);
    let endless = read("shared x: 0..1; process P { loop { x = 1; } }");
    let judged = verify(&task(&endless, Model::Tso), &Proof::AllStates, &budget, &Silent);
    assert_eq!(judged, Err(Refusal::Exhausted(Exhausted::Memory(1 << 22))));
    assert!(verify(&task(&endless, Model::Sc), &Proof::AllStates, &budget, &Silent).is_ok());
    let any = read("shared x: 0..1; process P[*] { x = 1; }");
    assert!(matches!(
        verify(&task(&any, Model::Sc), &Proof::AllStates, &budget, &Silent),
        Err(Refusal::Unsuited(_))
    ));
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
        let judged = verify(&task(&program, model), &Proof::AllStates, &Budget::unlimited(1), &Silent);
        assert!(judged.is_ok(), "{judged:?}");
    }
}

#[test]
fn they_are_kept_in_files() {
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "0".into(),
        model: "tso".into(),
        interlocked: Interlocked::default(),
        threads: Threads::Declared,
        int_range: None,
        engine: "explicit".into(),
        proof: Proof::AllStates,
    };
    let text = certificate.to_json();
    assert!(text.contains("all-states"), "{text}");
    assert_eq!(Certificate::from_json(&text).expect("it is a certificate"), certificate);
    assert!(Certificate::from_json(&text.replace("\"proof\":{}", "\"proof\":{\"a\":1}")).is_err());
}
