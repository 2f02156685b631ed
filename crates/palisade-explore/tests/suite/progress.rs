//! Deadlocks and goals: the engine against brute force, on random programs in which processes wait.

use palisade_conformance::brute::{Answer, Scope, reachable};
use palisade_conformance::generate::generate_waiting;
use palisade_conformance::progress::Graph;
use palisade_conformance::random::Random;
use palisade_conformance::{seeds, shrink};
use palisade_engine::{
    DeadlockFreedom, Engine, GoalsReachable, Limits, Options, Outcome, Reason, Reduction, Task, Threads,
    Verdict, Witness,
};
use palisade_explore::Progress;
use palisade_memory::{Interlocked, Machine, Model, State};
use palisade_program::running::Goal;
use palisade_program::written::Program;
use palisade_program::{Instantiation, Waits, lower_retrying, print};
use palisade_trace::{replay_to_deadlock, take};
use std::collections::HashMap;

const SCOPE: Scope = Scope { states: 3_000, buffer: None };

fn verdicts(program: &Program, model: Model, jobs: usize) -> (Verdict, Verdict) {
    reduced(program, model, jobs, Reduction::Full)
}

fn reduced(program: &Program, model: Model, jobs: usize, reduction: Reduction) -> (Verdict, Verdict) {
    let options = Options { waits: Waits::Retry, max_buffer: 2, reduction, ..Options::default() };
    let (threads, interlocked) = (Threads::Declared, Interlocked::default());
    let task = Task { program, threads, model, interlocked, options };
    let (analysis, limits) = (task.analysis(), Limits::unlimited(jobs).with_work(20_000));
    let deadlock: Outcome<DeadlockFreedom> = Progress.check(&analysis, &limits);
    let goals: Outcome<GoalsReachable> = Progress.check(&analysis, &limits);
    (deadlock.verdict, goals.verdict)
}

/// What is wrong with the engine's answers about a program.
pub(crate) fn problem(program: &Program, model: Model) -> Option<String> {
    let system = lower_retrying(program, Instantiation::declared(2));
    let machine = Machine::new(&system, model);
    let (deadlock, goals) = verdicts(program, model, 1);
    let again = verdicts(program, model, 2);
    if (&deadlock, &goals) != (&again.0, &again.1) {
        return Some("two jobs answer otherwise".to_owned());
    }
    let whole = reduced(program, model, 1, Reduction::None);
    let word = |verdict: &Verdict| match verdict {
        Verdict::Holds => "holds".to_owned(),
        Verdict::Violated(_) => "violated".to_owned(),
        Verdict::Unknown(reason) => reason.to_string(),
    };
    let ran_out = |verdict: &Verdict| verdict.reason().is_some_and(|reason| reason.what_ran_out().is_some());
    for (whole, verdict) in [(&whole.0, &deadlock), (&whole.1, &goals)] {
        if word(whole) != word(verdict) && !ran_out(whole) && !ran_out(verdict) {
            return Some(format!("without reductions: {}, with: {}", word(whole), word(verdict)));
        }
    }
    if let Verdict::Violated(Witness { run, .. }) = &deadlock
        && let Err(error) = replay_to_deadlock(machine, run)
    {
        return Some(format!("no deadlock: {error}"));
    }
    let last = match &goals {
        Verdict::Violated(Witness { run, .. }) => match take(machine, run) {
            Ok(replay) => replay.states.last().cloned(),
            Err(error) => return Some(format!("no run: {error}")),
        },
        _ => None,
    };
    if let Some(refuted) = refuted(machine, &deadlock, &goals) {
        return Some(refuted);
    }
    let Some(graph) = Graph::new(machine, SCOPE) else {
        // There are infinitely many states, or very many.
        return None;
    };
    if let Some(last) = last {
        let index = graph.states().iter().position(|state| *state == last)?;
        if system.goals.iter().all(|goal| graph.can_reach(goal)[index]) {
            return Some("all goals are reachable from the last state".to_owned());
        }
    }
    let live = system.goals.iter().all(|goal| graph.live(goal) == Answer::Safe);
    let compare = |verdict: &Verdict, holds: bool, what: &str| match verdict {
        Verdict::Holds if !holds => Some(format!("{what} is missed")),
        Verdict::Violated(_) if holds => Some(format!("{what} that does not exist")),
        Verdict::Unknown(reason) if reason.what_ran_out().is_some() => None,
        Verdict::Unknown(reason) => {
            // Bounded buffers are all that is unknown about programs this small.
            let bounded = matches!(reason, Reason::Without { .. })
                || matches!(reason, Reason::Observed(why) if why.contains("buffers up to"));
            (!bounded || model == Model::Sc).then(|| format!("{what}: {reason}"))
        }
        _ => None,
    };
    let found = compare(&deadlock, graph.deadlock() == Answer::Safe, "a deadlock");
    found.or_else(|| compare(&goals, live, "a dead end"))
}

