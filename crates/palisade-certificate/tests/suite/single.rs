//! The checker accepts the proofs of the single-buffer engine under every model, and rejects incomplete ones.

use palisade_base::Source;
use palisade_certificate::{Certificate, Refusal, Summary, verify};
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::Sb;
use palisade_engine::proof::{Cell, Proof, Queue, SetLetter, SingleBuffer, Snapshot, Viewer};
use palisade_engine::{Engine, Limits, Options, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use std::path::Path;

fn read(text: &str) -> Program {
    parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program
}

fn task(program: &Program, model: Model, interlocked: Interlocked) -> Task<'_> {
    Task { program, threads: Threads::Declared, model, interlocked, options: Options::default() }
}

fn judge(task: &Task<'_>, proof: &Proof) -> Result<Summary, Refusal> {
    verify(task, proof, &Limits::unlimited(1))
}

/// The proof for PSO of a program that is safe there.
fn prove(task: &Task<'_>) -> SingleBuffer {
    match Sb.prove(&task.analysis(), &Limits::unlimited(1)) {
        (_, Some(Proof::SingleBuffer(proof))) => proof,
        (outcome, _) => panic!("{:?}", outcome.verdict),
    }
}

/// Programs of the corpus that are safe under PSO.
fn safe_programs() -> Vec<(String, Program)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut found = Vec::new();
    for expected in palisade_corpus::expectations() {
        let text = std::fs::read_to_string(corpus.join(expected.file)).expect("the corpus is complete");
        let program = read(&text);
        let limits = Limits::unlimited(1).with_work(12_000);
        let outcome = Sb.check(&task(&program, Model::Pso, Interlocked::WholeBuffer).analysis(), &limits);
        if outcome.verdict == Verdict::Holds {
            found.push((expected.file.to_owned(), program));
        }
    }
    found
}

#[test]
fn proofs_of_the_corpus_are_accepted() {
    for (name, program) in safe_programs() {
        for model in Model::ALL {
            let task = task(&program, model, Interlocked::WholeBuffer);
            let (outcome, proof) = Sb.prove(&task.analysis(), &Limits::unlimited(1));
            assert_eq!(outcome.verdict, Verdict::Holds, "{name} under {}", model.name());
            if let Err(refusal) = judge(&task, &proof.expect("a safe program has a proof")) {
                panic!("{name} under {}: {refusal}", model.name());
            }
        }
    }
}

#[test]
fn elements_cannot_be_left_out() {
    let (mut left_out, mut missed) = (0, 0);
    for (_, program) in safe_programs() {
        let task = task(&program, Model::Pso, Interlocked::WholeBuffer);
        let proof = prove(&task);
        // All of a small proof, some of a large one.
        for index in (0..proof.elements.len()).step_by(1 + proof.elements.len() / 20) {
            let mut less = proof.clone();
            less.elements.remove(index);
            left_out += 1;
            missed += usize::from(judge(&task, &Proof::SingleBuffer(less)).is_err());
        }
    }
    // The checker may find another process whose instructions suffice, and then needs less than the engine
    // did.
    assert!(left_out > 100 && 20 * missed > 19 * left_out, "{missed} of {left_out} elements were missed");
}

