//! Proofs by sets of stacks: proofs of similar programs, and incomplete proofs.

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
        other => panic!("expected a proof by sets of stacks, not {other:?}"),
    }
}

/// Other threads see what a thread does inside a procedure.
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

/// A thread that has ended is not confused with one that waits in the same way.
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
    // Without the pieces that contain the started thread.
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

/// Pieces without the started thread, in which the others continue, do not replace those with it.
#[test]
fn a_thread_that_starts_another_is_not_alone() {
    let program = read(STARTING);
    let task = task(&program, Model::Sc);
    let mut forged = prove(&task);
    forged.pieces.iter_mut().for_each(|piece| piece.threads.truncate(2));
    let judged = judge(&task, &Proof::Stacks(forged));
    assert!(matches!(judged, Err(Refusal::Leaves { .. })), "{judged:?}");
}

/// Every frame that is called, waits or returns has to be in the sets. A proof that lacks one of its frames
/// is rejected.
#[test]
fn no_frame_can_be_left_out() {
    let texts = [
        // P waits in f until Q has seen it there.
        "shared ready, go, x: 0..1;
         proc f() -> 0..1 { choose { let s = f(); return s; } or { ready = 1; await go == 1; return 1; } }
         process P { let r = f(); x = r; r = f(); x = 1 - r; }
         process Q { await ready == 1; go = 1; let r = x; assert(r < 2); }",
        // No thread waits inside a section: f returns to two places, one after the other.
        "shared x: 0..1; proc f() { choose { f(); } or { skip; } }
         process P { atomic { f(); f(); x = 1; } x = 0; } process Q { let r = x; assert(r < 2); }",
    ];
    for text in texts {
        let program = read(text);
        let task = task(&program, Model::Sc);
        let proof = prove(&task);
        assert_eq!(judge(&task, &Proof::Stacks(proof.clone())), Ok(()));
        for frame in 0..proof.frames.len() as u32 {
            let mut less = proof.clone();
            let rows = less.sets.iter_mut().flat_map(|set| &mut set.states);
            rows.for_each(|row| row.retain(|&(other, _)| other != frame));
            let judged = judge(&task, &Proof::Stacks(less));
            assert!(judged.is_err(), "{:?}\n{text}", proof.frames[frame as usize]);
        }
    }
}

/// A proof names all threads that ever exist, so no more may be started.
#[test]
fn no_more_threads_are_started_than_the_proof_names() {
    let text = |least: u32| {
        format!(
            "shared x: 0..2; proc f() {{ choose {{ f(); }} or {{ skip; }} }}
             process P {{ f(); loop {{ if x >= {least} {{ spawn W; }} }} }} process W on spawn {{ f(); }}"
        )
    };
    check_refusal(&text(1), &text(0), "more threads are started than the proof names");
}

/// A piece with an empty set contains no state. Whatever its other sets contain, it is not bad.
#[test]
fn pieces_without_states() {
    let program = read(STARTING);
    let task = task(&program, Model::Sc);
    let proof = prove(&task);
    for thread in 0..2 {
        let mut more = proof.clone();
        let empty = more.sets.len() as u32;
        more.sets.push(StackSet { states: vec![Vec::new()] });
        // The other thread continues, with the same set for the first.
        let mut pieces = proof.pieces.clone();
        for piece in &mut pieces {
            piece.threads[thread].1 = empty;
        }
        more.pieces.extend(pieces);
        assert_eq!(judge(&task, &Proof::Stacks(more)), Ok(()), "thread {thread}");
    }
}

/// With any number of threads at the start, a proof for one of each proves nothing.
#[test]
fn any_number_of_threads_is_not_proved() {
    let program = read("shared x: 0..1; proc f() { choose { f(); } or { x = 1; } } process P { f(); }");
    let one = task(&program, Model::Sc);
    let proof = Proof::Stacks(prove(&one));
    assert_eq!(judge(&one, &proof), Ok(()));
    let any = Task { threads: Threads::Any, ..one };
    assert!(matches!(judge(&any, &proof), Err(Refusal::Unsuited(_))));
}
