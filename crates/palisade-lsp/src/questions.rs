//! Questions that may take long. Each is answered on a thread of its own, within limits, and can be stopped.

use crate::answers::answer;
use crate::client::Client;
use crate::edits::Fix;
use crate::places::Places;
use crate::position::Lines;
use crate::server::Event;
use crate::values::CellTexts;
use lsp_types::{Diagnostic, Uri};
use palisade::{InputLanguage, Limits, Model, Progress, Source, Stats};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Programs nest as deeply as the parsers allow, so the stack is as large as on the command line.
const STACK: usize = 16 << 20;
/// How often progress is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
const FAILED: &str = "Palisade failed without an answer. This is a bug; please report it with the program";

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Asked {
    /// Is it safe?
    Check,
    /// Is it robust?
    Robust,
    /// Which fences make it safe?
    Fences,
    /// The answer to `check` as a web page.
    Html,
    /// Which values can the cells take?
    Values,
}

impl Asked {
    pub(crate) const COMMANDS: [Asked; 4] = [Asked::Check, Asked::Robust, Asked::Fences, Asked::Html];

    /// The name, as in `palisade.check`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Asked::Check => "check",
            Asked::Robust => "robust",
            Asked::Fences => "fences",
            Asked::Html => "html",
            Asked::Values => "values",
        }
    }
}

/// A question about a text.
pub(crate) struct Question {
    /// Distinguishes questions.
    pub(crate) number: u64,
    pub(crate) asked: Asked,
    pub(crate) uri: Uri,
    pub(crate) language: InputLanguage,
    pub(crate) source: Source,
    pub(crate) lines: Lines,
    pub(crate) places: Places,
    pub(crate) model: Model,
    /// The time for the answer.
    pub(crate) budget: Duration,
    pub(crate) memory: u64,
    pub(crate) jobs: usize,
    /// For C: the command that answers, and the file.
    pub(crate) command: Option<PathBuf>,
    pub(crate) path: Option<PathBuf>,
    /// What made the answer, for web pages.
    pub(crate) maker: String,
}

/// The answer to a question, as an editor shows it.
#[derive(Default)]
pub(crate) struct Reply {
    /// The verdict.
    pub(crate) word: String,
    /// The verdict and why, in a line.
    pub(crate) headline: String,
    /// For the code lens.
    pub(crate) brief: String,
    pub(crate) findings: Vec<(Uri, Diagnostic)>,
    pub(crate) fix: Option<Fix>,
    pub(crate) html: Option<String>,
    /// The values of cells, or why they are not known.
    pub(crate) values: Option<CellTexts>,
}

/// A way to stop a question.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    /// The process that answers it.
    child: Arc<Mutex<Option<Child>>>,
}

impl Stop {
    pub(crate) fn stop(&self) {
        self.flag.store(true, Ordering::Relaxed);
        if let Some(child) = &mut *self.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // If it has ended by itself, there is nothing to stop.
            let _ = child.kill();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Lets a process be stopped, too.
    pub(crate) fn adopt(&self, child: Child) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        if self.is_stopped() {
            self.stop();
        }
    }

    /// Waits for the process, whose output has ended.
    pub(crate) fn finish(&self) {
        if let Some(mut child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = child.wait();
        }
    }
}

/// Starts to answer a question. The answer comes as an event.
pub(crate) fn start(question: Question, stop: Stop, client: Client, events: Sender<Event>) {
    let number = question.number;
    let failed = events.clone();
    let work = move || {
        let progress = Arc::new(Shown { client, number, last: Mutex::new(Instant::now()) });
        let limits = Limits::unlimited(question.jobs)
            .with_memory(question.memory)
            .with_timeout(question.budget)
            .with_stop(stop.flag.clone())
            .with_progress(progress);
        let found = catch_unwind(AssertUnwindSafe(|| answer(&question, &stop, &limits)));
        let found = found.unwrap_or_else(|_| Err(FAILED.to_owned()));
        // If the server has ended, the answer is no longer wanted.
        let _ = events.send(Event::Answered(number, Box::new(found)));
    };
    let thread = std::thread::Builder::new().name("question".to_owned()).stack_size(STACK);
    if let Err(error) = thread.spawn(work) {
        let message = format!("no thread could be started: {error}");
        let _ = failed.send(Event::Answered(number, Box::new(Err(message))));
    }
}

/// Shows the progress of a question to the user, now and then.
#[derive(Debug)]
struct Shown {
    client: Client,
    number: u64,
    last: Mutex<Instant>,
}

impl Progress for Shown {
    fn report(&self, doing: &str, stats: &Stats) {
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() >= PROGRESS_INTERVAL {
            *last = Instant::now();
            let counted = stats.iter().next();
            let counted = counted.map_or_else(String::new, |(name, value)| format!(", {name} {value}"));
            self.client.report(self.number, format!("{doing}{counted}"));
        }
    }
}
