//! Like [`std::sync::RwLock`]. Readers do not conflict with each other.

use super::meet;
use crate::object::Object;
use crate::runtime::here;
use crate::runtime::state::{Object as Shared, State, WITH_READERS, Wait, touching};
use palisade_dpor::Mode;
use std::fmt::{self, Debug, Formatter};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// Like [`std::sync::RwLock`].
pub struct RwLock<T: ?Sized> {
    object: Object,
    inner: std::sync::RwLock<T>,
}

/// Like [`std::sync::RwLockReadGuard`].
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: Option<std::sync::RwLockReadGuard<'a, T>>,
    taken: Option<&'static Location<'static>>,
}

/// Like [`std::sync::RwLockWriteGuard`].
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: Option<std::sync::RwLockWriteGuard<'a, T>>,
    taken: Option<&'static Location<'static>>,
}

/// The number of readers, and whether there is a writer.
fn lock_of(state: &mut State, address: u64) -> (&mut usize, &mut bool) {
    let lock = state.objects.entry(address).or_insert(Shared::Lock { readers: 0, writer: false });
    let Shared::Lock { readers, writer } = lock else { unreachable!("the object at this address is a lock") };
    (readers, writer)
}

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub fn new(value: T) -> RwLock<T> {
        RwLock { object: Object::new(), inner: std::sync::RwLock::new(value) }
    }

    /// Returns the content.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks it for reading.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let location = Location::caller();
        let mut taken = None;
        if let Some(here) = here() {
            let address = self.object.address(&here);
            let footprint = touching(&[(address, 1, Mode::Read)], true);
            here.step((location, "read"), footprint, Wait::Readable(address), |state, by| {
                *lock_of(state, address).0 += 1;
                meet(state, &here, by, address);
            });
            taken = Some(location);
        }
        let guard = |inner| RwLockReadGuard { lock: self, inner: Some(inner), taken };
        self.inner.read().map(guard).map_err(|error| PoisonError::new(guard(error.into_inner())))
    }

    /// Locks it for writing.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let location = Location::caller();
        let mut taken = None;
        if let Some(here) = here() {
            let address = self.object.address(&here);
            let footprint = touching(&[(address, 1, Mode::Write)], true);
            here.step((location, "write"), footprint, Wait::Free(address), |state, by| {
                *lock_of(state, address).1 = true;
                meet(state, &here, by, address);
            });
            taken = Some(location);
        }
        let guard = |inner| RwLockWriteGuard { lock: self, inner: Some(inner), taken };
        self.inner.write().map(guard).map_err(|error| PoisonError::new(guard(error.into_inner())))
    }

    /// Locks it for reading if there is no writer.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let location = Location::caller();
        let mut taken = None;
        if let Some(here) = here() {
            let address = self.object.address(&here);
            let got = here.step(
                (location, "try_read"),
                touching(&[(address, 1, Mode::Read)], false),
                Wait::No,
                |state, by| {
                    let (readers, writer) = lock_of(state, address);
                    let free = !*writer;
                    *readers += usize::from(free);
                    meet(state, &here, by, address);
                    free
                },
            );
            if got != Some(true) {
                return Err(TryLockError::WouldBlock);
            }
            taken = Some(location);
        }
        let guard = |inner| RwLockReadGuard { lock: self, inner: Some(inner), taken };
        match self.inner.try_read() {
            Ok(inner) => Ok(guard(inner)),
            Err(TryLockError::Poisoned(error)) => {
                Err(TryLockError::Poisoned(PoisonError::new(guard(error.into_inner()))))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// Locks it for writing if no thread holds it.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let location = Location::caller();
        let mut taken = None;
        if let Some(here) = here() {
            let address = self.object.address(&here);
            let got = here.attempt(
                (location, "try_write"),
                touching(&[(address, WITH_READERS, Mode::Write)], false),
                |state, by| {
                    let (readers, writer) = lock_of(state, address);
                    let free = !*writer && *readers == 0;
                    *writer |= free;
                    meet(state, &here, by, address);
                    free
                },
            );
            if got != Some(true) {
                return Err(TryLockError::WouldBlock);
            }
            taken = Some(location);
        }
        let guard = |inner| RwLockWriteGuard { lock: self, inner: Some(inner), taken };
        match self.inner.try_write() {
            Ok(inner) => Ok(guard(inner)),
            Err(TryLockError::Poisoned(error)) => {
                Err(TryLockError::Poisoned(PoisonError::new(guard(error.into_inner()))))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// The content, to which the caller has exclusive access.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// Whether a thread panicked while it held the lock for writing.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }
}

/// Releases a lock: `inner` is dropped with the step.
fn release<G>(object: &Object, taken: Option<&'static Location<'static>>, inner: &mut Option<G>, mode: Mode) {
    let (Some(taken), Some(here)) = (taken, here()) else { return };
    if here.run.state().end.is_some() {
        return;
    }
    let address = object.address(&here);
    here.step((taken, "unlock"), touching(&[(address, 1, mode)], false), Wait::No, |state, by| {
        *inner = None;
        let (readers, writer) = lock_of(state, address);
        match mode {
            Mode::Read => *readers -= 1,
            Mode::Write => *writer = false,
        }
        meet(state, &here, by, address);
    });
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        release(&self.lock.object, self.taken, &mut self.inner, Mode::Read);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        release(&self.lock.object, self.taken, &mut self.inner, Mode::Write);
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds the lock")
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds the lock")
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard holds the lock")
    }
}

impl<T: ?Sized + Debug> Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + Debug> Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + Debug> Debug for RwLock<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.inner, f)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}
