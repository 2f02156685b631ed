//! Proofs for any number of processes with identities: the checker accepts those of the engine, and no others.

use palisade_base::Source;
use palisade_certificate::{Missing, Refusal, verify};
use palisade_conformance::identities::{identities, wild};
use palisade_conformance::seeds;
use palisade_cover::Dual;
use palisade_engine::proof::{Held, Identities, Named, Pending, Proof};
use palisade_engine::{Engine, Limits, Options, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use std::path::Path;

fn read(text: &str) -> Program {
    let parsed = parse(Language::Pal, &Source::new("p", text));
    parsed.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
}

fn task(program: &Program, model: Model) -> Task<'_> {
    let (threads, options) = (Threads::Declared, Options::default());
    Task { program, threads, model, interlocked: Interlocked::default(), options }
}

fn prove(task: &Task<'_>) -> Option<Identities> {
    prove_within(task, 40_000)
}

fn prove_within(task: &Task<'_>, work: u64) -> Option<Identities> {
    let (outcome, proof) = Dual.prove(&task.analysis(), &Limits::unlimited(1).with_work(work));
    assert_eq!(outcome.verdict == Verdict::Holds, proof.is_some(), "{:?}", outcome.verdict);
    proof.map(|proof| match proof {
        Proof::Identities(proof) => proof,
        _ => panic!("these programs have proofs with identities"),
    })
}

/// What a proof says besides its elements, for a variant of the program whose property is never violated.
fn facts(text: &str, model: Model) -> Option<Identities> {
    let program = read(&text.replace("forbid ", "forbid lock == 1 && lock == 0 && "));
    let facts = prove(&task(&program, model))?;
    assert_eq!(facts.elements, [], "nothing is bad");
    Some(facts)
}

/// Adds what the checker misses until it misses nothing or refuses. Returns the proof with its verdict, and `None` if
/// that takes too long.
fn close(task: &Task<'_>, proof: Identities) -> Option<(Identities, Result<(), Refusal>)> {
    close_with(task, proof, |_| ())
}

/// The same with elements that are changed before they are added.
fn close_with(
    task: &Task<'_>,
    mut proof: Identities,
    change: impl Fn(&mut Named),
) -> Option<(Identities, Result<(), Refusal>)> {
    for _ in 0..400 {
        let missing = match judge(task, &proof) {
            Err(Refusal::NotClosed { predecessor, .. }) => predecessor,
            Err(Refusal::BadMissing(missing)) => missing,
            verdict => return Some((proof, verdict)),
        };
        let Missing::Identities(mut element, sets) = missing else {
            return Some((proof, Err(Refusal::BadMissing(missing))));
        };
        let first = proof.sets.len() as u32;
        proof.sets.extend(sets);
        element.memory.iter_mut().for_each(|(_, set)| *set += first);
        let words = element.processes.iter_mut().flat_map(|process| &mut process.word);
        words.flatten().for_each(|letter| letter.values += first);
        change(&mut element);
        proof.elements.push(element);
    }
    None
}

fn judge(task: &Task<'_>, proof: &Identities) -> Result<(), Refusal> {
    let limits = Limits::unlimited(1);
    verify(task, &Proof::Identities(proof.clone()), &limits).map(|_| ())
}

/// The programs of the corpus.
fn corpus() -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let files = palisade_corpus::expectations().into_iter().map(|expected| expected.file.to_owned());
    let files = files.filter(|file| file.starts_with("identities/"));
    let program = |file: String| {
        let text = std::fs::read_to_string(folder.join(&file)).expect("the file can be read");
        (file, read(&text))
    };
    files.map(program).collect()
}

#[test]
fn proofs_of_the_corpus_are_accepted() {
    let mut accepted = 0;
    for (file, program) in corpus() {
        for model in [Model::Sc, Model::Tso] {
            let task = task(&program, model);
            let Some(proof) = prove(&task) else { continue };
            if let Err(refusal) = judge(&task, &proof) {
                panic!("{file} under {}: {refusal}", model.name());
            }
            accepted += 1;
        }
    }
    assert!(accepted > 15, "{accepted}");
}

