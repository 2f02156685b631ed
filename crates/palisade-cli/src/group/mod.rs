//! Commands that several processes share.
//!
//! All processes of a group run the same command on the same files. Process 0 gives the answer. The others take part in
//! its searches, and print nothing unless there is no complete answer.
//!
//! - `--processes N`: process 0 starts the others ([`local`]).
//! - `--hosts FILE --process I`: someone starts each of them, on its machine ([`hosts`]). One that fails before it joins says so
//!   to the others ([`absent`]).

mod absent;
pub mod hosts;
mod local;
mod question;
mod version;

use crate::args::{Common, GroupArgs};
use crate::exit::Exit;
use crate::output::{Detail, Output};
use crate::{files, interrupt};
pub use absent::{inform_others, inform_others_about};
use local::{Children, Started};
pub use local::{describe as how_it_ended, start_by_cluster};
use palisade::cluster::{Asked, ConnectError, Helpers, Leaving, Lost, Meeting, Place, Seat, Waiting, Watch};
use palisade::engine::Exhausted;
use palisade::{Diagnostic, Reason};
use rustix::process::{Resource, getrlimit};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long to wait for the processes on this machine.
const LOCAL_PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for those on other machines. Somebody has to start them.
const REMOTE_PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for others at the end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often a process other than the first looks whether it is still needed.
const LOOK: Duration = Duration::from_millis(100);
/// How long it may take to end once it is not.
const ENDING: Duration = Duration::from_secs(3);

/// Files that a process has open: those for each process of its group, and all others.
const FILES_PER_PROCESS: u64 = 4;
const FILES: u64 = 32;

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

/// Notices whether processes of the group were lost.
static WATCH: OnceLock<Watch> = OnceLock::new();

impl Group {
    /// Joins the group that the user asks for, if any. If that fails, the command ends. The work is about these files,
    /// which have to be the same in all processes.
    pub fn join(args: &GroupArgs, common: &Common, files: &[&Path], output: &Output) -> Result<Group, Exit> {
        if !args.is_wanted() {
            return Ok(Group { role: Role::Alone, on_this_machine: 1, children: Children::default() });
        }
        // From now on, Ctrl-C ends the waiting for others, too.
        let _ = interrupt::stop_flag();
        let asked = || question::asked(common, files);
        let started = local::started();
        let parent = started.parent();
        let joined = match (&args.hosts, started) {
            (None, Started::Invited(invitation)) => invitation.accept(asked),
            (Some(file), _) => {
                let name = file.display().to_string();
                let addresses = hosts::read(file).map_err(|error| output.refuse_about(&name, error))?;
                let index = args.process.unwrap_or(0);
                if index >= addresses.len() {
                    let message = format!("there is no process {index} in {name}, only {}", addresses.len());
                    let error = Diagnostic::error("no-such-process", message).help("count from 0");
                    return Err(output.refuse_about("--process", error));
                }
                let known = hosts::look_up(&addresses).map_err(|error| output.refuse_about(&name, error))?;
                enough_files("--hosts", addresses.len(), output)?;
                all_there(files, output)?;
                absent::does_not_apply();
                let meeting = hosts_meeting(addresses, index, known);
                join_hosts(&meeting, &Patient { parent, output }, asked)
            }
            (None, _) => {
                let processes = args.processes.unwrap_or(1) as usize;
                enough_files("--processes", processes, output)?;
                local::start(processes, LOCAL_PATIENCE, asked)
            }
        };
        match joined {
            Ok(Joined { place, index, processes, children, asked }) => {
                let role = if index == 0 { Role::Leads } else { Role::Follows };
                end_with_the_group(WATCH.get_or_init(|| place.watch()), role, parent);
                let mut seat = place.sit_down();
                seat.set_asked(asked);
                SEAT.set(Some(seat));
                let on_this_machine = if args.hosts.is_some() { 1 } else { processes };
                Ok(Group { role, on_this_machine, children })
            }
            Err(error @ (ConnectError::Stopped | ConnectError::StoppedElsewhere(_))) => {
                output.complain(&format!("{error}\n"));
                Err(Exit::Unknown)
            }
            Err(error) => Err(output.refuse_about("the other processes", describe(&error))),
        }
    }

