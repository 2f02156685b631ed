//! Forged proofs are never believed.
//!
//! For programs that are known to be unsafe, an adversary looks for a proof that the checker accepts all the same. It starts from nothing or from the proof of a safe program that looks much
//! alike, feeds whatever the checker misses back as a new element, and, where the checker finds an initial or bad state, changes that element or the claims around it.
//!
//! `PALISADE_SEEDS` says how many programs there are of each kind, `PALISADE_SEED` asks for one.

use palisade_automata::{Automata, Population};
use palisade_base::{Id, Source};
use palisade_certificate::{Certificate, Missing, Refusal, verify};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::generate::{
    Recursion, generate_parameterized, generate_recursive, generate_spawning,
};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::{Dual, Single};
use palisade_engine::proof::{
    Cell, Crowds, Element, Held, LoadBuffers, Message, Part, Pending, Process, Queue, SingleBuffer, Snapshot,
    Stacks, Viewer,
};
use palisade_engine::{Bound, Engine, Limits, Options, Proof, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_program::print;
use palisade_program::running::System;
use palisade_program::written::{Count, Program};
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};

fn read(text: &str) -> Program {
    try_read(text).expect("the program is well formed")
}

fn try_read(text: &str) -> Option<Program> {
    parse(Language::Pal, &Source::new("p", text)).ok().map(|parsed| parsed.program)
}

fn task(program: &Program, model: Model, threads: Threads) -> Task<'_> {
    let options = Options { rounds: Bound::Auto, ..Options::default() };
    Task { program, threads, model, interlocked: Interlocked::WholeBuffer, options }
}

fn judge(task: &Task<'_>, proof: &Proof) -> Result<(), Refusal> {
    let limits = Limits::unlimited(1).with_work(3000).with_memory(1 << 27);
    verify(task, proof, &limits).map(|_| ())
}

/// Whether brute force shows the task to be unsafe: with any number of threads, already with few.
fn is_unsafe(task: &Task<'_>) -> bool {
    let most = if task.is_parameterized() { 3 } else { 1 };
    (1..=most).any(|any| {
        let system = task.lower(any);
        let limits = Scope { states: 4000, buffer: Some(4) };
        matches!(brute::check(task.machine(&system), limits), Answer::Unsafe(_))
    })
}

/// What numbers an adversary may put into a proof by elements.
struct Shape {
    /// By automaton, how many states it has.
    states: Vec<u32>,
    /// By cell, how many values it has.
    values: Vec<u32>,
}

impl Shape {
    fn new(task: &Task<'_>) -> Option<Shape> {
        let system = task.lower(1);
        let population = |role| match task.threads {
            Threads::Any => Population::Any,
            Threads::Declared if is_any(task, &system, role) => Population::Any,
            _ => Population::Fixed(system.instances.iter().filter(|i| i.role == role).count() as u32),
        };
        let automata = Automata::build(&system, population, || true).ok()?;
        Some(Shape {
            states: automata.automata.iter().map(|automaton| automaton.states.len() as u32).collect(),
            values: automata.values.iter().map(|values| values.len() as u32).collect(),
        })
    }

    fn kind(&self, random: &mut Random) -> u32 {
        random.below(self.states.len()) as u32
    }

    fn state(&self, kind: u32, random: &mut Random) -> u32 {
        random.below(self.states[kind as usize] as usize) as u32
    }

    fn message(&self, random: &mut Random) -> Option<Message> {
        let cell = random.below(self.values.len().max(1));
        let value = random.below(*self.values.get(cell)? as usize) as u32;
        Some(Message { own: random.percent(50), cell: cell as u32, value })
    }
}

fn is_any(task: &Task<'_>, system: &System, role: palisade_program::running::RoleId) -> bool {
    task.program.templates[system.roles[role].template.index()].count == Count::Any
}

/// The numbers in a message of the checker.
fn numbers(message: &str) -> Vec<u32> {
    let digits = message.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    digits.filter_map(|part| part.parse().ok()).collect()
}

/// Takes an item away, if there is one.
fn take<T>(items: &mut Vec<T>, random: &mut Random) {
    if !items.is_empty() {
        items.swap_remove(random.below(items.len()));
    }
}

/// One of the items, if there is one.
fn pick<'i, T>(items: &'i mut [T], random: &mut Random) -> Option<&'i mut T> {
    let at = random.below(items.len().max(1));
    items.get_mut(at)
}

