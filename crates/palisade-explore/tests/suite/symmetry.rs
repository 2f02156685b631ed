//! Threads that differ in data: random programs with indices, nodes and arrays per thread, against brute force.
//!
//! The programs have two or three threads with the same text. Each has an index, a node and an element of an array of
//! its own. Now and then something breaks the symmetry: an order of indices, a constant of one thread, an initial
//! value, a property that names a thread. The reduction has to notice.

use crate::{coverage, progress};
use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::{seeds, transform};
use palisade_engine::{Engine, Limits, Options, Question, Reduction, Safety, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_syntax::{Language, parse};
use palisade_trace::replay;

/// Statements of a thread. `ME` is its index, `MINE` the address of its node, `OWN` its variable.
const SYMMETRIC: [&str; 36] = [
    "owner = ME;",
    "i = owner;",
    "i = xchg(owner, ME);",
    "i = xchg(owner, NOBODY);",
    "b = cas(owner, NOBODY, ME);",
    "b = cas(owner, ME, NOBODY);",
    "assert(i == ME || i == NOBODY);",
    "if i == ME { d = data; data = d + 1; }",
    "if i != ME { fence; }",
    "await owner == NOBODY;",
    "await owner != ME;",
    "fetch_add(data, 1);",
    "d = data;",
    "data = d + 1;",
    "assert(d < 3);",
    "assert(d != 1);",
    "assert(d != 1);",
    "assert(i == ME);",
    "assert(i != ME);",
    "assert(p != MINE);",
    "assert(p == 0 || p == MINE);",
    "fence;",
    "sfence;",
    "p = top;",
    "top = MINE;",
    "*MINE = p;",
    "b = cas(top, p, MINE);",
    "p = xchg(top, 0);",
    "if p != 0 { p = *p; }",
    "if p != 0 { *(p + 1) = d; }",
    "if p != 0 { d = *(p + 1); }",
    "OWN = d;",
    "d = OWN;",
    "flags[ME] = 1;",
    "if i != NOBODY { d = flags[i]; }",
    "if i != NOBODY { flags[i] = 0; }",
];

/// Statements that distinguish threads.
const BREAKING: [&str; 6] = [
    "assert(i < 3);",
    "if i > ME { d = data; }",
    "d = i;",
    "if ME == 1 { fence; }",
    "if p < MINE { d = 1; }",
    "data = ME;",
];

/// What an observer of the others may do.
const OBSERVER: [&str; 9] = [
    "i = owner;",
    "p = top;",
    "if p != 0 { p = *p; }",
    "if p != 0 { d = *(p + 1); }",
    "assert(d <= 2);",
    "d = data;",
    "owner = NOBODY;",
    "if i != NOBODY { d = flags[i]; }",
    "fence;",
];

/// The text that a seed names.
fn text(seed: u64) -> String {
    let mut random = Random::new(seed);
    let threads = if random.percent(35) { 3 } else { 2 };
    let length = random.between(2, if threads == 3 { 4 } else { 6 });
    let breaks = random.percent(25);
    let mut body = Vec::new();
    for _ in 0..length {
        let statement =
            if breaks && random.percent(30) { *random.pick(&BREAKING) } else { *random.pick(&SYMMETRIC) };
        body.push(statement);
    }
    // Indices from 0, from 1, or far apart; nobody is another number.
    let (ids, nobody) = match random.below(4) {
        0 => (vec![0, 1, 2], 3),
        1 => (vec![1, 2, 3], 0),
        2 => (vec![2, 0, 1], 3),
        _ => (vec![3, 1, 0], 2),
    };
    let first = if random.percent(30) { *random.pick(&ids[..threads]) } else { nobody };
    let mut text =
        format!("shared owner: 0..3 = {first}; shared top = 0; shared data: 0..9; shared flags[4]: 0..9;\n");
    let odd = if random.percent(15) { random.below(threads) } else { threads };
    for (thread, id) in ids[..threads].iter().enumerate() {
        let address = 100 + 10 * id;
        let init = if thread == odd && random.percent(50) { 1 } else { 0 };
        text += &format!(
            "shared next{thread} at {address} = 0; shared value{thread} at {} : 0..9 = {init};\n",
            address + 1
        );
        text += &format!("shared own{thread}: 0..9;\n");
    }
    for (thread, id) in ids[..threads].iter().enumerate() {
        let (me, mine) = (id.to_string(), (100 + 10 * id).to_string());
        let mut own = body.join("\n    ");
        if thread == odd && random.percent(50) {
            own = own.replace("d + 1", "d + 2").replace("sfence;", "skip;");
        }
        own = own.replace("MINE", &mine).replace("ME", &me);
        own = own.replace("OWN", &format!("own{thread}")).replace("NOBODY", &nobody.to_string());
        text += &format!(
            "process w{thread} {{\n    let i: 0..3 = {nobody}; let p = 0; let d: 0..9 = 0; let b: bool;\n    {own}\n}}\n"
        );
    }
    if random.percent(40) {
        let mut own = Vec::new();
        for _ in 0..random.between(1, 3) {
            own.push(*random.pick(&OBSERVER));
        }
        let own = own.join("\n    ").replace("NOBODY", &nobody.to_string());
        text += &format!(
            "process main {{\n    let i: 0..3 = {nobody}; let p = 0; let d: 0..9 = 0;\n    {own}\n}}\n"
        );
    }
    match random.below(8) {
        0 => text += "final data != 1;\n",
        1 => text += "final w0.d != 1 || data == 0;\n",
        2 => text += "final own0 == 0;\n",
        3 => text += &format!("final owner != {};\n", ids[0]),
        4 => text += "final data <= 2;\n",
        _ => {}
    }
    text
}

fn program(text: &str) -> Program {
    parse(Language::Pal, &Source::new("test.pal", text))
        .unwrap_or_else(|found| panic!("{found:?}\n{text}"))
        .program
}

fn task(program: &Program, model: Model, reduction: Reduction) -> Task<'_> {
    let options = Options { reduction, ..Options::default() };
    let (threads, interlocked) = (Threads::Declared, Interlocked::default());
    Task { program, threads, model, interlocked, options }
}

