//! The monitors: which TSO and PSO violations of sequential consistency does a sequentially consistent
//! execution show?
//!
//! *Problem.* An execution ran under sequential consistency. As far as this execution shows, does the same
//! program have an execution that TSO or PSO allows and sequential consistency does not?
//!
//! *Source.* Burnim, Sen and Stergiou, "Sound and complete monitoring of sequential consistency for relaxed
//! memory models", TACAS 2011: monitorTSO (Figure 4) and monitorPSO (Figure 5). The monitors hold every store
//! back as long as the machine still produces this execution. They report an event `eᵢ` if the last store `e`
//! to its address is pending in another process and happens before `prev`, the event before `eᵢ` in its
//! process. In that case `eᵢ` could have come before `e`, which closes a cycle.
//!
//! *Guarantee.* Every reported violation is real (Theorems 3 and 4). If a program has a violation, some
//! execution of it shows one (Theorems 5 and 6).
//!
//! *Differences from the paper.*
//! 1. The paper's monitors process the execution in the order in which it ran. So they miss violations that
//!    they would see if the same partial order had run in another order: a load of `e`'s address by a third
//!    process makes them drain `e`, although that load need not have come before `eᵢ`. Ours judge `eᵢ` by the
//!    events that *happen before* it. They report exactly what the paper's monitors report on some order of
//!    some prefix of the partial order. So one execution per partial order is enough for Theorems 5 and 6
//!    (`tests/suite/oracle.rs` compares with the paper's own algorithm on all prefixes). The price is more
//!    vectors, not more passes: "has been drained before `eᵢ`" is knowledge that travels with happens-before
//!    ([`crate::clocks`]).
//! 2. Buffers are not kept. Under TSO, a store of q is pending for `eᵢ` iff q's moment at the store is later
//!    than what `eᵢ` knows of q's drained stores. Under PSO, it is pending iff, in addition, no access to its
//!    address by another process happens before `eᵢ`. So an address holds, per process, the first such
//!    access.
//! 3. Fences, store-store fences, starting and joining processes, and failed compare-and-swaps are events
//!    here. A locked instruction drains the whole buffer. Optionally, under PSO it drains only its own
//!    address and what a store-store fence keeps before it.
//! 4. Accesses have sizes. A load or store is judged for each of its bytes and counts once. Loads see their
//!    own process's pending stores byte by byte. Under PSO, a store that overlaps an older pending store of
//!    its process without covering the same bytes makes the older one drain. This causes no false report, but
//!    a violation may be missed.
//! 5. `prev` of a process's first event is the event that started the process. An event that accesses several
//!    places can be its own `prev`: what it sees at one of them may happen after the store that it does not
//!    see at another.
//!
//! *Cost.* O(processes) time per event, as Theorem 7 states, and O(processes) memory per address in use.

use crate::clocks::{Bank, LANE_STEP, LATEST, Moment, VECTORS, copy, join};
use crate::event::{Access, Action, Bytes, Event, Instruction, MAX_PROCESSES, Process};
use crate::shadow::{NONE, Piece, Shadow, Stored, View};
use crate::violations::Violations;
use palisade_memory::Interlocked;
use std::iter;

/// The number of events for which addresses are looked up together.
const AT_A_TIME: usize = 16;

/// Both monitors, in one pass.
#[derive(Clone, Debug)]
pub struct Monitor {
    interlocked: Interlocked,
    /// Slots by process number.
    slots: Vec<u32>,
    threads: Vec<Thread>,
    /// What each slot's process knows.
    clocks: Bank<VECTORS>,
    lanes: usize,
    shadow: Shadow,
    /// Slots of processes that were joined.
    joined: Vec<u32>,
    violations: Violations,
    events: u64,
    /// How many bytes may be used, and whether that was not enough.
    max_bytes: u64,
    is_full: bool,
    /// When the moments of a process reach this, old ones are forgotten.
    latest: Moment,
    /// Buffers for the pieces of an event, and for which of their last stores happen before `prev`.
    touched: Vec<Touched>,
    ordered: Vec<bool>,
    pieces: Vec<u32>,
}

/// The data of a process apart from its clocks.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// The instruction of its last event.
    previous: Instruction,
    /// Its moment at its last store-store fence.
    barrier: Moment,
}

