//! States that are not stored: chains of states with one successor, and threads that are stuck forever.

use palisade_base::Source;
use palisade_engine::{Engine, Limits, Options, Reduction, Stats, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_syntax::{Language, parse};

/// Two processes pass a token to each other. No other process sees what the holder of the token does.
fn token(work: &str, property: &str) -> String {
    format!(
        "shared turn: 0..1; shared a, b, c: 0..3; \
         process P(i: 0..1) {{ loop {{ await turn == i; {work} turn = 1 - i; }} }} {property}"
    )
}

/// The verdict under SC and the number of stored states, with this many jobs.
fn states(text: &str, reduction: Reduction, jobs: usize) -> (&'static str, u64) {
    let (verdict, stats) = outcome(text, reduction, jobs);
    (verdict, stats.get("states").expect("states are counted"))
}

/// The verdict under SC and all counters.
fn outcome(text: &str, reduction: Reduction, jobs: usize) -> (&'static str, Stats) {
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is well formed").program;
    let options = Options { reduction, ..Options::default() };
    let interlocked = Interlocked::default();
    let task = Task { program: &program, threads: Threads::Declared, model: Model::Sc, interlocked, options };
    let outcome = Explicit.check(&task.analysis(), &Limits::unlimited(jobs));
    if let Verdict::Violated(witness) = &outcome.verdict {
        let system = task.lower(1);
        let machine = Machine::new(&system, Model::Sc);
        let replay = palisade_trace::take(machine, &witness.run).expect("the run can be taken");
        let last = replay.states.last().expect("a run has states");
        assert!(machine.violation(last).is_some(), "{text}");
    }
    (outcome.word(), outcome.stats)
}

/// Checks the verdict with all reductions, with only local steps collapsed, and with none.
fn check(text: &str, verdict: &str, most: u64) {
    let (full, stored) = states(text, Reduction::Full, 1);
    assert_eq!(full, verdict, "{text}");
    assert!(stored <= most, "{stored} states of\n{text}");
    assert_eq!(states(text, Reduction::Full, 3), (full, stored), "jobs make no difference to\n{text}");
    for reduction in [Reduction::Local, Reduction::None] {
        assert_eq!(states(text, reduction, 1).0, verdict, "{text}");
    }
}

#[test]
fn work_of_the_token_holder_takes_no_states() {
    let work = "a = 1; b = a + 1; c = b + 1; a = 0; b = 0; c = 0;";
    check(&token(work, ""), "safe", 1);
    // It runs forever and never has a choice.
    check("shared a: 0..3; process P { loop { a = 1; a = 2; } }", "safe", 1);
}

#[test]
fn states_of_a_chain_are_judged() {
    let work = "a = 1; b = 2; c = 3; b = 0; c = 0; a = 0;";
    for bad in ["a == 1 && b == 0", "b == 2 && c == 0", "a == 1 && b == 2 && c == 3", "b == 0 && c == 3"] {
        check(&token(work, &format!("forbid {bad};")), "unsafe", 100);
    }
    check(&token(work, "forbid b == 2 && a == 0;"), "safe", 100);
    check(&token("a = 1; here: b = 2; b = 0;", "forbid P(1)@here;"), "unsafe", 100);
    check(&token("a = 1; let r = a; r = r + 1; a = 0;", "forbid P(1).r == 2;"), "unsafe", 100);
    check(&token("a = 1; b = 1; assert(a + b < 2);", ""), "unsafe", 100);
    check(&token("b = b + 1;", ""), "unsafe", 100);
}

#[test]
fn the_last_state_of_a_chain_is_judged() {
    let text = "shared a, b: 0..1; process P { a = 1; b = 1; } final a == 0 || b == 0;";
    check(text, "unsafe", 100);
    let text = "shared a, b: 0..1; process P { a = 1; b = 1; assume(false); } final a == 0 || b == 0;";
    check(text, "safe", 100);
}

#[test]
fn processes_can_be_started_in_chains() {
    let text = "shared a: 0..2; process P { a = 1; spawn S; a = 2; } process S on spawn { await a == 2; cs: skip; } forbid count(S@cs) == 1;";
    check(text, "unsafe", 100);
}

/// Each process chooses a number and gets stuck: `lock` never has room for the sum.
fn stuck(property: &str) -> String {
    format!(
        "shared a: 0..1; shared lock: 0..1 blocking; \
         process P(i: 0..1) {{ let r = any(0..9); a = i; fetch_add(lock, 2 + r); a = r; }} {property}"
    )
}

#[test]
fn stuck_threads_look_the_same_unless_properties_see_them() {
    let (verdict, unseen) = states(&stuck(""), Reduction::Full, 1);
    let (_, seen) = states(&stuck("forbid P(0).r == 10;"), Reduction::Full, 1);
    assert_eq!(verdict, "safe");
    assert!(unseen < seen, "{unseen} states, and {seen} if registers are seen");
    check(&stuck("forbid P(0).r == 3 && P(1).r == 4;"), "unsafe", 1000);
    check(&stuck("forbid a == 2;"), "safe", 1000);
    // A process that waits for a value that may appear is not stuck.
    let text = "shared lock: 0..1 blocking = 1; process P { fetch_add(lock, 1); cs: skip; } process Q { lock = 0; } forbid P@cs;";
    check(text, "unsafe", 100);
}

#[test]
fn jobs_make_no_difference_where_looking_for_chains_does_not_pay() {
    let text = "shared a, b, c: 0..3; process P(i: 0..2) { a = i; b = a; c = b; a = c; }";
    check(text, "safe", 100_000);
    // All but one get stuck soon, but until then there are many choices.
    let text = "shared a, b, c: 0..3; process P(i: 0..2) { a = i; b = a; c = b; assume(c == 0); c = 1; a = 1; b = 1; }";
    check(text, "safe", 100_000);
}

/// From each of `doors` states a path leads into the same corridor of `stores` stores. Only through the last
/// door does the process fail at the end.
fn corridor(doors: u32, stores: u32) -> String {
    format!(
        "shared a: 0..{doors}; shared b: 0..{stores}; \
         process P {{ let r: 0..{doors}; let k: 0..{stores}; \
         loop {{ choose {{ assume(r < {doors}); r = r + 1; a = r; }} or {{ break; }} }} \
         if r < {doors} {{ a = 0; }} else {{ a = 1; }} \
         r = 0; while k < {stores} {{ b = k; k = k + 1; }} assert(a == 0); }}"
    )
}

/// Walking through the corridor once per door takes `doors * stores` steps.
#[test]
fn chains_that_meet_are_not_walked_repeatedly() {
    let steps = |doors, stores| {
        let text = corridor(doors, stores);
        let (verdict, stats) = outcome(&text, Reduction::Full, 1);
        assert_eq!(verdict, "unsafe");
        assert_eq!(outcome(&text, Reduction::Full, 3).1, stats, "jobs make no difference");
        let states = stats.get("states").expect("states are counted");
        assert!(states <= u64::from(2 * doors + stores), "{states} states");
        stats.get("chain_steps").expect("steps are counted")
    };
    for (doors, stores) in [(400, 200), (800, 200), (1600, 100)] {
        let walked = steps(doors, stores);
        let once_each = u64::from(doors * stores);
        assert!(walked < once_each / 2, "{walked} steps with {doors} doors to {stores} stores");
    }
    let (few, many) = (steps(800, 200), steps(1600, 200));
    assert!(many < 2 * few, "{few} steps, and {many} with twice as many doors");
}
