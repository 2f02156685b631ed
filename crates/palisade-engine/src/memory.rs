//! The memory of the whole process, measured.
//!
//! *Problem.* Engines know how large their tables are. They do not know what the allocator adds, what is in
//! transit between tables, and what is allocated before and after the search.
//!
//! *How.* About once per millisecond, the host is asked how much private memory the process has ([`in_use`]).
//! If the host does not report it, only the sizes of the engines' tables are known. Several questions may be
//! answered at a time. Each has a [`Share`], in which it reports the size of its tables. When the process
//! exceeds the limit, the question with the largest tables gives up. Above [`Process::emergency`], every
//! question that checks its limits gives up, those with small tables after a short wait.
//!
//! *Why the limit can stretch.* Allocators keep freed memory. The next of many files must not be refused
//! memory that the previous file has freed. So the limit is raised by what the allocator still holds, at most
//! by a fifth of the limit or by [`KEPT`], whichever is larger.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The limit on the memory of this process, shared by all its budgets.
#[derive(Debug)]
pub struct Process {
    limit: u64,
    measure: fn() -> Option<u64>,
    last: Mutex<Option<(Instant, u64)>>,
    /// The last measurement. It is 0 before the first one, and if the host does not report it.
    now: AtomicU64,
    /// What the process may use now: the limit, or a little more if the allocator keeps freed memory.
    allowed: AtomicU64,
    shares: Mutex<Vec<Weak<AtomicU64>>>,
}

/// The memory that one question holds, as far as it knows.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    process: Arc<Process>,
    bytes: Arc<AtomicU64>,
}

/// How short of memory the process is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Pressure {
    /// There is room.
    None,
    /// The question with the largest tables gives up.
    Full,
    /// Every question gives up.
    Emergency,
}

/// What the allocator may keep beyond the limit when the limit is raised.
const KEPT: u64 = 24 << 20;
/// How long a question with small tables waits for others to give up.
const PATIENCE: Duration = Duration::from_millis(150);
/// Time between two measurements.
const BETWEEN: Duration = Duration::from_millis(1);

impl Process {
    /// A limit in bytes on the memory of this process.
    pub fn new(limit: u64) -> Arc<Process> {
        Process::measured_by(limit, in_use)
    }

    fn measured_by(limit: u64, measure: fn() -> Option<u64>) -> Arc<Process> {
        let (last, now) = (Mutex::new(None), AtomicU64::new(0));
        Arc::new(Process {
            limit,
            measure,
            last,
            now,
            allowed: AtomicU64::new(limit),
            shares: Mutex::default(),
        })
    }

    pub(crate) fn share(self: &Arc<Process>) -> Share {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|share| share.strong_count() > 0);
        shares.push(Arc::downgrade(&bytes));
        // What an earlier question has freed may be used again.
        self.give_way();
        Share { process: self.clone(), bytes }
    }

    /// The memory of the process, measured at most a millisecond ago. It is 0 if the host does not report it.
    pub fn measured_now(&self) -> u64 {
        // Another thread is measuring. The last result is good enough.
        if let Ok(mut last) = self.last.try_lock()
            && last.is_none_or(|(when, _)| when.elapsed() >= BETWEEN)
        {
            let now = (self.measure)().unwrap_or(0);
            *last = Some((Instant::now(), now));
            self.now.store(now, Ordering::Relaxed);
        }
        self.now.load(Ordering::Relaxed)
    }

    /// The memory of the process at the last measurement.
    pub(crate) fn measured(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn emergency(&self) -> u64 {
        let allowed = self.allowed.load(Ordering::Relaxed);
        self.limit.saturating_add(self.limit / 10).max(allowed.saturating_add(self.limit / 64))
    }

    /// Called after memory was freed: the memory that the allocator still keeps may be used again.
    pub(crate) fn give_way(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let kept = self.measured_now();
        let most = self.limit.saturating_add(KEPT.max(self.limit / 5));
        let allowed = kept.saturating_add(self.limit / 32).clamp(self.limit, most);
        self.allowed.store(allowed, Ordering::Relaxed);
    }
}

impl Share {
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Whether there is room, given what this question holds and how many bytes it is about to allocate.
    ///
    /// A question with small tables may wait for a moment, because another question may be the cause and
    /// about to give up. The oldest one waits least, because it has had the most time to allocate.
    pub(crate) fn check(&self, bytes: u64, more: u64) -> Pressure {
        self.bytes.store(bytes, Ordering::Relaxed);
        let mut pressure = self.pressure(bytes, more);
        if pressure == Pressure::None || bytes > self.process.limit / 4 {
            return pressure;
        }
        let patience = if self.is_oldest() { PATIENCE / 4 } else { PATIENCE };
        let start = Instant::now();
        while pressure != Pressure::None && start.elapsed() < patience {
            std::thread::sleep(BETWEEN);
            pressure = self.pressure(bytes, more);
        }
        pressure
    }

