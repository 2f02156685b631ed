//! Sets of stacks: proofs of programs that look much alike, and proofs that lack something.

use crate::rules::{judge, read, task};
use crate::sc::check_refusal;
use palisade_certificate::Refusal;
use palisade_engine::proof::{StackSet, Stacks};
use palisade_engine::{Engine, Limits, Proof, Task, Threads};
use palisade_memory::Model;
use palisade_pushdown::Pushdown;

fn prove(task: &Task<'_>) -> Stacks {
    match Pushdown.prove(&task.analysis(), &Limits::unlimited(1)).1 {
        Some(Proof::Stacks(proof)) => proof,
        other => panic!("it is proved by sets of stacks, not by {other:?}"),
    }
}

/// What one thread does within a procedure the others see.
#[test]
fn procedures_are_interrupted() {
    let text = |value: u32| {
        format!(
            "shared x: 0..1; proc f() {{ choose {{ f(); }} or {{ x = {value}; x = 0; }} }}
             process P {{ f(); }} process Q {{ let r = x; assert(r == 0); }}"
        )
    };
    check_refusal(&text(0), &text(1), "leads out of the set");
}

/// A thread that waited in a procedure returns from it later.
#[test]
fn waiting_threads_return() {
    let text = |value: u32| {
        format!(
            "shared go, x: 0..1; proc f() {{ choose {{ f(); }} or {{ await go == 1; }} }}
             process P {{ f(); x = {value}; }} process Q {{ go = 1; let r = x; assert(r == 0); }}"
        )
    };
    check_refusal(&text(0), &text(1), "leads out of the set");
}

/// A thread that has ended is not taken for one that waits in the same way.
#[test]
fn final_states_are_judged() {
    let text = |most: u32| {
        format!(
            "shared x: 0..1; proc f() {{ choose {{ f(); }} or {{ skip; }} }}
             process P {{ f(); x = 1; x = 1; }} final x <= {most};"
        )
    };
    check_refusal(&text(1), &text(0), "leads to a bad state");
}

const STARTING: &str = "shared x: 0..2; proc f() { choose { f(); } or { skip; } }
    process P { f(); spawn W; } process Q { f(); x = 1; } process W on spawn { f(); let r = x; assert(r < 2); }";

#[test]
fn started_threads_are_followed() {
    let program = read(STARTING);
    let task = task(&program, Model::Sc);
    let proof = prove(&task);
    assert_eq!(judge(&task, &Proof::Stacks(proof.clone())), Ok(()));
    assert!(proof.pieces.iter().any(|piece| piece.threads.len() == 3));
    // Without the pieces that have the thread that is started.
    let mut less = proof.clone();
    less.pieces.retain(|piece| piece.threads.len() == 2);
    let judged = judge(&task, &Proof::Stacks(less));
    assert!(matches!(judged, Err(Refusal::Leaves { .. })), "{judged:?}");
    // With pieces in which it has no stack.
    let mut none = proof;
    let empty = none.sets.len() as u32;
    none.sets.push(StackSet { states: vec![Vec::new()] });
    none.pieces.iter_mut().filter_map(|piece| piece.threads.get_mut(2)).for_each(|thread| thread.1 = empty);
    let judged = judge(&task, &Proof::Stacks(none));
    assert!(matches!(judged, Err(Refusal::Leaves { .. })), "{judged:?}");
}

/// A proof names all threads that are ever there; more are not started.
#[test]
fn no_more_threads_are_started_than_there_are() {
    let text = |least: u32| {
        format!(
            "shared x: 0..2; proc f() {{ choose {{ f(); }} or {{ skip; }} }}
             process P {{ f(); loop {{ if x >= {least} {{ spawn W; }} }} }} process W on spawn {{ f(); }}"
        )
    };
    check_refusal(&text(1), &text(0), "more threads are started than there are");
}

/// Pieces with a set that is empty stand for no state: whatever the other sets hold, nothing is bad about them.
#[test]
fn pieces_that_stand_for_nothing() {
    let program = read(STARTING);
    let task = task(&program, Model::Sc);
    let proof = prove(&task);
    for thread in 0..2 {
        let mut more = proof.clone();
        let empty = more.sets.len() as u32;
        more.sets.push(StackSet { states: vec![Vec::new()] });
        // The other thread goes on, with the same set beside it.
        let mut pieces = proof.pieces.clone();
        for piece in &mut pieces {
            piece.threads[thread].1 = empty;
        }
        more.pieces.extend(pieces);
        assert_eq!(judge(&task, &Proof::Stacks(more)), Ok(()), "thread {thread}");
    }
}

/// With any number of threads at the start, a proof for one of each is none.
#[test]
fn any_number_of_threads_is_not_proved() {
    let program = read("shared x: 0..1; proc f() { choose { f(); } or { x = 1; } } process P { f(); }");
    let one = task(&program, Model::Sc);
    let proof = Proof::Stacks(prove(&one));
    assert_eq!(judge(&one, &proof), Ok(()));
    let any = Task { threads: Threads::Any, ..one };
    assert!(matches!(judge(&any, &proof), Err(Refusal::Unsuited(_))));
}
