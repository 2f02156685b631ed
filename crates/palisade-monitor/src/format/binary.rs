//! The binary form of traces.
//!
//! Records follow the magic word without padding.
//! - The low half of a record's first byte is its kind. For accesses, the high half says how many bytes are
//!   accessed.
//! - Numbers are LEB128: seven bits per byte, the least significant first.
//! - Addresses are differences from the previous address, in zigzag form, so that an event takes about five
//!   bytes.
//! - The last record holds the number of events, so that a truncated trace is recognised.

use super::{Instructions, TraceError};
use crate::event::{Access, Action, Bytes, Event, Instruction, MAX_PROCESSES, Process};
use std::io::{self, Read, Write};

/// How a binary trace begins: a name and a version.
pub const MAGIC: &[u8] = b"PALTRACE\x01";

/// The longest name of an instruction, in bytes.
const LONGEST_NAME: usize = 4096;

/// No record is longer than this.
const LONGEST_RECORD: usize = LONGEST_NAME + 64;

const BUFFER: usize = 1 << 18;

/// How many events are passed on at a time.
const BATCH: usize = 64;

/// Kinds of records: the low half of the first byte.
mod kind {
    pub const LOAD: u8 = 0;
    pub const STORE: u8 = 1;
    pub const LOCKED: u8 = 2;
    pub const LOCKED_LOAD: u8 = 3;
    pub const FENCE: u8 = 4;
    pub const STORE_FENCE: u8 = 5;
    pub const SPAWN: u8 = 6;
    pub const START: u8 = 7;
    pub const JOIN: u8 = 8;
    pub const FREE: u8 = 9;
    pub const INSTRUCTION: u8 = 10;
    pub const END: u8 = 15;
}

/// The high half of an access's first byte is the logarithm of its size, or this value if the size follows as
/// a number.
const OTHER_SIZE: u8 = 15;

/// Writes a binary trace.
#[derive(Debug)]
pub struct BinaryWriter<W> {
    output: W,
    record: Vec<u8>,
    address: u64,
    instructions: u32,
    events: u64,
}

impl<W: Write> BinaryWriter<W> {
    /// Begins a trace. Many small pieces are written, so pass a buffered writer.
    pub fn new(mut output: W) -> io::Result<BinaryWriter<W>> {
        output.write_all(MAGIC)?;
        Ok(BinaryWriter { output, record: Vec::new(), address: 0, instructions: 0, events: 0 })
    }

    /// Names the next instruction. Instructions are numbered from 0. Names longer than 4096 bytes are
    /// truncated.
    pub fn instruction(&mut self, name: &str) -> io::Result<Instruction> {
        let cut = (0..=name.len().min(LONGEST_NAME)).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
        self.record.push(kind::INSTRUCTION);
        put(&mut self.record, cut as u64);
        self.record.extend_from_slice(&name.as_bytes()[..cut]);
        self.instructions += 1;
        self.flush_record()?;
        Ok(Instruction(self.instructions - 1))
    }

    /// Writes an event. Its instruction must have been named.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let (tag, operands) = match event.action {
            Action::Access(access, bytes) => {
                let code = match access {
                    Access::Load => kind::LOAD,
                    Access::Store => kind::STORE,
                    Access::Locked => kind::LOCKED,
                    Access::LockedLoad => kind::LOCKED_LOAD,
                };
                match bytes.size.is_power_of_two() {
                    true => {
                        (code | (bytes.size.trailing_zeros() as u8) << 4, Operands::Address(bytes.address))
                    }
                    false => (code | OTHER_SIZE << 4, Operands::Range(bytes.address, bytes.size.into())),
                }
            }
            Action::Fence => (kind::FENCE, Operands::None),
            Action::StoreFence => (kind::STORE_FENCE, Operands::None),
            Action::Spawn(child) => (kind::SPAWN, Operands::Process(child)),
            Action::Start(child) => (kind::START, Operands::Process(child)),
            Action::Join(child) => (kind::JOIN, Operands::Process(child)),
            Action::Free { address, size } => (kind::FREE, Operands::Range(address, size)),
        };
        self.record.push(tag);
        put(&mut self.record, event.process.0.into());
        put(&mut self.record, event.instruction.0.into());
        match operands {
            Operands::None => {}
            Operands::Process(process) => put(&mut self.record, process.0.into()),
            Operands::Address(address) => self.put_address(address),
            Operands::Range(address, size) => {
                self.put_address(address);
                put(&mut self.record, size);
            }
        }
        self.events += 1;
        self.flush_record()
    }

    /// Ends the trace.
    pub fn finish(mut self) -> io::Result<W> {
        self.record.push(kind::END);
        put(&mut self.record, self.events);
        self.flush_record()?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn put_address(&mut self, address: u64) {
        let difference = address.wrapping_sub(self.address) as i64;
        put(&mut self.record, ((difference << 1) ^ (difference >> 63)) as u64);
        self.address = address;
    }

    fn flush_record(&mut self) -> io::Result<()> {
        self.output.write_all(&self.record)?;
        self.record.clear();
        Ok(())
    }
}