// Load buffers.

/// A proof without elements: claims that hold whatever the program does, or none, and a few sets that follow some processes.
fn bare(shape: &Shape, random: &mut Random) -> LoadBuffers {
    let classes = shape.states.iter().map(|&states| {
        let merged = random.percent(20);
        (0..states).map(|state| if merged { state / 2 } else { state }).collect()
    });
    let classes: Vec<Vec<u32>> = classes.collect();
    let mut pending = Vec::new();
    if random.percent(30) {
        for (kind, &states) in (0..).zip(&shape.states) {
            for state in 0..states {
                for (cell, &values) in (0..).zip(&shape.values) {
                    pending.extend((0..values).map(|value| Pending { kind, state, cell, value }));
                }
            }
        }
    }
    let mut held = Vec::new();
    for (cell, &values) in (0..).zip(&shape.values) {
        if random.percent(40) {
            let kind = shape.kind(random);
            let classes = classes[kind as usize].iter().max().map_or(0, |most| most + 1);
            let all = random.percent(50);
            let some = (0..values).filter(|_| all).collect::<Vec<u32>>();
            held.push(Held { cell, kind, values: vec![some; classes as usize] });
        }
    }
    let mut proof = LoadBuffers { classes, pending, held, parts: Vec::new() };
    for _ in 0..random.between(1, 3) {
        let tracked = tracked(shape, random);
        proof.parts.push(Part { tracked, elements: Vec::new() });
    }
    proof
}

fn tracked(shape: &Shape, random: &mut Random) -> Option<Vec<u32>> {
    let some = random.percent(75);
    let number = |random: &mut Random| *random.pick(&[0, 0, 1, 1, 2, 3, u32::MAX]);
    some.then(|| shape.states.iter().map(|_| number(random)).collect())
}

/// The part of an element, and its place there.
fn place_of(proof: &LoadBuffers, mut element: usize) -> Option<(usize, usize)> {
    for (part, elements) in proof.parts.iter().enumerate() {
        if element < elements.elements.len() {
            return Some((part, element));
        }
        element -= elements.elements.len();
    }
    None
}

/// The adversary's next move. Whether it has one.
fn answer_load_buffers(
    proof: &mut LoadBuffers,
    refusal: Refusal,
    shape: &Shape,
    random: &mut Random,
) -> bool {
    if random.percent(4)
        && let Some(part) = pick(&mut proof.parts, random)
    {
        part.tracked = tracked(shape, random);
    }
    match refusal {
        Refusal::BadMissing(Missing::LoadBuffers(element)) => {
            let part = pick(&mut proof.parts, random);
            part.is_some_and(|part| {
                part.elements.push(element);
                true
            })
        }
        Refusal::NotClosed { element, predecessor: Missing::LoadBuffers(missing) } => {
            let (part, _) = place_of(proof, element).expect("the checker names an element of the proof");
            proof.parts[part].elements.push(missing);
            true
        }
        Refusal::Initial(element) => {
            let (part, at) = place_of(proof, element).expect("the checker names an element of the proof");
            match random.below(4) {
                0 => drop(proof.parts[part].elements.swap_remove(at)),
                1 => proof.parts[part].tracked = tracked(shape, random),
                2 => take(&mut proof.pending, random),
                _ => demand(&mut proof.parts[part].elements[at], shape, random),
            }
            true
        }
        Refusal::NotInductive(message) => {
            match numbers(&message)[..] {
                [kind, state, cell, value] => proof.pending.push(Pending { kind, state, cell, value }),
                [cell, value, state] => {
                    let claims = proof.held.iter_mut().filter(|held| held.cell == cell);
                    claims.for_each(|held| held.values[state as usize].push(value));
                }
                _ => panic!("{message}"),
            }
            true
        }
        // A claim about a cell with several writers.
        Refusal::Unfit(message) if message.contains("other writers") => {
            let cell = numbers(&message)[0];
            proof.held.retain(|held| held.cell != cell);
            true
        }
        Refusal::Unfit(_) => {
            proof.parts.iter_mut().for_each(|part| take(&mut part.elements, random));
            true
        }
        _ => false,
    }
}

