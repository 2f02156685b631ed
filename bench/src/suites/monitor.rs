//! The monitors on long traces: events per second and core, and growth of time and memory with the length.
//! Also the number of executions per program of the search that runs all partial orders.
//!
//! *Aim.* At least 20 million events per second on a binary trace of eight threads, both models together.
//! Time is linear in the number of events, and memory is constant. One execution per partial order.
//!
//! *How.* A block of events is made once, in the binary form. The trace repeats that block and is passed to
//! the reader as a file would be. So no time goes into making events, and nothing is written to disk. The
//! time is processor time and includes decoding. The aim is judged on the workload that is most like a
//! program. The others, in which addresses are random, show what costs most: memory that is not in the
//! caches, threads that all access the same memory, and words that are accessed in parts.

use crate::measure::{machine, timed};
use crate::table::{Table, judged, megabytes, thousands};
use crate::watch::{measuring, say};
use anyhow::{Context, Result};
use clap::ValueEnum;
use palisade_engine::{Engine, Limits, Task, Verdict};
use palisade_memory::{Interlocked, Model};
use palisade_monitor::{
    Access, Action, BinaryWriter, ByMonitors, Bytes, Event, Instruction, Monitor, Process, TraceReader,
};
use std::io::Read;

/// Events in a block.
const BLOCK: u64 = 1_000_000;
const THREADS: u64 = 8;
const INSTRUCTIONS: u64 = 200;

/// Which threads access which memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Workload {
    /// Threads that work through memory of their own, look at shared flags, and change shared memory under
    /// locks: as a program does
    Program,
    /// Accesses at random: most to memory of the thread's own, some to shared memory, few take locks
    Mixed,
    /// All threads load and store the same 4096 words
    Shared,
    /// All threads load and store the same 16 words
    Contended,
    /// As mixed, with accesses of 1, 2, 4 and 8 bytes to the same words
    Sizes,
}

/// A trace that is generated while it is read.
struct Stream {
    start: Vec<u8>,
    block: Vec<u8>,
    end: Vec<u8>,
    /// How many blocks are still to come, and how much of the current piece was read.
    blocks: u64,
    state: State,
    at: usize,
}

#[derive(PartialEq)]
enum State {
    Start,
    Blocks,
    End,
}

impl Stream {
    fn new(workload: Workload, blocks: u64) -> Result<Stream> {
        let events = events(workload);
        // The first address of a block is relative to the last one of the block before. So an event before
        // the first block sets that address.
        let first = *events.last().context("a block has events")?;
        let mut writer = BinaryWriter::new(Vec::new())?;
        for number in 0..INSTRUCTIONS {
            writer.instruction(&format!("bench.c:{number}"))?;
        }
        writer.event(&first)?;
        let start = unfinished(writer.finish()?);
        let mut writer = BinaryWriter::new(Vec::new())?;
        writer.event(&first)?;
        let skip = unfinished(writer.finish()?).len();
        let mut writer = BinaryWriter::new(Vec::new())?;
        writer.event(&first)?;
        for event in &events {
            writer.event(event)?;
        }
        let mut block = unfinished(writer.finish()?);
        block.drain(..skip);
        // The end mark: its kind and the number of events.
        let mut end = vec![15];
        let mut count = blocks * BLOCK + 1;
        while count >= 0x80 {
            end.push(count as u8 | 0x80);
            count >>= 7;
        }
        end.push(count as u8);
        Ok(Stream { start, block, end, blocks, state: State::Start, at: 0 })
    }
}

/// A trace without its end mark.
fn unfinished(mut trace: Vec<u8>) -> Vec<u8> {
    let mark = trace.iter().rposition(|&byte| byte == 15).expect("there is an end mark");
    trace.truncate(mark);
    trace
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let piece = match self.state {
                State::Start => &self.start,
                State::Blocks => &self.block,
                State::End => &self.end,
            };
            if self.at < piece.len() {
                let length = into.len().min(piece.len() - self.at);
                into[..length].copy_from_slice(&piece[self.at..self.at + length]);
                self.at += length;
                return Ok(length);
            }
            self.at = 0;
            match self.state {
                State::Start => self.state = State::Blocks,
                State::Blocks if self.blocks > 1 => self.blocks -= 1,
                State::Blocks => self.state = State::End,
                State::End => {
                    self.at = self.end.len();
                    return Ok(0);
                }
            }
        }
    }
}

