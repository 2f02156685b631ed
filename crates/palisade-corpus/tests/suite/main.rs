//! The corpus and its expectations: one test binary, linked once.

mod c;
mod corpus;
mod progress;
mod rmm;
mod robust;
mod rounds;
mod shared;
