//! Finding the other processes of the group.
//!
//! *Conventions* are timely's: there is a list with the address of each process. Process i listens at its own address,
//! and connects to all processes before it in the list. There are two differences: strangers are kept out, and
//! nothing is waited for forever.
//!
//! *Greetings.* Both sides of a connection first send one line: which process they are, which version of Palisade they
//! run, and how many processes they expect ([`crate::greeting`]). A version is the version number and a hash of the
//! executable file, because packed states mean the same only to the same program. The group starts to work only after all
//! greetings agree, and all processes have said that they have met all others.
//!
//! *Refusals.* A process that gives up says why to all that it is connected to, so that they end with the same reason, and do
//! not wait until their time is up.
//!
//! *Strangers.* All connections are handled at the same time, and none of them is waited for. A greeting has to arrive as a
//! whole within [`GREETING`]. So a stranger that says nothing, or says it slowly, keeps nobody from meeting. Neither does one
//! that is not Palisade, or that disagrees about the version or the number of processes, unless it runs on a host of the
//! group: then it is one of the processes, and the group cannot work.
//!
//! *What is not protected.* Connections are neither encrypted nor authenticated. Local groups share a secret that other
//! users of the machine do not know, so that nobody else can join. Groups on several machines need a network that only
//! trusted machines can reach.

use crate::greeting::{Greeting, Heard, Talk, Word, not_palisade};
use rustix::net::sockopt;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait between two attempts to connect.
pub(crate) const RETRY: Duration = Duration::from_millis(50);
/// How often to look for connections and lines.
const LOOK: Duration = Duration::from_millis(5);
/// How long a greeting may take once a connection exists.
const GREETING: Duration = Duration::from_secs(2);
/// How many connections without a greeting there may be. If there are more, the oldest one is closed.
const MAX_STRANGERS: usize = 64;
/// How many processes are called at a time.
const MAX_CALLS: usize = 8;
/// A connection without traffic is tested after this time, this often, at these intervals.
const KEEP_ALIVE: (Duration, u32, Duration) = (Duration::from_secs(3), 3, Duration::from_secs(2));
/// How long sent bytes may stay unconfirmed.
const UNCONFIRMED: Duration = Duration::from_secs(10);

/// The processes to meet, and which of them this one is.
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
    /// The hosts that processes of the group run on, or `None` if any host may be one of them. What a process on another
    /// host says counts only if it is one of the group, by its version and the number of processes.
    pub hosts: Option<BTreeSet<IpAddr>>,
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
    /// A process cannot take part.
    Refused {
        /// Its index.
        process: usize,
        /// What it says about that.
        why: String,
    },
    /// The user asked this process to stop.
    Stopped,
    /// The user asked another process to stop.
    StoppedElsewhere(usize),
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
            ConnectError::Refused { process, why } => write!(f, "process {process} cannot take part: {why}"),
            ConnectError::Stopped => f.write_str("stopped before the processes were connected"),
            ConnectError::StoppedElsewhere(process) => {
                write!(f, "process {process} was stopped before the processes were connected")
            }
            ConnectError::Failed(error) => write!(f, "the processes could not be connected: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Whoever waits for the group to come together.
pub trait Waiting: Sync {
    /// Why not to wait for others any longer, if there is a reason.
    fn gives_up(&self) -> Option<ConnectError>;

    /// A stranger was ignored: who it is, and why.
    fn ignores(&self, stranger: &str) {
        let _ = stranger;
    }
}

impl<F: Fn() -> Option<ConnectError> + Sync> Waiting for F {
    fn gives_up(&self) -> Option<ConnectError> {
        self()
    }
}

impl Meeting {
    /// Listens at this process's own address. If that fails, the others are informed.
    pub fn listen(&self) -> Result<TcpListener, ConnectError> {
        let address = &self.addresses[self.index];
        TcpListener::bind(address).map_err(|error| {
            let error = ConnectError::CannotListen(address.clone(), error);
            self.say_to_everyone(&self.word(&error));
            error
        })
    }

    /// Meets all others. Returns the connections in order, with `None` for this process itself. While it waits for them,
    /// `waiting` is asked whether to go on.
    pub fn meet(
        &self,
        listener: &TcpListener,
        waiting: &dyn Waiting,
    ) -> Result<Vec<Option<TcpStream>>, ConnectError> {
        listener.set_nonblocking(true).map_err(ConnectError::Failed)?;
        let mut gathering = Gathering::new(self, waiting);
        if let Err(error) = gathering.come_together(listener) {
            gathering.refuse(&error);
            return Err(error);
        }
        let streams = gathering.into_streams().map_err(ConnectError::Failed)?;
        for stream in streams.iter().flatten() {
            notice_loss(stream).map_err(ConnectError::Failed)?;
        }
        Ok(streams)
    }

    pub(crate) fn greeting(&self) -> Greeting {
        let Meeting { addresses, index, version, secret, .. } = self;
        let (secret, version) = (secret.clone(), version.clone());
        Greeting { index: *index, processes: addresses.len(), secret, version }
    }

    /// Whether a process of the group may call from this address.
    fn lists(&self, caller: Option<SocketAddr>) -> bool {
        let is_listed = |caller: SocketAddr| {
            self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&caller.ip().to_canonical()))
        };
        caller.is_some_and(is_listed)
    }

    fn check(&self, greeting: &Greeting) -> Result<(), ConnectError> {
        let process = greeting.index;
        if greeting.version != self.version {
            let (theirs, ours) = (greeting.version.clone(), self.version.clone());
            return Err(ConnectError::OtherVersion { process, theirs, ours });
        }
        if greeting.processes != self.addresses.len() {
            let (theirs, ours) = (greeting.processes, self.addresses.len());
            return Err(ConnectError::OtherNumber { process, theirs, ours });
        }
        Ok(())
    }
}

