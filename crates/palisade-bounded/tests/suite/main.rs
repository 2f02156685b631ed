//! Translations with a bound: one program for all tests, linked once.

mod conformance;
mod exact;
mod faults;
mod table;
mod translation;
