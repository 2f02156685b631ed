//! Any number of processes with identities: what the answer says, and its certificate.

use palisade::certificate::Certificate;
use palisade::engine::{Limits, Question, Safety, Threads};
use palisade::memory::Model;
use palisade::report::Report;
use palisade::{AskError, CheckOptions, EngineChoice, Input};
use palisade_base::Source;
use palisade_syntax::Language;

fn input(text: &str) -> Input {
    palisade::read(Source::new("identities.pal", text), Language::Pal, None).expect("it is valid")
}

/// Every process counts, whether it takes a step or not: alone, a process has no others.
#[test]
fn all_processes_are_counted() {
    let input =
        input("shared flag[id]: bool; process P(me: id)[*] { for other in others { assert(flag[other]); } }");
    let options = CheckOptions { engine: EngineChoice::from("dual"), ..CheckOptions::default() };
    let answer = palisade::check(&input.program, &options, &Limits::unlimited(1)).expect("it is no bug");
    let run = &answer.outcome.verdict.witness().expect("a flag is not set").run;
    assert!(run.steps.iter().all(|step| step.thread == run.steps[0].thread));
    assert_eq!(answer.threads_of_any(&input.program), Some(2));
}

/// Single processes beside them are not counted, as with `--threads`. The text names the process that is counted.
#[test]
fn only_processes_with_identities_are_counted() {
    let input = input(
        "shared x: 0..3 wrap; process P(me: id)[*] { fetch_add(x, 1); } process A { skip; }
         process B { assume(x == 2); bad: skip; } forbid B@bad;",
    );
    let options = CheckOptions { engine: EngineChoice::from("dual"), ..CheckOptions::default() };
    let answer = palisade::check(&input.program, &options, &Limits::unlimited(1)).expect("it is no bug");
    assert_eq!(answer.threads_of_any(&input.program), Some(2));
    let finding = answer.finding(&input, None, None);
    let why = finding.why().expect("it is unsafe");
    assert!(why.starts_with("with 2 threads of P, B is at bad"), "{why}");
}

/// Only processes with identities, and those with `[*]`, are multiplied. So nothing is said about any number of the others.
#[test]
fn single_processes_stay_single() {
    let text = |count: &str| {
        format!(
            "shared s: 0..2 blocking; shared turn: id or none; process A{count} {{ fetch_add(s, 1); }}
             process P(me: id)[*] {{ if s == 2 {{ bad: skip; }} }} forbid count(P@bad) >= 1;"
        )
    };
    let ask = |count: &str| {
        let options = CheckOptions { threads: Threads::Any, ..CheckOptions::default() };
        palisade::check(&input(&text(count)).program, &options, &Limits::unlimited(1).with_work(100_000))
    };
    assert_eq!(ask("").err(), Some(AskError::FixedNumber { name: "A".to_owned() }));
    assert_eq!(Safety::word(&ask("[*]").expect("an answer").outcome.verdict), "unsafe");
}

#[test]
fn proofs_become_certificates() {
    let text = |fence: &str| {
        format!(
            "shared wants[id]: bool;\nprocess P(me: id)[*] {{\n    wants[me] = true;\n    {fence}\n    \
             for other in others {{ if wants[other] {{ goto out; }} }}\ncs: skip;\nout: skip;\n}}\n\
             forbid count(P@cs) >= 2;\n"
        )
    };
    let input = input(&text("fence;"));
    for model in [Model::Sc, Model::Tso] {
        let options = CheckOptions { model, prove: true, certify: true, ..CheckOptions::default() };
        let limits = Limits::unlimited(1).with_work(100_000);
        let answer = palisade::check(&input.program, &options, &limits).expect("it is no bug");
        assert_eq!(Safety::word(&answer.outcome.verdict), "safe");
        assert!(answer.certified.is_some());
        let certificate = answer.certificate(&input).expect("there is a proof");
        let read = Certificate::from_json(&certificate.to_json()).expect("it is a certificate");
        assert_eq!(read, certificate);
        assert_eq!(palisade::certify(&input.program, &read, &limits).map(|_| ()), Ok(()));
        let broken =
            palisade::read(Source::new("b.pal", text("")), Language::Pal, None).expect("it is valid");
        let judged = palisade::certify(&broken.program, &read, &limits);
        assert!(model == Model::Sc || judged.is_err(), "{judged:?}");
    }
}

/// `--threads N` sets the number of processes with identities, also where the program declares another one.
#[test]
fn a_declared_number_can_be_replaced() {
    let text = |count: &str| {
        format!(
            "shared a, b: id or none;
             process P(me: id){count} {{
                 if cas(a, none, me) {{ return; }}
                 if cas(b, none, me) {{ return; }}
                 assert(false);
             }}"
        )
    };
    let limits = Limits::unlimited(1).with_work(100_000);
    for declared in ["[1]", "[2]", "[3]", "[*]"] {
        let input = input(&text(declared));
        for (engine, model) in [
            ("explicit", Model::Sc),
            ("explicit", Model::Tso),
            ("dual", Model::Sc),
            ("dual", Model::Tso),
            ("sb", Model::Pso),
            ("lazy", Model::Tso),
            ("auto", Model::Tso),
        ] {
            for (number, expected) in [(1, "safe"), (2, "safe"), (3, "unsafe")] {
                let options = CheckOptions {
                    model,
                    engine: EngineChoice::from(engine),
                    threads: Threads::Each(number),
                    prove: true,
                    ..CheckOptions::default()
                };
                let answer = palisade::check(&input.program, &options, &limits).expect("it is no bug");
                let found = Safety::word(&answer.outcome.verdict);
                assert_eq!(found, expected, "{declared}, {engine} under {}, {number} threads", model.name());
                let Some(certificate) = answer.certificate(&input) else { continue };
                assert_eq!(palisade::certify(&input.program, &certificate, &limits).map(|_| ()), Ok(()));
                for other in [3, 4] {
                    let forged = Certificate { threads: Threads::Each(other), ..certificate.clone() };
                    let judged = palisade::certify(&input.program, &forged, &limits);
                    assert!(judged.is_err(), "{declared}, {engine}, {other} threads");
                }
            }
        }
    }
}

/// A property about one process needs that process.
#[test]
fn a_number_that_is_too_small() {
    let input = input("shared f[id]: bool; process P(me: id)[3] { f[me] = true; } forbid f[3];");
    let ask = |number| {
        let options = CheckOptions { threads: Threads::Each(number), ..CheckOptions::default() };
        let answer = palisade::check(&input.program, &options, &Limits::unlimited(1));
        answer.map(|answer| Safety::word(&answer.outcome.verdict))
    };
    assert_eq!(ask(4), Ok("unsafe"));
    assert_eq!(ask(2), Err(AskError::NoSuchIdentity { name: "P".to_owned(), number: 2 }));
}