impl Monitor {
    /// Monitors that have seen nothing yet. The argument specifies what locked instructions wait for under
    /// PSO.
    pub fn new(interlocked: Interlocked) -> Monitor {
        Monitor::with_latest(interlocked, LATEST)
    }

    /// The same with a smaller range of moments, so that tests reach its end.
    fn with_latest(interlocked: Interlocked, latest: Moment) -> Monitor {
        Monitor {
            interlocked,
            slots: Vec::new(),
            threads: Vec::new(),
            clocks: Bank::new(LANE_STEP),
            lanes: LANE_STEP,
            shadow: Shadow::new(LANE_STEP),
            joined: Vec::new(),
            violations: Violations::default(),
            events: 0,
            max_bytes: u64::MAX,
            is_full: false,
            latest,
            touched: Vec::new(),
            ordered: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Limits the memory, in bytes, for what is known about addresses and processes. When it is used up,
    /// further events are ignored, and the results are about the events before.
    pub fn with_memory(mut self, bytes: u64) -> Monitor {
        self.max_bytes = bytes;
        self
    }

    /// Whether the memory was used up, so that events were ignored.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Processes the next event, however much memory that needs.
    ///
    /// # Panics
    /// If a process number is not below [`MAX_PROCESSES`]. Trace readers ensure that it is.
    #[inline]
    pub fn take(&mut self, event: &Event) {
        let slot = self.slot(event.process);
        self.events += 1;
        match event.action {
            Action::Access(access, bytes) => self.access(slot, event.instruction, access, bytes),
            _ => self.other(slot, event),
        }
    }

    /// Processes the next events. This is the same as processing them one by one, but faster: the shadow
    /// memory of several addresses is looked up together, so that the host's cache misses overlap.
    pub fn take_all(&mut self, events: &[Event]) {
        for events in events.chunks(AT_A_TIME) {
            self.is_full = self.is_full || !self.has_room_for(events);
            if self.is_full {
                return;
            }
            // With few processes, the number of lanes is a compile-time constant, and there are no loops over
            // vectors.
            const FEW: usize = LANE_STEP;
            const SOME: usize = 2 * LANE_STEP;
            match self.lanes {
                FEW => self.take_some(events, FEW),
                SOME => self.take_some(events, SOME),
                lanes => self.take_some(events, lanes),
            }
        }
    }

    /// Whether these events fit into the memory limit. An event needs little memory, unless there are more
    /// processes than the vectors have room for: then the vectors grow.
    fn has_room_for(&self, events: &[Event]) -> bool {
        let bytes = self.bytes() as u64;
        let is_new = |process: &Process| self.slots.get(process.0 as usize).is_none_or(|&slot| slot == NONE);
        let processes = events.iter().flat_map(|event| {
            let other = match event.action {
                Action::Spawn(other) | Action::Start(other) | Action::Join(other) => Some(other),
                _ => None,
            };
            iter::once(event.process).chain(other)
        });
        let mut new: Vec<u32> = processes.filter(is_new).map(|process| process.0).collect();
        new.sort_unstable();
        new.dedup();
        let new = new.len().saturating_sub(self.joined.len());
        let lanes = (self.threads.len() + new).next_multiple_of(LANE_STEP).max(self.lanes);
        // Not everything grows with the vectors, so this is an upper bound.
        bytes / self.lanes as u64 * lanes as u64 <= self.max_bytes
    }

    #[inline(always)]
    fn take_some(&mut self, events: &[Event], lanes: usize) {
        let mut found = [NONE; AT_A_TIME];
        for (event, found) in events.iter().zip(&mut found) {
            if let Action::Access(_, bytes) = event.action {
                *found = self.shadow.look_up(bytes, lanes);
            }
        }
        let changes = self.shadow.changes();
        for (event, &piece) in events.iter().zip(&found) {
            match event.action {
                Action::Access(access, bytes) if piece != NONE => {
                    let slot = self.slot(event.process);
                    if self.lanes == lanes && self.shadow.changes() == changes {
                        self.events += 1;
                        self.one(slot, event.instruction, access, piece, bytes, lanes);
                    } else {
                        self.take(event);
                    }
                }
                _ => self.take(event),
            }
        }
    }

    /// The violations found so far.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// How many events were processed.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Bytes that the monitors use.
    pub fn bytes(&self) -> usize {
        self.clocks.bytes() + self.shadow.bytes()
    }

    /// The slot of a process, created if it is new.
    #[inline(always)]
    fn slot(&mut self, process: Process) -> usize {
        match self.slots.get(process.0 as usize) {
            Some(&slot) if slot != NONE => slot as usize,
            _ => self.new_slot(process),
        }
    }

    #[cold]
    fn new_slot(&mut self, process: Process) -> usize {
        assert!(process.0 < MAX_PROCESSES, "process numbers are below {MAX_PROCESSES}");
        let slot = self.threads.len();
        self.threads.push(Thread { previous: Instruction(0), barrier: 0 });
        if slot >= self.lanes {
            self.lanes = (2 * self.lanes).next_multiple_of(LANE_STEP);
            self.clocks.widen(self.lanes);
            self.shadow.widen(self.lanes);
        }
        self.clocks.push();
        self.name_slot(process, slot);
        slot
    }

    fn name_slot(&mut self, process: Process, slot: usize) {
        let index = process.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, NONE);
        }
        self.slots[index] = slot as u32;
    }

