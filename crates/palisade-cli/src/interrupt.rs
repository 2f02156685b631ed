//! Ctrl-C: the first one asks the engine to stop and tell what it has; the second one ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// The exit code of a process that ends at once because of Ctrl-C, as shells know it.
const INTERRUPTED: i32 = 130;

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether Ctrl-C was pressed since somebody asked for the flag.
pub fn is_stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// A flag that Ctrl-C sets from now on.
pub fn stop_flag() -> Arc<AtomicBool> {
    let stop = STOP.clone();
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
