//! The checker accepts the proofs of the load-buffer engine, and rejects incomplete ones.

use palisade_base::Source;
use palisade_certificate::{Certificate, Refusal, Summary, verify};
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::{Dual, Sb};
use palisade_engine::proof::{Element, Held, LoadBuffers, Part, Process, Proof, SetLetter};
use palisade_engine::{Engine, Limits, Options, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use std::path::Path;

fn read(text: &str) -> Program {
    parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program
}

fn task(program: &Program, model: Model, threads: Threads) -> Task<'_> {
    Task { program, threads, model, interlocked: Interlocked::default(), options: Options::default() }
}

fn prove(task: &Task<'_>) -> Option<LoadBuffers> {
    let (outcome, proof) = Dual.prove(&task.analysis(), &Limits::unlimited(1));
    assert_eq!(outcome.verdict == Verdict::Holds, proof.is_some(), "{:?}", outcome.verdict);
    proof.map(|proof| match proof {
        Proof::LoadBuffers(proof) => proof,
        _ => panic!("the load-buffer engine gives load-buffer proofs"),
    })
}

fn judge(task: &Task<'_>, proof: &LoadBuffers) -> Result<Summary, Refusal> {
    verify(task, &Proof::LoadBuffers(proof.clone()), &Limits::unlimited(1))
}

/// Programs of the corpus that are safe under the model.
fn safe_programs(model: Model) -> Vec<(String, Program)> {
    let mut found = Vec::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    for expected in palisade_corpus::expectations() {
        let name = expected.file.to_owned();
        let text = std::fs::read_to_string(corpus.join(&name)).expect("the corpus is complete");
        let program = read(&text);
        let limits = Limits::unlimited(1).with_work(20_000);
        let task = task(&program, model, Threads::Declared);
        // Those for an open number of processes with identities have their own tests.
        let certifiable = !task.has_open_identities();
        if certifiable && Dual.check(&task.analysis(), &limits).verdict == Verdict::Holds {
            found.push((name, program));
        }
    }
    found
}

#[test]
fn proofs_of_the_corpus_are_accepted() {
    for model in [Model::Sc, Model::Tso] {
        for (name, program) in safe_programs(model) {
            let task = task(&program, model, Threads::Declared);
            let proof = prove(&task).expect("the program is safe");
            if let Err(refusal) = judge(&task, &proof) {
                panic!("{name} under {}: {refusal}", model.name());
            }
        }
    }
}

#[test]
fn no_element_can_be_left_out() {
    let (mut left_out, mut superfluous) = (0, 0);
    for (name, program) in safe_programs(Model::Tso) {
        let task = task(&program, Model::Tso, Threads::Declared);
        let proof = prove(&task).expect("the program is safe");
        let places: Vec<(usize, usize)> = places(&proof).collect();
        // All of a small proof, some of a large one.
        for &(part, index) in places.iter().step_by(1 + places.len() / 100) {
            let mut less = proof.clone();
            less.parts[part].elements.remove(index);
            // The checker may see that several elements together cover what one covers, which the engine does not
            // look for. That is rare, and then the rest is a proof: nothing that is left can be left out.
            if judge(&task, &less).is_ok() {
                superfluous += 1;
                let others = (0..less.parts[part].elements.len()).step_by(1 + places.len() / 20);
                for other in others {
                    let mut even_less = less.clone();
                    even_less.parts[part].elements.remove(other);
                    let missed = judge(&task, &even_less).is_err();
                    assert!(missed, "{name}: elements {index} and {other} of part {part} are not missed");
                }
            }
            left_out += 1;
        }
    }
    assert!(left_out > 400, "only {left_out} elements were left out");
    assert!(100 * superfluous <= left_out, "{superfluous} of {left_out} elements are superfluous");
}

/// The positions of a proof's elements: part and index.
fn places(proof: &LoadBuffers) -> impl Iterator<Item = (usize, usize)> {
    let parts = proof.parts.iter().enumerate();
    parts.flat_map(|(part, elements)| (0..elements.elements.len()).map(move |index| (part, index)))
}

/// The number of the set of one value.
fn single(proof: &mut LoadBuffers, value: u32) -> u32 {
    let place = proof.sets.iter().position(|set| *set == [value]).unwrap_or_else(|| {
        proof.sets.push(vec![value]);
        proof.sets.len() - 1
    });
    place as u32
}

