//! The limits: those that the user sets, or else all cores and most of the memory.

use crate::args::Common;
use crate::interrupt;
use palisade::Limits;
use palisade::engine::Process;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The limits of a command.
#[derive(Clone)]
pub struct UserLimits {
    /// The time for one file.
    pub timeout: Option<Duration>,
    /// The memory of the process, in bytes.
    pub memory: u64,
    /// The same limit, as it is measured.
    pub process: Arc<Process>,
    /// How many threads.
    pub jobs: usize,
    /// Set when the user asks to stop.
    pub stop: Arc<AtomicBool>,
}

impl UserLimits {
    /// The limits that the user sets.
    pub fn new(common: &Common) -> UserLimits {
        let memory = memory(common);
        UserLimits {
            timeout: common.timeout,
            memory,
            process: Process::new(memory),
            jobs: jobs(common),
            stop: interrupt::stop_flag(),
        }
    }

    /// The limits if this many processes share the machine. What the user sets is for each of them.
    pub fn shared_by(self, processes: usize, common: &Common) -> UserLimits {
        let memory = common.memory.unwrap_or(self.memory / processes.max(1) as u64);
        let jobs = common.jobs.map_or((self.jobs / processes.max(1)).max(1), |jobs| jobs as usize);
        UserLimits { memory, process: Process::new(memory), jobs, ..self }
    }

    /// The limits for one file if this many are processed at a time. Its time starts now.
    pub fn per_file(&self, at_a_time: usize) -> Limits {
        let limits = Limits::unlimited(self.jobs / at_a_time)
            .with_memory(self.memory / at_a_time as u64)
            .with_process(&self.process)
            .with_stop(self.stop.clone());
        match self.timeout {
            Some(timeout) => limits.with_timeout(timeout),
            None => limits,
        }
    }
}

/// The number that the user sets, or one per core that this process may use.
pub fn jobs(common: &Common) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    common.jobs.map_or_else(cores, |jobs| jobs as usize)
}

/// The memory that the user sets, or most of what is free.
pub fn memory(common: &Common) -> u64 {
    common.memory.unwrap_or_else(default_memory)
}

/// Three quarters of the memory that is free now, taking the limits of control groups into account. Without a
/// limit if the host does not report it.
fn default_memory() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let host = read(Path::new("/proc/meminfo")).and_then(|text| available(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let free = group_files(&groups)
        .into_iter()
        .filter_map(|(limit, used)| {
            let limit: u64 = read(&limit)?.trim().parse().ok()?;
            let used: u64 = read(&used)?.trim().parse().ok()?;
            Some(limit.saturating_sub(used))
        })
        .chain(host)
        .min();
    free.map_or(u64::MAX, |free| free / 4 * 3)
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The files with the limit and the usage of every control group of this process, from the innermost
/// outwards, given `/proc/self/cgroup`. Versions 1 and 2 use different names.
fn group_files(groups: &str) -> Vec<(PathBuf, PathBuf)> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (root, limit, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        for folder in Path::new(group.trim_start_matches('/')).ancestors() {
            let folder = Path::new(root).join(folder);
            files.push((folder.join(limit), folder.join(used)));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn groups_of_both_versions() {
        let limits = |groups| group_files(groups).into_iter().map(|(limit, _)| limit).collect::<Vec<_>>();
        assert_eq!(
            limits("0::/user/me\n"),
            [
                "/sys/fs/cgroup/user/me/memory.max",
                "/sys/fs/cgroup/user/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
            .map(PathBuf::from)
        );
        assert_eq!(
            limits("5:cpu,memory:/x\n3:pids:/x\n"),
            ["/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
                .map(PathBuf::from)
        );
        assert!(limits("nonsense").is_empty());
    }
}