/// The events of a block.
fn events(workload: Workload) -> Vec<Event> {
    if workload == Workload::Program { program() } else { scattered(workload) }
}

/// Eight threads. Each works through its own array, loading and storing elements and variables of its stack,
/// and looks at a flag from time to time. About every 40 steps it takes one of four locks, loads and stores
/// some of the 256 words that the lock protects, and releases the lock.
fn program() -> Vec<Event> {
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let base = 0x7f00_0000_0000u64;
    let (array, stack, flags) =
        (|thread: u64| 0x10_0000 * (1 + thread), |thread: u64| 0x10_0000 * (1 + thread) + 0x8_0000, 0x1000);
    let (locks, protected) = (0x2000, |lock: u64| 0x4000 + 0x1000 * lock);
    let mut at = [0u64; THREADS as usize];
    let mut events: Vec<Event> = Vec::with_capacity(BLOCK as usize);
    while events.len() < BLOCK as usize {
        let thread = random(THREADS);
        let mut put = |access, word: u64, instruction: u64| {
            let bytes = Bytes::new(base + 8 * word, 8).expect("a small access");
            let (process, instruction) = (Process(thread as u32), Instruction(instruction as u32));
            events.push(Event { process, instruction, action: Action::Access(access, bytes) });
        };
        // One turn of the scheduler: some steps of work, then possibly a critical section.
        for step in 0..4 + random(8) {
            let index = at[thread as usize];
            at[thread as usize] = (index + 1) % 1024;
            put(Access::Load, stack(thread) + step % 4, 1);
            put(Access::Load, array(thread) + index, 2);
            put(Access::Store, array(thread) + index, 3);
            put(Access::Store, stack(thread) + step % 4, 4);
        }
        put(Access::Load, flags + 8 * random(4), 5);
        if random(2) == 0 {
            let lock = random(4);
            put(Access::Locked, locks + 8 * lock, 6);
            for _ in 0..2 + random(4) {
                let word = protected(lock) + random(256);
                put(Access::Load, word, 7);
                put(Access::Store, word, 8);
            }
            put(Access::Store, locks + 8 * lock, 9);
        }
        if random(64) == 0 {
            put(Access::Store, flags + 8 * random(4), 10);
        }
    }
    events.truncate(BLOCK as usize);
    events
}

/// Random accesses.
fn scattered(workload: Workload) -> Vec<Event> {
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut thread = 0;
    let mut events = Vec::with_capacity(BLOCK as usize);
    for _ in 0..BLOCK {
        // A thread runs for several events at a time.
        if random(8) == 0 {
            thread = random(THREADS);
        }
        let stores = random(100) < 30;
        let word = match workload {
            Workload::Mixed | Workload::Sizes => match random(100) {
                0..80 => (1 + thread) * 0x10_0000 + random(1024),
                80..98 => random(4096),
                _ => 0x8_0000 + random(16),
            },
            Workload::Shared => random(4096),
            Workload::Contended => random(16),
            Workload::Program => unreachable!("made elsewhere"),
        };
        let lock = (0x8_0000..0x9_0000).contains(&word);
        let access = match (lock, stores) {
            (true, true) => Access::Locked,
            (true, false) => Access::LockedLoad,
            (false, true) => Access::Store,
            (false, false) => Access::Load,
        };
        let (offset, size) = match workload {
            Workload::Sizes => {
                let size = 1 << random(4);
                (random(8 / size) * size, size as u32)
            }
            _ => (0, 8),
        };
        let bytes = Bytes::new(0x7f00_0000_0000 + 8 * word + offset, size).expect("a small access");
        // A word is accessed by few instructions, like a field of a structure.
        let instruction = Instruction(((word * 3 + u64::from(stores)) % INSTRUCTIONS) as u32);
        events.push(Event {
            process: Process(thread as u32),
            instruction,
            action: Action::Access(access, bytes),
        });
    }
    events
}

