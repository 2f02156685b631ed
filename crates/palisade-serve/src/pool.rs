//! How many runs there are at a time: so many run, some wait in line, the others are sent away.
//!
//! *Invariant:* a place is given back when its [`Permit`] is dropped, however the run ended.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often those who wait look whether they are still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// The places.
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    most_running: usize,
    most_waiting: usize,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those who wait, the first in line first.
    waiting: VecDeque<u64>,
    next: u64,
}

/// A place, for as long as it is held.
pub(crate) struct Permit {
    pool: Arc<Pool>,
}

/// Why there is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoPlace {
    /// Too many wait already.
    Full,
    /// Whoever waited is not wanted any more.
    Gone,
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

    /// How many run and how many wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.running, state.waiting.len())
    }

    /// Whether somebody who comes now would be sent away.
    pub(crate) fn is_full(&self) -> bool {
        let (running, waiting) = self.load();
        running >= self.most_running && waiting >= self.most_waiting
    }

    /// Waits for a place. `still_wanted` is asked now and then, with the number of those ahead.
    pub(crate) fn enter(
        self: &Arc<Self>,
        mut still_wanted: impl FnMut(usize) -> bool,
    ) -> Result<Permit, NoPlace> {
        let mut state = self.lock();
        if state.running >= self.most_running && state.waiting.len() >= self.most_waiting {
            return Err(NoPlace::Full);
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
                return Err(NoPlace::Gone);
            }
            let free = state.waiting.front() == Some(&me) && state.running < self.most_running;
            if !free {
                state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
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
    fn places_are_given_back_and_those_who_leave_are_forgotten() {
        let pool = Arc::new(Pool::new(1, 1));
        let held = pool.enter(|_| true).expect("there is a place");
        assert_eq!(pool.load(), (1, 0));
        assert_eq!(pool.enter(|_| false).err(), Some(NoPlace::Gone));
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
            assert_eq!(pool.enter(|_| true).err(), Some(NoPlace::Full));
            drop(held);
            assert!(waiting.join().expect("no panic"));
        });
        assert_eq!(pool.load(), (0, 0));
    }
}
