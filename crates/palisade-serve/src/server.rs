//! The server: accepts connections, reads one request from each, answers it.

use crate::http::{Method, Parsed, Request, Response, Status, parse};
use crate::pool::Pool;
use crate::question::Question;
use crate::{guard, pages, run};
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A request must arrive within this time.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to read an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// If there are too many connections, one that has not sent a complete request for this long is closed.
const IDLE: Duration = Duration::from_secs(1);
/// After a refusal, the rest of the request is read for this long, so that the refusal arrives.
const LINGER: Duration = Duration::from_millis(500);
/// How often to check whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The limits of the server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The time limit of a run.
    pub timeout: Duration,
    /// The memory limit of a run's tables, in bytes.
    pub memory: u64,
    /// Threads of a run.
    pub jobs: usize,
    /// Active runs at a time.
    pub runs: usize,
    /// Waiting runs at a time.
    pub waiting: usize,
    /// Connections at a time.
    pub connections: usize,
    /// The largest request, in bytes.
    pub largest: usize,
    /// Whether C programs are read. The worker has to read them; without one, they are refused.
    pub c: bool,
    /// The version shown on the page.
    pub version: String,
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// State that all connections share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) address: SocketAddr,
    pub(crate) pool: Arc<Pool>,
    /// The stop flags of runs, by their tokens.
    pub(crate) runs: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// Set when the server stops.
    pub(crate) stop: AtomicBool,
    connections: AtomicUsize,
    /// The command that answers a question in a process. Without one, a thread answers.
    pub(crate) worker: Option<Vec<OsString>>,
    /// Connections whose requests have not arrived yet, the oldest first.
    receiving: Mutex<VecDeque<Receiving>>,
}

/// A connection whose request has not arrived yet.
struct Receiving {
    connection: TcpStream,
    /// The client's address, which identifies the connection.
    peer: Option<SocketAddr>,
    since: Instant,
}

/// The work of a server at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Open connections.
    pub connections: usize,
    /// Active runs.
    pub running: usize,
    /// Waiting runs.
    pub waiting: usize,
}

impl Server {
    /// Starts to listen.
    pub fn bind(config: Config) -> io::Result<Server> {
        let listener = TcpListener::bind(config.listen)?;
        let address = listener.local_addr()?;
        let pool = Arc::new(Pool::new(config.runs, config.waiting));
        let shared = Shared {
            config,
            address,
            pool,
            runs: Mutex::default(),
            stop: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            worker: None,
            receiving: Mutex::default(),
        };
        Ok(Server { listener, shared: Arc::new(shared) })
    }

    /// Answers each question in a process started with this command line. The process has to call
    /// [`answer_one`](crate::answer_one).
    pub fn with_worker(self, command: Vec<OsString>) -> Server {
        let Server { listener, shared } = self;
        let shared = Arc::into_inner(shared).expect("no connection has been accepted yet");
        Server { listener, shared: Arc::new(Shared { worker: Some(command), ..shared }) }
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The URL for a browser on this machine.
    pub fn url(&self) -> String {
        format!("http://{}/", reachable(self.shared.address))
    }

    /// The current load.
    pub fn load(&self) -> Load {
        let (running, waiting) = self.shared.pool.load();
        Load { connections: self.shared.connections.load(Ordering::Relaxed), running, waiting }
    }

    /// Answers requests until the flag is set; then stops all runs and waits for them.
    pub fn serve(&self, stop: &AtomicBool) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(POLL_INTERVAL);
                }
                self.shared.stop.store(true, Ordering::Relaxed);
                let runs = self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
                runs.values().for_each(|run| run.store(true, Ordering::Relaxed));
                drop(runs);
                // The listener waits for a connection. This one wakes it up.
                let _ = TcpStream::connect_timeout(&reachable(self.shared.address), RECEIVE_TIMEOUT);
            });
            for connection in self.listener.incoming() {
                if self.shared.stop.load(Ordering::Relaxed) {
                    break;
                }
                match connection {
                    Ok(connection) => self.take(connection),
                    // Out of descriptors, or the client has already disconnected: the server continues.
                    Err(_) => std::thread::sleep(POLL_INTERVAL),
                }
            }
        });
        let end = Instant::now() + RECEIVE_TIMEOUT;
        while self.load() != Load::default() && Instant::now() < end {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn take(&self, connection: TcpStream) {
        let open = Open::new(&self.shared);
        let too_many = self.shared.connections.load(Ordering::Relaxed) > self.shared.config.connections;
        if too_many && !self.shared.drop_idle() {
            let busy = Response::refusal(Status::ServiceUnavailable, "too many connections");
            // A few hundred bytes fit into any socket's buffer.
            let _ = busy.write(&mut Patient::new(&connection), false);
            return;
        }
        let answer = move || {
            let _ = answer(&open.shared, &connection);
            close(&connection);
        };
        // If no thread can be started, the connection is dropped.
        let _ = std::thread::Builder::new().name("connection".to_owned()).spawn(answer);
    }
}

/// An address at which a listener on all interfaces can be reached.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

impl Shared {
    /// Closes the connection that has waited longest for its request, if that is too long. Returns false if
    /// there is none.
    fn drop_idle(&self) -> bool {
        let mut receiving = self.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = receiving.front().is_some_and(|oldest| oldest.since.elapsed() > IDLE);
        let oldest = if is_idle { receiving.pop_front() } else { None };
        oldest.is_some_and(|oldest| oldest.connection.shutdown(Shutdown::Both).is_ok())
    }
}

