//! The server at the level of bytes: answers, refusals, limits, and that a run leaves nothing behind.

use crate::common::{ENDLESS, Running, STORE_BUFFERING, events, question, small, status};
use palisade_serve::{Config, Load};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const IDLE: Load = Load { connections: 0, running: 0, waiting: 0 };

fn last(events: &[Value]) -> &Value {
    events.last().expect("there is an answer")
}

#[test]
fn pages_are_served_and_nothing_else() {
    let server = Running::start(small());
    for path in [
        "/",
        "/?x=1",
        "/report.css",
        "/report.js",
        "/playground.css",
        "/playground.js",
        "/link.js",
        "/examples.json",
    ] {
        let answer = server.get(path);
        assert_eq!(status(&answer), "200", "{path}");
        for field in [
            "Content-Security-Policy: default-src 'none'",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
        ] {
            assert!(answer.contains(field), "{path}: {field}");
        }
    }
    for path in [
        "/Cargo.toml",
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "//etc/passwd",
        "/etc/passwd",
        "/api",
        "/index.html/",
    ] {
        assert_eq!(status(&server.get(path)), "404", "{path}");
    }
    let head = server.send(format!("HEAD / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address()));
    assert_eq!(status(&head), "200");
    assert!(head.ends_with("\r\n\r\n"), "no body");
    assert_eq!(status(&server.get("/api/run")), "405");
    assert_eq!(status(&server.post("/", &Value::Null)), "405");
    assert_eq!(
        status(&server.send(format!("DELETE / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address()))),
        "405"
    );
    server.wait_for(IDLE);
}

#[test]
fn questions_are_answered() {
    let server = Running::start(small());
    let words = |command: &str, program: &str| {
        let found = server.ask(&question(command, program));
        let last = last(&found).clone();
        (last["word"].as_str().unwrap_or("").to_owned(), last["html"].as_str().unwrap_or("").to_owned())
    };
    let (word, html) = words("check", STORE_BUFFERING);
    assert_eq!(word, "unsafe");
    assert!(html.contains("P.r = 0 and Q.r = 0") && html.contains("class=\"timeline\""), "{html}");
    let (word, html) = words("robust", STORE_BUFFERING);
    assert_eq!(word, "not-robust");
    assert!(html.contains("class=\"cycle\""));
    let (word, html) = words("fences", STORE_BUFFERING);
    assert_eq!(word, "repairable");
    assert!(html.contains("fence in P") && !html.contains("class=\"listing\""), "{html}");
    let (word, html) = words("compare", STORE_BUFFERING);
    assert_eq!(word, "unsafe");
    for part in [
        "data-model=\"sc\" data-standing=\"good\"",
        "data-model=\"tso\" data-standing=\"bad\"",
        "only with store buffers",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let (word, html) = words("outcomes", STORE_BUFFERING);
    assert_eq!(word, "complete");
    assert!(html.contains("3 outcomes under SC, 4 under TSO"), "{html}");
    let mut request = question("outcomes", STORE_BUFFERING);
    request["outcome"] = 1.into();
    let found = server.ask(&request);
    assert!(last(&found)["html"].as_str().is_some_and(|html| html.contains("A run to outcome 1 under TSO")));
    request["outcome"] = 5.into();
    assert_eq!(last(&server.ask(&request))["event"], "error");

    // The program with the fences, ready to be applied.
    let found = server.ask(&question("fences", STORE_BUFFERING));
    let fixed = last(&found)["texts"][0].as_str().expect("a text").to_owned();
    assert_eq!(fixed.matches("fence;").count(), 2, "{fixed}");
    assert_eq!(words("check", &fixed).0, "safe");

    // What is wrong, with its place.
    for command in ["check", "read"] {
        let found = server.ask(&question(command, "shared x: 0..1;\nprocess P { zz = 1; }"));
        let last = last(&found);
        assert_eq!(last["word"], "error", "{command}");
        let problem = &last["problems"][0];
        assert_eq!(
            (&problem["line"], &problem["column"], &problem["length"]),
            (&json!(2), &json!(13), &json!(2))
        );
        assert_eq!(problem["text"], "process P { zz = 1; }");
        assert_eq!(problem["severity"], "error");
    }
    assert_eq!(last(&server.ask(&question("read", STORE_BUFFERING)))["problems"], json!([]));

    for (field, value) in [
        ("language", "cobol"),
        ("language", "c"),
        ("language", "rust"),
        ("model", "arm"),
        ("engine", "v8"),
        ("threads", "0"),
        ("threads", "many"),
    ] {
        let mut request = question("check", STORE_BUFFERING);
        request[field] = value.into();
        assert_eq!(last(&server.ask(&request))["event"], "error", "{field} {value}");
    }
    let mut request = question("robust", STORE_BUFFERING);
    request["model"] = "sc".into();
    assert!(last(&server.ask(&request))["message"].as_str().is_some_and(|message| message.contains("SC")));
    let mut request = question("fences", STORE_BUFFERING);
    request["goal"] = "robustness".into();
    request["all"] = true.into();
    assert_eq!(last(&server.ask(&request))["word"], "repairable");
    let mut request = question("check", "process P { x: = }");
    request["name"] = "/etc/passwd".into();
    assert!(!server.post("/api/run", &request).contains("root:"), "names are not files");
    server.wait_for(IDLE);
}

#[test]
fn steps_are_taken_by_hand() {
    let server = Running::start(small());
    let take = |choices: &[usize]| {
        let mut request = question("step", STORE_BUFFERING);
        request["choices"] = json!(choices);
        last(&server.ask(&request)).clone()
    };
    let first = take(&[]);
    assert_eq!(first["next"].as_array().map(Vec::len), Some(2), "{first}");
    assert_eq!(first["next"][0]["process"], "P");
    assert_eq!(first["next"][0]["effect"], "store x = 1");
    // P stores and reads, Q stores and reads, then both stores reach memory: the run that breaks the program.
    let mut choices = Vec::new();
    for (process, effect) in [
        ("P", "store x"),
        ("P", "read y = 0"),
        ("Q", "store y"),
        ("Q", "read x = 0"),
        ("P", "x = 1 to memory"),
        ("Q", "y = 1 to memory"),
    ] {
        let answer = take(&choices);
        let next = answer["next"].as_array().expect("a list");
        let fits = |step: &Value| {
            step["process"] == process && step["effect"].as_str().is_some_and(|text| text.starts_with(effect))
        };
        choices.push(next.iter().position(fits).unwrap_or_else(|| panic!("{effect}: {answer}")));
    }
    let end = take(&choices);
    assert_eq!(end["word"], "unsafe", "{end}");
    assert_eq!(take(&[99])["event"], "error");
    assert_eq!(take(&[0; 3000])["event"], "error");

    // Chosen values, and memory that starts with any value, are offered within bounds.
    let wide = "shared x: 0..1000000 = *;\nprocess P { let r = any(0..1000000); x = r; }";
    let answer = last(&server.ask(&question("step", wide))).clone();
    assert!(answer["next"].as_array().is_some_and(|next| (1..=32).contains(&next.len())), "{answer}");
    assert!(answer["starts"].as_array().is_some_and(|starts| starts.len() <= 64));
}

#[test]
fn malformed_requests_are_refused() {
    let server = Running::start(small());
    let address = server.address();
    let json = "Content-Type: application/json";
    for (request, expected) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("\u{16}\u{3}\u{1}".to_owned(), "400"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/9.9\r\nHost: {address}\r\n\r\n"), "505"),
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n", "y".repeat(20_000)), "431"),
        (format!("POST /api/run HTTP/1.1\r\nHost: {address}\r\n{json}\r\n\r\n"), "411"),
        (
            format!("POST /api/run HTTP/1.1\r\nHost: {address}\r\n{json}\r\nContent-Length: 999999\r\n\r\n"),
            "413",
        ),
        (
            format!(
                "POST /api/run HTTP/1.1\r\nHost: {address}\r\n{json}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            "501",
        ),
        (
            format!("POST /api/run HTTP/1.1\r\nHost: {address}\r\n{json}\r\nContent-Length: 1\r\n\r\n{{"),
            "400",
        ),
        (
            format!(
                "POST /api/run HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}"
            ),
            "415",
        ),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "403"),
        (
            format!(
                "POST /api/run HTTP/1.1\r\nHost: {address}\r\nOrigin: http://evil.example\r\n{json}\r\nContent-Length: 2\r\n\r\n{{}}"
            ),
            "403",
        ),
    ] {
        assert_eq!(status(&server.send(&request)), expected, "{request:?}");
    }
    // The refusal arrives even if the client sends a body that is too large.
    let large = server.post("/api/run", &question("check", &"x".repeat(1 << 20)));
    assert_eq!(status(&large), "413");
    for body in [
        json!({}),
        json!([]),
        json!({ "command": "check" }),
        json!({ "command": "rm", "program": "", "language": "pal", "model": "tso" }),
    ] {
        assert_eq!(status(&server.post("/api/run", &body)), "400", "{body}");
    }
    let deep = "[".repeat(50_000);
    let request = format!(
        "POST /api/run HTTP/1.1\r\nHost: {address}\r\n{json}\r\nContent-Length: {}\r\n\r\n{deep}",
        deep.len()
    );
    assert_eq!(status(&server.send(request)), "400");
    server.wait_for(IDLE);
}

#[test]
fn a_run_is_stopped_by_its_token() {
    let server = Running::start(small());
    let mut request = question("check", ENDLESS);
    request["engine"] = "explicit".into();
    let mut connection = server.begin(&request);
    let mut received = String::new();
    let mut piece = [0; 4096];
    while !received.contains("progress") {
        let read = connection.read(&mut piece).expect("the server reports progress");
        assert!(read > 0, "{received}");
        received.push_str(str::from_utf8(&piece[..read]).expect("text"));
    }
    let started =
        received.split("\r\n").find(|line| line.contains("started")).expect("there is a `started` event");
    let started: Value = serde_json::from_str(started.trim_end()).expect("JSON");
    assert_eq!(status(&server.post("/api/stop", &json!("0123"))), "404");
    assert_eq!(status(&server.post("/api/stop", &Value::Null)), "404");
    assert_eq!(status(&server.post("/api/stop", &started["token"])), "200");
    connection.read_to_string(&mut received).expect("the answer arrives");
    let found = events(&received);
    let last = last(&found);
    assert_eq!(last["word"], "unknown", "{last}");
    assert!(last["html"].as_str().is_some_and(|html| html.contains("stopped")), "{last}");
    assert_eq!(status(&server.post("/api/stop", &started["token"])), "404", "the token is no longer valid");
    server.wait_for(IDLE);
}

#[test]
fn runs_end_within_their_time_and_memory() {
    let server = Running::start(Config { timeout: Duration::from_millis(300), ..small() });
    let found = server.ask(&question("check", ENDLESS));
    assert_eq!(last(&found)["word"], "unknown");
    assert!(last(&found)["html"].as_str().is_some_and(|html| html.contains("out of time")), "{found:?}");
    let server = Running::start(Config { memory: 1 << 20, ..small() });
    let mut request = question("check", ENDLESS);
    request["engine"] = "explicit".into();
    let found = server.ask(&request);
    assert!(last(&found)["html"].as_str().is_some_and(|html| html.contains("out of memory")), "{found:?}");
    // Short programs that are very large.
    for program in [
        "shared x[1000000000]: 0..1;\nprocess P { x[0] = 1; }",
        "shared x: 0..1;\nprocess P[1000000000] { x = 1; }",
        "shared x: 0..1;\nprocess P(i: 0..1000000000) { x = 1; }",
        "shared x: 0..1;\nprocess P(i: 0..999, j: 0..999, k: 0..999) { x = 1; }",
    ] {
        for command in ["check", "robust", "fences", "step"] {
            let found = server.ask(&question(command, program));
            assert!(
                ["done", "error"].contains(&last(&found)["event"].as_str().unwrap_or("")),
                "{program}: {found:?}"
            );
        }
    }
    server.wait_for(IDLE);
}

#[test]
fn a_closed_connection_leaves_nothing_behind() {
    let server = Running::start(Config { runs: 2, waiting: 4, connections: 64, ..small() });
    server.wait_for(IDLE);
    for round in 0..3 {
        let connections: Vec<TcpStream> = (0..5).map(|_| server.begin(&question("check", ENDLESS))).collect();
        server.wait_for(Load { connections: 5, running: 2, waiting: 3 });
        if round == 1 {
            // Closed completely, or only for writing.
            connections.iter().for_each(|connection| {
                let _ = connection.shutdown(Shutdown::Write);
            });
        }
        drop(connections);
        server.wait_for(IDLE);
    }
    // Clients that never finish their request, or send one byte and leave.
    let mut half = TcpStream::connect(server.address()).expect("the server listens");
    half.write_all(b"POST /api/run HTTP/1.1\r\nHost:").expect("the server reads");
    drop(half);
    drop(TcpStream::connect(server.address()));
    server.wait_for(IDLE);
    assert_eq!(status(&server.get("/")), "200");
}

#[test]
fn too_many_wait_or_are_refused() {
    let server = Running::start(small());
    let mut first = server.begin(&question("check", ENDLESS));
    server.wait_for(Load { connections: 1, running: 1, waiting: 0 });
    let mut second = server.begin(&question("check", STORE_BUFFERING));
    server.wait_for(Load { connections: 2, running: 1, waiting: 1 });
    let third = server.post("/api/run", &question("check", STORE_BUFFERING));
    assert_eq!(status(&third), "429");
    assert!(third.contains("Retry-After"));
    // The first run ends, and the second gets its turn.
    let mut piece = [0; 512];
    let _ = first.read(&mut piece);
    drop(first);
    let mut answer = String::new();
    second.read_to_string(&mut answer).expect("the answer arrives");
    let found = events(&answer);
    assert!(found.iter().any(|event| event["event"] == "waiting"), "{found:?}");
    assert_eq!(last(&found)["word"], "unsafe");
    server.wait_for(IDLE);

    // More connections than allowed.
    let held: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(server.address()).expect("the server listens")).collect();
    server.wait_for(Load { connections: 8, running: 0, waiting: 0 });
    assert_eq!(status(&server.get("/")), "503");
    drop(held);
    server.wait_for(IDLE);
    assert_eq!(status(&server.get("/")), "200");
}

#[test]
fn idle_and_slow_connections_make_room_for_others() {
    let server = Running::start(small());
    let mut held: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(server.address()).expect("the server listens")).collect();
    // One of them sends its request one byte at a time.
    held[0].write_all(b"GET / HT").expect("the server reads");
    server.wait_for(Load { connections: 8, running: 0, waiting: 0 });
    let end = std::time::Instant::now() + Duration::from_secs(9);
    while status(&server.get("/")) != "200" {
        assert!(
            std::time::Instant::now() < end,
            "a request is answered before the idle connections time out"
        );
    }
    drop(held);
    server.wait_for(IDLE);
}

/// A client that does not read its answer holds a connection, but no slot.
#[test]
fn a_client_that_does_not_read_holds_no_slot() {
    let server = Running::start(small());
    let lazy = server.begin(&question("check", STORE_BUFFERING));
    server.wait_for(Load { connections: 1, running: 0, waiting: 0 });
    assert_eq!(last(&server.ask(&question("check", STORE_BUFFERING)))["word"], "unsafe");
    drop(lazy);
    server.wait_for(IDLE);
}

#[test]
fn many_clients_at_once() {
    let server = Running::start(Config { runs: 2, waiting: 100, connections: 200, ..small() });
    std::thread::scope(|scope| {
        for client in 0..24 {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..4 {
                    let (program, word) = match client % 3 {
                        0 => (STORE_BUFFERING.to_owned(), "unsafe"),
                        1 => (
                            STORE_BUFFERING
                                .replace("x = 1;", "x = 1; fence;")
                                .replace("y = 1;", "y = 1; fence;"),
                            "safe",
                        ),
                        _ => ("process".to_owned(), "error"),
                    };
                    let found = server.ask(&question("check", &program));
                    assert_eq!(last(&found)["word"], word);
                }
            });
        }
    });
    server.wait_for(IDLE);
}

#[test]
fn a_server_that_stops_ends_its_runs() {
    let server = Running::start(small());
    let mut connection = server.begin(&question("check", ENDLESS));
    server.wait_for(Load { connections: 1, running: 1, waiting: 0 });
    let shared = server.server.clone();
    drop(server);
    assert_eq!(shared.load(), IDLE);
    let mut rest = Vec::new();
    let _ = connection.read_to_end(&mut rest);
}
