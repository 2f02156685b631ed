//! Every finding is repeated from its schedule, in a new process, before it is reported.

use crate::common::{compile, failures, random, scratch, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::schedule::Schedule;
use palisade_harness::session::{Options, Session};
use palisade_memory::Model;
use std::time::Duration;

fn program(path: &std::path::Path, arguments: &[&str]) -> Program {
    let mut command = vec![path.display().to_string()];
    command.extend(arguments.iter().map(|&argument| argument.to_owned()));
    Program { command, scheduling: Scheduling::Best }
}

fn options(model: Model) -> Options {
    Options { model, steps: 200_000, patience: Duration::from_secs(60), ..random(40) }
}

/// Everything that was found repeats, also from the text of its schedule.
fn repeats(what: &str, session: &mut Session, program: &Program, options: &Options) {
    session.confirm();
    let findings = &session.findings;
    assert!(findings.unrepeated.is_empty(), "{what}: {:?}", findings.unrepeated);
    assert!(findings.failures.iter().all(|found| found.is_repeated), "{what}: {:?}", findings.failures);
    assert!(findings.races.iter().all(|found| found.is_repeated), "{what}: {:?}", findings.races);
    for found in findings.failures.clone() {
        let text = session.schedule(&found.first, String::new(), false).to_string();
        let schedule = Schedule::parse(&text).expect("what was written can be read");
        let mut again = start(program, options);
        let command = again.repetition(&schedule);
        let execution = again.execute(&command).expect("an execution");
        assert_eq!(execution.diverged, None, "{what}: {text}");
        assert!(session.fails(&execution, &found.what), "{what}: {:?} {text}", again.findings.failures);
    }
}

#[test]
fn all_kinds_of_findings_repeat() {
    let fails = compile("fails.c", &[]);
    let memory = compile("memory.c", &[]);
    let all = [
        (&fails, "deadlock", "deadlock"),
        (&fails, "lost-signal", "deadlock"),
        (&fails, "never-ends", "deadlock"),
        (&fails, "livelock", "livelock"),
        (&fails, "crash", "crash"),
        (&fails, "assertion", "assertion"),
        (&fails, "exit-code", "exit-code"),
        (&fails, "early-exit", "early-exit"),
        (&fails, "leaked-threads", "leaked-threads"),
        (&memory, "reads", "use-after-free"),
        (&memory, "double", "double-free"),
        (&memory, "leaves", "stack-use-after-return"),
        (&memory, "starts", "stack-use-after-return"),
    ];
    for (path, how, expected) in all {
        let program = program(path, &[how]);
        for model in [Model::Sc, Model::Tso, Model::Pso] {
            let options = options(model);
            let mut sampled = start(&program, &options);
            sampled.run(|_| true);
            assert_eq!(failures(&sampled.findings), [expected], "{how} {model:?}");
            repeats(&format!("{how} {model:?}, random"), &mut sampled, &program, &options);
            if how == "livelock" {
                // A search cannot see the end of it.
                continue;
            }
            let mut search = start(&program, &options);
            search.explore(None, 200, |_| true);
            assert!(failures(&search.findings).contains(&expected), "{how} {model:?}");
            repeats(&format!("{how} {model:?}, search"), &mut search, &program, &options);
        }
    }
}

/// Races and violations, and executions that were run ahead or undone.
#[test]
fn findings_of_many_executions_repeat() {
    for source in ["races.c", "dekker.c"] {
        let program = program(&compile(source, &[]), &[]);
        for model in [Model::Sc, Model::Tso] {
            let options = Options { jobs: 2, schedules: 300, ..options(model) };
            let mut sampled = start(&program, &options);
            sampled.run(|_| true);
            let found = sampled.findings.distinct();
            assert!(found > 0, "{source} {model:?}");
            repeats(source, &mut sampled, &program, &options);
            assert_eq!(sampled.findings.distinct(), found, "{source} {model:?}");
        }
    }
}

/// What depends on something outside the program does not repeat, and is not a finding.
#[test]
fn what_does_not_repeat_is_not_a_finding() {
    let path = compile("once.c", &[]);
    for how in ["assertion", "exit-code", "race"] {
        let file = scratch().join(format!("once-{how}-{}", std::process::id()));
        let name = file.display().to_string();
        let mut session = start(&program(&path, &[how, &name]), &options(Model::Tso));
        session.run(|_| true);
        let seen = session.findings.distinct();
        assert!(seen > 0, "{how}: {:?}", session.findings);
        session.confirm();
        assert_eq!(session.findings.distinct(), 0, "{how}: {:?}", session.findings);
        assert_eq!(session.findings.unrepeated.len(), seen, "{how}");
        for lost in &session.findings.unrepeated {
            assert!(!lost.what.is_empty() && !lost.instead.is_empty(), "{how}: {lost:?}");
        }
        let _ = std::fs::remove_file(&file);
    }
}
