//! Proofs for SC by numbers of threads and by sets of stacks. They are accepted wherever the engine says
//! `safe`, and never for an unsafe program.

use palisade_base::Source;
use palisade_certificate::{Certificate, Refusal, verify};
use palisade_conformance::generate::{Recursion, generate_recursive, generate_spawning};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds};
use palisade_engine::proof::{Crowds, Number, StackSet, Stacks};
use palisade_engine::{Bound, Engine, Limits, Options, Proof, Reduction, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_program::print;
use palisade_program::written::Program;
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};
use std::path::Path;

fn read(text: &str) -> Program {
    try_read(text).expect("the program is well formed")
}

fn try_read(text: &str) -> Option<Program> {
    parse(Language::Pal, &Source::new("p", text)).ok().map(|parsed| parsed.program)
}

fn task(program: &Program, reduction: Reduction) -> Task<'_> {
    let options = Options { rounds: Bound::Auto, reduction, ..Options::default() };
    let (model, interlocked) = (Model::Sc, Interlocked::default());
    Task { program, threads: Threads::Declared, model, interlocked, options }
}

fn prove(task: &Task<'_>) -> (Verdict, Option<Proof>) {
    let (outcome, proof) = Pushdown.prove(&task.analysis(), &Limits::unlimited(1).with_work(20_000));
    (outcome.verdict, proof)
}

fn judge(task: &Task<'_>, proof: &Proof) -> Result<(), Refusal> {
    let limits = Limits::unlimited(1).with_memory(1 << 28);
    verify(task, proof, &limits).map(|_| ())
}

/// The proof, written to a file and read back.
fn from_file(proof: Proof) -> Proof {
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "0".into(),
        build: None,
        model: Model::Sc,
        interlocked: Interlocked::default(),
        threads: Threads::Declared,
        int_range: None,
        constants: Default::default(),
        engine: "pushdown".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof,
    };
    let again = Certificate::from_json(&certificate.to_json()).expect("it is a certificate");
    assert_eq!(again, certificate);
    again.proof
}

#[test]
fn proofs_of_the_corpus_are_accepted() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut accepted = 0;
    for folder in ["recursive", "spawning"] {
        for entry in std::fs::read_dir(corpus.join(folder)).expect("the corpus is complete") {
            let path = entry.expect("a file").path();
            let program = read(&std::fs::read_to_string(&path).expect("a program"));
            let task = task(&program, Reduction::Full);
            let (verdict, proof) = prove(&task);
            assert_eq!(verdict == Verdict::Holds, proof.is_some(), "{}", path.display());
            if let Some(proof) = proof {
                assert_eq!(judge(&task, &from_file(proof)), Ok(()), "{}", path.display());
                accepted += 1;
            }
        }
    }
    assert_eq!(accepted, 8);
}

