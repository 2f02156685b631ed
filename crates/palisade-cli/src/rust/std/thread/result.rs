//! What a thread returns, as a pointer: the value itself if it fits, or a box with it.

use allocating::boxed::Box;
use core::ffi::c_void;
use core::mem::{align_of, size_of};
use core::ptr;

const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<*mut c_void>() && align_of::<T>() <= align_of::<*mut c_void>()
}

#[inline]
pub(super) fn pack<T>(value: T) -> *mut c_void {
    if !fits::<T>() {
        return Box::into_raw(Box::new(value)).cast();
    }
    let mut word: *mut c_void = ptr::null_mut();
    unsafe { ptr::write((&mut word as *mut *mut c_void).cast::<T>(), value) };
    word
}

/// The value that was packed. It can be taken out once.
#[inline]
pub(super) unsafe fn unpack<T>(word: *mut c_void) -> T {
    if fits::<T>() {
        ptr::read((&word as *const *mut c_void).cast::<T>())
    } else {
        *Box::from_raw(word.cast::<T>())
    }
}
