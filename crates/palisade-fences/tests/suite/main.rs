//! Fences and their places: one program for all tests, linked once.

mod common;
mod differential;
mod places;
