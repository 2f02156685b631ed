//! Deadlocks and `live` by brute force: programs small enough to be judged by hand, and laws.

use palisade_base::Source;
use palisade_conformance::brute::{Answer, Scope};
use palisade_conformance::generate::generate_waiting;
use palisade_conformance::progress::Graph;
use palisade_conformance::random::Random;
use palisade_conformance::{seeds, transform};
use palisade_memory::{Machine, Model};
use palisade_program::written::{Program, StmtKind};
use palisade_program::{Instantiation, lower_retrying, print};
use palisade_syntax::{Language, parse};
use palisade_trace::take;

const LIMITS: Scope = Scope { states: 3_000, buffer: None };

fn program(text: &str) -> Program {
    parse(Language::Pal, &Source::new("test.pal", text)).unwrap_or_else(|e| panic!("{text}: {e:?}")).program
}

/// The answers under a model: about deadlocks first, then about each `live` property.
fn answers(program: &Program, model: Model) -> Option<Vec<Answer>> {
    let system = lower_retrying(program, Instantiation::declared(2));
    let machine = Machine::new(&system, model);
    let graph = Graph::new(machine, LIMITS)?;
    // Thread by thread or all together: the same states are stuck.
    for (state, stuck) in graph.states().iter().zip(graph.stuck()) {
        let drained = state.threads.iter().all(|thread| thread.buffer.is_empty());
        assert_eq!(machine.is_stuck(state), stuck, "{}\n{state:?}", print::print(program));
        assert!(drained || !stuck || state.section.is_some(), "a pending store can reach memory");
    }
    let answers: Vec<Answer> =
        std::iter::once(graph.deadlock()).chain(system.goals.iter().map(|goal| graph.live(goal))).collect();
    for answer in &answers {
        if let Answer::Unsafe(run) = answer {
            take(machine, run).expect("the run is one of the machine");
        }
    }
    Some(answers)
}

/// `+` for what holds and `-` for what does not, under each model.
fn check(text: &str, expected: [&str; 3]) {
    let program = program(text);
    let words = Model::ALL.map(|model| {
        let answers = answers(&program, model).expect("there are few states");
        answers.iter().map(|answer| if *answer == Answer::Safe { '+' } else { '-' }).collect::<String>()
    });
    assert_eq!(words, expected.map(str::to_owned), "{text}");
}

#[test]
fn who_ends_or_loops_is_not_stuck() {
    check("process P { skip; }", ["+"; 3]);
    check("shared x: 0..1; process P { x = 1; } live end;", ["++"; 3]);
    check("process P { loop {} } live end;", ["+-"; 3]);
    check("process P { loop { skip; } }", ["+"; 3]);
    check("process P { while true {} }", ["+"; 3]);
    check("shared x: 0..1; process P { loop { x = 1 - x; fence; } } live x == 1; live x == 0;", ["+++"; 3]);
}

#[test]
fn who_waits_in_vain_is_stuck() {
    for wait in [
        "await x == 1;",
        "while x == 0 {}",
        "assume(x == 1);",
        "while xchg(x, 0) == 0 {}",
        "await cas(x, 1, 0);",
    ] {
        check(&format!("shared x: 0..1; process P {{ {wait} }} live end;"), ["--"; 3]);
        // Someone else can still move.
        check(
            &format!("shared x: 0..1; process P {{ {wait} }} process Q {{ loop {{}} }} live P@end;"),
            ["+-"; 3],
        );
    }
    check("shared x: 0..1; process P { await x == 1; } process Q { x = 1; } live end;", ["++"; 3]);
    // The condition was read too early.
    check("shared x: 0..1; process P { assume(x == 1); } process Q { x = 1; } live end;", ["--"; 3]);
    // A store into a blocking domain.
    check("shared x: 0..1 blocking; process P { x = x + 2; }", ["-"; 3]);
    // Inside an atomic block nobody else can end the wait.
    check("shared x: 0..1; process P { atomic { await x == 1; } } process Q { x = 1; }", ["-"; 3]);
    check("shared x: 0..1; process P { await x == 1; atomic { skip; } } process Q { x = 1; }", ["+"; 3]);
}

