//! The playground: one test binary, linked once.

mod common;
mod http;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod page;
}