    /// The offsets of the three vectors.
    #[inline(always)]
    fn vectors(&self) -> [usize; VECTORS] {
        [0, self.lanes, 2 * self.lanes]
    }

    /// Counts an event of the process: advances its moment.
    #[inline(always)]
    fn advance(&mut self, me: usize, lanes: usize) -> Moment {
        let moment = &mut self.clocks.of_lanes(me, lanes)[me];
        *moment += 1;
        if *moment < self.latest { *moment } else { self.forget_old(me) }
    }

    /// Subtracts half of the range from all moments of a process.
    #[cold]
    fn forget_old(&mut self, me: usize) -> Moment {
        let by = self.latest / 2;
        self.clocks.lower(me, by);
        self.shadow.lower(me, by);
        self.threads[me].barrier = self.threads[me].barrier.saturating_sub(by);
        self.clocks.of(me)[me]
    }

    #[inline]
    fn access(&mut self, me: usize, instruction: Instruction, access: Access, bytes: Bytes) {
        match self.shadow.find(bytes) {
            NONE => self.many(me, instruction, &[(access, bytes)], self.waits(access)),
            piece => self.one(me, instruction, access, piece, bytes, self.lanes),
        }
    }

    /// What an access waits for.
    #[inline(always)]
    fn waits(&self, access: Access) -> Waits {
        match (access.locks(), self.interlocked) {
            (false, _) => Waits::No,
            (true, Interlocked::WholeBuffer) => Waits::Whole,
            (true, Interlocked::OwnAddress) => Waits::Own,
        }
    }

    /// An access to exactly one piece. Nearly all accesses are like this, so most of the time is spent here.
    /// [`Monitor::many`] is the general case.
    #[inline(always)]
    fn one(
        &mut self,
        me: usize,
        instruction: Instruction,
        access: Access,
        at: u32,
        bytes: Bytes,
        lanes: usize,
    ) {
        let now = self.advance(me, lanes);
        let [happened, tso, pso] = [0, lanes, 2 * lanes];
        let waits = self.waits(access);
        let thread = self.threads[me];
        self.threads[me].previous = instruction;
        let clock = self.clocks.of_lanes(me, lanes);
        let mut view = self.shadow.view_lanes(at, lanes);
        let Piece { writer, stamp, barrier, instruction: store, .. } = *view.piece;
        let stored = Stored { by: me as u32, now, barrier: thread.barrier, instruction, bytes };
        if view.piece.is_only_of(me as u32)
            && waits == Waits::No
            && !(access.writes() && view.piece.is_part())
        {
            // There is nothing to learn and nothing to report. This covers stacks and other memory that only
            // one process uses.
            if access.writes() {
                view.store(clock, stored);
            } else {
                copy(view.accesses, clock);
                (view.piece.loaded, view.piece.reader) = (true, me as u32);
            }
            return;
        }
        let is_foreign = writer != NONE && writer != me as u32;
        let ordered = is_foreign && clock[happened + writer as usize] >= stamp;
        if access.writes() && view.piece.loaded {
            // A process that was the only one to load the piece already knows everything and learns nothing.
            if view.piece.reader != me as u32 {
                join(clock, view.accesses);
            }
        } else if writer != me as u32 && !ordered {
            join(clock, view.store);
        }
        if is_foreign {
            let writer = writer as usize;
            if ordered {
                let pending = [
                    clock[tso + writer] < stamp,
                    clock[pso + writer] < stamp && !view.is_drained_for(&clock[happened..tso]),
                ];
                if pending != [false, false] {
                    let triple = (store, thread.previous, instruction);
                    self.violations.add_pending(pending, triple, self.events);
                }
            }
            clock[tso + writer] = clock[tso + writer].max(stamp);
            clock[pso + writer] = clock[pso + writer].max(barrier);
        }
        waits.drain(clock, [happened, tso, pso], me, thread.barrier);
        // A load leaves its own process's stores pending. Every other access makes the store drain under PSO.
        let drains = writer != NONE && (is_foreign || access != Access::Load);
        if drains && view.piece.is_part() {
            self.shadow.drain_parts(at, me, now);
            view = self.shadow.view_lanes(at, lanes);
        }
        if access.writes() {
            view.store(clock, stored);
            if waits == Waits::Own {
                view.drain(me, now);
            }
        } else {
            if drains {
                view.drain(me, now);
            }
            load(&mut view, clock, me);
        }
    }

