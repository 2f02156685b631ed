//! Progress on standard error. On a terminal it is a line refreshed in place. Elsewhere it is a plain line
//! now and then.
//!
//! A line shows the elapsed time, the memory in use, and for each running engine what it is doing, its
//! counters, and how fast the first counter grows. If a terminal is too narrow for that, less is shown of
//! every engine, so that all of them still appear. Engines report often, so [`Meter`] checks one flag and
//! returns unless the ticker has asked for news.

use palisade::{Note, Progress, Stats, report};
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
/// A rate on a terminal is measured over about this time.
const RATED: Duration = Duration::from_secs(1);
/// No rate is shown for less time than this.
const MIN_RATED: Duration = Duration::from_millis(500);
/// At most this many counters are shown per engine.
const MAX_COUNTERS: usize = 2;
/// If there is little room, at most this many characters are shown of an activity that belongs to no engine.
const MAX_DOING: usize = 24;
/// At most this many engines are distinguished.
const MAX_LANES: usize = 16;

/// Shows what engines are doing until it is dropped.
pub struct Meter {
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    /// For each engine, whether its next report should be recorded.
    is_wanted: [AtomicBool; MAX_LANES],
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    lanes: Vec<Lane>,
    notes: Vec<Note>,
    files: Option<(usize, usize)>,
    ended: bool,
    /// Whether there is a line on the terminal that must be wiped before anything else is printed.
    shown: bool,
}

/// What one engine is doing.
#[derive(Default)]
struct Lane {
    engine: String,
    doing: String,
    counters: Vec<(&'static str, u64)>,
    /// What each process has done, if several share the work.
    processes: Vec<String>,
    /// When this was reported.
    reported: Option<Instant>,
    /// The first counter at an earlier time.
    before: Option<(Instant, &'static str, u64)>,
    /// The increase of the first counter per second since then.
    rate: Option<f64>,
}

/// How much is shown of an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Words {
    /// `explicit: searching, 12.3k states (1.2k/s), depth 7`
    All,
    /// `explicit: searching, 12.3k states (1.2k/s)`
    OneCounter,
    /// `explicit: 12.3k states (1.2k/s)`
    Counter,
    /// `explicit 12.3k (1.2k/s)`
    Numbers,
    /// `explicit 12.3k`
    Number,
    /// `explicit 12k`, and nothing about memory
    Least,
}

impl Words {
    const ALL: [Words; 6] =
        [Words::All, Words::OneCounter, Words::Counter, Words::Numbers, Words::Number, Words::Least];

    fn between(self) -> &'static str {
        if self == Words::Least { ", " } else { " | " }
    }
}

impl Meter {
    /// Starts to watch. A quiet meter never shows anything.
    pub fn new(quiet: bool) -> Meter {
        let state = State { lanes: Vec::new(), notes: Vec::new(), files: None, ended: false, shown: false };
        let shared = Arc::new(Shared {
            is_wanted: std::array::from_fn(|_| AtomicBool::new(!quiet)),
            state: Mutex::new(state),
            wake: Condvar::new(),
        });
        let ticker = (!quiet).then(|| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.run())
        });
        Meter { shared, ticker }
    }

    /// Where engines report to.
    pub fn progress(&self) -> Arc<dyn Progress> {
        self.shared.clone()
    }

    /// Records how many files are done.
    pub fn files(&self, done: usize, all: usize) {
        self.shared.lock().files = Some((done, all));
    }

    /// The notes of the engines.
    pub fn notes(&self) -> Vec<Note> {
        self.shared.lock().notes.clone()
    }

    /// Records what is being done. Meant for rare reports, none of which should be missed.
    pub fn say(&self, doing: &str, stats: &Stats) {
        self.shared.lock().lane(0).record("", doing, stats, Instant::now());
    }

    /// Wipes the line on the terminal, so that something else can be printed.
    pub fn wipe(&self) {
        self.shared.lock().wipe();
    }
}

impl Progress for Shared {
    fn note(&self, note: &Note) {
        let notes = &mut self.lock().notes;
        // An engine that is run again takes the same notes again.
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }

    fn ended(&self, lane: usize) {
        let lane = lane.min(MAX_LANES - 1);
        *self.lock().lane(lane) = Lane::default();
        // The next engine in this lane is shown at once.
        self.is_wanted[lane].store(true, Ordering::Relaxed);
    }

    fn report(&self, doing: &str, stats: &Stats) {
        self.report_lane(0, "", doing, stats);
    }

    fn report_lane(&self, lane: usize, engine: &str, doing: &str, stats: &Stats) {
        let lane = lane.min(MAX_LANES - 1);
        if !self.is_wanted[lane].load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut state) = self.state.try_lock() {
            self.is_wanted[lane].store(false, Ordering::Relaxed);
            state.lane(lane).record(engine, doing, stats, Instant::now());
        }
    }
}

