//! Questions that are answered by a separate process, which can be ended whatever it does.
//!
//! *Problem.* An engine checks its limits now and then. A thread that does not check them cannot be ended,
//! and would keep its slot. A process can be killed.
//!
//! *How.* The server starts a worker per question.
//! - The first line on the worker's standard input is the question with its limits. The line `stop` makes it
//!   answer with what it has so far. When its input ends, the worker ends.
//! - It prints the events of the question, one JSON object per line.
//! - The server watches time and memory, kills a worker that exceeds them, and answers in its place.
//!
//! *Guarantee.* When [`Worker`] is dropped, the process no longer exists.

use crate::answer::{ReadC, gave_up};
use crate::question::Question;
use crate::run::{News, PROGRESS_INTERVAL, answer_on_a_thread};
use palisade::Limits;
use palisade::engine::Process;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The first message to a worker.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    /// In seconds.
    timeout: f64,
    /// In bytes.
    memory: u64,
    jobs: usize,
    question: Question,
}

/// The line that asks for an answer at once.
const STOP: &str = "stop";
/// The minimum time after its limit at which a worker is killed: it may be about to answer.
const GRACE: Duration = Duration::from_millis(300);
/// How long a worker may take to answer after `stop`.
const STOPPING: Duration = Duration::from_secs(1);
/// The minimum memory that a worker may use beyond its limit: for the program itself, stacks, and freed
/// memory that was not returned.
const SLACK: u64 = 64 << 20;

/// A process that answers one question.
pub(crate) struct Worker {
    child: Child,
    input: ChildStdin,
    pub(crate) answers: Receiver<Value>,
    doing: Arc<Mutex<String>>,
    start: Instant,
    timeout: Duration,
    memory: u64,
    stop: Arc<AtomicBool>,
    /// When it was asked to stop.
    stopping: Option<Instant>,
}

/// Why a worker was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overrun {
    Time(Duration),
    Memory(u64),
    Stopped,
}

impl Worker {
    /// Starts a process with a question.
    pub(crate) fn start(
        command: &[OsString],
        question: &Question,
        (timeout, memory, jobs): (Duration, u64, usize),
        stop: Arc<AtomicBool>,
    ) -> io::Result<Worker> {
        let [program, arguments @ ..] = command else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are pipes")
        };
        let task = Task { timeout: timeout.as_secs_f64(), memory, jobs, question: question.clone() };
        let line = serde_json::to_string(&task)? + "\n";
        // If it has ended already, that shows when it does not answer.
        let _ = input.write_all(line.as_bytes());
        let (sender, answers) = channel();
        let doing = Arc::new(Mutex::new(String::new()));
        let reported = doing.clone();
        let listen = move || {
            for line in BufReader::new(output).lines() {
                let Some(event) = line.ok().and_then(|line| serde_json::from_str::<Value>(&line).ok()) else {
                    return;
                };
                if event["event"] == "progress" {
                    let text = event["doing"].as_str().unwrap_or("").to_owned();
                    *reported.lock().unwrap_or_else(PoisonError::into_inner) = text;
                } else if sender.send(event).is_err() {
                    return;
                }
            }
        };
        let worker = Worker {
            child,
            input,
            answers,
            doing,
            start: Instant::now(),
            timeout,
            memory,
            stop,
            stopping: None,
        };
        std::thread::Builder::new().name("worker".to_owned()).spawn(listen)?;
        Ok(worker)
    }

    /// What it is doing, as it reports it.
    pub(crate) fn doing(&self) -> String {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it has exceeded its limits, or was asked to stop and did not. Passes on a request to stop.
    pub(crate) fn overrun(&mut self) -> Option<Overrun> {
        if self.start.elapsed() > self.timeout.saturating_add((self.timeout / 10).max(GRACE)) {
            return Some(Overrun::Time(self.timeout));
        }
        if self.stop.load(Ordering::Relaxed) {
            if self.stopping.is_none() {
                self.stopping = Some(Instant::now());
                let _ = writeln!(self.input, "{STOP}");
            }
            if self.stopping.is_some_and(|since| since.elapsed() > STOPPING) {
                return Some(Overrun::Stopped);
            }
        }
        let most = self.memory.saturating_add((self.memory / 4).max(SLACK));
        (resident(self.child.id()) > most).then_some(Overrun::Memory(self.memory))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Overrun {
    /// The answer to a question that the worker did not answer.
    pub(crate) fn answer(self, question: &Question) -> Value {
        let why = match self {
            Overrun::Time(limit) => format!("out of time ({} s)", limit.as_secs_f64()),
            Overrun::Memory(limit) => {
                format!("out of memory ({:.2} GiB)", limit as f64 / (1u64 << 30) as f64)
            }
            Overrun::Stopped => "stopped".to_owned(),
        };
        gave_up(question, &why)
    }
}

/// The memory of a process in bytes; 0 if the host does not report it.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// Answers one question as a worker: reads it from the input and prints events. `read_c` reads C programs; without it,
/// they are refused. `hung_up` is called if the server has disconnected.
pub fn answer_one<R: Read + Send + 'static>(
    input: R,
    output: &mut dyn Write,
    read_c: Option<Box<ReadC>>,
    hung_up: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input.read_line(&mut line)?;
    let task: Task = serde_json::from_str(&line)?;
    let stop = Arc::new(AtomicBool::new(false));
    let limits = Limits::unlimited(task.jobs)
        .with_memory(task.memory)
        .with_process(&Process::new(task.memory))
        .with_stop(stop.clone());
    let limits = match Duration::try_from_secs_f64(task.timeout) {
        Ok(timeout) => limits.with_timeout(timeout),
        Err(_) => limits,
    };
    let listen = move || {
        let mut line = String::new();
        while input.read_line(&mut line).is_ok_and(|read| read > 0) {
            stop.fetch_or(line.trim() == STOP, Ordering::Relaxed);
            line.clear();
        }
        hung_up();
    };
    std::thread::Builder::new().name("listen".to_owned()).spawn(listen)?;
    let news = Arc::new(News::default());
    let (sender, answers) = channel();
    answer_on_a_thread(task.question, limits, news.clone(), read_c, move |found| {
        let _ = sender.send(found);
    })?;
    loop {
        let (event, is_last) = match answers.recv_timeout(PROGRESS_INTERVAL) {
            Ok(found) => (found, true),
            Err(RecvTimeoutError::Timeout) => (json!({ "event": "progress", "doing": news.take() }), false),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        writeln!(output, "{event}")?;
        output.flush()?;
        if is_last {
            return Ok(());
        }
    }
}
