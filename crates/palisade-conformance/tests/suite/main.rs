//! The means of testing, tested: one program for all tests, linked once.

mod brute;
mod claims;
mod classics;
mod generator;
mod parameterized;
mod robust;
mod suite;
