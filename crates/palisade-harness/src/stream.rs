//! Reads the log as it arrives: records, the texts between them, and how the execution ended.

use crate::log::{RECORD, Record, RecordKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// The next item in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A record.
    Record(Record),
    /// What the runtime reports about itself and the program once it has started.
    Hello(Hello),
    /// A message for the user.
    Message(String),
    /// What the program printed.
    Printed(Vec<u8>),
    /// The execution is over.
    End(End),
}

/// What the runtime reports once it has started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hello {
    /// How threads are switched: `coroutines` or `token`.
    pub scheduling: String,
    /// The files that make up the program.
    pub modules: Vec<Module>,
    /// Code that is part of the program and is not followed, by the names of its files.
    pub not_compiled: Vec<String>,
    /// Functions of libraries whose calls are reported, by the numbers that the log uses.
    pub calls: BTreeMap<u32, String>,
}

/// A file that is part of the program, and where it was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Module {
    /// The offset added to the addresses in the file.
    pub base: u64,
    /// One past its last byte in memory.
    pub end: u64,
    /// The file.
    pub path: String,
}

/// How an execution ended, as the runtime saw it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct End {
    /// The status from `wait`: exit code or signal.
    pub status: u32,
    /// Why it was aborted.
    pub reason: Reason,
    /// The number of steps.
    pub steps: u64,
    /// Where it crashed: the instruction, the address that it accessed, and the thread.
    pub crash: Option<(u64, u64, u16)>,
    /// Whether it ended by calling `exit`.
    pub exited: bool,
    /// For each thread, its parent and its index among the parent's children.
    pub threads: Vec<(u32, u32)>,
    /// What the program printed, if that is in the log and not in the pipe for it.
    pub printed: Option<Vec<u8>>,
}

/// Why an execution was aborted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Reason {
    /// It was not aborted.
    #[default]
    None,
    /// No thread could continue.
    Deadlock,
    /// The step limit was reached.
    Steps,
    /// Nothing happened for a while.
    Stalled,
    /// Something happened that cannot be followed.
    Unsupported,
    /// The time limit was reached.
    Time,
    /// The runtime failed.
    Internal,
    /// The given turns could not be taken.
    Turns,
    /// All remaining threads are in loops that change nothing.
    Spun,
    /// The session was ended.
    Stopped,
    /// The same steps repeat forever.
    Livelock,
    /// Memory was used in a way that is an error.
    Misuse,
    /// An assumption of the program was false.
    Assumed,
}

const REASONS: [Reason; 13] = [
    Reason::None,
    Reason::Deadlock,
    Reason::Steps,
    Reason::Stalled,
    Reason::Unsupported,
    Reason::Time,
    Reason::Internal,
    Reason::Turns,
    Reason::Spun,
    Reason::Stopped,
    Reason::Livelock,
    Reason::Misuse,
    Reason::Assumed,
];

/// The bit of the status which says that what the program printed is in the log.
const PRINTED_HERE: u32 = 32;

/// The maximum length of a text. Anything longer means that the log is broken.
const LONGEST_TEXT: u64 = 1 << 20;
const BUFFER: usize = 1 << 18;
/// `may_continue` is called after this many records, of one execution or of several, and returns whether to continue.
const CHECKED: u32 = 1 << 12;
const PER_EXECUTION: u32 = CHECKED / 16;
/// A record of a thread with a high number counts for more, since what is kept about a thread grows with the
/// number of threads.
const THREADS_PER_RECORD: u32 = 32;

/// Reads a log.
#[derive(Debug)]
pub struct LogReader<R> {
    input: R,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// How many records were read since `may_continue` was last called.
    unchecked: u32,
}

impl<R: Read> LogReader<R> {
    /// A reader of `input`.
    pub fn new(input: R) -> LogReader<R> {
        LogReader { input, buffer: vec![0; BUFFER], from: 0, to: 0, unchecked: CHECKED }
    }