/// One program of each kind for a seed.
fn programs(seed: u64) -> [(&'static str, Program); 5] {
    [
        ("bounded recursion", generate_recursive(Recursion::Bounded, 700_000 + seed)),
        ("recursion", generate_recursive(Recursion::Free, 700_000 + seed)),
        ("spawning", generate_spawning(700_000 + seed)),
        ("acyclic", generate(Profile::Acyclic, 700_000 + seed)),
        ("full", generate(Profile::Full, 700_000 + seed)),
    ]
}

#[test]
fn proofs_of_random_programs_are_accepted() {
    let (mut crowds, mut stacks) = (0, 0);
    let seeds = seeds(60);
    for seed in &seeds {
        for (kind, program) in programs(seed) {
            let options = [
                (Reduction::Full, Bound::Auto),
                (Reduction::None, Bound::Auto),
                (Reduction::Full, Bound::Fixed(2)),
            ];
            for (reduction, rounds) in options {
                let mut task = task(&program, reduction);
                task.options.rounds = rounds;
                let (verdict, proof) = prove(&task);
                let text =
                    || format!("{kind}, seed {seed}, {reduction:?}, {rounds:?}\n{}", print::print(&program));
                assert_eq!(verdict == Verdict::Holds, proof.is_some(), "{}", text());
                let Some(proof) = proof else { continue };
                let judged = judge(&task, &proof);
                assert_eq!(judged, Ok(()), "{}", text());
                match proof {
                    Proof::Crowds(_) => crowds += 1,
                    _ => stacks += 1,
                }
            }
        }
    }
    eprintln!("{crowds} by numbers of threads, {stacks} by sets of stacks");
    assert!(crowds > 0 && stacks > 0 || !seeds.suffice());
}

/// Removes something from a proof, or changes a number in it.
fn spoil(proof: &mut Proof, random: &mut Random) {
    let pick = |length: usize, random: &mut Random| random.below(length.max(1));
    let change = |values: &mut Vec<i64>, random: &mut Random| {
        let at = random.below(values.len().max(1));
        if let Some(value) = values.get_mut(at) {
            *value = (*value + 1) % 3;
        }
    };
    match proof {
        Proof::Crowds(proof) => match random.below(5) {
            0 => drop(proof.elements.swap_remove(pick(proof.elements.len(), random))),
            1 => {
                let at = pick(proof.memories.len(), random);
                change(&mut proof.memories[at], random);
            }
            2 => {
                let at = pick(proof.elements.len(), random);
                let started = &mut proof.elements[at].started;
                if !started.is_empty() {
                    let at = random.below(started.len());
                    let number: &mut Number = &mut started[at];
                    *number = Number {
                        least: 0,
                        most: number.most.map(|most| most.saturating_sub(1)).or(Some(1)),
                        ..*number
                    };
                }
            }
            3 => {
                let at = pick(proof.threads.len(), random);
                change(&mut proof.threads[at].frames[0].registers, random);
            }
            _ => {
                let at = pick(proof.stops.len(), random);
                proof.stops[at].pop();
            }
        },
        Proof::Stacks(proof) => match random.below(5) {
            0 => drop(proof.pieces.swap_remove(pick(proof.pieces.len(), random))),
            1 => {
                let at = pick(proof.memories.len(), random);
                change(&mut proof.memories[at], random);
            }
            2 => {
                let at = pick(proof.sets.len(), random);
                let states = &mut proof.sets[at].states;
                let state = pick(states.len(), random);
                let edge = pick(states[state].len(), random);
                if edge < states[state].len() {
                    states[state].remove(edge);
                }
            }
            3 => {
                let at = pick(proof.frames.len(), random);
                change(&mut proof.frames[at].frame.registers, random);
            }
            _ => {
                let at = pick(proof.stops.len(), random);
                proof.stops[at].pop();
            }
        },
        _ => panic!("the engine gives no other proofs"),
    }
}

/// All variants of the program with one digit changed.
fn variants(program: &Program) -> impl Iterator<Item = Program> {
    let text = print::print(program);
    let digits: Vec<usize> = (0..text.len()).filter(|&at| text.as_bytes()[at].is_ascii_digit()).collect();
    digits.into_iter().filter_map(move |at| {
        let digit = text.as_bytes()[at] - b'0';
        try_read(&format!("{}{}{}", &text[..at], (digit + 1) % 3, &text[at + 1..]))
    })
}

/// A spoiled proof may still prove the same program. But no proof is accepted for an unsafe program, not even
/// that of a similar safe program, spoiled or not.
#[test]
fn spoiled_proofs_and_proofs_of_other_programs() {
    let (mut spoiled, mut refused, mut other) = (0, 0, 0);
    let seeds = seeds(25);
    for seed in &seeds {
        for (kind, program) in programs(1000 + seed) {
            fn task_of(program: &Program) -> Task<'_> {
                task(program, Reduction::Full)
            }
            let (_, Some(proof)) = prove(&task_of(&program)) else { continue };
            let mut random = Random::new(seed);
            let mut proofs = vec![proof.clone()];
            for _ in 0..6 {
                let mut again = proof.clone();
                spoil(&mut again, &mut random);
                let judged = judge(&task_of(&program), &again);
                spoiled += 1;
                refused += u32::from(judged.is_err());
                proofs.push(again);
            }
            for variant in variants(&program).take(12) {
                if matches!(prove(&task_of(&variant)).0, Verdict::Violated(_)) {
                    other += 1;
                    for proof in &proofs {
                        let judged = judge(&task_of(&variant), proof);
                        assert!(judged.is_err(), "{kind}, seed {seed}\n{}", print::print(&variant));
                    }
                }
            }
        }
    }
    eprintln!("{refused} of {spoiled} spoiled proofs were rejected; {other} unsafe programs");
    assert!(refused * 2 > spoiled && other > 10 || !seeds.suffice());
}

