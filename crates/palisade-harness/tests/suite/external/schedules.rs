//! Schedules: a seed gives the same execution again, files are replayed exactly, shortening preserves the
//! finding, and the exhaustive search sees everything.

use crate::common::{compile, failures, program, random, run, start, violations};
use palisade_harness::divergence::StrayReason;
use palisade_harness::execution::Execution;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::schedule::{Actor, Schedule, Strategy, Turns};
use palisade_harness::session::{Options, Session};
use palisade_harness::shorten::shorten;
use palisade_memory::Model;

#[test]
fn a_seed_gives_the_same_schedule() {
    let dekker = compile("dekker.c", &[]);
    for strategy in [Strategy::Random, Strategy::Pct { depth: 3 }] {
        let turns = |scheduling: Scheduling, seed: u64| {
            let program = Program { scheduling, ..program(&dekker) };
            let mut session = start(&program, &random(1));
            let command = session.command(strategy, seed, 100, Turns::default());
            let execution = session.execute(&command).expect("an execution");
            (execution.turns, execution.violations)
        };
        let first = turns(Scheduling::Best, 5);
        assert_eq!(first, turns(Scheduling::Best, 5), "{strategy}");
        assert_eq!(first, turns(Scheduling::Token, 5), "{strategy}: however threads are switched");
        assert!((6..20).any(|seed| turns(Scheduling::Best, seed).0 != first.0), "{strategy}: seeds differ");
    }
}

#[test]
fn after_the_largest_seed_comes_the_smallest() {
    let findings = run(&program(&compile("dekker.c", &[])), &Options { seed: u64::MAX - 1, ..random(5) });
    assert_eq!(findings.executions, 5);
}

#[test]
fn what_is_found_does_not_depend_on_the_number_of_processes() {
    let dekker = program(&compile("dekker.c", &[]));
    let fails = compile("fails.c", &[]).display().to_string();
    let fails = |how: &str| Program { command: vec![fails.clone(), how.to_owned()], ..dekker.clone() };
    for program in [dekker.clone(), fails("assertion"), fails("deadlock"), fails("leaked-threads")] {
        for options in [
            random(60),
            Options { strategy: Strategy::Pct { depth: 2 }, ..random(40) },
            Options { first_only: true, ..random(60) },
        ] {
            let found = |jobs: usize| format!("{:?}", run(&program, &Options { jobs, ..options.clone() }));
            let alone = found(1);
            assert_eq!(alone, found(3), "{program:?} {options:?}");
            assert_eq!(alone, found(100), "{program:?} {options:?}");
        }
    }
}

/// A search shows the same with any number of jobs: executions, runs, and findings with their schedules. The programs
/// have more executions than are run before there are workers.
#[test]
fn searches_do_not_depend_on_jobs() {
    let memory = compile("memory.c", &[]).display().to_string();
    let dekker = compile("dekker.c", &["-DROUNDS=2"]).display().to_string();
    let races = compile("races.c", &[]).display().to_string();
    let five = compile("five.c", &[]).display().to_string();
    for command in [vec![dekker], vec![races], vec![memory, "right-stays-often".into()], vec![five]] {
        let program = Program { command, scheduling: Scheduling::Best };
        for (model, preemptions) in
            [(Model::Sc, None), (Model::Tso, None), (Model::Pso, None), (Model::Tso, Some(2))]
        {
            let found = |jobs: usize| {
                let mut session = start(&program, &Options { model, jobs, steps: 10_000, ..random(0) });
                let searched = session.explore(preemptions, 300, |_| true);
                assert_eq!(session.findings.lost, None);
                (format!("{searched:?}"), format!("{:?}", session.findings))
            };
            let alone = found(1);
            assert_eq!(alone, found(2), "{program:?} {model:?}");
            assert_eq!(alone, found(4), "{program:?} {model:?}");
        }
    }
}

/// A search that is stopped has begun executions that nobody asks for any more. The session can be used after it.
#[test]
fn sessions_go_on_after_a_search_was_stopped() {
    let program = program(&compile("dekker.c", &["-DROUNDS=2"]));
    for jobs in [1, 2] {
        let options = Options { model: Model::Tso, jobs, ..random(0) };
        let stopped = |session: &mut Session| session.explore(None, u64::MAX, |found| found.executions < 200);
        let mut session = start(&program, &options);
        let first = stopped(&mut session);
        assert_eq!((first.executions, first.complete, first.runs), (200, false, 200), "{jobs}");
        let command = session.command(Strategy::Stay, 0, 0, Turns::default());
        let mut alone = start(&program, &options);
        let [after, alone] = [&mut session, &mut alone].map(|session| session.execute(&command));
        let turns = |execution: Option<Execution>| execution.and_then(|execution| execution.turns);
        let (after, alone) = (turns(after), turns(alone));
        assert!(after.is_some() && after == alone, "{after:?} {alone:?}");
    }
}

