//! Input that may keep us waiting: pipes, terminals, standard input.
//!
//! Opening or reading such an input blocks until something is written to it, and neither Ctrl-C nor a
//! deadline ends that. So both happen on a separate thread, and we wait for its results only as long as we
//! may. The thread is abandoned when the process ends.

use crate::interrupt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The size of a chunk.
const CHUNK: usize = 64 << 10;
/// How many chunks are read in advance.
const AHEAD: usize = 4;
/// How often we check whether we should stop.
const LOOK: Duration = Duration::from_millis(50);

/// The timeout that the user set.
static TIMEOUT: OnceLock<Duration> = OnceLock::new();

/// Sets how long input may take, counted from when it is opened. Without this call there is no limit.
pub fn give_up_after(timeout: Option<Duration>) {
    if let Some(timeout) = timeout {
        TIMEOUT.get_or_init(|| timeout);
    }
}

/// Input that ends when a stop is requested or the time is up.
pub struct Waiting {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    used: usize,
    deadline: Option<Instant>,
    gave_up: Arc<AtomicBool>,
}

impl Waiting {
    /// Opens the input and starts to read it.
    pub fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Waiting {
        let (sender, chunks) = sync_channel(AHEAD);
        // The thread ends when the receiver is gone.
        std::thread::spawn(move || {
            let mut input = match open() {
                Ok(input) => input,
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            };
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = match input.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(read) => Ok(read),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_last = read.is_err();
                let read = read.map(|read| {
                    chunk.truncate(read);
                    chunk
                });
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        let deadline = TIMEOUT.get().and_then(|timeout| Instant::now().checked_add(*timeout));
        Waiting { chunks, chunk: Vec::new(), used: 0, deadline, gave_up: Arc::default() }
    }

    /// A flag that is set when the input ends because of a stop request or a timeout. Setting it ends the
    /// input.
    pub fn gave_up(&self) -> Arc<AtomicBool> {
        self.gave_up.clone()
    }

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        loop {
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let enough = self.gave_up.load(Ordering::Relaxed);
            if enough || interrupt::is_stopped() || left == Some(Duration::ZERO) {
                self.gave_up.store(true, Ordering::Relaxed);
                return None;
            }
            match self.chunks.recv_timeout(left.unwrap_or(LOOK).min(LOOK)) {
                Ok(chunk) => return Some(chunk),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.chunk.len() {
            let Some(chunk) = self.next() else { return Ok(0) };
            (self.chunk, self.used) = (chunk?, 0);
        }
        let part = &self.chunk[self.used..];
        let length = part.len().min(buffer.len());
        buffer[..length].copy_from_slice(&part[..length]);
        self.used += length;
        Ok(length)
    }
}
