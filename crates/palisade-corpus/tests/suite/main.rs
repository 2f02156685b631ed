//! The corpus and its expectations: one test binary, linked once.

mod corpus;
mod rmm;
mod robust;
mod rounds;
