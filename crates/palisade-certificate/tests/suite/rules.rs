//! Rule by rule, on small programs that need each rule. A proof is closed step by step. It ends at an initial
//! state if the program is unsafe, and is accepted if the program is safe. A checker that leaves out a rule
//! would accept one of the unsafe programs.

use palisade_base::Source;
use palisade_certificate::{Missing, Refusal, verify};
use palisade_engine::proof::{
    Crowds, Element, Held, LoadBuffers, Part, Pending, Piece, SingleBuffer, Snapshot, StackSet, Stacks,
};
use palisade_engine::{Bound, Engine, Limits, Options, Proof, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};
use std::path::Path;

pub(crate) fn read(text: &str) -> Program {
    parse(Language::Pal, &Source::new("p", text)).unwrap_or_else(|_| panic!("not a program: {text}")).program
}

pub(crate) fn task(program: &Program, model: Model) -> Task<'_> {
    let options = Options { rounds: Bound::Auto, ..Options::default() };
    let (threads, interlocked) = (Threads::Declared, Interlocked::WholeBuffer);
    Task { program, threads, model, interlocked, options }
}

pub(crate) fn judge(task: &Task<'_>, proof: &Proof) -> Result<(), Refusal> {
    verify(task, proof, &Limits::unlimited(1)).map(|_| ())
}

/// The number of states of each automaton, and the number of cells.
fn shape(task: &Task<'_>) -> (Vec<usize>, u32) {
    let system = task.lower(1);
    let population = |role| match task.is_parameterized() {
        true => palisade_automata::Population::Any,
        false => palisade_automata::Population::Fixed(
            system.instances.iter().filter(|instance| instance.role == role).count() as u32,
        ),
    };
    let automata = palisade_automata::Automata::build(&system, population, || true).expect("it has automata");
    let automata = automata.with_delayed_stores(task.model, task.interlocked).0.unwrap_or(automata);
    (automata.automata.iter().map(|automaton| automaton.states.len()).collect(), system.cells.len() as u32)
}

fn numbers(message: &str) -> Vec<u32> {
    let digits = message.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    digits.filter_map(|part| part.parse().ok()).collect()
}

/// The element with its sets among those of the proof.
pub(crate) fn adopt(proof: &mut LoadBuffers, element: &Element, sets: &[Vec<u32>]) -> Element {
    let mut numbers = Vec::new();
    for set in sets {
        let place = proof.sets.iter().position(|other| other == set).unwrap_or_else(|| {
            proof.sets.push(set.clone());
            proof.sets.len() - 1
        });
        numbers.push(place as u32);
    }
    let mut element = element.clone();
    element.memory.iter_mut().for_each(|(_, set)| *set = numbers[*set as usize]);
    let letters = element.processes.iter_mut().flat_map(|process| &mut process.word);
    letters.into_iter().for_each(|letter| letter.values = numbers[letter.values as usize]);
    element
}

/// Adds what is missing until nothing is, or until the checker finds another problem.
fn close_load_buffers(task: &Task<'_>, with_held: bool) -> (LoadBuffers, Result<(), Refusal>) {
    close_tracked(task, with_held, None, false)
}

/// The same with rewritten automata.
fn close_rewritten(task: &Task<'_>) -> (LoadBuffers, Result<(), Refusal>) {
    close_tracked(task, true, None, true)
}

/// The same for a set that follows only some processes.
fn close_tracked(
    task: &Task<'_>,
    with_held: bool,
    tracked: Option<Vec<u32>>,
    rewritten: bool,
) -> (LoadBuffers, Result<(), Refusal>) {
    let (states, cells) = shape(task);
    let held = (0..cells).flat_map(|cell| {
        let claim = |(kind, &states): (usize, &usize)| Held {
            cell,
            kind: kind as u32,
            values: vec![Vec::new(); states],
        };
        states.iter().enumerate().map(claim).filter(|_| with_held).collect::<Vec<_>>()
    });
    let mut proof = LoadBuffers {
        rewritten,
        classes: states.iter().map(|&states| (0..states as u32).collect()).collect(),
        held: held.collect(),
        parts: vec![Part { tracked, elements: Vec::new() }],
        ..LoadBuffers::default()
    };
    loop {
        match judge(task, &Proof::LoadBuffers(proof.clone())) {
            Err(
                Refusal::BadMissing(Missing::LoadBuffers(missing, sets))
                | Refusal::NotClosed { predecessor: Missing::LoadBuffers(missing, sets), .. },
            ) => {
                let element = adopt(&mut proof, &missing, &sets);
                if proof.parts[0].elements.contains(&element) {
                    // It names more processes than are followed, so it contains nothing.
                    assert!(proof.parts[0].tracked.is_some(), "{element:?} is missing again");
                    return (proof, Err(Refusal::BadMissing(Missing::LoadBuffers(missing, sets))));
                }
                proof.parts[0].elements.push(element);
            }
            Err(Refusal::NotInductive(message)) => match numbers(&message)[..] {
                [kind, state, cell, value] => proof.pending.push(Pending { kind, state, cell, value }),
                [cell, value, state] => {
                    let claim = proof.held.iter_mut().find(|held| held.cell == cell);
                    claim.expect("it was claimed").values[state as usize].push(value);
                }
                _ => panic!("{message}"),
            },
            // Claims are checked in order, so the first one about this cell is wrong.
            Err(Refusal::Unfit(message)) if message.contains("other writers") => {
                let cell = numbers(&message)[0];
                let wrong = proof
                    .held
                    .iter()
                    .position(|held| held.cell == cell && held.values.iter().all(Vec::is_empty));
                proof.held.remove(wrong.expect("it was claimed"));
            }
            judged => return (proof, judged),
        }
    }
}

