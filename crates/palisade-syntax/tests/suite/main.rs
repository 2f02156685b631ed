//! Tests of parsing, printing and editing programs, linked into one binary.

mod blocks;
mod common;
mod edit;
mod format;
mod fuzz;
mod identities;
mod languages;
mod litmus;
mod litmus_errors;
mod litmus_fuzz;
mod litmus_machine;
mod names;
mod parts;
mod printing;
mod reference;
mod rmm;
mod rmm_errors;
mod rmm_fuzz;
mod trencher;
mod trencher_errors;
mod trencher_fuzz;
