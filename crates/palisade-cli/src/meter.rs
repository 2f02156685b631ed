//! Progress on standard error: a line refreshed in place on a terminal, now and then a plain line elsewhere.
//!
//! A line says how long it has taken, what each engine is doing, its counters, how fast the first of them grows, and the memory in use. Engines tell often, so
//! [`Meter`] looks at one flag and returns unless the ticker has asked for news.

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
/// At most this many counters of an engine.
const MOST_COUNTERS: usize = 2;
/// At most this many engines are told apart.
const MOST_LANES: usize = 8;

/// Shows what engines are doing until it is dropped.
pub struct Meter {
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    /// For each engine, whether the next call of `tell` should say something.
    asked: [AtomicBool; MOST_LANES],
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    lanes: Vec<Lane>,
    notes: Vec<Note>,
    files: Option<(usize, usize)>,
    ended: bool,
    /// Whether a line stands on the terminal that must be wiped before anything else is printed.
    shown: bool,
}

/// What one engine is doing.
#[derive(Default)]
struct Lane {
    engine: String,
    doing: String,
    counters: Vec<(&'static str, u64)>,
    /// When this was told.
    told: Option<Instant>,
    /// The first counter when it was last shown.
    before: Option<(Instant, u64)>,
    /// What the first counter gains per second.
    rate: Option<f64>,
}

impl Meter {
    /// Starts to watch. A quiet one never shows anything.
    pub fn new(quiet: bool) -> Meter {
        let state = State { lanes: Vec::new(), notes: Vec::new(), files: None, ended: false, shown: false };
        let shared = Arc::new(Shared {
            asked: std::array::from_fn(|_| AtomicBool::new(!quiet)),
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
        self.tell_of(0, "", doing, stats);
    }

    fn tell_of(&self, lane: usize, engine: &str, doing: &str, stats: &Stats) {
        let lane = lane.min(MOST_LANES - 1);
        if !self.shared.asked[lane].load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut state) = self.shared.state.try_lock() {
            self.shared.asked[lane].store(false, Ordering::Relaxed);
            if state.lanes.len() <= lane {
                state.lanes.resize_with(lane + 1, Lane::default);
            }
            state.lanes[lane].tell(engine, doing, stats);
        }
    }
}

impl Lane {
    fn tell(&mut self, engine: &str, doing: &str, stats: &Stats) {
        engine.clone_into(&mut self.engine);
        doing.clone_into(&mut self.doing);
        self.counters.clear();
        self.counters.extend(stats.iter().take(MOST_COUNTERS));
        self.told = Some(Instant::now());
    }

    /// What it is doing, in words; the rate is that since it was last shown.
    fn show(&mut self) -> Option<String> {
        let told = self.told?;
        let mut text = match self.engine.as_str() {
            "" => self.doing.clone(),
            engine => format!("{engine}: {}", self.doing),
        };
        if let Some(&(_, now)) = self.counters.first() {
            match self.before {
                Some((then, before)) if told > then && now >= before => {
                    self.rate = Some((now - before) as f64 / (told - then).as_secs_f64());
                }
                // It has started anew, or said nothing since.
                Some((then, _)) if told > then => self.rate = None,
                _ => {}
            }
            self.before = Some((told, now));
        }
        for (index, (name, value)) in self.counters.iter().enumerate() {
            text.push_str(&format!(", {} {}", brief(*value as f64), name.replace('_', " ")));
            if let (0, Some(rate)) = (index, self.rate) {
                text.push_str(&format!(" ({}/s)", brief(rate)));
            }
        }
        Some(text)
    }
}

/// `950`, `12.3k`, `4.5M`
fn brief(value: f64) -> String {
    match value {
        value if value < 1e4 => format!("{value:.0}"),
        value if value < 1e6 => format!("{:.1}k", value / 1e3),
        value if value < 1e9 => format!("{:.1}M", value / 1e6),
        value => format!("{:.1}G", value / 1e9),
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
            self.asked.iter().for_each(|asked| asked.store(true, Ordering::Relaxed));
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
    fn line(&mut self, elapsed: Duration, memory: Option<u64>) -> String {
        let mut line = format!("{:.0} s", elapsed.as_secs_f64());
        if let Some((done, all)) = self.files {
            line.push_str(&format!(", {done} of {all} files"));
        }
        if let Some(bytes) = memory {
            line.push_str(&format!(", {}B", brief(bytes as f64)));
        }
        for (index, lane) in self.lanes.iter_mut().filter_map(Lane::show).enumerate() {
            line.push_str(if index == 0 { ": " } else { " | " });
            line.push_str(&lane);
        }
        line
    }

    fn show(&mut self, elapsed: Duration, terminal: bool) {
        let line = self.line(elapsed, memory_in_use());
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

/// The memory that this process has resident now, if the host tells.
fn memory_in_use() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mut stats = Stats::new();
        stats.set("states", 12_345);
        stats.set("buffer_bound", 2);
        stats.set("depth", 7);
        let meter = Meter::new(true);
        let check = |meter: &Meter, memory, expected: &str| {
            assert_eq!(meter.shared.lock().line(Duration::from_secs(3), memory), expected);
        };
        check(&meter, None, "3 s");
        let ask =
            |meter: &Meter| meter.shared.asked.iter().for_each(|asked| asked.store(true, Ordering::Relaxed));
        ask(&meter);
        meter.tell("searching", &stats);
        check(&meter, None, "3 s: searching, 12.3k states, 2 buffer bound");
        meter.tell("nobody asked", &stats);
        check(&meter, Some(5_000_000), "3 s, 5.0MB: searching, 12.3k states, 2 buffer bound");
        let meter = Meter::new(true);
        ask(&meter);
        meter.tell_of(1, "dual", "searching", &stats);
        meter.tell_of(0, "explicit", "visiting", &Stats::new());
        meter.files(2, 5);
        check(
            &meter,
            None,
            "3 s, 2 of 5 files: explicit: visiting | dual: searching, 12.3k states, 2 buffer bound",
        );
    }

    #[test]
    fn rates() {
        let mut stats = Stats::new();
        let mut lane = Lane::default();
        let now = Instant::now();
        let mut show = |seconds: u64, states: u64| {
            stats.set("states", states);
            lane.tell("", "searching", &stats);
            lane.told = Some(now + Duration::from_secs(seconds));
            lane.show().expect("something was told")
        };
        assert_eq!(show(1, 1000), "searching, 1000 states");
        assert_eq!(show(3, 5000), "searching, 5000 states (2000/s)");
        assert_eq!(show(4, 100), "searching, 100 states");
        assert_eq!(show(5, 3_000_100), "searching, 3.0M states (3.0M/s)");
    }

    #[test]
    fn numbers() {
        for (value, text) in
            [(0.0, "0"), (9999.0, "9999"), (10_000.0, "10.0k"), (2.5e6, "2.5M"), (3e9, "3.0G")]
        {
            assert_eq!(brief(value), text);
        }
    }
}