/// Variants of an element that require more, for cells with two values. The set then lacks configurations. (A
/// variant that requires less may give another valid proof.)
fn changes(proof: &LoadBuffers, singles: [u32; 2], element: &Element) -> Vec<Element> {
    let mut changed = Vec::new();
    for place in 0..element.memory.len() {
        let mut other = element.clone();
        let set = &proof.sets[other.memory[place].1 as usize];
        assert_eq!(set.len(), 1, "a cell with both values is not named");
        other.memory[place].1 = singles[1 - set[0] as usize];
        changed.push(other);
    }
    for place in 0..element.processes.len() {
        let process = &element.processes[place];
        for letter in 0..process.word.len() {
            let SetLetter { own, cell, values } = process.word[letter];
            // Both values may be named where only one can be pending.
            let pending = |value: &u32| {
                let claims = proof.pending.iter();
                let here = claims.filter(|claim| (claim.kind, claim.state) == (process.kind, process.state));
                !own || here.into_iter().any(|claim| (claim.cell, claim.value) == (cell, *value))
            };
            let possible = proof.sets[values as usize].iter().find(|value| pending(value));
            let mut other = element.clone();
            other.processes[place].word[letter].values =
                singles[1 - *possible.expect("the element is not empty") as usize];
            changed.push(other);
            let mut other = element.clone();
            other.processes[place].word[letter].own ^= true;
            changed.push(other);
        }
        let mut other = element.clone();
        other.processes[place].state = (process.state + 1) % 4;
        changed.push(other);
    }
    changed
}

#[test]
fn no_element_can_be_changed() {
    let texts = [
        "shared x, y: bool; process P(i: 0..1) { if i == 0 { x = true; fence; if !y { cs0: skip; } } else { y = true; fence; if !x { cs1: skip; } } } forbid P(0)@cs0 && P(1)@cs1;",
        "shared x, y: bool; process W { x = true; y = true; } process R { let a = y; let b = x; assert(!a || b); }",
    ];
    for text in texts {
        let program = read(text);
        let task = task(&program, Model::Tso, Threads::Declared);
        let mut proof = prove(&task).expect("the program is safe");
        let singles = [0, 1].map(|value| single(&mut proof, value));
        judge(&task, &proof).expect("the proof is accepted");
        assert!(!proof.parts[0].elements.is_empty());
        for (part, index) in places(&proof) {
            for other in changes(&proof, singles, &proof.parts[part].elements[index]) {
                let mut changed = proof.clone();
                changed.parts[part].elements[index] = other.clone();
                assert!(judge(&task, &changed).is_err(), "{text}: element {index} became {other:?}");
            }
        }
    }
}

#[test]
fn an_invariant_that_claims_too_much_is_rejected() {
    let text =
        "shared f: 0..2; process W { f = 1; f = 2; } process R { let a = f; let b = f; assert(a <= b); }";
    let program = read(text);
    let task = task(&program, Model::Tso, Threads::Declared);
    let proof = prove(&task).expect("the program is safe");
    judge(&task, &proof).expect("the proof is accepted");
    assert!(!proof.pending.is_empty() && !proof.held.is_empty(), "{proof:?}");
    for index in 0..proof.pending.len() {
        let mut changed = proof.clone();
        changed.pending.remove(index);
        assert!(matches!(judge(&task, &changed), Err(Refusal::NotInductive(_))), "pending {index}");
    }
    for state in 0..proof.held[0].values.len() {
        for value in 0..proof.held[0].values[state].len() {
            let mut changed = proof.clone();
            changed.held[0].values[state].remove(value);
            assert!(matches!(judge(&task, &changed), Err(Refusal::NotInductive(_))), "held at {state}");
        }
    }
}

