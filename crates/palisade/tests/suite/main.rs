//! The library as a whole: one program for all tests, linked once.

mod agreement;
mod claims;
mod fences;
mod languages;
mod layering;
mod reference;
mod robustness_engines;
