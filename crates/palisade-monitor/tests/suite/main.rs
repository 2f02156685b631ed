//! The monitors: one program for all tests, linked once.

mod common;
mod figures;
mod formats;
mod oracle;
mod robust;
