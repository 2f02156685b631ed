//! Answers of commands that run out of time or memory before anything can be said about a file.
//!
//! In every phase, the work asks its limits whether to continue ([`palisade::engine::Limits::within`]). What
//! it has found by then becomes part of the answer. A [`Backstop`] handles work that does not ask often
//! enough: it ends the process with the same words. It is not used if there are several files.

use crate::args::Format;
use crate::exit::Exit;
use crate::group;
use crate::limits::UserLimits;
use palisade::engine::{Exhausted, Process};
use palisade::report::{
    self, Colour, Explain, FencesEnd, FencesFinding, Finding, Marks, ModelOutcomes, OutcomesFinding, Report,
};
use palisade::{Model, Outcome, Reason, Robustness, Safety, Source, Stats, TriangularRaces};
use serde_json::json;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The engine in answers that no engine gave.
const NO_ENGINE: &str = "none";

/// What a command reports about a file when it has run out of time or memory.
#[derive(Clone, Debug)]
pub struct LastWords {
    /// The file, as the user named it.
    pub file: String,
    /// Text or JSON.
    pub format: Format,
    /// Colour on standard output.
    pub colour: Colour,
    /// The question.
    pub question: Question,
    /// When it was asked.
    pub start: Instant,
}

/// A question.
#[derive(Clone, Debug)]
pub enum Question {
    /// Whether a program is safe.
    Check(Model),
    /// Whether it is robust.
    Robust(Model),
    /// Whether it has triangular races.
    Triangular,
    /// Which fences it needs.
    Fences {
        /// The memory model.
        model: Model,
        /// `safety` or `robustness`.
        goal: &'static str,
        /// Whether all minimal sets were requested.
        all: bool,
    },
    /// Which outcomes it has, under each of these models.
    Outcomes(Vec<Model>),
    /// Something else, by the name of the command.
    Other(&'static str),
}

impl LastWords {
    /// The answer: unknown, because this ran out.
    pub fn say(&self, what: Exhausted) -> String {
        self.say_why(group::reason(what))
    }

    /// The answer: unknown, for this reason.
    pub fn say_why(&self, reason: Reason) -> String {
        let (file, seconds) = (self.file.as_str(), self.start.elapsed().as_secs_f64());
        let peak_memory_bytes = palisade::engine::peak_memory_bytes();
        let source = Source::new(file, "");
        let is_text = self.format == Format::Text;
        match &self.question {
            &Question::Check(model) => self.unanswered::<Safety>(model, reason),
            &Question::Robust(model) => self.unanswered::<Robustness>(model, reason),
            Question::Triangular => self.unanswered::<TriangularRaces>(Model::Tso, reason),
            &Question::Fences { model, goal, all } => {
                let stats = Stats::new();
                self.rendered(&FencesFinding {
                    source: &source,
                    language: "",
                    warnings: &[],
                    model,
                    goal,
                    all,
                    word: "unknown",
                    engine: NO_ENGINE,
                    stats: &stats,
                    places: 0,
                    fewest: 0,
                    sets: Vec::new(),
                    costs: Vec::new(),
                    end: FencesEnd::Unknown(&reason),
                    limits: None,
                    seconds,
                    peak_memory_bytes,
                })
            }
            Question::Outcomes(_) | Question::Other(_) if is_text => {
                format!("unknown  {}: {reason}\n", report::visible(file))
            }
            Question::Outcomes(models) => {
                let stats = Stats::new();
                let models = models.iter().map(|&model| ModelOutcomes {
                    model,
                    missing: Some(&reason),
                    faults: false,
                    dead_ends: false,
                    engine: NO_ENGINE,
                    stats: &stats,
                    seconds,
                });
                self.rendered(&OutcomesFinding {
                    source: &source,
                    warnings: &[],
                    names: Vec::new(),
                    rows: Vec::new(),
                    models: models.collect(),
                    marks: Marks::Nothing,
                    limits: None,
                    run: None,
                    peak_memory_bytes,
                })
            }
            Question::Other(command) => {
                let record = json!({
                    "schema_version": report::SCHEMA_VERSION,
                    "command": command,
                    "file": file,
                    "verdict": "unknown",
                    "reason": reason.to_string(),
                    "seconds": seconds,
                    "peak_memory_bytes": peak_memory_bytes,
                });
                record.to_string() + "\n"
            }
        }
    }

