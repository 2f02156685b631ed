//! `palisade serve`: where it is, what it refuses, how it ends. What it serves is tested in its own crate.

use crate::common;

use common::Scratch;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A server that has said where it is.
fn start(scratch: &Scratch, args: &[&str]) -> (Child, String) {
    let mut command = scratch.command(&["serve", "--listen"]);
    let mut server =
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it is");
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
fn says_where_it_is_and_ends_with_control_c() {
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
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn a_script_is_told_the_address_as_json() {
    let scratch = Scratch::new("serve_json");
    let (mut server, line) = start(&scratch, &["127.0.0.1:0", "--format", "json"]);
    server.kill().expect("it runs");
    server.wait().expect("it ends");
    let told: serde_json::Value = serde_json::from_str(&line).expect("a JSON object");
    assert!(told["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{line}");
}

#[test]
fn says_if_others_can_reach_it() {
    let scratch = Scratch::new("serve_everywhere");
    let (mut server, line) = start(&scratch, &["0.0.0.0:0"]);
    assert!(line.starts_with("serving  http://127.0.0.1:"), "{line}");
    server.kill().expect("it runs");
    let mut errors = String::new();
    server.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    server.wait().expect("it ends");
    assert!(errors.contains("warning[not-only-here]"), "{errors}");
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
