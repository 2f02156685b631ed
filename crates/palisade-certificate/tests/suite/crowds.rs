//! Proofs by numbers of threads, rule by rule. A set that is closed step by step is accepted if the program
//! is safe, and reaches a bad state if it is not. Then proofs that were forged by hand.

use crate::rules::{PROGRAMS, judge, read, task};
use palisade_base::Id;
use palisade_certificate::{Missing, Refusal};
use palisade_engine::proof::{Activation, Crowd, Crowds, Number, ThreadState};
use palisade_engine::{Proof, Task};
use palisade_memory::{Model, Thread};
use palisade_program::running::{Instr, System};

/// Where local steps are not skipped.
#[derive(Clone, Copy, Debug)]
enum Stops {
    Everywhere,
    /// At the start, and at the heads of loops.
    AtLoops,
}

fn stops(system: &System, which: Stops) -> Vec<Vec<u32>> {
    let codes = system.codes.iter().map(|code| match which {
        Stops::Everywhere => (0..code.location_count() as u32).collect(),
        Stops::AtLoops => {
            let back = code.edges().iter().filter(|edge| edge.target <= edge.source);
            back.map(|edge| edge.target.0).chain([code.entry.0]).collect()
        }
    });
    codes.collect()
}

fn written(thread: &Thread) -> ThreadState {
    let frame = |frame: &palisade_memory::Frame| Activation {
        code: frame.code.0,
        location: frame.location.0,
        registers: frame.registers.clone(),
        result: frame.result.map(|register| register.index() as u32),
    };
    ThreadState { role: thread.role.0, frames: thread.frames.iter().map(frame).collect(), depth: 0 }
}

/// A proof with the initial states only.
fn initial(task: &Task<'_>, which: Stops) -> Crowds {
    let system = task.lower(1);
    let mut proof = Crowds { stops: stops(&system, which), ..Crowds::default() };
    for state in task.machine(&system).initial_states() {
        let first = proof.threads.len() as u32;
        proof.threads.extend(state.threads.iter().map(|thread| written(thread)));
        let named = (first..proof.threads.len() as u32).collect();
        let memory = proof.memories.len() as u32;
        proof.memories.push(state.memory.as_slice().to_vec());
        proof.elements.push(Crowd { memory, named, started: Vec::new() });
    }
    proof
}

/// Adds missing elements until none is missing, or until the checker finds another problem.
fn close(task: &Task<'_>, which: Stops) -> (Crowds, Result<(), Refusal>) {
    let mut proof = initial(task, which);
    loop {
        let more = match judge(task, &Proof::Crowds(proof.clone())) {
            Err(Refusal::Leaves { to: Missing::Crowd(more), .. }) => more,
            judged => return (proof, judged),
        };
        let (memories, threads) = (proof.memories.len() as u32, proof.threads.len() as u32);
        proof.memories.extend(more.memories);
        proof.threads.extend(more.threads);
        for mut element in more.elements {
            element.memory += memories;
            element.named.iter_mut().for_each(|thread| *thread += threads);
            element.started.iter_mut().for_each(|number| number.thread += threads);
            proof.elements.push(element);
        }
    }
}

/// Programs that start threads or take local steps, and whether they are unsafe.
const MORE: &[(&str, bool)] = &[
    // Threads are counted at their end as well.
    (
        "shared x: 0..1; process Main { spawn W; spawn W; } process W on spawn { x = 1; } forbid count(W@end) >= 2;",
        true,
    ),
    (
        "shared x: 0..1; process Main { spawn W; spawn W; } process W on spawn { x = 1; } forbid count(W@end) >= 3;",
        false,
    ),
    // Final states: all threads have ended, however many there are.
    ("shared x: 0..1; process Main { spawn W; } process W on spawn { x = 1; } final x == 1;", false),
    ("shared x: 0..1; process Main { spawn W; } process W on spawn { x = 1; } final x == 0;", true),
    ("shared x: 0..1; process Main { spawn W; } process W on spawn { loop { x = 1; } } final x == 2;", false),
    // Sections.
    (
        "shared x: 0..1; process Main { spawn W; atomic { x = 1; x = 0; } } process W on spawn { let r = x; assert(r == 0); }",
        false,
    ),
    (
        "shared x: 0..1; process Main { spawn W; x = 1; x = 0; } process W on spawn { let r = x; assert(r == 0); }",
        true,
    ),
    // Steps that no `forbid` sees are skipped, and no others.
    ("process P { let r: 0..2; r = 1; r = 2; r = 0; } forbid P.r == 2;", true),
    ("process P { let r: 0..2; r = 1; r = 2; r = 0; } forbid P.r > 2;", false),
    ("process P { skip; here: skip; skip; } forbid P@here;", true),
    ("shared x: 0..1; process P { x = 1; loop { skip; } } process Q { let r = x; assert(r == 0); }", true),
    ("shared x: 0..1; process P { x = 1; loop { skip; } } process Q { let r = x; assert(r < 2); }", false),
    // Procedures and their results.
    (
        "shared x: 0..2; proc f(a: 0..1) -> 0..2 { x = a; return x + 1; } process P { let r = f(1); assert(r == 2); }",
        false,
    ),
    (
        "shared x: 0..2; proc f(a: 0..1) -> 0..2 { x = a; return x + 1; } process P { let r = f(1); assert(r == 2); } process Q { x = 0; }",
        true,
    ),
];