/// Variants of a proof in which an element has more or other requirements. The set then lacks configurations.
fn changes(proof: &SingleBuffer, index: usize) -> Vec<SingleBuffer> {
    let mut changed = Vec::new();
    type Change<'c> = dyn Fn(&mut Snapshot, &mut dyn FnMut(u32) -> u32) + 'c;
    let mut change = |change: &Change<'_>| {
        let mut other = proof.clone();
        let SingleBuffer { sets, elements, .. } = &mut other;
        // The set of the other value, or of one value instead of both.
        let mut flipped = |set: u32| {
            let flipped = match sets[set as usize][..] {
                [value] => vec![value ^ 1],
                _ => vec![0],
            };
            sets.push(flipped);
            sets.len() as u32 - 1
        };
        change(&mut elements[index], &mut flipped);
        changed.push(other);
    };
    let element = &proof.elements[index];
    for place in 0..element.memory.len() {
        change(&|other, flipped| other.memory[place].values = flipped(other.memory[place].values));
    }
    for (place, process) in element.processes.iter().enumerate() {
        for letter in 0..process.word.len() {
            change(&|other, flipped| {
                let letter = &mut other.processes[place].word[letter];
                letter.values = flipped(letter.values);
            });
            change(&|other, _| other.processes[place].word[letter].own ^= true);
        }
        for (index, queue) in process.queues.iter().enumerate() {
            for value in 0..queue.values.len() {
                change(&|other, flipped| {
                    let set = &mut other.processes[place].queues[index].values[value];
                    *set = flipped(*set);
                });
            }
            if !queue.closed {
                change(&|other, _| other.processes[place].queues[index].closed = true);
            }
        }
        if let Some(state) = process.state {
            change(&|other, _| other.processes[place].state = Some((state + 1) % 4));
        } else {
            change(&|other, _| other.processes[place].state = Some(0));
        }
    }
    changed
}

#[test]
fn no_element_can_be_changed() {
    let texts = [
        "shared x, y: bool; process P(i: 0..1) { if i == 0 { x = true; fence; if !y { cs0: skip; } } else { y = true; fence; if !x { cs1: skip; } } } forbid P(0)@cs0 && P(1)@cs1;",
        "shared x, y: bool; process W { x = true; sfence; y = true; } process R { let a = y; let b = x; assert(!a || b); }",
        "shared x, y: bool; process P { x = true; fence; y = true; fence; } forbid y && !x;",
    ];
    for text in texts {
        let program = read(text);
        let task = task(&program, Model::Pso, Interlocked::WholeBuffer);
        let proof = prove(&task);
        judge(&task, &Proof::SingleBuffer(proof.clone())).expect("the proof is accepted");
        assert!(!proof.elements.is_empty());
        for index in 0..proof.elements.len() {
            for changed in changes(&proof, index) {
                let other = changed.elements[index].clone();
                let refused = judge(&task, &Proof::SingleBuffer(changed)).is_err();
                assert!(refused, "{text}: element {index} became {other:?}");
            }
        }
    }
}

