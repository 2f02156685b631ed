//! Forged proofs are never believed.
//!
//! For programs that are known to be unsafe, an adversary looks for a proof that the checker nevertheless
//! accepts:
//! - It starts from an empty proof, or from the proof of a similar safe program.
//! - It adds whatever the checker reports as missing as a new element.
//! - Where the checker finds an initial or bad state, it changes that element or the claims about it.
//!
//! `PALISADE_SEEDS` sets the number of programs of each kind. `PALISADE_SEED` runs a single one.

mod load_buffers;
mod reported;
mod sc;
mod single_buffer;

use load_buffers::{answer_load_buffers, bare, demand, tracked};
use palisade_automata::{Automata, Population};
use palisade_base::{Id, Source};
use palisade_certificate::{Certificate, Refusal, verify};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::generate::{
    Recursion, generate_parameterized, generate_recursive, generate_spawning,
};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::{Dual, Sb};
use palisade_engine::proof::SingleBuffer;
use palisade_engine::{Bound, Engine, Limits, Options, Proof, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_program::print;
use palisade_program::running::System;
use palisade_program::written::{Count, Program};
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};
use sc::{answer_crowds, spoil_crowds, spoil_stacks};
use single_buffer::{answer_single_buffer, burden, loosen};

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

/// Whether brute force shows the task to be unsafe. For any number of threads, a few are tried.
fn is_unsafe(task: &Task<'_>) -> bool {
    let most = if task.is_parameterized() { 3 } else { 1 };
    (1..=most).any(|any| {
        let system = task.lower(any);
        let limits = Scope { states: 4000, buffer: Some(4) };
        matches!(brute::check(task.machine(&system), limits), Answer::Unsafe(_))
    })
}

/// A letter with one value.
struct Message {
    own: bool,
    cell: u32,
    value: u32,
}

/// The numbers that an adversary may put into a proof with elements.
struct Shape {
    /// The number of states of each automaton.
    states: Vec<u32>,
    /// The number of values of each cell.
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
        let automata = automata.with_delayed_stores(task.model, task.interlocked).0.unwrap_or(automata);
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

/// Removes an item, if there is one.
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

fn spoil(proof: &mut Proof, shape: Option<&Shape>, random: &mut Random) {
    match (proof, shape) {
        (Proof::LoadBuffers(proof), Some(shape)) => match random.below(6) {
            5 => {
                // One set becomes another, everywhere.
                if let Some(set) = pick(&mut proof.sets, random) {
                    match set.len() {
                        2.. if random.percent(50) => take(set, random),
                        _ => set.push(random.below(4) as u32),
                    }
                    set.sort_unstable();
                    set.dedup();
                }
            }
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
                    demand(&mut proof.sets, element, shape, random);
                }
            }
        },
        (Proof::SingleBuffer(proof), Some(shape)) => match random.below(10) {
            0 => proof.rewritten ^= true,
            1 => {
                // One set becomes another, everywhere.
                if let Some(set) = pick(&mut proof.sets, random) {
                    match set.len() {
                        2.. if random.percent(50) => take(set, random),
                        _ => set.push(random.below(4) as u32),
                    }
                    set.sort_unstable();
                    set.dedup();
                }
            }
            2 => {
                // Two states become one.
                if let Some(classes) = pick(&mut proof.classes, random)
                    && !classes.is_empty()
                {
                    let class = classes[random.below(classes.len())];
                    let place = random.below(classes.len());
                    classes[place] = class;
                }
            }
            _ => match pick(&mut proof.elements, random) {
                Some(element) if random.percent(40) => burden(&mut proof.sets, element, shape, random),
                Some(element) if random.percent(60) => loosen(element, random),
                _ => take(&mut proof.elements, random),
            },
        },
        (Proof::Crowds(proof), _) => spoil_crowds(proof, random),
        (Proof::Stacks(proof), _) => spoil_stacks(proof, random),
        _ => {}
    }
}

/// The proof, written to a sealed file and read back.
fn sealed(task: &Task<'_>, proof: Proof) -> Proof {
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        build: None,
        model: task.model,
        interlocked: task.interlocked,
        threads: task.threads,
        int_range: None,
        constants: Default::default(),
        engine: "forger".into(),
        deadlocks: false,
        ranking: None,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        proof,
    };
    Certificate::from_json(&certificate.to_json()).expect("it was just written").proof
}

/// Lets the adversary move until it has no move left. Returns how many proofs were rejected.
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

/// Programs, and the numbers of threads to try.
fn unsafe_programs(seed: u64) -> Vec<(Program, Vec<Threads>)> {
    vec![
        (generate(Profile::Simple, 60_000 + seed), vec![Threads::Declared, Threads::Each(2), Threads::Any]),
        (generate(Profile::Cyclic, 60_000 + seed), vec![Threads::Declared]),
        (generate_parameterized(60_000 + seed), vec![Threads::Declared, Threads::Each(2)]),
        (generate(Profile::Choices, 60_000 + seed), vec![Threads::Declared, Threads::Any]),
        (generate_spawning(60_000 + seed), vec![Threads::Declared]),
    ]
}

#[test]
fn an_adversary_that_learns_what_is_missing_is_never_believed() {
    let (mut refused, mut programs) = ([0; 3], 0);
    let seeds = seeds(8).starting_at(1);
    for seed in &seeds {
        for (program, choices) in unsafe_programs(seed) {
            for threads in choices {
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
                            Model::Pso => {
                                let rewritten = seed % 2 == 0;
                                (
                                    1,
                                    Proof::SingleBuffer(SingleBuffer {
                                        rewritten,
                                        ..SingleBuffer::default()
                                    }),
                                )
                            }
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
    assert!(load.min(single).min(all) > 0 || !seeds.suffice());
}

/// All variants of the program with one digit changed or one fence removed.
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

/// Whether a program has explicit automata, or unbounded stacks or threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Growing,
}

/// The proofs that engines give for a program under a model.
fn honest(task: &Task<'_>, style: Style) -> Vec<Proof> {
    let limits = || Limits::unlimited(1).with_work(3000);
    let engines: &[&dyn Engine] = match style {
        Style::Plain => &[&Dual, &Sb, &Pushdown],
        Style::Growing => &[&Pushdown],
    };
    let prove = |engine: &dyn Engine| match engine.prove(&task.analysis(), &limits()) {
        (outcome, proof) if outcome.verdict == Verdict::Holds => proof,
        _ => None,
    };
    engines.iter().copied().filter_map(prove).collect()
}

#[test]
fn proofs_of_similar_programs_are_never_believed() {
    let mut refused = [0u64; 4];
    let kind = |proof: &Proof| match proof {
        Proof::LoadBuffers(_) => 0,
        Proof::SingleBuffer(_) => 1,
        Proof::Crowds(_) => 2,
        Proof::Stacks(_) | Proof::AllStates | Proof::Identities(_) => 3,
    };
    let seeds = seeds(6).starting_at(1);
    for seed in &seeds {
        let programs = [
            (generate(Profile::Simple, 80_000 + seed), Style::Plain),
            (generate(Profile::Cyclic, 80_000 + seed), Style::Plain),
            (generate(Profile::Choices, 80_000 + seed), Style::Plain),
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
    assert!(refused.iter().all(|&refused| refused > 0) || !seeds.suffice());
}