#[test]
fn nonsense_is_rejected() {
    let program = read("shared x: bool; process P[2] { x = true; assert(x); }");
    let task = task(&program, Model::Tso, Threads::Declared);
    let mut proof = prove(&task).expect("the program is safe");
    let [no, yes] = [0, 1].map(|value| single(&mut proof, value));
    let none = proof.sets.len() as u32;
    let check = |change: &dyn Fn(&mut LoadBuffers)| {
        let mut changed = proof.clone();
        change(&mut changed);
        assert!(judge(&task, &changed).is_err(), "{changed:?}");
    };
    check(&|proof| proof.classes.clear());
    check(&|proof| proof.classes[0].push(0));
    check(&|proof| proof.classes[0][0] = 1 << 30);
    check(&|proof| proof.parts.clear());
    let process = |kind, state, word| Process { kind, state, word };
    let message = |cell, values| SetLetter { own: false, cell, values };
    for wrong in [
        Element { memory: vec![(7, no)], processes: vec![] },
        Element { memory: vec![(0, none + 7)], processes: vec![] },
        Element { memory: vec![(0, no), (0, yes)], processes: vec![] },
        Element { memory: vec![], processes: vec![process(3, 0, vec![])] },
        Element { memory: vec![], processes: vec![process(0, 99, vec![])] },
        Element { memory: vec![], processes: vec![process(0, 0, vec![message(9, no)])] },
        Element::default(),
    ] {
        check(&|proof| proof.parts[0].elements.push(wrong.clone()));
    }
    // Numbers just past the last valid one, duplicates, and too many processes.
    let own = |cell, values| SetLetter { own: true, cell, values };
    let classes = proof.classes[0].iter().max().expect("there is a class") + 1;
    for wrong in [
        Element { memory: vec![(1, no)], processes: vec![] },
        Element { memory: vec![(0, none)], processes: vec![] },
        Element { memory: vec![(0, no), (0, yes)], processes: vec![] },
        Element { memory: vec![(0, yes), (0, yes)], processes: vec![process(0, 0, vec![])] },
        Element { memory: vec![], processes: vec![process(1, 0, vec![])] },
        Element { memory: vec![], processes: vec![process(0, classes, vec![])] },
        Element { memory: vec![], processes: vec![process(0, 0, vec![message(0, none)])] },
        Element { memory: vec![], processes: vec![process(0, 0, vec![own(0, yes), own(0, yes)])] },
        Element { memory: vec![], processes: vec![process(0, 0, vec![own(0, yes), message(0, yes)])] },
        Element { memory: vec![], processes: vec![process(0, 0, vec![]); 1025] },
    ] {
        let mut changed = proof.clone();
        changed.parts[0].elements.push(wrong.clone());
        let judged = judge(&task, &changed);
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{wrong:?}: {judged:?}");
    }
    for wrong in [vec![], vec![1, 0], vec![0, 0], vec![2], vec![0, 2]] {
        let mut changed = proof.clone();
        changed.sets.push(wrong.clone());
        let judged = judge(&task, &changed);
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{wrong:?}: {judged:?}");
    }
    let mut many = proof.clone();
    many.parts[0].elements.push(Element { memory: vec![], processes: vec![process(0, 0, vec![]); 1024] });
    assert!(
        judge(&task, &many).is_ok(),
        "an element with more processes than the program has contains nothing"
    );
    for states in [0, classes as usize - 1, classes as usize + 1] {
        let mut changed = proof.clone();
        changed.held = vec![Held { cell: 0, kind: 0, values: vec![vec![0, 1]; states] }];
        let judged = judge(&task, &changed);
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{states}: {judged:?}");
    }
    let mut changed = proof.clone();
    changed.held = vec![Held { cell: 1, kind: 0, values: vec![vec![0]; classes as usize] }];
    let refusal = judge(&task, &changed).expect_err("there is one cell").to_string();
    assert!(refusal.contains("there is no such cell"), "{refusal}");
    // Elements are numbered across all parts.
    let mut changed = proof.clone();
    let start = Element { memory: vec![], processes: vec![] };
    changed.parts.push(Part { tracked: None, elements: vec![start] });
    let before = proof.parts.iter().map(|part| part.elements.len()).sum();
    assert_eq!(judge(&task, &changed), Err(Refusal::Initial(before)));
    check(&|proof| proof.parts[0].tracked = Some(vec![1, 1]));
    let wrong_model = Task { model: Model::Pso, ..task.clone() };
    assert!(matches!(judge(&wrong_model, &proof), Err(Refusal::Unsuited(_))));
}

