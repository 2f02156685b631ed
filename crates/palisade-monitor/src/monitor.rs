//! The monitors: which TSO and PSO violations of sequential consistency does a sequentially consistent execution show?
//!
//! *Problem.* An execution ran under sequential consistency. Is there an execution of the same program, as far as this one tells, that TSO or PSO allows and
//! sequential consistency does not?
//!
//! *Source.* Burnim, Sen and Stergiou, "Sound and complete monitoring of sequential consistency for relaxed memory models", TACAS 2011: monitorTSO (Figure 4) and
//! monitorPSO (Figure 5). They hold every store back as long as the machine still makes this execution, and report an event `eᵢ` if the last store `e` to its
//! address is pending in another process and happens before `prev`, the event before `eᵢ` in its process: then `eᵢ` could have come before
//! `e`, which closes a cycle.
//!
//! *Guarantee.* Every violation that is reported is one (Theorems 3 and 4). If a program has a violation, some execution of it shows one (Theorems 5 and 6).
//!
//! *Differences from the paper.*
//! 1. The paper's monitors look at the execution in the order in which it ran, and so miss what they would see on the same partial order had it run in another one:
//!    a load of `e`'s address by a third process makes them drain `e`, although that load need not have come before `eᵢ`. Ours judge `eᵢ` by the events that
//!    *happen before* it. They report exactly what the paper's report on some order of some prefix of the partial order, so that one execution per partial order
//!    is enough for Theorems 5 and 6 (`tests/oracle.rs` compares with the paper's own algorithm on all prefixes). The price is more vectors, not more passes:
//!    "has been drained before `eᵢ`" is knowledge that travels with happens-before ([`crate::clocks`]).
//! 2. Buffers are not kept. Under TSO a store of q is pending for `eᵢ` iff q's moment at the store is later than what `eᵢ` knows of q's drained
//!    stores. Under PSO, iff moreover no access to its address by another process happens before `eᵢ`; so an address holds, per
//!    process, the first such access.
//! 3. Fences, store-store fences, starting and joining processes, and failed compare-and-swaps are events here. A locked instruction drains the whole buffer, or, if
//!    asked for, under PSO its own address and what a store-store fence keeps before it.
//! 4. Accesses have sizes. A load or store is judged for each of its bytes and counts once. Loads see own pending stores byte by byte. Under PSO a store that
//!    overlaps an older pending store of its process without covering the same bytes makes that one drain: no false report, but perhaps none where there could be one.
//! 5. `prev` of a process' first event is the event that started it.
//!
//! *Cost.* O(processes) per event, as Theorem 7 says, and O(processes) memory per address in use.

use crate::clocks::{Bank, LANE_STEP, Moment, VECTORS, join};
use crate::event::{Access, Action, Bytes, Event, Instruction, MOST_PROCESSES, Process};
use crate::shadow::{NONE, Shadow};
use crate::violations::{Violation, Violations};
use palisade_memory::{Interlocked, Model};

/// Both monitors, in one pass.
#[derive(Clone, Debug)]
pub struct Monitor {
    interlocked: Interlocked,
    /// Slots by process number.
    slots: Vec<u32>,
    threads: Vec<Thread>,
    /// What each slot's process knows.
    clocks: Bank,
    lanes: usize,
    shadow: Shadow,
    /// Slots of processes that were joined.
    joined: Vec<u32>,
    violations: Violations,
    events: u64,
    /// When moments of a process reach this, old ones are forgotten.
    latest: Moment,
    /// The pieces of the event at hand, and whether the last store of each happens before `prev`.
    pieces: Vec<u32>,
    ordered: Vec<bool>,
}

/// A process, besides its clocks.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// The instruction of its last event.
    previous: Instruction,
    /// Its moment at its last store-store fence.
    barrier: Moment,
}

impl Monitor {
    /// Monitors that have seen nothing yet. The argument says what locked instructions wait for under PSO.
    pub fn new(interlocked: Interlocked) -> Monitor {
        Monitor::with_latest(interlocked, Moment::MAX)
    }

