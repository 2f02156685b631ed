//! Tests of the test support itself: one program for all tests, linked once.

mod brute;
mod claims;
mod classics;
mod fair;
mod generator;
mod parameterized;
mod progress;
mod robust;
mod suite;
