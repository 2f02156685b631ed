//! Recorded executions as files: a text form that a person can write, and a compact binary form.
//! `docs/traces.md` describes both.
//!
//! *Guarantee.* Reading uses memory for the table of instructions and one buffer, whatever the length of the
//! trace. No input causes a panic. Reading ends at the first error, because leaving out an event could make
//! the monitors report something impossible.

mod binary;
mod text;

pub use binary::BinaryWriter;
pub use text::TextWriter;

use crate::event::{Event, Instruction};
use rustc_hash::FxHashMap;
use std::io::{self, Read};

/// The instructions of a program, by their names in a trace. A name is usually a place in a source file.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    names: Vec<String>,
    known: FxHashMap<String, Instruction>,
}

impl Instructions {
    /// The instruction with this name, created if it is new.
    pub fn intern(&mut self, name: &str) -> Instruction {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let new = self.push(name);
        self.known.insert(name.to_owned(), new);
        new
    }

    /// Adds an instruction, even if the name exists already.
    fn push(&mut self, name: &str) -> Instruction {
        self.names.push(name.to_owned());
        Instruction(self.names.len() as u32 - 1)
    }

    /// Its name in the trace.
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

/// How a trace that was read ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With its end mark: it is complete.
    Marked,
    /// Without its end mark: it may be complete, or it may be truncated. Only texts that do not begin with
    /// `palisade trace 1` can end this way.
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
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// A record of a binary trace is wrong.
    #[error("byte {offset}: {problem}")]
    Record {
        /// The offset of its first byte.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// A trace that is being read.
///
/// Neither the input nor what takes the events is a type parameter, so that decoding is compiled in this crate, once.
pub struct TraceReader<'r> {
    form: Form<'r>,
    instructions: Instructions,
}

enum Form<'r> {
    Text(text::Lines<'r>),
    Binary(binary::Records<'r>),
}

impl<'r> TraceReader<'r> {
    /// Detects the form from the beginning of the input.
    pub fn new(input: impl Read + 'r) -> io::Result<TraceReader<'r>> {
        let mut input: Box<dyn Read + 'r> = Box::new(input);
        let mut start = Vec::new();
        input.by_ref().take(binary::MAGIC.len() as u64).read_to_end(&mut start)?;
        let form = if start == binary::MAGIC {
            Form::Binary(binary::Records::new(input))
        } else {
            Form::Text(text::Lines::new(start, input))
        };
        Ok(TraceReader { form, instructions: Instructions::default() })
    }

    /// Reads to the end, or to the first error.
    pub fn read(&mut self, mut take: impl FnMut(&Event)) -> Result<Ending, TraceError> {
        self.read_batches(|events| events.iter().for_each(&mut take))
    }

    /// The same, several events at a time. It never waits for input while it holds events.
    pub fn read_batches(&mut self, mut take: impl FnMut(&[Event])) -> Result<Ending, TraceError> {
        match &mut self.form {
            Form::Text(lines) => lines.read(&mut self.instructions, &mut take),
            Form::Binary(records) => records.read(&mut self.instructions, &mut take).map(|()| Ending::Marked),
        }
    }

    /// The instructions named so far.
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }
}
