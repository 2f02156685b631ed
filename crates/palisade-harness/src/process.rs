//! The program as a process: it is started once and forks for executions, or for many executions in a row
//! (`runtime/resident.c`).
//!
//! Its standard input receives commands, its standard output carries the log, and its standard error carries
//! everything that the program prints. So no file descriptor has to be passed on, and a program without the
//! runtime is soon recognised.

use crate::allowance::{Allowance, LimitReached};
use crate::cache::TEMPORARY;
use crate::log::Record;
use crate::schedule::Command;
use crate::stream::{End, Hello, Item, LogReader, Reason};
use crate::words::decoded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A marker that every program with the runtime contains.
const MARKER: &[u8] = b"palisade-runtime-interface-2";

/// An environment variable of ours that programs must not see.
pub const CARGO_NOTE: &str = "PALISADE_CARGO_NOTE";

/// Another one: options that `palisade cargo` passes on to `palisade run`.
pub const CARGO_OPTIONS: &str = "PALISADE_CARGO_OPTIONS";

/// Another one: what a process of a group gets when it is started.
pub const GROUP_INVITATION: &str = "PALISADE_GROUP";

/// What makes Rust programs print backtraces. Precompiled code makes them, in millions of steps, and protects its data by
/// locks that are not seen.
const BACKTRACES: [&str; 2] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"];

/// Makes the dynamic linker resolve all functions at the start, so that no thread does it later. The runtime
/// removes it from the program's environment.
const BIND_NOW: &str = "LD_BIND_NOW";

/// Of the program's output in an execution, this many bytes of the beginning and of the end are kept.
pub const KEPT_OUTPUT: usize = 1 << 14;

/// How often the guard checks whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// How long the server may take to end the processes it has started, and how often we check.
const GRACE: Duration = Duration::from_millis(300);
const GLANCE: Duration = Duration::from_millis(1);

/// How long to wait for the end of what an execution has printed. The server has written it before it
/// reports the end of the execution, so this is not reached.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// Requests up to this length are written to the pipe whole or not at all (PIPE_BUF).
const WRITTEN_AT_ONCE: usize = 4096;

/// How long a program may take to reach its start.
const START: Duration = Duration::from_secs(20);

/// How threads are switched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduling {
    /// Coroutines, if the machine supports them. Executions that can be undone share a process.
    #[default]
    Best,
    /// Kernel threads that pass a token.
    Token,
    /// Coroutines, and every execution in a process of its own.
    Forked,
    /// Coroutines, and from the first execution on, executions that can be undone share a process.
    Restored,
}

impl Scheduling {
    /// As the runtime knows it. The last two have the same length: the environment of a program decides where its
    /// arguments are in memory.
    fn name(self) -> Option<&'static str> {
        match self {
            Scheduling::Best => None,
            Scheduling::Token => Some("token"),
            Scheduling::Forked => Some("forked"),
            Scheduling::Restored => Some("reused"),
        }
    }
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file and its arguments.
    pub command: Vec<String>,
    /// How threads are switched.
    pub scheduling: Scheduling,
}

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nothing to start.
    #[error("there is no program to run")]
    Nothing,
    /// It cannot be started.
    #[error("cannot be started: {0}")]
    Io(#[from] io::Error),
    /// It does not have the runtime.
    #[error("is not instrumented: it was not linked by `palisade cc` or `palisade c++`")]
    NotInstrumented,
    /// It has the runtime but did not reach its start.
    #[error("did not reach its start{0}")]
    NoHello(String),
    /// It was stopped by the user.
    #[error("was stopped")]
    Stopped,
}

/// Why an execution was not finished.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// A stop was requested, or the time is up.
    #[error("stopped")]
    Stopped,
    /// No memory is left.
    #[error("out of memory")]
    Memory,
    /// The server died, or sent something that makes no sense.
    #[error("the program's process was lost: {0}")]
    Broken(io::Error),
}

/// A program that waits for commands.
#[derive(Debug)]
pub struct Server {
    guard: Guard,
    commands: ChildStdin,
    log: LogReader<Pipes>,
    /// What the runtime reported about itself.
    pub hello: Hello,
    /// How many executions have shared a process with others.
    pub(crate) restored: u64,
}

/// What the program printed in one execution.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Output {
    /// The beginning.
    pub head: Vec<u8>,
    /// The end, if the beginning does not contain everything.
    pub tail: Vec<u8>,
    /// The total number of bytes.
    pub bytes: u64,
}