    fn pressure(&self, bytes: u64, more: u64) -> Pressure {
        let process = &self.process;
        let now = process.measured_now();
        // If the host does not report it, only the share is known.
        let wanted = now.max(bytes).saturating_add(more);
        if wanted <= process.allowed.load(Ordering::Relaxed) {
            Pressure::None
        } else if wanted > process.emergency() || more > 0 || self.is_largest(bytes) {
            if now > process.emergency() { Pressure::Emergency } else { Pressure::Full }
        } else {
            Pressure::None
        }
    }

    fn is_oldest(&self) -> bool {
        let shares = self.process.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = shares.iter().find(|share| share.strong_count() > 0);
        oldest.is_some_and(|share| share.as_ptr() == Arc::as_ptr(&self.bytes))
    }

    fn is_largest(&self, bytes: u64) -> bool {
        let shares = self.process.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.iter().filter_map(Weak::upgrade).all(|share| share.load(Ordering::Relaxed) <= bytes)
    }
}

/// The private resident memory of this process, if the host reports it. Pages of its files are not included,
/// because the host can drop them at any time.
#[cfg(target_os = "linux")]
pub fn in_use() -> Option<u64> {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;

    /// Kept open because it is read often. The host counts in pages without reporting their size.
    static STATM: OnceLock<Option<(File, u64)>> = OnceLock::new();
    let (statm, page) = STATM
        .get_or_init(|| {
            let statm = File::open("/proc/self/statm").ok()?;
            Some((statm, page_size()?))
        })
        .as_ref()?;
    let mut text = [0; 128];
    let length = statm.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let mut pages = text.split_whitespace().skip(1).map(|field| field.parse::<u64>().ok());
    let (resident, of_files) = (pages.next()??, pages.next()??);
    Some(resident.saturating_sub(of_files) * page)
}

/// The private resident memory of this process, if the host reports it.
#[cfg(not(target_os = "linux"))]
pub fn in_use() -> Option<u64> {
    None
}

/// The size of a page, from the only file that gives a number both in bytes and in pages.
#[cfg(target_os = "linux")]
fn page_size() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let line = maps.lines().find(|line| line.starts_with("KernelPageSize:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn allocated_memory_is_measured() {
        let before = in_use().expect("Linux reports memory use");
        let taken = vec![1u8; 256 << 20];
        let after = in_use().expect("Linux reports memory use");
        // Other tests may free memory at the same time, but not this much.
        assert!(
            after >= before + (128 << 20),
            "{before} to {after} with {}",
            std::hint::black_box(taken).len()
        );
    }

    #[test]
    fn the_largest_gives_up_and_in_an_emergency_all_do() {
        let check = |measured: fn() -> Option<u64>, expected: [Pressure; 2]| {
            let process = Process::measured_by(100, measured);
            let [small, large] = [(); 2].map(|()| process.share());
            process.allowed.store(100, Ordering::Relaxed);
            large.check(50, 0);
            assert_eq!([small.check(10, 0), large.check(50, 0)], expected);
        };
        check(|| Some(100), [Pressure::None, Pressure::None]);
        check(|| Some(101), [Pressure::None, Pressure::Full]);
        check(|| Some(111), [Pressure::Emergency, Pressure::Emergency]);
        check(|| None, [Pressure::None, Pressure::None]);
    }

    /// Reported: a small program in a folder was refused memory, because a large one that had just given up
    /// still held it.
    #[test]
    fn a_small_question_waits_for_a_large_one_to_give_up() {
        static TAKEN: AtomicU64 = AtomicU64::new(200);
        let process = Process::measured_by(100, || Some(TAKEN.load(Ordering::Relaxed)));
        let large = process.share();
        let small = process.share();
        process.allowed.store(100, Ordering::Relaxed);
        assert_eq!(large.check(80, 0), Pressure::Emergency);
        let waiting = std::thread::spawn(move || small.check(1, 0));
        drop(large);
        TAKEN.store(50, Ordering::Relaxed);
        assert_eq!(waiting.join().expect("no panic"), Pressure::None);
    }

    #[test]
    fn large_allocations_are_checked_in_advance() {
        let share = Process::measured_by(100, || Some(60)).share();
        assert_eq!((share.check(0, 40), share.check(0, 41)), (Pressure::None, Pressure::Full));
        let unmeasured = Process::measured_by(100, || None).share();
        assert_eq!((unmeasured.check(60, 40), unmeasured.check(60, 41)), (Pressure::None, Pressure::Full));
    }

    #[test]
    fn memory_that_the_allocator_keeps_may_be_reused() {
        let check = |kept: fn() -> Option<u64>, allowed: u64| {
            let process = Process::measured_by(320 << 20, kept);
            process.give_way();
            assert_eq!(process.allowed.load(Ordering::Relaxed), allowed << 20);
        };
        check(|| Some(100 << 20), 320);
        check(|| Some(320 << 20), 330);
        check(|| Some(360 << 20), 370);
        check(|| Some(1000 << 20), 384);
        check(|| None, 320);
    }
}