#[test]
fn nonsense_is_rejected() {
    let program = read("shared x: bool; process P { x = true; assert(x); }");
    let task = task(&program, Model::Pso, Interlocked::WholeBuffer);
    let mut proof = prove(&task);
    // The sets of one value each come first.
    let more = std::mem::replace(&mut proof.sets, vec![vec![0], vec![1]]);
    let first = |set: &mut u32| {
        *set = more[*set as usize].first().copied().filter(|_| more[*set as usize].len() == 1).unwrap_or(2)
    };
    proof.sets.push(vec![0, 1]);
    for element in &mut proof.elements {
        element.memory.iter_mut().for_each(|cell| first(&mut cell.values));
        for process in &mut element.processes {
            process.word.iter_mut().for_each(|letter| first(&mut letter.values));
            process.queues.iter_mut().flat_map(|queue| &mut queue.values).for_each(first);
        }
    }
    assert!(judge(&task, &Proof::SingleBuffer(proof.clone())).is_ok());
    let viewer = |kind, state| Viewer { kind, state, word: Vec::new(), queues: Vec::new() };
    let letter = |own, cell, values| SetLetter { own, cell, values };
    let queue = |cell, values: &[u32]| Queue { cell, closed: true, values: values.to_vec() };
    let wrong = [
        viewer(3, None),
        viewer(0, Some(99)),
        Viewer { word: vec![letter(false, 9, 0)], ..viewer(0, Some(0)) },
        Viewer { word: vec![letter(true, 0, 0), letter(true, 0, 1)], ..viewer(0, Some(0)) },
        Viewer { queues: vec![queue(9, &[])], ..viewer(0, Some(0)) },
        Viewer { queues: vec![queue(0, &[7])], ..viewer(0, Some(0)) },
        Viewer { queues: vec![queue(0, &[]), queue(0, &[0])], ..viewer(0, Some(0)) },
        Viewer { word: vec![letter(false, 0, 0)], queues: vec![queue(0, &[0])], ..viewer(0, Some(0)) },
    ];
    for process in wrong {
        let mut changed = proof.clone();
        changed.elements.push(Snapshot { memory: Vec::new(), processes: vec![process.clone()] });
        assert!(judge(&task, &Proof::SingleBuffer(changed)).is_err(), "{process:?}");
    }
    // Numbers just past the last valid one, duplicates, and too many processes.
    let states = (0..).find(|&state| {
        let mut changed = proof.clone();
        changed.elements.push(Snapshot { memory: Vec::new(), processes: vec![viewer(0, Some(state))] });
        matches!(judge(&task, &Proof::SingleBuffer(changed)), Err(Refusal::Unfit(_)))
    });
    assert!(states.is_some_and(|states| states < 10), "{states:?}");
    let cell = |cell, values, settled| Cell { cell, values, settled };
    let memory = |memory: &[Cell]| Snapshot { memory: memory.to_vec(), processes: Vec::new() };
    let alone = |process: Viewer| Snapshot { memory: Vec::new(), processes: vec![process] };
    for wrong in [
        memory(&[cell(1, 0, false)]),
        memory(&[cell(0, 3, false)]),
        memory(&[cell(0, 1, false), cell(0, 1, false)]),
        alone(viewer(1, None)),
        alone(Viewer { word: vec![letter(false, 0, 3)], ..viewer(0, Some(0)) }),
        alone(Viewer { queues: vec![queue(1, &[])], ..viewer(0, Some(0)) }),
        alone(Viewer { queues: vec![queue(0, &[3])], ..viewer(0, Some(0)) }),
        alone(Viewer { word: vec![letter(true, 0, 1); 2], ..viewer(0, Some(0)) }),
        alone(Viewer { word: vec![letter(false, 0, 1), letter(true, 0, 1)], ..viewer(0, Some(0)) }),
        alone(Viewer { queues: vec![queue(0, &[]), queue(0, &[])], ..viewer(0, Some(0)) }),
        Snapshot { memory: Vec::new(), processes: vec![viewer(0, Some(0)); 1025] },
    ] {
        let mut changed = proof.clone();
        changed.elements.push(wrong.clone());
        let judged = judge(&task, &Proof::SingleBuffer(changed));
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{wrong:?}: {judged:?}");
    }
    let mut many = proof.clone();
    many.elements.push(Snapshot { memory: Vec::new(), processes: vec![viewer(0, Some(0)); 1024] });
    assert!(judge(&task, &Proof::SingleBuffer(many)).is_ok(), "an element with too many processes is empty");
    // Sets that are empty, out of order, or have values that no cell has, and too few classes.
    for set in [vec![], vec![1, 0], vec![0, 0], vec![2], vec![0, 1, 2]] {
        let mut changed = proof.clone();
        changed.sets.push(set.clone());
        let judged = judge(&task, &Proof::SingleBuffer(changed));
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{set:?}: {judged:?}");
    }
    for classes in [vec![vec![0]], vec![Vec::new()], vec![vec![0; 100]], vec![vec![0], vec![0]]] {
        let changed = SingleBuffer { classes, ..proof.clone() };
        let judged = judge(&task, &Proof::SingleBuffer(changed));
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{judged:?}");
    }
    // A value that exists, but not of this cell.
    let wide = read("shared x: bool; shared y: 0..2; process P { x = true; y = 2; assert(x); }");
    let wrong = SingleBuffer {
        sets: vec![vec![2]],
        elements: vec![memory(&[cell(0, 0, false)])],
        ..SingleBuffer::default()
    };
    let judged = judge(&Task { program: &wide, ..task.clone() }, &Proof::SingleBuffer(wrong));
    assert!(matches!(judged, Err(Refusal::Unfit(_))), "{judged:?}");
    // An own letter is the newest store to its cell, so no letter on that cell is older.
    let two = read("shared x, y: bool; process P { x = true; y = true; assert(x); }");
    let word = vec![letter(false, 1, 1), letter(false, 0, 1), letter(true, 0, 1)];
    let wrong = Snapshot { memory: Vec::new(), processes: vec![Viewer { word, ..viewer(0, Some(0)) }] };
    let judged = judge(
        &Task { program: &two, ..task.clone() },
        &Proof::SingleBuffer(SingleBuffer {
            sets: vec![vec![0], vec![1]],
            elements: vec![wrong],
            ..SingleBuffer::default()
        }),
    );
    assert!(matches!(judged, Err(Refusal::Unfit(_))), "{judged:?}");
    let mut everything = proof.clone();
    everything.elements.push(Snapshot::default());
    assert!(matches!(judge(&task, &Proof::SingleBuffer(everything)), Err(Refusal::Initial(_))));
    let nothing = Proof::SingleBuffer(SingleBuffer::default());
    let other = read("shared x: bool; process P { x = true; } process Q { await x; assert(x); }");
    let judged = judge(&Task { program: &other, ..task.clone() }, &nothing);
    assert!(matches!(judged, Err(Refusal::BadMissing(_))), "{judged:?}");
    for model in [Model::Sc, Model::Tso] {
        let other = Task { model, ..task.clone() };
        assert!(matches!(judge(&other, &Proof::SingleBuffer(proof.clone())), Err(Refusal::Unsuited(_))));
    }
}

