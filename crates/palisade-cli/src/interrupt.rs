//! Signals. The first request to end (Ctrl-C, SIGTERM, SIGHUP) asks the engine to stop and print what it has.
//! The second one ends the process.
//!
//! A file that grows beyond the size limit is an error that is reported. SIGXFSZ does not end the process.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

/// The exit code of a process that was ended by a signal is this plus the number of the signal, as in shells.
pub const ENDED_BY_SIGNAL: i32 = 128;

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether a request to end has arrived since the flag was first requested.
pub fn is_stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP set from now on.
pub fn stop_flag() -> Arc<AtomicBool> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Without a handler, these signals end the process as usual. Only the partial answer is lost.
        let Ok(mut signals) = Signals::new(requests()) else { return };
        let wait = move || {
            for signal in signals.forever() {
                if STOP.swap(true, Ordering::Relaxed) {
                    std::process::exit(ENDED_BY_SIGNAL + signal);
                }
            }
        };
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
    });
    STOP.clone()
}

/// The signals that are requests to end. SIGINT comes last: if it is seen to be caught, the others are caught too.
pub fn requests() -> Vec<i32> {
    let mut wanted = vec![SIGTERM, SIGINT];
    if !is_ignored(SIGHUP) {
        wanted.insert(0, SIGHUP);
    }
    wanted
}

/// From now on, a write beyond the size limit fails instead of ending the process. Programs that are started
/// later have the default SIGXFSZ.
pub fn report_size_limit() {
    // Without a handler, the process ends as usual. Files that are being replaced stay unchanged.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Whether a signal was ignored when the process started, as `nohup` does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| masked(&status, signal))
}

/// Whether `/proc/self/status` says that a signal is ignored.
fn masked(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        assert!(masked(status, SIGHUP));
        assert!(!masked(status, SIGTERM) && !masked(status, SIGINT));
        assert!(!masked("", SIGHUP));
    }
}
