//! Like [`std::sync::mpsc`]. Outside a run, channels are our own too: a queue with a mutex and a condition
//! variable.

use super::meet;
use crate::object::Object;
use crate::runtime::here;
use crate::runtime::state::{Object as Shared, State, Wait, touching};
use palisade_dpor::Mode;
use std::collections::VecDeque;
use std::panic::Location;
pub use std::sync::mpsc::{RecvError, SendError, TryRecvError, TrySendError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

struct Channel<T> {
    object: Object,
    queue: Mutex<Queue<T>>,
    /// For threads outside a run.
    changed: Condvar,
}

struct Queue<T> {
    messages: VecDeque<T>,
    senders: usize,
    receiver: bool,
    capacity: usize,
}

impl<T> Channel<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One step of the channel: waits until `ready`, in a run or outside, and then performs an operation on
    /// the queue.
    #[track_caller]
    fn step<R>(
        &self,
        operation: &'static str,
        wait: Option<Side>,
        perform: impl FnOnce(&mut Queue<T>) -> R,
    ) -> R {
        let location = Location::caller();
        let ready = |queue: &Queue<T>| match wait {
            None => true,
            Some(Side::Receiver) => !queue.messages.is_empty() || queue.senders == 0,
            Some(Side::Sender) => queue.messages.len() < queue.capacity || !queue.receiver,
        };
        let mut perform = Some(perform);
        if let Some(here) = here() {
            let address = self.object.address(&here);
            let waiting = match wait {
                None => Wait::No,
                Some(Side::Receiver) => Wait::Message(address),
                Some(Side::Sender) => Wait::Room(address),
            };
            let footprint = touching(&[(address, 1, Mode::Write)], wait.is_some());
            let done = here.step((location, operation), footprint, waiting, |state, by| {
                meet(state, &here, by, address);
                let mut queue = self.queue();
                let result = perform.take().map(|perform| perform(&mut queue));
                update(state, address, &queue);
                result
            });
            if let Some(result) = done.flatten() {
                return result;
            }
        }
        let perform = perform.take().expect("the operation was not performed yet");
        let mut queue = self.queue();
        // A thread that is being unwound does not wait.
        while !ready(&queue) && !std::thread::panicking() {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let result = perform(&mut queue);
        drop(queue);
        self.changed.notify_all();
        result
    }
}

#[derive(Clone, Copy)]
enum Side {
    Receiver,
    Sender,
}

/// Reports the state of a channel to the scheduler.
fn update<T>(state: &mut State, address: u64, queue: &Queue<T>) {
    let Queue { ref messages, senders, receiver, capacity } = *queue;
    state.objects.insert(address, Shared::Channel { messages: messages.len(), senders, receiver, capacity });
}

fn new<T>(capacity: usize) -> Arc<Channel<T>> {
    let channel = Channel {
        object: Object::new(),
        queue: Mutex::new(Queue { messages: VecDeque::new(), senders: 1, receiver: true, capacity }),
        changed: Condvar::new(),
    };
    if let Some(here) = here().filter(|here| here.run.state().end.is_none()) {
        let address = channel.object.address(&here);
        update(&mut here.run.state(), address, &channel.queue());
    }
    Arc::new(channel)
}

/// A channel without a bound.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = new(usize::MAX);
    (Sender(End { channel: channel.clone() }), Receiver { channel })
}

/// A channel with room for this many messages. Rendezvous channels, with a bound of 0, are not supported.
///
/// # Panics
/// If the bound is 0.
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    assert!(bound > 0, "rendezvous channels (with a bound of 0) are not supported");
    let channel = new(bound);
    (SyncSender(End { channel: channel.clone() }), Receiver { channel })
}

/// The sending end.
struct End<T> {
    channel: Arc<Channel<T>>,
}

impl<T> Clone for End<T> {
    #[track_caller]
    fn clone(&self) -> End<T> {
        self.channel.step("clone", None, |queue| queue.senders += 1);
        End { channel: self.channel.clone() }
    }
}

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        match here() {
            Some(here) if here.run.state().end.is_some() => {
                self.channel.queue().senders -= 1;
                self.channel.changed.notify_all();
            }
            _ => self.channel.step("drop", None, |queue| queue.senders -= 1),
        }
    }
}

/// Like [`std::sync::mpsc::Sender`].
pub struct Sender<T>(End<T>);

/// Like [`std::sync::mpsc::SyncSender`].
pub struct SyncSender<T>(End<T>);

/// Like [`std::sync::mpsc::Receiver`].
pub struct Receiver<T> {
    channel: Arc<Channel<T>>,
}

impl<T> Clone for Sender<T> {
    #[track_caller]
    fn clone(&self) -> Sender<T> {
        Sender(self.0.clone())
    }
}

impl<T> Clone for SyncSender<T> {
    #[track_caller]
    fn clone(&self) -> SyncSender<T> {
        SyncSender(self.0.clone())
    }
}

impl<T> Sender<T> {
    /// Sends a message.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.channel.step("send", None, |queue| put(queue, message))
    }
}

fn put<T>(queue: &mut Queue<T>, message: T) -> Result<(), SendError<T>> {
    if !queue.receiver {
        return Err(SendError(message));
    }
    queue.messages.push_back(message);
    Ok(())
}

impl<T> SyncSender<T> {
    /// Waits for room and sends a message.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.channel.step("send", Some(Side::Sender), |queue| put(queue, message))
    }

    /// Sends a message if there is room.
    #[track_caller]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.0.channel.step("try_send", None, |queue| {
            if queue.receiver && queue.messages.len() >= queue.capacity {
                return Err(TrySendError::Full(message));
            }
            put(queue, message).map_err(|SendError(message)| TrySendError::Disconnected(message))
        })
    }
}

impl<T> Receiver<T> {
    /// Waits for a message.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.channel.step("recv", Some(Side::Receiver), |queue| queue.messages.pop_front()).ok_or(RecvError)
    }

    /// A message, if there is one.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.channel.step("try_recv", None, |queue| {
            queue.messages.pop_front().ok_or(match queue.senders {
                0 => TryRecvError::Disconnected,
                _ => TryRecvError::Empty,
            })
        })
    }

    /// Messages until all senders have been dropped.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.recv().ok())
    }

    /// The messages that are available now.
    pub fn try_iter(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let close = |queue: &mut Queue<T>| {
            queue.receiver = false;
            std::mem::take(&mut queue.messages)
        };
        let left = match here() {
            Some(here) if here.run.state().end.is_some() => close(&mut self.channel.queue()),
            _ => self.channel.step("drop", None, close),
        };
        drop(left);
    }
}

impl<T> std::fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