#[test]
fn files_are_replayed_and_shortened() {
    let dekker = compile("dekker.c", &[]);
    let program = program(&dekker);
    let findings = run(&program, &random(20));
    let found = &findings.violations[0];
    let names = [found.what.store, found.what.previous, found.what.access]
        .map(|instruction| findings.instructions.name(instruction).to_owned());
    let schedule = Schedule {
        program: program.command.clone(),
        shows: "a violation".into(),
        strategy: found.first.strategy,
        seed: found.first.seed,
        length: 0,
        model: None,
        turns: found.first.turns.clone().expect("a short execution"),
        search: None,
    };
    let read = Schedule::parse(&schedule.to_string()).expect("what was written can be read");
    let mut session = start(&program, &random(1));
    let mut replay = |turns: &Turns| {
        let command = session.command(Strategy::Stay, 0, 0, turns.clone());
        let execution = session.execute(&command).expect("an execution");
        assert_eq!(execution.diverged, None);
        assert_eq!(execution.portable_turns().as_ref(), Some(turns));
        session.shows(&execution, found.what.model, &names)
    };
    assert!(replay(&read.turns), "the violation is seen again");
    let mut fresh = start(&program, &random(1));
    let command = fresh.repetition(&read);
    let short = shorten(&mut fresh, &command, |session, execution| {
        session.shows(execution, found.what.model, &names)
    });
    assert!(short.switches() < read.turns.switches(), "{} {}", short.switches(), read.turns.switches());
    assert!(replay(&short), "and with fewer switches too");
}

#[test]
fn a_foreign_schedule_is_noticed() {
    let dekker = program(&compile("dekker.c", &[]));
    let mut session = start(&dekker, &random(1));
    let turns = Turns { turns: vec![palisade_harness::schedule::Turn { actor: Actor::thread(7), steps: 3 }] };
    let command = session.command(Strategy::Stay, 0, 0, turns);
    let stray = session.execute(&command).expect("an execution").diverged.expect("it says where");
    assert_eq!(stray.why, StrayReason::NotStarted, "{stray:?}");
}

#[test]
fn spin_loops_end_under_every_strategy() {
    let dekker = program(&compile("dekker.c", &["-DROUNDS=20"]));
    for strategy in [Strategy::Random, Strategy::Pct { depth: 1 }, Strategy::Pct { depth: 5 }, Strategy::Stay]
    {
        let options = Options { strategy, steps: 1_000_000, ..random(20) };
        let findings = run(&dekker, &options);
        assert_eq!(failures(&findings), [""; 0], "{strategy}");
    }
}

/// All partial orders: their number, and the number of violations under TSO and PSO.
fn explored(source: &str, flags: &[&str]) -> (u64, usize, usize) {
    let program = program(&compile(source, flags));
    let mut session = start(&program, &Options { steps: 10_000, ..random(0) });
    let searched = session.explore(None, 100_000, |_| true);
    let findings = &session.findings;
    assert!(searched.complete && !searched.broken, "{source} {flags:?}: {searched:?}");
    assert_eq!((failures(findings), findings.lost.as_deref()), (vec![], None), "{source} {flags:?}");
    (searched.executions, violations(findings, Model::Tso), violations(findings, Model::Pso))
}

#[test]
fn all_partial_orders() {
    // Four orders of the two conflicting pairs, minus the one in which both loads come before both stores.
    assert_eq!(explored("litmus.c", &["-DSB"]), (3, 2, 2));
    assert_eq!(explored("litmus.c", &["-DSB", "-DFENCED"]), (3, 0, 0));
    // Message passing is safe under TSO but not under PSO.
    assert_eq!(explored("litmus.c", &["-DMP"]), (3, 0, 1));
    assert_eq!(explored("litmus.c", &["-DMP", "-DRELEASE"]), (3, 0, 0));
    // Two threads take a lock: two orders.
    assert_eq!(explored("litmus.c", &["-DLOCKED"]), (2, 0, 0));
}

#[test]
fn the_search_finds_deadlocks_and_ends_at_spin_loops() {
    let path = compile("fails.c", &[]).display().to_string();
    let explore = |how: &str| {
        let program = Program { command: vec![path.clone(), how.to_owned()], scheduling: Scheduling::Best };
        let mut session = start(&program, &Options { steps: 10_000, ..random(0) });
        let searched = session.explore(None, 10_000, |_| true);
        (searched.complete, failures(&session.findings))
    };
    assert_eq!(explore("deadlock"), (true, vec!["deadlock"]));
    assert_eq!(explore("lost-signal"), (true, vec!["deadlock"]));
    assert_eq!(explore("signal"), (true, vec![]));
    assert_eq!(explore("never-ends"), (true, vec!["deadlock"]));
    // The other thread might have done more.
    assert_eq!(explore("assertion"), (false, vec!["assertion"]));
    let (executions, tso, pso) = explored("dekker.c", &["-DROUNDS=1"]);
    assert!(executions > 10 && tso > 0 && pso > 0, "{executions} {tso} {pso}");
    let (_, tso, pso) = explored("dekker.c", &["-DROUNDS=1", "-DFENCED"]);
    assert_eq!((tso, pso), (0, 0));
}