#[test]
fn attempts_are_made_again_and_again() {
    // Several loads, and values that come and go.
    let text =
        "shared x, y: 0..1; process P { await x == 1 && y == 1; } process Q { x = 1; y = 1; } live end;";
    check(text, ["++"; 3]);
    let text = "shared x: 0..1; process P { await x == 1; } process Q { x = 1; x = 0; } live end;";
    check(text, ["--"; 3]);
    // What passes a wait moves, even if it comes back to it.
    check("shared x: 0..1 = 1; process P { loop { await x == 1; } }", ["+"; 3]);
}

#[test]
fn a_choice_is_made_with_its_first_step() {
    let text =
        "shared x, y: 0..1; process P { choose { await x == 1; } or { await y == 1; } } process Q { y = 1; }";
    check(text, ["+"; 3]);
    // A label is a place of its own.
    let text = "shared x, y: 0..1; process P { choose { a: await x == 1; } or { await y == 1; } } process Q { y = 1; }";
    check(text, ["-"; 3]);
}

#[test]
fn locks_in_opposite_order() {
    let text = |first: &str, second: &str| {
        format!(
            "shared a, b: bool;
             process P {{ while xchg(a, true) {{}} while xchg(b, true) {{}} b = false; a = false; }}
             process Q {{ while xchg({first}, true) {{}} while xchg({second}, true) {{}} {second} = false; {first} = false; }}
             live end;"
        )
    };
    check(&text("a", "b"), ["++"; 3]);
    check(&text("b", "a"), ["--"; 3]);
}

#[test]
fn a_lost_wake_up_needs_a_store_buffer() {
    let text = |fence: &str| {
        format!(
            "shared ready, asleep, woken: bool;
             process Sleeper {{ asleep = true; {fence} if !ready {{ await woken; }} }}
             process Waker {{ ready = true; {fence} if asleep {{ woken = true; }} }}
             live end;"
        )
    };
    check(&text(""), ["++", "--", "--"]);
    check(&text("fence;"), ["++"; 3]);
}

/// What SC has, TSO has; what TSO has, PSO has. Renaming changes nothing. A fence adds no deadlock, unless it
/// comes first in an alternative of a `choose`: then the process passes the fence and has chosen, while
/// before it could wait for all alternatives at once. It does not add one, since a run of the program with
/// the fence is a run of the program without it, and where one is stuck the other one is: no process waits at
/// a fence once all buffers are empty.
#[test]
fn laws() {
    let (mut stuck, mut differ) = (0, 0);
    for seed in seeds(80) {
        let program = generate_waiting(seed);
        let models = Model::ALL.map(|model| answers(&program, model));
        let deadlock = |answers: &Option<Vec<Answer>>| answers.as_ref().map(|all| all[0] != Answer::Safe);
        let deadlocks = models.each_ref().map(deadlock);
        for (strong, weak) in [(0, 1), (1, 2)] {
            let (strong, weak) = (deadlocks[strong], deadlocks[weak]);
            assert!(strong != Some(true) || weak != Some(false), "seed {seed}\n{}", print::print(&program));
        }
        stuck += usize::from(deadlocks.contains(&Some(true)));
        differ += usize::from(deadlocks.contains(&Some(true)) && deadlocks.contains(&Some(false)));
        let kinds = |answers: &Option<Vec<Answer>>| {
            answers.as_ref().map(|all| all.iter().map(Answer::word).collect::<Vec<_>>())
        };
        let renamed = transform::renamed(&program);
        let fenced = transform::with_fence(&program, &mut Random::new(seed));
        for (model, found) in Model::ALL.into_iter().zip(&models) {
            assert_eq!(kinds(&answers(&renamed, model)), kinds(found), "seed {seed}");
            if !chooses(&program) && deadlock(&answers(&fenced, model)) == Some(true) {
                let message = format!("seed {seed}, {}\n{}", model.name(), print::print(&fenced));
                assert_ne!(deadlock(found), Some(false), "{message}");
            }
        }
    }
    eprintln!("{stuck} programs with deadlocks, {differ} not under all models");
    assert!(stuck > 0);
}

fn chooses(program: &Program) -> bool {
    let mut blocks: Vec<_> = program.templates.iter().map(|template| &template.body).collect();
    while let Some(block) = blocks.pop() {
        for statement in block {
            match &statement.kind {
                StmtKind::Choose(_) => return true,
                StmtKind::If { then, otherwise, .. } => blocks.extend([then, otherwise]),
                StmtKind::While { body, .. } | StmtKind::Loop(body) | StmtKind::Atomic(body) => {
                    blocks.push(body)
                }
                _ => {}
            }
        }
    }
    false
}