impl Lane {
    fn record(&mut self, engine: &str, doing: &str, stats: &Stats, reported: Instant) {
        engine.clone_into(&mut self.engine);
        doing.clone_into(&mut self.doing);
        self.counters.clear();
        self.counters.extend(stats.iter().take(MAX_COUNTERS));
        let processes = stats.processes().iter();
        self.processes = processes.map(|process| report::process_in_words(process, false)).collect();
        self.reported = Some(reported);
        let first = self.counters.first();
        match (first, self.before) {
            (Some((name, now)), Some((_, known, before))) if *name == known && *now >= before => {}
            // It is starting, or has restarted.
            _ => {
                self.before = first.map(|&(name, now)| (reported, name, now));
                self.rate = None;
            }
        }
    }

    /// Measures the rate. A rate that is older than the interval is dropped.
    fn rate(&mut self, now: Instant, interval: Duration) {
        let (Some(reported), Some(&(name, count)), Some((then, _, before))) =
            (self.reported, self.counters.first(), self.before)
        else {
            return;
        };
        if now.saturating_duration_since(reported) > interval {
            self.rate = None;
        } else if reported.saturating_duration_since(then) >= MIN_RATED {
            self.rate = Some((count - before) as f64 / (reported - then).as_secs_f64());
            self.before = Some((reported, name, count));
        }
    }

