//! `terminates` and `leaves` by brute force: programs small enough to be judged by hand, and laws.

use palisade_base::{Source, Span};
use palisade_conformance::brute::{Answer, Scope};
use palisade_conformance::fair::FairGraph;
use palisade_conformance::generate::{generate_waiting, generate_waking};
use palisade_conformance::progress::Graph;
use palisade_conformance::random::Random;
use palisade_conformance::{seeds, transform};
use palisade_memory::{Machine, Model, Step};
use palisade_program::running::{Goal, GoalKind, System};
use palisade_program::written::{Program, ProgressKind};
use palisade_program::{Instantiation, lower_retrying, print};
use palisade_syntax::{Language, parse};
use palisade_trace::replay_lasso;

const LIMITS: Scope = Scope { states: 3_000, buffer: None };

fn program(text: &str) -> Program {
    parse(Language::Pal, &Source::new("test.pal", text)).unwrap_or_else(|e| panic!("{text}: {e:?}")).program
}

fn lowered(program: &Program) -> System {
    let system = lower_retrying(program, Instantiation::declared(2));
    system.check_invariants();
    system
}

/// The answers about all properties of fair runs. Runs are replayed.
fn answers(machine: Machine<'_>) -> Option<Vec<Answer>> {
    let graph = FairGraph::new(machine, LIMITS)?;
    let answers: Vec<Answer> =
        machine.system.fair.iter().map(|property| graph.answer(&property.kind)).collect();
    for answer in &answers {
        if let Answer::Unsafe(run) = answer {
            replay_lasso(machine, run).expect("the run ends with a fair cycle");
        }
    }
    Some(answers)
}

/// `+` for what holds and `-` for what does not, under each model.
fn check(text: &str, expected: [&str; 3]) {
    let system = lowered(&program(text));
    let words = Model::ALL.map(|model| {
        let answers = answers(Machine::new(&system, model)).expect("there are few states");
        answers.iter().map(|answer| if *answer == Answer::Safe { '+' } else { '-' }).collect::<String>()
    });
    assert_eq!(words, expected.map(str::to_owned), "{text}");
}

#[test]
fn straight_code_ends_and_loops_do_not() {
    check("process P { skip; } terminates;", ["+"; 3]);
    check("shared x: 0..1; process P { x = 1; fence; } terminates;", ["+"; 3]);
    check("process P { loop {} } terminates;", ["-"; 3]);
    check("process P { loop { skip; } } process Q { skip; } terminates;", ["-"; 3]);
    check("process P { let i: 0..3; while i < 3 { i = i + 1; } } terminates;", ["+"; 3]);
    // A fault is an end, and a violation of its own.
    check("process P { assert(false); } terminates;", ["+"; 3]);
}

#[test]
fn pending_stores_reach_memory_and_waits_end() {
    check("shared x: 0..1; process P { await x == 1; } process Q { x = 1; } terminates;", ["+"; 3]);
    check("shared x: 0..1; process P { while x == 0 {} } process Q { x = 1; } terminates;", ["+"; 3]);
    check(
        "shared x: 0..1; process P { w: await x == 1; } process Q { x = 1; loop {} } leaves P@w; terminates;",
        ["+-"; 3],
    );
    // It comes and goes.
    let text = "shared x: 0..1; process P { w: await x == 1; } process Q { x = 1; x = 0; } leaves P@w;";
    check(text, ["-"; 3]);
    // Nobody stores, or nobody can.
    check("shared x: 0..1; process P { w: await x == 1; } leaves P@w; terminates;", ["--"; 3]);
    check("shared x: 0..1; process P { w: assume(x == 1); } leaves P@w; terminates;", ["--"; 3]);
    check("shared x: 0..1 blocking; process P { w: x = x + 2; } leaves P@w; terminates;", ["--"; 3]);
    // Two cells: under PSO each store reaches memory by itself.
    let text = "shared x, y: 0..1; process P { await x == 1; await y == 1; } process Q { x = 1; y = 1; }
                terminates;";
    check(text, ["+"; 3]);
}

#[test]
fn a_process_may_always_look_at_the_wrong_time() {
    // x is 1 again and again.
    let text = "shared x: 0..1; process P { w: await x == 1; }
                process Q { loop { x = 1; fence; x = 0; fence; } } leaves P@w;";
    check(text, ["-"; 3]);
    // A lock that is not fair: one process takes it again and again.
    let text = "shared lock: 0..1;
                process P { w: while xchg(lock, 1) == 1 {} lock = 0; }
                process Q { loop { while xchg(lock, 1) == 1 {} lock = 0; } }
                leaves P@w;";
    check(text, ["-"; 3]);
    // If the other one comes only once, it does not.
    let text = "shared lock: 0..1;
                process P { w: while xchg(lock, 1) == 1 {} lock = 0; }
                process Q { while xchg(lock, 1) == 1 {} lock = 0; }
                leaves P@w; terminates;";
    check(text, ["++"; 3]);
}

