//! Tests of fences and their places, linked into one binary.

mod common;
mod differential;
mod places;
