//! Running a compiler. What it prints goes through pipes.
//!
//! It is ended when the time is up or the user asks to stop.

use palisade::base::limits::checkpoint;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How frequently we check whether to stop.
const LOOK: Duration = Duration::from_millis(20);
/// More output than this is not a program that we could read.
const MAX_OUTPUT: u64 = 256 << 20;

/// Why a compiler did not get to its end. To be read after its name.
#[derive(Debug)]
pub enum Failure {
    /// It was not started.
    NotStarted(io::Error),
    /// Its output was lost.
    Stopped(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotStarted(error) => write!(f, "cannot be started: {error}"),
            Failure::Stopped(error) => write!(f, "stopped unexpectedly: {error}"),
        }
    }
}

/// Runs a compiler with a text as its standard input, if there is one.
pub fn run(command: &mut Command, text: Option<&str>) -> Result<Ended, Failure> {
    let child = command
        .stdin(if text.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C must reach only us; we end the compiler ourselves.
        .process_group(0)
        .spawn();
    Running(child.map_err(Failure::NotStarted)?).finish(text).map_err(Failure::Stopped)
}

/// A compiler at work. It is ended when this is dropped.
struct Running(Child);

/// What a compiler did.
#[derive(Debug)]
pub struct Ended {
    /// Whether it reports success.
    pub success: bool,
    /// Its standard output.
    pub printed: Vec<u8>,
    /// Its standard error.
    pub complained: Vec<u8>,
}

impl Running {
    /// Passes the text on, and waits for the end.
    fn finish(&mut self, text: Option<&str>) -> io::Result<Ended> {
        let (sender, receiver) = channel();
        let complaints = sender.clone();
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        std::thread::spawn(move || sender.send((true, read(stdout))));
        std::thread::spawn(move || complaints.send((false, read(stderr))));
        if let (Some(mut stdin), Some(text)) = (self.0.stdin.take(), text) {
            let text = text.to_owned();
            // A compiler that stops reading has a reason, and prints it.
            std::thread::spawn(move || _ = stdin.write_all(text.as_bytes()));
        }
        let (mut printed, mut complained) = (Vec::new(), Vec::new());
        let mut open = 2;
        while open > 0 {
            checkpoint();
            match receiver.recv_timeout(LOOK) {
                Ok((is_program, bytes)) => {
                    *(if is_program { &mut printed } else { &mut complained }) = bytes?;
                    open -= 1;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(Ended { success: self.0.wait()?.success(), printed, complained })
    }
}

/// Everything that comes out of a pipe.
fn read(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

impl Drop for Running {
    fn drop(&mut self) {
        // If it has ended already, there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