    /// The same with a smaller range of moments, so that tests reach its end.
    fn with_latest(interlocked: Interlocked, latest: Moment) -> Monitor {
        Monitor {
            interlocked,
            slots: Vec::new(),
            threads: Vec::new(),
            clocks: Bank::new(VECTORS, LANE_STEP),
            lanes: LANE_STEP,
            shadow: Shadow::new(LANE_STEP),
            joined: Vec::new(),
            violations: Violations::default(),
            events: 0,
            latest,
            pieces: Vec::new(),
            ordered: Vec::new(),
        }
    }

    /// Takes in the next event.
    ///
    /// # Panics
    /// If a process number is not below [`MOST_PROCESSES`]. Readers of traces see to it.
    #[inline]
    pub fn take(&mut self, event: &Event) {
        let slot = self.slot(event.process);
        self.events += 1;
        match event.action {
            Action::Access(access, bytes) => self.access(slot, event.instruction, access, bytes),
            _ => self.other(slot, event),
        }
    }

    /// What was found so far.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// How many events were taken in.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Bytes that the monitors use.
    pub fn bytes(&self) -> usize {
        self.clocks.bytes() + self.shadow.bytes()
    }

    /// The slot of a process, if need be a new one.
    #[inline(always)]
    fn slot(&mut self, process: Process) -> usize {
        match self.slots.get(process.0 as usize) {
            Some(&slot) if slot != NONE => slot as usize,
            _ => self.new_slot(process),
        }
    }

    #[cold]
    fn new_slot(&mut self, process: Process) -> usize {
        assert!(process.0 < MOST_PROCESSES, "process numbers are below {MOST_PROCESSES}");
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

    /// Where the three vectors begin.
    #[inline(always)]
    fn vectors(&self) -> [usize; VECTORS] {
        [0, self.lanes, 2 * self.lanes]
    }

    /// The process makes an event: its moment goes on.
    #[inline(always)]
    fn advance(&mut self, me: usize) -> Moment {
        let moment = &mut self.clocks.of_mut(me)[me];
        *moment += 1;
        if *moment < self.latest { *moment } else { self.forget_old(me) }
    }

    /// Takes half of the range from all moments of a process.
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
        let now = self.advance(me);
        let [happened, tso, pso] = self.vectors();
        let mut pieces = std::mem::take(&mut self.pieces);
        self.shadow.cover(bytes, &mut pieces);
        let clock = self.clocks.of_mut(me);

        // What happens before `prev` must be looked up before this event learns anything.
        self.ordered.clear();
        let mut foreign = false;
        for &at in &pieces {
            let piece = *self.shadow.piece(at);
            let is_foreign = piece.writer != NONE && piece.writer != me as u32;
            foreign |= is_foreign;
            self.ordered.push(is_foreign && clock[happened + piece.writer as usize] >= piece.stamp);
        }
        for &at in &pieces {
            let piece = *self.shadow.piece(at);
            if access.writes() && piece.loaded {
                join(clock, self.shadow.access_clock(at));
            } else if piece.writer != me as u32 {
                join(clock, self.shadow.store_clock(at));
            }
        }
        if foreign {
            self.judge(me, instruction, &pieces);
            // From now on the stores that this event saw have reached memory.
            let clock = self.clocks.of_mut(me);
            for &at in &pieces {
                let piece = *self.shadow.piece(at);
                if piece.writer != NONE && piece.writer != me as u32 {
                    let writer = piece.writer as usize;
                    clock[tso + writer] = clock[tso + writer].max(piece.stamp);
                    clock[pso + writer] = clock[pso + writer].max(piece.barrier);
                }
            }
        }
        let barrier = self.threads[me].barrier;
        let clock = self.clocks.of_mut(me);
        let locked_alone = access.locks() && self.interlocked == Interlocked::OwnAddress;
        if access.locks() {
            clock[tso + me] = now;
            clock[pso + me] = if locked_alone { clock[pso + me].max(barrier) } else { now };
        }
        for &at in &pieces {
            let writer = self.shadow.piece(at).writer;
            // Own loads leave own stores pending; everything else makes them drain under PSO.
            let drains = writer != NONE && (writer != me as u32 || access != Access::Load);
            if drains && self.shadow.piece(at).is_part() {
                for other in self.shadow.others_of_store(at) {
                    drain(&mut self.shadow, other, me, now);
                }
            }
            if !access.writes() && drains {
                drain(&mut self.shadow, at, me, now);
            }
        }
        for &at in &pieces {
            let clock = self.clocks.of(me);
            let loaded = self.shadow.piece(at).loaded;
            if access.writes() {
                self.shadow.store_clock(at).copy_from_slice(clock);
                if self.shadow.piece(at).drained {
                    self.shadow.drained_by(at).fill(0);
                }
                let piece = self.shadow.piece(at);
                piece.loaded = false;
                piece.drained = false;
                (piece.writer, piece.stamp, piece.barrier) = (me as u32, now, barrier);
                (piece.instruction, piece.stored) = (instruction, bytes);
                if locked_alone {
                    drain(&mut self.shadow, at, me, now);
                }
            } else if loaded {
                join(self.shadow.access_clock(at), clock);
            } else {
                // This event has learned all that the last store knew.
                self.shadow.access_clock(at).copy_from_slice(clock);
                self.shadow.piece(at).loaded = true;
            }
        }
        self.threads[me].previous = instruction;
        self.pieces = pieces;
    }

