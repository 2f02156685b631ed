//! What one engine may use, and where it reports: time, memory, work, cores, a way to stop it, and its
//! [`Progress`].

use crate::memory::{Pressure, Process, Share};
use crate::race::{Room, Seat};
use crate::{Note, Progress, Silent, Stats};
use palisade_base::limits::{self, Limited, Pace};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use palisade_base::limits::Exhausted;

/// The minimum extra time for turning something that was found in time into an answer.
const GRACE: Duration = Duration::from_millis(100);

/// Limits. Clones share the stop flag and the progress.
#[derive(Clone, Debug)]
pub struct Limits {
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    memory: u64,
    work: u64,
    jobs: usize,
    stop: Arc<AtomicBool>,
    /// The seat among the engines that share these limits.
    seat: Option<Seat>,
    /// The part of the process's memory, if that is limited.
    share: Option<Share>,
    progress: Arc<dyn Progress>,
}

impl Limits {
    /// No limits except this many jobs, and no observer.
    pub fn unlimited(jobs: usize) -> Limits {
        Limits {
            deadline: None,
            timeout: None,
            memory: u64::MAX,
            work: u64::MAX,
            jobs: jobs.max(1),
            stop: Arc::default(),
            seat: None,
            share: None,
            progress: Arc::new(Silent),
        }
    }

    /// Reports to this observer.
    pub fn with_progress(mut self, progress: Arc<dyn Progress>) -> Limits {
        self.progress = progress;
        self
    }

    /// The observer, for wrapping it in another.
    pub fn progress(&self) -> &Arc<dyn Progress> {
        &self.progress
    }

    /// Reports what is being tried, and the current values of the counters. This is cheap and may be called
    /// often.
    pub fn report(&self, doing: &str, stats: &Stats) {
        self.progress.report(doing, stats);
    }

    /// Passes on a note worth keeping.
    pub fn note(&self, note: &Note) {
        self.progress.note(note);
    }

    /// Limits the time, from now on.
    pub fn with_timeout(mut self, timeout: Duration) -> Limits {
        self.timeout = Some(timeout);
        self.deadline = Instant::now().checked_add(timeout);
        self
    }

    /// Limits the memory that an engine's own tables may take, in bytes.
    pub fn with_memory(mut self, bytes: u64) -> Limits {
        self.memory = bytes;
        self
    }

    /// Also limits the memory of the whole process, as measured by the host. Limits that are given the same
    /// process apply at the same time.
    pub fn with_process(mut self, process: &Arc<Process>) -> Limits {
        self.share = Some(process.share());
        self
    }

    /// Limits the work: states for engines that search forwards, configurations for engines that search
    /// backwards. Unlike time, work is the same on every machine.
    pub fn with_work(mut self, work: u64) -> Limits {
        self.work = work;
        self
    }

    /// Limits the work to this, unless it was already limited to less.
    pub fn at_most_work(mut self, work: u64) -> Limits {
        self.work = self.work.min(work);
        self
    }

    /// Uses a stop flag that is set elsewhere.
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Limits {
        self.stop = stop;
        self
    }