enum Operands {
    None,
    Process(Process),
    Address(u64),
    Range(u64, u64),
}

fn put(record: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        record.push(number as u8 | 0x80);
        number >>= 7;
    }
    record.push(number as u8);
}

/// A binary trace that is being read, after its magic word.
pub(super) struct Records<'r> {
    input: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Bytes of the file before the buffer.
    passed: u64,
    at_end: bool,
    address: u64,
    events: u64,
}

/// Why a record is not valid.
enum Bad {
    /// It extends past the end of the file.
    CutOff,
    Wrong(String),
}

impl<'r> Records<'r> {
    pub(super) fn new(input: Box<dyn Read + 'r>) -> Records<'r> {
        Records {
            input,
            buffer: vec![0; BUFFER],
            at: 0,
            filled: 0,
            passed: MAGIC.len() as u64,
            at_end: false,
            address: 0,
            events: 0,
        }
    }

    pub(super) fn read(
        &mut self,
        instructions: &mut Instructions,
        take: &mut dyn FnMut(&[Event]),
    ) -> Result<(), TraceError> {
        let mut batch = Vec::with_capacity(BATCH);
        let result = self.read_records(instructions, take, &mut batch);
        take(&batch);
        result
    }

    fn read_records(
        &mut self,
        instructions: &mut Instructions,
        take: &mut dyn FnMut(&[Event]),
        batch: &mut Vec<Event>,
    ) -> Result<(), TraceError> {
        loop {
            let must_fill = self.filled - self.at < LONGEST_RECORD && !self.at_end;
            if must_fill || batch.len() == BATCH {
                take(batch);
                batch.clear();
            }
            if must_fill {
                self.fill()?;
            }
            let start = self.at;
            let mut cursor = Cursor { bytes: &self.buffer[..self.filled], at: start };
            let decoded = decode(&mut cursor, &mut self.address, instructions.len());
            self.at = cursor.at;
            let record = match decoded {
                Ok(Record::Event(event)) => {
                    self.events += 1;
                    batch.push(event);
                    continue;
                }
                Ok(other) => Ok(other),
                Err(bad) => Err(bad),
            };
            let offset = self.passed + start as u64;
            let wrong = |problem: String| TraceError::Record { offset, problem };
            match record {
                Ok(Record::Event(_)) => unreachable!("handled above"),
                Ok(Record::Name { from, to }) => {
                    let name = std::str::from_utf8(&self.buffer[from..to])
                        .map_err(|_| wrong("the name of an instruction is not UTF-8".to_owned()))?;
                    instructions.push(name);
                }
                Ok(Record::End { events }) if events != self.events => {
                    return Err(wrong(format!(
                        "the end mark counts {events} events, but the trace has {}",
                        self.events
                    )));
                }
                Ok(Record::End { .. }) => {
                    if self.filled == self.at && !self.at_end {
                        self.fill()?;
                    }
                    return match self.filled - self.at {
                        0 => Ok(()),
                        _ => Err(wrong("there is more data after the end mark".to_owned())),
                    };
                }
                Err(Bad::CutOff) => return Err(TraceError::CutOff),
                Err(Bad::Wrong(problem)) => return Err(wrong(problem)),
            }
        }
    }

    /// Moves the rest of the buffer to the front and reads until a record fits or the file ends.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.passed += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        while self.filled < LONGEST_RECORD && !self.at_end {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

enum Record {
    Event(Event),
    /// The name of the next instruction, as a range of the buffer.
    Name {
        from: usize,
        to: usize,
    },
    End {
        events: u64,
    },
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Bad> {
        let byte = *self.bytes.get(self.at).ok_or(Bad::CutOff)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn number(&mut self) -> Result<u64, Bad> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Bad::Wrong("a number does not fit into 64 bits".to_owned()))
    }

    #[inline(always)]
    fn process(&mut self) -> Result<Process, Bad> {
        match self.number()? {
            number if number < MAX_PROCESSES.into() => Ok(Process(number as u32)),
            number => Err(Bad::Wrong(format!(
                "process number {number} is too large; it must be below {MAX_PROCESSES}"
            ))),
        }
    }

    #[inline(always)]
    fn address(&mut self, last: &mut u64) -> Result<u64, Bad> {
        let zigzag = self.number()?;
        let difference = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        *last = last.wrapping_add(difference as u64);
        Ok(*last)
    }
}

#[inline(always)]
fn decode(cursor: &mut Cursor<'_>, last: &mut u64, instructions: usize) -> Result<Record, Bad> {
    let tag = cursor.byte()?;
    let (what, high) = (tag & 15, tag >> 4);
    if what == kind::INSTRUCTION {
        let length = cursor.number()?;
        if length > LONGEST_NAME as u64 {
            return Err(Bad::Wrong(format!(
                "the name of an instruction has {length} bytes; the limit is {LONGEST_NAME}"
            )));
        }
        let (from, to) = (cursor.at, cursor.at + length as usize);
        cursor.at = to;
        return if to <= cursor.bytes.len() { Ok(Record::Name { from, to }) } else { Err(Bad::CutOff) };
    }
    if what == kind::END {
        return Ok(Record::End { events: cursor.number()? });
    }
    if what > kind::FREE {
        return Err(Bad::Wrong(format!("unknown kind of record: {what}")));
    }
    let process = cursor.process()?;
    let instruction = cursor.number()?;
    if instruction >= instructions as u64 {
        return Err(Bad::Wrong(format!("instruction {instruction} has not been named")));
    }
    let action = if what <= kind::LOCKED_LOAD {
        let access = match what {
            kind::LOAD => Access::Load,
            kind::STORE => Access::Store,
            kind::LOCKED => Access::Locked,
            _ => Access::LockedLoad,
        };
        let address = cursor.address(last)?;
        let size = if high == OTHER_SIZE { cursor.number()? } else { 1 << high };
        let bytes = u32::try_from(size).ok().and_then(|size| Bytes::new(address, size));
        let Some(bytes) = bytes else {
            return Err(Bad::Wrong(format!("invalid access to {size} bytes at {address:#x}")));
        };
        Action::Access(access, bytes)
    } else {
        other_action(what, process, cursor, last)?
    };
    Ok(Record::Event(Event { process, instruction: Instruction(instruction as u32), action }))
}

#[cold]
fn other_action(what: u8, process: Process, cursor: &mut Cursor<'_>, last: &mut u64) -> Result<Action, Bad> {
    let other = |cursor: &mut Cursor<'_>| match cursor.process()? {
        other if other == process => Err(Bad::Wrong(format!("process {} starts or joins itself", process.0))),
        other => Ok(other),
    };
    Ok(match what {
        kind::FENCE => Action::Fence,
        kind::STORE_FENCE => Action::StoreFence,
        kind::SPAWN => Action::Spawn(other(cursor)?),
        kind::START => Action::Start(other(cursor)?),
        kind::JOIN => Action::Join(other(cursor)?),
        _ => Action::Free { address: cursor.address(last)?, size: cursor.number()? },
    })
}
