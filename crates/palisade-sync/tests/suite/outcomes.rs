//! Random programs: the outcomes of exhaustive checks are those of the machine of `palisade-memory`, by brute
//! force, under every model. Those of random schedules are among them.

use palisade_base::Source;
use palisade_conformance::brute::{self, Observed, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_memory::Machine;
use palisade_program::{Instantiation, lower};
use palisade_sync::sync::Arc;
use palisade_sync::sync::atomic::{AtomicUsize, Ordering::*, fence};
use palisade_sync::{
    Checker, Coverage, Exhaustive, Interlocked, Machines, Model, Outcome, Pct, Schedules, thread,
};
use palisade_syntax::{Language, parse};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Mutex;

const CELLS: usize = 2;

/// One operation. Loads, exchanges and compare-and-swaps set the next register.
#[derive(Clone, Copy, Debug)]
enum Op {
    Load(usize),
    Store(usize, usize),
    /// Stores the last register.
    Copy(usize),
    Release(usize, usize),
    Locked(usize, usize),
    Exchange(usize, usize),
    Cas(usize, usize, usize),
    Fence,
    StoreFence,
    /// Skips the next operation, unless the last register is 0.
    Unless,
}

fn random_thread(random: &mut Random, length: usize) -> Vec<Op> {
    let mut code = Vec::new();
    let mut loaded = false;
    while code.len() < length {
        let (cell, value) = (random.below(CELLS), 1 + random.below(2));
        let op = match random.below(24) {
            0..9 => Op::Load(cell),
            9..18 => Op::Store(cell, value),
            18 if loaded => Op::Copy(cell),
            19 => Op::Release(cell, value),
            20 => Op::Exchange(cell, value),
            21 => Op::Cas(cell, random.below(2), value),
            22 if random.percent(50) => Op::Locked(cell, value),
            22 => Op::StoreFence,
            23 if random.percent(50) => Op::Fence,
            23 if loaded && code.len() + 1 < length => {
                code.extend([Op::Unless, Op::Store(cell, value)]);
                continue;
            }
            _ => continue,
        };
        loaded |= matches!(op, Op::Load(_) | Op::Exchange(..) | Op::Cas(..));
        code.push(op);
    }
    code
}

fn random_program(seed: u64) -> Vec<Vec<Op>> {
    let mut random = Random::new(seed);
    let threads = 2 + usize::from(random.percent(25));
    (0..threads)
        .map(|_| {
            let length = if threads == 2 { 2 + random.below(4) } else { 1 + random.below(2) };
            random_thread(&mut random, length)
        })
        .collect()
}

/// How many registers a thread sets.
fn registers(code: &[Op]) -> usize {
    code.iter().filter(|op| matches!(op, Op::Load(_) | Op::Exchange(..) | Op::Cas(..))).count()
}

/// The program as text, and the names of what is observed.
fn text(program: &[Vec<Op>]) -> (String, Vec<String>) {
    let mut text = "shared x0, x1: 0..2;\n".to_owned();
    let mut names = Vec::new();
    for (number, code) in program.iter().enumerate() {
        let mut next = 0;
        let mut close = false;
        let _ = writeln!(text, "process P{number} {{");
        for op in code {
            let ends = std::mem::replace(&mut close, matches!(op, Op::Unless));
            let last = format!("r{}", next.max(1) - 1);
            let line = match op {
                Op::Load(cell) => format!("let r{next} = x{cell};"),
                Op::Store(cell, value) => format!("x{cell} = {value};"),
                Op::Copy(cell) => format!("x{cell} = {last};"),
                Op::Release(cell, value) => format!("sfence; x{cell} = {value};"),
                Op::Locked(cell, value) => format!("sfence; xchg(x{cell}, {value});"),
                Op::Exchange(cell, value) => format!("let r{next} = xchg(x{cell}, {value});"),
                Op::Cas(cell, old, new) => format!("let r{next} = cas(x{cell}, {old}, {new});"),
                Op::Fence => "fence;".to_owned(),
                Op::StoreFence => "sfence;".to_owned(),
                Op::Unless => format!("if {last} == 0 {{"),
            };
            if registers(&[*op]) == 1 {
                names.push(format!("P{number}.r{next}"));
                next += 1;
            }
            let _ = writeln!(text, "    {line}{}", if ends { " }" } else { "" });
        }
        text.push_str("}\n");
    }
    names.extend((0..CELLS).map(|cell| format!("x{cell}")));
    (text, names)
}

/// Runs the code of a thread, and returns its registers.
fn run(code: &[Op], cells: &[AtomicUsize]) -> Vec<i64> {
    let mut registers: Vec<usize> = Vec::new();
    let mut skip = false;
    for op in code {
        if std::mem::take(&mut skip) {
            continue;
        }
        match *op {
            Op::Load(cell) => registers.push(cells[cell].load(Acquire)),
            Op::Store(cell, value) => cells[cell].store(value, Relaxed),
            Op::Copy(cell) => cells[cell].store(*registers.last().unwrap(), Relaxed),
            Op::Release(cell, value) => cells[cell].store(value, Release),
            Op::Locked(cell, value) => cells[cell].store(value, SeqCst),
            Op::Exchange(cell, value) => registers.push(cells[cell].swap(value, Acquire)),
            Op::Cas(cell, old, new) => {
                let done = cells[cell].compare_exchange(old, new, Acquire, Relaxed).is_ok();
                registers.push(usize::from(done));
            }
            Op::Fence => fence(SeqCst),
            Op::StoreFence => fence(Release),
            Op::Unless => skip = *registers.last().unwrap() != 0,
        }
    }
    registers.into_iter().map(|value| value as i64).collect()
}

/// The outcomes of a check of the program, and its report.
fn outcomes(program: &[Vec<Op>], checker: &Checker, what: &str) -> (BTreeSet<Vec<i64>>, Outcome) {
    let seen: Arc<Mutex<BTreeSet<Vec<i64>>>> = Arc::default();
    let (program, into) = (program.to_vec(), seen.clone());
    let outcome = checker.check(move || {
        let cells: Arc<Vec<AtomicUsize>> = Arc::new((0..CELLS).map(|_| AtomicUsize::new(0)).collect());
        let threads: Vec<_> = program
            .iter()
            .map(|code| {
                let (code, cells) = (code.clone(), cells.clone());
                thread::spawn(move || run(&code, &cells))
            })
            .collect();
        let mut values: Vec<i64> =
            threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect();
        values.extend(cells.iter().map(|cell| cell.load(Relaxed) as i64));
        into.lock().unwrap().insert(values);
    });
    assert!(outcome.is_fine(), "{what}: {outcome}");
    let complete = matches!(outcome.coverage, Coverage::Complete | Coverage::Sampled);
    assert!(complete, "{what}: {outcome}");
    (std::mem::take(&mut *seen.lock().unwrap()), outcome)
}

fn check(model: Model, interlocked: Interlocked) {
    let seeds = seeds(120);
    let mut weaker = 0;
    for seed in &seeds {
        let program = random_program(seed);
        let (text, names) = text(&program);
        let what = format!("seed {seed}, {model:?}, {interlocked:?}:\n{text}");
        let parsed = parse(Language::Pal, &Source::new("test.pal", &text))
            .unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}\n{text}"));
        let system = lower(&parsed.program, Instantiation { any: 1, every: None });
        let observed: Vec<Observed> = names.iter().map(|name| Observed::named(&system, name)).collect();
        let machine = Machine { interlocked, ..Machine::new(&system, model) };
        let expected = brute::outcomes(machine, Scope::states(500_000), &observed).expect("it is small");
        let sc = brute::outcomes(Machine::new(&system, Model::Sc), Scope::states(500_000), &observed);
        weaker += u32::from(sc.as_ref() != Some(&expected));
        // Registers behind a branch that is not taken do not exist in Rust; no operation there sets one.
        let checker = Checker::new().model(model).interlocked(interlocked);
        let exhaustive = checker.clone().strategy(Exhaustive).schedules(u64::MAX);
        assert_eq!(outcomes(&program, &exhaustive, &what).0, expected, "{what}");
        for strategy in [Schedules::Random, Pct { depth: 3 }] {
            let (sampled, _) = outcomes(&program, &checker.clone().strategy(strategy).schedules(30), &what);
            assert!(sampled.is_subset(&expected), "{what}: {strategy:?}");
        }
    }
    println!("{weaker} programs have outcomes that need store buffers");
    assert!(!seeds.suffice() || model == Model::Sc || weaker >= 10, "{weaker}");
}

