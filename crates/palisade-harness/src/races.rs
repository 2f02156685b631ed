//! Data races of plain accesses: two accesses to the same bytes, one of them a write, at least one of them plain, with no happens-before between them.
//!
//! These are errors of their own: C, C++ and Rust say nothing about what a program with a data race does, on any machine. Violations of sequential consistency are another matter,
//! and are found by the monitors.
//!
//! *Source.* Vector clocks with the last write and the last reads per address, after Flanagan and Freund, FastTrack, PLDI 2009. Happens-before is that of C11: release and acquire, release
//! sequences, fences, and the operations of locks, which acquire and release their objects; relaxed accesses synchronise nothing.
//!
//! *Guarantee.* What is reported is a race of the execution. Only the last write and the last reads of each thread to an address are kept, so of several races of one access one
//! is told. Accesses of `volatile` objects race with plain ones only: they are there for synchronisation, whatever the language says.

use crate::log::{Kind, Order, Record};
use rustc_hash::FxHashMap;

/// Two accesses that race, by the places of their instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Race {
    /// Where the one that came first in the execution is.
    pub first: u64,
    /// Whether it writes.
    pub first_writes: bool,
    /// Where the other one is.
    pub second: u64,
    /// Whether it writes.
    pub second_writes: bool,
}

type Clock = Vec<u32>;

/// Finds races.
#[derive(Debug, Default)]
pub struct Races {
    threads: Vec<Thread>,
    /// What was released at an address.
    released: FxHashMap<u64, Clock>,
    words: FxHashMap<u64, Vec<Piece>>,
    found: FxHashMap<Race, u64>,
}

#[derive(Debug, Default, Clone)]
struct Thread {
    clock: Clock,
    /// As of its last release fence.
    fenced: Clock,
    /// What relaxed loads saw, for the next acquire fence.
    seen: Clock,
}

#[derive(Clone, Copy, Debug)]
struct Access {
    thread: u16,
    moment: u32,
    place: u64,
    plain: bool,
}

/// Bytes of a word that were always accessed together.
#[derive(Clone, Debug)]
struct Piece {
    from: u8,
    to: u8,
    write: Option<Access>,
    reads: Vec<Access>,
}

const WORD: u64 = 8;

impl Races {
    /// Takes in the next record of an execution.
    #[inline]
    pub fn take(&mut self, record: &Record) {
        match record.kind {
            Kind::Load | Kind::Store => {
                if record.order == Order::Plain {
                    self.access(record, record.kind == Kind::Store);
                } else {
                    self.atomic(record);
                }
            }
            Kind::Locked | Kind::LockedLoad => self.atomic(record),
            Kind::Fence => self.fence(record),
            Kind::Start => {
                let child = record.address as usize;
                let clock = self.thread(record.thread).clock.clone();
                join(&mut self.thread(child as u16).clock, &clock);
                self.advance(record.thread);
            }
            Kind::Join => {
                let clock = self.thread(record.address as u16).clock.clone();
                join(&mut self.thread(record.thread).clock, &clock);
            }
            Kind::Free => self.forget(record.address, record.place),
            _ => {}
        }
    }

    /// All races, with how often each was seen.
    pub fn found(&self) -> &FxHashMap<Race, u64> {
        &self.found
    }

    fn thread(&mut self, thread: u16) -> &mut Thread {
        let index = usize::from(thread);
        while self.threads.len() <= index {
            let mut clock = vec![0; self.threads.len() + 1];
            clock[self.threads.len()] = 1;
            self.threads.push(Thread { clock, ..Thread::default() });
        }
        &mut self.threads[index]
    }

    fn advance(&mut self, thread: u16) {
        self.thread(thread).clock[usize::from(thread)] += 1;
    }

    fn fence(&mut self, record: &Record) {
        let thread = self.thread(record.thread);
        if record.order.acquires() {
            let seen = std::mem::take(&mut thread.seen);
            join(&mut thread.clock, &seen);
        }
        if record.order.releases() {
            thread.fenced = thread.clock.clone();
            self.advance(record.thread);
        }
    }

