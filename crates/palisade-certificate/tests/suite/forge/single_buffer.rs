//! How the adversary forges single-buffer proofs.

use super::{Message, Shape, pick, take};
use crate::rules::adopt_snapshot;
use palisade_certificate::{Missing, Refusal};
use palisade_conformance::random::Random;
use palisade_engine::proof::{Cell, Queue, SetLetter, SingleBuffer, Snapshot, Viewer};

pub(super) fn answer_single_buffer(
    proof: &mut SingleBuffer,
    refusal: Refusal,
    shape: &Shape,
    random: &mut Random,
) -> bool {
    match refusal {
        Refusal::BadMissing(Missing::SingleBuffer(element, sets)) => {
            let mut element = adopt_snapshot(proof, &element, &sets);
            if random.percent(30) {
                loosen(&mut element, random);
            }
            proof.elements.push(element);
        }
        Refusal::NotClosed { predecessor: Missing::SingleBuffer(element, sets), .. } => {
            let mut element = adopt_snapshot(proof, &element, &sets);
            if random.percent(10) {
                loosen(&mut element, random);
            }
            proof.elements.push(element);
        }
        Refusal::Initial(at) => match random.below(3) {
            0 => drop(proof.elements.swap_remove(at)),
            1 => loosen(&mut proof.elements[at], random),
            _ => burden(&mut proof.sets, &mut proof.elements[at], shape, random),
        },
        Refusal::Unfit(_) => take(&mut proof.elements, random),
        _ => return false,
    }
    true
}

/// Removes a requirement from an element.
pub(super) fn loosen(element: &mut Snapshot, random: &mut Random) {
    match random.below(5) {
        0 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.state = None;
            }
        }
        1 => take(&mut element.memory, random),
        2 => {
            if let Some(cell) = pick(&mut element.memory, random) {
                cell.settled = false;
            }
        }
        3 => {
            if let Some(process) = pick(&mut element.processes, random) {
                take(&mut process.queues, random);
            }
        }
        _ => take(&mut element.processes, random),
    }
}

/// Adds a requirement to an element.
pub(super) fn burden(sets: &mut Vec<Vec<u32>>, element: &mut Snapshot, shape: &Shape, random: &mut Random) {
    let kind = shape.kind(random);
    let state = random.percent(70).then(|| shape.state(kind, random));
    let Some(Message { own, cell, value }) = shape.message(random) else { return };
    // This value, and sometimes another one.
    let other = shape.values[cell as usize].saturating_sub(1).min(random.below(3) as u32);
    let mut set = if random.percent(70) { vec![value] } else { vec![value, other] };
    set.sort_unstable();
    set.dedup();
    let values = sets.len() as u32;
    sets.push(set);
    match random.below(5) {
        0 => element.processes.push(Viewer { kind, state, word: Vec::new(), queues: Vec::new() }),
        1 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.state = random.percent(70).then(|| shape.state(process.kind, random));
            }
        }
        2 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.word.insert(0, SetLetter { own, cell, values });
            }
        }
        3 => {
            if let Some(process) = pick(&mut element.processes, random) {
                process.queues.retain(|queue| queue.cell != cell);
                let values = vec![values; random.below(2)];
                process.queues.push(Queue { cell, closed: random.percent(50), values });
            }
        }
        _ => {
            element.memory.retain(|known| known.cell != cell);
            element.memory.push(Cell { cell, values, settled: random.percent(50) });
        }
    }
}
