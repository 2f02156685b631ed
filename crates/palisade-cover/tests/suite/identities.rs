//! Programs with identities and any number of processes, against brute force on small numbers of them.
//!
//! ```text
//! PALISADE_SEEDS=5000 cargo test --release -p palisade-cover --test suite identities -- --nocapture
//! ```

use palisade_base::Source;
use palisade_conformance::brute::Scope;
use palisade_conformance::identities::{identities, wild};
use palisade_conformance::parameterized::check_parameterized_with;
use palisade_conformance::seeds;
use palisade_conformance::suite::{SuiteConfig, Unknown};
use palisade_cover::Dual;
use palisade_engine::{Engine, Limits, Question, Safety, Task, Verdict};
use palisade_memory::Model;
use palisade_program::print::print;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use std::time::Duration;

fn program(seed: u64, cyclic: bool) -> Program {
    let text = identities(seed, cyclic);
    match parse(Language::Pal, &Source::new("random.pal", text.clone())) {
        Ok(parsed) => parsed.program,
        Err(diagnostics) => panic!("seed {seed}: {diagnostics:?}\n{text}"),
    }
}

fn check(states: usize, generate: fn(u64) -> Program) {
    let limits = Scope { states, buffer: Some(8) };
    let (programs, models) = (100, vec![Model::Sc, Model::Tso]);
    let unknown = Unknown::Always;
    let timeout = Duration::from_secs(2);
    let config = SuiteConfig { programs, models, unknown, limits, timeout, ..SuiteConfig::default() };
    check_parameterized_with(&Dual, config, generate);
}

#[test]
fn without_loops() {
    check(5_000, |seed| program(seed, false));
}

#[test]
fn with_loops() {
    check(5_000, |seed| program(seed, true));
}

/// The programs of the corpus, with whether they are safe under SC and TSO.
fn corpus() -> Vec<(String, String, [bool; 2])> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
    let table = std::fs::read_to_string(format!("{folder}/expected.tsv")).expect("the table can be read");
    let rows = table.lines().filter(|line| line.starts_with("identities/"));
    let program = |row: &str| {
        let columns: Vec<&str> = row.split('\t').collect();
        let text = std::fs::read_to_string(format!("{folder}/{}", columns[0])).expect("the file can be read");
        (columns[0].to_owned(), text, [columns[1] == "safe", columns[2] == "safe"])
    };
    rows.map(program).collect()
}

fn ask(program: &Program, model: Model, limits: &Limits) -> Verdict {
    Dual.check(&Task::new(program, model).analysis(), limits).verdict
}

#[test]
fn the_corpus() {
    for (file, text, safe) in corpus() {
        let program = parse(Language::Pal, &Source::new(&*file, text)).expect("it is a program").program;
        for (model, safe) in [Model::Sc, Model::Tso].into_iter().zip(safe) {
            let found = ask(&program, model, &Limits::unlimited(1));
            let word = Safety::word(&found);
            assert_eq!(word, if safe { "safe" } else { "unsafe" }, "{file}, {}", model.name());
        }
    }
}

/// Programs of the corpus with one line left out. If the answer is `safe`, three and fewer processes are safe.
#[test]
fn the_corpus_with_lines_left_out() {
    let (mut safe, mut broken, mut unknown) = (0, 0, 0);
    for (file, text, _) in corpus() {
        let lines: Vec<&str> = text.lines().collect();
        for left_out in 0..lines.len() {
            let kept = lines.iter().enumerate().filter(|(index, _)| *index != left_out);
            let text: String = kept.flat_map(|(_, line)| [line, "\n"]).collect();
            let Ok(parsed) = parse(Language::Pal, &Source::new(&*file, text)) else { continue };
            let program = parsed.program;
            if program.identities.is_none() {
                continue;
            }
            let limits = Limits::unlimited(1).with_work(20_000);
            match ask(&program, Model::Tso, &limits) {
                Verdict::Violated(_) => broken += 1,
                Verdict::Unknown(_) => unknown += 1,
                Verdict::Holds => {
                    safe += 1;
                    for number in 1..=3 {
                        let found = ask(&program.with_identities(number), Model::Tso, &limits);
                        let what = format!("{file} without line {}, {number} processes", left_out + 1);
                        assert!(!matches!(found, Verdict::Violated(_)), "{what}: not safe");
                    }
                }
            }
        }
    }
    println!("{safe} safe, {broken} unsafe, {unknown} unknown");
    assert!(safe > 20 && broken > 20, "both happen");
}

/// Programs are printed as they are written, for any and for a fixed number of processes.
#[test]
fn programs_are_printed_as_they_are_written() {
    let same = |program: &Program| {
        let text = print(program);
        let again = parse(Language::Pal, &Source::new("printed.pal", text.clone()));
        assert_eq!(&again.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program, program, "{text}");
    };
    for seed in &seeds(100) {
        let program = program(seed, true);
        same(&program);
        same(&program.with_identities(3));
    }
}