#[test]
fn compare_and_swap_in_a_loop() {
    let text = |other: &str| {
        format!(
            "shared n: 0..3;
             process P {{ let r: 0..3; retry: loop {{ r = n; if cas(n, r, (r + 1) & 3) {{ break; }} }} }}
             process Q {{ let r: 0..3; {other} }}
             leaves P@retry;"
        )
    };
    // Somebody else fails only if one succeeds, but that may be always the same.
    check(&text("loop { r = n; cas(n, r, (r + 1) & 3); }"), ["-"; 3]);
    check(&text("r = n; cas(n, r, (r + 1) & 3);"), ["+"; 3]);
}

#[test]
fn statements_are_left_as_a_whole() {
    // Each round leaves the wait, and comes back to it.
    check("shared x: 0..1 = 1; process P { loop { w: await x == 1; } } leaves P@w;", ["+"; 3]);
    check("shared x: 0..1 = 1; process P { w: loop { await x == 1; } } leaves P@w;", ["-"; 3]);
    check("process P { a: loop { b: loop { break; } } } leaves P@a; leaves P@b;", ["-+"; 3]);
    check("process P { a: goto a; } leaves P@a;", ["-"; 3]);
    check("process P { a: skip; goto a; } leaves P@a;", ["+"; 3]);
    check("process P { a: loop { choose { skip; } or { break; } } } leaves P@a;", ["-"; 3]);
    check("process P { loop { a: choose { skip; } or { continue; } skip; } } leaves P@a;", ["+"; 3]);
    check("process P { a: { skip; skip; } b: loop {} } leaves P@a; leaves P@b;", ["+-"; 3]);
    check("shared x: 0..1; process P { x = 1; a: fence; } leaves P@a;", ["+"; 3]);
    // Procedures belong to the statement that calls them.
    let calls = |body: &str| {
        format!("proc spin() {{ loop {{}} }} proc nothing() {{ skip; }} process P {{ {body} }} leaves P@a;")
    };
    check(&calls("a: spin();"), ["-"; 3]);
    check(&calls("a: if true { spin(); }"), ["-"; 3]);
    check(&calls("a: skip; spin();"), ["+"; 3]);
    check(&calls("a: nothing(); spin();"), ["+"; 3]);
    check(&calls("loop { a: nothing(); }"), ["+"; 3]);
    check(&calls("a: loop { nothing(); }"), ["-"; 3]);
    // Two labels of one statement.
    check("shared x: 0..1; process P { a: b: await x == 1; } leaves P@a; leaves P@b;", ["--"; 3]);
}

#[test]
fn choices() {
    // A choice is not fair.
    check("process P { loop { choose { skip; } or { break; } } } terminates;", ["-"; 3]);
    // But a thread that waits for one of several things looks at all of them.
    let text = "shared x, y: 0..1; process P { choose { await x == 1; } or { await y == 1; } }
                process Q { y = 1; } terminates;";
    check(text, ["+"; 3]);
    let text = "shared x, y: 0..1; process P { w: choose { await x == 1; } or { skip; } } leaves P@w;";
    check(text, ["+"; 3]);
    // Not if it goes elsewhere each time.
    let text =
        "shared x, y: 0..1 = 1; process P { loop { choose { await x == 1; break; } or { await y == 1; } } }
                terminates;";
    check(text, ["-"; 3]);
}

#[test]
fn atomic_sections_are_one_step() {
    // Sections do not keep others from moving, nor from opening theirs.
    let text = |body: &str| {
        format!(
            "shared x: 0..1; process P {{ w: {body} }} process Q {{ loop {{ atomic {{ x = 1; }} }} }} leaves P@w;"
        )
    };
    check(&text("skip;"), ["+"; 3]);
    check(&text("atomic { skip; }"), ["+"; 3]);
    check(&text("x = 0;"), ["+"; 3]);
    check(&text("{ x = 0; fence; }"), ["+"; 3]);
    // One that stays open keeps everybody.
    let text = "shared x: 0..1; process P { w: skip; } process Q { atomic { await x == 1; } } leaves P@w;";
    check(text, ["-"; 3]);
    let text = "shared x: 0..1; process P { loop { skip; } } process Q { w: atomic { x = 1; } } leaves Q@w;";
    check(text, ["+"; 3]);
}

#[test]
fn a_lost_wake_up_needs_a_store_buffer() {
    let text = |fence: &str| {
        format!(
            "shared ready, asleep, woken: bool;
             process Sleeper {{ asleep = true; {fence} if !ready {{ w: await woken; }} }}
             process Waker {{ ready = true; {fence} if asleep {{ woken = true; }} }}
             terminates; leaves Sleeper@w;"
        )
    };
    check(&text(""), ["++", "--", "--"]);
    check(&text("fence;"), ["++"; 3]);
}