/// Checks that the proof of the first program is rejected for the second, for this reason.
pub(crate) fn check_refusal(safe: &str, other: &str, expected: &str) {
    let (safe, other) = (read(safe), read(other));
    let (verdict, proof) = prove(&task(&safe, Reduction::Full));
    assert_eq!(verdict, Verdict::Holds);
    let proof = proof.expect("it is proved");
    assert_eq!(judge(&task(&safe, Reduction::Full), &proof), Ok(()));
    let refusal = judge(&task(&other, Reduction::Full), &proof).expect_err("it is not safe").to_string();
    assert!(refusal.contains(expected), "{refusal}");
}

#[test]
fn refusals_say_what_is_wrong() {
    let workers = |least: u32| {
        format!(
            "shared lock: bool; process Main {{ loop {{ spawn W; }} }}
             process W on spawn {{ while xchg(lock, true) {{}} cs: skip; lock = false; }}
             forbid count(W@cs) >= {least};"
        )
    };
    check_refusal(&workers(2), &workers(1), "leads to a bad state");
    let same = |init: u32, stored: u32| {
        format!(
            "shared x: 0..2 = {init}; process Main {{ loop {{ spawn W; }} }}
             process W on spawn {{ let r = x; assert(r == {init}); x = {stored}; }}"
        )
    };
    check_refusal(&same(0, 0), &same(1, 1), "an initial state is not in any element");
    check_refusal(&same(0, 0), &same(0, 1), "leads out of the set");
    let climb = |bad: &str, init: &str| {
        format!(
            "shared go: bool = {init}; private d: 0..2; private u: 0..2;
             proc climb() {{ choose {{ d = (d + 1) % 3; climb(); u = (u + 1) % 3; }} or {{ await go; }} }}
             process P {{ climb(); assert({bad}); }} process Q {{ go = true; }}"
        )
    };
    check_refusal(&climb("u == d", "false"), &climb("u == 0", "false"), "leads to a bad state");
    check_refusal(
        &climb("u == d", "true"),
        &climb("u == d", "false"),
        "an initial state is not in any element",
    );
    let store = |value: u32| {
        format!(
            "shared x: 0..3; proc down() {{ choose {{ down(); }} or {{ x = {value}; }} }}
             process P {{ down(); }} process Q {{ let r = x; assert(r < 3); }}"
        )
    };
    check_refusal(&store(1), &store(2), "leads out of the set");
    check_refusal(&store(1), &store(3), "leads out of the set");
}

#[test]
fn other_models_are_not_proved() {
    let program = read("shared x: 0..1; process Main { loop { spawn W; } } process W on spawn { x = 1; }");
    let (_, proof) = prove(&task(&program, Reduction::Full));
    let proof = proof.expect("it is proved");
    for model in [Model::Tso, Model::Pso] {
        let task = Task { model, ..task(&program, Reduction::Full) };
        assert!(matches!(judge(&task, &proof), Err(Refusal::Unsuited(_))));
    }
}

/// A thread that takes local steps forever is not skipped. Otherwise the others would never be checked
/// together with it.
#[test]
fn loops_have_stops() {
    let program = read(
        "shared x: 0..1; process P { let r: 0..1 = 0; loop { r = 1 - r; } } process Q { spawn R; } process R on spawn { x = 1; }",
    );
    let task = task(&program, Reduction::Full);
    let (_, proof) = prove(&task);
    let Some(Proof::Crowds(mut proof)) = proof else { panic!("expected a proof by numbers of threads") };
    proof.stops.iter_mut().for_each(Vec::clear);
    let judged = judge(&task, &Proof::Crowds(proof));
    assert!(matches!(judged, Err(Refusal::NotInductive(_))), "{judged:?}");
}

/// Programs whose proofs by numbers of threads need every part.
const CROWDS: &[&str] = &[
    "shared lock: bool; process Main { loop { spawn W; } }
     process W on spawn { while xchg(lock, true) {} cs: skip; lock = false; } forbid count(W@cs) >= 2;",
    "shared x: 0..2; process Main { let r: 0..1 = 0; choose { r = 1; } or { r = 0; } loop { x = r; spawn W(r); } }
     process W(i: 0..1) on spawn { let s: 0..1 = 0; choose { s = i; } or { s = 1; } x = s; } process Q { let t = x; assert(t < 2); }",
    "shared x: 0..2; process Main { loop { atomic { x = 1; spawn W; x = 0; } } }
     process W on spawn { let r = x; assert(r != 1); }",
    "shared x: 0..1; process Main { spawn W; spawn W; } process W on spawn { x = 1; a: skip; } forbid count(W@a) >= 3;",
];

