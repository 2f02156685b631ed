//! Data races of plain accesses: two accesses to the same bytes, at least one of them a write and at least
//! one of them plain, that happens-before does not order.
//!
//! Data races are errors in their own right: C, C++ and Rust do not define what a program with a data race
//! does, on any machine. Violations of sequential consistency are a separate matter and are found by the
//! monitors.
//!
//! *Source.* Vector clocks with the last write and the last reads per address, after Flanagan and Freund,
//! FastTrack, PLDI 2009. Happens-before is that of C11: release and acquire, release sequences, fences, and
//! the operations of locks, which acquire and release their objects. Relaxed accesses do not synchronise.
//!
//! *Store buffers.* An access takes part in races from the moment it is executed. What an atomic store releases
//! can be acquired once the store has reached memory.
//!
//! *Guarantee.* Every reported race is a race of the execution. Only the last write and the last reads of
//! each thread to an address are kept. So if an access has several races, only one is reported. Accesses to
//! `volatile` objects race only with plain ones: they are used for synchronisation, whatever the language
//! says.

mod piece;

use crate::buffers::Buffers;
use crate::log::{Order, Record, RecordKind};
use palisade_monitor::{NONE, WORD, Words};
use piece::{Access, Piece};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Two accesses that race, by the places of their instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Race {
    /// The place of the access that came first in the execution.
    pub first: u64,
    /// Whether it writes.
    pub first_writes: bool,
    /// The place of the other access.
    pub second: u64,
    /// Whether it writes.
    pub second_writes: bool,
}

type Clock = Vec<u32>;

/// Finds races.
#[derive(Debug, Default)]
pub struct Races {
    threads: Vec<Thread>,
    /// Maps a word to the first of its pieces in `pieces`.
    words: Words,
    pieces: Vec<Piece>,
    /// How many of the pieces are in use. The others are kept for their memory, as are threads.
    piece_count: usize,
    spare: Vec<Thread>,
    /// Atomic stores that have not reached memory, each with what it will release there.
    buffers: Buffers<Clock>,
    found: FxHashMap<Race, u64>,
}

#[derive(Debug, Default, Clone)]
struct Thread {
    clock: Clock,
    /// The clock at its last release fence.
    fenced: Clock,
    /// What relaxed loads saw, for the next acquire fence.
    seen: Clock,
}

impl Races {
    /// Forgets the execution, and keeps the memory.
    pub fn clear(&mut self) {
        self.spare.append(&mut self.threads);
        self.words.clear();
        self.piece_count = 0;
        self.buffers.clear();
        self.found.clear();
    }

    /// Adds a piece without accesses.
    fn new_piece(&mut self, from: u8, to: u8) -> u32 {
        let index = self.piece_count;
        self.piece_count += 1;
        match self.pieces.get_mut(index) {
            Some(piece) => piece.renew(from, to),
            None => self.pieces.push(Piece::new(from, to, NONE)),
        }
        index as u32
    }

    /// Processes the next record of an execution.
    #[inline(always)]
    pub fn take(&mut self, record: &Record) {
        match record.kind {
            RecordKind::Load | RecordKind::Store | RecordKind::Locked | RecordKind::LockedLoad => {
                let (reads, writes) = (
                    record.kind != RecordKind::Store,
                    matches!(record.kind, RecordKind::Store | RecordKind::Locked),
                );
                self.access(record, reads, writes);
            }
            RecordKind::Pause => {}
            _ => self.other(record),
        }
    }

    #[inline(never)]
    fn other(&mut self, record: &Record) {
        match record.kind {
            RecordKind::Fence => self.fence(record),
            RecordKind::Start => {
                let child = record.address as u16;
                let clock = self.thread(record.thread).clock.clone();
                join(&mut self.thread(child).clock, &clock);
                self.advance(record.thread);
            }
            RecordKind::Join => {
                let clock = self.thread(record.address as u16).clock.clone();
                join(&mut self.thread(record.thread).clock, &clock);
            }
            RecordKind::Free if !record.is_chosen() => self.forget(record.address, record.place),
            RecordKind::Update => {
                if let Some((_, store)) = self.buffers.update(record) {
                    self.release(record, store.with);
                }
            }
            _ => {}
        }
    }

