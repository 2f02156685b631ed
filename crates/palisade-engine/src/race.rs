//! Engines side by side on one question, within one set of limits.
//!
//! A [`Race`] has a seat for each engine, the most promising first.
//!
//! - *Time.* Engines take turns on as many host threads as there are jobs. The engine that has computed
//!   least, relative to its weight, goes next. So with n seats of equal weight on j threads, every engine
//!   runs at no less than j/n of its own pace.
//! - *Memory.* Engines share the memory limit. When it is reached, the last seat that holds more than half of
//!   its share gives up its memory. It may try again when it has the memory to itself.
//!
//! Engines are not aware of this. They ask their [`Limits`] whether to continue, and may have to wait for the
//! answer.

use crate::memory::{Pressure, Share};
use crate::{Exhausted, Limits};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an engine computes before another one has a turn.
const TURN: Duration = Duration::from_millis(5);
/// How long the others wait at a time for an engine that has to give up its memory.
const PATIENCE: Duration = Duration::from_millis(100);

/// Engines side by side.
#[derive(Clone, Debug)]
pub struct Race {
    shared: Arc<Shared>,
}

/// The limits that all seats share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'b> {
    /// The bytes that are about to be allocated at once.
    pub(crate) more: u64,
    /// The limit for all tables together.
    pub(crate) most: u64,
    /// The part of the process's memory, if that is limited.
    pub(crate) share: Option<&'b Share>,
    /// When the time is up.
    pub(crate) deadline: Option<Instant>,
}

/// Whether seats that were asked to give up their memory are still active.
enum Leaving {
    /// No seat was asked to, or all of them had already left.
    NoSeat,
    /// They have just left, or another seat has to leave.
    Left,
    /// They are still active.
    Stays,
}

/// A place in a race.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    shared: Arc<Shared>,
    index: usize,
}

struct Shared {
    /// Set when an engine knows the answer.
    over: AtomicBool,
    /// The bytes that each seat holds.
    bytes: Vec<AtomicU64>,
    /// Seats that gave up their memory for others.
    evicted: Vec<AtomicBool>,
    turns: Mutex<Turns>,
    changed: Condvar,
    /// Set when another question replaces this one.
    replaced: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Turns {
    /// How many seats may compute at a time.
    most: usize,
    /// The state of each seat, and how long it has computed, divided by its weight.
    seats: Vec<(SeatState, Duration)>,
    weights: Vec<u32>,
}

/// The state of a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SeatState {
    /// It has not entered yet, or has left.
    Away,
    /// It is waiting for its turn.
    Waits,
    /// It has been computing since then.
    Computes(Instant),
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("over", &self.over).field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Race {
    /// A race with a seat for each of these weights, on this many host threads. All seats stop when
    /// `replaced` is set: another question is then asked instead.
    pub fn new(weights: &[u32], jobs: usize, replaced: Arc<AtomicBool>) -> Race {
        let seats = weights.len();
        let turns = Turns {
            most: jobs.max(1),
            seats: vec![(SeatState::Away, Duration::ZERO); seats],
            weights: weights.iter().map(|&weight| weight.max(1)).collect(),
        };
        let shared = Shared {
            over: AtomicBool::new(false),
            bytes: (0..seats).map(|_| AtomicU64::new(0)).collect(),
            evicted: (0..seats).map(|_| AtomicBool::new(false)).collect(),
            turns: Mutex::new(turns),
            changed: Condvar::new(),
            replaced,
        };
        Race { shared: Arc::new(shared) }
    }

    /// The limits of a seat: the whole limits, shared with the others. An engine that uses them must be [let
    /// in](Race::enter).
    pub fn limits(&self, seat: usize, limits: &Limits) -> Limits {
        // If there are more threads than seats, an engine that can use several threads may do so.
        let jobs = (limits.jobs() + 1).saturating_sub(self.shared.bytes.len()).max(1);
        limits.clone().with_jobs(jobs).with_seat(Seat { shared: self.shared.clone(), index: seat })
    }

    /// Waits for the seat's first turn. The seat is free again when the guard is dropped.
    pub fn enter(&self, seat: usize) -> Entered<'_> {
        let mut turns = self.shared.lock();
        turns.seats[seat].0 = SeatState::Waits;
        turns.next();
        drop(self.shared.wait(turns, seat, None));
        Entered { race: self, seat }
    }

