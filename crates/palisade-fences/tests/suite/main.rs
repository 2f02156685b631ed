//! Tests of fences and their places, linked into one binary.

mod any_number;
mod common;
mod differential;
mod places;
