//! Like [`std::sync::atomic`]: atomics whose every operation is a separate step in a run.
//!
//! In a run, the values are those of the run's memory and store buffers; see `cell.rs`. The atomic of the
//! standard library keeps the initial value. A weak compare-and-swap fails only if the values differ.

use super::cell::{self, Cell};
use crate::object::Object;
use crate::runtime::{Here, here};
use palisade_dpor::Writes;
use palisade_monitor::Bytes;
use std::fmt::{self, Debug, Formatter};
use std::panic::Location;
use std::sync::atomic::Ordering as Real;
pub use std::sync::atomic::{Ordering, compiler_fence};

/// Like [`std::sync::atomic::fence`].
#[track_caller]
pub fn fence(order: Ordering) {
    if let Some(here) = here() {
        cell::fence(&here, (Location::caller(), "fence"), order);
    }
    std::sync::atomic::fence(order);
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
    ($name:ident $(<$generic:ident>)?, $std:path, $value:ty, $bits:expr, $value_of:expr) => {
        #[doc = concat!("Like [`std::sync::atomic::", stringify!($name), "`].")]
        pub struct $name $(<$generic>)? {
            inner: $std,
            object: Object,
            /// The initial value, with which a static begins every execution.
            initial: $value,
        }

        impl $(<$generic>)? $name $(<$generic>)? {
            /// A new atomic. For statics, use [`const_new`](Self::const_new).
            pub fn new(value: $value) -> Self {
                Self { inner: <$std>::new(value), object: Object::new(), initial: value }
            }

            /// A new atomic for a constant or a static. It is reset to this value at the start of every
            /// execution.
            pub const fn const_new(value: $value) -> Self {
                Self { inner: <$std>::new(value), object: Object::fixed(), initial: value }
            }

            /// The value, to which the caller has exclusive access.
            pub fn get_mut(&mut self) -> &mut $value {
                self.settle();
                self.inner.get_mut()
            }

            /// The value.
            pub fn into_inner(mut self) -> $value {
                self.settle();
                self.inner.into_inner()
            }

            /// Takes the value out of the run. The caller has exclusive access.
            fn settle(&mut self) {
                let Some(here) = here() else { return };
                let Some(address) = self.object.current_address(&here) else { return };
                if let Some(bits) = here.run.state().take_exclusive(address) {
                    *self.inner.get_mut() = $value_of(bits);
                }
            }

            /// The atomic in a run.
            #[track_caller]
            fn cell(&self, here: &Here) -> Cell {
                let address = self.object.address(here);
                let size = std::mem::size_of::<$value>() as u32;
                let bytes = Bytes::new(address, size).expect("atomics are small and far below the maximum address");
                let is_static = self.object.is_static();
                let initial = if is_static { self.initial } else { self.inner.load(Real::SeqCst) };
                Cell { bytes, initial: $bits(initial) }
            }

            /// Loads the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let Some(here) = here() else { return self.inner.load(order) };
                check_load(order);
                $value_of(self.cell(&here).load(&here, (Location::caller(), "load"), order))
            }

            /// Stores a value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let Some(here) = here() else { return self.inner.store(value, order) };
                check_store(order);
                self.cell(&here).store(&here, (Location::caller(), "store"), $bits(value), order);
            }

            /// Stores a value and returns the previous one.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let Some(here) = here() else { return self.inner.swap(value, order) };
                self.modify(&here, (Location::caller(), "swap"), order, |_| value)
            }

            #[track_caller]
            fn modify(
                &self,
                here: &Here,
                place: cell::CallSite,
                order: Ordering,
                after: impl Fn($value) -> $value,
            ) -> $value {
                let modify = |before: u64| Some($bits(after($value_of(before))));
                $value_of(self.cell(here).modify(here, place, [order; 2], Writes::Always, modify).0)
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
                let place = (Location::caller(), "compare_exchange");
                let exchange = |before: u64| (before == $bits(current)).then(|| $bits(new));
                let (orders, writes) = ([success, failure], Writes::IfHolds($bits(current)));
                let (before, stored) = self.cell(&here).modify(&here, place, orders, writes, exchange);
                if stored { Ok($value_of(before)) } else { Err($value_of(before)) }
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
                let current = here().and_then(|here| {
                    let address = self.object.current_address(&here)?;
                    here.run.state().peek(here.thread, address)
                });
                match current {
                    Some(bits) => Debug::fmt(&$value_of(bits), f),
                    None => Debug::fmt(&self.inner, f),
                }
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
                self.modify(&here, (Location::caller(), stringify!($method)), order, |before| {
                    let ($before, $by) = (before, value);
                    $after
                })
            }
        )*
    };
}

macro_rules! integer {
    ($($name:ident $value:ty;)*) => {
        $(
            atomic!($name, std::sync::atomic::$name, $value, |value: $value| value as u64, |bits: u64| bits as $value);

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

atomic!(AtomicBool, std::sync::atomic::AtomicBool, bool, |value: bool| u64::from(value), |bits: u64| bits
    != 0);

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

atomic!(
    AtomicPtr<T>,
    std::sync::atomic::AtomicPtr<T>,
    *mut T,
    |value: *mut T| value.expose_provenance() as u64,
    |bits: u64| std::ptr::with_exposed_provenance_mut::<T>(bits as usize)
);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}
