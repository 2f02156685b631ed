//! How the adversary forges load-buffer proofs.

use super::{Shape, numbers, pick, take};
use palisade_certificate::{Missing, Refusal};
use palisade_conformance::random::Random;
use palisade_engine::proof::{Element, Held, LoadBuffers, Message, Part, Pending, Process};

/// A proof without elements. It has no claims or claims that always hold, and a few sets that follow some
/// processes.
pub(super) fn bare(shape: &Shape, random: &mut Random) -> LoadBuffers {
    let classes = shape.states.iter().map(|&states| {
        let merged = random.percent(20);
        (0..states).map(|state| if merged { state / 2 } else { state }).collect()
    });
    let classes: Vec<Vec<u32>> = classes.collect();
    let mut pending = Vec::new();
    if random.percent(30) {
        for (kind, &states) in (0..).zip(&shape.states) {
            for state in 0..states {
                for (cell, &values) in (0..).zip(&shape.values) {
                    pending.extend((0..values).map(|value| Pending { kind, state, cell, value }));
                }
            }
        }
    }
    let mut held = Vec::new();
    for (cell, &values) in (0..).zip(&shape.values) {
        if random.percent(40) {
            let kind = shape.kind(random);
            let classes = classes[kind as usize].iter().max().map_or(0, |most| most + 1);
            let all = random.percent(50);
            let some = (0..values).filter(|_| all).collect::<Vec<u32>>();
            held.push(Held { cell, kind, values: vec![some; classes as usize] });
        }
    }
    let mut proof = LoadBuffers { classes, pending, held, parts: Vec::new() };
    for _ in 0..random.between(1, 3) {
        let tracked = tracked(shape, random);
        proof.parts.push(Part { tracked, elements: Vec::new() });
    }
    proof
}

pub(super) fn tracked(shape: &Shape, random: &mut Random) -> Option<Vec<u32>> {
    let some = random.percent(75);
    let number = |random: &mut Random| *random.pick(&[0, 0, 1, 1, 2, 3, u32::MAX]);
    some.then(|| shape.states.iter().map(|_| number(random)).collect())
}

/// The part that an element belongs to, and its index there.
pub(super) fn place_of(proof: &LoadBuffers, mut element: usize) -> Option<(usize, usize)> {
    for (part, elements) in proof.parts.iter().enumerate() {
        if element < elements.elements.len() {
            return Some((part, element));
        }
        element -= elements.elements.len();
    }
    None
}

/// Makes the adversary's next move. Returns whether there is one.
pub(super) fn answer_load_buffers(
    proof: &mut LoadBuffers,
    refusal: Refusal,
    shape: &Shape,
    random: &mut Random,
) -> bool {
    if random.percent(4)
        && let Some(part) = pick(&mut proof.parts, random)
    {
        part.tracked = tracked(shape, random);
    }
    match refusal {
        Refusal::BadMissing(Missing::LoadBuffers(element)) => {
            let part = pick(&mut proof.parts, random);
            part.is_some_and(|part| {
                part.elements.push(element);
                true
            })
        }
        Refusal::NotClosed { element, predecessor: Missing::LoadBuffers(missing) } => {
            let (part, _) = place_of(proof, element).expect("the checker names an element of the proof");
            proof.parts[part].elements.push(missing);
            true
        }
        Refusal::Initial(element) => {
            let (part, at) = place_of(proof, element).expect("the checker names an element of the proof");
            match random.below(4) {
                0 => drop(proof.parts[part].elements.swap_remove(at)),
                1 => proof.parts[part].tracked = tracked(shape, random),
                2 => take(&mut proof.pending, random),
                _ => demand(&mut proof.parts[part].elements[at], shape, random),
            }
            true
        }
        Refusal::NotInductive(message) => {
            match numbers(&message)[..] {
                [kind, state, cell, value] => proof.pending.push(Pending { kind, state, cell, value }),
                [cell, value, state] => {
                    let claims = proof.held.iter_mut().filter(|held| held.cell == cell);
                    claims.for_each(|held| held.values[state as usize].push(value));
                }
                _ => panic!("{message}"),
            }
            true
        }
        // A claim about a cell with several writers.
        Refusal::Unfit(message) if message.contains("other writers") => {
            let cell = numbers(&message)[0];
            proof.held.retain(|held| held.cell != cell);
            true
        }
        Refusal::Unfit(_) => {
            proof.parts.iter_mut().for_each(|part| take(&mut part.elements, random));
            true
        }
        _ => false,
    }
}

/// Adds a requirement to an element.
pub(super) fn demand(element: &mut Element, shape: &Shape, random: &mut Random) {
    let kind = shape.kind(random);
    let state = shape.state(kind, random);
    match random.below(5) {
        0 => element.processes.push(Process { kind, state, word: Vec::new() }),
        1 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.state = shape.state(process.kind, random);
            }
        }
        2 => {
            if let (Some(process), Some(message)) =
                (pick(&mut element.processes, random), shape.message(random))
            {
                process.word.insert(0, message);
            }
        }
        3 => {
            if let Some(Message { cell, value, .. }) = shape.message(random) {
                element.memory.retain(|known| known.0 != cell);
                element.memory.push((cell, value));
            }
        }
        _ => {
            let again = element.processes.clone();
            element.processes.extend(again);
        }
    }
}