    /// What this process does.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Leaves the group at the end of the command, and returns its exit code. Process 0 has the answer. The others end with 0
    /// if it is complete; otherwise, they say why it is not.
    pub fn end(mut self, exit: Exit, output: &Output) -> Exit {
        let lost = lost();
        let left = self.leave(exit != Exit::Unknown);
        if self.role != Role::Follows || exit == Exit::Error {
            return exit;
        }
        if left.is_complete {
            return Exit::Fine;
        }
        let why = match lost.or_else(self::lost) {
            Some(lost) => lost.to_string(),
            None if left.is_stopped || interrupt::is_stopped() => "stopped".to_owned(),
            None => "process 0 has no complete answer".to_owned(),
        };
        output.complain(&unfinished(&why));
        Exit::Unknown
    }

    /// Leaves the group. Returns how the others have left, as far as this process knows.
    fn leave(&mut self, is_complete: bool) -> Leaving {
        // The loss of a process stops the others, too.
        let is_stopped = interrupt::is_stopped() && lost().is_none();
        let how = Leaving { is_stopped, is_complete };
        let Some(seat) = SEAT.take() else { return how };
        seat.leave(how, &interrupt::stop_flag(), FAREWELL)
    }
}

/// What a process other than the first prints if the work was not completed.
fn unfinished(why: &str) -> String {
    format!("the shared work was not completed: {why}\n")
}

/// What happened if a process of the group was lost. On the main thread, the seat knows more than the watch.
pub fn lost() -> Option<Lost> {
    let of_seat = SEAT.with_borrow_mut(|seat| seat.as_mut().and_then(Seat::lost));
    of_seat.or_else(|| WATCH.get().and_then(Watch::lost))
}

/// Why the work ended, if it was stopped. A lost process stops it, too.
pub fn reason(what: Exhausted) -> Reason {
    match lost() {
        Some(lost) if what == Exhausted::Stopped => Reason::Observed(lost.to_string()),
        _ => Reason::Exhausted(what),
    }
}

/// Does work in which searches are shared with the group, if there is one.
pub fn take_part<T>(work: impl FnOnce() -> T) -> T {
    let Some(seat) = SEAT.take() else { return work() };
    let (result, seat) = palisade::cluster::take_part(seat, work);
    SEAT.set(Some(seat));
    result
}

/// Sees to it that this process ends when the group does, even if it works on something alone and does not look up. Process
/// 0 stops its work, and prints what it has. So does a process whose `parent` ends, if another command started it.
fn end_with_the_group(watch: &Watch, role: Role, parent: Option<u32>) {
    let stop = interrupt::stop_flag();
    let watch = watch.clone();
    std::thread::spawn(move || {
        let mut since: Option<Instant> = None;
        loop {
            std::thread::sleep(LOOK);
            let is_alone = local::is_orphan(parent);
            if watch.lost().is_some() || is_alone {
                stop.store(true, Ordering::Relaxed);
            }
            let is_needed = role == Role::Leads && !is_alone;
            let goes_on = is_needed || !stop.load(Ordering::Relaxed);
            if !goes_on && since.get_or_insert_with(Instant::now).elapsed() > ENDING {
                let lost = watch.lost().map_or_else(|| "stopped".to_owned(), |lost| lost.to_string());
                let _ = std::io::stderr().lock().write_all(unfinished(&lost).as_bytes());
                std::process::exit(Exit::Unknown.code().into());
            }
        }
    });
}

/// Does work in process 0 that the others help with. See [`palisade::cluster::with_help`]. `what` is the question, which
/// has to be the same everywhere. Without a group, the work is done alone. Also returns what happened if a process was
/// lost.
pub fn with_help<T: Send>(
    what: &str,
    stop: &AtomicBool,
    work: impl FnOnce(Option<&Helpers>) -> T + Send,
    answer: impl FnMut(&[u8]) -> Vec<u8> + Send,
) -> (Option<T>, Option<String>) {
    let Some(mut seat) = SEAT.take() else { return (Some(work(None)), None) };
    let what = question::of_text(what);
    let work = |helpers: &Helpers| work(Some(helpers));
    let (result, ended) = palisade::cluster::with_help(&mut seat, what, stop, work, answer);
    SEAT.set(Some(seat));
    (result, ended.err().map(|lost| lost.to_string()))
}

