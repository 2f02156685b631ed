//! How the adversary forges proofs by numbers of threads and by sets of stacks.

use super::{pick, take};
use palisade_certificate::{Missing, Refusal};
use palisade_conformance::random::Random;
use palisade_engine::proof::{Crowds, Stacks};

pub(super) fn answer_crowds(proof: &mut Crowds, refusal: Refusal, random: &mut Random) -> bool {
    match refusal {
        Refusal::Leaves { to: Missing::Crowd(more), .. } => {
            let (memories, threads) = (proof.memories.len() as u32, proof.threads.len() as u32);
            proof.memories.extend(more.memories);
            proof.threads.extend(more.threads);
            for mut element in more.elements {
                element.memory += memories;
                element.named.iter_mut().for_each(|thread| *thread += threads);
                element.started.iter_mut().for_each(|number| {
                    number.thread += threads;
                    // Any number covers more, and lets the adversary finish.
                    if random.percent(40) {
                        (number.least, number.most) = (0, None);
                    }
                });
                proof.elements.push(element);
            }
        }
        Refusal::Bad(at) if random.percent(50) => drop(proof.elements.swap_remove(at)),
        Refusal::Bad(_) | Refusal::Unfit(_) | Refusal::NotInductive(_) => spoil_crowds(proof, random),
        _ => return false,
    }
    true
}

pub(super) fn spoil_crowds(proof: &mut Crowds, random: &mut Random) {
    match random.below(7) {
        0 => take(&mut proof.elements, random),
        1 => {
            if let Some(value) = pick(&mut proof.memories, random).and_then(|memory| pick(memory, random)) {
                *value = (*value + 1) % 3;
            }
        }
        2 | 3 => {
            if let Some(number) =
                pick(&mut proof.elements, random).and_then(|element| pick(&mut element.started, random))
            {
                number.least = *random.pick(&[0, 1, 2, u32::MAX - 1, u32::MAX]);
                number.most = *random.pick(&[None, Some(0), Some(1), Some(2), Some(u32::MAX)]);
            }
        }
        4 => {
            if let Some(thread) = pick(&mut proof.threads, random) {
                thread.depth = *random.pick(&[0, 1, 2, u32::MAX]);
            }
        }
        5 => {
            if let Some(frame) =
                pick(&mut proof.threads, random).and_then(|thread| pick(&mut thread.frames, random))
            {
                match pick(&mut frame.registers, random) {
                    Some(value) if random.percent(50) => *value = (*value + 1) % 3,
                    _ => frame.location = random.below(8) as u32,
                }
            }
        }
        _ => {
            if let Some(stops) = pick(&mut proof.stops, random) {
                take(stops, random);
            }
        }
    }
}

pub(super) fn spoil_stacks(proof: &mut Stacks, random: &mut Random) {
    let frames = proof.frames.len().max(1);
    match random.below(8) {
        0 => take(&mut proof.pieces, random),
        1 => {
            if let Some(value) = pick(&mut proof.memories, random).and_then(|memory| pick(memory, random)) {
                *value = (*value + 1) % 3;
            }
        }
        2 => {
            if let Some(row) = pick(&mut proof.sets, random).and_then(|set| pick(&mut set.states, random)) {
                take(row, random);
            }
        }
        3 => {
            if let Some(set) = pick(&mut proof.sets, random) {
                let to = random.percent(50).then(|| random.below(set.states.len().max(1)) as u32);
                if let Some(row) = pick(&mut set.states, random) {
                    row.push((random.below(frames) as u32, to));
                }
            }
        }
        4 => {
            if let Some(frame) = pick(&mut proof.frames, random) {
                match random.below(3) {
                    0 => frame.inherited ^= true,
                    1 => frame.opened = *random.pick(&[0, 1, 2, u32::MAX]),
                    _ => frame.frame.location = random.below(8) as u32,
                }
            }
        }
        5 => {
            if let Some(value) =
                pick(&mut proof.frames, random).and_then(|frame| pick(&mut frame.frame.registers, random))
            {
                *value = (*value + 1) % 3;
            }
        }
        6 => {
            let sets = proof.sets.len().max(1);
            if let Some(piece) = pick(&mut proof.pieces, random) {
                match pick(&mut piece.threads, random) {
                    Some(thread) => thread.1 = random.below(sets) as u32,
                    None => piece.memory = 0,
                }
            }
        }
        _ => {
            if let Some(stops) = pick(&mut proof.stops, random) {
                take(stops, random);
            }
        }
    }
}