/// What contradicts a claim about bounded buffers, among the states that brute force reaches within the
/// bound.
fn refuted(machine: Machine<'_>, deadlock: &Verdict, goals: &Verdict) -> Option<String> {
    let within = |verdict: &Verdict| {
        let Verdict::Unknown(Reason::Without { bound, .. }) = verdict else { return None };
        let [Reason::BufferBound(bound)] = bound.bounds() else { return None };
        let search = reachable(machine, Scope { states: SCOPE.states, buffer: Some(*bound) });
        (search.states.len() < SCOPE.states).then_some(search.states)
    };
    if let Some(states) = within(deadlock)
        && states.iter().any(|state| machine.is_stuck(state))
    {
        return Some("a deadlock within the bound".to_owned());
    }
    let states = within(goals)?;
    let numbers: HashMap<&State, usize> = states.iter().zip(0..).collect();
    let mut before = vec![Vec::new(); states.len()];
    for (number, state) in states.iter().enumerate() {
        for successor in machine.successors(state) {
            if let Some(&next) = numbers.get(&successor.state) {
                before[next].push(number);
            }
        }
    }
    let is_missed = |goal: &Goal| {
        let mut open: Vec<usize> =
            (0..states.len()).filter(|&number| machine.satisfies(&states[number], goal)).collect();
        let mut reaches = vec![false; states.len()];
        while let Some(number) = open.pop() {
            if !std::mem::replace(&mut reaches[number], true) {
                open.extend(&before[number]);
            }
        }
        // A fault is a violation of its own.
        states.iter().zip(reaches).any(|(state, reaches)| !reaches && state.fault.is_none())
    };
    machine.system.goals.iter().any(is_missed).then(|| "a dead end within the bound".to_owned())
}

fn check(seed: u64, program: Program) {
    for model in Model::ALL {
        if let Some(found) = problem(&program, model) {
            let fails = |program: &Program| problem(program, model).is_some();
            let small = shrink(program, &fails);
            let again = problem(&small, model).unwrap_or_default();
            panic!("seed {seed}, {}: {found}; smaller: {again}\n{}", model.name(), print::print(&small));
        }
    }
}

#[test]
fn differential_random_programs() {
    for seed in seeds(60) {
        check(seed, generate_waiting(seed));
    }
}

/// A fault ends the run of all threads.
#[test]
fn differential_random_programs_with_faults() {
    let source = palisade_base::Source::new("p.pal", "shared x: 0..2; process P { assert(x == 0); }");
    let parsed = palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("valid").program;
    for seed in seeds(40) {
        let mut program = generate_waiting(seed);
        let mut random = Random::new(seed);
        let template = random.below(program.templates.len());
        let body = &mut program.templates[template].body;
        let at = random.below(body.len() + 1);
        body.insert(at, parsed.templates[0].body[0].clone());
        check(seed, program);
    }
}

#[test]
fn bounds_are_stated() {
    let check = |text: &str, model: Model, deadlock: &str, goals: &str| {
        let source = palisade_base::Source::new("p.pal", text);
        let program = palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("valid").program;
        let word = |verdict: Verdict| match verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Violated(_) => "violated".to_owned(),
            Verdict::Unknown(reason) => reason.to_string(),
        };
        let (found, reached) = verdicts(&program, model, 1);
        assert_eq!((word(found), word(reached)), (deadlock.to_owned(), goals.to_owned()), "{text}");
    };
    let endless = "shared x: 0..1; process P { loop { x = 1; } } live x == 1;";
    check(endless, Model::Sc, "holds", "holds");
    check(endless, Model::Tso, "no deadlock with buffers up to 2", "no dead end with buffers up to 2");
    // A dead end that has nothing to do with the buffers.
    let dead = "shared x, y: 0..1; process P { loop { x = 1; } } process Q { await y == 1; } live Q@end;";
    check(dead, Model::Sc, "holds", "violated");
    check(
        dead,
        Model::Tso,
        "no deadlock with buffers up to 2",
        "with buffers up to 2, some states lead to what must stay reachable only with longer buffers, if at all",
    );
}