    fn unanswered<Q: Explain>(&self, model: Model, reason: Reason) -> String {
        let outcome: Outcome<Q> = Outcome::unknown(NO_ENGINE, reason);
        let source = Source::new(self.file.as_str(), "");
        let finding = Finding::bare(&source, model, &outcome, self.start.elapsed().as_secs_f64());
        self.rendered(&Finding { peak_memory_bytes: palisade::engine::peak_memory_bytes(), ..finding })
    }

    fn rendered(&self, report: &impl Report) -> String {
        match self.format {
            Format::Text => report.headline(self.colour) + "\n",
            Format::Json => report.json() + "\n",
        }
    }
}

/// How often the backstop checks.
const LOOK: Duration = Duration::from_millis(5);
/// The minimum time that the work has after its deadline to finish with an answer of its own.
const LATE: Duration = Duration::from_millis(180);
/// The time that it has after Ctrl-C.
const STOPPING: Duration = Duration::from_secs(1);
/// The minimum amount of memory that it may use above the limit.
const SPARE: u64 = 14 << 20;

/// Ends the process, with an answer, if the work does not end soon after its time or memory has run out.
pub struct Backstop {
    shared: Arc<(Mutex<Armed>, Condvar)>,
}

/// Whether the backstop may still end the process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Armed {
    Yes,
    No,
}

impl Backstop {
    /// Watches the work until dropped.
    pub fn new(limits: &UserLimits, last_words: LastWords) -> Backstop {
        let shared = Arc::new((Mutex::new(Armed::Yes), Condvar::new()));
        let watch = Watch {
            timeout: limits.timeout,
            late: limits.timeout.map(|timeout| timeout + (timeout / 100 * 8).max(LATE)),
            memory: limits.memory,
            process: limits.process.clone(),
            stop: limits.stop.clone(),
            last_words,
        };
        let theirs = shared.clone();
        std::thread::spawn(move || watch.run(&theirs));
        Backstop { shared }
    }
}

impl Drop for Backstop {
    fn drop(&mut self) {
        let (armed, changed) = &*self.shared;
        // Blocks forever if the process is already being ended.
        *armed.lock().unwrap_or_else(PoisonError::into_inner) = Armed::No;
        changed.notify_all();
    }
}

struct Watch {
    timeout: Option<Duration>,
    late: Option<Duration>,
    memory: u64,
    process: Arc<Process>,
    stop: Arc<AtomicBool>,
    last_words: LastWords,
}

impl Watch {
    fn run(&self, (armed, changed): &(Mutex<Armed>, Condvar)) {
        let most = self.memory.saturating_add((self.memory / 7).max(SPARE));
        let mut stopping: Option<Instant> = None;
        let mut armed = armed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            armed = changed.wait_timeout(armed, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if *armed == Armed::No {
                return;
            }
            if self.stop.load(Ordering::Relaxed) {
                stopping.get_or_insert_with(Instant::now);
            }
            let what = match (self.timeout, self.late) {
                (Some(timeout), Some(late)) if self.last_words.start.elapsed() >= late => {
                    Exhausted::Time(timeout)
                }
                _ if stopping.is_some_and(|since| since.elapsed() >= STOPPING) => Exhausted::Stopped,
                _ if self.process.measured_now() > most => Exhausted::Memory(self.memory),
                _ => continue,
            };
            // If this cannot be written, only the exit code remains.
            let mut stdout = io::stdout().lock();
            let words = self.last_words.say(what);
            let words = match self.last_words.format {
                Format::Text => Cow::Borrowed(words.as_str()),
                Format::Json => report::visible_json(&words),
            };
            let _ = stdout.write_all(words.as_bytes()).and_then(|()| stdout.flush());
            std::process::exit(Exit::Unknown.code().into());
        }
    }
}