    /// Limits the time to this from now on, unless it was already limited to less.
    pub fn at_most(self, timeout: Duration) -> Limits {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() + timeout => self,
            _ => self.with_timeout(timeout),
        }
    }

    /// The same without one part in `parts` of the time that is left, which is kept for another question. If time runs
    /// out, it is the shorter time that is reported, to a tenth of a second where that is not more than the whole.
    pub fn leaving_one_in(mut self, parts: u32) -> Limits {
        let now = Instant::now();
        if let Some(deadline) = self.deadline {
            let kept = deadline.saturating_duration_since(now) / parts;
            self.deadline = deadline.checked_sub(kept);
            self.timeout = self.timeout.map(|timeout| {
                let tenths = timeout.saturating_sub(kept).as_millis().div_ceil(100);
                Duration::from_millis(100 * tenths as u64).min(timeout)
            });
        }
        self
    }

    /// The same with a little more time, for turning something that was found in time into an answer. Answers
    /// still come within a tenth of the given time, or 0.3 s, after it.
    pub fn with_grace(mut self) -> Limits {
        if let (Some(deadline), Some(timeout)) = (self.deadline, self.timeout) {
            self.deadline = deadline.checked_add((timeout / 20).max(GRACE));
        }
        self
    }

    /// Uses this many threads of the host.
    pub fn with_jobs(mut self, jobs: usize) -> Limits {
        self.jobs = jobs;
        self
    }

    /// Shares the limits with other engines.
    pub(crate) fn with_seat(mut self, seat: Seat) -> Limits {
        self.seat = Some(seat);
        self
    }

    /// How many threads of the host may be used.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// The memory limit in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Asks everything that shares the flag to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether to continue, given the states or configurations so far.
    pub fn check_work(&self, done: u64) -> Result<(), Exhausted> {
        if done > self.work { Err(Exhausted::Work(self.work)) } else { Ok(()) }
    }

    /// Whether to continue, given the bytes in use. Cheap enough to be called every few hundred microseconds.
    /// See [`Pace`] for faster loops.
    pub fn check(&self, bytes_in_use: u64) -> Result<(), Exhausted> {
        self.check_room(bytes_in_use, 0)
    }

    /// Whether to continue, given the bytes in use and those that are about to be allocated at once.
    pub fn check_room(&self, bytes_in_use: u64, more: u64) -> Result<(), Exhausted> {
        self.check_all(Some(bytes_in_use), more)
    }

    fn check_all(&self, bytes: Option<u64>, more: u64) -> Result<(), Exhausted> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Exhausted::Stopped);
        }
        self.check_time()?;
        let share = self.share.as_ref();
        match &self.seat {
            Some(seat) => {
                let deadline = self.deadline;
                seat.check(bytes, Room { more, most: self.memory, share, deadline })?;
                // Other engines may have had their turn for a while.
                self.check_time()
            }
            None => {
                let bytes = bytes.unwrap_or(0);
                let pressure = |share: &Share| share.check(bytes, more) > Pressure::None;
                let full = bytes.saturating_add(more) > self.memory || share.is_some_and(pressure);
                if full { Err(Exhausted::Memory(self.memory)) } else { Ok(()) }
            }
        }
    }

    /// Whether to continue, for calls so frequent that the clock is not read each time. `bytes_in_use` is
    /// computed only when the clock is read.
    #[inline]
    pub fn check_often(&self, pace: &mut Pace, bytes_in_use: impl FnOnce() -> u64) -> Result<(), Exhausted> {
        if pace.is_due() { self.check(bytes_in_use()) } else { Ok(()) }
    }

    fn check_time(&self) -> Result<(), Exhausted> {
        match (self.deadline, self.timeout) {
            (Some(deadline), Some(timeout)) if Instant::now() >= deadline => Err(Exhausted::Time(timeout)),
            _ => Ok(()),
        }
    }

    /// Does work on this thread, within these limits, that cannot give a partial answer. See
    /// [`palisade_base::limits`].
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
        limits::within(Rc::new(self.clone()), work)
    }
}

impl Limited for Limits {
    fn allows(&self, more_bytes: u64) -> Result<(), Exhausted> {
        // The memory of such work is measured, not counted.
        self.check_all(None, more_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_reported_is_the_time_that_there_was() {
        let limits = Limits::unlimited(1).with_timeout(Duration::from_secs(100)).leaving_one_in(4);
        let timeout = limits.timeout.expect("the time is limited");
        // A part of the time may have passed before the question was asked.
        assert!(timeout >= Duration::from_secs(75) && timeout < Duration::from_secs(100), "{timeout:?}");
        assert_eq!(timeout.subsec_millis() % 100, 0);
        let short = Limits::unlimited(1).with_timeout(Duration::from_millis(20)).leaving_one_in(4);
        assert_eq!(short.timeout, Some(Duration::from_millis(20)));
    }

    #[test]
    fn work_stops_when_the_limits_are_reached() {
        let forever = || -> () {
            loop {
                limits::checkpoint();
            }
        };
        let limits = Limits::unlimited(1);
        let time = Duration::from_millis(1);
        assert_eq!(limits.clone().with_timeout(time).within(forever), Err(Exhausted::Time(time)));
        assert_eq!(
            limits.clone().with_memory(1 << 30).within(|| limits::room_for(2 << 30)),
            Err(Exhausted::Memory(1 << 30))
        );
        assert_eq!(limits.within(|| limits::room_for(2 << 30)), Ok(()));
        limits.stop();
        assert_eq!(limits.within(forever), Err(Exhausted::Stopped));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_the_process_counts() {
        let process = Process::new(1 << 40);
        assert_eq!(Limits::unlimited(1).with_process(&process).check(0), Ok(()));
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        let limits = Limits::unlimited(1).with_memory(7).with_process(&Process::new(1 << 20));
        assert_eq!(limits.check(0), Err(Exhausted::Memory(7)), "{}", taken.len());
    }
}