/// A connection in the list of those whose requests have not arrived yet. It is removed when this is dropped.
struct Waiting<'a> {
    shared: &'a Shared,
    peer: Option<SocketAddr>,
}

impl<'a> Waiting<'a> {
    fn new(shared: &'a Shared, connection: &TcpStream) -> Waiting<'a> {
        let peer = connection.peer_addr().ok();
        // If it cannot be listed, it cannot be closed early; its timeout closes it later.
        if let Ok(connection) = connection.try_clone() {
            let mut receiving = shared.receiving.lock().unwrap_or_else(PoisonError::into_inner);
            receiving.push_back(Receiving { connection, peer, since: Instant::now() });
        }
        Waiting { shared, peer }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut receiving = self.shared.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        receiving.retain(|other| other.peer != self.peer);
    }
}

/// A connection for writing. Everything written before a flush must be read by the client within
/// [`WRITE_TIMEOUT`].
pub(crate) struct Patient<'a> {
    connection: &'a TcpStream,
    /// The deadline, if something was written.
    end: Option<Instant>,
}

impl<'a> Patient<'a> {
    pub(crate) fn new(connection: &'a TcpStream) -> Patient<'a> {
        Patient { connection, end: None }
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = *self.end.get_or_insert_with(|| Instant::now() + WRITE_TIMEOUT);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.connection.set_write_timeout(Some(left))?;
        self.connection.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end = None;
        self.connection.flush()
    }
}

/// Counts a connection while it exists.
struct Open {
    shared: Arc<Shared>,
}

impl Open {
    fn new(shared: &Arc<Shared>) -> Open {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        Open { shared: shared.clone() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads the request of a connection and answers it.
fn answer(shared: &Arc<Shared>, connection: &TcpStream) -> io::Result<()> {
    let mut out = Patient::new(connection);
    let waiting = Waiting::new(shared, connection);
    let received = receive(shared, connection);
    drop(waiting);
    let request = match received? {
        Ok(request) => request,
        Err(status) => {
            let why = "malformed or unsupported request";
            return Response::refusal(status, why).write(&mut out, false);
        }
    };
    let head_only = request.method == Method::Head;
    if let Err((status, why)) = guard::allows(&request, shared.address) {
        return Response::refusal(status, why).write(&mut out, head_only);
    }
    match (request.method, request.path.as_str()) {
        (Method::Post, "/api/run") => match Question::read(&request.body) {
            Ok(_) if shared.pool.is_full() => {
                let why = "too many runs at the moment; try again later";
                Response::refusal(Status::TooManyRequests, why).write(&mut out, false)
            }
            Ok(question) => run::run(shared, question, connection),
            Err(why) => Response::refusal(Status::BadRequest, &why).write(&mut out, false),
        },
        (Method::Post, "/api/stop") => stop(shared, &request).write(&mut out, false),
        (Method::Get | Method::Head, "/api/run" | "/api/stop") => {
            Response::refusal(Status::MethodNotAllowed, "use POST").write(&mut out, head_only)
        }
        (Method::Get | Method::Head, path) => {
            let missing = || Response::refusal(Status::NotFound, "no such page");
            pages::page(path, &shared.config.version, shared.config.c)
                .unwrap_or_else(missing)
                .write(&mut out, head_only)
        }
        (Method::Post | Method::Other, _) => {
            Response::refusal(Status::MethodNotAllowed, "use GET").write(&mut out, false)
        }
    }
}

/// Stops the run whose token is in the body.
fn stop(shared: &Shared, request: &Request) -> Response {
    let token: Option<String> = serde_json::from_slice(&request.body).ok();
    let runs = shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
    match token.and_then(|token| runs.get(&token)) {
        Some(run) => {
            run.store(true, Ordering::Relaxed);
            Response::new("application/json", "true")
        }
        None => Response::refusal(Status::NotFound, "no such run"),
    }
}

/// Reads until there is a complete request, or bytes that cannot become one.
fn receive(shared: &Shared, connection: &TcpStream) -> io::Result<Result<Box<Request>, Status>> {
    let end = Instant::now() + RECEIVE_TIMEOUT;
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    let mut input = connection;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || shared.stop.load(Ordering::Relaxed) {
            return Ok(Err(Status::RequestTimeout));
        }
        connection.set_read_timeout(Some(left))?;
        match input.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(Err(Status::RequestTimeout));
            }
            Err(error) => return Err(error),
        }
        match parse(&bytes, shared.config.largest) {
            Parsed::Incomplete => {}
            Parsed::Complete(request) => return Ok(Ok(request)),
            Parsed::Refused(status) => return Ok(Err(status)),
        }
    }
}

/// Closes a connection so that what was written arrives. Unread bytes would make the other side discard it.
fn close(connection: &TcpStream) {
    let _ = connection.shutdown(Shutdown::Write);
    let end = Instant::now() + LINGER;
    let mut piece = [0; 16 << 10];
    let mut input = connection;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if connection.set_read_timeout(Some(left)).is_err() || !matches!(input.read(&mut piece), Ok(1..)) {
            break;
        }
    }
}
