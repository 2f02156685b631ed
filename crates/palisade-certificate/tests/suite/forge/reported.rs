//! Forged proofs that were reported, or found by looking for more like them.

use super::load_buffers::bare;
use super::{Shape, judge, read, task};
use crate::rules::adopt;
use palisade_certificate::{Missing, Refusal};
use palisade_conformance::random::Random;
use palisade_engine::proof::{
    Element, Held, LoadBuffers, Part, Pending, Process, Queue, SetLetter, SingleBuffer, Snapshot, Viewer,
};
use palisade_engine::{Proof, Task, Threads};
use palisade_memory::Model;

const STORE_BUFFERING: &str = "shared x, y: bool;
    process P { x = true; if !y { cs: skip; } } process Q { y = true; if !x { cs: skip; } }
    forbid P@cs && Q@cs;";

/// The proof with the elements for bad states that the checker reports as missing.
fn bad_states(task: &Task<'_>, mut proof: LoadBuffers) -> LoadBuffers {
    while let Err(Refusal::BadMissing(Missing::LoadBuffers(element, sets))) =
        judge(task, &Proof::LoadBuffers(proof.clone()))
    {
        let element = adopt(&mut proof, &element, &sets);
        proof.parts[0].elements.push(element);
    }
    proof
}

/// One part with `"tracked": [0, 0]`, whose only elements are the bad states. They name more processes than
/// are followed, so their predecessors were never checked.
#[test]
fn a_set_that_follows_fewer_processes_than_its_elements_name() {
    let program = read(STORE_BUFFERING);
    for tracked in [vec![0, 0], vec![0, 1], vec![1, 0]] {
        let task = task(&program, Model::Tso, Threads::Declared);
        let shape = Shape::new(&task).expect("it has automata");
        let classes = shape.states.iter().map(|&states| (0..states).collect()).collect();
        let mut everything = bare(&shape, &mut Random::new(0));
        everything.classes = classes;
        everything.held.clear();
        everything.pending = (0..2u32)
            .flat_map(|kind| (0..shape.states[kind as usize]).map(move |state| (kind, state)))
            .flat_map(|(kind, state)| (0..4).map(move |n| (kind, state, n / 2, n % 2)))
            .map(|(kind, state, cell, value)| Pending { kind, state, cell, value })
            .collect();
        // The bad states of a set that follows all processes.
        everything.parts = vec![Part { tracked: None, elements: Vec::new() }];
        let bad = bad_states(&task, everything.clone());
        assert!(!bad.parts[0].elements.is_empty());
        let mut forged = bad.clone();
        forged.parts[0].tracked = Some(tracked.clone());
        let judged = judge(&task, &Proof::LoadBuffers(forged));
        assert!(matches!(judged, Err(Refusal::BadMissing(_))), "{tracked:?}: {judged:?}");
    }
}

/// An element that requires only a process in any state contains every initial state.
#[test]
fn a_process_that_may_be_anywhere_may_be_at_its_start() {
    let program = read(STORE_BUFFERING);
    let task = task(&program, Model::Pso, Threads::Declared);
    for kind in 0..2 {
        for closed in [None, Some(false), Some(true)] {
            let queues =
                closed.map(|closed| Queue { cell: 0, closed, values: Vec::new() }).into_iter().collect();
            let anywhere = Viewer { kind, state: None, word: Vec::new(), queues };
            let element = Snapshot { memory: Vec::new(), processes: vec![anywhere] };
            let forged =
                Proof::SingleBuffer(SingleBuffer { elements: vec![element], ..SingleBuffer::default() });
            let judged = judge(&task, &forged);
            assert!(judged.is_err(), "automaton {kind}, queue {closed:?}");
            if closed.is_none() {
                assert_eq!(judged, Err(Refusal::Initial(0)));
            }
        }
    }
}

/// Numbers that are too large for any program, in every place: rejected, without a panic.
#[test]
fn huge_numbers_are_rejected() {
    let program = read(STORE_BUFFERING);
    let huge = u32::MAX;
    let tso = task(&program, Model::Tso, Threads::Declared);
    let shape = Shape::new(&tso).expect("it has automata");
    let classes: Vec<Vec<u32>> = shape.states.iter().map(|&states| (0..states).collect()).collect();
    let element =
        Element { memory: Vec::new(), processes: vec![Process { kind: 0, state: 0, word: Vec::new() }] };
    let good = LoadBuffers {
        classes,
        sets: vec![vec![0]],
        parts: vec![Part { tracked: None, elements: vec![element] }],
        ..LoadBuffers::default()
    };
    let check = |change: &dyn Fn(&mut LoadBuffers)| {
        let mut proof = good.clone();
        change(&mut proof);
        assert!(judge(&tso, &Proof::LoadBuffers(proof.clone())).is_err(), "{proof:?}");
    };
    check(&|proof| proof.classes[0][0] = huge);
    check(&|proof| proof.pending.push(Pending { kind: huge, state: huge, cell: huge, value: huge }));
    check(&|proof| proof.pending.push(Pending { kind: 0, state: huge, cell: 0, value: 0 }));
    check(&|proof| proof.held.push(Held { cell: huge, kind: 0, values: Vec::new() }));
    check(&|proof| proof.held.push(Held { cell: 0, kind: huge, values: Vec::new() }));
    check(&|proof| proof.parts[0].tracked = Some(vec![huge, huge]));
    check(&|proof| proof.parts[0].tracked = Some(vec![0; 3]));
    check(&|proof| proof.parts[0].elements[0].memory.push((huge, 0)));
    check(&|proof| proof.parts[0].elements[0].memory.push((0, huge)));
    check(&|proof| proof.parts[0].elements[0].processes[0].kind = huge);
    check(&|proof| proof.parts[0].elements[0].processes[0].state = huge);
    check(&|proof| {
        let word = &mut proof.parts[0].elements[0].processes[0].word;
        word.push(SetLetter { own: true, cell: huge, values: 0 });
    });
    check(&|proof| {
        let word = &mut proof.parts[0].elements[0].processes[0].word;
        word.push(SetLetter { own: false, cell: 0, values: huge });
    });
    check(&|proof| proof.sets.push(vec![huge]));
    check(&|proof| {
        let process = proof.parts[0].elements[0].processes[0].clone();
        proof.parts[0].elements[0].processes = vec![process; 100_000];
    });
    let pso = task(&program, Model::Pso, Threads::Declared);
    let viewer = |kind, state, queues| Viewer { kind, state, word: Vec::new(), queues };
    let viewers = [
        viewer(huge, None, Vec::new()),
        viewer(0, Some(huge), Vec::new()),
        viewer(0, None, vec![Queue { cell: huge, closed: true, values: Vec::new() }]),
        viewer(0, None, vec![Queue { cell: 0, closed: true, values: vec![huge] }]),
    ];
    for viewer in viewers {
        let element = Snapshot { memory: Vec::new(), processes: vec![viewer.clone()] };
        let judged = judge(
            &pso,
            &Proof::SingleBuffer(SingleBuffer { elements: vec![element], ..SingleBuffer::default() }),
        );
        assert!(matches!(judged, Err(Refusal::Unfit(_))), "{viewer:?}: {judged:?}");
    }
    let many = Snapshot { memory: Vec::new(), processes: vec![viewer(0, Some(0), Vec::new()); 100_000] };
    let judged =
        judge(&pso, &Proof::SingleBuffer(SingleBuffer { elements: vec![many], ..SingleBuffer::default() }));
    assert!(matches!(judged, Err(Refusal::Unfit(_))), "{judged:?}");
}
