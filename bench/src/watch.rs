//! The observer of a suite: it is notified of what is being measured, and may end the suite between two rows.
//!
//! Suites are many and deeply nested, so the observer is set once for the process. Without it, suites run
//! unobserved.

use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The aims that were reported so far.
#[derive(Default)]
struct Aims {
    all: usize,
    /// The lines that report one which is not reached, with their suites.
    short: Vec<(&'static str, String)>,
}

impl Aims {
    /// Reads what is printed: `ok` stands where an aim is reached, and `SHORT` where it is not.
    fn read(&mut self, suite: &'static str, text: &str) {
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let count = |wanted| words.iter().filter(|word| **word == wanted).count();
            self.all += count("ok") + count("SHORT");
            if count("SHORT") > 0 {
                self.short.push((suite, words.join(" ")));
            }
        }
    }

    /// A line about all of them, and one for each line that reports a shortfall.
    fn summary(&self) -> Vec<String> {
        let first = match self.short.len() {
            0 => format!("all {} aims were reached", self.all),
            lines => format!(
                "of {} aims, these fell short ({lines} {})",
                self.all,
                if lines == 1 { "line" } else { "lines" }
            ),
        };
        let rest = self.short.iter().map(|(suite, line)| format!("  {suite}: {line}"));
        std::iter::once(first).chain(rest).collect()
    }
}

/// Observes a suite.
pub trait Watch: Send + Sync {
    /// Called with what is being measured now.
    fn measuring(&self, suite: &str, row: &str);
    /// Called before something is printed.
    fn printing(&self);
    /// A flag that ends the suite.
    fn stop(&self) -> Arc<AtomicBool>;
    /// Whether rows are printed as JSON, and nothing else.
    fn wants_json(&self) -> bool;
}

static WATCH: OnceLock<Box<dyn Watch>> = OnceLock::new();
static SUITE: Mutex<&'static str> = Mutex::new("");
static AIMS: Mutex<Aims> = Mutex::new(Aims { all: 0, short: Vec::new() });

/// Sets the observer.
pub fn set(watch: Box<dyn Watch>) {
    // A process runs only one command.
    let _ = WATCH.set(watch);
}

fn watch() -> Option<&'static dyn Watch> {
    WATCH.get().map(|watch| &**watch)
}

/// Begins a suite: from now on, rows belong to it.
pub fn enter(suite: &'static str) {
    *SUITE.lock().unwrap_or_else(PoisonError::into_inner) = suite;
}

/// The current suite.
pub fn suite() -> &'static str {
    *SUITE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports what is measured next. Returns an error if the suite should end.
pub fn measuring(row: &str) -> Result<()> {
    if is_stopped() {
        bail!("stopped");
    }
    if let Some(watch) = watch() {
        watch.measuring(suite(), row);
    }
    Ok(())
}

/// The flag that ends engines.
pub fn stop() -> Arc<AtomicBool> {
    watch().map(|watch| watch.stop()).unwrap_or_default()
}

/// Whether the suite should end.
pub fn is_stopped() -> bool {
    watch().is_some_and(|watch| watch.stop().load(Ordering::Relaxed))
}

/// Announces that something is printed. Returns whether text for people is printed at all.
pub fn prints_text() -> bool {
    if let Some(watch) = watch() {
        watch.printing();
    }
    !prints_json()
}

/// Whether rows are printed as JSON, and nothing else.
pub fn prints_json() -> bool {
    watch().is_some_and(|watch| watch.wants_json())
}

/// Prints text for people, and remembers which aims it reports. Ignores errors, for instance when the reader has closed
/// the pipe.
pub fn print(text: &str) {
    if prints_text() {
        use std::io::Write;
        AIMS.lock().unwrap_or_else(PoisonError::into_inner).read(suite(), text);
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }
}

/// Prints a line of text for people.
macro_rules! say {
    () => {
        $crate::watch::print("")
    };
    ($($text:tt)*) => {
        $crate::watch::print(&format!($($text)*))
    };
}
pub(crate) use say;

/// What fell short so far, for people.
pub fn summary() -> Vec<String> {
    AIMS.lock().unwrap_or_else(PoisonError::into_inner).summary()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_are_read_from_the_lines() {
        let mut aims = Aims::default();
        aims.read("auto", "program  s\n-------  -\na  1  ok  ok\nb  2  ok\n");
        assert_eq!(aims.summary(), ["all 3 aims were reached"]);
        aims.read("run", "\nin total: 3  SHORT");
        assert_eq!(aims.summary(), ["of 4 aims, these fell short (1 line)", "  run: in total: 3 SHORT"]);
    }
}
