//! The corpus and its expectations: one program for all tests, linked once.

mod corpus;
mod rmm;
mod robust;
mod rounds;
