//! Who waits for a suite: hears what is being measured, and may end it between two rows.
//!
//! Suites are many and deep; so this is set once for the process, and without it nobody waits.

use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Who waits for a suite.
pub trait Watch: Send + Sync {
    /// What is being measured now.
    fn measuring(&self, suite: &str, row: &str);
    /// Something is going to be printed.
    fn printing(&self);
    /// A flag that ends the suite.
    fn stop(&self) -> Arc<AtomicBool>;
    /// Whether rows are printed as JSON, and nothing else.
    fn wants_json(&self) -> bool;
}

static WATCH: OnceLock<Box<dyn Watch>> = OnceLock::new();
static SUITE: Mutex<&'static str> = Mutex::new("");

/// From now on, this one waits.
pub fn set(watch: Box<dyn Watch>) {
    // A process runs one command.
    let _ = WATCH.set(watch);
}

fn watch() -> Option<&'static dyn Watch> {
    WATCH.get().map(|watch| &**watch)
}

/// From now on, rows are those of this suite.
pub fn enter(suite: &'static str) {
    *SUITE.lock().unwrap_or_else(PoisonError::into_inner) = suite;
}

/// The suite that is run.
pub fn suite() -> &'static str {
    *SUITE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells what is measured next. An error if it is not to be measured any more.
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

/// Whether the suite is to end.
pub fn is_stopped() -> bool {
    watch().is_some_and(|watch| watch.stop().load(Ordering::Relaxed))
}

/// Makes room for something to be printed; false if it is for people, and nobody reads.
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

/// Prints a line for people. A reader who has gone away has seen enough.
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
