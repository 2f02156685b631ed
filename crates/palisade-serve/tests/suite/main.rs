//! The playground: one program for all tests, linked once.

mod common;
mod http;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod page;
}
