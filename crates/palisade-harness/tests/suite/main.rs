//! Real programs under the scheduler: one test program, linked once.

mod common;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod abandoned;
    mod assume;
    mod barriers;
    mod buffers;
    mod calls;
    mod conditional;
    mod confirm;
    mod detached;
    mod differential;
    mod failures;
    mod fresh;
    mod gaps;
    mod heap;
    mod hidden;
    mod library;
    mod linked;
    mod literature;
    mod locks;
    mod loops;
    mod memory;
    mod orders;
    mod repeats;
    mod restored;
    mod rust;
    mod schedules;
    mod sites;
    mod spinning;
    mod structs;
    mod twins;
    mod unfollowed;
    mod violations;
}
