//! Stopping work that takes too long, wherever it is.
//!
//! *Problem.* Reading, lowering, analysing and printing a program can take as long as searching it. Such code
//! has no sensible partial answer when time or memory runs out.
//!
//! *How.* [`within`] runs work under limits. Loops in that work call [`checkpoint`], which is cheap enough
//! for inner loops: it reads the clock about once per millisecond. Code that is about to allocate a lot calls
//! [`room_for`] first. When a limit is exceeded, both leave the work by unwinding, and [`within`] returns
//! what ran out. This is not a panic: no hook runs and no message is printed. Without limits, and on threads
//! other than the one that called [`within`], both do nothing.
//!
//! *Invariants.*
//! 1. Work under limits shares no mutable state with work outside, except through locks that ignore
//!    poisoning.
//! 2. Code that can give a partial answer does not rely on this mechanism. It checks its limits directly and
//!    reports its results so far.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What ran out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Exhausted {
    /// The time limit.
    Time(Duration),
    /// The memory limit, in bytes.
    Memory(u64),
    /// The limit on states or configurations.
    Work(u64),
    /// A request to stop, such as Ctrl-C.
    Stopped,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exhausted::Time(limit) => write!(f, "out of time ({} s)", limit.as_secs_f64()),
            Exhausted::Memory(limit) => {
                write!(f, "out of memory ({:.2} GiB)", *limit as f64 / (1u64 << 30) as f64)
            }
            Exhausted::Work(limit) => write!(f, "more than {limit} states or configurations"),
            Exhausted::Stopped => write!(f, "stopped"),
        }
    }
}

/// Limits on work.
pub trait Limited {
    /// Whether work may continue and allocate this many more bytes at once.
    fn allows(&self, more_bytes: u64) -> Result<(), Exhausted>;
}

/// Smaller allocations are not checked in advance.
const MIN_CHECKED_ALLOCATION: u64 = 1 << 20;

/// The payload that unwinds out of the work.
struct Unwinding(Exhausted);

thread_local! {
    static LIMITS: RefCell<Option<Rc<dyn Limited>>> = const { RefCell::new(None) };
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
}

/// How often to check the limits: about once per millisecond. The clock itself is read only now and then.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Calls until the clock is read next, and calls between two readings.
    left: u16,
    every: u16,
    last_reading: Instant,
    last_check: Option<Instant>,
}

impl Pace {
    /// The most calls between two readings of the clock: later calls may be further apart in time.
    const MAX_SKIPPED: u16 = 64;
    const SHORT: Duration = Duration::from_micros(100);
    const LONG: Duration = Duration::from_millis(2);
    const BETWEEN: Duration = Duration::from_micros(500);

    /// Starts now. The first check is due immediately.
    pub fn new() -> Pace {
        Pace { left: 0, every: 0, last_reading: Instant::now(), last_check: None }
    }

    /// Whether it is time to check the limits. Costs next to nothing if it is not.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                false
            }
            None => self.read_clock(),
        }
    }

    fn read_clock(&mut self) -> bool {
        let now = Instant::now();
        match now - self.last_reading {
            short if short < Pace::SHORT => self.every = (self.every * 2 + 1).min(Pace::MAX_SKIPPED),
            long if long > Pace::LONG => self.every /= 8,
            _ => {}
        }
        (self.left, self.last_reading) = (self.every, now);
        let due = self.last_check.is_none_or(|last_check| now - last_check >= Pace::BETWEEN);
        if due {
            self.last_check = Some(now);
        }
        due
    }
}

impl Default for Pace {
    fn default() -> Self {
        Pace::new()
    }
}

/// Does work within limits, on this thread. If they are exceeded, data that the work was changing may be
/// inconsistent and must not be used.
pub fn within<T>(limits: Rc<dyn Limited>, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let _restore = Restore { limits: LIMITS.replace(Some(limits)), pace: PACE.replace(Some(Pace::new())) };
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast::<Unwinding>() {
        Ok(unwinding) => unwinding.0,
        Err(panic) => resume_unwind(panic),
    })
}