impl Output {
    /// As text, with a mark where something is left out.
    pub fn text(&self) -> String {
        let left_out = self.bytes.saturating_sub((self.head.len() + self.tail.len()) as u64);
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if left_out > 0 {
            text.push_str(&format!("\n[... {left_out} bytes left out ...]\n"));
        }
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }

    fn of(bytes: &[u8]) -> Output {
        let mut output = Output::default();
        output.push(bytes);
        output
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = KEPT_OUTPUT - self.head.len();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > KEPT_OUTPUT {
            self.tail.drain(..self.tail.len() - KEPT_OUTPUT);
        }
    }
}

impl Server {
    /// Starts a program. It is ended as soon as its allowance is used up.
    pub fn start(program: &Program, allowance: &Allowance) -> Result<Server, StartError> {
        let words: Vec<OsString> = program.command.iter().map(|word| decoded(word)).collect();
        let [file, arguments @ ..] = words.as_slice() else { return Err(StartError::Nothing) };
        if is_instrumented(Path::new(file)) == Some(false) {
            return Err(StartError::NotInstrumented);
        }
        // Something that no program prints.
        // Its length is always the same: the environment of a program decides where its arguments are in memory.
        let here: *const Vec<String> = &program.command;
        let mark = format!("\u{1}palisade-{:08x}-{:016x}\u{1}\n", std::process::id(), here.addr());
        let mut command = std::process::Command::new(file);
        command
            .args(arguments)
            .env_remove(CARGO_NOTE)
            .env_remove(CARGO_OPTIONS)
            .env_remove(GROUP_INVITATION)
            .env_remove(TEMPORARY)
            .env("PALISADE_RUN", "1")
            .env("PALISADE_END_OF_OUTPUT", &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C must reach only us; we end the program ourselves.
            .process_group(0);
        if std::env::var_os(BIND_NOW).is_none() {
            command.env(BIND_NOW, "palisade");
        }
        for backtrace in BACKTRACES.iter().filter(|name| std::env::var_os(name).is_some()) {
            command.env(backtrace, "0");
        }
        if let Some(name) = program.scheduling.name() {
            command.env("PALISADE_SCHEDULING", name);
        }
        let mut child = command.spawn()?;
        let commands = child.stdin.take().expect("standard input is a pipe");
        let log = child.stdout.take().expect("standard output is a pipe");
        let printed = child.stderr.take().expect("standard error is a pipe");
        // If it can be read only by waiting, what the program prints is read as well.
        fcntl_setfl(&log, OFlags::NONBLOCK).map_err(io::Error::from)?;
        fcntl_setfl(&commands, OFlags::NONBLOCK).map_err(io::Error::from)?;
        let guard = Guard::new(child, allowance.clone());
        let mut server = Server {
            guard,
            commands,
            log: LogReader::new(Pipes { log, printed: Printed::new(printed, mark.into_bytes()) }),
            hello: Hello::default(),
            restored: 0,
        };
        server.guard.limit(Some(Instant::now() + START));
        let first = server.log.next_item();
        server.guard.limit(None);
        match first {
            Ok(Item::Hello(hello)) => server.hello = hello,
            Ok(_) => return Err(StartError::NotInstrumented),
            Err(_) if server.guard.was_stopped() || server.guard.was_hit() => {
                return Err(StartError::Stopped);
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(StartError::NotInstrumented);
            }
            Err(_) => {
                let output = server.last_output();
                let text = output.text();
                let printed = text.trim();
                if is_instrumented(Path::new(file)) == Some(true) {
                    let printed = if printed.is_empty() { String::new() } else { format!(": {printed}") };
                    return Err(StartError::NoHello(printed));
                }
                return Err(StartError::NotInstrumented);
            }
        }
        Ok(server)
    }

    /// Requests an execution. Executions that were requested before and not read must not be many: the program may
    /// wait for their logs to be read. See [`try_ask`](Server::try_ask).
    pub fn ask(&mut self, command: &Command) -> Result<(), Lost> {
        self.send(&command.encode()).map_err(|error| self.lost(error))
    }

    /// Requests an execution ahead of time, if that is possible without waiting. Executions arrive in order. Returns
    /// whether it was requested.
    pub(crate) fn try_ask(&mut self, command: &Command) -> bool {
        let bytes = command.encode();
        if bytes.len() > WRITTEN_AT_ONCE {
            return false;
        }
        match self.commands.write(&bytes) {
            // Such a request is written whole or not at all.
            Ok(_) => true,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                false
            }
            // Reading the execution fails as well, and says why.
            Err(_) => true,
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.commands.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match poll(&mut [PollFd::new(&self.commands, PollFlags::OUT)], None) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the log of the next requested execution. `may_continue` is called from time to time and returns
    /// whether to continue. When the time is up, another thread ends the program, and what it has logged
    /// until then is read.
    pub fn read(
        &mut self,
        take: impl FnMut(&Record),
        message: impl FnMut(String),
        mut may_continue: impl FnMut() -> Result<(), LimitReached>,
    ) -> Result<(End, Output), Lost> {
        let mut over = None;
        let end = self.log.read_execution(take, message, || {
            over = may_continue().err().filter(|&over| over == LimitReached::Memory);
            over.is_none()
        });
        let mut end = end.map_err(|error| if over.is_some() { Lost::Memory } else { self.lost(error) })?;
        let output = match end.printed.take() {
            Some(printed) => {
                self.restored += 1;
                Output::of(&printed)
            }
            None if end.reason == Reason::Stopped => Output::default(),
            None => self.last_output(),
        };
        Ok((end, output))
    }

    /// What the program printed in the execution that was read last.
    fn last_output(&mut self) -> Output {
        self.log.input().printed.next_output(Instant::now() + LAST_OUTPUT)
    }

    /// A handle that can end the program from another thread.
    pub(crate) fn killer(&self) -> Killer {
        Killer(self.guard.shared.clone())
    }

    fn lost(&self, error: io::Error) -> Lost {
        if self.guard.was_stopped() { Lost::Stopped } else { Lost::Broken(error) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.guard.kill();
    }
}

/// Whether a file contains the runtime. `None` if it cannot be found here or is not itself a program, for
/// instance a script.
pub fn is_instrumented(path: &Path) -> Option<bool> {
    let mut file = File::open(path).ok()?;
    let mut buffer = vec![0; 1 << 16];
    let mut kept = 0;
    let mut first = true;
    loop {
        let got = file.read(&mut buffer[kept..]).ok()?;
        if got == 0 {
            return (!first).then_some(false);
        }
        let bytes = &buffer[..kept + got];
        if first && !bytes.starts_with(b"\x7fELF") {
            return None;
        }
        first = false;
        if bytes.windows(MARKER.len()).any(|window| window == MARKER) {
            return Some(true);
        }
        let rest = bytes.len().min(MARKER.len() - 1);
        let from = bytes.len() - rest;
        buffer.copy_within(from..from + rest, 0);
        kept = rest;
    }
}

/// How often to look for more of the log before waiting for it. A short execution takes less time than falling asleep
/// and being woken up. runtime/server.c waits for commands in the same way.
const TRIES: u32 = 100;

/// The log, and beside it what the program prints. Both are read by one thread: waking up a second one for every
/// execution would take longer than short executions do.
#[derive(Debug)]
struct Pipes {
    log: ChildStdout,
    printed: Printed,
}

impl Read for Pipes {
    /// Reads from the log. While there is nothing in it, what the program prints is read, so that the program
    /// does not have to wait.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut tries = 0;
        loop {
            match self.log.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            tries += 1;
            if tries < TRIES {
                std::thread::yield_now();
                continue;
            }
            let mut pipes = vec![PollFd::new(&self.log, PollFlags::IN)];
            if self.printed.is_open {
                pipes.push(PollFd::new(&self.printed.pipe, PollFlags::IN));
            }
            match poll(&mut pipes, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let has_printed = pipes.get(1).is_some_and(|pipe| !pipe.revents().is_empty());
            if has_printed {
                self.printed.read_some();
            }
        }
    }
}

/// What the program prints, one execution after another.
#[derive(Debug)]
struct Printed {
    pipe: ChildStderr,
    is_open: bool,
    /// What the server prints after each execution.
    mark: Vec<u8>,
    /// The outputs that are complete, and the current one.
    done: VecDeque<Output>,
    output: Output,
    /// Bytes that may be the beginning of the mark.
    pending: Vec<u8>,
}

impl Printed {
    fn new(pipe: ChildStderr, mark: Vec<u8>) -> Printed {
        let (done, output, pending) = Default::default();
        Printed { pipe, is_open: true, mark, done, output, pending }
    }

    /// Reads what is there. Blocks if there is nothing.
    fn read_some(&mut self) {
        let mut buffer = [0; 1 << 16];
        let got = match self.pipe.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(0) | Err(_) => {
                self.is_open = false;
                let rest = std::mem::take(&mut self.pending);
                self.output.push(&rest);
                return;
            }
            Ok(got) => got,
        };
        self.pending.extend_from_slice(&buffer[..got]);
        while let Some(at) = find(&self.pending, &self.mark) {
            self.output.push(&self.pending[..at]);
            self.pending.drain(..at + self.mark.len());
            self.done.push_back(std::mem::take(&mut self.output));
        }
        let sure = self.pending.len().saturating_sub(self.mark.len() - 1);
        self.output.push(&self.pending[..sure]);
        self.pending.drain(..sure);
    }

    /// The next output, or what there is of it when the time is up or the program has closed its standard
    /// error.
    fn next_output(&mut self, limit: Instant) -> Output {
        loop {
            if let Some(output) = self.done.pop_front() {
                return output;
            }
            let left = limit.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else { return Output::default() };
            if !self.is_open {
                return std::mem::take(&mut self.output);
            }
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&left)) {
                Ok(0) => return std::mem::take(&mut self.output),
                Ok(_) => self.read_some(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => self.is_open = false,
            }
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == first) {
        if bytes[from + at..].starts_with(what) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// Ends the process when a stop is requested or the time is up, so that reading from it does not
/// block forever.
#[derive(Debug)]
struct Guard {
    shared: Arc<GuardState>,
    watcher: Option<JoinHandle<()>>,
}

/// Ends a program, even while another thread reads from it.
#[derive(Clone, Debug)]
pub(crate) struct Killer(Arc<GuardState>);

impl Killer {
    pub(crate) fn kill(&self) {
        self.0.kill();
    }
}

#[derive(Debug)]
struct GuardState {
    child: Mutex<Child>,
    allowance: Allowance,
    limit: Mutex<Option<Instant>>,
    stopped: AtomicBool,
    over: AtomicBool,
}

impl Guard {
    fn new(child: Child, allowance: Allowance) -> Guard {
        let shared = Arc::new(GuardState {
            child: Mutex::new(child),
            allowance,
            limit: Mutex::new(None),
            stopped: AtomicBool::new(false),
            over: AtomicBool::new(false),
        });
        let state = shared.clone();
        let watcher = std::thread::spawn(move || state.watch());
        Guard { shared, watcher: Some(watcher) }
    }

    /// Sets a deadline for what comes next.
    fn limit(&self, limit: Option<Instant>) {
        *self.shared.limit.lock().unwrap_or_else(PoisonError::into_inner) = limit;
    }

    fn was_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Relaxed)
    }

    /// Whether a request to end has ended the program: one that is sent to our process group reaches the program, too,
    /// before it has a group of its own.
    fn was_hit(&self) -> bool {
        let requests = [Signal::HUP, Signal::INT, Signal::TERM].map(Signal::as_raw);
        let end = Instant::now() + GRACE;
        while Instant::now() < end {
            let mut child = self.shared.child.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(Some(status)) = child.try_wait() {
                return status.signal().is_some_and(|signal| requests.contains(&signal));
            }
            drop(child);
            std::thread::sleep(GLANCE);
        }
        false
    }

    fn kill(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.shared.kill();
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
    }
}

impl GuardState {
    fn watch(&self) {
        while !self.over.load(Ordering::Relaxed) {
            let now = Instant::now();
            let late = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
            if self.allowance.check_time().is_err() {
                self.stopped.store(true, Ordering::Relaxed);
                self.kill();
                return;
            }
            if late(*self.limit.lock().unwrap_or_else(PoisonError::into_inner)) {
                self.kill();
                return;
            }
            let left = self.allowance.deadline.map(|deadline| deadline.saturating_duration_since(now));
            std::thread::park_timeout(left.unwrap_or(TICK).min(TICK));
        }
    }

    /// Ends the program and all processes that it has started. The server knows these processes and ends
    /// them on request. If it does not respond, its process group is killed.
    fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(server) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already, here and below.
            let _ = kill_process(server, Signal::TERM);
            let end = Instant::now() + GRACE;
            while Instant::now() < end {
                if matches!(child.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(GLANCE);
            }
            let _ = kill_process_group(server, Signal::KILL);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}