/// No element can be left out, and no bound on a number of threads can be tightened.
#[test]
fn numbers_of_threads_cannot_be_changed() {
    for text in CROWDS {
        let program = read(text);
        let task = task(&program, Reduction::Full);
        let (_, Some(Proof::Crowds(proof))) = prove(&task) else {
            panic!("expected a proof by numbers of threads: {text}")
        };
        assert_eq!(judge(&task, &Proof::Crowds(proof.clone())), Ok(()), "{text}");
        let mut reversed = proof.clone();
        reversed.elements.iter_mut().for_each(|element| element.started.reverse());
        assert_eq!(judge(&task, &Proof::Crowds(reversed)), Ok(()), "{text}");
        let check = |change: &dyn Fn(&mut Crowds)| {
            let mut changed = proof.clone();
            change(&mut changed);
            assert!(judge(&task, &Proof::Crowds(changed.clone())).is_err(), "{text}\n{changed:?}");
        };
        for (at, element) in proof.elements.iter().enumerate() {
            check(&|proof| drop(proof.elements.remove(at)));
            for (place, number) in element.started.iter().enumerate() {
                let most = number.most.map_or(3, |most| most.saturating_sub(1));
                check(&|proof| proof.elements[at].started[place].most = Some(most));
                if number.most.is_none() {
                    check(&|proof| proof.elements[at].started[place].least = 3);
                }
            }
        }
    }
}

#[test]
fn nonsense_is_rejected() {
    let program = read(CROWDS[1]);
    let task_of = task(&program, Reduction::Full);
    let (_, Some(Proof::Crowds(proof))) = prove(&task_of) else {
        panic!("expected a proof by numbers of threads")
    };
    let at = proof.elements.iter().position(|element| !element.started.is_empty()).expect("threads start");
    let unfit = |change: &dyn Fn(&mut Crowds)| {
        let mut changed = proof.clone();
        change(&mut changed);
        let judged = judge(&task_of, &Proof::Crowds(changed));
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{judged:?}");
    };
    unfit(&|proof| proof.stops.clear());
    unfit(&|proof| proof.stops[0].push(1000));
    unfit(&|proof| proof.memories[0].push(0));
    unfit(&|proof| proof.threads[0].role = 99);
    unfit(&|proof| proof.threads[0].role ^= 1);
    unfit(&|proof| proof.threads[0].frames.clear());
    unfit(&|proof| proof.threads[0].frames[0].code = 99);
    unfit(&|proof| proof.threads[0].frames[0].location = 1000);
    unfit(&|proof| proof.threads[0].frames[0].registers.push(0));
    unfit(&|proof| proof.elements[at].memory = 1000);
    unfit(&|proof| proof.elements[at].named[0] = 100_000);
    unfit(&|proof| _ = proof.elements[at].named.pop());
    unfit(&|proof| proof.elements[at].named.reverse());
    unfit(&|proof| proof.elements[at].started[0].thread = 100_000);
    unfit(&|proof| {
        let again = proof.elements[at].started[0];
        proof.elements[at].started.push(again);
    });
    unfit(&|proof| {
        let number = &mut proof.elements[at].started[0];
        (number.least, number.most) = (2, Some(1));
    });
    unfit(&|proof| {
        let number = &mut proof.elements[at].started[0];
        (number.least, number.most) = (u32::MAX, None);
    });
    let program = read(
        "shared x: 0..1; proc f() { choose { f(); } or { x = 1; } } process P { f(); assert(x == 1); } process Q { f(); let r = x; }",
    );
    let task_of = task(&program, Reduction::Full);
    let (_, Some(Proof::Stacks(proof))) = prove(&task_of) else {
        panic!("expected a proof by sets of stacks")
    };
    let unfit = |change: &dyn Fn(&mut Stacks)| {
        let mut changed = proof.clone();
        change(&mut changed);
        let judged = judge(&task_of, &Proof::Stacks(changed));
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{judged:?}");
    };
    unfit(&|proof| proof.memories[0].push(0));
    unfit(&|proof| proof.frames[0].frame.code = 99);
    unfit(&|proof| proof.sets[0].states.clear());
    unfit(&|proof| proof.sets[0].states[0].push((100_000, None)));
    unfit(&|proof| {
        let states = proof.sets[0].states.len() as u32;
        proof.sets[0].states[0].push((0, Some(states)));
    });
    unfit(&|proof| proof.pieces[0].memory = 1000);
    unfit(&|proof| _ = proof.pieces[0].threads.pop());
    unfit(&|proof| proof.pieces[0].threads[0].0 = 99);
    unfit(&|proof| proof.pieces[0].threads[0].1 = 1000);
    unfit(&|proof| proof.pieces[0].threads.swap(0, 1));
    unfit(&|proof| {
        let other = proof.pieces[0].threads[1].1;
        proof.pieces[0].threads[0].1 = other;
    });
    unfit(&|proof| proof.pieces[0].threads.push((99, 0)));
}

