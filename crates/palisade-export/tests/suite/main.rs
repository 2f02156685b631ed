//! Exported programs: one test binary, linked once.

mod common;
mod declared;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod c;
    mod promela;
    mod translated;
}