/// Every proof for a random program is accepted, under both models, for declared and for any number of
/// threads. A proof for SC is accepted under TSO only if the program is safe there.
#[test]
fn proofs_for_random_programs_are_accepted() {
    let seeds = seeds(150).starting_at(1);
    let (mut accepted, mut refused) = (0, 0);
    for seed in &seeds {
        for profile in Profile::ALL {
            let program = generate(profile, seed);
            let mut proofs = Vec::new();
            for model in [Model::Sc, Model::Tso] {
                let task = task(&program, model, Threads::Declared);
                let (outcome, proof) = Dual.prove(&task.analysis(), &Limits::unlimited(1).with_work(10_000));
                if let Some(Proof::LoadBuffers(proof)) = proof {
                    if let Err(refusal) = judge(&task, &proof) {
                        panic!("seed {seed}, {profile:?}, {}: {refusal}", model.name());
                    }
                    accepted += 1;
                    proofs.push(proof);
                }
                if model == Model::Tso && matches!(outcome.verdict, Verdict::Violated(_)) {
                    for proof in &proofs {
                        assert!(
                            judge(&task, proof).is_err(),
                            "seed {seed}, {profile:?}: a proof for SC is accepted under TSO"
                        );
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{accepted} proofs were accepted, {refused} were rejected under TSO");
    assert!(accepted > 0 && refused > 0 || !seeds.suffice());
}

#[test]
fn files_contain_the_proof_and_detect_changes() {
    let program = read("shared x: bool; process P { x = true; assert(x); }");
    let task = task(&program, Model::Tso, Threads::Each(2));
    let proof = Proof::LoadBuffers(prove(&task).expect("the program is safe"));
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        build: None,
        model: Model::Tso,
        interlocked: Interlocked::default(),
        threads: Threads::Each(2),
        int_range: Some((-1, 4)),
        constants: Default::default(),
        engine: "dual".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof,
    };
    let text = certificate.to_json();
    assert_eq!(Certificate::from_json(&text).expect("it was just written"), certificate);
    let check = |from: &str, to: &str, part: &str| {
        assert!(text.contains(from), "{text}");
        let error = Certificate::from_json(&text.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(part), "{error}");
    };
    check("\"schema_version\":3", "\"schema_version\":4", "version 4; this Palisade reads versions 2 to 3");
    check("\"schema_version\":3", "\"schema_version\":1", "does not seal what it proves");
    check("load-buffers", "tea-leaves", "tea-leaves");
    check("{", "[", "not a certificate");
    // The question is sealed along with the answer.
    for (from, to) in [
        ("\"parts\":[", "\"parts\":[{\"elements\":[]},"),
        ("\"p.pal\"", "\"q.pal\""),
        ("\"language\":\"pal\"", "\"language\":\"rmm\""),
        ("\"hash\":\"h\"", "\"hash\":\"i\""),
        ("\"model\":\"tso\"", "\"model\":\"sc\""),
        ("\"model\":\"tso\",", "\"model\":\"tso\",\"interlocked\":\"own-address\","),
        ("\"threads\":\"2\"", "\"threads\":\"any\""),
        ("\"threads\":\"2\"", "\"threads\":\"3\""),
        ("[-1,4]", "[-1,5]"),
        ("\"int_range\":[-1,4],", ""),
        ("\"engine\":\"dual\"", "\"engine\":\"sb\""),
    ] {
        check(from, to, "was changed");
    }
}

/// A file in any form other than the one Palisade writes is rejected, whatever its digest.
#[test]
fn files_with_other_forms_of_a_question_are_rejected() {
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        build: None,
        model: Model::Tso,
        interlocked: Interlocked::OwnAddress,
        threads: Threads::Each(2),
        int_range: Some((-1, 4)),
        constants: Default::default(),
        engine: "dual".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof: Proof::LoadBuffers(LoadBuffers {
            sets: vec![vec![0, 1], vec![1]],
            parts: vec![Part {
                tracked: Some(vec![1]),
                elements: vec![Element {
                    memory: vec![(0, 1)],
                    processes: vec![Process {
                        kind: 0,
                        state: 3,
                        word: vec![SetLetter { own: true, cell: 0, values: 1 }],
                    }],
                }],
            }],
            ..LoadBuffers::default()
        }),
    };
    let text = certificate.to_json();
    assert_eq!(Certificate::from_json(&text).expect("it was just written"), certificate);
    for (from, to) in [
        ("\"threads\":\"2\"", "\"threads\":\"two\""),
        ("\"threads\":\"2\"", "\"threads\":\"02\""),
        ("\"threads\":\"2\"", "\"threads\":\"+2\""),
        ("\"threads\":\"2\"", "\"threads\":\"0\""),
        ("\"threads\":\"2\"", "\"threads\":\"-1\""),
        ("\"threads\":\"2\"", "\"threads\":\"4097\""),
        ("\"threads\":\"2\"", "\"threads\":\"18446744073709551618\""),
        ("\"model\":\"tso\"", "\"model\":\"TSO\""),
        ("\"model\":\"tso\"", "\"model\":\"rmo\""),
        ("own-address", "whole-buffer"),
        ("[-1,4]", "[4,-1]"),
        ("[-1,4]", "[-1,1e300]"),
        ("[-1,4]", "[-1,4.0]"),
        ("[-1,4]", "[-1,9223372036854775808]"),
        ("[-1,4]", "[NaN,4]"),
        ("\"engine\":", "\"rounds\":3,\"engine\":"),
        ("\"engine\":", "\"model\":\"sc\",\"engine\":"),
        ("\"hash\":", "\"more\":0,\"hash\":"),
        ("\"parts\":", "\"more\":[],\"parts\":"),
        ("\"parts\":", "\"parts\":[],\"parts\":"),
        ("\"elements\":", "\"more\":[],\"elements\":"),
        ("\"memory\":", "\"more\":[],\"memory\":"),
        ("\"sets\":[[0,1],[1]],", ""),
        ("\"sets\":[[0,1],[1]]", "\"sets\":[[0,1],[-1]]"),
        ("\"schema_version\":3", "\"schema_version\":2"),
        ("[1,0,1]", "[2,0,1]"),
        ("[1,0,1]", "[true,0,1]"),
        ("[1,0,1]", "[1,0,-1]"),
        ("[1,0,1]", "[1,0,4294967296]"),
        ("[1,0,1]", "[1,0,1,1]"),
        ("[1,0,1]", "[1,0]"),
    ] {
        assert!(text.contains(from), "{text}");
        let changed = text.replacen(from, to, 1);
        // With a matching digest, where there is one.
        let error = Certificate::from_json(&resealed(&changed)).expect_err(to).to_string();
        assert!(!error.contains("was changed"), "{to}: {error}");
    }
}

/// The file with the digest of its current content.
fn resealed(text: &str) -> String {
    let from = text.find("\"digest\":\"").expect("there is a digest") + 10;
    let to = from + text[from..].find('"').expect("it ends");
    let empty = format!("{}{}", &text[..from], &text[to..]);
    let digest = palisade_trace::text_hash(empty.trim_end());
    format!("{}{digest}{}", &text[..from], &text[to..])
}

#[test]
fn a_file_that_is_sealed_again_is_read() {
    let program = read("shared x: bool; process P { x = true; assert(x); }");
    let task = task(&program, Model::Tso, Threads::Declared);
    let proof = Proof::LoadBuffers(prove(&task).expect("the program is safe"));
    let text = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        build: None,
        model: Model::Tso,
        interlocked: Interlocked::default(),
        threads: Threads::Declared,
        int_range: None,
        constants: Default::default(),
        engine: "dual".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof,
    }
    .to_json();
    let sc = resealed(&text.replace("\"tso\"", "\"sc\""));
    assert_eq!(Certificate::from_json(&sc).expect("the digest is right").model, Model::Sc);
    let one = resealed(&text.replace("\"engine\"", "\"int_range\":[3,3],\"engine\""));
    assert_eq!(Certificate::from_json(&one).expect("the digest is right").int_range, Some((3, 3)));
    let other = resealed(&text.replace("\"load-buffers\"", "\"single-buffer\""));
    let error = Certificate::from_json(&other).expect_err("it is of another kind").to_string();
    assert!(error.contains("`single-buffer`, but contains one of kind `load-buffers`"), "{error}");
}

/// Files of version 2 have single values. They are still read, and checked like the others.
#[test]
fn files_without_sets_are_still_checked() {
    let text = "shared x, y: bool; process P { x = true; fence; if !y { cs: skip; } } \
        process Q { y = true; fence; if !x { cs: skip; } } forbid P@cs && Q@cs;";
    let program = read(text);
    let task = task(&program, Model::Tso, Threads::Declared);
    // This engine's proofs have single values, each as the set with its number.
    let (_, proof) = Sb.prove(&task.analysis(), &Limits::unlimited(1));
    let proof = proof.expect("the program is safe");
    let Proof::LoadBuffers(LoadBuffers { sets, .. }) = &proof else { panic!("a load-buffer proof") };
    let (from, sets) = (format!(",\"sets\":{sets:?}").replace(' ', ""), sets.clone());
    assert!(sets.iter().enumerate().all(|(number, set)| *set == [number as u32]), "{sets:?}");
    let new = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        build: None,
        model: Model::Tso,
        interlocked: Interlocked::default(),
        threads: Threads::Declared,
        int_range: None,
        constants: Default::default(),
        engine: "sb".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof: proof.clone(),
    }
    .to_json();
    assert!(new.contains(&from), "{from}: {new}");
    let old = new.replace(&from, "").replace("\"schema_version\":3", "\"schema_version\":2");
    let read = Certificate::from_json(&resealed(&old)).expect("version 2 is read");
    assert_eq!(read.proof, proof);
    assert!(verify(&task, &read.proof, &Limits::unlimited(1)).is_ok());
}
