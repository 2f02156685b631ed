//! What a session may use: time, memory, and a way to stop it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Limits. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    /// Set when a stop is requested.
    pub stop: Arc<AtomicBool>,
    /// When the time is up.
    pub deadline: Option<Instant>,
    /// How many bytes this process may have in memory. The memory of the program's own processes is not
    /// counted.
    pub memory: Option<u64>,
}

/// Which limit was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitReached {
    /// A stop was requested.
    Stopped,
    /// The time limit.
    Time,
    /// The memory limit.
    Memory,
}

impl Allowance {
    /// Checks all limits. Takes a few microseconds.
    pub fn check(&self) -> Result<(), LimitReached> {
        self.check_time()?;
        match (self.memory, resident_bytes()) {
            (Some(most), Some(used)) if used > most => Err(LimitReached::Memory),
            _ => Ok(()),
        }
    }

    /// Checks only the limits that cost next to nothing to check.
    pub fn check_time(&self) -> Result<(), LimitReached> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LimitReached::Stopped);
        }
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(LimitReached::Time),
            _ => Ok(()),
        }
    }
}

/// How much memory this process uses now, if the host reports it.
pub fn resident_bytes() -> Option<u64> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| File::open("/proc/self/statm").ok()).as_ref()?;
    let mut text = [0; 128];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let check = |allowance: &Allowance, expected: Result<(), LimitReached>| {
            assert_eq!(allowance.check(), expected)
        };
        check(&Allowance::default(), Ok(()));
        check(&Allowance { memory: Some(1 << 40), ..Allowance::default() }, Ok(()));
        check(&Allowance { memory: Some(1), ..Allowance::default() }, Err(LimitReached::Memory));
        check(&Allowance { deadline: Some(Instant::now()), ..Allowance::default() }, Err(LimitReached::Time));
        let stopped = Allowance::default();
        stopped.stop.store(true, Ordering::Relaxed);
        check(&stopped, Err(LimitReached::Stopped));
    }

    #[test]
    fn memory_that_is_used_is_counted() {
        let before = resident_bytes().expect("Linux reports it");
        let much = vec![1u8; 64 << 20];
        let after = resident_bytes().expect("Linux reports it");
        assert!(after >= before + (48 << 20), "{before} {after}");
        drop(much);
    }
}