/// Runs the suite on traces of up to this many events.
pub fn run(largest: u64) -> Result<()> {
    say!("{}\n", machine());
    let headings =
        ["workload", "events", "bytes/event", "violations", "seconds", "M events/s", "", "monitor MB"];
    let mut table = Table::new(&headings);
    let lengths =
        |from: u64| std::iter::successors(Some(from), |n| Some(n * 10)).take_while(|&n| n <= largest);
    for events in lengths(BLOCK) {
        measuring(&format!("{} events", thousands(events)))?;
        table.row(row(Workload::Program, events)?);
    }
    for workload in [Workload::Mixed, Workload::Shared, Workload::Contended, Workload::Sizes] {
        measuring(&format!("{workload:?} events"))?;
        table.row(row(workload, largest.min(10_000_000))?);
    }
    table.print();
    say!();
    partial_orders()
}

/// Model programs run once per partial order by the engine `monitor`, compared with the numbers of traces in
/// Table 1 of Abdulla, Aronis, Jonsson and Sagonas, POPL 2014.
fn partial_orders() -> Result<()> {
    let mut table = Table::new(&["program", "executions", "literature", "", "seconds", "executions/s"]);
    let readers = |n: u64| format!("shared x: 0..1; process W {{ x = 1; }} process R[{n}] {{ let r = x; }}");
    let last_zero = |n: u64| {
        format!(
            "shared a[{m}]: 0..{m};
             process Search {{ let i: 0..{n} = {n}; while a[i] != 0 {{ i = i - 1; }} }}
             process T(j: 1..{n}) {{ a[j] = a[j - 1] + 1; }}",
            m = n + 1
        )
    };
    let programs = [
        ("readers(2)", readers(2), 4),
        ("readers(8)", readers(8), 256),
        ("readers(13)", readers(13), 8192),
        ("lastzero(5)", last_zero(5), 64),
        ("lastzero(10)", last_zero(10), 3328),
    ];
    for (name, text, expected) in programs {
        measuring(name)?;
        let source = palisade_base::Source::new(name, text);
        let parsed = palisade_syntax::parse(palisade_syntax::Language::Pal, &source);
        let program = parsed.map_err(|errors| anyhow::anyhow!("{name}: {errors:?}"))?.program;
        let task = Task::new(&program, Model::Tso);
        let check = || ByMonitors.check(&task.analysis(), &Limits::unlimited(1));
        let (outcome, seconds) = timed(check);
        let executions = outcome.stats.get("executions").unwrap_or(0);
        table.row(vec![
            name.to_owned(),
            thousands(executions),
            thousands(expected),
            judged(executions == expected && outcome.verdict == Verdict::Holds),
            format!("{seconds:.2}"),
            thousands((executions as f64 / seconds.max(0.01)) as u64),
        ]);
    }
    table.print();
    Ok(())
}

fn row(workload: Workload, events: u64) -> Result<Vec<String>> {
    let stream = Stream::new(workload, events / BLOCK)?;
    let size = stream.block.len() as f64 / BLOCK as f64;
    let mut reader = TraceReader::new(stream)?;
    let mut monitor = Monitor::new(Interlocked::WholeBuffer);
    let (result, seconds) = timed(|| reader.read_batches(|events| monitor.take_all(events)));
    result?;
    let rate = monitor.events() as f64 / seconds;
    Ok(vec![
        format!("{workload:?}").to_lowercase(),
        thousands(monitor.events()),
        format!("{size:.1}"),
        thousands(monitor.violations().len() as u64),
        format!("{seconds:.2}"),
        format!("{:.1}", rate / 1e6),
        if workload == Workload::Program { judged(rate >= 20e6) } else { String::new() },
        megabytes(monitor.bytes() as f64),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_valid_traces() {
        for workload in Workload::value_variants() {
            let mut reader =
                TraceReader::new(Stream::new(*workload, 2).expect("a stream")).expect("readable");
            let mut count = 0;
            reader.read(|_| count += 1).expect("a valid trace");
            assert_eq!(count, 2 * BLOCK + 1);
        }
    }
}