    /// An engine knows the answer: all others have to stop.
    pub fn finish(&self) {
        let _turns = self.shared.lock();
        self.shared.over.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
    }

    /// Whether the seat had to give up its memory for others.
    pub fn was_evicted(&self, seat: usize) -> bool {
        self.shared.evicted[seat].load(Ordering::Relaxed)
    }
}

/// A seat in use.
#[derive(Debug)]
pub struct Entered<'r> {
    race: &'r Race,
    seat: usize,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let shared = &self.race.shared;
        shared.bytes[self.seat].store(0, Ordering::Relaxed);
        let mut turns = shared.lock();
        turns.leave(self.seat, SeatState::Away);
        shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one of these holds: it is the seat's turn, the race is over, the seat has to give up its
    /// memory, or the time is up.
    fn wait<'t>(
        &self,
        mut turns: MutexGuard<'t, Turns>,
        seat: usize,
        deadline: Option<Instant>,
    ) -> MutexGuard<'t, Turns> {
        self.changed.notify_all();
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        while turns.seats[seat].0 == SeatState::Waits && !is_set(&self.over) && !is_set(&self.evicted[seat]) {
            turns = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.changed.wait_timeout(turns, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        turns
    }
}

impl Turns {
    /// The seat stops computing, so that others can.
    fn leave(&mut self, seat: usize, to: SeatState) {
        if let SeatState::Computes(since) = self.seats[seat].0 {
            self.seats[seat].1 += since.elapsed() / self.weights[seat];
        }
        self.seats[seat].0 = to;
        self.next();
    }

    /// Gives turns to the seats that have computed least, the first seats first.
    fn next(&mut self) {
        let computing =
            self.seats.iter().filter(|(place, _)| matches!(place, SeatState::Computes(_))).count();
        for _ in computing..self.most {
            let waiting = self.seats.iter_mut().filter(|(place, _)| *place == SeatState::Waits);
            let Some((place, _)) = waiting.min_by_key(|(_, computed)| *computed) else { break };
            *place = SeatState::Computes(Instant::now());
        }
    }
}

impl Seat {
    /// Whether to continue, given the bytes in use, if they are known, and the limits for all seats. Waits if
    /// it is another seat's turn.
    pub(crate) fn check(&self, bytes: Option<u64>, room: Room<'_>) -> Result<(), Exhausted> {
        let shared = &*self.shared;
        if let Some(bytes) = bytes {
            shared.bytes[self.index].store(bytes, Ordering::Relaxed);
        }
        self.make_room(bytes.is_some(), room)?;
        self.take_turns(room.deadline);
        self.was_evicted(room.most)?;
        let replaced = shared.replaced.load(Ordering::Relaxed);
        if replaced || shared.over.load(Ordering::Relaxed) { Err(Exhausted::Stopped) } else { Ok(()) }
    }

    fn was_evicted(&self, most: u64) -> Result<(), Exhausted> {
        match self.shared.evicted[self.index].load(Ordering::Relaxed) {
            true => Err(Exhausted::Memory(most)),
            false => Ok(()),
        }
    }