    fn atomic(&mut self, record: &Record) {
        let writes = matches!(record.kind, Kind::Store | Kind::Locked);
        let reads = record.kind != Kind::Store;
        self.access(record, writes);
        if record.order == Order::Volatile {
            return;
        }
        self.thread(record.thread);
        let thread = &mut self.threads[usize::from(record.thread)];
        if reads && let Some(released) = self.released.get(&record.address) {
            join(if record.order.acquires() { &mut thread.clock } else { &mut thread.seen }, released);
        }
        if writes {
            let published = if record.order.releases() { &thread.clock } else { &thread.fenced };
            if record.kind == Kind::Store {
                // A store that is not part of a read-modify-write ends the release sequence.
                match self.released.get_mut(&record.address) {
                    Some(released) => released.clone_from(published),
                    None if published.is_empty() => {}
                    None => _ = self.released.insert(record.address, published.clone()),
                }
            } else if !published.is_empty() {
                join(self.released.entry(record.address).or_default(), published);
            }
            if record.order.releases() {
                self.advance(record.thread);
            }
        }
    }

    fn access(&mut self, record: &Record, writes: bool) {
        let plain = record.order == Order::Plain;
        self.thread(record.thread);
        let moment = self.threads[usize::from(record.thread)].clock[usize::from(record.thread)];
        let access = Access { thread: record.thread, moment, place: record.place, plain };
        let end = record.address + u64::from(record.size);
        let mut address = record.address;
        while address < end {
            let word = address / WORD;
            let (from, to) = ((address % WORD) as u8, (end - word * WORD).min(WORD) as u8);
            let pieces = self.words.entry(word).or_default();
            match pieces.as_mut_slice() {
                [piece] if (piece.from, piece.to) == (from, to) => {
                    judge(&self.threads, &mut self.found, piece, access, writes);
                }
                _ => {
                    cover(pieces, from, to);
                    for piece in pieces.iter_mut().filter(|piece| piece.from >= from && piece.to <= to) {
                        judge(&self.threads, &mut self.found, piece, access, writes);
                    }
                }
            }
            address = (word + 1) * WORD;
        }
    }

    fn forget(&mut self, address: u64, size: u64) {
        let (first, last) = (address / WORD, (address + size).div_ceil(WORD));
        if last - first < self.words.len() as u64 {
            (first..last).for_each(|word| _ = self.words.remove(&word));
        } else {
            self.words.retain(|word, _| !(first..last).contains(word));
        }
        self.released.retain(|at, _| !(address..address + size).contains(at));
    }
}

/// Compares an access with those before, and keeps it.
#[inline]
fn judge(
    threads: &[Thread],
    found: &mut FxHashMap<Race, u64>,
    piece: &mut Piece,
    access: Access,
    writes: bool,
) {
    let known = &threads[usize::from(access.thread)].clock;
    let races = |other: &Access| {
        other.thread != access.thread
            && (other.plain || access.plain)
            && known.get(usize::from(other.thread)).copied().unwrap_or(0) < other.moment
    };
    let mut tell = |other: &Access, other_writes: bool| {
        let race = Race {
            first: other.place,
            first_writes: other_writes,
            second: access.place,
            second_writes: writes,
        };
        *found.entry(race).or_insert(0) += 1;
    };
    if let Some(write) = &piece.write
        && races(write)
    {
        tell(write, true);
    }
    if writes {
        for read in &piece.reads {
            if races(read) {
                tell(read, false);
            }
        }
        piece.write = Some(access);
        piece.reads.clear();
    } else {
        match piece.reads.iter_mut().find(|read| read.thread == access.thread) {
            // A plain read is kept in favour of one that is not, at the same moment.
            Some(read) if read.moment == access.moment && read.plain && !access.plain => {}
            Some(read) => *read = access,
            None => piece.reads.push(access),
        }
    }
}

/// Cuts the pieces so that some of them make up just the given bytes.
fn cover(pieces: &mut Vec<Piece>, from: u8, to: u8) {
    let mut cut: Vec<Piece> = Vec::with_capacity(pieces.len() + 2);
    let mut at = from;
    for piece in pieces.drain(..) {
        if at < to && piece.from > at {
            let gap = Piece { from: at, to: piece.from.min(to), write: None, reads: Vec::new() };
            at = gap.to;
            cut.push(gap);
        }
        let mut rest = piece;
        for border in [from, to] {
            if rest.from < border && border < rest.to {
                cut.push(Piece { to: border, ..rest.clone() });
                rest.from = border;
            }
        }
        at = at.max(rest.to.min(to).max(from));
        cut.push(rest);
    }
    if at < to {
        cut.push(Piece { from: at, to, write: None, reads: Vec::new() });
    }
    cut.sort_by_key(|piece| piece.from);
    *pieces = cut;
}

fn join(into: &mut Clock, from: &Clock) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}
