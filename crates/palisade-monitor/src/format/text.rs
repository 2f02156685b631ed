//! The text form of traces: one event per line.
//!
//! - `PROCESS load|store|lock|lock-load ADDRESS[/SIZE] [INSTRUCTION]`
//! - `PROCESS fence|sfence [INSTRUCTION]`
//! - `PROCESS spawn|start|join PROCESS [INSTRUCTION]`
//! - `PROCESS free ADDRESS[/SIZE]`
//!
//! An address is a number, or a name with an optional `+OFFSET`. Empty lines and lines that begin with `#`
//! are ignored. A trace ends with the line `end` and its newline, so that a truncated trace is recognised. A
//! trace that begins with the line `palisade trace 1` must have this end mark. Without that first line the
//! end mark may be missing; the reader reports that too.

use super::{Ending, Instructions, TraceError};
use crate::event::{Access, Action, Bytes, Event, LARGEST_ACCESS, MAX_PROCESSES, Process};
use rustc_hash::FxHashMap;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};

const HEADER: &str = "palisade trace 1";
const END: &str = "end";

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 1 << 16;

/// Named addresses are mapped to addresses from here on, this far apart.
const NAMED: u64 = 0xF000_0000_0000_0000;
const APART: u64 = 1 << 32;

/// Writes a text trace.
#[derive(Debug)]
pub struct TextWriter<W> {
    output: W,
}

impl<W: Write> TextWriter<W> {
    /// Begins a trace. Many small pieces are written, so pass a buffered writer.
    pub fn new(mut output: W) -> io::Result<TextWriter<W>> {
        writeln!(output, "{HEADER}")?;
        Ok(TextWriter { output })
    }

    /// Writes an event, with the name of its instruction.
    pub fn event(&mut self, event: &Event, instruction: &str) -> io::Result<()> {
        let operation = match event.action {
            Action::Access(Access::Load, bytes) => format!("load {}", operand(bytes)),
            Action::Access(Access::Store, bytes) => format!("store {}", operand(bytes)),
            Action::Access(Access::Locked, bytes) => format!("lock {}", operand(bytes)),
            Action::Access(Access::LockedLoad, bytes) => format!("lock-load {}", operand(bytes)),
            Action::Fence => "fence".to_owned(),
            Action::StoreFence => "sfence".to_owned(),
            Action::Spawn(child) => format!("spawn p{}", child.0),
            Action::Start(child) => format!("start p{}", child.0),
            Action::Join(child) => format!("join p{}", child.0),
            Action::Free { address, size } => format!("free {address:#x}/{size}"),
        };
        let words: Vec<&str> = instruction.split_whitespace().collect();
        let line = format!("p{} {operation} {}", event.process.0, words.join(" "));
        writeln!(self.output, "{}", line.trim_end())
    }

    /// Ends the trace.
    pub fn finish(mut self) -> io::Result<W> {
        writeln!(self.output, "{END}")?;
        self.output.flush()?;
        Ok(self.output)
    }
}

fn operand(bytes: Bytes) -> String {
    format!("{:#x}/{}", bytes.address, bytes.size)
}

/// A text trace that is being read.
pub(super) struct Lines<'r> {
    input: BufReader<Box<dyn Read + 'r>>,
    processes: FxHashMap<String, Process>,
    names: FxHashMap<String, u64>,
    line: u64,
}

impl<'r> Lines<'r> {
    /// Takes the bytes that were already read, and the rest.
    pub(super) fn new(start: Vec<u8>, rest: Box<dyn Read + 'r>) -> Lines<'r> {
        Lines {
            input: BufReader::with_capacity(1 << 16, Box::new(Cursor::new(start).chain(rest))),
            processes: FxHashMap::default(),
            names: FxHashMap::default(),
            line: 0,
        }
    }

    pub(super) fn read(
        &mut self,
        instructions: &mut Instructions,
        take: &mut dyn FnMut(&[Event]),
    ) -> Result<Ending, TraceError> {
        let mut bytes = Vec::new();
        let mut must_end = false;
        let mut ended = false;
        loop {
            bytes.clear();
            let read = self.input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return match (ended, must_end) {
                    (true, _) => Ok(Ending::Marked),
                    (false, true) => Err(TraceError::CutOff),
                    (false, false) => Ok(Ending::Unmarked),
                };
            }
            self.line += 1;
            let number = self.line;
            let wrong = |problem: String| TraceError::Line { line: number, problem };
            if bytes.last() != Some(&b'\n') && read as u64 == LONGEST_LINE {
                return Err(wrong(format!("the line is longer than {LONGEST_LINE} bytes")));
            }
            let is_whole = bytes.last() == Some(&b'\n');
            let text =
                std::str::from_utf8(&bytes).map_err(|_| wrong("the line is not valid UTF-8".to_owned()))?;
            match text.trim() {
                line if line.is_empty() || line.starts_with('#') => {}
                _ if ended => return Err(wrong("there is more text after the end mark".to_owned())),
                HEADER if number == 1 => must_end = true,
                END if is_whole => ended = true,
                // The name of a process may begin like the end mark.
                END => {}
                // A truncated line may look like an event that did not happen.
                _ if must_end && !is_whole => return Err(TraceError::CutOff),
                line => match self.event(line, instructions) {
                    Ok(event) => take(&[event]),
                    Err(problem) => return Err(wrong(problem)),
                },
            }
        }
    }