    /// Chooses a seat to give up its memory if the memory is full.
    fn make_room(&self, is_counted: bool, room: Room<'_>) -> Result<(), Exhausted> {
        loop {
            self.was_evicted(room.most)?;
            let held = self.held();
            let all = held.iter().fold(0u64, |all, &bytes| all.saturating_add(bytes));
            let pressure = room.share.map_or(Pressure::None, |share| share.check(all, room.more));
            let too_many = all.saturating_add(room.more) > room.most;
            if !too_many && pressure == Pressure::None {
                return Ok(());
            }
            match self.await_leaving(room.share) {
                Leaving::NoSeat => {}
                Leaving::Left => continue,
                Leaving::Stays if pressure == Pressure::Emergency => {
                    return Err(Exhausted::Memory(room.most));
                }
                Leaving::Stays => return Ok(()),
            }
            let holders = held.iter().filter(|&&bytes| bytes > 0).count().max(1) as u64;
            let others = all - held[self.index];
            let measured = room.share.map_or(0, |share| share.process().measured());
            // Memory that is in no table belongs to work that does not count its memory.
            let uncounted = !is_counted && measured.saturating_sub(others) > all / holders;
            let last = held.iter().rposition(|&bytes| bytes > all / holders / 2).filter(|_| !uncounted);
            let last = last.unwrap_or(self.index);
            let alone = (too_many && holders == 1) || self.is_alone(last);
            self.shared.evicted[last].store(!alone, Ordering::Relaxed);
            self.shared.changed.notify_all();
            if last == self.index {
                return Err(Exhausted::Memory(room.most));
            }
            if alone {
                // That seat will notice by itself.
                return Ok(());
            }
        }
    }

    /// Waits for the seats that were asked to give up their memory.
    fn await_leaving(&self, share: Option<&Share>) -> Leaving {
        let is_evicted = |seat: usize| self.shared.evicted[seat].load(Ordering::Relaxed);
        let leaving = |turns: &Turns| {
            let mut seats = turns.seats.iter().enumerate();
            seats.any(|(seat, (place, _))| *place != SeatState::Away && is_evicted(seat))
        };
        let start = Instant::now();
        let mut turns = self.shared.lock();
        if !leaving(&turns) {
            return Leaving::NoSeat;
        }
        while leaving(&turns) {
            if is_evicted(self.index) || self.shared.over.load(Ordering::Relaxed) {
                return Leaving::Left;
            }
            if start.elapsed() > PATIENCE {
                return Leaving::Stays;
            }
            let (again, _) =
                self.shared.changed.wait_timeout(turns, TURN).unwrap_or_else(PoisonError::into_inner);
            turns = again;
        }
        drop(turns);
        if let Some(share) = share {
            share.process().give_way();
        }
        Leaving::Left
    }

    /// The bytes that each seat holds, except for seats that were asked to give up their memory.
    fn held(&self) -> Vec<u64> {
        let held = self.shared.bytes.iter().zip(&self.shared.evicted).map(|(bytes, evicted)| {
            if evicted.load(Ordering::Relaxed) { 0 } else { bytes.load(Ordering::Relaxed) }
        });
        held.collect()
    }

    /// Whether no other seat is at work.
    fn is_alone(&self, seat: usize) -> bool {
        let turns = self.shared.lock();
        turns.seats.iter().enumerate().all(|(other, (place, _))| other == seat || *place == SeatState::Away)
    }

    fn take_turns(&self, deadline: Option<Instant>) {
        let mut turns = self.shared.lock();
        let (place, _) = turns.seats[self.index];
        let others_wait = turns.seats.iter().any(|(place, _)| *place == SeatState::Waits);
        match place {
            SeatState::Computes(since) if others_wait && since.elapsed() >= TURN => {
                turns.leave(self.index, SeatState::Waits);
                drop(self.shared.wait(turns, self.index, deadline));
            }
            // Another thread of the same engine has given up the turn.
            SeatState::Waits => drop(self.shared.wait(turns, self.index, deadline)),
            SeatState::Computes(_) | SeatState::Away => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_as_many_engines_compute_at_once_as_there_are_jobs() {
        let check = |seats: usize, jobs: usize| {
            let race = Race::new(&vec![1; seats], jobs, Arc::default());
            let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for seat in 0..seats {
                    let (race, now, most) = (&race, &now, &most);
                    scope.spawn(move || {
                        let limits = race.limits(seat, &Limits::unlimited(jobs));
                        let _entered = race.enter(seat);
                        for _ in 0..50 {
                            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            std::hint::black_box((0..20_000u64).sum::<u64>());
                            now.fetch_sub(1, Ordering::SeqCst);
                            assert_eq!(limits.check(0), Ok(()));
                        }
                    });
                }
            });
            let most = most.into_inner();
            assert!(most <= jobs as u64, "{most} of {seats} at a time on {jobs}");
        };
        check(1, 1);
        check(4, 1);
        check(5, 2);
        check(2, 8);
    }

