//! One question, from the queue to its answer. Progress is reported line by line; the run is stopped when the
//! client disconnects.

use crate::answer::{ReadC, answer};
use crate::http::Stream;
use crate::pool::{NoSlot, Permit};
use crate::question::Question;
use crate::server::{Patient, Shared};
use crate::worker::Worker;
use palisade::{Limits, Progress, Stats, report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often progress is reported and the connection is checked.
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// Programs nest as deeply as the parsers allow, so the stack is as large as on the command line.
const STACK: usize = 16 << 20;
/// The message if an answer failed unexpectedly.
const FAILED: &str = "Palisade failed without an answer. This is a bug; please report it with the program";
/// At most this many counters of a search are reported.
const MAX_COUNTERS: usize = 3;

/// Answers a question over a connection. An error of the connection ends the run.
pub(crate) fn run(shared: &Arc<Shared>, question: Question, connection: &TcpStream) -> io::Result<()> {
    let mut out = Patient::new(connection);
    let mut stream = Stream::begin(&mut out)?;
    let mut reported_ahead = None;
    let entered = shared.pool.enter(|ahead| {
        if check_connected(connection).is_err() || shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        let news = reported_ahead != Some(ahead);
        reported_ahead = Some(ahead);
        !news || stream.line(&json!({ "event": "waiting", "ahead": ahead })).is_ok()
    });
    let permit = match entered {
        Ok(permit) => permit,
        Err(NoSlot::Unwanted) => return Ok(()),
        Err(NoSlot::Full) => {
            stream.line(
                &json!({ "event": "error", "message": "too many runs at the moment; try again later" }),
            )?;
            return stream.end();
        }
    };
    let stoppable = Stoppable::new(shared);
    stream.line(&json!({ "event": "started", "token": stoppable.token }))?;
    let start = Instant::now();
    let mut follow = |work: Work<'_>| follow(work, connection, &mut stream, shared, start);
    let found = match &shared.worker {
        Some(command) => in_a_process(shared, command, &question, &stoppable, permit, &mut follow),
        None => on_a_thread(shared, question, &stoppable, permit, &mut follow),
    };
    // The slot is free by now: a client that reads the answer slowly keeps no other run waiting.
    stream.line(&found?)?;
    stream.end()
}

/// Work in progress.
struct Work<'a> {
    answers: &'a mpsc::Receiver<Value>,
    /// A description of what it is doing.
    doing: &'a dyn Fn() -> String,
}

/// Waits briefly for an answer.
type Follow<'a> = dyn FnMut(Work<'_>) -> io::Result<Option<Value>> + 'a;

/// Answers a question in a separate process, which has ended when this returns.
fn in_a_process(
    shared: &Shared,
    command: &[OsString],
    question: &Question,
    stoppable: &Stoppable,
    permit: Permit,
    follow: &mut Follow<'_>,
) -> io::Result<Value> {
    // Declared first, dropped last: the slot is freed after the process has ended.
    let _permit = permit;
    let config = &shared.config;
    let limits = (config.timeout, config.memory, config.jobs);
    let mut worker = match Worker::start(command, question, limits, stoppable.stop.clone()) {
        Ok(worker) => worker,
        Err(error) => {
            let message = format!("cannot start a process for the question: {error}");
            return Ok(json!({ "event": "error", "message": message }));
        }
    };
    loop {
        let work = Work { answers: &worker.answers, doing: &|| worker.doing() };
        if let Some(found) = follow(work)? {
            return Ok(found);
        }
        if let Some(why) = worker.overrun() {
            return Ok(why.answer(question));
        }
    }
}

