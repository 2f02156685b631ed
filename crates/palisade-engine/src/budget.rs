//! How much an engine may use: time, memory, cores, and a way to stop it.

use crate::race::Seat;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A budget. Clones share the same stop flag.
#[derive(Clone, Debug)]
pub struct Budget {
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    memory: u64,
    work: u64,
    jobs: usize,
    stop: Arc<AtomicBool>,
    /// The place among others who share the budget.
    seat: Option<Seat>,
}

/// What ran out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Exhausted {
    /// The time given.
    Time(Duration),
    /// The memory given, in bytes.
    Memory(u64),
    /// The states or configurations given.
    Work(u64),
    /// Somebody asked to stop.
    Stopped,
}

impl Budget {
    /// No limits but this many jobs.
    pub fn unlimited(jobs: usize) -> Budget {
        let (memory, work) = (u64::MAX, u64::MAX);
        let (deadline, timeout, seat) = (None, None, None);
        Budget { deadline, timeout, memory, work, jobs: jobs.max(1), stop: Arc::default(), seat }
    }

    /// Limits the time, from now on.
    pub fn with_timeout(mut self, timeout: Duration) -> Budget {
        self.timeout = Some(timeout);
        self.deadline = Instant::now().checked_add(timeout);
        self
    }

    /// Limits the memory that an engine's own tables may take, in bytes.
    pub fn with_memory(mut self, bytes: u64) -> Budget {
        self.memory = bytes;
        self
    }

    /// Limits the work, in states for engines that search forwards and configurations for those that search backwards. Unlike time, it is the same on every machine.
    pub fn with_work(mut self, work: u64) -> Budget {
        self.work = work;
        self
    }

    /// Limits the work to this, if it was not less before.
    pub fn at_most_work(mut self, work: u64) -> Budget {
        self.work = self.work.min(work);
        self
    }

    /// Uses a stop flag that somebody else sets.
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Budget {
        self.stop = stop;
        self
    }

    /// Limits the time to this from now on, if it was not less before.
    pub fn at_most(self, timeout: Duration) -> Budget {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() + timeout => self,
            _ => self.with_timeout(timeout),
        }
    }

    /// Uses so many threads of the host.
    pub fn with_jobs(mut self, jobs: usize) -> Budget {
        self.jobs = jobs;
        self
    }

    /// Shares the budget with others.
    pub(crate) fn with_seat(mut self, seat: Seat) -> Budget {
        self.seat = Some(seat);
        self
    }

    /// Keeps something for the other engines that work on the same question, if there are any.
    pub fn learn<T: Any + Send + Sync>(&self, what: Arc<T>) {
        if let Some(seat) = &self.seat {
            seat.learn(what);
        }
    }

    /// What an engine that works on the same question has learned. It need not be about the very program at hand: engines may ask each other about others.
    pub fn learned<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.seat.as_ref()?.learned_by_now()
    }

    /// Tells the other engines that the program at hand is robust under its memory model: whatever is reachable is reachable under SC. Whether they make something of it;
    /// then the question under the memory model is dropped.
    pub fn learn_robust(&self) -> bool {
        self.seat.as_ref().is_some_and(Seat::learn_robust)
    }

    /// How many threads of the host may be used.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// The memory limit in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Asks everybody who shares the flag to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether to go on, given the states or configurations so far.
    pub fn check_work(&self, done: u64) -> Result<(), Exhausted> {
        if done > self.work { Err(Exhausted::Work(self.work)) } else { Ok(()) }
    }

    /// Whether to go on, given the bytes in use. Cheap enough to be asked every few thousand states.
    pub fn check(&self, bytes_in_use: u64) -> Result<(), Exhausted> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Exhausted::Stopped);
        }
        match &self.seat {
            Some(seat) => seat.check(bytes_in_use, self.memory)?,
            None if bytes_in_use > self.memory => return Err(Exhausted::Memory(self.memory)),
            None => {}
        }
        match (self.deadline, self.timeout) {
            (Some(deadline), Some(timeout)) if Instant::now() >= deadline => Err(Exhausted::Time(timeout)),
            _ => Ok(()),
        }
    }
}