#[test]
fn sets_closed_step_by_step_reach_the_bad_states() {
    let known = PROGRAMS.iter().map(|&(text, breaks)| (text, breaks.contains(&Model::Sc)));
    for (text, is_unsafe) in known.chain(MORE.iter().copied()) {
        let program = read(text);
        let task = task(&program, Model::Sc);
        if task.is_parameterized() {
            continue;
        }
        for which in [Stops::Everywhere, Stops::AtLoops] {
            let judged = close(&task, which).1;
            match is_unsafe {
                true => assert!(matches!(judged, Err(Refusal::Bad(_))), "{which:?}: {judged:?}\n{text}"),
                false => assert_eq!(judged, Ok(()), "{which:?}\n{text}"),
            }
        }
    }
}

/// A thread state of the named process that fits.
fn find(task: &Task<'_>, proof: &Crowds, name: &str, fits: impl Fn(&ThreadState) -> bool) -> ThreadState {
    let system = task.lower(1);
    let is_named = |thread: &&ThreadState| {
        let role = palisade_program::running::RoleId(thread.role);
        system.role_code(role).name == name && fits(thread)
    };
    proof.threads.iter().find(is_named).expect("there is such a thread state").clone()
}

/// While a section is open only its holder runs. A section that may be open, or open twice, would keep the
/// others from running.
#[test]
fn a_section_is_held_by_exactly_one() {
    let program = read(
        "shared x: 0..1; process Main { spawn W; } process W on spawn { atomic { x = 0; } }
         process Q { x = 1; let r = x; assert(r == 0); }",
    );
    let task = task(&program, Model::Sc);
    let (closed, judged) = close(&task, Stops::Everywhere);
    assert!(matches!(judged, Err(Refusal::Bad(_))), "{judged:?}");
    let system = task.lower(1);
    let ends = |thread: &ThreadState| {
        let code = &system.codes[palisade_program::running::CodeId(thread.frames[0].code)];
        let location = palisade_program::running::Location(thread.frames[0].location);
        let mut edges = code.edges_from(location).map(palisade_program::running::EdgeId);
        edges.any(|edge| code.edges()[edge].instr == Instr::AtomicEnd)
    };
    let mut forged = initial(&task, Stops::Everywhere);
    let inside = find(&task, &closed, "W", |thread| thread.depth > 0 && !ends(thread));
    let at_end = find(&task, &closed, "W", |thread| thread.depth > 0 && ends(thread));
    let first = forged.threads.len() as u32;
    forged.threads.extend([inside, at_end]);
    let start = forged.elements[0].clone();
    for (least, most) in [(0, Some(1)), (0, None), (1, None), (1, Some(2)), (2, Some(2))] {
        let holder = Number { thread: first, least, most };
        let ending = Number { thread: first + 1, least: 1, most: Some(1) };
        let mut forged = forged.clone();
        forged.elements = vec![
            Crowd { started: vec![holder], ..start.clone() },
            Crowd { started: vec![Number { least: 0, most: Some(0), ..holder }, ending], ..start.clone() },
        ];
        let judged = judge(&task, &Proof::Crowds(forged));
        if least == 0 {
            assert!(matches!(judged, Err(Refusal::Unfit(_))), "{least}, {most:?}: {judged:?}");
        } else {
            assert_eq!(judged, Err(Refusal::InitialMissing), "{least}, {most:?}");
        }
    }
}

/// A thread that takes a step leaves its old thread state. A set in which one thread always stays there would
/// miss the bad state, in which none does.
#[test]
fn a_thread_that_moves_leaves_its_place() {
    let program = read(
        "shared x: 0..1; process Main { spawn W; } process W on spawn { a: x = 1; b: x = 0; }
         forbid count(W@a) == 0 && count(W@b) == 1;",
    );
    let task = task(&program, Model::Sc);
    let (closed, judged) = close(&task, Stops::Everywhere);
    assert!(matches!(judged, Err(Refusal::Bad(_))), "{judged:?}");
    let mut forged = initial(&task, Stops::Everywhere);
    let at = |location: u32| find(&task, &closed, "W", |thread| thread.frames[0].location == location);
    let ended = find(&task, &closed, "Main", |thread| thread != &forged.threads[0]);
    forged.threads.extend([ended, at(0), at(1)]);
    forged.memories.push(vec![1]);
    for memory in 0..2 {
        let number = |thread, least| Number { thread, least, most: None };
        forged.elements.push(Crowd { memory, named: vec![1], started: vec![number(2, 1), number(3, 0)] });
    }
    let judged = judge(&task, &Proof::Crowds(forged));
    assert!(matches!(judged, Err(Refusal::Leaves { .. })), "{judged:?}");
}