/// What is safe for every number of processes is safe with five and six, as far as these can be decided.
fn check_with_more(text: &str, seed: u64, counts: &mut [u32; 3]) {
    let source = Source::new("random.pal", text.to_owned());
    let program = parse(Language::Pal, &source).unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program;
    for model in [Model::Sc, Model::Tso] {
        match ask(
            &program,
            model,
            &Limits::unlimited(1).with_work(20_000).with_timeout(Duration::from_secs(5)),
        ) {
            Verdict::Violated(_) => counts[1] += 1,
            Verdict::Unknown(_) => counts[2] += 1,
            Verdict::Holds => {
                counts[0] += 1;
                for number in 1..=6 {
                    let limits = Limits::unlimited(1).with_work(4_000).with_timeout(Duration::from_secs(3));
                    let found = ask(&program.with_identities(number), model, &limits);
                    let what = format!("seed {seed}, {}, {number} processes", model.name());
                    assert!(!matches!(found, Verdict::Violated(_)), "{what}:\n{text}");
                }
            }
        }
    }
}

#[test]
fn oracle_safe_programs_are_safe_with_more_processes() {
    let (mut tame, mut of_wild) = ([0; 3], [0; 3]);
    let seeds = seeds(40);
    for seed in &seeds {
        check_with_more(&identities(700_000 + seed, seed % 2 == 0), seed, &mut tame);
        (0..3).for_each(|more| check_with_more(&wild(3 * seed + more), 3 * seed + more, &mut of_wild));
    }
    println!("safe, unsafe, unknown: {tame:?}, with more than names: {of_wild:?}");
    let some = |counts: [u32; 3]| counts[0] > 5 && counts[1] > 5;
    assert!(some(tame) && some(of_wild) || !seeds.suffice());
}

/// Programs that break only with many processes, or that are about more than identities. None of them is safe for any
/// number of processes, and `safe` is never claimed.
#[test]
fn programs_that_can_tell_how_many_processes_there_are() {
    let turn = "shared turn: id or none;\nprocess P(me: id)[*] {";
    for text in [
        "shared turn: id or none = *;
         process P(me: id)[*] { if turn != none { if turn != me { cs: skip; } } }
         forbid count(P@cs) >= 2;"
            .to_owned(),
        format!("{turn} turn = me; cs: skip; }} forbid count(P@cs) >= 7;"),
        format!("{turn} a: turn = me; b: skip; }} forbid count(P@a) >= 4 && count(P@b) >= 3;"),
        format!("{turn} turn = me; assert(turn != 9); }}"),
        format!("{turn} turn = me; assert(me < 9); }}"),
        format!("{turn} let r: 0..8 = me; turn = me; }}"),
        "shared flag[id]: bool; shared z: bool;
         process P(me: id)[*] { flag[me] = true; z = true; assert(&z != 5); }"
            .to_owned(),
        "shared turn: id or none; shared l: 0..3 wrap; shared n: 0..7 wrap;
         process P(me: id)[*] { turn = me; let r: 0..7 = fetch_add(n, 1); if r == 2 { assert(l != 2); } }
         process Q[*] { fetch_add(l, 1); }"
            .to_owned(),
        "shared c: int; process P(me: id)[*] { let r = fetch_add(c, 1); assert(r != 7); }".to_owned(),
        "shared c: int; process P(me: id)[*] { let r = fetch_add(c, 1); assert(r != 9); }".to_owned(),
        "shared c: u16; process P(me: id)[*] { let r = fetch_add(c, 1); assert(r != 18); }".to_owned(),
        "shared c: int; process A { await c == 9; bad: skip; }
         process P(me: id)[*] { fetch_add(c, 1); }
         forbid A@bad;"
            .to_owned(),
        different("= *", "skip;"),
        different(
            "",
            "choose { cas(v0, none, me); } or { cas(v1, none, me); } or { cas(v2, none, me); } or { cas(v3, none, me); }
                 or { cas(v4, none, me); } or { cas(v5, none, me); } or { cas(v6, none, me); } or { cas(v7, none, me); }",
        ),
        "shared flag[id]: bool;
         process P(me: id)[*] {
             flag[me] = true; fence;
             { let o: id or none = 0; while o < 2 { o = o + 1; if o != me { await !flag[o]; } } }
             cs: skip;
         }
         forbid count(P@cs) >= 2;"
            .to_owned(),
    ] {
        let source = Source::new("p", text.clone());
        let program = parse(Language::Pal, &source).expect("well formed").program;
        let task = Task::new(&program, Model::Tso);
        let limits = Limits::unlimited(1).with_work(100_000);
        let outcome = Dual.check(&task.analysis(), &limits);
        assert_ne!(outcome.word(), "safe", "{text}");
    }
}

/// Eight variables with identities, and a property that they hold different ones.
fn different(start: &str, body: &str) -> String {
    let names: Vec<String> = (0..8).map(|number| format!("v{number}")).collect();
    let pairs = (0..8).flat_map(|a| (0..a).map(move |b| format!("v{a} != v{b}")));
    let conditions: Vec<String> = names.iter().map(|name| format!("{name} != none")).chain(pairs).collect();
    format!(
        "shared {}: id or none {start};\nprocess P(me: id)[*] {{ {body} }}\nforbid {};",
        names.join(", "),
        conditions.join(" && ")
    )
}