#[test]
fn differential_sc() {
    check(Model::Sc, Interlocked::WholeBuffer);
}

#[test]
fn differential_tso() {
    check(Model::Tso, Interlocked::WholeBuffer);
}

#[test]
fn differential_pso() {
    check(Model::Pso, Interlocked::WholeBuffer);
}

#[test]
fn differential_pso_own_address() {
    check(Model::Pso, Interlocked::OwnAddress);
}

/// Every partial order is run once. So the executions that are found to be sequentially consistent are as many
/// as there are without store buffers.
#[test]
fn differential_sequential_consistency() {
    let (mut relaxed, mut consistent) = (0, 0);
    let seeds = seeds(400);
    for seed in &seeds {
        let mut program = random_program(seed);
        // The search orders compare-and-swaps that fail, although they only read.
        program
            .iter_mut()
            .for_each(|code| code.retain(|op| !matches!(op, Op::Cas(..) | Op::Copy(_) | Op::Unless)));
        let run = |model: Model| {
            let checker = Checker::new().strategy(Exhaustive).schedules(u64::MAX).model(model);
            outcomes(&program, &checker, &format!("seed {seed}, {model:?}: {program:?}")).1
        };
        let sc = run(Model::Sc).executions;
        for model in [Model::Tso, Model::Pso] {
            let outcome = run(model);
            let late = outcome.relaxed.as_ref().map_or(0, |relaxed| relaxed.executions);
            assert_eq!(outcome.executions - late, sc, "seed {seed}, {model:?}: {program:?}\n{outcome}");
            relaxed += late;
            consistent += sc;
        }
    }
    assert!(!seeds.suffice() || (relaxed > 100 && consistent > 1000), "{relaxed} {consistent}");
}