/// Every way in which the threads can start has to be in the set.
#[test]
fn each_choice_at_the_start_is_needed() {
    let program = read(CROWDS[1]);
    let task = task(&program, Reduction::Full);
    let (_, Some(Proof::Crowds(proof))) = prove(&task) else {
        panic!("expected a proof by numbers of threads")
    };
    for value in 0..2 {
        let mut less = proof.clone();
        let threads = &proof.threads;
        less.elements.retain(|element| {
            let main = &threads[element.named[0] as usize];
            main.frames[0].registers.iter().all(|&held| held == value)
        });
        assert!(less.elements.len() < proof.elements.len());
        assert_eq!(judge(&task, &Proof::Crowds(less)), Err(Refusal::InitialMissing), "{value}");
    }
}

/// All combinations of views that the threads of a piece offer are judged.
#[test]
fn states_of_sets_of_stacks_are_judged_one_by_one() {
    let text = |bad: &str| {
        format!(
            "shared x: 0..1; proc f() {{ choose {{ f(); }} or {{ x = 1; }} }}
             process P {{ f(); a: x = 0; c: x = 1; }} process Q {{ f(); b: x = 1; d: x = 0; }} forbid {bad};"
        )
    };
    let all = "x == 2 && (P@a || P@c || Q@b || Q@d)";
    for bad in
        ["P@a && Q@b", "P@a && Q@d", "P@c && Q@b", "P@c && Q@d", "P@c && !Q@b && !Q@d", "!P@a && !P@c && Q@d"]
    {
        check_refusal(&text(all), &text(&format!("{bad} && x < 2 || {all}")), "leads to a bad state");
    }
}

/// The set of a thread cannot be replaced by an empty one, whatever the memory and whichever thread left it.
#[test]
fn the_sets_of_the_other_threads_matter() {
    let texts = [
        "shared x: 0..2; proc f() { choose { f(); } or { x = 1; } } process P { f(); x = 0; } process Q { f(); x = 1; let r = x; assert(r < 2); }",
        "shared x: 0..2; proc f() { choose { f(); } or { skip; } } process P { f(); x = 1; f(); } process Q { f(); let r = x; assert(r < 2); f(); }",
    ];
    for text in texts {
        let program = read(text);
        let task = task(&program, Reduction::Full);
        let (_, Some(Proof::Stacks(proof))) = prove(&task) else {
            panic!("expected a proof by sets of stacks")
        };
        for memory in 0..proof.memories.len() as u32 {
            for thread in 0..2 {
                let mut other = proof.clone();
                let empty = other.sets.len() as u32;
                other.sets.push(StackSet { states: vec![Vec::new()] });
                let pieces = other.pieces.iter_mut().filter(|piece| piece.memory == memory);
                pieces.for_each(|piece| piece.threads[thread].1 = empty);
                let judged = judge(&task, &Proof::Stacks(other));
                assert!(judged.is_err(), "thread {thread} with memory {memory}: {text}");
            }
        }
        for model in [Model::Tso, Model::Pso] {
            let judged = judge(&Task { model, ..task.clone() }, &Proof::Stacks(proof.clone()));
            assert!(matches!(judged, Err(Refusal::Unsuited(_))), "{judged:?}");
        }
    }
}

/// Properties see the registers of a process body while procedures run above it.
#[test]
fn callers_are_seen() {
    let text = |value: u32| {
        format!(
            "shared x: 0..1; proc f() -> 0..1 {{ choose {{ let s = f(); return 0; }} or {{ x = 1; return 0; }} }}
             process P {{ let r: 0..2 = 1; r = f(); }} forbid P.r == {value} && x == 1;"
        )
    };
    check_refusal(&text(2), &text(1), "leads to a bad state");
}
