//! How the adversary forges load-buffer proofs.

use super::{Shape, numbers, pick, take};
use crate::rules::adopt;
use palisade_certificate::{Missing, Refusal};
use palisade_conformance::random::Random;
use palisade_engine::proof::{Element, Held, LoadBuffers, Part, Pending, Process, SetLetter};

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
    let mut proof = LoadBuffers {
        rewritten: random.percent(50),
        classes,
        pending,
        held,
        sets: Vec::new(),
        parts: Vec::new(),
    };
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
        Refusal::BadMissing(Missing::LoadBuffers(element, sets)) => {
            let element = adopt(proof, &element, &turned(sets, &element, shape, random));
            let part = pick(&mut proof.parts, random);
            part.is_some_and(|part| {
                part.elements.push(element);
                true
            })
        }
        Refusal::NotClosed { element, predecessor: Missing::LoadBuffers(missing, sets) } => {
            let (part, _) = place_of(proof, element).expect("the checker names an element of the proof");
            let missing = adopt(proof, &missing, &turned(sets, &missing, shape, random));
            proof.parts[part].elements.push(missing);
            true
        }
        Refusal::Initial(element) => {
            let (part, at) = place_of(proof, element).expect("the checker names an element of the proof");
            match random.below(4) {
                0 => drop(proof.parts[part].elements.swap_remove(at)),
                1 => proof.parts[part].tracked = tracked(shape, random),
                2 => take(&mut proof.pending, random),
                _ => demand(&mut proof.sets, &mut proof.parts[part].elements[at], shape, random),
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

/// The sets of an element, now and then with more values or with fewer.
fn turned(mut sets: Vec<Vec<u32>>, element: &Element, shape: &Shape, random: &mut Random) -> Vec<Vec<u32>> {
    let letters = element.processes.iter().flat_map(|process| &process.word);
    let named: Vec<(u32, u32)> =
        letters.map(|letter| (letter.cell, letter.values)).chain(element.memory.iter().copied()).collect();
    for (number, set) in sets.iter_mut().enumerate() {
        // A set may be named for several cells.
        let cells = named.iter().filter(|(_, set)| *set as usize == number).map(|(cell, _)| *cell as usize);
        let most = cells.map(|cell| shape.values[cell]).min().unwrap_or(0);
        match random.below(12) {
            0 => *set = (0..most).filter(|value| set.contains(value) || random.percent(50)).collect(),
            1 if set.len() > 1 => take(set, random),
            2 => *set = (0..most).collect(),
            _ => {}
        }
        set.sort_unstable();
    }
    sets
}

/// A set of values of a cell, among those of the proof.
fn some_set(sets: &mut Vec<Vec<u32>>, cell: u32, shape: &Shape, random: &mut Random) -> u32 {
    let values = shape.values[cell as usize];
    let certain = random.below(values as usize) as u32;
    let several = random.percent(50);
    let is_in = |value: &u32| *value == certain || several && random.percent(50);
    let set: Vec<u32> = (0..values).filter(is_in).collect();
    let place = sets.iter().position(|other| *other == set).unwrap_or_else(|| {
        sets.push(set);
        sets.len() - 1
    });
    place as u32
}

/// Adds a requirement to an element, or changes one.
pub(super) fn demand(sets: &mut Vec<Vec<u32>>, element: &mut Element, shape: &Shape, random: &mut Random) {
    let kind = shape.kind(random);
    let state = shape.state(kind, random);
    match random.below(6) {
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
                let values = some_set(sets, message.cell, shape, random);
                process.word.insert(0, SetLetter { own: message.own, cell: message.cell, values });
            }
        }
        3 => {
            if let Some(message) = shape.message(random) {
                element.memory.retain(|known| known.0 != message.cell);
                element.memory.push((message.cell, some_set(sets, message.cell, shape, random)));
            }
        }
        4 => {
            let letters: Vec<&mut SetLetter> =
                element.processes.iter_mut().flat_map(|process| &mut process.word).collect();
            if !letters.is_empty() {
                let at = random.below(letters.len());
                let letter = letters.into_iter().nth(at).expect("it is one of them");
                letter.values = some_set(sets, letter.cell, shape, random);
            }
        }
        _ => {
            let again = element.processes.clone();
            element.processes.extend(again);
        }
    }
}
