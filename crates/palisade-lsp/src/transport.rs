//! Messages over two streams: each has a heading with its length, and then JSON.
//!
//! A message that cannot be read does not end the connection: it is reported, and the next one is read.

use lsp_server::Message;
use std::io::{self, BufRead, Read, Write};

/// A larger message is not read.
const LARGEST: u64 = 1 << 28;
/// A longer line of a heading is not read.
const LONGEST_LINE: u64 = 1 << 13;

/// What was read.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Message),
    /// Not a message, and why.
    Malformed(String),
    /// There is nothing more.
    End,
}

/// Reads a message.
pub(crate) fn receive(input: &mut impl BufRead) -> io::Result<Received> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(Received::End);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            break;
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<u64>().ok();
            }
            Some(_) => {}
            None => return Ok(Received::Malformed(format!("`{}` is not a heading", shorten(line)))),
        }
    }
    let Some(length) = length else {
        return Ok(Received::Malformed("a message without Content-Length".to_owned()));
    };
    if length > LARGEST {
        return Ok(Received::Malformed(format!("a message of {length} bytes is too large")));
    }
    let mut content = Vec::new();
    if input.by_ref().take(length).read_to_end(&mut content)? as u64 != length {
        return Ok(Received::End);
    }
    Ok(match serde_json::from_slice(&content) {
        Ok(message) => Received::Message(message),
        Err(error) => Received::Malformed(format!("a message that is not JSON-RPC: {error}")),
    })
}

/// Writes a message.
pub(crate) fn send(output: &mut impl Write, message: &Message) -> io::Result<()> {
    message.write(output)?;
    output.flush()
}

fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            match receive(&mut input).expect("bytes can be read") {
                Received::Message(Message::Notification(message)) => found.push(message.method),
                Received::Message(other) => panic!("{other:?}"),
                Received::Malformed(_) => found.push("malformed".to_owned()),
                Received::End => return found,
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_skipped() {
        let message = |content: &str| format!("Content-Length: {}\r\n\r\n{content}", content.len());
        let good = message(r#"{"jsonrpc":"2.0","method":"a","params":{}}"#);
        assert_eq!(all(good.as_bytes()), ["a"]);
        assert_eq!(all((message("{") + &good).as_bytes()), ["malformed", "a"]);
        assert_eq!(all(("nonsense\r\n".to_owned() + &good).as_bytes()), ["malformed", "a"]);
        assert_eq!(all(("X: y\r\n\r\n".to_owned() + &good).as_bytes()), ["malformed", "a"]);
        assert_eq!(
            all(("Content-Length: 99999999999999\r\n\r\n".to_owned() + &good).as_bytes()),
            ["malformed", "a"]
        );
        assert_eq!(all(&good.as_bytes()[..good.len() - 1]), [""; 0]);
        assert_eq!(all(b""), [""; 0]);
    }
}