    /// Reports the stores of other processes that this event could have come before.
    #[inline]
    fn judge(&mut self, me: usize, instruction: Instruction, pieces: &[u32]) {
        let [happened, tso, pso] = self.vectors();
        let clock = self.clocks.of(me);
        let mut reported = [(NONE, 0); 2];
        for (&at, _) in pieces.iter().zip(&self.ordered).filter(|(_, ordered)| **ordered) {
            let piece = *self.shadow.piece(at);
            let (writer, stamp) = (piece.writer as usize, piece.stamp);
            let drained = |by: usize, when: Moment| when != 0 && when <= clock[happened + by];
            let pending = [
                clock[tso + writer] < stamp,
                clock[pso + writer] < stamp
                    && !(piece.drained
                        && self
                            .shadow
                            .drained_by(at)
                            .iter()
                            .enumerate()
                            .any(|(by, &when)| drained(by, when))),
            ];
            for (model, pending) in [Model::Tso, Model::Pso].into_iter().zip(pending) {
                let last = &mut reported[usize::from(model == Model::Pso)];
                if pending && *last != (piece.writer, stamp) {
                    *last = (piece.writer, stamp);
                    let violation = Violation {
                        model,
                        store: piece.instruction,
                        previous: self.threads[me].previous,
                        access: instruction,
                    };
                    self.violations.add(violation, self.events);
                }
            }
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
            Action::Join(child) => {
                let child = self.slot(child);
                if child != me {
                    self.fence(child);
                    self.clocks.join_within(me, child);
                    self.threads[me].previous = event.instruction;
                    if !self.joined.contains(&(child as u32)) {
                        self.joined.push(child as u32);
                    }
                }
            }
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

    /// A process starts another. If it knows that some process has ended, the new one takes that one's slot: its events go on where that one's stopped.
    fn start(&mut self, me: usize, child: Process, instruction: Instruction) {
        let known = self.clocks.of(me);
        let free = self.joined.iter().position(|&slot| {
            let slot = slot as usize;
            slot != me && known[slot] == self.clocks.of(slot)[slot]
        });
        let is_new = self.slots.get(child.0 as usize).is_none_or(|&slot| slot == NONE);
        let slot = match free {
            Some(free) if is_new || self.slots[child.0 as usize] == self.joined[free] => {
                let slot = self.joined.swap_remove(free);
                self.slots.iter_mut().filter(|other| **other == slot).for_each(|other| *other = NONE);
                self.name_slot(child, slot as usize);
                slot as usize
            }
            _ => self.slot(child),
        };
        if slot != me {
            self.clocks.join_within(slot, me);
            self.threads[slot].previous = instruction;
        }
    }
}

/// Notes that an access makes a store drain under PSO.
fn drain(shadow: &mut Shadow, piece: u32, by: usize, now: Moment) {
    shadow.piece(piece).drained = true;
    let first = &mut shadow.drained_by(piece)[by];
    if *first == 0 {
        *first = now;
    }
}
