//! A small client: it speaks the language server protocol to the command, over pipes, as an editor does.
//!
//! A thread reads what the server writes, so that a server that says nothing fails the test instead of stopping it.

use crate::common::Scratch;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// No message of a test takes this long, even on a busy machine.
const SILENCE: Duration = Duration::from_secs(300);

/// An editor with a server.
pub struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    /// What the server has written.
    messages: Receiver<Value>,
    requests: i64,
    /// Notifications that nobody has waited for yet.
    notifications: VecDeque<Value>,
    /// Responses that nobody has waited for yet.
    responses: Vec<Value>,
}

impl Editor {
    /// Starts a server in a folder, and initializes it.
    pub fn start(scratch: &Scratch, args: &[&str]) -> Editor {
        let mut editor = Editor::uninitialized(scratch, args);
        let capabilities = json!({
            "window": { "workDoneProgress": true },
            "workspace": { "codeLens": { "refreshSupport": true } },
        });
        let answer = editor
            .ask("initialize", json!({ "processId": null, "rootUri": null, "capabilities": capabilities }));
        assert_eq!(answer["serverInfo"]["name"], "palisade", "{answer}");
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16", "{answer}");
        editor.notify("initialized", json!({}));
        editor
    }

    /// Starts a server in a folder.
    pub fn uninitialized(scratch: &Scratch, args: &[&str]) -> Editor {
        let mut command = scratch.command(&[&["lsp"], args].concat());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the server starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut stdout) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let (notifications, responses) = (VecDeque::new(), Vec::new());
        Editor { child, stdin, messages, requests: 0, notifications, responses }
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let content = message.to_string();
        self.send_raw(format!("Content-Length: {}\r\n\r\n{content}", content.len()).as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, and returns its number.
    pub fn request(&mut self, method: &str, params: Value) -> i64 {
        self.requests += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params }));
        self.requests
    }

    /// Sends a request, and waits for its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Waits for the response to a request.
    pub fn response(&mut self, id: i64) -> Value {
        loop {
            if let Some(index) = self.responses.iter().position(|response| response["id"] == id) {
                return self.responses.remove(index);
            }
            self.read();
        }
    }

    /// Waits for a notification.
    pub fn wait(&mut self, method: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            while let Some(message) = self.notifications.pop_front() {
                if message["method"] == method && is_meant(&message["params"]) {
                    return message["params"].clone();
                }
            }
            self.read();
        }
    }

    /// Waits until the diagnostics of a file satisfy a condition.
    pub fn diagnostics(&mut self, uri: &str, is_meant: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let list = |params: &Value| params["diagnostics"].as_array().cloned().unwrap_or_default();
        let found = self.wait("textDocument/publishDiagnostics", |params| {
            params["uri"] == uri && is_meant(&list(params))
        });
        list(&found)
    }

    /// Waits for one message. Requests of the server are answered at once.
    fn read(&mut self) {
        let message = match self.messages.recv_timeout(SILENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Disconnected) => panic!("the server ended, or wrote something else"),
            Err(RecvTimeoutError::Timeout) => panic!("the server has said nothing for {SILENCE:?}"),
        };
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match (message.get("method"), message.get("id")) {
            (Some(_), Some(id)) => self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": null })),
            (Some(_), None) => self.notifications.push_back(message),
            (None, _) => self.responses.push(message),
        }
    }

    /// Waits for the end of the server. Returns the exit code.
    fn ended(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the server was started") {
                return status.code();
            }
            assert!(start.elapsed() < SILENCE, "the server does not end");
            // The thread that reads ends when the server does.
            while self.messages.recv_timeout(Duration::from_millis(20)).is_ok() {}
        }
    }

    pub fn open(&mut self, uri: &str, language: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Replaces the whole text of a file.
    pub fn replace(&mut self, uri: &str, version: i32, text: &str) {
        self.change(uri, version, json!([{ "text": text }]));
    }

    pub fn change(&mut self, uri: &str, version: i32, changes: Value) {
        let document = json!({ "uri": uri, "version": version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    pub fn save(&mut self, uri: &str) {
        self.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
    }

    /// Runs a command about a file, and waits for its result.
    pub fn run(&mut self, command: &str, uri: &str) -> Value {
        self.ask("workspace/executeCommand", json!({ "command": command, "arguments": [uri] }))
    }

    /// A request about a position in a file.
    pub fn at(&mut self, method: &str, uri: &str, line: u32, character: u32, more: Value) -> Value {
        let mut params = json!({
            "textDocument": { "uri": uri }, "position": { "line": line, "character": character },
        });
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        self.ask(method, params)
    }

    /// Closes the input, and waits for the end. Returns the exit code.
    pub fn leave(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.ended()
    }

    /// Shuts the server down as the protocol asks for. Returns the exit code.
    pub fn shut_down(mut self) -> Option<i32> {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        self.ended()
    }
}

/// Reads one message; `None` at the end.
fn read_message(stdout: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut content = vec![0; length];
    stdout.read_exact(&mut content).ok()?;
    serde_json::from_slice(&content).ok()
}

impl Drop for Editor {
    fn drop(&mut self) {
        // After a failed assertion.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text after the edits of a workspace edit for one file.
pub fn applied(text: &str, edit: &Value, uri: &str) -> String {
    let mut edits = edit["changes"][uri].as_array().cloned().unwrap_or_else(|| panic!("no changes: {edit}"));
    let place = |edit: &Value, end: &str| {
        let position = &edit["range"][end];
        (position["line"].as_u64().expect("a line"), position["character"].as_u64().expect("a column"))
    };
    edits.sort_by_key(|edit| std::cmp::Reverse(place(edit, "start")));
    let mut text = text.to_owned();
    for edit in &edits {
        let (start, end) = (offset(&text, place(edit, "start")), offset(&text, place(edit, "end")));
        text.replace_range(start..end, edit["newText"].as_str().expect("a text"));
    }
    text
}

/// The byte of a position whose column counts UTF-16 units.
fn offset(text: &str, (line, character): (u64, u64)) -> usize {
    let start: usize = text.split_inclusive('\n').take(line as usize).map(str::len).sum();
    let mut units = 0;
    for (offset, c) in text[start..].char_indices() {
        if units >= character {
            return start + offset;
        }
        units += c.len_utf16() as u64;
    }
    text.len()
}