/// Answers questions together with the group. See [`palisade::cluster::share_out`]. The answers are texts, so they have to
/// look the same in all processes. If a process is lost, returns what happened.
pub fn share_out(
    common: &Common,
    count: usize,
    stop: &AtomicBool,
    answer: &(dyn Fn(usize) -> Vec<u8> + Sync),
    deliver: &mut dyn FnMut(usize, Vec<u8>) -> bool,
) -> Result<(), String> {
    let mut seat = SEAT.take().expect("a process that shares questions has a seat");
    let looks = question::of_text(&common.asked.looks);
    let shared = palisade::cluster::share_out(&mut seat, looks, count, stop, answer, deliver);
    SEAT.set(Some(seat));
    shared.map_err(|lost| lost.to_string())
}

/// Leaves the group if that has not happened yet, and waits for the processes that this one has started.
impl Drop for Group {
    fn drop(&mut self) {
        self.leave(false);
        self.children.end(FAREWELL);
    }
}

/// Refuses input that only one process can read.
pub fn refuse_standard_input<'p>(
    args: &GroupArgs,
    mut paths: impl Iterator<Item = &'p Path>,
    output: &Output,
) -> Option<Exit> {
    if !args.is_wanted() || !paths.any(|path| path.as_os_str() == "-") {
        return None;
    }
    Some(refuse("-", "standard input cannot be read by several processes", output))
}

/// Refuses an option that does not go together with several processes.
pub fn refuse(option: &str, message: &str, output: &Output) -> Exit {
    let error = Diagnostic::error("not-shared", message).help("leave out --processes or --hosts, or this");
    output.refuse_about(option, error)
}

/// A place in a group.
struct Joined {
    place: Place,
    index: usize,
    processes: usize,
    /// The processes that this one has started.
    children: Children,
    /// What this process was asked.
    asked: Asked,
}

/// The processes of a hosts file, which are on these hosts.
fn hosts_meeting(addresses: Vec<String>, index: usize, hosts: Option<BTreeSet<IpAddr>>) -> Meeting {
    let (version, secret, patience) = (version::version(), "-".to_owned(), REMOTE_PATIENCE);
    Meeting { addresses, index, version, secret, hosts, patience }
}

/// Waits for processes on other machines.
struct Patient<'a> {
    /// The process without which this one is not needed.
    parent: Option<u32>,
    output: &'a Output,
}

impl Waiting for Patient<'_> {
    fn gives_up(&self) -> Option<ConnectError> {
        local::has_parent(self.parent).or_else(asked_to_stop)
    }

    fn ignores(&self, stranger: &str) {
        if self.output.detail == Detail::Verbose {
            self.output.complain(&format!("ignored while waiting for the other processes: {stranger}\n"));
        }
    }
}

fn join_hosts(
    meeting: &Meeting,
    patient: &Patient<'_>,
    asked: impl FnOnce() -> Asked,
) -> Result<Joined, ConnectError> {
    let (index, processes, asked) = (meeting.index, meeting.addresses.len(), asked());
    let streams = meeting.meet(&meeting.listen()?, patient)?;
    let place = Place::connected(streams, index).map_err(ConnectError::Failed)?;
    Ok(Joined { place, index, processes, children: Children::default(), asked })
}

/// Refuses files that this machine does not have. The others would only see that this process does not take part.
fn all_there(files: &[&Path], output: &Output) -> Result<(), Exit> {
    let missing = files.iter().find_map(|path| Some((path, path.metadata().err()?)));
    missing.map_or(Ok(()), |(path, error)| {
        Err(output.refuse_about(&path.display().to_string(), files::unreadable(&error)))
    })
}

/// Refuses a number of processes for which this one cannot have enough connections.
fn enough_files(option: &str, processes: usize, output: &Output) -> Result<(), Exit> {
    let needed = FILES + FILES_PER_PROCESS * processes as u64;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed && processes > 1 => {
            let message =
                format!("{processes} processes need {needed} open files each, and the limit is {limit}");
            let error = Diagnostic::error("too-few-files", message);
            Err(output.refuse_about(option, error.help(format!("raise the limit: ulimit -n {needed}"))))
        }
        _ => Ok(()),
    }
}

/// Why not to wait for others any longer, if the user has asked to stop.
fn asked_to_stop() -> Option<ConnectError> {
    interrupt::is_stopped().then_some(ConnectError::Stopped)
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
        ConnectError::Refused { .. } => ("process-refused", "that process has to be started again, too"),
        ConnectError::Stopped | ConnectError::StoppedElsewhere(_) | ConnectError::Failed(_) => {
            ("not-connected", "try again")
        }
    };
    Diagnostic::error(id, error.to_string()).help(help)
}