    /// Where the log comes from.
    pub fn input(&mut self) -> &mut R {
        &mut self.input
    }

    /// Reads until the execution is over. `take` receives the records; everything else is returned with the
    /// end. It is an error if the input ends early, or if `may_continue`, which is called from time to time,
    /// returns false.
    pub fn read_execution(
        &mut self,
        mut take: impl FnMut(&Record),
        mut message: impl FnMut(String),
        mut may_continue: impl FnMut() -> bool,
    ) -> io::Result<End> {
        // An execution counts like some records, so that many short ones are checked as well.
        let mut unchecked = self.unchecked + PER_EXECUTION;
        let mut printed = Vec::new();
        loop {
            if unchecked >= CHECKED {
                unchecked = 0;
                if !may_continue() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
            }
            // There is only one call of `take`, so that it is inlined into this loop.
            self.fill(RECORD)?;
            let record = self.peek()?;
            unchecked += 1 + u32::from(record.thread) / THREADS_PER_RECORD;
            if !matches!(record.kind, RecordKind::Text | RecordKind::End) {
                self.from += RECORD;
                take(&record);
                continue;
            }
            match self.next_item()? {
                Item::Message(text) => message(text),
                Item::Printed(bytes) => printed = bytes,
                Item::Record(_) | Item::Hello(_) => return Err(broken()),
                Item::End(end) => {
                    self.unchecked = unchecked;
                    return Ok(End { printed: end.printed.map(|_| printed), ..end });
                }
            }
        }
    }

    /// The next item in the log.
    pub fn next_item(&mut self) -> io::Result<Item> {
        loop {
            let record = self.record()?;
            match record.kind {
                RecordKind::Text => {
                    let bytes = self.text(record.address)?;
                    return match record.size {
                        1 => hello(&String::from_utf8_lossy(&bytes)).map(Item::Hello).ok_or_else(broken),
                        2 => end(&bytes).map(Item::End).ok_or_else(broken),
                        4 => Ok(Item::Printed(bytes)),
                        _ => Ok(Item::Message(String::from_utf8_lossy(&bytes).into_owned())),
                    };
                }
                // The text after it says everything.
                RecordKind::End => {}
                _ => return Ok(Item::Record(record)),
            }
        }
    }

    fn record(&mut self) -> io::Result<Record> {
        self.fill(RECORD)?;
        let record = self.peek()?;
        self.from += RECORD;
        Ok(record)
    }

    /// The next record in the buffer.
    #[inline(always)]
    fn peek(&self) -> io::Result<Record> {
        let bytes = self.buffer[self.from..].first_chunk::<RECORD>().ok_or_else(broken)?;
        Record::decode(bytes).ok_or_else(broken)
    }

    fn text(&mut self, length: u64) -> io::Result<Vec<u8>> {
        if length > LONGEST_TEXT {
            return Err(broken());
        }
        let length = length as usize;
        let mut text = Vec::with_capacity(length);
        while text.len() < length.next_multiple_of(RECORD) {
            self.fill(RECORD)?;
            text.extend_from_slice(&self.buffer[self.from..self.from + RECORD]);
            self.from += RECORD;
        }
        text.truncate(length);
        Ok(text)
    }

    /// Makes sure that this many bytes are in the buffer.
    #[inline(always)]
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        if self.to - self.from >= bytes { Ok(()) } else { self.refill(bytes) }
    }

    #[cold]
    fn refill(&mut self, bytes: usize) -> io::Result<()> {
        while self.to - self.from < bytes {
            if self.from > 0 {
                self.buffer.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
            }
            let got = self.input.read(&mut self.buffer[self.to..])?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.to += got;
        }
        Ok(())
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "this is not a log of the runtime")
}

