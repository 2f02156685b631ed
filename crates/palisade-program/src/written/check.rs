//! What an assertion checks.

/// What an assertion checks. `assert(e);` is the program's own; the others come from languages whose rules
/// forbid more than their assertions do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Check {
    /// The program says so.
    #[default]
    Assertion,
    /// Arithmetic on signed integers stays in range.
    Overflow,
    /// A shift is by at least 0 and less than the width.
    Shift,
    /// A value that is used was written before.
    Initialised,
    /// A function whose value is used has returned one.
    Returned,
    /// Memory that is accessed has not been freed.
    NotFreed,
    /// An index of an array is less than its length.
    Index,
    /// Memory that is written is not constant.
    Writable,
    /// Memory that `memcpy` reads and writes does not overlap.
    Disjoint,
    /// What is freed was allocated, and not freed before.
    Freeable,
    /// Control does not come here.
    Unreachable,
    /// The program does not give up.
    NoAbort,
    /// The program does not panic.
    NoPanic,
    /// A lock that is released is held by the thread.
    Held,
    /// A synchronisation object that is used has not been destroyed.
    NotDestroyed,
    /// A synchronisation object that is destroyed or initialised is not in use.
    NotInUse,
    /// A thread that is joined or detached was started, and neither joined nor detached before.
    Joinable,
    /// All threads have ended when `main` returns.
    AllEnded,
    /// Limit: no more threads are started than there is room for.
    Threads,
    /// Limit: no more memory is allocated than there is room for.
    Heap,
    /// Limit: accesses have the size of the variable that they touch.
    Size,
    /// Limit: a value is one that the translation can represent.
    Value,
    /// Limit: a text that is printed as a format has no conversions.
    Format,
}

impl Check {
    /// All checks, with their names in `.pal` and what went wrong if they fail.
    const ALL: [(Check, &'static str, &'static str); 23] = [
        (Check::Assertion, "assertion", "assertion failed"),
        (Check::Overflow, "overflow", "signed integer overflow"),
        (Check::Shift, "shift", "shift by a negative number or by at least the width"),
        (Check::Initialised, "initialised", "use of an uninitialised value"),
        (Check::Returned, "returned", "use of the value of a function that ended without `return`"),
        (Check::NotFreed, "not_freed", "use after free"),
        (Check::Index, "index", "array index out of bounds"),
        (Check::Writable, "writable", "write to a constant"),
        (Check::Disjoint, "disjoint", "memory that is copied overlaps its copy"),
        (Check::Freeable, "freeable", "double or invalid free"),
        (Check::Unreachable, "unreachable", "code marked as unreachable was reached"),
        (Check::NoAbort, "no_abort", "the program aborted"),
        (Check::NoPanic, "no_panic", "the program panicked"),
        (Check::Held, "held", "unlock of a lock that the thread does not hold"),
        (Check::NotDestroyed, "not_destroyed", "use of a synchronisation object that was destroyed"),
        (
            Check::NotInUse,
            "not_in_use",
            "a synchronisation object is destroyed or initialised while it is in use",
        ),
        (
            Check::Joinable,
            "joinable",
            "join or detach of a thread that was not started, or was joined or detached before",
        ),
        (Check::AllEnded, "all_ended", "`main` returned while a thread was still running"),
        (Check::Threads, "threads", "more threads than the translation has room for"),
        (Check::Heap, "heap", "more memory allocated than the translation has room for"),
        (Check::Size, "size", "an access that covers part of a variable, or several variables"),
        (Check::Value, "value", "a value that the translation cannot represent"),
        (Check::Format, "format", "a text with a `%` that is not a literal is printed as a format"),
    ];

    fn entry(self) -> (&'static str, &'static str) {
        let found = Check::ALL.iter().find(|(check, ..)| *check == self);
        let (_, name, message) = found.expect("ALL holds every check");
        (name, message)
    }

    /// Its name in `.pal`.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// What went wrong if it fails.
    pub fn message(self) -> &'static str {
        self.entry().1
    }

    /// The check with a name.
    pub fn of_name(name: &str) -> Option<Check> {
        Check::ALL.iter().find(|(_, known, _)| *known == name).map(|(check, ..)| *check)
    }

    /// Whether it is a limit of the translation. If it fails, the program may still be correct.
    pub fn is_limit(self) -> bool {
        matches!(self, Check::Threads | Check::Heap | Check::Size | Check::Value | Check::Format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (check, name, _) in Check::ALL {
            assert_eq!(Check::of_name(name), Some(check));
            assert_eq!(check.name(), name);
        }
    }
}
