//! Programs for other tools: one program for all tests, linked once.

mod common;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod c;
    mod promela;
    mod translated;
}
