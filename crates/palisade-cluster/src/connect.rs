//! Finding the other processes of the group.
//!
//! *Conventions* are timely's: there is a list with the address of each process. Process i listens at its own address,
//! and connects to all processes before it in the list. There are two differences: strangers are told from members, and
//! nothing is waited for forever.
//!
//! *Greetings.* Both sides of a connection first send one line: who they are, which version of Palisade they run, and how
//! many processes they expect. A version is the version number and a hash of the executable file, because packed states
//! mean the same only to the same program. The group starts to work only after all greetings agree.
//!
//! *What is not protected.* Connections are neither encrypted nor authenticated. Local groups share a secret that other
//! users of the machine do not know, so that nobody else can join. Groups on several machines need a network that only
//! trusted machines can reach.

use rustix::net::sockopt;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait between two attempts to connect.
const RETRY: Duration = Duration::from_millis(50);
/// How long a greeting may take once a connection exists.
const GREETING: Duration = Duration::from_secs(2);
/// The longest greeting.
const MAX_GREETING: usize = 256;
/// A connection without traffic is tested after this time, this often, at these intervals.
const KEEP_ALIVE: (Duration, u32, Duration) = (Duration::from_secs(3), 3, Duration::from_secs(2));
/// How long sent bytes may stay unconfirmed.
const UNCONFIRMED: Duration = Duration::from_secs(10);

/// Whom to meet, and as whom.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// The addresses of all processes.
    pub addresses: Vec<String>,
    /// The index of this process.
    pub index: usize,
    /// The version of this program.
    pub version: String,
    /// What all members know, in hexadecimal digits.
    pub secret: String,
    /// How long to wait for the others.
    pub patience: Duration,
}

