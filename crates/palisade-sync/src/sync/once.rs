//! Like [`std::sync::Once`], [`std::sync::OnceLock`] and [`std::sync::LazyLock`].

use super::meet;
use crate::object::Object;
use crate::runtime::here;
use crate::runtime::state::{Object as Shared, Progress, Wait, touching};
use palisade_dpor::Mode;
use palisade_monitor::{Access, Action, Bytes};
use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::panic::Location;

/// Like [`std::sync::Once`].
#[derive(Debug)]
pub struct Once {
    object: Object,
    inner: std::sync::Once,
}

impl Once {
    /// A new `Once` whose function has not been called.
    pub fn new() -> Once {
        Once { object: Object::new(), inner: std::sync::Once::new() }
    }

    /// Calls the function if no thread has called it yet. If another thread is calling it, waits for that.
    #[track_caller]
    pub fn call_once(&self, f: impl FnOnce()) {
        let location = Location::caller();
        let Some(here) = here() else { return self.inner.call_once(f) };
        let address = self.object.address(&here);
        let footprint = |waits| touching(&[(address, 1, Mode::Write)], waits);
        let first =
            here.step((location, "call_once"), footprint(true), Wait::Called(address), |state, by| {
                let object = state.objects.entry(address).or_insert(Shared::Once(Progress::Before));
                let first = matches!(object, Shared::Once(Progress::Before));
                if first {
                    *object = Shared::Once(Progress::Running);
                    meet(state, &here, by, address);
                } else {
                    let bytes =
                        Bytes::new(address, 1).expect("addresses of objects are far below the maximum");
                    state.event(here.thread, by, Action::Access(Access::Load, bytes));
                    state.progress(here.thread);
                }
                first
            });
        if first == Some(true) {
            f();
            here.step((location, "call_once (done)"), footprint(false), Wait::No, |state, by| {
                state.objects.insert(address, Shared::Once(Progress::Done));
                meet(state, &here, by, address);
            });
            // For code that runs after the run.
            self.inner.call_once(|| {});
        }
    }

    /// Whether the call has been completed.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        let Some(here) = here() else { return self.inner.is_completed() };
        let address = self.object.address(&here);
        let footprint = touching(&[(address, 1, Mode::Read)], false);
        let done = here.glance((Location::caller(), "is_completed"), footprint, Wait::No, |state, by| {
            let done = matches!(state.objects.get(&address), Some(Shared::Once(Progress::Done)));
            let bytes = Bytes::new(address, 1).expect("addresses of objects are far below the maximum");
            state.event(here.thread, by, Action::Access(Access::Load, bytes));
            state.look_at_object(here.thread, by, (address, u64::from(done)));
            done
        });
        done.unwrap_or(false)
    }
}

impl Default for Once {
    fn default() -> Once {
        Once::new()
    }
}

/// Like [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    once: Once,
    inner: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub fn new() -> OnceLock<T> {
        OnceLock { once: Once::new(), inner: std::sync::OnceLock::new() }
    }

    /// The content, if there is any.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        if here().is_some() && !self.once.is_completed() { None } else { self.inner.get() }
    }

    /// The content, to which the caller has exclusive access.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.inner.get_mut()
    }

    /// Sets the content, if the cell is empty.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        if here().is_none() {
            return self.inner.set(value);
        }
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("the value is set once"));
        value.map_or(Ok(()), Err)
    }

    /// The content. If the cell is empty, the function's result becomes the content first.
    #[track_caller]
    pub fn get_or_init(&self, f: impl FnOnce() -> T) -> &T {
        if here().is_none() {
            return self.inner.get_or_init(f);
        }
        self.once.call_once(|| drop(self.inner.set(f())));
        self.inner.get().expect("the first call is complete")
    }

    /// Returns the content.
    pub fn into_inner(self) -> Option<T> {
        self.inner.into_inner()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T: Debug> Debug for OnceLock<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.inner, f)
    }
}

/// Like [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceLock<T>,
    init: std::sync::Mutex<Option<F>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// A cell whose content the function computes at the first access.
    pub fn new(f: F) -> LazyLock<T, F> {
        LazyLock { cell: OnceLock::new(), init: std::sync::Mutex::new(Some(f)) }
    }

    /// The content.
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        let take = || this.init.lock().ok().and_then(|mut init| init.take());
        this.cell.get_or_init(|| take().expect("the function is called once")())
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T: Debug, F> Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.cell, f)
    }
}