/// The snapshot with its sets among those of the proof.
pub(crate) fn adopt_snapshot(proof: &mut SingleBuffer, element: &Snapshot, sets: &[Vec<u32>]) -> Snapshot {
    let mut numbers = Vec::new();
    for set in sets {
        let place = proof.sets.iter().position(|other| other == set).unwrap_or_else(|| {
            proof.sets.push(set.clone());
            proof.sets.len() - 1
        });
        numbers.push(place as u32);
    }
    let mut element = element.clone();
    let renumber = |set: &mut u32| *set = numbers[*set as usize];
    element.memory.iter_mut().for_each(|cell| renumber(&mut cell.values));
    for process in &mut element.processes {
        process.word.iter_mut().for_each(|letter| renumber(&mut letter.values));
        process.queues.iter_mut().flat_map(|queue| &mut queue.values).for_each(renumber);
    }
    element
}

fn close_single_buffer(task: &Task<'_>, rewritten: bool) -> (SingleBuffer, Result<(), Refusal>) {
    let mut proof = SingleBuffer { rewritten, ..SingleBuffer::default() };
    loop {
        match judge(task, &Proof::SingleBuffer(proof.clone())) {
            Err(
                Refusal::BadMissing(Missing::SingleBuffer(element, sets))
                | Refusal::NotClosed { predecessor: Missing::SingleBuffer(element, sets), .. },
            ) => {
                let element = adopt_snapshot(&mut proof, &element, &sets);
                assert!(!proof.elements.contains(&element), "{element:?} is missing again");
                proof.elements.push(element);
            }
            judged => return (proof, judged),
        }
    }
}

const SC: &[Model] = &[Model::Sc, Model::Tso, Model::Pso];
const TSO: &[Model] = &[Model::Tso, Model::Pso];
const PSO: &[Model] = &[Model::Pso];
const NONE: &[Model] = &[];