/// Asks for more in an element.
fn demand(element: &mut Element, shape: &Shape, random: &mut Random) {
    let kind = shape.kind(random);
    let state = shape.state(kind, random);
    match random.below(5) {
        0 => element.processes.push(Process { kind, state, word: Vec::new() }),
        1 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.state = shape.state(process.kind, random);
            }
        }
        2 => {
            if let (Some(process), Some(message)) =
                (pick(&mut element.processes, random), shape.message(random))
            {
                process.word.insert(0, message);
            }
        }
        3 => {
            if let Some(Message { cell, value, .. }) = shape.message(random) {
                element.memory.retain(|known| known.0 != cell);
                element.memory.push((cell, value));
            }
        }
        _ => {
            let again = element.processes.clone();
            element.processes.extend(again);
        }
    }
}

// A single buffer.

fn answer_single_buffer(
    proof: &mut SingleBuffer,
    refusal: Refusal,
    shape: &Shape,
    random: &mut Random,
) -> bool {
    match refusal {
        Refusal::BadMissing(Missing::SingleBuffer(mut element)) => {
            if random.percent(30) {
                loosen(&mut element, random);
            }
            proof.elements.push(element);
        }
        Refusal::NotClosed { predecessor: Missing::SingleBuffer(mut element), .. } => {
            if random.percent(10) {
                loosen(&mut element, random);
            }
            proof.elements.push(element);
        }
        Refusal::Initial(at) => match random.below(3) {
            0 => drop(proof.elements.swap_remove(at)),
            1 => loosen(&mut proof.elements[at], random),
            _ => burden(&mut proof.elements[at], shape, random),
        },
        Refusal::Unfit(_) => take(&mut proof.elements, random),
        _ => return false,
    }
    true
}

/// Asks for less in an element.
fn loosen(element: &mut Snapshot, random: &mut Random) {
    match random.below(5) {
        0 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.state = None;
            }
        }
        1 => take(&mut element.memory, random),
        2 => {
            if let Some(cell) = pick(&mut element.memory, random) {
                cell.settled = false;
            }
        }
        3 => {
            if let Some(process) = pick(&mut element.processes, random) {
                take(&mut process.queues, random);
            }
        }
        _ => take(&mut element.processes, random),
    }
}

/// Asks for more in an element.
fn burden(element: &mut Snapshot, shape: &Shape, random: &mut Random) {
    let kind = shape.kind(random);
    let state = random.percent(70).then(|| shape.state(kind, random));
    let Some(Message { own, cell, value }) = shape.message(random) else { return };
    match random.below(5) {
        0 => element.processes.push(Viewer { kind, state, word: Vec::new(), queues: Vec::new() }),
        1 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.state = random.percent(70).then(|| shape.state(process.kind, random));
            }
        }
        2 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.word.insert(0, Message { own, cell, value });
            }
        }
        3 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.queues.retain(|queue| queue.cell != cell);
                let values = vec![value; random.below(2)];
                process.queues.push(Queue { cell, closed: random.percent(50), values });
            }
        }
        _ => {
            element.memory.retain(|known| known.cell != cell);
            element.memory.push(Cell { cell, value, settled: random.percent(50) });
        }
    }
}

// Numbers of threads.

fn answer_crowds(proof: &mut Crowds, refusal: Refusal, random: &mut Random) -> bool {
    match refusal {
        Refusal::Leaves { to: Missing::Crowd(more), .. } => {
            let (memories, threads) = (proof.memories.len() as u32, proof.threads.len() as u32);
            proof.memories.extend(more.memories);
            proof.threads.extend(more.threads);
            for mut element in more.elements {
                element.memory += memories;
                element.named.iter_mut().for_each(|thread| *thread += threads);
                element.started.iter_mut().for_each(|number| {
                    number.thread += threads;
                    // Any number holds more, and comes to an end.
                    if random.percent(40) {
                        (number.least, number.most) = (0, None);
                    }
                });
                proof.elements.push(element);
            }
        }
        Refusal::Bad(at) if random.percent(50) => drop(proof.elements.swap_remove(at)),
        Refusal::Bad(_) | Refusal::Unfit(_) | Refusal::NotInductive(_) => spoil_crowds(proof, random),
        _ => return false,
    }
    true
}

