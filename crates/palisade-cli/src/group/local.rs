//! A group on this machine: process 0 starts the others.
//!
//! Process 0 opens a port on the loopback interface for each of them, and passes it on as their standard input. So there
//! is no port to guess, and no moment at which somebody else could take it. The addresses of the others, and a secret
//! that other users of the machine do not know, are in the environment.
//!
//! *No orphans.* A process whose connection to another one breaks ends by itself. In addition, process 0 ends those that
//! it has started when it ends. They know its process id, and end if it is not their parent any more.

use super::{Joined, version};
use crate::exit::Exit;
use palisade::cluster::{Asked, ConnectError, Meeting, Place};
use rustix::net::sockopt;
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{ExitStatusExt, parent_id};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The variable that says which process of the group this is.
const INVITATION: &str = palisade::harness::process::GROUP_INVITATION;
/// What it says in processes that `palisade cluster --start` starts, before the process id of that command.
const BY_CLUSTER: &str = "by ";
/// How often to look whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

/// The processes that this one has started.
#[derive(Default)]
pub struct Children {
    children: Vec<Child>,
}

impl Children {
    /// Waits until all have ended, and ends those that take too long.
    pub fn end(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while self.children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) {
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(LOOK);
        }
        for mut child in self.children.drain(..) {
            // One that has ended is not there to be ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// What became of the first process that has ended although it should not have.
    fn ended_early(&mut self) -> Option<(usize, ExitStatus)> {
        let ended = |(index, child): (usize, &mut Child)| Some((index + 1, child.try_wait().ok()??));
        self.children.iter_mut().enumerate().find_map(ended)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Starts this command in further processes, so that there are `processes` of them.
pub fn start(
    processes: usize,
    patience: Duration,
    asked: impl FnOnce() -> Asked,
) -> Result<Joined, ConnectError> {
    if processes == 1 {
        let (place, asked) = (Place::alone(), asked());
        return Ok(Joined { place, index: 0, processes: 1, children: Children::default(), asked });
    }
    let listen = |_| TcpListener::bind("127.0.0.1:0");
    let listeners: Vec<TcpListener> =
        (0..processes).map(listen).collect::<Result<_, _>>().map_err(ConnectError::Failed)?;
    let address = |listener: &TcpListener| Ok(listener.local_addr()?.to_string());
    let addresses: Vec<String> =
        listeners.iter().map(address).collect::<io::Result<_>>().map_err(ConnectError::Failed)?;
    let secret = secret().map_err(ConnectError::Failed)?;
    let mut children = Children::default();
    let mut listeners = listeners.into_iter();
    let own = listeners.next().expect("there is at least one process");
    for (listener, index) in listeners.zip(1..) {
        let invitation = format!("{index} {secret} {} {}", std::process::id(), addresses.join(" "));
        let child = Command::new(executable())
            .args(std::env::args_os().skip(1))
            .env(INVITATION, invitation)
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(ConnectError::Failed)?;
        children.children.push(child);
    }
    let asked = asked();
    let version = version::version();
    let meeting = Meeting { addresses, index: 0, version, secret, hosts: None, patience };
    let started = Mutex::new(&mut children);
    let gives_up = || {
        let ended = started.lock().unwrap_or_else(PoisonError::into_inner).ended_early();
        let ended = ended.map(|(process, status)| match status.code() {
            // It was stopped before it could say so to anyone.
            Some(code) if code == i32::from(Exit::Unknown.code()) => ConnectError::StoppedElsewhere(process),
            _ => ConnectError::Failed(io::Error::other(format!("process {process} {}", describe(status)))),
        });
        ended.or_else(super::asked_to_stop)
    };
    let streams = meeting.meet(&own, &gives_up)?;
    let place = Place::connected(streams, 0).map_err(ConnectError::Failed)?;
    Ok(Joined { place, index: 0, processes, children, asked })
}

/// An invitation to a group.
pub struct Invitation {
    index: usize,
    secret: String,
    parent: u32,
    addresses: Vec<String>,
}

/// Which command has started this process.
pub enum Started {
    /// One that the user has typed.
    ByUser,
    /// Process 0 of a group on this machine.
    Invited(Invitation),
    /// `palisade cluster --start`.
    ByCluster(u32),
}

impl Started {
    /// The process without which this one is not needed.
    pub fn parent(&self) -> Option<u32> {
        match self {
            Started::ByUser => None,
            Started::Invited(Invitation { parent, .. }) | Started::ByCluster(parent) => Some(*parent),
        }
    }
}

/// What the environment says about who has started this process. Variables may be left over, so an invitation counts only
/// together with the port that comes with it.
pub fn started() -> Started {
    let text = std::env::var(INVITATION).unwrap_or_default();
    if let Some(parent) = text.strip_prefix(BY_CLUSTER).and_then(|parent| parent.parse().ok()) {
        return Started::ByCluster(parent);
    }
    let invitation = || {
        let mut words = text.split(' ').map(str::to_owned);
        let (index, secret) = (words.next()?.parse().ok()?, words.next()?);
        let parent = words.next()?.parse().ok()?;
        let addresses: Vec<String> = words.collect();
        (index < addresses.len()).then_some(Invitation { index, secret, parent, addresses })
    };
    let has_port = || sockopt::socket_acceptconn(io::stdin()).unwrap_or(false);
    invitation().filter(|_| has_port()).map_or(Started::ByUser, Started::Invited)
}

/// Lets a process that is started by `palisade cluster --start` end with it.
pub fn start_by_cluster(command: &mut Command) -> &mut Command {
    command.env(INVITATION, format!("{BY_CLUSTER}{}", std::process::id()))
}

/// Whether the process without which this one is not needed has ended.
pub fn is_orphan(parent: Option<u32>) -> bool {
    parent.is_some_and(|parent| parent_id() != parent)
}

/// Why not to wait for others any longer, if the process that started this one has ended.
pub fn has_parent(parent: Option<u32>) -> Option<ConnectError> {
    let ended = || ConnectError::Failed(io::Error::other("the process that started this one has ended"));
    is_orphan(parent).then(ended)
}

impl Invitation {
    pub fn accept(self, asked: impl FnOnce() -> Asked) -> Result<Joined, ConnectError> {
        let listener = io::stdin().as_fd().try_clone_to_owned().map_err(ConnectError::Failed)?;
        let listener = TcpListener::from(listener);
        let Invitation { index, secret, parent, addresses } = self;
        let (processes, asked) = (addresses.len(), asked());
        let patience = super::LOCAL_PATIENCE;
        let version = version::version();
        let meeting = Meeting { addresses, index, version, secret, hosts: None, patience };
        let gives_up = || has_parent(Some(parent)).or_else(super::asked_to_stop);
        let streams = meeting.meet(&listener, &gives_up)?;
        let place = Place::connected(streams, index).map_err(ConnectError::Failed)?;
        Ok(Joined { place, index, processes, children: Children::default(), asked })
    }
}

/// The file of this program, even if it has been replaced since.
fn executable() -> std::path::PathBuf {
    let own = std::path::PathBuf::from("/proc/self/exe");
    if own.exists() { own } else { std::env::current_exe().unwrap_or_else(|_| "palisade".into()) }
}

/// Random digits.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// How a process ended, in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
