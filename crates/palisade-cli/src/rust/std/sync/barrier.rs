//! Waiting until so many threads have arrived.

use super::{Condvar, Mutex};
use core::fmt;

pub struct Barrier {
    arrivals: Mutex<Arrivals>,
    complete: Condvar,
    expected: usize,
}

struct Arrivals {
    count: usize,
    round: usize,
}

pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.0).finish()
    }
}

impl Barrier {
    #[inline]
    pub const fn new(n: usize) -> Barrier {
        Barrier {
            arrivals: Mutex::new(Arrivals { count: 0, round: 0 }),
            complete: Condvar::new(),
            expected: n,
        }
    }

    #[inline]
    pub fn wait(&self) -> BarrierWaitResult {
        let Ok(mut arrivals) = self.arrivals.lock() else { return BarrierWaitResult(false) };
        let round = arrivals.round;
        arrivals.count += 1;
        if arrivals.count < self.expected {
            drop(self.complete.wait_while(arrivals, |arrivals| arrivals.round == round));
            return BarrierWaitResult(false);
        }
        arrivals.count = 0;
        arrivals.round = round.wrapping_add(1);
        self.complete.notify_all();
        BarrierWaitResult(true)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