/// Why the group did not come together.
#[derive(Debug)]
pub enum ConnectError {
    /// This process cannot listen at its own address.
    CannotListen(String, io::Error),
    /// A process was not reached in time.
    Unreachable {
        /// Its index.
        process: usize,
        /// Its address.
        address: String,
        /// How long it was waited for.
        patience: Duration,
        /// The last error, if there was one.
        error: Option<io::Error>,
    },
    /// A process runs another version.
    OtherVersion {
        /// Its index.
        process: usize,
        /// Its version.
        theirs: String,
        /// The version of this process.
        ours: String,
    },
    /// A process expects another number of processes.
    OtherNumber {
        /// Its index.
        process: usize,
        /// The number that it expects.
        theirs: usize,
        /// The number that this process expects.
        ours: usize,
    },
    /// Two processes have the same index.
    Twice(usize),
    /// The host did not do what was asked of it.
    Failed(io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::CannotListen(address, error) => write!(f, "cannot listen at {address}: {error}"),
            ConnectError::Unreachable { process, address, patience, error } => {
                let seconds = patience.as_secs();
                write!(f, "process {process} at {address} was not reached within {seconds} s")?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
            }
            ConnectError::OtherVersion { process, theirs, ours } => {
                write!(f, "process {process} runs Palisade {theirs}, and this one runs {ours}")
            }
            ConnectError::OtherNumber { process, theirs, ours } => {
                write!(f, "process {process} expects {theirs} processes, and this one expects {ours}")
            }
            ConnectError::Twice(process) => write!(f, "there are two processes with index {process}"),
            ConnectError::Failed(error) => write!(f, "the processes could not be connected: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Meeting {
    /// Listens at this process's own address.
    pub fn listen(&self) -> Result<TcpListener, ConnectError> {
        let address = &self.addresses[self.index];
        TcpListener::bind(address).map_err(|error| ConnectError::CannotListen(address.clone(), error))
    }

    /// Meets all others. Returns the connections in order, with `None` for this process itself.
    pub fn meet(&self, listener: &TcpListener) -> Result<Vec<Option<TcpStream>>, ConnectError> {
        let deadline = Instant::now() + self.patience;
        let (later, earlier) = thread::scope(|scope| {
            let later = scope.spawn(|| self.accept(listener, deadline));
            let earlier: Result<Vec<_>, _> =
                (0..self.index).map(|process| self.connect(process, deadline)).collect();
            (later.join().expect("accepting connections does not panic"), earlier)
        });
        // Another version is the cause, and not being reached a consequence.
        let (earlier, later) = match (earlier, later) {
            (Ok(earlier), Ok(later)) => (earlier, later),
            (Err(error @ ConnectError::Unreachable { .. }), Err(other)) => {
                return Err(if matches!(other, ConnectError::Unreachable { .. }) { error } else { other });
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let streams = earlier.into_iter().map(Some).chain([None]).chain(later.into_iter().map(Some));
        let streams: Vec<Option<TcpStream>> = streams.collect();
        for stream in streams.iter().flatten() {
            notice_loss(stream).map_err(ConnectError::Failed)?;
        }
        Ok(streams)
    }

    /// Connects to a process that comes earlier in the list.
    fn connect(&self, process: usize, deadline: Instant) -> Result<TcpStream, ConnectError> {
        let address = &self.addresses[process];
        let mut last = None;
        while Instant::now() < deadline {
            match self.call(address, deadline) {
                Ok((stream, greeting)) => {
                    return self.check(process, &greeting).map(|_| stream);
                }
                Err(error) => last = Some(error),
            }
            thread::sleep(RETRY);
        }
        Err(self.unreachable(process, last))
    }

    fn call(&self, address: &str, deadline: Instant) -> io::Result<(TcpStream, Greeting)> {
        let left = deadline.saturating_duration_since(Instant::now()).max(RETRY);
        let nowhere = || io::Error::new(io::ErrorKind::NotFound, "there is no such address");
        let address: SocketAddr = address.to_socket_addrs()?.next().ok_or_else(nowhere)?;
        let mut stream = TcpStream::connect_timeout(&address, left.min(GREETING))?;
        self.greet(&mut stream)?;
        let greeting = Greeting::read(&mut stream, self.patience)?;
        Ok((stream, greeting))
    }

    /// Accepts connections from all processes that come later in the list.
    fn accept(&self, listener: &TcpListener, deadline: Instant) -> Result<Vec<TcpStream>, ConnectError> {
        listener.set_nonblocking(true).map_err(ConnectError::Failed)?;
        let first = self.index + 1;
        let mut streams: Vec<Option<TcpStream>> = (first..self.addresses.len()).map(|_| None).collect();
        while let Some(missing) = streams.iter().position(Option::is_none) {
            if Instant::now() >= deadline {
                return Err(self.unreachable(first + missing, None));
            }
            let Ok((mut stream, _)) = listener.accept() else {
                thread::sleep(RETRY);
                continue;
            };
            // A stranger says something else, or nothing.
            let Ok(greeting) = Greeting::read(&mut stream, GREETING) else { continue };
            if greeting.secret != self.secret || self.greet(&mut stream).is_err() {
                continue;
            }
            let process = greeting.index;
            self.check(process, &greeting)?;
            match process.checked_sub(first).and_then(|place| streams.get_mut(place)) {
                Some(place @ None) => *place = Some(stream),
                _ => return Err(ConnectError::Twice(process)),
            }
        }
        Ok(streams.into_iter().flatten().collect())
    }

    fn unreachable(&self, process: usize, error: Option<io::Error>) -> ConnectError {
        let address = self.addresses[process].clone();
        ConnectError::Unreachable { process, address, patience: self.patience, error }
    }

    fn greet(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let Meeting { addresses, index, version, secret, .. } = self;
        let line = format!("palisade {index} {} {secret} {version}\n", addresses.len());
        stream.write_all(line.as_bytes())
    }

    fn check(&self, process: usize, greeting: &Greeting) -> Result<(), ConnectError> {
        if greeting.version != self.version {
            let (theirs, ours) = (greeting.version.clone(), self.version.clone());
            return Err(ConnectError::OtherVersion { process, theirs, ours });
        }
        if greeting.processes != self.addresses.len() {
            let (theirs, ours) = (greeting.processes, self.addresses.len());
            return Err(ConnectError::OtherNumber { process, theirs, ours });
        }
        if greeting.index != process { Err(ConnectError::Twice(greeting.index)) } else { Ok(()) }
    }
}

/// A hash of a file, given in pieces. It tells builds apart, and is not meant to resist anyone.
pub fn fingerprint(pieces: impl Iterator<Item = Vec<u8>>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for piece in pieces {
        let (words, rest) = piece.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for word in words.iter().chain([&last]) {
            hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
    }
    hash
}

/// What a process says first.
struct Greeting {
    index: usize,
    processes: usize,
    secret: String,
    version: String,
}

impl Greeting {
    fn read(stream: &mut TcpStream, patience: Duration) -> io::Result<Greeting> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(patience))?;
        let mut line = Vec::new();
        let mut byte = [0];
        // Byte by byte, because what comes after the line is not ours.
        while line.len() < MAX_GREETING && stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        stream.set_read_timeout(None)?;
        let line = String::from_utf8_lossy(&line);
        Greeting::parse(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not Palisade"))
    }

    fn parse(line: &str) -> Option<Greeting> {
        let mut words = line.strip_prefix("palisade ")?.splitn(4, ' ');
        let index = words.next()?.parse().ok()?;
        let processes = words.next()?.parse().ok()?;
        let secret = words.next()?.to_owned();
        Some(Greeting { index, processes, secret, version: words.next()?.to_owned() })
    }
}

/// Asks the host to notice when the other side is gone: an ended process at once, a machine without network or power
/// within seconds. A process that is only slow is not gone, because its host answers for it.
fn notice_loss(stream: &TcpStream) -> io::Result<()> {
    let (idle, probes, interval) = KEEP_ALIVE;
    sockopt::set_socket_keepalive(stream, true)?;
    #[cfg(target_os = "linux")]
    {
        sockopt::set_tcp_keepidle(stream, idle)?;
        sockopt::set_tcp_keepintvl(stream, interval)?;
        sockopt::set_tcp_keepcnt(stream, probes)?;
        sockopt::set_tcp_user_timeout(stream, UNCONFIRMED.as_millis() as u32)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (idle, probes, interval, UNCONFIRMED);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(addresses: &[String], index: usize, version: &str) -> Meeting {
        let (version, secret) = (version.to_owned(), "00ff".to_owned());
        let patience = Duration::from_secs(10);
        Meeting { addresses: addresses.to_vec(), index, version, secret, patience }
    }

    /// Lets processes with these versions meet.
    fn meet(versions: &[&str]) -> Vec<Result<usize, String>> {
        let listeners: Vec<TcpListener> =
            versions.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("there is a port")).collect();
        let address = |listener: &TcpListener| listener.local_addr().expect("it listens").to_string();
        let addresses: Vec<String> = listeners.iter().map(address).collect();
        thread::scope(|scope| {
            let run = |(index, listener)| {
                let meeting = meeting(&addresses, index, versions[index]);
                scope.spawn(move || meeting.meet(listener))
            };
            let runs: Vec<_> = listeners.iter().enumerate().map(run).collect();
            let runs = runs.into_iter().map(|run| run.join().expect("meeting does not panic"));
            runs.map(|met| met.map(|all| all.iter().flatten().count()).map_err(|e| e.to_string())).collect()
        })
    }

    #[test]
    fn every_byte_counts_for_the_version() {
        let bytes = vec![7_u8; 1000];
        let hash = |bytes: &[u8]| fingerprint(bytes.chunks(96).map(<[u8]>::to_vec));
        for changed in [0, 95, 96, 999] {
            let mut other = bytes.clone();
            other[changed] ^= 1;
            assert_ne!(hash(&other), hash(&bytes), "byte {changed}");
        }
    }

    #[test]
    fn all_meet_all_others() {
        for processes in 1..=4 {
            assert_eq!(meet(&vec!["1.0 a"; processes]), vec![Ok(processes - 1); processes]);
        }
    }

    #[test]
    fn versions_are_compared_before_work_begins() {
        let met = meet(&["1.0 a", "1.0 b"]);
        assert_eq!(met[0], Err("process 1 runs Palisade 1.0 b, and this one runs 1.0 a".to_owned()));
        assert_eq!(met[1], Err("process 0 runs Palisade 1.0 a, and this one runs 1.0 b".to_owned()));
    }

    #[test]
    fn strangers_are_not_let_in() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it listens").to_string();
        let nobody = "127.0.0.1:1".to_owned();
        let addresses = vec![address.clone(), nobody];
        let first = Meeting { patience: Duration::from_millis(300), ..meeting(&addresses, 0, "1") };
        let met = thread::scope(|scope| {
            let met = scope.spawn(|| first.meet(&listener));
            let mut stranger = TcpStream::connect(&address).expect("it listens");
            stranger.write_all(b"palisade 1 2 wrong 1\n").expect("it reads");
            let mut noise = TcpStream::connect(&address).expect("it listens");
            noise.write_all(b"GET / HTTP/1.1\n").expect("it reads");
            met.join().expect("meeting does not panic")
        });
        assert!(matches!(met, Err(ConnectError::Unreachable { process: 1, .. })), "{met:?}");
    }
}