/// How far this process is with another one.
enum Contact {
    /// There is no connection. The next attempt is not made before this time, if this process is the one that calls.
    Absent(Instant),
    /// A connection is being made.
    Called,
    /// There is a connection, and the other side has not answered the greeting.
    Greeted(Talk),
    /// Both have greeted.
    Met(Talk),
    /// The other one has met everyone. What comes next on this connection is not ours.
    Ready(Talk),
}

impl Contact {
    fn is_met(&self) -> bool {
        matches!(self, Contact::Met(_) | Contact::Ready(_))
    }

    fn is_ready(&self) -> bool {
        matches!(self, Contact::Ready(_))
    }
}

type Call = (usize, io::Result<TcpStream>);

/// A group that is coming together, as one process sees it.
struct Gathering<'m> {
    meeting: &'m Meeting,
    waiting: &'m dyn Waiting,
    /// One for each process. That of this process itself stays absent.
    contacts: Vec<Contact>,
    /// The last error of each process.
    errors: Vec<Option<io::Error>>,
    /// Connections whose other sides have not said who they are.
    strangers: Vec<Talk>,
    /// Processes that called although it was not their turn. They have something to say about that.
    uninvited: Vec<Talk>,
    calls: (Sender<Call>, Receiver<Call>),
    has_said_ready: bool,
}

