//! Ctrl-C: the first one asks the engine to stop and tell what it has; the second one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a process that ends at once because of Ctrl-C, as shells know it.
const INTERRUPTED: i32 = 130;

/// A flag that Ctrl-C sets.
pub fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let installed = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    });
    // Without a handler Ctrl-C ends the process as usual: nothing is lost but the partial answer.
    let _ = installed;
    stop
}
