//! Real programs under the scheduler: one test program, linked once.

mod common;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod assume;
    mod buffers;
    mod calls;
    mod differential;
    mod failures;
    mod gaps;
    mod hidden;
    mod library;
    mod linked;
    mod literature;
    mod memory;
    mod repeats;
    mod rust;
    mod schedules;
    mod spinning;
    mod unfollowed;
    mod violations;
}
