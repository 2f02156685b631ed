//! The playground: a web page on this machine with an editor, the corpus, and the commands that answer
//! questions about one program.
//!
//! The server is written for this purpose: one thread and one request per connection. Everything is bounded:
//! the size of requests and the time they may take to arrive, the number of connections, of runs at a time
//! and of waiting runs, and the time and memory of each run.
//!
//! A run lives as long as the connection that asked for it. When the connection is closed, the run is stopped
//! and leaves nothing behind. With [`Server::with_worker`] every run is a separate process, so this holds
//! whatever the run does. Requests do not name files, and none is read: pages and programs are built in. C programs are
//! read by a function that is passed in, if at all.
//!
//! Nothing here prints, and no request is remembered.

mod answer;
mod compare;
mod examples;
mod fences;
mod guard;
pub mod http;
mod pages;
mod pool;
mod problems;
mod question;
mod run;
mod server;
mod steps;
mod worker;

pub use answer::{Globals, ReadC};
pub use server::{Config, Load, Server};
pub use worker::answer_one;

use palisade::c::{Unsettled, settle};
use palisade::{Input, Limits, Model, Reason, Threads};

/// Finds how much room the runs of a C program need. Returns what is not known.
fn settled(
    input: &mut Input,
    model: Model,
    threads: Threads,
    limits: &Limits,
) -> Result<Option<Reason>, String> {
    let unsettled = settle(input, model, threads, limits).map_err(|error| error.to_string())?;
    Ok(unsettled.map(Unsettled::reason))
}