/// The checker as a search: it is given what it misses until it accepts. It then accepts no program that is broken with a
/// few processes.
#[test]
fn oracle_nothing_broken_is_accepted_whatever_the_elements() {
    let (mut accepted, mut refused, mut open) = (0, 0, 0);
    let seeds = seeds(20);
    for seed in &seeds {
        let text = identities(seed, seed % 2 == 0);
        let program = read(&text);
        for model in [Model::Sc, Model::Tso] {
            let Some(facts) = facts(&text, model) else { continue };
            let task = task(&program, model);
            match close(&task, facts) {
                None => open += 1,
                Some((_, Err(_))) => refused += 1,
                Some((_, Ok(()))) => {
                    accepted += 1;
                    assert_safe_with_a_few(
                        &program,
                        model,
                        &format!("seed {seed}, {}\n{text}", model.name()),
                    );
                }
            }
        }
    }
    println!("{accepted} accepted, {refused} refused, {open} not closed");
    assert!(accepted > 3 && refused > 3 || !seeds.suffice(), "both happen");
}

fn assert_safe_with_a_few(program: &Program, model: Model, what: &str) {
    for number in 1..=4 {
        let few = program.with_identities(number);
        let verdict =
            Dual.check(&task(&few, model).analysis(), &Limits::unlimited(1).with_work(5_000)).verdict;
        assert!(!matches!(verdict, Verdict::Violated(_)), "{what}\nis broken with {number} processes");
    }
}

/// Programs that the engine says are safe have proofs that are accepted, whatever they do with identities.
#[test]
fn proofs_of_random_programs_are_accepted() {
    let (mut accepted, mut of_wild) = (0, 0);
    let seeds = seeds(60);
    for seed in &seeds {
        accepted += accepted_proofs(&identities(seed, seed % 2 == 0), seed);
        of_wild += accepted_proofs(&wild(seed), seed);
    }
    println!("{accepted} proofs, and {of_wild} of programs that may use identities as more than names");
    assert!(accepted > 10 && of_wild > 5 || !seeds.suffice());
}

/// Under how many models the engine has a proof. All of them are accepted.
fn accepted_proofs(text: &str, seed: u64) -> usize {
    let program = read(text);
    let proved = |model: &Model| {
        let task = task(&program, *model);
        let Some(proof) = prove_within(&task, 1_000) else { return false };
        if let Err(refusal) = judge(&task, &proof) {
            panic!("seed {seed} under {}: {refusal}\n{text}", model.name());
        }
        true
    };
    [Model::Sc, Model::Tso].iter().filter(|model| proved(model)).count()
}

