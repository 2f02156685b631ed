//! Like [`std::sync::Mutex`]. In a run, a thread that would have to wait is not chosen.

use super::meet;
use crate::object::Object;
use crate::runtime::state::{Object as Shared, Wait, touching};
use crate::runtime::{Here, here};
use palisade_dpor::Mode;
use std::fmt::{self, Debug, Display, Formatter};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// Like [`std::sync::Mutex`].
pub struct Mutex<T: ?Sized> {
    object: Object,
    inner: std::sync::Mutex<T>,
}

/// Like [`std::sync::MutexGuard`].
pub struct MutexGuard<'a, T: ?Sized> {
    pub(super) mutex: &'a Mutex<T>,
    /// Absent only while the guard is being released.
    inner: Option<std::sync::MutexGuard<'a, T>>,
    /// Where it was locked, in a run.
    taken: Option<&'static Location<'static>>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Mutex<T> {
        Mutex { object: Object::new(), inner: std::sync::Mutex::new(value) }
    }

    /// Returns the content.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free and locks it.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let location = Location::caller();
        if let Some(here) = here() {
            let address = self.object.address(&here);
            here.step(
                (location, "lock"),
                touching(&[(address, 1, Mode::Write)], true),
                Wait::Free(address),
                |state, by| {
                    state.objects.insert(address, Shared::Lock { readers: 0, writer: true });
                    meet(state, &here, by, address);
                },
            );
            return self.guarded(Some(location));
        }
        self.guarded(None)
    }

    /// Locks it if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let location = Location::caller();
        let Some(here) = here() else {
            return match self.inner.try_lock() {
                Ok(inner) => Ok(MutexGuard { mutex: self, inner: Some(inner), taken: None }),
                Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
                Err(TryLockError::Poisoned(error)) => {
                    let inner = Some(error.into_inner());
                    Err(TryLockError::Poisoned(PoisonError::new(MutexGuard {
                        mutex: self,
                        inner,
                        taken: None,
                    })))
                }
            };
        };
        let address = self.object.address(&here);
        let footprint = touching(&[(address, 1, Mode::Write)], false);
        let taken = here.attempt((location, "try_lock"), footprint, |state, by| {
            let free = state.is_free(address);
            if free {
                state.objects.insert(address, Shared::Lock { readers: 0, writer: true });
            }
            meet(state, &here, by, address);
            free
        });
        match taken {
            Some(true) => self.guarded(Some(location)).map_err(TryLockError::Poisoned),
            _ => Err(TryLockError::WouldBlock),
        }
    }

    /// The content, to which the caller has exclusive access.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// Whether a thread panicked while it held the mutex.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Clears the poisoned state.
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    pub(super) fn address(&self, here: &Here) -> u64 {
        self.object.address(here)
    }

    /// The guard, once this thread holds the mutex in the run.
    pub(super) fn guarded(&self, taken: Option<&'static Location<'static>>) -> LockResult<MutexGuard<'_, T>> {
        match self.inner.lock() {
            Ok(inner) => Ok(MutexGuard { mutex: self, inner: Some(inner), taken }),
            Err(error) => {
                Err(PoisonError::new(MutexGuard { mutex: self, inner: Some(error.into_inner()), taken }))
            }
        }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Releases the lock of the operating system without a step, and returns the mutex.
    pub(super) fn release(mut self) -> &'a Mutex<T> {
        self.inner = None;
        self.taken = None;
        self.mutex
    }

    /// The lock of the operating system, for a wait outside a run.
    pub(super) fn into_std(mut self) -> (&'a Mutex<T>, std::sync::MutexGuard<'a, T>) {
        self.taken = None;
        (self.mutex, self.inner.take().expect("a guard holds the lock"))
    }

    pub(super) fn from_std(mutex: &'a Mutex<T>, inner: std::sync::MutexGuard<'a, T>) -> Self {
        MutexGuard { mutex, inner: Some(inner), taken: None }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        let (Some(taken), Some(here)) = (self.taken, here()) else { return };
        if here.run.state().end.is_some() {
            return;
        }
        let address = self.mutex.object.address(&here);
        here.step((taken, "unlock"), touching(&[(address, 1, Mode::Write)], false), Wait::No, |state, by| {
            self.inner = None;
            state.objects.insert(address, Shared::Lock { readers: 0, writer: false });
            meet(state, &here, by, address);
        });
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds the lock")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard holds the lock")
    }
}

impl<T: ?Sized + Debug> Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + Display> Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&**self, f)
    }
}

impl<T: ?Sized + Debug> Debug for Mutex<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.inner, f)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}