/// Answers a question on a thread, which has finished when this returns.
fn on_a_thread(
    shared: &Shared,
    question: Question,
    stoppable: &Stoppable,
    permit: Permit,
    follow: &mut Follow<'_>,
) -> io::Result<Value> {
    let config = &shared.config;
    let limits = Limits::unlimited(config.jobs)
        .with_memory(config.memory)
        .with_timeout(config.timeout)
        .with_stop(stoppable.stop.clone());
    let news = Arc::new(News::default());
    let (sender, answers) = mpsc::channel();
    let worker = answer_on_a_thread(question, limits, news.clone(), None, move |found| {
        // The slot is held until the work is done, whatever happens to the connection.
        drop(permit);
        // The receiver may be gone.
        let _ = sender.send(found);
    })?;
    let found = loop {
        match follow(Work { answers: &answers, doing: &|| news.take() }) {
            Ok(Some(found)) => break Ok(found),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
    };
    // If the client has disconnected, there is no reason to continue.
    stoppable.stop.store(true, Ordering::Relaxed);
    let _ = worker.join();
    found
}

/// Answers a question on a new thread and hands the answer over.
pub(crate) fn answer_on_a_thread(
    question: Question,
    limits: Limits,
    news: Arc<News>,
    read_c: Option<Box<ReadC>>,
    hand_over: impl FnOnce(Value) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let work = move || {
        let limits = limits.with_progress(news);
        let found = catch_unwind(AssertUnwindSafe(|| answer(&question, &limits, read_c.as_deref())));
        hand_over(found.unwrap_or_else(|_| json!({ "event": "error", "message": FAILED })));
    };
    std::thread::Builder::new().name("run".to_owned()).stack_size(STACK).spawn(work)
}

/// Waits briefly for an answer. If there is none yet, reports progress.
fn follow(
    work: Work<'_>,
    connection: &TcpStream,
    stream: &mut Stream<'_>,
    shared: &Shared,
    start: Instant,
) -> io::Result<Option<Value>> {
    match work.answers.recv_timeout(PROGRESS_INTERVAL) {
        Ok(found) => Ok(Some(found)),
        Err(_) if shared.stop.load(Ordering::Relaxed) => Err(ErrorKind::Interrupted.into()),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(json!({ "event": "error", "message": FAILED }))),
        Err(RecvTimeoutError::Timeout) => {
            check_connected(connection)?;
            let (seconds, doing) = (start.elapsed().as_secs_f64(), (work.doing)());
            stream.line(&json!({ "event": "progress", "seconds": seconds, "doing": doing }))?;
            Ok(None)
        }
    }
}

/// Whether the client is still connected. A closed connection can be read to its end.
fn check_connected(connection: &TcpStream) -> io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_millis(1)))?;
    match connection.peek(&mut [0]) {
        Ok(0) => Err(ErrorKind::ConnectionAborted.into()),
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A run that can be stopped by its token, as long as it exists.
struct Stoppable {
    token: String,
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl Stoppable {
    fn new(shared: &Arc<Shared>) -> Stoppable {
        // Hashers start from random keys, so others cannot guess the token.
        let random = || RandomState::new().build_hasher().finish();
        let token = format!("{:016x}{:016x}", random(), random());
        let stop = Arc::new(AtomicBool::new(false));
        let mut runs = shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(token.clone(), stop.clone());
        drop(runs);
        Stoppable { token, stop, shared: shared.clone() }
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// What engines are doing. They report often, but their reports are only recorded now and then.
#[derive(Default)]
pub(crate) struct News {
    /// The lanes that have reported since the last [`News::take`], as bits.
    reported: AtomicU32,
    doing: Mutex<BTreeMap<usize, String>>,
}

impl News {
    pub(crate) fn take(&self) -> String {
        self.reported.store(0, Ordering::Relaxed);
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        doing.values().cloned().collect::<Vec<_>>().join(" | ")
    }
}

fn bit(lane: usize) -> u32 {
    1 << lane.min(31)
}

impl Progress for News {
    fn report(&self, doing: &str, stats: &Stats) {
        self.report_lane(0, "", doing, stats);
    }

    fn report_lane(&self, lane: usize, engine: &str, doing: &str, stats: &Stats) {
        if self.reported.load(Ordering::Relaxed) & bit(lane) != 0 {
            return;
        }
        if let Ok(mut news) = self.doing.try_lock() {
            self.reported.fetch_or(bit(lane), Ordering::Relaxed);
            let mut text = if engine.is_empty() { String::new() } else { format!("{engine}: ") };
            text.push_str(doing);
            for (name, value) in stats.iter().take(MAX_COUNTERS) {
                text.push_str(&format!(", {}", report::counter(name, value, &value.to_string())));
            }
            news.insert(lane, text);
        }
    }

    fn ended(&self, lane: usize) {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).remove(&lane);
        self.reported.fetch_and(!bit(lane), Ordering::Relaxed);
    }
}
