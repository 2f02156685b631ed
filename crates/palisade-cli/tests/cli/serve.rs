//! `palisade serve`: its address, what it refuses, how it ends. What it serves is tested in its own crate.

use crate::common;

use common::Scratch;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A server that has printed its address.
fn start(scratch: &Scratch, args: &[&str]) -> (Child, String) {
    let mut command = scratch.command(&["serve", "--listen"]);
    let mut server =
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("it prints its address");
    (server, line)
}

fn get(address: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    write!(connection, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn prints_its_address_and_ends_with_control_c() {
    let scratch = Scratch::new("serve_ends");
    let (mut server, line) = start(&scratch, &["127.0.0.1:0"]);
    let address = line
        .strip_prefix("serving  http://")
        .and_then(|rest| rest.strip_suffix("/\n"))
        .unwrap_or_else(|| panic!("{line}"));
    assert!(get(address).starts_with("HTTP/1.1 200 OK\r\n"));
    let interrupt = Command::new("kill").args(["-INT", &server.id().to_string()]).status();
    assert!(interrupt.is_ok_and(|status| status.success()));
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
    assert!(TcpStream::connect(address).is_err(), "the port is closed");
}

#[test]
fn a_script_gets_the_address_as_json() {
    let scratch = Scratch::new("serve_json");
    let (mut server, line) = start(&scratch, &["127.0.0.1:0", "--format", "json"]);
    server.kill().expect("it runs");
    server.wait().expect("it ends");
    let record: serde_json::Value = serde_json::from_str(&line).expect("a JSON object");
    assert!(record["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{line}");
}

#[test]
fn warns_if_others_can_reach_it() {
    let scratch = Scratch::new("serve_everywhere");
    let (mut server, line) = start(&scratch, &["0.0.0.0:0"]);
    assert!(line.starts_with("serving  http://127.0.0.1:"), "{line}");
    server.kill().expect("it runs");
    let mut errors = String::new();
    server.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    server.wait().expect("it ends");
    assert!(errors.contains("warning[not-only-here]"), "{errors}");
}

/// Programs that take much work before any engine starts, and one that takes much work in the engines.
fn hard_work() -> Vec<String> {
    let calls: String = (1..40).map(|n| format!("proc f{n}() {{ f{0}(); f{0}(); }}\n", n - 1)).collect();
    vec![
        common::ENDLESS.to_owned(),
        "shared x: 0..1000000;\nprocess P { let r: 0..1000000 = *; x = r; }\nprocess Q { let s = x; x = s; }\n\
         forbid x == 999999;\n"
            .to_owned(),
        format!("shared x: 0..1;\nproc f0() {{ x = 1; }}\n{calls}process P {{ f39(); }}\nforbid x == 2;\n"),
        "shared a[60000]: 0..1;\nprocess P(i: 0..3) { loop { let k = any(0..59999); a[k] = 1 - a[k]; } }\n\
         forbid a[0] == 1 && a[59999] == 1;\n"
            .to_owned(),
    ]
}

fn begin(address: &str, program: &str) -> TcpStream {
    let question =
        serde_json::json!({ "command": "check", "program": program, "language": "pal", "model": "tso" });
    let body = question.to_string();
    let mut connection = TcpStream::connect(address).expect("it listens");
    write!(
        connection,
        "POST /api/run HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    connection
}

/// The last event of an answer.
fn answer(mut connection: TcpStream) -> serde_json::Value {
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("it answers");
    let last = answer.lines().rfind(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str(last).expect("a line is JSON")
}

/// Reads until an event of this kind arrives.
fn wait_for(connection: &mut TcpStream, event: &str) -> String {
    let mut received = String::new();
    let mut piece = [0; 1024];
    while !received.contains(&format!("\"event\":\"{event}\"")) {
        let read = connection.read(&mut piece).expect("it sends events");
        assert!(read > 0, "{received}");
        received.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    received
}

/// The processes that a server has started.
#[cfg(target_os = "linux")]
fn children(server: &Child) -> usize {
    let parent = format!("PPid:\t{}", server.id());
    let processes = std::fs::read_dir("/proc").expect("processes are listed").flatten();
    let status = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    status.filter(|status| status.lines().any(|line| line == parent)).count()
}

#[cfg(target_os = "linux")]
fn wait_until_idle(server: &Child) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while children(server) > 0 {
        assert!(std::time::Instant::now() < end, "a run is left");
        std::thread::yield_now();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn no_question_keeps_its_slot_beyond_its_time_limit() {
    let scratch = Scratch::new("serve_time");
    let (mut server, line) = start(&scratch, &["127.0.0.1:0", "--timeout", "1", "--runs", "1"]);
    let address = line.trim().trim_start_matches("serving  http://").trim_end_matches('/');
    for program in hard_work() {
        let begun = std::time::Instant::now();
        let last = answer(begin(address, &program));
        assert!(begun.elapsed().as_secs() < 20, "{program}");
        assert!(
            ["unknown", "safe", "unsafe"].contains(&last["word"].as_str().unwrap_or("")),
            "{program}: {last}"
        );
        // The slot is free again.
        assert_eq!(answer(begin(address, common::STORE_BUFFERING))["word"], "unsafe");
    }
    wait_until_idle(&server);
    server.kill().expect("it runs");
    server.wait().expect("it ends");
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_connection_ends_its_run() {
    let scratch = Scratch::new("serve_closed");
    let (mut server, line) = start(&scratch, &["127.0.0.1:0", "--timeout", "1000", "--runs", "1"]);
    let address = line.trim().trim_start_matches("serving  http://").trim_end_matches('/');
    for program in hard_work() {
        let mut connection = begin(address, &program);
        wait_for(&mut connection, "started");
        drop(connection);
        wait_until_idle(&server);
        assert_eq!(answer(begin(address, common::STORE_BUFFERING))["word"], "unsafe");
    }
    // After a stop request, a check answers with what it has.
    let mut connection = begin(address, common::ENDLESS);
    let received = wait_for(&mut connection, "progress");
    let started = received.lines().find(|line| line.contains("started")).expect("it has a token");
    let started: serde_json::Value = serde_json::from_str(started).expect("a line is JSON");
    let body = started["token"].to_string();
    let mut stop = TcpStream::connect(address).expect("it listens");
    write!(
        stop,
        "POST /api/stop HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let last = answer(connection);
    assert_eq!(last["word"], "unknown");
    assert!(last["html"].as_str().is_some_and(|html| html.contains("stopped")), "{last}");
    // A server that ends or is killed leaves no processes.
    let mut connection = begin(address, common::ENDLESS);
    wait_for(&mut connection, "started");
    common::interrupt(&server);
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_port_in_use_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    let scratch = Scratch::new("serve_taken");
    let ran = scratch.run(&["serve", "--listen", &address]).exits(2);
    assert!(ran.stderr.contains("error[cannot-listen]"), "{}", ran.stderr);
    scratch.run(&["serve", "--listen", "somewhere"]).exits(2);
}
