//! Like [`std::sync::atomic`]: atomics whose every operation is a separate step in a run.
//!
//! [`palisade_monitor::actions`] defines the events of an operation for the monitors, by its memory order.
//! The run itself is sequentially consistent. A weak compare-and-swap fails only if the values differ.

use crate::object::Object;
use crate::runtime::{Here, here};
use palisade_dpor::{Footprint, Mode};
use palisade_monitor::{Bytes, Operation, actions};
use std::fmt::{self, Debug, Formatter};
use std::panic::Location;
use std::sync::atomic::{AtomicU64 as Epoch, Ordering as Real};
pub use std::sync::atomic::{Ordering, compiler_fence};

/// Like [`std::sync::atomic::fence`].
#[track_caller]
pub fn fence(order: Ordering) {
    if let Some(here) = here() {
        for action in actions(Operation::Fence, order) {
            here.note(Location::caller(), "fence", action);
        }
    }
    std::sync::atomic::fence(order);
}

/// The effect of an operation.
enum Effect {
    Loaded(u64),
    Stored(u64),
    Modified { before: u64, after: u64 },
    Failed(u64),
}

/// A step on an atomic.
fn access<R>(
    here: &Here,
    (location, operation): (&'static Location<'static>, &'static str),
    bytes: Bytes,
    mode: Mode,
    orders: [Ordering; 2],
    perform: impl Fn() -> (R, Effect),
) -> R {
    let footprint = Footprint::one(bytes.address, u64::from(bytes.size), mode);
    let done =
        here.step((location, operation), footprint, crate::runtime::state::Wait::No, |state, instruction| {
            let (result, effect) = perform();
            let (operation, order) = match effect {
                Effect::Loaded(_) => (Operation::Load(bytes), orders[0]),
                Effect::Stored(_) => (Operation::Store(bytes), orders[0]),
                Effect::Modified { .. } => (Operation::Modify(bytes), orders[0]),
                Effect::Failed(_) => (Operation::Fail(bytes), orders[1]),
            };
            for action in actions(operation, order) {
                state.event(here.thread, instruction, action);
            }
            match effect {
                Effect::Loaded(value) | Effect::Failed(value) => {
                    state.look(here.thread, instruction, Some((bytes.address, value)));
                }
                Effect::Modified { before, after } if before == after => {
                    state.look(here.thread, instruction, Some((bytes.address, after)));
                }
                Effect::Stored(value) | Effect::Modified { after: value, .. } => {
                    state.wrote(here.thread, bytes.address, value);
                }
            }
            result
        });
    done.unwrap_or_else(|| perform().0)
}

/// Loads must not be `Release` or `AcqRel`, stores not `Acquire` or `AcqRel`. Like the standard library,
/// these functions panic, and they do so before the step.
#[track_caller]
fn check_load(order: Ordering) {
    assert!(
        !matches!(order, Ordering::Release | Ordering::AcqRel),
        "there is no such thing as a release load"
    );
}

#[track_caller]
fn check_store(order: Ordering) {
    assert!(
        !matches!(order, Ordering::Acquire | Ordering::AcqRel),
        "there is no such thing as an acquire store"
    );
}

macro_rules! atomic {
    ($name:ident $(<$generic:ident>)?, $std:path, $value:ty, $bits:expr) => {
        #[doc = concat!("Like [`std::sync::atomic::", stringify!($name), "`].")]
        pub struct $name $(<$generic>)? {
            inner: $std,
            object: Object,
            /// The initial value, and the last execution in which a static was used.
            initial: $value,
            epoch: Epoch,
        }

        impl $(<$generic>)? $name $(<$generic>)? {
            /// A new atomic. For statics, use [`const_new`](Self::const_new).
            pub fn new(value: $value) -> Self {
                Self { inner: <$std>::new(value), object: Object::new(), initial: value, epoch: Epoch::new(0) }
            }

            /// A new atomic for a constant or a static. It is reset to this value at the start of every
            /// execution.
            pub const fn const_new(value: $value) -> Self {
                Self { inner: <$std>::new(value), object: Object::fixed(), initial: value, epoch: Epoch::new(0) }
            }

            /// The value, to which the caller has exclusive access.
            pub fn get_mut(&mut self) -> &mut $value {
                self.inner.get_mut()
            }

            /// The value.
            pub fn into_inner(self) -> $value {
                self.inner.into_inner()
            }

            #[track_caller]
            fn bytes(&self, here: &Here) -> Bytes {
                let address = self.object.address(here);
                if self.object.is_static() && self.epoch.swap(here.run.epoch, Real::Relaxed) != here.run.epoch {
                    self.inner.store(self.initial, Real::SeqCst);
                }
                let size = std::mem::size_of::<$value>() as u32;
                Bytes::new(address, size).expect("atomics are small and far below the maximum address")
            }

            /// Loads the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let Some(here) = here() else { return self.inner.load(order) };
                check_load(order);
                let bytes = self.bytes(&here);
                access(&here, (Location::caller(), "load"), bytes, Mode::Read, [order; 2], || {
                    let value = self.inner.load(Real::SeqCst);
                    (value, Effect::Loaded($bits(value)))
                })
            }

            /// Stores a value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let Some(here) = here() else { return self.inner.store(value, order) };
                check_store(order);
                let bytes = self.bytes(&here);
                access(&here, (Location::caller(), "store"), bytes, Mode::Write, [order; 2], || {
                    self.inner.store(value, Real::SeqCst);
                    ((), Effect::Stored($bits(value)))
                })
            }

            /// Stores a value and returns the previous one.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let Some(here) = here() else { return self.inner.swap(value, order) };
                self.modify(&here, (Location::caller(), "swap"), order, |inner| (inner.swap(value, Real::SeqCst), value))
            }

            #[track_caller]
            fn modify(
                &self,
                here: &Here,
                place: (&'static Location<'static>, &'static str),
                order: Ordering,
                perform: impl Fn(&$std) -> ($value, $value),
            ) -> $value {
                let bytes = self.bytes(here);
                access(here, place, bytes, Mode::Write, [order; 2], || {
                    let (before, after) = perform(&self.inner);
                    (before, Effect::Modified { before: $bits(before), after: $bits(after) })
                })
            }

            /// Stores a value if the current one is as expected.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let Some(here) = here() else {
                    return self.inner.compare_exchange(current, new, success, failure);
                };
                check_load(failure);
                let bytes = self.bytes(&here);
                let place = (Location::caller(), "compare_exchange");
                access(&here, place, bytes, Mode::Write, [success, failure], || {
                    let result = self.inner.compare_exchange(current, new, Real::SeqCst, Real::SeqCst);
                    let effect = match result {
                        Ok(before) => Effect::Modified { before: $bits(before), after: $bits(new) },
                        Err(value) => Effect::Failed($bits(value)),
                    };
                    (result, effect)
                })
            }

            /// Like [`compare_exchange`](Self::compare_exchange).
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Loads, then compares and swaps until that succeeds or there is nothing to store.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut before = self.load(fetch_order);
                while let Some(next) = f(before) {
                    match self.compare_exchange_weak(before, next, set_order, fetch_order) {
                        done @ Ok(_) => return done,
                        Err(now) => before = now,
                    }
                }
                Err(before)
            }
        }

        impl $(<$generic>)? From<$value> for $name $(<$generic>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl $(<$generic>)? Debug for $name $(<$generic>)? {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                Debug::fmt(&self.inner, f)
            }
        }
    };
}