fn spoil_crowds(proof: &mut Crowds, random: &mut Random) {
    match random.below(7) {
        0 => take(&mut proof.elements, random),
        1 => {
            if let Some(value) = pick(&mut proof.memories, random).and_then(|memory| pick(memory, random)) {
                *value = (*value + 1) % 3;
            }
        }
        2 | 3 => {
            if let Some(number) =
                pick(&mut proof.elements, random).and_then(|element| pick(&mut element.started, random))
            {
                number.least = *random.pick(&[0, 1, 2, u32::MAX - 1, u32::MAX]);
                number.most = *random.pick(&[None, Some(0), Some(1), Some(2), Some(u32::MAX)]);
            }
        }
        4 => {
            if let Some(thread) = pick(&mut proof.threads, random) {
                thread.depth = *random.pick(&[0, 1, 2, u32::MAX]);
            }
        }
        5 => {
            if let Some(frame) =
                pick(&mut proof.threads, random).and_then(|thread| pick(&mut thread.frames, random))
            {
                match pick(&mut frame.registers, random) {
                    Some(value) if random.percent(50) => *value = (*value + 1) % 3,
                    _ => frame.location = random.below(8) as u32,
                }
            }
        }
        _ => {
            if let Some(stops) = pick(&mut proof.stops, random) {
                take(stops, random);
            }
        }
    }
}

// Sets of stacks.

fn spoil_stacks(proof: &mut Stacks, random: &mut Random) {
    let frames = proof.frames.len().max(1);
    match random.below(8) {
        0 => take(&mut proof.pieces, random),
        1 => {
            if let Some(value) = pick(&mut proof.memories, random).and_then(|memory| pick(memory, random)) {
                *value = (*value + 1) % 3;
            }
        }
        2 => {
            if let Some(row) = pick(&mut proof.sets, random).and_then(|set| pick(&mut set.states, random)) {
                take(row, random);
            }
        }
        3 => {
            if let Some(set) = pick(&mut proof.sets, random) {
                let to = random.percent(50).then(|| random.below(set.states.len().max(1)) as u32);
                if let Some(row) = pick(&mut set.states, random) {
                    row.push((random.below(frames) as u32, to));
                }
            }
        }
        4 => {
            if let Some(frame) = pick(&mut proof.frames, random) {
                match random.below(3) {
                    0 => frame.inherited ^= true,
                    1 => frame.opened = *random.pick(&[0, 1, 2, u32::MAX]),
                    _ => frame.frame.location = random.below(8) as u32,
                }
            }
        }
        5 => {
            if let Some(value) =
                pick(&mut proof.frames, random).and_then(|frame| pick(&mut frame.frame.registers, random))
            {
                *value = (*value + 1) % 3;
            }
        }
        6 => {
            let sets = proof.sets.len().max(1);
            if let Some(piece) = pick(&mut proof.pieces, random) {
                match pick(&mut piece.threads, random) {
                    Some(thread) => thread.1 = random.below(sets) as u32,
                    None => piece.memory = 0,
                }
            }
        }
        _ => {
            if let Some(stops) = pick(&mut proof.stops, random) {
                take(stops, random);
            }
        }
    }
}

fn spoil(proof: &mut Proof, shape: Option<&Shape>, random: &mut Random) {
    match (proof, shape) {
        (Proof::LoadBuffers(proof), Some(shape)) => match random.below(5) {
            0 => take(&mut proof.pending, random),
            1 => {
                let values = pick(&mut proof.held, random).and_then(|held| pick(&mut held.values, random));
                if let Some(values) = values {
                    take(values, random);
                }
            }
            2 => {
                if let Some(part) = pick(&mut proof.parts, random) {
                    part.tracked = tracked(shape, random);
                }
            }
            3 => {
                if let Some(part) = pick(&mut proof.parts, random) {
                    take(&mut part.elements, random);
                }
            }
            _ => {
                let element =
                    pick(&mut proof.parts, random).and_then(|part| pick(&mut part.elements, random));
                if let Some(element) = element {
                    demand(element, shape, random);
                }
            }
        },
        (Proof::SingleBuffer(proof), Some(shape)) => match pick(&mut proof.elements, random) {
            Some(element) if random.percent(40) => burden(element, shape, random),
            Some(element) if random.percent(60) => loosen(element, random),
            _ => take(&mut proof.elements, random),
        },
        (Proof::Crowds(proof), _) => spoil_crowds(proof, random),
        (Proof::Stacks(proof), _) => spoil_stacks(proof, random),
        _ => {}
    }
}

/// The proof as it comes back from a file that somebody sealed.
fn sealed(task: &Task<'_>, proof: Proof) -> Proof {
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        model: task.model,
        interlocked: task.interlocked,
        threads: task.threads,
        int_range: None,
        engine: "forger".into(),
        proof,
    };
    Certificate::from_json(&certificate.to_json()).expect("it was just written").proof
}

