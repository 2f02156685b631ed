//! Messages to and from Chromium.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

/// The two pipes.
pub(crate) struct Pipe {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Events that arrived while waiting for an answer.
    pub(crate) events: VecDeque<Value>,
}

impl Pipe {
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> Pipe {
        Pipe { input, output: BufReader::new(output), next: 1, events: VecDeque::new() }
    }

    /// Sends a command and returns its number. An error shows only when waiting for the answer.
    pub(crate) fn send(&mut self, session: Option<&str>, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let mut message = json!({ "id": id, "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let _ = self.input.write_all(&bytes).and_then(|()| self.input.flush());
        id
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        let id = self.send(session, method, params);
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push_back(message);
        }
    }

    /// Waits for the next message.
    pub(crate) fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.output.read_until(0, &mut bytes).expect("the pipe can be read");
        assert_eq!(bytes.pop(), Some(0), "Chromium closed the pipe");
        serde_json::from_slice(&bytes).expect("Chromium sends JSON")
    }
}
