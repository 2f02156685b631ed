//! What the scheduler cannot follow: each case is noticed and reported, none is reported as a failure of the
//! program, and no process is left running.

use crate::common::{compile, failures, run, start};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options, Session};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

fn program(arguments: &[&str], scheduling: Scheduling) -> Program {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let path = PROGRAM.get_or_init(|| compile("unfollowed.c", &[]).display().to_string());
    let command = std::iter::once(path.as_str()).chain(arguments.iter().copied());
    Program { command: command.map(str::to_owned).collect(), scheduling }
}

fn options() -> Options {
    Options { schedules: 3, patience: Duration::from_secs(60), ..Options::default() }
}

fn run_as(how: &str, scheduling: Scheduling) -> Findings {
    let mut options = options();
    if how == "computes" {
        options.patience = Duration::from_millis(300);
    }
    run(&program(&[how], scheduling), &options)
}

/// Checks what is reported about a program: what could not be followed, and failures that say nothing about
/// it.
fn check(how: &str, unfollowed: &[Unfollowed], failure: Option<(&str, &str)>) {
    for scheduling in [Scheduling::Best, Scheduling::Token] {
        let findings = run_as(how, scheduling);
        let mut noted: Vec<Unfollowed> = findings.unfollowed.keys().map(|(what, _)| *what).collect();
        noted.dedup();
        assert_eq!(noted, unfollowed, "{how} {scheduling:?}");
        let names: Vec<&str> = failure.iter().map(|(name, _)| *name).collect();
        assert_eq!(failures(&findings), names, "{how} {scheduling:?}: {:#?}", findings.failures);
        for found in &findings.failures {
            let says = failure.map_or("", |(_, says)| says);
            assert!(found.what.is_inconclusive, "{how} {scheduling:?}: {found:#?}");
            assert!(found.what.message.contains(says), "{how} {scheduling:?}: {found:#?}");
        }
        assert_eq!(findings.executions, 3, "{how} {scheduling:?}");
    }
}

#[test]
fn processes() {
    check("", &[], None);
    check("system", &[Unfollowed::Fork], None);
    check("popen", &[Unfollowed::Fork], None);
    check("spawn", &[Unfollowed::Fork], None);
    check("clone", &[], Some(("unsupported", "clone")));
    check("raw-fork", &[], Some(("unsupported", "clone")));
    check("exec", &[], Some(("unsupported", "exec")));
    check("exec-fails", &[], None);
    check("threads-in-fork", &[Unfollowed::Fork], Some(("unsupported", "starts threads")));
    check("timer", &[], Some(("unsupported", "SIGEV_THREAD")));
}

#[test]
fn signals() {
    check("raise", &[Unfollowed::Handler], None);
    check("pthread-kill", &[Unfollowed::Handler], Some(("unsupported", "pthread_kill")));
    check("tgkill", &[Unfollowed::Handler], None);
    check("longjmp", &[Unfollowed::Handler], Some(("unsupported", "leaves a signal handler by siglongjmp")));
    check("jump", &[], None);
    check("exit-in-handler", &[Unfollowed::Handler], None);
    check("thread-ends-in-handler", &[Unfollowed::Handler], Some(("unsupported", "from a signal handler")));
    check("handlers-are-given-back", &[Unfollowed::Handler], None);
    check("stop", &[], Some(("unsupported", "stopped by signal 19")));
}

#[test]
fn ends_and_loops() {
    check("sys-exit", &[], Some(("unsupported", "system call exit")));
    check("computes", &[], Some(("stalled", "--patience")));
    check("assembly", &[Unfollowed::Assembly], None);
}

/// Processes that were started with this variable.
fn with_mark(mark: &str) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").expect("Linux lists its processes").flatten();
    let variable = format!("{mark}=1");
    let marked = |path: &PathBuf| {
        let has_it = |set: Vec<u8>| set.split(|byte| *byte == 0).any(|word| word == variable.as_bytes());
        std::fs::read(path.join("environ")).is_ok_and(has_it)
    };
    processes.map(|process| process.path()).filter(marked).collect()
}

/// Waits until no such process is left, which the kernel may take a while to do.
fn are_gone(mark: &str) -> bool {
    let start = Instant::now();
    while !with_mark(mark).is_empty() {
        if start.elapsed() > Duration::from_secs(30) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn processes_that_were_forked_end_with_their_execution() {
    let mark = format!("PALISADE_LEFT_{}", std::process::id());
    for scheduling in [Scheduling::Best, Scheduling::Token] {
        let mut session = start(&program(&["leaves-process", &mark], scheduling), &options());
        let command = session.command(palisade_harness::schedule::Strategy::Random, 0, 0, Default::default());
        assert!(session.execute(&command).is_some());
        assert_eq!(failures(&session.findings), [""; 0], "{:?}", session.findings.failures);
        // The session still exists at this point.
        assert!(are_gone(&mark), "{scheduling:?}: {:?}", with_mark(&mark));
    }
}

#[test]
fn processes_that_were_forked_end_when_the_run_is_stopped() {
    let mark = format!("PALISADE_STOPPED_{}", std::process::id());
    let sign = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(&mark);
    let program =
        program(&["leaves-process-and-hangs", &mark, &sign.display().to_string()], Scheduling::Best);
    let options = Options { patience: Duration::from_secs(600), ..options() };
    let stop = Arc::new(AtomicBool::new(false));
    let mut session = Session::start(&program, &options, "", &stop, None).expect("the program starts");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !sign.exists() || with_mark(&mark).is_empty() {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        session.run(|_| true);
    });
    assert!(session.findings.stopped);
    assert!(are_gone(&mark), "{:?}", with_mark(&mark));
    std::fs::remove_file(sign).expect("the file exists");
}