/// Laws on random programs:
/// 1. What SC violates, TSO violates, and what TSO violates, PSO violates (see `palisade_memory::fair`).
/// 2. Renaming changes nothing.
/// 3. Where there is a deadlock, the program does not terminate: a fair run from a stuck state stays stuck.
/// 4. If a program without faults terminates, then from each state the end is reachable: a fair run leads
///    there.
/// 5. If a process stays inside a statement forever, the program does not terminate.
#[test]
fn laws() {
    let (mut endless, mut differ, mut stays) = (0, 0, 0);
    let generators = [generate_waiting, generate_waking];
    let seeds = seeds(60);
    for (seed, generate) in (&seeds).into_iter().flat_map(|seed| generators.map(|generate| (seed, generate)))
    {
        let program = generate(seed);
        let system = lowered(&program);
        let text = print::print(&program);
        let bad = |answers: &Option<Vec<Answer>>| -> Option<Vec<bool>> {
            answers.as_ref().map(|all| all.iter().map(|answer| *answer != Answer::Safe).collect())
        };
        let models = Model::ALL.map(|model| bad(&answers(Machine::new(&system, model))));
        for (strong, weak) in [(0, 1), (1, 2)] {
            if let (Some(strong), Some(weak)) = (&models[strong], &models[weak]) {
                assert!(strong.iter().zip(weak).all(|(strong, weak)| weak | !strong), "seed {seed}\n{text}");
            }
        }
        let renamed = lowered(&transform::renamed(&program));
        for (model, found) in Model::ALL.into_iter().zip(&models) {
            assert_eq!(bad(&answers(Machine::new(&renamed, model))), *found, "seed {seed}\n{text}");
            let Some(found) = found else { continue };
            let graph = Graph::new(Machine::new(&system, model), LIMITS).expect("the same graph");
            let deadlock = graph.deadlock() != Answer::Safe;
            assert!(!deadlock || found[0], "seed {seed}, {}: a deadlock\n{text}", model.name());
            let faults = graph.states().iter().any(|state| state.fault.is_some());
            let end = Goal { kind: GoalKind::End, span: Span::NONE };
            let lives = graph.live(&end) == Answer::Safe;
            assert!(faults || lives || found[0], "seed {seed}, {}: no end\n{text}", model.name());
            assert!(found[0] || !found.contains(&true), "seed {seed}, {}: stays\n{text}", model.name());
            endless += usize::from(found[0]);
            stays += found[1..].iter().filter(|bad| **bad).count();
        }
        let kinds: Vec<bool> = models.iter().flatten().map(|bad| bad[0]).collect();
        differ += usize::from(kinds.contains(&true) && kinds.contains(&false));
    }
    eprintln!("{endless} violations of `terminates`, {differ} not under all models, {stays} of `leaves`");
    assert!(endless > 0 && differ > 0 && stays > 0 || !seeds.suffice());
}

/// No walk at random finds a fair cycle that the judge says does not exist.
#[test]
fn oracle_random_cycles() {
    let mut fair = 0;
    let seeds = seeds(60);
    for seed in &seeds {
        let program = generate_waiting(seed);
        let system = lowered(&program);
        let mut random = Random::new(seed ^ 0x6c61_7373_6f73);
        for model in Model::ALL {
            let machine = Machine::new(&system, model);
            let Some(graph) = FairGraph::new(machine, LIMITS) else { continue };
            let holds: Vec<bool> =
                system.fair.iter().map(|property| graph.answer(&property.kind) == Answer::Safe).collect();
            for _ in 0..20 {
                let Some((start, steps)) = random_cycle(&graph, &mut random) else { continue };
                let Ok(states) = machine.is_fair_cycle(&graph.states()[start], &steps) else { continue };
                fair += 1;
                for (property, holds) in system.fair.iter().zip(&holds) {
                    let violated = machine.violates_forever(&states, &steps, &property.kind);
                    let text = print::print(&program);
                    assert!(!(violated && *holds), "seed {seed}, {}: {property:?}\n{text}", model.name());
                }
            }
        }
    }
    assert!(fair > 0 || !seeds.suffice());
}

/// A walk from a random state until it comes to a state again, and on for a while.
fn random_cycle(graph: &FairGraph<'_>, random: &mut Random) -> Option<(usize, Vec<Step>)> {
    let mut at = random.below(graph.states().len());
    let mut walk = Vec::new();
    for _ in 0..60 {
        let after = &graph.after()[at];
        if after.is_empty() {
            return Some((at, Vec::new()));
        }
        let (step, next) = *random.pick(after);
        walk.push((at, step));
        at = next;
    }
    let start = walk.iter().position(|(state, _)| *state == at)?;
    Some((at, walk[start..].iter().map(|(_, step)| *step).collect()))
}

#[test]
fn the_generator_states_what_is_judged() {
    let programs = (0..40).map(generate_waiting);
    let labelled = |program: &Program| {
        program.progress.iter().any(|progress| matches!(progress.kind, ProgressKind::Leaves { .. }))
    };
    assert!(programs.filter(labelled).count() > 5);
}
