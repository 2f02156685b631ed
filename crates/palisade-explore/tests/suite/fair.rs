//! `terminates` and `leaves`: the engine against brute force, on random programs in which processes wait.

use palisade_base::Source;
use palisade_conformance::brute::{Answer, Scope};
use palisade_conformance::fair::FairGraph;
use palisade_conformance::generate::{generate_waiting, generate_waking};
use palisade_conformance::{seeds, shrink};
use palisade_engine::{
    Engine, FairProgress, Limits, Options, Outcome, Reason, Task, Threads, Verdict, Witness,
};
use palisade_explore::Progress;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::written::{Program, Progress as Stated};
use palisade_program::{Instantiation, Waits, lower_retrying, print};
use palisade_trace::replay_lasso;

const SCOPE: Scope = Scope { states: 3_000, buffer: None };

fn verdict(program: &Program, model: Model, jobs: usize) -> Verdict {
    let options = Options { waits: Waits::Retry, max_buffer: 2, ..Options::default() };
    let (threads, interlocked) = (Threads::Declared, Interlocked::default());
    let task = Task { program, threads, model, interlocked, options };
    let limits = Limits::unlimited(jobs).with_work(20_000);
    let outcome: Outcome<FairProgress> = Progress.check(&task.analysis(), &limits);
    outcome.verdict
}

/// What is wrong with the engine's answer about a program with one property of fair runs.
fn problem(program: &Program, model: Model) -> Option<String> {
    let system = lower_retrying(program, Instantiation::declared(2));
    let machine = Machine::new(&system, model);
    let found = verdict(program, model, 1);
    if found != verdict(program, model, 2) {
        return Some("two jobs answer otherwise".to_owned());
    }
    if let Verdict::Violated(Witness { run, .. }) = &found
        && let Err(error) = replay_lasso(machine, run)
    {
        return Some(format!("no lasso: {error}"));
    }
    if let Verdict::Unknown(Reason::Without { bound, .. }) = &found
        && let [Reason::BufferBound(bound)] = bound.bounds()
        && let Some(graph) = FairGraph::within(machine, Scope { buffer: Some(*bound), ..SCOPE })
        && system.fair.iter().any(|property| graph.answer(&property.kind) != Answer::Safe)
    {
        return Some("a violation within the bound".to_owned());
    }
    // There may be infinitely many states.
    let graph = FairGraph::new(machine, SCOPE)?;
    let holds = system.fair.iter().all(|property| graph.answer(&property.kind) == Answer::Safe);
    match found {
        Verdict::Holds if !holds => Some("a violation is missed".to_owned()),
        Verdict::Violated(_) if holds => Some("a violation that does not exist".to_owned()),
        Verdict::Unknown(reason) if reason.what_ran_out().is_some() => None,
        Verdict::Unknown(reason) => {
            let bounded = matches!(reason, Reason::Without { .. });
            (!bounded || model == Model::Sc).then(|| reason.to_string())
        }
        _ => None,
    }
}

/// The program once per property of fair runs, with only this one.
fn one_by_one(program: &Program) -> Vec<Program> {
    let fair = program.progress.iter().filter(|stated| stated.kind.is_fair());
    let only = |stated: &Stated| Program { progress: vec![stated.clone()], ..program.clone() };
    fair.map(only).collect()
}

fn differential(generate: fn(u64) -> Program, seed: u64) {
    for program in one_by_one(&generate(seed)) {
        for model in Model::ALL {
            if let Some(found) = problem(&program, model) {
                let fails = |program: &Program| problem(program, model).is_some();
                let small = shrink(program.clone(), &fails);
                let again = problem(&small, model).unwrap_or_default();
                panic!("seed {seed}, {}: {found}; smaller: {again}\n{}", model.name(), print::print(&small));
            }
        }
    }
}

#[test]
fn differential_random_programs() {
    seeds(60).into_iter().for_each(|seed| differential(generate_waiting, seed));
}

#[test]
fn differential_programs_that_mostly_end() {
    seeds(60).into_iter().for_each(|seed| differential(generate_waking, seed));
}

