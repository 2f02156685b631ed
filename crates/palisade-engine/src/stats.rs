//! Counters of a search, in a fixed order.

/// Named counters. Names are lower-case words joined by `_`, the same in text and JSON. Forward engines count
/// `states` (distinct states stored). Backward engines count `configurations` (generated). Engines may add
/// counters of their own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    counters: Vec<(&'static str, u64)>,
    /// The counters of each process, if several processes shared the work.
    processes: Vec<Stats>,
}

impl Stats {
    /// No counters.
    pub fn new() -> Stats {
        Stats::default()
    }

    /// Sets a counter. New counters go to the end.
    pub fn set(&mut self, name: &'static str, value: u64) {
        match self.counters.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = value,
            None => self.counters.push((name, value)),
        }
    }

    /// Adds to a counter.
    pub fn add(&mut self, name: &'static str, value: u64) {
        self.set(name, self.get(name).unwrap_or(0) + value);
    }

    /// The value of a counter.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(n, _)| *n == name).map(|&(_, value)| value)
    }

    /// The counters of each process, if several processes shared the work.
    pub fn processes(&self) -> &[Stats] {
        &self.processes
    }

    /// Sets the counters of each process.
    pub fn set_processes(&mut self, processes: Vec<Stats>) {
        self.processes = processes;
    }

    /// All counters in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counters.iter().copied()
    }
}

/// The peak resident memory of this process, if the host reports it.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
