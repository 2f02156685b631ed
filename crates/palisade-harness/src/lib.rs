//! Runs C, C++ and Rust programs under its own scheduler and records what they do to memory.
//!
//! - [`compile`], [`asm`], [`audit`], [`driver`]: how programs are compiled;
//! - [`mark`], [`link`], [`functions`]: what is linked into programs and cannot be followed;
//! - [`runtime`]: the C sources of what is linked into programs; [`cache`]: where it is kept;
//! - [`rust`]: instrumented builds by cargo; [`standard`]: the precompiled part of Rust's standard library;
//! - [`log`], [`stream`]: what the runtime reports;
//! - [`process`]: the program as a process that forks for every execution;
//! - [`schedule`]: how threads take turns; [`schedule_file`]: the files in which schedules are kept;
//! - [`execution`], [`races`]: what one execution shows; [`buffers`], [`trace`]: its store buffers, and whether it is
//!   possible without them (`graph`);
//! - [`allowance`]: time and memory;
//! - [`session`]: many executions; [`findings`], `notes`, `failures`: what they show, with every finding listed once;
//! - [`confirm`]: every finding once more, from its schedule, before it is reported;
//! - [`suppress`]: findings that are not to be reported;
//! - [`explore`]: all partial orders, with executions as sequences of steps (`steps`), each read as far as it differs from
//!   the one before (`incremental`), or run ahead of time (`pipeline`, `ahead`);
//! - [`elsewhere`]: executions that other processes run;
//! - [`shorten`]: schedules with fewer switches;
//! - [`timeline`]: the steps of one execution, for people to look at;
//! - [`symbols`]: source lines;
//! - [`divergence`]: the first unexpected event, if an execution does not repeat;
//! - [`doctor`]: what this machine supports.
//!
//! What is absent: nothing here prints. Violations are found by `palisade-monitor`.

mod ahead;
pub mod allowance;
pub mod asm;
pub mod audit;
pub mod buffers;
pub mod cache;
pub mod compile;
pub mod confirm;
mod constants;
pub mod divergence;
pub mod doctor;
pub mod driver;
pub mod elsewhere;
pub mod execution;
pub mod explore;
mod failures;
pub mod findings;
pub mod functions;
mod graph;
mod incremental;
pub mod link;
pub mod log;
pub mod mark;
pub mod misuse;
mod notes;
mod pipeline;
pub mod process;
pub mod races;
pub mod runtime;
pub mod rust;
pub mod schedule;
pub mod schedule_file;
pub mod session;
pub mod shorten;
pub mod standard;
mod steps;
pub mod stream;
pub mod suppress;
pub mod symbols;
pub mod timeline;
pub mod trace;
pub mod words;
mod worker;
