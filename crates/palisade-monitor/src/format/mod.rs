//! Recorded executions as files: a text form that a person can write, and a compact binary form. `docs/traces.md` describes both.
//!
//! *Guarantee.* Reading takes memory for the table of instructions and one buffer, whatever the length of the trace. No input panics. The first thing that
//! is wrong ends the reading: to leave out an event could make the monitors report what cannot happen.

mod binary;
mod text;

pub use binary::BinaryWriter;
pub use text::TextWriter;

use crate::event::{Event, Instruction};
use rustc_hash::FxHashMap;
use std::io::{self, Read};

/// The instructions of a program, by what a trace calls them: usually a place in a source text.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    names: Vec<String>,
    known: FxHashMap<String, Instruction>,
}

impl Instructions {
    /// The instruction with a name, if need be a new one.
    pub fn intern(&mut self, name: &str) -> Instruction {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let new = self.push(name);
        self.known.insert(name.to_owned(), new);
        new
    }

    /// A new instruction, whatever its name.
    fn push(&mut self, name: &str) -> Instruction {
        self.names.push(name.to_owned());
        Instruction(self.names.len() as u32 - 1)
    }

    /// What the trace calls it.
    pub fn name(&self, instruction: Instruction) -> &str {
        self.names.get(instruction.0 as usize).map_or("", String::as_str)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// How a trace that was read came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With its end mark: it is complete.
    Marked,
    /// Without: it may be complete, or have been cut off. Only texts that do not begin with `palisade trace 1` can end like this.
    Unmarked,
}

/// Why a trace could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It ends too early.
    #[error("the trace is cut off: it ends without its end mark")]
    CutOff,
    /// A line of a text is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// A record of a binary trace is wrong.
    #[error("byte {offset}: {problem}")]
    Record {
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// A trace that is being read.
#[derive(Debug)]
pub struct TraceReader<R> {
    form: Form<R>,
    instructions: Instructions,
}

#[derive(Debug)]
enum Form<R> {
    Text(text::Lines<R>),
    Binary(binary::Records<R>),
}

impl<R: Read> TraceReader<R> {
    /// Looks at the beginning to find out which form it is.
    pub fn new(mut input: R) -> io::Result<TraceReader<R>> {
        let mut start = Vec::new();
        input.by_ref().take(binary::MAGIC.len() as u64).read_to_end(&mut start)?;
        let form = if start == binary::MAGIC {
            Form::Binary(binary::Records::new(input))
        } else {
            Form::Text(text::Lines::new(start, input))
        };
        Ok(TraceReader { form, instructions: Instructions::default() })
    }

    /// Reads to the end, or to the first thing that is wrong.
    pub fn read(&mut self, mut take: impl FnMut(&Event)) -> Result<Ending, TraceError> {
        self.read_batches(|events| events.iter().for_each(&mut take))
    }

    /// The same, some events at a time; never waits for input with events in hand.
    pub fn read_batches(&mut self, mut take: impl FnMut(&[Event])) -> Result<Ending, TraceError> {
        match &mut self.form {
            Form::Text(lines) => lines.read(&mut self.instructions, &mut take),
            Form::Binary(records) => records.read(&mut self.instructions, &mut take).map(|()| Ending::Marked),
        }
    }

    /// The instructions that were named so far.
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }
}