    /// An event that accesses several pieces at once: a large or unaligned access, or an atomic section.
    #[cold]
    fn many(&mut self, me: usize, instruction: Instruction, accesses: &[(Access, Bytes)], waits: Waits) {
        let now = self.advance(me, self.lanes);
        let [happened, tso, pso] = self.vectors();
        let thread = self.threads[me];
        let mut touched = std::mem::take(&mut self.touched);
        self.touch(accesses, &mut touched);
        let is_foreign = |piece: &Piece| piece.writer != NONE && piece.writer != me as u32;

        // What happens before `prev` must be looked up before this event learns anything.
        let clock = self.clocks.of_mut(me);
        self.ordered.clear();
        self.ordered.extend(touched.iter().map(|touched| {
            let piece = self.shadow.view(touched.piece).piece;
            is_foreign(piece) && clock[happened + piece.writer as usize] >= piece.stamp
        }));
        for touched in &touched {
            let view = self.shadow.view(touched.piece);
            let all = touched.access.writes() && view.piece.loaded;
            if all || view.piece.writer != me as u32 {
                join(clock, if all { view.accesses } else { view.store });
            }
        }
        // A store that covers several pieces is reported once.
        let mut reported: Vec<(u32, Moment)> = Vec::new();
        let all = &touched;
        for group in 0..accesses.len() {
            for (index, touched) in touched.iter().enumerate().filter(|(_, touched)| touched.group == group) {
                let view = self.shadow.view(touched.piece);
                let piece = *view.piece;
                let drained = view.is_drained_for(&clock[happened..tso]);
                if !is_foreign(&piece) || reported.contains(&(piece.writer, piece.stamp)) {
                    continue;
                }
                let writer = piece.writer as usize;
                let pending =
                    [clock[tso + writer] < piece.stamp, clock[pso + writer] < piece.stamp && !drained];
                let (found, previous) = if self.ordered[index] {
                    (pending, thread.previous)
                } else {
                    (
                        pending_beside_other_pieces(&mut self.shadow, self.lanes, all, index, pending),
                        instruction,
                    )
                };
                if found != [false, false] {
                    reported.push((piece.writer, piece.stamp));
                    self.violations.add_pending(
                        found,
                        (piece.instruction, previous, instruction),
                        self.events,
                    );
                }
            }
            // From now on, the stores that this access saw have reached memory.
            for touched in touched.iter().filter(|touched| touched.group == group) {
                let piece = *self.shadow.view(touched.piece).piece;
                if is_foreign(&piece) {
                    let writer = piece.writer as usize;
                    clock[tso + writer] = clock[tso + writer].max(piece.stamp);
                    clock[pso + writer] = clock[pso + writer].max(piece.barrier);
                }
            }
        }
        waits.drain(clock, [happened, tso, pso], me, thread.barrier);
        for touched in &touched {
            let piece = *self.shadow.view(touched.piece).piece;
            let drains = piece.writer != NONE && (is_foreign(&piece) || touched.access != Access::Load);
            if drains && piece.is_part() {
                self.shadow.drain_parts(touched.piece, me, now);
            }
            if drains && !touched.access.writes() {
                self.shadow.view(touched.piece).drain(me, now);
            }
        }
        for touched in &touched {
            let clock = self.clocks.of(me);
            let mut view = self.shadow.view(touched.piece);
            if touched.access.writes() {
                let (by, barrier, bytes) = (me as u32, thread.barrier, touched.bytes);
                view.store(clock, Stored { by, now, barrier, instruction, bytes });
                if waits == Waits::Own {
                    view.drain(me, now);
                }
            } else {
                load(&mut view, clock, me);
            }
        }
        if let [(access, bytes)] = accesses
            && access.writes()
        {
            self.shadow.merge(*bytes);
        }
        self.touched = touched;
        self.threads[me].previous = instruction;
    }

