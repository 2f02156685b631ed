//! The observer of a suite: it is notified of what is being measured, and may end the suite between two rows.
//!
//! Suites are many and deeply nested, so the observer is set once for the process. Without it, suites run
//! unobserved.

use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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

/// Prints a line of text for people. Ignores errors, for instance when the reader has closed the pipe.
macro_rules! say {
    ($($text:tt)*) => {
        if $crate::watch::prints_text() {
            use std::io::Write;
            let mut stdout = std::io::stdout().lock();
            let _ = writeln!(stdout, $($text)*);
        }
    };
}
pub(crate) use say;
