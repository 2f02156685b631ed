//! What two threads do in either order, without an access to memory that shows it: a search finds both orders, or does
//! not claim to have seen everything.

use crate::common::{compile, failures, random, start};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Options;
use palisade_memory::Model;

/// Checks which failures a search finds, and what it says it has not followed.
fn check(what: &str, expected: &[&str], unfollowed: &[Unfollowed]) {
    let path = compile("orders.c", &[]).display().to_string();
    let program = Program { command: vec![path, what.to_owned()], scheduling: Scheduling::Best };
    for model in [Model::Sc, Model::Tso, Model::Pso] {
        let mut session = start(&program, &Options { model, ..random(0) });
        let searched = session.explore(None, 1000, |_| true);
        assert_eq!(failures(&session.findings), expected, "{what} {model:?} {searched:?}");
        let mut noted: Vec<Unfollowed> = session.findings.unfollowed.keys().map(|(what, _)| *what).collect();
        noted.dedup();
        assert_eq!(noted, unfollowed, "{what} {model:?} {searched:?}");
        assert!(searched.complete || !expected.is_empty(), "{what} {model:?} {searched:?}");
    }
}

/// Whether they wait depends on the order, and the orders in which they wait may never be run.
#[test]
fn timed_waits_are_reported_even_if_nobody_has_to_wait() {
    for what in ["mutex", "reader", "writer", "semaphore", "c11", "condition"] {
        check(what, &[], &[Unfollowed::Time]);
    }
}

#[test]
fn unmapping_and_protecting_memory_are_steps() {
    check("unmap", &["crash"], &[]);
    check("protect", &["crash"], &[]);
    check("nothing", &[], &[]);
}

#[test]
fn readers_wait_for_writers_that_are_preferred() {
    check("prefers-writers", &["deadlock"], &[]);
    check("prefers-readers", &[], &[]);
}

#[test]
fn clocks_descriptors_and_handlers_of_exit_have_an_order() {
    for what in ["clock", "pipe", "close", "mask"] {
        check(what, &["assertion"], &[]);
    }
    check("exit", &["exit-code"], &[]);
}

/// An error of the first thread, after it has joined all others, leaves no executions out.
#[test]
fn an_error_at_the_end_is_in_all_executions() {
    let path = compile("orders.c", &[]).display().to_string();
    for (what, name) in [("overflow", "heap-overflow"), ("after-free", "use-after-free")] {
        let command = vec![path.clone(), what.to_owned()];
        let mut session = start(&Program { command, scheduling: Scheduling::Best }, &random(0));
        let searched = session.explore(None, 100, |_| true);
        assert_eq!(failures(&session.findings), [name], "{what} {searched:?}");
        assert!(searched.complete && searched.executions == 1, "{what} {searched:?}");
    }
}
