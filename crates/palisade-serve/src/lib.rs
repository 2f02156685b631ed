//! The playground: a web page on this machine with an editor, the corpus, and the commands that answer questions about one program.
//!
//! The server is written for this purpose: a thread per connection, one request per connection, everything bounded: the size of requests, how long one may take to arrive, the number of
//! connections, of runs at a time and of those that wait, time and memory of each run. A run lives as long as the connection that asked for it: when that is closed, the run is
//! stopped, and nothing of it is left. With [`Server::with_worker`] every run is a process of its own, so that this holds whatever the run does. Requests name no files, and none is read: pages and programs are built in.
//!
//! What is absent: nothing here prints, and no request is remembered.

mod answer;
mod guard;
pub mod http;
mod pages;
mod pool;
mod question;
mod run;
mod server;
mod steps;
mod worker;

pub use server::{Config, Load, Server};
pub use worker::answer_one;
