//! Fences and their places: one binary for all tests, linked once.

mod common;
mod differential;
mod places;
