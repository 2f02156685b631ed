//! The library as a whole. There is one test program, which is linked once.

mod agreement;
mod claims;
mod cost;
mod domains;
mod fair;
mod fences;
mod identities;
mod languages;
mod layering;
mod modulo;
mod outcomes;
mod races;
mod ranking;
mod reference;
mod robustness_engines;
mod some_any;
mod sugar;
mod sugar_random;
mod words;