/// Lets the adversary move until it has no move left. How many proofs were refused.
fn attack(
    task: &Task<'_>,
    shape: Option<&Shape>,
    mut proof: Proof,
    moves: usize,
    random: &mut Random,
) -> u64 {
    for refused in 0..moves {
        let refusal = match judge(task, &proof) {
            Ok(()) => {
                let program = print::print(task.program);
                panic!("{:?} under {}: believed {proof:?}\n{program}", task.threads, task.model.name());
            }
            Err(refusal) => refusal,
        };
        let goes_on = match (&mut proof, shape) {
            (Proof::LoadBuffers(proof), Some(shape)) => answer_load_buffers(proof, refusal, shape, random),
            (Proof::SingleBuffer(proof), Some(shape)) => answer_single_buffer(proof, refusal, shape, random),
            (Proof::Crowds(proof), _) => answer_crowds(proof, refusal, random),
            (Proof::Stacks(proof), _) => {
                spoil_stacks(proof, random);
                !proof.pieces.is_empty()
            }
            _ => false,
        };
        if !goes_on {
            return refused as u64 + 1;
        }
    }
    moves as u64
}

/// Unsafe programs without threads that start threads, with how they are asked about.
fn unsafe_programs(seed: u64) -> Vec<(Program, Vec<Threads>)> {
    vec![
        (generate(Profile::Simple, 60_000 + seed), vec![Threads::Declared, Threads::Each(2), Threads::Any]),
        (generate(Profile::Cyclic, 60_000 + seed), vec![Threads::Declared]),
        (generate_parameterized(60_000 + seed), vec![Threads::Declared, Threads::Each(2)]),
    ]
}

#[test]
fn an_adversary_who_is_told_what_is_missing_is_never_believed() {
    let (mut refused, mut programs) = ([0; 3], 0);
    let seeds = seeds(8).starting_at(1);
    for seed in &seeds {
        for (program, asked) in unsafe_programs(seed) {
            for threads in asked {
                for model in Model::ALL {
                    let mut task = task(&program, model, threads);
                    let mut random = Random::new(seed);
                    if model == Model::Pso && random.percent(30) {
                        task.interlocked = Interlocked::OwnAddress;
                    }
                    if !is_unsafe(&task) {
                        continue;
                    }
                    let Some(shape) = Shape::new(&task) else { continue };
                    programs += 1;
                    for _ in 0..4 {
                        let (kind, proof) = match model {
                            Model::Pso => (1, Proof::SingleBuffer(SingleBuffer::default())),
                            Model::Sc | Model::Tso => (0, Proof::LoadBuffers(bare(&shape, &mut random))),
                        };
                        refused[kind] += attack(&task, Some(&shape), proof, 120, &mut random);
                    }
                    refused[2] += attack(&task, None, Proof::AllStates, 1, &mut random);
                }
            }
        }
    }
    let [load, single, all] = refused;
    eprintln!(
        "{programs} questions: {load} forged load-buffer proofs, {single} single-buffer ones, {all} of all states"
    );
    assert!(!seeds.suffice() || load.min(single).min(all) > 0);
}

/// The program with one digit changed or one fence taken out, one after the other.
fn variants(program: &Program) -> Vec<Program> {
    let text = print::print(program);
    let digit = |at: usize| {
        let digit = text.as_bytes()[at] - b'0';
        try_read(&format!("{}{}{}", &text[..at], (digit + 1) % 3, &text[at + 1..]))
    };
    let digits = (0..text.len()).filter(|&at| text.as_bytes()[at].is_ascii_digit()).filter_map(digit);
    let without =
        |(at, word): (usize, &str)| try_read(&format!("{}skip;{}", &text[..at], &text[at + word.len()..]));
    let fences = text.match_indices("fence;").filter_map(without);
    fences.chain(digits).take(16).collect()
}

/// Whether a program has explicit automata, or stacks or threads without end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Growing,
}

/// The proofs that engines give for a program under a model.
fn honest(task: &Task<'_>, style: Style) -> Vec<Proof> {
    let limits = || Limits::unlimited(1).with_work(3000);
    let engines: &[&dyn Engine] = match style {
        Style::Plain => &[&Dual, &Single, &Pushdown],
        Style::Growing => &[&Pushdown],
    };
    let prove = |engine: &dyn Engine| match engine.prove(&task.analysis(), &limits()) {
        (outcome, proof) if outcome.verdict == Verdict::Holds => proof,
        _ => None,
    };
    engines.iter().copied().filter_map(prove).collect()
}