/// Every proof for a random program is accepted, under all models and whatever locked instructions wait for.
#[test]
fn proofs_for_random_programs_are_accepted() {
    let seeds = seeds(60).starting_at(1);
    let (mut accepted, mut refused) = (0, 0);
    for (seed, profile) in seeds.range().flat_map(|seed| Profile::ALL.map(|profile| (seed, profile))) {
        let program = generate(profile, seed);
        let mut whole = None;
        for (model, interlocked) in [
            (Model::Sc, Interlocked::WholeBuffer),
            (Model::Tso, Interlocked::WholeBuffer),
            (Model::Pso, Interlocked::WholeBuffer),
            (Model::Pso, Interlocked::OwnAddress),
        ] {
            let task = task(&program, model, interlocked);
            let (outcome, proof) = Sb.prove(&task.analysis(), &Limits::unlimited(1).with_work(10_000));
            assert_eq!(outcome.verdict == Verdict::Holds, proof.is_some(), "{:?}", outcome.verdict);
            if let Some(proof) = proof {
                if let Err(refusal) = judge(&task, &proof) {
                    panic!("seed {seed}, {profile:?}, {}, {interlocked:?}: {refusal}", model.name());
                }
                accepted += 1;
                whole = (model == Model::Pso).then_some(proof);
            } else if let (Verdict::Violated(_), Some(proof)) = (&outcome.verdict, &whole) {
                // Safe if locked instructions wait for the whole buffer, and unsafe if they do not.
                assert!(
                    judge(&task, proof).is_err(),
                    "seed {seed}, {profile:?}: a proof is accepted for an unsafe program"
                );
                refused += 1;
            }
        }
    }
    println!("{accepted} proofs were accepted, {refused} were rejected for unsafe programs");
    assert!(accepted > 0 || !seeds.suffice());
}

#[test]
fn files_contain_the_proof() {
    let program = read(
        "shared x, y: bool; process W { x = true; sfence; y = true; } process R { let a = y; let b = x; assert(!a || b); }",
    );
    let task = task(&program, Model::Pso, Interlocked::OwnAddress);
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        build: None,
        model: Model::Pso,
        interlocked: Interlocked::OwnAddress,
        threads: Threads::Declared,
        int_range: None,
        constants: Default::default(),
        engine: "sb".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof: Proof::SingleBuffer(prove(&task)),
    };
    let text = certificate.to_json();
    assert_eq!(Certificate::from_json(&text).expect("it was just written"), certificate);
    let changed = text.replacen("\"elements\":[", "\"elements\":[{\"memory\":[],\"processes\":[]},", 1);
    assert!(
        Certificate::from_json(&changed).expect_err("it was changed").to_string().contains("was changed")
    );
    let load = text.replacen("single-buffer", "load-buffers", 1);
    assert!(Certificate::from_json(&load).is_err(), "the proof is of another kind");
}
