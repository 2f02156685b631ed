//! Tests of exported programs, linked into one binary.

mod common;
mod declared;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod c;
    mod promela;
    mod translated;
}