#[test]
fn differential_verdicts_are_those_of_brute_force() {
    let seeds = seeds(400);
    let (mut compared, mut fewer, mut bad) = (0, 0, 0);
    for seed in &seeds {
        let mut program = program(&text(seed));
        // Some accesses are plain, so that races are looked for.
        if seed % 4 == 0 {
            program = transform::with_plain(&program, &mut Random::new(seed));
        }
        let text = print::print(&program);
        let system = lower(&program, Instantiation::declared(1));
        for model in Model::ALL {
            let machine = Machine::new(&system, model);
            let expected = match brute::check(machine, Scope { states: 20_000, buffer: None }) {
                Answer::Safe => "safe",
                Answer::Unsafe(_) => "unsafe",
                Answer::Inconclusive => continue,
            };
            let shown = || format!("seed {seed}, {}\n{text}", model.name());
            let outcome =
                Explicit.check(&task(&program, model, Reduction::Full).analysis(), &Limits::unlimited(1));
            assert_eq!(Safety::word(&outcome.verdict), expected, "{}", shown());
            if let Verdict::Violated(witness) = &outcome.verdict {
                let replayed =
                    replay(machine, &witness.run).unwrap_or_else(|why| panic!("{why}\n{}", shown()));
                assert!(replayed.violation.is_some(), "{}", shown());
                bad += 1;
            }
            let again =
                Explicit.check(&task(&program, model, Reduction::Full).analysis(), &Limits::unlimited(2));
            assert_eq!(again.verdict, outcome.verdict, "{}", shown());
            assert_eq!(again.stats.get("states"), outcome.stats.get("states"), "{}", shown());
            fewer += usize::from(outcome.stats.get("symmetric_threads").is_some_and(|threads| threads > 0));
            compared += 1;
        }
    }
    println!("{compared} compared, {bad} unsafe, {fewer} with symmetric threads");
    if seeds.suffice() {
        assert!(
            compared > 800 && bad > 200 && fewer > 300,
            "{compared} compared, {bad} unsafe, {fewer} symmetric"
        );
    }
}

#[test]
fn differential_coverage_is_that_of_brute_force() {
    for seed in &seeds(150).starting_at(10_000) {
        let text = text(seed);
        let program = program(&text);
        for model in Model::ALL {
            let problem = coverage::problem(&program, model);
            assert_eq!(problem, None, "seed {seed}, {}\n{text}", model.name());
        }
    }
}

#[test]
fn differential_deadlocks_are_those_of_brute_force() {
    for seed in &seeds(150).starting_at(20_000) {
        let text = text(seed);
        let text = if seed % 2 == 0 { text + "live end;\n" } else { text };
        let program = program(&text);
        for model in Model::ALL {
            let problem = progress::problem(&program, model);
            assert_eq!(problem, None, "seed {seed}, {}\n{text}", model.name());
        }
    }
}

/// The number of states of a search, and how many threads it could exchange.
fn states(text: &str, model: Model) -> (u64, u64) {
    let program = program(text);
    let outcome = Explicit.check(&task(&program, model, Reduction::Full).analysis(), &Limits::unlimited(1));
    assert_eq!(outcome.verdict, Verdict::Holds, "{text}");
    let stat = |name| outcome.stats.get(name).unwrap_or(0);
    (stat("states"), stat("symmetric_threads"))
}

/// A lock that records its owner, with some more statements in the critical section.
fn lock(threads: usize, section: &str) -> String {
    let mut text = "shared lock: bool; shared owner: 0..9 = 9; shared sum: 0..9;\n".to_owned();
    for thread in 0..threads {
        let section = section.replace("ME", &thread.to_string());
        text += &format!(
            "process w{thread} {{ let r: 0..9; let d: 0..9; await cas(lock, 0, 1); owner = {thread}; r = owner;
             assert(r == {thread}); {section} sfence; lock = 0; }}\n"
        );
    }
    text
}

#[test]
fn threads_with_an_index_are_exchanged() {
    for model in Model::ALL {
        let (states, threads) = states(&lock(4, "d = sum; sum = d + 1;"), model);
        assert_eq!(threads, 4, "{}", model.name());
        assert!(states < 200, "{states} states under {}", model.name());
    }
}

#[test]
fn what_distinguishes_threads_is_noticed() {
    let threads = |section: &str| states(&lock(3, section), Model::Tso).1;
    assert_eq!(threads(""), 3);
    // An order of indices, an index as a number, and an index that is compared with a constant.
    assert_eq!(threads("if r < owner { skip; }"), 0);
    assert_eq!(threads("d = sum; sum = d + ME;"), 0);
    assert_eq!(threads("if r == 1 { skip; }"), 2);
    let named = lock(3, "") + "final w0.d == 0;\n";
    assert_eq!(states(&named, Model::Tso).1, 2);
    let initial = lock(3, "").replace("owner: 0..9 = 9", "owner: 0..9 = 2");
    assert_eq!(states(&initial, Model::Tso).1, 2);
}