/// Both have a proof, and the checker once asked for more than that:
/// - a state with three processes at labels was covered, but not one with more, which remember more identities than a
///   proof can name;
/// - a process that is not followed yet writes and chooses an identity that nothing else depends on.
#[test]
fn proofs_name_only_what_matters() {
    let counted = "shared lock: 0..1; shared f[id]: bool;
        process P(me: id)[*] {
            f[me] = true; fence;
            for a in others { x: await !f[a]; }
            cs: skip;
        }
        forbid count(P@x) >= 1 && count(P@cs) >= 2;";
    let chosen = "shared lock: 0..1; shared f[id]: bool;
        shared t: id or none;
        process P(me: id)[*] {
            assume(cas(t, none, me));
            f[me] = true;
            for o in others { if t != o { break; } await t != o; }
            f[me] = true;
            cs: skip;
            f[me] = false;
            t = none;
        }
        forbid count(P@cs) >= 2;";
    for text in [counted, chosen] {
        assert_eq!(accepted_proofs(text, 0), 2, "{text}");
    }
    // Changes that break them.
    for (text, from, to) in [
        (counted, "count(P@cs) >= 2", "count(P@cs) >= 1"),
        (counted, "fence;", ""),
        (chosen, "assume(cas(t, none, me))", "t = me"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let facts = facts(&changed, Model::Tso).expect("nothing is forbidden");
        let program = read(&changed);
        let closed = close(&task(&program, Model::Tso), facts);
        assert!(closed.is_none_or(|(_, verdict)| verdict.is_err()), "{changed}");
    }
}

/// Proofs of the programs that are safe, offered for their broken twins.
#[test]
fn proofs_are_about_one_program() {
    let programs = corpus();
    let mut refused = 0;
    let proofs: Vec<_> = programs.iter().map(|(_, program)| prove(&task(program, Model::Tso))).collect();
    for ((_, safe), proof) in programs.iter().zip(&proofs) {
        let Some(proof) = proof else { continue };
        for ((file, broken), _) in programs.iter().zip(&proofs).filter(|(_, proof)| proof.is_none()) {
            assert!(judge(&task(broken, Model::Tso), proof).is_err(), "{file}");
            refused += 1;
        }
        assert!(judge(&task(safe, Model::Pso), proof).is_err(), "PSO");
        let three = safe.with_identities(3);
        assert!(judge(&task(&three, Model::Tso), proof).is_err(), "three processes");
    }
    assert!(refused > 30, "{refused}");
}

/// Every change of a small proof that claims more or is not well formed is rejected.
#[test]
fn changed_proofs_are_rejected() {
    let mut changed = 0;
    for (file, program) in corpus() {
        let task = task(&program, Model::Tso);
        let Some(proof) = prove(&task) else { continue };
        if proof.elements.len() > 40 {
            continue;
        }
        let mut reject = |what: &str, change: &dyn Fn(&mut Identities)| {
            let mut other = proof.clone();
            change(&mut other);
            assert_ne!(other, proof, "{what}");
            assert!(judge(&task, &other).is_err(), "{file}: {what}");
            changed += 1;
        };
        for number in [0, 1, 2, 3, proof.number - 1, proof.number + 1, 40, u32::MAX] {
            reject("another number of identities", &|proof| proof.number = number);
        }
        reject("no classes", &|proof| proof.classes.clear());
        reject("one automaton less", &|proof| _ = proof.classes.pop());
        reject("one state less", &|proof| _ = proof.classes[0].pop());
        reject("one class for all", &|proof| proof.classes.iter_mut().flatten().for_each(|class| *class = 0));
        let starts = proof.classes.iter().map(|classes| classes.len()).max().expect("there are automata");
        for state in 0..starts {
            for kind in [0, proof.classes.len() - 1] {
                if state > 0 && state < proof.classes[kind].len() {
                    let of = &proof.classes[kind];
                    if of[state] != of[0] {
                        reject("a class of one process only is merged with another", &|proof| {
                            let class = proof.classes[kind][state];
                            let first = proof.classes[kind][0];
                            let of_kind = &mut proof.classes[kind];
                            of_kind.iter_mut().filter(|of| **of == class).for_each(|of| *of = first);
                        });
                    }
                }
            }
        }
        for claim in 0..proof.pending.len() {
            reject("a pending store is left out", &|proof| _ = proof.pending.remove(claim));
        }
        for claim in 0..proof.held.len() {
            for class in 0..proof.held[claim].values.len() {
                if !proof.held[claim].values[class].is_empty() {
                    reject("a value that is held is left out", &|proof| {
                        _ = proof.held[claim].values[class].pop();
                    });
                }
            }
        }
        for element in 0..proof.elements.len() {
            let named = proof.elements[element].identities;
            reject("more identities", &|proof| proof.elements[element].identities = proof.number);
            if named > 0 && !proof.elements[element].processes.is_empty() {
                reject("no identities", &|proof| proof.elements[element].identities = 0);
            }
            for process in 0..proof.elements[element].processes.len() {
                let states =
                    proof.classes[proof.elements[element].processes[process].kind as usize].len() as u32;
                reject("no such state", &|proof| proof.elements[element].processes[process].state = states);
                reject("no such automaton", &|proof| proof.elements[element].processes[process].kind = 99);
                reject("a process twice", &|proof| {
                    let again = proof.elements[element].processes[process].clone();
                    proof.elements[element].processes.push(again);
                });
                for group in 0..proof.elements[element].processes[process].word.len() {
                    reject("an empty group", &|proof| {
                        proof.elements[element].processes[process].word[group].clear();
                    });
                    reject("no such cell", &|proof| {
                        proof.elements[element].processes[process].word[group][0].cell = 9_999;
                    });
                    reject("no such set", &|proof| {
                        proof.elements[element].processes[process].word[group][0].values = 9_999;
                    });
                    reject("a letter twice", &|proof| {
                        let group = &mut proof.elements[element].processes[process].word[group];
                        group.push(group[0]);
                    });
                }
            }
            for place in 0..proof.elements[element].memory.len() {
                reject("no such set in memory", &|proof| proof.elements[element].memory[place].1 = 9_999);
                reject("no such cell in memory", &|proof| proof.elements[element].memory[place].0 = 9_999);
            }
        }
        for set in 0..proof.sets.len() {
            reject("a value that is never there", &|proof| proof.sets[set].push(77));
        }
    }
    println!("{changed} changes");
    assert!(changed > 300, "{changed}");
}

/// Claims about automata, classes, cells and values that do not exist.
#[test]
fn what_does_not_exist_is_refused() {
    let file = "../../corpus/identities/mutex.fenced.pal";
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    let program = read(&text.expect("the file can be read"));
    let task = task(&program, Model::Tso);
    let proof = prove(&task).expect("it is safe");
    assert!(!proof.held.is_empty() && !proof.pending.is_empty(), "claims of both kinds");
    let unfit = |what: &str, change: &dyn Fn(&mut Identities)| {
        let mut other = proof.clone();
        change(&mut other);
        let refusal = judge(&task, &other);
        assert!(matches!(refusal, Err(Refusal::Unfit(_))), "{what}: {refusal:?}");
    };
    unfit("a value", &|proof| proof.pending.push(Pending { kind: 0, state: 1, cell: 1, value: 9 }));
    for wrong in [9_999, 1 << 20, u32::MAX - 1, u32::MAX] {
        for claim in [0, proof.pending.len() - 1] {
            let pending = proof.pending[claim];
            for wrong in [
                Pending { kind: wrong, ..pending },
                Pending { state: wrong, ..pending },
                Pending { cell: wrong, ..pending },
                Pending { value: wrong, ..pending },
            ] {
                unfit("instead of a claim", &|proof| proof.pending[claim] = wrong);
                unfit("beside the claims", &|proof| proof.pending.push(wrong));
            }
        }
        for claim in 0..proof.held.len() {
            unfit("a cell", &|proof| proof.held[claim].cell = wrong);
            unfit("a writer", &|proof| proof.held[claim].kind = wrong);
            unfit("another claim", &|proof| {
                proof.held.push(Held { cell: wrong, kind: wrong, values: Vec::new() });
            });
            for class in 0..proof.held[claim].values.len() {
                unfit("what it holds", &|proof| proof.held[claim].values[class] = vec![wrong]);
                unfit("what else it holds", &|proof| proof.held[claim].values[class].push(wrong));
            }
        }
        for kind in 0..proof.classes.len() {
            unfit("a class", &|proof| proof.classes[kind][0] = wrong);
        }
        for element in 0..proof.elements.len() {
            unfit("identities", &|proof| proof.elements[element].identities = wrong);
            for process in 0..proof.elements[element].processes.len() {
                unfit("an automaton", &|proof| proof.elements[element].processes[process].kind = wrong);
                unfit("a class", &|proof| proof.elements[element].processes[process].state = wrong);
            }
        }
        for set in 0..proof.sets.len() {
            unfit("a value of a set", &|proof| proof.sets[set].push(wrong.into()));
        }
    }
}

/// Almost every element is needed.
#[test]
fn elements_that_are_left_out_are_missed() {
    let (mut missed, mut superfluous) = (0, 0);
    for (file, program) in corpus() {
        let task = task(&program, Model::Tso);
        let Some(proof) = prove(&task) else { continue };
        for left_out in (0..proof.elements.len()).step_by(1 + proof.elements.len() / 20) {
            let mut less = proof.clone();
            less.elements.remove(left_out);
            match judge(&task, &less) {
                Err(Refusal::NotClosed { .. } | Refusal::BadMissing(_)) => missed += 1,
                Err(other) => panic!("{file}: {other}"),
                Ok(()) => superfluous += 1,
            }
        }
    }
    println!("{missed} missed, {superfluous} superfluous");
    assert!(missed > 50 && 10 * superfluous < missed);
}

/// Programs that are broken with more processes than a proof names identities, or with the first process that it does not
/// name. Nothing makes the checker accept them.
#[test]
fn what_more_processes_can_do() {
    let turn = "shared lock: 0..1; shared turn: id or none; process P(me: id)[*] { turn = me; cs: skip; }";
    for many in 2..=9 {
        let facts =
            facts(&format!("{turn} forbid count(P@cs) >= 2;"), Model::Tso).expect("nothing is forbidden");
        let program = read(&format!("{turn} forbid count(P@cs) >= {many};"));
        let closed = close(&task(&program, Model::Tso), facts);
        assert!(closed.is_some_and(|(_, verdict)| verdict.is_err()), "{many}");
    }
    let text = "shared lock: 0..1; shared turn: id or none = *;
                process P(me: id)[*] { if turn != none { if turn != me { cs: skip; } } }
                forbid count(P@cs) >= 2;";
    let facts = facts(text, Model::Tso).expect("nothing is forbidden");
    let program = read(text);
    let closed = close(&task(&program, Model::Tso), facts);
    assert!(closed.is_some_and(|(_, verdict)| matches!(verdict, Err(Refusal::Initial(_)))));
}

/// Properties that compare more cells than there are identities in the proof.
#[test]
fn cells_with_many_identities() {
    let text = "shared a, b, c, d: id or none = *; process P(me: id)[*] { skip; }
                forbid a != none && b != none && c != none && d != none && a != b && a != c && a != d && b != c
                    && b != d && c != d;";
    let program = read(text);
    let task = task(&program, Model::Tso);
    for number in 3..=9 {
        let classes = vec![vec![0]; number as usize];
        let refusal = judge(&task, &Identities { number, classes, ..Identities::default() });
        assert!(refusal.is_err(), "{number}");
    }
}

/// A group with as many letters as a machine word has bits: none of the ways to split it is forgotten.
#[test]
fn groups_of_many_letters() {
    let text = "shared fill[62]: bool;
        shared lock: 0..1;
        shared x, a0, a1, done: bool;
        process P(me: id)[*] { skip; }
        process A {
            x = true;
            assume(x);
            for i in 0..61 { let r: bool = fill[i]; }
            assume(!a0);
            assume(a1);
            bad: skip;
        }
        process Q { a0 = true; fence; assume(!x); done = true; }
        process R { assume(done); assume(x); a1 = true; }
        forbid A@bad;";
    let facts = facts(text, Model::Tso).expect("nothing is forbidden");
    let program = read(text);
    let merged = |element: &mut Named| {
        for process in &mut element.processes {
            let letters: Vec<_> = process.word.iter().flatten().cloned().collect();
            if letters.len() == 64 && letters.iter().all(|letter| !letter.own) {
                process.word = vec![letters];
            }
        }
    };
    let closed = close_with(&task(&program, Model::Tso), facts, merged);
    assert!(closed.is_some_and(|(_, verdict)| verdict.is_err()), "there is a run to the bad state");
}

/// A counter without a domain takes as many values as there are processes.
#[test]
fn counters_of_all_processes() {
    for text in [
        "shared c: int; process P(me: id)[*] { let r = fetch_add(c, 1); assert(r != 7); }",
        "shared c: u16; process P(me: id)[*] { let r = fetch_add(c, 1); assert(r != 7); }",
        "shared c: int; process A { await c == 9; bad: skip; } process P(me: id)[*] { fetch_add(c, 1); } forbid A@bad;",
    ] {
        let program = read(text);
        let task = task(&program, Model::Tso);
        for number in 3..=9 {
            for states in 2..=3 {
                let classes =
                    vec![(0..states).collect(); number as usize + usize::from(text.contains("A {"))];
                let refusal = judge(&task, &Identities { number, classes, ..Identities::default() });
                assert!(matches!(refusal, Err(Refusal::Unsuited(_))), "{text}: {refusal:?}");
            }
        }
    }
}

/// Programs that use identities as more than names have no proofs.
#[test]
fn identities_are_only_names() {
    for body in [
        "assert(me < 9);",
        "assert(turn != 9);",
        "let r: 0..9 = me;",
        "let r: id or none = any(0..2); turn = r;",
        "turn = 2;",
        "n[me] = 1;",
        "flag[1] = 1;",
        "fetch_add(turn, 1);",
        "if flag[me + 1] == 1 { skip; }",
        "assert(&turn != 5);",
        "atomic { while turn != me { skip; } }",
        "let o: id or none = 0; while o < 2 { o = o + 1; }",
    ] {
        let start =
            "shared flag[id]: 0..1; shared turn: id or none; shared n[4]: 0..1; process P(me: id)[*] {";
        let program = read(&format!("{start} {body} }}"));
        let task = task(&program, Model::Tso);
        for number in 3..=8 {
            let refusal = judge(&task, &Identities { number, ..Identities::default() });
            assert!(matches!(refusal, Err(Refusal::Unsuited(_))), "{body}: {refusal:?}");
        }
    }
}
