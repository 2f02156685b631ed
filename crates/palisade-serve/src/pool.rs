//! Limits the number of runs at a time: some run, some wait in a queue, and the others are refused.
//!
//! *Invariant:* a slot is freed when its [`Permit`] is dropped, however the run ended.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting run checks whether its answer is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The slots for runs.
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    most_running: usize,
    most_waiting: usize,
}

#[derive(Default)]
struct State {
    running: usize,
    /// The waiting runs, first in line first.
    waiting: VecDeque<u64>,
    next: u64,
}

/// A slot, for as long as it is held.
pub(crate) struct Permit {
    pool: Arc<Pool>,
}

/// Why there is no slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoSlot {
    /// Too many runs are waiting already.
    Full,
    /// The answer is no longer wanted.
    Unwanted,
}

impl Pool {
    pub(crate) fn new(most_running: usize, most_waiting: usize) -> Pool {
        Pool {
            state: Mutex::default(),
            changed: Condvar::new(),
            most_running: most_running.max(1),
            most_waiting,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many runs are active and how many are waiting.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.running, state.waiting.len())
    }

    /// Whether a new run would be refused.
    pub(crate) fn is_full(&self) -> bool {
        let (running, waiting) = self.load();
        running >= self.most_running && waiting >= self.most_waiting
    }

    /// Waits for a slot. `still_wanted` is called now and then with the number of runs ahead.
    pub(crate) fn enter(
        self: &Arc<Self>,
        mut still_wanted: impl FnMut(usize) -> bool,
    ) -> Result<Permit, NoSlot> {
        let mut state = self.lock();
        if state.running >= self.most_running && state.waiting.len() >= self.most_waiting {
            return Err(NoSlot::Full);
        }
        let me = state.next;
        state.next += 1;
        state.waiting.push_back(me);
        loop {
            if state.waiting.front() == Some(&me) && state.running < self.most_running {
                state.waiting.pop_front();
                state.running += 1;
                self.changed.notify_all();
                return Ok(Permit { pool: self.clone() });
            }
            let ahead = state.waiting.iter().position(|&other| other == me).unwrap_or(0);
            drop(state);
            let wanted = still_wanted(ahead);
            state = self.lock();
            if !wanted {
                state.waiting.retain(|&other| other != me);
                self.changed.notify_all();
                return Err(NoSlot::Unwanted);
            }
            let free = state.waiting.front() == Some(&me) && state.running < self.most_running;
            if !free {
                state =
                    self.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.pool.lock().running -= 1;
        self.pool.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_freed_and_unwanted_runs_leave_the_queue() {
        let pool = Arc::new(Pool::new(1, 1));
        let held = pool.enter(|_| true).expect("there is a free slot");
        assert_eq!(pool.load(), (1, 0));
        assert_eq!(pool.enter(|_| false).err(), Some(NoSlot::Unwanted));
        assert_eq!(pool.load(), (1, 0));
        std::thread::scope(|scope| {
            let mut looked = 0;
            let waiting = scope.spawn({
                let pool = pool.clone();
                move || {
                    pool.enter(|ahead| {
                        looked += 1;
                        assert_eq!(ahead, 0);
                        true
                    })
                    .is_ok()
                }
            });
            while pool.load() != (1, 1) {
                std::thread::yield_now();
            }
            assert!(pool.is_full());
            assert_eq!(pool.enter(|_| true).err(), Some(NoSlot::Full));
            drop(held);
            assert!(waiting.join().expect("no panic"));
        });
        assert_eq!(pool.load(), (0, 0));
    }
}
