//! The monitors of an execution without store buffers, and the thread on which they run.

use palisade_monitor::{Event, Monitor};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// The monitors, and where they run. In long executions they have a thread of their own, so that monitoring
/// and reading the log happen at the same time.
#[derive(Debug)]
pub(super) enum Monitored {
    Here(Box<Monitor>),
    Elsewhere {
        events: SyncSender<Vec<Event>>,
        /// Processed batches come back to be filled again.
        empty: Receiver<Vec<Event>>,
        handle: JoinHandle<Monitor>,
    },
}

/// Executions with more events than this are long.
const LONG: u64 = 1 << 17;
/// How many events are handed over at a time, and how many batches may be waiting for the other thread.
const HANDED_OVER: usize = 1 << 12;
const WAITING: usize = 16;

impl Monitored {
    pub(super) fn take_all(self, batch: &mut Vec<Event>, full: &Arc<AtomicBool>) -> Monitored {
        match self {
            Monitored::Here(mut monitor) => {
                monitor.take_all(batch);
                full.fetch_or(monitor.is_full(), Ordering::Relaxed);
                batch.clear();
                if monitor.events() < LONG {
                    return Monitored::Here(monitor);
                }
                let (events, receiver) = sync_channel::<Vec<Event>>(WAITING);
                let (back, empty) = channel();
                let full = full.clone();
                let handle = std::thread::spawn(move || {
                    for mut events in receiver {
                        monitor.take_all(&events);
                        full.fetch_or(monitor.is_full(), Ordering::Relaxed);
                        events.clear();
                        // At the end, the receiver is gone.
                        let _ = back.send(events);
                    }
                    *monitor
                });
                Monitored::Elsewhere { events, empty, handle }
            }
            Monitored::Elsewhere { events, empty, handle } => {
                let next = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(HANDED_OVER));
                // If the other thread has panicked, joining it panics too.
                let _ = events.send(std::mem::replace(batch, next));
                Monitored::Elsewhere { events, empty, handle }
            }
        }
    }

    /// How many events to collect before handing them over.
    pub(super) fn batch(&self) -> usize {
        match self {
            Monitored::Here(_) => BATCH,
            Monitored::Elsewhere { .. } => HANDED_OVER,
        }
    }

    pub(super) fn finish(self) -> Monitor {
        match self {
            Monitored::Here(monitor) => *monitor,
            Monitored::Elsewhere { events, handle, .. } => {
                drop(events);
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

/// Monitors receive this many events at a time.
pub(super) const BATCH: usize = 256;
