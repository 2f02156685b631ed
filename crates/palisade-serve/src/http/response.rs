//! Responses: complete ones, and streams of lines.

use super::Status;
use std::io::{self, Write};

/// Header fields of every response: nothing may be loaded from elsewhere, no other page may embed the page in
/// a frame, and nothing is cached.
const FIELDS: &str = "\
Connection: close\r\n\
Cache-Control: no-store\r\n\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Referrer-Policy: no-referrer\r\n\
X-Content-Type-Options: nosniff\r\n";

/// A complete response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// The status.
    pub status: Status,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A response with a body.
    pub fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: Status::Ok, content_type, body: body.into() }
    }

    /// A refusal, with a message for people.
    pub fn refusal(status: Status, why: &str) -> Response {
        let body = format!("{}: {why}\n", status.line());
        Response { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }

    /// Writes the response; for `HEAD`, without the body.
    pub fn write(&self, out: &mut dyn Write, head_only: bool) -> io::Result<()> {
        let Response { status, content_type, body } = self;
        let more = match status {
            Status::MethodNotAllowed => "Allow: GET, HEAD, POST\r\n",
            Status::TooManyRequests | Status::ServiceUnavailable => "Retry-After: 2\r\n",
            _ => "",
        };
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{more}{FIELDS}\r\n",
            status.line(),
            body.len()
        );
        let mut bytes = head.into_bytes();
        if !head_only {
            bytes.extend_from_slice(body);
        }
        out.write_all(&bytes)?;
        out.flush()
    }
}

/// A response that is sent line by line, each line a JSON value.
pub struct Stream<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Stream<'a> {
    /// Sends the header.
    pub fn begin(out: &'a mut dyn Write) -> io::Result<Stream<'a>> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n{FIELDS}\r\n"
        );
        out.write_all(head.as_bytes())?;
        Ok(Stream { out })
    }

    /// Sends one line.
    pub fn line(&mut self, value: &serde_json::Value) -> io::Result<()> {
        let line = value.to_string() + "\n";
        write!(self.out, "{:x}\r\n{line}\r\n", line.len())?;
        self.out.flush()
    }

    /// Ends the response.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"0\r\n\r\n")?;
        self.out.flush()
    }
}