    /// Collects the pieces of the accesses, each once. A piece counts as stored if one of the accesses stores
    /// it.
    fn touch(&mut self, accesses: &[(Access, Bytes)], touched: &mut Vec<Touched>) {
        touched.clear();
        let mut pieces = std::mem::take(&mut self.pieces);
        // The first pass cuts the pieces; the second pass finds them in their final form.
        if accesses.len() > 1 {
            accesses.iter().for_each(|(_, bytes)| self.shadow.cover(*bytes, &mut pieces));
        }
        for (group, &(access, bytes)) in accesses.iter().enumerate() {
            pieces.clear();
            self.shadow.cover(bytes, &mut pieces);
            for &piece in &pieces {
                let known = touched.iter_mut().find(|touched| touched.piece == piece);
                match known.filter(|_| accesses.len() > 1) {
                    Some(known) if known.access.writes() && !access.writes() => {}
                    Some(known) => *known = Touched { access, bytes, ..*known },
                    None => touched.push(Touched { piece, access, bytes, group }),
                }
            }
        }
        self.pieces = pieces;
    }

    /// Processes an event that accesses several places without interruption and first drains the whole
    /// buffer: an atomic section of a model program. Its later accesses may depend on what it has read
    /// before. So each access is judged as the first that deviates: those before it see what they saw.
    pub fn take_section(&mut self, process: Process, instruction: Instruction, accesses: &[(Access, Bytes)]) {
        let slot = self.slot(process);
        self.events += 1;
        if accesses.is_empty() {
            self.fence(slot);
        } else {
            self.many(slot, instruction, accesses, Waits::Whole);
        }
    }

    /// Events that access no memory.
    #[cold]
    fn other(&mut self, me: usize, event: &Event) {
        match event.action {
            Action::Access(..) => unreachable!("accesses are handled elsewhere"),
            Action::Fence => self.fence(me),
            Action::StoreFence => self.threads[me].barrier = self.clocks.of(me)[me],
            Action::Spawn(child) => self.start(me, child, event.instruction),
            Action::Start(child) => {
                self.fence(me);
                self.start(me, child, event.instruction);
            }
            Action::Join(child) => self.join(me, child, event.instruction),
            Action::Free { address, size } => self.shadow.forget(address, size),
        }
    }

    /// All stores of a process have reached memory.
    fn fence(&mut self, me: usize) {
        let [happened, tso, pso] = self.vectors();
        let clock = self.clocks.of_mut(me);
        let now = clock[happened + me];
        (clock[tso + me], clock[pso + me]) = (now, now);
    }

    /// A process starts another. If it knows that some process has ended, the new process takes over that
    /// slot and continues its sequence of events.
    fn start(&mut self, me: usize, child: Process, instruction: Instruction) {
        let known = self.clocks.of(me);
        let ended = |slot: usize| known[slot] == self.clocks.of(slot)[slot];
        let free = self.joined.iter().position(|&slot| ended(slot as usize));
        let is_new = self.slots.get(child.0 as usize).is_none_or(|&slot| slot == NONE);
        if let (Some(free), true) = (free, is_new) {
            let slot = self.joined.swap_remove(free);
            self.name_slot(child, slot as usize);
        }
        let slot = self.slot(child);
        if slot != me {
            self.clocks.join_within(slot, me);
            self.threads[slot].previous = instruction;
        }
    }

