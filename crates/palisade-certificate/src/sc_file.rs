//! The file format of proofs for SC: numbers in the order of the fields of [`palisade_engine::proof`]. Frames
//! are `[code, location, registers, result]`.

use crate::file::Flag;
use palisade_engine::proof::{
    Activation, Crowd, Crowds, Number, Piece, StackFrame, StackSet, Stacks, ThreadState,
};
use palisade_program::Value;
use serde::{Deserialize, Serialize};

/// Code, location, registers, register for the result.
type Frame = (u32, u32, Vec<Value>, Option<u32>);

/// Memory, threads from the start, and for each thread state of the others the minimal and maximal number.
type Element = (u32, Vec<u32>, Vec<(u32, u32, Option<u32>)>);

/// For each state its edges: frame and next state.
type Set = Vec<Vec<(u32, Option<u32>)>>;

/// Numbers of threads.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CrowdsBody {
    stops: Vec<Vec<u32>>,
    memories: Vec<Vec<Value>>,
    /// Role, frames, open sections.
    threads: Vec<(u32, Vec<Frame>, u32)>,
    elements: Vec<Element>,
}

/// Sets of stacks.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StacksBody {
    stops: Vec<Vec<u32>>,
    memories: Vec<Vec<Value>>,
    /// The frame, whether a section is open below, and the number of sections it opened.
    frames: Vec<(Frame, Flag, u32)>,
    sets: Vec<Set>,
    /// Memory, and role and set of each thread.
    pieces: Vec<(u32, Vec<(u32, u32)>)>,
}

fn written(frame: &Activation) -> Frame {
    (frame.code, frame.location, frame.registers.clone(), frame.result)
}

fn read((code, location, registers, result): Frame) -> Activation {
    Activation { code, location, registers, result }
}

impl CrowdsBody {
    pub fn of(proof: &Crowds) -> CrowdsBody {
        let thread =
            |thread: &ThreadState| (thread.role, thread.frames.iter().map(written).collect(), thread.depth);
        let element = |element: &Crowd| {
            let started = element.started.iter().map(|number| (number.thread, number.least, number.most));
            (element.memory, element.named.clone(), started.collect())
        };
        CrowdsBody {
            stops: proof.stops.clone(),
            memories: proof.memories.clone(),
            threads: proof.threads.iter().map(thread).collect(),
            elements: proof.elements.iter().map(element).collect(),
        }
    }

    pub fn proof(self) -> Crowds {
        let thread = |(role, frames, depth): (u32, Vec<Frame>, u32)| ThreadState {
            role,
            frames: frames.into_iter().map(read).collect(),
            depth,
        };
        let number = |(thread, least, most)| Number { thread, least, most };
        let element = |(memory, named, started): Element| Crowd {
            memory,
            named,
            started: started.into_iter().map(number).collect(),
        };
        Crowds {
            stops: self.stops,
            memories: self.memories,
            threads: self.threads.into_iter().map(thread).collect(),
            elements: self.elements.into_iter().map(element).collect(),
        }
    }
}

impl StacksBody {
    pub fn of(proof: &Stacks) -> StacksBody {
        let frame = |frame: &StackFrame| (written(&frame.frame), Flag(frame.inherited), frame.opened);
        StacksBody {
            stops: proof.stops.clone(),
            memories: proof.memories.clone(),
            frames: proof.frames.iter().map(frame).collect(),
            sets: proof.sets.iter().map(|set| set.states.clone()).collect(),
            pieces: proof.pieces.iter().map(|piece| (piece.memory, piece.threads.clone())).collect(),
        }
    }

    pub fn proof(self) -> Stacks {
        let frame = |(frame, Flag(inherited), opened): (Frame, Flag, u32)| StackFrame {
            frame: read(frame),
            inherited,
            opened,
        };
        Stacks {
            stops: self.stops,
            memories: self.memories,
            frames: self.frames.into_iter().map(frame).collect(),
            sets: self.sets.into_iter().map(|states| StackSet { states }).collect(),
            pieces: self.pieces.into_iter().map(|(memory, threads)| Piece { memory, threads }).collect(),
        }
    }
}