/// Restores the outer limits.
struct Restore {
    limits: Option<Rc<dyn Limited>>,
    pace: Option<Pace>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        LIMITS.set(self.limits.take());
        PACE.set(self.pace.take());
    }
}

/// Leaves the work if its limits are exceeded; otherwise does nothing. For loops whose iterations take less
/// than a millisecond.
#[inline]
pub fn checkpoint() {
    if let Some(mut pace) = PACE.get() {
        let due = pace.is_due();
        PACE.set(Some(pace));
        if due {
            check(0);
        }
    }
}

/// Leaves the work if there is no room for this many more bytes. For code that is about to allocate them at
/// once.
pub fn room_for(bytes: u64) {
    if bytes >= MIN_CHECKED_ALLOCATION {
        check(bytes);
    }
}

/// Leaves the work, for the given reason.
pub fn leave(what: Exhausted) -> ! {
    resume_unwind(Box::new(Unwinding(what)))
}

/// The payload of a panic, for code that catches panics inside work under limits. If the payload means that
/// the work is being left, unwinding resumes.
pub fn unless_leaving(payload: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
    if payload.is::<Unwinding>() { resume_unwind(payload) } else { payload }
}

#[cold]
fn check(bytes: u64) {
    let limits = LIMITS.with_borrow(Clone::clone);
    // Clean-up code that runs during a panic must finish.
    if let Some(limits) = limits.filter(|_| !std::thread::panicking())
        && let Err(what) = limits.allows(bytes)
    {
        leave(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allows this many checks, and this many bytes at once.
    struct Checks(Cell<u32>, u64);

    impl Limited for Checks {
        fn allows(&self, more_bytes: u64) -> Result<(), Exhausted> {
            if more_bytes > self.1 {
                return Err(Exhausted::Memory(self.1));
            }
            self.0.set(self.0.get().checked_sub(1).ok_or(Exhausted::Stopped)?);
            Ok(())
        }
    }

    fn checks(number: u32) -> Rc<dyn Limited> {
        Rc::new(Checks(Cell::new(number), 1 << 30))
    }

    fn forever() {
        loop {
            checkpoint();
        }
    }

    #[test]
    fn endless_work_is_left() {
        assert_eq!(within(checks(5), forever), Err(Exhausted::Stopped));
        assert_eq!(within(checks(5), || 7), Ok(7));
    }

    #[test]
    fn without_limits_work_is_never_left() {
        (0..1000).for_each(|_| checkpoint());
        room_for(u64::MAX);
        let elsewhere =
            within(checks(0), || std::thread::spawn(|| (0..1000).for_each(|_| checkpoint())).join());
        assert!(elsewhere.is_ok_and(|joined| joined.is_ok()));
    }

    #[test]
    fn room_is_checked_in_advance() {
        let check = |bytes| within(checks(5), || room_for(bytes));
        assert_eq!(check(1 << 30), Ok(()));
        assert_eq!(check((1 << 30) + 1), Err(Exhausted::Memory(1 << 30)));
    }

    #[test]
    fn the_innermost_limits_apply_and_the_outer_ones_are_restored() {
        let outer = within(checks(1000), || {
            assert_eq!(within(checks(1), forever), Err(Exhausted::Stopped));
            assert_eq!(within(checks(1), || room_for(2 << 30)), Err(Exhausted::Memory(1 << 30)));
            checkpoint();
            room_for(1 << 31)
        });
        assert_eq!(outer, Err(Exhausted::Memory(1 << 30)));
    }

    #[test]
    fn code_that_catches_panics_does_not_prevent_leaving() {
        let caught = |work: fn()| within(checks(1), || catch_unwind(work).map_err(unless_leaving).is_err());
        assert_eq!(caught(forever), Err(Exhausted::Stopped));
        assert_eq!(caught(|| panic!("this is expected")), Ok(true));
    }

    #[test]
    fn panics_pass_through() {
        let panic = catch_unwind(|| within(checks(1), || panic!("this is expected")));
        assert!(panic.is_err());
    }
}