    #[test]
    fn turns_go_by_weight() {
        let mut turns =
            Turns { most: 1, seats: vec![(SeatState::Waits, Duration::ZERO); 2], weights: vec![4, 1] };
        let mut taken = [0, 0];
        for _ in 0..100 {
            turns.next();
            let seat = turns
                .seats
                .iter()
                .position(|(place, _)| *place != SeatState::Waits)
                .expect("a seat computes");
            taken[seat] += 1;
            // One turn lasts a second.
            turns.seats[seat].1 += Duration::from_secs(1) / turns.weights[seat];
            turns.seats[seat].0 = SeatState::Waits;
        }
        assert_eq!(taken, [80, 20]);
    }

    #[test]
    fn the_answer_stops_all_others() {
        let race = Race::new(&[1; 3], 1, Arc::default());
        std::thread::scope(|scope| {
            for seat in 0..2 {
                let race = &race;
                scope.spawn(move || {
                    let limits = race.limits(seat, &Limits::unlimited(1));
                    let _entered = race.enter(seat);
                    while limits.check(0).is_ok() {}
                    assert_eq!(limits.check(0), Err(Exhausted::Stopped));
                });
            }
            let entered = race.enter(2);
            race.finish();
            drop(entered);
        });
    }

    #[test]
    fn the_last_seat_that_holds_its_share_makes_room() {
        let check = |held: [u64; 3], expected: [bool; 3]| {
            let race = Race::new(&[1; 3], 3, Arc::default());
            let limits = Limits::unlimited(3).with_memory(100);
            let all: Vec<Limits> = (0..3).map(|seat| race.limits(seat, &limits)).collect();
            for (limits, bytes) in all.iter().zip(held) {
                let _ = limits.check(bytes);
            }
            let continues: Vec<bool> =
                all.iter().zip(held).map(|(limits, bytes)| limits.check(bytes).is_ok()).collect();
            assert_eq!(continues, expected, "{held:?}");
        };
        check([30, 30, 30], [true, true, true]);
        check([40, 40, 40], [true, true, false]);
        check([60, 50, 1], [true, false, true]);
        check([101, 0, 0], [false, true, true]);
    }

    #[test]
    fn an_engine_alone_has_all_the_memory_and_no_second_chance() {
        let race = Race::new(&[1; 2], 2, Arc::default());
        let limits = race.limits(0, &Limits::unlimited(2).with_memory(100));
        assert_eq!(limits.check(100), Ok(()));
        assert_eq!(limits.check(101), Err(Exhausted::Memory(100)));
        assert!(!race.was_evicted(0));
    }

    #[test]
    fn a_race_for_a_question_that_was_replaced_is_over() {
        let replaced = Arc::new(AtomicBool::new(false));
        let race = Race::new(&[1; 2], 1, replaced.clone());
        let [a, b] = [0, 1].map(|seat| race.limits(seat, &Limits::unlimited(1)));
        assert_eq!((a.check(0), b.check(0)), (Ok(()), Ok(())));
        replaced.store(true, Ordering::Relaxed);
        assert_eq!((a.check(0), b.check(0)), (Err(Exhausted::Stopped), Err(Exhausted::Stopped)));
    }
}