impl<'m> Gathering<'m> {
    fn new(meeting: &'m Meeting, waiting: &'m dyn Waiting) -> Gathering<'m> {
        let now = Instant::now();
        Gathering {
            meeting,
            waiting,
            contacts: meeting.addresses.iter().map(|_| Contact::Absent(now)).collect(),
            errors: meeting.addresses.iter().map(|_| None).collect(),
            strangers: Vec::new(),
            uninvited: Vec::new(),
            calls: channel(),
            has_said_ready: false,
        }
    }

    fn come_together(&mut self, listener: &TcpListener) -> Result<(), ConnectError> {
        let deadline = Instant::now() + self.meeting.patience;
        loop {
            self.listen()?;
            self.accept(listener)?;
            self.call(deadline);
            let own = self.meeting.index;
            let others = || self.contacts.iter().enumerate().filter(|(process, _)| *process != own);
            let all_met = others().all(|(_, contact)| contact.is_met());
            if all_met && !self.has_said_ready {
                self.has_said_ready = true;
                self.say_to_all(&Word::Ready);
                continue;
            }
            let missing = |is_met: fn(&Contact) -> bool| {
                let others = others().filter(|(_, contact)| !is_met(contact));
                others.map(|(process, _)| process).next()
            };
            let Some(missing) = missing(Contact::is_met).or_else(|| missing(Contact::is_ready)) else {
                return Ok(());
            };
            self.waiting.gives_up().map_or(Ok(()), Err)?;
            // One that was met and is not ready is about to say why.
            let grace = if all_met { GREETING } else { Duration::ZERO };
            if Instant::now() >= deadline + grace {
                return Err(self.unreachable(missing));
            }
            thread::sleep(LOOK);
        }
    }

    fn unreachable(&mut self, process: usize) -> ConnectError {
        let (address, patience) = (self.meeting.addresses[process].clone(), self.meeting.patience);
        ConnectError::Unreachable { process, address, patience, error: self.errors[process].take() }
    }

    /// Reads what has arrived from processes that are known.
    fn listen(&mut self) -> Result<(), ConnectError> {
        let mut uninvited = std::mem::take(&mut self.uninvited);
        for talk in &mut uninvited {
            if let Heard::Line(line) = talk.listen() {
                refusal(Word::parse(&line))?;
            }
        }
        uninvited.retain(|talk| talk.since.elapsed() < GREETING);
        self.uninvited = uninvited;
        for process in 0..self.contacts.len() {
            let retry = Contact::Absent(Instant::now() + RETRY);
            let contact = std::mem::replace(&mut self.contacts[process], retry);
            self.contacts[process] = match contact {
                Contact::Greeted(mut talk) => match talk.listen() {
                    Heard::Nothing => Contact::Greeted(talk),
                    Heard::Line(line) => match self.of_group(&line) {
                        Some(greeting) => {
                            self.meeting.check(&greeting)?;
                            if greeting.index != process {
                                return Err(ConnectError::Twice(greeting.index));
                            }
                            Contact::Met(talk)
                        }
                        None => self.lose(process, not_palisade()),
                    },
                    Heard::Ended(error) => self.lose(process, error),
                },
                Contact::Met(mut talk) => match talk.listen() {
                    Heard::Nothing => Contact::Met(talk),
                    Heard::Line(line) => {
                        let word = Word::parse(&line);
                        let is_ready = word == Some(Word::Ready);
                        refusal(word)?;
                        if is_ready { Contact::Ready(talk) } else { self.lose(process, not_palisade()) }
                    }
                    Heard::Ended(_) if self.has_said_ready => {
                        // The others count on it, so it cannot come back.
                        let why = "it ended before the processes were connected".to_owned();
                        return Err(ConnectError::Refused { process, why });
                    }
                    Heard::Ended(error) => self.lose(process, error),
                },
                other => other,
            };
        }
        Ok(())
    }

    /// There is no connection to a process any more. It may come back.
    fn lose(&mut self, process: usize, error: io::Error) -> Contact {
        self.errors[process] = Some(error);
        Contact::Absent(Instant::now() + RETRY)
    }

    /// A greeting, if it is one of this group.
    fn of_group(&self, line: &str) -> Option<Greeting> {
        Greeting::parse(line).filter(|greeting| greeting.secret == self.meeting.secret)
    }

    /// Accepts connections, and reads what strangers have said so far.
    fn accept(&mut self, listener: &TcpListener) -> Result<(), ConnectError> {
        while let Ok((stream, _)) = listener.accept() {
            self.strangers.extend(Talk::new(stream));
            let surplus = self.strangers.len().saturating_sub(MAX_STRANGERS);
            for stranger in self.strangers.drain(..surplus) {
                self.waiting
                    .ignores(&format!("{} has not said who it is, and others call", stranger.caller()));
            }
            if self.strangers.len() == MAX_STRANGERS {
                // Those that have something to say have said it by the next look.
                break;
            }
        }
        for mut talk in std::mem::take(&mut self.strangers) {
            match talk.listen() {
                Heard::Nothing if talk.since.elapsed() < GREETING => self.strangers.push(talk),
                Heard::Nothing => self.ignore(&talk, "has not said who it is"),
                Heard::Ended(error) => self.ignore(&talk, &format!("has not said who it is: {error}")),
                Heard::Line(line) => match (self.of_group(&line), Greeting::parse(&line)) {
                    (Some(greeting), _) => self.welcome(talk, &greeting)?,
                    (None, Some(_)) => self.ignore(&talk, "belongs to another group"),
                    (None, None) => self.ignore(&talk, "is not Palisade"),
                },
            }
        }
        Ok(())
    }

    fn ignore(&self, stranger: &Talk, why: &str) {
        self.waiting.ignores(&format!("{} {why}", stranger.caller()));
    }

    /// A process has called and greeted.
    fn welcome(&mut self, mut talk: Talk, greeting: &Greeting) -> Result<(), ConnectError> {
        let process = greeting.index;
        if talk.say(&self.meeting.greeting().line()).is_err() {
            return Ok(());
        }
        let agrees = self.meeting.check(greeting);
        if let Err(error) = &agrees
            && !self.meeting.lists(talk.peer)
        {
            let why = format!("is not on a host of the group, and does not belong to it: {error}");
            self.ignore(&talk, &why);
            if let Some(last) = self.errors.get_mut(process) {
                *last = Some(io::Error::other(format!("{} {why}", talk.caller())));
            }
            return Ok(());
        }
        let checked = agrees.and_then(|()| match self.contacts.get(process) {
            Some(Contact::Absent(_)) if process > self.meeting.index => Ok(()),
            Some(_) if process < self.meeting.index => Ok(()),
            _ => Err(ConnectError::Twice(process)),
        });
        match checked {
            Ok(()) if process < self.meeting.index => self.uninvited.push(talk),
            Ok(()) => self.contacts[process] = Contact::Met(talk),
            Err(_) => self.uninvited.push(talk),
        }
        checked
    }

    /// Calls processes that come earlier in the list.
    fn call(&mut self, deadline: Instant) {
        while let Ok((process, stream)) = self.calls.1.try_recv() {
            let talk = stream.and_then(Talk::new);
            let greeted = talk.and_then(|mut talk| {
                talk.say(&self.meeting.greeting().line())?;
                Ok(talk)
            });
            self.contacts[process] = match greeted {
                Ok(talk) => Contact::Greeted(talk),
                Err(error) => self.lose(process, error),
            };
        }
        let now = Instant::now();
        let patience = deadline.saturating_duration_since(now).clamp(RETRY, GREETING);
        let mut calls = self.contacts.iter().filter(|contact| matches!(contact, Contact::Called)).count();
        for process in 0..self.meeting.index {
            let is_due = matches!(&self.contacts[process], Contact::Absent(next) if *next <= now);
            if !is_due || calls == MAX_CALLS {
                continue;
            }
            let (address, sender) = (self.meeting.addresses[process].clone(), self.calls.0.clone());
            // Nobody waits for this thread: looking up a name may take long.
            let calling = move || _ = sender.send((process, call(&address, patience)));
            self.contacts[process] = match thread::Builder::new().spawn(calling) {
                Ok(_) => Contact::Called,
                Err(error) => self.lose(process, error),
            };
            calls += 1;
        }
    }

    fn talks(&mut self) -> impl Iterator<Item = &mut Talk> {
        let known = self.contacts.iter_mut().filter_map(|contact| match contact {
            Contact::Greeted(talk) | Contact::Met(talk) | Contact::Ready(talk) => Some(talk),
            Contact::Absent(_) | Contact::Called => None,
        });
        known.chain(&mut self.uninvited)
    }

    fn say_to_all(&mut self, word: &Word) {
        // One that does not hear it has ended, which is noticed in another place.
        self.talks().for_each(|talk| _ = talk.say(&word.line()));
    }

    /// Says why this process gives up. After it has said that it is ready, the others may have begun to work, and notice
    /// that the connection ends.
    fn refuse(&mut self, error: &ConnectError) {
        if !self.has_said_ready {
            self.say_to_all(&self.meeting.word(error));
        }
    }

    fn into_streams(self) -> io::Result<Vec<Option<TcpStream>>> {
        let stream = |contact| match contact {
            Contact::Ready(talk) => talk.into_stream().map(Some),
            _ => Ok(None),
        };
        self.contacts.into_iter().map(stream).collect()
    }
}

/// Fails if a process says that the group does not come together.
fn refusal(word: Option<Word>) -> Result<(), ConnectError> {
    match word {
        Some(Word::Refused(process, why)) => Err(ConnectError::Refused { process, why }),
        Some(Word::Stopped(process)) => Err(ConnectError::StoppedElsewhere(process)),
        Some(Word::Ready) | None => Ok(()),
    }
}

/// Connects to an address.
pub(crate) fn call(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let nowhere = || io::Error::new(io::ErrorKind::NotFound, "there is no such address");
    let address: SocketAddr = address.to_socket_addrs()?.next().ok_or_else(nowhere)?;
    let stream = TcpStream::connect_timeout(&address, patience)?;
    // If nobody listens at a port of this machine, the host may connect a socket with itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens there"));
    }
    Ok(stream)
}

/// A hash of a file, given in pieces. It distinguishes builds, and does not resist an attacker.
pub fn fingerprint(pieces: &mut dyn Iterator<Item = Vec<u8>>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for piece in pieces {
        let mut take = |word: [u8; 8]| {
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        };
        let (words, rest) = piece.as_chunks::<8>();
        words.iter().for_each(|word| take(*word));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        take(last);
    }
    hash
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
mod tests;
