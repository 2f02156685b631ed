//! A group on this machine: process 0 starts the others.
//!
//! Process 0 opens a port on the loopback interface for each of them, and passes it on as their standard input. So there
//! is no port to guess, and no moment at which somebody else could take it. Who the others are, and a secret that other
//! users of the machine do not know, is in the environment.
//!
//! *No orphans.* A process whose connection to another one breaks ends by itself. In addition, process 0 ends those that
//! it has started when it ends.

use super::{Joined, version};
use palisade::cluster::{ConnectError, Meeting, Place};
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Tells a process who it is.
const INVITATION: &str = "PALISADE_GROUP";
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
pub fn start(processes: usize, patience: Duration) -> Result<Joined, ConnectError> {
    if processes == 1 {
        return Ok(Joined { place: Place::alone(), index: 0, processes: 1, children: Children::default() });
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
        let invitation = format!("{index} {secret} {}", addresses.join(" "));
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
    let meeting = Meeting { addresses, index: 0, version: version::version(), secret, patience };
    let streams = meeting.meet(&own).map_err(|error| match children.ended_early() {
        Some((process, status)) => {
            ConnectError::Failed(io::Error::other(format!("process {process} {}", describe(status))))
        }
        None => error,
    })?;
    let place = Place::connected(streams, 0).map_err(ConnectError::Failed)?;
    Ok(Joined { place, index: 0, processes, children })
}

/// An invitation to a group.
pub struct Invitation {
    index: usize,
    secret: String,
    addresses: Vec<String>,
}

/// The invitation in the environment, if this process was started by process 0.
pub fn invitation() -> Option<Invitation> {
    let text = std::env::var(INVITATION).ok()?;
    let mut words = text.split(' ').map(str::to_owned);
    let (index, secret) = (words.next()?.parse().ok()?, words.next()?);
    Some(Invitation { index, secret, addresses: words.collect() })
}

impl Invitation {
    pub fn accept(self) -> Result<Joined, ConnectError> {
        let listener = io::stdin().as_fd().try_clone_to_owned().map_err(ConnectError::Failed)?;
        let listener = TcpListener::from(listener);
        let Invitation { index, secret, addresses } = self;
        let processes = addresses.len();
        let patience = super::LOCAL_PATIENCE;
        let meeting = Meeting { addresses, index, version: version::version(), secret, patience };
        let streams = meeting.meet(&listener)?;
        let place = Place::connected(streams, index).map_err(ConnectError::Failed)?;
        Ok(Joined { place, index, processes, children: Children::default() })
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
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
