//! Whole C programs: the texts are what clang makes of the C files beside them, and the expected programs are
//! kept as `.pal`.

use crate::common::{threads, translated};
use palisade_c::{Aim, Options};

#[track_caller]
fn check(text: &str, options: &Options, expected: &str) {
    let translation = translated(text, options);
    let printed = palisade_program::print::print(&translation.program);
    assert_eq!(printed, expected, "\n{printed}");
    // It can be lowered.
    palisade_program::lower(&translation.program, palisade_program::Instantiation::declared(1));
}

#[test]
fn a_ticket_lock() {
    let options = Options { races: false, ..Options::default() };
    check(include_str!("texts/ticket.ll"), &options, include_str!("texts/ticket.pal"));
}

#[test]
fn plain_accesses_are_marked_if_races_are_looked_for() {
    let marked = |races| {
        let options = Options { races, ..Options::default() };
        translated(include_str!("texts/ticket.ll"), &options).program
    };
    assert!(marked(true).has_plain());
    assert!(!marked(false).has_plain());
    assert_eq!(marked(true).without_plain(), marked(false));
}

#[test]
fn a_stack_on_the_heap() {
    let options = Options { pool: 2, ..threads(&["push", "pop"]) };
    check(include_str!("texts/stack.ll"), &options, include_str!("texts/stack.pal"));
}

#[test]
fn values_of_all_kinds() {
    check(
        include_str!("texts/values.ll"),
        &threads(&["compute", "observe"]),
        include_str!("texts/values.pal"),
    );
}

#[test]
fn condition_variables() {
    let options = threads(&["set", "wait"]);
    check(include_str!("texts/wait.ll"), &options, include_str!("texts/wait.pal"));
}

#[test]
fn waits_can_be_made_to_end_by_signals_only() {
    let options = Options { aim: Aim::Progress, ..threads(&["set", "wait"]) };
    let translation = translated(include_str!("texts/wait.ll"), &options);
    assert!(!palisade_program::print::print(&translation.program).contains("choose"));
}

#[test]
fn threads_and_assumptions_are_listed() {
    let translation = translated(include_str!("texts/ticket.ll"), &Options::default());
    let names: Vec<&str> = translation.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["main", "work", "work#2"]);
    let notes: Vec<&str> = translation.notes.iter().map(|note| note.0.as_str()).collect();
    assert_eq!(
        notes,
        [
            "2 threads besides `main`: work, work#2",
            "starting a thread succeeds",
            "the compiler keeps the order of atomic and volatile accesses, and of plain ones around them"
        ]
    );
}