fn hello(text: &str) -> Option<Hello> {
    let mut lines = text.lines();
    if lines.next()? != "palisade-runtime 1" {
        return None;
    }
    let mut hello = Hello::default();
    for line in lines {
        if let Some(scheduling) = line.strip_prefix("scheduling ") {
            hello.scheduling = scheduling.to_owned();
        } else if let Some(module) = line.strip_prefix("module ") {
            let mut words = module.splitn(3, ' ');
            let base = u64::from_str_radix(words.next()?, 16).ok()?;
            let end = u64::from_str_radix(words.next()?, 16).ok()?;
            hello.modules.push(Module { base, end, path: words.next()?.to_owned() });
        } else if let Some(name) = line.strip_prefix("not-compiled ") {
            hello.not_compiled.push(name.to_owned());
        } else if let Some((number, name)) = line.strip_prefix("call ").and_then(|rest| rest.split_once(' '))
        {
            hello.calls.insert(number.parse().ok()?, name.to_owned());
        }
    }
    Some(hello)
}

fn end(bytes: &[u8]) -> Option<End> {
    let fields: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
    let &[status, reason, steps, crash_place, crash_address, crash_thread, exited, _, _, ref threads @ ..] =
        fields.as_slice()
    else {
        return None;
    };
    Some(End {
        status: status as u32,
        reason: *REASONS.get(usize::try_from(reason).ok()?)?,
        steps,
        crash: (crash_place != 0).then_some((crash_place, crash_address, crash_thread as u16)),
        exited: exited != 0,
        threads: threads.iter().map(|&thread| ((thread >> 32) as u32, thread as u32)).collect(),
        printed: (status >> PRINTED_HERE & 1 != 0).then(Vec::new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Order;

    fn record(kind: RecordKind, size: u8, address: u64) -> [u8; RECORD] {
        Record { kind, order: Order::Plain, thread: 0, flags: 0, size, address, place: 0 }.encode()
    }

    fn text(what: u8, text: &[u8]) -> Vec<u8> {
        let mut bytes = record(RecordKind::Text, what, text.len() as u64).to_vec();
        bytes.extend_from_slice(text);
        bytes.resize(bytes.len().next_multiple_of(RECORD), 0);
        bytes
    }

    #[test]
    fn a_whole_log() {
        let mut log = text(1, b"palisade-runtime 1\nscheduling token\nnot-compiled a b.o\nmodule 1000 2fff /a b\ncall 2 qsort\n");
        log.extend(record(RecordKind::Store, 4, 64));
        log.extend(text(3, b"seventeen letters"));
        log.extend(text(4, b"said"));
        log.extend(record(RecordKind::End, 0, 0));
        let fields = [1 << PRINTED_HERE | 9u64, 1, 70, 0, 0, 0, 1, 1, 2, 0, 1 << 32 | 2];
        log.extend(text(2, &fields.map(u64::to_le_bytes).concat()));
        let mut reader = LogReader::new(log.as_slice());
        let hello = Hello {
            scheduling: "token".into(),
            modules: vec![Module { base: 0x1000, end: 0x2fff, path: "/a b".into() }],
            not_compiled: vec!["a b.o".into()],
            calls: BTreeMap::from([(2, "qsort".into())]),
        };
        assert_eq!(reader.next_item().expect("a hello"), Item::Hello(hello));
        let (mut records, mut messages) = (Vec::new(), Vec::new());
        let end = reader.read_execution(|record| records.push(*record), |text| messages.push(text), || true);
        let expected = End {
            status: 9,
            reason: Reason::Deadlock,
            steps: 70,
            crash: None,
            exited: true,
            threads: vec![(0, 0), (1, 2)],
            printed: Some(b"said".to_vec()),
        };
        assert_eq!(end.expect("a whole log"), expected);
        assert_eq!((records.len(), messages), (1, vec!["seventeen letters".to_owned()]));
        assert_eq!(reader.next_item().map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&b"Hello, world, this is not a log"[..], &[0xff; 64]] {
            let read = LogReader::new(bytes).read_execution(|_| (), |_| (), || true);
            assert!(read.is_err(), "{bytes:?}");
        }
    }
}
