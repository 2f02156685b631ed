//! Progress on standard error: a line refreshed in place on a terminal, now and then a plain line elsewhere.
//!
//! Engines tell often, so [`Meter::tell`] looks at one flag and returns unless the ticker has asked for news.

use palisade::{Note, Progress, Stats};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the ticker wakes up to ask for news.
const TICK: Duration = Duration::from_millis(100);
/// Work shorter than this is not reported on a terminal.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between lines elsewhere.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// At most this many counters.
const MOST_COUNTERS: usize = 3;

/// Shows what an engine is doing until it is dropped.
pub struct Meter {
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    /// Whether the next call of `tell` should say something.
    asked: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    news: String,
    notes: Vec<Note>,
    files: Option<(usize, usize)>,
    ended: bool,
    /// Whether a line stands on the terminal that must be wiped before anything else is printed.
    shown: bool,
}

impl Meter {
    /// Starts to watch. A quiet one never shows anything.
    pub fn new(quiet: bool) -> Meter {
        let state = State { news: String::new(), notes: Vec::new(), files: None, ended: false, shown: false };
        let shared = Arc::new(Shared {
            asked: AtomicBool::new(!quiet),
            state: Mutex::new(state),
            wake: Condvar::new(),
        });
        let ticker = (!quiet).then(|| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.run())
        });
        Meter { shared, ticker }
    }

    /// Says how many files are done.
    pub fn files(&self, done: usize, all: usize) {
        self.shared.lock().files = Some((done, all));
    }

    /// What the engine noted on its way.
    pub fn notes(&self) -> Vec<Note> {
        self.shared.lock().notes.clone()
    }

    /// Wipes the line on the terminal, so that something else can be printed.
    pub fn wipe(&self) {
        self.shared.lock().wipe();
    }
}

impl Progress for Meter {
    fn note(&self, note: &Note) {
        self.shared.lock().notes.push(note.clone());
    }

    fn tell(&self, doing: &str, stats: &Stats) {
        if !self.shared.asked.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut state) = self.shared.state.try_lock() {
            self.shared.asked.store(false, Ordering::Relaxed);
            state.news.clear();
            state.news.push_str(doing);
            for (name, value) in stats.iter().take(MOST_COUNTERS) {
                state.news.push_str(&format!(", {value} {}", name.replace('_', " ")));
            }
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
        if let Some(ticker) = self.ticker.take() {
            // A ticker that panicked has shown less than it should; the answer is not its business.
            let _ = ticker.join();
        }
        self.wipe();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let terminal = io::stderr().is_terminal();
        let start = Instant::now();
        let mut due = if terminal { PATIENCE } else { BETWEEN_LINES };
        let mut state = self.lock();
        while !state.ended {
            self.asked.store(true, Ordering::Relaxed);
            state = self.wake.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
            let elapsed = start.elapsed();
            if !state.ended && elapsed >= due {
                due = elapsed + if terminal { TICK } else { BETWEEN_LINES };
                state.show(elapsed, terminal);
            }
        }
    }
}

impl State {
    fn show(&mut self, elapsed: Duration, terminal: bool) {
        let mut line = format!("{:.0} s", elapsed.as_secs_f64());
        if let Some((done, all)) = self.files {
            line.push_str(&format!(", {done} of {all} files"));
        } else if !self.news.is_empty() {
            line.push_str(": ");
            line.push_str(&self.news);
        }
        let mut stderr = io::stderr().lock();
        let written = if terminal {
            let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0);
            let line: String = line.chars().take(usize::from(width).saturating_sub(1)).collect();
            self.shown = true;
            write!(stderr, "\r\u{1b}[K{line}")
        } else {
            writeln!(stderr, "{line}")
        };
        // Progress that cannot be shown is no reason to stop.
        let _ = written.and_then(|()| stderr.flush());
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}