/// A thread panics if it ends with some values of its registers, or the first thread at the end of the test:
/// whether this is possible without store buffers, according to the report and to brute force.
#[test]
fn differential_machines() {
    let (mut any, mut only) = (0, 0);
    let seeds = seeds(400);
    for seed in &seeds {
        let program = random_program(seed / 2);
        let (text, mut names) = text(&program);
        let in_thread = seed % 2 == 0;
        if in_thread {
            names.truncate(registers(&program[0]));
        }
        let parsed = parse(Language::Pal, &Source::new("test.pal", &text)).expect("it is well-formed");
        let system = lower(&parsed.program, Instantiation { any: 1, every: None });
        let observed: Vec<Observed> = names.iter().map(|name| Observed::named(&system, name)).collect();
        let [sc, pso] = [Model::Sc, Model::Pso].map(|model| {
            let machine = Machine::new(&system, model);
            brute::outcomes(machine, Scope::states(500_000), &observed).expect("it is small")
        });
        // Preferably one that needs store buffers.
        let wrong = pso.difference(&sc).next().or(sc.first()).expect("there is an outcome").clone();
        let forbidden = wrong.clone();
        let checker = Checker::new().strategy(Exhaustive).schedules(u64::MAX).model(Model::Pso);
        let outcome = checker.check(move || {
            let cells: Arc<Vec<AtomicUsize>> = Arc::new((0..CELLS).map(|_| AtomicUsize::new(0)).collect());
            let threads: Vec<_> = (program.iter().cloned().enumerate())
                .map(|(number, code)| {
                    let (cells, forbidden) = (cells.clone(), forbidden.clone());
                    thread::spawn(move || {
                        let registers = run(&code, &cells);
                        assert!(!in_thread || number > 0 || registers != forbidden, "the forbidden values");
                        registers
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("a panic ends the execution"));
            let mut values: Vec<i64> = joined.flatten().collect();
            values.extend(cells.iter().map(|cell| cell.load(Relaxed) as i64));
            assert!(in_thread || values != forbidden, "the forbidden values");
        });
        let what = || format!("seed {seed}: {wrong:?}\n{text}{outcome}");
        let failed = outcome.failed.as_ref().unwrap_or_else(|| panic!("{}", what()));
        let is_possible = sc.contains(&wrong);
        let expected = if is_possible { Machines::Any } else { Machines::OnlyBuffered };
        assert_eq!(failed.machines, Some(expected), "{}", what());
        any += u32::from(is_possible);
        only += u32::from(!is_possible);
    }
    assert!(!seeds.suffice() || (any > 100 && only > 20), "{any} {only}");
}
