//! The suites.

pub mod auto;
pub mod bounded;
pub mod c;
pub mod cluster;
pub mod cover;
pub mod fences;
pub mod lazy;
pub mod litmus;
pub mod monitor;
pub mod parse;
pub mod robust;
pub mod run;
pub mod single;
pub mod spin;
pub mod translated;
pub mod witness;
