//! Tests of runs and witnesses, linked into one binary.

mod common;
mod happens;
mod reorder;
mod settle;
mod shorten;
mod witness_file;
