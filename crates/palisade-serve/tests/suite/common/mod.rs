//! A server on a free port, and requests written by hand.

use palisade_serve::{Config, Load, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Store buffering: safe under SC, unsafe under TSO and PSO.
pub const STORE_BUFFERING: &str = "\
shared x, y: 0..1;
process P { x = 1; let r = y; }
process Q { y = 1; let r = x; }
final P.r == 1 || Q.r == 1;
";

/// Far too many states for a test, none of them bad.
pub const ENDLESS: &str = "\
shared x[8]: 0..99;
process P(i: 0..7) { loop { x[i] = (x[(i + 1) % 8] + x[i] + 1) % 100; } }
forbid x[0] == 98 && x[1] == 98 && x[2] == 98 && x[3] == 98 && x[4] == 98 && x[5] == 98 && x[6] == 98 && x[7] == 98;
";

/// A server that runs until it is dropped.
pub struct Running {
    pub server: Arc<Server>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// One active run, one waiting run, and small limits.
pub fn small() -> Config {
    Config {
        listen: "127.0.0.1:0".parse().expect("an address"),
        timeout: Duration::from_secs(20),
        memory: 256 << 20,
        jobs: 1,
        runs: 1,
        waiting: 1,
        connections: 8,
        largest: 64 << 10,
        c: false,
        version: "Palisade".to_owned(),
    }
}

impl Running {
    pub fn start(config: Config) -> Running {
        let server = Arc::new(Server::bind(config).expect("there is a free port"));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (server, stop) = (server.clone(), stop.clone());
            move || server.serve(&stop)
        });
        Running { server, stop, thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Sends bytes and reads everything that comes back.
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut connection = TcpStream::connect(self.address()).expect("the server listens");
        // A server that refuses early may close the connection before everything is sent.
        let _ = connection.write_all(bytes.as_ref());
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
        String::from_utf8(answer).expect("answers are text")
    }

    pub fn get(&self, path: &str) -> String {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address()))
    }

    /// The bytes of a request with a JSON body.
    pub fn post_bytes(&self, path: &str, body: &Value) -> String {
        let body = body.to_string();
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address(),
            body.len()
        )
    }

    pub fn post(&self, path: &str, body: &Value) -> String {
        self.send(self.post_bytes(path, body))
    }

    /// Asks a question and waits for the events that answer it.
    pub fn ask(&self, question: &Value) -> Vec<Value> {
        events(&self.post("/api/run", question))
    }

    /// Sends a question and leaves the connection open.
    pub fn begin(&self, question: &Value) -> TcpStream {
        let mut connection = TcpStream::connect(self.address()).expect("the server listens");
        connection.write_all(self.post_bytes("/api/run", question).as_bytes()).expect("the server reads");
        connection
    }

    /// Waits until the server has exactly this load.
    pub fn wait_for(&self, load: Load) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.server.load() != load {
            assert!(Instant::now() < end, "{:?}, never {load:?}", self.server.load());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// The status of an answer.
pub fn status(answer: &str) -> &str {
    answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next()).unwrap_or("none")
}

/// The lines in the chunks of a stream.
pub fn events(answer: &str) -> Vec<Value> {
    assert_eq!(status(answer), "200", "{answer}");
    let (_, chunks) = answer.split_once("\r\n\r\n").expect("there is a body");
    chunks
        .split("\r\n")
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line.trim_end()).expect("a line is JSON"))
        .collect()
}

pub fn question(command: &str, program: &str) -> Value {
    json!({ "command": command, "program": program, "language": "pal", "model": "tso" })
}