fn program(text: &str) -> Program {
    let source = Source::new("p.pal", text);
    let parsed = palisade_syntax::parse(palisade_syntax::Language::Pal, &source);
    parsed.unwrap_or_else(|errors| panic!("{text}: {errors:?}")).program
}

/// Programs in which one detail of the definition decides.
#[test]
fn details() {
    let check = |text: &str, holds: bool| {
        for model in Model::ALL {
            let program = program(text);
            assert_eq!(problem(&program, model), None, "{}: {text}", model.name());
            let found = verdict(&program, model, 1);
            assert_eq!(found == Verdict::Holds, holds, "{}: {text}: {found:?}", model.name());
        }
    };
    // What is inside a statement.
    check("shared x: 0..1 = 1; process P { loop { w: await x == 1; } } leaves P@w;", true);
    check("shared x: 0..1 = 1; process P { w: loop { await x == 1; } } leaves P@w;", false);
    check("process P { a: loop { b: loop { break; } } } leaves P@b;", true);
    check("process P { a: skip; goto a; } leaves P@a;", true);
    check("proc f() { skip; } process P { loop { a: f(); } } leaves P@a;", true);
    check("proc f() { loop {} } process P { a: f(); } leaves P@a;", false);
    check("proc f() { loop {} } process P { a: skip; f(); } leaves P@a;", true);
    // A section is one step, unless it stays open. Here it can be closed again and again, or stay open.
    let sections = |inside: &str| {
        format!("process P {{ loop {{ atomic {{ {inside} }} }} }} process Q {{ w: skip; }} leaves Q@w;")
    };
    check(&sections("skip;"), true);
    check(&sections("loop { choose { break; } or { skip; } }"), false);
    // Who waits looks at all alternatives.
    let choice = "shared x, y: 0..1; process P { choose { await x == 1; } or { await y == 1; } }
                  process Q { y = 1; loop {} } leaves P@w;";
    check(&choice.replace("{ choose", "{ w: choose"), true);
    check("process P { w: loop { choose { skip; } or { break; } } } leaves P@w;", false);
    // Registers that are never read again.
    let dead =
        "shared x: 0..1; process P { let r: 0..1; loop { r = x; x = 1; fence; x = 0; fence; } } terminates;";
    check(dead, false);
}

#[test]
fn bounds_are_stated() {
    let check = |text: &str, model: Model, expected: &str| {
        let program = program(text);
        let word = match verdict(&program, model, 1) {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Violated(_) => "violated".to_owned(),
            Verdict::Unknown(reason) => reason.to_string(),
        };
        assert_eq!(word, expected, "{text}");
    };
    let without = |bound: &str| format!("no violation of `terminates` or `leaves` {bound}");
    // A process that stores forever. Its buffer may grow, but the other process comes to its end.
    let endless = "shared x: 0..1; process P { loop { x = 1; } } process Q { w: await x == 1; } leaves Q@w;";
    check(endless, Model::Sc, "holds");
    check(endless, Model::Tso, &without("with buffers up to 2"));
    // A violation within the bound is one.
    let waits = "shared x, y: 0..1; process P { loop { x = 1; } } process Q { w: await y == 1; } leaves Q@w;";
    check(waits, Model::Sc, "violated");
    check(waits, Model::Tso, "violated");
    let forever = "shared x: 0..1; process P { loop { x = 1; } } terminates;";
    Model::ALL.into_iter().for_each(|model| check(forever, model, "violated"));
    // A stack without bound has no cycle.
    let deep = "proc f() { f(); } process P { f(); } terminates;";
    check(deep, Model::Sc, &without("with up to 256 nested calls"));
    let deep = "proc f() { f(); } process P { l: f(); } process Q { loop {} } leaves P@l;";
    check(deep, Model::Sc, &without("with up to 256 nested calls"));
    let starts = "process P { loop { spawn Q; } } process Q on spawn { skip; } terminates;";
    check(starts, Model::Sc, "too many processes are started to know whether every run ends");
}