macro_rules! fetch {
    ($value:ty, $($method:ident => |$before:ident, $by:ident| $after:expr;)*) => {
        $(
            #[doc = concat!("As in the standard library (`", stringify!($method), "`).")]
            #[track_caller]
            pub fn $method(&self, value: $value, order: Ordering) -> $value {
                let Some(here) = here() else { return self.inner.$method(value, order) };
                self.modify(&here, (Location::caller(), stringify!($method)), order, |inner| {
                    let $before = inner.$method(value, Real::SeqCst);
                    let $by = value;
                    ($before, $after)
                })
            }
        )*
    };
}

macro_rules! integer {
    ($($name:ident $value:ty;)*) => {
        $(
            atomic!($name, std::sync::atomic::$name, $value, |value: $value| value as u64);

            impl $name {
                fetch! { $value,
                    fetch_add => |before, by| before.wrapping_add(by);
                    fetch_sub => |before, by| before.wrapping_sub(by);
                    fetch_and => |before, by| before & by;
                    fetch_nand => |before, by| !(before & by);
                    fetch_or => |before, by| before | by;
                    fetch_xor => |before, by| before ^ by;
                    fetch_max => |before, by| before.max(by);
                    fetch_min => |before, by| before.min(by);
                }
            }

            impl Default for $name {
                fn default() -> Self {
                    Self::new(0)
                }
            }
        )*
    };
}

integer! {
    AtomicU8 u8;
    AtomicU16 u16;
    AtomicU32 u32;
    AtomicU64 u64;
    AtomicUsize usize;
    AtomicI8 i8;
    AtomicI16 i16;
    AtomicI32 i32;
    AtomicI64 i64;
    AtomicIsize isize;
}

atomic!(AtomicBool, std::sync::atomic::AtomicBool, bool, |value: bool| u64::from(value));

impl AtomicBool {
    fetch! { bool,
        fetch_and => |before, by| before & by;
        fetch_nand => |before, by| !(before & by);
        fetch_or => |before, by| before | by;
        fetch_xor => |before, by| before ^ by;
    }

    /// Negates the value and returns the previous one.
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }
}

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

atomic!(AtomicPtr<T>, std::sync::atomic::AtomicPtr<T>, *mut T, |value: *mut T| value.addr() as u64);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}
