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
    /// Where what is known about a word of eight bytes is in `pieces`: the first of its pieces.
    words: FxHashMap<u64, u32>,
    pieces: Vec<Piece>,
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
    /// The next piece of the word, behind this one; [`NONE`] if there is none.
    next: u32,
    write: Option<Access>,
    reads: Vec<Access>,
    /// What was released there, if this is where an atomic object begins.
    released: Clock,
}

const WORD: u64 = 8;
const NONE: u32 = u32::MAX;

impl Piece {
    fn new(from: u8, to: u8, next: u32) -> Piece {
        Piece { from, to, next, write: None, reads: Vec::new(), released: Clock::new() }
    }
}

impl Races {
    /// Takes in the next record of an execution.
    #[inline]
    pub fn take(&mut self, record: &Record) {
        match record.kind {
            Kind::Load => self.access(record, true, false),
            Kind::Store => self.access(record, false, true),
            Kind::Locked => self.access(record, true, true),
            Kind::LockedLoad => self.access(record, true, false),
            Kind::Pause => {}
            _ => self.other(record),
        }
    }

    fn other(&mut self, record: &Record) {
        match record.kind {
            Kind::Fence => self.fence(record),
            Kind::Start => {
                let child = record.address as u16;
                let clock = self.thread(record.thread).clock.clone();
                join(&mut self.thread(child).clock, &clock);
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

    #[inline]
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

    #[inline]
    fn access(&mut self, record: &Record, reads: bool, writes: bool) {
        let me = usize::from(record.thread);
        let moment = self.thread(record.thread).clock[me];
        let plain = record.order == Order::Plain;
        let access = Access { thread: record.thread, moment, place: record.place, plain };
        let end = record.address + u64::from(record.size);
        let mut address = record.address;
        let mut first = NONE;
        while address < end {
            let word = address / WORD;
            let (from, to) = ((address % WORD) as u8, (end - word * WORD).min(WORD) as u8);
            let mut piece = self.piece(word, from, to);
            if address == record.address {
                first = piece;
            }
            // Usually just one.
            while piece != NONE && self.pieces[piece as usize].to <= to {
                let next = self.pieces[piece as usize].next;
                judge(
                    &self.threads[me].clock,
                    &mut self.found,
                    &mut self.pieces[piece as usize],
                    access,
                    writes,
                );
                piece = next;
            }
            address = (word + 1) * WORD;
        }
        if first != NONE && !matches!(record.order, Order::Plain | Order::Volatile) {
            self.synchronise(record, first, reads, writes);
        }
    }

    /// What an atomic access means for happens-before.
    fn synchronise(&mut self, record: &Record, piece: u32, reads: bool, writes: bool) {
        let thread = &mut self.threads[usize::from(record.thread)];
        let released = &mut self.pieces[piece as usize].released;
        if reads && !released.is_empty() {
            join(if record.order.acquires() { &mut thread.clock } else { &mut thread.seen }, released);
        }
        if writes {
            let published = if record.order.releases() { &thread.clock } else { &thread.fenced };
            if reads {
                join(released, published);
            } else {
                // A store that is not part of a read-modify-write ends the release sequence.
                released.clone_from(published);
            }
            if record.order.releases() {
                self.advance(record.thread);
            }
        }
    }

    /// The first of the pieces that make up these bytes of a word.
    #[inline]
    fn piece(&mut self, word: u64, from: u8, to: u8) -> u32 {
        if let Some(&first) = self.words.get(&word) {
            let mut piece = first;
            while piece != NONE {
                let at = &self.pieces[piece as usize];
                if at.from == from && at.to == to {
                    return piece;
                }
                piece = at.next;
            }
        }
        self.cut(word, from, to)
    }

    /// Cuts the pieces of a word so that some of them make up just the given bytes; the first of these is the answer.
    #[cold]
    fn cut(&mut self, word: u64, from: u8, to: u8) -> u32 {
        let mut old = Vec::new();
        let mut piece = self.words.get(&word).copied().unwrap_or(NONE);
        while piece != NONE {
            old.push(self.pieces[piece as usize].clone());
            piece = self.pieces[piece as usize].next;
        }
        let mut cut: Vec<Piece> = Vec::with_capacity(old.len() + 2);
        for piece in old {
            let mut rest = piece;
            for border in [from, to] {
                if rest.from < border && border < rest.to {
                    cut.push(Piece { to: border, ..rest.clone() });
                    rest.from = border;
                }
            }
            cut.push(rest);
        }
        // What nobody has accessed yet.
        let mut at = from;
        let mut gaps = Vec::new();
        for piece in cut.iter().filter(|piece| piece.from >= from && piece.to <= to) {
            if piece.from > at {
                gaps.push(Piece::new(at, piece.from, NONE));
            }
            at = piece.to;
        }
        if at < to {
            gaps.push(Piece::new(at, to, NONE));
        }
        cut.extend(gaps);
        cut.sort_by_key(|piece| piece.from);
        let base = self.pieces.len() as u32;
        let count = cut.len() as u32;
        let mut first = NONE;
        for (index, mut piece) in (0..).zip(cut) {
            piece.next = if index + 1 < count { base + index + 1 } else { NONE };
            if piece.from == from {
                first = base + index;
            }
            self.pieces.push(piece);
        }
        self.words.insert(word, base);
        first
    }

    fn forget(&mut self, address: u64, size: u64) {
        let (first, last) = (address / WORD, (address + size).div_ceil(WORD));
        if last - first < self.words.len() as u64 {
            (first..last).for_each(|word| _ = self.words.remove(&word));
        } else {
            self.words.retain(|word, _| !(first..last).contains(word));
        }
    }
}

/// Compares an access with those before, and keeps it.
#[inline]
fn judge(known: &Clock, found: &mut FxHashMap<Race, u64>, piece: &mut Piece, access: Access, writes: bool) {
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

fn join(into: &mut Clock, from: &Clock) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter for the thread, `r` or `w` or `x` (a read-modify-write), the address, a slash and the size, and the memory order; the numbers of the records are their places.
    fn check(records: &str, expected: &[(u64, u64)]) {
        let mut races = Races::default();
        for (line, place) in records.split(';').map(str::trim).zip(1..) {
            let mut words = line.split(' ');
            let mut word = || words.next().expect("another word");
            let thread = match word() {
                "main" => 0,
                "p" => 1,
                _ => 2,
            };
            let what = word();
            let number: u64 = word().parse().expect("a number");
            let kind = match what {
                "r" => Kind::Load,
                "w" => Kind::Store,
                "x" => Kind::Locked,
                "start" => Kind::Start,
                "join" => Kind::Join,
                "free" => Kind::Free,
                _ => Kind::Fence,
            };
            let order = match words.next().unwrap_or("plain") {
                "plain" => Order::Plain,
                "volatile" => Order::Volatile,
                "relaxed" => Order::Relaxed,
                "acquire" => Order::Acquire,
                "release" => Order::Release,
                _ => Order::SeqCst,
            };
            let size = words.next().map_or(4, |size| size.parse().expect("a size"));
            let place = if kind == Kind::Free { 8 } else { place };
            races.take(&Record { kind, order, thread, flags: 0, size, address: number, place });
        }
        let mut found: Vec<(u64, u64)> = races.found().keys().map(|race| (race.first, race.second)).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{records}");
    }

    #[test]
    fn races() {
        check("p w 0; q r 0", &[(1, 2)]);
        check("p r 0; q r 0", &[]);
        check("p r 0; q w 0", &[(1, 2)]);
        check("p w 0; q w 4", &[]);
        check("p w 0; q r 0 plain 8", &[(1, 2)]);
        check("p w 2 plain 4; q w 0 plain 8; p r 7 plain 1", &[(1, 2), (2, 3)]);
        // Starting and joining threads orders them.
        check("main w 0; main start 1; p w 0; main join 1; main w 0", &[]);
        check("main start 1; main w 0; p w 0", &[(2, 3)]);
        // Release and acquire do, relaxed accesses do not.
        check("p w 0; p w 8 release; q r 8 acquire; q r 0", &[]);
        check("p w 0; p w 8 relaxed; q r 8 acquire; q r 0", &[(1, 4)]);
        check("p w 0; p w 8 release; q r 8 relaxed; q r 0", &[(1, 4)]);
        // Fences around relaxed accesses do too.
        check("p w 0; p fence 0 release; p w 8 relaxed; q r 8 relaxed; q fence 0 acquire; q r 0", &[]);
        // A read-modify-write goes on with what was released, a store does not.
        check("p w 0; p w 8 release; q x 8 relaxed; main r 8 acquire; main r 0", &[]);
        check("p w 0; p w 8 release; q w 8 relaxed; main r 8 acquire; main r 0", &[(1, 5)]);
        // Atomic accesses race with plain ones only; so do volatile ones.
        check("p w 0 relaxed; q w 0 relaxed", &[]);
        check("p w 0 relaxed; q r 0", &[(1, 2)]);
        check("p w 0 volatile; q r 0 volatile", &[]);
        // What was freed is something else afterwards.
        check("p w 0; p free 0; q w 0", &[]);
    }
}