#[test]
fn proofs_of_programs_that_look_much_alike_are_never_believed() {
    let mut refused = [0u64; 4];
    let kind = |proof: &Proof| match proof {
        Proof::LoadBuffers(_) => 0,
        Proof::SingleBuffer(_) => 1,
        Proof::Crowds(_) => 2,
        Proof::Stacks(_) | Proof::AllStates => 3,
    };
    let seeds = seeds(6).starting_at(1);
    for seed in &seeds {
        let programs = [
            (generate(Profile::Simple, 80_000 + seed), Style::Plain),
            (generate(Profile::Cyclic, 80_000 + seed), Style::Plain),
            (generate_parameterized(80_000 + seed), Style::Plain),
            (generate_recursive(Recursion::Free, 80_000 + seed), Style::Growing),
            (generate_recursive(Recursion::Bounded, 80_000 + seed), Style::Growing),
            (generate_spawning(80_000 + seed), Style::Growing),
        ];
        for (program, style) in &programs {
            for model in Model::ALL {
                let proofs = honest(&task(program, model, Threads::Declared), *style);
                if proofs.is_empty() {
                    continue;
                }
                for variant in variants(program) {
                    let task = task(&variant, model, Threads::Declared);
                    if !is_unsafe(&task) {
                        continue;
                    }
                    let shape = if *style == Style::Plain { Shape::new(&task) } else { None };
                    let mut random = Random::new(seed);
                    for proof in &proofs {
                        for changes in 0..4 {
                            let mut forged = proof.clone();
                            (0..changes).for_each(|_| spoil(&mut forged, shape.as_ref(), &mut random));
                            let forged = sealed(&task, forged);
                            refused[kind(proof)] += attack(&task, shape.as_ref(), forged, 12, &mut random);
                        }
                    }
                }
            }
        }
    }
    eprintln!("refused: {refused:?} by load buffers, a single buffer, numbers of threads, sets of stacks");
    assert!(!seeds.suffice() || refused.iter().all(|&refused| refused > 0));
}

// What was reported, or found by looking for the like of it.

const STORE_BUFFERING: &str = "shared x, y: bool;
    process P { x = true; if !y { cs: skip; } } process Q { y = true; if !x { cs: skip; } }
    forbid P@cs && Q@cs;";

/// The elements that the checker misses among the bad states.
fn bad_states(task: &Task<'_>, mut proof: LoadBuffers) -> LoadBuffers {
    while let Err(Refusal::BadMissing(Missing::LoadBuffers(element))) =
        judge(task, &Proof::LoadBuffers(proof.clone()))
    {
        proof.parts[0].elements.push(element);
    }
    proof
}

/// One part with `"tracked": [0, 0]`, whose only elements are the bad states: they name more processes than are followed, so nobody looked at where they come from.
#[test]
fn a_set_that_follows_fewer_processes_than_its_elements_name() {
    let program = read(STORE_BUFFERING);
    for tracked in [vec![0, 0], vec![0, 1], vec![1, 0]] {
        let task = task(&program, Model::Tso, Threads::Declared);
        let shape = Shape::new(&task).expect("it has automata");
        let classes = shape.states.iter().map(|&states| (0..states).collect()).collect();
        let mut everything = bare(&shape, &mut Random::new(0));
        everything.classes = classes;
        everything.held.clear();
        everything.pending = (0..2u32)
            .flat_map(|kind| (0..shape.states[kind as usize]).map(move |state| (kind, state)))
            .flat_map(|(kind, state)| (0..4).map(move |n| (kind, state, n / 2, n % 2)))
            .map(|(kind, state, cell, value)| Pending { kind, state, cell, value })
            .collect();
        // The bad states of a set that follows all processes.
        everything.parts = vec![Part { tracked: None, elements: Vec::new() }];
        let bad = bad_states(&task, everything.clone());
        assert!(!bad.parts[0].elements.is_empty());
        let mut forged = bad.clone();
        forged.parts[0].tracked = Some(tracked.clone());
        let judged = judge(&task, &Proof::LoadBuffers(forged));
        assert!(matches!(judged, Err(Refusal::BadMissing(_))), "{tracked:?}: {judged:?}");
    }
}