    fn event(&mut self, line: &str, instructions: &mut Instructions) -> Result<Event, String> {
        let (process, rest) = word(line);
        let process = self.process(process)?;
        let (operation, rest) = word(rest);
        let access = match operation {
            "load" => Some(Access::Load),
            "store" => Some(Access::Store),
            "lock" => Some(Access::Locked),
            "lock-load" => Some(Access::LockedLoad),
            _ => None,
        };
        let (action, rest) = match (access, operation) {
            (Some(access), _) => {
                let (operand, rest) = word(rest);
                let (address, size) = self.range(operand)?;
                let bytes = u32::try_from(size).ok().and_then(|size| Bytes::new(address, size));
                let bytes = bytes.ok_or_else(|| {
                    format!("`{operand}` is not a valid range of 1 to {LARGEST_ACCESS} bytes")
                })?;
                (Action::Access(access, bytes), rest)
            }
            (_, "fence") => (Action::Fence, rest),
            (_, "sfence") => (Action::StoreFence, rest),
            (_, "spawn" | "start" | "join") => {
                let (child, rest) = word(rest);
                let child = self.process(child)?;
                if child == process {
                    return Err(format!("a process cannot {operation} itself"));
                }
                let action = match operation {
                    "spawn" => Action::Spawn(child),
                    "start" => Action::Start(child),
                    _ => Action::Join(child),
                };
                (action, rest)
            }
            (_, "free") => {
                let (operand, rest) = word(rest);
                let (address, size) = self.range(operand)?;
                (Action::Free { address, size }, rest)
            }
            (_, "") => return Err("the operation is missing".to_owned()),
            _ => return Err(format!("unknown operation `{operation}`")),
        };
        let instruction = match rest {
            "" => instructions.intern(&format!("event on line {}", self.line)),
            name => instructions.intern(name),
        };
        Ok(Event { process, instruction, action })
    }

    fn process(&mut self, name: &str) -> Result<Process, String> {
        if name.is_empty() {
            return Err("the name of a process is missing".to_owned());
        }
        if let Some(&known) = self.processes.get(name) {
            return Ok(known);
        }
        if self.processes.len() >= MAX_PROCESSES as usize {
            return Err(format!("there are more than {MAX_PROCESSES} processes"));
        }
        let new = Process(self.processes.len() as u32);
        self.processes.insert(name.to_owned(), new);
        Ok(new)
    }

    /// Address and size; one byte if no size is given.
    fn range(&mut self, operand: &str) -> Result<(u64, u64), String> {
        let (address, size) = match operand.split_once('/') {
            Some((address, size)) => {
                (address, number(size).ok_or_else(|| format!("`{size}` is not a number of bytes"))?)
            }
            None => (operand, 1),
        };
        if address.is_empty() {
            return Err("the address is missing".to_owned());
        }
        if address.starts_with(|c: char| c.is_ascii_digit()) {
            let address = number(address).filter(|&address| address < NAMED);
            let address = address.ok_or_else(|| format!("`{operand}` is not an address below {NAMED:#x}"))?;
            return Ok((address, size));
        }
        let (name, offset) = match address.split_once('+') {
            Some((name, offset)) => (name, number(offset).filter(|&offset| offset < APART / 2)),
            None => (address, Some(0)),
        };
        let offset =
            offset.ok_or_else(|| format!("`{operand}`: the offset is not a number below {}", APART / 2))?;
        let known = self.names.len() as u64;
        let base = match self.names.get(name) {
            Some(&base) => base,
            None => {
                if known >= (u64::MAX - NAMED) / APART {
                    return Err("there are too many named addresses".to_owned());
                }
                self.names.insert(name.to_owned(), NAMED + known * APART);
                NAMED + known * APART
            }
        };
        Ok((base + offset, size))
    }
}

/// The first word of a text, and the rest.
fn word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((first, rest)) => (first, rest.trim_start()),
        None => (text, ""),
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