    /// An atomic store reaches memory. It ends the release sequence that was there.
    fn release(&mut self, record: &Record, published: Clock) {
        let (from, to) = (record.address % WORD, record.address % WORD + u64::from(record.size));
        let piece = if to <= WORD { self.find(record.address / WORD, from as u8, to as u8) } else { NONE };
        if piece != NONE {
            self.pieces[piece as usize].released = published;
        }
    }

    /// All races, and how often each was seen.
    pub fn found(&self) -> &FxHashMap<Race, u64> {
        &self.found
    }

    #[inline]
    fn thread(&mut self, thread: u16) -> &mut Thread {
        let index = usize::from(thread);
        while self.threads.len() <= index {
            let mut thread = self.spare.pop().unwrap_or_default();
            thread.clock.clear();
            thread.clock.resize(self.threads.len() + 1, 0);
            thread.clock[self.threads.len()] = 1;
            thread.fenced.clear();
            thread.seen.clear();
            self.threads.push(thread);
        }
        &mut self.threads[index]
    }

    fn advance(&mut self, thread: u16) {
        self.thread(thread).clock[usize::from(thread)] += 1;
    }

    fn fence(&mut self, record: &Record) {
        let thread = self.thread(record.thread);
        if record.order.acquires() {
            join(&mut thread.clock, &thread.seen);
            thread.seen.clear();
        }
        if record.order.releases() {
            thread.fenced.clone_from(&thread.clock);
            self.advance(record.thread);
        }
    }

    #[inline(always)]
    fn access(&mut self, record: &Record, reads: bool, writes: bool) {
        let me = usize::from(record.thread);
        if self.threads.len() <= me {
            self.thread(record.thread);
        }
        let plain = record.order == Order::Plain;
        let access =
            Access { thread: record.thread, moment: self.threads[me].clock[me], place: record.place, plain };
        let (from, to) = (record.address % WORD, record.address % WORD + u64::from(record.size));
        let piece = if to <= WORD { self.find(record.address / WORD, from as u8, to as u8) } else { NONE };
        let first = match piece {
            NONE => self.cover(record, access, writes),
            // Exactly these bytes: the case of nearly all accesses.
            piece => {
                self.judge(piece, access, writes);
                piece
            }
        };
        if first != NONE && !matches!(record.order, Order::Plain | Order::Volatile) {
            self.synchronise(record, first, reads, writes);
        }
    }

    /// An access to bytes that are not one piece yet. Returns the first of the pieces.
    #[cold]
    fn cover(&mut self, record: &Record, access: Access, writes: bool) -> u32 {
        let end = record.address + u64::from(record.size);
        let mut address = record.address;
        let mut first = NONE;
        while address < end {
            let word = address / WORD;
            let (from, to) = ((address % WORD) as u8, (end - word * WORD).min(WORD) as u8);
            let mut piece = match self.find(word, from, to) {
                NONE => self.cut(word, from, to),
                piece => piece,
            };
            if address == record.address {
                first = piece;
            }
            while piece != NONE && self.pieces[piece as usize].to <= to {
                let next = self.pieces[piece as usize].next;
                self.judge(piece, access, writes);
                piece = next;
            }
            address = (word + 1) * WORD;
        }
        first
    }

    #[inline(always)]
    fn judge(&mut self, piece: u32, access: Access, writes: bool) {
        let found = &mut self.found;
        let report = |other: &Access, other_writes: bool| {
            let race = Race {
                first: other.place,
                first_writes: other_writes,
                second: access.place,
                second_writes: writes,
            };
            *found.entry(race).or_insert(0) += 1;
        };
        let known = &self.threads[usize::from(access.thread)].clock;
        self.pieces[piece as usize].judge(known, access, writes, report);
    }

