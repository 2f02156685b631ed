//! The language server: what an editor asks about a program, in the words of the Language Server Protocol.
//!
//! The library does the work; this crate only translates. One thread reads messages, one writes them, and the loop in
//! [`server`] handles one event at a time. Whatever may take long is a question ([`questions`]), which a thread of
//! its own answers within limits. Each question can be stopped, and a newer one about the same file stops the
//! older one. So the editor never waits for an engine.
//!
//! - [`transport`]: messages over two streams; [`settings`]: the options of the user;
//! - [`server`]: events, requests and notifications; `capabilities` is what the server can do;
//! - [`documents`], [`position`]: open files, and positions in them, whose columns count UTF-16 units;
//! - [`problems`]: diagnostics; [`run`]: a run as a diagnostic; [`answers`]: what the answer to a question shows;
//! - [`names`]: definitions, renaming, symbols, hover; [`values`]: the values that a hover shows; [`edits`]: formatting, and fences as edits;
//! - [`lens`]: the line of commands above a program;
//! - [`c`]: C programs, which the command itself checks, in a process of its own.
//!
//! What is absent: nothing here decides anything about a program, and nothing is read from files except answers
//! about C programs.

mod answers;
mod c;
mod capabilities;
mod client;
mod documents;
mod edits;
mod lens;
mod names;
mod places;
mod position;
mod problems;
mod questions;
mod run;
mod server;
mod settings;
mod transport;
mod values;

pub use server::{Config, Ended, serve};