/// Thread states that do not exist in the program are rejected, without a panic.
#[test]
fn thread_states_that_do_not_exist() {
    let program = read(
        "shared x: 0..2; proc f(a: 0..1) -> 0..2 { x = a; return 1; }
         process Main { spawn W; } process W on spawn { let r = f(1); atomic { x = r; } }",
    );
    let task = task(&program, Model::Sc);
    let (proof, judged) = close(&task, Stops::Everywhere);
    assert_eq!(judged, Ok(()));
    // The first element contains the changed thread, and is checked first.
    let refusals = |change: &dyn Fn(&mut ThreadState)| -> Vec<String> {
        let changed = proof.elements.iter().flat_map(|element| {
            (0..element.started.len()).filter_map(|at| {
                let mut element = element.clone();
                let (mut thread, last) =
                    (proof.threads[element.started[at].thread as usize].clone(), proof.threads.len());
                change(&mut thread);
                element.started[at] = Number { thread: last as u32, least: 1, most: Some(1) };
                let mut changed = proof.clone();
                changed.threads.push(thread);
                changed.elements.insert(0, element);
                (!proof.threads.contains(&changed.threads[last])).then_some(changed)
            })
        });
        let judged = changed.map(|changed| judge(&task, &Proof::Crowds(changed)));
        judged.map(|judged| judged.err().map_or("accepted".into(), |refusal| refusal.to_string())).collect()
    };
    let some = |change: &dyn Fn(&mut ThreadState), expected: &str| {
        let refusals = refusals(change);
        assert!(refusals.iter().any(|refusal| refusal.contains(expected)), "{expected}: {refusals:?}");
    };
    let all = |change: &dyn Fn(&mut ThreadState), expected: &str| {
        let refusals = refusals(change);
        assert!(!refusals.is_empty());
        assert!(refusals.iter().all(|refusal| refusal.contains(expected)), "{expected}: {refusals:?}");
    };
    all(&|thread| (thread.role, thread.frames) = (99, Vec::new()), "a thread state");
    let system = task.lower(1);
    let locations = |code: u32| system.codes[palisade_program::running::CodeId(code)].location_count() as u32;
    all(&|thread| thread.frames[0].location = locations(thread.frames[0].code), "a frame");
    some(&|thread| thread.depth = 0, "a section is closed without being open");
    let callee = |thread: &mut ThreadState, result: u32| {
        if let [_, frame] = &mut thread.frames[..] {
            frame.result = Some(result);
        }
    };
    some(&|thread| callee(thread, 1), "a result for an undefined register");
    some(&|thread| callee(thread, u32::MAX), "a result for an undefined register");
    let too_deep = "a stack is too deep";
    some(&|thread| thread.depth = if thread.depth > 0 { 4097 } else { 0 }, too_deep);
    let deep = |thread: &mut ThreadState, frames: usize| {
        if let [_, frame] = &thread.frames[..] {
            thread.frames.resize(frames, frame.clone());
        }
    };
    some(&|thread| deep(thread, 4097), too_deep);
    for refusal in refusals(&|thread| deep(thread, 4096)) {
        assert!(!refusal.contains(too_deep), "{refusal}");
    }
    for refusal in refusals(&|thread| thread.depth = if thread.depth > 0 { 4096 } else { 0 }) {
        assert!(!refusal.contains(too_deep), "{refusal}");
    }
}

/// An entry that allows no threads in a thread state adds nothing.
#[test]
fn no_threads_of_a_kind() {
    let program = read("shared x: 0..1; process Main { spawn W; } process W on spawn { x = 1; x = 0; }");
    let task = task(&program, Model::Sc);
    let (mut proof, judged) = close(&task, Stops::Everywhere);
    assert_eq!(judged, Ok(()));
    // Compared by content, because a thread state may be in the table more than once.
    let threads = proof.threads.clone();
    let others: Vec<u32> = (0..threads.len() as u32)
        .filter(|&thread| threads[..thread as usize].iter().all(|other| other != &threads[thread as usize]))
        .collect();
    for element in &mut proof.elements {
        let has = |thread: u32| {
            element.started.iter().any(|n| threads[n.thread as usize] == threads[thread as usize])
        };
        let none: Vec<Number> = others
            .iter()
            .filter(|&&thread| !has(thread))
            .map(|&thread| Number { thread, least: 0, most: Some(0) })
            .collect();
        element.started.extend(none);
    }
    assert_eq!(judge(&task, &Proof::Crowds(proof)), Ok(()));
}
