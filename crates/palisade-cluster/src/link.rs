//! Connections between processes, as timely uses them.
//!
//! timely expects connections that never fail, and panics if one does. A [`Link`] hides the failure from it, and notes
//! it on the [`Wire`] instead: what is written afterwards is dropped, and nothing is read any more. The search looks at
//! the wire whenever it waits.
//!
//! To tell a process that ended from one that has finished, the link follows the frames of timely: a header of six
//! numbers, of which the fifth is the length of the message, then the message. A header with length 0 is the last one.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use timely::communication::allocator::zero_copy::stream::Stream;

/// The bytes of a header, and where in it the length is.
const HEADER: usize = 48;
const LENGTH: std::ops::Range<usize> = 32..40;

/// What all connections of a process share.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// Bytes written to other processes.
    pub sent: AtomicU64,
    /// Bytes read from other processes.
    pub received: AtomicU64,
    /// The first process that was lost, and why.
    lost: Mutex<Option<(usize, String)>>,
}

impl Wire {
    /// Notes that a process was lost. Only the first one counts: it may have taken others with it.
    pub fn lose(&self, process: usize, why: &str) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert_with(|| (process, why.to_owned()));
    }

    /// The process that was lost first, and why.
    pub fn lost(&self) -> Option<(usize, String)> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection to another process.
pub(crate) struct Link {
    stream: TcpStream,
    process: usize,
    wire: Arc<Wire>,
    frames: Frames,
}

impl Link {
    pub fn new(stream: TcpStream, process: usize, wire: Arc<Wire>) -> Link {
        Link { stream, process, wire, frames: Frames::default() }
    }

    /// Notes that the other process is lost, and keeps timely's thread from going on. It ends with the process.
    fn lose(&self, why: &str) -> ! {
        self.wire.lose(self.process, why);
        loop {
            std::thread::park();
        }
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            return match self.stream.read(buffer) {
                Ok(0) if self.frames.is_over => Ok(0),
                Ok(0) => self.lose("it has ended"),
                Ok(count) => {
                    self.wire.received.fetch_add(count as u64, Ordering::Relaxed);
                    self.frames.follow(&buffer[..count]);
                    Ok(count)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => self.lose(&describe(&error)),
            };
        }
    }
}

impl Write for Link {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self.stream.write(buffer) {
            Ok(count) => {
                self.wire.sent.fetch_add(count as u64, Ordering::Relaxed);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.wire.lose(self.process, &describe(&error));
                Ok(buffer.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Link {
    fn try_clone(&self) -> io::Result<Link> {
        Ok(Link::new(self.stream.try_clone()?, self.process, self.wire.clone()))
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        // If the other process has ended, there is nothing to shut down.
        let _ = self.stream.shutdown(how);
        Ok(())
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            "it has ended".to_owned()
        }
        io::ErrorKind::TimedOut => "it no longer answers".to_owned(),
        _ => format!("the connection failed: {error}"),
    }
}

/// Where a stream is among timely's frames.
#[derive(Default)]
struct Frames {
    header: Vec<u8>,
    /// How much of the current message is still to come.
    rest: u64,
    /// Whether the last header was seen.
    is_over: bool,
}

impl Frames {
    fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_over {
            if self.rest > 0 {
                let skipped = self.rest.min(bytes.len() as u64);
                self.rest -= skipped;
                bytes = &bytes[skipped as usize..];
                continue;
            }
            let taken = bytes.len().min(HEADER - self.header.len());
            self.header.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.header.len() == HEADER {
                let length = self.header[LENGTH].try_into().expect("a length has eight bytes");
                self.rest = u64::from_be_bytes(length);
                self.is_over = self.rest == 0;
                self.header.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with a length.
    fn header(length: u64) -> Vec<u8> {
        let mut header = vec![7; HEADER];
        header[LENGTH].copy_from_slice(&length.to_be_bytes());
        header
    }

    #[test]
    fn the_last_header_is_found_however_the_stream_is_cut() {
        let check = |frames: &[u64], is_over: bool| {
            let mut stream = Vec::new();
            for &length in frames {
                stream.extend(header(length));
                stream.extend(std::iter::repeat_n(0, length as usize));
            }
            for piece in 1..=stream.len() {
                let mut frames = Frames::default();
                stream.chunks(piece).for_each(|bytes| frames.follow(bytes));
                assert_eq!(frames.is_over, is_over, "pieces of {piece}");
            }
        };
        check(&[3, 100, 1], false);
        check(&[3, 100, 1, 0], true);
        check(&[0], true);
    }
}