    /// The effect of an atomic access on happens-before.
    #[inline(never)]
    fn synchronise(&mut self, record: &Record, piece: u32, reads: bool, writes: bool) {
        let thread = &mut self.threads[usize::from(record.thread)];
        let released = &mut self.pieces[piece as usize].released;
        if record.is_buffered() {
            let published = if record.order.releases() { &thread.clock } else { &thread.fenced };
            self.buffers.store(record, published.clone());
            if record.order.releases() {
                self.advance(record.thread);
            }
            return;
        }
        let size = u64::from(record.size);
        if self.buffers.of(record.thread).iter().any(|store| store.overlaps(record.address, size)) {
            // It reads a store of its own thread.
            return;
        }
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

    /// The piece that is exactly these bytes of a word; [`NONE`] if it does not exist.
    #[inline(always)]
    fn find(&mut self, word: u64, from: u8, to: u8) -> u32 {
        let mut piece = self.words.get(word);
        while piece != NONE {
            let at = &self.pieces[piece as usize];
            if (at.from, at.to) == (from, to) {
                break;
            }
            piece = at.next;
        }
        piece
    }

    /// Cuts the pieces of a word so that some of them make up exactly the given bytes. Returns the first of
    /// these.
    #[cold]
    fn cut(&mut self, word: u64, from: u8, to: u8) -> u32 {
        let mut old = Vec::new();
        let mut piece = self.words.get(word);
        if piece == NONE {
            let first = self.new_piece(from, to);
            self.words.set(word, first);
            return first;
        }
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
        // Bytes that were not accessed before.
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
        self.pieces.truncate(self.piece_count);
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
        self.piece_count = self.pieces.len();
        self.words.set(word, base);
        first
    }

    fn forget(&mut self, address: u64, size: u64) {
        if size > 0 {
            for word in self.words.within(address / WORD, (address + (size - 1)) / WORD) {
                self.words.remove(word);
            }
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
    use palisade_conformance::random::Random;
    use std::collections::{BTreeMap, BTreeSet};

    /// A record is the thread, what it does (`r`, `w`, `x` for a read-modify-write, and so on), a number (the
    /// address, or a thread), and optionally the memory order and the size. The numbers of the records are
    /// their places.
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
                "r" => RecordKind::Load,
                "w" => RecordKind::Store,
                "x" => RecordKind::Locked,
                "start" => RecordKind::Start,
                "join" => RecordKind::Join,
                "free" => RecordKind::Free,
                _ => RecordKind::Fence,
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
            let place = if kind == RecordKind::Free { 8 } else { place };
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
        // Starting and joining threads creates order.
        check("main w 0; main start 1; p w 0; main join 1; main w 0", &[]);
        check("main start 1; main w 0; p w 0", &[(2, 3)]);
        // Release and acquire create order; relaxed accesses do not.
        check("p w 0; p w 8 release; q r 8 acquire; q r 0", &[]);
        check("p w 0; p w 8 relaxed; q r 8 acquire; q r 0", &[(1, 4)]);
        check("p w 0; p w 8 release; q r 8 relaxed; q r 0", &[(1, 4)]);
        // Fences around relaxed accesses create order too.
        check("p w 0; p fence 0 release; p w 8 relaxed; q r 8 relaxed; q fence 0 acquire; q r 0", &[]);
        // A read-modify-write continues a release sequence; a store does not.
        check("p w 0; p w 8 release; q x 8 relaxed; main r 8 acquire; main r 0", &[]);
        check("p w 0; p w 8 release; q w 8 relaxed; main r 8 acquire; main r 0", &[(1, 5)]);
        // Atomic accesses race only with plain ones, and so do volatile ones.
        check("p w 0 relaxed; q w 0 relaxed", &[]);
        check("p w 0 relaxed; q r 0", &[(1, 2)]);
        check("p w 0 volatile; q r 0 volatile", &[]);
        // After it is freed, memory counts as new.
        check("p w 0; p free 0; q w 0", &[]);
    }

    /// A straightforward reference implementation: byte by byte, comparing every access with everything that
    /// is known.
    #[derive(Default)]
    struct Slow {
        clocks: [[u32; 3]; 3],
        fenced: [[u32; 3]; 3],
        seen: [[u32; 3]; 3],
        bytes: BTreeMap<u64, (Option<Access>, BTreeMap<u16, Access>)>,
        released: BTreeMap<u64, [u32; 3]>,
        found: BTreeSet<Race>,
    }

    impl Slow {
        fn take(&mut self, record: &Record) {
            let me = usize::from(record.thread);
            let learn = |into: &mut [u32; 3], from: [u32; 3]| {
                into.iter_mut().zip(from).for_each(|(into, from)| *into = (*into).max(from));
            };
            match record.kind {
                RecordKind::Fence => {
                    if record.order.acquires() {
                        learn(&mut self.clocks[me], std::mem::take(&mut self.seen[me]));
                    }
                    if record.order.releases() {
                        self.fenced[me] = self.clocks[me];
                        self.clocks[me][me] += 1;
                    }
                    return;
                }
                RecordKind::Free => {
                    self.bytes
                        .retain(|byte, _| !(record.address..record.address + record.place).contains(byte));
                    self.released
                        .retain(|byte, _| !(record.address..record.address + record.place).contains(byte));
                    return;
                }
                _ => {}
            }
            let (reads, writes) = (
                record.kind != RecordKind::Store,
                matches!(record.kind, RecordKind::Store | RecordKind::Locked),
            );
            let plain = record.order == Order::Plain;
            let access =
                Access { thread: record.thread, moment: self.clocks[me][me], place: record.place, plain };
            for byte in record.address..record.address + u64::from(record.size) {
                let (write, all) = self.bytes.entry(byte).or_default();
                let others =
                    write.iter().map(|write| (write, true)).chain(all.values().map(|read| (read, false)));
                for (other, other_writes) in others.filter(|(_, other_writes)| writes || *other_writes) {
                    let known = self.clocks[me][usize::from(other.thread)] >= other.moment;
                    if other.thread != access.thread && (other.plain || plain) && !known {
                        self.found.insert(Race {
                            first: other.place,
                            first_writes: other_writes,
                            second: access.place,
                            second_writes: writes,
                        });
                    }
                }
                if writes {
                    (*write, *all) = (Some(access), BTreeMap::new());
                } else {
                    let kept = all.entry(record.thread).or_insert(access);
                    if !(kept.moment == access.moment && kept.plain && !plain) {
                        *kept = access;
                    }
                }
            }
            if matches!(record.order, Order::Plain | Order::Volatile) {
                return;
            }
            let released = self.released.entry(record.address).or_default();
            if reads {
                let acquires = record.order.acquires();
                learn(if acquires { &mut self.clocks[me] } else { &mut self.seen[me] }, *released);
            }
            if writes {
                let published = if record.order.releases() { self.clocks[me] } else { self.fenced[me] };
                if !reads {
                    *released = [0; 3];
                }
                learn(released, published);
                self.clocks[me][me] += u32::from(record.order.releases());
            }
        }
    }

    #[test]
    fn differential_races_are_those_of_single_bytes() {
        let (mut races_seen, mut fast) = (0, Races::default());
        for seed in 0..2_000u64 {
            let mut numbers = Random::new(seed);
            let mut random = |below: usize| numbers.below(below) as u64;
            let mut slow = Slow::default();
            (0..3).for_each(|thread| slow.clocks[thread][thread] = 1);
            fast.clear();
            for place in 1..60 {
                // The atomic objects are separate words. Other bytes are accessed in all ways.
                let (order, address, size) = match random(3) {
                    0 => (Order::ALL[2 + random(5) as usize], 64 + 8 * random(2), 8),
                    _ => (Order::ALL[random(2) as usize], random(20), 1 << random(4)),
                };
                let kinds = [
                    RecordKind::Load,
                    RecordKind::Store,
                    RecordKind::Locked,
                    RecordKind::LockedLoad,
                    RecordKind::Fence,
                    RecordKind::Free,
                ];
                let kind = match random(20) {
                    19 if order <= Order::Volatile => RecordKind::Free,
                    18 if order > Order::Volatile => RecordKind::Fence,
                    _ => kinds[random(if order > Order::Volatile { 4 } else { 2 }) as usize],
                };
                // Whole words are freed.
                let (address, place) =
                    if kind == RecordKind::Free { (address / 8 * 8, 8) } else { (address, place) };
                let record = Record { kind, order, thread: random(3) as u16, flags: 0, size, address, place };
                fast.take(&record);
                slow.take(&record);
            }
            let found: BTreeSet<Race> = fast.found().keys().copied().collect();
            races_seen += found.len();
            assert_eq!(found, slow.found, "seed {seed}");
        }
        assert!(races_seen > 1_000, "{races_seen}");
    }
}
