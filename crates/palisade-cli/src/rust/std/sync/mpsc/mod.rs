//! Channels with many senders and one receiver.

mod channel;

use channel::{Channel, Nothing, NotSent, Patience};
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

pub use real::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// The receiver.
pub struct Receiver<T> {
    channel: *const Channel<T>,
    values: PhantomData<T>,
}

unsafe impl<T: Send> Send for Receiver<T> {}

/// A sender that never waits.
pub struct Sender<T> {
    channel: *const Channel<T>,
    values: PhantomData<T>,
}

/// A sender that waits for room.
pub struct SyncSender<T> {
    channel: *const Channel<T>,
    values: PhantomData<T>,
}

#[inline]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = Channel::new(None);
    (Sender { channel, values: PhantomData }, Receiver { channel, values: PhantomData })
}

#[inline]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let channel = Channel::new(Some(bound));
    (SyncSender { channel, values: PhantomData }, Receiver { channel, values: PhantomData })
}

macro_rules! sender {
    ($name:ident) => {
        unsafe impl<T: Send> Send for $name<T> {}
        unsafe impl<T: Send> Sync for $name<T> {}

        impl<T> $name<T> {
            #[inline]
            pub fn send(&self, t: T) -> Result<(), SendError<T>> {
                match unsafe { (*self.channel).send(t, Patience::Forever) } {
                    Ok(()) => Ok(()),
                    Err(NotSent::Full(t) | NotSent::Disconnected(t)) => Err(SendError(t)),
                }
            }
        }

        impl<T> Clone for $name<T> {
            #[inline]
            fn clone(&self) -> $name<T> {
                unsafe { (*self.channel).add_sender() };
                $name { channel: self.channel, values: PhantomData }
            }
        }

        impl<T> Drop for $name<T> {
            #[inline]
            fn drop(&mut self) {
                unsafe { Channel::drop_sender(self.channel) };
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

sender!(Sender);
sender!(SyncSender);

impl<T> SyncSender<T> {
    #[inline]
    pub fn try_send(&self, t: T) -> Result<(), TrySendError<T>> {
        match unsafe { (*self.channel).send(t, Patience::None) } {
            Ok(()) => Ok(()),
            Err(NotSent::Full(t)) => Err(TrySendError::Full(t)),
            Err(NotSent::Disconnected(t)) => Err(TrySendError::Disconnected(t)),
        }
    }
}

impl<T> Receiver<T> {
    #[inline]
    pub fn recv(&self) -> Result<T, RecvError> {
        match unsafe { (*self.channel).receive(Patience::Forever) } {
            Ok(t) => Ok(t),
            Err(_) => Err(RecvError),
        }
    }

    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match unsafe { (*self.channel).receive(Patience::None) } {
            Ok(t) => Ok(t),
            Err(Nothing::Yet) => Err(TryRecvError::Empty),
            Err(Nothing::EverMore) => Err(TryRecvError::Disconnected),
        }
    }

    #[inline]
    pub fn recv_timeout(&self, _: Duration) -> Result<T, RecvTimeoutError> {
        match unsafe { (*self.channel).receive(Patience::SomeTime) } {
            Ok(t) => Ok(t),
            Err(Nothing::Yet) => Err(RecvTimeoutError::Timeout),
            Err(Nothing::EverMore) => Err(RecvTimeoutError::Disconnected),
        }
    }

    #[inline]
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    #[inline]
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        unsafe { Channel::drop_receiver(self.channel) };
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct Iter<'a, T: 'a> {
    receiver: &'a Receiver<T>,
}

#[derive(Debug)]
pub struct TryIter<'a, T: 'a> {
    receiver: &'a Receiver<T>,
}

#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    #[inline]
    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self }
    }
}
