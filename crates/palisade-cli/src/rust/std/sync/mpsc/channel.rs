//! What the two ends of a channel share: a list of values, under a mutex.
//!
//! Whoever gives up the last end frees it.

use crate::posix::{self, ConditionObject, MutexObject, Time};
use allocating::alloc::{alloc_zeroed, handle_alloc_error, Layout};
use allocating::boxed::Box;
use core::cell::UnsafeCell;
use core::ptr;

/// A value on its way.
struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

/// What is protected by the mutex.
struct State<T> {
    first: *mut Node<T>,
    last: *mut Node<T>,
    count: usize,
    senders: usize,
    receives: bool,
}

pub(super) struct Channel<T> {
    mutex: MutexObject,
    /// Something was sent, or there are no senders any more.
    sent: ConditionObject,
    /// Something was received, or there is no receiver any more.
    received: ConditionObject,
    /// The first word of `None` is zero, and no other is read then.
    bound: Option<usize>,
    state: UnsafeCell<State<T>>,
}

/// How long to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    None,
    SomeTime,
    Forever,
}

/// Why nothing was received.
pub(super) enum Nothing {
    Yet,
    EverMore,
}

/// Why something was not sent. The value comes back.
pub(super) enum NotSent<T> {
    Full(T),
    Disconnected(T),
}

impl<T> Channel<T> {
    /// A channel with one sender and a receiver. All that is zero at first need not be written.
    #[inline]
    pub(super) fn new(bound: Option<usize>) -> *const Channel<T> {
        let layout = Layout::new::<Channel<T>>();
        unsafe {
            let channel = alloc_zeroed(layout).cast::<Channel<T>>();
            if channel.is_null() {
                handle_alloc_error(layout);
            }
            if bound.is_some() {
                (*channel).bound = bound;
            }
            let state = (*channel).state.get_mut();
            state.senders = 1;
            state.receives = true;
            channel
        }
    }

    #[inline]
    unsafe fn lock(&self) -> &mut State<T> {
        posix::pthread_mutex_lock(self.mutex.get());
        &mut *self.state.get()
    }

    #[inline]
    unsafe fn unlock(&self) {
        posix::pthread_mutex_unlock(self.mutex.get());
    }

    #[inline]
    unsafe fn wait(&self, condition: &ConditionObject) {
        posix::pthread_cond_wait(condition.get(), self.mutex.get());
    }

    /// There must be a sender, and not necessarily a receiver.
    #[inline]
    pub(super) unsafe fn send(&self, value: T, patience: Patience) -> Result<(), NotSent<T>> {
        let state = self.lock();
        // With a bound of 0 a value is handed over: the sender waits until it is gone.
        let room = match self.bound {
            Some(0) => 1,
            Some(bound) => bound,
            None => usize::MAX,
        };
        while state.receives && state.count >= room && patience == Patience::Forever {
            self.wait(&self.received);
        }
        if !state.receives {
            self.unlock();
            return Err(NotSent::Disconnected(value));
        }
        if state.count >= room || (self.bound == Some(0) && patience != Patience::Forever) {
            self.unlock();
            return Err(NotSent::Full(value));
        }
        let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
        if state.last.is_null() {
            state.first = node;
        } else {
            (*state.last).next = node;
        }
        state.last = node;
        state.count += 1;
        posix::pthread_cond_signal(self.sent.get());
        if self.bound == Some(0) {
            while state.first == node && state.receives {
                self.wait(&self.received);
            }
            if state.first == node {
                let value = take(state);
                self.unlock();
                return match value {
                    Some(value) => Err(NotSent::Disconnected(value)),
                    None => Ok(()),
                };
            }
        }
        self.unlock();
        Ok(())
    }

    #[inline]
    pub(super) unsafe fn receive(&self, patience: Patience) -> Result<T, Nothing> {
        let state = self.lock();
        while state.first.is_null() && state.senders > 0 && patience != Patience::None {
            if patience == Patience::Forever {
                self.wait(&self.sent);
                continue;
            }
            let until = Time { seconds: 0, nanoseconds: 0 };
            if posix::pthread_cond_timedwait(self.sent.get(), self.mutex.get(), &until) != 0 {
                break;
            }
        }
        let found = take(state);
        let senders = state.senders;
        if found.is_some() && self.bound.is_some() {
            posix::pthread_cond_broadcast(self.received.get());
        }
        self.unlock();
        match found {
            Some(value) => Ok(value),
            None if senders > 0 => Err(Nothing::Yet),
            None => Err(Nothing::EverMore),
        }
    }

    #[inline]
    pub(super) unsafe fn add_sender(&self) {
        self.lock().senders += 1;
        self.unlock();
    }

    /// Gives up the right to send.
    #[inline]
    pub(super) unsafe fn drop_sender(channel: *const Channel<T>) {
        let state = (*channel).lock();
        state.senders -= 1;
        let (last, receives) = (state.senders == 0, state.receives);
        if last {
            posix::pthread_cond_signal((*channel).sent.get());
        }
        (*channel).unlock();
        if last && !receives {
            drop(Box::from_raw(channel.cast_mut()));
        }
    }

    /// Gives up the right to receive. What is on its way is dropped, except what a sender takes back.
    #[inline]
    pub(super) unsafe fn drop_receiver(channel: *const Channel<T>) {
        let state = (*channel).lock();
        state.receives = false;
        let last = state.senders == 0;
        if (*channel).bound.is_some() {
            posix::pthread_cond_broadcast((*channel).received.get());
        }
        if (*channel).bound != Some(0) {
            while let Some(value) = take(state) {
                drop(value);
            }
        }
        (*channel).unlock();
        if last {
            drop(Box::from_raw(channel.cast_mut()));
        }
    }
}

/// The first value, if there is one.
#[inline]
unsafe fn take<T>(state: &mut State<T>) -> Option<T> {
    if state.first.is_null() {
        return None;
    }
    let node = *Box::from_raw(state.first);
    state.first = node.next;
    if state.first.is_null() {
        state.last = ptr::null_mut();
    }
    state.count -= 1;
    Some(node.value)
}