/// Programs, and the models under which they are unsafe.
pub(crate) const PROGRAMS: &[(&str, &[Model])] = &[
    // Store buffering: plain, with fences, with one fence, and with reads of own stores.
    (
        "shared x, y: bool; process P { x = true; if !y { cs: skip; } } process Q { y = true; if !x { cs: skip; } } forbid P@cs && Q@cs;",
        TSO,
    ),
    (
        "shared x, y: bool; process P { x = true; fence; if !y { cs: skip; } } process Q { y = true; fence; if !x { cs: skip; } } forbid P@cs && Q@cs;",
        NONE,
    ),
    (
        "shared x, y: bool; process P { x = true; fence; if !y { cs: skip; } } process Q { y = true; if !x { cs: skip; } } forbid P@cs && Q@cs;",
        TSO,
    ),
    (
        "shared x, y: bool; process P { x = true; sfence; if x { if !y { cs: skip; } } } process Q { y = true; sfence; if y { if !x { cs: skip; } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    (
        "shared x, y: bool; process P { x = true; if x { if !y { cs: skip; } } } process Q { y = true; if y { if !x { cs: skip; } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    // Stores that are still pending some steps later.
    (
        "shared x, y, z, w: bool; process P { x = true; z = true; if x { if !y { cs: skip; } } } process Q { y = true; w = true; if y { if !x { cs: skip; } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    (
        "shared x, y, z: bool; process P { x = true; let r = z; if x { if !y { cs: skip; } } } process Q { y = true; let r = z; if y { if !x { cs: skip; } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    // Message passing: stores may be reordered only under PSO.
    (
        "shared x, y: bool; process W { x = true; y = true; } process R { let a = y; let b = x; assert(!a || b); }",
        PSO,
    ),
    (
        "shared x, y: bool; process W { x = true; sfence; y = true; } process R { let a = y; let b = x; assert(!a || b); }",
        NONE,
    ),
    (
        "shared x, y: bool; process W { x = true; y = true; } process R { let a = x; let b = y; assert(!a || b); }",
        SC,
    ),
    // One cell: stores stay in order, and a process sees its own.
    ("shared x: 0..2; process P { x = 1; x = 2; } process Q { let a = x; let b = x; assert(a <= b); }", NONE),
    ("shared x: 0..2; process P { x = 1; x = 2; } process Q { let a = x; let b = x; assert(a >= b); }", SC),
    ("shared x: 0..1; process P { x = 1; let a = x; assert(a == 1); }", NONE),
    ("shared x: 0..1; process P { x = 1; let a = x; assert(a == 0); }", SC),
    ("shared x: 0..2; process P { x = 1; let a = x; assert(a == 1); } process Q { x = 2; }", SC),
    // A store and a fence: a property sees the place between them, or only the place after the fence, and a
    // jump leads there without the store.
    ("shared x: 0..1; process P { x = 1; m: fence; r: skip; } forbid P@m;", SC),
    ("shared x: 0..1; process P { x = 1; m: fence; r: skip; } forbid P@m && x == 1;", SC),
    (
        "shared x: 0..1; process P { x = 1; fence; r: skip; } process Q { await x == 1; c: skip; } forbid Q@c && !P@r;",
        SC,
    ),
    (
        "shared x, y: bool; process P { choose { x = true; } or { skip; } fence; if !y { cs: skip; } } process Q { y = true; fence; if !x { cs: skip; } } forbid P@cs && Q@cs;",
        SC,
    ),
    (
        "shared x, y: bool; process P { x = true; fence; skip; if !y { cs: skip; } } process Q { choose { y = true; } or { y = true; y = true; } fence; if !x { cs: skip; } } forbid P@cs && Q@cs;",
        NONE,
    ),
    (
        "shared x, y: bool; process P { x = true; fence; if !y { cs: skip; } } process Q { y = true; skip; if !x { cs: skip; } fence; } forbid P@cs && Q@cs;",
        TSO,
    ),
    // Another store is pending before the store and the fence: the later one may take effect first.
    (
        "shared x, y: bool; process W { x = true; y = true; fence; } process R { let a = y; let b = x; assert(!a || b); }",
        PSO,
    ),
    (
        "shared x, y: bool; process W { x = true; fence; y = true; fence; } process R { let a = y; let b = x; assert(!a || b); }",
        NONE,
    ),
    (
        "shared x, y: bool; process W { choose { x = true; } or { skip; } y = true; fence; } process R { let a = y; let b = x; assert(!a || b); }",
        SC,
    ),
    (
        "shared x: 0..2; process W { x = 1; x = 2; fence; } process R { let a = x; let b = x; assert(a <= b); }",
        NONE,
    ),
    // The only writer reads its cell, while another store is pending, with several values, and after a fence.
    (
        "shared x, y: bool; process P { x = true; if x { if !y { cs: skip; } } } process Q { y = true; fence; if y { if !x { cs: skip; } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    (
        "shared x: 0..2; process P { choose { x = 1; } or { x = 2; } let a = x; let b = x; assert(a == b && a != 0); }",
        NONE,
    ),
    ("shared x: 0..2; process P { choose { x = 1; } or { x = 2; } let a = x; assert(a == 1); }", SC),
    // Processes that are started: they exist from then on, in these numbers, and see what their parent has seen.
    ("process Main { spawn W; } process W on spawn { cs: skip; } forbid count(W@cs) >= 1;", SC),
    ("process Main { spawn W; } process W on spawn { cs: skip; } forbid count(W@cs) >= 2;", NONE),
    ("process Main { spawn W; spawn W; } process W on spawn { cs: skip; } forbid count(W@cs) >= 2;", SC),
    (
        "process Main { spawn W; m: skip; } process W on spawn { cs: skip; } forbid count(W@cs) >= 1 && !Main@m;",
        SC,
    ),
    (
        "process Main { m: skip; spawn W; } process W on spawn { cs: skip; } forbid count(W@cs) >= 1 && Main@m;",
        NONE,
    ),
    (
        "shared x, y: bool; process Main { await x; spawn W; } process W on spawn { y = true; } process Q { await y; if !x { bad: skip; } } process R { x = true; } forbid Q@bad;",
        NONE,
    ),
    (
        "shared x, y: bool; process Main { await x; spawn W; } process W on spawn { y = true; } process Q { x = true; await y; bad: skip; } forbid Q@bad;",
        SC,
    ),
    (
        "shared x: 0..1; process Main { x = 1; fence; spawn W; } process W on spawn { let a = x; assert(a == 1); }",
        NONE,
    ),
    (
        "shared x: 0..1; process Main { spawn W; x = 1; } process W on spawn { let a = x; assert(a == 0); }",
        SC,
    ),
    (
        "shared x: 0..1; process Main { x = 1; spawn W; } process W on spawn { let a = x; assert(a == 1); }",
        TSO,
    ),
    // The parent's store is pending, and that of the new process is not.
    (
        "shared x, y: bool; process Main { x = true; spawn W; } process W on spawn { y = true; } process Q { await y; if !x { bad: skip; } } forbid Q@bad;",
        TSO,
    ),
    (
        "shared x, y: bool; process Main { x = true; fence; spawn W; } process W on spawn { y = true; } process Q { await y; if !x { bad: skip; } } forbid Q@bad;",
        NONE,
    ),
    // A process starts another one, and one that is not named starts one that is.
    (
        "shared x: 0..1; process Main { spawn V; } process V on spawn { x = 1; fence; spawn W; } process W on spawn { let a = x; assert(a == 1); }",
        NONE,
    ),
    (
        "shared x: 0..1; process Main { spawn V; } process V on spawn { spawn W; x = 1; } process W on spawn { let a = x; assert(a == 0); }",
        SC,
    ),
    // Initial values.
    ("shared x: 0..1 = *; process P { let a = x; assert(a == 0); }", SC),
    ("shared x: 0..1; process P { let a = x; assert(a == 0); }", NONE),
    // A process that no property names.
    ("shared x: 0..1; process P { let a = x; assert(a == 0); } process R { x = 1; }", SC),
    (
        "shared x, y: bool; process P { let a = y; assert(!a); } process R { await x; y = true; } process S { x = true; }",
        SC,
    ),
    // Locked instructions and sections.
    (
        "shared l: bool; process P[2] { while xchg(l, true) {} cs: skip; l = false; } forbid count(P@cs) >= 2;",
        NONE,
    ),
    (
        "shared l: bool; process P[2] { while l {} l = true; cs: skip; l = false; } forbid count(P@cs) >= 2;",
        SC,
    ),
    (
        "shared x, y: 0..1; process P { let r = xchg(x, 1); let s = y; assert(r == 1 || s == 1); } process Q { y = 1; let t = x; }",
        SC,
    ),
    (
        "shared x, y: bool; process P { let r = xchg(x, true); if !y { cs: skip; } } process Q { let r = xchg(y, true); if !x { cs: skip; } } forbid P@cs && Q@cs;",
        NONE,
    ),
    (
        "shared x: 0..1; process P { let a = cas(x, 0, 1); assert(a); } process Q { let b = cas(x, 0, 1); }",
        SC,
    ),
    (
        "shared x, y: bool; process P { atomic { x = true; y = true; } } process Q { atomic { let a = x; let b = y; assert(a == b); } }",
        NONE,
    ),
    (
        "shared x, y: bool; process P { atomic { x = true; y = true; } } process Q { let a = x; let b = y; assert(a == b); }",
        SC,
    ),
    // Any number of threads.
    (
        "shared l: bool; process P[*] { while xchg(l, true) {} cs: skip; l = false; } forbid count(P@cs) >= 2;",
        NONE,
    ),
    (
        "shared l: bool; process P[*] { while l {} l = true; cs: skip; l = false; } forbid count(P@cs) >= 3;",
        SC,
    ),
    ("process P[*] { a: skip; } forbid count(P@a) == 2;", SC),
    // Bad states: each choice for one thread, cell or count is combined with each for the next.
    (
        "shared x, p: 0..1; process Q { await p == 1; let s = x; } process P { let r = x; p = 1; } process W { x = 1; } final Q.s + P.r != 1;",
        SC,
    ),
    ("shared x, y: 0..1; process P { x = 1; choose { y = 1; } or {} } final x + y != 1;", SC),
    ("shared x, y: 0..1; process P { x = 1; fence; y = 1; } final x + y != 1;", NONE),
    ("process P[2] { a: skip; } process Q[2] { skip; b: skip; } forbid count(P@a) + count(Q@b) == 3;", SC),
    ("process P[2] { a: skip; } process Q[2] { skip; b: skip; } forbid count(P@a) - count(Q@b) == 1;", SC),
    ("process P[2] { a: skip; } process Q { skip; b: skip; } forbid count(P@a) == 1 && Q@b;", SC),
    ("process P { a: skip; } process Q[*] { b: skip; } forbid P@a && count(Q@b) >= 1;", SC),
    // Exactly one. A state with at least one is reachable.
    ("shared x: 0..1; process P[2] { a: let r = xchg(x, 1); } forbid count(P@a) == 1 && x == 0;", NONE),
    // Properties are not evaluated inside a section.
    ("shared x: 0..1; process P[2] { atomic { x = 1; a: await x == 0; } } forbid count(P@a) >= 1;", NONE),
    // Counts combined with another condition, with any number of threads.
    ("shared x: 0..1; process P[*] { a: skip; x = 1; } forbid count(P@a) >= 1 && x == 1;", SC),
    ("shared x: 0..1; process P[*] { x = 1; a: skip; } forbid x == 1 && 2 <= count(P@a);", SC),
    // Either of two conditions.
    ("shared x: 0..1; process P { a: skip; x = 1; } forbid P@a || x == 1;", SC),
    ("shared x: 0..1; process P { a: skip; x = 1; } forbid P@a && x == 1 || x == 2;", NONE),
    // Two registers, and a process that never ends.
    (
        "shared x, y: 0..1; process P { let r = x; let s = y; } process Q { x = 1; } final P.r != 1 || P.s != 0;",
        SC,
    ),
    ("shared x: 0..1; process P { let r = x; } process Q { x = 1; loop { skip; } } final P.r == 0;", NONE),
    // A cell that is never written.
    ("shared x, z: 0..1; process P { x = 1; } forbid z == 0 && x == 1;", SC),
    // One writer, which reads another cell or its own.
    (
        "shared x, y: 0..1; process P { await y == 1; cs: skip; x = 1; } process Q { y = 1; } forbid P@cs && x == 0;",
        SC,
    ),
    ("shared x: 0..1; process P { await x == 0; cs: skip; x = 1; } forbid P@cs && x == 0;", SC),
    ("shared x: 0..1; process P { x = 1; fence; cs: skip; } forbid P@cs && x == 0;", NONE),
    // An own store is read twice.
    (
        "shared x, y: bool; process P { x = true; if x { if x { if !y { cs: skip; } } } } process Q { y = true; if y { if y { if !x { cs: skip; } } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    (
        "shared x, y: bool; process P { x = true; sfence; if x { if x { if !y { cs: skip; } } } } process Q { y = true; sfence; if y { if y { if !x { cs: skip; } } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    // Several stores to one cell.
    (
        "shared x: 0..2; shared y: bool; process P { x = 1; x = 2; if x == 2 { if !y { cs: skip; } } } process Q { y = true; fence; if x == 0 { cs: skip; } } forbid P@cs && Q@cs;",
        TSO,
    ),
    ("shared x: 0..2; process P { x = 1; x = 2; let a = x; assert(a == 2); }", NONE),
    (
        "shared x: 0..2; process P { x = 1; x = 2; x = 1; } process Q { let a = x; let b = x; let c = x; assert(a != 1 || b != 2 || c != 1); }",
        SC,
    ),
    (
        "shared x: 0..2; process P { x = 1; x = 2; x = 1; } process Q { let a = x; let b = x; let c = x; assert(a != 2 || b != 1 || c != 2); }",
        NONE,
    ),
    // Two reads of one of several initial values.
    ("shared x: 0..1 = *; process P { let a = x; let b = x; assert(a == b); }", NONE),
    // Locked instructions and sections of processes that no property names.
    ("shared y: 0..1; process P { let a = y; assert(a == 0); } process R { let r = xchg(y, 1); }", SC),
    (
        "shared x, y: 0..1; process P { let a = y; assert(a == 0); } process R { atomic { await x == 1; y = 1; } } process S { x = 1; }",
        SC,
    ),
    (
        "shared x, y: 0..1; process P { let a = y; assert(a == 0); } process R { atomic { await x == 1; y = 1; } } process S { await y == 1; x = 1; }",
        NONE,
    ),
    // Locked instructions wait for stores.
    (
        "shared x, y, z: 0..1; process W { x = 1; let r = xchg(z, 1); y = 1; } process R { let a = y; let b = x; assert(a == 0 || b == 1); }",
        NONE,
    ),
    (
        "shared x, y: 0..1; process W { x = 1; let r = xchg(y, 1); } process R { let a = y; let b = x; assert(a == 0 || b == 1); }",
        NONE,
    ),
    (
        "shared x, y: 0..1; process W { x = 1; atomic { let r = y; y = 1; } } process R { let a = y; let b = x; assert(a == 0 || b == 1); }",
        NONE,
    ),
    ("shared x: 0..2; process P { x = 1; let r = xchg(x, 2); assert(r == 1); }", NONE),
    // Pending stores while others read the cell: with a read of the own store in between, with two stores,
    // and with effects in the other order.
    (
        "shared x, y: 0..1; process P { x = 1; if x == 1 { y = 1; } } process Q { await y == 1; if x == 0 { cs: skip; } } forbid Q@cs;",
        PSO,
    ),
    (
        "shared x: 0..2; shared y: 0..1; process P { x = 1; x = 2; if x == 2 { y = 1; } } process Q { await y == 1; if x == 0 { cs: skip; } } forbid Q@cs;",
        PSO,
    ),
    (
        "shared x, y: 0..1; process W { y = 1; x = 1; } process R { await x == 1; await y == 0; await y == 1; cs: skip; } forbid R@cs;",
        PSO,
    ),
    (
        "shared x, y: 0..1; process W { y = 1; let a = xchg(x, 1); } process R { await x == 1; await y == 0; await y == 1; cs: skip; } forbid R@cs;",
        NONE,
    ),
    (
        "shared x, y, z: 0..1; process P { x = 1; sfence; if z == 0 { if x == 1 { if y == 0 { cs: skip; } } } } process Q { y = 1; sfence; if z == 0 { if y == 1 { if x == 0 { cs: skip; } } } } forbid P@cs && Q@cs;",
        TSO,
    ),
    // A cell with two writers of one kind, a locked instruction after a store, and one with two effects.
    (
        "shared x: 0..1; process P[2] { x = 1; fence; x = 0; fence; cs: skip; } forbid count(P@cs) >= 1 && x == 1;",
        SC,
    ),
    ("shared x, y: 0..1; process P { x = 1; atomic { await y == 0; } cs: skip; } forbid P@cs && x == 1;", SC),
    ("shared x, y: 0..1; process S { atomic { x = 1; y = 1; } } forbid x == 1;", SC),
    // Each of these needs a condition of the checker that no program above needs.
    (
        "shared x: 0..1; process P { let a = cas(x, 0, 1); } process Q { let b = cas(x, 0, 0); } final x == 1;",
        NONE,
    ),
    (
        "shared x: 0..1; process P { let a = x; let b = cas(x, 1, 0); } process R { x = 1; } final P.a == 0;",
        SC,
    ),
    ("shared x: 0..1; process P { let a = xchg(x, 1); x = 0; if x == 1 { cs: skip; } } forbid P@cs;", NONE),
    (
        "shared x: 0..1; process P { let a = cas(x, 0, 1); if x == 0 { cs: skip; } } process Q { x = 1; let b = xchg(x, 0); } forbid P@cs && x == 1;",
        NONE,
    ),
    ("shared x: 0..1; process P { x = 1; if x == 0 { let a = x; } let b = x; assert(b != 0); }", NONE),
    (
        "shared x: 0..1; process P { x = 1; let a = x; assert(a != 0); } process Q { x = 1; await x == 0; x = 0; }",
        NONE,
    ),
    (
        "shared x: 0..1; process Q { choose { x = 0; } or { await x == 0; } let a = xchg(x, 0); } process R { let b = cas(x, 0, 1); } final Q.a != 0 || x != 0;",
        SC,
    ),
    ("shared x, y: 0..1; process P { x = 1; let a = x; y = 1; if y == 1 { cs: skip; } } forbid P@cs;", SC),
    ("shared x, y: 0..1; process P { x = 1; let a = y; let b = xchg(y, 0); cs: skip; } forbid P@cs;", SC),
    (
        "shared x, y: 0..1; process P[2] { loop { let a = x; let b = y; x = 1; if x == 1 { cs: skip; } } } forbid count(P@cs) >= 1;",
        SC,
    ),
    ("shared x, y: 0..1; process P { let a = xchg(y, 1); let b = cas(x, 1, 0); cs: skip; } forbid P@cs;", SC),
    (
        "shared x: 0..2 = *; shared y: 0..2; process P { let a = xchg(y, 1); let b = cas(x, 1, 2); assert(a != 2); } process Q { y = 2; }",
        SC,
    ),
    (
        "shared x: 0..2; process P { await x == 2; cs: skip; } process Q { let a = xchg(x, 2); } forbid P@cs;",
        SC,
    ),
    ("shared x: 0..2; process P { x = 2; let a = x; cs: skip; } forbid P@cs && x == 2;", SC),
    ("shared x: 0..1 = *; process P {} final x == 0;", SC),
    (
        "shared x, y: 0..1; process P { let a = xchg(x, 0); y = 1; if y == 1 { cs: skip; } } forbid P@cs && x == 0;",
        SC,
    ),
    ("shared x: 0..2; process P { atomic {} x = 0; } final x != 0;", SC),
    ("shared x: 0..2; process P { x = 0; x = 1; let a = x; assert(a != 0); }", NONE),
    ("shared x: 0..1; process P[2] { x = 1; x = 0; let a = x; assert(a == 0); }", SC),
    ("shared x: 0..2; process P { loop { let a = x; assert(a == 1); } }", SC),
    ("shared x: 0..2 = *; process P { x = 2; let a = x; assert(a == 0); }", SC),
    (
        "shared x: 0..1; process P { if x == 0 { x = 1; } let a = x; assert(a != 0); } process Q { let b = x; x = 1; await x == 0; }",
        NONE,
    ),
    (
        "shared x: 0..1; process P { x = 1; let a = x; assert(a == 1); } process Q { x = 0; let b = cas(x, 0, 0); } process R { x = 0; let c = cas(x, 1, 0); x = 1; }",
        SC,
    ),
    ("shared x: 0..2; process P { x = 2; if x == 0 { cs: skip; } } forbid P@cs;", NONE),
    (
        "shared x, y, z: 0..2; process P { y = 1; let a = x; y = 2; atomic { let b = cas(y, 1, 2); z = 0; } if z == 0 { cs: skip; } } forbid P@cs && y == 1;",
        NONE,
    ),
    (
        "shared x: 0..1; process P { await x == 0; let a = x; let b = cas(x, 1, 0); } process Q { x = 1; x = 1; } process R { x = 1; } final P.a != 1;",
        SC,
    ),
];

/// Locked instructions that wait only for the stores to their own address: programs that are unsafe then are
/// not proved safe.
#[test]
fn locked_instructions_that_wait_for_their_own_address() {
    let mut differ = 0;
    for &(text, breaks) in PROGRAMS {
        let program = read(text);
        let own = Task { interlocked: Interlocked::OwnAddress, ..task(&program, Model::Pso) };
        if own.is_parameterized() {
            continue;
        }
        let is_unsafe = judge(&own, &Proof::AllStates) == Err(Refusal::BadReached);
        for rewritten in [false, true] {
            let judged = close_single_buffer(&own, rewritten).1;
            assert_eq!(matches!(judged, Err(Refusal::Initial(_))), is_unsafe, "{judged:?}\n{text}");
            assert_eq!(judged.is_ok(), !is_unsafe, "{judged:?}\n{text}");
        }
        differ += u32::from(is_unsafe != breaks.contains(&Model::Pso));
    }
    assert_eq!(differ, 3);
}

/// More processes than the index looks up by their places. The first has to take a step.
#[test]
fn many_processes_in_one_element() {
    let step = |number: usize| if number == 0 { "x = 1;" } else { "" };
    let process = |number: usize| format!("process P{number} {{ {} a: skip; }}", step(number));
    let processes: Vec<String> = (0..11).map(process).collect();
    let all: Vec<String> = (0..11).map(|number| format!("P{number}@a")).collect();
    let program = read(&format!("shared x: 0..1; {} forbid {};", processes.join(" "), all.join(" && ")));
    let judged = close_single_buffer(&task(&program, Model::Pso), false).1;
    assert!(matches!(judged, Err(Refusal::Initial(_))), "{judged:?}");
}

/// Properties that such proofs do not support: naming and counting the same threads, and, for any number of
/// threads, `final` conditions and arithmetic with counts.
#[test]
fn some_properties_are_not_supported() {
    let texts = [
        "shared x: 0..1; process P(i: 0..1) { if i == 1 { await x == 1; } a: skip; } forbid P(0)@a && count(P@a) >= 1;",
        "shared x: 0..1 = *; process P[*] { let r = x; } final x == 0;",
        "process P[*] { a: skip; b: skip; } forbid count(P@a) / 3 == 1;",
        "process P[*] { a: skip; b: skip; } forbid 1 == count(P@a) / 3;",
        "process P[*] { a: skip; b: skip; } forbid count(P@a) / 3 + count(P@b) == 1;",
        "process P[*] { a: skip; b: skip; } forbid count(P@b) + count(P@a) / 3 == 1;",
        "process P[*] { a: skip; b: skip; } forbid count(P@a) >= 1000000;",
    ];
    for text in texts {
        let program = read(text);
        for model in Model::ALL {
            let task = task(&program, model);
            let proof = match model {
                Model::Pso => Proof::SingleBuffer(SingleBuffer::default()),
                Model::Sc | Model::Tso => Proof::LoadBuffers(LoadBuffers {
                    classes: shape(&task).0.iter().map(|&states| (0..states as u32).collect()).collect(),
                    parts: vec![Part { tracked: None, elements: Vec::new() }],
                    ..LoadBuffers::default()
                }),
            };
            let judged = judge(&task, &proof);
            assert!(matches!(judged, Err(Refusal::Unsuited(_))), "{}: {judged:?}\n{text}", model.name());
        }
    }
}

#[test]
fn sets_closed_step_by_step_reach_an_initial_state_of_unsafe_programs() {
    for &(text, breaks) in PROGRAMS {
        let program = read(text);
        for model in Model::ALL {
            let task = task(&program, model);
            let any_final = task.is_parameterized() && text.contains("final");
            assert!(!any_final, "{text}");
            let judged = match model {
                Model::Pso => {
                    vec![close_single_buffer(&task, false).1, close_single_buffer(&task, true).1]
                }
                Model::Sc | Model::Tso => {
                    let (plain, held) =
                        (close_load_buffers(&task, false).1, close_load_buffers(&task, true).1);
                    vec![plain, held, close_rewritten(&task).1]
                }
            };
            for judged in judged {
                match breaks.contains(&model) {
                    true => {
                        assert!(
                            matches!(judged, Err(Refusal::Initial(_))),
                            "{}: {judged:?}\n{text}",
                            model.name()
                        );
                    }
                    false => assert_eq!(judged, Ok(()), "{}\n{text}", model.name()),
                }
            }
            if !task.is_parameterized() {
                let judged = judge(&task, &Proof::AllStates);
                let expected = if breaks.contains(&model) { Err(Refusal::BadReached) } else { Ok(()) };
                assert_eq!(judged, expected, "{}\n{text}", model.name());
            }
        }
    }
}

/// However few processes are followed, no unsafe program is proved safe. Some safe programs are.
#[test]
fn sets_that_follow_some_processes_prove_nothing_unsafe() {
    let mut proved = 0;
    for &(text, breaks) in PROGRAMS {
        let program = read(text);
        for model in [Model::Sc, Model::Tso] {
            let task = task(&program, model);
            let kinds = shape(&task).0.len() as u32;
            for choice in 0..3u32.pow(kinds) {
                let tracked = (0..kinds).map(|kind| choice / 3u32.pow(kind) % 3).collect();
                let judged = close_tracked(&task, true, Some(tracked), choice % 2 == 0).1;
                assert!(judged.is_err() || !breaks.contains(&model), "{}\n{text}", model.name());
                proved += u32::from(judged.is_ok());
            }
        }
    }
    // An exact count. It is lower if a rule requires more than it has to.
    assert_eq!(proved, 392);
}

/// No claim of an invariant that was closed step by step can be left out.
#[test]
fn claims_that_are_needed_cannot_be_left_out() {
    let mut left_out = [0, 0];
    for &(text, _) in PROGRAMS {
        let program = read(text);
        let task = task(&program, Model::Tso);
        let (proof, _) = close_load_buffers(&task, true);
        for at in 0..proof.pending.len() {
            let mut less = proof.clone();
            less.pending.remove(at);
            let judged = judge(&task, &Proof::LoadBuffers(less));
            assert!(matches!(judged, Err(Refusal::NotInductive(_))), "{judged:?}\n{text}");
            left_out[0] += 1;
        }
        for claim in 0..proof.held.len() {
            for state in 0..proof.held[claim].values.len() {
                for value in 0..proof.held[claim].values[state].len() {
                    let mut less = proof.clone();
                    less.held[claim].values[state].remove(value);
                    let judged = judge(&task, &Proof::LoadBuffers(less));
                    assert!(matches!(judged, Err(Refusal::NotInductive(_))), "{judged:?}\n{text}");
                    left_out[1] += 1;
                }
            }
        }
    }
    assert!(left_out.iter().all(|&left_out| left_out > 20), "{left_out:?}");
}

/// A proof without classes for an automaton would leave out its processes.
#[test]
fn an_automaton_cannot_be_left_out() {
    let program = read("shared x: 0..1; process P { let a = x; assert(a == 0); } process R { x = 1; }");
    for model in [Model::Sc, Model::Tso] {
        let task = task(&program, model);
        let (proof, _) = close_load_buffers(&task, false);
        for classes in [0, 1, 3] {
            let mut other = proof.clone();
            other.classes.resize(classes, vec![0]);
            other.parts[0].elements.clear();
            let judged = judge(&task, &Proof::LoadBuffers(other));
            assert!(matches!(judged, Err(Refusal::Unfit(_))), "{classes}: {judged:?}");
        }
        let mut other = proof.clone();
        other.classes[1].pop();
        assert!(matches!(judge(&task, &Proof::LoadBuffers(other)), Err(Refusal::Unfit(_))));
    }
}

/// Sets without stacks are closed under everything, but contain no initial state.
#[test]
fn pieces_without_stacks_contain_no_initial_state() {
    let program = read(
        "shared x: 0..1; proc f() { choose { f(); } or { x = 1; } } process P { f(); assert(x == 0); } process Q { f(); }",
    );
    let task = task(&program, Model::Sc);
    let system = task.lower(1);
    let every: Vec<Vec<u32>> =
        system.codes.iter().map(|code| (0..code.location_count() as u32).collect()).collect();
    let roles: Vec<(u32, u32)> = system.instances.iter().map(|instance| (instance.role.0, 0)).collect();
    let forged = Stacks {
        stops: every.clone(),
        memories: vec![vec![0], vec![1]],
        frames: Vec::new(),
        sets: vec![StackSet { states: vec![Vec::new()] }],
        pieces: (0..2).map(|memory| Piece { memory, threads: roles.clone() }).collect(),
    };
    assert_eq!(judge(&task, &Proof::Stacks(forged.clone())), Err(Refusal::InitialMissing));
    let nothing = Stacks { pieces: Vec::new(), ..forged };
    assert_eq!(judge(&task, &Proof::Stacks(nothing)), Err(Refusal::InitialMissing));
    let empty = Crowds { stops: every, ..Crowds::default() };
    assert_eq!(judge(&task, &Proof::Crowds(empty)), Err(Refusal::InitialMissing));
}

/// No piece, and no edge at the top of a set that contains the start of a process, can be left out.
#[test]
fn stacks_at_the_start_cannot_be_left_out() {
    let program = read(
        "shared x: 0..1; proc f() { choose { f(); } or { x = 1; } } process P { f(); assert(x == 1); } process Q { f(); }",
    );
    let task = task(&program, Model::Sc);
    let (_, Some(Proof::Stacks(proof))) = Pushdown.prove(&task.analysis(), &Limits::unlimited(1)) else {
        panic!("expected a proof by sets of stacks");
    };
    assert_eq!(judge(&task, &Proof::Stacks(proof.clone())), Ok(()));
    let mut empty = proof.clone();
    empty.sets.iter_mut().for_each(|set| set.states[0].clear());
    assert_eq!(judge(&task, &Proof::Stacks(empty)), Err(Refusal::InitialMissing));
    let mut none = proof;
    none.pieces.clear();
    assert_eq!(judge(&task, &Proof::Stacks(none)), Err(Refusal::InitialMissing));
}

/// The table of the trusted code in the docs has a row for each folder, and its counts are about right.
#[test]
fn the_trusted_base_is_as_large_as_the_docs_say() {
    fn count(folder: &Path, files: &mut usize, lines: &mut usize) {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                count(&path, files, lines);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                *files += 1;
                *lines += std::fs::read_to_string(&path).expect("it is text").lines().count();
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/certify.md")).expect("the page is there");
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| `crates/")) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let number = |column: usize| columns[column].parse::<usize>().expect("a number");
        let (mut files, mut lines) = (0, 0);
        count(&root.join(columns[1].trim_matches('`')), &mut files, &mut lines);
        assert!(files.abs_diff(number(2)) <= 2, "{line}: {files} files");
        assert!(10 * lines.abs_diff(number(3)) <= lines, "{line}: {lines} lines");
        rows += 1;
    }
    assert_eq!(rows, 6);
}
