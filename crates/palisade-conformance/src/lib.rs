//! Code that tests share, above all the suite that every engine of Palisade must pass. For development only:
//! nothing that is shipped to users depends on it.
//!
//! - [`brute`]: every run of the machine, the slow and obvious way;
//! - [`generate`](mod@generate): random programs, named by their seed;
//! - [`bounded`]: all states within a number of rounds or with stores up to an age;
//! - [`rounds`]: the same within a number of rounds;
//! - [`classics`]: well-known litmus tests and algorithms, with their verdicts;
//! - [`transform`]: changes to a program whose effect on the verdict is known;
//! - [`seeds`](fn@seeds): which seeds a test tries, and [`random`], the only random number generator;
//! - [`scratch_folder`]: a folder of a test;
//! - [`shrink`](fn@shrink): a small program that still shows a failure;
//! - [`suite`]: all of this together. An engine's tests call [`suite::check_engine`] and
//!   [`suite::check_classics`].
//! - [`parameterized`]: the same for programs with any number of threads, by comparison with small numbers of
//!   them.
//! - [`identities`](mod@identities): random programs with identities.
//! - [`progress`]: deadlocks and what stays reachable, by brute force.
//! - [`fair`]: what holds in every fair run, by brute force.
//! - [`c`]: random C programs, and litmus tests in C with their outcomes.
//! - [`coverage`]: which steps runs take, by brute force.
//! - [`claims`]: whether the bounds that `unknown` answers state are true.
//! - [`robust`] and [`robust_suite`]: robustness by brute force, and the suite for engines that decide it.
//! - [`TestEngine`]: an engine whose answers a test decides.
//! - [`browser`]: Chromium, for the tests of web pages.
//!
//! What is absent: any engine that searches.

pub mod bounded;
pub mod browser;
pub mod brute;
pub mod build;
pub mod c;
pub mod claims;
pub mod classics;
pub mod coverage;
pub mod fair;
pub mod generate;
pub mod identities;
pub mod parameterized;
pub mod progress;
pub mod random;
pub mod robust;
pub mod robust_suite;
pub mod rounds;
mod scratch;
mod seeds;
mod shrink;
pub mod suite;
mod test_engine;
pub mod transform;
mod walk;

pub use generate::{Profile, generate, with_and_without_constructs};
pub use random::Random;
pub use scratch::scratch_folder;
pub use seeds::{Seeds, seeds};
pub use shrink::shrink;
pub use test_engine::TestEngine;