/// An element that asks for a process anywhere, and nothing else, holds every initial state.
#[test]
fn a_process_that_may_be_anywhere_may_be_at_its_start() {
    let program = read(STORE_BUFFERING);
    let task = task(&program, Model::Pso, Threads::Declared);
    for kind in 0..2 {
        for closed in [None, Some(false), Some(true)] {
            let queues =
                closed.map(|closed| Queue { cell: 0, closed, values: Vec::new() }).into_iter().collect();
            let anywhere = Viewer { kind, state: None, word: Vec::new(), queues };
            let element = Snapshot { memory: Vec::new(), processes: vec![anywhere] };
            let forged = Proof::SingleBuffer(SingleBuffer { elements: vec![element] });
            let judged = judge(&task, &forged);
            assert!(judged.is_err(), "automaton {kind}, queue {closed:?}");
            if closed.is_none() {
                assert_eq!(judged, Err(Refusal::Initial(0)));
            }
        }
    }
}

/// Numbers that no program has, in every place: a refusal, and no panic.
#[test]
fn huge_numbers_are_refused() {
    let program = read(STORE_BUFFERING);
    let huge = u32::MAX;
    let tso = task(&program, Model::Tso, Threads::Declared);
    let shape = Shape::new(&tso).expect("it has automata");
    let classes: Vec<Vec<u32>> = shape.states.iter().map(|&states| (0..states).collect()).collect();
    let element =
        Element { memory: Vec::new(), processes: vec![Process { kind: 0, state: 0, word: Vec::new() }] };
    let good = LoadBuffers {
        classes,
        parts: vec![Part { tracked: None, elements: vec![element] }],
        ..LoadBuffers::default()
    };
    let check = |change: &dyn Fn(&mut LoadBuffers)| {
        let mut proof = good.clone();
        change(&mut proof);
        assert!(judge(&tso, &Proof::LoadBuffers(proof.clone())).is_err(), "{proof:?}");
    };
    check(&|proof| proof.classes[0][0] = huge);
    check(&|proof| proof.pending.push(Pending { kind: huge, state: huge, cell: huge, value: huge }));
    check(&|proof| proof.pending.push(Pending { kind: 0, state: huge, cell: 0, value: 0 }));
    check(&|proof| proof.held.push(Held { cell: huge, kind: 0, values: Vec::new() }));
    check(&|proof| proof.held.push(Held { cell: 0, kind: huge, values: Vec::new() }));
    check(&|proof| proof.parts[0].tracked = Some(vec![huge, huge]));
    check(&|proof| proof.parts[0].tracked = Some(vec![0; 3]));
    check(&|proof| proof.parts[0].elements[0].memory.push((huge, 0)));
    check(&|proof| proof.parts[0].elements[0].memory.push((0, huge)));
    check(&|proof| proof.parts[0].elements[0].processes[0].kind = huge);
    check(&|proof| proof.parts[0].elements[0].processes[0].state = huge);
    check(&|proof| {
        let word = &mut proof.parts[0].elements[0].processes[0].word;
        word.push(Message { own: true, cell: huge, value: 0 });
    });
    check(&|proof| {
        let process = proof.parts[0].elements[0].processes[0].clone();
        proof.parts[0].elements[0].processes = vec![process; 100_000];
    });
    let pso = task(&program, Model::Pso, Threads::Declared);
    let viewer = |kind, state, queues| Viewer { kind, state, word: Vec::new(), queues };
    let viewers = [
        viewer(huge, None, Vec::new()),
        viewer(0, Some(huge), Vec::new()),
        viewer(0, None, vec![Queue { cell: huge, closed: true, values: Vec::new() }]),
        viewer(0, None, vec![Queue { cell: 0, closed: true, values: vec![huge] }]),
    ];
    for viewer in viewers {
        let element = Snapshot { memory: Vec::new(), processes: vec![viewer.clone()] };
        let judged = judge(&pso, &Proof::SingleBuffer(SingleBuffer { elements: vec![element] }));
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{viewer:?}: {judged:?}");
    }
    let many = Snapshot { memory: Vec::new(), processes: vec![viewer(0, Some(0), Vec::new()); 100_000] };
    let judged = judge(&pso, &Proof::SingleBuffer(SingleBuffer { elements: vec![many] }));
    assert!(matches!(judged, Err(Refusal::Unfit(_))), "{judged:?}");
}
