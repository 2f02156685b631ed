//! Runs, taken and told: one program for all tests, linked once.

mod common;
mod happens;
mod reorder;
mod settle;
mod shorten;
mod witness_file;