    /// A process has waited for another to end.
    fn join(&mut self, me: usize, child: Process, instruction: Instruction) {
        let slot = self.slot(child);
        if slot == me {
            return;
        }
        // The end of the process is an event, so that processes that know of it can be distinguished from
        // those that do not.
        self.advance(slot, self.lanes);
        self.fence(slot);
        self.clocks.join_within(me, slot);
        self.threads[me].previous = instruction;
        // If the number occurs again, it belongs to another process.
        self.slots[child.0 as usize] = NONE;
        self.joined.push(slot as u32);
    }
}

/// For TSO and PSO: whether the last store to one piece of an event could be pending although the event sees
/// the same values in its other pieces, and the store happens before one of those. In that case the event
/// itself takes the place of `prev`. Only in this way can an event be part of a cycle without another event
/// of its process.
fn pending_beside_other_pieces(
    shadow: &mut Shadow,
    lanes: usize,
    all: &[Touched],
    index: usize,
    pending: [bool; 2],
) -> [bool; 2] {
    let Piece { writer, stamp, .. } = *shadow.view(all[index].piece).piece;
    let (mut ordered, [mut tso, mut pso]) = (false, pending);
    for other in all {
        let view = shadow.view(other.piece);
        let piece = *view.piece;
        if (piece.writer, piece.stamp) == (writer, stamp) {
            continue;
        }
        let known = if other.access.writes() && piece.loaded { view.accesses } else { view.store };
        ordered |= known[..lanes][writer as usize] >= stamp;
        if piece.writer == writer {
            tso &= piece.stamp < stamp;
            pso &= piece.barrier < stamp;
        }
    }
    [ordered && tso, ordered && pso]
}

/// Adds a load to what the piece knows.
#[inline(always)]
fn load(view: &mut View<'_>, clock: &[Moment], me: usize) {
    let piece = &mut *view.piece;
    if piece.loaded && piece.reader != me as u32 {
        join(view.accesses, clock);
        piece.reader = NONE;
    } else {
        // The load is the first since the last store, or by the only reader. It has learned everything that
        // was known.
        copy(view.accesses, clock);
        (piece.loaded, piece.reader) = (true, me as u32);
    }
}

/// A piece that an event touches.
#[derive(Clone, Copy, Debug)]
struct Touched {
    piece: u32,
    access: Access,
    /// All bytes of the access.
    bytes: Bytes,
    /// The index of the event's first access that touches it.
    group: usize,
}

/// What an event waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waits {
    /// Nothing.
    No,
    /// The whole buffer.
    Whole,
    /// The whole buffer under TSO. Under PSO, its own address and what a store-store fence keeps before it.
    Own,
}

