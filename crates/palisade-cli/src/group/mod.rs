//! Commands that several processes share.
//!
//! All processes of a group run the same command on the same files. Process 0 gives the answer. The others take part in
//! its searches, and print nothing.
//!
//! - `--processes N`: process 0 starts the others ([`local`]).
//! - `--hosts FILE --process I`: someone starts each of them, on its machine ([`hosts`]).

pub mod hosts;
mod local;
mod version;

use crate::args::GroupArgs;
use crate::exit::Exit;
use crate::output::Output;
use local::Children;
use palisade::Diagnostic;
use palisade::cluster::{ConnectError, Meeting, Place, Seat};
use std::cell::RefCell;
use std::time::Duration;

/// How long to wait for the processes on this machine.
const LOCAL_PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for those on other machines. Somebody has to start them.
const REMOTE_PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for others at the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// What this process does for the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Everything.
    Alone,
    /// It shares the work with others, and gives the answer.
    Leads,
    /// It shares the work.
    Follows,
}

/// This process's membership in a group, until it is dropped. It belongs to the main thread.
pub struct Group {
    role: Role,
    /// How many processes share this machine.
    pub on_this_machine: usize,
    children: Children,
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

impl Group {
    /// Joins the group that the user asks for, if any. If that fails, the command ends.
    pub fn join(args: &GroupArgs, output: &Output) -> Result<Group, Exit> {
        if !args.is_wanted() {
            return Ok(Group { role: Role::Alone, on_this_machine: 1, children: Children::default() });
        }
        let joined = match (&args.hosts, local::invitation()) {
            (_, Some(invited)) => invited.accept(),
            (Some(file), None) => {
                let name = file.display().to_string();
                let addresses = hosts::read(file).map_err(|error| output.refuse_about(&name, error))?;
                let index = args.process.unwrap_or(0);
                if index >= addresses.len() {
                    let message = format!("there is no process {index} in {name}, only {}", addresses.len());
                    let error = Diagnostic::error("no-such-process", message).help("count from 0");
                    return Err(output.refuse_about("--process", error));
                }
                join_hosts(addresses, index)
            }
            (None, None) => local::start(args.processes.unwrap_or(1) as usize, LOCAL_PATIENCE),
        };
        match joined {
            Ok(Joined { place, index, processes, children }) => {
                SEAT.set(Some(place.sit_down()));
                let role = if index == 0 { Role::Leads } else { Role::Follows };
                let on_this_machine = if args.hosts.is_some() { 1 } else { processes };
                Ok(Group { role, on_this_machine, children })
            }
            Err(error) => Err(output.refuse_about("the other processes", describe(&error))),
        }
    }

    /// What this process does.
    pub fn role(&self) -> Role {
        self.role
    }
}

/// Does work in which searches are shared with the group, if there is one.
pub fn take_part<T>(work: impl FnOnce() -> T) -> T {
    let Some(seat) = SEAT.take() else { return work() };
    let (result, seat) = palisade::cluster::take_part(seat, work);
    SEAT.set(Some(seat));
    result
}

/// Answers questions together with the group. See [`palisade::cluster::share_out`]. If a process is lost, returns what
/// happened.
pub fn share_out(
    count: usize,
    answer: &(dyn Fn(usize) -> Vec<u8> + Sync),
    deliver: &mut dyn FnMut(usize, Vec<u8>) -> bool,
) -> Result<(), String> {
    let mut seat = SEAT.take().expect("a process that shares questions has a seat");
    let shared = palisade::cluster::share_out(&mut seat, count, answer, deliver);
    SEAT.set(Some(seat));
    shared.map_err(|lost| lost.to_string())
}

/// What ends a group: the others are told, and those that this process has started are waited for.
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(seat) = SEAT.take() {
            // With a lost process, there is nobody to say goodbye to.
            match seat.check() {
                Ok(()) => seat.leave(FAREWELL),
                Err(_) => drop(seat),
            }
        }
        self.children.end(FAREWELL);
    }
}

/// A place in a group.
struct Joined {
    place: Place,
    index: usize,
    processes: usize,
    /// The processes that this one has started.
    children: Children,
}

fn join_hosts(addresses: Vec<String>, index: usize) -> Result<Joined, ConnectError> {
    let processes = addresses.len();
    let (version, secret, patience) = (version::version(), "-".to_owned(), REMOTE_PATIENCE);
    let meeting = Meeting { addresses, index, version, secret, patience };
    let streams = meeting.meet(&meeting.listen()?)?;
    let place = Place::connected(streams, index).map_err(ConnectError::Failed)?;
    Ok(Joined { place, index, processes, children: Children::default() })
}

/// An error as a diagnostic: what happened, and what to do.
fn describe(error: &ConnectError) -> Diagnostic {
    let (id, help) = match error {
        ConnectError::CannotListen(..) => {
            ("cannot-listen", "the address has to be one of this machine, with a port that is free")
        }
        ConnectError::Unreachable { .. } => {
            ("process-unreachable", "start every process, and check the addresses and the firewall")
        }
        ConnectError::OtherVersion { .. } => (
            "other-version",
            "install the same file on every machine: packed states mean the same only to it",
        ),
        ConnectError::OtherNumber { .. } | ConnectError::Twice(_) => {
            ("other-group", "use the same hosts file everywhere, and a different --process for each process")
        }
        ConnectError::Failed(_) => ("not-connected", "try again"),
    };
    Diagnostic::error(id, error.to_string()).help(help)
}
