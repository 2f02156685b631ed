//! One question, from its place in line to its answer: told line by line, stopped when nobody listens any more.

use crate::answer::answer;
use crate::http::Stream;
use crate::pool::{NoPlace, Permit};
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

/// How often progress is told, and how often it is looked whether somebody listens.
pub(crate) const TELL: Duration = Duration::from_millis(200);
/// Programs nest as deeply as the parsers allow: the same stack as on the command line.
const STACK: usize = 16 << 20;
/// What is said if there is no answer for no good reason.
const FAILED: &str =
    "Palisade failed, and there is no answer: this is a bug, please report it with the program";
/// At most this many counters of a search are told.
const MOST_COUNTERS: usize = 3;

/// Answers a question over a connection. What goes wrong with the connection ends it.
pub(crate) fn run(shared: &Arc<Shared>, question: Question, connection: &TcpStream) -> io::Result<()> {
    let mut out = Patient::new(connection);
    let mut stream = Stream::begin(&mut out)?;
    let mut told_ahead = None;
    let entered = shared.pool.enter(|ahead| {
        if listens(connection).is_err() || shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        let news = told_ahead != Some(ahead);
        told_ahead = Some(ahead);
        !news || stream.line(&json!({ "event": "waiting", "ahead": ahead })).is_ok()
    });
    let permit = match entered {
        Ok(permit) => permit,
        Err(NoPlace::Gone) => return Ok(()),
        Err(NoPlace::Full) => {
            stream.line(
                &json!({ "event": "error", "message": "too many runs at a time; try again in a moment" }),
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
    // The place is free by now: whoever takes the answer slowly keeps nobody waiting.
    stream.line(&found?)?;
    stream.end()
}

/// Work that is being done.
struct Work<'a> {
    answers: &'a mpsc::Receiver<Value>,
    /// What it does, in words.
    doing: &'a dyn Fn() -> String,
}

/// Waits for an answer for a moment.
type Follow<'a> = dyn FnMut(Work<'_>) -> io::Result<Option<Value>> + 'a;

/// Answers a question by a process, which is gone afterwards.
fn in_a_process(
    shared: &Shared,
    command: &[OsString],
    question: &Question,
    stoppable: &Stoppable,
    permit: Permit,
    follow: &mut Follow<'_>,
) -> io::Result<Value> {
    // Declared first, dropped last: the place is free when the process is gone.
    let _permit = permit;
    let config = &shared.config;
    let limits = (config.timeout, config.memory, config.jobs);
    let mut worker = match Worker::start(command, question, limits, stoppable.stop.clone()) {
        Ok(worker) => worker,
        Err(error) => {
            let message = format!("no process can be started for the question: {error}");
            return Ok(json!({ "event": "error", "message": message }));
        }
    };
    loop {
        let work = Work { answers: &worker.answers, doing: &|| worker.doing() };
        if let Some(found) = follow(work)? {
            return Ok(found);
        }
        if let Some(why) = worker.given_up() {
            return Ok(why.answer(question));
        }
    }
}

/// Answers a question by a thread, which is done afterwards.
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
    let worker = answer_on_a_thread(question, limits, news.clone(), move |found| {
        // The place is held until the work is done, whatever becomes of the connection.
        drop(permit);
        // Nobody may be left to take it.
        let _ = sender.send(found);
    })?;
    let found = loop {
        match follow(Work { answers: &answers, doing: &|| news.take() }) {
            Ok(Some(found)) => break Ok(found),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
    };
    // If nobody listens any more there is no use in going on.
    stoppable.stop.store(true, Ordering::Relaxed);
    let _ = worker.join();
    found
}

/// Finds the answer to a question on a thread of its own, and hands it over.
pub(crate) fn answer_on_a_thread(
    question: Question,
    limits: Limits,
    news: Arc<News>,
    hand_over: impl FnOnce(Value) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let work = move || {
        let found =
            catch_unwind(AssertUnwindSafe(|| answer(&question, &limits.clone().with_progress(news.clone()))));
        hand_over(found.unwrap_or_else(|_| json!({ "event": "error", "message": FAILED })));
    };
    std::thread::Builder::new().name("run".to_owned()).stack_size(STACK).spawn(work)
}

/// Waits a moment for an answer. If there is none yet, tells progress.
fn follow(
    work: Work<'_>,
    connection: &TcpStream,
    stream: &mut Stream<'_>,
    shared: &Shared,
    start: Instant,
) -> io::Result<Option<Value>> {
    match work.answers.recv_timeout(TELL) {
        Ok(found) => Ok(Some(found)),
        Err(_) if shared.stop.load(Ordering::Relaxed) => Err(ErrorKind::Interrupted.into()),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(json!({ "event": "error", "message": FAILED }))),
        Err(RecvTimeoutError::Timeout) => {
            listens(connection)?;
            let (seconds, doing) = (start.elapsed().as_secs_f64(), (work.doing)());
            stream.line(&json!({ "event": "progress", "seconds": seconds, "doing": doing }))?;
            Ok(None)
        }
    }
}

/// Whether somebody is still there: a connection that was closed can be read to its end.
fn listens(connection: &TcpStream) -> io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_millis(1)))?;
    match connection.peek(&mut [0]) {
        Ok(0) => Err(ErrorKind::ConnectionAborted.into()),
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A run that can be stopped by its name, as long as it is there.
struct Stoppable {
    token: String,
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl Stoppable {
    fn new(shared: &Arc<Shared>) -> Stoppable {
        // Hashers start from random keys: nobody else can guess the name.
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

/// What engines are doing. They tell often, and are listened to now and then.
#[derive(Default)]
pub(crate) struct News {
    /// The numbers of those that have been heard, as bits.
    heard: AtomicU32,
    doing: Mutex<BTreeMap<usize, String>>,
}

impl News {
    pub(crate) fn take(&self) -> String {
        self.heard.store(0, Ordering::Relaxed);
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
        if self.heard.load(Ordering::Relaxed) & bit(lane) != 0 {
            return;
        }
        if let Ok(mut news) = self.doing.try_lock() {
            self.heard.fetch_or(bit(lane), Ordering::Relaxed);
            let mut text = if engine.is_empty() { String::new() } else { format!("{engine}: ") };
            text.push_str(doing);
            for (name, value) in stats.iter().take(MOST_COUNTERS) {
                text.push_str(&format!(", {}", report::counter(name, value, &value.to_string())));
            }
            news.insert(lane, text);
        }
    }

    fn ended(&self, lane: usize) {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).remove(&lane);
        self.heard.fetch_and(!bit(lane), Ordering::Relaxed);
    }
}