    /// What it is doing, if it is doing anything.
    fn show(&self, words: Words) -> Option<String> {
        self.reported?;
        let rate = self.rate.map(|rate| match rate {
            rate if rate < 10.0 => format!(" ({rate:.1}/s)"),
            rate => format!(" ({}/s)", brief(rate)),
        });
        let mut parts = Vec::new();
        if words <= Words::OneCounter || self.engine.is_empty() || self.counters.is_empty() {
            let most = if words == Words::Least && self.engine.is_empty() { MAX_DOING } else { usize::MAX };
            parts.push(self.doing.chars().take(most).collect());
        }
        let counters = if words == Words::All { MAX_COUNTERS } else { 1 };
        for (index, &(name, value)) in self.counters.iter().enumerate().take(counters) {
            let number = brief(value as f64);
            let mut part = match words {
                Words::All | Words::OneCounter | Words::Counter => report::counter(name, value, &number),
                Words::Numbers | Words::Number => number,
                Words::Least => without_decimals(value),
            };
            if let (0, true, Some(rate)) = (index, words <= Words::Numbers, &rate) {
                part.push_str(rate);
            }
            parts.push(part);
        }
        let mut text = parts.join(", ");
        if words == Words::All {
            let processes = self.processes.iter().enumerate();
            processes.for_each(|(index, process)| text.push_str(&format!("; {index}: {process}")));
        }
        Some(match self.engine.as_str() {
            "" => text,
            engine if words >= Words::Numbers && self.counters.is_empty() => engine.to_owned(),
            engine if words >= Words::Numbers => format!("{engine} {text}"),
            engine => format!("{engine}: {text}"),
        })
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

/// `950`, `12k`, `4.5M`
fn without_decimals(value: u64) -> String {
    match value {
        10_000..1_000_000 => format!("{}k", value / 1000),
        value => brief(value as f64),
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
        if let Some(ticker) = self.ticker.take() {
            // If the ticker panicked, less progress was shown than usual. The answer is not affected.
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
            self.is_wanted.iter().for_each(|wanted| wanted.store(true, Ordering::Relaxed));
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
    fn lane(&mut self, number: usize) -> &mut Lane {
        if self.lanes.len() <= number {
            self.lanes.resize_with(number + 1, Lane::default);
        }
        &mut self.lanes[number]
    }

    /// A line of at most this many characters, if that is possible without leaving out engines.
    fn line(&self, elapsed: Duration, memory: Option<u64>, width: usize) -> String {
        let lines = Words::ALL.map(|words| self.line_of(elapsed, memory, words));
        let [.., shortest] = &lines;
        lines.iter().find(|line| line.chars().count() <= width).unwrap_or(shortest).clone()
    }

    fn line_of(&self, elapsed: Duration, memory: Option<u64>, words: Words) -> String {
        let mut line = format!("{:.0} s", elapsed.as_secs_f64());
        if let Some((done, all)) = self.files {
            line.push_str(&format!(", {done} of {all} files"));
        }
        if let Some(bytes) = memory.filter(|_| words < Words::Least) {
            line.push_str(&format!(", {}", report::mebibytes(bytes)));
        }
        for (index, lane) in self.lanes.iter().filter_map(|lane| lane.show(words)).enumerate() {
            line.push_str(if index == 0 { ": " } else { words.between() });
            line.push_str(&lane);
        }
        line
    }

    fn show(&mut self, elapsed: Duration, terminal: bool) {
        let interval = if terminal { RATED } else { BETWEEN_LINES };
        let now = Instant::now();
        self.lanes.iter_mut().for_each(|lane| lane.rate(now, interval));
        let width = match terminal {
            true => terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0),
            false => u16::MAX,
        };
        let width = usize::from(width).saturating_sub(1);
        let line = self.line(elapsed, memory_in_use(), width);
        let mut stderr = io::stderr().lock();
        let written = if terminal {
            let line: String = line.chars().take(width).collect();
            self.shown = true;
            write!(stderr, "\r\u{1b}[K{line}")
        } else {
            writeln!(stderr, "{line}")
        };
        // Not being able to show progress is no reason to stop.
        let _ = written.and_then(|()| stderr.flush());
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}

/// The resident memory of this process, if the host reports it.
fn memory_in_use() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: usize = 1000;

    fn listening() -> Meter {
        let meter = Meter::new(true);
        meter.shared.is_wanted.iter().for_each(|wanted| wanted.store(true, Ordering::Relaxed));
        meter
    }

    fn check(meter: &Meter, memory: Option<u64>, width: usize, expected: &str) {
        assert_eq!(meter.shared.lock().line(Duration::from_secs(3), memory, width), expected);
    }

    fn states(states: u64) -> Stats {
        let mut stats = Stats::new();
        stats.set("states", states);
        stats.set("buffer_bound", 2);
        stats.set("depth", 7);
        stats
    }

    #[test]
    fn lines() {
        let meter = listening();
        check(&meter, None, WIDE, "3 s");
        meter.progress().report("searching", &states(12_345));
        check(&meter, None, WIDE, "3 s: searching, 12.3k states, buffer bound 2");
        meter.progress().report("unrequested", &states(12_345));
        let expected = "3 s, 4.8 MiB: searching, 12.3k states, buffer bound 2";
        check(&meter, Some(5_000_000), WIDE, expected);
        meter.say("unrequested", &states(1));
        check(&meter, None, WIDE, "3 s: unrequested, 1 state, buffer bound 2");
        let meter = listening();
        meter.progress().report_lane(1, "dual", "searching", &states(12_345));
        meter.progress().report_lane(0, "explicit", "visiting", &Stats::new());
        meter.files(2, 5);
        let expected =
            "3 s, 2 of 5 files: explicit: visiting | dual: searching, 12.3k states, buffer bound 2";
        check(&meter, None, WIDE, expected);
    }

    #[test]
    fn an_engine_that_has_ended_is_not_shown() {
        let meter = listening();
        for (lane, engine) in ["explicit", "dual", "lazy"].into_iter().enumerate() {
            meter.progress().report_lane(lane, engine, "searching", &Stats::new());
        }
        meter.progress().ended(1);
        check(&meter, None, WIDE, "3 s: explicit: searching | lazy: searching");
        meter.progress().ended(0);
        meter.progress().ended(2);
        check(&meter, None, WIDE, "3 s");
        // When it runs again, it is shown at once.
        meter.progress().report_lane(1, "dual", "starting", &Stats::new());
        check(&meter, None, WIDE, "3 s: dual: starting");
    }

    #[test]
    fn all_engines_are_shown_on_a_narrow_terminal() {
        let meter = listening();
        meter.progress().report_lane(0, "explicit", "searching states under tso", &states(3_100_000));
        meter.progress().report_lane(1, "dual", "searching backward with load buffers", &states(12_345));
        meter.progress().report_lane(2, "sb", "starting", &Stats::new());
        meter.shared.lock().lanes[0].rate = Some(253_000.0);
        let check = |width, expected| check(&meter, Some(400 << 20), width, expected);
        check(
            150,
            "3 s, 400.0 MiB: explicit: searching states under tso, 3.1M states (253.0k/s) | \
             dual: searching backward with load buffers, 12.3k states | sb: starting",
        );
        check(90, "3 s, 400.0 MiB: explicit: 3.1M states (253.0k/s) | dual: 12.3k states | sb: starting");
        check(80, "3 s, 400.0 MiB: explicit 3.1M (253.0k/s) | dual 12.3k | sb");
        check(50, "3 s, 400.0 MiB: explicit 3.1M | dual 12.3k | sb");
        check(40, "3 s: explicit 3.1M, dual 12k, sb");
        check(10, "3 s: explicit 3.1M, dual 12k, sb");
        meter.progress().report_lane(3, "", "candidate 12 with 13 fences for 14 demands", &Stats::new());
        check(60, "3 s: explicit 3.1M, dual 12k, sb, candidate 12 with 13 fen");
    }

    #[test]
    fn rates() {
        let mut lane = Lane::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut show = |report: Option<(u64, u64)>, now: u64, expected: &str| {
            if let Some((seconds, count)) = report {
                lane.record("", "searching", &states(count), at(seconds));
            }
            lane.rate(at(now), Duration::from_secs(2));
            assert_eq!(lane.show(Words::OneCounter).expect("something was reported"), expected);
        };
        show(Some((1, 1000)), 1, "searching, 1000 states");
        show(Some((3, 5000)), 3, "searching, 5000 states (2000/s)");
        show(None, 5, "searching, 5000 states (2000/s)");
        // The last report is older than the interval.
        show(None, 6, "searching, 5000 states");
        show(Some((7, 9000)), 7, "searching, 9000 states (1000/s)");
        // It has restarted.
        show(Some((8, 100)), 8, "searching, 100 states");
        show(Some((9, 3_000_100)), 9, "searching, 3.0M states (3.0M/s)");
        show(Some((11, 3_000_101)), 11, "searching, 3.0M states (0.5/s)");
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
