//! Searches that are shared by several processes, on one machine or on many.
//!
//! *What is absent.* There is no protocol of our own for termination: [timely dataflow][timely] moves the data and
//! knows when all of it has arrived. There is no daemon and no master. All processes run the same program on the same
//! input, and take the same decisions (*SPMD*).
//!
//! *How.* A [`Seat`] is a process's place in the group. Three things are done with it:
//! - [`search()`]: a breadth-first search whose states are shared out by hash;
//! - [`share_out`]: a list of questions that are answered one by one, by whichever process is free;
//! - [`with_help`]: work of one process, for which the others answer questions ahead of time.
//!
//! *Structure*
//!
//! | file | idea |
//! |---|---|
//! | [`connect`] | finding the other processes, comparing versions |
//! | [`call_off`](mod@call_off) | saying that a process does not join them |
//! | [`greeting`] | what they say before they are connected |
//! | [`agree`](mod@agree) | finding out whether all of them were asked the same thing |
//! | [`link`](mod@link) | connections: bytes are counted, and a lost process is noticed |
//! | [`seat`] | the dataflows, and waiting for what is sent through them |
//! | [`share`](mod@share) | the states that one process keeps |
//! | [`search`](mod@search) | the search, and why the answer does not depend on the number of processes |
//! | [`summary`] | what processes exchange after each round |
//! | [`path`](mod@path) | the run to a state that was found, collected over the shares |
//! | [`questions`] | many questions |
//! | [`help`] | questions that come up in the work of one process |
//!
//! *Faults.* There is no recovery: a process that is lost takes its states with it. All others notice within seconds and
//! end with [`Lost`], which says which one was lost.
//!
//! [timely]: https://github.com/TimelyDataflow/timely-dataflow

mod agree;
mod call_off;
mod connect;
mod greeting;
mod help;
mod link;
mod path;
mod questions;
mod search;
mod seat;
mod share;
mod summary;

pub use agree::{Asked, Leaving};
pub use connect::{ConnectError, Meeting, Waiting, fingerprint};
pub use help::{Helpers, Pending, with_help};
pub use questions::share_out;
pub use search::{End, Found, Spread, Stop, search};
pub use seat::{Loss, Lost, Place, Seat, Watch, is_shared, take_part, with_seat};
pub use summary::Part;
