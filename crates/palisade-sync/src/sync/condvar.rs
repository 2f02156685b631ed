//! Like [`std::sync::Condvar`]. In a run there are no spurious wakeups, a notification of one thread can
//! reach any waiting thread, and a wait with a timeout can end at any time.

use super::{Mutex, MutexGuard, meet};
use crate::object::Object;
use crate::runtime::here;
use crate::runtime::state::{Object as Shared, Outcomes, State, Wait, touching};
use palisade_dpor::Mode;
use std::panic::Location;
use std::sync::{LockResult, PoisonError};
use std::time::Duration;

/// Like [`std::sync::Condvar`].
#[derive(Debug)]
pub struct Condvar {
    object: Object,
    inner: std::sync::Condvar,
}

/// Whether a wait ended because of its timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it timed out.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

fn waiters(state: &mut State, address: u64) -> &mut Vec<(usize, bool)> {
    match state.objects.entry(address).or_insert(Shared::Condvar { waiters: Vec::new() }) {
        Shared::Condvar { waiters } => waiters,
        _ => unreachable!("the object at this address is a condition variable"),
    }
}

impl Condvar {
    /// A condition variable without waiting threads.
    pub fn new() -> Condvar {
        Condvar { object: Object::new(), inner: std::sync::Condvar::new() }
    }

    /// Releases the mutex, waits for a notification, and takes the mutex again.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        if here().is_none() {
            let (mutex, inner) = guard.into_std();
            let guard = |inner| MutexGuard::from_std(mutex, inner);
            return self
                .inner
                .wait(inner)
                .map(guard)
                .map_err(|error| PoisonError::new(guard(error.into_inner())));
        }
        let location = Location::caller();
        let (mutex, _) = self.wait_in_run(guard, location, false);
        mutex.guarded(Some(location))
    }

    /// Waits while a condition holds.
    #[track_caller]
    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        let mut guard = guard;
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits with a time limit.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        if here().is_none() {
            let (mutex, inner) = guard.into_std();
            let both = |(inner, result): (_, std::sync::WaitTimeoutResult)| {
                (MutexGuard::from_std(mutex, inner), WaitTimeoutResult(result.timed_out()))
            };
            let waited = self.inner.wait_timeout(inner, timeout);
            return waited.map(both).map_err(|error| PoisonError::new(both(error.into_inner())));
        }
        let location = Location::caller();
        let (mutex, timed_out) = self.wait_in_run(guard, location, true);
        let result = WaitTimeoutResult(timed_out);
        match mutex.guarded(Some(location)) {
            Ok(guard) => Ok((guard, result)),
            Err(error) => Err(PoisonError::new((error.into_inner(), result))),
        }
    }

    /// Waits while a condition holds, with a time limit.
    #[track_caller]
    pub fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let mut guard = guard;
        loop {
            if !condition(&mut guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            let (again, result) = self.wait_timeout(guard, timeout)?;
            guard = again;
            if result.timed_out() {
                let holds = condition(&mut guard);
                return Ok((guard, WaitTimeoutResult(holds)));
            }
        }
    }

    /// The steps of a wait. Returns the mutex, which this thread holds again in the run, and whether the wait
    /// timed out.
    fn wait_in_run<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        location: &'static Location<'static>,
        timed: bool,
    ) -> (&'a Mutex<T>, bool) {
        let here = here().expect("called in a run");
        let condvar = self.object.address(&here);
        let mutex_address = guard.mutex.address(&here);
        let both = |mode| touching(&[(mutex_address, 1, Mode::Write), (condvar, 1, mode)], false);
        let me = here.thread;
        let mut guard = Some(guard);
        let released = here.step((location, "wait"), both(Mode::Write), Wait::No, |state, by| {
            let mutex = guard.take().map(MutexGuard::release);
            state.objects.insert(mutex_address, Shared::Lock { readers: 0, writer: false });
            waiters(state, condvar).push((me, false));
            meet(state, &here, by, mutex_address);
            mutex
        });
        let mutex = match (released.flatten(), guard) {
            (Some(mutex), _) => mutex,
            (None, Some(guard)) => return (guard.release(), true),
            (None, None) => unreachable!("the guard was released in the step, or still exists"),
        };
        let wait =
            if timed { Wait::Free(mutex_address) } else { Wait::Notified { condvar, mutex: mutex_address } };
        // A thread that times out can no longer be notified, so its order with notifications matters.
        let mode = if timed { Mode::Write } else { Mode::Read };
        let footprint = palisade_dpor::Footprint { waits: true, ..both(mode) };
        let notified = here.step((location, "wait (again)"), footprint, wait, |state, by| {
            let waiters = waiters(state, condvar);
            let notified = waiters.contains(&(me, true));
            waiters.retain(|(waiter, _)| *waiter != me);
            state.objects.insert(mutex_address, Shared::Lock { readers: 0, writer: true });
            meet(state, &here, by, mutex_address);
            notified
        });
        (mutex, timed && notified != Some(true))
    }

    /// Notifies one waiting thread.
    #[track_caller]
    pub fn notify_one(&self) {
        let Some(here) = here() else { return self.inner.notify_one() };
        let address = self.object.address(&here);
        let footprint = touching(&[(address, 1, Mode::Write)], false);
        let place = (Location::caller(), "notify_one");
        here.step_with_outcomes(place, footprint, Wait::No, Outcomes::PerWaiter(address), |state, by| {
            let outcome = state.outcome();
            let candidates = waiters(state, address).iter_mut().filter(|(_, notified)| !notified);
            if let Some((_, notified)) = candidates.into_iter().nth(outcome) {
                *notified = true;
            }
            meet(state, &here, by, address);
        });
    }

    /// Notifies all waiting threads.
    #[track_caller]
    pub fn notify_all(&self) {
        let Some(here) = here() else { return self.inner.notify_all() };
        let address = self.object.address(&here);
        let footprint = touching(&[(address, 1, Mode::Write)], false);
        here.step((Location::caller(), "notify_all"), footprint, Wait::No, |state, by| {
            waiters(state, address).iter_mut().for_each(|(_, notified)| *notified = true);
            meet(state, &here, by, address);
        });
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}