impl Waits {
    /// Updates the clock of the process with what has drained.
    #[inline(always)]
    fn drain(self, clock: &mut [Moment], [happened, tso, pso]: [usize; VECTORS], me: usize, barrier: Moment) {
        if self == Waits::No {
            return;
        }
        let now = clock[happened + me];
        clock[tso + me] = now;
        clock[pso + me] = if self == Waits::Own { clock[pso + me].max(barrier) } else { now };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::random::Random;

    /// Events of three processes, with many violations.
    fn events(count: usize) -> Vec<Event> {
        let mut numbers = Random::new(99);
        let mut random = |below: usize| numbers.below(below) as u64;
        let event = |index: usize| {
            let bytes = Bytes { address: 8 * random(4), size: 8 };
            let action = match random(12) {
                0..5 => Action::Access(Access::Load, bytes),
                5..10 => Action::Access(Access::Store, bytes),
                10 => Action::Access(Access::Locked, bytes),
                _ => Action::StoreFence,
            };
            Event { process: Process(random(3) as u32), instruction: Instruction(index as u32), action }
        };
        (0..count).map(event).collect()
    }

    fn seen(monitor: &Monitor) -> std::collections::BTreeSet<crate::Violation> {
        monitor.violations().sorted().into_iter().map(|(violation, _)| violation).collect()
    }

    #[test]
    fn old_moments_are_forgotten_and_nothing_false_is_reported() {
        let events = events(3_000);
        for interlocked in [Interlocked::WholeBuffer, Interlocked::OwnAddress] {
            let mut whole = Monitor::new(interlocked);
            whole.take_all(&events);
            // If the range of moments is small, only stores that waited for a long time are lost.
            for latest in [20, 100, 400] {
                let mut short = Monitor::with_latest(interlocked, latest);
                short.take_all(&events);
                let (short, whole) = (seen(&short), seen(&whole));
                assert!(short.is_subset(&whole), "{latest}");
                assert!(10 * short.len() >= 9 * whole.len(), "{latest}: {} of {}", short.len(), whole.len());
            }
        }
    }

    #[test]
    fn accesses_that_overlap_keep_the_invariants_of_shadow_memory() {
        for seed in palisade_conformance::seeds(40) {
            let mut random = Random::new(seed);
            let mut monitor = Monitor::new(Interlocked::WholeBuffer);
            for index in 0..100 {
                let (address, size) = (random.below(40) as u64, 1 + random.below(12) as u32);
                let bytes = Bytes { address, size };
                let action = match random.below(8) {
                    0..3 => Action::Access(Access::Load, bytes),
                    3..6 => Action::Access(Access::Store, bytes),
                    6 => Action::Access(Access::Locked, bytes),
                    _ => Action::Free { address, size: u64::from(size) },
                };
                let process = Process(random.below(3) as u32);
                monitor.take(&Event { process, instruction: Instruction(index), action });
                monitor.shadow.check_invariants();
            }
        }
    }

    #[test]
    fn there_may_be_many_processes() {
        // Store buffering between each process and the next. The vectors grow while events come in.
        let mut monitor = Monitor::new(Interlocked::WholeBuffer);
        let mut put = |process: u32, access, address: u64, instruction: u32| {
            let bytes = Bytes { address: 8 * address, size: 8 };
            let (process, instruction) = (Process(process), Instruction(instruction));
            monitor.take(&Event { process, instruction, action: Action::Access(access, bytes) });
        };
        for pair in 0..50u32 {
            let (x, y) = (u64::from(2 * pair), u64::from(2 * pair + 1));
            put(2 * pair, Access::Store, x, 4 * pair);
            put(2 * pair, Access::Load, y, 4 * pair + 1);
            put(2 * pair + 1, Access::Store, y, 4 * pair + 2);
            put(2 * pair + 1, Access::Load, x, 4 * pair + 3);
        }
        assert_eq!(monitor.violations().len(), 100, "one per pair and model");
    }

    #[test]
    fn memory_is_limited() {
        // Many addresses first, then more and more processes. Both need memory.
        let store = |process: u32, address: u64| Event {
            process: Process(process),
            instruction: Instruction(0),
            action: Action::Access(Access::Store, Bytes { address: 8 * address, size: 8 }),
        };
        let addresses: Vec<Event> = (0..20_000).map(|address| store(0, address)).collect();
        let processes: Vec<Event> = (0..200).map(|process| store(process, 0)).collect();
        let taken = |memory: u64, events: &[&[Event]]| {
            let mut monitor = Monitor::new(Interlocked::WholeBuffer).with_memory(memory);
            events.iter().for_each(|events| monitor.take_all(events));
            assert!(
                monitor.bytes() as u64 <= memory.saturating_add(memory / 10),
                "{memory}: {}",
                monitor.bytes()
            );
            (monitor.is_full(), monitor.events())
        };
        let all = (addresses.len() + processes.len()) as u64;
        assert_eq!(taken(u64::MAX, &[&addresses, &processes]), (false, all));
        let (full, events) = taken(1 << 20, &[&addresses]);
        assert!(full && (1_000..10_000).contains(&events), "{events}");
        let (full, events) = taken(8 << 20, &[&addresses, &processes]);
        assert!(full && (20_000..20_050).contains(&events), "{events}");
    }

    #[test]
    fn slots_of_joined_processes_are_reused() {
        let mut monitor = Monitor::new(Interlocked::WholeBuffer);
        let bytes = Bytes { address: 0, size: 8 };
        for child in 1..1000u32 {
            let event =
                |process, action| Event { process: Process(process), instruction: Instruction(0), action };
            monitor.take(&event(0, Action::Start(Process(child))));
            monitor.take(&event(child, Action::Access(Access::Store, bytes)));
            monitor.take(&event(0, Action::Join(Process(child))));
        }
        assert_eq!(monitor.threads.len(), 2);
        assert!(monitor.violations().is_empty());
    }
}
